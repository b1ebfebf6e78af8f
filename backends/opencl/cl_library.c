/* SPDX-License-Identifier: MIT
 * Loads libOpenCL and libclblast, and explains their codes. They are never unloaded: drivers start
 * threads and install handlers that do not survive it. */
#include "backends/opencl/cl_library.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dl.h"
#include "base/fork.h"

enum { MAX_LIBRARIES = 8, MAX_PATH = 256 };

static const struct tnd_dl_symbol cl_symbols[] = {
#define CL_SYMBOL(name, required) {"cl" #name, offsetof(struct tnd_cl_functions, name), required},
    TND_CL_FUNCTION_LIST(CL_SYMBOL)
#undef CL_SYMBOL
};
static const char *const cl_names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};

static const struct tnd_dl_symbol clblast_symbols[] = {
    TND_DL_REQUIRED(struct tnd_clblast_functions, sgemm, "CLBlastSgemm"),
    TND_DL_REQUIRED(struct tnd_clblast_functions, hgemm, "CLBlastHgemm"),
    TND_DL_OPTIONAL(struct tnd_clblast_functions, override_parameters, "CLBlastOverrideParameters"),
    TND_DL_OPTIONAL(struct tnd_clblast_functions, clear_cache, "CLBlastClearCache"),
};
static const char *const clblast_names[] = {"libclblast.so.1", "libclblast.so", NULL};

/* Libraries that this process has loaded, by requested path ("": the usual names). */
static struct {
    struct tnd_fork_lock lock; /* guards all members */
    unsigned generation;       /* of the process that loaded the first one (forks) */
    int n_cl;
    int n_clblast;
    char cl_keys[MAX_LIBRARIES][MAX_PATH];
    char clblast_keys[MAX_LIBRARIES][MAX_PATH];
    struct tnd_cl_library cl[MAX_LIBRARIES];
    struct tnd_clblast_functions clblast[MAX_LIBRARIES];
} loaded = {.lock = TND_FORK_LOCK_INIT};

/* Index of `key`, or -1. */
static int find_key(char (*keys)[MAX_PATH], int n, const char *key)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(keys[i], key) == 0) {
            return i;
        }
    }
    return -1;
}

/* Loads a library into the next row. */
static enum tandem_status open_library(const char *what, const char *key, const char *const *usual,
                                       const struct tnd_dl_symbol *symbols, int n_symbols,
                                       void *table, int n, char (*keys)[MAX_PATH],
                                       struct tandem_error *error)
{
    if (n == MAX_LIBRARIES || strlen(key) >= MAX_PATH) {
        return tnd_error_set(error, TANDEM_E_LIMIT, what, n, MAX_LIBRARIES,
                             "%s: more than %d files of it in one process, or a path of more than "
                             "%d bytes",
                             what, MAX_LIBRARIES, MAX_PATH - 1);
    }
    const char *const only[] = {key, NULL};
    void *library = NULL; /* stays open for the life of the process */
    struct tandem_error told = {0};
    enum tandem_status status =
        tnd_dl_open(key[0] != '\0' ? only : usual, symbols, n_symbols, table, &library, &told);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, what, 0, 0, "%s: %.200s", what, told.text);
    }
    snprintf(keys[n], MAX_PATH, "%s", key);
    return TANDEM_OK;
}

/* Refuses a forked child: drivers have threads and connections that a child does not inherit, and
 * some hang when a child lists devices. Called under the lock. */
static enum tandem_status check_process(struct tandem_error *error)
{
    if (loaded.n_cl == 0) {
        loaded.generation = tnd_fork_generation();
    }
    if (loaded.generation != tnd_fork_generation()) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", 0, 0,
                             "opencl: it was in use before this process forked, and drivers do not "
                             "work in the child");
    }
    return TANDEM_OK;
}

/* Refuses systems that hide the machine from drivers (a chroot without /sys): some drivers, such as
 * PoCL 3.1, end the process when devices are listed there. */
static enum tandem_status check_system(struct tandem_error *error)
{
#if defined(__linux__)
    if (access("/sys/devices/system/cpu", F_OK) != 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", 0, 0,
                             "opencl: /sys is not mounted, without which drivers may fail badly");
    }
