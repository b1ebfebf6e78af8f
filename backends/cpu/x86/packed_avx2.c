/* SPDX-License-Identifier: MIT
 * Products of packed weights for AVX2. Bytes are multiplied as in gemm_avx2.c: 16-bit sums of two
 * products, of which as many are added as cannot overflow. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

/* Steps of 4 values whose 16-bit sums can be added: steps * 2 * 127 * (2^bits - 1) < 2^15. */
#define SPAN(bits)      ((bits) <= 5 ? 4 : (bits) == 6 ? 2 : 1)
#define CORRECTED(bits) ((bits) < 8)

/* With 8 bits, two products would overflow, so the sign of the weight is moved to the
 * activation. */
TND_INLINE __m256i multiply_bytes(__m256i w, __m256i x, const int bits)
{
    if (bits < 8) {
        return _mm256_maddubs_epi16(w, x);
    }
    __m256i value = _mm256_xor_si256(w, _mm256_set1_epi8(-128)); /* w - 128, signed */
    return _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
}

TND_INLINE void dot(__m256i w[2][4], const int8_t *q, const int bits, __m256i sum[2])
{
    const int span = SPAN(bits);
    TND_UNROLL
    for (int begin = 0; begin < 4; begin += span) {
        __m256i words[2];
        TND_UNROLL
        for (int s = begin; s < begin + span; s++) {
            int32_t four;
            memcpy(&four, q + 4 * s, sizeof(four));
            TND_UNROLL
            for (int side = 0; side < 2; side++) {
                __m256i product = multiply_bytes(w[side][s], _mm256_set1_epi32(four), bits);
                words[side] = s == begin ? product : _mm256_add_epi16(words[side], product);
            }
        }
        TND_UNROLL
        for (int side = 0; side < 2; side++) {
            __m256i wide = _mm256_madd_epi16(words[side], _mm256_set1_epi16(1));
            sum[side] = _mm256_add_epi32(sum[side], wide);
        }
    }
}

#include "backends/cpu/x86/packed_lanes256.h"

void tnd_fill_packed_avx2(struct tnd_cpu_kernels *out)
{
    fill_packed(out);
}
#else
typedef int tnd_no_avx2;
#endif
