/* SPDX-License-Identifier: MIT
 * F32, F16 and BF16 weights in the layout of one stream: panels of 32 rows, value by value of K the
 * 32 numbers of the rows, in their own type. The product has the bits of the unpacked
 * one. */
#ifndef TND_PACKED_FLOAT_H
#define TND_PACKED_FLOAT_H

#include "backends/cpu/kernels/tiles.h"

enum {
    TND_PANEL_F_ROWS = 32,
    TND_PACKED_F_TOKENS = 12 /* most that one tile takes */
};

/* A product of one panel, or of a part of its K, and a few tokens. Each TND_KC_F values of K are
 * summed by themselves: parts begin at multiples of it. */
struct tnd_tile_packed_f {
    const uint8_t *panel;
    int64_t k;
    int n_tokens;   /* 1 .. TND_PACKED_F_TOKENS */
    const float *x; /* value by value of K the numbers of the tokens */
    float *y;       /* 32 floats a token are written */
    size_t y_stride;
    bool accumulate; /* onto the parts before */
    size_t ahead;    /* bytes from what is read to what is fetched meanwhile */
};
typedef void tnd_packed_f_fn(const struct tnd_tile_packed_f *tile);

/* Kernels for BF16 weights times activations that are rounded to BF16. `x` of the tile: for each
 * two values of K the pairs of the tokens, a 32-bit number each, the first value low; 0 behind the
 * last one. */
struct tnd_packed_bf16_kernels {
    tnd_packed_f_fn *multiply; /* or NULL: there are none */
    /** Rounds n values to the nearest (ties to even). Finite ones stay finite, NaN stays NaN. */
    void (*round)(const float *x, int64_t n, uint16_t *y);
};

#endif
