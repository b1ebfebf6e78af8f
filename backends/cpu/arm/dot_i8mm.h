/* SPDX-License-Identifier: MIT
 * Vector layout of i8mm for gemm_lanes128.h and packed_lanes128.h: the matrix instruction
 * multiplies 8 unsigned bytes of 2 rows by 8 signed bytes of 2 tokens, so a vector is {row 0 token
 * a, row 0 token b, row 1 token a, row 1 token b}. Codes come from decode_i8mm.c. */
#include <arm_neon.h>

#include "backends/cpu/kernels/kernels.h"

#define CORRECTED(bits) true

enum { SET = 2 }; /* tokens that are multiplied together; vectors for 4 rows of them */

/* 16 activations of each token: first 8 of both tokens, then the other 8 of both. */
TND_INLINE void load_x(const int8_t *a, const int8_t *b, int8x16_t x[SET])
{
    int64x2_t x0 = vreinterpretq_s64_s8(vld1q_s8(a));
    int64x2_t x1 = vreinterpretq_s64_s8(vld1q_s8(b));
    x[0] = vreinterpretq_s8_s64(vzip1q_s64(x0, x1));
    x[1] = vreinterpretq_s8_s64(vzip2q_s64(x0, x1));
}

/* A number per token, for all rows. */
TND_INLINE int32x4_t spread_x(int32_t a, int32_t b)
{
    return vzip1q_s32(vdupq_n_s32(a), vdupq_n_s32(b));
}

TND_INLINE float32x4_t spread_x_f(float a, float b)
{
    return vzip1q_f32(vdupq_n_f32(a), vdupq_n_f32(b));
}

/* A number per row, for all tokens. */
TND_INLINE void spread_rows(float32x4_t rows, float32x4_t out[SET])
{
    out[0] = vzip1q_f32(rows, rows);
    out[1] = vzip2q_f32(rows, rows);
}

/* 4 rows of the result; b equals a if the set has one token only. */
TND_INLINE void load_y(const float *a, const float *b, float32x4_t y[SET])
{
    float32x4_t y0 = vld1q_f32(a);
    float32x4_t y1 = vld1q_f32(b);
    y[0] = vzip1q_f32(y0, y1);
    y[1] = vzip2q_f32(y0, y1);
}

TND_INLINE void store_y(float *a, float *b, const float32x4_t y[SET])
{
    vst1q_f32(b, vuzp2q_f32(y[0], y[1]));
    vst1q_f32(a, vuzp1q_f32(y[0], y[1]));
}

TND_INLINE void dot(const uint8x16_t w[4], const int8x16_t x[SET], const int bits,
                    int32x4_t sum[SET])
{
    (void)bits;
    sum[0] = vusmmlaq_s32(sum[0], w[0], x[0]);
    sum[1] = vusmmlaq_s32(sum[1], w[1], x[0]);
    sum[0] = vusmmlaq_s32(sum[0], w[2], x[1]);
    sum[1] = vusmmlaq_s32(sum[1], w[3], x[1]);
}
