/* SPDX-License-Identifier: MIT
 * Internals of the builder of nets from ONNX models, shared by its files. */
#ifndef TND_ONNX_BUILDER_H
#define TND_ONNX_BUILDER_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "formats/onnx_op.h"

struct tnd_onnx_name {
    const char *text;
    int value;
};

/* The names of a graph; inner graphs see those of enclosing ones. */
struct tnd_onnx_scope {
    struct tnd_onnx_name *slots; /* hash table; a power of two, at most half full */
    size_t n_slots;
    size_t n;
    struct tnd_onnx_scope *outer;
};

/* A node that calls a function, while the function's nodes are built. */
struct tnd_onnx_frame {
    const struct tnd_onnx_function *function;
    const struct tnd_onnx_node *node; /* with attribute references resolved */
    int depth;
};

/* A value of a narrow type (fewer than 8 bits). */
struct tnd_onnx_narrow {
    int value;
    enum tnd_onnx_type type;
};

struct tnd_onnx_builder {
    struct tnd_net *net;
    TND_VECTOR_OF(struct tnd_onnx_narrow, narrow);
    const struct tnd_onnx_model *model;
    const struct tnd_onnx_frame *frame; /* NULL: not in a function */
    const struct tnd_onnx_build_options *options;
    int64_t opset;
    struct tnd_onnx_scope *scope;
    const struct tnd_onnx_scope *main; /* scope of the main graph */
    struct tnd_onnx_sequences sequences;
    int64_t n_inner; /* number of nodes built of inner graphs */
    int n_answered;  /* how many of a part's answers were used */
    int asked;       /* the value that a part needs and ends at; TANDEM_NET_NONE: none */
    bool is_named;   /* the net's error names the node */
};

/* onnx_build.c */
/** The slot of a name in a scope that has slots; its `text` is NULL if the name is absent. */
struct tnd_onnx_name *tnd_onnx_slot_of(const struct tnd_onnx_scope *scope, const char *text);
/** Names a value in the innermost graph; the name must be new. */
bool tnd_onnx_give_name(struct tnd_onnx_builder *builder, const char *text, int value);
/** The narrow type of a value, or UNDEFINED. */
enum tnd_onnx_type tnd_onnx_narrow_at(const struct tnd_onnx_builder *builder, int value);
int tnd_onnx_narrow_as(struct tnd_onnx_builder *builder, int value, enum tnd_onnx_type type);

/* onnx_inputs.c */
/** Adds the inputs without initializers, by name; false: the net has the error. */
bool tnd_onnx_add_inputs(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph);

/* onnx_part.c */
/** Ends a part before a node: the needed values, and those that later parts read, become
 * outputs. */
void tnd_onnx_end_part(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph);
/** Adds the values carried over from earlier parts. */
bool tnd_onnx_add_carried(struct tnd_onnx_builder *builder, const struct tnd_onnx_part *part);

#endif
