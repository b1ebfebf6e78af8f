/* SPDX-License-Identifier: MIT
 * tnd_sample_weights for AVX2, 8 values at once: the same integers as tnd_sample_weight. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "ggml-like/sample_weights.h"

#define ALL(value) _mm256_set1_epi32((int)(value))

/* f p / 2^32 of the even-numbered ones of 8 integers */
static inline __m256i high(__m256i f, __m256i p)
{
    return _mm256_srli_epi64(_mm256_mul_epu32(f, p), 32);
}

/* 2^31 2^-x of the even-numbered ones of 8 integers x, in units of 1/2^32 */
static inline __m256i power(__m256i f)
{
    static const uint32_t coefficients[] = TND_SAMPLE_POWER;
    __m256i p = ALL(coefficients[0]);
    for (int i = 1; i < TND_SAMPLE_DEGREE; i++) {
        p = _mm256_sub_epi64(_mm256_set1_epi64x(coefficients[i]), high(f, p));
    }
    p = _mm256_srli_epi64(_mm256_add_epi64(high(f, p), _mm256_set1_epi64x(1)), 1);
    return _mm256_sub_epi64(_mm256_set1_epi64x(TANDEM_SAMPLE_ONE), p);
}

static inline __m256i equal(__m256i a, __m256i b)
{
    return _mm256_cmpeq_epi32(a, b);
}

static inline __m256i above(__m256i a, __m256i b)
{
    return _mm256_cmpgt_epi32(a, b);
}

static inline __m256i choose(__m256i mask, __m256i yes, __m256i no)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

/* Keys of values that cannot be chosen are 0. */
static inline __m256i keys_of(__m256i bits)
{
    const __m256i sign = ALL(0x80000000u);
    const __m256i none =
        _mm256_or_si256(above(_mm256_and_si256(bits, ALL(0x7fffffff)), ALL(0x7f800000)),
                        equal(bits, ALL(0xff800000u)));
    const __m256i key = choose(_mm256_srai_epi32(bits, 31),
                               choose(equal(bits, sign), sign, _mm256_xor_si256(bits, ALL(~0u))),
                               _mm256_or_si256(bits, sign));
    return _mm256_andnot_si256(none, key);
}

static inline __m256i weights_of(__m256i bits, __m256i key, float largest, uint32_t largest_key,
                                 const struct tandem_sample_settings *settings)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i is_small = equal(_mm256_and_si256(bits, ALL(0x7f800000)), zero);
    const __m256 value = _mm256_castsi256_ps(_mm256_andnot_si256(is_small, bits));
    const __m256i distance = _mm256_castps_si256(_mm256_sub_ps(_mm256_set1_ps(largest), value));
    const __m256i biased = _mm256_srli_epi32(distance, 23);
    const __m256i fraction =
        _mm256_or_si256(_mm256_and_si256(distance, ALL(0x7fffff)), ALL(0x800000));
    const __m256i shift = _mm256_sub_epi32(ALL(118 - tnd_sample_exponent(settings)), biased);
    const __m256i most = _mm256_min_epi32(shift, ALL(63)); /* products have 56 bits */
    const __m256i scale = ALL(settings->scale);
    const __m256i even = _mm256_srlv_epi64(_mm256_mul_epu32(fraction, scale),
                                           _mm256_and_si256(most, _mm256_set1_epi64x(0xffffffff)));
    const __m256i odd = _mm256_srlv_epi64(_mm256_mul_epu32(_mm256_srli_epi64(fraction, 32), scale),
                                          _mm256_srli_epi64(most, 32));
    const __m256i whole = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    const __m256i one = _mm256_blend_epi32(power(even), _mm256_slli_epi64(power(odd), 32), 0xaa);
    const __m256i half = _mm256_sllv_epi32(ALL(1), _mm256_sub_epi32(whole, ALL(1))); /* 0 of 0 */
    __m256i weight = _mm256_srlv_epi32(_mm256_add_epi32(one, half), whole);
    const __m256i none =
        _mm256_or_si256(_mm256_or_si256(above(zero, shift), equal(biased, ALL(255))),
                        _mm256_or_si256(above(whole, ALL(31)), above(zero, whole)));
    weight = _mm256_andnot_si256(none, weight);
    weight = choose(_mm256_or_si256(equal(biased, zero), equal(key, ALL(largest_key))),
                    ALL(TANDEM_SAMPLE_ONE), weight);
    /* cannot be chosen, or above the largest that can */
    const __m256i has_chance =
        _mm256_andnot_si256(equal(key, zero), equal(_mm256_min_epu32(key, ALL(largest_key)), key));
    return _mm256_and_si256(has_chance, weight);
}

void tnd_sample_weights_avx2(const struct tandem_sample_settings *settings, float largest,
                             uint32_t largest_key, const float *logits, int64_t n, uint32_t *keys,
                             uint32_t *weights)
{
    for (int64_t i = 0; i + 8 <= n; i += 8) {
        const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(logits + i));
        const __m256i key = keys_of(bits);
        _mm256_storeu_si256((__m256i *)(void *)(keys + i), key);
        _mm256_storeu_si256((__m256i *)(void *)(weights + i),
                            weights_of(bits, key, largest, largest_key, settings));
    }
}
#else
typedef int tnd_no_avx2;
#endif
