/* SPDX-License-Identifier: MIT
 * The general way to compute a node of a net on several threads: the reference's kernel over ranges
 * of one dimension of the result. */
#include <string.h>

#include "graph/lower_internal.h"

enum { OPERANDS = 4 };

/* Dimension of operand `i` that moves with dimension `d` of the result: -1 none, -2 the operation
 * cannot be divided there. */
static int moves_with(const struct tnd_job *job, int i, int d)
{
    const int axis = job->params->axis;
    const struct tnd_view *in = &job->in[i].view;
    switch (job->op) {
    case TND_NET_REDUCE:
        return d;
    case TND_NET_SOFTMAX:
    case TND_NET_NORM:
    case TND_NET_ARG_REDUCE:
    case TND_NET_SCAN:
    case TND_NET_ARG_SORT:
        return d == axis ? -2 : d;
    case TND_NET_GATHER_ELEMENTS:
        return d == axis ? -2 : d;
    case TND_NET_CONTRACT:
        return d == 0 ? 0 : (d == 1) == (i == 0) ? d : -1;
    case TND_NET_POOL:
        return job->params->kind != TANDEM_POOL_ARG_MAX && d < 2 ? d : -2;
    case TND_NET_CONV:
        return d == 0 ? (i == 0 ? 0 : -1) : -2;
    case TND_NET_GATHER: {
        const int n = job->in[1].view.shape.n;
        if (d < axis) {
            return i == 0 ? d : -1;
        }
        return d < axis + n ? (i == 0 ? -1 : d - axis) : (i == 0 ? d - n + 1 : -1);
    }
    default:
        (void)in;
        return -2;
    }
}

enum tandem_status tnd_job_failed(const struct tnd_job *job, enum tandem_status status,
                                  const struct tandem_error *error)
{
    int none = 0;
    struct tnd_fault *fault = job->fault;
    if (status != TANDEM_OK &&
        atomic_compare_exchange_strong_explicit(&fault->state, &none, 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        fault->error = *error;
        tnd_net_name_error(job->op, job->name, &fault->error);
        atomic_store_explicit(&fault->state, 2, memory_order_release);
    }
    return status;
}

void tnd_lowered_explain(struct tnd_lowered *lowered, struct tandem_error *error)
{
    if (atomic_load_explicit(&lowered->fault.state, memory_order_acquire) == 2) {
        if (error != NULL) {
            *error = lowered->fault.error;
        }
        atomic_store_explicit(&lowered->fault.state, 0, memory_order_release);
    }
}

static enum tandem_status run_range(const struct tnd_work *work, const tandem_tensor *node,
                                    int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    struct tnd_view views[OPERANDS];
    struct tandem_error error = {0};
    int64_t strides[TANDEM_NET_MAX_DIMS];
    struct tnd_array out = {
        .type = job->type, .shape = job->shape, .data = tandem_tensor_data(node)};
    tnd_job_views(job, node, views);
    if (job->split >= 0) {
        for (int i = 0; i < job->n_in; i++) {
            const int d = moves_with(job, i, job->split);
            if (d >= 0) {
                views[i].shape.dims[d] = end - begin;
                views[i].data =
                    (const char *)views[i].data +
                    begin * views[i].strides[d] * (int64_t)tandem_dtype_bytes(views[i].type);
            }
        }
        tnd_dims_strides(&job->shape, strides);
        out.shape.dims[job->split] = end - begin;
        out.data =
            (char *)out.data + begin * strides[job->split] * (int64_t)tandem_dtype_bytes(job->type);
    }
    out.n = tnd_dims_values(&out.shape);
    char *scratch = (char *)tandem_tensor_data(node) +
                    (size_t)tnd_dims_values(&job->shape) * tandem_dtype_bytes(job->type) +
                    (size_t)begin * job->scratch;
    const struct tnd_kernel_call call = {.params = job->params,
                                         .in = views,
                                         .n_in = job->n_in,
                                         .out = &out,
                                         .scratch = job->scratch > 0 ? scratch : NULL,
                                         .error = &error};
    return tnd_job_failed(job, tnd_net_kernel(job->op)(&call), &error);
}

void tnd_lower_ranges(struct tnd_job *job)
{
    int d = 0;
    if (tnd_lower_moves(job)) {
        return;
    }
    while (d < job->shape.n && job->shape.dims[d] == 1) {
        d++;
    }
    job->split = d < job->shape.n && moves_with(job, 0, d) != -2 ? d : -1;
    job->work.n_items = job->split >= 0 ? job->shape.dims[d] : 1;
    if (job->n_in > 0) {
        const struct tnd_dims *const in[] = {&job->in[0].view.shape,
                                             &job->in[job->n_in > 1 ? 1 : 0].view.shape};
        job->scratch = tnd_kernel_scratch(job->op, job->params, in);
    }
    job->work.run = run_range;
    job->is_by_reference = true;
}
