/* SPDX-License-Identifier: MIT
 * Operators of ONNX: activation functions. Floats of 16 bits are computed with as float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

static int add(struct tnd_onnx_call *call, int a, int b)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_ADD, a, b);
}

static int mul(struct tnd_onnx_call *call, int a, int b)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_MUL, a, b);
}

static int times(struct tnd_onnx_call *call, int value, double number)
{
    return number == 1.0 ? value : tnd_onnx_with(call, TANDEM_BINARY_MUL, value, number);
}

static int plus(struct tnd_onnx_call *call, int value, double number)
{
    return number == 0.0 ? value : tnd_onnx_with(call, TANDEM_BINARY_ADD, value, number);
}

static int clamp(struct tnd_onnx_call *call, int value, double low, double high)
{
    return tnd_onnx_with(call, TANDEM_BINARY_MIN,
                         tnd_onnx_with(call, TANDEM_BINARY_MAX, value, low), high);
}

/* `above` where x > bound, `below` elsewhere. */
static int choose(struct tnd_onnx_call *call, int x, double bound, int above, int below)
{
    const int condition =
        tnd_net_binary(call->net, TANDEM_BINARY_LESS, tnd_onnx_scalar(call, x, bound), x);
    return tnd_net_select(call->net, condition, above, below);
}

static int operand(struct tnd_onnx_call *call)
{
    return tnd_onnx_wide(call, tnd_onnx_in(call, 0));
}

static void give(struct tnd_onnx_call *call, int value)
{
    call->out[0] = tnd_onnx_narrow(call, value, tnd_onnx_in(call, 0));
}

static void build_relu(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_onnx_with(call, TANDEM_BINARY_MAX, tnd_onnx_in(call, 0), 0.0);
}

static void build_leaky_relu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 0.01F);
    give(call, choose(call, x, 0.0, x, times(call, x, alpha)));
}

/* Before opset 7: one value, or one a channel. */
static int old_slope(struct tnd_onnx_call *call, int slope, int rank)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, slope);
    const bool is_list = shape.n == 1;
    while (is_list && shape.n < rank - 1) {
        shape.dims[shape.n++] = 1;
    }
    return tnd_net_reshape(call->net, slope, &shape);
}

static void build_prelu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    int slope = tnd_onnx_wide(call, tnd_onnx_in(call, 1));
    if (call->opset < 7) {
        slope = old_slope(call, slope, tnd_onnx_shape_of(call, x)->n);
    }
    const int below = mul(call, x, tnd_net_expand(call->net, slope, tnd_onnx_shape_of(call, x)));
    give(call, choose(call, x, 0.0, x, below));
}

static void build_thresholded_relu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    give(call, choose(call, x, alpha, x, tnd_onnx_scalar(call, x, 0.0)));
}

/* alpha * (exp(x / width) - 1) of the negative values, 0 of the others. */
static int exponential(struct tnd_onnx_call *call, int x, double alpha, double width)
{
    const int low = tnd_onnx_with(call, TANDEM_BINARY_MIN, x, 0.0);
    const int scaled = width == 1.0 ? low : tnd_onnx_with(call, TANDEM_BINARY_DIV, low, width);
    return times(call, plus(call, tnd_net_unary(call->net, TANDEM_UNARY_EXP, scaled), -1.0), alpha);
}

static void build_elu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    give(call, choose(call, x, 0.0, x, exponential(call, x, alpha, 1.0)));
}

static void build_celu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    give(call, choose(call, x, 0.0, x, exponential(call, x, alpha, alpha)));
}

static void build_selu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.67326319217681884765625F);
    const double gamma = (double)tnd_onnx_float(call, "gamma", 1.05070102214813232421875F);
    const int value = choose(call, x, 0.0, x, exponential(call, x, alpha, 1.0));
    give(call, times(call, value, gamma));
}

static int sigmoid(struct tnd_onnx_call *call, int x)
{
    const int e =
        tnd_net_unary(call->net, TANDEM_UNARY_EXP, tnd_net_unary(call->net, TANDEM_UNARY_NEG, x));
    return tnd_net_unary(call->net, TANDEM_UNARY_RECIPROCAL, plus(call, e, 1.0));
}

static void build_sigmoid(struct tnd_onnx_call *call)
{
    give(call, sigmoid(call, operand(call)));
}

static void build_hard_sigmoid(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 0.2F);
    const double beta = (double)tnd_onnx_float(call, "beta", 0.5F);
    give(call, clamp(call, plus(call, times(call, x, alpha), beta), 0.0, 1.0));
}

static void build_hard_swish(struct tnd_onnx_call *call)
{
    give(call, tnd_net_unary(call->net, TANDEM_UNARY_HARD_SWISH, operand(call)));
}

