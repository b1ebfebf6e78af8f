/* SPDX-License-Identifier: MIT
 * Operators of ONNX: losses of classifiers. */
#include <string.h>

#include "formats/onnx_op.h"

/* {N, C, d...}, the classes of {N, d...} (as {N, 1, d...}), and what is read of them. */
struct loss {
    int logs;    /* logarithms of probabilities */
    int labels;  /* in range: 0 where they are ignored */
    int counts;  /* bool: not ignored; TANDEM_NET_NONE: all are */
    int weights; /* one a class; TANDEM_NET_NONE: 1 */
};

static int log_softmax(struct tnd_onnx_call *call, int x)
{
    const int most = tnd_net_reduce(call->net, TANDEM_REDUCE_MAX, x, 2);
    const int low = tnd_net_binary(call->net, TANDEM_BINARY_SUB, x, most);
    const int e = tnd_net_unary(call->net, TANDEM_UNARY_EXP, low);
    const int sum = tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, e, 2);
    return tnd_net_formula(call->net, "low, sum: low - log(sum)", low, sum);
}

/* The labels with an axis of extent 1 for the class, the ignored ones made 0. */
static bool read_labels(struct tnd_onnx_call *call, struct loss *loss)
{
    struct tnd_net *net = call->net;
    const int labels = tnd_onnx_in(call, 1);
    const struct tnd_dims *scores = tnd_onnx_shape_of(call, loss->logs);
    struct tnd_dims shape = *scores;
    if (scores->n < 2 || tnd_onnx_shape_of(call, labels)->n != scores->n - 1) {
        (void)tnd_onnx_refuse(call, "scores of %d dimensions, labels of %d", scores->n,
                              tnd_onnx_shape_of(call, labels)->n);
        return false;
    }
    shape.dims[1] = 1;
    const int list = tnd_net_cast(net, tnd_net_reshape(net, labels, &shape), TANDEM_DTYPE_I64);
    loss->labels = list;
    loss->counts = TANDEM_NET_NONE;
    if (tnd_onnx_has(call, "ignore_index")) {
        const int64_t ignored = tnd_onnx_int(call, "ignore_index", 0);
        const int mark =
            tnd_net_binary(net, TANDEM_BINARY_EQUAL, list, tnd_net_integers(net, &ignored, 1));
        loss->labels = tnd_net_select(net, mark, tnd_onnx_scalar(call, list, 0.0), list);
        loss->counts = tnd_net_unary(net, TANDEM_UNARY_NOT, mark);
    }
    return net->status == TANDEM_OK;
}

/* The weight of each label, 0 of the ignored ones. */
static int weights_of(struct tnd_onnx_call *call, const struct loss *loss)
{
    struct tnd_net *net = call->net;
    const enum tandem_dtype type = tnd_onnx_type_of(call, loss->logs);
    int weights =
        loss->weights == TANDEM_NET_NONE
            ? tnd_net_expand(net, tnd_net_scalar(net, type, 1.0),
                             tnd_onnx_shape_of(call, loss->labels))
            : tnd_net_gather(net, tnd_net_cast(net, loss->weights, type), loss->labels, 0);
    if (loss->counts != TANDEM_NET_NONE) {
        weights = tnd_net_select(net, loss->counts, weights, tnd_onnx_scalar(call, weights, 0.0));
    }
    return weights;
}

static int drop_class(struct tnd_onnx_call *call, int value)
{
    return tnd_net_reshape(call->net, value, tnd_onnx_shape_of(call, tnd_onnx_in(call, 1)));
}

static void build_loss(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    const char *reduction = tnd_onnx_word(call, "reduction", "mean");
    const bool has_softmax = call->kind != 0;
    struct loss loss = {.logs = tnd_onnx_wide(call, x), .weights = tnd_onnx_in(call, 2)};
    if (loss.weights != TANDEM_NET_NONE && tnd_onnx_shape_of(call, loss.weights)->n != 1) {
        (void)tnd_onnx_refuse(call, "weights of %d dimensions, expected 1",
                              tnd_onnx_shape_of(call, loss.weights)->n);
        return;
    }
    if (!read_labels(call, &loss)) {
        return;
    }
    loss.logs = has_softmax ? log_softmax(call, loss.logs) : loss.logs;
    const int weights = weights_of(call, &loss);
    const int picked = tnd_net_gather_elements(net, loss.logs, loss.labels, 1);
    int result = tnd_net_formula(net, "picked, weights: -picked * weights", picked, weights);
    const unsigned all = (1U << tnd_onnx_shape_of(call, x)->n) - 1;
    const struct tnd_dims scalar = {0};
    if (strcmp(reduction, "none") == 0) {
        result = drop_class(call, result);
    } else if (strcmp(reduction, "sum") == 0) {
        result = tnd_net_reshape(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, result, all), &scalar);
    } else if (strcmp(reduction, "mean") == 0) {
        result = tnd_net_binary(net, TANDEM_BINARY_DIV,
                                tnd_net_reduce(net, TANDEM_REDUCE_SUM, result, all),
                                tnd_net_reduce(net, TANDEM_REDUCE_SUM, weights, all));
        result = tnd_net_reshape(net, result, &scalar);
    } else {
        (void)tnd_onnx_refuse(call, "reduction '%.20s', expected none, sum or mean", reduction);
        return;
    }
    call->out[0] = tnd_net_cast(net, result, type);
    if (has_softmax && call->n_out > 1) {
        call->out[1] = tnd_net_cast(net, loss.logs, type);
    }
}

const struct tnd_onnx_op tnd_onnx_loss[] = {
    {"SoftmaxCrossEntropyLoss", build_loss, 1, "2-3>1-2"},
    {"NegativeLogLikelihoodLoss", build_loss, 0, "2-3"},
    {NULL, NULL, 0, NULL},
};
