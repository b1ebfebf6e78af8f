/* SPDX-License-Identifier: MIT
 * Integer kernels for one token (AVX-512 with VNNI). Rows are read one after another in place,
 * which suits hardware prefetchers; lanes are values, then blocks. Sums of a block are integers, so
 * their order does not matter; floats are added over the blocks of 16 rows at once, in the order of
 * the tiles of gemm_vnni.c, and so give the same bits. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/tiles.h"
#include "ggml-like/quant.h"

enum { ROWS = 16, SPAN = 16 /* blocks whose sums fill a vector */, AHEAD = 2048 /* bytes */ };

/* Scaled sums, scales and minima of a part of K, by row and block. */
struct parts {
    _Alignas(64) float sum[ROWS][TND_GEMV_BLOCKS + 16];
    _Alignas(64) float scale[ROWS][TND_GEMV_BLOCKS + 16];
    _Alignas(64) float min[ROWS][TND_GEMV_BLOCKS + 16];
};

/* Bytes per 32 values, a constant after inlining. Q4_K and IQ4_XS: an eighth of 144 and 136
 * bytes. */
TND_INLINE size_t block_bytes(const enum tandem_type type)
{
    switch (type) {
    case TANDEM_TYPE_Q4_1:
    case TANDEM_TYPE_BCML1:
        return 20;
    case TANDEM_TYPE_Q5_0:
        return 22;
    case TANDEM_TYPE_Q5_1:
        return 24;
    case TANDEM_TYPE_Q8_0:
        return 34;
    case TANDEM_TYPE_IQ4_XS:
    case TANDEM_TYPE_MXFP4:
        return 17;
    default:
        return 18; /* Q4_0, Q4_K, IQ4_NL */
    }
}

TND_INLINE bool is_affine(const enum tandem_type type)
{
    return type == TANDEM_TYPE_Q4_1 || type == TANDEM_TYPE_BCML1 || type == TANDEM_TYPE_Q5_1 ||
           type == TANDEM_TYPE_Q4_K;
}

/* Two blocks of nibbles, 16 bytes each: values 0..15 are low, 16..31 high. */
TND_INLINE __m512i unpack_nibbles(const uint8_t *p, const uint8_t *q)
{
    __m512i v = _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)(const void *)p));
    v = _mm512_mask_broadcast_i64x2(v, 0xf0, _mm_loadu_si128((const __m128i *)(const void *)q));
    v = _mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

/* As unpack_nibbles, with codebook look-up. */
TND_INLINE __m512i unpack_book(const uint8_t *p, const uint8_t *q, const int form)
{
    const void *codes = tnd_book_codes(form);
    const __m512i book = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)codes));
    return _mm512_shuffle_epi8(book, unpack_nibbles(p, q));
}

/* Nibbles of BCML1: byte i holds values 2 i and 2 i + 1. */
TND_INLINE __m512i unpack_nibble_pairs(const uint8_t *p, const uint8_t *q)
{
    const __m512i mask = _mm512_set1_epi8(15);
    __m512i v = _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)(const void *)p));
    v = _mm512_mask_broadcast_i64x2(v, 0xf0, _mm_loadu_si128((const __m128i *)(const void *)q));
    const __m512i even = _mm512_and_si512(v, mask);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(v, 4), mask);
    return _mm512_mask_blend_epi64(0xcc, _mm512_unpacklo_epi8(even, odd),
                                   _mm512_unpackhi_epi8(even, odd));
}

