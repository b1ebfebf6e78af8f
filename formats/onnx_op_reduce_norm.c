/* SPDX-License-Identifier: MIT
 * Operators of ONNX: normalisations. Floats of 16 bits are computed with as float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

#define INVERSE_ROOT "variance, epsilon: reciprocal(sqrt(variance + epsilon))"

static int mean(struct tnd_onnx_call *call, int x, unsigned axes)
{
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, x);
    double n = 1.0;
    for (int i = 0; i < shape->n; i++) {
        n *= axes >> i & 1 ? (double)shape->dims[i] : 1.0;
    }
    return tnd_onnx_with(call, TANDEM_BINARY_DIV,
                         tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, x, axes), n);
}

/* 1 by the deviation, of what is centred. */
static int inverse_deviation(struct tnd_onnx_call *call, int centred, unsigned axes, double epsilon)
{
    const int squares = tnd_net_formula(call->net, "x: x * x", centred);
    const int variance = mean(call, squares, axes);
    return tnd_net_formula(call->net, INVERSE_ROOT, variance, epsilon);
}

/* Mean 0 and variance 1 along the axes; the mean and the inverse of the deviation, too. */
struct standard {
    int value;
    int mean;
    int inverse;
};

static struct standard standardise(struct tnd_onnx_call *call, int x, unsigned axes, double epsilon)
{
    struct standard to;
    to.mean = mean(call, x, axes);
    const int centred = tnd_onnx_binary(call, TANDEM_BINARY_SUB, x, to.mean);
    to.inverse = inverse_deviation(call, centred, axes, epsilon);
    to.value = tnd_onnx_binary(call, TANDEM_BINARY_MUL, centred, to.inverse);
    return to;
}

/* A list of one value a channel, read as {1, C, 1, ...} of `rank` dimensions. */
static int by_channel(struct tnd_onnx_call *call, int list, int rank)
{
    struct tnd_dims shape = {.n = rank};
    if (list == TANDEM_NET_NONE || rank < 2) {
        return list == TANDEM_NET_NONE ? list : tnd_onnx_refuse(call, "%d dimensions", rank);
    }
    for (int i = 0; i < rank; i++) {
        shape.dims[i] = i == 1 ? tnd_dims_values(tnd_onnx_shape_of(call, list)) : 1;
    }
    return tnd_net_reshape(call->net, list, &shape);
}

/* x * scale + bias, in a type of its own. */
static int scale_and_shift(struct tnd_onnx_call *call, int x, int scale, int bias)
{
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    return tnd_net_formula(call->net, "x, scale, bias?: x * scale + bias", x,
                           tnd_net_cast(call->net, scale, type),
                           tnd_net_cast(call->net, bias, type));
}

static void give(struct tnd_onnx_call *call, int value)
{
    call->out[0] = tnd_onnx_narrow(call, value, tnd_onnx_in(call, 0));
}

/* The axes from `axis` on; false: refused. */
static bool axes_from(struct tnd_onnx_call *call, int rank, unsigned *out)
{
    int axis;
    if (!tnd_onnx_axis(call, tnd_onnx_int(call, "axis", -1), rank, &axis)) {
        return false;
    }
    *out = ((1U << rank) - 1) & ~((1U << axis) - 1);
    return true;
}

/* The type that statistics are computed in. */
static bool stash_type(struct tnd_onnx_call *call)
{
    const int64_t type = tnd_onnx_int(call, "stash_type", 1);
    if (type != 1) {
        (void)tnd_onnx_refuse(call, "stash_type %lld, expected 1 (float32)", (long long)type);
    }
    return type == 1;
}

static void build_layer_norm(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-5F);
    unsigned axes;
    if (!stash_type(call) || !axes_from(call, tnd_onnx_shape_of(call, from)->n, &axes)) {
        return;
    }
    const int x = tnd_net_cast(call->net, from, TANDEM_DTYPE_F32);
    const struct standard to = standardise(call, x, axes, epsilon);
    give(call, scale_and_shift(call, to.value, tnd_onnx_in(call, 1), tnd_onnx_in(call, 2)));
    if (call->n_out > 1) {
        call->out[1] = to.mean;
    }
    if (call->n_out > 2) {
        call->out[2] = to.inverse;
    }
}

static void build_rms_norm(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-5F);
    unsigned axes;
    if (!stash_type(call) || !axes_from(call, tnd_onnx_shape_of(call, from)->n, &axes)) {
        return;
    }
    const int x = tnd_net_cast(call->net, from, TANDEM_DTYPE_F32);
    const int value =
        tnd_onnx_binary(call, TANDEM_BINARY_MUL, x, inverse_deviation(call, x, axes, epsilon));
    give(call, scale_and_shift(call, value, tnd_onnx_in(call, 1), TANDEM_NET_NONE));
}

