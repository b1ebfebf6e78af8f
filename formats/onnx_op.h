/* SPDX-License-Identifier: MIT
 * What operators of ONNX are built with. A family of operators is a file with a table; each one
 * is a function that reads its attributes and adds operations to the net.
 *
 * Sources of what operators mean: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md and
 * Changelog.md for older versions. */
#ifndef TND_ONNX_OP_H
#define TND_ONNX_OP_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "graph/net_formula.h"

struct tnd_onnx_builder;

/** Values from this number down are no values of the net but sequences, lists of values that are
 *  known while the net is built, and optionals that hold nothing (one that holds something is what
 *  it holds). */
#define TND_ONNX_FIRST_SEQUENCE (-16)
struct tnd_onnx_sequence {
    bool is_nothing;
    int n;
    const int *values;
};
struct tnd_onnx_sequences {
    TND_VECTOR_OF(struct tnd_onnx_sequence, list);
    int64_t n_values; /* of all */
};

/** One node that is being built. */
struct tnd_onnx_call {
    struct tnd_onnx_builder *builder;
    struct tnd_net *net;
    const struct tnd_onnx_node *node;
    int64_t opset; /* of the model, 6 to 28 */
    int kind;      /* what the operator's row in its table says */
    int n_in;
    const int *in; /* values; TANDEM_NET_NONE: left out */
    int n_out;
    int *out;           /* to be filled; those without a name need not be */
    uint64_t were_read; /* bit i: attribute i; what nobody reads is refused */
    bool takes_sequences;
    struct tnd_onnx_sequences *sequences;
};

struct tnd_onnx_op {
    const char *name; /* NULL: the end of the table */
    void (*build)(struct tnd_onnx_call *call);
    int kind;
    /** Numbers of inputs and, where it is not one, of outputs: "2", "1-3", "1-*>0-2"; followed by
     *  those since newer opsets: "1 11:2-3 18:2-4". */
    const char *arity;
};

/* onnx_rules.c */
struct tnd_onnx_span {
    int min, max;
};
/** How many inputs and outputs an operator has in an opset. */
void tnd_onnx_arity(const struct tnd_onnx_op *op, int64_t opset, struct tnd_onnx_span *out_in,
                    struct tnd_onnx_span *out_out);
/** Refuses a node with other numbers of them. */
bool tnd_onnx_check_arity(struct tnd_onnx_call *call, const struct tnd_onnx_op *op);
/** Whether value `value` is of the type that a graph states for its output `at`; the net fails when
 *  it is not. Another shape than the stated one is noted in the net; symbolic extents are those of
 *  the inputs. */
bool tnd_onnx_check_output(struct tnd_net *net, const struct tnd_onnx_graph *graph, int at,
                           int value);

/** The families, each a table in a file. */
#define TND_ONNX_FAMILIES(X)                                                                       \
    X(math)       /* element by element */                                                         \
    X(activation) /* the same, of neural networks */                                               \
    X(shape)      /* constants, shapes, re-indexing */                                             \
    X(move)       /* joining, cutting, gathering, padding */                                       \
    X(index)      /* blocks, triangles, one-hot */                                                 \
    X(reduce)     /* sums, softmax, sorting */                                                     \
    X(norm)       /* normalisations */                                                             \
    X(loss)       /* losses */                                                                     \
    X(linear)     /* products of matrices */                                                       \
    X(einsum)     /* sums of products by letters */                                                \
    X(window)     /* convolution, pooling */                                                       \
    X(recurrent)  /* RNN, GRU, LSTM */                                                             \
    X(attention)  /* attention, rotary embedding */                                                \
    X(state)      /* what carries a state from call to call */                                     \
    X(signal)     /* windows of signals, Fourier transforms */                                     \
    X(resize)     /* resizing pictures */                                                          \
    X(sample)     /* values between the places of a picture */                                     \
    X(region)     /* regions, offsets and boxes of a picture */                                    \
    X(quant)      /* quantised operators */                                                        \
    X(flow)       /* branches and loops */                                                         \
    X(sequence)   /* sequences and optionals */                                                    \
    X(ngram)      /* groups of numbers in rows */