/* 64 weights, blocks 2 * pair and 2 * pair + 1 of the span at p, as unsigned bytes. */
TND_INLINE __m512i unpack_pair(const uint8_t *p, const int pair, const enum tandem_type type)
{
    const size_t bytes = block_bytes(type);
    const uint8_t *first = p + (size_t)(2 * pair) * bytes;
    const uint8_t *second = first + bytes;
    if (type == TANDEM_TYPE_Q4_K) { /* 32 bytes: low nibbles are one block, high ones the next */
        const uint8_t *q = p + (size_t)(pair / 4) * 144 + 16 + (size_t)(pair % 4) * 32;
        __m512i v = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)q));
        v = _mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4));
        return _mm512_and_si512(v, _mm512_set1_epi8(15));
    }
    if (type == TANDEM_TYPE_Q8_0) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(first + 2));
        __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(second + 2));
        __m512i v = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); /* q + 128 */
    }
    if (type == TANDEM_TYPE_BCML1) {
        return unpack_nibble_pairs(first + 4, second + 4);
    }
    if (type == TANDEM_TYPE_IQ4_XS) {
        const uint8_t *q = p + (size_t)(pair / 4) * 136 + 8 + (size_t)(pair % 4) * 32;
        return unpack_book(q, q + 16, TND_BOOK_IQ4);
    }
    if (type == TANDEM_TYPE_IQ4_NL || type == TANDEM_TYPE_MXFP4) {
        return unpack_book(first + bytes - 16, second + bytes - 16,
                           type == TANDEM_TYPE_MXFP4 ? TND_BOOK_FP4 : TND_BOOK_IQ4);
    }
    __m512i v = unpack_nibbles(first + bytes - 16, second + bytes - 16);
    if (type == TANDEM_TYPE_Q5_0 || type == TANDEM_TYPE_Q5_1) {
        uint32_t fifth[2];
        memcpy(&fifth[0], first + bytes - 20, 4);
        memcpy(&fifth[1], second + bytes - 20, 4);
        __mmask64 bits = (uint64_t)fifth[1] << 32 | fifth[0];
        v = _mm512_mask_add_epi8(v, bits, v, _mm512_set1_epi8(16));
    }
    return v;
}

/* Sums of 16 blocks. s[j]: 8 partial sums of block 2j, then 8 of block 2j + 1. */
TND_INLINE __m512i sum_blocks(const __m512i s[8])
{
    __m512i t[4];
    __m512i u[2];
    TND_UNROLL
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_add_epi32(_mm512_unpacklo_epi32(s[2 * j], s[2 * j + 1]),
                                _mm512_unpackhi_epi32(s[2 * j], s[2 * j + 1]));
    }
    TND_UNROLL
    for (int j = 0; j < 2; j++) {
        u[j] = _mm512_add_epi32(_mm512_unpacklo_epi64(t[2 * j], t[2 * j + 1]),
                                _mm512_unpackhi_epi64(t[2 * j], t[2 * j + 1]));
    }
    __m512i r = _mm512_add_epi32(_mm512_shuffle_i64x2(u[0], u[1], 0x88),
                                 _mm512_shuffle_i64x2(u[0], u[1], 0xdd));
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15), r);
}

TND_INLINE __m128i halves_8(const uint8_t *p, const size_t stride)
{
    uint16_t h[8];
    TND_UNROLL
    for (int i = 0; i < 8; i++) {
        memcpy(&h[i], p + (size_t)i * stride, sizeof(h[i]));
    }
    return _mm_setr_epi16((short)h[0], (short)h[1], (short)h[2], (short)h[3], (short)h[4],
                          (short)h[5], (short)h[6], (short)h[7]);
}

TND_INLINE __m512 halves_16(const uint8_t *p, const size_t stride)
{
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(halves_8(p, stride)),
                                                   halves_8(p + 8 * stride, stride), 1));
}

