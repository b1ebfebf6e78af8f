/* SPDX-License-Identifier: MIT
 * Element-wise operations, builders and reference: value i of the result needs value i of `a` and,
 * with two operands, one value of `b`. */
#include <math.h>

#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

static tandem_tensor *binary(tandem_context *context, enum tandem_op op, tandem_tensor *a,
                             tandem_tensor *b)
{
    if (!tnd_build_ready_f32(context, op, "a", a) || !tnd_build_ready_f32(context, op, "b", b)) {
        return NULL;
    }
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        const bool fits = a->ne[i] == b->ne[i] || (b->ne[i] > 0 && a->ne[i] % b->ne[i] == 0);
        if (!fits) {
            char a_shape[TND_SHAPE_TEXT_BYTES];
            char b_shape[TND_SHAPE_TEXT_BYTES];
            const char *name = tandem_op_name(op);
            return tnd_build_fail(context, TANDEM_E_SHAPE, name, b->ne[i], a->ne[i],
                                  "%s: b %s cannot be repeated to the shape of a %s (ne[%d])", name,
                                  tnd_shape_text(b->ne, b_shape), tnd_shape_text(a->ne, a_shape),
                                  i);
        }
    }
    return tnd_build_node(context, op, TANDEM_TYPE_F32, a->ne, a, b);
}

static tandem_tensor *unary(tandem_context *context, enum tandem_op op, tandem_tensor *a)
{
    if (!tnd_build_ready_f32(context, op, "a", a)) {
        return NULL;
    }
    return tnd_build_node(context, op, TANDEM_TYPE_F32, a->ne, a, NULL);
}

/* ---- one row per operation: its builder, and its formula for the reference ---- */

#define BINARY(X)                                                                                  \
    X(add, ADD, a + b)                                                                             \
    X(sub, SUB, a - b)                                                                             \
    X(mul, MUL, a *b)                                                                              \
    X(div, DIV, a / b)
#define UNARY(X)                                                                                   \
    X(sqr, SQR, a *a)                                                                              \
    X(sqrt, SQRT, sqrt(a))                                                                         \
    X(gelu_erf, GELU_ERF, 0.5 * a * erfc(-a / sqrt(2.0)))                                          \
    X(sigmoid, SIGMOID, 1.0 / (1.0 + exp(-a)))                                                     \
    X(tanh, TANH, tanh(a))                                                                         \
    X(silu, SILU, a / (1.0 + exp(-a)))                                                             \
    X(gelu, GELU,                                                                                  \
      0.5 * a * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (a + 0.044715 * a * a * a))))     \
    X(relu, RELU, a > 0.0 || isnan(a) ? a : 0.0)

#define BUILD_BINARY(name, NAME, formula)                                                          \
    tandem_tensor *tandem_##name(tandem_context *context, tandem_tensor *a, tandem_tensor *b)      \
    {                                                                                              \
        return binary(context, TANDEM_OP_##NAME, a, b);                                            \
    }
#define BUILD_UNARY(name, NAME, formula)                                                           \
    tandem_tensor *tandem_##name(tandem_context *context, tandem_tensor *a)                        \
    {                                                                                              \
        return unary(context, TANDEM_OP_##NAME, a);                                                \
    }
#define FORMULA(name, NAME, formula)                                                               \
    static double ref_##name(double a, double b)                                                   \
    {                                                                                              \
        (void)b;                                                                                   \
        return formula;                                                                            \
    }
BINARY(BUILD_BINARY)
UNARY(BUILD_UNARY)
BINARY(FORMULA)
UNARY(FORMULA)
FORMULA(scale, SCALE, a *b)          /* b: the factor */
FORMULA(clamp, CLAMP, a > b ? b : a) /* b: the upper bound; `a` was raised to the lower one */

tandem_tensor *tandem_scale(tandem_context *context, tandem_tensor *a, float factor)
{
    tandem_tensor *node = unary(context, TANDEM_OP_SCALE, a);
    if (node != NULL) {
        node->params.factor = factor;
    }
    return node;
}

tandem_tensor *tandem_clamp(tandem_context *context, tandem_tensor *a, float low, float high)
{
    tandem_tensor *node = unary(context, TANDEM_OP_CLAMP, a);
    if (node != NULL && !(low <= high)) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "clamp", 0, 0,
                              "clamp: low %g is not at most high %g", (double)low, (double)high);
    }
    if (node != NULL) {
        node->params.clamp.low = low;
        node->params.clamp.high = high;
    }
    return node;
}

/* ---- reference ---- */

enum tandem_status tnd_ref_binary(struct tandem_tensor *node, struct tandem_error *error)
{
#define ROW(name, NAME, formula) [TANDEM_OP_##NAME] = ref_##name,
    static double (*const formulas[TANDEM_OP_COUNT])(double, double) = {
        BINARY(ROW) UNARY(ROW)[TANDEM_OP_SCALE] = ref_scale, [TANDEM_OP_CLAMP] = ref_clamp};
    const bool is_clamp = node->op == TANDEM_OP_CLAMP;
    const double parameter = (double)(is_clamp ? node->params.clamp.high : node->params.factor);
    const double low = is_clamp ? (double)node->params.clamp.low : -INFINITY;
#undef ROW
    (void)error;
    const struct tandem_tensor *a = node->src[0];
    const struct tandem_tensor *b = node->n_src > 1 ? node->src[1] : NULL;
    for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < node->ne[1]; i1++) {
                for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
                    const double value = tnd_ref_value(a, i0, i1, i2, i3);
                    const double x = value < low ? low : value;
                    const double y = b == NULL ? parameter
                                               : tnd_ref_value(b, i0 % b->ne[0], i1 % b->ne[1],
                                                               i2 % b->ne[2], i3 % b->ne[3]);
                    *(float *)(void *)tnd_ref_at(node, i0, i1, i2, i3) =
                        (float)formulas[node->op](x, y);
                }
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ref_unary(struct tandem_tensor *node, struct tandem_error *error)
{
    return tnd_ref_binary(node, error);
}
