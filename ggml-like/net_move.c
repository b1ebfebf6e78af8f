/* SPDX-License-Identifier: MIT
 * Reference kernels that move values: concatenation, padding, gather and scatter. */
#include <string.h>

#include "ggml-like/net_kernels.h"

/* Advances an index of all dimensions like an odometer; false after the last one. */
static bool count_up(const struct tnd_dims *shape, int64_t *at)
{
    for (int i = shape->n - 1; i >= 0; i--) {
        if (++at[i] < shape->dims[i]) {
            return true;
        }
        at[i] = 0;
    }
    return false;
}

static int64_t offset_of(const struct tnd_view *view, const int64_t *at)
{
    int64_t offset = 0;
    for (int i = 0; i < view->shape.n; i++) {
        offset += at[i] * view->strides[i];
    }
    return offset;
}

static const char *value_at(const struct tnd_view *view, const int64_t *at)
{
    return (const char *)view->data + offset_of(view, at) * (int64_t)tandem_dtype_bytes(view->type);
}

static int64_t integer_at(const struct tnd_view *view, const int64_t *at)
{
    union tnd_values strip;
    tnd_values_load(view->type, value_at(view, at), 1, 1, TND_LANE_I64, &strip);
    return strip.i64[0];
}

enum tandem_status tnd_kernel_index(int64_t *index, int64_t n, struct tandem_error *error)
{
    if (*index < -n || *index >= n) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, NULL, *index, n,
                             "index %lld into %lld values, expected %lld to %lld",
                             (long long)*index, (long long)n, (long long)-n, (long long)n - 1);
    }
    *index += *index < 0 ? n : 0;
    return TANDEM_OK;
}

static struct tnd_view view_of_out(const struct tnd_array *out)
{
    struct tnd_view view = {.type = out->type, .shape = out->shape, .data = out->data};
    tnd_dims_strides(&out->shape, view.strides);
    return view;
}

enum tandem_status tnd_kernel_concat(const struct tnd_kernel_call *call)
{
    const struct tnd_view out = view_of_out(call->out);
    const int axis = call->params->axis;
    const size_t bytes = tandem_dtype_bytes(out.type);
    int64_t first = 0;
    for (int i = 0; i < call->n_in; i++) {
        const struct tnd_view *in = &call->in[i];
        int64_t at[TANDEM_NET_MAX_DIMS] = {0};
        if (tnd_dims_values(&in->shape) == 0) {
            continue;
        }
        do {
            const int64_t to = offset_of(&out, at) + first * out.strides[axis];
            memcpy((char *)call->out->data + (size_t)to * bytes, value_at(in, at), bytes);
        } while (count_up(&in->shape, at));
        first += in->shape.dims[axis];
    }
    return TANDEM_OK;
}

int64_t tnd_kernel_pad_source(enum tandem_pad mode, int64_t at, int64_t n)
{
    if (at >= 0 && at < n) {
        return at;
    }
    switch (mode) {
    case TANDEM_PAD_EDGE:
        return at < 0 ? 0 : n - 1;
    case TANDEM_PAD_WRAP:
        return (at % n + n) % n;
    case TANDEM_PAD_REFLECT: {
        const int64_t period = n > 1 ? 2 * (n - 1) : 1;
        const int64_t rest = (at % period + period) % period;
        return rest < n ? rest : period - rest;
    }
    default:
        return -1;
    }
}

enum tandem_status tnd_kernel_pad(const struct tnd_kernel_call *call)
{
    const struct tnd_view *in = &call->in[0];
    const size_t bytes = tandem_dtype_bytes(in->type);
    int64_t at[TANDEM_NET_MAX_DIMS] = {0};
    char *to = call->out->data;
    if (call->out->n == 0) {
        return TANDEM_OK;
    }
    do {
        int64_t from[TANDEM_NET_MAX_DIMS];
        bool is_inside = true;
        for (int i = 0; i < in->shape.n; i++) {
            from[i] = tnd_kernel_pad_source((enum tandem_pad)call->params->kind,
                                            at[i] - call->params->begin[i], in->shape.dims[i]);
            is_inside = is_inside && from[i] >= 0;
        }
        memcpy(to, is_inside ? value_at(in, from) : (const char *)call->in[1].data, bytes);
        to += bytes;
    } while (count_up(&call->out->shape, at));
    return TANDEM_OK;
}

