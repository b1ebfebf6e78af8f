/* SPDX-License-Identifier: MIT
 * F32, F16 and BF16 weights in a layout that is read as one stream: panels of 32 rows; for each
 * value of K the 32 numbers of the rows, in their own type. Products are bit-identical to those of
 * unpacked weights. */
#ifndef TND_PACKED_FLOAT_H
#define TND_PACKED_FLOAT_H

#include "backends/cpu/kernels/tiles.h"

enum {
    TND_PANEL_F_ROWS = 32,
    TND_PACKED_F_TOKENS = 12 /* most tokens per tile */
};

/* A product of one panel, or of part of its K, and a few tokens. Every TND_KC_F values of K have a
 * separate sum: parts begin at multiples of it. */
struct tnd_tile_packed_f {
    const uint8_t *panel;
    int64_t k;
    int n_tokens;   /* 1 .. TND_PACKED_F_TOKENS */
    const float *x; /* by value of K: the numbers of all tokens */
    float *y;       /* 32 floats per token are written */
    size_t y_stride;
    bool accumulate; /* adds to the previous parts */
    size_t ahead;    /* prefetch distance in bytes */
};
typedef void tnd_packed_f_fn(const struct tnd_tile_packed_f *tile);

/* Kernels for BF16 weights times activations rounded to BF16. `x` of the tile: for each two values
 * of K, each token's pair as a 32-bit number, the first value low; padded with 0. */
struct tnd_packed_bf16_kernels {
    tnd_packed_f_fn *multiply; /* or NULL: not implemented */
    /** Rounds n values to nearest, ties to even. Finite values stay finite, NaN stays NaN. */
    void (*round)(const float *x, int64_t n, uint16_t *y);
};

#endif
