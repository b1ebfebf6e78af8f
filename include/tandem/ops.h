/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * Builders. Each takes operands and returns the tensor that will hold the result; nothing is
 * computed until a graph with it is computed. Each checks its operands at once: on a mistake it
 * records SHAPE, TYPE or ARGUMENT (a sentence with the operation's name and all shapes) in the
 * context and returns NULL, and every builder given NULL returns NULL. So a chain of builders needs
 * only one check at its end: tandem_graph_finish. Besides the errors that a builder documents, each
 * may record ARGUMENT (an operand is NULL, or an uncomputed result of another context), OVERFLOW
 * and MEMORY.
 *
 * Unless said otherwise operands and results are F32, results are new, contiguous tensors of the
 * same shape as the first operand, and operands may be strided views whose rows are dense (nb[0] is
 * the size of one value). One thread at a time per context. Operands from another context must have
 * values already (leaves, views of leaves): they are only read. */
#ifndef TANDEM_OPS_H
#define TANDEM_OPS_H

#include "tandem/op-list.h"
#include "tandem/tensor.h"

TANDEM_BEGIN_C

/** What a node does. Numbers are not pinned; names are. */
enum tandem_op {
#define TANDEM_OP_ENUM(name, ...) TANDEM_OP_##name,
    TANDEM_OP_LIST(TANDEM_OP_ENUM)
#undef TANDEM_OP_ENUM
        TANDEM_OP_COUNT
};

/** Operation that makes the tensor; TANDEM_OP_NONE for a leaf and for NULL. Never fails. Any
 *  thread. */
TANDEM_API enum tandem_op tandem_tensor_op(const tandem_tensor *tensor);
/** "mul_mat" and the like; "unknown" for a number that is no operation. Static storage. Never
 *  fails. Any thread. */
TANDEM_API const char *tandem_op_name(enum tandem_op op);

/* ---- views: no computation, share the memory of `a` ---- */

/** A part of `a`: `n_dims` extents `ne`, strides `nb` in bytes for dimensions 1.. (nb[0] of the
 * array is that of dimension 1; NULL: dense), beginning `offset_bytes` after the start of `a`. Must
 * lie inside `a`. One thread at a time per context. Errors: SHAPE, ARGUMENT (a stride or offset
 * that is no multiple of a block). */
TANDEM_API tandem_tensor *tandem_view(tandem_context *context, tandem_tensor *a, int n_dims,
                                      const int64_t *ne, const size_t *nb, size_t offset_bytes);
/** The same values in the same order with other extents. `a` is contiguous, the counts are equal.
 * One thread at a time per context. Errors: SHAPE. */
TANDEM_API tandem_tensor *tandem_reshape(tandem_context *context, tandem_tensor *a, int n_dims,
                                         const int64_t *ne);
/** Dimension i of `a` becomes dimension axes[i] of the result. `axes` is a permutation of 0..3.
 *  Quantised rows stay in dimension 0. One thread at a time per context. Errors: ARGUMENT, TYPE. */
TANDEM_API tandem_tensor *tandem_permute(tandem_context *context, tandem_tensor *a, int axis0,
                                         int axis1, int axis2, int axis3);
/** Exchanges dimensions 0 and 1. `a` is not quantised. One thread at a time per context. Errors:
 *  TYPE. */
TANDEM_API tandem_tensor *tandem_transpose(tandem_context *context, tandem_tensor *a);

/* ---- linear algebra ---- */

/** Rows of a matrix by index. `w`: {K, V}, any type. `ids`: I32 {M}, each in 0..V-1 (an index
 *  outside fails the computation with ARGUMENT). Result {K, M}: F32, or I32 when `w` is. One thread
 *  at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_get_rows(tandem_context *context, tandem_tensor *w,
                                          tandem_tensor *ids);
/** Y = X * W^T. `w`: {K, N, a, b}, any type but I32, rows dense. `x`: F32 {K, M, c, d}, rows dense,
 * c a multiple of a and d of b: matrix i of `x` meets matrix i / (c / a) of `w`. Result {N, M, c,
 * d}. The only operation with profiles. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_mul_mat(tandem_context *context, tandem_tensor *w,
                                         tandem_tensor *x);

/* ---- experts: products whose weights each token chooses ---- */

/** One product for each token and each expert that it uses: Y[:, u, m] = W[ids[u, m]] X[:, u, m].
 * `w`: {K, N, experts}, any type but I32, rows dense. `x`: F32 {K, used, M}, or {K, 1, M} where all
 * experts of a token read the same row. `ids`: I32 {used, M}, rows dense, each in 0..experts-1, or
 * -1: no expert, the row of the result is zeros (any other index fails the computation with
 * ARGUMENT). Result {N, used, M}. Only used experts are read. One thread at a time per context.
 * Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_mul_mat_id(tandem_context *context, tandem_tensor *w,
                                            tandem_tensor *x, tandem_tensor *ids);
/** Indices of the `k` largest values of each row, the largest first; of equal ones the lower index.
 *  NaN counts as less than any number. `k`: 1..ne[0]. Result I32 {k, ne[1], ne[2], ne[3]}. One
 *  thread at a time per context. Errors: ARGUMENT (`k`), SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_top_k(tandem_context *context, tandem_tensor *a, int64_t k);
/** Values of each row by index: y[i, m] = a[ids[i, m], m]. `a`: F32 {n, M}; `ids`: I32 {k, M}, rows
 *  dense, each in 0..n-1 (an index outside fails the computation with ARGUMENT). Result {k, M}. One
 *  thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_gather(tandem_context *context, tandem_tensor *a,
                                        tandem_tensor *ids);
/** Weighted sum of rows: y[:, m] = sum over i of weights[i, m] a[:, i, m]. `a`: F32 {N, n, M};
 * `weights`: F32 {n, M}. Result {N, M}. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_weighted_sum(tandem_context *context, tandem_tensor *a,
                                              tandem_tensor *weights);

/* ---- element-wise; every extent of `b` divides that of `a`, and `b` is repeated ---- */

/** a + b. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_add(tandem_context *context, tandem_tensor *a, tandem_tensor *b);
/** a - b. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_sub(tandem_context *context, tandem_tensor *a, tandem_tensor *b);
/** a * b, element by element. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_mul(tandem_context *context, tandem_tensor *a, tandem_tensor *b);
/** a / b; divisors of 0 give what IEEE 754 says. One thread at a time per context. Errors: SHAPE,
 *  TYPE. */
TANDEM_API tandem_tensor *tandem_div(tandem_context *context, tandem_tensor *a, tandem_tensor *b);

/** a * factor. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_scale(tandem_context *context, tandem_tensor *a, float factor);
/** min(max(a, low), high); NaN stays. Infinities are bounds that nothing exceeds. One thread at a
 *  time per context. Errors: SHAPE, TYPE, ARGUMENT (not low <= high). */
TANDEM_API tandem_tensor *tandem_clamp(tandem_context *context, tandem_tensor *a, float low,
                                       float high);
/** a * a. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_sqr(tandem_context *context, tandem_tensor *a);
/** Square root; NaN below 0. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_sqrt(tandem_context *context, tandem_tensor *a);
/** a Phi(a), Phi being the normal distribution: 0.5 a (1 + erf(a / sqrt(2))), Hendrycks and Gimpel
 *  2016. One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_gelu_erf(tandem_context *context, tandem_tensor *a);
/** 1 / (1 + exp(-a)). One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_sigmoid(tandem_context *context, tandem_tensor *a);
/** tanh(a). One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_tanh(tandem_context *context, tandem_tensor *a);
/** a / (1 + exp(-a)), Hendrycks and Gimpel 2016. One thread at a time per context. Errors: SHAPE,
 *  TYPE. */
TANDEM_API tandem_tensor *tandem_silu(tandem_context *context, tandem_tensor *a);
/** 0.5 a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))), Hendrycks and Gimpel 2016. One thread at a
 *  time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_gelu(tandem_context *context, tandem_tensor *a);
/** max(a, 0). One thread at a time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_relu(tandem_context *context, tandem_tensor *a);

/* ---- along rows (dimension 0) ---- */

/** a / sqrt(mean(a^2) + eps), Zhang and Sennrich 2019. One thread at a time per context.
 *  Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_rms_norm(tandem_context *context, tandem_tensor *a, float eps);
/** (a - mean) / sqrt(variance + eps), Ba et al. 2016, without weight and bias. One thread at a
 *  time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_norm(tandem_context *context, tandem_tensor *a, float eps);
/** soft_max(a * scale + mask) over each row; row i of `mask` (F32 {ne[0], at least ne[1]}, or NULL)
 * applies to row i of every matrix of `a`. A row of only -infinity becomes zeros. One thread at a
 * time per context. Errors: SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_soft_max(tandem_context *context, tandem_tensor *a,
                                          tandem_tensor *mask, float scale);
/** Sets values with column index > n_past + row index to -infinity: a token sees itself and earlier
 * ones. `n_past` is 0 or more. One thread at a time per context. Errors: ARGUMENT, SHAPE, TYPE. */
TANDEM_API tandem_tensor *tandem_diag_mask_inf(tandem_context *context, tandem_tensor *a,
                                               int64_t n_past);

/** Which values of a row are rotated together. Numbers are pinned. */
enum tandem_rope_pairs {
    TANDEM_ROPE_ADJACENT = 0, /**< values 2i and 2i+1 form a pair (llama2.c, GGUF llama) */
    TANDEM_ROPE_HALVES = 1    /**< values i and i + n_rot/2 form a pair (GPT-NeoX, HF llama) */
};
/** Options of tandem_rope. */
struct tandem_rope_options {
    size_t size;                  /**< sizeof(struct tandem_rope_options) */
    enum tandem_rope_pairs pairs; /**< which values form a pair */
    int64_t n_rot;                /**< the first n_rot values of a row are rotated; even; 0: all */
    float freq_base;              /**< 0: 10000 */
    float freq_scale;             /**< positions are multiplied by this (linear scaling); 0: 1 */
};
#define TANDEM_ROPE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_rope_options), TANDEM_ROPE_ADJACENT, 0, 0, 0                          \
    }