enum tandem_status tnd_kernel_gather(const struct tnd_kernel_call *call)
{
    const struct tnd_view *in = &call->in[0];
    const struct tnd_view *indices = &call->in[1];
    const int axis = call->params->axis;
    const size_t bytes = tandem_dtype_bytes(in->type);
    int64_t at[TANDEM_NET_MAX_DIMS] = {0};
    char *to = call->out->data;
    if (call->out->n == 0) {
        return TANDEM_OK;
    }
    do {
        int64_t from[TANDEM_NET_MAX_DIMS];
        int64_t index = integer_at(indices, at + axis);
        TND_TRY(tnd_kernel_index(&index, in->shape.dims[axis], call->error));
        memcpy(from, at, (size_t)axis * sizeof(at[0]));
        from[axis] = index;
        memcpy(from + axis + 1, at + axis + indices->shape.n,
               (size_t)(in->shape.n - axis - 1) * sizeof(at[0]));
        memcpy(to, value_at(in, from), bytes);
        to += bytes;
    } while (count_up(&call->out->shape, at));
    return TANDEM_OK;
}

enum tandem_status tnd_kernel_gather_elements(const struct tnd_kernel_call *call)
{
    const struct tnd_view *in = &call->in[0];
    const int axis = call->params->axis;
    const size_t bytes = tandem_dtype_bytes(in->type);
    int64_t at[TANDEM_NET_MAX_DIMS] = {0};
    char *to = call->out->data;
    if (call->out->n == 0) {
        return TANDEM_OK;
    }
    do {
        int64_t from[TANDEM_NET_MAX_DIMS];
        int64_t index = integer_at(&call->in[1], at);
        TND_TRY(tnd_kernel_index(&index, in->shape.dims[axis], call->error));
        memcpy(from, at, sizeof(from));
        from[axis] = index;
        memcpy(to, value_at(in, from), bytes);
        to += bytes;
    } while (count_up(&call->out->shape, at));
    return TANDEM_OK;
}

/* Updates a value in place. */
static void update(enum tandem_scatter kind, enum tandem_dtype type, char *to, const char *from)
{
    static const enum tandem_binary kinds[] = {[TANDEM_SCATTER_ADD] = TANDEM_BINARY_ADD,
                                               [TANDEM_SCATTER_MUL] = TANDEM_BINARY_MUL,
                                               [TANDEM_SCATTER_MAX] = TANDEM_BINARY_MAX,
                                               [TANDEM_SCATTER_MIN] = TANDEM_BINARY_MIN};
    if (kind == TANDEM_SCATTER_SET) {
        memcpy(to, from, tandem_dtype_bytes(type));
        return;
    }
    const enum tnd_lane lane = tnd_lane_of(type);
    union tnd_values a;
    union tnd_values b;
    tnd_values_load(type, to, 1, 1, lane, &a);
    tnd_values_load(type, from, 1, 1, lane, &b);
    tnd_binary_strip(kinds[kind], lane, &a, &b, 1, 64, &a);
    tnd_values_store(type, lane, &a, 1, to);
}

enum tandem_status tnd_kernel_scatter_elements(const struct tnd_kernel_call *call)
{
    const struct tnd_view out = view_of_out(call->out);
    const struct tnd_view *indices = &call->in[1];
    const int axis = call->params->axis;
    const struct tnd_kernel_call copy = {
        .params = call->params, .in = call->in, .n_in = 1, .out = call->out, .error = call->error};
    int64_t at[TANDEM_NET_MAX_DIMS] = {0};
    TND_TRY(tnd_kernel_copy(&copy));
    if (tnd_dims_values(&indices->shape) == 0) {
        return TANDEM_OK;
    }
    do {
        int64_t to[TANDEM_NET_MAX_DIMS];
        int64_t index = integer_at(indices, at);
        TND_TRY(tnd_kernel_index(&index, out.shape.dims[axis], call->error));
        memcpy(to, at, sizeof(to));
        to[axis] = index;
        update((enum tandem_scatter)call->params->kind, out.type,
               (char *)call->out->data +
                   offset_of(&out, to) * (int64_t)tandem_dtype_bytes(out.type),
               value_at(&call->in[2], at));
    } while (count_up(&indices->shape, at));
    return TANDEM_OK;
}
