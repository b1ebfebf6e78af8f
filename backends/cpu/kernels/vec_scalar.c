/* SPDX-License-Identifier: MIT
 * Row kernels in plain C: the reference for the vector versions. */
#include <math.h>

#include "backends/cpu/kernels/kernels.h"
#include "ggml-like/tnd_type.h"

#define BINARY(name, operation)                                                                    \
    static void name(const float *a, const float *b, float *y, int64_t n)                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            y[i] = a[i] operation b[i];                                                            \
        }                                                                                          \
    }
BINARY(vec_add, +)
BINARY(vec_sub, -)
BINARY(vec_mul, *)
BINARY(vec_div, /)

#define UNARY(name, expression)                                                                    \
    static void name(const float *a, float *y, int64_t n)                                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float x = a[i];                                                                        \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }

static float silu_one(float x)
{
    return x / (1.0f + expf(-x));
}

/* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3) */
static float gelu_one(float x)
{
    return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * (x * x * x))));
}

UNARY(vec_sqr, x *x)
UNARY(vec_sqrt, sqrtf(x))
UNARY(vec_relu, x > 0.0f || isnan(x) ? x : 0.0f)
UNARY(vec_silu, silu_one(x))
UNARY(vec_gelu, gelu_one(x))
UNARY(vec_gelu_erf, 0.5f * x * erfcf(-x * 0.70710678f)) /* no difference of nearly equal numbers */
UNARY(vec_sigmoid, 1.0f / (1.0f + expf(-x)))
UNARY(vec_tanh, tanhf(x))
UNARY(vec_exp, expf(x))

static void vec_affine(const float *a, float shift, float factor, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = (a[i] - shift) * factor;
    }
}

static void vec_clamp(const float *a, float low, float high, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = a[i] < low ? low : a[i] > high ? high : a[i];
    }
}

static double vec_sum(const float *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)a[i];
    }
    return sum;
}

static double vec_sum_squares(const float *a, float shift, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(a[i] - shift);
        sum += x * x;
    }
    return sum;
}

static float vec_scores(const float *a, const float *mask, float scale, float *y, int64_t n)
{
    float largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        y[i] = mask != NULL ? a[i] * scale + mask[i] : a[i] * scale;
        largest = y[i] > largest ? y[i] : largest;
    }
    return largest;
}

static double vec_exp_sum(float *y, float largest, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        y[i] = expf(y[i] - largest);
        sum += (double)y[i];
    }
    return sum;
}

static void vec_rope_adjacent(const float *a, const float *cosines, const float *sines, float *y,
                              int64_t n)
{
    for (int64_t i = 0; i + 1 < n; i += 2) {
        float x0 = a[i];
        float x1 = a[i + 1];
        y[i] = x0 * cosines[i] + x1 * sines[i];
        y[i + 1] = x1 * cosines[i + 1] + x0 * sines[i + 1];
    }
}

static void vec_rope_halves(const float *a, const float *cosines, const float *sines, float *y,
                            int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x0 = a[i];
        float x1 = a[i + n];
        y[i] = x0 * cosines[i] - x1 * sines[i];
        y[i + n] = x1 * cosines[i] + x0 * sines[i];
    }
}

static void vec_add_rows(const float *p, const float *rows, int64_t stride, float *y,
                         int64_t n_rows, int64_t n)
{
    for (int64_t j = 0; j < n_rows; j++) {
        for (int64_t i = 0; i < n; i++) {
            y[i] += p[j] * rows[j * stride + i];
        }
    }
}

void tnd_fill_vec_scalar(struct tnd_cpu_kernels *out)
{
    out->vec = (struct tnd_vec){
        .isa = "scalar",
        .binary[TANDEM_OP_ADD] = vec_add,
        .binary[TANDEM_OP_SUB] = vec_sub,
        .binary[TANDEM_OP_MUL] = vec_mul,
        .binary[TANDEM_OP_DIV] = vec_div,
        .unary[TANDEM_OP_SQR] = vec_sqr,
        .unary[TANDEM_OP_SQRT] = vec_sqrt,
        .unary[TANDEM_OP_RELU] = vec_relu,
        .unary[TANDEM_OP_SILU] = vec_silu,
        .unary[TANDEM_OP_GELU] = vec_gelu,
        .unary[TANDEM_OP_SIGMOID] = vec_sigmoid,
        .unary[TANDEM_OP_GELU_ERF] = vec_gelu_erf,
        .unary[TANDEM_OP_TANH] = vec_tanh,
        .exp = vec_exp,
        .affine = vec_affine,
        .clamp = vec_clamp,
        .sum = vec_sum,
        .sum_squares = vec_sum_squares,
        .scores = vec_scores,
        .exp_sum = vec_exp_sum,
        .rope_adjacent = vec_rope_adjacent,
        .add_rows = vec_add_rows,
        .rope_halves = vec_rope_halves,
    };
    out->attention = tnd_attention_scalar;
    out->few = tnd_few_scalar;
    for (int i = 0; i < TANDEM_TYPE_NUMBERS; i++) {
        const struct tnd_type_traits *traits = tnd_type_traits((enum tandem_type)i);
        out->dequantize[i] = traits != NULL ? traits->dequantize : NULL;
        out->quantize[i] = traits != NULL ? traits->quantize : NULL;
    }
}
