/* SPDX-License-Identifier: MIT
 * Peak of the bf16 dot product of AVX-512. */
#if defined(__AVX512BF16__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16 };

static double bf16_peak(int64_t rounds)
{
    __m512 sum[CHAINS];
    __m512i ones = _mm512_set1_epi32(0x3f803f80);
    __m512bh w;
    __m512bh x;
    memcpy(&w, &ones, sizeof(w));
    memcpy(&x, &ones, sizeof(x));
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm512_set1_ps((float)i); /* different values: equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_dpbf16_ps(sum[i], w, x);
        }
        __asm__ volatile("" : "+v"(w));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    }
    volatile float result = _mm512_reduce_add_ps(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 32 * 2;
}

void tnd_peaks_fill_bf16(struct tnd_peaks *out)
{
    out->bf16 = bf16_peak;
}
#else
typedef int tnd_no_bf16;
#endif
