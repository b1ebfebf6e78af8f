/* SPDX-License-Identifier: MIT
 * Products of BCML1 weights that lie on the device in panels (bcml1_panels.h). */
#ifndef TND_CL_BCML1_H
#define TND_CL_BCML1_H

#include "backends/opencl/cl_matmul_state.h"
#include "tandem/backend.h"

/** The panels of a resident weight {k, n}, made at the first call. Errors: STATE when it is not
 *  resident or cannot lie in panels, DEVICE_MEMORY, DEVICE. Under submit_lock. */
enum tandem_status tnd_cl_bcml1_find(struct tnd_cl_device *device, const tandem_tensor *weight,
                                     struct tnd_cl_range *out_range, struct tandem_error *error);

/** Runs the work of a MUL_MAT node with BCML1 weights, if these are resident and their panels fit
 *  into the device's memory. Otherwise *out_done is false and nothing has happened: the weights are
 *  read in rows, as Q4_1. `product` holds the operands as found for the task (DEQUANTIZE_W: y is
 *  the workspace). Under submit_lock. */
enum tandem_status tnd_cl_bcml1_submit(struct tnd_cl_device *device, const struct tandem_work *work,
                                       const struct tnd_cl_product *product, bool *out_done,
                                       struct tandem_error *error);

#endif
