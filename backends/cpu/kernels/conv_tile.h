/* SPDX-License-Identifier: MIT
 * Interface to the inner loops of convolutions with channels last: some output positions by some
 * filters, summed in registers. One implementation per instruction set. */
#ifndef TND_CONV_TILE_H
#define TND_CONV_TILE_H

#include "backends/cpu/kernels/strip.h"
#include "base/lanes.h"
#include "ggml-like/conv.h"

/* Upper bounds of a tile. */
enum { TND_CONV_PANELS = 2, TND_CONV_FILTERS = TND_CONV_PANELS * TND_CONV_PANEL };

/* What is applied to the sums of a tile, and where results are stored (conv_ending.h). */
struct tnd_conv_ending {
    const struct tnd_fuse_code *codes;        /* NULL: sums are stored as they are, without gaps */
    const struct tnd_strip_operand *operands; /* value c of position m: from[m * row + c] */
    int64_t line;                             /* of y: stride between positions */
};

struct tnd_conv_tile {
    const float *const *rows; /* by tap and position: `run` values each */
    int64_t n_taps, run;
    const float *w;  /* of the first panel */
    int64_t w_panel; /* stride between panels, in values */
    int n_filters;   /* wanted; kernels may skip the others */
    float *y;        /* by position, the filters of all panels of the tile */
    struct tnd_conv_ending ending;
};

/* Depthwise: some positions by the channels of a block. */
struct tnd_conv_depth {
    const float *const *rows; /* by tap and position: all channels */
    int64_t n_taps;
    int n_places;
    int64_t channel; /* first channel of the block */
    int n_channels;  /* existing channels, at most those of the kernel */
    const float *w;  /* in panels, from the first channel on */
    int64_t w_panel; /* stride between panels, in values */
    float *y;        /* by position, as wide as the kernel's channels */
};

/* Bounds of tiles of adjacent positions in a line, without dilation. */
enum {
    TND_CONV_LINE_PLACES = 8,
    TND_CONV_LINE_TAPS = 7, /* most taps along the line */
    TND_CONV_LINE_COLUMNS = (TND_CONV_LINE_PLACES - 1) * 2 + TND_CONV_LINE_TAPS, /* seen */
    TND_CONV_MAX_LINES = 8                                                       /* most lines */
};
struct tnd_conv_lines {
    const float *const *columns; /* by line of the window, then column: all channels */
    int n_lines;
    int taps, stride; /* along the line: 3, 5 or 7 taps; stride 1 or 2 */
    int64_t channel;  /* first channel of the block */
    int n_channels;   /* existing channels, at most those of the kernel */
    const float *w;   /* in panels, from the first channel on */
    int64_t w_panel;  /* stride between panels, in values */
    float *y;         /* by position, as wide as the kernel's channels */
    int n_places;     /* positions in y, if there is an ending */
    struct tnd_conv_ending ending;
};

struct tnd_conv_kernel {
    int pixels, panels; /* of the largest tile */
    int end_filters;    /* endings take multiples of this many filters */
    /* by panels and positions of the tile; [0][0] is one of each */
    void (*run[TND_CONV_PANELS][TND_CONV_PIXELS])(const struct tnd_conv_tile *tile);
    /* conv_few.h: weights are rows (tnd_conv_few_row), `w_panel` is the stride between filters; y
     * has TND_CONV_PANEL values per position */
    void (*few)(const struct tnd_conv_tile *tile, int n_places);
    int channels; /* per block in `depth` and `largest` */
    /* conv_depthwise.h */
    void (*depth)(const struct tnd_conv_depth *depth);
    void (*lines)(const struct tnd_conv_lines *lines);
    /* element-wise maximum of `n` rows for a block of channels; NaN propagates */
    void (*largest)(const float *const *rows, int n, int64_t channel, float *y);
    /* the same for bytes, all channels, compared as uint8_t after XOR with `flip`; y may be a
     * row */
    void (*largest_bytes)(const uint8_t *const *rows, int n, int64_t n_channels, uint8_t flip,
                          uint8_t *y);
    /* conv_winograd.h */
    void (*winograd_in)(const float *const *rows, int64_t n, float *out, int64_t step);
    int (*winograd_out)(const float *m, int64_t step, int n, float *out, int64_t line);
};

/* Body of a function for vectors of LANES floats. SECOND: stride between panels in `w`. Names of
 * intrinsics are macros of the including file. All loops over positions must be fully unrolled. */
#if defined(__clang__)
#if __has_feature(undefined_behavior_sanitizer)
#define TND_CONV_UNROLL /* would take Clang more than ten minutes */
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
