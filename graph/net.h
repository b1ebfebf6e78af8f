/* SPDX-License-Identifier: MIT
 * A net: a graph of orthogonal operations in single static assignment. Every value has a type and
 * a shape of known extents; an operation makes one value. Re-indexing (permuting, slicing with
 * steps, flipping, broadcasting, reshaping) is no operation: such a value is a view, an offset and
 * strides over another value, and a copy is made only where strides cannot say it.
 *
 * A builder that fails records the first error in the net and gives TANDEM_NET_NONE; builders that
 * get TANDEM_NET_NONE give it back, so that a caller may look at the end. One thread at a time a
 * net. */
#ifndef TND_NET_H
#define TND_NET_H

#include "base/arena.h"
#include "base/text.h"
#include "base/tnd_status.h"
#include "base/vector.h"
#include "ggml-like/net_op.h"
#include "graph/store.h"
#include "tandem/nets.h"

struct tnd_net_node {
    enum tnd_net_op op;
    int n_inputs;
    const int *inputs; /* values */
    int output;        /* value, never a view */
    struct tnd_net_params params;
};

struct tnd_net_value {
    enum tandem_dtype type;
    struct tnd_dims shape;
    const char *name; /* usually "" */
    int base;         /* the value of which it is a view; else itself */
    int64_t offset;   /* of a view, in values of the base */
    int64_t strides[TANDEM_NET_MAX_DIMS];
    int node;                      /* node that computes it; -1: constants, inputs, views */
    int input;                     /* index of the input; -1: none */
    bool is_fixed;                 /* an input with whose known values the net was specialised */
    int readers;                   /* of what it stands for in the net that a pass rewrites */
    const struct tnd_array *known; /* its values if known, else NULL */
};

struct tnd_net {
    struct tnd_arena arena;
    TND_VECTOR_OF(struct tnd_net_value, values);
    TND_VECTOR_OF(struct tnd_net_node, nodes); /* after the nodes of their operands */
    TND_VECTOR_OF(struct tnd_array *, owned);  /* arrays freed with the net */
    TND_VECTOR_OF(int, inputs);
    TND_VECTOR_OF(int, outputs); /* never views */
    struct tnd_store *store;     /* borrowed: shares constants between nets; NULL: none */
    enum tandem_status status;   /* the first error of a builder */
    struct tandem_error error;
    char note[192]; /* a warning for the user about a net that was built; "": none */
    bool is_probe;  /* builders build nothing and return TANDEM_NET_NONE */
    bool was_tried; /* a builder was called */
};

/** Makes an empty net, owned by the caller; NULL: out of memory. */
struct tnd_net *tnd_net_new(void);
void tnd_net_free(struct tnd_net *net);

