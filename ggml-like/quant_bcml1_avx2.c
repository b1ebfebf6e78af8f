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
#define v_div(a, b)   _mm256_div_ps(a, b)
#define v_min(a, b)   _mm256_min_ps(a, b)
#define v_max(a, b)   _mm256_max_ps(a, b)
#define v_truncate(v) _mm256_round_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define v_same(a, b)  (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)) == 255)

/* Same bits as tnd_f32_to_f16 except for NaN payloads; no block is made from a NaN. */
static inline vec v_half(vec v)
{
    return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline vec v_if_positive(vec c, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(c, _mm256_setzero_ps(), _CMP_GT_OQ));
}

typedef struct {
    __m256d low, high;
} vec_double;

static inline vec_double v_no_error(void)
{
    return (vec_double){_mm256_setzero_pd(), _mm256_setzero_pd()};
}

static inline __m256d add_square(__m256d sum, __m128 y, __m256d x)
{
    __m256d difference = _mm256_sub_pd(_mm256_cvtps_pd(y), x);
    return _mm256_add_pd(sum, _mm256_mul_pd(difference, difference));
}

static inline vec_double v_add_error(vec_double sum, vec y, float x)
{
    const __m256d wide = _mm256_set1_pd((double)x);
    sum.low = add_square(sum.low, _mm256_castps256_ps128(y), wide);
    sum.high = add_square(sum.high, _mm256_extractf128_ps(y, 1), wide);
    return sum;
}

static inline void v_store_double(double *p, vec_double v)
{
    _mm256_storeu_pd(p, v.low);
    _mm256_storeu_pd(p + 4, v.high);
}

#include "ggml-like/quant_bcml1_lanes.h"

void tnd_quantize_bcml1_avx2(const float *src, void *dst, int64_t n)
{
    quantize_blocks(src, dst, n);
}
#else
typedef int tnd_no_avx2;
#endif
