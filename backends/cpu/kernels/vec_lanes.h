/* SPDX-License-Identifier: MIT
 * The row kernels, written once for every vector width; vec_<isa>.c includes this file after
 * defining `vec`, LANES, the operations v_* and TND_VEC_FUSED. The end of a row uses the same
 * instructions as its body (with lanes masked off), so that a value's bits do not depend on n. */
#ifndef TND_VEC_LANES_H
#define TND_VEC_LANES_H

#include <math.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/lanes_math.h"
#include "ggml-like/quant.h"

_Static_assert(LANES == TND_VEC_LANES, "a vector is one of lanes.h");

enum { SUM_BLOCK = 1024 }; /* values per single-precision sum; these sums are added in double */

#define BINARY(name, operation)                                                                    \
    static void name(const float *a, const float *b, float *y, int64_t n)                          \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            v_store(y + i, operation(v_load(a + i), v_load(b + i)));                               \
        }                                                                                          \
        if (i < n) {                                                                               \
            int rest = (int)(n - i);                                                               \
            v_store_part(y + i, rest,                                                              \
                         operation(v_load_part(a + i, rest), v_load_part(b + i, rest)));           \
        }                                                                                          \
    }
BINARY(vec_add, v_add)
BINARY(vec_sub, v_sub)
BINARY(vec_mul, v_mul)
BINARY(vec_div, v_div)

#define UNARY(name, function)                                                                      \
    static void name(const float *a, float *y, int64_t n)                                          \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            v_store(y + i, function(v_load(a + i)));                                               \
        }                                                                                          \
        if (i < n) {                                                                               \
            int rest = (int)(n - i);                                                               \
            v_store_part(y + i, rest, function(v_load_part(a + i, rest)));                         \
        }                                                                                          \
    }

static inline vec v_square(vec x)
{
    return v_mul(x, x);
}

static inline vec v_relu(vec x)
{
    return v_max(v_set(0.0f), x); /* NaN propagates as second operand */
}

UNARY(vec_sqr, v_square)
UNARY(vec_sqrt, v_sqrt)
UNARY(vec_relu, v_relu)
UNARY(vec_silu, tnd_vec_silu)
UNARY(vec_gelu, tnd_vec_gelu_tanh)
UNARY(vec_gelu_erf, tnd_vec_gelu)
UNARY(vec_sigmoid, tnd_vec_sigmoid)
UNARY(vec_exp, tnd_vec_exp)
UNARY(vec_tanh, tnd_vec_tanh)

static void vec_affine(const float *a, float shift, float factor, float *y, int64_t n)
{
    vec s = v_set(shift);
    vec f = v_set(factor);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        v_store(y + i, v_mul(v_sub(v_load(a + i), s), f));
    }
    if (i < n) {
        int rest = (int)(n - i);
        v_store_part(y + i, rest, v_mul(v_sub(v_load_part(a + i, rest), s), f));
    }
}

static void vec_clamp(const float *a, float low, float high, float *y, int64_t n)
{
    vec least = v_set(low);
    vec most = v_set(high);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        v_store(y + i, v_min(most, v_max(least, v_load(a + i))));
    }
    if (i < n) {
        int rest = (int)(n - i);
        v_store_part(y + i, rest, v_min(most, v_max(least, v_load_part(a + i, rest))));
    }
}

/* ---- sums: lanes of a block in single precision, blocks in double ---- */

static double block_sum(const float *a, int64_t n)
{
    vec sum0 = v_set(0.0f);
    vec sum1 = v_set(0.0f);
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        sum0 = v_add(sum0, v_load(a + i));
        sum1 = v_add(sum1, v_load(a + i + LANES));
    }
    for (; i < n; i += LANES) {
        sum0 = v_add(sum0, v_load_part(a + i, (int)(n - i < LANES ? n - i : LANES)));
    }
    return v_sum(v_add(sum0, sum1));
}

