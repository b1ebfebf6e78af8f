/* SPDX-License-Identifier: MIT
 * Decoders for 8 rows at once (AVX2). */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/kernels/kernels.h"

typedef __m256i vec;
typedef __m256 vecf;
#define LANES 8

static inline __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Loads 16 bytes of rows 0 and 4, counted from `p`. */
static inline vec gather_rows(const uint8_t *p, size_t stride)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(p + 4 * stride), 1);
}

static inline void v_transpose(const uint8_t *p, size_t stride, vec out[4])
{
    vec r0 = gather_rows(p, stride);
    vec r1 = gather_rows(p + stride, stride);
    vec r2 = gather_rows(p + 2 * stride, stride);
    vec r3 = gather_rows(p + 3 * stride, stride);
    vec a = _mm256_unpacklo_epi32(r0, r1);
    vec b = _mm256_unpacklo_epi32(r2, r3);
    vec c = _mm256_unpackhi_epi32(r0, r1);
    vec d = _mm256_unpackhi_epi32(r2, r3);
    out[0] = _mm256_unpacklo_epi64(a, b);
    out[1] = _mm256_unpackhi_epi64(a, b);
    out[2] = _mm256_unpacklo_epi64(c, d);
    out[3] = _mm256_unpackhi_epi64(c, d);
}

/* out[0] of v_transpose. */
static inline vec v_first(const uint8_t *p, size_t stride)
{
    vec a = _mm256_unpacklo_epi32(gather_rows(p, stride), gather_rows(p + stride, stride));
    vec b = _mm256_unpacklo_epi32(gather_rows(p + 2 * stride, stride),
                                  gather_rows(p + 3 * stride, stride));
    return _mm256_unpacklo_epi64(a, b);
}

/* out[3] of v_transpose, for p 12 bytes earlier. */
static inline vec v_last(const uint8_t *p, size_t stride)
{
    p -= 12;
    vec c = _mm256_unpackhi_epi32(gather_rows(p, stride), gather_rows(p + stride, stride));
    vec d = _mm256_unpackhi_epi32(gather_rows(p + 2 * stride, stride),
                                  gather_rows(p + 3 * stride, stride));
    return _mm256_unpackhi_epi64(c, d);
}

static inline vecf vf_half(vec v)
{
    vec low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    return _mm256_cvtph_ps(
        _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}

/* Looks up bytes in a table of 16. */
static inline vec v_book(const uint8_t *codes, vec v)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_16(codes)), v);
}

#define v_set(value)    _mm256_set1_epi32(value)
#define v_and(a, b)     _mm256_and_si256(a, b)
#define v_or(a, b)      _mm256_or_si256(a, b)
#define v_xor(a, b)     _mm256_xor_si256(a, b)
#define v_sub(a, b)     _mm256_sub_epi32(a, b)
#define v_mul(a, b)     _mm256_mullo_epi32(a, b)
#define v_sll(a, n)     _mm256_slli_epi32(a, n)
#define v_srl(a, n)     _mm256_srli_epi32(a, n)
#define v_sra(a, n)     _mm256_srai_epi32(a, n)
#define v_store(p, v)   _mm256_store_si256((__m256i *)(void *)(p), v)
#define v_store_f(p, v) _mm256_store_si256((__m256i *)(void *)(p), v)
#define vf_int(v)       _mm256_cvtepi32_ps(v)
#define vf_mul(a, b)    _mm256_mul_ps(a, b)
#define vf_negate(a)    _mm256_sub_ps(_mm256_setzero_ps(), a)
#define vf_store(p, v)  _mm256_store_ps(p, v)

#include "backends/cpu/kernels/decode_lanes.h"

static void pick_bits(const uint8_t *from, int bit, uint8_t *out)
{
    for (int i = 0; i < 512; i += 32, out += 4) {
        const vec v = _mm256_load_si256((const __m256i *)(const void *)(from + i));
        const uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(v, 7 - bit));
        memcpy(out, &bits, sizeof(bits));
    }
}

void tnd_fill_decode_avx2(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    out->q.pick_bits = pick_bits;
    fill_decoders_f(&out->f);
}
#else
typedef int tnd_no_avx2;
#endif
