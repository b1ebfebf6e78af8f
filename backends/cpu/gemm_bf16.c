/* SPDX-License-Identifier: MIT
 * Kernel for BF16 weights (AVX-512 with BF16): one instruction adds the products of two pairs in
 * each of 16 lanes. A pair takes the place of a float: the drivers move pairs as 32-bit values,
 * with half as many of them to a row, and the activations are rounded to BF16. */
#if defined(__AVX512BF16__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels.h"

enum { LANES = 16, TOKENS = 12, AHEAD_STEPS = 16 };

TND_INLINE __m512bh pairs_at(const float *p)
{
    __m512i v = _mm512_load_si512((const void *)p);
    __m512bh pairs;
    memcpy(&pairs, &v, sizeof(pairs));
    return pairs;
}

TND_INLINE __m512bh broadcast_pair(const float *p)
{
    int32_t pair;
    memcpy(&pair, p, sizeof(pair));
    __m512i v = _mm512_set1_epi32(pair);
    __m512bh pairs;
    memcpy(&pairs, &v, sizeof(pairs));
    return pairs;
}

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
    __m512 sum[2][TOKENS];
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
            __m512bh v0 = pairs_at(w0);
            __m512bh v1 = pairs_at(w1);
            w0 += LANES;
            w1 += LANES;
            TND_UNROLL
            for (int t = 0; t < n_tokens; t++) {
                __m512bh value = broadcast_pair(x[t / 3] + (size_t)(t % 3) * x_stride);
                sum[0][t] = _mm512_dpbf16_ps(sum[0][t], v0, value);
                sum[1][t] = _mm512_dpbf16_ps(sum[1][t], v1, value);
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

#define CASE(n)                                                                                    \
    case n:                                                                                        \
        gemm_tile(tile, n);                                                                        \
        break;
static void gemm_pairs(const struct tnd_tile_f *tile)
{
    switch (tile->n_tokens) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
    default:
        gemm_tile(tile, TOKENS);
        break;
    }
}
#undef CASE

/* To nearest, halves to even; what is no number stays none. */
static void round_to_pairs(const float *x, int64_t n_pairs, float *out)
{
    for (int64_t i = 0; i < n_pairs; i += LANES / 2) {
        int64_t left = (n_pairs - i) * 2;
        __mmask16 valid = left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
        __m256bh pairs = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(valid, x + 2 * i));
        __m256i bits;
        memcpy(&bits, &pairs, sizeof(bits));
        _mm256_mask_storeu_epi16(out + i, valid, bits);
    }
}

void tnd_kernels_fill_bf16(struct tnd_cpu_kernels *out)
{
    out->isa_bf16 = "avx512+bf16";
    out->f.gemm_pairs = gemm_pairs;
    out->f.round_to_pairs = round_to_pairs;
}
#else
typedef int tnd_no_bf16;
#endif
