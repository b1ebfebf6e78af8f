/* SPDX-License-Identifier: MIT
 * A library that stands in for libnvrtc: "compiles" a program with the C++ compiler of this machine
 * into a shared object for the CPU, with dialect_host.clh in the place of the header "dialect". The
 * text goes through the preprocessor first, which tells what kernels it has. Results are kept under
 * TND_FAKE_CACHE by what went into them, because a suite asks for the same programs each time. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/fake_cuda/fake_item.h"

#define EXPORT __attribute__((visibility("default")))

enum result {
    SUCCESS = 0,
    OUT_OF_MEMORY = 1,
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    COMPILATION = 6
};
enum { MAX_HEADERS = 8, MAX_OPTIONS = 64 };

struct program {
    char *texts[MAX_HEADERS + 1]; /* the headers' and, last, its own */
    char *names[MAX_HEADERS + 1];
    int n_texts;
    char *log;
    char *image; /* what a cubin is here: struct tnd_fake_image and a shared object */
    size_t image_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards fail_at and n_calls */
static long n_calls;

/* TANDEM_FAKE_NVRTC_FAIL=N: compilation N fails. */
static bool fails_on_purpose(void)
{
    const char *text = getenv("TANDEM_FAKE_NVRTC_FAIL");
    pthread_mutex_lock(&lock);
    const long call = ++n_calls;
    pthread_mutex_unlock(&lock);
    return text != NULL && atol(text) == call;
}

/* ---- files ---- */

static char *read_all(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t n = 0;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        const long end = ftell(file);
        bytes = end >= 0 ? malloc((size_t)end + 1) : NULL;
        rewind(file);
        n = bytes != NULL ? fread(bytes, 1, (size_t)end, file) : 0;
        if (bytes != NULL) {
            bytes[n] = '\0';
        }
    }
    fclose(file);
    *out_bytes = n;
    return bytes;
}

static bool write_all(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    const bool good = file != NULL && fwrite(bytes, 1, n, file) == n;
    return (file == NULL || fclose(file) == 0) && good;
}

static char *joined(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        abort();
    }
    va_end(args);
    return text;
}

/* ---- the compiler ---- */

