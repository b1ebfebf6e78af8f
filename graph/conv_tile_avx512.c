/* SPDX-License-Identifier: MIT
 * Convolutions for AVX-512. */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <stddef.h>

#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

static void run(const struct tnd_conv_tile *tile)
{
    TND_CONV_BODY(__m512, 16, 14, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
                  _mm512_fmadd_ps, _mm512_storeu_ps)
}

const struct tnd_conv_kernel tnd_conv_avx512 = {14, 2 * 16, run, tnd_winograd_in, tnd_winograd_out};
#else
extern int tnd_conv_avx512_is_empty;
#endif
