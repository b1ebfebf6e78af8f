/* SPDX-License-Identifier: MIT
 * Verifies the invariants of a net, whoever built it. */
#include "graph/pass.h"

/* Operands of each operation: minimum and maximum (-1: any number), and what the result shares with
 * the first: its type (T), its shape (S). */
static const struct {
    int least, most;
    bool has_type, has_shape;
} rules[] = {
    [TND_NET_COPY] = {1, 1, true, true},
    [TND_NET_CAST] = {1, 1, false, true},
    [TND_NET_UNARY] = {1, 1, false, true},
    [TND_NET_BINARY] = {2, 2, false, true},
    [TND_NET_SELECT] = {3, 3, false, true},
    [TND_NET_REDUCE] = {1, 1, true, false},
    [TND_NET_ARG_REDUCE] = {1, 1, false, false},
    [TND_NET_CONTRACT] = {2, 2, true, false},
    [TND_NET_CONCAT] = {1, -1, true, false},
    [TND_NET_PAD] = {1, 2, true, false},
    [TND_NET_GATHER] = {2, 2, true, false},
    [TND_NET_GATHER_ELEMENTS] = {2, 2, true, false},
    [TND_NET_SCATTER_ELEMENTS] = {3, 3, true, true},
    [TND_NET_SCAN] = {1, 1, true, true},
    [TND_NET_ARG_SORT] = {1, 1, false, true},
    [TND_NET_CONV] = {2, 2, true, false},
    [TND_NET_POOL] = {1, 1, false, false},
    [TND_NET_SOFTMAX] = {1, 1, true, true},
    [TND_NET_NORM] = {1, 1, true, true},
    [TND_NET_ATTENTION] = {3, 4, true, false},
    [TND_NET_RECURRENT] = {4, 5, true, false},
};

static enum tandem_status wrong(struct tandem_error *error, int at, const char *what)
{
    return tnd_error_set(error, TANDEM_E_ARGUMENT, what, at, 0, "a net that is not valid: %s (%d)",
                         what, at);
}

