/* SPDX-License-Identifier: MIT
 * Convolutions and products of 8-bit integers: builder, packing of weights, reference. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "ggml-like/conv_int8.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

/* ---- shapes ---- */

int64_t tnd_int8_places(const struct tnd_conv_int8 *conv)
{
    int64_t n = conv->images;
    for (int i = 0; i < conv->n; i++) {
        n *= conv->out[i];
    }
    return n;
}

static int64_t taps_of(const struct tnd_conv_int8 *conv)
{
    int64_t n = 1;
    for (int i = 0; i < conv->n; i++) {
        n *= conv->taps[i];
    }
    return n;
}

int64_t tnd_int8_k(const struct tnd_conv_int8 *conv)
{
    return taps_of(conv) * (conv->channels / conv->groups);
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t group_filters(const struct tnd_conv_int8 *conv)
{
    return conv->filters / conv->groups;
}

int64_t tnd_int8_padded_filters(const struct tnd_conv_int8 *conv)
{
    return tnd_int8_is_depthwise(conv) ? up(conv->filters, TND_INT8_PANEL)
                                       : conv->groups * up(group_filters(conv), TND_INT8_PANEL);
}

int64_t tnd_int8_weight_bytes(const struct tnd_conv_int8 *conv)
{
    const int64_t filters = tnd_int8_padded_filters(conv);
    const int64_t taps = taps_of(conv);
    return tnd_int8_is_depthwise(conv) ? filters * (taps * (int64_t)sizeof(float) + up(taps, 4))
                                       : filters * up(tnd_int8_k(conv), TND_INT8_STEP);
}

/* Index of a filter among the padded filters of all panels. */
static int64_t padded_filter(const struct tnd_conv_int8 *conv, int64_t filter)
{
    const int64_t of_group = group_filters(conv);
    return tnd_int8_is_depthwise(conv)
               ? filter
               : filter / of_group * up(of_group, TND_INT8_PANEL) + filter % of_group;
}

/* Index of value `k` of a filter in panels of `panel_k` values of K. */
static int64_t panel_place(int64_t filter, int64_t panel_k, int64_t k)
{
    const int64_t lane = filter % TND_INT8_PANEL;
    return (filter - lane) * panel_k + (k / 4 * TND_INT8_PANEL + lane) * 4 + k % 4;
}

/* A filter's weights, tap by tap, with their range. */
struct weights {
    int32_t *values;
    int32_t low, high;
    uint32_t sum;
};

#define LOOK (low = v < low ? v : low, high = v > high ? v : high)
#define READ_WEIGHTS(store, look)                                                                  \
    for (int64_t t = 0; t < taps; t++) {                                                           \
        const store *from = (const store *)w->data + filter * w->strides[0] + t * stride;          \
        for (int64_t c = 0; c < channels; c++, from += taps * stride) {                            \
            const int32_t v = *from;                                                               \
            look;                                                                                  \
            sum += (uint32_t)v;                                                                    \
            values[t * channels + c] = v;                                                          \
        }                                                                                          \
    }

static void read_weights(const struct tnd_conv_int8 *conv, const struct tnd_view *w, int64_t filter,
                         struct weights *out)
{
    const int64_t taps = taps_of(conv);
    const int64_t channels = conv->channels / conv->groups;
    const int64_t stride = w->strides[1];
    int32_t *values = out->values;
    int32_t low = INT32_MAX;
    int32_t high = INT32_MIN;
    uint32_t sum = 0;
    switch (w->type) {
    case TANDEM_DTYPE_I8:
        low = INT8_MIN;
        high = INT8_MAX;
        READ_WEIGHTS(int8_t, (void)0);
        break;
    case TANDEM_DTYPE_U8:
        READ_WEIGHTS(uint8_t, LOOK);
        break;
    default:
        READ_WEIGHTS(int32_t, LOOK);
        break;
    }
    out->low = low;
    out->high = high;
    out->sum = sum;
}

/* The shift that brings a filter's weights into 8 bits; false: there is none. */
static bool shift_of(const struct tnd_conv_int8 *conv, const struct weights *w, int32_t *out)
{
    const int32_t low = w->low;
    const int32_t high = w->high;
    *out = low < -128 ? -128 - low : high > 127 ? 127 - high : 0;
    if (tnd_int8_is_depthwise(conv)) {
        *out = 0;
        return low >= -255 && high <= 255 && taps_of(conv) <= TND_INT8_TAPS;
    }
    return low >= -65535 && high <= 65535 && low + *out >= -128 && high + *out <= 127;
}

/* Packs one depthwise filter. False: its weights do not fit into bytes. */
static bool pack_depth(const struct tnd_conv_int8 *conv, const struct weights *w, int64_t f,
                       void *out)
{
    const int64_t taps = taps_of(conv);
    const int64_t filters = tnd_int8_padded_filters(conv);
    const int64_t block = f / TND_INT8_PANEL;
    int8_t *bytes = (int8_t *)out + filters * taps * (int64_t)sizeof(float);
    for (int64_t t = 0; t < taps; t++) {
        ((float *)out)[(block * taps + t) * TND_INT8_PANEL + f % TND_INT8_PANEL] =
            (float)w->values[t];
        bytes[panel_place(f, up(taps, 4), t)] = (int8_t)w->values[t];
    }
    return w->low >= -128 && w->high <= 127;
}

bool tnd_int8_pack(struct tnd_conv_int8 *conv, const struct tnd_view *w, void *out,
                   struct tnd_int8_filter *filters)
{
    const int64_t k = tnd_int8_k(conv);
    struct weights row = {.values = tnd_alloc((size_t)k * sizeof(int32_t))};
    bool fits = row.values != NULL;
    conv->has_zero_w = false;
    conv->has_bytes = tnd_int8_is_depthwise(conv);
    for (int64_t f = 0; f < conv->filters && fits; f++) {
        const int64_t to = padded_filter(conv, f);
        int32_t shift;
        read_weights(conv, w, f, &row);
        fits = shift_of(conv, &row, &shift);
        conv->has_zero_w |= shift != 0;
        filters[to].zero_w = shift;
        filters[to].sum_w = (int32_t)(row.sum + (uint32_t)shift * (uint32_t)k);
        if (fits && tnd_int8_is_depthwise(conv)) {
            conv->has_bytes = pack_depth(conv, &row, f, out) && conv->has_bytes;
            continue;
        }
        int8_t *panel = (int8_t *)out + panel_place(to, up(k, TND_INT8_STEP), 0);
        for (int64_t i = 0; i < k && fits; i += 4, panel += 4 * TND_INT8_PANEL) {
            for (int64_t j = 0; j < 4 && i + j < k; j++) {
                panel[j] = (int8_t)(row.values[i + j] + shift);
            }
        }
    }
    tnd_free(row.values);
    return fits;
}

int64_t tnd_int8_place(const struct tnd_conv_int8 *conv, int64_t at, const int64_t *tap)
{
    int64_t place = 0;
    int64_t scale = 1;
    for (int i = conv->n - 1; i >= 0; i--) {
        const int64_t x =
            at % conv->out[i] * conv->stride[i] - conv->begin[i] + tap[i] * conv->dilation[i];
        if (x < 0 || x >= conv->in[i]) {
            return -1;
        }
        place += x * scale;
        scale *= conv->in[i];
        at /= conv->out[i];
    }
    return place + at * scale;
}

/* ---- builder ---- */

static bool has_bytes(tandem_context *context, const char *role, const tandem_tensor *tensor,
                      int64_t bytes)
{
    if (!tnd_build_ready(context, TANDEM_OP_CONV_INT8, role, tensor)) {
        return false;
    }
    if ((int64_t)tandem_tensor_bytes(tensor) < bytes) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "conv_int8", (int64_t)tandem_tensor_bytes(tensor),
                       bytes, "conv_int8: %s has %zu bytes, expected %lld at least", role,
                       tandem_tensor_bytes(tensor), (long long)bytes);
        return false;
    }
    return true;
}

