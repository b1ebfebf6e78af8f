/* SPDX-License-Identifier: MIT
 * Choosing a device, opening it with everything that hangs on it, and closing. */
#include "backends/gpu/gpu_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_ops.h"
#include "backends/gpu/gpu_program.h"
#include "base/alloc.h"

enum tandem_status tnd_gpu_check(const struct tnd_gpu_device *device, const char *call, cl_int code,
                                 struct tandem_error *error)
{
    return tnd_cl_code_check(device->name, call, code, error);
}

/* ---- choosing ---- */

/* Without a selector: discrete GPUs, then other ones, accelerators, CPUs. Lower is better, -1 is
 * never. */
static int rank_of(const struct tandem_device_info *info, bool with_cpu)
{
    if (!info->is_fit || (!info->is_default && !with_cpu)) {
        return -1;
    }
    return info->type == TANDEM_DEVICE_GPU           ? (info->has_unified_memory ? 1 : 0)
           : info->type == TANDEM_DEVICE_ACCELERATOR ? 2
                                                     : 3;
}

static int choose_best(const struct tnd_gpu_found *found, int n,
                       const struct tnd_gpu_options *options)
{
    int skip = options->skip;
    for (int rank = 0; rank <= 3; rank++) {
        for (int i = 0; i < n; i++) {
            if (rank_of(&found[i].info, options->with_cpu) == rank && skip-- == 0) {
                return i;
            }
        }
    }
    return -1;
}

static bool is_index(const char *selector)
{
    return selector[0] != '\0' && strspn(selector, "0123456789") == strlen(selector) &&
           strlen(selector) < 6;
}

static int choose_selected(const struct tnd_gpu_found *found, int n,
                           const struct tnd_gpu_options *options)
{
    if (is_index(options->device)) {
        long index = strtol(options->device, NULL, 10);
        return index < n && options->skip == 0 ? (int)index : -1;
    }
    int skip = options->skip;
    for (int i = 0; i < n; i++) {
        const struct tandem_device_info *info = &found[i].info;
        bool fits = strcasestr(info->name, options->device) != NULL ||
                    strcasestr(info->platform, options->device) != NULL;
        if (fits && skip-- == 0) {
            return i;
        }
    }
    return -1;
}

static enum tandem_status choose(const struct tnd_gpu_found *found, int n,
                                 const struct tnd_gpu_options *options, int *out_index,
                                 struct tandem_error *error)
{
    int index = options->device != NULL ? choose_selected(found, n, options)
                                        : choose_best(found, n, options);
    if (index < 0 && options->device != NULL) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", options->skip, n,
                             "opencl: none of %d devices fits '%.60s'%s", n, options->device,
                             options->skip > 0 ? " a second time" : "");
    }
    if (index < 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "opencl", options->skip, n,
                             "opencl: %d devices, but %s to use by default (the first is '%.60s': "
                             "%.80s)",
                             n, options->skip > 0 ? "not as many" : "none", found[0].info.name,
                             found[0].info.reason[0] != '\0' ? found[0].info.reason : "in use");
    }
    const struct tandem_device_info *info = &found[index].info;
    if (!info->is_fit) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, info->name, 0, 0,
                             "opencl device '%s' cannot be used: %s", info->name, info->reason);
    }
    *out_index = index;
    return TANDEM_OK;
}

/* ---- opening ---- */

static void apply_switches(struct tnd_gpu_device *device, const struct tnd_gpu_options *options)
{
    struct tnd_gpu_caps *caps = &device->caps;
    caps->fp16 = caps->fp16 && !options->without_fp16;
    caps->fp64 = caps->fp64 && !options->without_fp64;
    caps->unified = caps->unified && !options->without_unified;
    if (options->without_subgroups) {
        caps->subgroups = false;
        caps->khr_subgroups = false;
        caps->intel_subgroups = false;
    }
}

static enum tandem_status open_context(struct tnd_gpu_device *device, struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->platform, 0};
    cl_int code = CL_SUCCESS;
    device->context = cl->CreateContext(properties, 1, &device->id, NULL, NULL, &code);
    TND_TRY(tnd_gpu_check(device, "clCreateContext", code, error));
    device->queue = cl->CreateCommandQueue(
        device->context, device->id, device->has_profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    return tnd_gpu_check(device, "clCreateCommandQueue", code, error);
}

