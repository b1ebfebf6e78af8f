/* SPDX-License-Identifier: MIT
 * Operations along the rows of matrices that pass "recognise" finds: softmax, norms, attention; and
 * recurrent layers. */
#include "graph/net.h"

static bool is_matrices(const struct tnd_net *net, int value)
{
    return value != TANDEM_NET_NONE && net->status == TANDEM_OK &&
           tnd_net_value(net, value)->shape.n == 3 &&
           tnd_net_is_row_type(tnd_net_value(net, value)->type);
}

static int fail(struct tnd_net *net)
{
    return net->status != TANDEM_OK
               ? TANDEM_NET_NONE
               : tnd_net_fail(net, TANDEM_E_SHAPE, "operands of rows whose shapes do not fit");
}

static int along_rows(struct tnd_net *net, enum tnd_net_op op, const struct tnd_net_params *params,
                      int value)
{
    if (!is_matrices(net, value)) {
        return fail(net);
    }
    const struct tnd_dims shape = tnd_net_value(net, value)->shape;
    return tnd_net_add(net, op, params, &value, 1, tnd_net_value(net, value)->type, &shape);
}

int tnd_net_row_softmax(struct tnd_net *net, int value)
{
    const struct tnd_net_params params = {.axis = 2};
    return along_rows(net, TND_NET_SOFTMAX, &params, value);
}

int tnd_net_row_norm(struct tnd_net *net, enum tandem_norm kind, int value, double epsilon)
{
    const struct tnd_net_params params = {.kind = (int)kind, .axis = 2, .number = epsilon};
    return along_rows(net, TND_NET_NORM, &params, value);
}

/* Whether a value has this shape, and the type of `like`. */
static bool has_shape(const struct tnd_net *net, int value, int like, int64_t a, int64_t b,
                      int64_t c)
{
    return is_matrices(net, value) &&
           tnd_net_value(net, value)->type == tnd_net_value(net, like)->type &&
           tnd_dims_is_equal(&tnd_net_value(net, value)->shape, &TND_DIMS(a, b, c));
}

int tnd_net_row_attention(struct tnd_net *net, int q, int k, int v, int mask, double scale)
{
    const int inputs[] = {q, k, v, mask};
    const struct tnd_net_params params = {.number = scale};
    if (!is_matrices(net, q) || !is_matrices(net, v)) {
        return fail(net);
    }
    const struct tnd_dims of_q = tnd_net_value(net, q)->shape;
    const struct tnd_dims of_v = tnd_net_value(net, v)->shape;
    const struct tnd_dims shape = {3, {of_q.dims[1], of_q.dims[0], of_v.dims[2]}};
    if (!has_shape(net, k, q, of_q.dims[0], of_v.dims[1], of_q.dims[2]) ||
        !has_shape(net, v, q, of_q.dims[0], of_v.dims[1], of_v.dims[2]) ||
        (mask != TANDEM_NET_NONE && !has_shape(net, mask, q, 1, of_q.dims[1], of_v.dims[1]))) {
        return fail(net);
    }
    return tnd_net_add(net, TND_NET_ATTENTION, &params, inputs, mask == TANDEM_NET_NONE ? 3 : 4,
                       tnd_net_value(net, q)->type, &shape);
}

int tnd_net_recurrent(struct tnd_net *net, const struct tnd_recurrent *layer, int x, int r,
                      int extra, int state, int lengths)
{
    const int inputs[] = {x, r, extra, state, lengths};
    const int n = lengths == TANDEM_NET_NONE ? 4 : 5;
    const struct tnd_net_params params = {.recurrent = *layer};
    if (!is_matrices(net, x) || r == TANDEM_NET_NONE || tnd_net_value(net, r)->shape.n != 3 ||
        extra == TANDEM_NET_NONE || state == TANDEM_NET_NONE) {
        return fail(net);
    }
    const enum tandem_dtype type = tnd_net_value(net, x)->type;
    const struct tnd_dims of_x = tnd_net_value(net, x)->shape;
    const struct tnd_dims of_extra = tnd_net_value(net, extra)->shape;
    const struct tnd_net_value *weights = tnd_net_value(net, r);
    const int64_t d = layer->directions;
    const int64_t hidden = tnd_net_value(net, r)->shape.dims[2];
    const int gates = tnd_cell_gates(layer->cell);
    const int states = tnd_cell_states(layer->cell);
    const struct tnd_dims initial = {4, {states, d, of_x.dims[1], hidden}};
    const struct tnd_dims shape = {4, {of_x.dims[0] + states, d, of_x.dims[1], hidden}};
    const struct tnd_dims texts = {1, {of_x.dims[1]}};
    const struct tnd_dims rows = {3, {d, gates * hidden, hidden}};
    const int64_t extras = of_extra.n == 2 ? tnd_recurrent_extra(layer, &of_extra, hidden) : -1;
    if (hidden < 1 || (layer->is_8_bit && layer->cell != TND_CELL_LSTM) ||
        of_x.dims[2] / gates / d != hidden || of_x.dims[2] % (gates * d) != 0 ||
        weights->type != (layer->is_8_bit ? TANDEM_DTYPE_I32 : type) ||
        !tnd_dims_is_equal(&weights->shape, &rows) || of_extra.dims[0] != d ||
        tnd_net_value(net, extra)->type != type ||
        (extras != 0 && extras != (layer->cell == TND_CELL_LSTM ? 3 : 1) * hidden) ||
        tnd_net_value(net, state)->type != type ||
        !tnd_dims_is_equal(&tnd_net_value(net, state)->shape, &initial) ||
        (n == 5 && (tnd_net_value(net, lengths)->type != TANDEM_DTYPE_I64 ||
                    !tnd_dims_is_equal(&tnd_net_value(net, lengths)->shape, &texts)))) {
        return fail(net);
    }
    return tnd_net_add(net, TND_NET_RECURRENT, &params, inputs, n, type, &shape);
}
