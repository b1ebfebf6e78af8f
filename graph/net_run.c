/* SPDX-License-Identifier: MIT
 * Runs nets with the reference kernels, node by node. An array is freed after its last reader. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "ggml-like/net_kernels.h"
#include "graph/net_internal.h"

static struct tnd_view view_of(const struct tnd_net *net, int value,
                               struct tnd_array *const *arrays)
{
    const struct tnd_net_value *v = tnd_net_value(net, value);
    const struct tnd_net_value *base = tnd_net_value(net, v->base);
    const struct tnd_array *array =
        arrays != NULL && arrays[v->base] != NULL ? arrays[v->base] : base->known;
    TND_ASSERT(array != NULL);
    struct tnd_view view = {.type = v->type,
                            .shape = v->shape,
                            .data = (const char *)array->data +
                                    v->offset * (int64_t)tandem_dtype_bytes(v->type)};
    memcpy(view.strides, v->strides, sizeof(view.strides));
    return view;
}

/* The key of an operation's result in a store, compared byte by byte; operands are given
 * separately. */
struct how {
    struct tnd_net_params params;
    enum tnd_net_op op;
};

static enum tandem_status make(const void *how, const struct tnd_view *in, int n_in,
                               struct tnd_array *out, struct tandem_error *error)
{
    struct how it;
    memcpy(&it, how, sizeof(it)); /* a recipe's bytes may be unaligned */
    const struct tnd_dims *const shapes[] = {n_in > 0 ? &in[0].shape : NULL,
                                             n_in > 0 ? &in[n_in > 1 ? 1 : 0].shape : NULL};
    const size_t bytes = n_in > 0 ? tnd_kernel_scratch(it.op, &it.params, shapes) : 0;
    void *scratch = bytes > 0 ? tnd_alloc(bytes) : NULL;
    const struct tnd_kernel_call call = {.params = &it.params,
                                         .in = in,
                                         .n_in = n_in,
                                         .out = out,
                                         .scratch = scratch,
                                         .error = error};
    const enum tandem_status status =
        bytes > 0 && scratch == NULL
            ? tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory to compute a constant")
            : tnd_net_kernel(it.op)(&call);
    tnd_free(scratch);
    return status;
}

static struct how how_of(const struct tnd_net_node *node)
{
    struct how how;
    const struct tnd_net_params *from = &node->params;
    memset(&how, 0, sizeof(how)); /* padding included */
    how.op = node->op;
    how.params.kind = from->kind;
    how.params.axis = from->axis;
    how.params.axes = from->axes;
    how.params.is_exclusive = from->is_exclusive;
    how.params.is_reverse = from->is_reverse;
    how.params.picks_last = from->picks_last;
    how.params.number = from->number;
    memcpy(how.params.begin, from->begin, sizeof(how.params.begin));
    how.params.window.n = from->window.n;
    memcpy(how.params.window.extent, from->window.extent, sizeof(how.params.window.extent));
    memcpy(how.params.window.stride, from->window.stride, sizeof(how.params.window.stride));
    memcpy(how.params.window.dilation, from->window.dilation, sizeof(how.params.window.dilation));
    memcpy(how.params.window.begin, from->window.begin, sizeof(how.params.window.begin));
    memcpy(how.params.window.end, from->window.end, sizeof(how.params.window.end));
    how.params.window.groups = from->window.groups;
    how.params.recurrent = from->recurrent;
    return how;
}

static const struct tnd_array *array_of(const struct tnd_net *net, int value,
                                        struct tnd_array *const *arrays)
{
    const int base = tnd_net_value(net, value)->base;
    return arrays != NULL && arrays[base] != NULL ? arrays[base] : net->values[base].known;
}

/* Whether the net's store has all operands of a node: then it keeps the result. */
static bool is_kept(const struct tnd_net *net, const struct tnd_net_node *node,
                    struct tnd_array *const *arrays)
{
    bool all = net->store != NULL && node->n_inputs > 0;
    for (int i = 0; i < node->n_inputs && all; i++) {
        all = tnd_store_has(net->store, array_of(net, node->inputs[i], arrays));
    }
    return all;
}

