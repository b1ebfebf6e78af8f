/* SPDX-License-Identifier: MIT
 * Builders of a net's operations: shapes and types of results, broadcasting. */
#include <stdlib.h>
#include <string.h>

#include "graph/net.h"

static const struct tnd_net_params no_params;

/* Whether a builder may continue with these values. */
static bool may_build(const struct tnd_net *net, const int *values, int n)
{
    for (int i = 0; i < n; i++) {
        if (values[i] == TANDEM_NET_NONE) {
            return false;
        }
    }
    return net->status == TANDEM_OK;
}

static int add_like(struct tnd_net *net, enum tnd_net_op op, const struct tnd_net_params *params,
                    const int *inputs, int n, int like, enum tandem_dtype type)
{
    const struct tnd_dims shape = tnd_net_value(net, like)->shape;
    return tnd_net_add(net, op, params, inputs, n, type, &shape);
}

int tnd_net_copy(struct tnd_net *net, int value)
{
    return !may_build(net, &value, 1) ? TANDEM_NET_NONE
                                      : add_like(net, TND_NET_COPY, &no_params, &value, 1, value,
                                                 tnd_net_value(net, value)->type);
}

int tnd_net_cast(struct tnd_net *net, int value, enum tandem_dtype type)
{
    if (!may_build(net, &value, 1) || tnd_net_value(net, value)->type == type) {
        return net->status == TANDEM_OK ? value : TANDEM_NET_NONE;
    }
    return add_like(net, TND_NET_CAST, &no_params, &value, 1, value, type);
}

int tnd_net_unary(struct tnd_net *net, enum tandem_unary kind, int value)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const bool is_test = kind == TANDEM_UNARY_IS_NAN || kind == TANDEM_UNARY_IS_INF;
    const struct tnd_net_params params = {.kind = (int)kind};
    return add_like(net, TND_NET_UNARY, &params, &value, 1, value,
                    is_test ? TANDEM_DTYPE_BOOL : tnd_net_value(net, value)->type);
}

/* The shape to which both broadcast. */
static bool common_shape(const struct tnd_dims *a, const struct tnd_dims *b, struct tnd_dims *out)
{
    out->n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < out->n; i++) {
        const int ia = i - (out->n - a->n);
        const int ib = i - (out->n - b->n);
        const int64_t na = ia < 0 ? 1 : a->dims[ia];
        const int64_t nb = ib < 0 ? 1 : b->dims[ib];
        if (na != nb && na != 1 && nb != 1) {
            return false;
        }
        out->dims[i] = na == 1 ? nb : na;
    }
    return true;
}

/* Broadcasts `n` values to one shape. */
static bool broadcast(struct tnd_net *net, int *values, int n)
{
    struct tnd_dims shape = tnd_net_value(net, values[0])->shape;
    for (int i = 1; i < n; i++) {
        const struct tnd_dims *other = &tnd_net_value(net, values[i])->shape;
        struct tnd_dims both = {0};
        if (!common_shape(&shape, other, &both)) {
            char a[160];
            char b[160];
            (void)tnd_net_fail(net, TANDEM_E_SHAPE, "%s and %s cannot be broadcast to one shape",
                               tnd_dims_text(&shape, a), tnd_dims_text(other, b));
            return false;
        }
        shape = both;
    }
    for (int i = 0; i < n; i++) {
        values[i] = tnd_net_expand(net, values[i], &shape);
    }
    return net->status == TANDEM_OK;
}

static bool same_type(struct tnd_net *net, int a, int b)
{
    const enum tandem_dtype ta = tnd_net_value(net, a)->type;
    const enum tandem_dtype tb = tnd_net_value(net, b)->type;
    if (ta != tb) {
        (void)tnd_net_fail(net, TANDEM_E_TYPE, "operands of types %s and %s, expected one type",
                           tandem_dtype_name(ta), tandem_dtype_name(tb));
    }
    return ta == tb;
}

