/* SPDX-License-Identifier: MIT
 * Common part of the operations of nets (family `work` of tandem/op-list.h): nets lower to them, so
 * that schedulers know what their nodes cost, can reorder them, and leave small ones to one thread.
 * A work only describes what is computed: backends look up a driver by its kind. */
#ifndef TND_WORK_H
#define TND_WORK_H

#include <stdatomic.h>

#include "ggml-like/conv.h"
#include "ggml-like/fuse_program.h"
#include "ggml-like/tnd_tensor.h"

/** X(NAME, function): every kind of work. The CPU backend's driver is tnd_cpu_work_<function>
 * (backends/cpu/net/cpu_net.h), the reference ref_<function> (ref_work.c). */
#define TND_WORK_KIND_LIST(X)                                                                      \
    X(PROGRAM, program)         /* `fuse` over `space`: value by value, and copies */              \
    X(JOIN, join)               /* whole runs of values along an axis */                           \
    X(GATHER, gather)           /* the same by indices */                                          \
    X(PICK, pick)               /* one index a value */                                            \
    X(PAD, pad)                 /* runs of values with others around them */                       \
    X(RANGE, range)             /* any operation by the plain kernel, over one dimension */        \
    X(REDUCE, reduce)           /* sums and their like of F32 */                                   \
    X(TABLE, table)             /* a byte by a table of 256 */                                     \
    X(POOL, pool)               /* of F32; the largest of bytes, too */                            \
    X(FEW_ROWS, few_rows)       /* products of few rows and a matrix as it lies */                 \
    X(CONV, conv)               /* direct sums, channels last */                                   \
    X(PAD_ROWS, pad_rows)       /* rows of places and their padding */                             \
    X(COLUMNS, columns)         /* what each place of a convolution sees, as a row */              \
    X(WINOGRAD_IN, winograd_in) /* transformed tiles: of each position one row a tile */           \
    X(WINOGRAD, winograd)

#define TND_WORK_KIND_ENUM(name, function) TND_WORK_##name,
enum tnd_work_kind {
    TND_WORK_KIND_LIST(TND_WORK_KIND_ENUM)
        TND_WORK_RECURRENT, /* step by step by all workers, not by items: tnd_cpu_recurrent */
    TND_N_WORK_KINDS
};
#undef TND_WORK_KIND_ENUM

/** In which order the values of a tensor lie. */
enum tnd_net_layout {
    TND_LAYOUT_PLAIN,
    TND_LAYOUT_LAST,
    TND_N_LAYOUTS
}; /* LAST: axis 1 behind all */

/** The dimensions in the order of a layout, the slowest first. */
void tnd_net_order(const struct tnd_dims *shape, enum tnd_net_layout layout, int *out);
/** Strides of a dense array in a layout. */
void tnd_net_strides(const struct tnd_dims *shape, enum tnd_net_layout layout, int64_t *out);

/** Source text of a kernel. */
struct tnd_work_text {
    uint64_t hash;
    char text[]; /* terminated */
};

/** How a device can compute a node: OpenCL C with a kernel `entry` whose arguments are (global
 * uchar *y, ulong y_at) and such a pair for each operand: a buffer, and the tensor's first byte in
 * it. One work item for each number below n_items; further ones do nothing. The text is generated
 * when a device first needs it (tnd_work_text), because most nets never run on one. */
struct tnd_work_source {
    const char *entry;
    int64_t n_items;
    bool has_double;
    /** Generates the text, which the caller frees; NULL: no memory. */
    struct tnd_work_text *(*print)(const struct tnd_work_source *source);
    _Atomic(struct tnd_work_text *) text; /* NULL: not generated yet */
};
/** The text, owned by the source; NULL: no memory. Safe to call from several threads at once. */
const struct tnd_work_text *tnd_work_text(struct tnd_work_source *source);

/** Values of a fused program that take as long as one value of a reference kernel: 7 ns / 0.4
 * ns. */
#define TND_WORK_REFERENCE 16.0
/** Multiply-adds that take as long as one value: the ratio of the bounds of the rule
 * (tune/policy.h). */
#define TND_WORK_SUMS      8.0

/** The first run-time failure of a node, with its operation and name. */
struct tnd_fault {
    atomic_int state; /* 0: none; 1: being written; 2: written */
    struct tandem_error error;
};

/** Most operands of a work; values per item of TND_WORK_TABLE; columns per item of
 * TND_WORK_FEW_ROWS, whose sums stay in the innermost cache. */
enum { TND_WORK_OPERANDS = TND_FUSE_INPUTS, TND_TABLE_ITEM = 65536, TND_FEW_COLUMNS = 512 };

/** Run length of TND_WORK_JOIN, in values, from which on rows are copied run by run; rows per item
 * if runs are shorter. */
enum { TND_JOIN_LONG = 16, TND_JOIN_ROWS = 256 };

