/* SPDX-License-Identifier: MIT
 * Modules are shared objects in memory; launches run on the streams' threads, those of one module
 * one after the other, because its variables in local memory exist once. A kernel that touches
 * memory that is not there ends with the device's error, not with the process. */
#include "tests/fake_cuda/fake_launch.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/fake_cuda/fake_run.h"

enum { MAX_FUNCTIONS = 32, MAX_IMAGE = 64 << 20, MAX_GROUP = 1024 };

struct tnd_fake_function {
    struct tnd_fake_module *module;
    const struct tnd_fake_kernel *kernel;
};
struct tnd_fake_module {
    void *handle;
    int file;
    struct tnd_fake_item **item_now;
    char *local, *local_end;
    const char *program, *program_end;
    pthread_mutex_t lock; /* guards the program's variables */
    struct tnd_fake_function functions[MAX_FUNCTIONS];
    int n_functions;
};

/* ---- modules ---- */

/* glibc opens a file once by its name and its inode, so each module keeps a file of its own. */
static void *open_object(const char *bytes, size_t n, int *out_file)
{
    char path[64];
    const int file = memfd_create("tandem-fake-module", MFD_CLOEXEC);
    void *handle = NULL;
    if (file >= 0 && write(file, bytes, n) == (ssize_t)n) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            fprintf(stderr, "fake libcuda: %s\n", dlerror());
        }
    }
    if (file >= 0 && handle == NULL) {
        close(file);
    }
    *out_file = file;
    return handle;
}

/* Where the object lies that has the module's pointer to its item. */
static int find_extent(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct tnd_fake_module *module = data;
    const char *inside = (const char *)module->item_now;
    const char *end = (const char *)info->dlpi_addr;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *part_end = (const char *)info->dlpi_addr + part->p_vaddr + part->p_memsz;
        end = part->p_type == PT_LOAD && part_end > end ? part_end : end;
    }
    if (inside < (const char *)info->dlpi_addr || inside >= end) {
        return 0;
    }
    module->program = (const char *)info->dlpi_addr;
    module->program_end = end;
    return 1;
}

static int load_image(const void *image, struct tnd_fake_module **out)
{
    struct tnd_fake_image head;
    memcpy(&head, image, sizeof(head));
    if (memcmp(head.magic, TND_FAKE_MAGIC, sizeof(TND_FAKE_MAGIC)) != 0 || head.bytes > MAX_IMAGE) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    const char *object = (const char *)image + sizeof(head);
    if (tnd_hash_bytes(object, (size_t)head.bytes, 0) != head.hash) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    struct tnd_fake_module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->handle = open_object(object, (size_t)head.bytes, &module->file);
    const struct tnd_fake_kernel *kernels =
        module->handle != NULL ? dlsym(module->handle, "tnd_fake_kernels") : NULL;
    module->item_now = module->handle != NULL ? dlsym(module->handle, "tnd_fake_item_now") : NULL;
    if (kernels == NULL || module->item_now == NULL) {
        free(module);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    char **ends = dlsym(module->handle, "tnd_fake_local_ends");
    module->local = ends != NULL ? ends[0] : NULL;
    module->local_end = ends != NULL ? ends[1] : NULL;
    dl_iterate_phdr(find_extent, module);
    pthread_mutex_init(&module->lock, NULL);
    for (int i = 0; kernels[i].name != NULL && i < MAX_FUNCTIONS; i++) {
        module->functions[module->n_functions++] = (struct tnd_fake_function){module, &kernels[i]};
    }
    tnd_fake_live(TND_FAKE_MODULE, 1);
    *out = module;
    return CUDA_SUCCESS;
}

int tnd_fake_module_load(const void *image, struct tnd_fake_module **out)
{
    char *made = NULL;
    if (strncmp(image, "//", 2) != 0) {
        return load_image(image, out);
    }
    int code = tnd_fake_ptx_image(image, &made);
    code = code == CUDA_SUCCESS ? load_image(made, out) : code;
    free(made);
    return code;
}

void tnd_fake_module_free(struct tnd_fake_module *module)
{
    pthread_mutex_destroy(&module->lock);
    dlclose(module->handle);
    close(module->file);
    free(module);
    tnd_fake_live(TND_FAKE_MODULE, -1);
}

struct tnd_fake_function *tnd_fake_module_find(struct tnd_fake_module *module, const char *name)
{
    for (int i = 0; i < module->n_functions; i++) {
        if (strcmp(module->functions[i].kernel->name, name) == 0) {
            return &module->functions[i];
        }
    }
    return NULL;
}

unsigned tnd_fake_function_local_bytes(const struct tnd_fake_function *function)
{
    return (unsigned)(function->module->local_end - function->module->local);
}

/* ---- bad addresses ---- */

static _Thread_local sigjmp_buf back;
static _Thread_local volatile sig_atomic_t is_running;
static struct sigaction before[2];

static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &before[number == SIGBUS];
    if (is_running) {
        is_running = 0;
        siglongjmp(back, number);
    }
    if ((old->sa_flags & SA_SIGINFO) != 0 && old->sa_sigaction != NULL) {
        old->sa_sigaction(number, info, context);
    } else {
        sigaction(number, old, NULL); /* the access comes again and ends the process */
    }
}

