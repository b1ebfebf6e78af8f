/* SPDX-License-Identifier: MIT
 * What the operations of nets share (family `work` of tandem/op-list.h): a net lowers to them, so
 * that schedulers know what its nodes cost, may change their order, and leave small ones to one
 * thread. A work only says what is computed: backends find a driver by its kind. */
#ifndef TND_WORK_H
#define TND_WORK_H

#include <stdatomic.h>

#include "ggml-like/conv.h"
#include "ggml-like/fuse_program.h"
#include "ggml-like/tnd_tensor.h"

/** X(NAME, function): every kind of work. The CPU backend's driver is tnd_cpu_work_<function>
 *  (backends/cpu/net/cpu_net.h), the reference ref_<function> (ref_work.c). */
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

/** The dimensions in the order in which they lie in a layout, the slowest first. */
void tnd_net_order(const struct tnd_dims *shape, enum tnd_net_layout layout, int *out);
/** Strides of a whole value in a layout. */
void tnd_net_strides(const struct tnd_dims *shape, enum tnd_net_layout layout, int64_t *out);

/** The text of a source. */
struct tnd_work_text {
    uint64_t hash;
    char text[]; /* terminated */
};

/** How a device may compute a node: OpenCL C with a kernel `entry` whose arguments are
 *  (global uchar *y, ulong y_at) and such a pair for each operand: where a tensor is, and its first
 *  byte. One work item a number below n_items; those behind do nothing. The text is printed when a
 *  device first asks for it (tnd_work_text): most nets never meet one. */
struct tnd_work_source {
    const char *entry;
    int64_t n_items;
    bool has_double;
    /** Prints the text, which the caller frees; NULL: no memory. */
    struct tnd_work_text *(*print)(const struct tnd_work_source *source);
    _Atomic(struct tnd_work_text *) text; /* NULL: not printed yet */
};
/** The text, owned by the source; NULL: no memory. Any number of threads at a time. */
const struct tnd_work_text *tnd_work_text(struct tnd_work_source *source);

/** Values of a fused program that take as long as one of a reference kernel: 7 ns by 0.4 ns. */
#define TND_WORK_REFERENCE 16.0
/** Multiply-adds that take as long as one value: a ratio of the rule's bounds (tune/policy.h). */
#define TND_WORK_SUMS      8.0

/** The first failure of a node at run time, with its operation and name. */
struct tnd_fault {
    atomic_int state; /* 0: none; 1: being written; 2: written */
    struct tandem_error error;
};

/** Most operands of a work; values of an item of TND_WORK_TABLE, columns of one of
 *  TND_WORK_FEW_ROWS, whose sums stay in the innermost cache. */
enum { TND_WORK_OPERANDS = TND_FUSE_INPUTS, TND_TABLE_ITEM = 65536, TND_FEW_COLUMNS = 512 };

/** Values of a result of TND_WORK_JOIN from which on its rows are copied run by run, and rows of an
 *  item where they are shorter. */
enum { TND_JOIN_LONG = 16, TND_JOIN_ROWS = 256 };

/** What a node reads: strides of the tensor in the layout that it has. */
struct tnd_operand {
    struct tnd_view view; /* `data`: of constants */
    int src;              /* operand of the node; -1: a constant */
    int64_t offset;       /* in values, where src is one */
};

/** What an epilogue's rows may take of a driver's stack: results of steps that later ones read,
 *  copies of operands, values of a row that are computed at once. */
enum { TND_EPILOGUE_SAVED = 4, TND_EPILOGUE_COPIES = 2, TND_EPILOGUE_WIDTH = 32 };

/** What is computed value by value from the result of a node, and by that node, while a tile of the
 *  result is in a cache: bias, residual, activation. */
struct tnd_epilogue {
    struct tnd_fuse fuse;
    struct tnd_fuse_matrix matrix; /* rows: the places of the result; columns: its channels */
    struct tnd_operand in[TND_FUSE_INPUTS];
    /* whether rows of a tile can go through the program as they are. By operand: a constant that is
     * the same row for all, with TND_EPILOGUE_WIDTH values of 0 behind; else NULL */
    bool has_rows;
    bool ends_sums; /* and kernels of sums run it (tnd_code_ends_sums) behind the first code */
    const float *rows[TND_FUSE_INPUTS];
    uint8_t saved[TND_FUSE_REGISTERS]; /* by step whose result is kept: where, counted from 0 */
};

