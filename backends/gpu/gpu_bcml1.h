/* SPDX-License-Identifier: MIT
 * Products of BCML1 weights that are on the device in panels (bcml1_panels.h). */
#ifndef TND_GPU_BCML1_H
#define TND_GPU_BCML1_H

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "tandem/backend.h"

/** The panels of a resident weight {k, n}, made at the first call; the original rows are then
 * freed until tnd_gpu_original needs them. Errors: STATE if it is not resident or cannot be stored
 * in panels, DEVICE_MEMORY, DEVICE. Under submit_lock. */
enum tandem_status tnd_gpu_bcml1_find(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                      struct tandem_place place, struct tnd_gpu_range *out_range,
                                      struct tandem_error *error);

/** Makes the panels of a weight that tnd_gpu_prepare has made resident. OK if there is no memory
 * for them, and for weights of other types. Errors: DEVICE. */
enum tandem_status tnd_gpu_bcml1_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                         struct tnd_gpu_block *block, struct tandem_error *error);

/** Finds the BCML1 weight of a work on the device: in panels, or in rows as Q4_1. Under
 * submit_lock. */
enum tandem_status tnd_gpu_bcml1_weight(struct tnd_gpu_device *device,
                                        const struct tandem_work *work,
                                        struct tnd_gpu_range *out_range, bool *out_in_panels,
                                        struct tandem_error *error);

/** Submits DEQUANTIZE_W (y is the workspace) or NODE with weights in panels. Under submit_lock. */
enum tandem_status tnd_gpu_bcml1_run(struct tnd_gpu_device *device, uint32_t task,
                                     const struct tnd_gpu_product *product,
                                     struct tandem_error *error);

#endif
