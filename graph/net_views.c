/* SPDX-License-Identifier: MIT
 * Views over the values of a net: permuted, sliced, broadcast, reshaped. */
#include <string.h>

#include "base/tnd_assert.h"
#include "graph/net_internal.h"

static int new_view(struct tnd_net *net, int value, const struct tnd_dims *shape,
                    const int64_t *strides, int64_t offset)
{
    if (net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value from = net->values[value];
    const int view = tnd_net_new_value(net, from.type, shape);
    if (view != TANDEM_NET_NONE) {
        net->values[view].base = from.base;
        net->values[view].offset = from.offset + offset;
        memcpy(net->values[view].strides, strides, sizeof(net->values[view].strides));
    }
    return view;
}

int tnd_net_view_like(struct tnd_net *net, int base, int like)
{
    if (base == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value view = net->values[like];
    TND_ASSERT(net->values[base].base == base &&
               tnd_dims_is_equal(&net->values[base].shape, &net->values[view.base].shape));
    return new_view(net, base, &view.shape, view.strides, view.offset);
}

int tnd_net_permute(struct tnd_net *net, int value, const int *axes)
{
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    struct tnd_dims shape = {.n = from->shape.n};
    int64_t strides[TANDEM_NET_MAX_DIMS] = {0};
    for (int i = 0; i < shape.n; i++) {
        shape.dims[i] = from->shape.dims[axes[i]];
        strides[i] = from->strides[axes[i]];
    }
    return new_view(net, value, &shape, strides, 0);
}

/* The strides of a reshaped view, if they exist: groups of dimensions with the same number of
 * values on both sides, of which the old ones must be contiguous with each other. */
static bool reshape_strides(const struct tnd_net_value *from, const struct tnd_dims *to,
                            int64_t *out)
{
    int old = 0;
    int new = 0;
    while (new < to->n || old < from->shape.n) {
        const int old_first = old;
        const int new_first = new;
        int64_t n_old = old < from->shape.n ? from->shape.dims[old++] : 1;
        int64_t n_new = new < to->n ? to->dims[new ++] : 1;
        while (n_old != n_new) {
            if (n_old < n_new) {
                n_old *= from->shape.dims[old++];
            } else {
                n_new *= to->dims[new ++];
            }
        }
        /* the old ones of more than one value, the innermost first */
        int64_t stride = 0;
        int64_t outer = 0;
        bool has_inner = false;
        for (int i = old - 1; i >= old_first; i--) {
            if (from->shape.dims[i] == 1) {
                continue;
            }
            if (has_inner && from->strides[i] != outer) {
                return false;
            }
            stride = has_inner ? stride : from->strides[i];
            outer = from->strides[i] * from->shape.dims[i];
            has_inner = true;
        }
        for (int i = new - 1; i >= new_first; i--) {
            out[i] = stride;
            stride *= to->dims[i];
        }
    }
    return true;
}

int tnd_net_reshape(struct tnd_net *net, int value, const struct tnd_dims *shape)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    const int64_t n = tnd_dims_values(&from->shape);
    char old[160];
    char new[160];
    if (n != tnd_dims_values(shape)) {
        return tnd_net_fail(net, TANDEM_E_SHAPE, "%s cannot be read as %s",
                            tnd_dims_text(&from->shape, old), tnd_dims_text(shape, new));
    }
    int64_t strides[TANDEM_NET_MAX_DIMS] = {0};
    if (n == 0) {
        return new_view(net, value, shape, strides, 0);
    }
    if (reshape_strides(from, shape, strides)) {
        return new_view(net, value, shape, strides, 0);
    }
    const struct tnd_dims extents = *shape; /* a copy: `shape` may be a value's, which may move */
    const int copy = tnd_net_copy(net, value);
    tnd_dims_strides(&extents, strides);
    return copy == TANDEM_NET_NONE ? copy : new_view(net, copy, &extents, strides, 0);
}

int tnd_net_expand(struct tnd_net *net, int value, const struct tnd_dims *shape)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    if (tnd_dims_is_equal(&from->shape, shape)) {
        return value;
    }
    const int more = shape->n - from->shape.n;
    int64_t strides[TANDEM_NET_MAX_DIMS] = {0};
    bool fits = more >= 0;
    for (int i = more; fits && i < shape->n; i++) {
        const int64_t extent = from->shape.dims[i - more];
        fits = extent == shape->dims[i] || extent == 1;
        strides[i] = extent == shape->dims[i] ? from->strides[i - more] : 0;
    }
    if (!fits) {
        char old[160];
        char new[160];
        return tnd_net_fail(net, TANDEM_E_SHAPE, "%s cannot be broadcast to %s",
                            tnd_dims_text(&from->shape, old), tnd_dims_text(shape, new));
    }
    return new_view(net, value, shape, strides, 0);
}

