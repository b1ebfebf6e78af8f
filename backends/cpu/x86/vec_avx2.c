/* SPDX-License-Identifier: MIT
 * Row kernels for AVX2, FMA and F16C: defines operations on 8 lanes; the kernels are in
 * vec_lanes.h. All functions but the entry are static, because this file is compiled for a larger
 * instruction set. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define LANES 8
typedef __m256 vec;

/* All bits set in the first `n` lanes. */
static inline __m256i v_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vec v_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec v_load(const float *a)
{
    return _mm256_loadu_ps(a);
}

/* Lanes from `n` on are 0, and their memory is not read. */
static inline vec v_load_part(const float *a, int n)
{
    return n >= LANES ? v_load(a) : _mm256_maskload_ps(a, v_first(n));
}

static inline void v_store(float *y, vec x)
{
    _mm256_storeu_ps(y, x);
}

static inline void v_store_part(float *y, int n, vec x)
{
    if (n >= LANES) {
        v_store(y, x);
    } else {
        _mm256_maskstore_ps(y, v_first(n), x);
    }
}

/* The first `n` lanes of x, the other lanes of `other`. */
static inline vec v_keep(vec x, int n, vec other)
{
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(v_first(n)));
}

static inline vec v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static inline vec v_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

static inline vec v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static inline vec v_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

static inline vec v_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}

static inline vec v_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

static inline vec v_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

static inline vec v_fmadd(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec v_swap_pairs(vec a)
{
    return _mm256_permute_ps(a, 0xb1);
}

static inline double v_sum(vec a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    x = _mm_add_ss(x, _mm_movehdup_ps(x));
    return (double)_mm_cvtss_f32(x);
}

static inline float v_largest(vec a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    x = _mm_max_ss(x, _mm_movehdup_ps(x));
    return _mm_cvtss_f32(x);
}

static inline vec v_load_f16(const uint16_t *a)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)a));
}

/* The 16-bit float at `a` in all lanes. */
static inline vec v_set_f16(const void *a)
{
    uint16_t bits;
    memcpy(&bits, a, sizeof(bits));
    return _mm256_cvtph_ps(_mm_set1_epi16((short)bits));
}

static inline vec v_load_i8(const void *a)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)a)));
}

/* Four bits of each byte, from bit `shift` on, minus 8. */
static inline vec v_load_q4(const void *a, int shift)
{
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)a));
    const __m256i q =
        _mm256_and_si256(_mm256_srl_epi32(bytes, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

static inline void v_store_f16(uint16_t *y, vec x)
{
    _mm_storeu_si128((__m128i *)(void *)y, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

static inline vec v_load_bf16(const uint16_t *a)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)a));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* As tnd_f32_to_bf16: nearest, ties to even, NaN kept. */
static inline void v_store_bf16(uint16_t *y, vec x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i words = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, is_nan);
    __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(void *)y, packed);
}

/* a0 b0 a1 b1 ... of the lower halves. */
static inline vec v_zip_low(vec a, vec b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}

static inline vec v_zip_high(vec a, vec b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

/* x where first <= order <= last in the lane, -infinity elsewhere. */
static inline vec v_between(vec x, int32_t order, const int32_t *first, const int32_t *last)
{
    const __m256i place = _mm256_set1_epi32(order);
    const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)first);
    const __m256i to = _mm256_loadu_si256((const __m256i *)(const void *)last);
    const __m256i unseen =
        _mm256_or_si256(_mm256_cmpgt_epi32(from, place), _mm256_cmpgt_epi32(place, to));
    return _mm256_blendv_ps(x, v_set(-INFINITY), _mm256_castsi256_ps(unseen));
}

#include "backends/cpu/kernels/vec_lanes.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 4 }; /* of 16 registers: 12 sums, 3 vectors, 1 broadcast */
#include "backends/cpu/kernels/attention_lanes.h"

/* One permutation instead of four, which all use the same execution port. */
#define HAS_FOLD
TND_INLINE vec v_fold(vec a, vec b, const int half)
{
    if (half == 4) {
        return v_add(_mm256_blend_ps(a, b, 0xf0), _mm256_permute2f128_ps(a, b, 0x21));
    }
    if (half == 2) {
        return v_add(_mm256_blend_ps(a, b, 0xcc), _mm256_shuffle_ps(a, b, 0x4e));
    }
    return v_add(_mm256_blend_ps(a, b, 0xaa), _mm256_permute_ps(_mm256_blend_ps(b, a, 0xaa), 0xb1));
}

enum {
    FEW_QUERIES = 4,
    FEW_TOGETHER = 1,
    FEW_SUMS = 8
}; /* 8 sums, 2 keys or values, 1 query or weight */
#include "backends/cpu/kernels/attention_few_lanes.h"

void tnd_fill_vec_avx2(struct tnd_cpu_kernels *out)
{
    out->vec.isa = "avx2";
    fill(out);
    fill_panel(&out->attention);
    fill_few(&out->few);
}
#endif
