/* SPDX-License-Identifier: MIT
 * The compressor of BCML1 for AVX2: quant_bcml1_lanes.h with 8 floats a register. */
#if defined(__AVX2__)
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_bcml1.h"

typedef __m256 vec;

#define v_load(p)     _mm256_loadu_ps(p)
#define v_store(p, v) _mm256_storeu_ps(p, v)
#define v_set(value)  _mm256_set1_ps(value)
#define v_add(a, b)   _mm256_add_ps(a, b)
#define v_sub(a, b)   _mm256_sub_ps(a, b)
#define v_mul(a, b)   _mm256_mul_ps(a, b)
#define v_min(a, b)   _mm256_min_ps(a, b)
#define v_max(a, b)   _mm256_max_ps(a, b)
#define v_truncate(v) _mm256_round_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define v_same(a, b)  (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)) == 255)

static inline float v_sum(vec v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline __m256d add_square(__m256d sum, __m128 x, __m128 y)
{
    __m256d difference = _mm256_sub_pd(_mm256_cvtps_pd(y), _mm256_cvtps_pd(x));
    return _mm256_add_pd(sum, _mm256_mul_pd(difference, difference));
}

static inline double v_squared_error(const vec *x, const vec *y)
{
    __m256d sum = _mm256_setzero_pd();
    for (int i = 0; i < 4; i++) {
        sum = add_square(sum, _mm256_castps256_ps128(x[i]), _mm256_castps256_ps128(y[i]));
        sum = add_square(sum, _mm256_extractf128_ps(x[i], 1), _mm256_extractf128_ps(y[i], 1));
    }
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#include "ggml-like/quant_bcml1_lanes.h"

void tnd_quantize_bcml1_avx2(const float *src, void *dst, int64_t n)
{
    quantize_blocks(src, dst, n);
}
#else
typedef int tnd_no_avx2;
#endif
