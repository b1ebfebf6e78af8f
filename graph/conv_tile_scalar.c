/* SPDX-License-Identifier: MIT
 * Convolutions for any CPU. */
#include <stddef.h>

#include "graph/conv_depthwise.h"
#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

enum { PIXELS = 4, FILTERS = 8 };

static inline void run(const struct tnd_conv_tile *tile, int pixels)
{
    float sum[PIXELS][FILTERS] = {{0}};
    const float *w = tile->w;
    for (int64_t tap = 0; tap < tile->n_taps; tap++) {
        const float *const *rows = tile->rows + tap * pixels;
        for (int64_t c = 0; c < tile->run; c++, w += FILTERS) {
            for (int m = 0; m < pixels; m++) {
                const float x = rows[m][c];
                for (int f = 0; f < FILTERS; f++) {
                    sum[m][f] += x * w[f];
                }
            }
        }
    }
    for (int m = 0; m < pixels; m++) {
        for (int f = 0; f < FILTERS; f++) {
            tile->y[m * FILTERS + f] = sum[m][f];
        }
    }
}

#define RUN(PLACES)                                                                                \
    static void run_##PLACES(const struct tnd_conv_tile *tile)                                     \
    {                                                                                              \
        run(tile, PLACES);                                                                         \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)

const struct tnd_conv_kernel tnd_conv_scalar = {.pixels = PIXELS,
                                                .filters = FILTERS,
                                                .run = {run_1, run_2, run_3, run_4},
                                                .depth = run_depth,
                                                .largest = run_largest,
                                                .winograd_in = tnd_winograd_in,
                                                .winograd_out = tnd_winograd_out};
