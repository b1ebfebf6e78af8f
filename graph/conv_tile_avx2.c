/* SPDX-License-Identifier: MIT
 * Convolutions for AVX2: a panel of filters is two vectors. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <stddef.h>

#include "graph/conv_depthwise.h"
#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

#define RUN(PIXELS)                                                                                \
    static void run_##PIXELS(const struct tnd_conv_tile *tile)                                     \
    {                                                                                              \
        TND_CONV_BODY(__m256, 8, PIXELS, 2, 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, \
                      _mm256_fmadd_ps, _mm256_storeu_ps)                                           \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)
RUN(5)
RUN(6)

const struct tnd_conv_kernel tnd_conv_avx2 = {.pixels = 6,
                                              .panels = 1,
                                              .run = {{run_1, run_2, run_3, run_4, run_5, run_6}},
                                              .channels = 2 * 8,
                                              .depth = run_depth,
                                              .largest = run_largest,
                                              .winograd_in = tnd_winograd_in,
                                              .winograd_out = tnd_winograd_out};
#else
extern int tnd_conv_avx2_is_empty;
#endif
