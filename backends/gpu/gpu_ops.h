/* SPDX-License-Identifier: MIT
 * Every operation but plain matrix products on a device, task NODE: elementwise, norms, rope,
 * soft_max, copies, attention, and MUL_MAT with operands that are views, batched or strided. */
#ifndef TND_GPU_OPS_H
#define TND_GPU_OPS_H

#include "backends/gpu/gpu_device.h"
#include "tandem/backend.h"

/** State of a device: fills device->ops; NULL may be enough. */
enum tandem_status tnd_gpu_ops_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_ops_close(struct tnd_gpu_device *device);

/** OK when the node is run by tnd_gpu_ops_submit; else UNSUPPORTED_BACKEND with the reason.
 *  Pure. */
enum tandem_status tnd_gpu_ops_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                        struct tandem_error *error);
/** Puts the work into the queue. Under submit_lock. */
enum tandem_status tnd_gpu_ops_submit(struct tnd_gpu_device *device, const struct tandem_work *work,
                                      struct tandem_error *error);

#endif
