/* SPDX-License-Identifier: MIT
 * Conversion of all types to floats and back, for the kernels of fused programs: loads, stores and
 * casts with the bits of tnd_values_load and tnd_values_store. Included once per instruction set.
 * Compilers vectorise the loops over blocks of constant length. */
#ifndef TND_STRIP_TYPES_H
#define TND_STRIP_TYPES_H

#include "base/half.h"
#include "base/lanes.h"
#include "base/small_float.h"
#include "ggml-like/array.h"

enum { TYPES_BLOCK = 32 };

typedef int32_t tnd_vec_ints __attribute__((vector_size(TND_VEC_LANES * sizeof(float))));
typedef uint32_t float_bits __attribute__((may_alias));

/* Body of a conversion of `n` values; EXPRESSION converts value `k` of a block. */
#define EACH_VALUE(IN, OUT, EXPRESSION)                                                            \
    const IN *restrict in = (const void *)from;                                                    \
    OUT *restrict out = (void *)to;                                                                \
    for (; n >= TYPES_BLOCK; n -= TYPES_BLOCK, in += TYPES_BLOCK, out += TYPES_BLOCK) {            \
        for (int k = 0; k < TYPES_BLOCK; k++) {                                                    \
            out[k] = (OUT)(EXPRESSION);                                                            \
        }                                                                                          \
    }                                                                                              \
    for (int k = 0; k < n; k++) {                                                                  \
        out[k] = (OUT)(EXPRESSION);                                                                \
    }

#define LOAD_INTEGER(NAME, STORE)                                                                  \
    static void load_##NAME(const void *restrict from, float *restrict to, int64_t n)              \
    {                                                                                              \
        EACH_VALUE(STORE, float, in[k])                                                            \
    }
LOAD_INTEGER(I8, int8_t)
LOAD_INTEGER(U8, uint8_t)
LOAD_INTEGER(I16, int16_t)
LOAD_INTEGER(U16, uint16_t)
LOAD_INTEGER(I32, int32_t)
#undef LOAD_INTEGER

static void load_I64(const void *restrict from, float *restrict to, int64_t n)
{
    EACH_VALUE(int64_t, float, in[k])
}

/* Bools to masks. */
static void load_BOOL(const void *restrict from, float *restrict to, int64_t n)
{
    EACH_VALUE(uint8_t, float_bits, in[k] != 0 ? UINT32_MAX : 0)
}

static void store_BOOL(const float *restrict from, void *restrict to, int64_t n)
{
    EACH_VALUE(float_bits, uint8_t, in[k] & 1u)
}

static void load_BF16(const void *restrict from, float *restrict to, int64_t n)
{
    EACH_VALUE(uint16_t, float_bits, (uint32_t)in[k] << 16)
}

/* to nearest, ties to even; NaN stays NaN, made quiet */
static void store_BF16(const float *restrict from, void *restrict to, int64_t n)
{
    EACH_VALUE(float_bits, uint16_t,
               (in[k] & 0x7fffffffu) > 0x7f800000u ? (in[k] >> 16) | 0x40u
                                                   : (in[k] + 0x7fffu + ((in[k] >> 16) & 1u)) >> 16)
}

static void load_F16(const void *restrict from, float *restrict to, int64_t n)
{
    const uint16_t *in = from;
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + i))));
    }
#elif defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
    }
#endif
    for (; i + TYPES_BLOCK <= n; i += TYPES_BLOCK) {
        for (int k = 0; k < TYPES_BLOCK; k++) {
            to[i + k] = tnd_f16_to_f32(in[i + k]);
        }
    }
    for (; i < n; i++) {
        to[i] = tnd_f16_to_f32(in[i]);
    }
}

