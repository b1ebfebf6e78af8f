/* SPDX-License-Identifier: MIT
 * Peaks of AVX-512. */
#if defined(__AVX512F__)
#include <immintrin.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 16 };

static double fma_peak(int64_t rounds)
{
    __m512 sum[CHAINS];
    __m512 factor = _mm512_set1_ps(0.999f);
    __m512 term = _mm512_set1_ps(0.001f);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm512_set1_ps((float)i);
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_fmadd_ps(sum[i], factor, term);
        }
        __asm__ volatile("" : "+v"(factor));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    }
    volatile float result = _mm512_cvtss_f32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 16 * 2;
}

static int64_t read_all(const void *memory, size_t bytes)
{
    const __m512i *v = memory;
    __m512i a = _mm512_setzero_si512();
    __m512i b = a;
    for (size_t i = 0; i + 4 <= bytes / sizeof(*v); i += 4) {
        a = _mm512_xor_si512(
            a, _mm512_xor_si512(_mm512_load_si512(v + i), _mm512_load_si512(v + i + 1)));
        b = _mm512_xor_si512(
            b, _mm512_xor_si512(_mm512_load_si512(v + i + 2), _mm512_load_si512(v + i + 3)));
    }
    return _mm512_reduce_add_epi64(_mm512_xor_si512(a, b));
}

void tnd_peaks_fill_avx512(struct tnd_peaks *out)
{
    out->fma = fma_peak;
    out->read = read_all;
}
#else
typedef int tnd_no_avx512;
#endif
