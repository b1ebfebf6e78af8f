/* SPDX-License-Identifier: MIT
 * Row kernels for AVX-512 (F, BW, VL, DQ): defines operations on 16 lanes; the kernels are in
 * vec_lanes.h. All functions but the entry are static, because this file is compiled for a larger
 * instruction set. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define LANES 16
typedef __m512 vec;

static inline __mmask16 v_first(int n)
{
    return (__mmask16)((1u << n) - 1);
}

static inline vec v_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec v_load(const float *a)
{
    return _mm512_loadu_ps(a);
}

/* Lanes from `n` on are 0, and their memory is not read. Whole vectors use plain loads, which are
 * up to twice as fast. */
static inline vec v_load_part(const float *a, int n)
{
    return n >= LANES ? v_load(a) : _mm512_maskz_loadu_ps(v_first(n), a);
}

static inline void v_store(float *y, vec x)
{
    _mm512_storeu_ps(y, x);
}

static inline void v_store_part(float *y, int n, vec x)
{
    if (n >= LANES) {
        v_store(y, x);
    } else {
        _mm512_mask_storeu_ps(y, v_first(n), x);
    }
}

/* The first `n` lanes of x, the other lanes of `other`. */
static inline vec v_keep(vec x, int n, vec other)
{
    return _mm512_mask_blend_ps(v_first(n), other, x);
}

static inline vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static inline vec v_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static inline vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static inline vec v_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

static inline vec v_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}

static inline vec v_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static inline vec v_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static inline vec v_fmadd(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vec v_swap_pairs(vec a)
{
    return _mm512_permute_ps(a, 0xb1);
}

static inline double v_sum(vec a)
{
    return (double)_mm512_reduce_add_ps(a);
}

static inline float v_largest(vec a)
{
    return _mm512_reduce_max_ps(a);
}

static inline vec v_load_f16(const uint16_t *a)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)a));
}

/* The 16-bit float at `a` in all lanes. */
static inline vec v_set_f16(const void *a)
{
    uint16_t bits;
    memcpy(&bits, a, sizeof(bits));
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)bits));
}

static inline vec v_load_i8(const void *a)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)a)));
}

/* Four bits of each byte, from bit `shift` on, minus 8. */
static inline vec v_load_q4(const void *a, int shift)
{
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)a));
    const __m512i q =
        _mm512_and_si512(_mm512_srl_epi32(bytes, _mm_cvtsi32_si128(shift)), _mm512_set1_epi32(15));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(8)));
}

static inline void v_store_f16(uint16_t *y, vec x)
{
    _mm256_storeu_si256((__m256i *)(void *)y, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

static inline vec v_load_bf16(const uint16_t *a)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)a));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* As tnd_f32_to_bf16. Not the instruction of AVX512_BF16, which flushes subnormals to zero. */
static inline void v_store_bf16(uint16_t *y, vec x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i words = _mm512_mask_blend_epi32(is_nan, _mm512_srli_epi32(rounded, 16), quiet);
    _mm256_storeu_si256((__m256i *)(void *)y, _mm512_cvtepi32_epi16(words));
}

/* a0 b0 a1 b1 ... of the lower halves. */
static inline vec v_zip_low(vec a, vec b)
{
    const __m512i from = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, from, b);
}

static inline vec v_zip_high(vec a, vec b)
{
    const __m512i from =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, from, b);
}

/* x where first <= order <= last in the lane, -infinity elsewhere. */
static inline vec v_between(vec x, int32_t order, const int32_t *first, const int32_t *last)
{
    const __m512i place = _mm512_set1_epi32(order);
    const __mmask16 begun = _mm512_cmple_epi32_mask(_mm512_loadu_si512(first), place);
    const __mmask16 seen = _mm512_mask_cmple_epi32_mask(begun, place, _mm512_loadu_si512(last));
    return _mm512_mask_blend_ps(seen, v_set(-INFINITY), x);
}

#include "backends/cpu/kernels/vec_lanes.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 8 }; /* of 32 registers: 24 sums, 3 vectors, 1 broadcast */
#include "backends/cpu/kernels/attention_lanes.h"

/* Blends can use either vector port, permutations only one. */
#define HAS_FOLD
TND_INLINE vec v_fold(vec a, vec b, const int half)
{
    const __mmask16 is_b = half == 8 ? 0xff00 : half == 4 ? 0xf0f0 : half == 2 ? 0xcccc : 0xaaaa;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    /* the other lane of the pair; where the result is b's, from b, whose lanes have indices from 16
     * on */
    const __m512i other = _mm512_xor_si512(lane, _mm512_set1_epi32(half));
    const __m512i from = _mm512_mask_add_epi32(other, is_b, other, _mm512_set1_epi32(16));
    return v_add(_mm512_mask_blend_ps(is_b, a, b), _mm512_permutex2var_ps(a, from, b));
}

#define HAS_SPREAD
TND_INLINE vec v_spread(const float *a, const int n)
{
    return n == 4   ? _mm512_broadcast_f32x4(_mm_loadu_ps(a))
           : n == 8 ? _mm512_broadcast_f32x8(_mm256_loadu_ps(a))
                    : v_load(a);
}

TND_INLINE vec v_spread_f16(const uint16_t *a, const int n)
{
    if (n == 4) {
        int64_t bits;
        memcpy(&bits, a, sizeof(bits));
        return _mm512_cvtph_ps(_mm256_set1_epi64x(bits));
    }
    return n == 8 ? _mm512_cvtph_ps(_mm256_broadcastsi128_si256(
                        _mm_loadu_si128((const __m128i *)(const void *)a)))
                  : v_load_f16(a);
}

enum {
    FEW_QUERIES = 8,
    FEW_TOGETHER = 4,
    FEW_SUMS = 16
}; /* 16 sums, 2 keys or values, 1 query or weight */
#include "backends/cpu/kernels/attention_few_lanes.h"

void tnd_fill_vec_avx512(struct tnd_cpu_kernels *out)
{
    out->vec.isa = "avx512";
    fill(out);
    fill_panel(&out->attention);
    fill_few(&out->few);
}
#endif
