/* SPDX-License-Identifier: MIT
 * Shared by the files that lower nets: values being lowered, jobs of nodes. */
#ifndef TND_LOWER_INTERNAL_H
#define TND_LOWER_INTERNAL_H

#include "ggml-like/binary_int8.h"
#include "ggml-like/product_int8.h"
#include "ggml-like/work.h"
#include "graph/fuse_print.h"
#include "graph/lower.h"

struct tnd_lowered {
    const struct tnd_net *net;
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor **inputs;
    tandem_tensor **outputs;
    struct tnd_arena arena;                   /* jobs */
    TND_VECTOR_OF(struct tnd_array *, owned); /* folded constants and packed weights */
    TND_VECTOR_OF(struct tnd_conv_choice, convs);
    TND_VECTOR_OF(struct tnd_conversion, conversions);
    struct tnd_fault fault;
    struct tnd_lowered_source *sources; /* of nodes that can be printed (lower_source.c) */
};

enum { TND_LOWER_READS = 4 }; /* of tnd_lower_reads */

/** A product or convolution of 8-bit integers, which the net computes on int32 values minus their
 * zero points. */
struct tnd_lower_int8 {
    bool is_found;
    int x;    /* the 8-bit integers */
    int zero; /* the zero point, if computed; else TANDEM_NET_NONE */
    struct tnd_conv_int8 conv;
    int right;           /* 8-bit integers of a computed right operand; else TANDEM_NET_NONE */
    int right_zero;      /* its zero point, as `zero` */
    int32_t zero_w;      /* if it is known */
    struct tnd_array *w; /* else: packed; of the lowered net */
    struct tnd_int8_filter *filters; /* in an array of the lowered net, `list` */
    const struct tnd_array *list;
};

/** A node whose result is a byte and depends on one byte only: lower_table.c. */
struct tnd_lower_table {
    int x;                 /* the byte, a base */
    bool is_reshaped;      /* the result has another shape than `x` */
    const uint8_t *values; /* results by the byte's bits; NULL: not such a node */
};

/** A node whose result is a byte, the sum or product of two bytes: lower_pairs.c. */
struct tnd_lower_pair {
    bool is_found;
    int a, b;         /* bases */
    bool is_reshaped; /* one is read in another shape */
    struct tnd_binary_int8 op;
};

/** A program that may become the epilogue of the node being lowered. */
struct tnd_lower_epilogue {
    struct tnd_epilogue *of;
    tandem_tensor *tensors[TANDEM_MAX_SRC]; /* that operands read; one of them: src of `of->in` */
    int n_tensors;
    int n_dims; /* of the result */
    bool is_taken;
};

/** A value of the net that is not a view. */
struct tnd_lower_value {
    tandem_tensor *tensors[TND_N_LAYOUTS]; /* NULL: not in this layout */
    const struct tnd_array *known;
    bool is_needed;
    bool is_read; /* lowered nodes read `known` */
    int owned;    /* of a folded one: 1 + index in the lowered net's arrays */
    int group;    /* of its node: the last node of a fused program */
};

struct tnd_lowering {
    struct tnd_lowered *out;
    const struct tnd_net *net;
    const struct tnd_lower_options *options;
    struct tnd_lower_value *values;
    int *groups;                         /* by node */
    int *tails;                          /* by node: the group that may be its epilogue, or -1 */
    struct tnd_lower_epilogue *epilogue; /* of the node being lowered, or NULL */
    struct tnd_lower_int8 *int8;         /* by node */
    struct tnd_lower_table *tables;      /* by node */
    struct tnd_lower_pair *pairs;        /* by node */
    struct tandem_error *error;
};

/* lower.c */
const struct tnd_lower_value *tnd_lower_value(const struct tnd_lowering *l, int value);
/** Makes an operand of a value. With `takes_last` its tensor may have channels last. Sets src to
 * the number of a tensor in `tensors`, to which it is added. */
enum tandem_status tnd_lower_operand(struct tnd_lowering *l, int value, bool takes_last,
                                     struct tnd_operand *out, tandem_tensor **tensors, int *n);
/** Offset and strides of a view in its base's tensor, if only one with channels last exists. False:
 * not so, or not expressible by strides, or neither the view's channels (dimension 1) nor its last
 * dimension are contiguous in the tensor. */
bool tnd_lower_view_last(const struct tnd_lowering *l, int value, int64_t *offset,
                         int64_t *strides);
/** Whether a view has all values of such a base, in the order that the view with its own channels
 * last would have. */
