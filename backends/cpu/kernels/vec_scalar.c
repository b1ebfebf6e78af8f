/* SPDX-License-Identifier: MIT
 * Row kernels in plain C: the truth that the vector versions are compared with. */
#include <math.h>

#include "backends/cpu/kernels/vec.h"
#include "base/half.h"

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
UNARY(vec_exp, expf(x))

static void vec_affine(const float *a, float shift, float factor, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = (a[i] - shift) * factor;
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

static void vec_dots(const float *x, const float *rows, int64_t stride, float *y, int64_t n_rows,
                     int64_t n)
{
    for (int64_t j = 0; j < n_rows; j++) {
        float sum = 0.0f;
        for (int64_t i = 0; i < n; i++) {
            sum += x[i] * rows[j * stride + i];
        }
        y[j] = sum;
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

void tnd_vec_fill_scalar(struct tnd_vec *out)
{
    *out = (struct tnd_vec){
        .isa = "scalar",
        .add = vec_add,
        .sub = vec_sub,
        .mul = vec_mul,
        .div = vec_div,
        .sqr = vec_sqr,
        .sqrt = vec_sqrt,
        .relu = vec_relu,
        .silu = vec_silu,
        .gelu = vec_gelu,
        .exp = vec_exp,
        .affine = vec_affine,
        .sum = vec_sum,
        .sum_squares = vec_sum_squares,
        .scores = vec_scores,
        .exp_sum = vec_exp_sum,
        .rope_adjacent = vec_rope_adjacent,
        .dots = vec_dots,
        .add_rows = vec_add_rows,
        .rope_halves = vec_rope_halves,
        .f16_to_f32 = tnd_f16_row_to_f32,
        .f32_to_f16 = tnd_f32_row_to_f16,
        .bf16_to_f32 = tnd_bf16_row_to_f32,
        .f32_to_bf16 = tnd_f32_row_to_bf16,
        .strip = tnd_strip_scalar,
    };
}