/* Whether a view stays within its base. */
static bool is_inside(const struct tnd_net *net, const struct tnd_net_value *view)
{
    const int64_t n = tnd_dims_values(&net->values[view->base].shape);
    int64_t low = view->offset;
    int64_t high = view->offset;
    if (tnd_dims_values(&view->shape) == 0) {
        return true;
    }
    for (int i = 0; i < view->shape.n; i++) {
        const int64_t reach = (view->shape.dims[i] - 1) * view->strides[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return low >= 0 && high < n;
}

static enum tandem_status check_values(const struct tnd_net *net, struct tandem_error *error)
{
    for (int i = 0; i < net->n_values; i++) {
        const struct tnd_net_value *v = &net->values[i];
        if (tnd_dims_values(&v->shape) < 0 || v->base < 0 || v->base > i ||
            net->values[v->base].base != v->base || net->values[v->base].type != v->type) {
            return wrong(error, i, "a value with no base");
        }
        if (!is_inside(net, v)) {
            return wrong(error, i, "a view out of its value");
        }
        if (v->base != i ? v->node >= 0 || v->known != NULL || v->input >= 0
                         : v->node < 0 && v->known == NULL && v->input < 0) {
            return wrong(error, i, "a value that nothing makes, or a view that something makes");
        }
        if (v->known != NULL &&
            (v->known->type != v->type || !tnd_dims_is_equal(&v->known->shape, &v->shape))) {
            return wrong(error, i, "known values of another type or shape");
        }
    }
    return TANDEM_OK;
}

/* Whether operands have one shape, and from operand `first` on one type. */
static bool are_alike(const struct tnd_net *net, const struct tnd_net_node *node, int first)
{
    for (int k = 1; k < node->n_inputs; k++) {
        const struct tnd_net_value *v = &net->values[node->inputs[k]];
        if (!tnd_dims_is_equal(&v->shape, &net->values[node->inputs[0]].shape) ||
            (k > first && v->type != net->values[node->inputs[first]].type)) {
            return false;
        }
    }
    return true;
}

static bool is_product(const struct tnd_dims *a, const struct tnd_dims *b,
                       const struct tnd_dims *out)
{
    return a->n == 3 && b->n == 3 && out->n == 3 && a->dims[0] == out->dims[0] &&
           b->dims[0] == out->dims[0] && a->dims[1] == out->dims[1] && a->dims[2] == b->dims[1] &&
           b->dims[2] == out->dims[2];
}

static bool is_attention(const struct tnd_net *net, const struct tnd_net_node *node)
{
    const struct tnd_dims *q = &net->values[node->inputs[0]].shape;
    const struct tnd_dims *k = &net->values[node->inputs[1]].shape;
    const struct tnd_dims *v = &net->values[node->inputs[2]].shape;
    const struct tnd_dims *out = &net->values[node->output].shape;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct tnd_net_value *in = &net->values[node->inputs[i]];
        if (in->type != net->values[node->output].type || in->shape.n != 3) {
            return false;
        }
    }
    const struct tnd_dims mask = {3, {1, q->dims[1], k->dims[1]}};
    return q->dims[0] == k->dims[0] && q->dims[0] == v->dims[0] && q->dims[2] == k->dims[2] &&
           k->dims[1] == v->dims[1] && out->n == 3 && out->dims[0] == q->dims[1] &&
           out->dims[1] == q->dims[0] && out->dims[2] == v->dims[2] &&
           (node->n_inputs < 4 || tnd_dims_is_equal(&net->values[node->inputs[3]].shape, &mask));
}

static bool fits(const struct tnd_net *net, const struct tnd_net_node *node)
{
    const struct tnd_net_value *out = &net->values[node->output];
    const struct tnd_net_value *first = &net->values[node->inputs[0]];
    const struct tnd_net_params *params = &node->params;
    if ((rules[node->op].has_type && first->type != out->type) ||
        (rules[node->op].has_shape && !tnd_dims_is_equal(&first->shape, &out->shape))) {
        return false;
    }
    switch (node->op) {
    case TND_NET_BINARY:
        return are_alike(net, node, 0) &&
               out->type == (params->kind >= TANDEM_BINARY_EQUAL ? TANDEM_DTYPE_BOOL : first->type);
    case TND_NET_SELECT:
        return are_alike(net, node, 1) && first->type == TANDEM_DTYPE_BOOL &&
               out->type == net->values[node->inputs[1]].type;
    case TND_NET_CONTRACT:
        return is_product(&first->shape, &net->values[node->inputs[1]].shape, &out->shape);
    case TND_NET_CONV:
        return first->shape.n == params->window.n + 2 && out->shape.n == first->shape.n &&
               net->values[node->inputs[1]].shape.dims[0] == out->shape.dims[1];
    case TND_NET_SOFTMAX:
    case TND_NET_NORM:
        return first->shape.n == 3 && tnd_net_is_row_type(first->type);
    case TND_NET_ATTENTION:
        return tnd_net_is_row_type(first->type) && is_attention(net, node);
    case TND_NET_REDUCE:
        for (int i = 0; i < out->shape.n; i++) {
            if (out->shape.dims[i] != (params->axes >> i & 1 ? 1 : first->shape.dims[i])) {
                return false;
            }
        }
        return out->shape.n == first->shape.n;
    default:
        return true;
    }
}

enum tandem_status tnd_net_check(const struct tnd_net *net, struct tandem_error *error)
{
    TND_TRY(check_values(net, error));
    for (int i = 0; i < net->n_nodes; i++) {
        const struct tnd_net_node *node = &net->nodes[i];
        if ((size_t)node->op >= sizeof(rules) / sizeof(rules[0]) ||
            node->n_inputs < rules[node->op].least ||
            (rules[node->op].most >= 0 && node->n_inputs > rules[node->op].most)) {
            return wrong(error, i, "an operation with too few or too many operands");
        }
        if (node->output < 0 || node->output >= net->n_values ||
            net->values[node->output].node != i) {
            return wrong(error, i, "an operation whose result is not its own");
        }
        for (int k = 0; k < node->n_inputs; k++) {
            const int value = node->inputs[k];
            if (value < 0 || value >= net->n_values ||
                net->values[net->values[value].base].node >= i) {
                return wrong(error, i, "an operand that does not come before");
            }
        }
        if (!fits(net, node)) {
            return wrong(error, i, "types or shapes that do not fit the operation");
        }
    }
    for (int i = 0; i < net->n_outputs; i++) {
        if (net->values[net->outputs[i]].base != net->outputs[i]) {
            return wrong(error, i, "an output that is a view");
        }
    }
    return TANDEM_OK;
}
