/* SPDX-License-Identifier: MIT
 * What the driver of AMX products hands to its kernels. A strip is 16 rows of W or 16 tokens; a
 * block is 256 values of K of a strip, as integers with one scale a lane (a row, or a token) in one
 * to three planes of bytes:
 *
 *   value = scale * (p0 + p1 / 128 + p2 / 16384),  p0 in -127..127, p1 and p2 in -64..64
 *
 * so that tile products run over 256 values before anything is scaled. After the first plane a
 * value is wrong by at most scale / 2 = top / 254, where top is the lane's largest magnitude in the
 * block, and each further plane makes that 128 times less. A lane has as few planes as are harmless
 * for each 32 of its values, those that share a scale in the other kernels:
 *
 *   |error| <= E |values| (lengths of vectors of 32),  E = sqrt(5e-4) / 2 = 0.0112
 *
 * With ordinary values that is one. The third is always enough for 32 values whose length is above
 * top / 127 * sqrt(32) / 2^15 / E = top / 8,200; shorter ones are wrong by no more than
 * top / 127 / 2^15 each.
 *
 * The product of two blocks is the sum over the planes of both, in exact 32-bit integers. Those of
 * one power of 128 stay below 2^24 (256 * 127 * 127, 3 * 256 * 127 * 64): floats hold them exactly.
 *
 * Bound of a result. Each 32 values contribute an error of at most (2 E + E^2) |w| |x|, by Cauchy
 * and Schwarz. Where w and x are parallel, as in constant rows, that is (2 E)^2 = 5e-4 of the
 * squared result: the bound that quantised products have in tests (suite_backends_matmul.c), here
 * for each 32 values by themselves. (Rounding to 8 bits with a scale for each 32 activations, as
 * the other kernels do, allows up to sqrt(32) / 254 = 0.022 |w| |x|.)
 *
 * Float weights meet activations as sums of bf16 numbers of 8 bits: the nearest one, the one
 * nearest to what it leaves (2^-8 of the value at most), and the one nearest to what both leave
 * (2^-17). Parts are multiplied exactly, and summed in floats for each 256 values of K by
 * themselves. Pairs of parts i and j, both from 0, count for i + j < 3:
 *
 *   weights  parts of W  parts of X  products  |error| <= ... |w| |x| of each value
 *   BF16     1, exact    2           2         2^-17: what two parts leave of X
 *   F16      2, exact    2           4         2^-17
 *   F32      3           3           6         2^-23: what three leave of both, and four pairs
 *
 * so that the squared error of parallel rows is at most 2^-34 = 6e-11 of the result, and that of
 * rounding; tests allow float products 1e-10. The unit counts subnormal numbers as zeros, in parts
 * too: numbers below 2^-110 lose bits. Infinite ones give infinity or NaN. */
#ifndef TND_AMX_H
#define TND_AMX_H

#include "backends/cpu/kernels/tiles.h"

enum {
    TND_AMX_LANES = 16,   /* per strip */
    TND_AMX_VALUES = 256, /* of K per block */
    TND_AMX_STEP = 64,    /* values of K per tile of bytes */
    TND_AMX_TILE = 1024,  /* bytes */
    TND_AMX_PLANES = 3,
    TND_AMX_STRIPS = 2, /* per operand in one product: with four sums these are eight tiles */
    TND_AMX_PLANE_BYTES = TND_AMX_VALUES * TND_AMX_LANES,
    TND_AMX_PARTS = 3,                            /* most parts of a float */
    TND_AMX_PART = TND_AMX_VALUES * TND_AMX_LANES /* bf16 numbers */
};

/* E^2 from above. */
#define TND_AMX_HARMLESS 1.25e-4f

/* Each plane is a run of tiles of 64 values. Tokens: 64 bytes of each lane. Rows: for each 4 values
 * of K the 4 bytes of each lane. At the end of K, tiles are padded with zeros. */
struct tnd_amx_block {
    int8_t plane[TND_AMX_PLANES][TND_AMX_PLANE_BYTES];
    float scale[TND_AMX_LANES];
    int n_planes;    /* of the lane with most planes; other lanes have zeros there */
    char unused[60]; /* makes blocks a multiple of 64 bytes */
};

/* Quantises `n` values (a multiple of 32, at most 256) of a strip, given as 16 lanes per value of
 * K. */
typedef void tnd_amx_quantize_fn(const float *values, int n, bool is_w, struct tnd_amx_block *out);

/* Splits values into n_parts parts of bf16 numbers, for any n: runs of tiles of 32 values. Tokens:
 * 32 numbers of each lane; rows: for each 2 values of K the 2 numbers of each lane. */
typedef void tnd_amx_split_fn(const float *values, int n, int n_parts, bool is_w, uint16_t *out);

/* Expands n codes of a panel of 16 lanes, laid out as in tiles.h, to floats, 16 lanes per value of
 * K. */
typedef void tnd_amx_expand_fn(const uint8_t *codes, const float *scales, const float *mins, int n,
                               int form, int offset, float *values);

/* y = w * x, or y += w * x, over one block: struct tnd_amx_block, or parts of floats. */
struct tnd_amx_tile {
    const void *x[TND_AMX_STRIPS], *w[TND_AMX_STRIPS]; /* the second is optional (NULL) */
    int x_parts, w_parts;                              /* of floats */
    int n_values;
    int n_tokens; /* rows of y to write */
    float *y;     /* at the first token and the first row of the strips */
    size_t y_stride;
    int row_begin, row_end; /* rows of the strips to write */
    bool accumulate;
};
typedef void tnd_amx_multiply_fn(const struct tnd_amx_tile *tile);

struct tnd_amx_kernels {
    const char *name;    /* "amx" or "amx-emulated"; NULL: none */
    void (*begin)(void); /* called by each worker before its products: configures its tiles */
    void (*end)(void);   /* called after them: releases the tiles for other configurations */
    tnd_amx_quantize_fn *quantize;
    tnd_amx_expand_fn *expand;
    tnd_amx_multiply_fn *multiply;
    tnd_amx_split_fn *split;
    tnd_amx_multiply_fn *multiply_parts;
};

#endif
