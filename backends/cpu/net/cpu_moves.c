/* SPDX-License-Identifier: MIT
 * Concatenation, gather and padding along an axis: whole runs of adjacent values are copied. */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

/* Offset of row `outer` of the dimensions before an axis, in values. */
static int64_t row_offset(const struct tnd_view *view, int axis, int64_t outer)
{
    int64_t offset = 0;
    for (int d = axis - 1; d >= 0; d--) {
        offset += outer % view->shape.dims[d] * view->strides[d];
        outer /= view->shape.dims[d];
    }
    return offset;
}

/* Copies `n` indices of an axis from index `at` on, for row `outer`. */
static enum tandem_status copy_places(const struct tnd_view *view, int axis, int64_t outer,
                                      int64_t at, int64_t n, char *to)
{
    struct tnd_view in = *view;
    const int64_t offset = at * in.strides[axis] + row_offset(view, axis, outer);
    int64_t stride = 1;
    bool is_dense = true;
    for (int d = 0; d < axis; d++) {
        in.shape.dims[d] = 1;
    }
    in.shape.dims[axis] = n;
    in.data = (const char *)in.data + offset * (int64_t)tandem_dtype_bytes(in.type);
    for (int d = in.shape.n - 1; d >= axis; d--) {
        is_dense = is_dense && (in.shape.dims[d] == 1 || in.strides[d] == stride);
        stride *= in.shape.dims[d];
    }
    if (is_dense) {
        memcpy(to, in.data, (size_t)stride * tandem_dtype_bytes(in.type));
        return TANDEM_OK;
    }
    struct tnd_array out = {.type = in.type, .shape = in.shape, .n = stride, .data = to};
    const struct tnd_kernel_call copy = {.in = &in, .n_in = 1, .out = &out};
    return tnd_kernel_copy(&copy);
}

/* Copies the result index by index of the axis. */
static enum tandem_status join_places(const struct tnd_work *work, const tandem_tensor *node,
                                      int64_t begin, int64_t end)
{
    const int axis = work->params->axis;
    const int64_t bytes =
        tnd_work_values_behind(&work->shape, axis) * (int64_t)tandem_dtype_bytes(work->type);
    struct tnd_view views[TND_WORK_OPERANDS];
    tnd_work_views(work, node, views);
    for (int64_t item = begin; item < end; item++) {
        int64_t at = item % work->shape.dims[axis];
        int i = 0;
        for (; at >= views[i].shape.dims[axis]; i++) {
            at -= views[i].shape.dims[axis];
        }
        TND_TRY(copy_places(&views[i], axis, item / work->shape.dims[axis], at, 1,
                            (char *)tandem_tensor_data(node) + item * bytes));
    }
    return TANDEM_OK;
}

/* Copies all indices of the axis, operand by operand. */
static enum tandem_status join_rows(const struct tnd_work *work, const tandem_tensor *node,
                                    int64_t begin, int64_t end)
{
    const int axis = work->params->axis;
    const int64_t bytes =
        tnd_work_values_behind(&work->shape, axis) * (int64_t)tandem_dtype_bytes(work->type);
    char *to = (char *)tandem_tensor_data(node) + begin * work->shape.dims[axis] * bytes;
    struct tnd_view views[TND_WORK_OPERANDS];
    tnd_work_views(work, node, views);
    for (int64_t item = begin; item < end; item++) {
        for (int i = 0; i < work->n_in; i++) {
            const int64_t n = views[i].shape.dims[axis];
            if (n > 0) {
                TND_TRY(copy_places(&views[i], axis, item, 0, n, to));
            }
            to += n * bytes;
        }
    }
    return TANDEM_OK;
}

/* ---- short rows ---- */

/* Which few values of each row are copied. */
struct few {
    int n;
    int64_t offsets[TND_JOIN_LONG]; /* in values, from the row's first one */
};

static struct few values_of_row(const struct tnd_view *view, int axis)
{
    struct few out = {.n = 1, .offsets = {0}};
    for (int d = axis; d < view->shape.n; d++) {
        const int before = out.n;
        const int extent = (int)view->shape.dims[d];
        for (int k = before * extent - 1; k >= 0; k--) { /* in place: backwards */
            out.offsets[k] = out.offsets[k / extent] + k % extent * view->strides[d];
        }
        out.n = before * extent;
    }
    return out;
}

