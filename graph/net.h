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
    const char *name; /* "" mostly */
    int base;         /* the value that it is a view of; itself when it is none */
    int64_t offset;   /* of a view, in values of the base */
    int64_t strides[TANDEM_NET_MAX_DIMS];
    int node;                      /* that makes it; -1: constants, inputs, views */
    int input;                     /* which input of the net it is; -1: none */
    bool is_fixed;                 /* an input whose known values the net was specialised with */
    int readers;                   /* of what it stands for in the net that a pass rewrites */
    const struct tnd_array *known; /* its values, where they are known */
};

struct tnd_net {
    struct tnd_arena arena;
    TND_VECTOR_OF(struct tnd_net_value, values);
    TND_VECTOR_OF(struct tnd_net_node, nodes); /* operands come before */
    TND_VECTOR_OF(struct tnd_array *, owned);  /* arrays that the net frees */
    TND_VECTOR_OF(int, inputs);
    TND_VECTOR_OF(int, outputs); /* never views */
    struct tnd_store *store;     /* borrowed: keeps constants for other nets; NULL: none does */
    enum tandem_status status;   /* the first error of a builder */
    struct tandem_error error;
    char note[192]; /* what a user should know of a net that was built; "": nothing */
    bool is_probe;  /* nothing is built: who tries to is told TANDEM_NET_NONE */
    bool was_tried; /* somebody did */
};

/** An empty net, which the caller owns; NULL without memory. */
struct tnd_net *tnd_net_new(void);
void tnd_net_free(struct tnd_net *net);

/** Records an error, if there is none yet, and gives TANDEM_NET_NONE. */
int tnd_net_fail(struct tnd_net *net, enum tandem_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** An input. `known` (NULL: none) are values with which the net may be specialised; it is
 *  borrowed as long as the net lives. A net that was specialised with them (tnd_net_known) runs
 *  with these values alone. */
int tnd_net_input(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape,
                  const char *name, const struct tnd_array *known);
/** A constant. The net owns `array` from now on, on failure too. */
int tnd_net_constant(struct tnd_net *net, struct tnd_array *array);
/** A constant of one value and no dimension. */
int tnd_net_scalar(struct tnd_net *net, enum tandem_dtype type, double value);
/** A constant list of integers. */
int tnd_net_integers(struct tnd_net *net, const int64_t *values, int64_t n);
/** Names the result of an operation, for messages; one that has a name, and all else, stays. */
void tnd_net_name(struct tnd_net *net, int value, const char *name);
/** Names the results, from value `first` on, of all operations without a name: "KIND NAME". */
void tnd_net_name_since(struct tnd_net *net, int first, const char *kind, const char *name);
/** Makes a value an output; a view is copied. */
int tnd_net_output(struct tnd_net *net, int value);

/** An operation whose operands have the types and shapes that it wants. `shape` and `type` are
 *  those of the result: the callers below compute them. */
int tnd_net_add(struct tnd_net *net, enum tnd_net_op op, const struct tnd_net_params *params,
                const int *inputs, int n_inputs, enum tandem_dtype type,
                const struct tnd_dims *shape);

/** The values of a value that depends on constants alone, or on inputs with known values (the net
 *  is then specialised with them): computed at the first call, kept in the net. NULL: not known,
 *  or it failed, which the net records. */
const struct tnd_array *tnd_net_known(struct tnd_net *net, int value);

/** From now on `array`, which is copied, is known as the values of `value`, which an operation
 *  makes; gives the copy. NULL: it failed, which the net records. */
const struct tnd_array *tnd_net_answer(struct tnd_net *net, int value,
                                       const struct tnd_array *array);
/** An array for other nets of the same store: `array` with one holder more, or a copy. NULL: no
 *  memory. */
struct tnd_array *tnd_net_share(const struct tnd_net *net, const struct tnd_array *array);

const struct tnd_net_value *tnd_net_value(const struct tnd_net *net, int value);

/* ---- views (net_views.c) ---- */

int tnd_net_permute(struct tnd_net *net, int value, const int *axes);
/** Same values in row-major order. Errors: SHAPE when the counts differ. */
int tnd_net_reshape(struct tnd_net *net, int value, const struct tnd_dims *shape);
/** What `like` is of its base, of another base of the same shape, which is no view. */
int tnd_net_view_like(struct tnd_net *net, int base, int like);
/** Broadcasts to a shape, aligned at the last dimension. Errors: SHAPE. */
int tnd_net_expand(struct tnd_net *net, int value, const struct tnd_dims *shape);
/** From `start` (inside), `count` values of an axis with a step other than 0. */
int tnd_net_slice(struct tnd_net *net, int value, int axis, int64_t start, int64_t count,
                  int64_t step);
/** Result[i] = value[fn(i)]: asks the function once for each index, now. A view where strides say
 *  it, else a gather with the name "reindex NAME". Errors: ARGUMENT (outside), MEMORY. */
int tnd_net_reindex(struct tnd_net *net, int value, const struct tnd_dims *shape,
                    tandem_reindex_fn fn, void *user, const char *name);
/** All values along the diagonal of two axes of equal extent: the first stays, the second goes. */
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
/** `begin` and `end` places an axis, negative ones cut. `constant` is one value of the type. */
int tnd_net_pad(struct tnd_net *net, enum tandem_pad mode, int value, const int64_t *begin,
                const int64_t *end, int constant);
/** Indices of any shape, negative ones from the end. */
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
 * What pass "recognise" makes of the operations below. Rows of -infinity alone give zeros. */

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

/** "add", "sum", "conv": the kind of an operation, where it has one; lives for ever. */
const char *tnd_net_node_name(const struct tnd_net_node *node);
/** One line for each operation, with results, operands, types and shapes. */
void tnd_net_print(const struct tnd_net *net, struct tnd_text *out);

/* ---- running (net_run.c) ---- */

/** Whether an array can be input `i`. Errors: SHAPE (type or shape), ARGUMENT (other values than
 *  the net was specialised with). */
enum tandem_status tnd_net_check_input(const struct tnd_net *net, int i,
                                       const struct tnd_array *array, struct tandem_error *error);

/** Computes all outputs with the reference kernels. `inputs`: one array for each input, of its type
 *  and shape. `outputs`: one for each output, made by the call; the caller frees them. Errors:
 *  SHAPE, TYPE, ARGUMENT (an index out of range; other values than the net was specialised with),
 *  MEMORY. */
enum tandem_status tnd_net_run(const struct tnd_net *net, struct tnd_array *const *inputs,
                               struct tnd_array **outputs, struct tandem_error *error);

#endif