bool tnd_lower_lies_last(const struct tnd_lowering *l, int value);
/** The tensor of a value that is neither a view nor known, in a layout; converted if needed. */
enum tandem_status tnd_lower_tensor(struct tnd_lowering *l, int value, enum tnd_net_layout layout,
                                    tandem_tensor **out);
/** Lowers a node outside of programs. */
enum tandem_status tnd_lower_node(struct tnd_lowering *l, const struct tnd_net_node *node);
/** Adds the graph's node of a job that is complete except its operands' data. `work.amount` 0: as
 * many values as its operation and its program handle. */
enum tandem_status tnd_lower_emit(struct tnd_lowering *l, struct tnd_work *job,
                                  tandem_tensor *const *tensors, int n, tandem_tensor **out);
struct tnd_work *tnd_lower_job(struct tnd_lowering *l, int n_in);
/** Makes an array that is freed with the lowered net. */
struct tnd_array *tnd_lower_array(struct tnd_lowering *l, enum tandem_dtype type,
                                  const struct tnd_dims *shape);
/** Gives an array to the lowered net, which frees it; on failure it is freed now. */
bool tnd_lowered_keep(struct tnd_lowered *lowered, struct tnd_array *array);
enum tandem_status tnd_lower_no_memory(const struct tnd_lowering *l);

/* lower_constants.c */
/** tnd_lower_known: a constant that is read only during lowering; without `data` if a store has
 * dropped the values, which tnd_lower_fill reloads. Errors: MEMORY. */
enum tandem_status tnd_lower_fill(const struct tnd_lowering *l, int value);
struct tnd_view tnd_lower_known(const struct tnd_lowering *l, int value);
/** Keeps the values of a view of a constant, in row-major order, for computing: in place if they
 * are contiguous, else copied. Errors: MEMORY. */
enum tandem_status tnd_lower_keep(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                  const void **out);
/** An F32 tensor of a known value: one for all nets of a store. */
enum tandem_status tnd_lower_constant(struct tnd_lowering *l, int value,
                                      const struct tnd_view *view, int n_dims, const int64_t *ne,
                                      tandem_tensor **out);
/** An array packed from a view as the bytes `how` describe. `*is_new`: the store has none yet; its
 * values are 0, the view's values are loaded (tnd_lower_known), and the caller fills it and calls
 * tnd_lower_packed. NULL: out of memory. */
struct tnd_array *tnd_lower_shared(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                   enum tandem_dtype type, const struct tnd_dims *shape,
                                   const void *how, size_t n_how, bool *is_new);
static inline void tnd_lower_packed(struct tnd_array *array)
{
    if (array->keeper != NULL) {
        tnd_store_made(array);
    }
}

/* lower.c */
/** Copies a view to a dense tensor; known values are copied now. */
enum tandem_status tnd_lower_copy(struct tnd_lowering *l, const struct tnd_operand *from,
                                  tandem_tensor *tensor, enum tnd_net_layout layout,
                                  tandem_tensor **out);
/* lower_source.c */
/** Frees the texts printed for devices. */
void tnd_lowered_free_texts(struct tnd_lowered *lowered);
/** Turns constants of several values into operands of a node, as far as there is room, so that a
 * device gets them. `values`: the net's, by operand. */
void tnd_lower_constants(struct tnd_lowering *l, const int *values, struct tnd_operand *operands,
                         int n_operands, tandem_tensor **tensors, int *n);
/** A tensor over weights in a kernel's layout; NULL: too large for a device. */
tandem_tensor *tnd_lower_weights(struct tnd_lowering *l, const struct tnd_array *array);
/** Attaches the source for devices to a node, if it can be printed: of its job's program, or of
 * another one, which is copied. */
void tnd_lower_source(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);
void tnd_lower_print(struct tnd_lowering *l, const struct tnd_fuse_printed *printed,
                     tandem_tensor *node);
/** As tnd_lower_source, for a matrix of values under a window, with an epilogue or NULL. */
void tnd_lower_window(struct tnd_lowering *l, const struct tnd_printed_window *window, int64_t rows,
                      int64_t columns, const struct tnd_epilogue *epilogue, tandem_tensor *node);

/* lower_device.c */
void tnd_lower_print_pool(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);
/** Prints the source text of a join or a gather for devices; does nothing for other nodes. */
void tnd_lower_print_move(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);

/* lower_ranges.c: plans any operation with the reference's kernel, over ranges of one dimension */
void tnd_lower_ranges(struct tnd_work *job);

