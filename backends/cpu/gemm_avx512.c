/* SPDX-License-Identifier: MIT
 * Float kernels for AVX-512: a tile is 32 rows (two strips) and up to 12 tokens. And the
 * activations' way to bytes. */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels.h"

enum { LANES = 16, STRIPS = 2, TOKENS = 12, AHEAD_STEPS = 16 };

/* One stretch of what comes next, so that fetching is spread over the tile. */
TND_INLINE void prefetch_ahead(const struct tnd_tile_f *tile, int stretch)
{
    if (tile->ahead != NULL && stretch < tile->n_tokens) {
        const char *from = tile->ahead + (size_t)stretch * tile->ahead_stride;
        for (size_t i = 0; i < tile->ahead_bytes; i += 64) {
            __builtin_prefetch(from + i, 0, 2);
        }
    }
}

TND_INLINE void gemm_tile(const struct tnd_tile_f *tile, const int n_tokens)
{
    const size_t x_stride = tile->x_stride;
    const float *w0 = tile->w;
    const float *w1 = tile->w + tile->w_strip;
    const float *x[4]; /* three tokens a pointer, as addressing modes have it */
    __m512 sum[STRIPS][TOKENS];
    TND_UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = tile->x + (size_t)(3 * i) * x_stride;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        sum[0][t] = _mm512_setzero_ps();
        sum[1][t] = _mm512_setzero_ps();
    }
    for (int begin = 0; begin < tile->n_values; begin += AHEAD_STEPS) {
        const int end =
            begin + AHEAD_STEPS < tile->n_values ? begin + AHEAD_STEPS : tile->n_values;
        prefetch_ahead(tile, begin / AHEAD_STEPS);
        for (int k = begin; k < end; k++) {
            __m512 v0 = _mm512_load_ps(w0);
            __m512 v1 = _mm512_load_ps(w1);
            w0 += LANES;
            w1 += LANES;
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                __m512 value = _mm512_set1_ps(x[t / 3][(size_t)(t % 3) * x_stride]);
                sum[0][t] = _mm512_fmadd_ps(v0, value, sum[0][t]);
                sum[1][t] = _mm512_fmadd_ps(v1, value, sum[1][t]);
            }
            TND_UNROLL
            for (int i = 0; i < 4; i++) {
                x[i]++;
            }
        }
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        float *y = tile->y + (size_t)t * tile->y_stride;
        if (tile->accumulate) {
            sum[0][t] = _mm512_add_ps(sum[0][t], _mm512_loadu_ps(y));
            sum[1][t] = _mm512_add_ps(sum[1][t], _mm512_loadu_ps(y + LANES));
        }
        _mm512_storeu_ps(y, sum[0][t]);
        _mm512_storeu_ps(y + LANES, sum[1][t]);
    }
}

static void gemm_f(const struct tnd_tile_f *tile)
{
    switch (tile->n_tokens) {
    case 1:
        gemm_tile(tile, 1);
        break;
    case 2:
        gemm_tile(tile, 2);
        break;
    case 3:
        gemm_tile(tile, 3);
        break;
    case 4:
        gemm_tile(tile, 4);
        break;
    case 5:
        gemm_tile(tile, 5);
        break;
    case 6:
        gemm_tile(tile, 6);
        break;
    case 7:
        gemm_tile(tile, 7);
        break;
    case 8:
        gemm_tile(tile, 8);
        break;
    case 9:
        gemm_tile(tile, 9);
        break;
    case 10:
        gemm_tile(tile, 10);
        break;
    case 11:
        gemm_tile(tile, 11);
        break;
    default:
        gemm_tile(tile, 12);
        break;
    }
}

/* As quantize_x of gemm_scalar.c. The largest magnitude is found on the bits, where not-a-number
 * is above infinity and infinity above all numbers. */
static void quantize_x(const float *x, int64_t n, int form, int offset, struct tnd_x_block *out)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i lowest = _mm512_set1_epi32(-127);
    for (int64_t b = 0; b < n / TND_X_BLOCK; b++, x += TND_X_BLOCK, out++) {
        __m512 x0 = _mm512_loadu_ps(x);
        __m512 x1 = _mm512_loadu_ps(x + 16);
        __m512i top_bits = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x0), magnitude),
                                            _mm512_and_si512(_mm512_castps_si512(x1), magnitude));
        int32_t bits = _mm512_reduce_max_epi32(top_bits);
        float top;
        memcpy(&top, &bits, sizeof(top));
        bool tiny = top < 1e-30f;
        __m512 inverse = _mm512_set1_ps(tiny ? 0.0f : 127.0f / top);
        __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
        __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
        float scale = tiny ? 0.0f : top / 127.0f;
        q0 = _mm512_max_epi32(q0, lowest); /* what is no number becomes INT32_MIN */
        q1 = _mm512_max_epi32(q1, lowest);
        _mm_storeu_si128((__m128i *)(void *)out->q, _mm512_cvtsepi32_epi8(q0));
        _mm_storeu_si128((__m128i *)(void *)(out->q + 16), _mm512_cvtsepi32_epi8(q1));
        int32_t sum[2];
        if ((form & TND_GROUPS_OF_16) != 0) {
            sum[0] = _mm512_reduce_add_epi32(q0);
            sum[1] = _mm512_reduce_add_epi32(q1);
        } else {
            sum[0] = _mm512_reduce_add_epi32(_mm512_add_epi32(q0, q1));
            sum[1] = 0;
        }
        out->scale = scale;
        for (int g = 0; g < 2; g++) {
            if ((form & TND_AFFINE) != 0) {
                out->group.sum[g] = scale * (float)sum[g];
            } else {
                out->group.correction[g] = -offset * sum[g];
            }
        }
        out->unused = 0;
    }
}

void tnd_kernels_fill_avx512(struct tnd_cpu_kernels *out)
{
    tnd_decoders_f_avx512(&out->f);
    out->isa_f = "avx512";
    out->f.strips = STRIPS;
    out->f.tokens = TOKENS;
    out->f.gemm = gemm_f;
    out->q.quantize_x = quantize_x;
}
#else
typedef int tnd_no_avx512;
#endif
