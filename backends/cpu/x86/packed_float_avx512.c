/* SPDX-License-Identifier: MIT
 * Products of packed float weights for AVX-512: one panel (two vectors), up to 12 tokens. Each part
 * of K has a separate sum, as in gemm_avx512.c, and so the same bits. */
#if defined(__AVX512F__)
#include <immintrin.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/packed_tokens.h"

enum { LANES = 16, TOKENS = TND_PACKED_F_TOKENS };

TND_INLINE __m512 load(const uint8_t *p, const enum tandem_type type)
{
    if (type == TANDEM_TYPE_F32) {
        return _mm512_loadu_ps((const void *)p);
    }
    __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return type == TANDEM_TYPE_F16
               ? _mm512_cvtph_ps(halves)
               : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

TND_INLINE void multiply(const struct tnd_tile_packed_f *tile, const int n_tokens,
                         const enum tandem_type type)
{
    const size_t bytes = type == TANDEM_TYPE_F32 ? 4 : 2;
    const uint8_t *w = tile->panel;
    const float *x = tile->x;
    for (int64_t k0 = 0; k0 == 0 || k0 < tile->k; k0 += TND_KC_F) {
        const int64_t left = tile->k - k0;
        const int n = left < TND_KC_F ? (int)left : TND_KC_F;
        __m512 sum[2][TOKENS];
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            sum[0][t] = _mm512_setzero_ps();
            sum[1][t] = _mm512_setzero_ps();
        }
        for (int k = 0; k < n; k++) {
            _mm_prefetch((const char *)w + tile->ahead, _MM_HINT_T0);
            if (type == TANDEM_TYPE_F32) {
                _mm_prefetch((const char *)w + tile->ahead + 64, _MM_HINT_T0);
            }
            __m512 w0 = load(w, type);
            __m512 w1 = load(w + LANES * bytes, type);
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                __m512 value = _mm512_set1_ps(x[t]);
                sum[0][t] = _mm512_fmadd_ps(w0, value, sum[0][t]);
                sum[1][t] = _mm512_fmadd_ps(w1, value, sum[1][t]);
            }
            w += 2 * LANES * bytes;
            x += n_tokens;
        }
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            float *y = tile->y + (size_t)t * tile->y_stride;
            if (k0 > 0 || tile->accumulate) {
                sum[0][t] = _mm512_add_ps(sum[0][t], _mm512_loadu_ps(y));
                sum[1][t] = _mm512_add_ps(sum[1][t], _mm512_loadu_ps(y + LANES));
            }
            _mm512_storeu_ps(y, sum[0][t]);
            _mm512_storeu_ps(y + LANES, sum[1][t]);
        }
    }
}

#define PACKED(NAME)                                                                               \
    static void packed_##NAME(const struct tnd_tile_packed_f *tile)                                \
    {                                                                                              \
        TND_BY_TOKENS(multiply, tile, TANDEM_TYPE_##NAME)                                          \
    }
PACKED(F32)
PACKED(F16)
PACKED(BF16)
#undef PACKED

void tnd_fill_packed_float_avx512(struct tnd_cpu_kernels *out)
{
    out->packed_f[TANDEM_TYPE_F32] = packed_F32;
    out->packed_f[TANDEM_TYPE_F16] = packed_F16;
    out->packed_f[TANDEM_TYPE_BF16] = packed_BF16;
}
#else
typedef int tnd_no_avx512;
#endif
