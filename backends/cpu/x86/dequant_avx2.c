/* SPDX-License-Identifier: MIT
 * Dequantises rows of weights to floats (AVX2), bit-identical to the plain codecs in ggml-like: the
 * same products and sums in the same order, nothing fused. Layouts: ggml-like/quant.h. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"

static inline float half_to_float(uint16_t bits)
{
    return _cvtsh_ss(bits);
}

static inline __m256i load_32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* 8 signed bytes to floats. */
static inline __m256 floats_8(__m128i bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* Stores 16 values scale * q. */
static inline void put_16(float *dst, __m128i q, float scale)
{
    __m256 s = _mm256_set1_ps(scale);
    _mm256_storeu_ps(dst, _mm256_mul_ps(s, floats_8(q)));
    _mm256_storeu_ps(dst + 8, _mm256_mul_ps(s, floats_8(_mm_srli_si128(q, 8))));
}

/* Stores 16 values scale * q + min. */
static inline void put_16_min(float *dst, __m128i q, float scale, float min)
{
    __m256 s = _mm256_set1_ps(scale);
    __m256 m = _mm256_set1_ps(min);
    _mm256_storeu_ps(dst, _mm256_add_ps(_mm256_mul_ps(s, floats_8(q)), m));
    _mm256_storeu_ps(dst + 8, _mm256_add_ps(_mm256_mul_ps(s, floats_8(_mm_srli_si128(q, 8))), m));
}

static inline __m128i low_half(__m256i v)
{
    return _mm256_castsi256_si128(v);
}

static inline __m128i high_half(__m256i v)
{
    return _mm256_extracti128_si256(v, 1);
}

/* (v >> count) & mask in each byte; count + bits of the mask are at most 8. */
static inline __m256i bits_of(__m256i v, int count, int mask)
{
    return _mm256_and_si256(_mm256_srl_epi16(v, _mm_cvtsi32_si128(count)),
                            _mm256_set1_epi8((char)mask));
}

/* Values 0..15 in the low nibbles of 16 bytes, 16..31 in the high ones. */
static inline __m256i nibbles(const uint8_t *qs)
{
    __m128i q = load_16(qs);
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/* Expands bit i of 4 bytes to the value 16 in byte i. */
static inline __m256i fifth_bits(const uint8_t *qh)
{
    int32_t bits;
    memcpy(&bits, qh, sizeof(bits));
    const __m256i which =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), which);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

/* ---- blocks of 32 ---- */

static void dequantize_Q4_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        __m256i q = _mm256_sub_epi8(nibbles(block->qs), _mm256_set1_epi8(8));
        float d = half_to_float(block->d);
        put_16(dst + i, low_half(q), d);
        put_16(dst + i + 16, high_half(q), d);
    }
}

/* Looks up nibbles, stored as in Q4_0, in a codebook. */
static inline void put_book(float *dst, const uint8_t *qs, const int8_t *book, float d)
{
    const __m256i table = _mm256_broadcastsi128_si256(load_16((const uint8_t *)book));
    __m256i q = _mm256_shuffle_epi8(table, nibbles(qs));
    put_16(dst, low_half(q), d);
    put_16(dst + 16, high_half(q), d);
}

static const int8_t book_iq4[16] = TND_BOOK_IQ4_VALUES;
static const int8_t book_fp4[16] = TND_BOOK_FP4_VALUES;

static void dequantize_IQ4_NL(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_iq4_nl *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_book(dst + i, block->qs, book_iq4, half_to_float(block->d));
    }
}

static void dequantize_MXFP4(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_mxfp4 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        put_book(dst + i, block->qs, book_fp4, tnd_bf16_to_f32(tnd_e8m0_half(block->e)));
    }
}

static void dequantize_IQ4_XS(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_iq4_xs *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        for (int g = 0; g < 8; g++) {
            put_book(dst + i + 32 * g, block->qs + 16 * g, book_iq4,
                     d * (float)tnd_iq4_xs_scale(block, g));
        }
    }
}

static void dequantize_Q4_1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        __m256i q = nibbles(block->qs);
        float d = half_to_float(block->d);
        float m = half_to_float(block->m);
        put_16_min(dst + i, low_half(q), d, m);
        put_16_min(dst + i + 16, high_half(q), d, m);
    }
}

static void dequantize_BCML1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        const __m256i q = nibbles(block->qs); /* values 0, 2, .. and 1, 3, .. */
        const __m128i even = low_half(q);
        const __m128i odd = high_half(q);
        float d = half_to_float(block->d);
        float m = half_to_float(block->m);
        put_16_min(dst + i, _mm_unpacklo_epi8(even, odd), d, m);
        put_16_min(dst + i + 16, _mm_unpackhi_epi8(even, odd), d, m);
    }
}

static void dequantize_Q5_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        __m256i q = _mm256_or_si256(nibbles(block->qs), fifth_bits(block->qh));
        float d = half_to_float(block->d);
        q = _mm256_sub_epi8(q, _mm256_set1_epi8(16));
        put_16(dst + i, low_half(q), d);
        put_16(dst + i + 16, high_half(q), d);
    }
}

static void dequantize_Q5_1(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_1 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        __m256i q = _mm256_or_si256(nibbles(block->qs), fifth_bits(block->qh));
        float d = half_to_float(block->d);
        float m = half_to_float(block->m);
        put_16_min(dst + i, low_half(q), d, m);
        put_16_min(dst + i + 16, high_half(q), d, m);
    }
}

