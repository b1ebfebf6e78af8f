/* SPDX-License-Identifier: MIT
 * Convolutions and fused programs for any CPU (every 64-bit ARM has NEON, every 64-bit x86 has
 * SSE2): half a panel of filters at a time. */
#include <stddef.h>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_few.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strip_lanes.h"

enum { PIXELS = 4, HALF = TND_CONV_PANEL / 2 };
_Static_assert((int)HALF == 2 * TND_VEC_LANES, "half a panel is two vectors");

static inline __attribute__((always_inline)) void run_half(const struct tnd_conv_tile *tile,
                                                           const int pixels, const int half)
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
    if (tile->ending.codes != NULL) {
        tnd_vec vectors[PIXELS][TND_CONV_PANELS];
        memcpy(vectors, sum, sizeof(vectors));
        end_sums(&tile->ending, vectors, pixels, pixels, 2, half, TND_VEC_LANES, tile->y);
        return;
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
        if (tile->n_filters > HALF) {                                                              \
            run_half(tile, PLACES, HALF);                                                          \
        }                                                                                          \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)

static const struct tnd_strip_kernel strip = TND_STRIP_KERNEL;

void tnd_fill_net_scalar(struct tnd_cpu_kernels *out)
{
    out->strip = &strip;
    out->conv = (struct tnd_conv_kernel){.pixels = PIXELS,
                                         .panels = 1,
                                         .end_filters = HALF,
                                         .run = {{run_1, run_2, run_3, run_4}},
                                         .few = run_few,
                                         .channels = 2 * TND_VEC_LANES,
                                         .depth = run_depth,
                                         .lines = run_lines,
                                         .largest = depth_largest,
                                         .largest_bytes = depth_largest_bytes,
                                         .winograd_in = tnd_winograd_in,
                                         .winograd_out = tnd_winograd_out};
}
