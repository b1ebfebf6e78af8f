/* SPDX-License-Identifier: MIT
 * The codec of BCML1: 32 values as levels 0..15 of a line, fitted by least squares. The header is
 * that of Q4_1; values are stored in order, the first of each byte in its low half. The compressor
 * is quant_bcml1_lanes.h, compiled here as plain C. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cpu.h"
#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_bcml1.h"

typedef struct {
    float at[8];
} vec;

#define LANEWISE(name, expression)                                                                 \
    static inline vec name(vec a, vec b)                                                           \
    {                                                                                              \
        vec v;                                                                                     \
        for (int i = 0; i < 8; i++) {                                                              \
            v.at[i] = (expression);                                                                \
        }                                                                                          \
        return v;                                                                                  \
    }
LANEWISE(v_add, a.at[i] + b.at[i])
LANEWISE(v_sub, a.at[i] - b.at[i])
LANEWISE(v_mul, a.at[i] * b.at[i])
LANEWISE(v_div, a.at[i] / b.at[i])
LANEWISE(v_min, a.at[i] < b.at[i] ? a.at[i] : b.at[i])
LANEWISE(v_max, a.at[i] > b.at[i] ? a.at[i] : b.at[i])
#undef LANEWISE

static inline vec v_load(const float *p)
{
    vec v;
    memcpy(v.at, p, sizeof(v.at));
    return v;
}

static inline void v_store(float *p, vec v)
{
    memcpy(p, v.at, sizeof(v.at));
}

static inline vec v_set(float value)
{
    return (vec){{value, value, value, value, value, value, value, value}};
}

static inline vec v_truncate(vec v)
{
    for (int i = 0; i < 8; i++) {
        v.at[i] = (float)(int)v.at[i];
    }
    return v;
}

static inline bool v_same(vec a, vec b)
{
    bool same = true;
    for (int i = 0; i < 8; i++) {
        same = same && a.at[i] == b.at[i];
    }
    return same;
}

static inline vec v_half(vec v)
{
    for (int i = 0; i < 8; i++) {
        v.at[i] = tnd_f16_to_f32(tnd_f32_to_f16(v.at[i]));
    }
    return v;
}

static inline vec v_if_positive(vec c, vec a, vec b)
{
    for (int i = 0; i < 8; i++) {
        a.at[i] = c.at[i] > 0 ? a.at[i] : b.at[i];
    }
    return a;
}

typedef struct {
    double at[8];
} vec_double;

static inline vec_double v_no_error(void)
{
    return (vec_double){{0}};
}

static inline vec_double v_add_error(vec_double sum, vec y, float x)
{
    for (int i = 0; i < 8; i++) {
        double difference = (double)y.at[i] - (double)x;
        sum.at[i] += difference * difference;
    }
    return sum;
}

static inline void v_store_double(double *p, vec_double v)
{
    memcpy(p, v.at, sizeof(v.at));
}

#include "ggml-like/quant_bcml1_lanes.h"

void tnd_quantize_bcml1_scalar(const float *src, void *dst, int64_t n)
{
    quantize_blocks(src, dst, n);
}

void tnd_quantize_BCML1(const float *src, void *dst, int64_t n)
{
#if defined(__x86_64__)
    if ((tnd_cpu_features() & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        tnd_quantize_bcml1_avx2(src, dst, n);
        return;
    }
#endif
    tnd_quantize_bcml1_scalar(src, dst, n);
}

void tnd_dequantize_BCML1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_1 *block = src;
    for (int64_t i = 0; i < n; i += VALUES, block++) {
        const float d = tnd_f16_to_f32(block->d);
        const float m = tnd_f16_to_f32(block->m);
        for (int j = 0; j < VALUES / 2; j++) {
            dst[i + 2 * j] = d * (float)(block->qs[j] & 15) + m;
            dst[i + 2 * j + 1] = d * (float)(block->qs[j] >> 4) + m;
        }
    }
}
