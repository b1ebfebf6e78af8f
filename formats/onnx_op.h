/* SPDX-License-Identifier: MIT
 * Functions for building ONNX operators. A family of operators is a file with a table; each
 * operator is a function that reads its attributes and adds operations to the net. Semantics of
 * operators: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md and Changelog.md for older
 * versions. */
#ifndef TND_ONNX_OP_H
#define TND_ONNX_OP_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "graph/net_formula.h"

struct tnd_onnx_builder;

/** Values with this or a lower number are not values of the net, but sequences (lists of values,
 * of a length known while the net is built) and empty optionals (a non-empty optional is its
 * value). */
#define TND_ONNX_FIRST_SEQUENCE (-16)
struct tnd_onnx_sequence {
    bool is_nothing;
    int n;
    const int *values;
};
struct tnd_onnx_sequences {
    TND_VECTOR_OF(struct tnd_onnx_sequence, list);
    int64_t n_values; /* of all sequences */
};

/** A node being built. */
struct tnd_onnx_call {
    struct tnd_onnx_builder *builder;
    struct tnd_net *net;
    const struct tnd_onnx_node *node;
    int64_t opset; /* of the model, 6 to 28 */
    int kind;      /* `kind` of the operator's row in its table */
    int n_in;
    const int *in; /* operands; TANDEM_NET_NONE: omitted */
    int n_out;
    int *out;           /* results, to be set; those without a name are optional */
    uint64_t were_read; /* bit i: attribute i was read; unread ones are refused */
    bool takes_sequences;
    struct tnd_onnx_sequences *sequences;
};

struct tnd_onnx_op {
    const char *name; /* NULL: the end of the table */
    void (*build)(struct tnd_onnx_call *call);
    int kind;
    /** Numbers of inputs and, unless 1, of outputs: "2", "1-3", "1-*>0-2"; then those from later
     * opsets: "1 11:2-3 18:2-4". */
    const char *arity;
};

/* onnx_rules.c */
struct tnd_onnx_span {
    int min, max;
};
/** How many inputs and outputs an operator has in an opset. */
void tnd_onnx_arity(const struct tnd_onnx_op *op, int64_t opset, struct tnd_onnx_span *out_in,
                    struct tnd_onnx_span *out_out);
/** Refuses a node with other numbers of inputs or outputs. */
bool tnd_onnx_check_arity(struct tnd_onnx_call *call, const struct tnd_onnx_op *op);
/** Whether `value` has the type that a graph declares for its output `at`; if not, the net
 * fails. A shape other than the declared one is noted in the net; symbolic extents are those of
 * the inputs. */
bool tnd_onnx_check_output(struct tnd_net *net, const struct tnd_onnx_graph *graph, int at,
                           int value);

/** The families, each a table in a file. */
#define TND_ONNX_FAMILIES(X)                                                                       \
    X(math)       /* element-wise */                                                               \
    X(activation) /* element-wise activations */                                                   \
    X(shape)      /* constants, shapes, reshaping */                                               \
    X(move)       /* concatenation, slicing, padding */                                            \
    X(index)      /* blocks, triangles, one-hot */                                                 \
    X(reduce)     /* sums, softmax, sorting */                                                     \
    X(norm)       /* normalisations */                                                             \
    X(loss)       /* losses */                                                                     \
    X(linear)     /* matrix products */                                                            \
    X(einsum)     /* Einstein sums */                                                              \
    X(window)     /* convolution, pooling */                                                       \
    X(recurrent)  /* RNN, GRU, LSTM */                                                             \
    X(attention)  /* attention, rotary embedding */                                                \
    X(state)      /* operators with a state between calls */                                       \
    X(signal)     /* windows of signals, Fourier transforms */                                     \
    X(resize)     /* resizing images */                                                            \
    X(sample)     /* interpolation between pixels */                                               \
    X(region)     /* regions, offsets and boxes in images */                                       \
    X(quant)      /* quantised operators */                                                        \
    X(flow)       /* branches and loops */                                                         \
    X(sequence)   /* sequences and optionals */                                                    \
    X(ngram)      /* n-grams */
/** Families of operators of the domain com.microsoft. */
#define TND_ONNX_MICROSOFT(X)                                                                      \
    X(microsoft)           /* written by its optimiser */                                          \
    X(microsoft_attention) /* attention, and rotary embedding */                                   \
    X(microsoft_quant)     /* written by its quantiser */                                          \
    X(microsoft_recurrent) /* layers with integer weights */