/** An operand of a node: a tensor with strides of its layout, or a constant. */
struct tnd_operand {
    struct tnd_view view; /* `data`: only of constants */
    int src;              /* index among the node's operands; -1: a constant */
    int64_t offset;       /* in values; unused for constants */
};

/** Limits of an epilogue that its rows may need on a driver's stack: saved step results, copies of
 * operands, values of a row per step. */
enum { TND_EPILOGUE_SAVED = 4, TND_EPILOGUE_COPIES = 2, TND_EPILOGUE_WIDTH = 32 };

/** What a node computes element-wise from its own result, while a tile of the result is in a
 * cache: bias, residual, activation. */
struct tnd_epilogue {
    struct tnd_fuse fuse;
    struct tnd_fuse_matrix matrix; /* rows: output positions; columns: output channels */
    struct tnd_operand in[TND_FUSE_INPUTS];
    /* whether the program can run on rows of a tile directly. By operand: a constant row shared by
     * all rows, followed by TND_EPILOGUE_WIDTH zeros; else NULL */
    bool has_rows;
    bool ends_sums; /* and kernels of sums can run it (tnd_code_ends_sums) */
    const float *rows[TND_FUSE_INPUTS];
    uint8_t saved[TND_FUSE_REGISTERS]; /* by step: index of its saved result */
};

/** TND_WORK_REDUCE: how the operand is traversed. */
struct tnd_work_reduce {
    int kind;              /* enum tandem_reduce */
    struct tnd_view inner; /* what is reduced; no data */
    struct tnd_dims kept;
    int64_t strides[TANDEM_NET_MAX_DIMS]; /* of the operand along `kept` */
    int width;                            /* adjacent results per strip, or 1 */
    int64_t row_units, n_units, item_units;
};

/** TND_WORK_PAD_ROWS: rows of the input with their padding, in values. */
struct tnd_work_rows {
    int64_t row, front, width;
};

struct tnd_work {
    enum tnd_work_kind kind;
    double amount;   /* multiply-adds, or values: what the cost of the operation counts */
    int64_t n_items; /* items for threads; exact for kinds without tiles */
    struct tnd_work_source *source; /* NULL: only the CPU can compute it */
    double reference_values;        /* values that a reference kernel computes; else 0 */
    const char *what;               /* if so: operation, type and name in the net */

    enum tandem_op row; /* NONE: that of `op` */
    enum tnd_net_op op;
    const char *name;        /* name of the result; NULL: none */
    struct tnd_fault *fault; /* of the lowered net */
    const struct tnd_net_params *params;
    struct tnd_operand *in;
    int n_in;
    enum tandem_dtype type;
    struct tnd_dims shape; /* of the result */
    enum tnd_net_layout layout;
    int split;      /* dimension that is divided among threads; -1: none */
    size_t scratch; /* bytes of scratch memory per item, after the result */
    struct tnd_fuse fuse;
    struct tnd_fuse_space space;
    union { /* by kind */
        const struct tnd_work_reduce *reduce;
        const struct tnd_work_rows *rows;
        const struct tnd_conv *conv; /* CONV, COLUMNS */
        const struct tnd_winograd *winograd;
        const uint8_t *table;
    } of;
    bool is_by_reference; /* a reference kernel computes it, or some steps of its program */
};

/** Builds a node of operation `op`; `n_values` F32 hold its result. `work` must live as long as
 * the node and never change once a graph computes. Errors: those of tandem_custom. */
tandem_tensor *tnd_build_work(tandem_context *context, enum tandem_op op, int64_t n_values,
                              tandem_tensor *const *src, int n_src, struct tnd_work *work);

/** The work of a node of the family; NULL for other nodes. */
static inline const struct tnd_work *tnd_work_of(const struct tandem_tensor *node)
{
    return tnd_op_traits(node->op)->family == TND_OP_work ? node->params.work : NULL;
}

/** Operands at run time: a single one, all of a work, and the values of an epilogue's F32
 * operand. */
struct tnd_view tnd_work_view(const struct tnd_operand *in, const struct tandem_tensor *node);
void tnd_work_views(const struct tnd_work *work, const struct tandem_tensor *node,
                    struct tnd_view *out);
static inline const float *tnd_work_values(const struct tnd_operand *in,
                                           const struct tandem_tensor *node)
{
    return in->src < 0 ? in->view.data : (const float *)node->src[in->src]->data + in->offset;
}

/** Keeps a node's error with operation and name, if it is the first one. Any thread. Returns
 * `status`. */
enum tandem_status tnd_work_failed(const struct tnd_work *work, enum tandem_status status,
                                   const struct tandem_error *error);

/** Number of values per index of an axis. */
int64_t tnd_work_values_behind(const struct tnd_dims *shape, int axis);
/** The last dimension that a pad changes; whole runs of the operand follow it. */
int tnd_work_padded_axis(const struct tnd_work *work);
/** The dimension of operand `i` that corresponds to dimension `d` of the result; -1: none; -2: the
 * operation cannot be divided along `d`. */
int tnd_work_moves_with(const struct tnd_work *work, int i, int d);

#endif
