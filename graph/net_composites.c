/* SPDX-License-Identifier: MIT
 * Softmax, norms and attention, composed of other operations, so that passes, fused programs and
 * the table's products apply to them. */
#include "graph/net_formula.h"

int tnd_net_softmax(struct tnd_net *net, int value, int axis)
{
    const unsigned axes = 1U << axis;
    const int top = tnd_net_reduce(net, TANDEM_REDUCE_MAX, value, axes);
    const int e = tnd_net_formula(net, "x, top: exp(x - top)", value, top);
    return tnd_net_binary(net, TANDEM_BINARY_DIV, e,
                          tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, axes));
}

static int mean(struct tnd_net *net, int value, unsigned axes)
{
    double n = 1;
    for (int i = 0; value != TANDEM_NET_NONE && i < tnd_net_value(net, value)->shape.n; i++) {
        n *= axes >> i & 1 ? (double)tnd_net_value(net, value)->shape.dims[i] : 1.0;
    }
    return tnd_net_formula(net, "sum, n: sum / n",
                           tnd_net_reduce(net, TANDEM_REDUCE_SUM, value, axes), n);
}

int tnd_net_norm(struct tnd_net *net, enum tandem_norm kind, int value, unsigned axes,
                 double epsilon)
{
    const int x = kind == TANDEM_NORM_LAYER
                      ? tnd_net_binary(net, TANDEM_BINARY_SUB, value, mean(net, value, axes))
                      : value;
    const int squares = mean(net, tnd_net_binary(net, TANDEM_BINARY_MUL, x, x), axes);
    return tnd_net_formula(net, "x, squares, epsilon: x / sqrt(squares + epsilon)", x, squares,
                           epsilon);
}

/* Checks shapes that broadcasting would accept though they do not fit. */
static bool is_cube(const struct tnd_net *net, int value, int64_t a, int64_t b, int64_t c)
{
    return tnd_dims_is_equal(&tnd_net_value(net, value)->shape, &TND_DIMS(a, b, c));
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
    const int products = tnd_net_matmul(net, q, tnd_net_permute(net, k, turned));
    const int scores =
        tnd_net_formula(net, "qk, scale, mask?: qk * scale + mask", products, scale, mask);
    return tnd_net_matmul(net, tnd_net_softmax(net, scores, 2), v);
}