static enum tandem_status compute_kept(const struct tnd_net *net, const struct tnd_net_node *node,
                                       struct tnd_array *const *arrays, struct tnd_array **out,
                                       struct tandem_error *error)
{
    const struct tnd_net_value *result = tnd_net_value(net, node->output);
    const struct how how = how_of(node);
    struct tnd_store_operand *in = tnd_calloc((size_t)node->n_inputs, sizeof(in[0]));
    if (in == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for operands");
    }
    for (int i = 0; i < node->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, node->inputs[i]);
        in[i] = (struct tnd_store_operand){.array = array_of(net, node->inputs[i], arrays),
                                           .view = {.type = v->type, .shape = v->shape},
                                           .offset = v->offset};
        memcpy(in[i].view.strides, v->strides, sizeof(v->strides));
    }
    const struct tnd_store_recipe recipe = {.make = make,
                                            .how = &how,
                                            .n_how = sizeof(how),
                                            .in = in,
                                            .n_in = node->n_inputs,
                                            .type = result->type,
                                            .shape = result->shape,
                                            .is_late =
                                                tnd_net_is_late(node->op, result, in[0].view.type)};
    const enum tandem_status status = tnd_store_derive(net->store, &recipe, out, error);
    tnd_free(in);
    return status;
}

static enum tandem_status compute_own(const struct tnd_net *net, const struct tnd_net_node *node,
                                      struct tnd_array *const *arrays, struct tnd_array **out,
                                      struct tandem_error *error)
{
    const struct tnd_net_value *result = tnd_net_value(net, node->output);
    const struct how how = how_of(node);
    struct tnd_view *views = tnd_calloc((size_t)node->n_inputs + 1, sizeof(views[0]));
    struct tnd_array *array = tnd_array_new(result->type, &result->shape);
    bool has_all = views != NULL && array != NULL;
    for (int i = 0; i < node->n_inputs && has_all; i++) {
        has_all = tnd_array_fill(array_of(net, node->inputs[i], arrays));
        views[i] = has_all ? view_of(net, node->inputs[i], arrays) : views[i];
    }
    char text[160];
    const enum tandem_status status =
        has_all
            ? make(&how, views, node->n_inputs, array, error)
            : tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for %s values of %s",
                            tandem_dtype_name(result->type), tnd_dims_text(&result->shape, text));
    tnd_free(views);
    if (status != TANDEM_OK) {
        tnd_array_free(array);
        return status;
    }
    *out = array;
    return TANDEM_OK;
}

enum tandem_status tnd_net_compute(const struct tnd_net *net, const struct tnd_net_node *node,
                                   struct tnd_array *const *arrays, struct tnd_array **out,
                                   struct tandem_error *error)
{
    const enum tandem_status status = is_kept(net, node, arrays)
                                          ? compute_kept(net, node, arrays, out, error)
                                          : compute_own(net, node, arrays, out, error);
    if (status != TANDEM_OK) {
        tnd_net_name_error(node->op, tnd_net_value(net, node->output)->name, error);
    }
    return status;
}

/* ---- whole nets ---- */

/* Per value: its array, the owner, and the last node that reads it. */
struct run {
    struct tnd_array **arrays;
    int *last_reader; /* number of nodes: an output; -1: unread */
    bool *is_ours;
};

static bool run_new(struct run *run, const struct tnd_net *net)
{
    const size_t n = (size_t)net->n_values + 1;
    *run = (struct run){.arrays = tnd_calloc(n, sizeof(run->arrays[0])),
                        .last_reader = tnd_calloc(n, sizeof(run->last_reader[0])),
                        .is_ours = tnd_calloc(n, sizeof(run->is_ours[0]))};
    return run->arrays != NULL && run->last_reader != NULL && run->is_ours != NULL;
}

static void run_free(struct run *run, const struct tnd_net *net)
{
    for (int i = 0; run->arrays != NULL && run->is_ours != NULL && i < net->n_values; i++) {
        if (run->is_ours[i]) {
            tnd_array_free(run->arrays[i]);
        }
    }
    tnd_free(run->arrays);
    tnd_free(run->last_reader);
    tnd_free(run->is_ours);
}