static void store_F16(const float *restrict from, void *restrict to, int64_t n)
{
    uint16_t *out = to;
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        _mm256_storeu_si256((void *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((void *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < n; i++) {
        out[i] = tnd_f32_to_f16(from[i]);
    }
}

/* One-byte floats: loops over constants of the format, which compilers vectorise. */
#define SMALL_TYPE(NAME, EXPONENT, MANTISSA, BIAS, SPECIAL)                                        \
    static void load_##NAME(const void *restrict from, float *restrict to, int64_t n)              \
    {                                                                                              \
        static const struct tnd_small_float f = {EXPONENT, MANTISSA, BIAS, SPECIAL};               \
        EACH_VALUE(uint8_t, float, tnd_small_to_f32(f, in[k]))                                     \
    }                                                                                              \
    static void store_##NAME(const float *restrict from, void *restrict to, int64_t n)             \
    {                                                                                              \
        static const struct tnd_small_float f = {EXPONENT, MANTISSA, BIAS, SPECIAL};               \
        EACH_VALUE(float, uint8_t, tnd_small_from_f32(f, in[k]))                                   \
    }                                                                                              \
    static void cast_##NAME(float *values, int n)                                                  \
    {                                                                                              \
        uint8_t bytes[TYPES_BLOCK];                                                                \
        for (int i = 0; i < n; i += TYPES_BLOCK) {                                                 \
            store_##NAME(values + i, bytes, TYPES_BLOCK);                                          \
            load_##NAME(bytes, values + i, TYPES_BLOCK);                                           \
        }                                                                                          \
    }
TND_SMALL_FLOAT_LIST(SMALL_TYPE)
#undef SMALL_TYPE

/* ---- casts ---- */

static void cast_F16(float *values, int n)
{
    uint16_t halves[TYPES_BLOCK];
    for (int i = 0; i < n; i += TYPES_BLOCK) {
        store_F16(values + i, halves, TYPES_BLOCK);
        load_F16(halves, values + i, TYPES_BLOCK);
    }
}

static void cast_BF16(float *values, int n)
{
    uint16_t halves[TYPES_BLOCK];
    for (int i = 0; i < n; i += TYPES_BLOCK) {
        store_BF16(values + i, halves, TYPES_BLOCK);
        load_BF16(halves, values + i, TYPES_BLOCK);
    }
}

/* Whether all values are within two bounds and none is NaN. */
static inline bool is_within(const float *values, int n, float low, float high)
{
    tnd_vec_bits all = (tnd_vec_bits)(tnd_vec_set(0) == 0.0f);
    uint32_t one = UINT32_MAX;
    for (int i = 0; i < n; i += TND_VEC_LANES) {
        const tnd_vec x = tnd_vec_load(values + i);
        all &= (tnd_vec_bits)(x > low) & (tnd_vec_bits)(x < high);
    }
    for (int k = 0; k < TND_VEC_LANES; k++) {
        one &= all[k];
    }
    return one != 0;
}

/* Values that share one range check. */
enum { TYPES_RANGE = 4 * TYPES_BLOCK };

static void store_slowly(enum tandem_dtype type, const float *from, char *to, int n)
{
    const int bytes = (int)tandem_dtype_bytes(type);
    for (int at = 0; at < n; at += TND_LANES) {
        const int now = n - at < TND_LANES ? n - at : TND_LANES;
        union tnd_values lanes;
        memcpy(lanes.f32, from + at, (size_t)now * sizeof(float));
        tnd_values_store(type, TND_LANE_F32, &lanes, now, to + at * bytes);
    }
}

/* Truncates; -0 becomes 0. Blocks with values out of range are converted as in the reference. */
#define TO_INTEGER(NAME, STORE, LOW, HIGH)                                                         \
    static void store_##NAME(const float *restrict from, void *restrict to, int64_t n)             \
    {                                                                                              \
        STORE *restrict out = to;                                                                  \
        _Alignas(sizeof(tnd_vec)) float rest[TYPES_RANGE] = {0};                                   \
        for (; n >= TYPES_RANGE; n -= TYPES_RANGE, from += TYPES_RANGE, out += TYPES_RANGE) {      \
            if (!is_within(from, TYPES_RANGE, LOW, HIGH)) {                                        \
                store_slowly(TANDEM_DTYPE_##NAME, from, (char *)out, TYPES_RANGE);                 \
                continue;                                                                          \
            }                                                                                      \
            for (int k = 0; k < TYPES_RANGE; k++) {                                                \
                out[k] = (STORE)(int32_t)from[k];                                                  \
            }                                                                                      \
        }                                                                                          \
        if (n > 0) {                                                                               \
            memcpy(rest, from, (size_t)n * sizeof(float));                                         \
            if (!is_within(rest, TYPES_RANGE, LOW, HIGH)) {                                        \
                store_slowly(TANDEM_DTYPE_##NAME, from, (char *)out, (int)n);                      \
                return;                                                                            \
            }                                                                                      \
            for (int64_t k = 0; k < n; k++) {                                                      \
                out[k] = (STORE)(int32_t)from[k];                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void cast_##NAME(float *values, int n)                                                  \
    {                                                                                              \
        if (!is_within(values, n, LOW, HIGH)) {                                                    \
            tnd_values_cast(TANDEM_DTYPE_##NAME, values, n);                                       \
            return;                                                                                \
        }                                                                                          \
        for (int i = 0; i < n; i += TND_VEC_LANES) {                                               \
            const tnd_vec_ints whole =                                                             \
                __builtin_convertvector(tnd_vec_load(values + i), tnd_vec_ints);                   \
            tnd_vec_store(values + i, __builtin_convertvector(whole, tnd_vec));                    \
        }                                                                                          \
    }
TO_INTEGER(I8, int8_t, -129.0f, 128.0f)
TO_INTEGER(U8, uint8_t, -1.0f, 256.0f)
TO_INTEGER(I16, int16_t, -32769.0f, 32768.0f)
TO_INTEGER(U16, uint16_t, -1.0f, 65536.0f)
TO_INTEGER(I32, int32_t, -0x1.000002p+31f, 0x1p+31f)
#undef TO_INTEGER

#define OF_TYPE(function, NAME) [TANDEM_DTYPE_##NAME] = function##_##NAME

#define SMALL_LOAD(NAME, EXPONENT, MANTISSA, BIAS, SPECIAL)  OF_TYPE(load, NAME),
#define SMALL_STORE(NAME, EXPONENT, MANTISSA, BIAS, SPECIAL) OF_TYPE(store, NAME),
#define TYPES_LOAD                                                                                 \
    TND_SMALL_FLOAT_LIST(SMALL_LOAD)                                                               \
    OF_TYPE(load, F16), OF_TYPE(load, BF16), OF_TYPE(load, I8), OF_TYPE(load, U8),                 \
        OF_TYPE(load, I16), OF_TYPE(load, U16), OF_TYPE(load, I32), OF_TYPE(load, I64),            \
        OF_TYPE(load, BOOL)
#define TYPES_STORE                                                                                \
    TND_SMALL_FLOAT_LIST(SMALL_STORE)                                                              \
    OF_TYPE(store, F16), OF_TYPE(store, BF16), OF_TYPE(store, I8), OF_TYPE(store, U8),             \
        OF_TYPE(store, I16), OF_TYPE(store, U16), OF_TYPE(store, I32), OF_TYPE(store, BOOL)
#define CAST_TO(NAME) [TND_N_STRIP_FUNCTIONS + TANDEM_DTYPE_##NAME] = cast_##NAME

#define SMALL_CAST(NAME, EXPONENT, MANTISSA, BIAS, SPECIAL) CAST_TO(NAME),
#define TYPES_CAST                                                                                 \
    TND_SMALL_FLOAT_LIST(SMALL_CAST)                                                               \
    CAST_TO(F16), CAST_TO(BF16), CAST_TO(I8), CAST_TO(U8), CAST_TO(I16), CAST_TO(U16), CAST_TO(I32)

#endif