static void dequantize_Q8_0(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q8_0 *block = src;
    for (int64_t i = 0; i < n; i += 32, block++) {
        __m256i q = load_32((const uint8_t *)block->qs);
        float d = half_to_float(block->d);
        put_16(dst + i, low_half(q), d);
        put_16(dst + i + 16, high_half(q), d);
    }
}

/* ---- K-quants: blocks of 32 values, g counts the groups of 16 ---- */

static void dequantize_Q2_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q2_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        float dmin = half_to_float(block->dmin);
        for (int b = 0; b < 8; b++, dst += 32) {
            __m256i q = bits_of(load_32(block->qs + b / 4 * 32), b % 4 * 2, 3);
            const uint8_t *s = block->scales + 2 * b;
            put_16_min(dst, low_half(q), d * (float)(s[0] & 15), -(dmin * (float)(s[0] >> 4)));
            put_16_min(dst + 16, high_half(q), d * (float)(s[1] & 15),
                       -(dmin * (float)(s[1] >> 4)));
        }
    }
}

static void dequantize_Q3_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q3_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        __m256i mask = load_32(block->hmask);
        for (int b = 0; b < 8; b++, dst += 32) {
            __m256i q = bits_of(load_32(block->qs + b / 4 * 32), b % 4 * 2, 3);
            __m256i high = _mm256_slli_epi16(bits_of(mask, b, 1), 2);
            q = _mm256_sub_epi8(_mm256_or_si256(q, high), _mm256_set1_epi8(4));
            put_16(dst, low_half(q), d * (float)tnd_q3_k_scale(block->scales, 2 * b));
            put_16(dst + 16, high_half(q), d * (float)tnd_q3_k_scale(block->scales, 2 * b + 1));
        }
    }
}

static inline void put_k4(float *dst, __m256i q, const uint8_t *scales, int b, float d, float dmin)
{
    int scale;
    int min;
    tnd_k4_scale_min(scales, b, &scale, &min);
    put_16_min(dst, low_half(q), d * (float)scale, -(dmin * (float)min));
    put_16_min(dst + 16, high_half(q), d * (float)scale, -(dmin * (float)min));
}

static void dequantize_Q4_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q4_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        float dmin = half_to_float(block->dmin);
        for (int b = 0; b < 8; b++, dst += 32) {
            __m256i q = bits_of(load_32(block->qs + b / 2 * 32), b % 2 * 4, 15);
            put_k4(dst, q, block->scales, b, d, dmin);
        }
    }
}

static void dequantize_Q5_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q5_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        float dmin = half_to_float(block->dmin);
        __m256i qh = load_32(block->qh);
        for (int b = 0; b < 8; b++, dst += 32) {
            __m256i q = bits_of(load_32(block->qs + b / 2 * 32), b % 2 * 4, 15);
            __m256i high = _mm256_slli_epi16(bits_of(qh, b, 1), 4);
            put_k4(dst, _mm256_or_si256(q, high), block->scales, b, d, dmin);
        }
    }
}

static void dequantize_Q6_K(const void *src, float *dst, int64_t n)
{
    const struct tnd_block_q6_k *block = src;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = half_to_float(block->d);
        for (int b = 0; b < 8; b++, dst += 32) {
            const uint8_t *ql = block->ql + b / 4 * 64 + b % 2 * 32;
            __m256i q = bits_of(load_32(ql), b % 4 / 2 * 4, 15);
            __m256i high = bits_of(load_32(block->qh + b / 4 * 32), b % 4 * 2, 3);
            q = _mm256_or_si256(q, _mm256_slli_epi16(high, 4));
            q = _mm256_sub_epi8(q, _mm256_set1_epi8(32));
            put_16(dst, low_half(q), d * (float)block->scales[2 * b]);
            put_16(dst + 16, high_half(q), d * (float)block->scales[2 * b + 1]);
        }
    }
}

/* ---- grid points ---- */

static inline void put_grid(tnd_grid_decode_fn *decode, size_t bytes, int group, float unit,
                            const void *src, float *dst, int64_t n)
{
    const char *block = src;
    for (int64_t b = 0; b < n; b += TND_GRID_VALUES, block += bytes) {
        struct tnd_grid_values values;
        decode(block, &values);
        const float d = half_to_float(values.d);
        for (int i = 0; i < TND_GRID_VALUES; i += 16) {
            put_16(dst + b + i, load_16((const uint8_t *)values.q + i),
                   d * (float)values.scale[i / group] * unit);
        }
    }
}

#define DEQUANTIZE_GRID(NAME, bytes, group, unit)                                                  \
    static void dequantize_##NAME(const void *src, float *dst, int64_t n)                          \
    {                                                                                              \
        put_grid(tnd_grid_decode_##NAME, bytes, group, unit, src, dst, n);                         \
    }
TND_GRID_LIST(DEQUANTIZE_GRID)
#undef DEQUANTIZE_GRID

void tnd_fill_dequant_avx2(struct tnd_cpu_kernels *out)
{
#define FILL(NAME, form, offset, bits, is_super)                                                   \
    out->dequantize[TANDEM_TYPE_##NAME] = dequantize_##NAME;
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
#else
typedef int tnd_no_avx2;
#endif
