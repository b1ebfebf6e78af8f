/* SPDX-License-Identifier: MIT
 * Convolutions of F32 with channels last, as the operations of nets describe them: the window over
 * positions, and weights packed as kernels read them, the same for all instruction sets. */
#ifndef TND_CONV_H
#define TND_CONV_H

#include "ggml-like/array.h"

struct tnd_epilogue;

enum {
    TND_CONV_MAX_TAPS = 512,
    TND_CONV_PANEL = 16,       /* filters per panel */
    TND_CONV_PIXELS = 14,      /* most positions, or tiles, that are computed together */
    TND_WINOGRAD_TAPS = 9,     /* F(2x2, 3x3): taps of the window, */
    TND_WINOGRAD_PLACES = 16,  /* and input values of a tile; transformed, its positions */
    TND_WINOGRAD_IN = 16,      /* channels of transformed tiles are padded to a multiple of this */
    TND_WINOGRAD_LOCAL = 49152 /* most values in a worker's transformed tiles if `is_local` */
};

struct tnd_conv {
    int n; /* dimensions of the window; extents of the input and of the result */
    int64_t in[TANDEM_NET_MAX_WINDOW], out[TANDEM_NET_MAX_WINDOW];
    int64_t taps[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], begin[TANDEM_NET_MAX_WINDOW];
    int64_t all_channels, all_filters;
    int64_t channels, filters; /* per group */
    int64_t run;               /* values that a tap reads */
    int64_t n_taps, n_pixels;
    bool is_few;   /* few filters: weights are rows of the values of a tap */
    bool is_point; /* a 1x1 window without steps and padding */
    /* Panels of filters, each group in panels of its own; depthwise, all groups share panels. A
     * panel has, by tap and channel (Winograd: by position and channel), one value for each of its
     * filters, padded with 0. Few filters: by filter and tap, rows of tnd_conv_few_row values. */
    const float *packed;
    const float *zeros;                  /* what a tap reads in the padding */
    const int64_t *offsets;              /* by tap: distance from the window's first value */
    const struct tnd_epilogue *epilogue; /* NULL: none */
};

/** Winograd's F(2x2, 3x3): tiles of 2 by 2 output positions. */
struct tnd_winograd {
    struct tnd_conv conv;
    int64_t tiles[2], n_tiles;
    int64_t row;        /* distance in values between tiles */
    int64_t step;       /* and between positions, over all tiles */
    const float *plain; /* filters {M, C, 9} */
    bool is_local;      /* one node: transformed tiles stay in a worker's cache */
    int src;            /* which operand of the node that multiplies is the input */
};

/** Depthwise: one filter per channel. */
static inline bool tnd_conv_is_depthwise(const struct tnd_conv *conv)
{
    return conv->channels == 1 && conv->filters == 1;
}

/** Whether it is a matrix product: positions by channels, times filters. */
static inline bool tnd_conv_is_product(const struct tnd_conv *conv)
{
    return conv->is_point && conv->channels == conv->all_channels;
}

/** Panels that `n` filters take. */
static inline int64_t tnd_conv_panels(int64_t n)
{
    return (n + TND_CONV_PANEL - 1) / TND_CONV_PANEL;
}

/** Length of a row of weights for a tap of `run` values, padded with 0; few filters only. */
static inline int64_t tnd_conv_few_row(int64_t run)
{
    return tnd_conv_panels(run) * TND_CONV_PANEL;
}

/** First output position of Winograd tile `tile`; returns the image. */
static inline int64_t tnd_winograd_place(const struct tnd_winograd *w, int64_t tile, int64_t at[2])
{
    at[1] = tile % w->tiles[1] * 2;
    tile /= w->tiles[1];
    at[0] = tile % w->tiles[0] * 2;
    return tile / w->tiles[0];
}

#endif
