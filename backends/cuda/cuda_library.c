/* SPDX-License-Identifier: MIT
 * Loading libcuda and NVRTC, and telling what libcuda's codes mean. Neither is unloaded again: the
 * driver has threads of its own. */
#include "backends/cuda/cuda_library.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"
#include "base/fork.h"

enum { MAX_LIBRARIES = 4, MAX_PATH = 256, OLDEST_VERSION = 11020 };

#define CU_SYMBOL(name, symbol, arguments)   TND_DL_REQUIRED(struct tnd_cu_functions, name, symbol),
#define CU_OPTIONAL(name, symbol, arguments) TND_DL_OPTIONAL(struct tnd_cu_functions, name, symbol),
static const struct tnd_dl_symbol cu_symbols[] = {TND_CU_FUNCTION_LIST(CU_SYMBOL)
                                                      TND_CU_GRAPH_LIST(CU_OPTIONAL)};
#undef CU_SYMBOL
#undef CU_OPTIONAL
#define NVRTC_SYMBOL(name, symbol, arguments)                                                      \
    TND_DL_REQUIRED(struct tnd_nvrtc_functions, name, symbol),
static const struct tnd_dl_symbol nvrtc_symbols[] = {TND_NVRTC_FUNCTION_LIST(NVRTC_SYMBOL)};
#undef NVRTC_SYMBOL

/* The wheels nvidia-cuda-nvrtc of the Python index, and the toolkit. */
static const char *const nvrtc_names[] = {
    "libnvrtc.so.12", /* (13 leaves out what is older than 7.5) */
    "libnvrtc.so.13", "libnvrtc.so.11.2", "libnvrtc.so"};
static const struct {
    const char *variable, *folder; /* below the variable's value; "": the root */
} nvrtc_folders[] = {{"VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/*/lib"},
                     {"CONDA_PREFIX", "lib"},
                     {"HOME", ".local/lib/python3*/site-packages/nvidia/*/lib"},
                     {"", "usr/local/cuda/lib64"},
                     {"", "usr/local/lib/python3*/*-packages/nvidia/*/lib"},
                     {"", "usr/lib/python3*/*-packages/nvidia/*/lib"}};

/* What this process has loaded, by the path that was asked for ("": the usual names). */
static struct {
    struct tnd_fork_lock lock; /* guards all members */
    unsigned generation;       /* of the process that loaded the first one */
    int n;
    char keys[MAX_LIBRARIES][MAX_PATH];
    struct tnd_cuda_library libraries[MAX_LIBRARIES];
} loaded = {.lock = TND_FORK_LOCK_INIT};

/* ---- NVRTC ---- */

/* A driver may refuse binaries of a newer major version than its own. */
static bool try_compiler(const char *file, struct tnd_cuda_library *out)
{
    const char *const names[] = {file, NULL};
    void *library = NULL; /* stays open for the life of the process */
    int major = 0;
    int minor = 0;
    if (tnd_dl_open(names, nvrtc_symbols, (int)(sizeof(nvrtc_symbols) / sizeof(nvrtc_symbols[0])),
                    &out->nvrtc, &library, NULL) != TANDEM_OK ||
        out->nvrtc.Version(&major, &minor) != 0) {
        return false;
    }
    out->has_compiler = major <= out->version / 1000;
    out->nvrtc_version = 1000 * major + 10 * minor;
    return out->has_compiler;
}

/* Any of the names in folders of a pattern; NULL: where the system looks. */
static bool try_folder(const char *folder, struct tnd_cuda_library *out)
{
    char pattern[2 * MAX_PATH];
    glob_t found;
    for (size_t k = 0; k < sizeof(nvrtc_names) / sizeof(nvrtc_names[0]); k++) {
        if (folder == NULL) {
            (void)try_compiler(nvrtc_names[k], out);
        } else if ((size_t)snprintf(pattern, sizeof(pattern), "%s/%s", folder, nvrtc_names[k]) <
                       sizeof(pattern) &&
                   glob(pattern, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc && !out->has_compiler; i++) {
                (void)try_compiler(found.gl_pathv[i], out);
            }
            globfree(&found);
        }
        if (out->has_compiler) {
            return true;
        }
    }
    return false;
}

/* `path`: of libcuda, as it was asked for. */
static void find_compiler(const char *path, struct tnd_cuda_library *out)
{
    char folder[2 * MAX_PATH];
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    }
    if ((slash != NULL && try_folder(folder, out)) || try_folder(NULL, out)) {
        return;
    }
    for (size_t i = 0; i < sizeof(nvrtc_folders) / sizeof(nvrtc_folders[0]); i++) {
        const char *variable = nvrtc_folders[i].variable;
        const char *root = variable[0] != '\0' ? secure_getenv(variable) : "/";
        if (root != NULL && root[0] == '/' && strlen(root) < MAX_PATH) {
            snprintf(folder, sizeof(folder), "%s/%s", root, nvrtc_folders[i].folder);
            if (try_folder(folder, out)) {
                return;
            }
        }
    }
    if (out->nvrtc_version > 0) {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason),
                 "no compiler of kernels: NVRTC %d.%d is newer than the driver, which is for CUDA "
                 "%d.%d (pip has nvidia-cuda-nvrtc-cu%d)",
                 out->nvrtc_version / 1000, out->nvrtc_version % 1000 / 10, out->version / 1000,
                 out->version % 1000 / 10, out->version / 1000);
        return;
    }
    snprintf(out->compiler_reason, sizeof(out->compiler_reason),
             "no compiler of kernels: libnvrtc.so.12 or .13 was not found (package "
             "nvidia-cuda-nvrtc of pip, or the CUDA toolkit)");
}

/* ---- libcuda ---- */

