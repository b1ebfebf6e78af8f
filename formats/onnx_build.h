/* SPDX-License-Identifier: MIT
 * From an ONNX model to a net (graph/net.h): every operator is built of the net's operations, and
 * what cannot be is refused by name. */
#ifndef TND_ONNX_BUILD_H
#define TND_ONNX_BUILD_H

#include "formats/onnx.h"
#include "graph/net.h"
#include "tandem/onnx_nets.h"

/** A value that the rest of a main graph reads: of the part in front of it, or known. */
struct tnd_onnx_carried {
    const char *name; /* of the model */
    enum tandem_dtype type;
    struct tnd_dims shape;
    enum tnd_onnx_type narrow; /* of fewer than 8 bits; else UNDEFINED */
    struct tnd_array *known;   /* NULL: output `output` of the part, or a sequence */
    int output;                /* -1: not computed */
    bool is_element;           /* of the sequence that follows: it has no name of its own */
    bool is_sequence;
    bool is_nothing; /* an optional that holds nothing, as a sequence */
};

/** A main graph in parts: each ends in front of the node that asks for values which are computed,
 *  and the next one begins with that node, and with the values. */
struct tnd_onnx_part {
    int first; /* node; 0: the first part, of the model's inputs */
    const struct tnd_onnx_carried *carried;
    int n_carried;
    const struct tnd_array *const *answers; /* values that the first node asks for, in order */
    int n_answers;
    /* what came out */
    bool is_last; /* else the net's outputs are what is asked for, and what the rest reads */
    int stopped;  /* node */
    TND_VECTOR_OF(struct tnd_onnx_carried, left); /* `known` is held or a copy: the caller frees */
};

/** What a model leaves open. All zero: nothing is said. */
struct tnd_onnx_build_options {
    /** Extents of symbolic dimensions, by name. */
    int n_dims;
    const struct tandem_onnx_dim *dims;
    /** Values for inputs, by name, borrowed as long as the net lives. They give the shape, and
     *  where a shape or a step depends on an input its values, which the net is then made for. */
    int n_arrays;
    const char *const *array_names;
    const struct tnd_array *const *arrays;
    /** Keeps constants for other nets of the model, and reads the model's later on; borrowed as
     *  long as the net lives. NULL: none does. */
    struct tnd_store *store;
    /** Which part is built; then `arrays` give shapes alone. NULL: the whole. */
    struct tnd_onnx_part *part;
};

/** Builds the net of a model's main graph: opsets 6 to 28. Inputs and outputs of the net stand in
 *  the order of the model; inputs with an initializer of the same name are constants. The model may
 *  be closed afterwards. The caller frees the net. Errors: FORMAT (the graph breaks a rule),
 *  UNSUPPORTED_BUILD (an operator, or a way to use it, that is not known: the message names
 *  operator, version and node), SHAPE, TYPE, ARGUMENT (an input whose shape is not known), MEMORY,
 *  OVERFLOW. */
enum tandem_status tnd_onnx_build(const struct tnd_onnx_model *model,
                                  const struct tnd_onnx_build_options *options,
                                  struct tnd_net **out_net, struct tandem_error *error);

/** Type and shape of an input as the model states them, with extents for names. Errors:
 *  UNSUPPORTED_BUILD (no tensor, or of a type that nets do not have), ARGUMENT (a shape or
 *  dimension stays open). */
enum tandem_status tnd_onnx_input_shape(const struct tnd_onnx_value *input,
                                        const struct tandem_onnx_dim *dims, int n_dims,
                                        enum tandem_dtype *out_type, struct tnd_dims *out,
                                        struct tandem_error *error);
/** Whether each name is that of a dimension of an input: another one would be passed over. Errors:
 *  ARGUMENT. */
enum tandem_status tnd_onnx_check_dims(const struct tnd_onnx_graph *graph,
                                       const struct tandem_onnx_dim *dims, int n_dims,
                                       struct tandem_error *error);
/** Whether a value of a graph, an input among them, has values of its own by this name. */
bool tnd_onnx_has_initializer(const struct tnd_onnx_graph *graph, const char *name);
/** The net's type for one of ONNX; false: there is none. Integers of 4 and 2 bits are kept in 8. */
bool tnd_onnx_dtype(enum tnd_onnx_type type, enum tandem_dtype *out);
/** Bits of an integer type that has fewer than 8; 0: it has more, or is none. */
int tnd_onnx_narrow_bits(enum tnd_onnx_type type);
/** A copy of a tensor's values, which the caller frees. Errors: UNSUPPORTED_BUILD (its type, more
 *  than 8 dimensions), MEMORY. */
enum tandem_status tnd_onnx_array(const struct tnd_onnx_tensor *tensor, struct tnd_array **out,
                                  struct tandem_error *error);
/** As tnd_onnx_array, of a tensor that lives as long as the model: a store (NULL: none) keeps it
 *  by its address. */
enum tandem_status tnd_onnx_shared_array(const struct tnd_onnx_tensor *tensor,
                                         struct tnd_store *store, struct tnd_array **out,
                                         struct tandem_error *error);

#endif