static void open_clblast(struct tnd_gpu_device *device, const struct tnd_gpu_options *options)
{
    struct tandem_error told = {0};
    if (options->clblast != NULL && strcmp(options->clblast, "off") == 0) {
        snprintf(device->clblast_reason, sizeof(device->clblast_reason),
                 "CLBlast is switched off by a setting");
    } else if (tnd_clblast_get(options->clblast, &device->clblast, &told) != TANDEM_OK) {
        snprintf(device->clblast_reason, sizeof(device->clblast_reason), "%s", told.text);
    }
}

static enum tandem_status open_parts(struct tnd_gpu_device *device,
                                     const struct tnd_gpu_options *options,
                                     struct tandem_error *error)
{
    TND_TRY(open_context(device, error));
    open_clblast(device, options);
    TND_TRY(tnd_gpu_programs_open(device, options->cache, error));
    TND_TRY(tnd_gpu_memory_open(device, options->budget_bytes, error));
    TND_TRY(tnd_gpu_matmul_open(device, error));
    return tnd_gpu_ops_open(device, error);
}

static void describe(struct tnd_gpu_device *device)
{
    const struct tandem_device_info *info = &device->info;
    snprintf(device->name, sizeof(device->name), "%s", info->name);
    snprintf(device->identity, sizeof(device->identity), "%.78s (%.46s)", info->name,
             info->platform);
    snprintf(device->driver, sizeof(device->driver), "%.32s%s", info->driver,
             device->clblast != NULL ? " with CLBlast" : "");
    snprintf(device->text, sizeof(device->text),
             "%.96s (%.48s), driver %.32s, %u compute units, %llu MiB%s, %s", info->name,
             info->platform, info->driver, info->compute_units,
             (unsigned long long)(info->memory_bytes >> 20),
             device->caps.unified ? " shared with the host" : "",
             device->clblast != NULL ? "with CLBlast" : "without CLBlast");
}

enum tandem_status tnd_gpu_device_open(const struct tnd_gpu_options *options,
                                       struct tnd_gpu_device **out_device,
                                       struct tandem_error *error)
{
    const struct tnd_cl_library *library = NULL;
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    int index = 0;
    TND_TRY(tnd_cl_library_get(options->library, &library, error));
    TND_TRY(tnd_gpu_find_devices(library, &found, &n, error));
    enum tandem_status status = choose(found, n, options, &index, error);
    struct tnd_gpu_device *device = status == TANDEM_OK ? tnd_calloc(1, sizeof(*device)) : NULL;
    if (status == TANDEM_OK && device == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "opencl", (int64_t)sizeof(*device), 0,
                               "backend opencl: no memory");
    }
    if (device == NULL) {
        tnd_free(found);
        return status;
    }
    device->library = library;
    device->platform = found[index].platform;
    device->id = found[index].id;
    device->caps = found[index].caps;
    device->info = found[index].info;
    memcpy(device->platform_version, found[index].platform_version,
           sizeof(device->platform_version));
    device->has_profiling = options->with_profiling;
    tnd_free(found);
    pthread_mutex_init(&device->submit_lock, NULL);
    apply_switches(device, options);
    describe(device);
    status = open_parts(device, options, error);
    if (status != TANDEM_OK) {
        tnd_gpu_device_close(device);
        return status;
    }
    describe(device);
    *out_device = device;
    return TANDEM_OK;
}

void tnd_gpu_device_close(struct tnd_gpu_device *device)
{
    if (device == NULL) {
        return;
    }
    const struct tnd_cl_functions *cl = &device->library->cl;
    /* Results do not matter any more: whatever fails here, everything is given back. */
    if (device->queue != NULL) {
        cl->Finish(device->queue);
    }
    if (device->stream_queue != NULL) {
        cl->Finish(device->stream_queue);
    }
    tnd_gpu_ops_close(device);
    tnd_gpu_matmul_close(device);
    tnd_gpu_memory_close(device);
    tnd_gpu_programs_close(device);
    if (device->stream_queue != NULL) {
        cl->ReleaseCommandQueue(device->stream_queue);
    }
    if (device->queue != NULL) {
        cl->ReleaseCommandQueue(device->queue);
    }
    if (device->context != NULL) {
        cl->ReleaseContext(device->context);
    }
    pthread_mutex_destroy(&device->submit_lock);
    tnd_free(device);
}

void tnd_gpu_statistics_get(struct tnd_gpu_device *device, struct tnd_gpu_statistics *out)
{
    struct tnd_gpu_statistics statistics = {0};
    tnd_gpu_programs_count(device, &statistics);
    tnd_gpu_memory_count(device, &statistics);
    statistics.launches = atomic_load_explicit(&device->n_launches, memory_order_relaxed);
    *out = statistics;
}
