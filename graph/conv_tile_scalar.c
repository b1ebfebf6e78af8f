/* SPDX-License-Identifier: MIT
 * Convolutions for any CPU. */
#include <stddef.h>

#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

enum { PIXELS = 4, FILTERS = 8 };

static void run(const struct tnd_conv_tile *tile)
{
    float sum[PIXELS][FILTERS] = {{0}};
    const float *w = tile->w;
    for (int64_t tap = 0; tap < tile->n_taps; tap++) {
        const float *const *rows = tile->rows + tap * PIXELS;
        for (int64_t c = 0; c < tile->run; c++, w += FILTERS) {
            for (int m = 0; m < PIXELS; m++) {
                const float x = rows[m][c];
                for (int f = 0; f < FILTERS; f++) {
                    sum[m][f] += x * w[f];
                }
            }
        }
    }
    for (int m = 0; m < PIXELS; m++) {
        for (int f = 0; f < FILTERS; f++) {
            tile->y[m * FILTERS + f] = sum[m][f];
        }
    }
}

const struct tnd_conv_kernel tnd_conv_scalar = {PIXELS, FILTERS, run, tnd_winograd_in,
                                                tnd_winograd_out};
