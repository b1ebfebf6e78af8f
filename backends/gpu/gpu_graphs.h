/* SPDX-License-Identifier: MIT
 * What a launch costs on a device, by itself and in a graph of launches, and whether graphs are
 * used: where they were measured to be faster. */
#ifndef TND_GPU_GRAPHS_H
#define TND_GPU_GRAPHS_H

#include "backends/gpu/gpu_device.h"

/** Uses graphs or not: by the setting, else by the numbers of the device (struct tnd_gpu_tiles),
 *  not without numbers. */
void tnd_gpu_choose_graphs(struct tnd_gpu_device *device);

/** Measures a row of small kernels, of which every eighth has other arguments than the last time,
 *  with graphs or without them: nanoseconds of one launch, on the host and the device together, the
 *  least of some rounds. Graphs are off afterwards. 0: the device has no graphs. Under the lock
 *  of submits; nothing else should run there. Errors: those of launches. */
enum tandem_status tnd_gpu_launch_cost(struct tnd_gpu_device *device, bool with_graphs,
                                       int32_t *out_ns, struct tandem_error *error);

/** Measures both ways in turns, keeps the numbers in those of the device, and chooses. */
enum tandem_status tnd_gpu_tune_launches(struct tnd_gpu_device *device, struct tandem_error *error);

#endif