/* log(1 + exp(x)), which does not overflow: max(x, 0) + log(1 + exp(-|x|)). */
static int softplus(struct tnd_onnx_call *call, int x)
{
    const int size = tnd_net_unary(call->net, TANDEM_UNARY_ABS, x);
    const int e = tnd_net_unary(call->net, TANDEM_UNARY_EXP,
                                tnd_net_unary(call->net, TANDEM_UNARY_NEG, size));
    return add(call, tnd_onnx_with(call, TANDEM_BINARY_MAX, x, 0.0),
               tnd_net_unary(call->net, TANDEM_UNARY_LOG, plus(call, e, 1.0)));
}

static void build_softplus(struct tnd_onnx_call *call)
{
    give(call, softplus(call, operand(call)));
}

static void build_softsign(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const int size = plus(call, tnd_net_unary(call->net, TANDEM_UNARY_ABS, x), 1.0);
    give(call, tnd_net_binary(call->net, TANDEM_BINARY_DIV, x, size));
}

static void build_mish(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    give(call, mul(call, x, tnd_net_unary(call->net, TANDEM_UNARY_TANH, softplus(call, x))));
}

static void build_gelu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const char *approximate = tnd_onnx_word(call, "approximate", "none");
    int inner;
    if (strcmp(approximate, "none") == 0) {
        inner = tnd_net_unary(call->net, TANDEM_UNARY_ERF, times(call, x, sqrt(0.5)));
    } else if (strcmp(approximate, "tanh") == 0) {
        const int cube = mul(call, x, mul(call, x, x));
        const int sum = add(call, x, times(call, cube, 0.044715));
        inner =
            tnd_net_unary(call->net, TANDEM_UNARY_TANH, times(call, sum, sqrt(2.0 / acos(-1.0))));
    } else {
        (void)tnd_onnx_refuse(call, "approximate '%.20s', expected none or tanh", approximate);
        return;
    }
    give(call, mul(call, times(call, x, 0.5), plus(call, inner, 1.0)));
}

static void build_shrink(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const double lambd = (double)tnd_onnx_float(call, "lambd", 0.5F);
    const double bias = (double)tnd_onnx_float(call, "bias", 0.0F);
    /* (integers are compared with lambd as numbers) */
    const int wide = tnd_dtype_kind(tnd_onnx_type_of(call, x)) == TND_KIND_FLOAT
                         ? tnd_onnx_wide(call, x)
                         : tnd_net_cast(call->net, x, TANDEM_DTYPE_F64);
    const int condition =
        tnd_net_binary(call->net, TANDEM_BINARY_LESS, wide, tnd_onnx_scalar(call, wide, -lambd));
    const int below = tnd_net_select(call->net, condition, plus(call, wide, bias),
                                     tnd_onnx_scalar(call, wide, 0.0));
    give(call, choose(call, wide, lambd, plus(call, wide, -bias), below));
}

static void build_swish(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    give(call, mul(call, x, tnd_onnx_apply(call, "Sigmoid", NULL, 0, times(call, x, alpha))));
}

/* Swish of the first operand, times the second, which has the same shape. */
static void build_swiglu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    if (!tnd_dims_is_equal(tnd_onnx_shape_of(call, x), tnd_onnx_shape_of(call, call->in[1]))) {
        (void)tnd_onnx_refuse(call, "operands of two shapes");
        return;
    }
    const int gate = alpha == 1.0 ? tnd_net_unary(call->net, TANDEM_UNARY_SILU, x)
                                  : mul(call, x, sigmoid(call, times(call, x, alpha)));
    give(call, mul(call, gate, tnd_onnx_wide(call, tnd_onnx_in(call, 1))));
}

const struct tnd_onnx_op tnd_onnx_activation[] = {
    {"Relu", build_relu, 0, "1"},
    {"LeakyRelu", build_leaky_relu, 0, "1"},
    {"PRelu", build_prelu, 0, "2"},
    {"ThresholdedRelu", build_thresholded_relu, 0, "1"},
    {"Elu", build_elu, 0, "1"},
    {"Celu", build_celu, 0, "1"},
    {"Selu", build_selu, 0, "1"},
    {"Sigmoid", build_sigmoid, 0, "1"},
    {"Swish", build_swish, 0, "1"},
    {"HardSigmoid", build_hard_sigmoid, 0, "1"},
    {"HardSwish", build_hard_swish, 0, "1"},
    {"Softplus", build_softplus, 0, "1"},
    {"Softsign", build_softsign, 0, "1"},
    {"Mish", build_mish, 0, "1"},
    {"Gelu", build_gelu, 0, "1"},
    {"SwiGLU", build_swiglu, 0, "2"},
    {"Shrink", build_shrink, 0, "1"},
    {NULL, NULL, 0, NULL},
};