static void build_instance_norm(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const int rank = tnd_onnx_shape_of(call, x)->n;
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-5F);
    const int scale = by_channel(call, tnd_onnx_in(call, 1), rank);
    const int bias = by_channel(call, tnd_onnx_in(call, 2), rank);
    if (scale == TANDEM_NET_NONE) {
        return;
    }
    const unsigned axes = ((1U << rank) - 1) & ~3U;
    give(call, scale_and_shift(call, standardise(call, x, axes, epsilon).value, scale, bias));
}

/* From opset 21 on scale and bias are one a channel, before one a group. */
static void build_group_norm(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, from);
    const int64_t groups = tnd_onnx_int(call, "num_groups", 0);
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-5F);
    if (!stash_type(call)) {
        return;
    }
    if (shape.n < 2 || groups < 1 || shape.dims[1] % groups != 0) {
        (void)tnd_onnx_refuse(call, "%lld groups do not divide the channels", (long long)groups);
        return;
    }
    struct tnd_dims split = {3, {shape.dims[0], groups, 1}};
    split.dims[2] = shape.dims[1] / groups;
    for (int i = 2; i < shape.n; i++) {
        split.dims[2] *= shape.dims[i];
    }
    int x = tnd_net_cast(call->net, from, TANDEM_DTYPE_F32);
    x = standardise(call, tnd_net_reshape(call->net, x, &split), 4, epsilon).value;
    const bool is_by_group = call->opset < 21;
    const int rank = is_by_group ? 3 : shape.n;
    x = is_by_group ? x : tnd_net_reshape(call->net, x, &shape);
    x = scale_and_shift(call, x, by_channel(call, tnd_onnx_in(call, 1), rank),
                        by_channel(call, tnd_onnx_in(call, 2), rank));
    give(call, tnd_net_reshape(call->net, x, &shape));
}

/* Running statistics after a training step: old * momentum + new * (1 - momentum). */
static void give_running(struct tnd_onnx_call *call, int at, int now, double momentum)
{
    const int old = tnd_onnx_in(call, at + 2);
    if (at >= call->n_out || old == TANDEM_NET_NONE || now == TANDEM_NET_NONE) {
        return;
    }
    const enum tandem_dtype type = tnd_onnx_type_of(call, old);
    const int list = tnd_net_reshape(call->net, now, tnd_onnx_shape_of(call, old));
    const int kept = tnd_net_cast(call->net, old, tnd_onnx_type_of(call, list));
    const int running =
        tnd_net_formula(call->net, "old, new, momentum: old * momentum + new * (1 - momentum)",
                        kept, list, momentum);
    call->out[at] = tnd_net_cast(call->net, running, type);
}

static void build_batch_norm(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    const int rank = tnd_onnx_shape_of(call, x)->n;
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-5F);
    const double momentum = (double)tnd_onnx_float(call, "momentum", 0.9F);
    const bool is_training = call->opset < 7 ? tnd_onnx_int(call, "is_test", 0) == 0
                                             : tnd_onnx_int(call, "training_mode", 0) != 0;
    const bool is_spatial = call->opset >= 9 || tnd_onnx_int(call, "spatial", 1) == 1;
    if (!is_spatial || (is_training && call->opset < 14)) {
        (void)tnd_onnx_refuse(call, "%s", is_spatial ? "it trains" : "spatial is 0, expected 1");
        return;
    }
    int list[4];
    for (int i = 0; i < 4; i++) {
        list[i] = tnd_net_cast(call->net, by_channel(call, tnd_onnx_in(call, i + 1), rank), type);
        if (list[i] == TANDEM_NET_NONE) {
            return;
        }
    }
    if (is_training) {
        const unsigned axes = ((1U << rank) - 1) & ~2U;
        list[2] = mean(call, x, axes);
        const int centred = tnd_onnx_binary(call, TANDEM_BINARY_SUB, x, list[2]);
        list[3] = mean(call, tnd_onnx_binary(call, TANDEM_BINARY_MUL, centred, centred), axes);
        give_running(call, 1, list[2], momentum);
        give_running(call, 2, list[3], momentum);
    }
    const int centred = tnd_onnx_binary(call, TANDEM_BINARY_SUB, x, list[2]);
    const int inverse = tnd_net_formula(call->net, INVERSE_ROOT, list[3], epsilon);
    const int value = tnd_onnx_binary(call, TANDEM_BINARY_MUL, centred, inverse);
    give(call, scale_and_shift(call, value, list[0], list[1]));
}

/* A set of the axes that an attribute lists; false: refused. */
static bool axes_listed(struct tnd_onnx_call *call, const int64_t *list, int n, int rank,
                        unsigned *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        int axis;
        if (!tnd_onnx_axis(call, list[i], rank, &axis)) {
            return false;
        }
        *out |= 1U << axis;
    }
    return true;
}

