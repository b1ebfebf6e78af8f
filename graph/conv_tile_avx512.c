/* SPDX-License-Identifier: MIT
 * Convolutions for AVX-512. */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <stddef.h>

#include "graph/conv_depthwise.h"
#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

#define RUN(PIXELS)                                                                                \
    static void run_##PIXELS(const struct tnd_conv_tile *tile)                                     \
    {                                                                                              \
        TND_CONV_BODY(__m512, 16, PIXELS, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,      \
                      _mm512_fmadd_ps, _mm512_storeu_ps)                                           \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)
RUN(5)
RUN(6)
RUN(7)
RUN(8)
RUN(9)
RUN(10)
RUN(11)
RUN(12)
RUN(13)
RUN(14)

const struct tnd_conv_kernel tnd_conv_avx512 = {.pixels = 14,
                                                .filters = 2 * 16,
                                                .run = {run_1, run_2, run_3, run_4, run_5, run_6,
                                                        run_7, run_8, run_9, run_10, run_11, run_12,
                                                        run_13, run_14},
                                                .depth = run_depth,
                                                .largest = run_largest,
                                                .winograd_in = tnd_winograd_in,
                                                .winograd_out = tnd_winograd_out};
#else
extern int tnd_conv_avx512_is_empty;
#endif
