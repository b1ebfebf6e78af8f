/* SPDX-License-Identifier: MIT
 * F32 pools, and max pools of bytes, in the layout of their operand. */
#include "graph/lower_internal.h"

enum tandem_status tnd_lower_pool(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    struct tnd_work *job = tnd_lower_job(l, 1);
    tandem_tensor *tensors[1];
    int n = 0;
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    const bool is_byte = (out->type == TANDEM_DTYPE_I8 || out->type == TANDEM_DTYPE_U8) &&
                         node->params.kind == TANDEM_POOL_MAX;
    if ((out->type != TANDEM_DTYPE_F32 && !is_byte) || node->params.kind == TANDEM_POOL_ARG_MAX ||
        tnd_dims_values(&out->shape) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_operand(l, node->inputs[0], true, &job->in[0], tensors, &n));
    job->op = node->op;
    job->params = &node->params;
    job->type = out->type;
    job->shape = out->shape;
    const bool is_last = tnd_lower_value(l, node->inputs[0])->tensors[TND_LAYOUT_LAST] != NULL;
    job->layout = is_last ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN;
    job->n_items = tnd_dims_values(&out->shape) / out->shape.dims[1];
    job->kind = TND_WORK_POOL;
    *done = true;
    tandem_tensor **made = &l->values[node->output].tensors[job->layout];
    TND_TRY(tnd_lower_emit(l, job, tensors, n, made));
    if (!is_byte) {
        tnd_lower_print_pool(l, job, *made);
    }
    return TANDEM_OK;
}