int tnd_net_slice(struct tnd_net *net, int value, int axis, int64_t start, int64_t count,
                  int64_t step)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    const int64_t extent = from->shape.dims[axis];
    TND_ASSERT(step != 0 && count >= 0);
    TND_ASSERT(count == 0 || (start >= 0 && start < extent && start + (count - 1) * step >= 0 &&
                              start + (count - 1) * step < extent));
    if (start == 0 && count == extent && step == 1) {
        return value;
    }
    struct tnd_dims shape = from->shape;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    memcpy(strides, from->strides, sizeof(strides));
    const int64_t offset = count == 0 ? 0 : start * strides[axis];
    shape.dims[axis] = count;
    strides[axis] *= step;
    return new_view(net, value, &shape, strides, offset);
}

int tnd_net_diagonal(struct tnd_net *net, int value, int axis, int other)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *from = tnd_net_value(net, value);
    TND_ASSERT(axis != other && from->shape.dims[axis] == from->shape.dims[other]);
    struct tnd_dims shape = {.n = 0};
    int64_t strides[TANDEM_NET_MAX_DIMS] = {0};
    for (int i = 0; i < from->shape.n; i++) {
        if (i != other) {
            shape.dims[shape.n] = from->shape.dims[i];
            strides[shape.n++] = from->strides[i] + (i == axis ? from->strides[other] : 0);
        }
    }
    return new_view(net, value, &shape, strides, 0);
}

/* ---- by a function ---- */

/* Advances an index in row-major order. */
static void advance(const struct tnd_dims *shape, int64_t *index)
{
    for (int d = shape->n - 1; d >= 0; d--) {
        if (++index[d] < shape->dims[d]) {
            return;
        }
        index[d] = 0;
    }
}

/* Calls the function for the operand's row-major position of each value of the result. False: one
 * is out of range, an error in the net. */
static bool ask_places(struct tnd_net *net, int value, const struct tnd_dims *shape,
                       tandem_reindex_fn fn, void *user, int64_t *places)
{
    const struct tnd_dims from = tnd_net_value(net, value)->shape;
    const int64_t n = tnd_dims_values(shape);
    int64_t index[TANDEM_NET_MAX_DIMS] = {0};
    int64_t strides[TANDEM_NET_MAX_DIMS];
    tnd_dims_strides(&from, strides);
    for (int64_t i = 0; i < n; i++, advance(shape, index)) {
        int64_t at[TANDEM_NET_MAX_DIMS] = {0};
        int64_t copy[TANDEM_NET_MAX_DIMS];
        memcpy(copy, index, sizeof(copy)); /* the function may write to it */
        fn(user, copy, at);
        places[i] = 0;
        for (int d = 0; d < from.n; d++) {
            if (at[d] < 0 || at[d] >= from.dims[d]) {
                (void)tnd_net_fail(net, TANDEM_E_ARGUMENT,
                                   "reindex: value %lld is from index %lld of dimension %d, "
                                   "expected one of %lld",
                                   (long long)i, (long long)at[d], d, (long long)from.dims[d]);
                return false;
            }
            places[i] += at[d] * strides[d];
        }
    }
    return true;
}

/* Whether positions are sums of index times stride in the base's memory; there is at least one. */
static bool find_steps(const struct tnd_net_value *v, const struct tnd_dims *shape, int64_t *places,
                       int64_t *strides)
{
    const int64_t n = tnd_dims_values(shape);
    int64_t index[TANDEM_NET_MAX_DIMS] = {0};
    int64_t flat[TANDEM_NET_MAX_DIMS];
    int64_t own[TANDEM_NET_MAX_DIMS];
    tnd_dims_strides(&v->shape, flat);
    tnd_dims_strides(shape, own);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = places[i];
        places[i] = 0;
        for (int d = 0; d < v->shape.n; d++) {
            places[i] += rest / flat[d] * v->strides[d];
            rest %= flat[d];
        }
    }
    for (int d = 0; d < shape->n; d++) {
        strides[d] = shape->dims[d] > 1 ? places[own[d]] - places[0] : 0;
    }
    for (int64_t i = 0; i < n; i++, advance(shape, index)) {
        int64_t sum = places[0];
        for (int d = 0; d < shape->n; d++) {
            sum += index[d] * strides[d];
        }
        if (sum != places[i]) {
            return false;
        }
    }
    return true;
}

