/* SPDX-License-Identifier: MIT
 * room: graph
 *
 * Nets: graphs of operations on arrays of any type with up to 8 dimensions. A net is built by hand,
 * or from an ONNX model (tandem/onnx_nets.h), and then lowered to a graph of tensors, which a
 * runtime computes as often as wanted (docs/graphs.md):
 *
 *     tandem_net_new(&net, &error);
 *     int x = tandem_net_input(net, TANDEM_DTYPE_F32, 2, (int64_t[]){4, 64}, "x");
 *     tandem_net_output(net, tandem_net_unary(net, TANDEM_UNARY_EXP, x), "y");
 *     tandem_net_lower(net, NULL, &lowered, &error);
 *     tandem_lowered_set_input(lowered, 0, values, bytes, &error);
 *     tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error);
 *     tandem_lowered_output(lowered, 0, &y);
 *
 * Values of a net have numbers. A builder that fails records the first error in the net and returns
 * TANDEM_NET_NONE, and so do all builders after it: one look at the end does. Wrong arguments are
 * such errors: ARGUMENT (no such value, axis or kind), SHAPE, TYPE, MEMORY, OVERFLOW.
 *
 * Threads: one at a time a net, and one at a time a lowered net. */
#ifndef TANDEM_NETS_H
#define TANDEM_NETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/graph.h"
#include "tandem/net-list.h"
#include "tandem/status.h"

TANDEM_BEGIN_C

/** A net under construction. */
typedef struct tandem_net tandem_net;
/** A lowered net, with its graph and the memory of inputs and outputs. */
typedef struct tandem_lowered tandem_lowered;

/** Type and shape of values; if they have memory, they are in row-major order without gaps: the
 * last dimension runs fastest. The layout is fixed for good. */
struct tandem_net_array {
    const char *name;                  /**< of an input or output; "": none */
    enum tandem_dtype type;            /**< of the values */
    int n_dims;                        /**< 0: one value */
    int64_t dims[TANDEM_NET_MAX_DIMS]; /**< extents, the slowest first */
    void *data;                        /**< NULL: only described */
    size_t bytes;                      /**< of all values */
};

/** A window that moves along the dimensions after the first two. */
struct tandem_window {
    size_t size;                             /**< sizeof(struct tandem_window) */
    int64_t extent[TANDEM_NET_MAX_WINDOW];   /**< of a pool; a convolution's weights have it */
    int64_t stride[TANDEM_NET_MAX_WINDOW];   /**< 0: 1 */
    int64_t dilation[TANDEM_NET_MAX_WINDOW]; /**< 0: 1 */
    int64_t before[TANDEM_NET_MAX_WINDOW];   /**< padding at the beginning; below 0 crops */
    int64_t after[TANDEM_NET_MAX_WINDOW];    /**< padding at the end */
    int64_t groups;                          /**< of a convolution; 0: 1 */
};
#define TANDEM_WINDOW_INIT                                                                         \
    {                                                                                              \
        sizeof(struct tandem_window), {0}, {0}, {0}, {0}, {0}, 0                                   \
    }

/** An empty net, which the caller owns. Any thread. Errors: ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_net_new(tandem_net **out_net, struct tandem_error *error);
/** NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_net_free(tandem_net *net);
/** OK, or the first error of a builder. One thread at a time. Errors: that one, ARGUMENT (NULL),
 *  STATE (the net was lowered). */
TANDEM_API enum tandem_status tandem_net_status(const tandem_net *net, struct tandem_error *error);
/** Clears the error, so that builders work again: values made before it are valid. MEMORY stays.
 * Never fails. One thread at a time. */
TANDEM_API void tandem_net_clear_error(tandem_net *net);
/** Type and shape of a value (data NULL). Never fails: false when there is no such value, and `out`
 *  is untouched. One thread at a time. */
TANDEM_API bool tandem_net_value(const tandem_net *net, int value, struct tandem_net_array *out);
/** Prints one line per operation so far. One thread at a time. Errors: ARGUMENT (NULL), STATE (the
 * net was lowered), MEMORY, FILE (`write` stopped). */
TANDEM_API enum tandem_status tandem_net_print(const tandem_net *net, tandem_write_fn write,
                                               void *user);

/* ---- inputs, constants, outputs ---- */

/** An input: `n_dims` extents, the slowest first; the name is copied. One thread at a time.
 *  Errors: recorded in the net. */
TANDEM_API int tandem_net_input(tandem_net *net, enum tandem_dtype type, int n_dims,
                                const int64_t *dims, const char *name);
