/* SPDX-License-Identifier: MIT
 * The cost of launches, and the choice that follows from it. */
#include "backends/gpu/gpu_graphs.h"

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "base/clock.h"

enum { ITEMS = 16, LAUNCHES = 128, ROUNDS = 6, TURNS = 2, CHANGES = 8 };

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

/* The least of some rounds; INT32_MAX stays where there are no graphs. */
static enum tandem_status measure(struct tnd_gpu_device *device, struct tnd_gpu_range range,
                                  bool with_graphs, int32_t *io_ns, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    if (with_graphs != use(device, with_graphs)) {
        return TANDEM_OK;
    }
    for (int round = 0; round < ROUNDS && status == TANDEM_OK; round++) {
        int64_t ns = 0; /* the first rounds compile and make graphs */
        status = run_round(device, range, round, &ns, error);
        ns = ns / LAUNCHES > 0 ? ns / LAUNCHES : 1;
        *io_ns = status == TANDEM_OK && ns < *io_ns ? (int32_t)ns : *io_ns;
    }
    (void)use(device, false);
    return status;
}

enum tandem_status tnd_gpu_launch_costs(struct tnd_gpu_device *device,
                                        struct tnd_gpu_launch_costs *out,
                                        struct tandem_error *error)
{
    struct tnd_gpu_range range = {NULL, 0};
    const float zeros[ITEMS] = {0};
    int32_t ns[2] = {INT32_MAX, INT32_MAX};
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_TUNE_Y, sizeof(zeros), &range, error));
    TND_TRY(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, range.buffer, 0, zeros,
                                  sizeof(zeros), NULL, error));
    for (int i = 0; i < 2 * TURNS; i++) {
        TND_TRY(measure(device, range, i % 2 == 1, &ns[i % 2], error));
    }
    for (int i = 0; i < 2; i++) {
        ns[i] = ns[i] == INT32_MAX               ? 0
                : ns[i] < TND_GPU_LAUNCH_NS_MOST ? ns[i]
                                                 : TND_GPU_LAUNCH_NS_MOST;
    }
    *out = (struct tnd_gpu_launch_costs){ns[0], ns[1], TURNS * ROUNDS * LAUNCHES};
    return TANDEM_OK;
}
