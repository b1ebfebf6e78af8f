/* SPDX-License-Identifier: MIT
 * Products of packed float weights: up to 3 tokens use all vectors of a panel, more tokens use half
 * of them at a time, six by six. Each part of K has a separate sum, as in gemm_<isa>.c, and so the
 * same bits. packed_float_<isa>.c includes this file after defining LANES, `vec`, v_halves (16-bit
 * numbers of either type to floats), v_load, v_store, v_set, v_add and v_fmadd. */
#include "backends/cpu/kernels/kernels.h"

enum { VECTORS = TND_PANEL_F_ROWS / LANES, TOKENS_MOST = 6 };

TND_INLINE vec load(const uint8_t *p, const enum tandem_type type)
{
    return type == TANDEM_TYPE_F32 ? v_load((const float *)(const void *)p) : v_halves(p, type);
}

/* A subtile of the product: n values of K, a few vectors of the panel, a few tokens. */
struct subtile {
    const uint8_t *w;
    const float *x;
    size_t x_stride; /* between values of K */
    float *y;
    size_t y_stride;
    int n;
    bool accumulate;
    size_t ahead; /* prefetch distance in bytes; 0: none */
};

TND_INLINE void multiply_subtile(const struct subtile *subtile, const enum tandem_type type,
                                 const int n_vectors, const int n_tokens)
{
    const size_t bytes = type == TANDEM_TYPE_F32 ? 4 : 2;
    const uint8_t *w = subtile->w;
    const float *x = subtile->x;
    vec sum[TOKENS_MOST][VECTORS];
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[t][v] = v_set(0.0f);
        }
    }
    for (int k = 0; k < subtile->n; k++) {
        vec weights[VECTORS];
        if (subtile->ahead != 0) {
            __builtin_prefetch(w + subtile->ahead, 0, 3);
            if (type == TANDEM_TYPE_F32) {
                __builtin_prefetch(w + subtile->ahead + 64, 0, 3);
            }
        }
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            weights[v] = load(w + (size_t)(v * LANES) * bytes, type);
        }
        TND_UNROLL
        for (int t = 0; t < n_tokens; t++) {
            vec value = v_set(x[t]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[t][v] = v_fmadd(weights[v], value, sum[t][v]);
            }
        }
        w += TND_PANEL_F_ROWS * bytes;
        x += subtile->x_stride;
    }
    TND_UNROLL
    for (int t = 0; t < n_tokens; t++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            float *y = subtile->y + (size_t)t * subtile->y_stride + v * LANES;
            vec before = subtile->accumulate ? v_load(y) : v_set(0.0f);
            vec all = subtile->accumulate ? v_add(sum[t][v], before) : sum[t][v];
            v_store(y, all);
        }
    }
}

/* Multiplies all tokens over one part of K, in subtiles that fill the registers. */
TND_INLINE void multiply_part(struct subtile subtile, const enum tandem_type type, int n_tokens)
{
    const size_t bytes = type == TANDEM_TYPE_F32 ? 4 : 2;
    switch (n_tokens) {
    case 1:
        multiply_subtile(&subtile, type, VECTORS, 1);
        return;
    case 2:
        multiply_subtile(&subtile, type, VECTORS, 2);
        return;
    case 3:
        multiply_subtile(&subtile, type, VECTORS, 3);
        return;
    default:
        break;
    }
    const int n_subtiles = (n_tokens + TOKENS_MOST - 1) / TOKENS_MOST;
    const struct subtile whole = subtile;
    for (int first = 0, i = 0; i < n_subtiles; i++) {
        const int n = (n_tokens - first + n_subtiles - i - 1) / (n_subtiles - i);
        for (int v = 0; v < VECTORS; v += VECTORS / 2) {
            subtile.w = whole.w + (size_t)(v * LANES) * bytes;
            subtile.x = whole.x + first;
            subtile.y = whole.y + (size_t)first * whole.y_stride + v * LANES;
            switch (n) {
            case 4:
                multiply_subtile(&subtile, type, VECTORS / 2, 4);
                break;
            case 5:
                multiply_subtile(&subtile, type, VECTORS / 2, 5);
                break;
            case 6:
                multiply_subtile(&subtile, type, VECTORS / 2, 6);
                break;
            default:
                multiply_subtile(&subtile, type, VECTORS / 2, 3);
                break;
            }
            subtile.ahead = 0;
        }
        first += n;
    }
}

TND_INLINE void multiply(const struct tnd_tile_packed_f *tile, const enum tandem_type type)
{
    const size_t value_bytes = TND_PANEL_F_ROWS * (type == TANDEM_TYPE_F32 ? 4 : 2);
    for (int64_t k0 = 0; k0 == 0 || k0 < tile->k; k0 += TND_KC_F) {
        const int64_t left = tile->k - k0;
        multiply_part((struct subtile){.w = tile->panel + (size_t)k0 * value_bytes,
                                       .x = tile->x + k0 * tile->n_tokens,
                                       .x_stride = (size_t)tile->n_tokens,
                                       .y = tile->y,
                                       .y_stride = tile->y_stride,
                                       .n = left < TND_KC_F ? (int)left : TND_KC_F,
                                       .accumulate = k0 > 0 || tile->accumulate,
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
