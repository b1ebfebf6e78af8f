/* SPDX-License-Identifier: MIT
 * Reference kernels along axes: reductions, argmax, running sums, sorting. Floats are summed in
 * double. */
#include <math.h>
#include <string.h>

#include "base/small_float.h"
#include "ggml-like/net_kernels.h"

/* Loads values from `first` on, of a line of `n_all` values that begins at `from`. Returns how
 * many. */
static int strip_of(const struct tnd_view *view, const void *from, int64_t first, int64_t n_all,
                    int64_t stride, enum tnd_lane lane, union tnd_values *out)
{
    const int n = (int)(n_all - first < TND_LANES ? n_all - first : TND_LANES);
    tnd_values_load(view->type,
                    (const char *)from + first * stride * (int64_t)tandem_dtype_bytes(view->type),
                    stride, n, lane, out);
    return n;
}

/* Sums of floats are kept in double. */
static enum tnd_lane sum_lane(enum tandem_dtype type)
{
    const enum tnd_lane lane = tnd_lane_of(type);
    return lane == TND_LANE_F32 ? TND_LANE_F64 : lane;
}

static enum tandem_binary binary_of(int kind)
{
    static const enum tandem_binary kinds[] = {[TANDEM_REDUCE_SUM] = TANDEM_BINARY_ADD,
                                               [TANDEM_REDUCE_PROD] = TANDEM_BINARY_MUL,
                                               [TANDEM_REDUCE_MAX] = TANDEM_BINARY_MAX,
                                               [TANDEM_REDUCE_MIN] = TANDEM_BINARY_MIN};
    return kinds[kind];
}

/* The largest finite float of a type, for types that have infinity. */
static double highest_float(enum tandem_dtype type)
{
    const struct tnd_small_float *small = tnd_dtype_small(type);
    return small == NULL || small->special == TND_SMALL_INFINITE
               ? (double)INFINITY
               : (double)tnd_small_to_f32(*small, (uint8_t)tnd_small_most(*small));
}

/* The smallest and the largest value of a type. */
static double lowest(enum tandem_dtype type)
{
    const unsigned bits = (unsigned)tandem_dtype_bytes(type) * 8;
    switch (tnd_dtype_kind(type)) {
    case TND_KIND_FLOAT:
        return type == TANDEM_DTYPE_F8E8M0 ? 0.0 : -highest_float(type);
    case TND_KIND_SIGNED:
        return -ldexp(1.0, (int)bits - 1);
    default:
        return 0.0;
    }
}

static double highest(enum tandem_dtype type)
{
    const unsigned bits = (unsigned)tandem_dtype_bytes(type) * 8;
    switch (tnd_dtype_kind(type)) {
    case TND_KIND_FLOAT:
        return highest_float(type);
    case TND_KIND_SIGNED:
        return ldexp(1.0, (int)bits - 1); /* (stored as the nearest value: one less) */
    case TND_KIND_UNSIGNED:
        return ldexp(1.0, (int)bits);
    default:
        return 1.0;
    }
}

/* Copies the first lane to all others. */
static void spread(union tnd_values *lanes)
{
    for (int i = 1; i < TND_LANES; i++) {
        lanes->u64[i] = lanes->u64[0];
    }
}

/* Fills all lanes with the neutral element of a reduction. */
static void load_neutral(int kind, enum tandem_dtype type, enum tnd_lane lane,
                         union tnd_values *out)
{
    const double value = kind == TANDEM_REDUCE_SUM    ? 0.0
                         : kind == TANDEM_REDUCE_PROD ? 1.0
                         : kind == TANDEM_REDUCE_MAX  ? lowest(type)
                                                      : highest(type);
    tnd_values_load(TANDEM_DTYPE_F64, &value, 0, TND_LANES, lane, out);
    if (kind == TANDEM_REDUCE_MIN && tnd_dtype_kind(type) == TND_KIND_SIGNED) {
        out->i64[0] = type == TANDEM_DTYPE_I64 ? INT64_MAX : (int64_t)value - 1;
        spread(out);
    } else if (kind == TANDEM_REDUCE_MIN && tnd_dtype_kind(type) == TND_KIND_UNSIGNED) {
        out->u64[0] = type == TANDEM_DTYPE_U64 ? UINT64_MAX : (uint64_t)value - 1;
        spread(out);
    }
}

/* Splits a view into the axes that are reduced and those that stay. */
static void split_axes(const struct tnd_view *in, unsigned axes, struct tnd_view *inner)
{
    *inner = *in;
    inner->shape.n = 0;
    for (int i = 0; i < in->shape.n; i++) {
        if (axes >> i & 1) {
            inner->shape.dims[inner->shape.n] = in->shape.dims[i];
            inner->strides[inner->shape.n++] = in->strides[i];
        }
    }
}

