/* SPDX-License-Identifier: MIT
 * Convolutions as matrix products (im2col): the values under the window at each position of the
 * result become a row, which tandem_mul_mat multiplies by the filters. Groups are a batch of
 * products, joined afterwards. */
#include "graph/lower_conv.h"

static struct tnd_view turned(const struct tnd_view *view)
{
    struct tnd_view out = *view;
    for (int i = 1; i < view->shape.n; i++) {
        const int from = i + 1 < view->shape.n ? i + 1 : 1;
        out.shape.dims[i] = view->shape.dims[from];
        out.strides[i] = view->strides[from];
    }
    return out;
}

/* Filters {M, C, taps} as rows {M, taps, C}. */
static enum tandem_status lower_weights(struct tnd_lowering *l, int weights, const int64_t ne[3],
                                        tandem_tensor **out)
{
    struct tnd_operand computed;
    tandem_tensor *tensor = NULL;
    int n = 0;
    if (tnd_lower_value(l, weights)->known != NULL) {
        const struct tnd_view view = tnd_lower_known(l, weights);
        const struct tnd_view rows = turned(&view);
        return tnd_lower_constant(l, weights, &rows, 3, ne, out);
    }
    TND_TRY(tnd_lower_operand(l, weights, false, &computed, &tensor, &n));
    computed.view = turned(&computed.view);
    TND_TRY(tnd_lower_copy(l, &computed, tensor, TND_LAYOUT_PLAIN, &tensor));
    *out = tandem_view(l->out->context, tensor, 3, ne, NULL, 0);
    return TANDEM_OK;
}

/* Joins products {filters, positions, groups} along the filters. */
static enum tandem_status join_groups(struct tnd_lowering *l, const struct tnd_conv *conv,
                                      tandem_tensor *product, tandem_tensor **out)
{
    const int64_t groups = conv->all_filters / conv->filters;
    const struct tnd_operand from = {
        .view = {.type = TANDEM_DTYPE_F32,
                 .shape = {3, {conv->n_pixels, groups, conv->filters}},
                 .strides = {conv->filters, conv->n_pixels * conv->filters, 1}}};
    return tnd_lower_copy(l, &from, product, TND_LAYOUT_PLAIN, out);
}

static enum tandem_status emit_columns(struct tnd_lowering *l, struct tnd_conv *conv,
                                       tandem_tensor *x, tandem_tensor **out)
{
    const int64_t groups = conv->all_channels / conv->channels;
    struct tnd_work *job = tnd_lower_job(l, 0);
    struct tnd_array *nothing = tnd_lower_array(l, TANDEM_DTYPE_F32, &TND_DIMS(conv->channels));
    if (job == NULL || nothing == NULL) {
        return tnd_lower_no_memory(l);
    }
    TND_TRY(tnd_conv_find_offsets(l, conv));
    conv->zeros = nothing->data;
    job->op = TND_NET_CONV;
    job->row = TANDEM_OP_MOVE;
    job->type = TANDEM_DTYPE_F32;
    job->shape = (struct tnd_dims){3, {groups, conv->n_pixels, conv->n_taps * conv->channels}};
    job->of.conv = conv;
    job->n_items = groups * conv->n_pixels;
    job->kind = TND_WORK_COLUMNS;
    TND_TRY(tnd_lower_emit(l, job, &x, 1, out));
    tnd_conv_print_columns(l, conv, *out);
    return TANDEM_OK;
}

bool tnd_conv_may_columns(const struct tnd_conv *conv, bool for_device)
{
    (void)for_device;
    return !tnd_conv_is_depthwise(conv);
}

enum tandem_status tnd_lower_conv_columns(struct tnd_lowering *l, struct tnd_conv *conv,
                                          const struct tnd_net_node *node, tandem_tensor *x,
                                          tandem_tensor **out)
{
    tandem_context *context = l->out->context;
    const int64_t groups = conv->all_channels / conv->channels;
    const int64_t k = conv->n_taps * conv->channels;
    const int64_t ne[3] = {k, conv->n_pixels, groups};
    const int64_t of_filters[3] = {k, conv->filters, groups};
    tandem_tensor *matrix;
    tandem_tensor *columns = x;
    TND_TRY(lower_weights(l, node->inputs[1], of_filters, &matrix));
    if (!tnd_conv_is_product(conv)) {
        TND_TRY(emit_columns(l, conv, x, &columns));
    }
    *out = tandem_mul_mat(context, matrix, tandem_view(context, columns, 3, ne, NULL, 0));
    TND_TRY(tandem_context_status(context, l->error));
    return groups == 1 ? TANDEM_OK : join_groups(l, conv, *out, out);
}