/* lower_moves.c */
/** Plans a job that joins or gathers contiguous runs of values; false: the general code is as
 * good. */
bool tnd_lower_moves(struct tnd_work *job);
/** The layout of the result of a node that joins or gathers: that of its operands. */
enum tnd_net_layout tnd_lower_moves_layout(const struct tnd_lowering *l,
                                           const struct tnd_net_node *node);
/** Permutes the dimensions of such a job to a layout. False: out of memory. */
bool tnd_lower_turn(struct tnd_lowering *l, struct tnd_work *job, enum tnd_net_layout layout);

/** The tensor of an operand with channels last. */
enum tandem_status tnd_lower_last(struct tnd_lowering *l, int value, tandem_tensor **out);

/* lower_groups.c */
/** Whether a node is element-wise. */
static inline bool tnd_lower_is_elementwise(const struct tnd_net_node *node)
{
    return node->op <= TND_NET_SELECT;
}
/** Finds groups of nodes that become one program (`groups`) and possible epilogues (`tails`). */
void tnd_lower_find_groups(struct tnd_lowering *l);
/** Lowers a program, given its last node. `steps` has room for one number per value of the net. */
enum tandem_status tnd_lower_group(struct tnd_lowering *l, int group, int *steps);
/** Sets how a job with a program iterates over its operands. */
void tnd_lower_plan_fuse(struct tnd_work *job);

/* lower_epilogue.c */
/** Takes the epilogue of the node being lowered, whose own result is {rows, columns} of F32 with
 * channels last; adds the tensors that it reads to the node's. The node's result is then the
 * epilogue's. NULL: none. */
const struct tnd_epilogue *tnd_lower_take_epilogue(struct tnd_lowering *l, tandem_tensor **tensors,
                                                   int *n_tensors, int64_t n_columns);
/* lower_conv.c */
/** Reports the net's convolutions to the chooser; sets `for_device` as it answers. Errors:
 * MEMORY. */
enum tandem_status tnd_lower_begin_convs(const struct tnd_lowering *l, bool *for_device);

/* lower_int8.c */
/** Finds products and convolutions of 8-bit integers, and packs their weights. Needs the known
 * values. Out of memory: they are lowered in the general way. */
void tnd_lower_find_int8(struct tnd_lowering *l);
/** The values that node `i` reads once lowered: its operands, or the integers or byte from which
 * they are computed. */
int tnd_lower_reads(const struct tnd_lowering *l, int i, int reads[TND_LOWER_READS],
                    const int **out);
/** Lowers such a node. */
enum tandem_status tnd_lower_sums(struct tnd_lowering *l, const struct tnd_net_node *node);

/* lower_table.c */
/** Finds results that depend on one byte, and computes their tables. Errors: MEMORY. */
enum tandem_status tnd_lower_find_tables(struct tnd_lowering *l);
/** Lowers such a node. */
enum tandem_status tnd_lower_look_up(struct tnd_lowering *l, const struct tnd_net_node *node);

/* lower_pairs.c */
/** Finds sums and products of bytes, after tnd_lower_find_tables. */
void tnd_lower_find_pairs(struct tnd_lowering *l);
/** Lowers such a node. */
enum tandem_status tnd_lower_pair(struct tnd_lowering *l, const struct tnd_net_node *node);
/** Whether a node is computed directly from bytes, skipping the operations between. */
static inline bool tnd_lower_is_of_bytes(const struct tnd_lowering *l, int node)
{
    return l->tables[node].values != NULL || l->pairs[node].is_found;
}

/* lower_linear.c */
/** An operand {batch, rows, K} as a tensor {K, rows, batch} with dense rows, copied if needed. */
enum tandem_status tnd_lower_matrix(struct tnd_lowering *l, int value, struct tnd_operand *operand,
                                    tandem_tensor *tensor, tandem_tensor **out);

/* lower_linear.c, lower_conv.c, lower_windows.c, lower_reduce.c, lower_rows.c,
 * lower_recurrent.c. `done` false: the
 * general way */
enum tandem_status tnd_lower_contract(struct tnd_lowering *l, const struct tnd_net_node *node,
                                      bool *done);
enum tandem_status tnd_lower_conv(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done);
enum tandem_status tnd_lower_pool(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done);
enum tandem_status tnd_lower_reduce(struct tnd_lowering *l, const struct tnd_net_node *node,
                                    bool *done);
enum tandem_status tnd_lower_rows(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done);
enum tandem_status tnd_lower_recurrent(struct tnd_lowering *l, const struct tnd_net_node *node,
                                       bool *done);

#endif
