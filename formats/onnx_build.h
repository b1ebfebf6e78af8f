/* SPDX-License-Identifier: MIT
 * Builds a net (graph/net.h) from an ONNX model: every operator is expressed by the net's
 * operations; unsupported ones are refused by name. */
#ifndef TND_ONNX_BUILD_H
#define TND_ONNX_BUILD_H

#include "formats/onnx.h"
#include "graph/net.h"
#include "tandem/onnx_nets.h"

/** A value that later parts of a main graph read: an output of an earlier part, or known. */
struct tnd_onnx_carried {
    const char *name; /* of the model */
    enum tandem_dtype type;
    struct tnd_dims shape;
    enum tnd_onnx_type narrow; /* narrow type (fewer than 8 bits), or UNDEFINED */
    struct tnd_array *known;   /* NULL: output `output` of the part, or a sequence */
    int output;                /* -1: not computed */
    bool is_element;           /* an element of the next sequence; has no name */
    bool is_sequence;
    bool is_nothing; /* an empty optional, as a sequence */
};

/** A part of a main graph. A part ends before a node that needs the values of a computed operand
 * while it is built; the next part starts with that node and those values. */
struct tnd_onnx_part {
    int first; /* first node; 0: the first part, with the model's inputs */
    const struct tnd_onnx_carried *carried;
    int n_carried;
    const struct tnd_array *const *answers; /* values that the first node needs, in order */
    int n_answers;
    /* results of building */
    bool is_last; /* else outputs are the needed values, and those that later parts read */
    int stopped;  /* the node at which the part ends */
    TND_VECTOR_OF(struct tnd_onnx_carried, left); /* `known` is held or a copy: the caller frees */
};

/** What a model leaves open. All zero: nothing is given. */
struct tnd_onnx_build_options {
    /** Extents of symbolic dimensions, by name. */
    int n_dims;
    const struct tandem_onnx_dim *dims;
    /** Values of inputs by name, borrowed as long as the net lives. They give the shape; if a shape
     * or a step depends on an input's values, the net is built for these values. */
    int n_arrays;
    const char *const *array_names;
    const struct tnd_array *const *arrays;
    /** Shares constants with other nets of the model, and reads the model later on; borrowed as
     * long as the net lives. NULL: none. */
    struct tnd_store *store;
    /** The part to build; then `arrays` give only shapes. NULL: the whole graph. */
    struct tnd_onnx_part *part;
};

/** Builds the net of a model's main graph: opsets 6 to 28. Inputs and outputs of the net have the
 * model's order; inputs with an initializer of the same name are constants. The model may be closed
 * afterwards. The caller frees the net. Errors: FORMAT (the graph breaks a rule), UNSUPPORTED_BUILD
 * (an unsupported operator or use of it: the message names operator, version and node), SHAPE,
 * TYPE, ARGUMENT (an input whose shape is not known), MEMORY, OVERFLOW. */
enum tandem_status tnd_onnx_build(const struct tnd_onnx_model *model,
                                  const struct tnd_onnx_build_options *options,
                                  struct tnd_net **out_net, struct tandem_error *error);

/** Type and shape of an input as declared by the model, with extents for symbolic names. Errors:
 * UNSUPPORTED_BUILD (not a tensor, or of a type that nets lack), ARGUMENT (a shape or dimension is
 * unknown). */
enum tandem_status tnd_onnx_input_shape(const struct tnd_onnx_value *input,
                                        const struct tandem_onnx_dim *dims, int n_dims,
                                        enum tandem_dtype *out_type, struct tnd_dims *out,
                                        struct tandem_error *error);
/** Checks that each name is a dimension of an input: others would be ignored silently. Errors:
 * ARGUMENT. */
enum tandem_status tnd_onnx_check_dims(const struct tnd_onnx_graph *graph,
                                       const struct tandem_onnx_dim *dims, int n_dims,
                                       struct tandem_error *error);
/** Whether a graph has an initializer of this name, also for an input. */
bool tnd_onnx_has_initializer(const struct tnd_onnx_graph *graph, const char *name);
/** The net's type for an ONNX type; false: none. Integers of 4 and 2 bits are kept in 8. */
bool tnd_onnx_dtype(enum tnd_onnx_type type, enum tandem_dtype *out);
/** Bits of an integer type of fewer than 8 bits; 0: another type. */
int tnd_onnx_narrow_bits(enum tnd_onnx_type type);
/** Copies a tensor's values; the caller frees them. Errors: UNSUPPORTED_BUILD (its type, or more
 * than 8 dimensions), MEMORY. */
enum tandem_status tnd_onnx_array(const struct tnd_onnx_tensor *tensor, struct tnd_array **out,
                                  struct tandem_error *error);
/** As tnd_onnx_array, for a tensor that lives as long as the model: a store (NULL: none) keeps it,
 * keyed by its address. */
enum tandem_status tnd_onnx_shared_array(const struct tnd_onnx_tensor *tensor,
                                         struct tnd_store *store, struct tnd_array **out,
                                         struct tandem_error *error);

#endif
