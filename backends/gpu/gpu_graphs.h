/* SPDX-License-Identifier: MIT
 * Whether launches on a device use graphs: if they were measured to be faster. */
#ifndef TND_GPU_GRAPHS_H
#define TND_GPU_GRAPHS_H

#include "backends/gpu/gpu_device.h"

/** Switches graphs on or off: by the setting, else by the device's kernel number `graphs`. */
void tnd_gpu_choose_graphs(struct tnd_gpu_device *device);

#endif
