/* SPDX-License-Identifier: MIT
 * Softmax, norms and attention as operations of tensors, which have kernels on every backend. */
#include "graph/lower_internal.h"

/* An operand {B, M, K} as a tensor {K, M, B} with dense rows. */
static enum tandem_status rows(struct tnd_lowering *l, int value, tandem_tensor **out)
{
    struct tnd_operand operand;
    tandem_tensor *tensor = NULL;
    int n = 0;
    TND_TRY(tnd_lower_operand(l, value, false, &operand, &tensor, &n));
    return tnd_lower_matrix(l, value, &operand, tensor, out);
}

static tandem_tensor *make(tandem_context *context, const struct tnd_net_node *node,
                           tandem_tensor *const in[4])
{
    const float number = (float)node->params.number;
    switch (node->op) {
    case TND_NET_SOFTMAX:
        return tandem_soft_max(context, in[0], NULL, 1);
    case TND_NET_NORM:
        return node->params.kind == TANDEM_NORM_LAYER ? tandem_norm(context, in[0], number)
                                                      : tandem_rms_norm(context, in[0], number);
    default:
        return tandem_attention(context, in[0], in[1], in[2], in[3], number);
    }
}

enum tandem_status tnd_lower_rows(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    tandem_tensor *tensors[4] = {NULL};
    for (int i = 0; i < node->n_inputs; i++) {
        const struct tnd_net_value *in = tnd_net_value(l->net, node->inputs[i]);
        if (in->type != TANDEM_DTYPE_F32 || tnd_dims_values(&in->shape) == 0) {
            return TANDEM_OK;
        }
    }
    for (int i = 0; i < node->n_inputs; i++) {
        TND_TRY(rows(l, node->inputs[i], &tensors[i]));
    }
    *done = tnd_dims_values(&out->shape) > 0;
    l->values[node->output].tensors[TND_LAYOUT_PLAIN] = make(l->out->context, node, tensors);
    return tandem_context_status(l->out->context, l->error);
}