/** A constant, whose values are copied; one value as each element of a number in its type. One
 *  thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_constant(tandem_net *net, enum tandem_dtype type, int n_dims,
                                   const int64_t *dims, const void *data);
TANDEM_API int tandem_net_scalar(tandem_net *net, enum tandem_dtype type, double value);
/** Makes a value an output; the name is copied. Outputs keep their order. One thread at a time.
 *  Errors: recorded in the net. */
TANDEM_API int tandem_net_output(tandem_net *net, int value, const char *name);

/* ---- views: no values are moved ---- */

/** Permutes dimensions: dimension i becomes that of axes[i]. One thread at a time. Errors: recorded
 * in the net. */
TANDEM_API int tandem_net_permute(tandem_net *net, int value, const int *axes);
/** The same values in row-major order with other extents. One thread at a time. Errors: recorded in
 *  the net. */
TANDEM_API int tandem_net_reshape(tandem_net *net, int value, int n_dims, const int64_t *dims);
/** Broadcasts to `dims`, aligned at the last dimension. One thread at a time. Errors: recorded in
 * the net. */
TANDEM_API int tandem_net_expand(tandem_net *net, int value, int n_dims, const int64_t *dims);
/** `count` values of an axis from `start` on, `step` apart; a negative step goes backwards. Axes
 * below 0 count from the end, here and below. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_slice(tandem_net *net, int value, int axis, int64_t start, int64_t count,
                                int64_t step);
/** Maps the index of a result's value to that of its source, one number for each dimension of the
 * operand. */
typedef void (*tandem_reindex_fn)(void *user, const int64_t *index, int64_t *from);
/** result[i] = value[fn(i)], of extents `dims`. The function is called once for each index, in
 * row-major order, during the call. If strides can express it (transposed, flipped, every second, a
 * diagonal, repeated), the result is a view and costs nothing; else indices are stored, 8 bytes
 * each, and the node is printed as "reindex NAME" (NULL: ""). One thread at a time. Errors:
 * recorded in the net (ARGUMENT: NULL, or an index that the value does not have). */
TANDEM_API int tandem_net_reindex(tandem_net *net, int value, int n_dims, const int64_t *dims,
                                  tandem_reindex_fn fn, void *user, const char *name);

/* ---- element-wise ---- */

/** Casts to another type: floats are truncated towards zero; to BOOL, all but 0 become true. One
 * thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_cast(tandem_net *net, int value, enum tandem_dtype type);
TANDEM_API int tandem_net_unary(tandem_net *net, enum tandem_unary kind, int value);
/** Both operands, of one type, are broadcast; `condition` is BOOL. One thread at a time. Errors:
 *  recorded in the net. */
TANDEM_API int tandem_net_binary(tandem_net *net, enum tandem_binary kind, int a, int b);
TANDEM_API int tandem_net_select(tandem_net *net, int condition, int a, int b);

/* ---- along axes ---- */

/** Over `n_axes` axes (NULL and 0: all), which are kept with extent 1 if `keeps`. One thread at a
 * time. Errors: recorded in the net. */
TANDEM_API int tandem_net_reduce(tandem_net *net, enum tandem_reduce kind, int value,
                                 const int *axes, int n_axes, bool keeps);
/** Index (I64) of the first largest, or smallest, value; the axis is kept with extent 1. One thread
 * at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_arg_reduce(tandem_net *net, bool is_max, int value, int axis);
/** Running sum; indices (I64) of a stable sort. One thread at a time. Errors: recorded in the
 * net. */
TANDEM_API int tandem_net_scan(tandem_net *net, int value, int axis);
TANDEM_API int tandem_net_arg_sort(tandem_net *net, int value, int axis, bool largest_first);
/** exp(x - max) / sum. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_softmax(tandem_net *net, int value, int axis);
/** Over `n_axes` axes. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_norm(tandem_net *net, enum tandem_norm kind, int value, const int *axes,
                               int n_axes, double epsilon);

/* ---- products and windows ---- */

/** Matrix product as NumPy's matmul: leading dimensions are broadcast. One thread at a time.
 *  Errors: recorded in the net. */
TANDEM_API int tandem_net_matmul(tandem_net *net, int a, int b);
/** softmax(q k^T scale + mask) v of q {B, M, D}, k {B, N, D}, v {B, N, E} and a mask {B, M, N} or
 *  TANDEM_NET_NONE, to {B, M, E}. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_attention(tandem_net *net, int q, int k, int v, int mask, double scale);
/** x {N, C, ...} with weights {M, C / groups, ...}, to {N, M, ...}, with one to three window
 * dimensions. NULL: a window without padding. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_conv(tandem_net *net, int x, int w, const struct tandem_window *window);
/** x {N, C, ...} by windows. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_pool(tandem_net *net, enum tandem_pool kind, int x,
                               const struct tandem_window *window);

/* ---- moving values ---- */

