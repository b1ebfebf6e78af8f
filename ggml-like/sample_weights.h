/* SPDX-License-Identifier: MIT
 * What sample.c and its SIMD versions share. */
#ifndef TND_SAMPLE_WEIGHTS_H
#define TND_SAMPLE_WEIGHTS_H

#include "ggml-like/tnd_sample.h"

/** (1 - 2^-x) / x for x in 0..1, to within 2^-30: the interpolating polynomial of degree 6 at the
 * Chebyshev nodes, highest coefficient first, alternating signs, in units of 1/2^32. */
#define TND_SAMPLE_POWER                                                                           \
    {                                                                                              \
        0xbda6u, 0x9c200u, 0x5728b0u, 0x27641a9u, 0xe358127u, 0x3d7f7bcbu, 0xb17217f7u             \
    }
enum { TND_SAMPLE_DEGREE = 7 };

/** The exponent of settings, clamped because callers may set anything: beyond the bounds no weight
 * changes. */
static inline int32_t tnd_sample_exponent(const struct tandem_sample_settings *settings)
{
    return settings->exponent < -1000  ? -1000
           : settings->exponent > 1000 ? 1000
                                       : settings->exponent;
}

/** Keys and weights of n values, a multiple of 8; `largest` is the value of `largest_key`, 0 for a
 * subnormal one. Larger values weigh nothing. For x86-64 with AVX2, and for 64-bit ARM. */
void tnd_sample_weights_avx2(const struct tandem_sample_settings *settings, float largest,
                             uint32_t largest_key, const float *logits, int64_t n, uint32_t *keys,
                             uint32_t *weights);
void tnd_sample_weights_neon(const struct tandem_sample_settings *settings, float largest,
                             uint32_t largest_key, const float *logits, int64_t n, uint32_t *keys,
                             uint32_t *weights);

#endif