/** Rotary position embedding, Su et al. 2021: pair i is rotated by position * freq_scale *
 * freq_base^(-2i / n_rot), computed on demand in single precision. `a`: {head size, heads, M, ...};
 * `positions`: I32 {M}. `options` is copied; NULL: defaults. One thread at a time per context.
 * Errors: SHAPE, TYPE, ARGUMENT, ABI. */
TANDEM_API tandem_tensor *tandem_rope(tandem_context *context, tandem_tensor *a,
                                      tandem_tensor *positions,
                                      const struct tandem_rope_options *options);
/** tandem_rope with the angle of pair i divided by factors[i]: F32 {n_rot / 2}, none of them 0. For
 *  scalings that differ from pair to pair, such as llama 3's. One thread at a time per context.
 *  Errors: SHAPE, TYPE, ARGUMENT, ABI. */
TANDEM_API tandem_tensor *tandem_rope_factors(tandem_context *context, tandem_tensor *a,
                                              tandem_tensor *positions, tandem_tensor *factors,
                                              const struct tandem_rope_options *options);

/* ---- attention ---- */

/** soft_max(Q K^T * scale + mask) V for each head, with running maxima and sums (Milakov and
 *  Gimelshein 2018; Dao et al. 2022): no matrix of scores is stored. `q`: F32 {head, M, heads};
 *  `k`: {head, T, kv_heads} and `v`: {value, T, kv_heads} of any type but I32; heads is a multiple
 *  of kv_heads, query head i reads KV head i / (heads / kv_heads). Rows are dense, the other
 *  strides free. `mask`: F32 {T, at least M} that all heads share, or NULL. Result {value, heads,
 *  M}; a query that sees nothing gives zeros. One thread at a time per context. Errors: SHAPE,
 *  TYPE. */
