/* SPDX-License-Identifier: MIT
 * Convolutions of F32 with constant weights, channels last: in which way each one is computed.
 * Those over single places are matrix products, which the runtime's table chooses. */
#include <limits.h>

#include "graph/lower_conv.h"

/* Fewer multiplications that pay for transforms. Unit: ratio. */
#define WINOGRAD_GAIN 1.3

/* Values of the columns of a convolution on a device: 1 GiB. */
#define MAX_COLUMNS 0x1p28

/* ---- choosing ---- */

const char *tnd_conv_method_name(enum tnd_conv_method method)
{
    static const char *const names[] = {
#define TND_CONV_METHOD_NAME(name, text) text,
        TND_CONV_METHOD_LIST(TND_CONV_METHOD_NAME)
#undef TND_CONV_METHOD_NAME
    };
    return names[method];
}

static struct tnd_conv_shape shape_of(const struct tnd_conv *conv)
{
    struct tnd_conv_shape shape = {.n = conv->n,
                                   .images = conv->n_pixels,
                                   .channels = conv->all_channels,
                                   .filters = conv->all_filters,
                                   .groups = conv->all_channels / conv->channels};
    for (int i = 0; i < conv->n; i++) {
        shape.window[i] = conv->taps[i];
        shape.stride[i] = conv->stride[i];
        shape.dilation[i] = conv->dilation[i];
        shape.padding[i] = conv->begin[i];
        shape.result[i] = conv->out[i];
        shape.images /= conv->out[i];
    }
    return shape;
}

/* A device's products are tuned, its texts of sums are not: ResNet-18 takes 107 ms by columns and
 * 910 ms by sums, a U-Net 58 and 479 ms (PoCL on two cores of a Zen 4). */
static void choose_for_device(const struct tnd_conv *conv, struct tnd_conv_choice *choice)
{
    const double columns = (double)conv->n_pixels * (double)(conv->n_taps * conv->channels);
    if (conv->channels != conv->all_channels) {
        choice->reason = "on a device, groups are summed where they lie";
    } else if (columns > MAX_COLUMNS) {
        choice->reason = "on a device, the columns would be too large";
    } else {
        choice->method = TND_CONV_COLUMNS;
        choice->reason = "on a device, whose products are tuned";
    }
}

/* Where no times are known. Of the 14 shapes of ResNet-18 and a U-Net whose direct sums multiply
 * 1.3 times as often Winograd's method was faster for all, 1.15 to 1.8 times, and for the one below
 * that it gained nothing (two cores of a Zen 4). */
static void choose_by_rule(const struct tnd_lowering *l, const struct tnd_conv *conv,
                           struct tnd_conv_choice *choice)
{
    const bool is_product = tnd_conv_is_product(conv);
    choice->method = TND_CONV_DIRECT;
    choice->reason = "no times are known";
    if (is_product && l->epilogue != NULL && !l->options->for_device) {
        choice->reason = "no times are known, what follows the sums needs no pass of its own";
    } else if (is_product) {
        choice->method = TND_CONV_COLUMNS;
        choice->reason = "no times are known, a window of one place is a matrix product";
    } else if (l->options->for_device) {
        choose_for_device(conv, choice);
    } else if (tnd_conv_winograd_gain(conv) >= WINOGRAD_GAIN) {
        choice->method = TND_CONV_WINOGRAD;
        choice->reason = "no times are known, direct sums take far more multiplications";
    }
}

/* The fastest of the methods with times, where two are known at least. */
static void choose(const struct tnd_lowering *l, const struct tnd_conv *conv,
                   struct tnd_conv_choice *choice)
{
    int known = 0;
    *choice = (struct tnd_conv_choice){.shape = shape_of(conv)};
    choice->may[TND_CONV_DIRECT] = true;
    choice->may[TND_CONV_COLUMNS] = !tnd_conv_is_depthwise(conv);
    choice->may[TND_CONV_WINOGRAD] = !l->options->for_device && tnd_conv_may_winograd(conv);
    choose_by_rule(l, conv, choice);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        choice->us[method] = -1;
    }
    if (l->options->conv_times != NULL) {
        l->options->conv_times(l->options->user, &choice->shape, choice->us);
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (choice->may[method] && choice->us[method] >= 0) {
            const bool is_best = known == 0 || choice->us[method] < choice->us[choice->method];
            choice->method = is_best ? (enum tnd_conv_method)method : choice->method;
            known++;
        }
    }
    choice->is_measured = known > 0;
    choice->reason = known > 0 ? "the fastest that was measured" : choice->reason;
}