int tnd_net_binary(struct tnd_net *net, enum tandem_binary kind, int a, int b)
{
    int both[2] = {a, b};
    if (!may_build(net, both, 2) || !same_type(net, a, b) || !broadcast(net, both, 2)) {
        return TANDEM_NET_NONE;
    }
    if (kind >= TANDEM_BINARY_AND && kind <= TANDEM_BINARY_SHIFT_RIGHT &&
        tnd_dtype_kind(tnd_net_value(net, a)->type) == TND_KIND_FLOAT) {
        return tnd_net_fail(net, TANDEM_E_TYPE, "an operation on bits of %s values",
                            tandem_dtype_name(tnd_net_value(net, a)->type));
    }
    const struct tnd_net_params params = {.kind = (int)kind};
    return add_like(net, TND_NET_BINARY, &params, both, 2, both[0],
                    kind >= TANDEM_BINARY_EQUAL ? TANDEM_DTYPE_BOOL : tnd_net_value(net, a)->type);
}

int tnd_net_select(struct tnd_net *net, int condition, int a, int b)
{
    int all[3] = {condition, a, b};
    if (!may_build(net, all, 3) || !same_type(net, a, b) || !broadcast(net, all, 3)) {
        return TANDEM_NET_NONE;
    }
    if (tnd_net_value(net, condition)->type != TANDEM_DTYPE_BOOL) {
        return tnd_net_fail(net, TANDEM_E_TYPE, "a condition of type %s, expected bool",
                            tandem_dtype_name(tnd_net_value(net, condition)->type));
    }
    return add_like(net, TND_NET_SELECT, &no_params, all, 3, all[1], tnd_net_value(net, a)->type);
}

int tnd_net_reduce(struct tnd_net *net, enum tandem_reduce kind, int value, unsigned axes)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    const struct tnd_net_params params = {.kind = (int)kind, .axes = axes};
    struct tnd_dims shape = from->shape;
    for (int i = 0; i < shape.n; i++) {
        shape.dims[i] = axes >> i & 1 ? 1 : shape.dims[i];
    }
    return tnd_net_add(net, TND_NET_REDUCE, &params, &value, 1, from->type, &shape);
}

int tnd_net_arg_reduce(struct tnd_net *net, bool is_max, int value, int axis, bool picks_last)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.kind = is_max ? TANDEM_REDUCE_MAX : TANDEM_REDUCE_MIN,
                                          .axis = axis,
                                          .picks_last = picks_last};
    struct tnd_dims shape = tnd_net_value(net, value)->shape;
    if (shape.dims[axis] == 0) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "axis %d has no values to choose from", axis);
    }
    shape.dims[axis] = 1;
    return tnd_net_add(net, TND_NET_ARG_REDUCE, &params, &value, 1, TANDEM_DTYPE_I64, &shape);
}

/* ---- products ---- */

/* A value as {B, rows, columns}, its n leading dimensions broadcast to `batch`. */
static int as_batch(struct tnd_net *net, int value, const struct tnd_dims *batch)
{
    const struct tnd_dims from = tnd_net_value(net, value)->shape;
    struct tnd_dims wide = *batch;
    wide.dims[wide.n++] = from.dims[from.n - 2];
    wide.dims[wide.n++] = from.dims[from.n - 1];
    const struct tnd_dims flat = {
        3, {tnd_dims_values(batch), from.dims[from.n - 2], from.dims[from.n - 1]}};
    return tnd_net_reshape(net, tnd_net_expand(net, value, &wide), &flat);
}

/* A vector as a matrix of one row, or of one column. */
static int as_matrix(struct tnd_net *net, int value, bool is_row)
{
    const struct tnd_dims from = tnd_net_value(net, value)->shape;
    const struct tnd_dims to = {2, {is_row ? 1 : from.dims[0], is_row ? from.dims[0] : 1}};
    return from.n == 1 ? tnd_net_reshape(net, value, &to) : value;
}

