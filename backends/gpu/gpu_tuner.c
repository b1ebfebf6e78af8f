/* SPDX-License-Identifier: MIT
 * The tuner of an open GPU backend, for programs that know no particular device. */
#include "backends/gpu/gpu_tune.h"
#include "backends/gpu/gpu_backend.h"
#include "backends/gpu/gpu_graphs.h"
#include "backends/tuner.h"
#include "base/tnd_status.h"

static bool tell(void *user, const struct tnd_gpu_tune_step *step)
{
    const struct tnd_tuner_options *options = user;
    const struct tnd_tuner_step told = {step->family,  step->text,  step->us,   step->gflops,
                                        step->is_best, step->index, step->count};
    return options->progress(options->user, &told);
}

enum tandem_status tnd_gpu_backend_tune(tandem_backend *backend,
                                        const struct tnd_tuner_options *options,
                                        struct tandem_error *error)
{
    const struct tnd_gpu_tune_options wanted = {.type = options->type,
                                                .progress = tell,
                                                .user = (void *)(uintptr_t)options,
                                                .without_saving = options->without_saving,
                                                .most_candidates = options->most_candidates};
    struct tnd_gpu_tiles tiles;
    TND_TRY(tnd_gpu_tune(tnd_gpu_device_of(backend), &wanted, &tiles, error));
#define TELL(member, least, most, what) options->found(options->user, #member, (int)tiles.member);
    TND_GPU_TILE_LIST(TELL)
#undef TELL
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_backend_launches(tandem_backend *backend, double *out_us,
                                            double *out_graph_us, uint32_t *out_count,
                                            struct tandem_error *error)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    struct tnd_gpu_launch_costs costs;
    pthread_mutex_lock(&device->submit_lock);
    const enum tandem_status status = tnd_gpu_launch_costs(device, &costs, error);
    tnd_gpu_choose_graphs(device);
    pthread_mutex_unlock(&device->submit_lock);
    TND_TRY(status);
    *out_us = (double)costs.launch_ns * 1e-3;
    *out_graph_us = (double)costs.graph_ns * 1e-3;
    *out_count = costs.count;
    return TANDEM_OK;
}
