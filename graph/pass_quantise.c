/* SPDX-License-Identifier: MIT
 * Pass "quantise": products of float32 whose operands stand for 8-bit integers,
 * (integer - zero point) * scale, are summed as integers, and the sums scaled:
 *
 *   sum of (x - zx) sx (w - zw) sw = (sum of (x - zx)(w - zw)) * (sx * sw)
 *
 * where sx is one number, and sw one, or of constant weights one a filter (column). Constant
 * weights may be copied, permuted and padded in between (pass_moved.c). Sums of 32 bits are exact,
 * so that what is left are the roundings of the scale and of one product: less than those of the
 * sum in float32. It runs before constants are computed, which would turn the weights into
 * floats. */
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

/* A float32 value that represents 8-bit integers, a whole base. */
struct quantised {
    int integers; /* a base */
    int zero;     /* float32, of the shape of the integers; TANDEM_NET_NONE: 0 */
    int scale;    /* likewise */
};

/* Whether a zero point is a constant 0, perhaps cast. */
static bool is_zero(const struct tnd_net *net, int value)
{
    const struct tnd_net_node *cast =
        tnd_net_maker(net, net->values[value].base, TND_NET_CAST, TND_CAST_ROUNDS);
    const int base = net->values[cast != NULL ? cast->inputs[0] : value].base;
    const struct tnd_array *known = tnd_match_constant(net, base) ? net->values[base].known : NULL;
    known = known != NULL && tnd_array_fill(known) ? known : NULL;
    for (int64_t i = 0; known != NULL && i < known->n; i++) {
        if (tnd_array_number(known, i) != 0) {
            return false;
        }
    }
    return known != NULL;
}

static bool match_quantised(const struct tnd_net *net, int value, struct quantised *out)
{
    const int base = net->values[value].base;
    const struct tnd_net_node *scaled = tnd_net_maker(net, base, TND_NET_BINARY, TANDEM_BINARY_MUL);
    if (scaled == NULL) {
        return false;
    }
    const struct tnd_net_node *less =
        tnd_net_maker(net, scaled->inputs[0], TND_NET_BINARY, TANDEM_BINARY_SUB);
    const int wide = less != NULL ? less->inputs[0] : scaled->inputs[0];
    const struct tnd_net_node *cast = tnd_net_maker(net, wide, TND_NET_CAST, TND_CAST_ROUNDS);
    if (cast == NULL || !tnd_is_byte(net->values[cast->inputs[0]].type) ||
        net->values[cast->inputs[0]].base != cast->inputs[0]) {
        return false;
    }
    *out = (struct quantised){.integers = cast->inputs[0],
                              .zero = less != NULL ? less->inputs[1] : TANDEM_NET_NONE,
                              .scale = scaled->inputs[1]};
    if (less != NULL && is_zero(net, less->inputs[1])) {
        out->zero = TANDEM_NET_NONE;
    }
    return true;
}

