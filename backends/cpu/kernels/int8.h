/* SPDX-License-Identifier: MIT
 * What the driver of products of 8-bit integers hands to kernels: tiles of exact sums, and what is
 * made of them. Layouts: ggml-like/conv_int8.h. */
#ifndef TND_INT8_H
#define TND_INT8_H

#include "ggml-like/binary_int8.h"
#include "ggml-like/conv_int8.h"

enum {
    TND_INT8_ROWS = 32,  /* of x in a tile, at most */
    TND_INT8_PANELS = 2, /* of w */
    TND_INT8_TILE = TND_INT8_PANELS * TND_INT8_PANEL,
    TND_INT8_PLACES = 64,      /* of depthwise windows at a time, at most */
    TND_INT8_DEPTH = 64,       /* channels of them, at most */
    TND_INT8_DEPTH_ROWS = 4096 /* taps of all these places, at most */
};

/* sums[row * TND_INT8_TILE + filter] = the sum over k of (x - x_less) * w. */
struct tnd_int8_tile {
    const uint8_t *x; /* rows of bytes that count from 0 */
    int64_t x_stride; /* bytes from one row to the next */
    int n_rows;       /* at most `rows` of the kernels */
    const int8_t *w;
    int64_t w_panel; /* bytes from one panel to the next */
    int n_panels;    /* at most `panels` of the kernels */
    int64_t k;       /* a multiple of `step` of the kernels */
    int32_t *sums;
};

/* What follows the sums of some rows, for the filters of a tile. */
struct tnd_int8_finish {
    const int32_t *sums;
    int sums_stride;       /* from one row to the next */
    const int32_t *x_sums; /* of each row of x, or NULL: no weight has a zero point */
    int n_rows, n_filters;
    const struct tnd_conv_int8 *conv;
    /* of each filter of the tile, and of those that fill up its last panel */
    const int32_t *zero_w, *base; /* base: bias, less what zero_x adds to the sum */
    const float *scale, *offset;
    void *y;
    int64_t y_stride; /* values from one row to the next */
};

/* Windows with one filter a channel: some places by a block of channels, `n_rows` by `n_filters` of
 * what follows, whose sums are not set. */
struct tnd_int8_depth {
    const uint8_t *const *rows; /* by tap and place: the channels of a place of x */
    int64_t n_taps, channel;    /* the first channel of the block, a multiple of a panel */
    uint8_t flip;               /* what makes bytes count from 0 */
    const float *w;             /* by panel and tap */
    const int8_t *bytes; /* by panel, the taps filled up to a multiple of 4; NULL: there are none */
};

/* Sums or products of values that lie side by side. */
struct tnd_int8_binary {
    const struct tnd_binary_int8 *op;
    const uint8_t *a, *b;
    uint8_t *y;
    int64_t n;
};

struct tnd_int8_kernels {
    int rows, panels; /* of a tile, at most */
    int step;         /* values of k that are read together: rows are filled up to a multiple */
    int x_less;       /* what `multiply` takes off x */
    void (*multiply)(const struct tnd_int8_tile *tile);
    void (*finish)(const struct tnd_int8_finish *finish);
    void (*depth)(const struct tnd_int8_depth *depth, const struct tnd_int8_finish *finish);
    void (*binary)(const struct tnd_int8_binary *binary);
    void (*begin)(void); /* on each worker around its products, or NULL */
    void (*end)(void);
};

#endif