TND_INLINE __m512 bytes_to_floats(uint64_t low, uint64_t high)
{
    __m128i bytes = _mm_set_epi64x((long long)high, (long long)low);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

/* Scales and minima of two blocks of 256 of Q4_K; see tnd_k4_scale_min. */
TND_INLINE void k4_scales(const uint8_t *p, __m512 *scale, __m512 *min)
{
    uint64_t scales[2];
    uint64_t mins[2];
    uint32_t heads[2];
    TND_UNROLL
    for (int i = 0; i < 2; i++) {
        uint32_t packed[4];
        memcpy(packed, p + 144 * i, sizeof(packed));
        heads[i] = packed[0];
        uint32_t high_scales = (packed[3] & 0x0f0f0f0fu) | (packed[1] >> 2 & 0x30303030u);
        uint32_t high_mins = (packed[3] >> 4 & 0x0f0f0f0fu) | (packed[2] >> 2 & 0x30303030u);
        scales[i] = (uint64_t)high_scales << 32 | (packed[1] & 0x3f3f3f3fu);
        mins[i] = (uint64_t)high_mins << 32 | (packed[2] & 0x3f3f3f3fu);
    }
    __m128i halves = _mm_set_epi32(0, 0, (int32_t)heads[1], (int32_t)heads[0]);
    __m512 d = _mm512_castps128_ps512(_mm_cvtph_ps(halves));
    __m512i d_of = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
    __m512i dmin_of = _mm512_setr_epi32(1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3);
    __m512 dmin = _mm512_sub_ps(_mm512_setzero_ps(), _mm512_permutexvar_ps(dmin_of, d));
    *scale = _mm512_mul_ps(_mm512_permutexvar_ps(d_of, d), bytes_to_floats(scales[0], scales[1]));
    *min = _mm512_mul_ps(dmin, bytes_to_floats(mins[0], mins[1]));
}

/* Scales of two blocks of 256 of IQ4_XS; see tnd_iq4_xs_scale. */
TND_INLINE __m512 iq4_xs_scales(const uint8_t *p)
{
    uint32_t heads[4]; /* for each block {d, upper 2 bits}, lower 4 bits */
    memcpy(heads, p, 8);
    memcpy(heads + 2, p + 136, 8);
    const __m512i all = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(void *)heads));
    const __m512i head = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2), all);
    const __m512i low = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3), all);
    const __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
    __m512i high = _mm512_srlv_epi32(_mm512_srli_epi32(head, 12), _mm512_slli_epi32(place, 1));
    high = _mm512_and_si512(high, _mm512_set1_epi32(48));
    __m512i scale = _mm512_srlv_epi32(low, _mm512_slli_epi32(place, 2));
    scale = _mm512_or_si512(_mm512_and_si512(scale, _mm512_set1_epi32(15)), high);
    scale = _mm512_sub_epi32(scale, _mm512_set1_epi32(32));
    __m512 d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(head));
    return _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
}

/* Scales of 16 blocks of MXFP4; see tnd_e8m0_half. */
TND_INLINE __m512 mxfp4_scales(const uint8_t *p)
{
    uint8_t e[16];
    TND_UNROLL
    for (int i = 0; i < 16; i++) {
        e[i] = p[17 * i];
    }
    const __m512i exponent = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(void *)e));
    __m512i bits = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
    const __mmask16 subnormal = _mm512_cmplt_epi32_mask(exponent, _mm512_set1_epi32(2));
    bits = _mm512_mask_sllv_epi32(bits, subnormal, _mm512_set1_epi32(0x20 << 16), exponent);
    return _mm512_castsi512_ps(bits);
}

/* Multiplies SPAN blocks of row r, beginning with block `block`. */
TND_INLINE void multiply_span(const uint8_t *p, const struct tnd_gemv_q *job, int block,
                              const enum tandem_type type, struct parts *parts, int r)
{
    const size_t bytes = block_bytes(type);
    const int8_t *x = job->x + (size_t)block * 32;
    const int at = block % TND_GEMV_BLOCKS;
    __m512i s[8];
    TND_UNROLL
    for (int j = 0; j < 8; j++) {
        s[j] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), unpack_pair(p, j, type),
                                   _mm512_load_si512((const void *)(x + 64 * j)));
    }
    __m512i total = sum_blocks(s);
    __m512 scale;
    __m512 min = _mm512_setzero_ps();
    if (type == TANDEM_TYPE_Q4_K) {
        k4_scales(p, &scale, &min);
    } else if (type == TANDEM_TYPE_IQ4_XS) {
        scale = iq4_xs_scales(p);
    } else if (type == TANDEM_TYPE_MXFP4) {
        scale = mxfp4_scales(p);
    } else {
        scale = halves_16(p, bytes);
        if (is_affine(type)) {
            min = halves_16(p + 2, bytes);
        }
    }
    if (is_affine(type)) {
        _mm512_store_ps(&parts->min[r][at], min);
    } else {
        const void *correction = job->x_correction + block;
        total = _mm512_add_epi32(total, _mm512_load_si512(correction));
    }
    __m512 x_scale = _mm512_load_ps(job->x_scale + block);
    _mm512_store_ps(&parts->sum[r][at], _mm512_mul_ps(_mm512_cvtepi32_ps(total), x_scale));
    _mm512_store_ps(&parts->scale[r][at], scale);
}

