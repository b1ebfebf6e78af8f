/* SPDX-License-Identifier: MIT
 * Lists the CUDA devices of this machine with all facts, and decides which are suitable. Creates no
 * context. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "base/alloc.h"

enum {
    MAX_DEVICES = 64,
    OLDEST_CAPABILITY = 60,
    BF16_CAPABILITY = 80,
    NEWEST_CAPABILITY = 999,
    WARP = 32
};

/* Queries of a device. After a failure no more are made: a device that does not answer has no other
 * facts. */
struct asking {
    const struct tnd_cu_functions *cu;
    int device;
    int code;
};

static int ask(struct asking *asking, int attribute)
{
    int value = 0;
    if (asking->code == TND_CU_SUCCESS) {
        asking->code = asking->cu->DeviceGetAttribute(&value, attribute, asking->device);
    }
    return asking->code == TND_CU_SUCCESS && value > 0 ? value : 0;
}

static void read_numbers(struct asking *asking, int capability, struct tnd_gpu_found *found)
{
    struct tnd_gpu_caps *caps = &found->caps;
    size_t bytes = 0;
    if (asking->code == TND_CU_SUCCESS) {
        asking->code = asking->cu->DeviceTotalMem(&bytes, asking->device);
    }
    caps->global_bytes = bytes;
    caps->max_alloc_bytes = bytes;
    caps->local_bytes = (uint64_t)ask(asking, TND_CU_SHARED_OF_BLOCK);
    caps->max_group = (size_t)ask(asking, TND_CU_THREADS_OF_BLOCK);
    for (int i = 0; i < 3; i++) {
        caps->max_items[i] = (size_t)ask(asking, TND_CU_BLOCK_X + i);
    }
    caps->compute_units = ask(asking, TND_CU_MULTIPROCESSORS);
    caps->clock_mhz = ask(asking, TND_CU_CLOCK_KHZ) / 1000;
    caps->unified = ask(asking, TND_CU_INTEGRATED) != 0;
    caps->fp64 = true;
    caps->subgroups = true; /* warps */
    caps->mma = capability >= BF16_CAPABILITY;
}

static void fill_info(const struct tnd_gpu_caps *caps, struct tandem_device_info *info)
{
    info->size = sizeof(*info);
    info->type = TANDEM_DEVICE_GPU;
    tnd_gpu_fill_info(caps, info);
    info->has_fp16 = true; /* of the hardware; none of our kernels computes in halves */
}

/* Why the device cannot be used; "" if it can. */
static void find_reason(struct asking *asking, const struct tnd_cuda_library *library,
                        const struct tnd_gpu_found *found, int capability, char *out, size_t bytes)
{
    const bool is_forbidden = ask(asking, TND_CU_COMPUTE_MODE) == 2;
    const int warp = ask(asking, TND_CU_WARP);
    if (asking->code != TND_CU_SUCCESS) {
        snprintf(out, bytes, "it does not answer the driver: code %d", asking->code);
    } else if (capability < OLDEST_CAPABILITY) {
        snprintf(out, bytes, "its compute capability is %d.%d, 6.0 or newer is needed",
                 capability / 10, capability % 10);
    } else if (capability > NEWEST_CAPABILITY) {
        snprintf(out, bytes, "its compute capability is no number that there is");
    } else if (is_forbidden) {
        snprintf(out, bytes, "its compute mode forbids all programs");
    } else if (warp != WARP) {
        snprintf(out, bytes, "its warps have %d threads, expected %d", warp, WARP);
    } else if (found->caps.max_group < 256 || found->caps.local_bytes < 16U << 10) {
        snprintf(out, bytes, "its blocks are too small: %zu threads, %llu bytes of shared memory",
                 found->caps.max_group, (unsigned long long)found->caps.local_bytes);
    } else if (tnd_cuda_compiles_for(library, capability)) {
        out[0] = '\0';
    } else if (!library->has_pack) {
        snprintf(out, bytes, "%s", library->compiler_reason);
    } else if (capability < (int)library->pack.capability) {
        snprintf(out, bytes,
                 "no NVRTC for it, and the prebuilt kernels are for compute capability %u.%u on",
                 library->pack.capability / 10, library->pack.capability % 10);
    }
}

/* Where the device's kernels come from. */
static void name_kernels(const struct tnd_cuda_library *library, int capability, char *out,
                         size_t bytes)
{
    if (tnd_cuda_compiles_for(library, capability)) {
        snprintf(out, bytes, "NVRTC %d.%d", library->nvrtc_version / 1000,
                 library->nvrtc_version % 1000 / 10);
    } else if (library->has_pack) {
        snprintf(out, bytes, "prebuilt PTX %u.%u", library->pack.ptx_version / 10,
                 library->pack.ptx_version % 10);
    } else {
        snprintf(out, bytes, "none");
    }
}

