/* SPDX-License-Identifier: MIT
 * Reference kernels of products, convolutions and pools: plain loops; sums of floats are in
 * double. */
#include <math.h>
#include <string.h>

#include "ggml-like/net_kernels.h"

static enum tnd_lane wide_lane(enum tandem_dtype type)
{
    const enum tnd_lane lane = tnd_lane_of(type);
    return lane == TND_LANE_F32 ? TND_LANE_F64 : lane;
}

/* Sums of products for `n` adjacent results, in the lane type that fits the operands: F64, or
 * integers, whose sums wrap alike signed or unsigned. */
struct sums {
    enum tnd_lane lane;
    int n;
    union tnd_values are;
};

static const void *value_at(const struct tnd_view *view, int64_t at)
{
    return (const char *)view->data + at * (int64_t)tandem_dtype_bytes(view->type);
}

/* Adds the products of one value of `a`, at `at_a`, with the values of `b` for results `first` to
 * `end`, which begin at `at_b` and are `stride` apart. */
static void add_products(struct sums *sums, const struct tnd_view *a, int64_t at_a,
                         const struct tnd_view *b, int64_t at_b, int64_t stride, int first, int end)
{
    union tnd_values x;
    union tnd_values y;
    tnd_values_load(a->type, value_at(a, at_a), 1, 1, sums->lane, &x);
    tnd_values_load(b->type, value_at(b, at_b), stride, end - first, sums->lane, &y);
    if (sums->lane == TND_LANE_F64) {
        for (int i = first; i < end; i++) {
            sums->are.f64[i] += x.f64[0] * y.f64[i - first];
        }
    } else {
        for (int i = first; i < end; i++) {
            sums->are.u64[i] += x.u64[0] * y.u64[i - first];
        }
    }
}

static void store_sums(const struct sums *sums, struct tnd_array *out, int64_t at)
{
    tnd_values_store(out->type, sums->lane, &sums->are, sums->n,
                     (char *)out->data + at * (int64_t)tandem_dtype_bytes(out->type));
}

static struct sums sums_of(enum tandem_dtype type, int64_t left)
{
    return (struct sums){.lane = wide_lane(type), .n = (int)(left < TND_LANES ? left : TND_LANES)};
}

enum tandem_status tnd_kernel_contract(const struct tnd_kernel_call *call)
{
    const struct tnd_view *a = &call->in[0];
    const struct tnd_view *b = &call->in[1];
    const int64_t columns = b->shape.dims[2];
    int64_t at = 0;
    for (int64_t row = 0; row < a->shape.dims[0] * a->shape.dims[1]; row++) {
        const int64_t batch = row / a->shape.dims[1];
        const int64_t from_a = batch * a->strides[0] + row % a->shape.dims[1] * a->strides[1];
        for (int64_t n = 0; n < columns; n += TND_LANES) {
            struct sums sums = sums_of(a->type, columns - n);
            const int64_t from_b = batch * b->strides[0] + n * b->strides[2];
            for (int64_t k = 0; k < a->shape.dims[2]; k++) {
                add_products(&sums, a, from_a + k * a->strides[2], b, from_b + k * b->strides[1],
                             b->strides[2], 0, sums.n);
            }
            store_sums(&sums, call->out, at);
            at += sums.n;
        }
    }
    return TANDEM_OK;
}

/* ---- windows ---- */

/* A position of the window, and its current tap. */
struct window_walk {
    const struct tnd_window *window;
    int64_t place[TANDEM_NET_MAX_WINDOW];
    int64_t tap[TANDEM_NET_MAX_WINDOW];
};

static bool next_tap(struct window_walk *walk)
{
    for (int i = walk->window->n - 1; i >= 0; i--) {
        if (++walk->tap[i] < walk->window->extent[i]) {
            return true;
        }
        walk->tap[i] = 0;
    }
    return false;
}

static bool next_place(struct window_walk *walk, const int64_t *places)
{
    for (int i = walk->window->n - 1; i >= 0; i--) {
        if (++walk->place[i] < places[i]) {
            return true;
        }
        walk->place[i] = 0;
    }
    return false;
}

/* Offset of the value under the tap in {spatial}; -1: in the padding. `flat`: the same in a dense
 * array. */
static int64_t tap_offset(const struct window_walk *walk, const int64_t *extents,
                          const int64_t *strides, int64_t *flat)
{
    int64_t offset = 0;
    *flat = 0;
    for (int i = 0; i < walk->window->n; i++) {
        const int64_t at = walk->place[i] * walk->window->stride[i] +
                           walk->tap[i] * walk->window->dilation[i] - walk->window->begin[i];
        if (at < 0 || at >= extents[i]) {
            return -1;
        }
        offset += at * strides[i];
        *flat = *flat * extents[i] + at;
    }
    return offset;
}

/* Adjacent results of a convolution along the last dimension, from the walk's position on: sums
 * over a group's channels and the window. (A view's offsets may be negative, so padding is detected
 * beforehand.) */
