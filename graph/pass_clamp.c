/* SPDX-License-Identifier: MIT
 * Pass "clamp": chains of bounds (relu, min, max, clip) become one lower and one upper bound.
 *
 * The reference's max(x, a) is x where x > a or x is NaN, else a; min likewise. With numbers a, b
 * that are not NaN:
 * - max(max(x, a), b): if a > b, the inner result is never below b, and equals it nowhere: it
 *   stays, max(x, a). Else what is not above b becomes b, whatever the inner one made of it:
 *   max(x, b). So for min with < instead.
 * - max(min(x, b), c) with c < b is min(max(x, c), b): NaN stays; below c both give c, above b both
 *   give b, between them x; at x = c and x = b both give the bound itself. Lower bounds thus come
 *   first, and meet in the first rule.
 * - max(x, +0) of what is +0 or more is x.
 * A number on the left gives its own bits only where it is larger, so that x = c gives x: for
 * floats such a bound of 0, which has two signs, is left alone. */
#include <math.h>

#include "graph/pass_internal.h"

/* A bound that is one number, an integer or float. */
struct bound {
    int kind; /* TANDEM_BINARY_MAX or MIN; -1: none */
    int x;
    int limit; /* the value that has it, of x's shape */
    double number;
    int64_t integer;
};

static struct bound read_bound(const struct tnd_net *net, int kind, const int *in)
{
    static const struct bound none = {.kind = -1};
    struct bound out = {.kind = kind, .x = in[0], .limit = in[1]};
    if (kind != TANDEM_BINARY_MAX && kind != TANDEM_BINARY_MIN) {
        return none;
    }
    if (tnd_match_uniform(net, in[1], &out.number, &out.integer)) {
        return isnan(out.number) ? none : out;
    }
    out.x = in[1];
    out.limit = in[0];
    const bool is_known = tnd_match_uniform(net, in[0], &out.number, &out.integer);
    const bool has_zeros = tnd_is_float(net->values[in[0]].type) && out.number == 0;
    return is_known && !isnan(out.number) && !has_zeros ? out : none;
}

static struct bound bound_of(const struct tnd_net *net, int value)
{
    static const struct bound none = {.kind = -1};
    const struct tnd_net_node *node = tnd_match(net, value, TND_NET_BINARY, -1);
    return node == NULL || net->values[value].base != value
               ? none
               : read_bound(net, node->params.kind, node->inputs);
}

static bool is_above(enum tandem_dtype type, const struct bound *a, const struct bound *b)
{
    switch (tnd_dtype_kind(type)) {
    case TND_KIND_FLOAT:
        return a->number > b->number;
    case TND_KIND_UNSIGNED:
        return (uint64_t)a->integer > (uint64_t)b->integer;
    default:
        return a->integer > b->integer;
    }
}

static int merge(struct tnd_net *to, const struct bound *inner, const struct bound *outer)
{
    const enum tandem_dtype type = to->values[inner->x].type;
    const bool inner_stays = outer->kind == TANDEM_BINARY_MAX ? is_above(type, inner, outer)
                                                              : is_above(type, outer, inner);
    return tnd_net_binary(to, (enum tandem_binary)outer->kind, inner->x,
                          inner_stays ? inner->limit : outer->limit);
}

int tnd_pass_clamp(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    if (node->op != TND_NET_BINARY) {
        return TANDEM_NET_NONE;
    }
    const struct bound outer = read_bound(to, node->params.kind, in);
    if (outer.kind < 0 || to->values[in[0]].type == TANDEM_DTYPE_BOOL) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_node *made = tnd_match(to, outer.x, TND_NET_UNARY, -1);
    if (made != NULL && outer.kind == TANDEM_BINARY_MAX && outer.number == 0 &&
        !signbit(outer.number) && tnd_is_float(to->values[in[0]].type) &&
        (made->params.kind == TANDEM_UNARY_ABS || made->params.kind == TANDEM_UNARY_EXP)) {
        return outer.x;
    }
    const struct bound inner = bound_of(to, outer.x);
    if (inner.kind < 0) {
        return TANDEM_NET_NONE;
    }
    if (inner.kind == outer.kind) {
        return merge(to, &inner, &outer);
    }
    /* max(min(max(x, a), b), c): the lower bounds meet */
    const struct bound first = bound_of(to, inner.x);
    const bool is_lower = outer.kind == TANDEM_BINARY_MAX;
    if (first.kind != outer.kind || !tnd_rewrite_is_private(rewrite, outer.x) ||
        !tnd_rewrite_is_private(rewrite, inner.x) ||
        !(is_lower ? is_above(to->values[in[0]].type, &inner, &outer)
                   : is_above(to->values[in[0]].type, &outer, &inner))) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_binary(to, (enum tandem_binary)inner.kind, merge(to, &first, &outer),
                          inner.limit);
}
