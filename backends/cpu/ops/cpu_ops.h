/* SPDX-License-Identifier: MIT
 * Drivers of all operations except matrix products: each traverses the rows of a node and calls the
 * row kernels of vec.h. A row (or an element) is computed by one worker in one way, so results do
 * not depend on thread count or chunks. */
#ifndef TND_CPU_OPS_H
#define TND_CPU_OPS_H

#include "backends/cpu/kernels/kernels.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/backend.h"

/** The CPU backend's vtable, see backend-list.h. */
extern const struct tandem_backend_api tnd_backend_cpu;

/** Computes a node; called by all workers of a stage. */
typedef enum tandem_status tnd_cpu_op_fn(const struct tnd_cpu_kernels *kernels,
                                         const struct tandem_tensor *node,
                                         struct tandem_worker *worker);

/* One function per family of operations. */
#define TND_CPU_FUNCTION(family) tnd_cpu_op_fn tnd_cpu_##family;
TANDEM_OP_FAMILIES(TND_CPU_FUNCTION)
#undef TND_CPU_FUNCTION

/** Whether the chain is row-wise on one shape; and its driver. */
bool tnd_cpu_fuses(const struct tandem_tensor *const *nodes, int n_nodes);
void tnd_cpu_fused(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                   struct tandem_worker *worker);

/* Single rows of operations. `y` may be `a`; for binary ones also `b`, unless it is repeated. */

/** b: b_values that are repeated along the row's n values. */
void tnd_cpu_binary_row(const struct tnd_cpu_kernels *kernels, enum tandem_op op, const float *a,
                        const float *b, int64_t b_values, float *y, int64_t n);
void tnd_cpu_unary_row(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                       const float *a, float *y, int64_t n);
void tnd_cpu_norm_row(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                      const float *a, float *y, int64_t n);

/** Bytes of scratch memory per worker. */
size_t tnd_cpu_rope_scratch(const struct tandem_tensor *node);
size_t tnd_cpu_attention_scratch(const struct tandem_tensor *node);
size_t tnd_cpu_conv_int8_scratch(const struct tandem_tensor *node);
size_t tnd_cpu_product_int8_scratch(const struct tandem_tensor *node);
size_t tnd_cpu_recurrent_scratch(const struct tandem_tensor *node);
size_t tnd_cpu_sample_scratch(const struct tandem_tensor *node);

/** Bytes of workspace that lets workers split the keys of a single token; 0: nothing to split. */
size_t tnd_cpu_attention_workspace(const struct tandem_tensor *node);
/** tnd_cpu_attention, but splits the keys of a few queries among the workers if the work has that
 * workspace. Bit-identical. */
enum tandem_status tnd_cpu_attention_split(const struct tnd_cpu_kernels *kernels,
                                           const struct tandem_work *work,
                                           struct tandem_worker *worker);

/** Bytes of scratch memory of any node that is not a matrix product. */
size_t tnd_cpu_node_scratch(const struct tandem_tensor *node);

/** Computes any node with the given kernels. */
enum tandem_status tnd_cpu_node_run(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *node, struct tandem_worker *worker);

/** Values per item for operations that need not respect rows. */
enum { TND_CPU_SPAN = 1024 };

/** Indices of a row, from its number in the order of ne. */
struct tnd_row {
    int64_t i1, i2, i3;
};

static inline struct tnd_row tnd_row_of(const struct tandem_tensor *tensor, int64_t row)
{
    int64_t matrix = row / tensor->ne[1];
    TND_ASSERT(0 <= row && matrix < tensor->ne[2] * tensor->ne[3]);
    return (struct tnd_row){row % tensor->ne[1], matrix % tensor->ne[2], matrix / tensor->ne[2]};
}

static inline char *tnd_row_at(const struct tandem_tensor *tensor, int64_t i1, int64_t i2,
                               int64_t i3)
{
    return (char *)tensor->data + (size_t)i1 * tensor->nb[1] + (size_t)i2 * tensor->nb[2] +
           (size_t)i3 * tensor->nb[3];
}

static inline float *tnd_row_f32(const struct tandem_tensor *tensor, struct tnd_row row)
{
    return (float *)(void *)tnd_row_at(tensor, row.i1, row.i2, row.i3);
}

/** Rows per chunk: several chunks per worker, but about 2,000 values at least, so that a chunk
 * takes longer than handing it out. */
static inline int64_t tnd_rows_chunk(int64_t n_rows, int64_t row_values, int n_workers)
{
    int64_t fair = n_rows / ((int64_t)n_workers * 4);
    int64_t least = 2048 / (row_values > 0 ? row_values : 1);
    int64_t chunk = fair > least ? fair : least;
    return chunk > 0 ? chunk : 1;
}

#endif
