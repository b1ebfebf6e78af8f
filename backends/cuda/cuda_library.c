/* SPDX-License-Identifier: MIT
 * Loads libcuda, NVRTC and cuBLAS, and explains libcuda's codes. They are never unloaded: the
 * driver has threads of its own. */
#include "backends/cuda/cuda_library.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"
#include "base/fork.h"

enum { MAX_LIBRARIES = 16, MAX_PATH = 256, OLDEST_VERSION = 11020, OLDEST_CUBLAS = 11000 };

#define CU_SYMBOL(name, symbol, arguments)   TND_DL_REQUIRED(struct tnd_cu_functions, name, symbol),
#define CU_OPTIONAL(name, symbol, arguments) TND_DL_OPTIONAL(struct tnd_cu_functions, name, symbol),
static const struct tnd_dl_symbol cu_symbols[] = {TND_CU_FUNCTION_LIST(CU_SYMBOL)
                                                      TND_CU_GRAPH_LIST(CU_OPTIONAL)};
#undef CU_SYMBOL
#undef CU_OPTIONAL
#define NVRTC_SYMBOL(name, symbol, arguments)                                                      \
    TND_DL_REQUIRED(struct tnd_nvrtc_functions, name, symbol),
#define NVRTC_OPTIONAL(name, symbol, arguments)                                                    \
    TND_DL_OPTIONAL(struct tnd_nvrtc_functions, name, symbol),
static const struct tnd_dl_symbol nvrtc_symbols[] = {TND_NVRTC_FUNCTION_LIST(NVRTC_SYMBOL)
                                                         TND_NVRTC_KNOWN_LIST(NVRTC_OPTIONAL)};
#undef NVRTC_SYMBOL
#undef NVRTC_OPTIONAL
#define CUBLAS_SYMBOL(name, symbol, arguments)                                                     \
    TND_DL_REQUIRED(struct tnd_cublas_functions, name, symbol),
static const struct tnd_dl_symbol cublas_symbols[] = {TND_CUBLAS_FUNCTION_LIST(CUBLAS_SYMBOL)};
#undef CUBLAS_SYMBOL
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* From the Python packages nvidia-cuda-nvrtc and nvidia-cublas, and from the toolkit. */
static const char *const nvrtc_names[] = {
    "libnvrtc.so.12", /* (13 does not support devices below 7.5) */
    "libnvrtc.so.13", "libnvrtc.so.11.2", "libnvrtc.so", NULL};
static const char *const cublas_names[] = {"libcublas.so.12", "libcublas.so.13", "libcublas.so.11",
                                           "libcublas.so", NULL};
static const struct {
    const char *variable, *folder; /* relative to the variable's value; "": the root */
} folders[] = {{"VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/*/lib"},
               {"CONDA_PREFIX", "lib"},
               {"HOME", ".local/lib/python3*/site-packages/nvidia/*/lib"},
               {"", "usr/local/cuda/lib64"},
               {"", "usr/local/lib/python3*/*-packages/nvidia/*/lib"},
               {"", "usr/lib/python3*/*-packages/nvidia/*/lib"}};

/* Libraries that this process has loaded, by requested path ("": the usual names). */
static struct {
    struct tnd_fork_lock lock; /* guards all members */
    unsigned generation;       /* of the process that loaded the first one (forks) */
    int n;
    char keys[MAX_LIBRARIES][2][MAX_PATH]; /* libcuda, cuBLAS */
    struct tnd_cuda_library libraries[MAX_LIBRARIES];
} loaded = {.lock = TND_FORK_LOCK_INIT};

/* ---- libraries besides libcuda ---- */

typedef bool try_file(const char *file, struct tnd_cuda_library *out);

/* A version in the format of libcuda's own; 0 if it is invalid. */
static int version_of(int major, int minor)
{
    return major > 0 && major < 1000 && minor >= 0 && minor < 100 ? 1000 * major + 10 * minor : 0;
}

static bool is_newer(int version, const struct tnd_cuda_library *library)
{
    return version / 1000 > library->version / 1000;
}

/* Asks NVRTC for the compute capabilities that it supports: versions drop old GPUs and do not know
 * newer ones. */
static void ask_what_is_known(struct tnd_cuda_library *out)
{
    const struct tnd_nvrtc_functions *nvrtc = &out->nvrtc;
    int n = 0;
    out->n_known = 0;
    if (nvrtc->GetNumSupportedArchs != NULL && nvrtc->GetSupportedArchs != NULL &&
        nvrtc->GetNumSupportedArchs(&n) == 0 && n > 0 && n <= COUNT(out->known) &&
        nvrtc->GetSupportedArchs(out->known) == 0) {
        out->n_known = n;
    }
}

bool tnd_cuda_compiles_for(const struct tnd_cuda_library *library, int capability)
{
    bool is_known = library->n_known == 0;
    for (int i = 0; i < library->n_known && !is_known; i++) {
        is_known = library->known[i] == capability;
    }
    return library->has_compiler && is_known;
}

