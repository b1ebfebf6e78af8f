/* SPDX-License-Identifier: MIT
 * Indices of get_rows, gather and products of experts, which may be out of range. */
#ifndef TND_GPU_INDICES_H
#define TND_GPU_INDICES_H

#include "backends/gpu/gpu_launch.h"
#include "tandem/tensor.h"

/** Checks the indices of a node, which must be in `least` .. `count` - 1, if the host has them;
 * else the device's record is read at the next sync. Under submit_lock. Errors: ARGUMENT. */
enum tandem_status tnd_gpu_indices_look(struct tnd_gpu_device *device, const tandem_tensor *node,
                                        const tandem_tensor *ids, int64_t least, int64_t count,
                                        struct tandem_error *error);

/** The buffer in which kernels record the first index that is out of range (fault.clh). Under
 * submit_lock. Errors: DEVICE_MEMORY, DEVICE. */
enum tandem_status tnd_gpu_indices_fault(struct tnd_gpu_device *device,
                                         struct tnd_gpu_range *out_range,
                                         struct tandem_error *error);

/** Fails with ARGUMENT, once, if completed work has met an index that is out of range; else OK.
 * Errors: also DEVICE. Any thread, after a sync. */
enum tandem_status tnd_gpu_indices_check(struct tnd_gpu_device *device, struct tandem_error *error);

#endif
