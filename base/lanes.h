/* SPDX-License-Identifier: MIT
 * Vectors of floats, as wide as the instruction set that a file is compiled for. Results depend on
 * the instruction set only in a file that defines TND_VEC_FUSED before including this header. All
 * functions are static, so that each file has its own copy. */
#ifndef TND_LANES_H
#define TND_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define TND_VEC_LANES 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define TND_VEC_LANES 8
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#define TND_VEC_LANES 4
#endif

typedef float tnd_vec __attribute__((vector_size(TND_VEC_LANES * sizeof(float))));
/** Bits of a vector; a comparison yields all ones or 0 in each lane. */
typedef uint32_t tnd_vec_bits __attribute__((vector_size(TND_VEC_LANES * sizeof(float))));
/** The same bits as signed integers. */
typedef int32_t tnd_vec_ints __attribute__((vector_size(TND_VEC_LANES * sizeof(float))));

static inline tnd_vec tnd_vec_load(const float *from)
{
    tnd_vec v;
    memcpy(&v, from, sizeof(v));
    return v;
}

static inline void tnd_vec_store(float *to, tnd_vec v)
{
    memcpy(to, &v, sizeof(v));
}

static inline tnd_vec tnd_vec_set(float x)
{
    tnd_vec v;
    for (int i = 0; i < TND_VEC_LANES; i++) {
        v[i] = x;
    }
    return v;
}

/** a b + c. With TND_VEC_FUSED it is rounded once, if the instruction set has FMA. */
static inline tnd_vec tnd_vec_fmadd(tnd_vec a, tnd_vec b, tnd_vec c)
{
#if defined(TND_VEC_FUSED) && defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(TND_VEC_FUSED) && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(TND_VEC_FUSED) && defined(__aarch64__)
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}

/** x 2^n, rounded once, for n from -252 to 254. */
static inline tnd_vec tnd_vec_scale(tnd_vec x, tnd_vec_bits n)
{
#if defined(__AVX512F__)
    return _mm512_scalef_ps(x, _mm512_cvtepi32_ps((__m512i)n));
#else
    /* two factors, because the result may be subnormal and 2^n may exceed the largest float */
    const tnd_vec_bits half = (n + 256u) / 2 - 128u;
    return x * (tnd_vec)((half + 127u) << 23) * (tnd_vec)((n - half + 127u) << 23);
#endif
}

/** a where x < limit, else y (also for NaN). (Masks held in vectors cost AVX-512 as much as half an
 * exponential.) */
static inline tnd_vec tnd_vec_if_below(tnd_vec x, float limit, tnd_vec a, tnd_vec y)
{
#if defined(__AVX512F__)
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, tnd_vec_set(limit), _CMP_LT_OQ), a);
#else
    const tnd_vec_bits mask = (tnd_vec_bits)(x < limit);
    return (tnd_vec)((mask & (tnd_vec_bits)a) | (~mask & (tnd_vec_bits)y));
#endif
}

static inline tnd_vec tnd_vec_select(tnd_vec_bits mask, tnd_vec a, tnd_vec b)
{
    return (tnd_vec)((mask & (tnd_vec_bits)a) | (~mask & (tnd_vec_bits)b));
}

static inline tnd_vec tnd_vec_abs(tnd_vec v)
{
    return (tnd_vec)((tnd_vec_bits)v & 0x7fffffffu);
}

/** `v`, which is not negative, with the sign of `sign`. */
static inline tnd_vec tnd_vec_sign(tnd_vec v, tnd_vec sign)
{
    return (tnd_vec)((tnd_vec_bits)v | ((tnd_vec_bits)sign & 0x80000000u));
}

/* (min and max instructions return the second operand if one is NaN or both are 0) */
#if defined(__AVX512F__)
#define TND_VEC_BOUND(name, x, y)                                                                  \
    _mm512_mask_##name##_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y)
#elif defined(__AVX2__)
#define TND_VEC_BOUND(name, x, y)                                                                  \
    _mm256_blendv_ps(_mm256_##name##_ps(x, y), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q))
#elif defined(__SSE2__)
#define TND_VEC_BOUND(name, x, y) tnd_vec_select((tnd_vec_bits)(x != x), x, _mm_##name##_ps(x, y))
#else
#define TND_VEC_MORE_max(x, y) ((x) > (y))
#define TND_VEC_MORE_min(x, y) ((x) < (y))
#define TND_VEC_BOUND(name, x, y)                                                                  \
    tnd_vec_select((tnd_vec_bits)TND_VEC_MORE_##name(x, y) | (tnd_vec_bits)(x != x), x, y)
#endif

/** (x > y || isnan(x)) ? x : y */
static inline tnd_vec tnd_vec_max(tnd_vec x, tnd_vec y)
{
    return TND_VEC_BOUND(max, x, y);
}

/** (x < y || isnan(x)) ? x : y */
static inline tnd_vec tnd_vec_min(tnd_vec x, tnd_vec y)
{
    return TND_VEC_BOUND(min, x, y);
}

/** x clamped to a limit, which is neither NaN nor 0. NaN stays NaN. */
#if defined(__AVX512F__)
#define TND_VEC_LIMIT(name, x, limit) _mm512_##name##_ps(tnd_vec_set(limit), x)
#elif defined(__AVX2__)
#define TND_VEC_LIMIT(name, x, limit) _mm256_##name##_ps(tnd_vec_set(limit), x)
#elif defined(__SSE2__)
#define TND_VEC_LIMIT(name, x, limit) _mm_##name##_ps(tnd_vec_set(limit), x)
#else
#define TND_VEC_LIMIT(name, x, limit) TND_VEC_BOUND(name, x, tnd_vec_set(limit))
#endif
static inline tnd_vec tnd_vec_at_most(tnd_vec x, float limit)
{
    return TND_VEC_LIMIT(min, x, limit);
}

static inline tnd_vec tnd_vec_at_least(tnd_vec x, float limit)
{
    return TND_VEC_LIMIT(max, x, limit);
}

static inline tnd_vec tnd_vec_sqrt(tnd_vec v)
{
#if defined(__AVX512F__)
    return _mm512_sqrt_ps(v);
#elif defined(__AVX2__)
    return _mm256_sqrt_ps(v);
#elif defined(__SSE2__)
    return _mm_sqrt_ps(v);
#elif defined(__aarch64__)
    return vsqrtq_f32(v);
#else
    for (int i = 0; i < TND_VEC_LANES; i++) {
        v[i] = sqrtf(v[i]);
    }
    return v;
#endif
}

#endif