/* Copies a few values for each of `n` rows of the result, `row` values apart. Row `i` reads from `i
 * * by_place + indices[i] * by_index` values after `from`; `indices` may be NULL. */
struct move {
    const char *from;
    const int64_t *indices;
    int64_t by_index, by_place;
    int64_t n, row;
};

#define MOVE_FEW(TYPE)                                                                             \
    do {                                                                                           \
        const TYPE *values = (const void *)move->from;                                             \
        TYPE *result = (void *)to;                                                                 \
        for (int64_t i = 0; i < move->n; i++) {                                                    \
            const int64_t index = move->indices != NULL ? move->indices[i] : 0;                    \
            const int64_t at = i * move->by_place + index * move->by_index;                        \
            for (int k = 0; k < few->n; k++) {                                                     \
                result[i * move->row + k] = values[at + few->offsets[k]];                          \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void move_few(const struct few *few, const struct move *move, size_t bytes, char *to)
{
    switch (bytes) {
    case 1:
        MOVE_FEW(uint8_t);
        break;
    case 2:
        MOVE_FEW(uint16_t);
        break;
    case 4:
        MOVE_FEW(uint32_t);
        break;
    default:
        MOVE_FEW(uint64_t);
        break;
    }
}

/* Copies the values of one operand in rows `begin` to `end - 1`, whose length is `row`. */
static void join_few(const struct tnd_view *view, int axis, int64_t begin, int64_t end, char *to,
                     int64_t row)
{
    const struct few few = values_of_row(view, axis);
    const size_t bytes = tandem_dtype_bytes(view->type);
    const int64_t row_places = axis > 0 ? view->shape.dims[axis - 1] : 1;
    for (int64_t r = begin; few.n > 0 && r < end;) {
        const int64_t left = row_places - r % row_places;
        const struct move move = {.from = (const char *)view->data +
                                          row_offset(view, axis, r) * (int64_t)bytes,
                                  .by_place = axis > 0 ? view->strides[axis - 1] : 0,
                                  .n = left < end - r ? left : end - r,
                                  .row = row};
        move_few(&few, &move, bytes, to + (size_t)((r - begin) * row) * bytes);
        r += move.n;
    }
}

/* Groups of short rows: operand by operand, because their values lie far apart. */
static void join_short_rows(const struct tnd_work *work, const tandem_tensor *node, int64_t begin,
                            int64_t end)
{
    const int axis = work->params->axis;
    const int64_t behind = tnd_work_values_behind(&work->shape, axis);
    const int64_t row = behind * work->shape.dims[axis];
    const int64_t rows = tnd_dims_values(&work->shape) / row;
    const int64_t first = begin * TND_JOIN_ROWS;
    const int64_t last = end * TND_JOIN_ROWS < rows ? end * TND_JOIN_ROWS : rows;
    const size_t bytes = tandem_dtype_bytes(work->type);
    char *to = (char *)tandem_tensor_data(node) + (size_t)(first * row) * bytes;
    struct tnd_view views[TND_WORK_OPERANDS];
    tnd_work_views(work, node, views);
    for (int i = 0; i < work->n_in; i++) {
        join_few(&views[i], axis, first, last, to, row);
        to += (size_t)(views[i].shape.dims[axis] * behind) * bytes;
    }
}

enum tandem_status tnd_cpu_work_join(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const int64_t behind = tnd_work_values_behind(&work->shape, work->params->axis);
    (void)kernels;
    if (behind * work->shape.dims[work->params->axis] < TND_JOIN_LONG) {
        join_short_rows(work, node, begin, end);
        return TANDEM_OK;
    }
    return behind >= TND_LANES ? join_places(work, node, begin, end)
                               : join_rows(work, node, begin, end);
}

/* ---- gather ---- */

enum { MOST_INDICES = 256 /* that are read at once */ };

/* Reads indices from offset `offset` of a view on, `stride` apart. */
static void read_run(const struct tnd_view *view, int64_t offset, int64_t stride, int n,
                     int64_t *out)
{
    const char *from = (const char *)view->data + offset * (int64_t)tandem_dtype_bytes(view->type);
    if (view->type == TANDEM_DTYPE_I64) {
        for (int i = 0; i < n; i++) {
            out[i] = ((const int64_t *)(const void *)from)[i * stride];
        }
        return;
    }
    for (int i = 0; i < n; i += TND_LANES) {
        const int now = n - i < TND_LANES ? n - i : TND_LANES;
        union tnd_values lanes;
        tnd_values_load(view->type, from + i * stride * (int64_t)tandem_dtype_bytes(view->type),
                        stride, now, TND_LANE_I64, &lanes);
        memcpy(out + i, lanes.i64, (size_t)now * sizeof(out[0]));
    }
}

/* Reads indices `first` to `first + n - 1` of a view, in its order. */
static void read_indices(const struct tnd_view *view, int64_t first, int n, int64_t *out)
{
    if (tnd_view_has_no_gaps(view)) {
        read_run(view, first, 1, n, out);
        return;
    }
    const int last = view->shape.n - 1;
    const int64_t row = view->shape.dims[last];
    for (int done = 0; done < n;) {
        const int64_t at = (first + done) % row;
        const int now = (int)(row - at < n - done ? row - at : n - done);
        const int64_t begin = row_offset(view, last, (first + done) / row);
        read_run(view, begin + at * view->strides[last], view->strides[last], now, out + done);
        done += now;
    }
}

/* Resolves negative indices, which count from the end. Errors: ARGUMENT for the first one that is
 * out of range. */
static enum tandem_status check_indices(const struct tnd_work *work, int64_t *indices, int n,
                                        int64_t extent)
{
    struct tandem_error error = {0};
    for (int i = 0; i < n; i++) {
        if (indices[i] < 0 || indices[i] >= extent) {
            TND_TRY(tnd_work_failed(work, tnd_kernel_index(&indices[i], extent, &error), &error));
        }
    }
    return TANDEM_OK;
}

/* Gathers index by index; as many together as read the same row of the operand. */
enum tandem_status tnd_cpu_work_gather(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const int axis = work->params->axis;
    const size_t bytes = tandem_dtype_bytes(work->type);
    struct tnd_view views[TND_WORK_OPERANDS];
    int64_t indices[MOST_INDICES];
    (void)kernels;
    tnd_work_views(work, node, views);
    const int64_t n_indices = tnd_dims_values(&views[1].shape);
    const int64_t behind = tnd_work_values_behind(&views[0].shape, axis);
    const bool has_few = behind < TND_JOIN_LONG;
    const struct few few = has_few ? values_of_row(&views[0], axis + 1) : (struct few){.n = 0};
    char *to = (char *)tandem_tensor_data(node) + (size_t)(begin * behind) * bytes;
    for (int64_t item = begin; item < end;) {
        const int64_t at = item % n_indices;
        const int64_t left = n_indices - at < end - item ? n_indices - at : end - item;
        const int n = (int)(left < MOST_INDICES ? left : MOST_INDICES);
        read_indices(&views[1], at, n, indices);
        TND_TRY(check_indices(work, indices, n, views[0].shape.dims[axis]));
        if (has_few) {
            const int64_t from = row_offset(&views[0], axis, item / n_indices);
            const struct move move = {.from = (const char *)views[0].data + from * (int64_t)bytes,
                                      .indices = indices,
                                      .by_index = views[0].strides[axis],
                                      .n = n,
                                      .row = behind};
            move_few(&few, &move, bytes, to);
        }
        for (int i = 0; i < n && !has_few; i++) {
            TND_TRY(copy_places(&views[0], axis, item / n_indices, indices[i], 1,
                                to + (size_t)(i * behind) * bytes));
        }
        to += (size_t)(n * behind) * bytes;
        item += n;
    }
    return TANDEM_OK;
}

/* Row by row of the result; each value has its own index along the axis. */
enum tandem_status tnd_cpu_work_pick(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const int axis = work->params->axis;
    const int last = work->shape.n - 1;
    const int64_t row = work->shape.dims[last];
    const size_t bytes = tandem_dtype_bytes(work->type);
    struct tnd_view views[TND_WORK_OPERANDS];
    int64_t indices[MOST_INDICES];
    (void)kernels;
    tnd_work_views(work, node, views);
    const struct tnd_view *from = &views[0];
    const int64_t by_place = last == axis ? 0 : from->strides[last];
    const struct few one = {.n = 1, .offsets = {0}};
    char *to = (char *)tandem_tensor_data(node) + (size_t)(begin * row) * bytes;
    for (int64_t item = begin; item < end; item++) {
        int64_t offset = 0;
        int64_t rest = item;
        for (int d = last - 1; d >= 0; d--) {
            offset += d == axis ? 0 : rest % work->shape.dims[d] * from->strides[d];
            rest /= work->shape.dims[d];
        }
        for (int64_t at = 0; at < row;) {
            const int n = (int)(row - at < MOST_INDICES ? row - at : MOST_INDICES);
            read_indices(&views[1], item * row + at, n, indices);
            TND_TRY(check_indices(work, indices, n, from->shape.dims[axis]));
            const struct move move = {.from = (const char *)from->data +
                                              (offset + at * by_place) * (int64_t)bytes,
                                      .indices = indices,
                                      .by_index = from->strides[axis],
                                      .by_place = by_place,
                                      .n = n,
                                      .row = 1};
            move_few(&one, &move, bytes, to);
            to += (size_t)n * bytes;
            at += n;
        }
    }
    return TANDEM_OK;
}

/* ---- padding ---- */

/* Stores `n` copies of one value of the type. */
static void fill(char *to, int64_t n, const void *value, size_t bytes)
{
    static const char zero[sizeof(uint64_t)];
    if (memcmp(value, zero, bytes) == 0) {
        memset(to, 0, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)i * bytes, value, bytes);
    }
}

/* The operand's row for row `outer` of the result; -1: all constant. */
static int64_t source_row(const struct tnd_work *work, const struct tnd_dims *in, int axis,
                          int64_t outer)
{
    int64_t source = 0;
    int64_t rows = 1;
    for (int d = axis - 1; d >= 0; d--) {
        const int64_t at = outer % work->shape.dims[d] - work->params->begin[d];
        const int64_t from =
            tnd_kernel_pad_source((enum tandem_pad)work->params->kind, at, in->dims[d]);
        if (from < 0) {
            return -1;
        }
        source += from * rows;
        rows *= in->dims[d];
        outer /= work->shape.dims[d];
    }
    return source;
}

/* Row by row: padding before, the operand's run, padding after. */
enum tandem_status tnd_cpu_work_pad(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const int axis = tnd_work_padded_axis(work);
    const enum tandem_pad mode = (enum tandem_pad)work->params->kind;
    const size_t bytes = tandem_dtype_bytes(work->type);
    const int64_t behind = tnd_work_values_behind(&work->shape, axis);
    const int64_t places = work->shape.dims[axis];
    struct tnd_view views[TND_WORK_OPERANDS];
    (void)kernels;
    tnd_work_views(work, node, views);
    const int64_t n = views[0].shape.dims[axis];
    const int64_t front = work->params->begin[axis];
    char *to = (char *)tandem_tensor_data(node) + (size_t)(begin * places * behind) * bytes;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = source_row(work, &views[0].shape, axis, item);
        for (int64_t at = 0; at < places;) {
            const int64_t from = row < 0 ? -1 : tnd_kernel_pad_source(mode, at - front, n);
            const bool is_inside = from >= 0 && at - front == from;
            int64_t run = 1;
            if (is_inside) {
                run = n - from < places - at ? n - from : places - at;
            } else if (from < 0) {
                run = row >= 0 && at < front && front < places ? front - at : places - at;
            }
            if (from < 0) {
                fill(to, run * behind, views[1].data, bytes);
            } else {
                TND_TRY(copy_places(&views[0], axis, row, from, run, to));
            }
            to += (size_t)(run * behind) * bytes;
            at += run;
        }
    }
    return TANDEM_OK;
}