/** Families of operators of the domain com.microsoft. */
#define TND_ONNX_MICROSOFT(X)                                                                      \
    X(microsoft)           /* what its optimiser writes */                                         \
    X(microsoft_attention) /* attention, and rotary embedding */                                   \
    X(microsoft_quant)     /* what its quantiser writes */                                         \
    X(microsoft_recurrent) /* layers with integer weights */
/** Families of operators of the domain ai.onnx.ml. */
#define TND_ONNX_ML(X)                                                                             \
    X(ml)      /* linear models, scalers, encoders */                                              \
    X(ml_tree) /* ensembles of trees */
/** Families of operators of the domain ai.onnx.preview. */
#define TND_ONNX_PREVIEW(X)           X(preview) /* attention with graphs of its own */
#define TND_ONNX_FAMILY_DECLARE(name) extern const struct tnd_onnx_op tnd_onnx_##name[];
TND_ONNX_FAMILIES(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_MICROSOFT(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_ML(TND_ONNX_FAMILY_DECLARE)
TND_ONNX_PREVIEW(TND_ONNX_FAMILY_DECLARE)
#undef TND_ONNX_FAMILY_DECLARE

/** Fails; operator, version and node will stand in front of the message, types and shapes of the
 *  operands behind it. Gives TANDEM_NET_NONE. */
int tnd_onnx_refuse(struct tnd_onnx_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Puts operator, version and node in front of the net's error, types and shapes of the operands
 *  behind it, where there is room. */
void tnd_onnx_name_failure(struct tnd_onnx_call *call);

/* Attributes, by name; `otherwise` where the node has none. One of another type is refused. */
bool tnd_onnx_has(const struct tnd_onnx_call *call, const char *name);
int64_t tnd_onnx_int(struct tnd_onnx_call *call, const char *name, int64_t otherwise);
float tnd_onnx_float(struct tnd_onnx_call *call, const char *name, float otherwise);
/** A text of the model, which lives as long as it. */
const char *tnd_onnx_word(struct tnd_onnx_call *call, const char *name, const char *otherwise);
/** A list; NULL and *n = 0 where there is none. */
const int64_t *tnd_onnx_ints(struct tnd_onnx_call *call, const char *name, int *n);
const float *tnd_onnx_floats(struct tnd_onnx_call *call, const char *name, int *n);
const struct tnd_onnx_string *tnd_onnx_strings(struct tnd_onnx_call *call, const char *name,
                                               int *n);
const struct tnd_onnx_tensor *tnd_onnx_tensor_of(struct tnd_onnx_call *call, const char *name);
const struct tnd_onnx_graph *tnd_onnx_graph_of(struct tnd_onnx_call *call, const char *name);
/** Counts an attribute as read that says nothing. */
void tnd_onnx_pass_over(struct tnd_onnx_call *call, const char *name);

/* Integers of fewer than 8 bits: the net keeps them in 8, the builder knows which values they are.
 * Operators that do not know them refuse them (onnx_build.c). */
/** The narrow type of a value; UNDEFINED: it is of none. */
enum tnd_onnx_type tnd_onnx_narrow_of(const struct tnd_onnx_call *call, int value);
/** Gives a value, which is one of `type` already, that type. */
int tnd_onnx_set_narrow(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type);
/** An integer as one of a narrow type: its low bits. */
int tnd_onnx_narrowed(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type);

/** Numbers as floats of 8 bits or fewer. `saturates`: those out of range become the nearest that
 *  there is, else infinity or NaN where the type has it (its scales: NaN below 2^-127, too). */
int tnd_onnx_small_float(struct tnd_onnx_call *call, int value, enum tandem_dtype type,
                         bool saturates);

/** A number for a sequence, whose values must live as long as the net; TANDEM_NET_NONE: the net has
 *  the error. */
int tnd_onnx_add_sequence(struct tnd_net *net, struct tnd_onnx_sequences *all,
                          const struct tnd_onnx_sequence *sequence);
/** The sequence that a value is; NULL: it is none. Good until the next one is made. */
const struct tnd_onnx_sequence *tnd_onnx_sequence_of(const struct tnd_onnx_call *call, int value);
/** Refuses operands that are sequences where the operator does not take them. */
bool tnd_onnx_check_sequences(struct tnd_onnx_call *call, const struct tnd_onnx_op *op);

/* Operands. */
/** Operand `i`; TANDEM_NET_NONE where it was left out or there are fewer. */
int tnd_onnx_in(const struct tnd_onnx_call *call, int i);
const struct tnd_dims *tnd_onnx_shape_of(const struct tnd_onnx_call *call, int value);
enum tandem_dtype tnd_onnx_type_of(const struct tnd_onnx_call *call, int value);
/** Values that an operator must know while the net is built: computed from constants, or answers in
 *  a net that is made in parts (onnx_build.h), which may end here. NULL: not known. */
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
/** Element by element with one number, which becomes a constant of the value's type. */
int tnd_onnx_with(struct tnd_onnx_call *call, enum tandem_binary kind, int value, double number);
/** Builds an operator that is a formula (tnd_net_formula) of its operands, as in tnd_onnx_wide, and
 *  of attributes, behind which the formula's head says what they are where the node has none:
 *  "x, alpha = 0.5: x * alpha". */
void tnd_onnx_formula(struct tnd_onnx_call *call, const char *text);
/** A constant of one value, of the type of another value. */
int tnd_onnx_scalar(struct tnd_onnx_call *call, int like, double number);
/** Floats of 16 bits as float32, in which the operator is computed; others as they are. */
int tnd_onnx_wide(struct tnd_onnx_call *call, int value);
/** What an operator computed, as the type of an operand. Where it was widened, passes may leave out
 *  the rounding if another operator of floats reads it. */
int tnd_onnx_narrow(struct tnd_onnx_call *call, int value, int like);
/** x by a divisor, by 1 where that is 0. */
int tnd_onnx_divided(struct tnd_onnx_call *call, int x, int by);
/** A constant list 0, 1, ... n - 1 of int64. */
int tnd_onnx_counting(struct tnd_onnx_call *call, int64_t n);
/** The convolution that the node's attributes describe, of {N, C, spatial}; refused when they do
 *  not fit. */
int tnd_onnx_conv(struct tnd_onnx_call *call, int x, int w);
/** Integers as float32, (x - zero) * scale: both one number, or one for each index of an axis. A
 *  zero point may be left out. */
int tnd_onnx_dequantised(struct tnd_onnx_call *call, int x, int scale, int zero);
int tnd_onnx_dequantised_along(struct tnd_onnx_call *call, int x, int scale, int zero, int axis);
/** float32 as integers of a type: x / scale to the nearest, plus the zero point (or none), within
 *  the type. */
int tnd_onnx_quantised(struct tnd_onnx_call *call, int x, int scale, int zero,
                       enum tandem_dtype type);
/** Keys or values of before (TANDEM_NET_NONE: none), {batch, heads, past, size}, in front of those
 *  of now. */
int tnd_onnx_with_past(struct tnd_onnx_call *call, int past, int now);
/** Keys or values {batch, fewer heads, rows, size} for `heads` heads of queries, a multiple: each
 *  serves a group of neighbours. */
int tnd_onnx_for_groups(struct tnd_onnx_call *call, int x, int64_t heads);
/** The second operand as it broadcasts with the first. Before opset 7 it does so only where the
 *  node says, and its dimensions may lie at an axis. */
int tnd_onnx_second(struct tnd_onnx_call *call);

/** Builds the operator `op` of ONNX, or "com.microsoft.NAME", with these attributes (`n` -1: the
 *  node's own), operands and results, for the node. */
void tnd_onnx_build_as(struct tnd_onnx_call *call, const char *op,
                       const struct tnd_onnx_attribute *attributes, int n, const int *in, int n_in,
                       int *out, int n_out);
/** As tnd_onnx_build_as, of one operand and one result. */
int tnd_onnx_apply(struct tnd_onnx_call *call, const char *op,
                   const struct tnd_onnx_attribute *attributes, int n, int value);

/** Builds the nodes of a graph inside a node (the branches of If, the body of Loop) with values for
 *  its inputs, which need not be of the types that the graph states. False on failure; refused
 *  when the graph has other numbers of inputs or outputs. */
bool tnd_onnx_inner(struct tnd_onnx_call *call, const struct tnd_onnx_graph *graph, const int *in,
                    int n_in, int *out, int n_out);

#endif
