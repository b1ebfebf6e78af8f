/* SPDX-License-Identifier: MIT
 * From a model and arrays to the arrays that come out. */
#include "tools/tandem-graph/graph_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
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
                                   const struct tnd_graph_arrays *inputs,
                                   const struct tandem_onnx_dim *dims, int n_dims, unsigned passes,
                                   struct tnd_net **out_net, struct tandem_error *error)
{
    const struct tnd_onnx_build_options options = {
        .n_dims = n_dims,
        .dims = dims,
        .n_arrays = inputs->n,
        .array_names = inputs->names,
        .arrays = (const struct tnd_array *const *)inputs->arrays};
    TND_TRY(tnd_onnx_build(model, &options, out_net, error));
    const enum tandem_status status = tnd_net_optimize(*out_net, passes, NULL, error);
    if (status != TANDEM_OK) {
        tnd_net_free(*out_net);
        *out_net = NULL;
        return status;
    }
    const struct tnd_net *net = *out_net;
    if (net->n_inputs > ARGS_LIST_MAX || net->n_outputs > ARGS_LIST_MAX) {
        const int n = net->n_inputs > net->n_outputs ? net->n_inputs : net->n_outputs;
        tnd_net_free(*out_net);
        *out_net = NULL;
        return tnd_error_set(error, TANDEM_E_LIMIT, NULL, n, ARGS_LIST_MAX,
                             "the model has %d inputs or outputs, expected at most %d", n,
                             ARGS_LIST_MAX);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_graph_match(const struct tnd_net *net, const struct tnd_graph_arrays *inputs,
                                   struct tnd_array **out, struct tandem_error *error)
{
    for (int i = 0; i < net->n_inputs; i++) {
        const char *name = tnd_net_value(net, net->inputs[i])->name;
        out[i] = NULL;
        for (int k = 0; k < inputs->n; k++) {
            out[i] = strcmp(inputs->names[k], name) == 0 ? inputs->arrays[k] : out[i];
        }
        if (out[i] == NULL) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, name, 0, 0,
                                 "input %s has no values, expected --input %s=FILE.npy", name,
                                 name);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status compute_lowered(const struct tnd_net *net, tandem_runtime *runtime,
                                          struct tnd_array **in, struct tnd_graph_arrays *out,
                                          struct tandem_error *error)
{
    struct tnd_lowered *lowered = NULL;
    const struct tnd_lower_options how = {.chooser = tandem_runtime_chooser(runtime)};
    enum tandem_status status = tnd_net_lower_with(net, &how, &lowered, error);
    for (int i = 0; i < net->n_inputs && status == TANDEM_OK; i++) {
        status = tnd_lowered_set_input(lowered, i, in[i], error);
    }
    if (status == TANDEM_OK) {
        status = tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, error);
        if (status != TANDEM_OK) {
            tnd_lowered_explain(lowered, error);
        }
    }
    for (int i = 0; i < net->n_outputs && status == TANDEM_OK; i++) {
        status = tnd_lowered_get_output(lowered, i, &out->arrays[i], error);
        out->n += status == TANDEM_OK;
    }
    tnd_lowered_free(lowered);
    if (status != TANDEM_OK) {
        tnd_graph_arrays_free(out);
    }
    return status;
}

enum tandem_status tnd_graph_compute(const struct tnd_net *net, tandem_runtime *runtime,
                                     const struct tnd_graph_arrays *inputs,
                                     struct tnd_graph_arrays *out, struct tandem_error *error)
{
    struct tnd_array *in[ARGS_LIST_MAX];
    out->n = 0;
    TND_TRY(tnd_graph_match(net, inputs, in, error));
    if (runtime != NULL) {
        return compute_lowered(net, runtime, in, out, error);
    }
    TND_TRY(tnd_net_run(net, in, out->arrays, error));
    out->n = net->n_outputs;
    return TANDEM_OK;
}
