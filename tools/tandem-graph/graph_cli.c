/* SPDX-License-Identifier: MIT
 * Computing a model: from input arrays to output arrays. */
#include "tools/tandem-graph/graph_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "graph/net_public.h"
#include "tandem/log.h"
#include "tools/say.h"
#include "tools/runtime_option.h"

int tnd_graph_fail(const struct tandem_error *error)
{
    fprintf(stderr, "tandem-graph: %s\n", error->text);
    return 1;
}

double tnd_graph_now_ns(void)
{
    const struct tnd_clock *clock = tnd_clock_real();
    return (double)clock->now_ns(clock);
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

void tnd_graph_sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), compare_numbers);
}

void tnd_graph_arrays_free(struct tnd_graph_arrays *arrays)
{
    for (int i = 0; i < arrays->n; i++) {
        tnd_array_free(arrays->arrays[i]);
    }
    arrays->n = 0;
}

enum tandem_status tnd_graph_open_runtime(const struct tnd_graph_runtime *wanted,
                                          tandem_runtime **out_runtime, struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    *out_runtime = NULL;
    if (wanted->is_reference) {
        return TANDEM_OK;
    }
    options.n_threads = (int)wanted->threads;
    options.profile = wanted->profile;
    return tnd_runtime_option_open(&options, wanted->table, wanted->device, out_runtime, error);
}

const char *tnd_graph_pass_names(void)
{
    static char names[256];
    size_t n = 0;
    for (int i = 0; i < TND_N_PASSES && n < sizeof(names); i++) {
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? "," : "",
                              tnd_passes[i].name);
    }
    return names;
}

bool tnd_graph_passes(const char *text, unsigned *out)
{
    const bool is_known = tnd_passes_read(text, out);
    if (!is_known) {
        fprintf(stderr, "tandem-graph: --passes %s: expected none, or some of %s\n", text,
                tnd_graph_pass_names());
    }
    return is_known;
}

enum tandem_status tnd_graph_build(const struct tnd_onnx_model *model,
                                   const struct tandem_onnx_dim *dims, int n_dims,
                                   struct tnd_net **out_net,
                                   const struct tnd_onnx_node **out_stopped,
                                   struct tandem_error *error)
{
    struct tnd_onnx_part part = {.first = 0};
    const struct tnd_onnx_build_options options = {.n_dims = n_dims, .dims = dims, .part = &part};
    *out_stopped = NULL;
    TND_TRY(tnd_onnx_check_dims(model->graph, dims, n_dims, error));
    const enum tandem_status status = tnd_onnx_build(model, &options, out_net, error);
    for (int i = 0; i < part.n_left; i++) {
        tnd_array_free(part.left[i].known);
    }
    tnd_vector_fini(&part.left_vector);
    *out_stopped = part.is_last ? NULL : &model->graph->nodes[part.stopped];
    if (status == TANDEM_OK && (*out_net)->note[0] != '\0') {
        char visible[sizeof((*out_net)->note) * 2];
        (void)tandem_text_visible((*out_net)->note, strlen((*out_net)->note), visible,
                                  sizeof(visible));
        tnd_say("tandem-graph: %s\n", visible);
    }
    return status;
}

void tnd_graph_tell_part(FILE *file, const struct tnd_onnx_node *stopped)
{
    char visible[512];
    if (stopped != NULL) {
        const char *name = stopped->name[0] != '\0' ? stopped->name
                           : stopped->n_outputs > 0 ? stopped->outputs[0]
                                                    : "";
        (void)tandem_text_visible(name, strlen(name), visible, sizeof(visible));
        fprintf(file,
                "the first part of several: extents behind it depend on values that %s '%s' "
                "reads; run and bench compute the rest\n",
                stopped->op, visible);
    }
}

/* ---- computing ---- */

