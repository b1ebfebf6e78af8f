/* SPDX-License-Identifier: MIT
 * Peaks of every 64-bit ARM CPU (NEON). */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16, LINES = 4 };

static double fma_peak(int64_t rounds)
{
    float32x4_t sum[CHAINS];
    float32x4_t factor = vdupq_n_f32(0.999f);
    const float32x4_t term = vdupq_n_f32(0.001f);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = vdupq_n_f32((float)i); /* different values: equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = vfmaq_f32(sum[i], factor, term);
        }
        __asm__ volatile("" : "+w"(factor));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = vaddq_f32(sum[0], sum[i]);
    }
    volatile float result = vaddvq_f32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 4 * 2;
}

/* Bytes to 16-bit, then 32-bit sums, as the kernels do with 4 bits. */
static double int8_peak(int64_t rounds)
{
    int32x4_t sum[CHAINS / 4];
    int8x16_t w = vdupq_n_s8(3);
    const int8x16_t x = vdupq_n_s8(5);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS / 4; i++) {
        sum[i] = vdupq_n_s32(i);
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS / 4; i++) {
            int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
            int16x8_t high = vmull_high_s8(w, x);
            TND_PEAK_UNROLL
            for (int step = 1; step < 4; step++) {
                __asm__ volatile("" : "+w"(w));
                low = vmlal_s8(low, vget_low_s8(w), vget_low_s8(x));
                high = vmlal_high_s8(high, w, x);
            }
            sum[i] = vpadalq_s16(sum[i], vpaddq_s16(low, high));
        }
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS / 4; i++) {
        sum[0] = vaddq_s32(sum[0], sum[i]);
    }
    volatile int32_t result = vaddvq_s32(sum[0]);
    (void)result;
    return (double)rounds * (CHAINS / 4) * 4 * 16 * 2;
}

static int64_t read_all(const void *memory, size_t bytes)
{
    const uint8_t *p = memory;
    const uint8_t *end = p + bytes / (LINES * 16) * (LINES * 16);
    uint8x16_t sum[LINES];
    TND_PEAK_UNROLL
    for (int i = 0; i < LINES; i++) {
        sum[i] = vdupq_n_u8(0);
    }
    for (; p < end; p += LINES * 16) {
        TND_PEAK_UNROLL
        for (int i = 0; i < LINES; i++) {
            sum[i] = veorq_u8(sum[i], vld1q_u8(p + 16 * i));
        }
    }
    uint8x16_t all = veorq_u8(veorq_u8(sum[0], sum[1]), veorq_u8(sum[2], sum[3]));
    return vgetq_lane_s64(vreinterpretq_s64_u8(all), 0) ^
           vgetq_lane_s64(vreinterpretq_s64_u8(all), 1);
}

void tnd_peaks_fill_neon(struct tnd_peaks *out)
{
    out->fma = fma_peak;
    out->int8 = int8_peak;
    out->int8_unit = "int8 NEON";
    out->read = read_all;
}
#else
typedef int tnd_no_neon;
#endif
