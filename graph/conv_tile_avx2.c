/* SPDX-License-Identifier: MIT
 * Convolutions for AVX2. */
#if defined(__AVX2__)
#include <immintrin.h>
#include <stddef.h>

#include "graph/conv_tile.h"
#include "graph/conv_winograd.h"

static void run(const struct tnd_conv_tile *tile)
{
    TND_CONV_BODY(__m256, 8, 6, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps,
                  _mm256_storeu_ps)
}

const struct tnd_conv_kernel tnd_conv_avx2 = {6, 2 * 8, run, tnd_winograd_in, tnd_winograd_out};
#else
extern int tnd_conv_avx2_is_empty;
#endif
