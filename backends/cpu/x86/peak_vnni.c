/* SPDX-License-Identifier: MIT
 * Peak of the int8 dot product of AVX-512 VNNI. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16 };

static double int8_peak(int64_t rounds)
{
    __m512i sum[CHAINS];
    __m512i w = _mm512_set1_epi8(3);
    __m512i x = _mm512_set1_epi8(5);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm512_set1_epi32(i); /* different values: equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_dpbusd_epi32(sum[i], w, x);
        }
        __asm__ volatile("" : "+v"(w));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm512_add_epi32(sum[0], sum[i]);
    }
    volatile int result = _mm512_reduce_add_epi32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 64 * 2;
}

void tnd_peaks_fill_vnni(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 VNNI";
}
#else
typedef int tnd_no_vnni;
#endif
