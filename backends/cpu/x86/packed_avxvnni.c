/* SPDX-License-Identifier: MIT
 * Products of packed weights for AVX-VNNI: AVX2 plus an instruction that adds four products of
 * bytes. */
#if defined(__AVXVNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

#define CORRECTED(bits) true

TND_INLINE void dot(__m256i w[2][4], const int8_t *q, const int bits, __m256i sum[2])
{
    (void)bits;
    TND_UNROLL
    for (int s = 0; s < 4; s++) {
        int32_t four;
        memcpy(&four, q + 4 * s, sizeof(four));
        sum[0] = _mm256_dpbusd_avx_epi32(sum[0], w[0][s], _mm256_set1_epi32(four));
        sum[1] = _mm256_dpbusd_avx_epi32(sum[1], w[1][s], _mm256_set1_epi32(four));
    }
}

#include "backends/cpu/x86/packed_lanes256.h"

void tnd_fill_packed_avxvnni(struct tnd_cpu_kernels *out)
{
    fill_packed(out);
}
#else
typedef int tnd_no_avxvnni;
#endif
