/* SPDX-License-Identifier: MIT
 * Peak of the int8 dot product of AVX-VNNI. */
#if defined(__AVXVNNI__)
#include <immintrin.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 12 };

static double int8_peak(int64_t rounds)
{
    __m256i sum[CHAINS];
    __m256i w = _mm256_set1_epi8(3);
    __m256i x = _mm256_set1_epi8(5);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm256_set1_epi32(i); /* different values: equal chains would be merged */
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm256_dpbusd_avx_epi32(sum[i], w, x);
        }
        __asm__ volatile("" : "+x"(w));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    }
    volatile int result = _mm256_extract_epi32(sum[0], 0);
    (void)result;
    return (double)rounds * CHAINS * 32 * 2;
}

void tnd_peaks_fill_avxvnni(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 VNNI";
}
#else
typedef int tnd_no_avxvnni;
#endif
