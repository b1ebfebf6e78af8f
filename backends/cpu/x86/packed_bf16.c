/* SPDX-License-Identifier: MIT
 * Products of packed BF16 weights and BF16 activations for AVX-512 with BF16: one panel, up to 12
 * tokens. VDPBF16PS adds the products of two pairs in each lane, in float, and flushes subnormal
 * numbers to 0 (Intel's manual, volume 2). Each part of K has a separate sum, as in
 * packed_float_avx512.c. */
#if defined(__AVX512BF16__)
#include <float.h>
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/packed_tokens.h"

enum { LANES = 16, TOKENS = TND_PACKED_F_TOKENS, ROW_BYTES = TND_PANEL_F_ROWS * 2 };

TND_INLINE __m512bh as_pairs(__m512i v)
{
    __m512bh pairs;
    memcpy(&pairs, &v, sizeof(pairs));
    return pairs;
}

TND_INLINE __m512bh broadcast_pair(const float *p)
{
    int32_t pair;
    memcpy(&pair, p, sizeof(pair));
    return as_pairs(_mm512_set1_epi32(pair));
}

/* Multiplies two values of K, or the last one, by those of the tokens. One vector has pairs of rows
 * 0 to 3 of each eight, the other of rows 4 to 7. */
TND_INLINE void add_pair(const uint8_t *w, const bool is_last, const float *x, const int n_tokens,
                         __m512 sum[2][TOKENS])
{
    const __m512i first = _mm512_loadu_si512((const void *)w);
    const __m512i second =
        is_last ? _mm512_setzero_si512() : _mm512_loadu_si512((const void *)(w + ROW_BYTES));
    const __m512bh low = as_pairs(_mm512_unpacklo_epi16(first, second));
    const __m512bh high = as_pairs(_mm512_unpackhi_epi16(first, second));
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        const __m512bh value = broadcast_pair(x + t);
        sum[0][t] = _mm512_dpbf16_ps(sum[0][t], low, value);
        sum[1][t] = _mm512_dpbf16_ps(sum[1][t], high, value);
    }
}

/* Stores sums of rows, whose order is that of add_pair, to y in order of rows. */
TND_INLINE void store(float *y, __m512 low, __m512 high, bool accumulate)
{
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    __m512 a = _mm512_permutex2var_ps(low, first, high);
    __m512 b = _mm512_permutex2var_ps(low, second, high);
    if (accumulate) {
        a = _mm512_add_ps(a, _mm512_loadu_ps(y));
        b = _mm512_add_ps(b, _mm512_loadu_ps(y + LANES));
    }
    _mm512_storeu_ps(y, a);
    _mm512_storeu_ps(y + LANES, b);
}

/* `part`: values of K per separate sum, an even number. */
TND_INLINE void multiply(const struct tnd_tile_packed_f *tile, const int n_tokens, const int part)
{
    const uint8_t *w = tile->panel;
    const float *x = tile->x;
    for (int64_t k0 = 0; k0 == 0 || k0 < tile->k; k0 += part) {
        const int64_t left = tile->k - k0;
        const int n = left < part ? (int)left : part;
        __m512 sum[2][TOKENS];
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            sum[0][t] = _mm512_setzero_ps();
            sum[1][t] = _mm512_setzero_ps();
        }
        for (int k = 0; k + 2 <= n; k += 2) {
            _mm_prefetch((const char *)w + tile->ahead, _MM_HINT_T0);
            _mm_prefetch((const char *)w + tile->ahead + ROW_BYTES, _MM_HINT_T0);
            add_pair(w, false, x, n_tokens, sum);
            w += 2 * ROW_BYTES;
            x += n_tokens;
        }
        if (n % 2 != 0) { /* the end of K */
            add_pair(w, true, x, n_tokens, sum);
        }
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            store(tile->y + (size_t)t * tile->y_stride, sum[0][t], sum[1][t],
                  k0 > 0 || tile->accumulate);
        }
    }
}

static void packed_bf16(const struct tnd_tile_packed_f *tile)
{
    TND_BY_TOKENS(multiply, tile, TND_KC_F)
}

static void round_bf16(const float *x, int64_t n, uint16_t *y)
{
    /* bounded by the largest finite number: larger finite values would become infinite */
    const __m512 most = _mm512_castsi512_ps(_mm512_set1_epi32(0x7f7f0000));
    const __m512 least = _mm512_sub_ps(_mm512_setzero_ps(), most);
    for (int64_t i = 0; i < n; i += LANES) {
        const __mmask16 is_there = n - i < LANES ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        __m512 v = _mm512_maskz_loadu_ps(is_there, x + i);
        const __mmask16 is_finite =
            _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ);
        v = _mm512_mask_max_ps(v, is_finite, _mm512_min_ps(v, most), least);
        const __m256bh rounded = _mm512_cvtneps_pbh(v);
        __m256i bits;
        memcpy(&bits, &rounded, sizeof(bits));
        _mm256_mask_storeu_epi16(y + i, is_there, bits);
    }
}

void tnd_fill_packed_bf16(struct tnd_cpu_kernels *out)
{
    out->packed_bf16 = (struct tnd_packed_bf16_kernels){packed_bf16, round_bf16};
}
#else
typedef int tnd_no_bf16;
#endif
