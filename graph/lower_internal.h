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
    TND_VECTOR_OF(struct tnd_array *, owned); /* folded constants, packed weights */
    TND_VECTOR_OF(struct tnd_conv_choice, convs);
    TND_VECTOR_OF(struct tnd_conversion, conversions);
    struct tnd_fault fault;
    struct tnd_lowered_source *sources; /* of all nodes that have one (lower_source.c) */
};

enum { TND_LOWER_READS = 4 }; /* of tnd_lower_reads */

/** A product or convolution of 8-bit integers: the net has it of int32, less their zero points. */
struct tnd_lower_int8 {
    bool is_found;
    int x;    /* the integers themselves */
    int zero; /* value of the zero point, if it is computed; else TANDEM_NET_NONE */
    struct tnd_conv_int8 conv;
    int right;      /* the integers of a right operand that is computed; else TANDEM_NET_NONE */
    int right_zero; /* as zero */
    int32_t zero_w; /* where it is known */
    struct tnd_array *w;             /* else: packed; of the lowered net */
    struct tnd_int8_filter *filters; /* in an array of the lowered net, `list` */
    const struct tnd_array *list;
};

/** A node whose result is a function of one byte, and a byte itself: lower_table.c. */
struct tnd_lower_table {
    int x;                 /* the byte: a base */
    bool is_reshaped;      /* whose values the result has in another shape */
    const uint8_t *values; /* by its bits; NULL: the node is none of these */
};

/** A node whose result is a sum or product of two bytes, and a byte itself: lower_pairs.c. */
struct tnd_lower_pair {
    bool is_found;
    int a, b;         /* bases */
    bool is_reshaped; /* one of them is read in another shape */
    struct tnd_binary_int8 op;
};

/** A program that waits for the node whose epilogue it may become. */
struct tnd_lower_epilogue {
    struct tnd_epilogue *of;
    tandem_tensor *tensors[TANDEM_MAX_SRC]; /* that operands read; one of them: src of `of->in` */
    int n_tensors;
    int n_dims; /* of the result */
    bool is_taken;
};

/** A value of the net that is no view. */
struct tnd_lower_value {
    tandem_tensor *tensors[TND_N_LAYOUTS]; /* NULL: not there */
    const struct tnd_array *known;
    bool is_needed;
    bool is_read; /* what was lowered reads `known` */
    int owned;    /* of a folded one: its place among the lowered net's arrays, from 1 */
    int group;    /* of the node that makes it: the last node of a fused program */
};

struct tnd_lowering {
    struct tnd_lowered *out;
    const struct tnd_net *net;
    const struct tnd_lower_options *options;
    struct tnd_lower_value *values;
    int *groups;                         /* by node */
    int *tails;                          /* by node: the group that may be its epilogue; -1: none */
    struct tnd_lower_epilogue *epilogue; /* of the node that is being lowered; NULL: none */
    struct tnd_lower_int8 *int8;         /* by node */
    struct tnd_lower_table *tables;      /* by node */
    struct tnd_lower_pair *pairs;        /* by node */
    struct tandem_error *error;
};

/* lower.c */
const struct tnd_lower_value *tnd_lower_value(const struct tnd_lowering *l, int value);
/** An operand for a value. With `takes_last` its tensor may have the channels last. Sets src to the
 *  number of a tensor in `tensors`, which it is added to. */
enum tandem_status tnd_lower_operand(struct tnd_lowering *l, int value, bool takes_last,
                                     struct tnd_operand *out, tandem_tensor **tensors, int *n);
/** Offset and strides of a view in the tensor of its base, when that exists with the channels last
 *  alone. False: it does not, strides cannot say it, or neither the view's channels (dimension 1)
 *  nor the values of its last dimension lie side by side there. */
bool tnd_lower_view_last(const struct tnd_lowering *l, int value, int64_t *offset,
                         int64_t *strides);
