/* SPDX-License-Identifier: MIT
 * F32 convolutions with channels last: their description, and the choice of a method for each.
 * Computed weights need the matrix product. */
#include <limits.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "graph/lower_conv.h"

static const struct {
    bool (*may)(const struct tnd_conv *conv, bool for_device);
    enum tandem_status (*lower)(struct tnd_lowering *l, struct tnd_conv *conv,
                                const struct tnd_net_node *node, tandem_tensor *x,
                                tandem_tensor **out);
} methods[TND_CONV_METHODS] = {
#define METHOD(name, text, function) {tnd_conv_may_##function, tnd_lower_conv_##function},
    TND_CONV_METHOD_LIST(METHOD)
#undef METHOD
};

/* ---- choosing ---- */

static void choose(const struct tnd_lowering *l, const struct tnd_conv *conv,
                   struct tnd_conv_choice *choice)
{
    const struct tandem_chooser *chooser = l->options->chooser;
    struct tnd_conv_question question = {.shape = tnd_conv_shape_from(conv, l->epilogue != NULL),
                                         .for_device = l->options->for_device};
    for (int i = 0; i < TND_CONV_METHODS; i++) {
        question.may[i] = methods[i].may(conv, question.for_device);
    }
    question.winograd_gain = question.may[TND_CONV_WINOGRAD] ? tnd_conv_winograd_gain(conv) : 0;
    if (chooser != NULL) {
        chooser->choose(chooser->user, &question, choice);
    } else {
        tnd_conv_choose_by_rule(&question, choice);
    }
    TND_ASSERT(question.may[choice->method]);
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

/* Whether computed weights can be multiplied with im2col rows. */
static bool may_compute(const struct tnd_lowering *l, const struct tnd_conv *conv)
{
    const struct tnd_conv_shape shape = tnd_conv_shape_from(conv, false);
    return tnd_conv_may_columns(conv, l->options->for_device) && tnd_conv_columns_fit(&shape);
}

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
    conv->is_point = has_one_place(window);
}

static enum tandem_status lower_method(struct tnd_lowering *l, struct tnd_conv *conv,
                                       const struct tnd_net_node *node, tandem_tensor *x,
                                       tandem_tensor **out)
{
    struct tnd_conv_choice choice;
    choose(l, conv, &choice);
    TND_TRY(keep_choice(l, &choice));
    return methods[choice.method].lower(l, conv, node, x, out);
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
    const bool is_constant = tnd_lower_value(l, node->inputs[1])->known != NULL;
    if (x->type != TANDEM_DTYPE_F32 || base->known != NULL || conv->n_taps > TND_CONV_MAX_TAPS ||
        tnd_dims_values(&y->shape) == 0 || conv->channels == 0 ||
        (!is_constant && !may_compute(l, conv))) {
        return TANDEM_OK;
    }
    tandem_tensor *tensor = NULL;
    TND_TRY(tnd_lower_last(l, node->inputs[0], &tensor));
    tandem_tensor **out = &l->values[node->output].tensors[TND_LAYOUT_LAST];
    *done = true;
    return is_constant ? lower_method(l, conv, node, tensor, out)
                       : tnd_lower_conv_columns(l, conv, node, tensor, out);
}

/* ---- beforehand ---- */

static bool is_followed(const struct tnd_net *net, int value)
{
    bool is = false;
    for (int i = 0; i < net->n_nodes && !is; i++) {
        for (int k = 0; k < net->nodes[i].n_inputs && tnd_lower_is_elementwise(&net->nodes[i]);
             k++) {
            is = is || net->nodes[i].inputs[k] == value;
        }
    }
    return is;
}

static bool describe_node(const struct tnd_net *net, const struct tnd_net_node *node,
                          struct tnd_conv_shape *out)
{
    if (node->op != TND_NET_CONV) {
        return false;
    }
    const struct tnd_net_value *x = tnd_net_value(net, node->inputs[0]);
    const struct tnd_net_value *y = tnd_net_value(net, node->output);
    struct tnd_conv conv = {.n = 0};
    if (x->type != TANDEM_DTYPE_F32 || tnd_net_value(net, node->inputs[1])->known == NULL ||
        tnd_dims_values(&y->shape) <= 0 || x->shape.dims[1] == 0) {
        return false;
    }
    describe(&conv, node, &x->shape, &y->shape);
    *out = tnd_conv_shape_from(&conv, is_followed(net, node->output));
    return true;
}

enum tandem_status tnd_lower_begin_convs(const struct tnd_lowering *l, bool *for_device)
{
    const struct tandem_chooser *chooser = l->options->chooser;
    const struct tnd_net *net = l->net;
    int n = 0;
    if (chooser == NULL) {
        return TANDEM_OK;
    }
    struct tnd_conv_shape *shapes = tnd_calloc((size_t)net->n_nodes + 1, sizeof(shapes[0]));
    if (shapes == NULL) {
        return tnd_lower_no_memory(l);
    }
    for (int i = 0; i < net->n_nodes; i++) {
        n += describe_node(net, &net->nodes[i], &shapes[n]);
    }
    *for_device = chooser->begin(chooser->user, shapes, n) || *for_device;
    tnd_free(shapes);
    return TANDEM_OK;
}
