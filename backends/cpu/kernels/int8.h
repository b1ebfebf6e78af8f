/* SPDX-License-Identifier: MIT
 * Interface between the driver of 8-bit products and its kernels: tiles of exact sums, and how sums
 * become results. Layouts: ggml-like/conv_int8.h. */
#ifndef TND_INT8_H
#define TND_INT8_H

#include "ggml-like/binary_int8.h"
#include "ggml-like/conv_int8.h"

enum {
    TND_INT8_ROWS = 32,  /* most rows of x per tile */
    TND_INT8_PANELS = 2, /* most panels of w */
    TND_INT8_TILE = TND_INT8_PANELS * TND_INT8_PANEL,
    TND_INT8_PLACES = 64,      /* most positions of depthwise windows at a time */
    TND_INT8_DEPTH = 64,       /* and channels */
    TND_INT8_DEPTH_ROWS = 4096 /* and taps of all these positions */
};

/* sums[row * TND_INT8_TILE + filter] = the sum over k of (x - x_less) * w. */
struct tnd_int8_tile {
    const uint8_t *x; /* rows of unsigned bytes */
    int64_t x_stride; /* bytes between rows */
    int n_rows;       /* at most `rows` of the kernels */
    const int8_t *w;
    int64_t w_panel; /* bytes between panels */
    int n_panels;    /* at most `panels` of the kernels */
    int64_t k;       /* a multiple of `step` of the kernels */
    int32_t *sums;
};

/* Turns the sums of some rows into results, for the filters of a tile. */
struct tnd_int8_finish {
    const int32_t *sums;
    int sums_stride;       /* between rows */
    const int32_t *x_sums; /* sum of each row of x; NULL: no weight has a zero point */
    int n_rows, n_filters;
    const struct tnd_conv_int8 *conv;
    /* by filter of the tile, including those that pad its last panel */
    const int32_t *zero_w, *base; /* base: bias minus the contribution of zero_x */
    const float *scale, *offset;
    void *y;
    int64_t y_stride; /* values between rows */
};

/* Depthwise windows: some positions by a block of channels. `finish` has `n_rows` positions and
 * `n_filters` channels; its sums are not set. */
struct tnd_int8_depth {
    const uint8_t *const *rows; /* by tap and position: the channels of a position of x */
    int64_t n_taps, channel;    /* `channel`: the first one of the block, a multiple of a panel */
    uint8_t flip;               /* XOR that makes bytes unsigned */
    const float *w;             /* by panel and tap */
    const int8_t *bytes;        /* by panel, taps padded to a multiple of 4; NULL: none */
};

/* Sums or products of adjacent values. */
struct tnd_int8_binary {
    const struct tnd_binary_int8 *op;
    const uint8_t *a, *b;
    uint8_t *y;
    int64_t n;
};

struct tnd_int8_kernels {
    int rows, panels; /* most per tile */
    int step;         /* values of k that are read together: rows are padded to a multiple */
    int x_less;       /* what `multiply` subtracts from x */
    void (*multiply)(const struct tnd_int8_tile *tile);
    void (*finish)(const struct tnd_int8_finish *finish);
    void (*depth)(const struct tnd_int8_depth *depth, const struct tnd_int8_finish *finish);
    void (*binary)(const struct tnd_int8_binary *binary);
    void (*begin)(void); /* called by each worker before its products, `end` after them; or NULL */
    void (*end)(void);
};

#endif
