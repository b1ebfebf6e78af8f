/* SPDX-License-Identifier: MIT
 * Matrix products on a device: dequantising into the workspace (DEQUANTIZE_W), F32 products
 * (MUL_MAT_F32, by CLBlast or our own kernel), and fused products of plain MUL_MAT nodes (NODE). */
#ifndef TND_GPU_MATMUL_H
#define TND_GPU_MATMUL_H

#include "backends/gpu/gpu_device.h"
#include "tandem/backend.h"

/** Creates a device's state (tile numbers), device->matmul; it may stay NULL. Called once, when
 * programs and memory are ready. */
enum tandem_status tnd_gpu_matmul_open(struct tnd_gpu_device *device, struct tandem_error *error);
void tnd_gpu_matmul_close(struct tnd_gpu_device *device);

/** OK if tnd_gpu_matmul_submit can run the task of this MUL_MAT node; else UNSUPPORTED_BACKEND
 * with the reason. Pure. */
enum tandem_status tnd_gpu_matmul_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                           enum tandem_task task, struct tandem_error *error);
/** Bytes of workspace that the task shares with other stages; 0: none. */
size_t tnd_gpu_matmul_workspace(struct tnd_gpu_device *device, const tandem_tensor *node,
                                enum tandem_task task);
/** Submits the work. Under submit_lock. */
enum tandem_status tnd_gpu_matmul_submit(struct tnd_gpu_device *device,
                                         const struct tandem_work *work,
                                         struct tandem_error *error);

#endif
