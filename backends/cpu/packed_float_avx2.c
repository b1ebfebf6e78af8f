/* SPDX-License-Identifier: MIT
 * Products of packed float weights for AVX2: up to 3 tokens pass over the 4 vectors of a panel,
 * more over 2 of them at a time, by sixes. Each part of K is summed by itself, as in gemm_avx2.c:
 * the same bits. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/packed_float.h"

enum { LANES = 8, VECTORS = TND_PANEL_F_ROWS / LANES, TOKENS_MOST = 6 };

TND_INLINE __m256 load(const uint8_t *p, const enum tandem_type type)
{
    if (type == TANDEM_TYPE_F32) {
        return _mm256_loadu_ps((const void *)p);
    }
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return type == TANDEM_TYPE_F16
               ? _mm256_cvtph_ps(halves)
               : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* A piece of the product: n values of K, a few vectors of the panel, a few tokens. */
struct piece {
    const uint8_t *w;
    const float *x;
    size_t x_stride; /* from one value of K to the next */
    float *y;
    size_t y_stride;
    int n;
    bool accumulate;
    size_t ahead; /* 0: nothing is fetched */
};

TND_INLINE void multiply_piece(const struct piece *piece, const enum tandem_type type,
                               const int n_vectors, const int n_tokens)
{
    const size_t bytes = type == TANDEM_TYPE_F32 ? 4 : 2;
    const uint8_t *w = piece->w;
    const float *x = piece->x;
    __m256 sum[TOKENS_MOST][VECTORS];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[t][v] = _mm256_setzero_ps();
        }
    }
    for (int k = 0; k < piece->n; k++) {
        __m256 weights[VECTORS];
        if (piece->ahead != 0) {
            _mm_prefetch((const char *)w + piece->ahead, _MM_HINT_T0);
            if (type == TANDEM_TYPE_F32) {
                _mm_prefetch((const char *)w + piece->ahead + 64, _MM_HINT_T0);
            }
        }
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            weights[v] = load(w + (size_t)(v * LANES) * bytes, type);
        }
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            __m256 value = _mm256_set1_ps(x[t]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[t][v] = _mm256_fmadd_ps(weights[v], value, sum[t][v]);
            }
        }
        w += TND_PANEL_F_ROWS * bytes;
        x += piece->x_stride;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            float *y = piece->y + (size_t)t * piece->y_stride + v * LANES;
            __m256 before = piece->accumulate ? _mm256_loadu_ps(y) : _mm256_setzero_ps();
            __m256 all = piece->accumulate ? _mm256_add_ps(sum[t][v], before) : sum[t][v];
            _mm256_storeu_ps(y, all);
        }
    }
}

/* All tokens over one part of K, in pieces that fill the registers. */
TND_INLINE void multiply_part(struct piece piece, const enum tandem_type type, int n_tokens)
{
    const size_t bytes = type == TANDEM_TYPE_F32 ? 4 : 2;
    switch (n_tokens) {
    case 1:
        multiply_piece(&piece, type, VECTORS, 1);
        return;
    case 2:
        multiply_piece(&piece, type, VECTORS, 2);
        return;
    case 3:
        multiply_piece(&piece, type, VECTORS, 3);
        return;
    default:
        break;
    }
    const int n_pieces = (n_tokens + TOKENS_MOST - 1) / TOKENS_MOST;
    const struct piece whole = piece;
    for (int first = 0, i = 0; i < n_pieces; i++) {
        const int n = (n_tokens - first + n_pieces - i - 1) / (n_pieces - i);
        for (int v = 0; v < VECTORS; v += 2) {
            piece.w = whole.w + (size_t)(v * LANES) * bytes;
            piece.x = whole.x + first;
            piece.y = whole.y + (size_t)first * whole.y_stride + v * LANES;
            switch (n) {
            case 4:
                multiply_piece(&piece, type, 2, 4);
                break;
            case 5:
                multiply_piece(&piece, type, 2, 5);
                break;
            case 6:
                multiply_piece(&piece, type, 2, 6);
                break;
            default:
                multiply_piece(&piece, type, 2, 3);
                break;
            }
            piece.ahead = 0;
        }
        first += n;
    }
}

TND_INLINE void multiply(const struct tnd_tile_packed_f *tile, const enum tandem_type type)
{
    const size_t value_bytes = TND_PANEL_F_ROWS * (type == TANDEM_TYPE_F32 ? 4 : 2);
    for (int64_t k0 = 0; k0 == 0 || k0 < tile->k; k0 += TND_KC_F) {
        const int64_t left = tile->k - k0;
        multiply_part((struct piece){.w = tile->panel + (size_t)k0 * value_bytes,
                                     .x = tile->x + k0 * tile->n_tokens,
                                     .x_stride = (size_t)tile->n_tokens,
                                     .y = tile->y,
                                     .y_stride = tile->y_stride,
                                     .n = left < TND_KC_F ? (int)left : TND_KC_F,
                                     .accumulate = k0 > 0,
                                     .ahead = tile->ahead},
                      type, tile->n_tokens);
    }
}

#define PACKED(NAME)                                                                               \
    static void packed_##NAME(const struct tnd_tile_packed_f *tile)                                \
    {                                                                                              \
        multiply(tile, TANDEM_TYPE_##NAME);                                                        \
    }
PACKED(F32)
PACKED(F16)
PACKED(BF16)
#undef PACKED

tnd_packed_f_fn *tnd_packed_f_kernel_avx2(enum tandem_type type)
{
    switch (type) {
    case TANDEM_TYPE_F32:
        return packed_F32;
    case TANDEM_TYPE_F16:
        return packed_F16;
    case TANDEM_TYPE_BF16:
        return packed_BF16;
    default:
        return NULL;
    }
}
#else
typedef int tnd_no_avx2;
#endif