static enum tandem_status keep_choice(struct tnd_lowering *l, const struct tnd_conv_choice *choice)
{
    struct tnd_lowered *out = l->out;
    if (tnd_vector_insert(&out->convs_vector, sizeof(out->convs[0]), INT_MAX / 2, out->n_convs) !=
        TANDEM_OK) {
        return tnd_lower_no_memory(l);
    }
    out->convs[out->n_convs - 1] = *choice;
    return TANDEM_OK;
}

const struct tnd_conv_choice *tnd_lowered_conv(const struct tnd_lowered *lowered, int i)
{
    return i >= 0 && i < lowered->n_convs ? &lowered->convs[i] : NULL;
}

/* ---- lowering ---- */

static bool has_one_place(const struct tnd_window *window)
{
    bool is = true;
    for (int i = 0; i < window->n; i++) {
        is = is && window->extent[i] == 1 && window->stride[i] == 1 && window->begin[i] == 0 &&
             window->end[i] == 0;
    }
    return is;
}

static void describe(struct tnd_conv *conv, const struct tnd_net_node *node,
                     const struct tnd_dims *x, const struct tnd_dims *y)
{
    const struct tnd_window *window = &node->params.window;
    conv->n = window->n;
    conv->n_taps = 1;
    conv->n_pixels = y->dims[0];
    for (int i = 0; i < conv->n; i++) {
        conv->in[i] = x->dims[2 + i];
        conv->out[i] = y->dims[2 + i];
        conv->taps[i] = window->extent[i];
        conv->stride[i] = window->stride[i];
        conv->dilation[i] = window->dilation[i];
        conv->begin[i] = window->begin[i];
        conv->n_taps *= window->extent[i];
        conv->n_pixels *= y->dims[2 + i];
    }
    conv->all_channels = x->dims[1];
    conv->all_filters = y->dims[1];
    conv->channels = x->dims[1] / window->groups;
    conv->filters = y->dims[1] / window->groups;
    conv->run = conv->channels;
    conv->weights = node->inputs[1];
    conv->is_point = has_one_place(window);
}

static enum tandem_status lower_method(struct tnd_lowering *l, struct tnd_conv *conv,
                                       const struct tnd_net_node *node, tandem_tensor *x,
                                       tandem_tensor **out)
{
    struct tnd_conv_choice choice;
    choose(l, conv, &choice);
    TND_TRY(keep_choice(l, &choice));
    if (choice.method == TND_CONV_DIRECT) {
        return tnd_lower_conv_direct(l, conv, node, x, out);
    }
    TND_TRY(tnd_conv_find_offsets(l, conv));
    return choice.method == TND_CONV_COLUMNS ? tnd_lower_conv_columns(l, conv, x, out)
                                             : tnd_lower_conv_winograd(l, conv, x, out);
}

enum tandem_status tnd_lower_conv(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done)
{
    const struct tnd_net_value *x = tnd_net_value(l->net, node->inputs[0]);
    const struct tnd_net_value *y = tnd_net_value(l->net, node->output);
    const struct tnd_lower_value *base = tnd_lower_value(l, node->inputs[0]);
    struct tnd_conv *conv =
        tnd_arena_alloc(&l->out->arena, sizeof(*conv), _Alignof(struct tnd_conv));
    if (conv == NULL) {
        return tnd_lower_no_memory(l);
    }
    describe(conv, node, &x->shape, &y->shape);
    if (x->type != TANDEM_DTYPE_F32 || base->known != NULL ||
        tnd_lower_value(l, node->inputs[1])->known == NULL || conv->n_taps > TND_CONV_MAX_TAPS ||
        tnd_dims_values(&y->shape) == 0 || conv->channels == 0) {
        return TANDEM_OK;
    }
    tandem_tensor *tensor = NULL;
    TND_TRY(tnd_lower_last(l, node->inputs[0], &tensor));
    tandem_tensor **out = &l->values[node->output].tensors[TND_LAYOUT_LAST];
    *done = true;
    return lower_method(l, conv, node, tensor, out);
}
