/* SPDX-License-Identifier: MIT
 * Vector layout of NEON and dotprod for gemm_lanes128.h and packed_lanes128.h: a vector is 4 rows
 * of one token. See dot_i8mm.h for the other layout. */
#include <arm_neon.h>

#include "backends/cpu/kernels/kernels.h"

enum { SET = 1 }; /* tokens that are multiplied together; vectors for 4 rows of them */

/* 16 activations of a token. */
TND_INLINE void load_x(const int8_t *a, const int8_t *b, int8x16_t x[SET])
{
    (void)b;
    x[0] = vld1q_s8(a);
}

/* A number per token, for all rows. */
TND_INLINE int32x4_t spread_x(int32_t a, int32_t b)
{
    (void)b;
    return vdupq_n_s32(a);
}

TND_INLINE float32x4_t spread_x_f(float a, float b)
{
    (void)b;
    return vdupq_n_f32(a);
}

/* A number per row, for all tokens. */
TND_INLINE void spread_rows(float32x4_t rows, float32x4_t out[SET])
{
    out[0] = rows;
}

/* 4 rows of the result; b equals a if the set has one token only. */
TND_INLINE void load_y(const float *a, const float *b, float32x4_t y[SET])
{
    (void)b;
    y[0] = vld1q_f32(a);
}

TND_INLINE void store_y(float *a, float *b, const float32x4_t y[SET])
{
    (void)b;
    vst1q_f32(a, y[0]);
}

/* For instructions that multiply signed bytes: subtracts 128 from 8-bit codes. */
TND_INLINE int8x16_t signed_codes(uint8x16_t codes, const int bits)
{
    return vreinterpretq_s8_u8(bits < 8 ? codes : veorq_u8(codes, vdupq_n_u8(0x80)));
}
