/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend: what cpu_backend.c calls for a mul_mat node. All tasks honour
 * the row range of the work (rows of W); each element of the result is made by one worker in one
 * fixed order of K, so its bits do not depend on thread count, chunks or row ranges. */
#ifndef TND_CPU_MATMUL_H
#define TND_CPU_MATMUL_H

#include "backends/cpu/kernels/kernels.h"
#include "tandem/backend.h"

/** OK when the task can run for this mul_mat node; else UNSUPPORTED_BACKEND with the reason. */
enum tandem_status tnd_cpu_mul_mat_supports(const struct tnd_cpu_kernels *kernels,
                                            const struct tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error);

/** Bytes that the stages of the node share when `task` is among them. */
size_t tnd_cpu_mul_mat_workspace(const struct tandem_tensor *node, uint32_t task);

/** Bytes of scratch that each worker needs. */
size_t tnd_cpu_mul_mat_scratch(const struct tandem_tensor *node, uint32_t task);

/** Whether the task leaves of the activations of one mul_mat node what it would of the other's. */
bool tnd_cpu_mul_mat_is_same_x(const struct tandem_tensor *a, const struct tandem_tensor *b,
                               uint32_t task);

/** OK when there are kernels for a packed copy of the weight. */
enum tandem_status tnd_cpu_can_pack(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *weight, struct tandem_error *error);

/** Runs any of the tasks; called by all workers. MUL_MAT_PACKED uses the packed copy that the work
 *  brings along; without one the rows, whose result has the same bits. */
enum tandem_status tnd_cpu_mul_mat_run(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_work *work,
                                       struct tandem_worker *worker);

#endif
