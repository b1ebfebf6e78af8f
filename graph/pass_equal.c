/* SPDX-License-Identifier: MIT
 * Pass "equal": of operations that compute the same one stays, of constants with the same bytes
 * too; a copy of a view goes where its readers can read the view.
 *
 * Equal: operations have no state and no side effects, so that one operation, with the same
 * parameters, on the same views of the same values, of one type and shape, gives the same bits. A
 * copy holds the values of the view that it is a copy of. */
#include <string.h>

#include "graph/pass_internal.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0xff51afd7ed558ccdU;
    return hash ^ hash >> 32;
}

static uint64_t hash_node(const struct tnd_net *to, const struct tnd_net_node *node, const int *in)
{
    const struct tnd_net_params *p = &node->params;
    uint64_t hash = mix(mix(mix(1, (uint64_t)node->op), (uint64_t)p->kind), (uint64_t)p->axis);
    hash = mix(mix(hash, p->axes), (uint64_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct tnd_net_value *v = &to->values[in[i]];
        hash = mix(mix(hash, (uint64_t)v->base), (uint64_t)v->offset);
    }
    return hash == 0 ? 1 : hash;
}

static bool is_same_window(const struct tnd_window *a, const struct tnd_window *b)
{
    if (a->n != b->n || a->groups != b->groups) {
        return false;
    }
    const size_t bytes = (size_t)a->n * sizeof(int64_t);
    return memcmp(a->extent, b->extent, bytes) == 0 && memcmp(a->stride, b->stride, bytes) == 0 &&
           memcmp(a->dilation, b->dilation, bytes) == 0 && memcmp(a->begin, b->begin, bytes) == 0 &&
           memcmp(a->end, b->end, bytes) == 0;
}

static bool is_same_params(const struct tnd_net_params *a, const struct tnd_net_params *b)
{
    return a->kind == b->kind && a->axis == b->axis && a->axes == b->axes &&
           a->is_exclusive == b->is_exclusive && a->is_reverse == b->is_reverse &&
           a->picks_last == b->picks_last && a->number == b->number &&
           memcmp(a->begin, b->begin, sizeof(a->begin)) == 0 &&
           is_same_window(&a->window, &b->window) &&
           memcmp(&a->recurrent, &b->recurrent, sizeof(a->recurrent)) == 0;
}

static bool is_same_node(const struct tnd_net *to, const struct tnd_net_node *old,
                         const struct tnd_net_node *node, const int *in,
                         const struct tnd_net_value *result)
{
    const struct tnd_net_value *has = &to->values[old->output];
    if (old->op != node->op || old->n_inputs != node->n_inputs || has->type != result->type ||
        !tnd_dims_is_equal(&has->shape, &result->shape) ||
        !is_same_params(&old->params, &node->params)) {
        return false;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        if (!tnd_match_same(to, old->inputs[i], in[i])) {
            return false;
        }
    }
    return true;
}

int tnd_pass_equal(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const uint64_t hash = hash_node(to, node, in);
    for (int i = 0; i < to->n_nodes; i++) {
        if (rewrite->hashes[i] == hash &&
            is_same_node(to, &to->nodes[i], node, in, &rewrite->from->values[node->output])) {
            return to->nodes[i].output;
        }
    }
    rewrite->hashes[to->n_nodes] = hash;
    return node->op == TND_NET_COPY ? in[0] : TANDEM_NET_NONE;
}
