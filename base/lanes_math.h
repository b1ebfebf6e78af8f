/* SPDX-License-Identifier: MIT
 * Vector math for the rows of operations (vec_lanes.h) and for programs of nets (strip_lanes.h),
 * which share these functions. Polynomials are minimax fits (reweighted least squares); their
 * coefficients were rounded to float one after the other, and the rest fitted again each time.
 * Infinities, NaN, signed zeros, overflow and subnormal results are as in the C library. Largest
 * errors over all floats, in units of the last place: exp 1.01, log 0.87, tanh 2.61, erf 2.16. */
#ifndef TND_LANES_MATH_H
#define TND_LANES_MATH_H

#include "base/lanes.h"

/* 1.5 * 2^23: adding it to a number below 2^22 rounds that to an integer, which is in the lowest
 * bits. */
#define TND_LANES_ROUNDER 0x1.8p+23f

/** x = n ln(2) + r, n an integer and |r| <= ln(2) / 2 (Cody & Waite 1980: the upper part of ln(2)
 * has 15 bits, so that its product is exact); returns e^r - 1. */
static inline __attribute__((always_inline)) tnd_vec tnd_vec_exp_part(tnd_vec x, tnd_vec_bits *n)
{
    const tnd_vec shifted =
        tnd_vec_fmadd(x, tnd_vec_set(0x1.715476p+0f), tnd_vec_set(TND_LANES_ROUNDER)); /* log2(e) */
    const tnd_vec k = shifted - TND_LANES_ROUNDER;
    const tnd_vec upper = tnd_vec_fmadd(k, tnd_vec_set(-0x1.62e4p-1f), x);
    const tnd_vec r = tnd_vec_fmadd(k, tnd_vec_set(-0x1.7f7d1cp-20f), upper);
    /* (e^r - 1 - r) / r^2: relative error of e^r - 1 below 1.4e-8 */
    tnd_vec p = tnd_vec_set(0x1.6b9caap-10f);
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.122560p-7f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.5556f2p-5f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.5554b4p-3f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.fffffep-2f));
    *n = (tnd_vec_bits)shifted - 0x4b400000u;
    return tnd_vec_fmadd(r * r, p, r);
}

/** 2^n for a normal result. */
static inline tnd_vec tnd_vec_power_of_2(tnd_vec_bits n)
{
    return (tnd_vec)((n + 127u) << 23);
}

static inline __attribute__((always_inline)) tnd_vec tnd_vec_exp(tnd_vec x)
{
    /* (masked values, as in a softmax, become 0 without a subnormal intermediate, which is slow
     * unless the thread flushes those to 0) */
    const tnd_vec nothing = tnd_vec_set(0);
    tnd_vec_bits n;
    const tnd_vec e = tnd_vec_exp_part(tnd_vec_if_below(x, -104.0f, nothing, x), &n) + 1.0f;
    const tnd_vec y = tnd_vec_if_below(x, -104.0f, nothing, tnd_vec_scale(e, n));
    return tnd_vec_if_below(-x, -0x1.62e42ep+6f, tnd_vec_set(INFINITY), y);
}

/** tanh(x) = (e^2x - 1) / (e^2x - 1 + 2). For x >= 10 it is 1. */
static inline tnd_vec tnd_vec_tanh(tnd_vec x)
{
    const tnd_vec positive = tnd_vec_abs(x);
    const tnd_vec y = tnd_vec_select((tnd_vec_bits)(positive > 10.0f), tnd_vec_set(10), positive);
    tnd_vec_bits n;
    const tnd_vec part = tnd_vec_exp_part(y + y, &n);
    const tnd_vec power = tnd_vec_power_of_2(n);
    const tnd_vec e = tnd_vec_fmadd(part, power, power - 1.0f);
    return tnd_vec_sign(e / (e + 2.0f), x);
}

/** 1 - erf(x) = e^-z for x from 0 to 3.93, as 2^n (1 + part): z = x + x g(x), where g(x) =
 *  -log(1 - erf(x)) / x - 1 is smooth and small; an error of g counts less than its part of z. */
