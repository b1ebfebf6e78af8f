/* SPDX-License-Identifier: MIT
 * Convolutions and fused programs for AVX2: a panel of filters is two vectors. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <stddef.h>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_few.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strip_lanes.h"

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

static const struct tnd_strip_kernel strip = TND_STRIP_KERNEL;

void tnd_fill_net_avx2(struct tnd_cpu_kernels *out)
{
    out->strip = &strip;
    out->conv = (struct tnd_conv_kernel){.pixels = 6,
                                         .panels = 1,
                                         .end_filters = 16,
                                         .run = {{run_1, run_2, run_3, run_4, run_5, run_6}},
                                         .few = run_few,
                                         .channels = 2 * 8,
                                         .depth = run_depth,
                                         .lines = run_lines,
                                         .largest = depth_largest,
                                         .largest_bytes = depth_largest_bytes,
                                         .winograd_in = tnd_winograd_in,
                                         .winograd_out = tnd_winograd_out};
}
#else
typedef int tnd_no_net_avx2;
#endif
