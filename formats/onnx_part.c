/* SPDX-License-Identifier: MIT
 * Main graphs in parts: where an operator asks for values that are computed, the net ends in front
 * of its node; the next part begins with that node, and with the values. */
#include <limits.h>

#include "base/alloc.h"
#include "formats/onnx_builder.h"
#include "formats/onnx_op.h"

const struct tnd_array *tnd_onnx_ask(struct tnd_onnx_call *call, int value)
{
    struct tnd_onnx_builder *builder = call->builder;
    const struct tnd_onnx_part *part = builder->options->part;
    const struct tnd_array *known = value < 0 ? NULL : tnd_net_known(call->net, value);
    if (known != NULL || part == NULL || value < 0 || call->net->status != TANDEM_OK) {
        return known;
    }
    if (tnd_net_value(call->net, value)->base != value ||
        tnd_net_value(call->net, value)->input >= 0) { /* (what follows reads the answer) */
        value = tnd_net_copy(call->net, value);
    }
    const struct tnd_net_value *v = tnd_net_value(call->net, value);
    if (builder->n_answered < part->n_answers) {
        const struct tnd_array *answer = part->answers[builder->n_answered++];
        if (answer->type == v->type && tnd_dims_is_equal(&answer->shape, &v->shape)) {
            return tnd_net_answer(call->net, value, answer);
        }
    }
    builder->asked = value;
    (void)tnd_onnx_refuse(call, "the extent of its result depends on values");
    return NULL;
}

/* Marks the names that a graph, and graphs inside it, read from node `first` on. */
static void mark_read(const struct tnd_onnx_scope *scope, const struct tnd_onnx_graph *graph,
                      int first, bool *is_read)
{
    for (int i = first; i < graph->n_nodes; i++) {
        const struct tnd_onnx_node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++) {
            const struct tnd_onnx_name *slot = tnd_onnx_slot_of(scope, node->inputs[k]);
            is_read[slot - scope->slots] = true;
        }
        for (int k = 0; k < node->n_attributes; k++) {
            if (node->attributes[k].graph != NULL) {
                mark_read(scope, node->attributes[k].graph, 0, is_read);
            }
        }
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        is_read[tnd_onnx_slot_of(scope, graph->outputs[i].name) - scope->slots] = true;
    }
}

/* One name of the main graph as the next part takes it. */
static bool leave(struct tnd_onnx_builder *builder, const struct tnd_onnx_name *name,
                  int *n_outputs)
{
    struct tnd_net *net = builder->net;
    struct tnd_onnx_part *part = builder->options->part;
    const struct tnd_net_value *v = tnd_net_value(net, name->value);
    struct tnd_onnx_carried carried = {.name = name->text,
                                       .type = v->type,
                                       .shape = v->shape,
                                       .narrow = tnd_onnx_narrow_at(builder, name->value)};
    if (net->values[v->base].known != NULL && net->values[v->base].input < 0) {
        const struct tnd_array *known = tnd_net_known(net, name->value);
        carried.known = known == NULL ? NULL : tnd_net_share(net, known);
        if (carried.known == NULL) {
            return false;
        }
    } else {
        carried.output = (*n_outputs)++;
        (void)tnd_net_output(net, name->value);
    }
    if (net->status != TANDEM_OK || tnd_vector_insert(&part->left_vector, sizeof(part->left[0]),
                                                      INT_MAX / 2, part->n_left) != TANDEM_OK) {
        tnd_array_free(carried.known);
        return false;
    }
    part->left[part->n_left - 1] = carried;
    return true;
}

/* Ends a part in front of a node: what it asks for, and what the rest reads, becomes outputs. */
void tnd_onnx_end_part(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph)
{
    struct tnd_net *net = builder->net;
    const struct tnd_onnx_scope *scope = builder->main;
    bool *is_read = tnd_calloc(scope->n_slots + 1, sizeof(is_read[0]));
    int n_outputs = 1;
    net->status = TANDEM_OK;
    if (is_read != NULL && scope->n_slots > 0) {
        mark_read(scope, graph, builder->options->part->stopped, is_read);
    }
    bool is_good = is_read != NULL && tnd_net_output(net, builder->asked) != TANDEM_NET_NONE;
    for (size_t i = 0; is_good && i < scope->n_slots; i++) {
        const struct tnd_onnx_name *slot = &scope->slots[i];
        if (is_read[i] && slot->text != NULL && slot->value <= TND_ONNX_FIRST_SEQUENCE) {
            (void)tnd_net_fail(net, TANDEM_E_UNSUPPORTED_BUILD,
                               "'%.80s' is a sequence or optional behind an extent that depends "
                               "on values, expected a tensor",
                               slot->text);
            tnd_free(is_read);
            return;
        }
        if (is_read[i] && slot->text != NULL && slot->value >= 0 &&
            !tnd_onnx_has_initializer(graph, slot->text)) {
            is_good = leave(builder, slot, &n_outputs);
        }
    }
    tnd_free(is_read);
    if (!is_good) {
        (void)tnd_net_fail(net, TANDEM_E_MEMORY, "no memory for a part of a net");
    }
}

/* The values that a part begins with. */
bool tnd_onnx_add_carried(struct tnd_onnx_builder *builder, const struct tnd_onnx_part *part)
{
    struct tnd_net *net = builder->net;
    for (int i = 0; i < part->n_carried; i++) {
        const struct tnd_onnx_carried *it = &part->carried[i];
        const int value = it->known != NULL
                              ? tnd_net_constant(net, tnd_net_share(net, it->known))
                              : tnd_net_input(net, it->type, &it->shape, it->name, NULL);
        if (value == TANDEM_NET_NONE ||
            !tnd_onnx_give_name(builder, it->name,
                                tnd_onnx_narrow_as(builder, value, it->narrow))) {
            return false;
        }
    }
    return true;
}