enum tandem_status tnd_net_check_input(const struct tnd_net *net, int i,
                                       const struct tnd_array *array, struct tandem_error *error)
{
    const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
    char got[160];
    char wanted[160];
    if (array->type != v->type || !tnd_dims_is_equal(&array->shape, &v->shape)) {
        return tnd_error_set(error, TANDEM_E_SHAPE, v->name, i, 0,
                             "input %s: %s values of %s, expected %s of %s", v->name,
                             tandem_dtype_name(array->type), tnd_dims_text(&array->shape, got),
                             tandem_dtype_name(v->type), tnd_dims_text(&v->shape, wanted));
    }
    if (v->is_fixed && memcmp(array->data, v->known->data,
                              (size_t)v->known->n * tandem_dtype_bytes(v->type)) != 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, v->name, i, 0,
                             "input %s: other values than the net was made for (its shapes or "
                             "steps depend on them): build it again",
                             v->name);
    }
    return TANDEM_OK;
}

static enum tandem_status take_inputs(const struct tnd_net *net, struct tnd_array *const *inputs,
                                      struct run *run, struct tandem_error *error)
{
    for (int i = 0; i < net->n_inputs; i++) {
        TND_TRY(tnd_net_check_input(net, i, inputs[i], error));
        run->arrays[net->inputs[i]] = inputs[i];
    }
    return TANDEM_OK;
}

/* Nodes that no output needs have no reader. */
static void find_readers(const struct tnd_net *net, struct run *run)
{
    for (int i = 0; i < net->n_values; i++) {
        run->last_reader[i] = -1;
    }
    for (int i = 0; i < net->n_outputs; i++) {
        run->last_reader[net->outputs[i]] = net->n_nodes;
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const struct tnd_net_node *node = &net->nodes[i];
        if (run->last_reader[node->output] < 0) {
            continue;
        }
        for (int k = 0; k < node->n_inputs; k++) {
            const int base = tnd_net_value(net, node->inputs[k])->base;
            run->last_reader[base] = run->last_reader[base] < i ? i : run->last_reader[base];
        }
    }
}

static enum tandem_status run_nodes(const struct tnd_net *net, struct run *run,
                                    struct tandem_error *error)
{
    for (int i = 0; i < net->n_nodes; i++) {
        const struct tnd_net_node *node = &net->nodes[i];
        if (run->last_reader[node->output] < 0 || tnd_net_value(net, node->output)->known != NULL) {
            continue;
        }
        TND_TRY(tnd_net_compute(net, node, run->arrays, &run->arrays[node->output], error));
        run->is_ours[node->output] = true;
        for (int k = 0; k < node->n_inputs; k++) {
            const int base = tnd_net_value(net, node->inputs[k])->base;
            if (run->is_ours[base] && run->last_reader[base] == i) {
                tnd_array_free(run->arrays[base]);
                run->arrays[base] = NULL;
                run->is_ours[base] = false;
            }
        }
    }
    return TANDEM_OK;
}

/* Copies the outputs: a value may be an output twice, an input, or a constant. */
static enum tandem_status give_outputs(const struct tnd_net *net, const struct run *run,
                                       struct tnd_array **outputs, struct tandem_error *error)
{
    for (int i = 0; i < net->n_outputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->outputs[i]);
        const struct tnd_array *from =
            run->arrays[net->outputs[i]] != NULL ? run->arrays[net->outputs[i]] : v->known;
        outputs[i] = tnd_array_fill(from) ? tnd_array_new(v->type, &v->shape) : NULL;
        if (outputs[i] == NULL) {
            for (int k = 0; k < i; k++) {
                tnd_array_free(outputs[k]);
                outputs[k] = NULL;
            }
            return tnd_error_set(error, TANDEM_E_MEMORY, v->name, i, 0, "no memory for output %d",
                                 i);
        }
        memcpy(outputs[i]->data, from->data, (size_t)from->n * tandem_dtype_bytes(from->type));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_net_run(const struct tnd_net *net, struct tnd_array *const *inputs,
                               struct tnd_array **outputs, struct tandem_error *error)
{
    struct run run;
    enum tandem_status status =
        run_new(&run, net) ? TANDEM_OK
                           : tnd_error_set(error, TANDEM_E_MEMORY, NULL, net->n_values, 0,
                                           "no memory to run a net of %d values", net->n_values);
    status = status == TANDEM_OK ? take_inputs(net, inputs, &run, error) : status;
    if (status == TANDEM_OK) {
        find_readers(net, &run);
        status = run_nodes(net, &run, error);
    }
    status = status == TANDEM_OK ? give_outputs(net, &run, outputs, error) : status;
    run_free(&run, net);
    return status;
}