static void conv_strip(const struct tnd_kernel_call *call, struct window_walk *walk, int64_t image,
                       int64_t filter, struct sums *sums)
{
    const struct tnd_view *x = &call->in[0];
    const struct tnd_view *w = &call->in[1];
    const int64_t channels = w->shape.dims[1];
    const int64_t group = filter / (w->shape.dims[0] / walk->window->groups);
    const int last = walk->window->n - 1;
    const int64_t stride = walk->window->stride[last];
    memset(walk->tap, 0, sizeof(walk->tap));
    do {
        int64_t from = image * x->strides[0] + group * channels * x->strides[1];
        int64_t weight = filter * w->strides[0];
        int64_t place = 0;
        bool is_inside = true;
        for (int i = 0; i <= last; i++) {
            place = walk->place[i] * walk->window->stride[i] +
                    walk->tap[i] * walk->window->dilation[i] - walk->window->begin[i];
            is_inside = is_inside && (i == last || (place >= 0 && place < x->shape.dims[2 + i]));
            from += place * x->strides[2 + i];
            weight += walk->tap[i] * w->strides[2 + i];
        }
        const int64_t first = place < 0 ? (stride - 1 - place) / stride : 0;
        const int64_t fit = (x->shape.dims[2 + last] - place + stride - 1) / stride;
        const int end = (int)(fit < sums->n ? fit : sums->n);
        from += first * stride * x->strides[2 + last];
        for (int64_t c = 0; is_inside && first < end && c < channels; c++) {
            add_products(sums, w, weight + c * w->strides[1], x, from + c * x->strides[1],
                         stride * x->strides[2 + last], (int)first, end);
        }
    } while (next_tap(walk));
}

enum tandem_status tnd_kernel_conv(const struct tnd_kernel_call *call)
{
    const struct tnd_dims *out = &call->out->shape;
    const int last = call->params->window.n - 1;
    int64_t at = 0;
    if (call->out->n == 0) {
        return TANDEM_OK;
    }
    for (int64_t image = 0; image < out->dims[0]; image++) {
        for (int64_t filter = 0; filter < out->dims[1]; filter++) {
            struct window_walk walk = {.window = &call->params->window};
            do {
                struct sums sums =
                    sums_of(call->in[0].type, out->dims[2 + last] - walk.place[last]);
                conv_strip(call, &walk, image, filter, &sums);
                store_sums(&sums, call->out, at);
                at += sums.n;
                walk.place[last] += sums.n - 1;
            } while (next_place(&walk, out->dims + 2));
        }
    }
    return TANDEM_OK;
}

/* The largest value under a window, or the sum; `base`: offset of the image's channel. */
static void pool_one(const struct tnd_kernel_call *call, struct window_walk *walk, int64_t base,
                     int64_t first, int64_t at)
{
    const struct tnd_view *x = &call->in[0];
    const bool sums = call->params->kind == TANDEM_POOL_SUM;
    double best = sums ? 0.0 : -(double)INFINITY;
    int64_t index = -1;
    memset(walk->tap, 0, sizeof(walk->tap));
    do {
        union tnd_values value;
        int64_t flat = 0;
        const int64_t offset = tap_offset(walk, x->shape.dims + 2, x->strides + 2, &flat);
        if (offset < 0) {
            continue;
        }
        tnd_values_load(
            x->type, (const char *)x->data + (base + offset) * (int64_t)tandem_dtype_bytes(x->type),
            1, 1, TND_LANE_F64, &value);
        if (sums) {
            best += value.f64[0];
        } else if (index < 0 || value.f64[0] > best || (isnan(value.f64[0]) && !isnan(best))) {
            best = value.f64[0];
            index = first + flat;
        }
    } while (next_tap(walk));
    union tnd_values result;
    if (call->params->kind == TANDEM_POOL_ARG_MAX) {
        result.i64[0] = index;
    } else {
        result.f64[0] = best;
    }
    tnd_values_store(
        call->out->type, call->params->kind == TANDEM_POOL_ARG_MAX ? TND_LANE_I64 : TND_LANE_F64,
        &result, 1, (char *)call->out->data + at * (int64_t)tandem_dtype_bytes(call->out->type));
}

enum tandem_status tnd_kernel_pool(const struct tnd_kernel_call *call)
{
    const struct tnd_view *x = &call->in[0];
    const struct tnd_dims *out = &call->out->shape;
    int64_t plane = 1;
    int64_t at = 0;
    if (call->out->n == 0) {
        return TANDEM_OK;
    }
    for (int i = 2; i < x->shape.n; i++) {
        plane *= x->shape.dims[i];
    }
    for (int64_t image = 0; image < out->dims[0]; image++) {
        for (int64_t channel = 0; channel < out->dims[1]; channel++) {
            struct window_walk walk = {.window = &call->params->window};
            const int64_t base = image * x->strides[0] + channel * x->strides[1];
            const int64_t first = (image * out->dims[1] + channel) * plane;
            do {
                pool_one(call, &walk, base, first, at++);
            } while (next_place(&walk, out->dims + 2));
        }
    }
    return TANDEM_OK;
}