/** Whether a view has all values of such a base, which lie in the tensor as those of the view with
 *  its own channels last would. */
bool tnd_lower_lies_last(const struct tnd_lowering *l, int value);
/** A tensor of a value that is no view and not known, in a layout; converted where it must be. */
enum tandem_status tnd_lower_tensor(struct tnd_lowering *l, int value, enum tnd_net_layout layout,
                                    tandem_tensor **out);
/** Lowers a node that is no program. */
enum tandem_status tnd_lower_node(struct tnd_lowering *l, const struct tnd_net_node *node);
/** The node of a job that is complete but for its operands' data. `work.amount` 0: as many values
 *  as its operation and its program handle. */
enum tandem_status tnd_lower_emit(struct tnd_lowering *l, struct tnd_work *job,
                                  tandem_tensor *const *tensors, int n, tandem_tensor **out);
struct tnd_work *tnd_lower_job(struct tnd_lowering *l, int n_in);
/** An array that lives with the lowered net. */
struct tnd_array *tnd_lower_array(struct tnd_lowering *l, enum tandem_dtype type,
                                  const struct tnd_dims *shape);
/** The array is freed with the lowered net, or now when that fails. */
bool tnd_lowered_keep(struct tnd_lowered *lowered, struct tnd_array *array);
enum tandem_status tnd_lower_no_memory(const struct tnd_lowering *l);

/* lower_constants.c */
/** A constant that is read while nets are lowered, not later. Without `data` where a store has
 *  dropped the values: tnd_lower_fill brings them back. Errors: MEMORY. */
enum tandem_status tnd_lower_fill(const struct tnd_lowering *l, int value);
struct tnd_view tnd_lower_known(const struct tnd_lowering *l, int value);
/** The values of such a view of a constant, in row-major order, for later: in place where they lie
 *  like that, else a copy. Errors: MEMORY. */
enum tandem_status tnd_lower_keep(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                  const void **out);
/** A value that is known, as a tensor of F32: one for all nets of a store. */
enum tandem_status tnd_lower_constant(struct tnd_lowering *l, int value,
                                      const struct tnd_view *view, int n_dims, const int64_t *ne,
                                      tandem_tensor **out);
/** An array that is packed of such a view by what the bytes `how` say: where a store has none yet,
 *  `*is_new`, its values are 0, those of the view are there (tnd_lower_known), and the caller fills
 *  it and calls tnd_lower_packed. NULL: no memory. */
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
/** Copies a view without gaps: known values at once. */
enum tandem_status tnd_lower_copy(struct tnd_lowering *l, const struct tnd_operand *from,
                                  tandem_tensor *tensor, enum tnd_net_layout layout,
                                  tandem_tensor **out);
/* lower_source.c */
/** Frees the texts that devices have asked for. */
void tnd_lowered_free_texts(struct tnd_lowered *lowered);
/** Makes constants of several values operands of a node, as long as there is room for them: a
 *  device then has them. `values`: the net's, by operand. */
void tnd_lower_constants(struct tnd_lowering *l, const int *values, struct tnd_operand *operands,
                         int n_operands, tandem_tensor **tensors, int *n);
/** A tensor over weights that lie as a kernel wants them; NULL: too large for a device. */
tandem_tensor *tnd_lower_weights(struct tnd_lowering *l, const struct tnd_array *array);
/** Gives a node its source for devices, if it can be printed: of its job's program, or of another
 *  one, which is copied. */
void tnd_lower_source(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);
void tnd_lower_print(struct tnd_lowering *l, const struct tnd_fuse_printed *printed,
                     tandem_tensor *node);
/** As tnd_lower_print, for a matrix of values under a window, and an epilogue (NULL: none). */
void tnd_lower_window(struct tnd_lowering *l, const struct tnd_printed_window *window, int64_t rows,
                      int64_t columns, const struct tnd_epilogue *epilogue, tandem_tensor *node);

