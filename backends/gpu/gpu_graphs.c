/* SPDX-License-Identifier: MIT
 * The cost of launches, and the choice that follows from it. */
#include "backends/gpu/gpu_graphs.h"

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "base/clock.h"

enum { ITEMS = 16, LAUNCHES = 128, ROUNDS = 6, CHANGES = 8 };

static bool use(struct tnd_gpu_device *device, bool on)
{
    const struct tnd_gpu_driver *driver = device->driver;
    return driver->use_graphs != NULL && driver->use_graphs(device->context, on);
}

void tnd_gpu_choose_graphs(struct tnd_gpu_device *device)
{
    const struct tnd_gpu_tiles *numbers = &device->matmul->tiles;
    const bool is_faster = numbers->graph_ns > 0 && numbers->graph_ns < numbers->launch_ns;
    const bool wanted = device->graphs == TND_GPU_GRAPHS_ON ||
                        (device->graphs == TND_GPU_GRAPHS_MEASURED && is_faster);
    device->uses_graphs = use(device, wanted);
}

static enum tandem_status run_round(struct tnd_gpu_device *device, struct tnd_gpu_range range,
                                    int round, int64_t *out_ns, struct tandem_error *error)
{
    const struct tnd_clock *clock = tnd_clock_real();
    const size_t items = ITEMS;
    struct tnd_gpu_launch launch;
    TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
    const uint64_t begin = clock->now_ns(clock);
    for (int i = 0; i < LAUNCHES; i++) {
        /* arguments of its own, some of which change, as the place of a token does */
        const int number = LAUNCHES * (i % CHANGES == 0 ? round : 0) + i;
        TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, error));
        TND_TRY(tnd_gpu_bind_smoke(&launch, range, range, ITEMS * sizeof(float), 0.0F, number,
                                   ITEMS, error));
        TND_TRY(tnd_gpu_launch_run(&launch, 1, &items, &items, error));
    }
    TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
    *out_ns = (int64_t)(clock->now_ns(clock) - begin);
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_launch_cost(struct tnd_gpu_device *device, bool with_graphs,
                                       int32_t *out_ns, struct tandem_error *error)
{
    struct tnd_gpu_range range = {NULL, 0};
    const float zeros[ITEMS] = {0};
    int64_t least = INT64_MAX;
    *out_ns = 0;
    if (with_graphs != use(device, with_graphs)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_TUNE_Y, sizeof(zeros), &range, error));
    TND_TRY(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, range.buffer, 0, zeros,
                                  sizeof(zeros), NULL, error));
    for (int round = 0; round < ROUNDS; round++) { /* the first of them compile and make graphs */
        int64_t ns = 0;
        TND_TRY(run_round(device, range, round, &ns, error));
        least = ns < least ? ns : least;
    }
    (void)use(device, false);
    least = least / LAUNCHES > 0 ? least / LAUNCHES : 1;
    *out_ns = least < TND_GPU_LAUNCH_NS_MOST ? (int32_t)least : TND_GPU_LAUNCH_NS_MOST;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_launches(struct tnd_gpu_device *device, struct tandem_error *error)
{
    struct tnd_gpu_tiles *numbers = &device->matmul->tiles;
    int32_t plain[2] = {0};
    int32_t graph[2] = {0};
    for (int i = 0; i < 2; i++) {
        TND_TRY(tnd_gpu_launch_cost(device, false, &plain[i], error));
        TND_TRY(tnd_gpu_launch_cost(device, true, &graph[i], error));
    }
    numbers->launch_ns = plain[0] < plain[1] ? plain[0] : plain[1];
    numbers->graph_ns = graph[0] < graph[1] ? graph[0] : graph[1];
    tnd_gpu_choose_graphs(device);
    return TANDEM_OK;
}
