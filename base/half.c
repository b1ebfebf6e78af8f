/* SPDX-License-Identifier: MIT
 * Whole rows of half and bfloat16 numbers, plain C. */
#include "base/half.h"

void tnd_f16_row_to_f32(const uint16_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] = tnd_f16_to_f32(src[i]);
    }
}

void tnd_f32_row_to_f16(const float *src, uint16_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] = tnd_f32_to_f16(src[i]);
    }
}

void tnd_bf16_row_to_f32(const uint16_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] = tnd_bf16_to_f32(src[i]);
    }
}

void tnd_f32_row_to_bf16(const float *src, uint16_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] = tnd_f32_to_bf16(src[i]);
    }
}