TND_INLINE void multiply_row(const uint8_t *row, const struct tnd_gemv_q *job, int begin, int end,
                             const enum tandem_type type, struct parts *parts, int r)
{
    const size_t bytes = block_bytes(type);
    int b = begin;
    for (; b + SPAN <= end; b += SPAN) {
        const uint8_t *p = row + (size_t)b * bytes;
        for (size_t i = 0; i < SPAN * bytes; i += 64) {
            _mm_prefetch((const char *)p + AHEAD + i, _MM_HINT_T0);
        }
        multiply_span(p, job, b, type, parts, r);
    }
    if (b < end) {
        uint8_t rest[SPAN * 34] = {0};
        memcpy(rest, row + (size_t)b * bytes, (size_t)(end - b) * bytes);
        multiply_span(rest, job, b, type, parts, r);
    }
}

/* 4 floats of each of 16 rows; out[i]: float i of all rows. */
TND_INLINE void transpose_4(const float *p, const size_t stride, __m512 out[4])
{
    __m512 r[4];
    TND_UNROLL
    for (int i = 0; i < 4; i++) {
        const float *from = p + (size_t)i * stride;
        r[i] = _mm512_castps128_ps512(_mm_load_ps(from));
        r[i] = _mm512_insertf32x4(r[i], _mm_load_ps(from + 4 * stride), 1);
        r[i] = _mm512_insertf32x4(r[i], _mm_load_ps(from + 8 * stride), 2);
        r[i] = _mm512_insertf32x4(r[i], _mm_load_ps(from + 12 * stride), 3);
    }
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1]));
    __m512d b = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
    __m512d c = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    out[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    out[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    out[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    out[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
}

/* Adds blocks `begin` to begin + n - 1 of the parts, in order. */
TND_INLINE __m512 add_parts(const struct parts *parts, const struct tnd_gemv_q *job, int begin,
                            int n, const bool affine, __m512 y)
{
    const size_t stride = TND_GEMV_BLOCKS + 16;
    for (int b = 0; b < n; b += 4) {
        __m512 sum[4];
        __m512 scale[4];
        __m512 min[4];
        transpose_4(&parts->sum[0][b], stride, sum);
        transpose_4(&parts->scale[0][b], stride, scale);
        if (affine) {
            transpose_4(&parts->min[0][b], stride, min);
        }
        TND_UNROLL
        for (int i = 0; i < 4; i++) {
            if (b + i >= n) {
                break;
            }
            y = _mm512_fmadd_ps(sum[i], scale[i], y);
            if (affine) {
                y = _mm512_fmadd_ps(min[i], _mm512_set1_ps(job->x_sum[begin + b + i]), y);
            }
        }
    }
    return y;
}

TND_INLINE void gemv(const struct tnd_gemv_q *job, const enum tandem_type type)
{
    struct parts parts;
    memset(&parts, 0, job->n_rows < ROWS ? sizeof(parts) : 0);
    __m512 y = _mm512_setzero_ps();
    for (int begin = 0; begin < job->n_blocks; begin += TND_GEMV_BLOCKS) {
        int left = job->n_blocks - begin;
        int n = left < TND_GEMV_BLOCKS ? left : TND_GEMV_BLOCKS;
        for (int r = 0; r < job->n_rows; r++) {
            multiply_row(job->rows + (size_t)r * job->row_bytes, job, begin, begin + n, type,
                         &parts, r);
        }
        y = add_parts(&parts, job, begin, n, is_affine(type), y);
    }
    _mm512_mask_storeu_ps(job->y, (__mmask16)((1u << job->n_rows) - 1), y);
}

#define GEMV_TYPES(X)                                                                              \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(BCML1) X(IQ4_NL) X(IQ4_XS) X(MXFP4)
#define GEMV(NAME)                                                                                 \
    static void gemv_##NAME(const struct tnd_gemv_q *job)                                          \
    {                                                                                              \
        gemv(job, TANDEM_TYPE_##NAME);                                                             \
    }
GEMV_TYPES(GEMV)
#undef GEMV

void tnd_fill_gemv_vnni(struct tnd_cpu_kernels *out)
{
#define FILL(NAME) out->q.gemv[TANDEM_TYPE_##NAME] = gemv_##NAME;
    GEMV_TYPES(FILL)
#undef FILL
}
#else
typedef int tnd_no_vnni;
#endif
