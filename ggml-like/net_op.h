/* SPDX-License-Identifier: MIT
 * Operations of nets, on arrays of up to 8 dimensions of every type: their list, their kinds, and
 * what they know beside their operands. */
#ifndef TND_NET_OP_H
#define TND_NET_OP_H

#include "ggml-like/array.h"

#define TND_NET_MAX_WINDOW 3 /* dimensions of a window: of convolutions and pools */

/** X(NAME, "text"): every operation. */
#define TND_NET_OP_LIST(X)                                                                         \
    X(COPY, "copy")                         /* a view, made contiguous */                          \
    X(CAST, "cast")                         /* to the type of the result */                        \
    X(UNARY, "unary")                       /* enum tnd_unary */                                   \
    X(BINARY, "binary")                     /* enum tnd_binary; of one type and shape */           \
    X(SELECT, "select")                     /* condition (bool), where true, where not */          \
    X(REDUCE, "reduce")                     /* enum tnd_reduce; axes stay, of extent 1 */          \
    X(ARG_REDUCE, "arg_reduce")             /* index of the largest along an axis */               \
    X(CONTRACT, "contract")                 /* {B, M, K} x {B, K, N} -> {B, M, N} */               \
    X(CONCAT, "concat")                     /* along an axis */                                    \
    X(PAD, "pad")                           /* enum tnd_pad; second: the constant */               \
    X(GATHER, "gather")                     /* rows of an axis by indices */                       \
    X(GATHER_ELEMENTS, "gather_elements")   /* one index an element */                             \
    X(SCATTER_ELEMENTS, "scatter_elements") /* enum tnd_scatter; data, indices, new */             \
    X(SCAN, "scan")                         /* running sum along an axis */                        \
    X(ARG_SORT, "arg_sort")                 /* indices; equal ones keep their order */             \
    X(CONV, "conv")                         /* {N, C, ..}, {M, C / groups, ..} */                  \
    X(POOL, "pool")                         /* enum tnd_pooling over windows */                    \
    X(SOFTMAX, "softmax")                   /* along the last dimension of three */                \
    X(NORM, "norm")                         /* enum tnd_norm, likewise */                          \
    X(ATTENTION, "attention")               /* of matrices, see tnd_net_row_attention */

enum tnd_net_op {
#define TND_NET_OP_ENUM(name, text) TND_NET_##name,
    TND_NET_OP_LIST(TND_NET_OP_ENUM)
#undef TND_NET_OP_ENUM
        TND_N_NET_OPS
};
/** Name of an operation; lives for ever. */
const char *tnd_net_op_name(enum tnd_net_op op);

/** X(NAME, "text"): kinds of TND_NET_UNARY. Their functions: scalar-list.h; those with kernels:
 *  fuse_code.h. */
#define TND_UNARY_LIST(X)                                                                          \
    X(NEG, "neg")                                                                                  \
    X(ABS, "abs")                                                                                  \
    X(SIGN, "sign")                                                                                \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(RECIPROCAL, "reciprocal")                                                                    \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(TAN, "tan")                                                                                  \
    X(ASIN, "asin")                                                                                \
    X(ACOS, "acos")                                                                                \
    X(ATAN, "atan")                                                                                \
    X(SINH, "sinh")                                                                                \
    X(COSH, "cosh")                                                                                \
    X(TANH, "tanh")                                                                                \
    X(ASINH, "asinh")                                                                              \
    X(ACOSH, "acosh")                                                                              \
    X(ATANH, "atanh")                                                                              \
    X(ERF, "erf")                                                                                  \
    X(FLOOR, "floor")                                                                              \
    X(CEIL, "ceil")                                                                                \
    X(ROUND, "round")         /* half to even */                                                   \
    X(NOT, "not")             /* of bool: the other one; of integers: all bits */                  \
    X(IS_NAN, "is_nan")       /* to bool, as the next */                                           \
    X(IS_INF, "is_inf")       /* of both signs */                                                  \
    X(GELU, "gelu")           /* x/2 * (1 + erf(x / sqrt(2))) */                                   \
    X(GELU_TANH, "gelu_tanh") /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */              \
    X(SILU, "silu")           /* x / (1 + exp(-x)) */

