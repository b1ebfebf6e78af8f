/* SPDX-License-Identifier: MIT
 * Matrix products on a device: dequantising into the workspace (DEQUANTIZE_W), F32 products
 * (MUL_MAT_F32, by CLBlast or our own kernel), and fused products of plain MUL_MAT nodes (NODE). */
#ifndef TND_GPU_MATMUL_H
#define TND_GPU_MATMUL_H

#include "backends/gpu/gpu_device.h"
#include "tandem/backend.h"

/** State of a device (tile configuration): fills device->matmul; NULL may be enough. Called once,
 *  after programs and memory work. */
enum tandem_status tnd_gpu_matmul_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_matmul_close(struct tnd_gpu_device *device);

/** OK when the task of this MUL_MAT node is run by tnd_gpu_matmul_submit; else UNSUPPORTED_BACKEND
 *  with the reason. Pure. */
enum tandem_status tnd_gpu_matmul_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                           enum tandem_task task, struct tandem_error *error);
/** Bytes of the workspace that the task shares with other stages; 0: none. */
size_t tnd_gpu_matmul_workspace(struct tnd_gpu_device *device, const tandem_tensor *node,
                                enum tandem_task task);
/** Puts the work into the queue. Under submit_lock. */
enum tandem_status tnd_gpu_matmul_submit(struct tnd_gpu_device *device,
                                         const struct tandem_work *work,
                                         struct tandem_error *error);

#endif
