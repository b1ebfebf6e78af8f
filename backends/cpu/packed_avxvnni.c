/* SPDX-License-Identifier: MIT
 * Products of packed weights for AVX-VNNI: AVX2 and the sum of four products of bytes. */
#if defined(__AVXVNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/packed.h"

#define CORRECTED(bits) true

TND_INLINE __m256i dot(const __m256i *w, const int8_t *q, const int n_steps, const int bits,
                       __m256i sum)
{
    (void)bits;
    TND_UNROLL
    for (int s = 0; s < n_steps; s++) {
        int32_t four;
        memcpy(&four, q + 4 * s, sizeof(four));
        sum = _mm256_dpbusd_avx_epi32(sum, w[s], _mm256_set1_epi32(four));
    }
    return sum;
}

#include "backends/cpu/packed_lanes256.h"

bool tnd_packed_kernels_avxvnni(enum tandem_type type, struct tnd_packed_kernels *out)
{
    return find_kernels(type, out);
}
#else
typedef int tnd_no_avxvnni;
#endif
