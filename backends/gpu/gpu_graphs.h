/* SPDX-License-Identifier: MIT
 * Whether launches of a device go in graphs: where they were measured to be faster. */
#ifndef TND_GPU_GRAPHS_H
#define TND_GPU_GRAPHS_H

#include "backends/gpu/gpu_device.h"

/** Uses graphs or not: by the setting, else by the device's number `graphs`. */
void tnd_gpu_choose_graphs(struct tnd_gpu_device *device);

#endif