int tnd_net_matmul(struct tnd_net *net, int a, int b)
{
    const int both[2] = {a, b};
    if (!may_build(net, both, 2) || !same_type(net, a, b)) {
        return TANDEM_NET_NONE;
    }
    const bool drops_row = tnd_net_value(net, a)->shape.n == 1;
    const bool drops_column = tnd_net_value(net, b)->shape.n == 1;
    const enum tandem_dtype type = tnd_net_value(net, a)->type;
    if (tnd_net_value(net, a)->shape.n == 0 || tnd_net_value(net, b)->shape.n == 0) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "a product with a scalar");
    }
    a = as_matrix(net, a, true);
    b = as_matrix(net, b, false);
    if (a == TANDEM_NET_NONE || b == TANDEM_NET_NONE) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims sa = tnd_net_value(net, a)->shape;
    const struct tnd_dims sb = tnd_net_value(net, b)->shape;
    struct tnd_dims batch_a = sa;
    struct tnd_dims batch_b = sb;
    struct tnd_dims batch = {0};
    batch_a.n -= 2;
    batch_b.n -= 2;
    char ta[160];
    char tb[160];
    if (sa.dims[sa.n - 1] != sb.dims[sb.n - 2] || !common_shape(&batch_a, &batch_b, &batch)) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "no product of %s and %s", tnd_dims_text(&sa, ta),
                            tnd_dims_text(&sb, tb));
    }
    const int inputs[2] = {as_batch(net, a, &batch), as_batch(net, b, &batch)};
    const struct tnd_dims flat = {3,
                                  {tnd_dims_values(&batch), sa.dims[sa.n - 2], sb.dims[sb.n - 1]}};
    const int product = tnd_net_add(net, TND_NET_CONTRACT, &no_params, inputs, 2, type, &flat);
    struct tnd_dims out = batch;
    if (!drops_row) {
        out.dims[out.n++] = flat.dims[1];
    }
    if (!drops_column) {
        out.dims[out.n++] = flat.dims[2];
    }
    return tnd_net_reshape(net, product, &out);
}

/* ---- moving values ---- */

int tnd_net_concat(struct tnd_net *net, const int *values, int n, int axis)
{
    if (!may_build(net, values, n)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.axis = axis};
    const enum tandem_dtype type = tnd_net_value(net, values[0])->type;
    struct tnd_dims shape = tnd_net_value(net, values[0])->shape;
    for (int i = 1; i < n; i++) {
        const struct tnd_dims *other = &tnd_net_value(net, values[i])->shape;
        struct tnd_dims wanted = shape;
        if (!same_type(net, values[0], values[i])) {
            return TANDEM_NET_NONE;
        }
        wanted.dims[axis] = other->n == shape.n ? other->dims[axis] : -1;
        if (!tnd_dims_is_equal(&wanted, other)) {
            char a[160];
            char b[160];
            return tnd_net_fail(net, TANDEM_E_SHAPE, "%s and %s cannot be joined along axis %d",
                                tnd_dims_text(&shape, a), tnd_dims_text(other, b), axis);
        }
        shape.dims[axis] += other->dims[axis];
    }
    return tnd_net_add(net, TND_NET_CONCAT, &params, values, n, type, &shape);
}

int tnd_net_pad(struct tnd_net *net, enum tandem_pad mode, int value, const int64_t *begin,
                const int64_t *end, int constant)
{
    const int inputs[2] = {value, constant};
    const int n = mode == TANDEM_PAD_CONSTANT ? 2 : 1;
    if (!may_build(net, inputs, n) || (n == 2 && !same_type(net, value, constant))) {
        return TANDEM_NET_NONE;
    }
    struct tnd_net_params params = {.kind = (int)mode};
    const enum tandem_dtype type = tnd_net_value(net, value)->type;
    struct tnd_dims shape = tnd_net_value(net, value)->shape;
    for (int i = 0; i < shape.n; i++) {
        const int64_t most = INT64_MAX / 8;
        if (begin[i] > most || begin[i] < -most || end[i] > most || end[i] < -most ||
            shape.dims[i] + begin[i] + end[i] < 0 ||
            (shape.dims[i] == 0 && mode != TANDEM_PAD_CONSTANT && begin[i] + end[i] > 0)) {
            return tnd_net_fail(net, TANDEM_E_SHAPE,
                                "axis %d of %lld values cannot be padded by %lld and %lld", i,
                                (long long)shape.dims[i], (long long)begin[i], (long long)end[i]);
        }
        params.begin[i] = begin[i];
        shape.dims[i] += begin[i] + end[i];
    }
    return tnd_net_add(net, TND_NET_PAD, &params, inputs, n, type, &shape);
}