/* Sorts the arrays by the model's inputs without initializers. */
static enum tandem_status match(const struct tnd_onnx_graph *graph,
                                const struct tnd_graph_arrays *inputs,
                                struct tandem_net_array out[ARGS_LIST_MAX], int *n,
                                struct tandem_error *error)
{
    *n = 0;
    if (graph->n_inputs > ARGS_LIST_MAX || graph->n_outputs > ARGS_LIST_MAX) {
        const int most = graph->n_inputs > graph->n_outputs ? graph->n_inputs : graph->n_outputs;
        return tnd_error_set(error, TANDEM_E_LIMIT, NULL, most, ARGS_LIST_MAX,
                             "the model has %d inputs or outputs, expected at most %d", most,
                             ARGS_LIST_MAX);
    }
    for (int i = 0; i < graph->n_inputs; i++) {
        const char *name = graph->inputs[i].name;
        const struct tnd_array *array = NULL;
        if (tnd_onnx_has_initializer(graph, name)) {
            continue;
        }
        for (int k = 0; k < inputs->n; k++) {
            array = strcmp(inputs->names[k], name) == 0 ? inputs->arrays[k] : array;
        }
        if (array == NULL) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, name, 0, 0,
                                 "input %s has no values, expected --input %s=FILE.npy", name,
                                 name);
        }
        out[*n] =
            (struct tandem_net_array){.name = name,
                                      .type = array->type,
                                      .n_dims = array->shape.n,
                                      .data = array->data,
                                      .bytes = (size_t)array->n * tandem_dtype_bytes(array->type)};
        memcpy(out[*n].dims, array->shape.dims, sizeof(array->shape.dims));
        (*n)++;
    }
    return TANDEM_OK;
}

/* Computes a part with the reference, using the memory of the lowered part. */
static enum tandem_status run_part(tandem_lowered *part, struct tandem_error *error)
{
    const struct tnd_net *net = tnd_lowered_net(part);
    struct tandem_net_array at;
    struct tnd_array *lists = tnd_calloc((size_t)net->n_inputs + 1, sizeof(lists[0]));
    struct tnd_array **in = tnd_calloc((size_t)net->n_inputs + 1, sizeof(in[0]));
    struct tnd_array **out = tnd_calloc((size_t)net->n_outputs + 1, sizeof(out[0]));
    enum tandem_status status = TANDEM_E_MEMORY;
    if (lists != NULL && in != NULL && out != NULL) {
        for (int i = 0; tandem_lowered_input(part, i, &at); i++) {
            lists[i] = (struct tnd_array){.type = at.type, .data = at.data};
            (void)tnd_dims_from(at.n_dims, at.dims, &lists[i].shape);
            lists[i].n = tnd_dims_values(&lists[i].shape);
            in[i] = &lists[i];
        }
        status = tnd_net_run(net, in, out, error);
    } else {
        (void)tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a part");
    }
    for (int i = 0; status == TANDEM_OK && tandem_lowered_output(part, i, &at); i++) {
        if (at.bytes > 0 && memcmp(at.data, out[i]->data, at.bytes) != 0) { /* (or constant) */
            memcpy(at.data, out[i]->data, at.bytes);
        }
        tnd_array_free(out[i]);
    }
    tnd_free(lists);
    tnd_free(in);
    tnd_free(out);
    return status;
}

struct computing {
    const struct tnd_graph_call *call;
    bool is_begun;
};

static enum tandem_status compute_part(void *user, tandem_lowered *part, bool is_last,
                                       struct tandem_error *error)
{
    struct computing *computing = user;
    const struct tnd_graph_call *call = computing->call;
    (void)is_last;
    if (!computing->is_begun && call->ready != NULL) {
        TND_TRY(call->ready(call->user, error));
    }
    computing->is_begun = true;
    return call->runtime != NULL ? tandem_runtime_compute(call->runtime, tandem_lowered_graph(part),
                                                          NULL, NULL, error)
                                 : run_part(part, error);
}

static enum tandem_status copy_outputs(const struct tnd_graph_call *call, tandem_lowered *last,
                                       struct tnd_graph_arrays *out, struct tandem_error *error)
{
    for (int i = 0; i < call->model->model->graph->n_outputs; i++) {
        TND_TRY(tnd_lowered_get_output(tnd_lowered_of(last), i, &out->arrays[i], error));
        out->names[i] = call->model->model->graph->outputs[i].name;
        out->n++;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_graph_compute(const struct tnd_graph_call *call,
                                     const struct tnd_graph_arrays *inputs,
                                     struct tnd_graph_arrays *out, struct tandem_error *error)
{
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_net_array in[ARGS_LIST_MAX];
    struct computing computing = {.call = call};
    tandem_lowered *last = NULL;
    int n;
    out->n = 0;
    TND_TRY(match(call->model->model->graph, inputs, in, &n, error));
    how.passes = call->passes;
    how.chooser = tandem_runtime_chooser(call->runtime);
    call->model->keeps_nets = call->runtime == NULL;
    TND_TRY(tnd_model_parts(call->model, in, n, &how, compute_part, &computing, &last, error));
    const enum tandem_status status = copy_outputs(call, last, out, error);
    if (status != TANDEM_OK) {
        tnd_graph_arrays_free(out);
    }
    return status;
}
