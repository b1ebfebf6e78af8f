/* SPDX-License-Identifier: MIT
 * Concatenation, gathering and padding along an axis in contiguous runs of values. With channels
 * last, dimensions are taken in their order in memory. */
#include "graph/lower_internal.h"

static bool is_move(enum tnd_net_op op)
{
    return op == TND_NET_CONCAT || op == TND_NET_GATHER || op == TND_NET_PAD;
}

bool tnd_lower_moves(struct tnd_work *job)
{
    const int axis = job->params->axis;
    const int64_t values = tnd_dims_values(&job->shape);
    if (values > 0 && job->op == TND_NET_GATHER_ELEMENTS) {
        job->n_items = values / job->shape.dims[job->shape.n - 1];
        job->kind = TND_WORK_PICK;
        return true;
    }
    if (values == 0 || !is_move(job->op)) {
        return false;
    }
    if (job->op == TND_NET_PAD) {
        const int padded = tnd_work_padded_axis(job);
        job->n_items =
            values / job->shape.dims[padded] / tnd_work_values_behind(&job->shape, padded);
        job->kind = TND_WORK_PAD;
        return true;
    }
    const int64_t behind = tnd_work_values_behind(
        job->op == TND_NET_GATHER ? &job->in[0].view.shape : &job->shape, axis);
    if (job->op == TND_NET_GATHER) {
        job->n_items = values / behind;
        job->kind = TND_WORK_GATHER;
        return true;
    }
    const bool has_long_runs = behind >= TND_LANES;
    const int64_t row = behind * job->shape.dims[axis];
    job->n_items = values / (has_long_runs ? behind : row);
    job->n_items =
        row < TND_JOIN_LONG ? (job->n_items + TND_JOIN_ROWS - 1) / TND_JOIN_ROWS : job->n_items;
    job->kind = TND_WORK_JOIN;
    return true;
}

enum tnd_net_layout tnd_lower_moves_layout(const struct tnd_lowering *l,
                                           const struct tnd_net_node *node)
{
    const bool keeps_order =
        is_move(node->op) &&
        (node->op != TND_NET_GATHER || tnd_net_value(l->net, node->inputs[1])->shape.n == 1);
    return keeps_order && tnd_lower_lies_last(l, node->inputs[0]) ? TND_LAYOUT_LAST
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

bool tnd_lower_turn(struct tnd_lowering *l, struct tnd_work *job, enum tnd_net_layout layout)
{
    struct tnd_net_params *params =
        tnd_arena_alloc(&l->out->arena, sizeof(*params), _Alignof(struct tnd_net_params));
    int order[TANDEM_NET_MAX_DIMS];
    struct tnd_view result = {.shape = job->shape};
    if (params == NULL) {
        return false;
    }
    tnd_net_order(&job->shape, layout, order);
    turn_view(&result, order);
    *params = *job->params;
    while (order[params->axis] != job->params->axis) {
        params->axis = params->axis + 1 < job->shape.n ? params->axis + 1 : 0;
    }
    for (int d = 0; job->op == TND_NET_PAD && d < job->shape.n; d++) {
        params->begin[d] = job->params->begin[order[d]];
    }
    for (int i = 0; i < (job->op == TND_NET_CONCAT ? job->n_in : 1); i++) {
        turn_view(&job->in[i].view, order);
    }
    job->params = params;
    job->shape = result.shape;
    return true;
}
