/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend: what cpu_backend.c calls for a mul_mat node. All tasks honour
 * the row range of the work (rows of W); each element of the result is made by one worker in one
 * fixed order of K, so its bits do not depend on thread count, chunks or row ranges. */
#ifndef TND_CPU_MATMUL_H
#define TND_CPU_MATMUL_H

#include "tandem/backend.h"

/** OK when the task can run for this mul_mat node; else UNSUPPORTED_BACKEND with the reason. */
enum tandem_status tnd_cpu_mul_mat_supports(const struct tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error);

/** Bytes that the stages of the node share when `task` is among them. */
size_t tnd_cpu_mul_mat_workspace(const struct tandem_tensor *node, uint32_t task);

/** Bytes of scratch that each worker needs. */
size_t tnd_cpu_mul_mat_scratch(const struct tandem_tensor *node, uint32_t task);

/** Whether QUANTIZE_X of one mul_mat node leaves what that of the other would. */
bool tnd_cpu_mul_mat_is_same_x(const struct tandem_tensor *a, const struct tandem_tensor *b);

/** Runs QUANTIZE_X, MUL_MAT_Q, DEQUANTIZE_W, MUL_MAT_F32 or NODE; called by all workers. */
enum tandem_status tnd_cpu_mul_mat_run(const struct tandem_work *work,
                                       struct tandem_worker *worker);

/** OK when this machine has kernels for a packed copy of the weight. */
enum tandem_status tnd_cpu_can_pack(const struct tandem_tensor *weight, struct tandem_error *error);

/** Runs MUL_MAT_PACKED: with the packed copy, or when nobody has made one with the rows, whose
 *  result has the same bits. `weights` may be NULL. */
struct tnd_packed_weights;
enum tandem_status tnd_cpu_mul_mat_packed_run(struct tnd_packed_weights *weights,
                                              const struct tandem_work *work,
                                              struct tandem_worker *worker);

#endif