/* Loads NVRTC if it is suitable: a driver may refuse binaries of a newer major version than its
 * own. */
static bool try_compiler(const char *file, struct tnd_cuda_library *out)
{
    const char *const names[] = {file, NULL};
    void *library = NULL; /* stays open for the life of the process */
    int major = 0;
    int minor = 0;
    if (tnd_dl_open(names, nvrtc_symbols, COUNT(nvrtc_symbols), &out->nvrtc, &library, NULL) !=
            TANDEM_OK ||
        out->nvrtc.Version(&major, &minor) != 0) {
        return false;
    }
    out->nvrtc_version = version_of(major, minor);
    out->has_compiler = out->nvrtc_version > 0 && !is_newer(out->nvrtc_version, out);
    ask_what_is_known(out);
    return out->has_compiler;
}

/* As try_compiler for cuBLAS, which uses the CUDA runtime of its own version. */
static bool try_blas(const char *file, struct tnd_cuda_library *out)
{
    const char *const names[] = {file, NULL};
    void *library = NULL; /* stays open for the life of the process */
    struct tandem_error told = {0};
    int major = 0;
    int minor = 0;
    if (tnd_dl_open(names, cublas_symbols, COUNT(cublas_symbols), &out->blas, &library, &told) !=
        TANDEM_OK) {
        snprintf(out->blas_reason, sizeof(out->blas_reason), "cuBLAS: %.180s", told.text);
        return false;
    }
    if (out->blas.GetProperty(0, &major) != 0 || out->blas.GetProperty(1, &minor) != 0) {
        return false;
    }
    out->blas_version = version_of(major, minor);
    out->has_blas = out->blas_version >= OLDEST_CUBLAS && !is_newer(out->blas_version, out);
    return out->has_blas;
}

/* Tries each name in the folders that match a pattern; NULL: in the system's library path. */
static bool try_folder(const char *folder, const char *const *names, try_file *try,
                       struct tnd_cuda_library *out)
{
    char pattern[2 * MAX_PATH];
    bool is_found = false;
    glob_t found;
    for (; *names != NULL && !is_found; names++) {
        if (folder == NULL) {
            is_found = try(*names, out);
        } else if ((size_t)snprintf(pattern, sizeof(pattern), "%s/%s", folder, *names) <
                       sizeof(pattern) &&
                   glob(pattern, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc && !is_found; i++) {
                is_found = try(found.gl_pathv[i], out);
            }
            globfree(&found);
        }
    }
    return is_found;
}

/* `path`: of libcuda, as requested. */
static bool look_for(const char *path, const char *const *names, try_file *try,
                     struct tnd_cuda_library *out)
{
    char folder[2 * MAX_PATH];
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    }
    bool is_found =
        (slash != NULL && try_folder(folder, names, try, out)) || try_folder(NULL, names, try, out);
    for (int i = 0; i < COUNT(folders) && !is_found; i++) {
        const char *variable = folders[i].variable;
        const char *root = variable[0] != '\0' ? secure_getenv(variable) : "/";
        if (root != NULL && root[0] == '/' && strlen(root) < MAX_PATH) {
            snprintf(folder, sizeof(folder), "%s/%s", root, folders[i].folder);
            is_found = try_folder(folder, names, try, out);
        }
    }
    return is_found;
}

/* Finds the pack of prebuilt kernels. A driver accepts PTX of its own version and of older ones:
 * 7.x came with CUDA 11.x, 8.x with 12.x. */
static void find_pack(const char *path, struct tnd_cuda_library *out)
{
    struct tandem_error told = {0};
    const enum tandem_status status = tnd_cuda_pack_find(path, &out->pack, &told);
    const int ptx = (int)out->pack.ptx_version;
    out->has_pack = status == TANDEM_OK && 1000 * (ptx / 10 + 4) + 10 * (ptx % 10) <= out->version;
    if (status == TANDEM_OK && !out->has_pack) {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason),
                 "no NVRTC for it, and the driver is older than the prebuilt kernels (PTX %d.%d)",
                 ptx / 10, ptx % 10);
    } else if (status != TANDEM_OK && status != TANDEM_E_NOT_FOUND) {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason), "no NVRTC for it, and %.100s",
                 told.text);
    }
}

static void find_compiler(const char *path, struct tnd_cuda_library *out)
{
    const int version = look_for(path, nvrtc_names, try_compiler, out) ? out->nvrtc_version : 0;
    if (version > 0) {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason),
                 "NVRTC %d.%d does not compile for it, and there are no prebuilt kernels",
                 version / 1000, version % 1000 / 10);
    } else if (out->nvrtc_version > 0) {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason),
                 "no compiler of kernels: NVRTC %d.%d is newer than the driver, which is for CUDA "
                 "%d.%d (pip has nvidia-cuda-nvrtc-cu%d)",
                 out->nvrtc_version / 1000, out->nvrtc_version % 1000 / 10, out->version / 1000,
                 out->version % 1000 / 10, out->version / 1000);
    } else {
        snprintf(out->compiler_reason, sizeof(out->compiler_reason),
                 "no compiler of kernels: libnvrtc.so.12 or .13 was not found (package "
                 "nvidia-cuda-nvrtc of pip, or the CUDA toolkit)");
    }
    find_pack(path, out);
}

