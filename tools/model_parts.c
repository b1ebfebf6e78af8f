/* SPDX-License-Identifier: MIT
 * Running models part by part: the values of each part determine the next one. */
#include "tools/model_parts.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/net_public.h"

/* ---- generated inputs ---- */

static enum tandem_status make_input(const struct tnd_onnx_value *value,
                                     const struct tandem_onnx_dim *dims, int n_dims,
                                     struct tandem_net_array *out, struct tandem_error *error)
{
    struct tnd_dims shape;
    struct tnd_rng rng;
    char text[160];
    TND_TRY(tnd_onnx_input_shape(value, dims, n_dims, &out->type, &shape, error));
    const int64_t n = tnd_dims_values(&shape);
    if (n < 0 || (uint64_t)n > SIZE_MAX / 16) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, value->name, n, 0,
                             "input %.80s: %s are too many values", value->name,
                             tnd_dims_text(&shape, text));
    }
    out->name = value->name;
    out->n_dims = shape.n;
    out->bytes = (size_t)n * tandem_dtype_bytes(out->type);
    out->data = tnd_calloc(out->bytes + 1, 1);
    if (out->data == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, value->name, n, 0,
                             "no memory for input %.80s of %s", value->name,
                             tnd_dims_text(&shape, text));
    }
    for (int i = 0; i < shape.n; i++) {
        out->dims[i] = shape.dims[i];
    }
    tnd_rng_init(&rng, 1);
    for (int64_t i = 0; out->type == TANDEM_DTYPE_F32 && i < n; i++) {
        ((float *)out->data)[i] = tnd_rng_float(&rng) * 2.0f - 1.0f;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_model_inputs_make(const tandem_onnx *model,
                                         const struct tandem_onnx_dim *dims, int n_dims,
                                         struct tnd_model_inputs *out, struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = model->model->graph;
    *out = (struct tnd_model_inputs){.n = 0};
    TND_TRY(tnd_onnx_check_dims(graph, dims, n_dims, error));
    *out = (struct tnd_model_inputs){
        .arrays = tnd_calloc((size_t)graph->n_inputs + 1, sizeof(out->arrays[0]))};
    if (out->arrays == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, graph->n_inputs, 0,
                             "no memory for %d inputs", graph->n_inputs);
    }
    for (int i = 0; i < graph->n_inputs; i++) {
        if (!tnd_onnx_has_initializer(graph, graph->inputs[i].name)) {
            TND_TRY(make_input(&graph->inputs[i], dims, n_dims, &out->arrays[out->n], error));
            out->n++;
        }
    }
    return TANDEM_OK;
}

void tnd_model_inputs_fini(struct tnd_model_inputs *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        tnd_free(inputs->arrays[i].data);
    }
    tnd_free(inputs->arrays);
    *inputs = (struct tnd_model_inputs){.n = 0};
}

/* ---- computing ---- */

enum tandem_status tnd_model_parts(tandem_onnx *model, const struct tandem_net_array *inputs, int n,
                                   const struct tandem_lower_options *how, tnd_part_fn *compute,
                                   void *user, tandem_lowered **out_last,
                                   struct tandem_error *error)
{
    tandem_lowered *part = NULL;
    tandem_lowered *last = NULL;
    TND_TRY(tandem_onnx_begin(model, inputs, n, how, &part, error));
    while (part != NULL) {
        TND_TRY(compute(user, part, tnd_onnx_is_last(model), error));
        last = part;
        TND_TRY(tandem_onnx_next(model, &part, error));
    }
    if (out_last != NULL) {
        *out_last = last;
    }
    return TANDEM_OK;
}
