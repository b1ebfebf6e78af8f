/* SPDX-License-Identifier: MIT
 * Products of experts (mul_mat_id), called by matmul.c, which checks node, task and memory. */
#ifndef TND_MATMUL_ID_H
#define TND_MATMUL_ID_H

#include "backends/cpu/kernels/kernels.h"
#include "tandem/backend.h"

/** Bytes of workspace that the node's stages share, and of scratch memory per worker. */
size_t tnd_cpu_mul_mat_id_workspace(const struct tandem_tensor *node, uint32_t task);
size_t tnd_cpu_mul_mat_id_scratch(const struct tandem_tensor *node, uint32_t task);

/** Runs QUANTIZE_X, MUL_MAT_Q, MUL_MAT_PACKED or NODE; called by all workers. Errors: ARGUMENT (an
 * index that is not an expert). */
enum tandem_status tnd_cpu_mul_mat_id_run(const struct tnd_cpu_kernels *kernels,
                                          const struct tandem_work *work,
                                          struct tandem_worker *worker);

#endif
