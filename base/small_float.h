/* SPDX-License-Identifier: MIT
 * Floats of 8 bits and fewer, one per byte, exact and without special instructions. Layouts: Open
 * Compute Project, "OCP Microscaling Formats (MX) Specification 1.0" (E4M3, E5M2, E2M1, E2M3, E3M2
 * and the scale E8M0), and Noune et al., https://arxiv.org/abs/2206.02915 (those with FNUZ). Static
 * inline only, like half.h. */
#ifndef TND_SMALL_FLOAT_H
#define TND_SMALL_FLOAT_H

#include <stdbool.h>

#include "base/half.h"

/** Which values a format has that are not finite numbers. */
enum tnd_small_special {
    TND_SMALL_NUMBERS,    /* none: values out of range become the largest number, NaN becomes 0 */
    TND_SMALL_INFINITE,   /* infinity and NaN, as IEEE 754 has them */
    TND_SMALL_ONE_NAN,    /* all bits but the sign set: NaN */
    TND_SMALL_MINUS_ZERO, /* the bits of -0 are NaN */
    TND_SMALL_SCALE       /* powers of two without a sign; all bits set: NaN */
};

/** X(name, bits of the exponent, bits of the mantissa, bias, enum tnd_small_special) */
#define TND_SMALL_FLOAT_LIST(X)                                                                    \
    X(F8E4M3FN, 4, 3, 7, TND_SMALL_ONE_NAN)                                                        \
    X(F8E4M3FNUZ, 4, 3, 8, TND_SMALL_MINUS_ZERO)                                                   \
    X(F8E5M2, 5, 2, 15, TND_SMALL_INFINITE)                                                        \
    X(F8E5M2FNUZ, 5, 2, 16, TND_SMALL_MINUS_ZERO)                                                  \
    X(F8E8M0, 8, 0, 127, TND_SMALL_SCALE)                                                          \
    X(F4E2M1, 2, 1, 1, TND_SMALL_NUMBERS)                                                          \
    X(F6E2M3, 2, 3, 1, TND_SMALL_NUMBERS)                                                          \
    X(F6E3M2, 3, 2, 3, TND_SMALL_NUMBERS)

struct tnd_small_float {
    int exponent, mantissa, bias;
    enum tnd_small_special special;
};

/** All bits of a number but its sign. */
static inline uint32_t tnd_small_mask(struct tnd_small_float f)
{
    return (1u << (f.exponent + f.mantissa)) - 1;
}

/** The largest number, as bits. */
static inline uint32_t tnd_small_most(struct tnd_small_float f)
{
    const uint32_t all = tnd_small_mask(f);
    return f.special == TND_SMALL_INFINITE ? all - (1u << f.mantissa)
           : f.special == TND_SMALL_ONE_NAN || f.special == TND_SMALL_SCALE ? all - 1
                                                                            : all;
}

static inline float tnd_small_to_f32(struct tnd_small_float f, uint8_t code)
{
    const uint32_t magnitude = code & tnd_small_mask(f);
    const uint32_t sign = f.special == TND_SMALL_SCALE ? 0 : code & (tnd_small_mask(f) + 1);
    const bool is_nan = f.special == TND_SMALL_MINUS_ZERO ? sign != 0 && magnitude == 0
                                                          : magnitude > tnd_small_most(f);
    if (f.special == TND_SMALL_SCALE) {
        return tnd_f32_from_bits(is_nan           ? 0x7fc00000u
                                 : magnitude == 0 ? 0x00400000u
                                                  : magnitude << 23);
    }
    const float subnormal =
        (float)magnitude * tnd_f32_from_bits((uint32_t)(128 - f.bias - f.mantissa) << 23);
    const uint32_t number = magnitude >> f.mantissa != 0 ? (magnitude << (23 - f.mantissa)) +
                                                               ((uint32_t)(127 - f.bias) << 23)
                                                         : tnd_f32_bits(subnormal);
    const bool is_infinite = f.special == TND_SMALL_INFINITE && magnitude == tnd_small_most(f) + 1;
    return tnd_f32_from_bits((sign != 0 ? 0x80000000u : 0) | (is_infinite ? 0x7f800000u
                                                              : is_nan    ? 0x7fc00000u
                                                                          : number));
}

/** The smallest power of two, from 2^-127 on, that is not below the number; NaN for negative
 * numbers. */
static inline uint8_t tnd_small_scale(float value)
{
    const uint32_t bits = tnd_f32_bits(value);
    if (bits == 0x80000000u || bits <= 0x00400000u) {
        return 0;
    }
    return bits > 0x7f000000u ? 0xff : (uint8_t)((bits + 0x7fffffu) >> 23);
}

/** Nearest number, ties to even; values out of range become infinity or NaN if the format has
 * it. */
static inline uint8_t tnd_small_from_f32(struct tnd_small_float f, float value)
{
    const uint32_t bits = tnd_f32_bits(value) & 0x7fffffffu;
    const uint32_t all = tnd_small_mask(f);
    const uint32_t sign = tnd_f32_bits(value) >> 31 != 0 ? all + 1 : 0;
    const int shift = 23 - f.mantissa;
    uint32_t code;
    if (f.special == TND_SMALL_SCALE) {
        return tnd_small_scale(value);
    }
    if (bits > 0x7f800000u) {
        return (uint8_t)(f.special == TND_SMALL_NUMBERS      ? 0
                         : f.special == TND_SMALL_MINUS_ZERO ? all + 1
                         : f.special == TND_SMALL_INFINITE   ? sign | (all - 1)
                                                             : sign | all);
    }
    if (bits >= (uint32_t)(128 - f.bias) << 23) {
        code = (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
        code -= (uint32_t)(127 - f.bias) << f.mantissa;
    } else { /* subnormal: adding 2^23 rounds to whole steps */
        const float steps = tnd_f32_from_bits(bits) *
                            tnd_f32_from_bits((uint32_t)(126 + f.bias + f.mantissa) << 23);
        code = tnd_f32_bits(steps + 0x1p23f) - 0x4b000000u;
    }
    if (code > tnd_small_most(f)) {
        code = f.special == TND_SMALL_NUMBERS ? all : tnd_small_most(f) + 1;
    }
    if (f.special == TND_SMALL_MINUS_ZERO && (code == 0 || code > all)) {
        return (uint8_t)(code == 0 ? 0 : all + 1);
    }
    return (uint8_t)(sign | code);
}

#endif