/** TND_WORK_REDUCE: how the operand is walked. */
struct tnd_work_reduce {
    int kind;              /* enum tandem_reduce */
    struct tnd_view inner; /* what is reduced; without data */
    struct tnd_dims kept;
    int64_t strides[TANDEM_NET_MAX_DIMS]; /* of the operand along `kept` */
    int width;                            /* results side by side: of a strip, or 1 */
    int64_t row_units, n_units, item_units;
};

/** TND_WORK_PAD_ROWS: rows of the input with their padding, in values. */
struct tnd_work_rows {
    int64_t row, front, width;
};

struct tnd_work {
    enum tnd_work_kind kind;
    double amount;   /* multiply-adds, or values: what the cost of the operation counts */
    int64_t n_items; /* parts that threads can compute by themselves, about; of kinds without tiles
                        exactly */
    struct tnd_work_source *source; /* NULL: the CPU alone can do it */
    double reference_values;        /* that a reference kernel handles, one by one; else 0 */
    const char *what;               /* then: operation, type and name in the net */

    enum tandem_op row; /* NONE: as `op` says */
    enum tnd_net_op op;
    const char *name;        /* of what is computed; NULL: none */
    struct tnd_fault *fault; /* of the lowered net */
    const struct tnd_net_params *params;
    struct tnd_operand *in;
    int n_in;
    enum tandem_dtype type;
    struct tnd_dims shape; /* of the result */
    enum tnd_net_layout layout;
    int split;      /* dimension by which the work is handed out; -1: it is not */
    size_t scratch; /* bytes for each item that a kernel works in, behind the result */
    struct tnd_fuse fuse;
    struct tnd_fuse_space space;
    union { /* by kind */
        const struct tnd_work_reduce *reduce;
        const struct tnd_work_rows *rows;
        const struct tnd_conv *conv; /* CONV, COLUMNS */
        const struct tnd_winograd *winograd;
        const uint8_t *table;
    } of;
    bool is_by_reference; /* a reference kernel computes it, or steps of its program */
};

/** The operation `op` of the family: `n_values` of F32 hold its result. `work` lives as long as the
 *  node, and nobody changes it once a graph computes. Errors: those of tandem_custom. */
tandem_tensor *tnd_build_work(tandem_context *context, enum tandem_op op, int64_t n_values,
                              tandem_tensor *const *src, int n_src, struct tnd_work *work);

/** The work of a node of the family; NULL: it is of another one. */
static inline const struct tnd_work *tnd_work_of(const struct tandem_tensor *node)
{
    return tnd_op_traits(node->op)->family == TND_OP_work ? node->params.work : NULL;
}

/** Operands at run time: one, all of a work, and the values of one of F32 of an epilogue. */
struct tnd_view tnd_work_view(const struct tnd_operand *in, const struct tandem_tensor *node);
void tnd_work_views(const struct tnd_work *work, const struct tandem_tensor *node,
                    struct tnd_view *out);
static inline const float *tnd_work_values(const struct tnd_operand *in,
                                           const struct tandem_tensor *node)
{
    return in->src < 0 ? in->view.data : (const float *)node->src[in->src]->data + in->offset;
}

/** Keeps the error of a node, if it is the first one, with operation and name. Any thread. Gives
 *  `status`. */
enum tandem_status tnd_work_failed(const struct tnd_work *work, enum tandem_status status,
                                   const struct tandem_error *error);

/** Values of one place of an axis. */
int64_t tnd_work_values_behind(const struct tnd_dims *shape, int axis);
/** The last dimension that a pad changes; behind it lie whole runs of the operand. */
int tnd_work_padded_axis(const struct tnd_work *work);
/** Dimension of operand `i` that moves with dimension `d` of the result: -1 none, -2 the operation
 *  cannot be divided there. */
int tnd_work_moves_with(const struct tnd_work *work, int i, int d);

#endif
