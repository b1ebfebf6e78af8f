/* SPDX-License-Identifier: MIT
 * The inner loops of convolutions with channels last, one file an instruction set: some places of
 * the result by some filters, summed in registers. */
#ifndef TND_CONV_TILE_H
#define TND_CONV_TILE_H

#include "backends/cpu/kernels/strip.h"
#include "base/lanes.h"
#include "ggml-like/conv.h"

/* Most of a tile. */
enum { TND_CONV_PANELS = 2, TND_CONV_FILTERS = TND_CONV_PANELS * TND_CONV_PANEL };

/* What the result of sums goes through, and where it is written (conv_ending.h). */
struct tnd_conv_ending {
    const struct tnd_fuse_code *codes;        /* NULL: sums are stored as they are, without gaps */
    const struct tnd_strip_operand *operands; /* value c of place m: from[m * row + c] */
    int64_t line;                             /* of y: from one place to the next */
};

struct tnd_conv_tile {
    const float *const *rows; /* by tap and place: `run` values each */
    int64_t n_taps, run;
    const float *w;  /* the first panel */
    int64_t w_panel; /* values from one panel to the next */
    int n_filters;   /* that are wanted: kernels may leave out those behind */
    float *y;        /* by place, the filters of all panels of the tile */
    struct tnd_conv_ending ending;
};

/* One filter a channel: some places by the channels of a block. */
struct tnd_conv_depth {
    const float *const *rows; /* by tap and place: all channels */
    int64_t n_taps;
    int n_places;
    int64_t channel; /* the first of the block, */
    int n_channels;  /* channels that exist, at most those of the kernel */
    const float *w;  /* in panels, from the first channel on */
    int64_t w_panel; /* values from one panel to the next */
    float *y;        /* by place, as wide as the channels of the kernel */
};

/* Numbers of tiles whose places lie side by side in a line without gaps. */
enum {
    TND_CONV_LINE_PLACES = 8,
    TND_CONV_LINE_TAPS = 7, /* most along the line */
    TND_CONV_LINE_COLUMNS = (TND_CONV_LINE_PLACES - 1) * 2 + TND_CONV_LINE_TAPS, /* that they see */
    TND_CONV_MAX_LINES = 8                                                       /* of the window */
};
struct tnd_conv_lines {
    const float *const *columns; /* by line of the window and column: all channels */
    int n_lines;
    int taps, stride; /* along the line: 3, 5 or 7; 1 or 2 */
    int64_t channel;  /* the first of the block, */
    int n_channels;   /* channels that exist, at most those of the kernel */
    const float *w;   /* in panels, from the first channel on */
    int64_t w_panel;  /* values from one panel to the next */
    float *y;         /* by place, as wide as the channels of the kernel */
    int n_places;     /* that y has, where there is an ending */
    struct tnd_conv_ending ending;
};

struct tnd_conv_kernel {
    int pixels, panels; /* of the largest tile */
    int end_filters;    /* endings take multiples of this */
    /* by panels and places of the tile: [0][0] for one of each */
    void (*run[TND_CONV_PANELS][TND_CONV_PIXELS])(const struct tnd_conv_tile *tile);
    /* conv_few.h; weights are rows (tnd_conv_few_row) of filters, `w_panel` values from one
     * filter to the next; y has TND_CONV_PANEL values a place */
    void (*few)(const struct tnd_conv_tile *tile, int n_places);
    int channels; /* of a block of depth and largest */
    /* conv_depthwise.h */
    void (*depth)(const struct tnd_conv_depth *depth);
    void (*lines)(const struct tnd_conv_lines *lines);
    /* the largest of `n` rows, value by value, NaN where one is: of a block of channels */
    void (*largest)(const float *const *rows, int n, int64_t channel, float *y);
    /* of bytes, all channels, in the order of uint8_t once `flip` is XORed to them; y may be a
     * row */
    void (*largest_bytes)(const uint8_t *const *rows, int n, int64_t n_channels, uint8_t flip,
                          uint8_t *y);
    /* conv_winograd.h */
    void (*winograd_in)(const float *const *rows, int64_t n, float *out, int64_t step);
    int (*winograd_out)(const float *m, int64_t step, int n, float *out, int64_t line);
};

/* Body of the function for vectors of LANES floats, this many of them filters, each SECOND values
 * behind the one before it; names of intrinsics are macros of the file. All loops over places must
 * be unrolled wholly. */
#if defined(__clang__)
#if __has_feature(undefined_behavior_sanitizer)
#define TND_CONV_UNROLL /* takes Clang more than ten minutes */
#else
#define TND_CONV_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define TND_CONV_UNROLL _Pragma("GCC unroll 16")
#endif
#define TND_CONV_BODY(VECTOR, LANES, PIXELS, VECTORS, SECOND, ZERO, LOAD, SET1, FMA, STORE)        \
    tnd_vec sum[PIXELS][TND_CONV_PANELS];                                                          \
    const float *w = tile->w;                                                                      \
    TND_CONV_UNROLL                                                                                \
    for (int m = 0; m < (PIXELS); m++) {                                                           \
        TND_CONV_UNROLL                                                                            \
        for (int v = 0; v < (VECTORS); v++) {                                                      \
            sum[m][v] = (tnd_vec)ZERO();                                                           \
        }                                                                                          \
    }                                                                                              \
    for (int64_t tap = 0; tap < tile->n_taps; tap++) {                                             \
        const float *const *rows = tile->rows + tap * (PIXELS);                                    \
        for (int64_t c = 0; c < tile->run; c++, w += TND_CONV_PANEL) {                             \
            VECTOR of_filters[VECTORS];                                                            \
            TND_CONV_UNROLL                                                                        \
            for (int v = 0; v < (VECTORS); v++) {                                                  \
                of_filters[v] = LOAD(w + v * (SECOND));                                            \
            }                                                                                      \
            TND_CONV_UNROLL                                                                        \
            for (int m = 0; m < (PIXELS); m++) {                                                   \
                const VECTOR x = SET1(rows[m][c]);                                                 \
                TND_CONV_UNROLL                                                                    \
                for (int v = 0; v < (VECTORS); v++) {                                              \
                    sum[m][v] = (tnd_vec)FMA(x, of_filters[v], (VECTOR)sum[m][v]);                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    if (tile->ending.codes != NULL) {                                                              \
        end_sums(&tile->ending, sum, PIXELS, PIXELS, VECTORS, 0,                                   \
                 tile->n_filters - ((VECTORS)-1) * (LANES), tile->y);                              \
        return;                                                                                    \
    }                                                                                              \
    TND_CONV_UNROLL                                                                                \
    for (int m = 0; m < (PIXELS); m++) {                                                           \
        TND_CONV_UNROLL                                                                            \
        for (int v = 0; v < (VECTORS); v++) {                                                      \
            STORE(tile->y + (size_t)((m * (VECTORS) + v) * (LANES)), (VECTOR)sum[m][v]);           \
        }                                                                                          \
    }

#endif