static bool check_indices(struct tnd_net *net, int indices)
{
    const enum tandem_dtype type = tnd_net_value(net, indices)->type;
    if (tnd_dtype_kind(type) == TND_KIND_SIGNED || tnd_dtype_kind(type) == TND_KIND_UNSIGNED) {
        return true;
    }
    (void)tnd_net_fail(net, TANDEM_E_TYPE, "indices of type %s, expected integers",
                       tandem_dtype_name(type));
    return false;
}

int tnd_net_gather(struct tnd_net *net, int value, int indices, int axis)
{
    const int inputs[2] = {value, indices};
    if (!may_build(net, inputs, 2) || !check_indices(net, indices)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.axis = axis};
    const struct tnd_net_value *from = tnd_net_value(net, value);
    const struct tnd_dims *by = &tnd_net_value(net, indices)->shape;
    struct tnd_dims shape = {.n = from->shape.n - 1 + by->n};
    if (axis < 0 || axis >= from->shape.n) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "axis %d of a value of %d dimensions", axis,
                            from->shape.n);
    }
    if (shape.n > TANDEM_NET_MAX_DIMS) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "a result of %d dimensions, expected at most %d",
                            shape.n, TANDEM_NET_MAX_DIMS);
    }
    memcpy(shape.dims, from->shape.dims, (size_t)axis * sizeof(int64_t));
    memcpy(shape.dims + axis, by->dims, (size_t)by->n * sizeof(int64_t));
    memcpy(shape.dims + axis + by->n, from->shape.dims + axis + 1,
           (size_t)(from->shape.n - axis - 1) * sizeof(int64_t));
    return tnd_net_add(net, TND_NET_GATHER, &params, inputs, 2, from->type, &shape);
}

int tnd_net_gather_elements(struct tnd_net *net, int value, int indices, int axis)
{
    const int inputs[2] = {value, indices};
    if (!may_build(net, inputs, 2) || !check_indices(net, indices)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.axis = axis};
    const struct tnd_dims *from = &tnd_net_value(net, value)->shape;
    const struct tnd_dims *by = &tnd_net_value(net, indices)->shape;
    bool fits = from->n == by->n;
    for (int i = 0; fits && i < from->n; i++) {
        fits = i == axis || by->dims[i] <= from->dims[i];
    }
    if (!fits) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "indices that do not fit the shape of the data");
    }
    return add_like(net, TND_NET_GATHER_ELEMENTS, &params, inputs, 2, indices,
                    tnd_net_value(net, value)->type);
}

int tnd_net_scatter_elements(struct tnd_net *net, enum tandem_scatter kind, int value, int indices,
                             int updates, int axis)
{
    const int inputs[3] = {value, indices, updates};
    if (!may_build(net, inputs, 3) || !check_indices(net, indices) ||
        !same_type(net, value, updates)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.kind = (int)kind, .axis = axis};
    const struct tnd_dims *from = &tnd_net_value(net, value)->shape;
    const struct tnd_dims *by = &tnd_net_value(net, indices)->shape;
    bool fits = from->n == by->n && tnd_dims_is_equal(by, &tnd_net_value(net, updates)->shape);
    for (int i = 0; fits && i < from->n; i++) {
        fits = i == axis || by->dims[i] <= from->dims[i];
    }
    if (!fits) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "indices that do not fit the shape of the data");
    }
    return add_like(net, TND_NET_SCATTER_ELEMENTS, &params, inputs, 3, value,
                    tnd_net_value(net, value)->type);
}

