/* SPDX-License-Identifier: MIT
 * What a launch costs on a device, by itself and in a graph of launches, and whether graphs are
 * used: where they were measured to be faster. */
#ifndef TND_GPU_GRAPHS_H
#define TND_GPU_GRAPHS_H

#include "backends/gpu/gpu_device.h"

/** Uses graphs or not: by the setting, else by the numbers of the device (struct tnd_gpu_tiles),
 *  not without numbers. */
void tnd_gpu_choose_graphs(struct tnd_gpu_device *device);

/** What a launch costs, by itself and in a graph (0: the device has none), and how many launches of
 *  either kind were timed. */
struct tnd_gpu_launch_costs {
    int32_t launch_ns, graph_ns;
    uint32_t count;
};

/** Measures a row of small kernels both ways in turns: nanoseconds of one launch, on the host and
 *  the device together, the least of some rounds. Every eighth has other arguments than the last
 *  time. Graphs are off afterwards. Under the lock of submits; nothing else should run on the
 *  device. Errors: those of launches. */
enum tandem_status tnd_gpu_launch_costs(struct tnd_gpu_device *device,
                                        struct tnd_gpu_launch_costs *out,
                                        struct tandem_error *error);

#endif
