/* SPDX-License-Identifier: MIT
 * Binds arguments and submits kernels. */
#include "backends/gpu/gpu_launch.h"

#include <stdatomic.h>

#include "backends/gpu/gpu_program.h"
#include "base/clock.h"

enum tandem_status tnd_gpu_launch_begin(struct tnd_gpu_launch *launch,
                                        struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                        const struct tnd_gpu_variant *variant,
                                        struct tandem_error *error)
{
    static const struct tnd_gpu_variant plain = {0};
    struct tnd_gpu_program *program = NULL;
    TND_TRY(
        tnd_gpu_program_get(device, source, variant != NULL ? variant : &plain, &program, error));
    *launch = (struct tnd_gpu_launch){device, program, 0, NULL};
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_launch_take(struct tnd_gpu_launch *launch, enum tnd_gpu_kernel kernel,
                                       struct tandem_error *error)
{
    tnd_gpu_launch_drop(launch);
    if (tnd_gpu_kernels[kernel].source != tnd_gpu_program_source(launch->program)) {
        return tnd_error_set(error, TANDEM_E_STATE, launch->device->name, (int64_t)kernel, 0,
                             "%s: kernel %s is not in %s.cl", launch->device->driver->name,
                             tnd_gpu_kernels[kernel].name,
                             tnd_gpu_sources[tnd_gpu_program_source(launch->program)].name);
    }
    TND_TRY(tnd_gpu_program_take(launch->device, launch->program, kernel, &launch->handle, error));
    launch->kernel = (int)kernel;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_launch_argument(struct tnd_gpu_launch *launch, int index, size_t bytes,
                                           const void *value, struct tandem_error *error)
{
    const struct tnd_gpu_device *device = launch->device;
    const enum tandem_status status =
        device->driver->argument(device->context, launch->handle,
                                 tnd_gpu_kernels[launch->kernel].name, index, bytes, value, error);
    if (status != TANDEM_OK) {
        tnd_gpu_launch_drop(launch);
    }
    return status;
}

void tnd_gpu_launch_drop(struct tnd_gpu_launch *launch)
{
    tnd_gpu_program_give(launch->device, launch->program, (enum tnd_gpu_kernel)launch->kernel,
                         launch->handle);
    launch->handle = NULL;
}

/* ---- submitting ---- */

static enum tandem_status check_range(const struct tnd_gpu_launch *launch, int n_dims,
                                      const size_t *global, const size_t *local, bool *out_is_empty,
                                      struct tandem_error *error)
{
    *out_is_empty = false;
    for (int i = 0; i < n_dims; i++) {
        *out_is_empty = *out_is_empty || global[i] == 0;
        if (local[i] == 0 || global[i] % local[i] != 0) {
            return tnd_error_set(error, TANDEM_E_STATE, launch->device->name, (int64_t)global[i],
                                 (int64_t)local[i],
                                 "%s: kernel %s: dimension %d has %zu work-items, which is no "
                                 "multiple of its groups' %zu",
                                 launch->device->driver->name, tnd_gpu_kernels[launch->kernel].name,
                                 i, global[i], local[i]);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status enqueue(struct tnd_gpu_launch *launch, int n_dims, const size_t *global,
                                  const size_t *local, struct tnd_gpu_event **out_event,
                                  struct tandem_error *error)
{
    const struct tnd_gpu_device *device = launch->device;
    return device->driver->launch(device->context, launch->handle,
                                  tnd_gpu_kernels[launch->kernel].name, n_dims, global, local,
                                  out_event, error);
}

enum tandem_status tnd_gpu_launch_run(struct tnd_gpu_launch *launch, int n_dims,
                                      const size_t *global, const size_t *local,
                                      struct tandem_error *error)
{
    struct tnd_gpu_device *device = launch->device;
    bool is_empty = false;
    enum tandem_status status = check_range(launch, n_dims, global, local, &is_empty, error);
    if (status == TANDEM_OK && !is_empty) {
        status = enqueue(launch, n_dims, global, local, NULL, error);
    }
    tnd_gpu_launch_drop(launch);
    TND_TRY(status);
    if (is_empty) {
        return TANDEM_OK;
    }
    return tnd_gpu_launched(device, error);
}

enum tandem_status tnd_gpu_launched(struct tnd_gpu_device *device, struct tandem_error *error)
{
    /* Some drivers hold work back until a flush; flushing after every launch would be too
     * expensive. */
    const int most = device->driver->launches_per_flush;
    int64_t n = atomic_fetch_add_explicit(&device->n_launches, 1, memory_order_relaxed) + 1;
    if (most == 0 || n % most != 0) {
        return TANDEM_OK;
    }
    return device->driver->flush(device->context, TND_GPU_QUEUE_WORK, error);
}

static enum tandem_status time_on_host(struct tnd_gpu_launch *launch, int n_dims,
                                       const size_t *global, const size_t *local, int64_t *out_ns,
                                       struct tandem_error *error)
{
    const struct tnd_gpu_device *device = launch->device;
    const struct tnd_clock *clock = tnd_clock_real();
    TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
    uint64_t begin = clock->now_ns(clock);
    TND_TRY(enqueue(launch, n_dims, global, local, NULL, error));
    TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
    *out_ns = (int64_t)(clock->now_ns(clock) - begin);
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_launch_time(struct tnd_gpu_launch *launch, int n_dims,
                                       const size_t *global, const size_t *local, int64_t *out_ns,
                                       struct tandem_error *error)
{
    const struct tnd_gpu_device *device = launch->device;
    bool is_empty = false;
    TND_TRY(check_range(launch, n_dims, global, local, &is_empty, error));
    if (is_empty) {
        *out_ns = 0;
        return TANDEM_OK;
    }
    if (!device->has_profiling) {
        return time_on_host(launch, n_dims, global, local, out_ns, error);
    }
    struct tnd_gpu_event *event = NULL;
    TND_TRY(enqueue(launch, n_dims, global, local, &event, error));
    enum tandem_status status =
        device->driver->event_ns(device->context, NULL, event, out_ns, error);
    device->driver->event_free(device->context, event);
    return status;
}
