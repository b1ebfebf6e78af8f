/* SPDX-License-Identifier: MIT
 * Lists the OpenCL devices of this machine with all facts, and decides which are suitable. Opens no
 * device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/cl_driver.h"
#include "base/alloc.h"

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 32, MAX_EXTENSIONS = 16384 };

/* ---- asking one device ---- */

/* Queries of a device. After a failure no more are made: a device that does not answer has no other
 * facts. */
struct asking {
    const struct tnd_cl_functions *cl;
    cl_device_id id;
    cl_int code;
};

static void ask(struct asking *asking, cl_device_info what, void *out, size_t bytes)
{
    if (asking->code == CL_SUCCESS) {
        asking->code = asking->cl->GetDeviceInfo(asking->id, what, bytes, out, NULL);
    }
}

static uint64_t ask_ulong(struct asking *asking, cl_device_info what)
{
    cl_ulong value = 0;
    ask(asking, what, &value, sizeof(value));
    return value;
}

static uint32_t ask_uint(struct asking *asking, cl_device_info what)
{
    cl_uint value = 0;
    ask(asking, what, &value, sizeof(value));
    return value;
}

static bool ask_bool(struct asking *asking, cl_device_info what)
{
    cl_bool value = CL_FALSE;
    ask(asking, what, &value, sizeof(value));
    return value != CL_FALSE;
}

/* A text without leading and trailing blanks, cut to `bytes`. Texts longer than MAX_EXTENSIONS
 * fail. */
