/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * ONNX models: their inputs and outputs, and converting them to nets (tandem/nets.h, docs/onnx.md).
 * A net has fixed shapes; a model with symbolic dimensions ("batch", "tokens") has a net for each
 * set of extents. */
#ifndef TANDEM_ONNX_NETS_H
#define TANDEM_ONNX_NETS_H

#include "tandem/nets.h"

TANDEM_BEGIN_C

/** An open model. */
typedef struct tandem_onnx tandem_onnx;

/** A dimension: a number, or a name. The layout is fixed for good. */
struct tandem_onnx_dim {
    const char *name; /**< of a symbolic one; NULL: none */
    int64_t extent;   /**< -1: open */
};

/** An input or output as the model states it. The layout is fixed for good. */
struct tandem_onnx_value {
    const char *name;
    const char *type_name;  /**< "float32", "string", ... */
    bool has_type;          /**< false: a type that nets do not have; `type` is meaningless */
    enum tandem_dtype type; /**< of the values */
    int n_dims;             /**< -1: no shape is stated, or one of more than 8 dimensions */
    struct tandem_onnx_dim dims[TANDEM_NET_MAX_DIMS]; /**< the slowest first */
};

/** Metadata of a model; missing strings are "". It does not affect results. The layout is fixed for
 * good. */
struct tandem_onnx_meta {
    const char *producer; /**< program that wrote the file: "pytorch" */
    const char *producer_version;
    const char *domain; /**< owner of the model: "org.example" */
    const char *description;
    const char *graph_name;
    const char *graph_description;
    int64_t version;  /**< of the model; 0: none */
    int n_properties; /**< pairs for tandem_onnx_property */
};

/** Opens a model file, which is mapped, with the files of external data that it names, which must
 *  lie in its folder or below. The caller owns the model. Any thread. Errors: ARGUMENT, FILE,
 *  FORMAT, TRUNCATED, LIMIT, MEMORY, OVERFLOW, UNSUPPORTED_BUILD. */
TANDEM_API enum tandem_status tandem_onnx_open(const char *path, tandem_onnx **out_model,
                                               struct tandem_error *error);
/** Like tandem_onnx_open, from bytes, which the model borrows; external data is refused (FORMAT).
 * `name` is used in messages and is borrowed, too; NULL: "memory". Any thread. Errors: as above. */
TANDEM_API enum tandem_status tandem_onnx_read(const void *bytes, size_t n, const char *name,
                                               tandem_onnx **out_model, struct tandem_error *error);
/** Closes a model and the nets of tandem_onnx_lower; nets of tandem_onnx_net live on. NULL is
 * allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_onnx_close(tandem_onnx *model);

/** Inputs without values of their own, and outputs. Never fail: 0 for NULL; false outside, and
 *  `out` is untouched. Texts live as long as the model. Any thread. */
TANDEM_API int tandem_onnx_input_count(const tandem_onnx *model);
TANDEM_API int tandem_onnx_output_count(const tandem_onnx *model);
TANDEM_API bool tandem_onnx_input(const tandem_onnx *model, int i, struct tandem_onnx_value *out);
TANDEM_API bool tandem_onnx_output(const tandem_onnx *model, int i, struct tandem_onnx_value *out);

/** Metadata, and its `i`-th property in the file's order, such as "names" and "stride". Strings are
 * as in the file, UTF-8 if it keeps to the standard, end at their first zero byte, and live as long
 * as the model. Never fail: false for NULL or outside, and the results are untouched. Any thread.
 * Source: ModelProto of onnx.proto. */
TANDEM_API bool tandem_onnx_meta(const tandem_onnx *model, struct tandem_onnx_meta *out);
TANDEM_API bool tandem_onnx_property(const tandem_onnx *model, int i, const char **out_key,
                                     const char **out_value);