static double vec_sum(const float *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        sum += block_sum(a + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    }
    return sum;
}

static double block_sum_squares(const float *a, float shift, int64_t n)
{
    vec s = v_set(shift);
    vec sum0 = v_set(0.0f);
    vec sum1 = v_set(0.0f);
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vec x0 = v_sub(v_load(a + i), s);
        vec x1 = v_sub(v_load(a + i + LANES), s);
        sum0 = v_fmadd(x0, x0, sum0);
        sum1 = v_fmadd(x1, x1, sum1);
    }
    for (; i < n; i += LANES) {
        int rest = (int)(n - i < LANES ? n - i : LANES);
        vec x = v_keep(v_sub(v_load_part(a + i, rest), s), rest, v_set(0.0f));
        sum0 = v_fmadd(x, x, sum0);
    }
    return v_sum(v_add(sum0, sum1));
}

static double vec_sum_squares(const float *a, float shift, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        sum += block_sum_squares(a + i, shift, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    }
    return sum;
}

/* ---- soft_max ---- */

static float vec_scores(const float *a, const float *mask, float scale, float *y, int64_t n)
{
    vec s = v_set(scale);
    vec largest = v_set(-INFINITY);
    for (int64_t i = 0; i < n; i += LANES) {
        int rest = (int)(n - i < LANES ? n - i : LANES);
        vec x = v_mul(v_load_part(a + i, rest), s);
        if (mask != NULL) {
            x = v_add(x, v_load_part(mask + i, rest));
        }
        v_store_part(y + i, rest, x);
        largest = v_max(v_keep(x, rest, largest), largest); /* NaN is ignored */
    }
    return v_largest(largest);
}

static double vec_exp_sum(float *y, float largest, int64_t n)
{
    vec shift = v_set(largest);
    double sum = 0;
    for (int64_t block = 0; block < n; block += SUM_BLOCK) {
        int64_t end = n - block < SUM_BLOCK ? n : block + SUM_BLOCK;
        vec part = v_set(0.0f);
        int64_t i = block;
        for (; i + LANES <= end; i += LANES) {
            const vec x = tnd_vec_exp(v_sub(v_load(y + i), shift));
            v_store(y + i, x);
            part = v_add(part, x);
        }
        if (i < end) {
            const int rest = (int)(end - i);
            const vec x = tnd_vec_exp(v_sub(v_load_part(y + i, rest), shift));
            v_store_part(y + i, rest, x);
            part = v_add(part, v_keep(x, rest, v_set(0.0f)));
        }
        sum += v_sum(part);
    }
    return sum;
}

/* ---- rope: no fused operations, so that all instruction sets give the same bits ---- */

static void vec_rope_adjacent(const float *a, const float *cosines, const float *sines, float *y,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int rest = (int)(n - i < LANES ? n - i : LANES);
        vec x = v_load_part(a + i, rest);
        vec rotated = v_mul(v_swap_pairs(x), v_load_part(sines + i, rest));
        v_store_part(y + i, rest, v_add(v_mul(x, v_load_part(cosines + i, rest)), rotated));
    }
}

static void vec_rope_halves(const float *a, const float *cosines, const float *sines, float *y,
                            int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int rest = (int)(n - i < LANES ? n - i : LANES);
        vec c = v_load_part(cosines + i, rest);
        vec s = v_load_part(sines + i, rest);
        vec x0 = v_load_part(a + i, rest);
        vec x1 = v_load_part(a + n + i, rest);
        v_store_part(y + i, rest, v_sub(v_mul(x0, c), v_mul(x1, s)));
        v_store_part(y + n + i, rest, v_add(v_mul(x1, c), v_mul(x0, s)));
    }
}

/* ---- weighted rows ---- */