static enum tandem_status refuse(struct tandem_error *error, int got, int expected,
                                 const char *text)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "cuda", got, expected, "cuda: %s",
                         text);
}

static const char *name_of(const struct tnd_cuda_library *library, int code)
{
    const char *name = NULL;
    return library->cu.GetErrorName(code, &name) == TND_CU_SUCCESS && name != NULL
               ? name
               : "an unknown code";
}

/* What the driver's reference says of codes of cuInit that somebody can do something about. */
static const char *hint_for(int code)
{
    switch (code) {
    case 802:
        return "; the fabric manager of these GPUs does not run (yet)";
    case 803:
        return "; libcuda and the kernel's module are of different versions: reboot";
    case 804:
        return "; this libcuda is for forward compatibility, which the GPU does not take";
    case 999:
        return "; the kernel's module is not loaded, or /dev/nvidia* may not be opened";
    default:
        return "";
    }
}

static enum tandem_status start(struct tnd_cuda_library *library, struct tandem_error *error)
{
    char text[240];
    int code = library->cu.DriverGetVersion(&library->version);
    if (code == TND_CU_SUCCESS && library->version < OLDEST_VERSION) {
        snprintf(text, sizeof(text), "the driver is for CUDA %d.%d, 11.2 or newer is needed",
                 library->version / 1000, library->version % 1000 / 10);
        return refuse(error, library->version, OLDEST_VERSION, text);
    }
    code = code == TND_CU_SUCCESS ? library->cu.Init(0) : code;
    if (code == TND_CU_SUCCESS) {
        return TANDEM_OK;
    }
    const char *visible = code == TND_CU_NO_DEVICE ? secure_getenv("CUDA_VISIBLE_DEVICES") : NULL;
    snprintf(text, sizeof(text), "%.80s finds no device (cuInit: %.48s)%.90s%s%.40s%s",
             library->path, name_of(library, code), hint_for(code),
             visible != NULL ? "; CUDA_VISIBLE_DEVICES is '" : "", visible != NULL ? visible : "",
             visible != NULL ? "'" : "");
    return refuse(error, code, 0, text);
}

/* Into the next row. Under the lock. */
static enum tandem_status load(const char *key, struct tandem_error *error)
{
    static const char *const usual[] = {"libcuda.so.1", NULL};
    const char *const only[] = {key, NULL};
    struct tnd_cuda_library *library = &loaded.libraries[loaded.n];
    struct tandem_error told = {0};
    void *handle = NULL; /* stays open for the life of the process */
    if (loaded.n == MAX_LIBRARIES || strlen(key) >= MAX_PATH) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "cuda", loaded.n, MAX_LIBRARIES,
                             "cuda: more than %d files of libcuda in one process, or a path of "
                             "more than %d bytes",
                             MAX_LIBRARIES, MAX_PATH - 1);
    }
    memset(library, 0, sizeof(*library));
    const enum tandem_status status = tnd_dl_open(key[0] != '\0' ? only : usual, cu_symbols,
                                                  (int)(sizeof(cu_symbols) / sizeof(cu_symbols[0])),
                                                  &library->cu, &handle, &told);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, "cuda", 0, 0, "cuda: %.200s", told.text);
    }
    const char *file = tnd_dl_path((void (*)(void))library->cu.Init);
    snprintf(library->path, sizeof(library->path), "%s", file != NULL ? file : key);
    TND_TRY(start(library, error));
    find_compiler(key, library);
    snprintf(loaded.keys[loaded.n], MAX_PATH, "%s", key);
    loaded.n++;
    return TANDEM_OK;
}

enum tandem_status tnd_cuda_library_get(const char *path,
                                        const struct tnd_cuda_library **out_library,
                                        struct tandem_error *error)
{
    const char *key = path != NULL ? path : "";
    enum tandem_status status = TANDEM_OK;
    int row = 0;
    tnd_fork_lock_take(&loaded.lock);
    if (loaded.n == 0) {
        loaded.generation = tnd_fork_generation();
    }
    while (row < loaded.n && strcmp(loaded.keys[row], key) != 0) {
        row++;
    }
    if (loaded.generation != tnd_fork_generation()) {
        status = refuse(error, 0, 0,
                        "it was in use before this process forked, and the driver does not work "
                        "in the child");
    } else if (row == loaded.n) {
        status = load(key, error);
    }
    tnd_fork_lock_give(&loaded.lock);
    if (status == TANDEM_OK) {
        *out_library = &loaded.libraries[row];
    }
    return status;
}

/* ---- codes ---- */

/* The driver's reference says of these that the context is of no more use. */
static bool is_lost(int code)
{
    static const int codes[] = {4 /* deinitialised */,     46 /* device unavailable */,
                                201 /* invalid context */, 214 /* ECC */,
                                220 /* NVLink */,          709 /* context destroyed */,
                                700 /* illegal address */, 702 /* launch timeout */,
                                710 /* assert */,          714 /* stack */,
                                715 /* instruction */,     716 /* misaligned */,
                                717 /* address space */,   718 /* program counter */,
                                719 /* launch failed */,   999 /* unknown */};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i] == code) {
            return true;
        }
    }
    return false;
}

enum tandem_status tnd_cuda_check(const struct tnd_cuda_library *library, const char *device,
                                  const char *call, int code, struct tandem_error *error)
{
    if (code == TND_CU_SUCCESS) {
        return TANDEM_OK;
    }
    const enum tandem_status status = code == TND_CU_OUT_OF_MEMORY ? TANDEM_E_DEVICE_MEMORY
                                      : is_lost(code)              ? TANDEM_E_DEVICE_LOST
                                                                   : TANDEM_E_DEVICE;
    return tnd_error_set(error, status, device, code, 0, "cuda device '%s': %s failed with %s (%d)",
                         device, call, name_of(library, code), code);
}