/* lower_device.c */
void tnd_lower_print_pool(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);
/** Prints the source text of a join or a gather for devices; does nothing for other nodes. */
void tnd_lower_print_move(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node);

/* lower_ranges.c: every operation by the reference's kernel, over a range of one dimension */
void tnd_lower_ranges(struct tnd_work *job);

/* lower_moves.c */
/** Plans a job that joins or gathers whole runs of values; false: the general way is as good. */
bool tnd_lower_moves(struct tnd_work *job);
/** The layout in which a node that joins or gathers gives its result: that of what it reads. */
enum tnd_net_layout tnd_lower_moves_layout(const struct tnd_lowering *l,
                                           const struct tnd_net_node *node);
/** Brings the dimensions of such a job into the order of a layout. False: no memory. */
bool tnd_lower_turn(struct tnd_lowering *l, struct tnd_work *job, enum tnd_net_layout layout);

/** The values of an operand with channels last. */
enum tandem_status tnd_lower_last(struct tnd_lowering *l, int value, tandem_tensor **out);

/* lower_groups.c */
/** Whether a node computes value by value. */
static inline bool tnd_lower_is_elementwise(const struct tnd_net_node *node)
{
    return node->op <= TND_NET_SELECT;
}
/** Finds which nodes become one program (`groups`) and what may be an epilogue (`tails`). */
void tnd_lower_find_groups(struct tnd_lowering *l);
/** Lowers a program, by its last node. `steps` has room for a number by value of the net. */
enum tandem_status tnd_lower_group(struct tnd_lowering *l, int group, int *steps);
/** Sets how a job with a program goes over its operands. */
void tnd_lower_plan_fuse(struct tnd_work *job);

/* lower_epilogue.c */
/** The epilogue of the node that is being lowered, whose own result is {rows, columns} of F32 with
 *  channels last; adds the tensors that it reads to the node's. NULL: there is none. The result is
 *  then the epilogue's. */
const struct tnd_epilogue *tnd_lower_take_epilogue(struct tnd_lowering *l, tandem_tensor **tensors,
                                                   int *n_tensors, int64_t n_columns);
/* lower_conv.c */
/** Tells the chooser which convolutions the net has; `for_device` becomes true where it answers
 *  that. Errors: MEMORY. */
enum tandem_status tnd_lower_begin_convs(const struct tnd_lowering *l, bool *for_device);

/* lower_int8.c */
/** Finds products and convolutions of 8-bit integers, and packs their weights. Known values are
 *  found already. Without memory they are not found. */
void tnd_lower_find_int8(struct tnd_lowering *l);
/** Which values node `i` reads: its operands, or integers in place of what is made of them, or the
 *  byte that decides. */
int tnd_lower_reads(const struct tnd_lowering *l, int i, int reads[TND_LOWER_READS],
                    const int **out);
/** Lowers such a node. */
enum tandem_status tnd_lower_sums(struct tnd_lowering *l, const struct tnd_net_node *node);

/* lower_table.c */
/** Finds bytes that are a function of one byte, and computes their tables. Errors: MEMORY. */
enum tandem_status tnd_lower_find_tables(struct tnd_lowering *l);
/** Lowers such a node. */
enum tandem_status tnd_lower_look_up(struct tnd_lowering *l, const struct tnd_net_node *node);

/* lower_pairs.c */
/** Finds sums and products of bytes. Tables are found already. */
void tnd_lower_find_pairs(struct tnd_lowering *l);
/** Lowers such a node. */
enum tandem_status tnd_lower_pair(struct tnd_lowering *l, const struct tnd_net_node *node);
/** Whether a node is computed from bytes at once, whatever operations lie between. */
static inline bool tnd_lower_is_of_bytes(const struct tnd_lowering *l, int node)
{
    return l->tables[node].values != NULL || l->pairs[node].is_found;
}

/* lower_linear.c */
/** An operand {batch, rows, K} as a tensor {K, rows, batch} with dense rows, copied where it has
 *  others. */
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