TANDEM_API tandem_tensor *tandem_attention(tandem_context *context, tandem_tensor *q,
                                           tandem_tensor *k, tandem_tensor *v, tandem_tensor *mask,
                                           float scale);
/** Options of tandem_attention_with. */
struct tandem_attention_options {
    size_t size;          /**< sizeof(struct tandem_attention_options) */
    float scale;          /**< of Q K^T; finite */
    float cap;            /**< scores become cap * tanh(score / cap) before the mask (Gemma 2); 0:
                           * unchanged */
    tandem_tensor *mask;  /**< as tandem_attention's `mask` (F32), as tandem_attention_ordered's
                               `orders` (I32), or NULL */
    int64_t window;       /**< as tandem_attention_ordered's, of `mask` of type I32 */
    tandem_tensor *sinks; /**< F32 {heads}: one more score per head, which takes a share of the
                           * weights and has no value (gpt-oss); or NULL */
};
#define TANDEM_ATTENTION_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(struct tandem_attention_options), 1.0f, 0.0f, NULL, 0, NULL                         \
    }
/** tandem_attention with further options. `options` is copied; NULL: scale 1 and nothing else. One
 * thread at a time per context. Errors: SHAPE, TYPE, ARGUMENT, ABI. */
TANDEM_API tandem_tensor *tandem_attention_with(tandem_context *context, tandem_tensor *q,
                                                tandem_tensor *k, tandem_tensor *v,
                                                const struct tandem_attention_options *options);