/* Whether a view holds one value, or one for each index of `axis` (-1: one). */
static bool is_along(const struct tnd_net *net, int value, int axis)
{
    const struct tnd_net_value *v = &net->values[value];
    for (int i = 0; i < v->shape.n; i++) {
        if (i != axis && v->shape.dims[i] > 1 && v->strides[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Integers minus their zero point, as int32. */
static int centred(struct tnd_net *net, const struct quantised *q)
{
    const int wide = tnd_net_cast(net, q->integers, TANDEM_DTYPE_I32);
    if (q->zero == TANDEM_NET_NONE) {
        return wide;
    }
    const int base = tnd_net_cast(net, net->values[q->zero].base, TANDEM_DTYPE_I32);
    return tnd_net_binary(net, TANDEM_BINARY_SUB, wide, tnd_net_view_like(net, base, q->zero));
}

/* As centred(), for integers moved from `from` as `value` is. */
static int moved_centred(struct tnd_net *net, const struct quantised *q, int value, int from)
{
    static const struct tnd_net_params none;
    const struct tnd_dims shape = net->values[from].shape;
    const int wide =
        tnd_net_cast(net, tnd_moved_like(net, value, from, q->integers), TANDEM_DTYPE_I32);
    if (q->zero == TANDEM_NET_NONE) {
        return wide;
    }
    const int base = tnd_net_cast(net, net->values[q->zero].base, TANDEM_DTYPE_I32);
    const int zero = tnd_net_view_like(net, base, q->zero);
    const int all = zero == TANDEM_NET_NONE
                        ? zero
                        : tnd_net_add(net, TND_NET_COPY, &none, &zero, 1, TANDEM_DTYPE_I32, &shape);
    return tnd_net_binary(net, TANDEM_BINARY_SUB, wide, tnd_moved_like(net, value, from, all));
}

/* The values of a view along an axis, as a list of `n` dimensions with `behind` dimensions after
 * it. */
static int list_along(struct tnd_net *net, int value, int axis, int behind)
{
    struct tnd_dims list = {.n = behind + 1};
    for (int i = 0; i < net->values[value].shape.n; i++) {
        if (i != axis) {
            value = tnd_net_slice(net, value, i, 0, 1, 1);
        }
    }
    for (int i = 0; i < list.n; i++) {
        list.dims[i] = i == 0 ? net->values[value].shape.dims[axis] : 1;
    }
    return tnd_net_reshape(net, value, &list);
}

static int as_scalar(struct tnd_net *net, int value)
{
    const struct tnd_dims scalar = {.n = 0};
    for (int i = 0; i < net->values[value].shape.n; i++) {
        value = tnd_net_slice(net, value, i, 0, 1, 1);
    }
    return tnd_net_reshape(net, value, &scalar);
}

/* The axis of weights {K, N} or {N, K} that is N in a product {B, K, N}; -1: not a whole matrix, or
 * not the same for all B. */
static int column_axis(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *view = &net->values[value];
    const struct tnd_dims *base = &net->values[view->base].shape;
    if (base->n != 2 || view->offset != 0 || view->shape.n != 3 ||
        (view->shape.dims[0] > 1 && view->strides[0] != 0)) {
        return -1;
    }
    const int64_t rows = view->shape.dims[1];
    const int64_t columns = view->shape.dims[2];
    if (base->dims[0] == rows && base->dims[1] == columns &&
        (columns == 1 || view->strides[2] == 1) && (rows == 1 || view->strides[1] == columns)) {
        return 1;
    }
    return base->dims[1] == rows && base->dims[0] == columns &&
                   (rows == 1 || view->strides[1] == 1) &&
                   (columns == 1 || view->strides[2] == rows)
               ? 0
               : -1;
}

/* The same view of another base of that shape. */
static int like(struct tnd_net *net, int base, int value)
{
    return net->values[value].base == value ? base : tnd_net_view_like(net, base, value);
}

/* Whether no sum of K products of two bytes leaves int32. */
static bool has_short_sums(const struct tnd_net *net, const struct tnd_net_node *node, int w)
{
    const struct tnd_dims *shape = &net->values[w].shape;
    const int64_t k =
        node->op == TND_NET_CONTRACT ? shape->dims[1] : tnd_dims_values(shape) / shape->dims[0];
    return k <= INT32_MAX / (255 * 255);
}

struct quantised_pair {
    struct quantised x, w;
    int axis;                 /* of filters of constant weights; -1: w has one scale */
    int from;                 /* base from which weights are moved; TANDEM_NET_NONE: not moved */
    struct tnd_array *scales; /* of moved weights, by filter; the caller's */
};

/* The offset of element `i` of a view in row-major order. */
static int64_t offset_at(const struct tnd_net_value *view, int64_t i)
{
    int64_t at = view->offset;
    for (int d = view->shape.n - 1; d >= 0; d--) {
        at += i % view->shape.dims[d] * view->strides[d];
        i /= view->shape.dims[d];
    }
    return at;
}

/* The scales of weights that are moved from `from`, {filters, ..}, if each filter has one. NULL: it
 * has not, or there is no memory. */
static struct tnd_array *scales_by_filter(const struct tnd_net *net, int value, int from, int scale)
{
    const struct tnd_dims *shape = &net->values[value].shape;
    const struct tnd_net_value *v = &net->values[scale];
    const int64_t n = tnd_dims_values(shape) / shape->dims[0]; /* of a filter */
    const struct tnd_array *known = net->values[v->base].known;
    struct tnd_dims list = {.n = shape->n - 1, .dims = {shape->dims[0], 1, 1, 1}};
    struct tnd_array *places = NULL;
    struct tnd_array *out = NULL;
    if (tnd_match_constant(net, scale) && tnd_array_fill(known)) {
        places = tnd_moved_places(net, value, from);
        out = places == NULL ? NULL : tnd_array_new(TANDEM_DTYPE_F32, &list);
    }
    for (int64_t f = 0; out != NULL && f < out->n; f++) {
        const int32_t *places_of_filter = (const int32_t *)places->data + f * n;
        int64_t at = TANDEM_NET_NONE; /* of the scale; of a filter of padding alone: none */
        bool is_one = true;
        for (int64_t i = 0; i < n && is_one; i++) {
            const int64_t other =
                places_of_filter[i] > 0 ? offset_at(v, places_of_filter[i] - 1) : at;
            is_one = at == TANDEM_NET_NONE || at == other;
            at = other;
        }
        ((float *)out->data)[f] = at < 0 ? 0 : (float)tnd_array_number(known, at);
        if (!is_one) {
            tnd_array_free(out);
            out = NULL;
        }
    }
    tnd_array_free(places);
    return out;
}

/* Whether both operands are bytes whose products can be summed as such. */
static bool match_pair(const struct tnd_net *net, const struct tnd_net_node *node, const int *in,
                       struct quantised_pair *out)
{
    const struct quantised *x = &out->x;
    const struct quantised *w = &out->w;
    if (node->op != TND_NET_CONV && node->op != TND_NET_CONTRACT) {
        return false;
    }
    const int from = node->op == TND_NET_CONV ? tnd_moved_from(net, in[1]) : in[1];
    *out = (struct quantised_pair){.axis = -1, .from = TANDEM_NET_NONE};
    if (!match_quantised(net, in[0], &out->x) || !match_quantised(net, from, &out->w) ||
        !is_along(net, x->scale, -1) ||
        (x->zero != TANDEM_NET_NONE && !is_along(net, x->zero, -1)) ||
        tnd_dims_values(&net->values[in[1]].shape) == 0 || !has_short_sums(net, node, in[1])) {
        return false;
    }
    if (!tnd_match_constant(net, w->integers)) {
        return node->op == TND_NET_CONTRACT && !tnd_match_constant(net, x->integers) &&
               is_along(net, w->scale, -1) &&
               (w->zero == TANDEM_NET_NONE || is_along(net, w->zero, -1));
    }
    out->axis = node->op == TND_NET_CONTRACT ? column_axis(net, in[1]) : 0;
    if (from != in[1]) {
        out->from = from;
        out->scales = scales_by_filter(net, in[1], from, w->scale);
        return out->scales != NULL;
    }
    return out->axis >= 0 && is_along(net, w->scale, out->axis) &&
           (w->zero == TANDEM_NET_NONE || is_along(net, w->zero, out->axis));
}

int tnd_pass_quantise(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    struct quantised_pair pair;
    if (!match_pair(to, node, in, &pair)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims shape = rewrite->from->values[node->output].shape;
    const int scales = pair.scales != NULL ? tnd_net_constant(to, pair.scales) : TANDEM_NET_NONE;
    const int both[] = {like(to, centred(to, &pair.x), in[0]),
                        pair.scales != NULL ? moved_centred(to, &pair.w, in[1], pair.from)
                                            : like(to, centred(to, &pair.w), in[1])};
    if (both[0] == TANDEM_NET_NONE || both[1] == TANDEM_NET_NONE) {
        return TANDEM_NET_NONE;
    }
    const int behind = node->op == TND_NET_CONV ? node->params.window.n : 0;
    const int sums = tnd_net_add(to, node->op, &node->params, both, 2, TANDEM_DTYPE_I32, &shape);
    const int scale =
        tnd_net_binary(to, TANDEM_BINARY_MUL, as_scalar(to, pair.x.scale),
                       pair.scales != NULL ? scales
                       : pair.axis < 0     ? as_scalar(to, pair.w.scale)
                                           : list_along(to, pair.w.scale, pair.axis, behind));
    tnd_net_name(to, sums, rewrite->from->values[node->output].name);
    return tnd_net_binary(to, TANDEM_BINARY_MUL, tnd_net_cast(to, sums, TANDEM_DTYPE_F32), scale);
}