/** Families of operators of the domain ai.onnx.ml. */
#define TND_ONNX_ML(X)                                                                             \
    X(ml)      /* linear models, scalers, encoders */                                              \
    X(ml_tree) /* ensembles of trees */
/** Families of operators of the domain ai.onnx.preview. */
#define TND_ONNX_PREVIEW(X)           X(preview) /* attention with inner graphs */
#define TND_ONNX_FAMILY_DECLARE(name) extern const struct tnd_onnx_op tnd_onnx_##name[];
TND_ONNX_FAMILIES(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_MICROSOFT(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_ML(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_PREVIEW(TND_ONNX_FAMILY_DECLARE)
#undef TND_ONNX_FAMILY_DECLARE

/** Fails with a message, to which operator, version and node are prepended, and types and shapes of
 * the operands appended. Returns TANDEM_NET_NONE. */
int tnd_onnx_refuse(struct tnd_onnx_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prepends operator, version and node to the net's error message, and appends types and shapes of
 * the operands if there is room. */
void tnd_onnx_name_failure(struct tnd_onnx_call *call);

/* Attributes by name; `otherwise` is returned if the node has none. A wrong type is refused. */
bool tnd_onnx_has(const struct tnd_onnx_call *call, const char *name);
int64_t tnd_onnx_int(struct tnd_onnx_call *call, const char *name, int64_t otherwise);
float tnd_onnx_float(struct tnd_onnx_call *call, const char *name, float otherwise);
/** A text, owned by the model. */
const char *tnd_onnx_word(struct tnd_onnx_call *call, const char *name, const char *otherwise);
/** A list; none: NULL and *n = 0. */
const int64_t *tnd_onnx_ints(struct tnd_onnx_call *call, const char *name, int *n);
const float *tnd_onnx_floats(struct tnd_onnx_call *call, const char *name, int *n);
const struct tnd_onnx_string *tnd_onnx_strings(struct tnd_onnx_call *call, const char *name,
                                               int *n);
const struct tnd_onnx_tensor *tnd_onnx_tensor_of(struct tnd_onnx_call *call, const char *name);
const struct tnd_onnx_graph *tnd_onnx_graph_of(struct tnd_onnx_call *call, const char *name);
/** Marks an attribute without effect as read. */
void tnd_onnx_pass_over(struct tnd_onnx_call *call, const char *name);

/* Integers of fewer than 8 bits ("narrow"): the net keeps them in 8 bits, and the builder knows
 * which values they are. Operators that do not support them refuse them (onnx_build.c). */
/** The narrow type of a value, or UNDEFINED. */
enum tnd_onnx_type tnd_onnx_narrow_of(const struct tnd_onnx_call *call, int value);
/** Declares that a value is of a narrow type; its numbers must be in range. */
int tnd_onnx_set_narrow(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type);
/** Converts an integer to a narrow type: keeps its low bits. */
int tnd_onnx_narrowed(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type);

/** Converts numbers to floats of 8 bits or fewer. `saturates`: values out of range become the
 * nearest one, else infinity or NaN if the type has it (scale types: NaN also below 2^-127). */
int tnd_onnx_small_float(struct tnd_onnx_call *call, int value, enum tandem_dtype type,
                         bool saturates);

/** Adds a sequence, whose values must live as long as the net, and returns its number;
 * TANDEM_NET_NONE: the net has the error. */
int tnd_onnx_add_sequence(struct tnd_net *net, struct tnd_onnx_sequences *all,
                          const struct tnd_onnx_sequence *sequence);
/** The sequence of a value; NULL: not a sequence. Valid until the next one is added. */
const struct tnd_onnx_sequence *tnd_onnx_sequence_of(const struct tnd_onnx_call *call, int value);
/** Refuses operands that are sequences where the operator does not take them. */
bool tnd_onnx_check_sequences(struct tnd_onnx_call *call, const struct tnd_onnx_op *op);

/* Operands. */
/** Operand `i`; TANDEM_NET_NONE: omitted, or fewer operands. */
int tnd_onnx_in(const struct tnd_onnx_call *call, int i);
const struct tnd_dims *tnd_onnx_shape_of(const struct tnd_onnx_call *call, int value);
enum tandem_dtype tnd_onnx_type_of(const struct tnd_onnx_call *call, int value);
/** The values of an operand that an operator needs while the net is built: computed from
 * constants, or a part's answers (onnx_build.h); a net that is built in parts may end here.
 * NULL: not known. */
const struct tnd_array *tnd_onnx_ask(struct tnd_onnx_call *call, int value);
/** The integers of an operand on which the net's shapes depend: constants, or values given for the
 *  inputs. At most `most`. Refused where they are not known; *n is -1 then. */
void tnd_onnx_known(struct tnd_onnx_call *call, int value, const char *what, int64_t *out, int most,
                    int *n);
/** A list that is an attribute in older opsets and an operand in newer ones; *n is -1 where there
 *  is none, or it is refused. */
void tnd_onnx_list(struct tnd_onnx_call *call, const char *name, int operand,
                   int64_t out[TANDEM_NET_MAX_DIMS], int *n);
/** An axis, negative ones from the end; out of range: refused, and false. `rank`: dimensions. */
bool tnd_onnx_axis(struct tnd_onnx_call *call, int64_t axis, int rank, int *out);

static inline int tnd_onnx_binary(struct tnd_onnx_call *call, enum tandem_binary kind, int a, int b)
{
    return tnd_net_binary(call->net, kind, a, b);
}
/** An element-wise operation with a number, which becomes a constant of the value's type. */
int tnd_onnx_with(struct tnd_onnx_call *call, enum tandem_binary kind, int value, double number);
/** Builds an operator from a formula (tnd_net_formula) of its operands, widened by tnd_onnx_wide,
 * and of attributes, which the formula's head lists after the operands with their defaults: "x,
 * alpha = 0.5: x * alpha". */
void tnd_onnx_formula(struct tnd_onnx_call *call, const char *text);
/** A constant of one value, with the type of `like`. */
int tnd_onnx_scalar(struct tnd_onnx_call *call, int like, double number);
/** Converts 16-bit floats to float32, in which operators are computed; other types are returned as
 * they are. */
int tnd_onnx_wide(struct tnd_onnx_call *call, int value);
/** Converts an operator's result to the type of `like`. If it was widened, passes may omit the
 * rounding when another operator on floats reads it. */
int tnd_onnx_narrow(struct tnd_onnx_call *call, int value, int like);
/** x divided by `by`, or by 1 where that is 0. */
int tnd_onnx_divided(struct tnd_onnx_call *call, int x, int by);
/** A constant int64 list 0, 1, ... n - 1. */
int tnd_onnx_counting(struct tnd_onnx_call *call, int64_t n);
/** The convolution that the node's attributes describe, of {N, C, spatial}; refused when they do
 *  not fit. */
int tnd_onnx_conv(struct tnd_onnx_call *call, int x, int w);
/** Dequantises integers to float32: (x - zero) * scale; both are a number, or one per index of an
 * axis. The zero point may be omitted. */
int tnd_onnx_dequantised(struct tnd_onnx_call *call, int x, int scale, int zero);
int tnd_onnx_dequantised_along(struct tnd_onnx_call *call, int x, int scale, int zero, int axis);
/** Quantises float32 to integers of a type: x / scale rounded to nearest, plus the zero point if
 * any, clamped to the type's range. */
int tnd_onnx_quantised(struct tnd_onnx_call *call, int x, int scale, int zero,
                       enum tandem_dtype type);
/** Concatenates past keys or values {batch, heads, past, size} (TANDEM_NET_NONE: none) with the
 * current ones. */
int tnd_onnx_with_past(struct tnd_onnx_call *call, int past, int now);
/** Repeats the heads of keys or values {batch, fewer heads, rows, size} for `heads` query heads, a
 * multiple: each is used by a group of adjacent query heads. */
int tnd_onnx_for_groups(struct tnd_onnx_call *call, int x, int64_t heads);
/** The second operand, reshaped to broadcast with the first. Before opset 7 it broadcasts only if
 * the node says so, and its dimensions may start at an axis. */
int tnd_onnx_second(struct tnd_onnx_call *call);

/** Builds operator `op` of ONNX, or "com.microsoft.NAME", in place of the node, with these
 * attributes (`n` -1: the node's), operands and results. */
void tnd_onnx_build_as(struct tnd_onnx_call *call, const char *op,
                       const struct tnd_onnx_attribute *attributes, int n, const int *in, int n_in,
                       int *out, int n_out);
/** As tnd_onnx_build_as, with one operand and one result. */
int tnd_onnx_apply(struct tnd_onnx_call *call, const char *op,
                   const struct tnd_onnx_attribute *attributes, int n, int value);

/** Builds the nodes of a graph inside a node (the branches of If, the body of Loop) with values for
 * its inputs, which need not have the declared types. False: failed; other numbers of inputs or
 * outputs are refused. */
bool tnd_onnx_inner(struct tnd_onnx_call *call, const struct tnd_onnx_graph *graph, const int *in,
                    int n_in, int *out, int n_out);

#endif
