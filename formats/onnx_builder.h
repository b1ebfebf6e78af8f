/* SPDX-License-Identifier: MIT
 * The builder of nets of ONNX models, for the files that it consists of. */
#ifndef TND_ONNX_BUILDER_H
#define TND_ONNX_BUILDER_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "formats/onnx_op.h"

struct tnd_onnx_name {
    const char *text;
    int value;
};

/* The names of a graph; inner graphs see those of the outer ones. */
struct tnd_onnx_scope {
    struct tnd_onnx_name *slots; /* a power of two of them, at most half full */
    size_t n_slots;
    size_t n;
    struct tnd_onnx_scope *outer;
};

/* A node that stands for a function, while the function's nodes are built. */
struct tnd_onnx_frame {
    const struct tnd_onnx_function *function;
    const struct tnd_onnx_node *node; /* with the attributes' own values */
    int depth;
};

/* A value of fewer than 8 bits. */
struct tnd_onnx_narrow {
    int value;
    enum tnd_onnx_type type;
};

struct tnd_onnx_builder {
    struct tnd_net *net;
    TND_VECTOR_OF(struct tnd_onnx_narrow, narrow);
    const struct tnd_onnx_model *model;
    const struct tnd_onnx_frame *frame; /* NULL: outside of functions */
    const struct tnd_onnx_build_options *options;
    int64_t opset;
    struct tnd_onnx_scope *scope;
    const struct tnd_onnx_scope *main; /* of the main graph */
    struct tnd_onnx_sequences sequences;
    int64_t n_inner; /* nodes that were built of graphs inside nodes */
    int n_answered;  /* of a part's answers */
    int asked;       /* the value that a part ends with; TANDEM_NET_NONE: none */
    bool is_named;   /* the error of the net says by which node */
};

/* onnx_build.c */
/** The place of a name in a scope, which has places; its `text` is NULL where it is not there. */
struct tnd_onnx_name *tnd_onnx_slot_of(const struct tnd_onnx_scope *scope, const char *text);
/** Gives a value a name in the innermost graph, where it has none yet. */
bool tnd_onnx_give_name(struct tnd_onnx_builder *builder, const char *text, int value);
/** The type of a value of fewer than 8 bits; else UNDEFINED. */
enum tnd_onnx_type tnd_onnx_narrow_at(const struct tnd_onnx_builder *builder, int value);
int tnd_onnx_narrow_as(struct tnd_onnx_builder *builder, int value, enum tnd_onnx_type type);

/* onnx_inputs.c */
/** Adds the inputs that have no values of their own, by name; false: the net has the error. */
bool tnd_onnx_add_inputs(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph);

/* onnx_part.c */
/** Ends a part in front of a node: what it asks for, and what the rest reads, becomes outputs. */
void tnd_onnx_end_part(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph);
/** Adds the values that a part begins with. */
bool tnd_onnx_add_carried(struct tnd_onnx_builder *builder, const struct tnd_onnx_part *part);

#endif
