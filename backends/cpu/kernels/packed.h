/* SPDX-License-Identifier: MIT
 * Quantised weights in a layout that kernels read as one stream: panels of 16 rows, lane by lane.
 * Bits per weight stay what they are in the type (scales grow by a few percent); the product has
 * the bits of the unpacked one. A panel is a run of units; a unit is 64 values of K (two blocks of
 * 32; the last one may be half used) or one block of 256:
 *
 *   header   per block of 32 a vector of 16 halves (scale; of MXFP4 bf16), affine types a
 *            second one (min);
 *            K-quants: halves d and, if affine, dmin, then a byte a lane for each group:
 *            Q4_K and Q5_K 8 scales, then 8 mins; Q6_K and Q3_K 16 signed scales; IQ4_XS 8;
 *            Q2_K 16 bytes with the scale low and the min high. Padded to 64 bytes.
 *   payload  per 32 values the unsigned codes of 8 steps (a step is 4 values of each lane, 64
 *            bytes), by halves h of 4 steps:
 *            4 bits  2 vectors a half: low steps 4h and 4h + 1, high steps 4h + 2 and 4h + 3
 *            8 bits  4 vectors a half, a step each
 *            2 bits  1 vector a half, its steps from the low bits up
 *            6 bits  the low 4 bits of both halves, then the high 2 bits of both
 *            3 and 5 bits  the low 2 or 4 bits of both halves, then for each of the 8 steps a word
 *                    of 64 bits: the top bits of its bytes
 *
 * A step is what the decoders of the instruction set make of it: with i8mm two steps of 4 rows hold
 * 8 values of rows 0 and 1, then of rows 2 and 3. */
#ifndef TND_PACKED_H
#define TND_PACKED_H

#include "backends/cpu/kernels/tiles.h"

/* Bytes of a header: for K-quants halves, then one or two bytes per group. */
#define TND_PACKED_HEADER(form, is_super)                                                          \
    ((is_super) && ((form) & (TND_AFFINE | TND_GROUPS_OF_16)) == 0 ? 192                           \
     : (is_super)                                                  ? 320                           \
     : ((form)&TND_AFFINE) != 0                                    ? 128                           \
                                                                   : 64)

enum {
    TND_PANEL_ROWS = 16,
    TND_PACKED_TOKENS = 8 /* most tokens per tile */
};

/* A product of one panel and a few tokens over part of K: y = w * x, or y += w * x. */
struct tnd_tile_packed {
    const uint8_t *units;
    int n_blocks; /* of 32 values; begins at a unit */
    int n_tokens; /* 1 .. TND_PACKED_TOKENS */
    const struct tnd_x_block *x;
    size_t x_blocks; /* between tokens */
    float *y;        /* 16 floats per token are written */
    size_t y_stride;
    bool accumulate;
    /* Prefetch distance in bytes. 0: the lines of a block are touched in memory order, which
     * hardware prefetchers follow. */
    int ahead;
    bool is_fetched; /* already: no prefetches */
    bool into_l2;    /* leaves L1 to the tokens, and allows more lines in flight */
};
typedef void tnd_packed_fn(const struct tnd_tile_packed *tile);

/* Unpacks part of a packed panel into one panel of a tile of kernels.h, for many tokens. */
typedef void tnd_unpack_fn(const uint8_t *units, int n_blocks, size_t ahead, uint8_t *values,
                           float *scales, float *mins);

struct tnd_packed_kernels {
    tnd_packed_fn *multiply;
    tnd_unpack_fn *unpack;       /* or NULL: use `multiply` for any number of tokens */
    tnd_packed_fn *multiply_one; /* or NULL: use `multiply` for one token, too */
};

#endif
