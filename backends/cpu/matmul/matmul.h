/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend, as called by cpu_backend.c for mul_mat nodes. All tasks
 * respect the work's row range (rows of W); each element of the result is computed by one worker in
 * one fixed order of K, so its bits do not depend on thread count, chunks or row ranges. */
#ifndef TND_CPU_MATMUL_H
#define TND_CPU_MATMUL_H

#include "backends/cpu/kernels/kernels.h"
#include "tandem/backend.h"

/** OK if the task supports this mul_mat node; else UNSUPPORTED_BACKEND with the reason. */
enum tandem_status tnd_cpu_mul_mat_supports(const struct tnd_cpu_kernels *kernels,
                                            const struct tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error);

/** Bytes of workspace that the node's stages share if `task` is one of them. */
size_t tnd_cpu_mul_mat_workspace(const struct tandem_tensor *node, uint32_t task);

/** Bytes of scratch memory per worker. */
size_t tnd_cpu_mul_mat_scratch(const struct tandem_tensor *node, uint32_t task);

/** Whether the task prepares the activations of both mul_mat nodes in the same way. */
bool tnd_cpu_mul_mat_is_same_x(const struct tandem_tensor *a, const struct tandem_tensor *b,
                               uint32_t task);

/** OK if there are kernels for a packed copy of the weight. */
enum tandem_status tnd_cpu_can_pack(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *weight, struct tandem_error *error);

/** Runs any of the tasks; called by all workers. MUL_MAT_PACKED uses the work's packed copy, or
 * without one the original rows, with the same bits. */
enum tandem_status tnd_cpu_mul_mat_run(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_work *work,
                                       struct tandem_worker *worker);

#endif
