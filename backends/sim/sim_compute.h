/* SPDX-License-Identifier: MIT
 * The arithmetic of the simulated device, in double precision on the caller's thread. Knows no
 * time. */
#ifndef TND_SIM_COMPUTE_H
#define TND_SIM_COMPUTE_H

#include "tandem/backend.h"

/* A buffer for one row of weights as floats; grows. */
struct tnd_sim_row {
    float *values;
    int64_t n;
};

/** OK when the task can be computed for the node, else UNSUPPORTED_BACKEND with the reason. */
enum tandem_status tnd_sim_compute_supports(const tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error);
/** Bytes of workspace of the task. */
size_t tnd_sim_compute_workspace(const tandem_tensor *node, uint32_t task);
/** Computes the rows of the work. Errors: MEMORY, those of tnd_eval_ref_node. */
enum tandem_status tnd_sim_compute(const struct tandem_work *work, struct tnd_sim_row *row,
                                   struct tandem_error *error);
/** Falsifies one value of the work's result, by a large amount. */
void tnd_sim_spoil(const struct tandem_work *work);

#endif