static void build_mean_variance(struct tnd_onnx_call *call)
{
    static const int64_t usual[] = {0, 2, 3};
    const int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    int n;
    unsigned axes;
    const int64_t *list = tnd_onnx_ints(call, "axes", &n);
    if (!axes_listed(call, list == NULL ? usual : list, list == NULL ? 3 : n,
                     tnd_onnx_shape_of(call, x)->n, &axes)) {
        return;
    }
    const int centred = tnd_onnx_binary(call, TANDEM_BINARY_SUB, x, mean(call, x, axes));
    const int variance =
        mean(call, tnd_onnx_binary(call, TANDEM_BINARY_MUL, centred, centred), axes);
    const int deviation = tnd_net_unary(call->net, TANDEM_UNARY_SQRT, variance);
    give(call, tnd_onnx_binary(call, TANDEM_BINARY_DIV, centred,
                               tnd_onnx_with(call, TANDEM_BINARY_ADD, deviation, 1e-9)));
}

static void build_lp_norm(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const int64_t p = tnd_onnx_int(call, "p", 2);
    int axis;
    if ((p != 1 && p != 2) || !tnd_onnx_axis(call, tnd_onnx_int(call, "axis", -1),
                                             tnd_onnx_shape_of(call, x)->n, &axis)) {
        (void)tnd_onnx_refuse(call, "p is %lld, expected 1 or 2", (long long)p);
        return;
    }
    const int size = tnd_net_formula(call->net, p == 1 ? "x: abs(x)" : "x: x * x", x);
    const int sum = tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, size, 1U << axis);
    const int norm = p == 1 ? sum : tnd_net_unary(call->net, TANDEM_UNARY_SQRT, sum);
    give(call, tnd_onnx_divided(call, x, norm)); /* zeros stay zeros */
}

/* Divided by a power of the sum of squares of `size` channels around. */
static void build_lrn(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 0.0001F);
    const double beta = (double)tnd_onnx_float(call, "beta", 0.75F);
    const double bias = (double)tnd_onnx_float(call, "bias", 1.0F);
    const int64_t size = tnd_onnx_int(call, "size", 0);
    if (size < 1 || size > 65536 || shape.n < 2) {
        (void)tnd_onnx_refuse(call, "a size of %lld", (long long)size);
        return;
    }
    struct tnd_dims plane = {4, {shape.dims[0], 1, shape.dims[1], 1}};
    for (int i = 2; i < shape.n; i++) {
        plane.dims[3] *= shape.dims[i];
    }
    const struct tnd_window window = {.n = 2,
                                      .extent = {size, 1},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .begin = {(size - 1) / 2, 0},
                                      .end = {size / 2, 0},
                                      .groups = 1};
    int sum = tnd_net_reshape(call->net, tnd_onnx_binary(call, TANDEM_BINARY_MUL, x, x), &plane);
    sum =
        tnd_net_reshape(call->net, tnd_net_pool(call->net, TANDEM_POOL_SUM, sum, &window), &shape);
    give(call,
         tnd_net_formula(call->net, "x, sum, scale, bias, beta: x / pow(sum * scale + bias, beta)",
                         x, sum, alpha / (double)size, bias, beta));
}

/* Whether an operand is 0 everywhere. */
static bool is_zero(struct tnd_onnx_call *call, int value)
{
    const struct tnd_array *array = tnd_onnx_ask(call, value);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        if (tnd_array_number(array, i) != 0.0) {
            return false;
        }
    }
    return array != NULL;
}

/* Training is refused, unless nothing is dropped; without it a value passes as it is. */
static void build_dropout(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    int64_t is_training = 0;
    int n = 1;
    if (call->opset < 12) {
        (void)tnd_onnx_float(call, "ratio", 0.5F);
        is_training = call->opset < 7 && tnd_onnx_int(call, "is_test", 0) == 0;
    } else {
        (void)tnd_onnx_int(call, "seed", 0);
        if (tnd_onnx_in(call, 2) != TANDEM_NET_NONE) {
            tnd_onnx_known(call, tnd_onnx_in(call, 2), "training_mode", &is_training, 1, &n);
        }
    }
    if (n != 1 || (is_training != 0 && !is_zero(call, tnd_onnx_in(call, 1)))) {
        (void)tnd_onnx_refuse(call, "it trains: its values would be random");
        return;
    }
    call->out[0] = x;
    if (call->n_out > 1) {
        const enum tandem_dtype type =
            call->opset < 10 ? tnd_onnx_type_of(call, x) : TANDEM_DTYPE_BOOL;
        call->out[1] = tnd_net_expand(call->net, tnd_net_scalar(call->net, type, 1.0),
                                      tnd_onnx_shape_of(call, x));
    }
}

const struct tnd_onnx_op tnd_onnx_norm[] = {
    {"LayerNormalization", build_layer_norm, 0, "2-3>1-3"},
    {"RMSNormalization", build_rms_norm, 0, "2"},
    {"InstanceNormalization", build_instance_norm, 0, "3"},
    {"GroupNormalization", build_group_norm, 0, "3"},
    {"BatchNormalization", build_batch_norm, 0, "5>1-5 14:5>1-3"},
    {"MeanVarianceNormalization", build_mean_variance, 0, "1"},
    {"LpNormalization", build_lp_norm, 0, "1"},
    {"LRN", build_lrn, 0, "1"},
    {"Dropout", build_dropout, 0, "1>1-2 12:1-3>1-2"},
    {NULL, NULL, 0, NULL},
};
