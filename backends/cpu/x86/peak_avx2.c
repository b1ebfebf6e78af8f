/* SPDX-License-Identifier: MIT
 * Peaks of AVX2. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/kernels/peak.h"

enum { CHAINS = 12 };

static double fma_peak(int64_t rounds)
{
    __m256 sum[CHAINS];
    __m256 factor = _mm256_set1_ps(0.999f);
    __m256 term = _mm256_set1_ps(0.001f);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm256_set1_ps((float)i);
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm256_fmadd_ps(sum[i], factor, term);
        }
        __asm__ volatile("" : "+x"(factor));
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    }
    volatile float result = _mm256_cvtss_f32(sum[0]);
    (void)result;
    return (double)rounds * CHAINS * 8 * 2;
}

/* Bytes to 16-bit, then 32-bit sums, as the kernels do. */
static double int8_peak(int64_t rounds)
{
    __m256i sum[CHAINS / 2];
    __m256i w = _mm256_set1_epi8(3);
    __m256i x = _mm256_set1_epi8(5);
    __m256i ones = _mm256_set1_epi16(1);
    TND_PEAK_UNROLL
    for (int i = 0; i < CHAINS / 2; i++) {
        sum[i] = _mm256_set1_epi32(i);
    }
    for (int64_t r = 0; r < rounds; r++) {
        TND_PEAK_UNROLL
        for (int i = 0; i < CHAINS / 2; i++) {
            __asm__ volatile("" : "+x"(w));
            __m256i product = _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones);
            sum[i] = _mm256_add_epi32(sum[i], product);
        }
    }
    TND_PEAK_UNROLL
    for (int i = 1; i < CHAINS / 2; i++) {
        sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    }
    volatile int result = _mm256_extract_epi32(sum[0], 0);
    (void)result;
    return (double)rounds * (CHAINS / 2) * 32 * 2;
}

static int64_t read_all(const void *memory, size_t bytes)
{
    const __m256i *v = memory;
    __m256i a = _mm256_setzero_si256();
    __m256i b = a;
    for (size_t i = 0; i + 4 <= bytes / sizeof(*v); i += 4) {
        a = _mm256_xor_si256(
            a, _mm256_xor_si256(_mm256_load_si256(v + i), _mm256_load_si256(v + i + 1)));
        b = _mm256_xor_si256(
            b, _mm256_xor_si256(_mm256_load_si256(v + i + 2), _mm256_load_si256(v + i + 3)));
    }
    return _mm256_extract_epi32(_mm256_xor_si256(a, b), 0);
}

void tnd_peaks_fill_avx2(struct tnd_peaks *out)
{
    out->fma = fma_peak;
    out->int8 = int8_peak;
    out->int8_unit = "int8 AVX2";
    out->read = read_all;
}
#else
typedef int tnd_no_avx2;
#endif
