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

/* A product of one panel and a few tokens over all K. */
struct tnd_tile_packed_f {
    const uint8_t *panel;
    int64_t k;
    int n_tokens;   /* 1 .. TND_PACKED_F_TOKENS */
    const float *x; /* value by value of K the numbers of the tokens */
    float *y;       /* 32 floats a token are written */
    size_t y_stride;
    size_t ahead; /* bytes from what is read to what is fetched meanwhile */
};
typedef void tnd_packed_f_fn(const struct tnd_tile_packed_f *tile);

#endif
