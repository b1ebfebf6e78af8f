/* SPDX-License-Identifier: MIT
 * Convolutions of F32 with channels last, as work of nets describes them: the window over places,
 * and weights as kernels read them, whatever the instruction set. */
#ifndef TND_CONV_H
#define TND_CONV_H

#include "ggml-like/array.h"

struct tnd_epilogue;

enum {
    TND_CONV_MAX_TAPS = 512,
    TND_CONV_PANEL = 16,       /* filters of a panel */
    TND_CONV_PIXELS = 14,      /* places, or tiles, that are computed together, at most */
    TND_WINOGRAD_TAPS = 9,     /* F(2x2, 3x3): of the window, */
    TND_WINOGRAD_PLACES = 16,  /* and places that a tile reads: transformed, its positions */
    TND_WINOGRAD_IN = 16,      /* channels of transformed tiles are a multiple of this */
    TND_WINOGRAD_LOCAL = 49152 /* values of the transformed tiles of a worker, where `is_local` */
};

struct tnd_conv {
    int n; /* dimensions of the window; extents of the input and of the result */
    int64_t in[TANDEM_NET_MAX_WINDOW], out[TANDEM_NET_MAX_WINDOW];
    int64_t taps[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], begin[TANDEM_NET_MAX_WINDOW];
    int64_t all_channels, all_filters;
    int64_t channels, filters; /* of a group */
    int64_t run;               /* values that a tap reads */
    int64_t n_taps, n_pixels;
    bool is_few;   /* filters: weights are rows of the values of a tap */
    bool is_point; /* a window of one place without steps and padding */
    /* Panels of filters, each group's by themselves, those of one filter a channel of all groups
     * together: by tap and value (of Winograd's method by position and channel) one for each
     * filter of the panel, filled up with 0. Of few filters by filter and tap rows of
     * tnd_conv_few_row values. */
    const float *packed;
    const float *zeros;                  /* what windows see of the padding: a tap */
    const int64_t *offsets;              /* by tap: values behind the first one of the window */
    const struct tnd_epilogue *epilogue; /* NULL: none */
};

/** Winograd's F(2x2, 3x3): tiles of 2 by 2 places of the result. */
struct tnd_winograd {
    struct tnd_conv conv;
    int64_t tiles[2], n_tiles;
    int64_t row;        /* from one transformed tile to the next, in values */
    int64_t step;       /* from one position of all tiles to the next */
    const float *plain; /* filters {M, C, 9} */
    bool is_local;      /* one node: no transformed tiles go through memory */
    int src;            /* operand of the node with the products that is the input */
};

/** One filter a channel. */
static inline bool tnd_conv_is_depthwise(const struct tnd_conv *conv)
{
    return conv->channels == 1 && conv->filters == 1;
}

/** A matrix product of places and filters. */
static inline bool tnd_conv_is_product(const struct tnd_conv *conv)
{
    return conv->is_point && conv->channels == conv->all_channels;
}

/** Panels of `n` filters. */
static inline int64_t tnd_conv_panels(int64_t n)
{
    return (n + TND_CONV_PANEL - 1) / TND_CONV_PANEL;
}

/** Values of a row of weights of a tap of `run` values, filled up with 0, where filters are few. */
static inline int64_t tnd_conv_few_row(int64_t run)
{
    return tnd_conv_panels(run) * TND_CONV_PANEL;
}

/** Where tile `tile` of Winograd's method begins in the result; gives the image. */
static inline int64_t tnd_winograd_place(const struct tnd_winograd *w, int64_t tile, int64_t at[2])
{
    at[1] = tile % w->tiles[1] * 2;
    tile /= w->tiles[1];
    at[0] = tile % w->tiles[0] * 2;
    return tile / w->tiles[0];
}

#endif