static inline __attribute__((always_inline)) tnd_vec tnd_vec_erf_rest(tnd_vec x, tnd_vec_bits *n)
{
    /* relative error of erf below 4.3e-9 */
    tnd_vec g = tnd_vec_fmadd(x, tnd_vec_set(-0x1.3b02eap-17f), tnd_vec_set(0x1.f28b16p-14f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(-0x1.4e29aap-11f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(0x1.b744d4p-10f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(-0x1.637a22p-13f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(-0x1.39b7cap-6f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(0x1.a4f8c4p-4f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(0x1.45f300p-1f));
    g = tnd_vec_fmadd(g, x, tnd_vec_set(0x1.06eba8p-3f));
    return tnd_vec_exp_part(-tnd_vec_fmadd(x, g, x), n);
}

/** erf is 1 from 3.93 on. */
static inline tnd_vec tnd_vec_erf(tnd_vec x)
{
    const tnd_vec positive = tnd_vec_abs(x);
    tnd_vec_bits n;
    const tnd_vec part = tnd_vec_erf_rest(
        tnd_vec_select((tnd_vec_bits)(positive > 3.93f), tnd_vec_set(3.93f), positive), &n);
    const tnd_vec power = tnd_vec_power_of_2(n);
    return tnd_vec_sign(tnd_vec_fmadd(-part, power, 1.0f - power), x);
}

/** x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 p(f).
 */
static inline tnd_vec tnd_vec_log(tnd_vec x)
{
    const tnd_vec_bits is_small = (tnd_vec_bits)(x < 0x1p-126f);
    const tnd_vec normal = tnd_vec_select(is_small, x * 0x1p+23f, x);
    /* (the bits of sqrt(1/2) are subtracted so that the exponent changes at that value) */
    const tnd_vec_bits from_root = (tnd_vec_bits)normal - 0x3f3504f3u;
    const tnd_vec_bits exponent = ((from_root >> 23) ^ 0x100u) - 0x100u; /* a signed 9-bit number */
    const tnd_vec f = (tnd_vec)((from_root & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const tnd_vec k = (tnd_vec)(exponent - (is_small & 23u) + 0x4b400000u) - TND_LANES_ROUNDER;
    /* relative error of log(1 + f) below 5.9e-9 */
    tnd_vec p = tnd_vec_fmadd(f, tnd_vec_set(-0x1.38c9dep-4f), tnd_vec_set(0x1.055ec6p-3f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(-0x1.0d8242p-3f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(0x1.22d92ep-3f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(-0x1.54728ap-3f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(0x1.99a01cp-3f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(-0x1.000226p-2f));
    p = tnd_vec_fmadd(p, f, tnd_vec_set(0x1.555554p-2f));
    const tnd_vec square = f * f;
    const tnd_vec rest = (square * f * p + k * 0x1.7f7d1cp-20f) - square * 0.5f;
    tnd_vec y = (rest + f) + k * 0x1.62e4p-1f;
    y = tnd_vec_select((tnd_vec_bits)(x == 0.0f), tnd_vec_set(-INFINITY), y);
    y = tnd_vec_select((tnd_vec_bits)(x < 0.0f), tnd_vec_set(NAN), y);
    /* (infinity and NaN) */
    return tnd_vec_select((tnd_vec_bits)(x < INFINITY), y, x);
}

/** e^x for x <= 0, cheaper than tnd_vec_exp. Off by at most 2.5 units in the last place above -5
 * and by 6 where the result is normal; 0 below that: subnormal results are made by microcode, which
 * took as long behind a causal mask as all other exponentials (Emerald Rapids). Polynomial of e^r
 * with a relative error below 1e-7 (least squares, weighted until the errors were even; r = 0 gives
 * 1); ln(2) in one part adds |k| * 2e-9. NaN stays NaN. */
static inline __attribute__((always_inline)) tnd_vec tnd_vec_exp_below(tnd_vec x)
{
    const tnd_vec shifted =
        tnd_vec_fmadd(x, tnd_vec_set(0x1.715476p+0f), tnd_vec_set(TND_LANES_ROUNDER));
    const tnd_vec k = shifted - TND_LANES_ROUNDER;
    const tnd_vec r = tnd_vec_fmadd(k, tnd_vec_set(-0x1.62e43p-1f), x);
    tnd_vec p = tnd_vec_set(0x1.0fa834p-7f);
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.573a54p-5f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.555a6ap-3f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.fffdc6p-2f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(0x1.fffff6p-1f));
    p = tnd_vec_fmadd(p, r, tnd_vec_set(1.0f));
    const tnd_vec power = (tnd_vec)(((tnd_vec_bits)shifted << 23) + 0x3f800000u);
    return tnd_vec_if_below(x, -0x1.5d58a0p+6f, tnd_vec_set(0), p * power); /* -126 ln(2) */
}

/* ---- signs and integers ---- */

static inline tnd_vec tnd_vec_sign_of(tnd_vec x)
{
    const tnd_vec below = tnd_vec_select((tnd_vec_bits)(x < 0.0f), tnd_vec_set(-1), x);
    return tnd_vec_select((tnd_vec_bits)(x > 0.0f), tnd_vec_set(1), below);
}

/** Floats from 2^23 on are integers; below that, adding 2^23 rounds to one. */
static inline tnd_vec tnd_vec_round(tnd_vec x)
{
    const tnd_vec positive = tnd_vec_abs(x);
    const tnd_vec rounded = tnd_vec_sign((positive + 0x1p23f) - 0x1p23f, x);
    return tnd_vec_select((tnd_vec_bits)(positive < 0x1p23f), rounded, x);
}

/** (a result of 0 has the sign of x) */
static inline tnd_vec tnd_vec_floor(tnd_vec x)
{
    const tnd_vec y = tnd_vec_round(x);
    return tnd_vec_select((tnd_vec_bits)(y > x), y - 1.0f, y);
}

static inline tnd_vec tnd_vec_ceil(tnd_vec x)
{
    const tnd_vec y = tnd_vec_round(x);
    return tnd_vec_select((tnd_vec_bits)(y < x), tnd_vec_sign(tnd_vec_abs(y + 1.0f), x), y);
}

/* ---- activations ---- */

/** 1 + e^-x, cheaper than by tnd_vec_exp: a subnormal e^-x makes no difference to 1, and twice 2^(n
 * - 1) overflows where exp does. */
static inline __attribute__((always_inline)) tnd_vec tnd_vec_one_and_exp_minus(tnd_vec x)
{
    const tnd_vec inside = tnd_vec_at_least(tnd_vec_at_most(x, 80), -89);
    tnd_vec_bits n;
    const tnd_vec e = tnd_vec_exp_part(-inside, &n) + 1.0f;
    return tnd_vec_fmadd(e + e, tnd_vec_power_of_2(n - 1u), tnd_vec_set(1));
}

/** Off by at most 3 units in the last place, like silu. */
static inline tnd_vec tnd_vec_sigmoid(tnd_vec x)
{
    return 1.0f / tnd_vec_one_and_exp_minus(x);
}

static inline tnd_vec tnd_vec_silu(tnd_vec x)
{
    return x / tnd_vec_one_and_exp_minus(x);
}

/** x min(max(x + 3, 0), 6) / 6: the factor is 0 up to -3, and exactly 1 from 3 on. */
static inline tnd_vec tnd_vec_hard_swish(tnd_vec x)
{
    const tnd_vec factor = tnd_vec_min(tnd_vec_max(x + 3.0f, tnd_vec_set(0)), tnd_vec_set(6));
    return x * (factor * (1.0f / 6.0f));
}

/** x (1 + erf(x / sqrt(2))) / 2, off by at most 1e-7 |x|. */
static inline tnd_vec tnd_vec_gelu(tnd_vec x)
{
    const tnd_vec y = tnd_vec_abs(x) * 0.70710678118654752440f;
    const tnd_vec_bits is_far = (tnd_vec_bits)(y > 3.93f);
    tnd_vec_bits n;
    const tnd_vec part = tnd_vec_erf_rest(tnd_vec_select(is_far, tnd_vec_set(3.93f), y), &n);
    const tnd_vec power = tnd_vec_power_of_2(n);
    const tnd_vec rest = (tnd_vec)((tnd_vec_bits)tnd_vec_fmadd(part, power, power) & ~is_far);
    return x * 0.5f * tnd_vec_select((tnd_vec_bits)(x < 0.0f), rest, 2.0f - rest);
}

/** (1 + tanh(u)) / 2 = 1 / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715 x^3): no
 * cancellation. */
static inline tnd_vec tnd_vec_gelu_tanh(tnd_vec x)
{
    const tnd_vec u = x + 0.044715f * (x * x * x); /* (not fused: same bits as the plain kernel) */
    return x / tnd_vec_one_and_exp_minus(u * 1.5957691216057308f);
}

#endif