static void ask_text(struct asking *asking, cl_device_info what, char *out, size_t bytes)
{
    size_t n = 0;
    out[0] = '\0';
    if (asking->code == CL_SUCCESS) {
        asking->code = asking->cl->GetDeviceInfo(asking->id, what, 0, NULL, &n);
    }
    if (asking->code != CL_SUCCESS || n == 0) {
        return;
    }
    char *text = n <= MAX_EXTENSIONS ? tnd_calloc(1, n + 1) : NULL;
    if (text == NULL) {
        asking->code = CL_OUT_OF_HOST_MEMORY;
        return;
    }
    ask(asking, what, text, n);
    if (asking->code == CL_SUCCESS) {
        const char *begin = text + strspn(text, " \t");
        size_t length = strlen(begin);
        while (length > 0 && (begin[length - 1] == ' ' || begin[length - 1] == '\n')) {
            length--;
        }
        snprintf(out, bytes, "%.*s", (int)length, begin);
    }
    tnd_free(text);
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n) {
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* "OpenCL 3.0 PoCL", "OpenCL C 1.2 PoCL" -> 30, 12; 0 if there is no version. */
static int version_number(const char *text)
{
    const char *at = text + strcspn(text, "0123456789");
    char *end = NULL;
    long major = strtol(at, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > 0 && major < 100 && minor >= 0 && minor < 10 ? (int)(major * 10 + minor) : 0;
}

/* ---- facts ---- */

static void read_extensions(struct asking *asking, struct tnd_gpu_found *found)
{
    struct tnd_gpu_caps *caps = &found->caps;
    char *words = tnd_calloc(1, MAX_EXTENSIONS);
    if (words == NULL) {
        asking->code = CL_OUT_OF_HOST_MEMORY;
        return;
    }
    char c_version[64];
    ask_text(asking, CL_DEVICE_EXTENSIONS, words, MAX_EXTENSIONS);
    ask_text(asking, CL_DEVICE_OPENCL_C_VERSION, c_version, sizeof(c_version));
    int c_std = version_number(c_version);
    caps->fp16 = has_word(words, "cl_khr_fp16");
    caps->fp64 = has_word(words, "cl_khr_fp64");
    caps->intel_subgroups = has_word(words, "cl_intel_subgroups");
    /* Khronos's subgroups are a part of OpenCL C 2.0; a device of version 3.0 may name 1.2 as its
     * C version and take 3.0 too. */
    int highest = version_number(found->info.version) >= 30 ? 30 : c_std;
    caps->khr_subgroups = has_word(words, "cl_khr_subgroups") && highest >= 20;
    caps->subgroups = caps->khr_subgroups || caps->intel_subgroups;
    bool needs_more = caps->khr_subgroups && !caps->intel_subgroups;
    snprintf(found->options, sizeof(found->options), "-cl-std=CL%s -cl-mad-enable",
             !needs_more     ? "1.2"
             : highest >= 30 ? "3.0"
                             : "2.0");
    tnd_free(words);
}

static uint32_t type_of(cl_device_type type)
{
    return (type & CL_DEVICE_TYPE_GPU) != 0           ? TANDEM_DEVICE_GPU
           : (type & CL_DEVICE_TYPE_CPU) != 0         ? TANDEM_DEVICE_CPU
           : (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? TANDEM_DEVICE_ACCELERATOR
                                                      : TANDEM_DEVICE_OTHER;
}

static void read_numbers(struct asking *asking, struct tnd_gpu_found *found)
{
    struct tnd_gpu_caps *caps = &found->caps;
    cl_device_type type = 0;
    ask(asking, CL_DEVICE_TYPE, &type, sizeof(type));
    found->info.type = type_of(type);
    caps->is_cpu = found->info.type == TANDEM_DEVICE_CPU;
    caps->unified = ask_bool(asking, CL_DEVICE_HOST_UNIFIED_MEMORY);
    caps->global_bytes = ask_ulong(asking, CL_DEVICE_GLOBAL_MEM_SIZE);
    caps->max_alloc_bytes = ask_ulong(asking, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    caps->local_bytes = ask_ulong(asking, CL_DEVICE_LOCAL_MEM_SIZE);
    caps->compute_units = (int)ask_uint(asking, CL_DEVICE_MAX_COMPUTE_UNITS);
    caps->clock_mhz = (int)ask_uint(asking, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    ask(asking, CL_DEVICE_MAX_WORK_GROUP_SIZE, &caps->max_group, sizeof(caps->max_group));
    size_t items[8] = {0};
    uint32_t n_dims = ask_uint(asking, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS);
    ask(asking, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, (n_dims < 8 ? n_dims : 8) * sizeof(items[0]));
    memcpy(caps->max_items, items, sizeof(caps->max_items));
}

/* Why the device cannot be used, or NULL. */
static const char *unfit_reason(struct asking *asking, const struct tnd_gpu_found *found)
{
    bool is_there = ask_bool(asking, CL_DEVICE_AVAILABLE);
    bool compiles = ask_bool(asking, CL_DEVICE_COMPILER_AVAILABLE);
    bool is_little = ask_bool(asking, CL_DEVICE_ENDIAN_LITTLE);
    uint32_t bits = ask_uint(asking, CL_DEVICE_ADDRESS_BITS);
    if (asking->code != CL_SUCCESS) {
        return "it does not answer clGetDeviceInfo";
    }
    return version_number(found->info.version) < 12 ? "its OpenCL is older than 1.2"
           : !is_there                              ? "its driver says that it is not available"
           : !compiles                              ? "its driver has no compiler"
           : !is_little                             ? "its bytes are in big-endian order"
           : bits < 32                              ? "its addresses have less than 32 bits"
                                                    : NULL;
}

static void read_device(const struct tnd_cl_functions *cl, struct tnd_gpu_found *found)
{
    struct asking asking = {cl, (cl_device_id)found->ids[1], CL_SUCCESS};
    struct tandem_device_info *info = &found->info;
    info->size = sizeof(*info);
    ask_text(&asking, CL_DEVICE_NAME, info->name, sizeof(info->name));
    ask_text(&asking, CL_DEVICE_VENDOR, info->vendor, sizeof(info->vendor));
    ask_text(&asking, CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
    ask_text(&asking, CL_DEVICE_VERSION, info->version, sizeof(info->version));
    read_numbers(&asking, found);
    read_extensions(&asking, found);
    tnd_gpu_fill_info(&found->caps, info);
    if (info->name[0] == '\0') {
        snprintf(info->name, sizeof(info->name), "nameless");
    }
    const char *reason = unfit_reason(&asking, found);
    info->is_fit = reason == NULL;
    info->is_default = info->is_fit && info->type != TANDEM_DEVICE_CPU;
    if (asking.code != CL_SUCCESS) {
        snprintf(info->reason, sizeof(info->reason), "%s: %s", reason,
                 tnd_cl_code_name(asking.code));
    } else if (reason != NULL) {
        snprintf(info->reason, sizeof(info->reason), "%s", reason);
    } else if (!info->is_default) {
        snprintf(info->reason, sizeof(info->reason), "a CPU is used only when it is asked for");
    }
}

/* ---- all of them ---- */

struct list {
    struct tnd_gpu_found *found;
    int n;
    struct tandem_error *error;
};

/* "" if the platform does not provide it. */
static void platform_text(const struct tnd_cl_functions *cl, cl_platform_id platform,
                          cl_platform_info what, char *out, size_t bytes)
{
    char text[1024] = "";
    if (cl->GetPlatformInfo(platform, what, sizeof(text), text, NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
    text[sizeof(text) - 1] = '\0';
    snprintf(out, bytes, "%s", text);
}

static enum tandem_status add_device(struct list *list, const struct tnd_cl_functions *cl,
                                     cl_platform_id platform, cl_device_id id)
{
    size_t bytes = sizeof(*list->found);
    struct tnd_gpu_found *grown =
        tnd_realloc(list->found, (size_t)list->n * bytes, (size_t)(list->n + 1) * bytes);
    if (grown == NULL) {
        return tnd_error_set(list->error, TANDEM_E_MEMORY, "opencl", (int64_t)bytes, 0,
                             "opencl: no memory for the list of devices");
    }
    list->found = grown;
    struct tnd_gpu_found *found = &grown[list->n++];
    memset(found, 0, sizeof(*found));
    found->ids[0] = (uintptr_t)platform;
    found->ids[1] = (uintptr_t)id;
    platform_text(cl, platform, CL_PLATFORM_NAME, found->info.platform,
                  sizeof(found->info.platform));
    platform_text(cl, platform, CL_PLATFORM_VERSION, found->platform_version,
                  sizeof(found->platform_version));
    read_device(cl, found);
    /* PoCL keeps what it compiles in a cache of its own. Asked for a binary it first compiles all
     * kernels of the program for groups of any size, used or not, which takes it longer than the
     * build itself and than what is used (PoCL 3.1). */
    found->keeps_programs =
        found->caps.is_cpu && strcmp(found->info.platform, "Portable Computing Language") == 0;
    return TANDEM_OK;
}

/* Adds a platform's devices. One that fails or has none adds nothing, but is no error while there
 * are others. */
static enum tandem_status add_platform(struct list *list, const struct tnd_cl_functions *cl,
                                       cl_platform_id platform, cl_int *out_code)
{
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0;
    cl_int code = cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n);
    if (code != CL_SUCCESS) {
        *out_code = code;
        return TANDEM_OK;
    }
    for (cl_uint i = 0; i < n && i < MAX_DEVICES; i++) {
        TND_TRY(add_device(list, cl, platform, ids[i]));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cl_find_devices(const struct tnd_gpu_libraries *libraries,
                                       struct tnd_gpu_found **out_found, int *out_n,
                                       struct tandem_error *error)
{
    const struct tnd_cl_library *library = NULL;
    TND_TRY(tnd_cl_library_get(libraries->driver, &library, error));
    const struct tnd_cl_functions *cl = &library->cl;
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n_platforms = 0;
    cl_int code = cl->GetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms);
    if (code != CL_SUCCESS || n_platforms == 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", code, 0,
                             "opencl: %s finds no driver (clGetPlatformIDs: %s)", library->path,
                             tnd_cl_code_name(code));
    }
    struct list list = {NULL, 0, error};
    cl_int last = CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; i < n_platforms && i < MAX_PLATFORMS; i++) {
        enum tandem_status status = add_platform(&list, cl, platforms[i], &last);
        if (status != TANDEM_OK) {
            tnd_free(list.found);
            return status;
        }
    }
    if (list.n == 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", last, 0,
                             "opencl: %u drivers, but no device (clGetDeviceIDs: %s)",
                             (unsigned)n_platforms, tnd_cl_code_name(last));
    }
    *out_found = list.found;
    *out_n = list.n;
    return TANDEM_OK;
}