/* Runs it with its words in `folder`/log. */
static bool compile(const char *folder, char *const *words)
{
    extern char **environ;
    char *log = joined("%s/log", folder);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    int status = -1;
    if (posix_spawnp(&child, words[0], &actions, NULL, words, environ) == 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    free(log);
    return status == 0;
}

/* The names behind `TND_FAKE_KERNEL`, attributes and `void`, as an array of entries. */
static char *entries_of(const char *text)
{
    char *entries =
        strdup("extern \"C\" __attribute__((visibility(\"default\"))) const struct tnd_fake_kernel "
               "tnd_fake_kernels[] = {\n");
    for (const char *at = text; (at = strstr(at, "TND_FAKE_KERNEL")) != NULL;) {
        at += strlen("TND_FAKE_KERNEL");
        const char *name = strstr(at, "void");
        if (name == NULL) {
            break;
        }
        name += strlen("void");
        name += strspn(name, " \t\r\n");
        while (*name == '#') { /* the preprocessor's line numbers */
            name += strcspn(name, "\n");
            name += strspn(name, " \t\r\n");
        }
        int n = 0;
        while (isalnum((unsigned char)name[n]) || name[n] == '_') {
            n++;
        }
        char *more = joined("%s    TND_FAKE_ENTRY(%.*s),\n", entries, n, name);
        free(entries);
        entries = more;
    }
    char *all = joined("%s    {0, 0, 0, 0},\n};\n", entries);
    free(entries);
    return all;
}

/* TANDEM_FAKE_CUDA_CHECK=1: each access of a kernel is checked. */
static bool is_checked(void)
{
    const char *text = getenv("TANDEM_FAKE_CUDA_CHECK");
    return text != NULL && strcmp(text, "0") != 0;
}

static const char *compiler(void)
{
    const char *given = getenv("TANDEM_FAKE_CXX");
    return given != NULL ? given : TND_FAKE_CXX;
}

/* `folder`/main.cc to `folder`/program.so; false with the complaint in `folder`/log. */
static bool build(const char *folder, int n_options, const char *const *options)
{
    char *words[MAX_OPTIONS + 24];
    int n = 0;
    char *from = joined("%s/main.cc", folder);
    char *flat = joined("%s/flat.cc", folder);
    char *second = joined("%s/second.cc", folder);
    char *object = joined("%s/program.o", folder);
    char *program = joined("%s/program.so", folder);
    char *here = joined("-I%s", folder);
    words[n++] = (char *)compiler();
    words[n++] = "-E";
    words[n++] = "-std=c++17";
    words[n++] = here;
    words[n++] = "-I" TND_FAKE_SOURCES;
    for (int i = 0; i < n_options; i++) {
        if (strncmp(options[i], "-D", 2) == 0) {
            words[n++] = (char *)options[i];
        }
    }
    if (is_checked()) {
        words[n++] = "-DTND_FAKE_CHECK=1";
    }
    words[n++] = "-o";
    words[n++] = flat;
    words[n++] = from;
    words[n] = NULL;
    bool good = compile(folder, words);
    size_t bytes = 0;
    char *text = good ? read_all(flat, &bytes) : NULL;
    if (text != NULL) {
        char *entries = entries_of(text);
        char *all = joined(
            "%s\n#define TND_FAKE_ENTRY(name) {#name, [](void **arguments) { "
            "tnd_fake_call(name, arguments, tnd_fake_of(name)); }, "
            "decltype(tnd_fake_sizes_of(name))::n, decltype(tnd_fake_sizes_of(name))::bytes}\n%s",
            text, entries);
        good = write_all(second, all, strlen(all));
        free(entries);
        free(all);
    }
    /* The library of the sanitizer is not linked. */
    char *second_words[] = {(char *)compiler(),
                            "-c",
                            "-std=c++17",
                            "-O1",
                            "-g1",
                            "-fPIC",
                            "-w",
                            "-ffp-contract=off",
                            "-fno-strict-aliasing",
                            "-fsigned-char",
                            "-fno-gnu-unique",
                            "-fno-threadsafe-statics",
                            "-fvisibility=hidden",
                            "-DTND_FAKE_KERNEL=",
                            is_checked() ? "-fsanitize=thread" : "-fno-sanitize=all",
                            "-o",
                            object,
                            second,
                            NULL};
    char *link_words[] = {(char *)compiler(), "-shared", "-o", program, object, NULL};
    good = good && text != NULL && compile(folder, second_words) && compile(folder, link_words);
    free(program);
    free(text);
    free(from);
    free(flat);
    free(second);
    free(object);
    free(here);
    return good;
}

static void remove_folder(const char *folder)
{
    static const char *const files[] = {"main.cc",   "flat.cc",    "second.cc",
                                        "program.o", "program.so", "log"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = joined("%s/%s", folder, files[i]);
        unlink(path);
        free(path);
    }
}

static char *cached_path(const struct program *program, int n_options, const char *const *options)
{
    uint64_t hash = tnd_hash_string(compiler(), TND_FAKE_DIALECT_HASH + is_checked());
    for (int i = 0; i < program->n_texts; i++) {
        if (strcmp(program->names[i], "dialect") != 0) {
            hash = tnd_hash_string(program->texts[i], hash);
        }
    }
    for (int i = 0; i < n_options; i++) { /* (others change nothing here) */
        hash = strncmp(options[i], "-D", 2) == 0 ? tnd_hash_string(options[i], hash) : hash;
    }
    const char *shared = getenv("TANDEM_FAKE_CUDA_PROGRAMS");
    const char *folder = shared != NULL && shared[0] != '\0' ? shared : TND_FAKE_CACHE;
    mkdir(folder, 0700);
    return joined("%s/%016llx.so", folder, (unsigned long long)hash);
}

static enum result set_image(struct program *program, const char *object, size_t bytes)
{
    struct tnd_fake_image head = {.magic = TND_FAKE_MAGIC, .bytes = bytes};
    head.hash = tnd_hash_bytes(object, bytes, 0);
    program->image_bytes = sizeof(head) + bytes;
    program->image = malloc(program->image_bytes);
    if (program->image == NULL) {
        return OUT_OF_MEMORY;
    }
    memcpy(program->image, &head, sizeof(head));
    memcpy(program->image + sizeof(head), object, bytes);
    return SUCCESS;
}

/* Writes headers and program to a folder and compiles there. */
static enum result make(struct program *program, int n_options, const char *const *options)
{
    char *cached = cached_path(program, n_options, options);
    size_t bytes = 0;
    char *object = read_all(cached, &bytes);
    enum result result = SUCCESS;
    if (object == NULL) {
        char folder[] = "/tmp/tandem-fake-XXXXXX";
        bool good = mkdtemp(folder) != NULL;
        for (int i = 0; good && i < program->n_texts; i++) {
            const bool is_main = i == program->n_texts - 1;
            const bool is_dialect = strcmp(program->names[i], "dialect") == 0;
            const char *text =
                is_dialect ? "#include \"tests/fake_cuda/dialect_host.clh\"\n" : program->texts[i];
            char *path = joined("%s/%s", folder, is_main ? "main.cc" : program->names[i]);
            good = write_all(path, text, strlen(text));
            free(path);
        }
        good = good && build(folder, n_options, options);
        char *path = joined("%s/log", folder);
        free(program->log);
        program->log = read_all(path, &bytes);
        free(path);
        path = joined("%s/program.so", folder);
        object = good ? read_all(path, &bytes) : NULL;
        free(path);
        if (object != NULL) { /* under its name at once: others may compile the same */
            char *fresh = joined("%s.%ld", cached, (long)getpid());
            if (!write_all(fresh, object, bytes) || rename(fresh, cached) != 0) {
                unlink(fresh);
            }
            free(fresh);
        }
        for (int i = 0; i < program->n_texts - 1; i++) {
            path = joined("%s/%s", folder, program->names[i]);
            unlink(path);
            free(path);
        }
        remove_folder(folder);
        rmdir(folder);
    }
    result = object != NULL ? set_image(program, object, bytes) : COMPILATION;
    free(object);
    free(cached);
    return result;
}

/* ---- the entry points ---- */

EXPORT int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 9;
    return SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(int result)
{
    static const char *const names[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "NVRTC_ERROR_INVALID_INPUT",
                                        "NVRTC_ERROR_INVALID_PROGRAM",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION"};
    return result >= 0 && result < (int)(sizeof(names) / sizeof(names[0])) ? names[result]
                                                                           : "NVRTC_ERROR unknown";
}

/* Of one GPU where TANDEM_FAKE_NVRTC_ONLY names it, else of all from 5.0 to 12.1. */
EXPORT int nvrtcGetNumSupportedArchs(int *n)
{
    *n = getenv("TANDEM_FAKE_NVRTC_ONLY") != NULL ? 1 : 72;
    return SUCCESS;
}

EXPORT int nvrtcGetSupportedArchs(int *archs)
{
    const char *only = getenv("TANDEM_FAKE_NVRTC_ONLY");
    for (int i = 0; i < (only != NULL ? 1 : 72); i++) {
        archs[i] = only != NULL ? atoi(only) : 50 + i;
    }
    return SUCCESS;
}

EXPORT int nvrtcCreateProgram(struct program **out, const char *text, const char *name,
                              int n_headers, const char *const *headers, const char *const *names)
{
    (void)name;
    if (out == NULL || text == NULL || n_headers < 0 || n_headers > MAX_HEADERS) {
        return INVALID_INPUT;
    }
    struct program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return OUT_OF_MEMORY;
    }
    for (int i = 0; i < n_headers; i++) {
        program->texts[i] = strdup(headers[i]);
        program->names[i] = strdup(names[i]);
    }
    program->texts[n_headers] = strdup(text);
    program->names[n_headers] = strdup("");
    program->n_texts = n_headers + 1;
    program->log = strdup("");
    *out = program;
    return SUCCESS;
}

EXPORT int nvrtcDestroyProgram(struct program **program)
{
    if (program == NULL || *program == NULL) {
        return INVALID_PROGRAM;
    }
    for (int i = 0; i < (*program)->n_texts; i++) {
        free((*program)->texts[i]);
        free((*program)->names[i]);
    }
    free((*program)->log);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return SUCCESS;
}

EXPORT int nvrtcCompileProgram(struct program *program, int n_options, const char *const *options)
{
    if (program == NULL || n_options < 0 || n_options > MAX_OPTIONS) {
        return program == NULL ? INVALID_PROGRAM : INVALID_INPUT;
    }
    if (fails_on_purpose()) {
        free(program->log);
        program->log = strdup("main.cu(1): error: told to fail\n");
        return COMPILATION;
    }
    return (int)make(program, n_options, options);
}

static int give_size(const struct program *program, const char *bytes, size_t n, size_t *out)
{
    if (program == NULL || out == NULL) {
        return INVALID_INPUT;
    }
    if (bytes == NULL) {
        return INVALID_PROGRAM;
    }
    *out = n;
    return SUCCESS;
}

EXPORT int nvrtcGetProgramLogSize(const struct program *program, size_t *out)
{
    const char *log = program != NULL ? program->log : NULL;
    return give_size(program, log, log != NULL ? strlen(log) + 1 : 0, out);
}

EXPORT int nvrtcGetProgramLog(const struct program *program, char *out)
{
    if (program == NULL || program->log == NULL) {
        return INVALID_PROGRAM;
    }
    memcpy(out, program->log, strlen(program->log) + 1);
    return SUCCESS;
}

EXPORT int nvrtcGetCUBINSize(const struct program *program, size_t *out)
{
    return give_size(program, program != NULL ? program->image : NULL,
                     program != NULL ? program->image_bytes : 0, out);
}

EXPORT int nvrtcGetCUBIN(const struct program *program, char *out)
{
    if (program == NULL || program->image == NULL) {
        return INVALID_PROGRAM;
    }
    memcpy(out, program->image, program->image_bytes);
    return SUCCESS;
}

/* (what a driver loads as PTX is the same here) */
EXPORT int nvrtcGetPTXSize(const struct program *program, size_t *out)
{
    return nvrtcGetCUBINSize(program, out);
}

EXPORT int nvrtcGetPTX(const struct program *program, char *out)
{
    return nvrtcGetCUBIN(program, out);
}