/* Four vectors of the result stay in registers over all rows. */
static void vec_add_rows(const float *p, const float *rows, int64_t stride, float *y,
                         int64_t n_rows, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        vec sum0 = v_load(y + i);
        vec sum1 = v_load(y + i + LANES);
        vec sum2 = v_load(y + i + 2 * LANES);
        vec sum3 = v_load(y + i + 3 * LANES);
        for (int64_t j = 0; j < n_rows; j++) {
            const float *row = rows + j * stride + i;
            vec w = v_set(p[j]);
            sum0 = v_fmadd(w, v_load(row), sum0);
            sum1 = v_fmadd(w, v_load(row + LANES), sum1);
            sum2 = v_fmadd(w, v_load(row + 2 * LANES), sum2);
            sum3 = v_fmadd(w, v_load(row + 3 * LANES), sum3);
        }
        v_store(y + i, sum0);
        v_store(y + i + LANES, sum1);
        v_store(y + i + 2 * LANES, sum2);
        v_store(y + i + 3 * LANES, sum3);
    }
    for (; i < n; i += LANES) {
        int rest = (int)(n - i < LANES ? n - i : LANES);
        vec sum = v_load_part(y + i, rest);
        for (int64_t j = 0; j < n_rows; j++) {
            sum = v_fmadd(v_set(p[j]), v_load_part(rows + j * stride + i, rest), sum);
        }
        v_store_part(y + i, rest, sum);
    }
}

/* ---- 16-bit floats: conversions are exact by definition, so the end of a row may be plain C
 * ---- */

#define HALVES(NAME, load, store)                                                                  \
    static void dequantize_##NAME(const void *src, float *y, int64_t n)                            \
    {                                                                                              \
        const char *a = src;                                                                       \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            v_store(y + i, load((const void *)(a + 2 * i)));                                       \
        }                                                                                          \
        tnd_dequantize_##NAME(a + 2 * i, y + i, n - i);                                            \
    }                                                                                              \
    static void quantize_##NAME(const float *a, void *dst, int64_t n)                              \
    {                                                                                              \
        char *y = dst;                                                                             \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            store((void *)(y + 2 * i), v_load(a + i));                                             \
        }                                                                                          \
        tnd_quantize_##NAME(a + i, y + 2 * i, n - i);                                              \
    }
HALVES(F16, v_load_f16, v_store_f16)
HALVES(BF16, v_load_bf16, v_store_bf16)

static void fill(struct tnd_cpu_kernels *kernels)
{
    struct tnd_vec *out = &kernels->vec;
    out->binary[TANDEM_OP_ADD] = vec_add;
    out->binary[TANDEM_OP_SUB] = vec_sub;
    out->binary[TANDEM_OP_MUL] = vec_mul;
    out->binary[TANDEM_OP_DIV] = vec_div;
    out->unary[TANDEM_OP_SQR] = vec_sqr;
    out->unary[TANDEM_OP_SQRT] = vec_sqrt;
    out->unary[TANDEM_OP_RELU] = vec_relu;
    out->unary[TANDEM_OP_SILU] = vec_silu;
    out->unary[TANDEM_OP_GELU] = vec_gelu;
    out->unary[TANDEM_OP_GELU_ERF] = vec_gelu_erf;
    out->unary[TANDEM_OP_SIGMOID] = vec_sigmoid;
    out->unary[TANDEM_OP_TANH] = vec_tanh;
    out->exp = vec_exp;
    out->affine = vec_affine;
    out->clamp = vec_clamp;
    out->sum = vec_sum;
    out->sum_squares = vec_sum_squares;
    out->scores = vec_scores;
    out->exp_sum = vec_exp_sum;
    out->rope_adjacent = vec_rope_adjacent;
    out->rope_halves = vec_rope_halves;
    out->add_rows = vec_add_rows;
    kernels->dequantize[TANDEM_TYPE_F16] = dequantize_F16;
    kernels->dequantize[TANDEM_TYPE_BF16] = dequantize_BF16;
    kernels->quantize[TANDEM_TYPE_F16] = quantize_F16;
    kernels->quantize[TANDEM_TYPE_BF16] = quantize_BF16;
}

#endif
