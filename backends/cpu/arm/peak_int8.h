/* SPDX-License-Identifier: MIT
 * The loop of ARM's int8 peaks. The including file defines 16 bytes of W (PEAK_W, PEAK_SET), their
 * product with 16 of X (PEAK_DOT) and its number of multiply-adds (PEAK_MADDS). */
#include <arm_neon.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16 };

static double int8_peak(int64_t rounds)
{
    int32x4_t sum[CHAINS];
    PEAK_W w = PEAK_SET(3);
    const int8x16_t x = vdupq_n_s8(5);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = vdupq_n_s32(i); /* different values: equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = PEAK_DOT(sum[i], w, x);
        }
        __asm__ volatile("" : "+w"(w));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = vaddq_s32(sum[0], sum[i]);
    }
    volatile int32_t result = vaddvq_s32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * PEAK_MADDS * 2;
}
