/* SPDX-License-Identifier: MIT
 * Pattern matching for the rules of passes, and constants that they build. */
#include <string.h>

#include "graph/pass_internal.h"

#define MAX_UNIFORM 4096 /* most values compared to find that all are equal */

bool tnd_is_float(enum tandem_dtype type)
{
    return tnd_dtype_kind(type) == TND_KIND_FLOAT;
}

bool tnd_is_byte(enum tandem_dtype type)
{
    return type == TANDEM_DTYPE_I8 || type == TANDEM_DTYPE_U8;
}

bool tnd_match_whole(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *v = tnd_net_value(net, value);
    int64_t strides[TANDEM_NET_MAX_DIMS];
    if (v->offset != 0 ||
        tnd_dims_values(&v->shape) != tnd_dims_values(&net->values[v->base].shape)) {
        return false;
    }
    tnd_dims_strides(&v->shape, strides);
    for (int i = 0; i < v->shape.n; i++) {
        if (v->shape.dims[i] != 1 && v->strides[i] != strides[i]) {
            return false;
        }
    }
    return true;
}

const struct tnd_net_node *tnd_match(const struct tnd_net *net, int value, enum tnd_net_op op,
                                     int kind)
{
    const int node = value < 0 ? -1 : net->values[net->values[value].base].node;
    if (node < 0 || net->nodes[node].op != op || !tnd_match_whole(net, value)) {
        return NULL;
    }
    return kind < 0 || net->nodes[node].params.kind == kind ? &net->nodes[node] : NULL;
}

bool tnd_match_constant(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *base = tnd_net_value(net, tnd_net_value(net, value)->base);
    return base->known != NULL && (base->input < 0 || base->is_fixed);
}

bool tnd_match_uniform(const struct tnd_net *net, int value, double *number, int64_t *integer)
{
    const struct tnd_net_value *v = tnd_net_value(net, value);
    if (!tnd_match_constant(net, value) || tnd_dims_values(&v->shape) == 0) {
        return false;
    }
    const struct tnd_array *array = net->values[v->base].known;
    const size_t bytes = tandem_dtype_bytes(v->type);
    struct tnd_view view = {.type = v->type, .shape = v->shape};
    memcpy(view.strides, v->strides, sizeof(view.strides));
    int64_t n = 1;
    for (int i = 0; i < view.shape.n; i++) {
        view.shape.dims[i] = view.strides[i] == 0 ? 1 : view.shape.dims[i];
        n *= view.shape.dims[i];
    }
    if (n > MAX_UNIFORM || !tnd_array_fill(array)) {
        return false;
    }
    view.data = (const char *)array->data + (size_t)v->offset * bytes;
    struct tnd_walk walk;
    const int64_t stride = view.shape.n == 0 ? 0 : view.strides[view.shape.n - 1];
    for (tnd_walk_begin(&walk, &view.shape); !walk.is_done; tnd_walk_next(&walk)) {
        const char *row = tnd_walk_place(&walk, &view);
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            if (memcmp(row + i * stride * (int64_t)bytes, view.data, bytes) != 0) {
                return false;
            }
        }
    }
    *number = tnd_array_number(array, v->offset);
    *integer = tnd_is_float(v->type) ? 0 : tnd_array_integer(array, v->offset);
    return true;
}

bool tnd_match_same(const struct tnd_net *net, int a, int b)
{
    const struct tnd_net_value *x = tnd_net_value(net, a);
    const struct tnd_net_value *y = tnd_net_value(net, b);
    if (x->base != y->base || x->offset != y->offset || !tnd_dims_is_equal(&x->shape, &y->shape)) {
        return false;
    }
    for (int i = 0; i < x->shape.n; i++) {
        if (x->shape.dims[i] != 1 && x->strides[i] != y->strides[i]) {
            return false;
        }
    }
    return true;
}

int tnd_pass_number(struct tnd_net *net, enum tandem_dtype type, double number,
                    const struct tnd_dims *shape)
{
    const struct tnd_dims copy = *shape; /* a copy: it may be in the net's arrays, which move */
    return tnd_net_expand(net, tnd_net_scalar(net, type, number), &copy);
}