static void catch_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}

/* ---- launches ---- */

uint32_t tnd_fake_launch_number(void)
{
    static uint32_t n_launches;
    return 1 + __atomic_fetch_add(&n_launches, 1, __ATOMIC_RELAXED);
}

struct pending {
    struct tnd_fake_function *function;
    struct tnd_fake_launch launch;
    struct tnd_fake_values taken;
};

void tnd_fake_values_take(const struct tnd_fake_function *function, void **arguments,
                          struct tnd_fake_values *out)
{
    for (int i = 0; i < function->kernel->n_arguments && i < TND_FAKE_MAX_ARGUMENTS; i++) {
        memcpy(&out->values[i], arguments[i], function->kernel->argument_bytes[i]);
        out->arguments[i] = &out->values[i];
    }
}

static void run(void *data)
{
    struct pending *pending = data;
    struct tnd_fake_module *module = pending->function->module;
    const char *volatile wrong = NULL;
    volatile int code = CUDA_ERROR_LAUNCH_FAILED;
    pthread_mutex_lock(&module->lock);
    tnd_fake_enter();
    pending->launch.number = tnd_fake_launch_number();
    if (sigsetjmp(back, 1) == 0) {
        is_running = 1;
        wrong = tnd_fake_run(&pending->launch);
        is_running = 0;
        code =
            wrong != NULL && strstr(wrong, "not the device's") != NULL ? CUDA_ERROR_ILLEGAL_ADDRESS
            : wrong != NULL && strstr(wrong, "not aligned") != NULL ? CUDA_ERROR_MISALIGNED_ADDRESS
                                                                    : CUDA_ERROR_LAUNCH_FAILED;
    } else {
        wrong = "a kernel touched memory that is not the device's";
        code = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    const char *beside = tnd_fake_leave();
    pthread_mutex_unlock(&module->lock);
    if (wrong != NULL || beside != NULL) {
        char text[160];
        snprintf(text, sizeof(text), "%s: %s", pending->function->kernel->name,
                 wrong != NULL ? wrong : beside);
        tnd_fake_wrong(text, wrong != NULL ? code : CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    free(pending);
}

int tnd_fake_launch_push(struct tnd_fake_function *function, const unsigned n_groups[3],
                         const unsigned local_size[3], unsigned local_bytes,
                         struct tnd_fake_stream *stream, void **arguments)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct tnd_fake_kernel *kernel = function->kernel;
    uint64_t items = 1;
    for (int d = 0; d < 3; d++) {
        if (n_groups[d] == 0 || local_size[d] == 0 || local_size[d] > MAX_GROUP ||
            (d > 0 && n_groups[d] > 65535)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        items *= local_size[d];
    }
    if (items > MAX_GROUP || local_bytes + tnd_fake_function_local_bytes(function) > 48 << 10) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_once(&once, catch_faults);
    struct pending *pending = calloc(1, sizeof(*pending));
    if (pending == NULL || kernel->n_arguments > TND_FAKE_MAX_ARGUMENTS) {
        free(pending);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pending->function = function;
    pending->launch = (struct tnd_fake_launch){.kernel = kernel,
                                               .item_now = function->module->item_now,
                                               .local = function->module->local,
                                               .local_end = function->module->local_end,
                                               .local_bytes = local_bytes,
                                               .program = function->module->program,
                                               .program_end = function->module->program_end,
                                               .values = (const char *)pending,
                                               .values_end = (const char *)(pending + 1),
                                               .arguments = pending->taken.arguments};
    memcpy(pending->launch.n_groups, n_groups, sizeof(pending->launch.n_groups));
    memcpy(pending->launch.local_size, local_size, sizeof(pending->launch.local_size));
    tnd_fake_values_take(function, arguments, &pending->taken);
    tnd_fake_push(stream, run, pending);
    return CUDA_SUCCESS;
}