#endif
    (void)error;
    return TANDEM_OK;
}

enum tandem_status tnd_cl_library_get(const char *path, const struct tnd_cl_library **out_library,
                                      struct tandem_error *error)
{
    const char *key = path != NULL ? path : "";
    tnd_fork_lock_take(&loaded.lock);
    enum tandem_status status = check_process(error);
    int row = find_key(loaded.cl_keys, loaded.n_cl, key);
    if (status == TANDEM_OK && row < 0) {
        row = loaded.n_cl;
        struct tnd_cl_library library = {0};
        status = open_library("OpenCL", key, cl_names, cl_symbols,
                              (int)(sizeof(cl_symbols) / sizeof(cl_symbols[0])), &library.cl, row,
                              loaded.cl_keys, error);
        if (status == TANDEM_OK) {
            const char *file = tnd_dl_path((void (*)(void))library.cl.GetPlatformIDs);
            snprintf(library.path, sizeof(library.path), "%s", file != NULL ? file : key);
            loaded.cl[row] = library;
            loaded.n_cl++;
        }
    }
    tnd_fork_lock_give(&loaded.lock);
    if (status == TANDEM_OK) { /* loading does not list devices yet */
        status = check_system(error);
    }
    if (status == TANDEM_OK) {
        *out_library = &loaded.cl[row];
    }
    return status;
}

enum tandem_status tnd_clblast_get(const char *path,
                                   const struct tnd_clblast_functions **out_functions,
                                   struct tandem_error *error)
{
    const char *key = path != NULL ? path : "";
    enum tandem_status status = TANDEM_OK;
    tnd_fork_lock_take(&loaded.lock);
    int row = find_key(loaded.clblast_keys, loaded.n_clblast, key);
    if (row < 0) {
        row = loaded.n_clblast;
        status = open_library("CLBlast", key, clblast_names, clblast_symbols,
                              (int)(sizeof(clblast_symbols) / sizeof(clblast_symbols[0])),
                              row < MAX_LIBRARIES ? &loaded.clblast[row] : NULL, row,
                              loaded.clblast_keys, error);
        loaded.n_clblast += status == TANDEM_OK;
    }
    tnd_fork_lock_give(&loaded.lock);
    if (status == TANDEM_OK) {
        *out_functions = &loaded.clblast[row];
    }
    return status;
}

/* ---- codes ---- */