static int gather_places(struct tnd_net *net, int value, struct tnd_array *places, const char *name)
{
    const struct tnd_dims flat = {1, {tnd_dims_values(&tnd_net_value(net, value)->shape)}};
    const int indices = tnd_net_constant(net, places);
    const int result = tnd_net_gather(net, tnd_net_reshape(net, value, &flat), indices, 0);
    if (result != TANDEM_NET_NONE) {
        tnd_net_name_since(net, result, "reindex", name);
    }
    return result;
}

int tnd_net_reindex(struct tnd_net *net, int value, const struct tnd_dims *shape,
                    tandem_reindex_fn fn, void *user, const char *name)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    int64_t strides[TANDEM_NET_MAX_DIMS] = {0};
    struct tnd_array *places = tnd_array_new(TANDEM_DTYPE_I64, shape);
    struct tnd_array *moved = tnd_array_new(TANDEM_DTYPE_I64, shape);
    int result = TANDEM_NET_NONE;
    if (places == NULL || moved == NULL) {
        (void)tnd_net_fail(net, TANDEM_E_MEMORY, "no memory for %lld places",
                           (long long)tnd_dims_values(shape));
    } else if (ask_places(net, value, shape, fn, user, places->data)) {
        if (places->n > 0) {
            memcpy(moved->data, places->data, (size_t)places->n * sizeof(int64_t));
        }
        if (places->n > 0 && find_steps(tnd_net_value(net, value), shape, moved->data, strides)) {
            result = new_view(net, value, shape, strides, ((const int64_t *)moved->data)[0]);
        } else {
            result = gather_places(net, value, places, name);
            places = NULL;
        }
    }
    tnd_array_free(places);
    tnd_array_free(moved);
    return result;
}

/* ---- views of views ---- */

/* A view with contiguous dimensions merged, the innermost first: extent, stride, and stride in a
 * dense value. */
struct coarse {
    int n;
    int64_t extent[TANDEM_NET_MAX_DIMS], stride[TANDEM_NET_MAX_DIMS], flat[TANDEM_NET_MAX_DIMS];
};

static struct coarse coarsen(const struct tnd_net_value *view)
{
    struct coarse out = {.n = 0};
    int64_t flat = 1;
    for (int i = view->shape.n - 1; i >= 0; i--) {
        const int64_t extent = view->shape.dims[i];
        const int last = out.n - 1;
        if (extent == 1) {
            continue;
        }
        if (out.n > 0 && view->strides[i] == out.stride[last] * out.extent[last]) {
            out.extent[last] *= extent;
        } else {
            out.extent[out.n] = extent;
            out.stride[out.n] = view->strides[i];
            out.flat[out.n++] = flat;
        }
        flat *= extent;
    }
    return out;
}

bool tnd_net_compose(const struct tnd_net_value *new, const struct tnd_net_value *old,
                     int64_t *offset, int64_t *strides)
{
    const struct coarse parts = coarsen(new);
    int64_t low[TANDEM_NET_MAX_DIMS];
    int64_t high[TANDEM_NET_MAX_DIMS];
    int64_t rest = old->offset;
    *offset = new->offset;
    memset(strides, 0, TANDEM_NET_MAX_DIMS * sizeof(strides[0]));
    if (tnd_dims_values(&old->shape) == 0) {
        return true;
    }
    for (int k = parts.n - 1; k >= 0; k--) {
        low[k] = high[k] = rest / parts.flat[k];
        rest %= parts.flat[k];
        *offset += low[k] * parts.stride[k];
    }
    for (int i = 0; i < old->shape.n; i++) {
        int64_t stride = old->shape.dims[i] == 1 ? 0 : old->strides[i];
        for (int k = parts.n - 1; k >= 0; k--) {
            const int64_t steps = stride / parts.flat[k];
            stride %= parts.flat[k];
            strides[i] += steps * parts.stride[k];
            *(steps < 0 ? &low[k] : &high[k]) += steps * (old->shape.dims[i] - 1);
        }
    }
    for (int k = 0; k < parts.n; k++) {
        if (low[k] < 0 || high[k] >= parts.extent[k]) {
            return false;
        }
    }
    return true;
}
