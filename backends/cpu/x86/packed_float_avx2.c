/* SPDX-License-Identifier: MIT
 * Products of packed float weights for AVX2: defines operations on 8 lanes. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/kernels/kernels.h"

#define LANES 8
typedef __m256 vec;

TND_INLINE vec v_halves(const uint8_t *p, const enum tandem_type type)
{
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return type == TANDEM_TYPE_F16
               ? _mm256_cvtph_ps(halves)
               : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

#define v_load(p)        _mm256_loadu_ps(p)
#define v_store(p, v)    _mm256_storeu_ps(p, v)
#define v_set(x)         _mm256_set1_ps(x)
#define v_add(a, b)      _mm256_add_ps(a, b)
#define v_fmadd(a, b, c) _mm256_fmadd_ps(a, b, c)

#include "backends/cpu/kernels/packed_float_lanes.h"

void tnd_fill_packed_float_avx2(struct tnd_cpu_kernels *out)
{
    out->packed_f[TANDEM_TYPE_F32] = packed_F32;
    out->packed_f[TANDEM_TYPE_F16] = packed_F16;
    out->packed_f[TANDEM_TYPE_BF16] = packed_BF16;
}
#else
typedef int tnd_no_avx2;
#endif
