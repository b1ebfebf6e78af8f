/* SPDX-License-Identifier: MIT
 * Operators of ONNX: activation functions. Floats of 16 bits are computed with as float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

/* ---- formulas of the operands and of attributes, whose usual values stand behind them ---- */

#define SIGMOID  "reciprocal(exp(-x) + 1)"
#define SOFTPLUS "(max(x, 0) + log(exp(-abs(x)) + 1))" /* log(1 + exp(x)), without overflow */

#define FORMULAS(X)                                                                                \
    X(LeakyRelu, "x, alpha = 0.01: x > 0 ? x : x * alpha")                                         \
    X(ThresholdedRelu, "x, alpha = 1: x > alpha ? x : 0")                                          \
    X(Elu, "x, alpha = 1: x > 0 ? x : (exp(min(x, 0)) - 1) * alpha")                               \
    X(Celu, "x, alpha = 1: x > 0 ? x : (exp(min(x, 0) / alpha) - 1) * alpha")                      \
    X(Selu, "x, alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875:"             \
            " (x > 0 ? x : (exp(min(x, 0)) - 1) * alpha) * gamma")                                 \
    X(Sigmoid, "x: " SIGMOID)                                                                      \
    X(Swish, "x, alpha = 1: x * reciprocal(exp(-(x * alpha)) + 1)")                                \
    X(HardSigmoid, "x, alpha = 0.2, beta = 0.5: min(max(x * alpha + beta, 0), 1)")                 \
    X(HardSwish, "x: hard_swish(x)")                                                               \
    X(Softplus, "x: " SOFTPLUS)                                                                    \
    X(Softsign, "x: x / (abs(x) + 1)")                                                             \
    X(Mish, "x: x * tanh(" SOFTPLUS ")")

#define FORMULA_KIND(name, text) FORMULA_##name,
#define FORMULA_TEXT(name, text) [FORMULA_##name] = text,
#define FORMULA_ROW(name, text)  {#name, build_formula, FORMULA_##name, "1"},
enum { FORMULAS(FORMULA_KIND) };

static void build_formula(struct tnd_onnx_call *call)
{
    static const char *const texts[] = {FORMULAS(FORMULA_TEXT)};
    tnd_onnx_formula(call, texts[call->kind]);
}

/* ---- others ---- */

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

/* Before opset 7: one value, or one per channel. */
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
    slope = tnd_net_expand(call->net, slope, tnd_onnx_shape_of(call, x));
    give(call, tnd_net_formula(call->net, "x, slope: x > 0 ? x : x * slope", x, slope));
}

static void build_gelu(struct tnd_onnx_call *call)
{
    const int x = operand(call);
    const char *approximate = tnd_onnx_word(call, "approximate", "none");
    const bool is_tanh = strcmp(approximate, "tanh") == 0;
    if (!is_tanh && strcmp(approximate, "none") != 0) {
        (void)tnd_onnx_refuse(call, "approximate '%.20s', expected none or tanh", approximate);
        return;
    }
    const char *text = is_tanh
                           ? "x, scale: x * 0.5 * (tanh((x + x * (x * x) * 0.044715) * scale) + 1)"
                           : "x, scale: x * 0.5 * (erf(x * scale) + 1)";
    const double scale = is_tanh ? sqrt(2.0 / acos(-1.0)) : sqrt(0.5);
    give(call, tnd_net_formula(call->net, text, x, scale));
}

/* (integers are compared with lambd as numbers) */
static void build_shrink(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const double lambd = (double)tnd_onnx_float(call, "lambd", 0.5F);
    const double bias = (double)tnd_onnx_float(call, "bias", 0.0F);
    const int wide = tnd_dtype_kind(tnd_onnx_type_of(call, x)) == TND_KIND_FLOAT
                         ? tnd_onnx_wide(call, x)
                         : tnd_net_cast(call->net, x, TANDEM_DTYPE_F64);
    give(call, tnd_net_formula(call->net,
                               "x, lambd, bias: x > lambd ? x - bias : x < -lambd ? x + bias : 0",
                               wide, lambd, bias));
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
    const char *text = alpha == 1.0 ? "x, y, alpha: silu(x) * y"
                                    : "x, y, alpha: x * reciprocal(exp(-(x * alpha)) + 1) * y";
    const int y = tnd_onnx_wide(call, tnd_onnx_in(call, 1));
    give(call, tnd_net_formula(call->net, text, x, y, alpha));
}

const struct tnd_onnx_op tnd_onnx_activation[] = {
    FORMULAS(FORMULA_ROW){"Relu", build_relu, 0, "1"},
    {"PRelu", build_prelu, 0, "2"},
    {"Gelu", build_gelu, 0, "1"},
    {"SwiGLU", build_swiglu, 0, "2"},
    {"Shrink", build_shrink, 0, "1"},
    {NULL, NULL, 0, NULL},
};
