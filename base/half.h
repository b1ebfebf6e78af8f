/* SPDX-License-Identifier: MIT
 * Half precision (IEEE 754 binary16) and bfloat16, exact and without special instructions; the
 * reference for every SIMD conversion. Static inline only, so that files compiled for other
 * instruction sets may include it. */
#ifndef TND_HALF_H
#define TND_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tnd_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float tnd_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/** Exact; signalling NaNs become quiet, as in hardware. Branch-free, so that loops vectorise, and
 * without a subnormal float in between: the pool's threads treat those as zero. */
static inline float tnd_f16_to_f32(uint16_t half)
{
    const uint32_t magnitude = half & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + (112u << 23);
    const uint32_t subnormal = tnd_f32_bits((float)(int32_t)magnitude * 0x1p-24f); /* exact */
    const uint32_t finite = magnitude < 0x400u ? subnormal : normal;
    const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0;
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0;
    return tnd_f32_from_bits((uint32_t)(half & 0x8000u) << 16 | finite | special | quiet);
}

/** Nearest half, ties to even; values out of range become infinity, NaNs stay (quiet) NaNs with the
 * upper bits of their payload. */
static inline uint16_t tnd_f32_to_f16(float value)
{
    uint32_t bits = tnd_f32_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { /* NaN */
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    }
    if (magnitude >= 0x477ff000u) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x33000001u) { /* up to 2^-25: rounds to zero (a tie goes to even) */
        return (uint16_t)sign;
    }
    uint32_t exponent = magnitude >> 23;
    uint32_t kept, rest, midpoint;
    if (exponent >= 113) { /* normal: drops 13 bits of the mantissa */
        kept = (magnitude - (112u << 23)) >> 13;
        rest = magnitude & 0x1fffu;
        midpoint = 0x1000u;
    } else { /* subnormal: the implicit bit becomes explicit; drops 14 to 24 bits */
        uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        uint32_t shift = 126 - exponent;
        kept = mantissa >> shift;
        rest = mantissa & ((1u << shift) - 1);
        midpoint = 1u << (shift - 1);
    }
    if (rest > midpoint || (rest == midpoint && (kept & 1) != 0)) {
        kept++; /* a carry into the exponent is correct */
    }
    return (uint16_t)(sign | kept);
}

static inline float tnd_bf16_to_f32(uint16_t bf16)
{
    return tnd_f32_from_bits((uint32_t)bf16 << 16);
}

/** Nearest bfloat16, ties to even; NaNs stay (quiet) NaNs. */
static inline uint16_t tnd_f32_to_bf16(float value)
{
    uint32_t bits = tnd_f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

#endif
