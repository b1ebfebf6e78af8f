/* SPDX-License-Identifier: MIT
 * Bytes that are a function of one byte: whatever operations lie between, two hundred and fifty-six
 * results are computed once, and the node looks its values up. Quantised nets are full of these:
 * an activation between a dequantisation and a quantisation, and what becomes of its result.
 *
 * Table entry `b` is the result for the byte `b`, whether x is signed or not. */
#include <string.h>

#include "base/alloc.h"
#include "graph/lower_internal.h"
#include "graph/pass_internal.h"

enum { BYTES = 256, NOTHING = -1 };

/* ---- finding ---- */

/* A value as a function of a byte value, with the function's 256 results. */
struct function {
    int of;           /* a base; NOTHING: not such a function */
    bool is_reshaped; /* reshaped in between */
    struct tnd_array *values;
};

/* Whether a value is one constant number, of any shape. */
static bool is_uniform(const struct tnd_lowering *l, int value)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    for (int d = 0; d < v->shape.n; d++) {
        if (v->shape.dims[d] > 1 && v->strides[d] != 0) {
            return false;
        }
    }
    return tnd_lower_value(l, value)->known != NULL;
}

/* The byte on which all operands of a node depend, if there is one. */
static int find_byte(const struct tnd_lowering *l, const struct function *functions,
                     const struct tnd_net_node *node, bool *is_reshaped)
{
    int of = NOTHING;
    *is_reshaped = false;
    if (!tnd_lower_is_elementwise(node)) {
        return NOTHING;
    }
    for (int k = 0; k < node->n_inputs; k++) {
        const struct tnd_net_value *in = tnd_net_value(l->net, node->inputs[k]);
        if (is_uniform(l, node->inputs[k])) {
            continue;
        }
        const bool is_whole = tnd_match_whole(l->net, node->inputs[k]);
        *is_reshaped =
            *is_reshaped || in->base != node->inputs[k] || functions[in->base].is_reshaped;
        const int from = !is_whole                                    ? NOTHING
                         : functions[in->base].of != NOTHING          ? functions[in->base].of
                         : tnd_is_byte(in->type) && in->known == NULL ? in->base
                                                                      : NOTHING;
        if (from == NOTHING || (of != NOTHING && of != from)) {
            return NOTHING;
        }
        of = from;
    }
    return of;
}

/* The 256 values of an operand, for a kernel. `all`: the bytes 0 to 255. */
static struct tnd_view operand_values(const struct tnd_lowering *l,
                                      const struct function *functions, int value,
                                      const uint8_t *all)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    struct tnd_view view = {.type = v->type, .shape = {1, {BYTES}}, .strides = {1}, .data = all};
    if (is_uniform(l, value) && tnd_lower_fill(l, value) == TANDEM_OK) {
        view.data = tnd_lower_known(l, value).data;
        view.strides[0] = 0;
    } else if (functions[v->base].of != NOTHING) {
        view.data = functions[v->base].values->data;
    }
    return view;
}

static enum tandem_status compute(const struct tnd_lowering *l, const struct tnd_net_node *node,
                                  struct function *functions, const uint8_t *all)
{
    const struct tnd_dims shape = {1, {BYTES}};
    struct tnd_view in[3];
    struct tnd_array *out = tnd_array_new(tnd_net_value(l->net, node->output)->type, &shape);
    if (out == NULL) {
        return tnd_lower_no_memory(l);
    }
    for (int k = 0; k < node->n_inputs; k++) {
        in[k] = operand_values(l, functions, node->inputs[k], all);
    }
    const struct tnd_kernel_call call = {
        .params = &node->params, .in = in, .n_in = node->n_inputs, .out = out, .error = l->error};
    functions[node->output].values = out;
    return tnd_net_kernel(node->op)(&call);
}

/* Keeps the values of a node whose result is a byte as its table. A plain copy needs none. */
static enum tandem_status keep_table(struct tnd_lowering *l, int i,
                                     const struct function *functions)
{
    const struct tnd_net_node *node = &l->net->nodes[i];
    const struct function *function = &functions[node->output];
    if (function->of == NOTHING || !tnd_is_byte(function->values->type) ||
        node->op == TND_NET_COPY) {
        return TANDEM_OK;
    }
    struct tnd_array *table = tnd_lower_array(l, TANDEM_DTYPE_U8, &TND_DIMS(BYTES));
    if (table == NULL) {
        return tnd_lower_no_memory(l);
    }
    memcpy(table->data, function->values->data, BYTES);
    l->tables[i] = (struct tnd_lower_table){
        .x = function->of, .is_reshaped = function->is_reshaped, .values = table->data};
    return TANDEM_OK;
}

enum tandem_status tnd_lower_find_tables(struct tnd_lowering *l)
{
    struct function *functions = tnd_calloc((size_t)l->net->n_values + 1, sizeof(functions[0]));
    enum tandem_status status = functions == NULL ? tnd_lower_no_memory(l) : TANDEM_OK;
    uint8_t all[BYTES];
    for (int i = 0; i < BYTES; i++) {
        all[i] = (uint8_t)i;
    }
    for (int i = 0; functions != NULL && i < l->net->n_values; i++) {
        functions[i].of = NOTHING;
    }
    for (int i = 0; status == TANDEM_OK && i < l->net->n_nodes; i++) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        bool is_reshaped = false;
        const int of = l->values[node->output].known != NULL
                           ? NOTHING
                           : find_byte(l, functions, node, &is_reshaped);
        if (of != NOTHING) {
            functions[node->output].of = of;
            functions[node->output].is_reshaped = is_reshaped;
            status = compute(l, node, functions, all);
        }
        if (status == TANDEM_OK) {
            status = keep_table(l, i, functions);
        }
    }
    for (int i = 0; functions != NULL && i < l->net->n_values; i++) {
        tnd_array_free(functions[i].values);
    }
    tnd_free(functions);
    return status;
}

/* ---- lowering ---- */

enum tandem_status tnd_lower_look_up(struct tnd_lowering *l, const struct tnd_net_node *node)
{
    const struct tnd_lower_table *table = &l->tables[node - l->net->nodes];
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    const struct tnd_lower_value *x = &l->values[table->x];
    struct tnd_work *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->layout = x->tensors[TND_LAYOUT_LAST] != NULL && x->tensors[TND_LAYOUT_PLAIN] == NULL &&
                          !table->is_reshaped
                      ? TND_LAYOUT_LAST
                      : TND_LAYOUT_PLAIN;
    job->op = node->op;
    job->type = out->type;
    job->shape = out->shape;
    job->n_items = (tnd_dims_values(&out->shape) + TND_TABLE_ITEM - 1) / TND_TABLE_ITEM;
    job->amount = (double)tnd_dims_values(&out->shape) / 8; /* a shuffle looks up many */
    job->of.table = table->values;
    job->kind = TND_WORK_TABLE;
    tandem_tensor *tensor = NULL;
    TND_TRY(tnd_lower_tensor(l, table->x, job->layout, &tensor));
    tandem_tensor **made = &l->values[node->output].tensors[job->layout];
    TND_TRY(tnd_lower_emit(l, job, &tensor, 1, made));
    *made = tandem_tensor_set_name(*made, "table");
    return TANDEM_OK;
}
