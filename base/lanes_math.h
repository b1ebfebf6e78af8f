/* SPDX-License-Identifier: MIT
 * exp, log, tanh and erf of vectors of floats, with the same bits for every instruction set.
 * Polynomials are minimax fits (reweighted least squares); their coefficients were rounded to float
 * one after the other, and the rest fitted again each time. Infinities, NaN, signs of 0, overflow
 * and results below the normal numbers are as the C library has them. Largest errors over all
 * floats, in units of the last place: exp 1.01, log 0.87, tanh 2.61, erf 2.16. */
#ifndef TND_LANES_MATH_H
#define TND_LANES_MATH_H

#include "base/lanes.h"

/* 1.5 * 2^23: a number below 2^22 added to it is rounded to an integer, which the lowest bits are.
 */
#define TND_LANES_ROUNDER 0x1.8p+23f

/** x = n ln(2) + r, n an integer and |r| <= ln(2) / 2 (Cody & Waite 1980: the upper part of ln(2)
 *  has 15 bits, so that its product is exact); gives e^r - 1. */
static inline tnd_vec tnd_vec_exp_part(tnd_vec x, tnd_vec_bits *n)
{
    const tnd_vec shifted = x * 0x1.715476p+0f + TND_LANES_ROUNDER; /* by log2(e) */
    const tnd_vec k = shifted - TND_LANES_ROUNDER;
    const tnd_vec r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    /* (e^r - 1 - r) / r^2: relative error of e^r - 1 below 1.4e-8 */
    tnd_vec p = r * 0x1.6b9caap-10f + 0x1.122560p-7f;
    p = p * r + 0x1.5556f2p-5f;
    p = p * r + 0x1.5554b4p-3f;
    p = p * r + 0x1.fffffep-2f;
    *n = (tnd_vec_bits)shifted - 0x4b400000u;
    return r * r * p + r;
}

/** 2^n for a normal result. */
static inline tnd_vec tnd_vec_power_of_2(tnd_vec_bits n)
{
    return (tnd_vec)((n + 127u) << 23);
}

static inline tnd_vec tnd_vec_exp(tnd_vec x)
{
    /* (what masks hide, as in a softmax, becomes 0 without a subnormal number, which is slow where
     * a runtime does not take those for 0) */
    const tnd_vec_bits is_nothing = (tnd_vec_bits)(x < -104.0f);
    tnd_vec_bits n;
    const tnd_vec e = tnd_vec_exp_part((tnd_vec)((tnd_vec_bits)x & ~is_nothing), &n) + 1.0f;
    /* two factors: the result may be smaller than normal numbers, and 2^n larger than they are */
    const tnd_vec_bits half = (n + 256u) / 2 - 128u;
    const tnd_vec y = e * tnd_vec_power_of_2(half) * tnd_vec_power_of_2(n - half);
    return tnd_vec_select((tnd_vec_bits)(x > 0x1.62e42ep+6f), tnd_vec_set(INFINITY),
                          (tnd_vec)((tnd_vec_bits)y & ~is_nothing));
}

/** tanh(x) = (e^2x - 1) / (e^2x - 1 + 2). From 10 on it is 1. */
static inline tnd_vec tnd_vec_tanh(tnd_vec x)
{
    const tnd_vec positive = tnd_vec_abs(x);
    const tnd_vec y = tnd_vec_select((tnd_vec_bits)(positive > 10.0f), tnd_vec_set(10), positive);
    tnd_vec_bits n;
    const tnd_vec part = tnd_vec_exp_part(y + y, &n);
    const tnd_vec power = tnd_vec_power_of_2(n);
    const tnd_vec e = part * power + (power - 1.0f);
    return tnd_vec_sign(e / (e + 2.0f), x);
}

/** erf(x) = 1 - e^-z with z = x + x g(x), where g(x) = -log(1 - erf(x)) / x - 1 is smooth and
 *  small: an error of g counts less than its part of z. From 3.93 on it is 1. */
static inline tnd_vec tnd_vec_erf(tnd_vec x)
{
    const tnd_vec positive = tnd_vec_abs(x);
    const tnd_vec y =
        tnd_vec_select((tnd_vec_bits)(positive > 3.93f), tnd_vec_set(3.93f), positive);
    /* on [0, 3.93]: relative error of erf below 4.3e-9 */
    tnd_vec g = y * -0x1.3b02eap-17f + 0x1.f28b16p-14f;
    g = g * y + -0x1.4e29aap-11f;
    g = g * y + 0x1.b744d4p-10f;
    g = g * y + -0x1.637a22p-13f;
    g = g * y + -0x1.39b7cap-6f;
    g = g * y + 0x1.a4f8c4p-4f;
    g = g * y + 0x1.45f300p-1f;
    g = g * y + 0x1.06eba8p-3f;
    tnd_vec_bits n;
    const tnd_vec part = tnd_vec_exp_part(-(y * g + y), &n);
    const tnd_vec power = tnd_vec_power_of_2(n);
    return tnd_vec_sign((1.0f - power) - part * power, x);
}

/** x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 p(f).
 */
static inline tnd_vec tnd_vec_log(tnd_vec x)
{
    const tnd_vec_bits is_small = (tnd_vec_bits)(x < 0x1p-126f);
    const tnd_vec normal = tnd_vec_select(is_small, x * 0x1p+23f, x);
    /* (the bits of sqrt(1/2) are subtracted, so that the exponent changes there) */
    const tnd_vec_bits from_root = (tnd_vec_bits)normal - 0x3f3504f3u;
    const tnd_vec_bits exponent = ((from_root >> 23) ^ 0x100u) - 0x100u; /* 9 bits with a sign */
    const tnd_vec f = (tnd_vec)((from_root & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const tnd_vec k = (tnd_vec)(exponent - (is_small & 23u) + 0x4b400000u) - TND_LANES_ROUNDER;
    /* relative error of log(1 + f) below 5.9e-9 */
    tnd_vec p = f * -0x1.38c9dep-4f + 0x1.055ec6p-3f;
    p = p * f + -0x1.0d8242p-3f;
    p = p * f + 0x1.22d92ep-3f;
    p = p * f + -0x1.54728ap-3f;
    p = p * f + 0x1.99a01cp-3f;
    p = p * f + -0x1.000226p-2f;
    p = p * f + 0x1.555554p-2f;
    const tnd_vec square = f * f;
    const tnd_vec rest = (square * f * p + k * 0x1.7f7d1cp-20f) - square * 0.5f;
    tnd_vec y = (rest + f) + k * 0x1.62e4p-1f;
    y = tnd_vec_select((tnd_vec_bits)(x == 0.0f), tnd_vec_set(-INFINITY), y);
    y = tnd_vec_select((tnd_vec_bits)(x < 0.0f), tnd_vec_set(NAN), y);
    /* (infinity and NaN) */
    return tnd_vec_select((tnd_vec_bits)(x < INFINITY), y, x);
}

#endif