/* Each lane sums every TND_LANES-th value of a row; the lanes are added at the end. */
static void reduce_one(const struct tnd_kernel_call *call, struct tnd_view *inner,
                       enum tnd_lane lane, void *to)
{
    const enum tandem_binary kind = binary_of(call->params->kind);
    union tnd_values sums, strip;
    struct tnd_walk walk;
    const int64_t stride = inner->shape.n == 0 ? 0 : inner->strides[inner->shape.n - 1];
    load_neutral(call->params->kind, inner->type, lane, &sums);
    for (tnd_walk_begin(&walk, &inner->shape); !walk.is_done; tnd_walk_next(&walk)) {
        const void *row = tnd_walk_place(&walk, inner);
        for (int64_t i = 0; i < tnd_walk_row(&walk); i += TND_LANES) {
            const int n = strip_of(inner, row, i, tnd_walk_row(&walk), stride, lane, &strip);
            tnd_binary_strip(kind, lane, &sums, &strip, n, 64, &sums);
        }
    }
    for (int i = 1; i < TND_LANES; i++) {
        strip.u64[0] = sums.u64[i];
        tnd_binary_strip(kind, lane, &sums, &strip, 1, 64, &sums);
    }
    tnd_values_store(call->out->type, lane, &sums, 1, to);
}

/* Address in `in` of the value for the result's current index; extents of 1 in `in` are skipped. */
static const void *place_of(const struct tnd_view *in, const struct tnd_walk *walk, int64_t column)
{
    int64_t at = 0;
    for (int i = 0; i < in->shape.n; i++) {
        at += (i == in->shape.n - 1 ? column : walk->at[i]) * in->strides[i];
    }
    return (const char *)in->data + at * (int64_t)tandem_dtype_bytes(in->type);
}

enum tandem_status tnd_kernel_reduce(const struct tnd_kernel_call *call)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    struct tnd_view inner;
    struct tnd_walk walk;
    char *to = call->out->data;
    split_axes(in, call->params->axes, &inner);
    for (tnd_walk_begin(&walk, &call->out->shape); !walk.is_done; tnd_walk_next(&walk)) {
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            inner.data = place_of(in, &walk, i);
            reduce_one(call, &inner, lane, to);
            to += tandem_dtype_bytes(call->out->type);
        }
    }
    return TANDEM_OK;
}

/* ---- lines: all values along one axis ---- */

/* Calls `each` for every line of in[0]; `line` is its index among the lines in row-major order,
 * `inner` the number of values behind the axis. */
struct line {
    const void *in;
    int64_t n, in_stride;
    char *out;
    int64_t out_stride; /* of the result, whose axis may have another extent */
};

static enum tandem_status each_line(const struct tnd_kernel_call *call,
                                    enum tandem_status (*each)(const struct tnd_kernel_call *call,
                                                               const struct line *line))
{
    const struct tnd_view *in = &call->in[0];
    const int axis = call->params->axis;
    struct tnd_dims others = in->shape;
    int64_t out_strides[TANDEM_NET_MAX_DIMS];
    struct tnd_walk walk;
    tnd_dims_strides(&call->out->shape, out_strides);
    others.dims[axis] = 1;
    for (tnd_walk_begin(&walk, &others); !walk.is_done; tnd_walk_next(&walk)) {
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            int64_t at = 0;
            for (int k = 0; k < others.n; k++) {
                at += (k == others.n - 1 ? i : walk.at[k]) * out_strides[k];
            }
            const struct line line = {.in = place_of(in, &walk, i),
                                      .n = in->shape.dims[axis],
                                      .in_stride = in->strides[axis],
                                      .out = (char *)call->out->data +
                                             at * (int64_t)tandem_dtype_bytes(call->out->type),
                                      .out_stride = out_strides[axis]};
            TND_TRY(each(call, &line));
        }
    }
    return TANDEM_OK;
}

/* A key that ascends in sort order: by value, or descending by value if `is_turned`. NaN is above
 * all. */
static uint64_t order_of(enum tnd_lane lane, const union tnd_values *values, int i, bool is_turned)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t order = values->u64[i];
    if (lane == TND_LANE_F64) {
        const double v = values->f64[i] + 0.0; /* turns -0 into 0 */
        memcpy(&order, &v, sizeof(order));
        order = isnan(v) ? UINT64_MAX : order & sign ? ~order : order | sign;
    } else if (lane == TND_LANE_I64) {
        order ^= sign;
    }
    return is_turned ? ~order : order;
}