/** Records an error unless there is one; returns TANDEM_NET_NONE. */
int tnd_net_fail(struct tnd_net *net, enum tandem_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds an input. `known` (NULL: none) are values with which the net may be specialised,
 * borrowed as long as the net lives. A net that was specialised (tnd_net_known) runs only with
 * these values. */
int tnd_net_input(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape,
                  const char *name, const struct tnd_array *known);
/** Adds a constant. Takes ownership of `array`, also on failure. */
int tnd_net_constant(struct tnd_net *net, struct tnd_array *array);
/** A scalar constant. */
int tnd_net_scalar(struct tnd_net *net, enum tandem_dtype type, double value);
/** A constant list of integers. */
int tnd_net_integers(struct tnd_net *net, const int64_t *values, int64_t n);
/** Names the result of an operation, for messages; existing names, and values other than results,
 * are unchanged. */
void tnd_net_name(struct tnd_net *net, int value, const char *name);
/** Names all unnamed results of operations from value `first` on "KIND NAME". */
void tnd_net_name_since(struct tnd_net *net, int first, const char *kind, const char *name);
/** Makes a value an output; a view is copied. */
int tnd_net_output(struct tnd_net *net, int value);

/** Adds an operation; its operands must have suitable types and shapes. `shape` and `type` are the
 * result's: the callers below compute them. */
int tnd_net_add(struct tnd_net *net, enum tnd_net_op op, const struct tnd_net_params *params,
                const int *inputs, int n_inputs, enum tandem_dtype type,
                const struct tnd_dims *shape);

/** The data of a value that depends only on constants or inputs with known values (with which the
 * net is then specialised): computed at the first call and kept in the net. NULL: not known, or an
 * error in the net. */
const struct tnd_array *tnd_net_known(struct tnd_net *net, int value);

/** Declares `array`, which is copied, as the data of `value`, the result of an operation. Returns
 * the copy; NULL: an error in the net. */
const struct tnd_array *tnd_net_answer(struct tnd_net *net, int value,
                                       const struct tnd_array *array);
/** A shared array for nets of the same store: `array` with one more reference, or a copy. NULL: out
 * of memory. */
struct tnd_array *tnd_net_share(const struct tnd_net *net, const struct tnd_array *array);

const struct tnd_net_value *tnd_net_value(const struct tnd_net *net, int value);

/* ---- views (net_views.c) ---- */

int tnd_net_permute(struct tnd_net *net, int value, const int *axes);
/** Same values in row-major order. Errors: SHAPE (other number of values). */
int tnd_net_reshape(struct tnd_net *net, int value, const struct tnd_dims *shape);
/** The same view of `base` as `like` is of its own base, which has the same shape; `base` is not a
 * view. */
int tnd_net_view_like(struct tnd_net *net, int base, int like);
/** Broadcasts to a shape, aligned at the last dimension. Errors: SHAPE. */
int tnd_net_expand(struct tnd_net *net, int value, const struct tnd_dims *shape);
/** `count` values of an axis from `start` (in range), with a step other than 0. */
int tnd_net_slice(struct tnd_net *net, int value, int axis, int64_t start, int64_t count,
                  int64_t step);
/** Result[i] = value[fn(i)]: calls the function once per index, now. A view if strides can express
 * it, else a gather named "reindex NAME". Errors: ARGUMENT (out of range), MEMORY. */
int tnd_net_reindex(struct tnd_net *net, int value, const struct tnd_dims *shape,
                    tandem_reindex_fn fn, void *user, const char *name);
/** The diagonal of two axes of equal extent: the first axis stays, the second is removed. */
int tnd_net_diagonal(struct tnd_net *net, int value, int axis, int other);

/* ---- operations (net_ops.c) ---- */

int tnd_net_copy(struct tnd_net *net, int value);
int tnd_net_cast(struct tnd_net *net, int value, enum tandem_dtype type);
int tnd_net_unary(struct tnd_net *net, enum tandem_unary kind, int value);
/** Broadcasts both operands. Errors: SHAPE, TYPE (the types differ). */
int tnd_net_binary(struct tnd_net *net, enum tandem_binary kind, int a, int b);
int tnd_net_select(struct tnd_net *net, int condition, int a, int b);
int tnd_net_reduce(struct tnd_net *net, enum tandem_reduce kind, int value, unsigned axes);
int tnd_net_arg_reduce(struct tnd_net *net, bool is_max, int value, int axis, bool picks_last);
/** Matrix product as NumPy's matmul. */
int tnd_net_matmul(struct tnd_net *net, int a, int b);
int tnd_net_concat(struct tnd_net *net, const int *values, int n, int axis);
/** Pads each axis by `begin` and `end` values; negative ones crop. `constant` is one value of the
 * type. */
int tnd_net_pad(struct tnd_net *net, enum tandem_pad mode, int value, const int64_t *begin,
                const int64_t *end, int constant);
/** Gathers along an axis. Indices have any shape; negative ones count from the end. */
int tnd_net_gather(struct tnd_net *net, int value, int indices, int axis);
int tnd_net_gather_elements(struct tnd_net *net, int value, int indices, int axis);
int tnd_net_scatter_elements(struct tnd_net *net, enum tandem_scatter kind, int value, int indices,
                             int updates, int axis);
int tnd_net_scan(struct tnd_net *net, int value, int axis, bool is_exclusive, bool is_reverse);
int tnd_net_arg_sort(struct tnd_net *net, int value, int axis, bool largest_first);
int tnd_net_conv(struct tnd_net *net, int x, int w, const struct tnd_window *window);
int tnd_net_pool(struct tnd_net *net, enum tandem_pool kind, int value,
                 const struct tnd_window *window);

/* ---- along rows of F32 or F64 {B, M, K} (net_rows.c) ----
 *
 * The pass "recognise" makes these from the operations below. Rows of only -infinity become zeros.
 */

static inline bool tnd_net_is_row_type(enum tandem_dtype type)
{
    return type == TANDEM_DTYPE_F32 || type == TANDEM_DTYPE_F64;
}
int tnd_net_row_softmax(struct tnd_net *net, int value);
int tnd_net_row_norm(struct tnd_net *net, enum tandem_norm kind, int value, double epsilon);
/** softmax(q k^T * scale + mask) v: q {B, M, D}, k {B, N, D}, v {B, N, E}, mask {1, M, N} or
 *  TANDEM_NET_NONE -> {M, B, E}. Errors: SHAPE. */
int tnd_net_row_attention(struct tnd_net *net, int q, int k, int v, int mask, double scale);
/** All steps of a recurrent layer; the operands are those of ggml-like/recurrent.h. `lengths` may
 *  be TANDEM_NET_NONE. Errors: SHAPE. */
int tnd_net_recurrent(struct tnd_net *net, const struct tnd_recurrent *layer, int x, int r,
                      int extra, int state, int lengths);

/* ---- composed of others (net_composites.c) ---- */

int tnd_net_softmax(struct tnd_net *net, int value, int axis);
int tnd_net_norm(struct tnd_net *net, enum tandem_norm kind, int value, unsigned axes,
                 double epsilon);
/** q {B, M, D}, k {B, N, D}, v {B, N, E}, and a mask {B, M, N} that is added, or TANDEM_NET_NONE;
 *  the products are multiplied by `scale` -> {B, M, E}. Errors: SHAPE, TYPE. */
int tnd_net_attention(struct tnd_net *net, int q, int k, int v, int mask, double scale);

/* ---- text (net_print.c) ---- */

/** "add", "sum", "conv": the operation's kind, if it has one; a static text. */
const char *tnd_net_node_name(const struct tnd_net_node *node);
/** Prints a line per operation, with results, operands, types and shapes. */
void tnd_net_print(const struct tnd_net *net, struct tnd_text *out);

/* ---- running (net_run.c) ---- */

/** Checks an array for input `i`. Errors: SHAPE (type or shape), ARGUMENT (other values than the
 * net was specialised with). */
enum tandem_status tnd_net_check_input(const struct tnd_net *net, int i,
                                       const struct tnd_array *array, struct tandem_error *error);

/** Computes all outputs with the reference kernels. `inputs`: one array for each input, of its type
 *  and shape. `outputs`: one for each output, made by the call; the caller frees them. Errors:
 *  SHAPE, TYPE, ARGUMENT (an index out of range; other values than the net was specialised with),
 *  MEMORY. */
enum tandem_status tnd_net_run(const struct tnd_net *net, struct tnd_array *const *inputs,
                               struct tnd_array **outputs, struct tandem_error *error);

#endif