/* `asked`: the setting, "" if it is not set. */
static void find_blas(const char *path, const char *asked, struct tnd_cuda_library *out)
{
    const bool is_off = strcmp(asked, "off") == 0;
    if (is_off || asked[0] != '\0' ? !is_off && try_blas(asked, out)
                                   : look_for(path, cublas_names, try_blas, out)) {
        return;
    }
    char *reason = out->blas_reason;
    const size_t bytes = sizeof(out->blas_reason);
    const int major = out->blas_version / 1000;
    const int minor = out->blas_version % 1000 / 10;
    if (is_off) {
        snprintf(reason, bytes, "cuBLAS is switched off by a setting");
    } else if (out->blas_version > 0 && out->blas_version < OLDEST_CUBLAS) {
        snprintf(reason, bytes, "cuBLAS %d.%d is too old, 11.0 or newer is needed", major, minor);
    } else if (out->blas_version > 0) {
        snprintf(reason, bytes, "cuBLAS %d.%d is newer than the driver, which is for CUDA %d.%d",
                 major, minor, out->version / 1000, out->version % 1000 / 10);
    } else if (asked[0] == '\0') {
        snprintf(reason, bytes, "libcublas.so.12 or .13 was not found (pip: nvidia-cublas-cu12)");
    } else if (reason[0] == '\0') {
        snprintf(reason, bytes, "%.80s tells no version", asked);
    }
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

/* Advice for those codes of cuInit that a user can do something about, from the driver's
 * reference. */
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

/* Loads libcuda into the next row. Called under the lock. */
static enum tandem_status load(const char *key, const char *blas, struct tandem_error *error)
{
    static const char *const usual[] = {"libcuda.so.1", NULL};
    const char *const only[] = {key, NULL};
    struct tnd_cuda_library *library = &loaded.libraries[loaded.n];
    struct tandem_error told = {0};
    void *handle = NULL; /* stays open for the life of the process */
    if (loaded.n == MAX_LIBRARIES || strlen(key) >= MAX_PATH || strlen(blas) >= MAX_PATH) {
        return tnd_error_set(
            error, TANDEM_E_LIMIT, "cuda", loaded.n, MAX_LIBRARIES,
            "cuda: more than %d files of libcuda and cuBLAS in one process, or a path of "
            "more than %d bytes",
            MAX_LIBRARIES, MAX_PATH - 1);
    }
    memset(library, 0, sizeof(*library));
    const enum tandem_status status = tnd_dl_open(key[0] != '\0' ? only : usual, cu_symbols,
                                                  COUNT(cu_symbols), &library->cu, &handle, &told);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, "cuda", 0, 0, "cuda: %.200s", told.text);
    }
    const char *file = tnd_dl_path((void (*)(void))library->cu.Init);
    snprintf(library->path, sizeof(library->path), "%s", file != NULL ? file : key);
    TND_TRY(start(library, error));
    find_compiler(key, library);
    find_blas(key, blas, library);
    snprintf(loaded.keys[loaded.n][0], MAX_PATH, "%s", key);
    snprintf(loaded.keys[loaded.n][1], MAX_PATH, "%s", blas);
    loaded.n++;
    return TANDEM_OK;
}

enum tandem_status tnd_cuda_library_get(const struct tnd_gpu_libraries *libraries,
                                        const struct tnd_cuda_library **out_library,
                                        struct tandem_error *error)
{
    const char *key = libraries->driver != NULL ? libraries->driver : "";
    const char *blas = libraries->blas != NULL ? libraries->blas : "";
    enum tandem_status status = TANDEM_OK;
    int row = 0;
    tnd_fork_lock_take(&loaded.lock);
    if (loaded.n == 0) {
        loaded.generation = tnd_fork_generation();
    }
    while (row < loaded.n &&
           (strcmp(loaded.keys[row][0], key) != 0 || strcmp(loaded.keys[row][1], blas) != 0)) {
        row++;
    }
    if (loaded.generation != tnd_fork_generation()) {
        status = refuse(error, 0, 0,
                        "it was in use before this process forked, and the driver does not work "
                        "in the child");
    } else if (row == loaded.n) {
        status = load(key, blas, error);
    }
    tnd_fork_lock_give(&loaded.lock);
    if (status == TANDEM_OK) {
        *out_library = &loaded.libraries[row];
    }
    return status;
}

/* ---- codes ---- */

bool tnd_cuda_is_lost(int code)
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
                                      : tnd_cuda_is_lost(code)     ? TANDEM_E_DEVICE_LOST
                                                                   : TANDEM_E_DEVICE;
    return tnd_error_set(error, status, device, code, 0, "cuda device '%s': %s failed with %s (%d)",
                         device, call, name_of(library, code), code);
}
