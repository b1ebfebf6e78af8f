/* SPDX-License-Identifier: MIT
 * Lists the convolutions of a model: lowers it and walks over the lowered parts. */
#include "tools/mulmat-tune/net_convs.h"

#include <limits.h>

#include "base/tnd_status.h"
#include "graph/net_public.h"
#include "runtime/tune_convs.h"
#include "tools/dim_option.h"

struct reading {
    struct net_convs *convs;
    tandem_runtime *runtime; /* opened only for models with several parts */
};

static enum tandem_status no_memory(const struct net_convs *convs, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, convs->n, 0, "no memory for %d convolutions",
                         convs->n);
}

/* Adds the first question of each shape. */
static enum tandem_status add(struct net_convs *convs, const struct tnd_conv_question *question,
                              struct tandem_error *error)
{
    const int n = convs->n;
    if (tnd_vector_insert(&convs->shapes_vector, sizeof(convs->shapes[0]), INT_MAX / 2,
                          convs->n_shapes) != TANDEM_OK) {
        return no_memory(convs, error);
    }
    convs->shapes[n] = question->shape;
    convs->n_shapes = tnd_conv_distinct(convs->shapes, n + 1);
    if (convs->n_shapes == n) {
        return TANDEM_OK;
    }
    if (tnd_vector_insert(&convs->questions_vector, sizeof(*question), INT_MAX / 2,
                          convs->n_questions) != TANDEM_OK) {
        return no_memory(convs, error);
    }
    convs->questions[convs->n++] = *question;
    return TANDEM_OK;
}

static enum tandem_status read_part(void *user, tandem_lowered *part, bool is_last,
                                    struct tandem_error *error)
{
    struct reading *reading = user;
    const struct tnd_conv_choice *choice;
    for (int i = 0; (choice = tnd_lowered_conv(tnd_lowered_of(part), i)) != NULL; i++) {
        TND_TRY(add(reading->convs, &choice->question, error));
    }
    reading->convs->n_parts++;
    if (is_last) {
        return TANDEM_OK;
    }
    if (reading->runtime == NULL) {
        struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
        TND_TRY(tandem_runtime_open(&options, &reading->runtime, error));
    }
    return tandem_runtime_compute(reading->runtime, tandem_lowered_graph(part), NULL, NULL, error);
}

enum tandem_status net_convs_read(const struct net_option *option, struct net_convs *out,
                                  struct tandem_error *error)
{
    static struct tandem_onnx_dim dims[ARGS_LIST_MAX];
    struct reading reading = {.convs = out};
    *out = (struct net_convs){.model = NULL};
    enum tandem_status status = tnd_dim_option_read(&option->dims, dims, error);
    if (status == TANDEM_OK) {
        status = tandem_onnx_open(option->path, &out->model, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_model_inputs_make(out->model, dims, option->dims.n, &out->inputs, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_model_parts(out->model, out->inputs.arrays, out->inputs.n, NULL, read_part,
                                 &reading, NULL, error);
    }
    tandem_runtime_close(reading.runtime);
    tnd_dim_option_free(&option->dims, dims);
    return status;
}

void net_convs_fini(struct net_convs *convs)
{
    tandem_onnx_close(convs->model);
    tnd_model_inputs_fini(&convs->inputs);
    tnd_vector_fini(&convs->shapes_vector);
    tnd_vector_fini(&convs->questions_vector);
    *convs = (struct net_convs){.model = NULL};
}
