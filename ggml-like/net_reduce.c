/* SPDX-License-Identifier: MIT
 * Reference kernels along axes: sums and their like, the place of the largest, running sums,
 * sorting. Floats are summed in double. */
#include <math.h>
#include <string.h>

#include "base/small_float.h"
#include "ggml-like/net_kernels.h"

/* Value `index` of a line of a view that begins at `from`, in the form of a lane. */
static void load_one(const struct tnd_view *view, const void *from, int64_t at, enum tnd_lane lane,
                     union tnd_values *out)
{
    tnd_values_load(view->type, (const char *)from + at * (int64_t)tandem_dtype_bytes(view->type),
                    1, 1, lane, out);
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

/* The largest float of a type; that of types that have infinity. */
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
        return ldexp(1.0, (int)bits - 1); /* (stored as the nearest: one less) */
    case TND_KIND_UNSIGNED:
        return ldexp(1.0, (int)bits);
    default:
        return 1.0;
    }
}

/* What nothing reduces to. */
static void load_neutral(int kind, enum tandem_dtype type, enum tnd_lane lane,
                         union tnd_values *out)
{
    const double value = kind == TANDEM_REDUCE_SUM    ? 0.0
                         : kind == TANDEM_REDUCE_PROD ? 1.0
                         : kind == TANDEM_REDUCE_MAX  ? lowest(type)
                                                      : highest(type);
    tnd_values_load(TANDEM_DTYPE_F64, &value, 1, 1, lane, out);
    if (kind == TANDEM_REDUCE_MIN && tnd_dtype_kind(type) == TND_KIND_SIGNED) {
        out->i64[0] = type == TANDEM_DTYPE_I64 ? INT64_MAX : (int64_t)value - 1;
    } else if (kind == TANDEM_REDUCE_MIN && tnd_dtype_kind(type) == TND_KIND_UNSIGNED) {
        out->u64[0] = type == TANDEM_DTYPE_U64 ? UINT64_MAX : (uint64_t)value - 1;
    }
}

/* The part of a view along which values are reduced, and the part that stays. */
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

static void reduce_one(const struct tnd_kernel_call *call, struct tnd_view *inner,
                       enum tnd_lane lane, void *to)
{
    union tnd_values sum;
    union tnd_values value;
    struct tnd_walk walk;
    const int64_t stride = inner->shape.n == 0 ? 0 : inner->strides[inner->shape.n - 1];
    load_neutral(call->params->kind, inner->type, lane, &sum);
    for (tnd_walk_begin(&walk, &inner->shape); !walk.is_done; tnd_walk_next(&walk)) {
        const void *row = tnd_walk_place(&walk, inner);
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            load_one(inner, row, i * stride, lane, &value);
            tnd_binary_strip(binary_of(call->params->kind), lane, &sum, &value, 1, 64, &sum);
        }
    }
    tnd_values_store(call->out->type, lane, &sum, 1, to);
}

/* The place in `in` of the value of the result at index `at`; extents of 1 there are skipped. */
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

/* Calls `each` with the place of every line of in[0]; `line` is its number among the others in
 * row-major order, `inner` the count of values behind the axis. */
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

/* Whether a comes before b; NaN is above all. */
static bool is_before(enum tnd_lane lane, const union tnd_values *a, const union tnd_values *b,
                      bool largest_first)
{
    switch (lane) {
    case TND_LANE_F64: {
        const double x = largest_first ? b->f64[0] : a->f64[0];
        const double y = largest_first ? a->f64[0] : b->f64[0];
        return x < y || (isnan(y) && !isnan(x));
    }
    case TND_LANE_U64:
        return largest_first ? a->u64[0] > b->u64[0] : a->u64[0] < b->u64[0];
    default:
        return largest_first ? a->i64[0] > b->i64[0] : a->i64[0] < b->i64[0];
    }
}

static enum tandem_status arg_line(const struct tnd_kernel_call *call, const struct line *line)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    const bool is_max = call->params->kind == TANDEM_REDUCE_MAX;
    union tnd_values best;
    union tnd_values value;
    int64_t chosen = 0;
    load_one(in, line->in, 0, lane, &best);
    for (int64_t i = 1; i < line->n; i++) {
        load_one(in, line->in, i * line->in_stride, lane, &value);
        const bool is_better = is_before(lane, &value, &best, is_max);
        if (is_better || (call->params->picks_last && !is_before(lane, &best, &value, is_max))) {
            best = value;
            chosen = i;
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
    union tnd_values sum = {.u64 = {0}};
    union tnd_values value;
    for (int64_t k = 0; k < line->n; k++) {
        const int64_t i = call->params->is_reverse ? line->n - 1 - k : k;
        char *to = line->out + i * line->out_stride * bytes;
        if (call->params->is_exclusive) {
            tnd_values_store(call->out->type, lane, &sum, 1, to);
        }
        load_one(in, line->in, i * line->in_stride, lane, &value);
        tnd_binary_strip(TANDEM_BINARY_ADD, lane, &sum, &value, 1, 64, &sum);
        if (!call->params->is_exclusive) {
            tnd_values_store(call->out->type, lane, &sum, 1, to);
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
    union {
        double f64;
        int64_t i64;
        uint64_t u64;
    } key;
    int64_t index;
};

static bool item_before(enum tnd_lane lane, const struct sort_item *a, const struct sort_item *b,
                        bool largest_first)
{
    union tnd_values x;
    union tnd_values y;
    memcpy(&x, &a->key, sizeof(a->key));
    memcpy(&y, &b->key, sizeof(b->key));
    return is_before(lane, &x, &y, largest_first);
}

/* Merge sort: equal items keep their order. `other` has place for n items. */
static void sort_items(struct sort_item *items, struct sort_item *other, int64_t n,
                       enum tnd_lane lane, bool largest_first)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t from = 0; from < n; from += 2 * width) {
            const int64_t middle = from + width < n ? from + width : n;
            const int64_t end = from + 2 * width < n ? from + 2 * width : n;
            int64_t a = from;
            int64_t b = middle;
            for (int64_t i = from; i < end; i++) {
                const bool takes_b =
                    b < end &&
                    (a >= middle || item_before(lane, &items[b], &items[a], largest_first));
                other[i] = items[takes_b ? b++ : a++];
            }
        }
        memcpy(items, other, (size_t)n * sizeof(items[0]));
    }
}

static enum tandem_status sort_line(const struct tnd_kernel_call *call, const struct line *line)
{
    const struct tnd_view *in = &call->in[0];
    const enum tnd_lane lane = sum_lane(in->type);
    struct sort_item *items = call->scratch;
    if (line->n == 0) {
        return TANDEM_OK; /* without scratch */
    }
    for (int64_t i = 0; i < line->n; i++) {
        union tnd_values value;
        load_one(in, line->in, i * line->in_stride, lane, &value);
        memcpy(&items[i].key, &value, sizeof(items[i].key));
        items[i].index = i;
    }
    sort_items(items, items + line->n, line->n, lane, call->params->is_reverse);
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