static enum tandem_status arg_line(const struct tnd_kernel_call *call, const struct line *line)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    const bool is_max = call->params->kind == TANDEM_REDUCE_MAX;
    const bool picks_last = call->params->picks_last;
    union tnd_values strip;
    uint64_t best = UINT64_MAX;
    int64_t chosen = 0;
    for (int64_t first = 0; first < line->n; first += TND_LANES) {
        const int n = strip_of(in, line->in, first, line->n, line->in_stride, lane, &strip);
        for (int i = 0; i < n; i++) {
            const uint64_t order = order_of(lane, &strip, i, is_max);
            if (order < best || (picks_last && order == best)) {
                best = order;
                chosen = first + i;
            }
        }
    }
    memcpy(line->out, &chosen, sizeof(chosen));
    return TANDEM_OK;
}

enum tandem_status tnd_kernel_arg_reduce(const struct tnd_kernel_call *call)
{
    return each_line(call, arg_line);
}

static enum tandem_status scan_line(const struct tnd_kernel_call *call, const struct line *line)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    const int64_t bytes = (int64_t)tandem_dtype_bytes(call->out->type);
    const bool is_reverse = call->params->is_reverse;
    union tnd_values sum = {.u64 = {0}}, value = {.u64 = {0}}, strip;
    for (int64_t first = 0; first < line->n; first += TND_LANES) {
        const int64_t left = line->n - first;
        const int64_t from = !is_reverse ? first : left < TND_LANES ? 0 : left - TND_LANES;
        const int n = strip_of(in, line->in, from, is_reverse ? left : line->n, line->in_stride,
                               lane, &strip);
        for (int k = 0; k < n; k++) {
            const int i = is_reverse ? n - 1 - k : k;
            char *to = line->out + (from + i) * line->out_stride * bytes;
            if (call->params->is_exclusive) {
                tnd_values_store(call->out->type, lane, &sum, 1, to);
            }
            value.u64[0] = strip.u64[i];
            tnd_binary_strip(TANDEM_BINARY_ADD, lane, &sum, &value, 1, 64, &sum);
            if (!call->params->is_exclusive) {
                tnd_values_store(call->out->type, lane, &sum, 1, to);
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_kernel_scan(const struct tnd_kernel_call *call)
{
    return each_line(call, scan_line);
}

/* ---- sorting ---- */

struct sort_item {
    uint64_t order;
    int64_t index;
};

enum { FEW_ITEMS = 32 };

static void sort_few(struct sort_item *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const struct sort_item item = items[i];
        int64_t at = i;
        for (; at > 0 && items[at - 1].order > item.order; at--) {
            items[at] = items[at - 1];
        }
        items[at] = item;
    }
}

/* Radix sort by bytes, the lowest first; stable. `changes`: bits that differ among the items.
 * `other`: scratch for n items. Returns where the sorted items are. */
static struct sort_item *sort_items(struct sort_item *items, struct sort_item *other, int64_t n,
                                    uint64_t changes)
{
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t places[256] = {0};
        if ((changes >> shift & 0xff) == 0) {
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            places[items[i].order >> shift & 0xff]++;
        }
        for (int64_t k = 0, at = 0; k < 256; k++) {
            const int64_t count = places[k];
            places[k] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++) {
            other[places[items[i].order >> shift & 0xff]++] = items[i];
        }
        struct sort_item *const made = other;
        other = items;
        items = made;
    }
    return items;
}

static enum tandem_status sort_line(const struct tnd_kernel_call *call, const struct line *line)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    struct sort_item *items = call->scratch;
    uint64_t changes = 0;
    union tnd_values strip;
    for (int64_t first = 0; first < line->n; first += TND_LANES) {
        const int n = strip_of(in, line->in, first, line->n, line->in_stride, lane, &strip);
        for (int i = 0; i < n; i++) {
            items[first + i].order = order_of(lane, &strip, i, call->params->is_reverse);
            items[first + i].index = first + i;
            changes |= items[first + i].order ^ items[0].order;
        }
    }
    if (line->n <= FEW_ITEMS) {
        sort_few(items, line->n);
    } else {
        items = sort_items(items, items + line->n, line->n, changes);
    }
    for (int64_t i = 0; i < line->n; i++) {
        memcpy(line->out + i * line->out_stride * 8, &items[i].index, sizeof(int64_t));
    }
    return TANDEM_OK;
}

size_t tnd_kernel_sort_scratch(int64_t n)
{
    return 2 * (size_t)n * sizeof(struct sort_item);
}

enum tandem_status tnd_kernel_arg_sort(const struct tnd_kernel_call *call)
{
    return each_line(call, sort_line);
}
