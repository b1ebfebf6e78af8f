/* SPDX-License-Identifier: MIT
 * Softmax, norms and attention: no operations of their own, but composed of others, so that passes,
 * fused programs and the table's products serve them. */
#include "graph/net.h"

static int with_number(struct tnd_net *net, enum tandem_binary kind, int value, double number)
{
    return value == TANDEM_NET_NONE
               ? value
               : tnd_net_binary(net, kind, value,
                                tnd_net_scalar(net, tnd_net_value(net, value)->type, number));
}

int tnd_net_softmax(struct tnd_net *net, int value, int axis)
{
    const unsigned axes = 1U << axis;
    const int top = tnd_net_reduce(net, TANDEM_REDUCE_MAX, value, axes);
    const int e =
        tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_binary(net, TANDEM_BINARY_SUB, value, top));
    return tnd_net_binary(net, TANDEM_BINARY_DIV, e,
                          tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, axes));
}

static int mean(struct tnd_net *net, int value, unsigned axes)
{
    double n = 1;
    for (int i = 0; value != TANDEM_NET_NONE && i < tnd_net_value(net, value)->shape.n; i++) {
        n *= axes >> i & 1 ? (double)tnd_net_value(net, value)->shape.dims[i] : 1.0;
    }
    return with_number(net, TANDEM_BINARY_DIV, tnd_net_reduce(net, TANDEM_REDUCE_SUM, value, axes),
                       n);
}

int tnd_net_norm(struct tnd_net *net, enum tandem_norm kind, int value, unsigned axes,
                 double epsilon)
{
    const int x = kind == TANDEM_NORM_LAYER
                      ? tnd_net_binary(net, TANDEM_BINARY_SUB, value, mean(net, value, axes))
                      : value;
    const int squares = mean(net, tnd_net_binary(net, TANDEM_BINARY_MUL, x, x), axes);
    const int sum = with_number(net, TANDEM_BINARY_ADD, squares, epsilon);
    return tnd_net_binary(net, TANDEM_BINARY_DIV, x, tnd_net_unary(net, TANDEM_UNARY_SQRT, sum));
}

/* Broadcasting would take operands that do not fit each other. */
static bool is_cube(const struct tnd_net *net, int value, int64_t a, int64_t b, int64_t c)
{
    const struct tnd_dims want = {3, {a, b, c}};
    return tnd_dims_is_equal(&tnd_net_value(net, value)->shape, &want);
}

int tnd_net_attention(struct tnd_net *net, int q, int k, int v, int mask, double scale)
{
    static const int turned[] = {0, 2, 1};
    if (q == TANDEM_NET_NONE || k == TANDEM_NET_NONE || v == TANDEM_NET_NONE ||
        net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims sq = tnd_net_value(net, q)->shape;
    const struct tnd_dims sv = tnd_net_value(net, v)->shape;
    if (sq.n != 3 || sv.n != 3 || !is_cube(net, k, sq.dims[0], sv.dims[1], sq.dims[2]) ||
        !is_cube(net, v, sq.dims[0], sv.dims[1], sv.dims[2]) ||
        (mask != TANDEM_NET_NONE && !is_cube(net, mask, sq.dims[0], sq.dims[1], sv.dims[1]))) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "operands of attention whose shapes do not fit");
    }
    int scores = with_number(net, TANDEM_BINARY_MUL,
                             tnd_net_matmul(net, q, tnd_net_permute(net, k, turned)), scale);
    scores =
        mask == TANDEM_NET_NONE ? scores : tnd_net_binary(net, TANDEM_BINARY_ADD, scores, mask);
    return tnd_net_matmul(net, tnd_net_softmax(net, scores, 2), v);
}