/* Values of CL/cl.h and of enum CLBlastStatusCode_ (clblast_c.h) that our calls can return. */
#define CODE_LIST(X)                                                                               \
    X(CL_SUCCESS, 0)                                                                               \
    X(CL_DEVICE_NOT_FOUND, -1)                                                                     \
    X(CL_DEVICE_NOT_AVAILABLE, -2)                                                                 \
    X(CL_COMPILER_NOT_AVAILABLE, -3)                                                               \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                        \
    X(CL_OUT_OF_RESOURCES, -5)                                                                     \
    X(CL_OUT_OF_HOST_MEMORY, -6)                                                                   \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, -7)                                                         \
    X(CL_MEM_COPY_OVERLAP, -8)                                                                     \
    X(CL_BUILD_PROGRAM_FAILURE, -11)                                                               \
    X(CL_MAP_FAILURE, -12)                                                                         \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET, -13)                                                        \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                                           \
    X(CL_INVALID_VALUE, -30)                                                                       \
    X(CL_INVALID_DEVICE_TYPE, -31)                                                                 \
    X(CL_INVALID_PLATFORM, -32)                                                                    \
    X(CL_INVALID_DEVICE, -33)                                                                      \
    X(CL_INVALID_CONTEXT, -34)                                                                     \
    X(CL_INVALID_QUEUE_PROPERTIES, -35)                                                            \
    X(CL_INVALID_COMMAND_QUEUE, -36)                                                               \
    X(CL_INVALID_HOST_PTR, -37)                                                                    \
    X(CL_INVALID_MEM_OBJECT, -38)                                                                  \
    X(CL_INVALID_BINARY, -42)                                                                      \
    X(CL_INVALID_BUILD_OPTIONS, -43)                                                               \
    X(CL_INVALID_PROGRAM, -44)                                                                     \
    X(CL_INVALID_PROGRAM_EXECUTABLE, -45)                                                          \
    X(CL_INVALID_KERNEL_NAME, -46)                                                                 \
    X(CL_INVALID_KERNEL_DEFINITION, -47)                                                           \
    X(CL_INVALID_KERNEL, -48)                                                                      \
    X(CL_INVALID_ARG_INDEX, -49)                                                                   \
    X(CL_INVALID_ARG_VALUE, -50)                                                                   \
    X(CL_INVALID_ARG_SIZE, -51)                                                                    \
    X(CL_INVALID_KERNEL_ARGS, -52)                                                                 \
    X(CL_INVALID_WORK_DIMENSION, -53)                                                              \
    X(CL_INVALID_WORK_GROUP_SIZE, -54)                                                             \
    X(CL_INVALID_WORK_ITEM_SIZE, -55)                                                              \
    X(CL_INVALID_GLOBAL_OFFSET, -56)                                                               \
    X(CL_INVALID_EVENT_WAIT_LIST, -57)                                                             \
    X(CL_INVALID_EVENT, -58)                                                                       \
    X(CL_INVALID_OPERATION, -59)                                                                   \
    X(CL_INVALID_BUFFER_SIZE, -61)                                                                 \
    X(CL_INVALID_GLOBAL_WORK_SIZE, -63)                                                            \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001)                                                            \
    X(CLBLAST_NOT_IMPLEMENTED, -1024)                                                              \
    X(CLBLAST_INVALID_MATRIX_A, -1022)                                                             \
    X(CLBLAST_INVALID_MATRIX_B, -1021)                                                             \
    X(CLBLAST_INVALID_MATRIX_C, -1020)                                                             \
    X(CLBLAST_INVALID_DIMENSION, -1017)                                                            \
    X(CLBLAST_INVALID_LEADING_DIMENSION_A, -1016)                                                  \
    X(CLBLAST_INVALID_LEADING_DIMENSION_B, -1015)                                                  \
    X(CLBLAST_INVALID_LEADING_DIMENSION_C, -1014)                                                  \
    X(CLBLAST_INSUFFICIENT_MEMORY_A, -1011)                                                        \
    X(CLBLAST_INSUFFICIENT_MEMORY_B, -1010)                                                        \
    X(CLBLAST_INSUFFICIENT_MEMORY_C, -1009)                                                        \
    X(CLBLAST_INSUFFICIENT_MEMORY_TEMP, -2050)                                                     \
    X(CLBLAST_INVALID_OVERRIDE_KERNEL, -2048)                                                      \
    X(CLBLAST_MISSING_OVERRIDE_PARAMETER, -2047)                                                   \
    X(CLBLAST_INVALID_LOCAL_MEMORY_USAGE, -2046)                                                   \
    X(CLBLAST_NO_HALF_PRECISION, -2045)                                                            \
    X(CLBLAST_NO_DOUBLE_PRECISION, -2044)                                                          \
    X(CLBLAST_DATABASE_ERROR, -2041)                                                               \
    X(CLBLAST_UNKNOWN_ERROR, -2040)                                                                \
    X(CLBLAST_UNEXPECTED_ERROR, -2039)                                                             \
    X(NVIDIA_ILLEGAL_READ_OR_WRITE, -9999)

const char *tnd_cl_code_name(cl_int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
#define CODE_ROW(name, code) {code, #name},
        CODE_LIST(CODE_ROW)
#undef CODE_ROW
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == code) {
            return names[i].name;
        }
    }
    return "an unknown code";
}

static enum tandem_status status_of_code(cl_int code)
{
    switch (code) {
    case CL_SUCCESS:
        return TANDEM_OK;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case -9999: /* NVIDIA: a kernel read or wrote where it must not; the context is dead */
        return TANDEM_E_DEVICE_LOST;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return TANDEM_E_DEVICE_MEMORY;
    default:
        return TANDEM_E_DEVICE;
    }
}

enum tandem_status tnd_cl_code_check(const char *device, const char *call, cl_int code,
                                     struct tandem_error *error)
{
    if (code == CL_SUCCESS) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, status_of_code(code), device, code, 0,
                         "opencl device '%s': %s failed with %s (%d)", device, call,
                         tnd_cl_code_name(code), (int)code);
}
