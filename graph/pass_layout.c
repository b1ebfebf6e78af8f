/* SPDX-License-Identifier: MIT
 * Pass "layout": what goes value by value over the result of a convolution, or only moves it, is
 * computed in the convolution's order of dimensions where a program turned that first.
 *
 * Exporters of programs that keep channels last write convolution, transpose to channels last, bias
 * and activation, transpose back. With f value by value and a permutation P, f(P(x), y) is
 * P(f(x, P^-1(y))): the same values by the same operations. Turning is a view, and the two turns
 * that meet behind f cancel, so that f can be computed on the convolution's tiles. */
#include "graph/pass_internal.h"

enum {
    MOST_DEPTH = 32, /* operations between a value and the convolution */
    MOST_OPERANDS = 32
};

/* The dimension in the convolution's order that is dimension `d` with channels last. */
static int axis_of(int n, int d)
{
    return d == 0 ? 0 : d == n - 1 ? 1 : d + 1;
}

/* Whether a value is its whole base with channels, dimension 1, moved last. */
static bool is_turned(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *view = tnd_net_value(net, value);
    const struct tnd_net_value *base = tnd_net_value(net, view->base);
    const int n = view->shape.n;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    if (view->base == value || view->offset != 0 || n < 3 || base->shape.n != n) {
        return false;
    }
    tnd_dims_strides(&base->shape, strides);
    for (int d = 0; d < n; d++) {
        const int axis = axis_of(n, d);
        if (view->shape.dims[d] != base->shape.dims[axis] ||
            (view->shape.dims[d] > 1 && view->strides[d] != strides[axis])) {
            return false;
        }
    }
    return true;
}

static bool keeps_places(enum tnd_net_op op)
{
    return op == TND_NET_CAST || op == TND_NET_UNARY || op == TND_NET_BINARY ||
           op == TND_NET_SELECT || op == TND_NET_PAD || op == TND_NET_CONCAT;
}

/* Whether a value comes from a convolution or pool in its order: directly, or through operations
 * that read it unchanged. */
static bool is_of_convolution(const struct tnd_net *net, int value, int depth)
{
    const int at = tnd_net_value(net, value)->node;
    if (at < 0 || depth == MOST_DEPTH) {
        return false;
    }
    const struct tnd_net_node *node = &net->nodes[at];
    if (node->op == TND_NET_CONV || node->op == TND_NET_POOL) {
        return true;
    }
    return keeps_places(node->op) && tnd_net_value(net, node->inputs[0])->base == node->inputs[0] &&
           is_of_convolution(net, node->inputs[0], depth + 1);
}

static bool is_worth_it(const struct tnd_net *net, const struct tnd_net_node *node, const int *in)
{
    const bool reads_numbers = node->op == TND_NET_PAD; /* (its second operand) */
    bool is_one = false;
    for (int i = 0; i < (reads_numbers ? 1 : node->n_inputs); i++) {
        is_one = is_one || (is_turned(net, in[i]) &&
                            is_of_convolution(net, tnd_net_value(net, in[i])->base, 0));
    }
    return is_one;
}

/* An operand permuted to the convolution's order. */
static int turned_back(struct tnd_net *net, int value, const int *back)
{
    return is_turned(net, value) ? tnd_net_value(net, value)->base
                                 : tnd_net_permute(net, value, back);
}

int tnd_pass_layout(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const struct tnd_net_value *old = tnd_net_value(rewrite->from, node->output);
    const int n = old->shape.n;
    int forth[TANDEM_NET_MAX_DIMS];
    int back[TANDEM_NET_MAX_DIMS];
    int operands[MOST_OPERANDS];
    if (!keeps_places(node->op) || node->n_inputs > MOST_OPERANDS || !is_worth_it(to, node, in)) {
        return TANDEM_NET_NONE;
    }
    struct tnd_net_params params = node->params;
    struct tnd_dims shape = {.n = n};
    for (int d = 0; d < n; d++) {
        const int axis = axis_of(n, d);
        forth[d] = axis;
        back[axis] = d;
        shape.dims[axis] = old->shape.dims[d];
        if (node->op == TND_NET_PAD) {
            params.begin[axis] = node->params.begin[d];
        } else if (node->op == TND_NET_CONCAT && node->params.axis == d) {
            params.axis = axis;
        }
    }
    /* (before a node is made: one in vain would go in pass "dead", which begins another round) */
    struct tnd_net_value turned = {.shape = old->shape};
    int64_t strides[TANDEM_NET_MAX_DIMS];
    tnd_dims_strides(&shape, strides);
    for (int d = 0; d < n; d++) {
        turned.strides[d] = strides[forth[d]];
    }
    if (!tnd_rewrite_can_replace(rewrite, node->output, &turned)) {
        return TANDEM_NET_NONE;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        operands[i] = node->op == TND_NET_PAD && i > 0 ? in[i] : turned_back(to, in[i], back);
    }
    const int made =
        tnd_net_add(to, node->op, &params, operands, node->n_inputs, old->type, &shape);
    return tnd_net_permute(to, made, forth);
}
