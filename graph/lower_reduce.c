/* SPDX-License-Identifier: MIT
 * F32 reductions, several values at a time. */
#include <stdlib.h>
#include <string.h>

#include "graph/lower_internal.h"

enum { ITEM_VALUES = 8192 };

/* Whether the loop over a dimension with stride `a` is outside that with stride `b`. */
static bool is_outside(int64_t a, int64_t b)
{
    return b != 0 && (a == 0 || llabs(a) > llabs(b));
}

/* Sorts dimensions by memory order, the smallest stride last, and merges contiguous ones.
 * (Otherwise channels last would be read with gaps.) */
static void sort_inner(struct tnd_view *inner)
{
    struct tnd_view sorted = {.type = inner->type};
    int n = 0;
    for (int i = 0; i < inner->shape.n; i++) {
        int at = i;
        for (; at > 0 && is_outside(inner->strides[i], sorted.strides[at - 1]); at--) {
            sorted.strides[at] = sorted.strides[at - 1];
            sorted.shape.dims[at] = sorted.shape.dims[at - 1];
        }
        sorted.strides[at] = inner->strides[i];
        sorted.shape.dims[at] = inner->shape.dims[i];
    }
    for (int i = 0; i < inner->shape.n; i++) {
        const int64_t dim = sorted.shape.dims[i];
        const bool is_one = n > 0 && sorted.strides[n - 1] == dim * sorted.strides[i];
        n += !is_one;
        sorted.shape.dims[n - 1] = is_one ? sorted.shape.dims[n - 1] * dim : dim;
        sorted.strides[n - 1] = sorted.strides[i];
    }
    sorted.shape.n = n;
    *inner = sorted;
}

/* Splits kept and reduced dimensions, dropping extents of 1. */
static void split_axes(struct tnd_work_reduce *reduce, const struct tnd_view *x, unsigned axes)
{
    reduce->inner = (struct tnd_view){.type = x->type};
    for (int i = 0; i < x->shape.n; i++) {
        if (x->shape.dims[i] == 1) {
            continue;
        }
        if (axes >> i & 1) {
            reduce->inner.shape.dims[reduce->inner.shape.n] = x->shape.dims[i];
            reduce->inner.strides[reduce->inner.shape.n++] = x->strides[i];
        } else {
            reduce->kept.dims[reduce->kept.n] = x->shape.dims[i];
            reduce->strides[reduce->kept.n++] = x->strides[i];
        }
    }
    sort_inner(&reduce->inner);
    if (reduce->kept.n == 0) {
        reduce->kept = (struct tnd_dims){1, {1}};
        reduce->strides[0] = 0;
    }
}

static void plan_reduce(struct tnd_work_reduce *reduce)
{
    const int last = reduce->kept.n - 1;
    const int64_t inner = tnd_dims_values(&reduce->inner.shape);
    const bool is_strip = reduce->kept.dims[last] > 1 && reduce->strides[last] == 1;
    reduce->width = is_strip ? TND_LANES : 1;
    reduce->row_units = (reduce->kept.dims[last] + reduce->width - 1) / reduce->width;
    const int64_t row = reduce->kept.dims[last] > 0 ? reduce->kept.dims[last] : 1;
    reduce->n_units = tnd_dims_values(&reduce->kept) / row * reduce->row_units;
    const int64_t values = inner * reduce->width;
    reduce->item_units = values < ITEM_VALUES ? ITEM_VALUES / (values > 0 ? values : 1) : 1;
}

/* Prints the source for devices: a copy whose last dimensions are reduced to one result. */
static void print_source(struct tnd_lowering *l, const struct tnd_work *job,
                         const struct tnd_work_reduce *reduce, tandem_tensor *node)
{
    const struct tnd_view *inner = &reduce->inner;
    const struct tnd_operand *in = &job->in[0];
    struct tnd_fuse fuse = {.n_inputs = 0};
    struct tnd_fuse_space space = {.shape = reduce->kept};
    const struct tnd_fuse_printed printed = {.fuse = &fuse,
                                             .space = &space,
                                             .in = {{.buffer = in->src, .offset = in->offset}},
                                             .n_buffers = node->n_src,
                                             .n_reduced = inner->shape.n,
                                             .reduce = (enum tandem_reduce)reduce->kind};
    if (in->src < 0 || reduce->kept.n + inner->shape.n > TANDEM_NET_MAX_DIMS) {
        return;
    }
    const int x = tnd_fuse_input(&fuse, TANDEM_DTYPE_F32);
    (void)tnd_fuse_step(&fuse, TND_NET_COPY, 0, TANDEM_DTYPE_F32, &x, 1);
    memcpy(space.strides[0], reduce->strides, sizeof(reduce->strides));
    for (int d = 0; d < inner->shape.n; d++) {
        space.strides[0][space.shape.n] = inner->strides[d];
        space.shape.dims[space.shape.n++] = inner->shape.dims[d];
    }
    tnd_lower_print(l, &printed, node);
}

enum tandem_status tnd_lower_reduce(struct tnd_lowering *l, const struct tnd_net_node *node,
                                    bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    struct tnd_work *job = tnd_lower_job(l, 1);
    struct tnd_work_reduce *reduce =
        tnd_arena_alloc(&l->out->arena, sizeof(*reduce), _Alignof(struct tnd_work_reduce));
    tandem_tensor *tensors[1];
    int n = 0;
    if (job == NULL || reduce == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (out->type != TANDEM_DTYPE_F32 || tnd_dims_values(&out->shape) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_operand(l, node->inputs[0], true, &job->in[0], tensors, &n));
    reduce->kind = node->params.kind;
    split_axes(reduce, &job->in[0].view, node->params.axes);
    plan_reduce(reduce);
    job->op = node->op;
    job->type = out->type;
    job->shape = out->shape;
    job->params = &node->params;
    job->of.reduce = reduce;
    job->kind = TND_WORK_REDUCE;
    job->n_items = (reduce->n_units + reduce->item_units - 1) / reduce->item_units;
    *done = true;
    tandem_tensor **made = &l->values[node->output].tensors[TND_LAYOUT_PLAIN];
    TND_TRY(tnd_lower_emit(l, job, tensors, n, made));
    print_source(l, job, reduce, *made);
    return TANDEM_OK;
}