/** Options of tandem_onnx_net. Everything is read during the call. */
struct tandem_onnx_options {
    size_t size;                        /**< sizeof(struct tandem_onnx_options) */
    const struct tandem_onnx_dim *dims; /**< extents of symbolic dimensions, by name */
    int n_dims;                         /**< length of `dims` */
    /** Arrays for inputs, by name: they define shapes; if a shape depends on an input's values, the
     * net is made for these values and runs only with them. */
    const struct tandem_net_array *arrays;
    int n_arrays; /**< length of `arrays` */
};
#define TANDEM_ONNX_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_onnx_options), NULL, 0, NULL, 0                                       \
    }
/** The net of a model's main graph: opsets 6 to 28. Inputs and outputs are in the model's order.
 * `options` may be NULL. The caller owns the net. One thread at a time per model. Errors: ABI,
 * FORMAT (the graph breaks a rule), UNSUPPORTED_BUILD (the message names operator, version and
 * node), SHAPE, TYPE, ARGUMENT (NULL, a dimension without extent), MEMORY, OVERFLOW, FILE (a mapped
 * file was truncated: tandem/mapped.h). */
TANDEM_API enum tandem_status tandem_onnx_net(const tandem_onnx *model,
                                              const struct tandem_onnx_options *options,
                                              tandem_net **out_net, struct tandem_error *error);

/** Sets `chooser` of tandem_lower_options for later calls of tandem_onnx_lower; it must live as
 * long as the model, or until another one is set. Existing nets stay as they are. NULL: by rule.
 * Never fails. One thread at a time per model. */
TANDEM_API void tandem_onnx_set_chooser(tandem_onnx *model, const tandem_chooser *chooser);

/** Minimum number of nets that tandem_onnx_lower keeps for a model. */
#define TANDEM_ONNX_KEPT 8
/** The model for these extents, ready to compute: made by the first call, found again by later
 * ones. Weights, and everything computed or packed from constants, are shared by all extents. The
 * model owns the net; it lives until TANDEM_ONNX_KEPT other sets of extents were requested after
 * it, or the model is closed. More are kept, at most 1024, while their graphs and intermediate
 * results take less than 256 MiB in total. One thread at a time per model, and no runtime may be
 * computing a graph of it. Errors: those of tandem_onnx_net and tandem_net_lower. */
TANDEM_API enum tandem_status tandem_onnx_lower(tandem_onnx *model,
                                                const struct tandem_onnx_dim *dims, int n_dims,
                                                tandem_lowered **out_lowered,
                                                struct tandem_error *error);

/** A model for arrays, in parts: the extents of some results (of NonZero, Range, Loop, TopK,
 *  Unique, NonMaxSuppression, ...) depend on values, which are computed first. Each part is a net
 *  with its inputs set; compute its graph, then ask for the next one, until there is none:
 *
 *      tandem_onnx_begin(model, inputs, n_inputs, NULL, &part, &error);
 *      while (part != NULL) {
 *          tandem_runtime_compute(runtime, tandem_lowered_graph(part), NULL, NULL, &error);
 *          last = part;
 *          tandem_onnx_next(model, &part, &error);
 *      }
 *
 *  The last part has the model's outputs (tandem_lowered_output). A model without such results has
 *  one part. Parts are kept by the shapes of the inputs and by the values that extents depend on,
 *  with weights in common, as tandem_onnx_lower keeps nets; the model owns them. The last part may
 *  be computed again until the next call of the two.
 *
 *  `inputs`: one for each input of the model, by name, with type, shape and values, borrowed until
 *  the last part. `options` may be NULL. One thread at a time a model, and no runtime may be
 *  computing a graph of it. Errors: those of tandem_onnx_net and tandem_net_lower. */
TANDEM_API enum tandem_status tandem_onnx_begin(tandem_onnx *model,
                                                const struct tandem_net_array *inputs, int n_inputs,
                                                const struct tandem_lower_options *options,
                                                tandem_lowered **out_part,
                                                struct tandem_error *error);
/** The part after the one that was computed; NULL: that was the last, or it failed. One thread at a
 * time per model, as above. Errors: those of tandem_onnx_begin, STATE (nothing was begun). */
TANDEM_API enum tandem_status tandem_onnx_next(tandem_onnx *model, tandem_lowered **out_part,
                                               struct tandem_error *error);

TANDEM_END_C
#endif