int tnd_net_scan(struct tnd_net *net, int value, int axis, bool is_exclusive, bool is_reverse)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {
        .axis = axis, .is_exclusive = is_exclusive, .is_reverse = is_reverse};
    return add_like(net, TND_NET_SCAN, &params, &value, 1, value, tnd_net_value(net, value)->type);
}

int tnd_net_arg_sort(struct tnd_net *net, int value, int axis, bool largest_first)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.axis = axis, .is_reverse = largest_first};
    return add_like(net, TND_NET_ARG_SORT, &params, &value, 1, value, TANDEM_DTYPE_I64);
}

/* ---- windows ---- */

/* Positions of a window along each dimension; false: it fits nowhere. */
static bool window_places(const struct tnd_window *window, const int64_t *extents, int64_t *out)
{
    for (int i = 0; i < window->n; i++) {
        const int64_t most = INT64_MAX / 1024;
        const bool is_sane = window->extent[i] >= 1 && window->stride[i] >= 1 &&
                             window->dilation[i] >= 1 && window->extent[i] < (1 << 20) &&
                             window->dilation[i] < (1 << 20) && window->stride[i] < most &&
                             window->begin[i] < most && window->end[i] < most &&
                             window->begin[i] > -most && window->end[i] > -most;
        const int64_t covered = is_sane ? (window->extent[i] - 1) * window->dilation[i] + 1 : 0;
        const int64_t room =
            is_sane ? extents[i] + window->begin[i] + window->end[i] - covered : -1;
        if (room < 0) {
            return false;
        }
        out[i] = room / window->stride[i] + 1;
    }
    return true;
}

static int bad_window(struct tnd_net *net, const struct tnd_dims *x)
{
    char text[160];
    return tnd_net_fail(net, TANDEM_E_SHAPE, "a window that does not fit into %s",
                        tnd_dims_text(x, text));
}

int tnd_net_conv(struct tnd_net *net, int x, int w, const struct tnd_window *window)
{
    const int inputs[2] = {x, w};
    if (!may_build(net, inputs, 2) || !same_type(net, x, w)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.window = *window};
    const struct tnd_dims sx = tnd_net_value(net, x)->shape;
    const struct tnd_dims sw = tnd_net_value(net, w)->shape;
    struct tnd_dims out = {.n = window->n + 2};
    if (sx.n != out.n || sw.n != out.n || window->groups < 1 ||
        sx.dims[1] / window->groups != sw.dims[1] || sx.dims[1] % window->groups != 0 ||
        sw.dims[0] % window->groups != 0 ||
        memcmp(sw.dims + 2, window->extent, (size_t)window->n * sizeof(int64_t)) != 0 ||
        !window_places(window, sx.dims + 2, out.dims + 2)) {
        return bad_window(net, &sx);
    }
    out.dims[0] = sx.dims[0];
    out.dims[1] = sw.dims[0];
    return tnd_net_add(net, TND_NET_CONV, &params, inputs, 2, tnd_net_value(net, x)->type, &out);
}

int tnd_net_pool(struct tnd_net *net, enum tandem_pool kind, int value,
                 const struct tnd_window *window)
{
    if (!may_build(net, &value, 1)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_params params = {.kind = (int)kind, .window = *window};
    const struct tnd_dims from = tnd_net_value(net, value)->shape;
    struct tnd_dims out = from;
    if (from.n != window->n + 2 || !window_places(window, from.dims + 2, out.dims + 2)) {
        return bad_window(net, &from);
    }
    return tnd_net_add(
        net, TND_NET_POOL, &params, &value, 1,
        kind == TANDEM_POOL_ARG_MAX ? TANDEM_DTYPE_I64 : tnd_net_value(net, value)->type, &out);
}
