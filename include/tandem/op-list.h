/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * One row per operation: what every room needs to know about it.
 *
 * X(NAME, "text", operands, family, cost, representative, splits_rows)
 *
 * family: operations that one function computes: tnd_ref_<family> of the reference and
 *     tnd_cpu_<family> of the CPU backend. `nothing`: the operation only names a part of another
 *     tensor's memory, and never appears among the nodes of a graph.
 * cost: what its time grows with: PRODUCT, ATTENTION and SUMS with multiply-adds, EXPONENTIALS and
 *     VALUES with its values, USER with nothing known; NOTHING takes no time.
 * representative: the measured operation with the same time per value; NONE: nothing is measured.
 * splits_rows: of a representative: workers may share a row. */
#define TANDEM_OP_LIST(X)                                                                          \
    X(NONE, "none", 0, nothing, NOTHING, NONE, 0)                                                  \
    X(VIEW, "view", 1, nothing, NOTHING, NONE, 0)                                                  \
    X(RESHAPE, "reshape", 1, nothing, NOTHING, NONE, 0)                                            \
    X(PERMUTE, "permute", 1, nothing, NOTHING, NONE, 0)                                            \
    X(TRANSPOSE, "transpose", 1, nothing, NOTHING, NONE, 0)                                        \
    X(GET_ROWS, "get_rows", 2, get_rows, VALUES, GET_ROWS, 0)                                      \
    X(MUL_MAT, "mul_mat", 2, mul_mat, PRODUCT, NONE, 0)                                            \
    X(MUL_MAT_ID, "mul_mat_id", 3, mul_mat_id, PRODUCT, NONE, 0)                                   \
    X(ADD, "add", 2, binary, VALUES, ADD, 0)                                                       \
    X(SUB, "sub", 2, binary, VALUES, ADD, 0)                                                       \
    X(MUL, "mul", 2, binary, VALUES, MUL, 0)                                                       \
    X(DIV, "div", 2, binary, VALUES, MUL, 0)                                                       \
    X(SCALE, "scale", 1, unary, VALUES, ADD, 0)                                                    \
    X(CLAMP, "clamp", 1, unary, VALUES, ADD, 0)                                                    \
    X(SQR, "sqr", 1, unary, VALUES, ADD, 0)                                                        \
    X(SQRT, "sqrt", 1, unary, VALUES, MUL, 0)                                                      \
    X(GELU_ERF, "gelu_erf", 1, unary, EXPONENTIALS, SILU, 0)                                       \
    X(SIGMOID, "sigmoid", 1, unary, EXPONENTIALS, SILU, 0)                                         \
    X(TANH, "tanh", 1, unary, EXPONENTIALS, SILU, 0)                                               \
    X(SILU, "silu", 1, unary, EXPONENTIALS, SILU, 1)                                               \
    X(GELU, "gelu", 1, unary, EXPONENTIALS, SILU, 0)                                               \
    X(RELU, "relu", 1, unary, VALUES, ADD, 0)                                                      \
    X(RMS_NORM, "rms_norm", 1, norm, VALUES, RMS_NORM, 0)                                          \
    X(NORM, "norm", 1, norm, VALUES, RMS_NORM, 0)                                                  \
    X(ROPE, "rope", 3, rope, EXPONENTIALS, ROPE, 0)                                                \
    X(SOFT_MAX, "soft_max", 2, soft_max, EXPONENTIALS, SOFT_MAX, 0)                                \
    X(TOP_K, "top_k", 1, top_k, EXPONENTIALS, SOFT_MAX, 0)                                         \
    X(SAMPLE, "sample", 3, sample, EXPONENTIALS, SAMPLE, 0)                                        \
    X(GATHER, "gather", 2, gather, VALUES, GET_ROWS, 0)                                            \
    X(WEIGHTED_SUM, "weighted_sum", 2, weighted_sum, VALUES, ADD, 0)                               \
    X(DIAG_MASK_INF, "diag_mask_inf", 1, diag_mask_inf, VALUES, CPY, 0)                            \
    X(CPY, "cpy", 2, copy, VALUES, CPY, 1)                                                         \
    X(CONT, "cont", 1, copy, VALUES, CPY, 0)                                                       \
    X(CONCAT, "concat", 2, copy, VALUES, CPY, 0)                                                   \
    X(ATTENTION, "attention", 5, attention, ATTENTION, ATTENTION, 0)                               \
    X(CUSTOM, "custom", 4, custom, USER, NONE, 0)                                                  \
    X(SCATTER, "scatter", 3, scatter, VALUES, CPY, 0)                                              \
    X(CONV_INT8, "conv_int8", 4, conv_int8, SUMS, NONE, 0)                                         \
    X(PRODUCT_INT8, "product_int8", 4, product_int8, SUMS, NONE, 0)                                \
    X(BINARY_INT8, "binary_int8", 2, binary_int8, VALUES, CPY, 0)                                  \
    X(PROGRAM, "program", 4, work, VALUES, CPY, 0)                                                 \
    X(MOVE, "move", 4, work, VALUES, CPY, 0)                                                       \
    X(REDUCE, "reduce", 4, work, VALUES, CPY, 0)                                                   \
    X(POOL, "pool", 4, work, VALUES, CPY, 0)                                                       \
    X(CONV, "conv", 4, work, SUMS, NONE, 0)                                                        \
    X(CONTRACT, "contract", 4, work, SUMS, NONE, 0)                                                \
    X(RECURRENT, "recurrent", 5, work, SUMS, NONE, 0)

#define TANDEM_OP_FAMILIES(X)                                                                      \
    X(nothing)                                                                                     \
    X(get_rows)                                                                                    \
    X(mul_mat)                                                                                     \
    X(mul_mat_id)                                                                                  \
    X(binary)                                                                                      \
    X(unary)                                                                                       \
    X(norm)                                                                                        \
    X(rope)                                                                                        \
    X(soft_max)                                                                                    \
    X(top_k)                                                                                       \
    X(sample)                                                                                      \
    X(gather)                                                                                      \
    X(weighted_sum)                                                                                \
    X(diag_mask_inf)                                                                               \
    X(copy)                                                                                        \
    X(scatter)                                                                                     \
    X(attention)                                                                                   \
    X(custom)                                                                                      \
    X(conv_int8)                                                                                   \
    X(product_int8)                                                                                \
    X(binary_int8)                                                                                 \
    X(work)