/* Counts the values of x and of the result; false: the counts overflow. */
static bool count_values(const struct tnd_conv_int8 *conv, int64_t *x, int64_t *y)
{
    *x = conv->channels;
    *y = conv->filters;
    bool fits = tnd_mul_i64(*x, conv->images, x) && tnd_mul_i64(*y, conv->images, y);
    for (int i = 0; i < conv->n && fits; i++) {
        fits = tnd_mul_i64(*x, conv->in[i], x) && tnd_mul_i64(*y, conv->out[i], y);
    }
    return fits && *y < INT64_MAX / 8;
}

tandem_tensor *tnd_build_conv_int8(tandem_context *context, const struct tnd_conv_int8 *conv,
                                   tandem_tensor *x, tandem_tensor *w, tandem_tensor *filters,
                                   tandem_tensor *zero_x)
{
    const int64_t bytes = conv->result >= TND_INT8_S8 ? 1 : 4;
    int64_t x_values;
    int64_t y_values;
    if (!count_values(conv, &x_values, &y_values)) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "conv_int8", conv->images, 0,
                              "conv_int8: more values than fit into 64 bits");
    }
    if (!has_bytes(context, "x", x, x_values) ||
        !has_bytes(context, "w", w, tnd_int8_weight_bytes(conv)) ||
        !has_bytes(context, "filters", filters,
                   tnd_int8_padded_filters(conv) * (int64_t)sizeof(struct tnd_int8_filter)) ||
        (zero_x != NULL && !has_bytes(context, "zero_x", zero_x, 1))) {
        return NULL;
    }
    struct tnd_conv_int8 *copy =
        tnd_context_take(context, sizeof(*copy), _Alignof(struct tnd_conv_int8));
    const int64_t ne[TANDEM_MAX_DIMS] = {(y_values * bytes + 3) / 4, 1, 1, 1};
    tandem_tensor *node =
        copy == NULL ? NULL
                     : tnd_build_node(context, TANDEM_OP_CONV_INT8, TANDEM_TYPE_F32, ne, x, w);
    if (node == NULL) {
        return NULL;
    }
    *copy = *conv;
    node->params.conv_int8 = copy;
    node->src[2] = filters;
    node->src[3] = zero_x;
    node->n_src = zero_x != NULL ? 4 : 3;
    return node;
}

