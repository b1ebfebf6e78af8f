/* SPDX-License-Identifier: MIT
 * All operations except plain matrix products on a device, task NODE: elementwise, norms, rope,
 * soft_max, copies, attention, and MUL_MAT with operands that are views, batched or strided. */
#ifndef TND_GPU_OPS_H
#define TND_GPU_OPS_H

#include "backends/gpu/gpu_device.h"
#include "tandem/backend.h"

/** Creates a device's state, device->ops; it may stay NULL. */
enum tandem_status tnd_gpu_ops_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_ops_close(struct tnd_gpu_device *device);

/** OK if tnd_gpu_ops_submit can run the node; else UNSUPPORTED_BACKEND with the reason. Pure. */
enum tandem_status tnd_gpu_ops_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                        struct tandem_error *error);
/** Submits the work. Under submit_lock. */
enum tandem_status tnd_gpu_ops_submit(struct tnd_gpu_device *device, const struct tandem_work *work,
                                      struct tandem_error *error);

#endif
