/* SPDX-License-Identifier: MIT
 * The inner loops of convolutions with channels last, one file an instruction set: some places of
 * the result by some filters, summed in registers. */
#ifndef TND_CONV_TILE_H
#define TND_CONV_TILE_H

#include <stdbool.h>
#include <stdint.h>

enum { TND_CONV_PIXELS = 14, TND_CONV_FILTERS = 32 }; /* most of a tile */

struct tnd_conv_tile {
    const float *const *rows; /* by tap and place: `run` values each */
    int64_t n_taps, run;
    const float *w; /* by tap and value: one for each filter of the tile */
    float *y;       /* by place and filter */
};

/* One filter a channel: some places by the channels of a block. */
struct tnd_conv_depth {
    const float *const *rows; /* by tap and place: all channels */
    int64_t n_taps;
    int n_places;
    int64_t channel; /* the first of the block, */
    int n_channels;  /* which has so many, at most the filters of a tile */
    const float *w;  /* by tap: one for each channel, and 0 up to the filters of a tile */
    float *y;        /* by place, as wide as the filters of a tile */
};

struct tnd_conv_kernel {
    int pixels, filters; /* of the largest tile */
    /* by places of the tile: [0] for one */
    void (*run[TND_CONV_PIXELS])(const struct tnd_conv_tile *tile);
    /* conv_depthwise.h */
    void (*depth)(const struct tnd_conv_depth *depth);
    /* the largest of `n` rows, value by value, NaN where one is: as many as filters of a tile */
    void (*largest)(const float *const *rows, int n, int64_t channel, float *y);
    /* conv_winograd.h */
    void (*winograd_in)(const float *const *rows, int64_t n, float *out, int64_t step);
    int (*winograd_out)(const float *m, int64_t step, int n, float *out, int64_t line);
};

extern const struct tnd_conv_kernel tnd_conv_scalar;
extern const struct tnd_conv_kernel tnd_conv_avx2;
extern const struct tnd_conv_kernel tnd_conv_avx512;

/* Body of the function for vectors of LANES floats, two of them filters; names of intrinsics are
 * macros of the file. All loops over places must be unrolled wholly. */
#if defined(__clang__)
#if __has_feature(undefined_behavior_sanitizer)
#define TND_CONV_UNROLL /* takes Clang more than ten minutes */
#else
#define TND_CONV_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define TND_CONV_UNROLL _Pragma("GCC unroll 16")
#endif
#define TND_CONV_BODY(VECTOR, LANES, PIXELS, ZERO, LOAD, SET1, FMA, STORE)                         \
    VECTOR sum[PIXELS][2];                                                                         \
    const float *w = tile->w;                                                                      \
    TND_CONV_UNROLL                                                                                \
    for (int m = 0; m < (PIXELS); m++) {                                                           \
        sum[m][0] = ZERO();                                                                        \
        sum[m][1] = ZERO();                                                                        \
    }                                                                                              \
    for (int64_t tap = 0; tap < tile->n_taps; tap++) {                                             \
        const float *const *rows = tile->rows + tap * (PIXELS);                                    \
        for (int64_t c = 0; c < tile->run; c++) {                                                  \
            const VECTOR w0 = LOAD(w);                                                             \
            const VECTOR w1 = LOAD(w + (LANES));                                                   \
            w += 2 * (LANES);                                                                      \
            TND_CONV_UNROLL                                                                        \
            for (int m = 0; m < (PIXELS); m++) {                                                   \
                const VECTOR x = SET1(rows[m][c]);                                                 \
                sum[m][0] = FMA(x, w0, sum[m][0]);                                                 \
                sum[m][1] = FMA(x, w1, sum[m][1]);                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TND_CONV_UNROLL                                                                                \
    for (int m = 0; m < (PIXELS); m++) {                                                           \
        STORE(tile->y + (size_t)m * 2 * (LANES), sum[m][0]);                                       \
        STORE(tile->y + (size_t)m * 2 * (LANES) + (LANES), sum[m][1]);                             \
    }

#endif