/** tandem_attention with a mask in M + T numbers: `orders`, I32 {T + M}, has the positions of the T
 * keys in their texts, then those of the M queries; query i sees key j if 0 <= order(i) - order(j)
 * < window (window 0: no limit). Texts whose orders are further apart than the window do not see
 * each other. One thread at a time per context. Errors: SHAPE, TYPE, ARGUMENT. */
TANDEM_API tandem_tensor *tandem_attention_ordered(tandem_context *context, tandem_tensor *q,
                                                   tandem_tensor *k, tandem_tensor *v,
                                                   tandem_tensor *orders, int64_t window,
                                                   float scale);

/* ---- moving values ---- */

/** Copies `a` into `b` (same number of values; converts between F32, F16 and BF16, and F32 to
 * quantised types; strides on both sides; to a quantised type the extents are equal and the rows of
 * `a` dense). `b` overlaps neither itself nor `a`. The result is a view of `b`; writing a KV cache
 * is done with it. One thread at a time per context. Errors: SHAPE, TYPE, ARGUMENT (overlap, or
 * memory of `b` that was borrowed as const). */
TANDEM_API tandem_tensor *tandem_cpy(tandem_context *context, tandem_tensor *a, tandem_tensor *b);
/** Copies matrices to given indices: b[:, :, ids[i]] = a[:, :, i]. `a`: F32 {n, k, m}, rows dense;
 * `b`: {n, k, N} of F32, F16, BF16 or a quantised type, rows dense; `ids`: I32 {m}, dense, each in
 * 0..N-1 (an index outside fails the computation with ARGUMENT, and `b` stays as it is). Of equal
 * indices the last one counts. `b` overlaps neither itself nor another operand. The result is a
 * view of `b`. One thread at a time per context. Errors: SHAPE, TYPE, ARGUMENT (overlap, or memory
 * of `b` that was borrowed as const). */
TANDEM_API tandem_tensor *tandem_scatter(tandem_context *context, tandem_tensor *a,
                                         tandem_tensor *b, tandem_tensor *ids);
/** A contiguous copy in the same type (not quantised). One thread at a time per context. Errors:
 *  TYPE. */
TANDEM_API tandem_tensor *tandem_cont(tandem_context *context, tandem_tensor *a);
/** `a` followed by `b` along dimension `dim` (0..3); the other extents are equal. One thread
 *  at a time per context. Errors: SHAPE, TYPE, ARGUMENT (`dim`). */
TANDEM_API tandem_tensor *tandem_concat(tandem_context *context, tandem_tensor *a, tandem_tensor *b,
                                        int dim);

/* ---- user-defined operations ---- */

/** Computes items `begin` to `end - 1` of `n_items` of a custom node. Called by several workers at
 * once with disjoint ranges; returns TANDEM_OK or the reason of failure. Accesses operands with
 * tandem_tensor_src and tandem_tensor_data. */
typedef enum tandem_status (*tandem_custom_fn)(void *user, const tandem_tensor *node, int64_t begin,
                                               int64_t end);

/** A node computed by `fn`: F32 result with extents `ne`, `n_src` operands (1 to 4), work
 * distributed in ranges of 0..n_items-1. `user` is borrowed until the graph is gone. One thread at
 * a time per context; `fn` is called on several. Errors: ARGUMENT, SHAPE. */
TANDEM_API tandem_tensor *tandem_custom(tandem_context *context, int n_dims, const int64_t *ne,
                                        tandem_tensor *const *src, int n_src, int64_t n_items,
                                        tandem_custom_fn fn, void *user);

TANDEM_END_C
#endif
