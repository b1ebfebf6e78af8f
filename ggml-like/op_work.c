/* SPDX-License-Identifier: MIT
 * Operations of nets: builder, operands, run-time errors. */
#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/work.h"

const struct tnd_work_text *tnd_work_text(struct tnd_work_source *source)
{
    /* acquire: a thread that sees a text sees its bytes; pairs with the exchange */
    struct tnd_work_text *text = atomic_load_explicit(&source->text, memory_order_acquire);
    struct tnd_work_text *made = text == NULL ? source->print(source) : NULL;
    if (made != NULL && atomic_compare_exchange_strong(&source->text, &text, made)) {
        return made;
    }
    tnd_free(made); /* another thread was first */
    return text;
}

tandem_tensor *tnd_build_work(tandem_context *context, enum tandem_op op, int64_t n_values,
                              tandem_tensor *const *src, int n_src, struct tnd_work *work)
{
    int64_t extents[TANDEM_MAX_DIMS];
    TND_ASSERT(tnd_op_traits(op)->family == TND_OP_work && n_src >= 1 && n_src <= TANDEM_MAX_SRC);
    if (context == NULL || context->error.status != TANDEM_OK) {
        return NULL;
    }
    for (int i = 0; i < n_src; i++) {
        if (!tnd_build_ready(context, op, "an operand", src[i])) {
            return NULL;
        }
    }
    if (!tnd_build_extents(context, tandem_op_name(op), TANDEM_TYPE_F32, 1, &n_values, extents)) {
        return NULL;
    }
    tandem_tensor *node = tnd_build_node(context, op, TANDEM_TYPE_F32, extents, src[0], NULL);
    if (node != NULL) {
        for (int i = 0; i < n_src; i++) {
            node->src[i] = src[i];
        }
        node->n_src = n_src;
        node->params.work = work;
    }
    return node;
}

struct tnd_reference_work tnd_graph_reference_work(const struct tandem_graph *graph)
{
    struct tnd_reference_work found = {.n = 0};
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        const struct tnd_work *work = tnd_work_of(node);
        const double values = work != NULL ? work->reference_values : 0;
        if (values > 0) {
            found.n++;
            found.n_hot += values >= TND_REFERENCE_HOT;
            if (found.most == NULL || values > found.most->params.work->reference_values) {
                found.most = node;
            }
        }
    }
    return found;
}

/* ---- operands ---- */

void tnd_net_order(const struct tnd_dims *shape, enum tnd_net_layout layout, int *out)
{
    int n = 0;
    for (int i = 0; i < shape->n; i++) {
        if (layout == TND_LAYOUT_PLAIN || i != 1) {
            out[n++] = i;
        }
    }
    if (n < shape->n) {
        out[n] = 1;
    }
}

void tnd_net_strides(const struct tnd_dims *shape, enum tnd_net_layout layout, int64_t *out)
{
    int order[TANDEM_NET_MAX_DIMS];
    int64_t stride = 1;
    tnd_net_order(shape, layout, order);
    for (int i = shape->n - 1; i >= 0; i--) {
        out[order[i]] = stride;
        stride *= shape->dims[order[i]];
    }
}

struct tnd_view tnd_work_view(const struct tnd_operand *in, const struct tandem_tensor *node)
{
    struct tnd_view view = in->view;
    if (in->src >= 0) {
        view.data = (const char *)node->src[in->src]->data +
                    in->offset * (int64_t)tandem_dtype_bytes(in->view.type);
    }
    return view;
}

void tnd_work_views(const struct tnd_work *work, const struct tandem_tensor *node,
                    struct tnd_view *out)
{
    for (int i = 0; i < work->n_in; i++) {
        out[i] = tnd_work_view(&work->in[i], node);
    }
}

int64_t tnd_work_values_behind(const struct tnd_dims *shape, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < shape->n; d++) {
        n *= shape->dims[d];
    }
    return n;
}

int tnd_work_padded_axis(const struct tnd_work *work)
{
    int axis = 0;
    for (int d = 0; d < work->shape.n; d++) {
        const bool is_padded =
            work->params->begin[d] != 0 || work->in[0].view.shape.dims[d] != work->shape.dims[d];
        axis = is_padded ? d : axis;
    }
    return axis;
}

int tnd_work_moves_with(const struct tnd_work *work, int i, int d)
{
    const int axis = work->params->axis;
    const struct tnd_view *in = &work->in[i].view;
    switch (work->op) {
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
        return work->params->kind != TANDEM_POOL_ARG_MAX && d < 2 ? d : -2;
    case TND_NET_CONV:
        return d == 0 ? (i == 0 ? 0 : -1) : -2;
    case TND_NET_GATHER: {
        const int n = work->in[1].view.shape.n;
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

/* ---- run-time errors ---- */

enum tandem_status tnd_work_failed(const struct tnd_work *work, enum tandem_status status,
                                   const struct tandem_error *error)
{
    int none = 0;
    struct tnd_fault *fault = work->fault;
    if (status != TANDEM_OK &&
        atomic_compare_exchange_strong_explicit(&fault->state, &none, 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        fault->error = *error;
        tnd_net_name_error(work->op, work->name, &fault->error);
        atomic_store_explicit(&fault->state, 2, memory_order_release);
    }
    return status;
}
