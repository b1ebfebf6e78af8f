/* SPDX-License-Identifier: MIT
 * Float kernels for AVX-512: a tile is 32 rows (two panels) and up to 12 tokens. Also quantises
 * activations to bytes. */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

enum { LANES = 16, PANELS = 2, TOKENS = 12, AHEAD_STEPS = 16 };

/* Prefetches one run of the next tile, so that prefetches are spread over this tile. */
TND_INLINE void prefetch_ahead(const struct tnd_tile_f *tile, int stretch)
{
    if (tile->ahead != NULL && stretch < tile->n_tokens) {
        const char *from = tile->ahead + (size_t)stretch * tile->ahead_stride;
        for (size_t i = 0; i < tile->ahead_bytes; i += 64) {
            __builtin_prefetch(from + i, 0, 2);
        }
    }
}

TND_INLINE void gemm_tile(const struct tnd_tile_f *tile, const int n_panels, const int n_tokens)
{
    const size_t x_stride = tile->x_stride;
    const float *w[PANELS] = {tile->w, tile->w + tile->w_panel};
    const float *x[4]; /* three tokens per pointer, for addressing modes */
    __m512 sum[PANELS][TOKENS];
    TND_UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = tile->x + (size_t)(3 * i) * x_stride;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        TND_UNROLL
        for (int s = 0; s < n_panels; s++) {
            sum[s][t] = _mm512_setzero_ps();
        }
    }
    for (int begin = 0; begin < tile->n_values; begin += AHEAD_STEPS) {
        const int end = begin + AHEAD_STEPS < tile->n_values ? begin + AHEAD_STEPS : tile->n_values;
        prefetch_ahead(tile, begin / AHEAD_STEPS);
        for (int k = begin; k < end; k++) {
            __m512 v[PANELS];
            TND_UNROLL
            for (int s = 0; s < n_panels; s++) {
                v[s] = _mm512_load_ps(w[s]);
                w[s] += LANES;
            }
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                __m512 value = _mm512_set1_ps(x[t / 3][(size_t)(t % 3) * x_stride]);
                TND_UNROLL
                for (int s = 0; s < n_panels; s++) {
                    sum[s][t] = _mm512_fmadd_ps(v[s], value, sum[s][t]);
                }
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
        TND_UNROLL
        for (int s = 0; s < n_panels; s++, y += LANES) {
            if (tile->accumulate) {
                sum[s][t] = _mm512_add_ps(sum[s][t], _mm512_loadu_ps(y));
            }
            _mm512_storeu_ps(y, sum[s][t]);
        }
    }
}

/* One function per number of broadcast rows or tokens. */
#define CASE(panels, n)                                                                            \
    case n:                                                                                        \
        gemm_tile(tile, panels, n);                                                                \
        break;
#define CASES(panels)                                                                              \
    CASE(panels, 1)                                                                                \
    CASE(panels, 2)                                                                                \
    CASE(panels, 3)                                                                                \
    CASE(panels, 4)                                                                                \
    CASE(panels, 5)                                                                                \
    CASE(panels, 6)                                                                                \
    CASE(panels, 7)                                                                                \
    CASE(panels, 8)                                                                                \
    CASE(panels, 9)                                                                                \
    CASE(panels, 10)                                                                               \
    CASE(panels, 11)

static void gemm_f(const struct tnd_tile_f *tile)
{
    switch (tile->n_tokens) {
        CASES(2)
    default:
        gemm_tile(tile, 2, TOKENS);
        break;
    }
}

static void gemm_f_panel(const struct tnd_tile_f *tile)
{
    switch (tile->n_tokens) {
        CASES(1)
    default:
        gemm_tile(tile, 1, TOKENS);
        break;
    }
}
#undef CASES
#undef CASE

/* As quantize_x of gemm_scalar.c. Magnitudes are compared as bits: NaN is above infinity, infinity
 * above all numbers. */
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
        __m512 inverse = _mm512_set1_ps(top < TND_X_TINY ? 0.0f : 127.0f / top);
        __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
        __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
        q0 = _mm512_max_epi32(q0, lowest); /* NaN becomes INT32_MIN */
        q1 = _mm512_max_epi32(q1, lowest);
        _mm_storeu_si128((__m128i *)(void *)out->q, _mm512_cvtsepi32_epi8(q0));
        _mm_storeu_si128((__m128i *)(void *)(out->q + 16), _mm512_cvtsepi32_epi8(q1));
        const bool by_16 = (form & TND_GROUPS_OF_16) != 0;
        const int32_t low = _mm512_reduce_add_epi32(by_16 ? q0 : _mm512_add_epi32(q0, q1));
        const int32_t high = by_16 ? _mm512_reduce_add_epi32(q1) : 0;
        tnd_x_block_finish(out, top, low, high, form, offset);
    }
}

void tnd_fill_gemm_avx512(struct tnd_cpu_kernels *out)
{
    out->isa_f = "avx512";
    out->f.panels = PANELS;
    out->f.tokens = TOKENS;
    out->f.gemm = gemm_f;
    out->f.gemm_panel = gemm_f_panel;
    out->q.quantize_x = quantize_x;
}
#else
typedef int tnd_no_avx512;
#endif
