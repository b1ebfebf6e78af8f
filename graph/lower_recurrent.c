/* SPDX-License-Identifier: MIT
 * F32 recurrent layers: constant weights are packed once for all sets of extents. */
#include "graph/lower_internal.h"

/* Weights as panels: constant ones packed, others in place. */
static enum tandem_status take_weights(struct tnd_lowering *l, int value, int64_t gates,
                                       struct tnd_operand *out, tandem_tensor **tensors, int *n)
{
    if (tnd_lower_value(l, value)->known == NULL) {
        TND_TRY(tnd_lower_operand(l, value, false, out, tensors, n));
        out->view = tnd_recurrent_panels(&out->view, gates, false);
        return TANDEM_OK;
    }
    const struct tnd_view plain = tnd_lower_known(l, value);
    const int64_t how[] = {TND_NET_RECURRENT, gates};
    *out = (struct tnd_operand){.view = tnd_recurrent_panels(&plain, gates, true), .src = -1};
    const struct tnd_dims shape = {1, {tnd_dims_values(&out->view.shape)}};
    bool is_new;
    struct tnd_array *packed =
        tnd_lower_shared(l, value, &plain, TANDEM_DTYPE_F32, &shape, how, sizeof(how), &is_new);
    if (packed == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (is_new) {
        const struct tnd_view known = tnd_lower_known(l, value);
        const struct tnd_view from = tnd_recurrent_panels(&known, gates, false);
        const int64_t panels = from.shape.dims[2];
        const int64_t values = shape.dims[0] / from.shape.dims[0] / panels;
        for (int64_t i = 0; i < from.shape.dims[0] * panels; i++) {
            tnd_recurrent_pack(&from, known.shape.dims[2], i / panels, i % panels,
                               (float *)packed->data + i * values);
        }
        tnd_lower_packed(packed);
    }
    out->view.data = packed->data;
    return TANDEM_OK;
}

/* Products with the inputs, whose rows are read in place. */
static enum tandem_status take_inputs(struct tnd_lowering *l, int value, struct tnd_operand *out,
                                      tandem_tensor **tensors, int *n)
{
    TND_TRY(tnd_lower_operand(l, value, false, out, tensors, n));
    if (out->view.strides[2] == 1) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_copy(l, out, *n > 0 ? tensors[0] : NULL, TND_LAYOUT_PLAIN, &tensors[0]));
    tnd_dims_strides(&out->view.shape, out->view.strides);
    out->view.data = NULL;
    out->src = 0;
    out->offset = 0;
    *n = 1;
    return TANDEM_OK;
}

/* Constant weights of 8 bits, packed as bytes. */
static enum tandem_status take_bytes(struct tnd_lowering *l, int value, int64_t gates,
                                     struct tnd_operand *out)
{
    const struct tnd_view plain = tnd_lower_known(l, value);
    const int64_t how[] = {TND_NET_RECURRENT, gates};
    size_t size;
    (void)tnd_recurrent_bytes_in(NULL, (int)plain.shape.dims[0], gates, plain.shape.dims[2], &size);
    const struct tnd_dims shape = {1, {(int64_t)size}};
    bool is_new;
    struct tnd_array *packed =
        tnd_lower_shared(l, value, &plain, TANDEM_DTYPE_I8, &shape, how, sizeof(how), &is_new);
    if (packed == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (is_new) {
        const struct tnd_view known = tnd_lower_known(l, value);
        if (!tnd_recurrent_pack_bytes(&known, gates, packed->data)) {
            return tnd_lower_no_memory(l);
        }
        tnd_lower_packed(packed);
    }
    *out = (struct tnd_operand){.view = tnd_recurrent_panels(&plain, gates, true), .src = -1};
    out->view.type = TANDEM_DTYPE_I8;
    out->view.data = packed->data;
    return TANDEM_OK;
}

enum tandem_status tnd_lower_recurrent(struct tnd_lowering *l, const struct tnd_net_node *node,
                                       bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    const struct tnd_dims *const in[] = {&tnd_net_value(l->net, node->inputs[0])->shape,
                                         &tnd_net_value(l->net, node->inputs[1])->shape};
    const int gates = tnd_cell_gates(node->params.recurrent.cell);
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {NULL};
    int n = 0;
    const bool is_8_bit = node->params.recurrent.is_8_bit != 0;
    if (out->type != TANDEM_DTYPE_F32 || tnd_dims_values(in[0]) == 0 ||
        (is_8_bit && tnd_lower_value(l, node->inputs[1])->known == NULL)) {
        return TANDEM_OK;
    }
    struct tnd_work *job = tnd_lower_job(l, node->n_inputs);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    *job = (struct tnd_work){.kind = TND_WORK_RECURRENT,
                             .op = node->op,
                             .name = out->name,
                             .fault = job->fault,
                             .params = &node->params,
                             .in = job->in,
                             .n_in = node->n_inputs,
                             .type = out->type,
                             .shape = out->shape,
                             .split = -1};
    TND_TRY(take_inputs(l, node->inputs[0], &job->in[0], tensors, &n));
    TND_TRY(is_8_bit ? take_bytes(l, node->inputs[1], gates, &job->in[1])
                     : take_weights(l, node->inputs[1], gates, &job->in[1], tensors, &n));
    for (int i = 2; i < node->n_inputs; i++) {
        TND_TRY(tnd_lower_operand(l, node->inputs[i], false, &job->in[i], tensors, &n));
    }
    /* an item is a panel of one direction */
    job->n_items = node->params.recurrent.directions * job->in[1].view.shape.dims[2];
    const size_t plain = tnd_kernel_scratch(node->op, &node->params, in);
    const size_t own = tnd_recurrent_bytes(&node->params.recurrent, in[0]->dims[1], in[1]->dims[2],
                                           job->in[1].src >= 0);
    job->scratch =
        ((own > plain ? own : plain) / sizeof(float) / (size_t)job->n_items + 1) * sizeof(float);
    *done = true;
    return tnd_lower_emit(l, job, tensors, n, &l->values[node->output].tensors[TND_LAYOUT_PLAIN]);
}
