/* SPDX-License-Identifier: MIT
 * Convolutions for any CPU: half a panel of filters at a time. */
#include <stddef.h>

#include "graph/conv_depthwise.h"
#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

enum { PIXELS = 4, HALF = TND_CONV_PANEL / 2 };

static inline void run_half(const struct tnd_conv_tile *tile, int pixels, int half)
{
    float sum[PIXELS][HALF] = {{0}};
    const float *w = tile->w + half;
    for (int64_t tap = 0; tap < tile->n_taps; tap++) {
        const float *const *rows = tile->rows + tap * pixels;
        for (int64_t c = 0; c < tile->run; c++, w += TND_CONV_PANEL) {
            for (int m = 0; m < pixels; m++) {
                const float x = rows[m][c];
                for (int f = 0; f < HALF; f++) {
                    sum[m][f] += x * w[f];
                }
            }
        }
    }
    for (int m = 0; m < pixels; m++) {
        for (int f = 0; f < HALF; f++) {
            tile->y[m * TND_CONV_PANEL + half + f] = sum[m][f];
        }
    }
}

#define RUN(PLACES)                                                                                \
    static void run_##PLACES(const struct tnd_conv_tile *tile)                                     \
    {                                                                                              \
        run_half(tile, PLACES, 0);                                                                 \
        run_half(tile, PLACES, HALF);                                                              \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)

const struct tnd_conv_kernel tnd_conv_scalar = {.pixels = PIXELS,
                                                .panels = 1,
                                                .run = {{run_1, run_2, run_3, run_4}},
                                                .channels = 2 * TND_VEC_LANES,
                                                .depth = run_depth,
                                                .largest = run_largest,
                                                .winograd_in = tnd_winograd_in,
                                                .winograd_out = tnd_winograd_out};
