/* SPDX-License-Identifier: MIT
 * Convolutions and fused programs for AVX-512: a panel of filters is one vector. */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <stddef.h>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_few.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strip_lanes.h"

#define RUN_PANELS(PANELS, PIXELS)                                                                 \
    static void run_##PANELS##_##PIXELS(const struct tnd_conv_tile *tile)                          \
    {                                                                                              \
        TND_CONV_BODY(__m512, 16, PIXELS, PANELS, tile->w_panel, _mm512_setzero_ps,                \
                      _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps)          \
    }
#define RUN(PIXELS)                                                                                \
    RUN_PANELS(1, PIXELS)                                                                          \
    RUN_PANELS(2, PIXELS)
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

#define ALL(PANELS)                                                                                \
    {                                                                                              \
        run_##PANELS##_1, run_##PANELS##_2, run_##PANELS##_3, run_##PANELS##_4, run_##PANELS##_5,  \
            run_##PANELS##_6, run_##PANELS##_7, run_##PANELS##_8, run_##PANELS##_9,                \
            run_##PANELS##_10, run_##PANELS##_11, run_##PANELS##_12, run_##PANELS##_13,            \
            run_##PANELS##_14                                                                      \
    }
static const struct tnd_strip_kernel strip = TND_STRIP_KERNEL;

void tnd_fill_net_avx512(struct tnd_cpu_kernels *out)
{
    out->strip = &strip;
    out->conv = (struct tnd_conv_kernel){.pixels = 14,
                                         .panels = 2,
                                         .end_filters = 1,
                                         .run = {ALL(1), ALL(2)},
                                         .few = run_few,
                                         .channels = 2 * 16,
                                         .depth = run_depth,
                                         .lines = run_lines,
                                         .largest = depth_largest,
                                         .largest_bytes = depth_largest_bytes,
                                         .winograd_in = tnd_winograd_in,
                                         .winograd_out = tnd_winograd_out};
}
#else
typedef int tnd_no_net_avx512;
#endif
