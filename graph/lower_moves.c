/* SPDX-License-Identifier: MIT
 * Joining and gathering along an axis: whole runs of values lie side by side in the operands.
 * With channels last, the dimensions are taken in the order in which they lie. */
#include <string.h>

#include "graph/lower_internal.h"

enum { OPERANDS = 4, FEWEST_VALUES = 16 /* of a run that is worth a step of its own */ };

/* Values of one place of an axis. */
static int64_t values_behind(const struct tnd_dims *shape, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < shape->n; d++) {
        n *= shape->dims[d];
    }
    return n;
}

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
static enum tandem_status run_concat(const struct tnd_work *work, const tandem_tensor *node,
                                     int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const int axis = job->params->axis;
    const int64_t bytes = values_behind(&job->shape, axis) * (int64_t)tandem_dtype_bytes(job->type);
    struct tnd_view views[OPERANDS];
    tnd_job_views(job, node, views);
    for (int64_t item = begin; item < end; item++) {
        int64_t at = item % job->shape.dims[axis];
        int i = 0;
        for (; at >= views[i].shape.dims[axis]; i++) {
            at -= views[i].shape.dims[axis];
        }
        TND_TRY(copy_places(&views[i], axis, item / job->shape.dims[axis], at, 1,
                            (char *)tandem_tensor_data(node) + item * bytes));
    }
    return TANDEM_OK;
}

/* All places of the axis, one operand after the other. */
static enum tandem_status run_rows(const struct tnd_work *work, const tandem_tensor *node,
                                   int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const int axis = job->params->axis;
    const int64_t bytes = values_behind(&job->shape, axis) * (int64_t)tandem_dtype_bytes(job->type);
    char *to = (char *)tandem_tensor_data(node) + begin * job->shape.dims[axis] * bytes;
    struct tnd_view views[OPERANDS];
    tnd_job_views(job, node, views);
    for (int64_t item = begin; item < end; item++) {
        for (int i = 0; i < job->n_in; i++) {
            const int64_t n = views[i].shape.dims[axis];
            if (n > 0) {
                TND_TRY(copy_places(&views[i], axis, item, 0, n, to));
            }
            to += n * bytes;
        }
    }
    return TANDEM_OK;
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
static enum tandem_status run_gather(const struct tnd_work *work, const tandem_tensor *node,
                                     int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const int axis = job->params->axis;
    struct tnd_view views[OPERANDS];
    struct tandem_error error = {0};
    tnd_job_views(job, node, views);
    const int64_t n = tnd_dims_values(&views[1].shape);
    const int64_t bytes =
        values_behind(&views[0].shape, axis) * (int64_t)tandem_dtype_bytes(job->type);
    for (int64_t item = begin; item < end; item++) {
        int64_t index = index_at(&views[1], item % n);
        TND_TRY(tnd_job_failed(job, tnd_kernel_index(&index, views[0].shape.dims[axis], &error),
                               &error));
        TND_TRY(copy_places(&views[0], axis, item / n, index, 1,
                            (char *)tandem_tensor_data(node) + item * bytes));
    }
    return TANDEM_OK;
}

bool tnd_lower_moves(struct tnd_job *job)
{
    const int axis = job->params->axis;
    const int64_t values = tnd_dims_values(&job->shape);
    if (values == 0 || (job->op != TND_NET_CONCAT && job->op != TND_NET_GATHER)) {
        return false;
    }
    const int64_t behind =
        values_behind(job->op == TND_NET_GATHER ? &job->in[0].view.shape : &job->shape, axis);
    if (job->op == TND_NET_GATHER) {
        job->work.n_items = values / behind;
        job->work.run = run_gather;
        return behind >= FEWEST_VALUES;
    }
    const bool has_long_runs = behind >= TND_LANES;
    const int64_t row = behind * job->shape.dims[axis];
    job->work.n_items = values / (has_long_runs ? behind : row);
    job->work.run = has_long_runs ? run_concat : run_rows;
    return has_long_runs || row >= FEWEST_VALUES;
}

enum tnd_net_layout tnd_lower_moves_layout(const struct tnd_lowering *l,
                                           const struct tnd_net_node *node)
{
    const int first = node->inputs[0];
    const struct tnd_lower_value *base = tnd_lower_value(l, first);
    const bool is_move =
        node->op == TND_NET_CONCAT ||
        (node->op == TND_NET_GATHER && tnd_net_value(l->net, node->inputs[1])->shape.n == 1);
    return is_move && tnd_net_value(l->net, first)->base == first &&
                   base->tensors[TND_LAYOUT_LAST] != NULL && base->tensors[TND_LAYOUT_PLAIN] == NULL
               ? TND_LAYOUT_LAST
               : TND_LAYOUT_PLAIN;
}

static void turn_view(struct tnd_view *view, const int *order)
{
    const struct tnd_view old = *view;
    for (int d = 0; d < view->shape.n; d++) {
        view->shape.dims[d] = old.shape.dims[order[d]];
        view->strides[d] = old.strides[order[d]];
    }
}

bool tnd_lower_turn(struct tnd_lowering *l, struct tnd_job *job, enum tnd_net_layout layout)
{
    struct tnd_net_params *params =
        tnd_arena_alloc(&l->out->arena, sizeof(*params), _Alignof(struct tnd_net_params));
    int order[TANDEM_NET_MAX_DIMS];
    struct tnd_view result = {.shape = job->shape};
    if (params == NULL) {
        return false;
    }
    tnd_lower_order(&job->shape, layout, order);
    turn_view(&result, order);
    *params = *job->params;
    while (order[params->axis] != job->params->axis) {
        params->axis = params->axis + 1 < job->shape.n ? params->axis + 1 : 0;
    }
    for (int i = 0; i < (job->op == TND_NET_GATHER ? 1 : job->n_in); i++) {
        turn_view(&job->in[i].view, order);
    }
    job->params = params;
    job->shape = result.shape;
    return true;
}
