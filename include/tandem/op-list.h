/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * X(NAME, "text", operands, is_view): one row an operation. View operations compute nothing: they
 * only name a part of another tensor's memory, and never appear among the nodes of a graph. */
#define TANDEM_OP_LIST(X)                                                                          \
    X(NONE, "none", 0, 0)                                                                          \
    X(VIEW, "view", 1, 1)                                                                          \
    X(RESHAPE, "reshape", 1, 1)                                                                    \
    X(PERMUTE, "permute", 1, 1)                                                                    \
    X(TRANSPOSE, "transpose", 1, 1)                                                                \
    X(GET_ROWS, "get_rows", 2, 0)                                                                  \
    X(MUL_MAT, "mul_mat", 2, 0)                                                                    \
    X(ADD, "add", 2, 0)                                                                            \
    X(SUB, "sub", 2, 0)                                                                            \
    X(MUL, "mul", 2, 0)                                                                            \
    X(DIV, "div", 2, 0)                                                                            \
    X(SCALE, "scale", 1, 0)                                                                        \
    X(SQR, "sqr", 1, 0)                                                                            \
    X(SQRT, "sqrt", 1, 0)                                                                          \
    X(SILU, "silu", 1, 0)                                                                          \
    X(GELU, "gelu", 1, 0)                                                                          \
    X(RELU, "relu", 1, 0)                                                                          \
    X(RMS_NORM, "rms_norm", 1, 0)                                                                  \
    X(NORM, "norm", 1, 0)                                                                          \
    X(ROPE, "rope", 3, 0)                                                                          \
    X(SOFT_MAX, "soft_max", 2, 0)                                                                  \
    X(DIAG_MASK_INF, "diag_mask_inf", 1, 0)                                                        \
    X(CPY, "cpy", 2, 0)                                                                            \
    X(CONT, "cont", 1, 0)                                                                          \
    X(CONCAT, "concat", 2, 0)                                                                      \
    X(ATTENTION, "attention", 4, 0)                                                                \
    X(CUSTOM, "custom", 4, 0)
