/* SPDX-License-Identifier: MIT
 * Peak of ARM's dot product of bytes. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16 };

static double int8_peak(int64_t rounds)
{
    int32x4_t sum[CHAINS];
    int8x16_t w = vdupq_n_s8(3);
    const int8x16_t x = vdupq_n_s8(5);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = vdupq_n_s32(i); /* equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = vdotq_s32(sum[i], w, x);
        }
        __asm__ volatile("" : "+w"(w));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = vaddq_s32(sum[0], sum[i]);
    }
    volatile int32_t result = vaddvq_s32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 16 * 2;
}

void tnd_peaks_fill_dotprod(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 dotprod";
}
#else
typedef int tnd_no_dotprod;
#endif
