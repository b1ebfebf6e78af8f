/* SPDX-License-Identifier: MIT
 * Main graphs in parts: where an operator needs computed values while the net is built, the net
 * ends before its node; the next part starts with that node and those values. */
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
        tnd_net_value(call->net, value)->input >= 0) { /* later nodes read the answer */
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

/* Marks the names that a graph and its inner graphs read from node `first` on. */
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

static bool add_left(struct tnd_onnx_builder *builder, const struct tnd_onnx_carried *carried)
{
    struct tnd_onnx_part *part = builder->options->part;
    if (builder->net->status != TANDEM_OK ||
        tnd_vector_insert(&part->left_vector, sizeof(part->left[0]), INT_MAX / 2, part->n_left) !=
            TANDEM_OK) {
        tnd_array_free(carried->known);
        return false;
    }
    part->left[part->n_left - 1] = *carried;
    return true;
}

/* Carries a value to the next part, by a name of the main graph. */
static bool leave_value(struct tnd_onnx_builder *builder, const char *name, int value,
                        bool is_element, int *n_outputs)
{
    struct tnd_net *net = builder->net;
    const struct tnd_net_value *v = tnd_net_value(net, value);
    struct tnd_onnx_carried carried = {.name = name,
                                       .type = v->type,
                                       .shape = v->shape,
                                       .narrow = tnd_onnx_narrow_at(builder, value),
                                       .output = -1,
                                       .is_element = is_element};
    if (net->values[v->base].known != NULL && net->values[v->base].input < 0) {
        const struct tnd_array *known = tnd_net_known(net, value);
        carried.known = known == NULL ? NULL : tnd_net_share(net, known);
        if (carried.known == NULL) {
            return false;
        }
    } else {
        carried.output = (*n_outputs)++;
        (void)tnd_net_output(net, value);
    }
    return add_left(builder, &carried);
}

/* Carries one name of the main graph; a sequence follows its elements. */
static bool leave(struct tnd_onnx_builder *builder, const struct tnd_onnx_name *name,
                  int *n_outputs)
{
    if (name->value > TND_ONNX_FIRST_SEQUENCE) {
        return leave_value(builder, name->text, name->value, false, n_outputs);
    }
    const struct tnd_onnx_sequence *list =
        &builder->sequences.list[TND_ONNX_FIRST_SEQUENCE - name->value];
    bool is_good = true;
    for (int i = 0; is_good && i < list->n; i++) {
        is_good = leave_value(builder, name->text, list->values[i], true, n_outputs);
    }
    const struct tnd_onnx_carried carried = {
        .name = name->text, .output = -1, .is_sequence = true, .is_nothing = list->is_nothing};
    return is_good && add_left(builder, &carried);
}

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
        if (is_read[i] && slot->text != NULL &&
            (slot->value >= 0 || slot->value <= TND_ONNX_FIRST_SEQUENCE) &&
            !tnd_onnx_has_initializer(graph, slot->text)) {
            is_good = leave(builder, slot, &n_outputs);
        }
    }
    tnd_free(is_read);
    if (!is_good) {
        (void)tnd_net_fail(net, TANDEM_E_MEMORY, "no memory for a part of a net");
    }
}

bool tnd_onnx_add_carried(struct tnd_onnx_builder *builder, const struct tnd_onnx_part *part)
{
    struct tnd_net *net = builder->net;
    int *elements =
        tnd_arena_alloc(&net->arena, ((size_t)part->n_carried + 1) * sizeof(int), _Alignof(int));
    bool is_good = elements != NULL;
    int begin = 0; /* first element of the next sequence */
    int n = 0;
    for (int i = 0; is_good && i < part->n_carried; i++) {
        const struct tnd_onnx_carried *it = &part->carried[i];
        if (it->is_sequence) {
            const struct tnd_onnx_sequence list = {it->is_nothing, n - begin, elements + begin};
            const int value = tnd_onnx_add_sequence(net, &builder->sequences, &list);
            is_good = value != TANDEM_NET_NONE && tnd_onnx_give_name(builder, it->name, value);
            begin = n;
            continue;
        }
        const int value = it->known != NULL
                              ? tnd_net_constant(net, tnd_net_share(net, it->known))
                              : tnd_net_input(net, it->type, &it->shape, it->name, NULL);
        const int narrow = value == TANDEM_NET_NONE
                               ? TANDEM_NET_NONE
                               : tnd_onnx_narrow_as(builder, value, it->narrow);
        is_good = narrow != TANDEM_NET_NONE &&
                  (it->is_element || tnd_onnx_give_name(builder, it->name, narrow));
        elements[n] = narrow;
        n += it->is_element;
    }
    return is_good;
}
