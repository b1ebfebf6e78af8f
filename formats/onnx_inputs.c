/* SPDX-License-Identifier: MIT
 * Inputs of a main graph: types and shapes declared by the model, given as extents of symbolic
 * names, or as arrays. */
#include <stdio.h>
#include <string.h>

#include "formats/onnx_builder.h"

static const struct tnd_array *array_for(const struct tnd_onnx_build_options *options,
                                         const char *name)
{
    for (int i = 0; i < options->n_arrays; i++) {
        if (strcmp(options->array_names[i], name) == 0) {
            return options->arrays[i];
        }
    }
    return NULL;
}

static bool has_dim(const struct tnd_onnx_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_inputs; i++) {
        for (int k = 0; k < graph->inputs[i].n_dims; k++) {
            const struct tnd_onnx_dim *dim = &graph->inputs[i].dims[k];
            if (dim->name != NULL && strcmp(dim->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum tandem_status tnd_onnx_check_dims(const struct tnd_onnx_graph *graph,
                                       const struct tandem_onnx_dim *dims, int n_dims,
                                       struct tandem_error *error)
{
    for (int i = 0; i < n_dims; i++) {
        if (!has_dim(graph, dims[i].name)) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "dims", i, n_dims,
                                 "no input of the model has a dimension '%.60s'; tandem-graph "
                                 "inspect lists them",
                                 dims[i].name);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_input_shape(const struct tnd_onnx_value *input,
                                        const struct tandem_onnx_dim *dims, int n_dims,
                                        enum tandem_dtype *out_type, struct tnd_dims *out,
                                        struct tandem_error *error)
{
    struct tnd_dims shape = {.n = input->n_dims};
    enum tandem_dtype type;
    if (input->kind != TND_ONNX_TENSOR || !tnd_onnx_dtype(input->type, &type) ||
        input->n_dims > TANDEM_NET_MAX_DIMS) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "input", input->n_dims,
                             TANDEM_NET_MAX_DIMS,
                             "input '%.60s' is no tensor of numbers of 8 to 64 bits with at most "
                             "%d dimensions",
                             input->name, TANDEM_NET_MAX_DIMS);
    }
    if (input->n_dims < 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "input", 0, 0,
                             "input '%.60s': the model does not state its shape: give it one",
                             input->name);
    }
    for (int i = 0; i < input->n_dims; i++) {
        const struct tnd_onnx_dim *dim = &input->dims[i];
        shape.dims[i] = dim->value;
        for (int k = 0; dim->value < 0 && dim->name != NULL && k < n_dims; k++) {
            if (strcmp(dims[k].name, dim->name) == 0) {
                shape.dims[i] = dims[k].extent;
            }
        }
        if (shape.dims[i] < 0 && dim->name != NULL) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "input", i, input->n_dims,
                                 "input '%.60s': its dimension %d (%.40s) is not fixed: give it a "
                                 "size (with the tools: --dim %.40s=N)",
                                 input->name, i, dim->name, dim->name);
        }
        if (shape.dims[i] < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "input", i, input->n_dims,
                                 "input '%.60s': its dimension %d is not fixed and has no name: "
                                 "only values of that input say its size",
                                 input->name, i);
        }
    }
    *out_type = type;
    *out = shape;
    return TANDEM_OK;
}

/* The declared shape as "nx2", with symbolic names, truncated to fit. */
static const char *stated_shape(const struct tnd_onnx_value *input, char text[160])
{
    size_t n = (size_t)snprintf(text, 160, "%s",
                                input->n_dims < 0    ? "any shape"
                                : input->n_dims == 0 ? "scalar"
                                                     : "");
    for (int i = 0; i < input->n_dims && n < 160; i++) {
        const struct tnd_onnx_dim *dim = &input->dims[i];
        const char *name = dim->name != NULL ? dim->name : "?";
        const char *times = i > 0 ? "x" : "";
        n += (size_t)(dim->value >= 0
                          ? snprintf(text + n, 160 - n, "%s%lld", times, (long long)dim->value)
                          : snprintf(text + n, 160 - n, "%s%.20s", times, name));
    }
    return text;
}

/* Whether given values have the declared type and extents. */
static bool check_given(struct tnd_onnx_builder *builder, const struct tnd_onnx_value *input,
                        enum tandem_dtype type, const struct tnd_array *given)
{
    bool fits = type == given->type && (input->n_dims < 0 || input->n_dims == given->shape.n);
    for (int i = 0; fits && i < input->n_dims; i++) {
        fits = input->dims[i].value < 0 || input->dims[i].value == given->shape.dims[i];
    }
    if (!fits) {
        char text[160];
        char wanted[160];
        (void)tnd_net_fail(builder->net, TANDEM_E_SHAPE,
                           "input '%.60s': %s of %s, expected %s of %s", input->name,
                           tandem_dtype_name(given->type), tnd_dims_text(&given->shape, text),
                           tandem_dtype_name(type), stated_shape(input, wanted));
    }
    return fits;
}

static int add_input(struct tnd_onnx_builder *builder, const struct tnd_onnx_value *input)
{
    const struct tnd_onnx_build_options *options = builder->options;
    const struct tnd_array *given = array_for(options, input->name);
    struct tnd_onnx_value stated = *input;
    struct tnd_dims shape;
    enum tandem_dtype type;
    if (given != NULL && input->n_dims <= TANDEM_NET_MAX_DIMS) { /* its shape is checked below */
        stated.n_dims = 0;
    }
    const enum tandem_status status = tnd_onnx_input_shape(&stated, options->dims, options->n_dims,
                                                           &type, &shape, &builder->net->error);
    if (status != TANDEM_OK) {
        builder->net->status = status;
        return TANDEM_NET_NONE;
    }
    if (given == NULL) {
        return tnd_net_input(builder->net, type, &shape, input->name, NULL);
    }
    return check_given(builder, input, type, given)
               ? tnd_net_input(builder->net, type, &given->shape, input->name,
                               options->part != NULL ? NULL : given)
               : TANDEM_NET_NONE;
}

bool tnd_onnx_add_inputs(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph)
{
    for (int i = 0; i < graph->n_inputs; i++) {
        const struct tnd_onnx_scope *scope = builder->scope;
        if (scope->n_slots > 0 && tnd_onnx_slot_of(scope, graph->inputs[i].name)->text != NULL) {
            continue; /* an initializer gives its value */
        }
        const int value = tnd_onnx_narrow_as(builder, add_input(builder, &graph->inputs[i]),
                                             graph->inputs[i].type);
        if (value == TANDEM_NET_NONE ||
            !tnd_onnx_give_name(builder, graph->inputs[i].name, value)) {
            return false;
        }
    }
    return true;
}