enum tnd_unary {
#define TND_UNARY_ENUM(name, text) TND_UNARY_##name,
    TND_UNARY_LIST(TND_UNARY_ENUM)
#undef TND_UNARY_ENUM
};
#define TND_UNARY_COUNT(name, text) +1
enum { TND_N_UNARY = TND_UNARY_LIST(TND_UNARY_COUNT) };
#undef TND_UNARY_COUNT

enum tnd_binary {
    TND_BINARY_ADD,
    TND_BINARY_SUB,
    TND_BINARY_MUL,
    TND_BINARY_DIV, /* of integers: towards zero; by 0 gives 0 */
    TND_BINARY_POW,
    TND_BINARY_MOD,  /* the sign of the divisor, as Python's % */
    TND_BINARY_FMOD, /* the sign of the dividend, as C's */
    TND_BINARY_MAX,  /* NaN if one is NaN, as the next */
    TND_BINARY_MIN,
    TND_BINARY_AND, /* of bits, as the next three */
    TND_BINARY_OR,
    TND_BINARY_XOR,
    TND_BINARY_SHIFT_LEFT,  /* by the number of bits or more: 0 */
    TND_BINARY_SHIFT_RIGHT, /* likewise; of negative numbers: -1 */
    TND_BINARY_EQUAL,       /* to bool, as the next two */
    TND_BINARY_LESS,
    TND_BINARY_LESS_EQUAL
};

/** Kinds of TND_NET_CAST: one that a program asked for, and one that passes put there, whose
 *  rounding nobody needs. */
enum tnd_cast { TND_CAST_ROUNDS, TND_CAST_MAY_GO };
enum tnd_reduce { TND_REDUCE_SUM, TND_REDUCE_PROD, TND_REDUCE_MAX, TND_REDUCE_MIN };
enum tnd_pad { TND_PAD_CONSTANT, TND_PAD_EDGE, TND_PAD_REFLECT, TND_PAD_WRAP };
enum tnd_scatter {
    TND_SCATTER_SET,
    TND_SCATTER_ADD,
    TND_SCATTER_MUL,
    TND_SCATTER_MAX,
    TND_SCATTER_MIN
};
enum tnd_norm {
    TND_NORM_LAYER, /* (x - mean) / sqrt(variance + epsilon) */
    TND_NORM_RMS    /* x / sqrt(mean of squares + epsilon) */
};
enum tnd_pooling {
    TND_POOL_MAX,
    TND_POOL_ARG_MAX, /* index in the whole input, -1 where a window holds nothing but padding */
    TND_POOL_SUM      /* divided by nothing; padding counts as 0 */
};

/** A window that moves over the last `n` dimensions. */
struct tnd_window {
    int n;
    int64_t extent[TND_NET_MAX_WINDOW];
    int64_t stride[TND_NET_MAX_WINDOW];
    int64_t dilation[TND_NET_MAX_WINDOW];
    int64_t begin[TND_NET_MAX_WINDOW]; /* padding in front */
    int64_t end[TND_NET_MAX_WINDOW];   /* and behind */
    int64_t groups;                    /* of TND_NET_CONV */
};

/** What an operation knows beside its operands. */
struct tnd_net_params {
    int kind; /* of the enum that the operation names */
    int axis;
    unsigned axes;     /* bit i: axis i */
    bool is_exclusive; /* TND_NET_SCAN: without the value itself */
    bool is_reverse;   /* TND_NET_SCAN: from the end; TND_NET_ARG_SORT: the largest first */
    bool picks_last;   /* TND_NET_ARG_REDUCE: of equal ones */
    double number;     /* TND_NET_NORM: epsilon; TND_NET_ATTENTION: scale */
    int64_t begin[TND_NET_MAX_DIMS]; /* TND_NET_PAD: places in front, may be negative */
    struct tnd_window window;
};

#endif
