/* SPDX-License-Identifier: MIT
 * Joining and gathering along an axis: whole runs of values lie side by side in the operands. */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

/* Copies `n` places of an axis from place `at` on, of one row of places. */
static enum tandem_status copy_places(const struct tnd_view *view, int axis, int64_t outer,
                                      int64_t at, int64_t n, char *to)
{
    struct tnd_view in = *view;
    int64_t offset = at * in.strides[axis];
    int64_t stride = 1;
    bool is_dense = true;
    for (int d = axis - 1; d >= 0; d--) {
        offset += outer % in.shape.dims[d] * in.strides[d];
        outer /= in.shape.dims[d];
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

/* One place of the axis of the result after the other. */
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

/* All places of the axis, one operand after the other. */
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

enum tandem_status tnd_cpu_work_join(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    return tnd_work_values_behind(&work->shape, work->params->axis) >= TND_LANES
               ? join_places(work, node, begin, end)
               : join_rows(work, node, begin, end);
}

static int64_t index_at(const struct tnd_view *view, int64_t i)
{
    union tnd_values strip;
    int64_t offset = 0;
    for (int d = view->shape.n - 1; d >= 0; d--) {
        offset += i % view->shape.dims[d] * view->strides[d];
        i /= view->shape.dims[d];
    }
    tnd_values_load(view->type,
                    (const char *)view->data + offset * (int64_t)tandem_dtype_bytes(view->type), 1,
                    1, TND_LANE_I64, &strip);
    return strip.i64[0];
}

/* One index after the other. */
enum tandem_status tnd_cpu_work_gather(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    const int axis = work->params->axis;
    struct tnd_view views[TND_WORK_OPERANDS];
    struct tandem_error error = {0};
    tnd_work_views(work, node, views);
    const int64_t n = tnd_dims_values(&views[1].shape);
    const int64_t bytes =
        tnd_work_values_behind(&views[0].shape, axis) * (int64_t)tandem_dtype_bytes(work->type);
    for (int64_t item = begin; item < end; item++) {
        int64_t index = index_at(&views[1], item % n);
        TND_TRY(tnd_work_failed(work, tnd_kernel_index(&index, views[0].shape.dims[axis], &error),
                                &error));
        TND_TRY(copy_places(&views[0], axis, item / n, index, 1,
                            (char *)tandem_tensor_data(node) + item * bytes));
    }
    return TANDEM_OK;
}
