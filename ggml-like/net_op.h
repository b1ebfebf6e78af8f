/* SPDX-License-Identifier: MIT
 * Operations of nets, on arrays of up to 8 dimensions of every type: list, kinds and parameters. */
#ifndef TND_NET_OP_H
#define TND_NET_OP_H

#include "ggml-like/array.h"
#include "ggml-like/recurrent.h"

/** X(NAME, "text"): every operation. */
#define TND_NET_OP_LIST(X)                                                                         \
    X(COPY, "copy")                         /* a view, made contiguous */                          \
    X(CAST, "cast")                         /* to the type of the result */                        \
    X(UNARY, "unary")                       /* enum tandem_unary */                                \
    X(BINARY, "binary")                     /* enum tandem_binary; of one type and shape */        \
    X(SELECT, "select")                     /* condition (bool), if true, if false */              \
    X(REDUCE, "reduce")                     /* enum tandem_reduce; axes stay, of extent 1 */       \
    X(ARG_REDUCE, "arg_reduce")             /* index of the largest along an axis */               \
    X(CONTRACT, "contract")                 /* {B, M, K} x {B, K, N} -> {B, M, N} */               \
    X(CONCAT, "concat")                     /* along an axis */                                    \
    X(PAD, "pad")                           /* enum tandem_pad; second: the constant */            \
    X(GATHER, "gather")                     /* rows of an axis by indices */                       \
    X(GATHER_ELEMENTS, "gather_elements")   /* one index per element */                            \
    X(SCATTER_ELEMENTS, "scatter_elements") /* enum tandem_scatter; data, indices, new */          \
    X(SCAN, "scan")                         /* running sum along an axis */                        \
    X(ARG_SORT, "arg_sort")                 /* indices, by a stable sort */                        \
    X(CONV, "conv")                         /* {N, C, ..}, {M, C / groups, ..} */                  \
    X(POOL, "pool")                         /* enum tandem_pool over windows */                    \
    X(SOFTMAX, "softmax")                   /* along the last dimension of three */                \
    X(NORM, "norm")                         /* enum tandem_norm, likewise */                       \
    X(ATTENTION, "attention")               /* of matrices, see tnd_net_row_attention */           \
    X(RECURRENT, "recurrent")               /* all steps of a layer, see recurrent.h */

enum tnd_net_op {
#define TND_NET_OP_ENUM(name, text) TND_NET_##name,
    TND_NET_OP_LIST(TND_NET_OP_ENUM)
#undef TND_NET_OP_ENUM
        TND_N_NET_OPS
};
/** Name of an operation. Static. */
const char *tnd_net_op_name(enum tnd_net_op op);

/** Number of kinds in the lists of tandem/net-list.h. The functions of TND_NET_UNARY and
 * TND_NET_BINARY are in scalar-list.h; those with fast kernels in fuse_code.h. */
#define TND_COUNT_KIND(name, number) +1
enum {
    TND_N_UNARY = TANDEM_UNARY_LIST(TND_COUNT_KIND),
    TND_N_BINARY = TANDEM_BINARY_LIST(TND_COUNT_KIND),
    TND_N_REDUCE = TANDEM_REDUCE_LIST(TND_COUNT_KIND),
    TND_N_PAD = TANDEM_PAD_LIST(TND_COUNT_KIND),
    TND_N_SCATTER = TANDEM_SCATTER_LIST(TND_COUNT_KIND),
    TND_N_POOL = TANDEM_POOL_LIST(TND_COUNT_KIND),
    TND_N_NORM = TANDEM_NORM_LIST(TND_COUNT_KIND)
};
#undef TND_COUNT_KIND

/** Kinds of TND_NET_CAST: requested by the program, or inserted after a widened operation, where
 * passes may remove it with its rounding. */
enum tnd_cast { TND_CAST_ROUNDS, TND_CAST_MAY_GO };

/** A window that moves over the last `n` dimensions. */
struct tnd_window {
    int n;
    int64_t extent[TANDEM_NET_MAX_WINDOW];
    int64_t stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW];
    int64_t begin[TANDEM_NET_MAX_WINDOW]; /* padding before */
    int64_t end[TANDEM_NET_MAX_WINDOW];   /* padding after */
    int64_t groups;                       /* of TND_NET_CONV */
};

/** Parameters of an operation. */
struct tnd_net_params {
    int kind; /* of the enum that the operation names */
    int axis;
    unsigned axes;     /* bit i: axis i */
    bool is_exclusive; /* TND_NET_SCAN: without the value itself */
    bool is_reverse;   /* TND_NET_SCAN: from the end; TND_NET_ARG_SORT: the largest first */
    bool picks_last;   /* TND_NET_ARG_REDUCE: among equal values */
    double number;     /* TND_NET_NORM: epsilon; TND_NET_ATTENTION: scale */
    int64_t begin[TANDEM_NET_MAX_DIMS]; /* TND_NET_PAD: values added before; may be negative */
    struct tnd_window window;
    struct tnd_recurrent recurrent;
};

#endif
