/* SPDX-License-Identifier: MIT
 * Convolutions, pools, joins and gathers for devices: their windows and offsets for the generator
 * of texts. Packed weights are those of the CPU's kernels; a device has them in the same order. */
#include <string.h>

#include "graph/lower_conv.h"

static struct tnd_printed_window window_of(const struct tnd_conv *conv,
                                           enum tnd_printed_window_kind kind)
{
    struct tnd_printed_window window = {.kind = kind,
                                        .n = conv->n,
                                        .channel_stride = 1,
                                        .n_places = conv->n_pixels,
                                        .channels = conv->channels,
                                        .filters = conv->filters,
                                        .run = conv->run,
                                        .n_taps = conv->n_taps};
    int64_t stride = conv->all_channels;
    for (int d = conv->n - 1; d >= 0; d--) {
        window.in[d] = conv->in[d];
        window.out[d] = conv->out[d];
        window.taps[d] = conv->taps[d];
        window.stride[d] = conv->stride[d];
        window.dilation[d] = conv->dilation[d];
        window.begin[d] = conv->begin[d];
        window.strides[d] = stride;
        stride *= conv->in[d];
    }
    window.image_stride = stride;
    return window;
}

void tnd_conv_print_sums(struct tnd_lowering *l, const struct tnd_conv *conv, bool by_channel,
                         tandem_tensor *node)
{
    struct tnd_printed_window window = window_of(conv, TND_WINDOW_PRODUCTS);
    window.width = TND_CONV_PANEL;
    window.packed_filters = by_channel ? conv->all_filters : conv->filters;
    tnd_lower_window(l, &window, conv->n_pixels, conv->all_filters, conv->epilogue, node);
}

void tnd_conv_print_columns(struct tnd_lowering *l, const struct tnd_conv *conv,
                            tandem_tensor *node)
{
    const struct tnd_printed_window window = window_of(conv, TND_WINDOW_COLUMNS);
    const int64_t groups = conv->all_channels / conv->channels;
    tnd_lower_window(l, &window, groups * conv->n_pixels, conv->n_taps * conv->channels, NULL,
                     node);
}

void tnd_lower_print_pool(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node)
{
    const struct tnd_operand *in = &job->in[0];
    const struct tnd_window *pool = &job->params->window;
    const int64_t channels = job->shape.dims[1];
    struct tnd_printed_window window = {
        .kind = job->params->kind == TANDEM_POOL_MAX ? TND_WINDOW_LARGEST : TND_WINDOW_SUM,
        .n = pool->n,
        .image_stride = in->view.strides[0],
        .channel_stride = in->view.strides[1],
        .offset = in->offset,
        .n_places = 1,
        .channels = channels,
        .is_plain = job->layout == TND_LAYOUT_PLAIN};
    for (int d = 0; d < pool->n; d++) {
        window.in[d] = in->view.shape.dims[2 + d];
        window.out[d] = job->shape.dims[2 + d];
        window.taps[d] = pool->extent[d];
        window.stride[d] = pool->stride[d];
        window.dilation[d] = pool->dilation[d];
        window.begin[d] = pool->begin[d];
        window.strides[d] = in->view.strides[2 + d];
        window.n_places *= job->shape.dims[2 + d];
    }
    const int64_t images = job->shape.dims[0];
    if (in->src == 0) {
        tnd_lower_window(l, &window, images * (window.is_plain ? channels : window.n_places),
                         window.is_plain ? window.n_places : channels, NULL, node);
    }
}

/* Whether all constant indices are within an axis, so that a device need not check. */
static bool is_inside(const struct tnd_view *indices, int64_t extent)
{
    bool is = indices->data != NULL && indices->shape.n == 1;
    for (int64_t i = 0; is && i < indices->shape.dims[0]; i++) {
        union tnd_values value;
        tnd_values_load(indices->type,
                        (const char *)indices->data +
                            i * indices->strides[0] * (int64_t)tandem_dtype_bytes(indices->type),
                        1, 1, TND_LANE_I64, &value);
        is = value.i64[0] >= -extent && value.i64[0] < extent;
    }
    return is;
}

void tnd_lower_print_move(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node)
{
    const int axis = job->params->axis;
    const bool joins = job->op == TND_NET_CONCAT;
    struct tnd_fuse fuse = {.n_inputs = 0};
    struct tnd_fuse_space space = {.shape = job->shape};
    struct tnd_fuse_printed printed = {.fuse = &fuse,
                                       .space = &space,
                                       .n_buffers = node->n_src,
                                       .move = joins ? TND_MOVE_JOINED : TND_MOVE_GATHERED,
                                       .axis = axis};
    const int x = 0;
    int64_t end = 0;
    if (!joins && (job->op != TND_NET_GATHER ||
                   !is_inside(&job->in[1].view, job->in[0].view.shape.dims[axis]))) {
        return;
    }
    for (int i = 0; i < job->n_in; i++) {
        const struct tnd_operand *in = &job->in[i];
        const bool is_index = i == 1 && !joins;
        if (in->src < 0 && !(is_index && in->view.shape.dims[0] == 1)) {
            return;
        }
        (void)tnd_fuse_input(&fuse, in->view.type);
        printed.in[i].buffer = in->src;
        printed.in[i].value = in->view.data;
        printed.in[i].offset = in->offset - end * in->view.strides[axis] * (joins ? 1 : 0);
        end += is_index ? 0 : in->view.shape.dims[axis];
        printed.ends[i] = end;
        if (is_index) {
            space.strides[i][axis] = in->view.strides[0];
        } else {
            memcpy(space.strides[i], in->view.strides, sizeof(space.strides[i]));
        }
    }
    (void)tnd_fuse_step(&fuse, TND_NET_COPY, 0, job->type, &x, 1);
    tnd_lower_print(l, &printed, node);
}
