/* SPDX-License-Identifier: MIT
 * Decoders for 16 rows at once (AVX-512). */
#if defined(__AVX512F__)
#include <immintrin.h>

#include "backends/cpu/kernels/kernels.h"

typedef __m512i vec;
typedef __m512 vecf;
#define LANES 16

static inline __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Loads 16 bytes of rows 0, 4, 8 and 12, counted from `p`. */
static inline vec gather_rows(const uint8_t *p, size_t stride)
{
    vec v = _mm512_castsi128_si512(load_16(p));
    v = _mm512_inserti32x4(v, load_16(p + 4 * stride), 1);
    v = _mm512_inserti32x4(v, load_16(p + 8 * stride), 2);
    return _mm512_inserti32x4(v, load_16(p + 12 * stride), 3);
}

static inline void v_transpose(const uint8_t *p, size_t stride, vec out[4])
{
    vec r0 = gather_rows(p, stride);
    vec r1 = gather_rows(p + stride, stride);
    vec r2 = gather_rows(p + 2 * stride, stride);
    vec r3 = gather_rows(p + 3 * stride, stride);
    vec a = _mm512_unpacklo_epi32(r0, r1);
    vec b = _mm512_unpacklo_epi32(r2, r3);
    vec c = _mm512_unpackhi_epi32(r0, r1);
    vec d = _mm512_unpackhi_epi32(r2, r3);
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(c, d);
    out[3] = _mm512_unpackhi_epi64(c, d);
}

/* out[0] of v_transpose. */
static inline vec v_first(const uint8_t *p, size_t stride)
{
    vec a = _mm512_unpacklo_epi32(gather_rows(p, stride), gather_rows(p + stride, stride));
    vec b = _mm512_unpacklo_epi32(gather_rows(p + 2 * stride, stride),
                                  gather_rows(p + 3 * stride, stride));
    return _mm512_unpacklo_epi64(a, b);
}

/* out[3] of v_transpose, for p 12 bytes earlier. */
static inline vec v_last(const uint8_t *p, size_t stride)
{
    p -= 12;
    vec c = _mm512_unpackhi_epi32(gather_rows(p, stride), gather_rows(p + stride, stride));
    vec d = _mm512_unpackhi_epi32(gather_rows(p + 2 * stride, stride),
                                  gather_rows(p + 3 * stride, stride));
    return _mm512_unpackhi_epi64(c, d);
}

static inline vecf vf_half(vec v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* Looks up bytes in a table of 16. */
static inline vec v_book(const uint8_t *codes, vec v)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_16(codes)), v);
}

#define v_set(value)    _mm512_set1_epi32(value)
#define v_and(a, b)     _mm512_and_si512(a, b)
#define v_or(a, b)      _mm512_or_si512(a, b)
#define v_xor(a, b)     _mm512_xor_si512(a, b)
#define v_sub(a, b)     _mm512_sub_epi32(a, b)
#define v_mul(a, b)     _mm512_mullo_epi32(a, b)
#define v_sll(a, n)     _mm512_slli_epi32(a, n)
#define v_srl(a, n)     _mm512_srli_epi32(a, n)
#define v_sra(a, n)     _mm512_srai_epi32(a, n)
#define v_store(p, v)   _mm512_store_si512((void *)(p), v)
#define v_store_f(p, v) _mm512_store_si512((void *)(p), v)
#define vf_int(v)       _mm512_cvtepi32_ps(v)
#define vf_mul(a, b)    _mm512_mul_ps(a, b)
#define vf_negate(a)    _mm512_sub_ps(_mm512_setzero_ps(), a)
#define vf_store(p, v)  _mm512_store_ps(p, v)

#include "backends/cpu/kernels/decode_lanes.h"

static void pick_bits(const uint8_t *from, int bit, uint8_t *out)
{
    for (int i = 0; i < 512; i += 64, out += 8) {
        const uint64_t bits = _mm512_test_epi8_mask(_mm512_load_si512((const void *)(from + i)),
                                                    _mm512_set1_epi8((char)(1 << bit)));
        memcpy(out, &bits, sizeof(bits));
    }
}

void tnd_fill_decode_avx512(struct tnd_cpu_kernels *out)
{
    fill_decoders_f(&out->f);
}

void tnd_fill_decode_q_avx512(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    out->q.pick_bits = pick_bits;
}
#else
typedef int tnd_no_avx512;
#endif
