/* SPDX-License-Identifier: MIT
 * Graphs of launches: whether they pay off, and the time per launch with and without them. */
#include "backends/gpu/gpu_graphs.h"

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_tune_parts.h"
#include "base/clock.h"

enum {
    ITEMS = 16,
    LAUNCHES = 128,
    TURNS = 4,   /* the two alternate, so that disturbances affect both */
    UNTIMED = 3, /* untimed rounds per turn: the first compiles, the second creates graphs */
    TIMED = 3,
    CHANGES = 8
};

static bool use(struct tnd_gpu_device *device, bool on)
{
    const struct tnd_gpu_driver *driver = device->driver;
    return driver->use_graphs != NULL && driver->use_graphs(device->context, on);
}

void tnd_gpu_choose_graphs(struct tnd_gpu_device *device)
{
    const bool wanted =
        device->graphs == TND_GPU_GRAPHS_ON ||
        (device->graphs == TND_GPU_GRAPHS_MEASURED && device->matmul->tiles.graphs != 0);
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
        /* different arguments for each launch, some of which change between rounds, such as a
         * token's position */
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

/* Time per launch in microseconds, for each round; none if graphs are not available. */
static enum tandem_status run_turn(struct tnd_gpu_device *device, struct tnd_gpu_range range,
                                   bool in_graphs, struct tnd_gpu_tune_times *io_times,
                                   struct tandem_error *error)
{
    if (in_graphs != use(device, in_graphs)) {
        return TANDEM_OK;
    }
    for (int round = 0; round < UNTIMED + TIMED; round++) {
        int64_t ns = 0;
        TND_TRY(run_round(device, range, round, &ns, error));
        if (round >= UNTIMED) {
            io_times->us[io_times->n++] = (float)ns / (1000.0F * LAUNCHES);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_launches(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_device *device = t->device;
    const struct tnd_gpu_product told = {
        .type = TANDEM_TYPE_F32, .n = ITEMS, .end = ITEMS, .k = 1, .m = 1};
    const int n_candidates = device->driver->use_graphs != NULL ? 2 : 1;
    const float zeros[ITEMS] = {0};
    struct tnd_gpu_tune_times times[2] = {{.error = -1}, {.error = -1}};
    struct tnd_gpu_range range = {NULL, 0};
    tnd_gpu_tune_family(t, "launches", "graphs");
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_TUNE_Y, sizeof(zeros), &range, error));
    TND_TRY(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, range.buffer, 0, zeros,
                                  sizeof(zeros), NULL, error));
    for (int i = 0; i < n_candidates * TURNS; i++) {
        TND_TRY(run_turn(device, range, i % n_candidates == 1, &times[i % n_candidates], error));
    }
    for (int i = 0; i < n_candidates; i++) {
        struct tnd_gpu_tiles tiles = t->prior;
        tiles.graphs = i;
        TND_TRY(tnd_gpu_tune_tell(t, &tiles, &told, &times[i], error));
    }
    TND_TRY(tnd_gpu_tune_end(t, error));
    tnd_gpu_choose_graphs(device);
    return TANDEM_OK;
}
