/* SPDX-License-Identifier: MIT
 * Integer kernels for one token (AVX-512 with VNNI). Rows are read one after another as they lie
 * in memory, which is what the hardware fetches best; lanes are values, then blocks. The sums of a
 * block are whole numbers, so that their order does not matter; what follows is added over the
 * blocks of 16 rows at once, in the order of the tiles of gemm_vnni.c: the same bits. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels.h"

enum { ROWS = 16, SPAN = 16 /* blocks whose sums fill a vector */, AHEAD = 2048 /* bytes */ };

/* Scaled sums and scales of a part of K, by row and block. */
struct parts {
    _Alignas(64) float sum[ROWS][TND_GEMV_BLOCKS + 16];
    _Alignas(64) float scale[ROWS][TND_GEMV_BLOCKS + 16];
};

/* 64 weights, two blocks, as unsigned bytes. */
TND_INLINE __m512i unpack_q4_0(const uint8_t *p)
{
    __m512i v = _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)(const void *)(p + 2)));
    v = _mm512_mask_broadcast_i64x2(v, 0xf0,
                                    _mm_loadu_si128((const __m128i *)(const void *)(p + 20)));
    v = _mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

TND_INLINE __m512i unpack_q8_0(const uint8_t *p)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(p + 2));
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 36));
    __m512i v = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); /* q + 128 */
}

/* s[j]: 8 partial sums of block 2j, then 8 of block 2j + 1. The sums of 16 blocks. */
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

/* SPAN blocks of one row. */
TND_INLINE void multiply_span(const uint8_t *p, const struct tnd_gemv_q *job, int block,
                              const bool q4, float *sum, float *scale)
{
    const size_t bytes = q4 ? 18 : 34;
    const int8_t *x = job->x + (size_t)block * 32;
    __m512i s[8];
    TND_UNROLL
    for (int j = 0; j < 8; j++) {
        const uint8_t *pair = p + (size_t)(2 * j) * bytes;
        __m512i w = q4 ? unpack_q4_0(pair) : unpack_q8_0(pair);
        s[j] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w,
                                   _mm512_load_si512((const void *)(x + 64 * j)));
    }
    __m512i total = _mm512_add_epi32(
        sum_blocks(s), _mm512_load_si512((const void *)(job->x_correction + block)));
    _mm512_store_ps(sum + block % TND_GEMV_BLOCKS,
                    _mm512_mul_ps(_mm512_cvtepi32_ps(total),
                                  _mm512_load_ps(job->x_scale + block)));
    __m256i d = _mm256_inserti128_si256(_mm256_castsi128_si256(halves_8(p, bytes)),
                                        halves_8(p + 8 * bytes, bytes), 1);
    _mm512_store_ps(scale + block % TND_GEMV_BLOCKS, _mm512_cvtph_ps(d));
}

TND_INLINE void multiply_row(const uint8_t *row, const struct tnd_gemv_q *job, int begin, int end,
                             const bool q4, float *sum, float *scale)
{
    const size_t bytes = q4 ? 18 : 34;
    int b = begin;
    for (; b + SPAN <= end; b += SPAN) {
        const uint8_t *p = row + (size_t)b * bytes;
        for (size_t i = 0; i < SPAN * bytes; i += 64) {
            _mm_prefetch((const char *)p + AHEAD + i, _MM_HINT_T0);
        }
        multiply_span(p, job, b, q4, sum, scale);
    }
    if (b < end) {
        uint8_t rest[SPAN * 34] = {0};
        memcpy(rest, row + (size_t)b * bytes, (size_t)(end - b) * bytes);
        multiply_span(rest, job, b, q4, sum, scale);
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

TND_INLINE __m512 add_parts(const struct parts *parts, int n, __m512 y)
{
    const size_t stride = TND_GEMV_BLOCKS + 16;
    for (int b = 0; b < n; b += 4) {
        __m512 sum[4];
        __m512 scale[4];
        transpose_4(&parts->sum[0][b], stride, sum);
        transpose_4(&parts->scale[0][b], stride, scale);
        TND_UNROLL
        for (int i = 0; i < 4; i++) {
            if (b + i < n) {
                y = _mm512_fmadd_ps(sum[i], scale[i], y);
            }
        }
    }
    return y;
}

TND_INLINE void gemv(const struct tnd_gemv_q *job, const bool q4)
{
    struct parts parts;
    memset(&parts, 0, job->n_rows < ROWS ? sizeof(parts) : 0);
    __m512 y = _mm512_setzero_ps();
    for (int begin = 0; begin < job->n_blocks; begin += TND_GEMV_BLOCKS) {
        int left = job->n_blocks - begin;
        int n = left < TND_GEMV_BLOCKS ? left : TND_GEMV_BLOCKS;
        for (int r = 0; r < job->n_rows; r++) {
            multiply_row(job->rows + (size_t)r * job->row_bytes, job, begin, begin + n, q4,
                         parts.sum[r], parts.scale[r]);
        }
        y = add_parts(&parts, n, y);
    }
    _mm512_mask_storeu_ps(job->y, (__mmask16)((1u << job->n_rows) - 1), y);
}

static void gemv_Q4_0(const struct tnd_gemv_q *job)
{
    gemv(job, true);
}

static void gemv_Q8_0(const struct tnd_gemv_q *job)
{
    gemv(job, false);
}

void tnd_gemv_vnni(struct tnd_kernels_q *out)
{
    out->gemv[TANDEM_TYPE_Q4_0] = gemv_Q4_0;
    out->gemv[TANDEM_TYPE_Q8_0] = gemv_Q8_0;
}
#else
typedef int tnd_no_vnni;
#endif
