/* SPDX-License-Identifier: MIT
 * Pass "widen": operations on float16 and bfloat16 are computed in float32, as CPUs do. Casting
 * the operands keeps every value; the result is cast back only where somebody needs the narrow
 * type. One operation keeps its bits. Of several, the rounding to the narrow type in between, half
 * a unit in its last place, goes, and so does its overflow.
 * The largest and smallest of small integers, in pools and reductions, are found as floats, too,
 * and sums of products of bytes that are both computed.
 *
 * A cast that the pass, or an operator that computes in float32, puts behind its result is marked
 * (params.kind TND_CAST_MAY_GO); one that the program asked for rounds for ever. */
#include <math.h>

#include "graph/net_internal.h"
#include "graph/pass_internal.h"

static bool is_half(enum tandem_dtype type)
{
    return type == TANDEM_DTYPE_F16 || type == TANDEM_DTYPE_BF16;
}

/* The float32 value of which `value` is a needless rounding, whole or as a view; TANDEM_NET_NONE:
 * none. */
static int unrounded(struct tnd_net *net, int value)
{
    const int base = net->values[value].base;
    const int node = net->values[base].node;
    if (node < 0 || net->nodes[node].op != TND_NET_CAST ||
        net->nodes[node].params.kind != TND_CAST_MAY_GO) {
        return TANDEM_NET_NONE;
    }
    const int wide = net->nodes[node].inputs[0];
    if (net->values[wide].type != TANDEM_DTYPE_F32 || net->values[wide].base != wide) {
        return TANDEM_NET_NONE;
    }
    return value == base ? wide : tnd_net_view_like(net, wide, value);
}

/* casts the whole base: a view may repeat one element */
static int widen(struct tnd_net *net, int value)
{
    const int base = net->values[value].base;
    const int wide = unrounded(net, value);
    if (wide != TANDEM_NET_NONE) {
        return wide;
    }
    const int whole = tnd_net_cast(net, base, TANDEM_DTYPE_F32);
    return value == base ? whole : tnd_net_view_like(net, whole, value);
}

/* Whether a node only moves values: it stays narrow unless a wide operand exists. */
static bool is_move(const struct tnd_net_node *node)
{
    switch (node->op) {
    case TND_NET_COPY:
    case TND_NET_CONCAT:
    case TND_NET_PAD:
    case TND_NET_GATHER:
    case TND_NET_GATHER_ELEMENTS:
    case TND_NET_SELECT:
        return true;
    case TND_NET_SCATTER_ELEMENTS:
        return node->params.kind == TANDEM_SCATTER_SET;
    default:
        return false;
    }
}

static bool has_unrounded(struct tnd_net *net, const int *in, int n)
{
    for (int i = 0; i < n; i++) {
        if (is_half(net->values[in[i]].type) && unrounded(net, in[i]) != TANDEM_NET_NONE) {
            return true;
        }
    }
    return false;
}

/* Whether a node selects among integers of 16 bits or less, which keep their order as floats. (Max
 * pools of bytes have a kernel.) */
static bool is_choice(const struct tnd_net_node *node, enum tandem_dtype type)
{
    const enum tnd_dtype_kind kind = tnd_dtype_kind(type);
    const bool is_small =
        (kind == TND_KIND_SIGNED || kind == TND_KIND_UNSIGNED) && tandem_dtype_bytes(type) <= 2;
    const int of = node->params.kind;
    return is_small &&
           ((node->op == TND_NET_POOL && of == TANDEM_POOL_MAX && tandem_dtype_bytes(type) > 1) ||
            (node->op == TND_NET_REDUCE && (of == TANDEM_REDUCE_MAX || of == TANDEM_REDUCE_MIN)));
}

static int rule_cast(struct tnd_net *to, const int *in, enum tandem_dtype type)
{
    const int wide = is_half(to->values[in[0]].type) ? unrounded(to, in[0]) : TANDEM_NET_NONE;
    if (wide == TANDEM_NET_NONE) {
        return TANDEM_NET_NONE;
    }
    return type == TANDEM_DTYPE_F32 ? wide : tnd_net_cast(to, wide, type);
}

int tnd_pass_widen(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    enum { MOST = 64 };
    struct tnd_net *to = rewrite->to;
    const struct tnd_net_value *old = &rewrite->from->values[node->output];
    const bool narrows = is_half(old->type);
    bool has_half = false;
    int wide[MOST];
    if (node->op == TND_NET_CAST) {
        return rule_cast(to, in, old->type);
    }
    if (is_choice(node, old->type)) {
        const int wide_in = tnd_net_cast(to, in[0], TANDEM_DTYPE_F32);
        const struct tnd_dims out = old->shape;
        return tnd_net_cast(
            to, tnd_net_add(to, node->op, &node->params, &wide_in, 1, TANDEM_DTYPE_F32, &out),
            old->type);
    }
    for (int i = 0; i < node->n_inputs; i++) {
        has_half |= is_half(to->values[in[i]].type);
    }
    if (!has_half || node->n_inputs > MOST ||
        (is_move(node) && !has_unrounded(to, in, node->n_inputs))) {
        return TANDEM_NET_NONE;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        wide[i] = is_half(to->values[in[i]].type) ? widen(to, in[i]) : in[i];
    }
    const struct tnd_dims shape = old->shape;
    const int made = tnd_net_add(to, node->op, &node->params, wide, node->n_inputs,
                                 narrows ? TANDEM_DTYPE_F32 : old->type, &shape);
    if (made == TANDEM_NET_NONE || !narrows) {
        return made;
    }
    tnd_net_name(to, made, old->name);
    const struct tnd_net_params may_go = {.kind = TND_CAST_MAY_GO};
    return tnd_net_add(to, TND_NET_CAST, &may_go, &made, 1, old->type, &shape);
}