int32_t tnd_int8_zero_x(const struct tandem_tensor *node)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    int32_t zero = conv->zero_x;
    if (node->n_src > 3) {
        const void *at = node->src[3]->data;
        zero = conv->x_is_signed ? *(const int8_t *)at : *(const uint8_t *)at;
    }
    return conv->x_is_signed ? zero + 128 : zero;
}

/* ---- reference ---- */

static int weight_of(const struct tandem_tensor *node, int64_t filter, int64_t k)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const void *w = node->src[1]->data;
    if (tnd_int8_is_depthwise(conv)) {
        const int64_t block = filter / TND_INT8_PANEL;
        return (int)((const float *)
                         w)[(block * taps_of(conv) + k) * TND_INT8_PANEL + filter % TND_INT8_PANEL];
    }
    return (
        (const int8_t *)
            w)[panel_place(padded_filter(conv, filter), up(tnd_int8_k(conv), TND_INT8_STEP), k)];
}

static int64_t sum_of(const struct tandem_tensor *node, int64_t place, int64_t filter,
                      int32_t zero_w)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const int64_t channels = conv->channels / conv->groups;
    const int64_t first = filter / group_filters(conv) * channels;
    const int32_t zero_x = tnd_int8_zero_x(node) - (conv->x_is_signed ? 128 : 0);
    int64_t tap[TND_INT8_WINDOW] = {0};
    int64_t sum = 0;
    for (int64_t k = 0; k < tnd_int8_k(conv); k++) {
        int64_t rest = k / channels;
        for (int i = conv->n - 1; i >= 0; i--) {
            tap[i] = rest % conv->taps[i];
            rest /= conv->taps[i];
        }
        const int64_t from = tnd_int8_place(conv, place, tap);
        const int64_t at = from * conv->channels + first + k % channels;
        const int x = from < 0            ? zero_x
                      : conv->x_is_signed ? ((const int8_t *)node->src[0]->data)[at]
                                          : ((const uint8_t *)node->src[0]->data)[at];
        sum += (int64_t)(x - zero_x) * (weight_of(node, filter, k) - zero_w);
    }
    return sum;
}

void tnd_int8_write(struct tandem_tensor *node, int64_t at, int64_t sum,
                    const struct tnd_int8_filter *filter)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const int32_t whole = (int32_t)(uint32_t)(uint64_t)(sum + filter->bias);
    float y = (float)whole * filter->scale + filter->offset;
    y = y > conv->low ? y : conv->low;
    y = y < conv->high ? y : conv->high;
    switch (conv->result) {
    case TND_INT8_I32:
        ((int32_t *)node->data)[at] = whole;
        break;
    case TND_INT8_F32:
        ((float *)node->data)[at] = y;
        break;
    default: /* (two's complement: the same byte, signed or unsigned) */
        ((uint8_t *)node->data)[at] = (uint8_t)((int32_t)nearbyintf(y) + conv->zero_y);
        break;
    }
}

enum tandem_status tnd_ref_conv_int8(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const struct tnd_int8_filter *filters = node->src[2]->data;
    const int64_t n = tnd_int8_places(conv);
    (void)error;
    for (int64_t place = 0; place < n; place++) {
        for (int64_t f = 0; f < conv->filters; f++) {
            const struct tnd_int8_filter *filter = &filters[padded_filter(conv, f)];
            tnd_int8_write(node, place * conv->filters + f, sum_of(node, place, f, filter->zero_w),
                           filter);
        }
    }
    return TANDEM_OK;
}
