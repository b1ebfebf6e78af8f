/* SPDX-License-Identifier: MIT
 * Convolutions and pools for devices: their windows as the generator of texts wants them, and what
 * their sums read. The weights are those that the CPU's kernels read: a device has them in the same
 * order. */
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
    window.width = by_channel ? conv->all_filters : conv->kernel->filters;
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

void tnd_lower_print_pool(struct tnd_lowering *l, const struct tnd_job *job, tandem_tensor *node)
{
    const struct tnd_operand *in = &job->in[0];
    const struct tnd_window *pool = &job->params->window;
    const int64_t channels = job->shape.dims[1];
    struct tnd_printed_window window = {
        .kind = job->params->kind == TND_POOL_MAX ? TND_WINDOW_LARGEST : TND_WINDOW_SUM,
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
