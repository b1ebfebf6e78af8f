/* SPDX-License-Identifier: MIT
 * The kernels in the dialect of CUDA, run by the stand-ins for NVIDIA's libraries on the CPU. */
#include "tests/suite_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct tnd_cu tnd_cu;

static struct nvrtc {
    int (*create)(void **out, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *program, int n, const char *const *options);
    int (*destroy)(void **program);
    int (*log_size)(void *program, size_t *out);
    int (*log)(void *program, char *out);
    int (*cubin_size)(void *program, size_t *out);
    int (*cubin)(void *program, char *out);
} nvrtc;
static bool is_there;

/* ---- opening ---- */

static void find(void *library, const char *name, void *out_function)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        CU_FAIL("a function is missing");
        fprintf(stderr, "the stand-in has no %s\n", name);
    }
    memcpy(out_function, &found, sizeof(found));
}

/* As a driver looks for them: by cuGetProcAddress. */
static void find_driver(int (*look_up)(const char *name, void **out, int version, uint64_t flags,
                                       int *out_status),
                        const char *name, void *out_function)
{
    void *found = NULL;
    CU_ASSERT_EQUAL(look_up(name, &found, 12000, 0, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    memcpy(out_function, &found, sizeof(found));
}

static bool open_libraries(void)
{
    int (*look_up)(const char *name, void **out, int version, uint64_t flags, int *out_status);
    void *cuda = dlopen(tnd_test_beside("fake_cuda/libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);
    void *compiler = dlopen(tnd_test_beside("fake_cuda/libnvrtc.so.12"), RTLD_NOW | RTLD_LOCAL);
    if (cuda == NULL || compiler == NULL) {
        return false;
    }
    find(cuda, "cuGetProcAddress_v2", &look_up);
#define FIND(name, arguments) find_driver(look_up, "cu" #name, &tnd_cu.name);
    TND_CU_LIST(FIND)
#undef FIND
    find(cuda, "tnd_fake_begin", &tnd_cu.fake.begin);
    find(cuda, "tnd_fake_report", &tnd_cu.fake.report);
    find(cuda, "tnd_fake_set_memory", &tnd_cu.fake.set_memory);
    find(compiler, "nvrtcCreateProgram", &nvrtc.create);
    find(compiler, "nvrtcCompileProgram", &nvrtc.compile);
    find(compiler, "nvrtcDestroyProgram", &nvrtc.destroy);
    find(compiler, "nvrtcGetProgramLogSize", &nvrtc.log_size);
    find(compiler, "nvrtcGetProgramLog", &nvrtc.log);
    find(compiler, "nvrtcGetCUBINSize", &nvrtc.cubin_size);
    find(compiler, "nvrtcGetCUBIN", &nvrtc.cubin);
    return true;
}

void tnd_test_cu_check(bool is_checked)
{
    setenv("TANDEM_FAKE_CUDA_CHECK", is_checked ? "1" : "0", 1);
}

void tnd_test_cu_begin(void)
{
    static bool was_tried;
    void *context = NULL;
    int device = 0;
    if (!was_tried) {
        was_tried = true;
        is_there =
            sizeof(void *) == 8 && open_libraries() && system("c++ --version >/dev/null 2>&1") == 0;
    }
    if (!is_there) {
        return;
    }
    tnd_test_cu_check(true);
    tnd_cu.fake.begin(NULL);
    tnd_cu.fake.set_memory(64 << 20);
    CU_ASSERT_EQUAL(tnd_cu.Init(0), 0);
    CU_ASSERT_EQUAL(tnd_cu.DeviceGet(&device, 0), 0);
    CU_ASSERT_EQUAL(tnd_cu.DevicePrimaryCtxRetain(&context, device), 0);
    CU_ASSERT_EQUAL(tnd_cu.CtxSetCurrent(context), 0);
}

void tnd_test_cu_end(void)
{
    struct tnd_fake_report report;
    if (!is_there) {
        return;
    }
    tnd_cu.fake.begin(NULL); /* nothing is lost any more */
    tnd_cu.DevicePrimaryCtxRelease(0);
    tnd_cu.fake.report(&report);
    for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
        check_int(report.n_live[kind], 0);
    }
}

bool tnd_test_cu_is_there(void)
{
    if (!is_there) {
        tnd_skip("optional part not built: stand-ins for CUDA, or no c++");
    }
    return is_there;
}

/* ---- programs ---- */

#define KERNELS "backends/opencl/kernels/"
enum { MAX_INCLUDED = 8 };

struct included {
    char names[MAX_INCLUDED][64];
    int n;
};

/* Adds a file with its includes put in, each once, as tools/kernel-pack does. */
static void add_text(struct tnd_text *out, const char *name, struct included *included)
{
    char path[200];
    size_t bytes = 0;
    snprintf(path, sizeof(path), KERNELS "%s", name);
    char *text = tnd_test_read_file(path, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (char *line = text; *line != '\0';) {
        char included_name[64];
        const size_t n = strcspn(line, "\n");
        if (sscanf(line, "#include \"%63[^\"]\"", included_name) == 1) {
            bool is_new = true;
            for (int i = 0; i < included->n; i++) {
                is_new = is_new && strcmp(included->names[i], included_name) != 0;
            }
            if (is_new && included->n < MAX_INCLUDED) {
                snprintf(included->names[included->n++], sizeof(included->names[0]), "%s",
                         included_name);
                add_text(out, included_name, included);
            }
        } else {
            tnd_text_printf(out, "%.*s\n", (int)n, line);
        }
        line += n + (line[n] == '\n');
    }
    free(text);
}

char *tnd_test_cu_text(const char *source)
{
    struct tnd_text text = TND_TEXT_INIT;
    struct included included = {.n = 0};
    add_text(&text, source, &included);
    return tnd_text_take(&text);
}

static char *image_of(void *program)
{
    size_t n = 0;
    CU_ASSERT_EQUAL(nvrtc.cubin_size(program, &n), 0);
    char *image = malloc(n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(image);
    CU_ASSERT_EQUAL(nvrtc.cubin(program, image), 0);
    return image;
}

static void print_log(void *program, const char *source, const char *options)
{
    size_t n = 0;
    char *log = nvrtc.log_size(program, &n) == 0 ? malloc(n) : NULL;
    if (log != NULL && nvrtc.log(program, log) == 0) {
        fprintf(stderr, "%s %s: %.800s\n", source, options, log);
    }
    free(log);
}

void *tnd_test_cu_compile(const char *source, const char *options)
{
    static const char *const names[] = {"dialect", "kernels"};
    char words[400];
    char *text = strchr(source, '\n') != NULL ? tnd_strdup(source) : tnd_test_cu_text(source);
    const char *headers[] = {"", text};
    const char *given[24];
    int n = 0;
    void *program = NULL;
    void *module = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    snprintf(words, sizeof(words), "--gpu-architecture=sm_86 --std=c++17 %s", options);
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest)) != NULL && n < 24;) {
        given[n++] = word;
    }
    CU_ASSERT_EQUAL(nvrtc.create(&program,
                                 "#include \"dialect\"\nextern \"C\" {\n#include \"kernels\"\n}\n",
                                 "main.cu", 2, headers, names),
                    0);
    const int code = nvrtc.compile(program, n, given);
    CU_ASSERT_EQUAL(code, 0);
    if (code == 0) {
        char *image = image_of(program);
        CU_ASSERT_EQUAL(tnd_cu.ModuleLoadData(&module, image), 0);
        free(image);
    } else {
        print_log(program, strchr(source, '\n') != NULL ? "text" : source, options);
    }
    nvrtc.destroy(&program);
    tnd_free(text);
    return module;
}

/* ---- memory and launches ---- */

uint64_t tnd_test_cu_upload(const void *bytes, size_t n)
{
    uint64_t address = 0;
    CU_ASSERT_EQUAL_FATAL(tnd_cu.MemAlloc(&address, n), 0);
    if (bytes != NULL) {
        CU_ASSERT_EQUAL(tnd_cu.MemcpyHtoD(address, bytes, n), 0);
    }
    return address;
}

void tnd_test_cu_download(void *to, uint64_t from, size_t n)
{
    CU_ASSERT_EQUAL(tnd_cu.MemcpyDtoH(to, from, n), 0);
}

int tnd_test_cu_run(void *module, const char *kernel, const unsigned grid[2], unsigned block,
                    unsigned shared_bytes, void **arguments)
{
    void *function = NULL;
    const int found = module != NULL ? tnd_cu.ModuleGetFunction(&function, module, kernel) : 500;
    check_int(found, 0);
    if (found != 0) {
        return found;
    }
    const int code = tnd_cu.LaunchKernel(function, grid[0], grid[1], 1, block, 1, 1, shared_bytes,
                                         NULL, arguments, NULL);
    return code != 0 ? code : tnd_cu.CtxSynchronize();
}

static CU_SuiteInfo suites[] = {
    {"kernels", NULL, NULL, tnd_test_cu_begin, tnd_test_cu_end, tnd_tests_cuda_kernels},
    {"mutants", NULL, NULL, tnd_test_cu_begin, tnd_test_cu_end, tnd_tests_cuda_mutants},
    {"driver", NULL, NULL, tnd_test_cu_begin, tnd_test_cu_end, tnd_tests_cuda_driver},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
