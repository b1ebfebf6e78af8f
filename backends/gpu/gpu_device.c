/* SPDX-License-Identifier: MIT
 * Chooses a device, opens it with everything that belongs to it, and closes it. */
#include "backends/gpu/gpu_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_facts.h"
#include "backends/gpu/gpu_graphs.h"
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_ops.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_times.h"
#include "base/alloc.h"

enum tandem_status tnd_gpu_no_memory(const struct tnd_gpu_device *device, size_t bytes,
                                     struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, device->driver->name, (int64_t)bytes, 0,
                         "backend %s: no memory", device->driver->name);
}

int tnd_gpu_devices(const struct tnd_gpu_driver *driver, struct tandem_device_info *out, int n,
                    struct tandem_error *error)
{
    static const struct tnd_gpu_libraries usual;
    struct tnd_gpu_found *found = NULL;
    int n_found = 0;
    if (tnd_gpu_find_devices(driver, &usual, &found, &n_found, error) != TANDEM_OK) {
        return 0;
    }
    for (int i = 0; i < n_found && i < n; i++) {
        out[i] = found[i].info;
    }
    tnd_free(found);
    return n_found;
}

/* ---- choosing ---- */

/* Preference without a selector: discrete GPUs, then other ones, accelerators, CPUs. Lower is
 * better, -1: never. */
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

static enum tandem_status choose(const char *driver, const struct tnd_gpu_found *found, int n,
                                 const struct tnd_gpu_options *options, int *out_index,
                                 struct tandem_error *error)
{
    int index = options->device != NULL ? choose_selected(found, n, options)
                                        : choose_best(found, n, options);
    if (index < 0 && options->device != NULL) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, driver, options->skip, n,
                             "%s: none of %d devices fits '%.60s'%s", driver, n, options->device,
                             options->skip > 0 ? " a second time" : "");
    }
    if (index < 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, driver, options->skip, n,
                             "%s: %d devices, but %s to use by default (the first is '%.60s': "
                             "%.80s)",
                             driver, n, options->skip > 0 ? "not as many" : "none",
                             found[0].info.name,
                             found[0].info.reason[0] != '\0' ? found[0].info.reason : "in use");
    }
    const struct tandem_device_info *info = &found[index].info;
    if (!info->is_fit) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, info->name, 0, 0,
                             "%s device '%s' cannot be used: %s", driver, info->name, info->reason);
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
        caps->mma = false;
    }
}

static void describe(struct tnd_gpu_device *device)
{
    const struct tandem_device_info *info = &device->info;
    const bool has_blas = device->context->has_blas;
    const int version = device->context->blas_version;
    char blas[48] = "";
    if (has_blas && version > 0) {
        snprintf(blas, sizeof(blas), "%.24s %d.%d", device->driver->blas_name, version / 1000,
                 version % 1000 / 10);
    } else {
        snprintf(blas, sizeof(blas), "%.24s", device->driver->blas_name);
    }
    snprintf(device->name, sizeof(device->name), "%s", info->name);
    snprintf(device->identity, sizeof(device->identity), "%.78s (%.46s)", info->name,
             info->platform);
    snprintf(device->driver_text, sizeof(device->driver_text), "%.32s%s%s", info->driver,
             has_blas ? " with " : "", has_blas ? blas : "");
    snprintf(device->text, sizeof(device->text),
             "%.96s (%.48s), driver %.32s, %u compute units, %llu MiB%s, %s %s", info->name,
             info->platform, info->driver, info->compute_units,
             (unsigned long long)(info->memory_bytes >> 20),
             device->caps.unified ? " shared with the host" : "", has_blas ? "with" : "without",
             blas);
}

static enum tandem_status open_parts(struct tnd_gpu_device *device,
                                     const struct tnd_gpu_options *options,
                                     const struct tnd_gpu_found *found, struct tandem_error *error)
{
    TND_TRY(device->driver->open(&options->libraries, found, options->with_profiling,
                                 &device->context, error));
    device->context->has_blas_half = device->context->has_blas_half && !options->without_fp16;
    describe(device);
    TND_TRY(tnd_gpu_programs_open(device, options->cache, error));
    TND_TRY(tnd_gpu_memory_open(device, options->budget_bytes, error));
    TND_TRY(tnd_gpu_times_open(device, error));
    TND_TRY(tnd_gpu_matmul_open(device, error));
    tnd_gpu_choose_graphs(device);
    TND_TRY(tnd_gpu_ops_open(device, error));
    struct tnd_gpu_launch launch; /* other settings may need programs that were not built */
    return device->context->has_fixed_programs
               ? tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, error)
               : TANDEM_OK;
}

enum tandem_status tnd_gpu_device_open(const struct tnd_gpu_driver *driver,
                                       const struct tnd_gpu_options *options,
                                       struct tnd_gpu_device **out_device,
                                       struct tandem_error *error)
{
    struct tnd_gpu_found *all = NULL;
    int n = 0;
    int index = 0;
    TND_TRY(tnd_gpu_find_devices(driver, &options->libraries, &all, &n, error));
    enum tandem_status status = choose(driver->name, all, n, options, &index, error);
    struct tnd_gpu_device *device = NULL;
    if (status == TANDEM_OK) {
        device = tnd_calloc(1, sizeof(*device));
        status = device != NULL
                     ? TANDEM_OK
                     : tnd_error_set(error, TANDEM_E_MEMORY, driver->name, (int64_t)sizeof(*device),
                                     0, "backend %s: no memory", driver->name);
    }
    if (status == TANDEM_OK) {
        const struct tnd_gpu_found *found = &all[index];
        device->driver = driver;
        device->caps = found->caps;
        device->info = found->info;
        memcpy(device->platform_version, found->platform_version, sizeof(found->platform_version));
        memcpy(device->compiler, found->options, sizeof(found->options));
        device->keeps_programs = found->keeps_programs;
        device->has_profiling = options->with_profiling;
        device->graphs = options->graphs;
        pthread_mutex_init(&device->submit_lock, NULL);
        apply_switches(device, options);
        status = open_parts(device, options, found, error);
    }
    tnd_free(all);
    if (status != TANDEM_OK) {
        tnd_gpu_device_close(device);
        return status;
    }
    *out_device = device;
    return TANDEM_OK;
}

void tnd_gpu_device_close(struct tnd_gpu_device *device)
{
    if (device == NULL) {
        return;
    }
    if (device->context != NULL) {
        /* results do not matter any more: whatever fails here, everything is freed */
        for (int i = 0; i < TND_GPU_QUEUE_COUNT; i++) {
            (void)device->driver->finish(device->context, (enum tnd_gpu_queue)i, NULL);
        }
        tnd_gpu_ops_close(device);
        tnd_gpu_matmul_close(device);
        tnd_gpu_times_close(device);
        tnd_gpu_memory_close(device);
        tnd_gpu_programs_close(device);
        device->driver->close(device->context);
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