/* Why a suitable device is not used by default (until our kernels have run on a real GPU), and
 * which libraries it lacks. */
static void tell_more(const struct tnd_cuda_library *library, int capability, char *out,
                      size_t bytes)
{
    snprintf(out, bytes, "CUDA is used only when it is asked for");
    if (!tnd_cuda_compiles_for(library, capability)) {
        snprintf(out, bytes,
                 "only used when asked for; tuning and the kernels of networks need NVRTC (pip: "
                 "nvidia-cuda-nvrtc-cu%d)",
                 library->version / 1000);
    } else if (!library->has_blas) {
        snprintf(out, bytes, "only used when asked for; our kernels serve for cuBLAS: %.70s",
                 library->blas_reason);
    }
}

static void read_device(const struct tnd_cuda_library *library, int ordinal,
                        struct tnd_gpu_found *found)
{
    struct tandem_device_info *info = &found->info;
    struct asking asking = {&library->cu, 0, TND_CU_SUCCESS};
    char kernels[32];
    asking.code = library->cu.DeviceGet(&asking.device, ordinal);
    if (asking.code == TND_CU_SUCCESS) {
        asking.code = library->cu.DeviceGetName(info->name, (int)sizeof(info->name), asking.device);
        info->name[sizeof(info->name) - 1] = '\0';
    }
    found->ids[0] = (uintptr_t)asking.device;
    const int major = ask(&asking, TND_CU_MAJOR);
    const int minor = ask(&asking, TND_CU_MINOR);
    const int capability = major < 100 && minor < 10 ? 10 * major + minor : NEWEST_CAPABILITY + 1;
    found->ids[1] = (uintptr_t)capability;
    read_numbers(&asking, capability, found);
    fill_info(&found->caps, info);
    if (info->name[0] == '\0') {
        snprintf(info->name, sizeof(info->name), "nameless");
    }
    snprintf(info->platform, sizeof(info->platform), "CUDA");
    snprintf(info->vendor, sizeof(info->vendor), "NVIDIA");
    snprintf(info->driver, sizeof(info->driver), "%d.%d", library->version / 1000,
             library->version % 1000 / 10);
    name_kernels(library, capability, kernels, sizeof(kernels));
    snprintf(info->version, sizeof(info->version), "compute capability %d.%d, kernels: %s",
             capability / 10, capability % 10, kernels);
    snprintf(found->platform_version, sizeof(found->platform_version), "CUDA %d, %s",
             library->version, kernels);
    snprintf(found->options, sizeof(found->options),
             "--gpu-architecture=sm_%d --std=c++17 --device-as-default-execution-space -w",
             capability);
    find_reason(&asking, library, found, capability, info->reason, sizeof(info->reason));
    info->is_fit = info->reason[0] == '\0';
    if (info->is_fit) {
        tell_more(library, capability, info->reason, sizeof(info->reason));
    }
}

enum tandem_status tnd_cuda_find_devices(const struct tnd_gpu_libraries *libraries,
                                         struct tnd_gpu_found **out_found, int *out_n,
                                         struct tandem_error *error)
{
    const struct tnd_cuda_library *library = NULL;
    TND_TRY(tnd_cuda_library_get(libraries, &library, error));
    return tnd_cuda_list(library, out_found, out_n, error);
}

enum tandem_status tnd_cuda_list(const struct tnd_cuda_library *library,
                                 struct tnd_gpu_found **out_found, int *out_n,
                                 struct tandem_error *error)
{
    int n = 0;
    TND_TRY(
        tnd_cuda_check(library, "all", "cuDeviceGetCount", library->cu.DeviceGetCount(&n), error));
    if (n < 1 || n > MAX_DEVICES) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "cuda", n, MAX_DEVICES,
                             "cuda: %.100s says that there are %d devices, expected 1 to %d",
                             library->path, n, MAX_DEVICES);
    }
    struct tnd_gpu_found *found = tnd_calloc((size_t)n, sizeof(*found));
    if (found == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cuda", n, 0,
                             "cuda: no memory for the list of %d devices", n);
    }
    for (int i = 0; i < n; i++) {
        read_device(library, i, &found[i]);
    }
    *out_found = found;
    *out_n = n;
    return TANDEM_OK;
}