/** One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_concat(tandem_net *net, const int *values, int n, int axis);
/** `before` and `after`: number of values to add per axis; negative numbers crop. `constant` is one
 * value of the type, ignored by other modes. One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_pad(tandem_net *net, enum tandem_pad mode, int value,
                              const int64_t *before, const int64_t *after, int constant);
/** ONNX's Gather, GatherElements and ScatterElements: slices of an axis by indices of any shape;
 * elements along an axis, with equal indices in the other dimensions; the same, for writing.
 * Negative indices count from the end. An index out of range fails the computation with ARGUMENT.
 * One thread at a time. Errors: recorded in the net. */
TANDEM_API int tandem_net_gather(tandem_net *net, int value, int indices, int axis);
TANDEM_API int tandem_net_gather_elements(tandem_net *net, int value, int indices, int axis);
TANDEM_API int tandem_net_scatter_elements(tandem_net *net, enum tandem_scatter kind, int value,
                                           int indices, int updates, int axis);

/* ---- computing ---- */

/** Options of tandem_net_lower. */
struct tandem_lower_options {
    size_t size;        /**< sizeof(struct tandem_lower_options) */
    const char *passes; /**< "fold,equal,.."; NULL: all; "none". docs/graphs.md */
    bool for_device; /**< use methods for convolutions that a device can run, with more memory: for
                      * runtimes that force a device's `profile`. Others can compute the graph
                      * too */
    const tandem_chooser *chooser; /**< tandem_runtime_chooser of the runtime that will compute:
                                    * chooses convolutions by its table's times, and sets
                                    * `for_device` if a device's profile is forced; NULL: by rule */
};
#define TANDEM_LOWER_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct tandem_lower_options), NULL, false, NULL                                     \
    }

/** Runs passes over a net and makes a graph of tensors of it; what depends only on constants is
 * computed now. The caller owns the result, which takes over the contents of the net: on success
 * the net is empty, and only tandem_net_free is allowed. `options` may be NULL. One thread at a
 * time. Errors: those of the builders, ARGUMENT (NULL, no such pass, no output), ABI, STATE
 * (lowered already), MEMORY, OVERFLOW. */
TANDEM_API enum tandem_status tandem_net_lower(tandem_net *net,
                                               const struct tandem_lower_options *options,
                                               tandem_lowered **out_lowered,
                                               struct tandem_error *error);
/** NULL is allowed. No runtime may be computing the graph. Never fails. One thread at a time. */
TANDEM_API void tandem_lowered_free(tandem_lowered *lowered);
/** A number that no other lowered net of the process has; 0 for NULL. Never fails. Any thread. */
TANDEM_API uint64_t tandem_lowered_serial(const tandem_lowered *lowered);
/** The graph, finished, owned by `lowered`: for tandem_runtime_compute, tandem_runtime_plan and so
 * on. Computing it again allocates nothing (except temporary memory of tandem_net_arg_sort). NULL
 * for NULL. Never fails. Any thread. */
TANDEM_API tandem_graph *tandem_lowered_graph(const tandem_lowered *lowered);

/** Number of inputs; of outputs. 0 for NULL. Never fail. Any thread. */
TANDEM_API int tandem_lowered_input_count(const tandem_lowered *lowered);
TANDEM_API int tandem_lowered_output_count(const tandem_lowered *lowered);
/** The number of an input, or output, by name; -1: unknown. Never fail. Any thread. */
TANDEM_API int tandem_lowered_find_input(const tandem_lowered *lowered, const char *name);
TANDEM_API int tandem_lowered_find_output(const tandem_lowered *lowered, const char *name);
/** Input or output `i` with its memory: fill inputs in place and read outputs without a copy while
 * no runtime computes the graph. Inputs keep their values from computation to computation. Name and
 * memory live as long as `lowered`. Never fail: false outside, and `out` is untouched. One thread
 * at a time. */
TANDEM_API bool tandem_lowered_input(const tandem_lowered *lowered, int i,
                                     struct tandem_net_array *out);
TANDEM_API bool tandem_lowered_output(const tandem_lowered *lowered, int i,
                                      struct tandem_net_array *out);
/** Copies values into input `i`. One thread at a time. Errors: ARGUMENT (NULL, no such input, other
 *  values than the net was specialised with), SHAPE (`bytes` is not what the input has). */
TANDEM_API enum tandem_status tandem_lowered_set_input(tandem_lowered *lowered, int i,
                                                       const void *data, size_t bytes,
                                                       struct tandem_error *error);

TANDEM_END_C
#endif
