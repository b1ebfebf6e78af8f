/* SPDX-License-Identifier: MIT
 * Shared by the gpu_ops*.c files only: refusals, ranges of operands, launches over flat counts. A
 * submit function receives a supported node with at least one value. */
#ifndef TND_GPU_OPS_PARTS_H
#define TND_GPU_OPS_PARTS_H

#include <stdatomic.h>

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_memory.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/backend.h"

typedef enum tandem_status tnd_gpu_op_supports_fn(const struct tnd_gpu_device *device,
                                                  const tandem_tensor *node,
                                                  struct tandem_error *error);
typedef enum tandem_status tnd_gpu_op_submit_fn(struct tnd_gpu_device *device,
                                                const struct tandem_work *work,
                                                struct tandem_error *error);

/* gpu_ops_rows.c */
tnd_gpu_op_submit_fn tnd_gpu_binary; /* ADD, SUB, MUL, DIV */
tnd_gpu_op_submit_fn tnd_gpu_unary;  /* SCALE ... RELU, DIAG_MASK_INF */
tnd_gpu_op_submit_fn tnd_gpu_norm;   /* RMS_NORM, NORM */
tnd_gpu_op_submit_fn tnd_gpu_rope;
tnd_gpu_op_submit_fn tnd_gpu_soft_max;

/* gpu_ops_copy.c */
tnd_gpu_op_supports_fn tnd_gpu_get_rows_supports;
tnd_gpu_op_submit_fn tnd_gpu_get_rows;
tnd_gpu_op_supports_fn tnd_gpu_copy_supports; /* CPY, CONT, CONCAT */
tnd_gpu_op_submit_fn tnd_gpu_copy;

/* gpu_experts.c */
tnd_gpu_op_supports_fn tnd_gpu_mul_mat_id_supports;
tnd_gpu_op_submit_fn tnd_gpu_mul_mat_id;
tnd_gpu_op_supports_fn tnd_gpu_top_k_supports;
tnd_gpu_op_submit_fn tnd_gpu_top_k;
tnd_gpu_op_supports_fn tnd_gpu_gather_supports;
tnd_gpu_op_submit_fn tnd_gpu_gather;
tnd_gpu_op_submit_fn tnd_gpu_weighted_sum;

/* gpu_ops_tiles.c */
tnd_gpu_op_supports_fn tnd_gpu_attention_supports;
tnd_gpu_op_submit_fn tnd_gpu_attention;
tnd_gpu_op_submit_fn tnd_gpu_mul_mat_views;

/* gpu_sample.c */
tnd_gpu_op_submit_fn tnd_gpu_sample;

/* gpu_work.c */
tnd_gpu_op_supports_fn tnd_gpu_work_supports;
tnd_gpu_op_submit_fn tnd_gpu_work;
void tnd_gpu_work_close(struct tnd_gpu_device *device);

/** State of a device: of operations with indices, and of sources made at run time. */
struct tnd_gpu_ops {
    struct tnd_gpu_generated *generated; /* under submit_lock */

    struct tnd_gpu_buffer *fault; /* record of the first index out of range; NULL: not used yet */
    bool is_cleared;              /* the record is empty; under submit_lock */
    atomic_bool is_unchecked;     /* work that may have written to it was submitted */
};

/** Refuses a node: "backend opencl: <operation> <reason>". */
enum tandem_status tnd_gpu_ops_refuse(const struct tnd_gpu_device *device,
                                      const tandem_tensor *node, const char *reason,
                                      struct tandem_error *error);

/** The range of the i-th operand; `other` if there is none, or it has no values (then it is not
 * read). */
enum tandem_status tnd_gpu_ops_find(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    int i, struct tnd_gpu_range other,
                                    struct tnd_gpu_range *out_range, struct tandem_error *error);

/** Work-items per group: GROUP of the kernels. */
size_t tnd_gpu_ops_group(const struct tnd_gpu_device *device);

/** Begins a launch of a kernel of `source` for weights of 1 + `type` (0: none). */
enum tandem_status tnd_gpu_ops_begin(struct tnd_gpu_launch *launch, struct tnd_gpu_device *device,
                                     enum tnd_gpu_source source, int type, int rows,
                                     struct tandem_error *error);

/** Runs a bound kernel over at least `n` work items, or over `n` groups. */
enum tandem_status tnd_gpu_ops_run_items(struct tnd_gpu_launch *launch, uint64_t n,
                                         struct tandem_error *error);
enum tandem_status tnd_gpu_ops_run_groups(struct tnd_gpu_launch *launch, uint64_t n,
                                          struct tandem_error *error);

#endif
