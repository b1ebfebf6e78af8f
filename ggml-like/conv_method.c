/* SPDX-License-Identifier: MIT
 * Names of convolution methods, and the rule that chooses one. */
#include "ggml-like/conv_method.h"

#include <string.h>

#include "ggml-like/conv.h"
#include "ggml-like/work.h"

/* Ratio of multiplications, direct to Winograd, from which the transforms pay off. */
#define WINOGRAD_GAIN 1.3

/* Values of the columns of a convolution: 1 GiB. */
#define MAX_COLUMNS 0x1p28

static const char *const names[] = {
#define TND_CONV_METHOD_NAME(name, text, function) text,
    TND_CONV_METHOD_LIST(TND_CONV_METHOD_NAME)
#undef TND_CONV_METHOD_NAME
};

const char *tnd_conv_method_name(enum tnd_conv_method method)
{
    return names[method];
}

enum tnd_conv_method tnd_conv_method_from_name(const char *name)
{
    int method = 0;
    while (method < TND_CONV_METHODS && strcmp(names[method], name) != 0) {
        method++;
    }
    return (enum tnd_conv_method)method;
}

static double places(const struct tnd_conv_shape *shape)
{
    double n = (double)shape->images;
    for (int i = 0; i < shape->n; i++) {
        n *= (double)shape->result[i];
    }
    return n;
}

/* Input values per output value. */
static double values_seen(const struct tnd_conv_shape *shape)
{
    double n = (double)shape->channels / (double)shape->groups;
    for (int i = 0; i < shape->n; i++) {
        n *= (double)shape->window[i];
    }
    return n;
}

double tnd_conv_multiply_adds(const struct tnd_conv_shape *shape)
{
    return places(shape) * values_seen(shape) * (double)shape->filters;
}

struct tnd_conv_shape tnd_conv_shape_from(const struct tnd_conv *conv, bool is_followed)
{
    struct tnd_conv_shape shape = {.n = conv->n,
                                   .images = conv->n_pixels,
                                   .channels = conv->all_channels,
                                   .filters = conv->all_filters,
                                   .groups = conv->all_channels / conv->channels,
                                   .is_followed = is_followed};
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

bool tnd_conv_node_shape(const tandem_tensor *node, struct tnd_conv_shape *out)
{
    const struct tnd_work *work = node->op == TANDEM_OP_CONV ? tnd_work_of(node) : NULL;
    if (work == NULL || work->kind != TND_WORK_CONV) {
        return false;
    }
    const struct tnd_conv *conv = work->of.conv;
    *out = tnd_conv_shape_from(conv, conv->epilogue != NULL);
    if (conv->run > conv->channels) { /* merged taps of a row */
        out->window[conv->n - 1] *= conv->run / conv->channels;
    }
    return true;
}

/* ---- the rule ---- */

static bool is_product(const struct tnd_conv_question *question)
{
    const struct tnd_conv_shape *shape = &question->shape;
    bool is = question->may[TND_CONV_COLUMNS] && shape->groups == 1;
    for (int i = 0; i < shape->n; i++) {
        is = is && shape->window[i] == 1 && shape->stride[i] == 1 && shape->padding[i] == 0;
    }
    return is;
}

bool tnd_conv_columns_fit(const struct tnd_conv_shape *shape)
{
    return places(shape) * values_seen(shape) * (double)shape->groups <= MAX_COLUMNS;
}

/* A device's matrix products are tuned, its generated kernels for direct sums are not: ResNet-18
 * takes 107 ms by columns and 910 ms by sums, a U-Net 58 and 479 ms (PoCL on two cores of a Zen 4).
 */
static void choose_for_device(const struct tnd_conv_question *question, struct tnd_conv_choice *out)
{
    const struct tnd_conv_shape *shape = &question->shape;
    if (shape->groups != 1 || !question->may[TND_CONV_COLUMNS]) {
        out->reason = "on a device, groups are summed where they lie";
    } else if (!tnd_conv_columns_fit(shape)) {
        out->reason = "on a device, the columns would be too large";
    } else {
        out->method = TND_CONV_COLUMNS;
        out->reason = "on a device, whose products are tuned";
    }
}

/* Among the shapes of ResNet-18 and a U-Net, 14 take at least 1.3 times as many multiplications by
 * direct sums: Winograd's method was faster for all of them, 1.15 to 1.8 times. For the one below
 * that ratio it gained nothing (two cores of a Zen 4). */
void tnd_conv_choose_by_rule(const struct tnd_conv_question *question, struct tnd_conv_choice *out)
{
    const struct tnd_conv_shape *shape = &question->shape;
    *out = (struct tnd_conv_choice){
        .question = *question, .method = TND_CONV_DIRECT, .reason = "no times are known"};
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        out->times[method].us = -1;
    }
    if (is_product(question) && shape->is_followed && !question->for_device) {
        out->reason = "no times are known, what follows the sums needs no pass of its own";
    } else if (is_product(question)) {
        out->method = TND_CONV_COLUMNS;
        out->reason = "no times are known, a window of one place is a matrix product";
    } else if (question->for_device) {
        choose_for_device(question, out);
    } else if (question->winograd_gain >= WINOGRAD_GAIN) {
        out->method = TND_CONV_WINOGRAD;
        out->reason = "no times are known, direct sums take far more multiplications";
    }
    out->by_rule = out->method;
}
