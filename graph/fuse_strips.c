/* SPDX-License-Identifier: MIT
 * Steps of fused programs over whole strips of F32: loops of constant length, which compilers
 * vectorise. The bits are those of the reference. */
#include <math.h>

#include "graph/fuse_program.h"

#define UNARY(name, expression)                                                                    \
    static void name(const float *restrict a, const float *restrict b, float *restrict out)        \
    {                                                                                              \
        (void)b;                                                                                   \
        for (int i = 0; i < TND_LANES; i++) {                                                      \
            const float v = a[i];                                                                  \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }
#define BINARY(name, expression)                                                                   \
    static void name(const float *restrict a, const float *restrict b, float *restrict out)        \
    {                                                                                              \
        for (int i = 0; i < TND_LANES; i++) {                                                      \
            const float x = a[i];                                                                  \
            const float y = b[i];                                                                  \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

UNARY(strip_copy, v)
UNARY(strip_neg, -v)
UNARY(strip_abs, fabsf(v))
UNARY(strip_sqrt, sqrtf(v))
UNARY(strip_reciprocal, 1 / v)
UNARY(strip_exp, expf(v))
UNARY(strip_tanh, tanhf(v))
UNARY(strip_erf, erff(v))
BINARY(strip_add, x + y)
BINARY(strip_sub, x - y)
BINARY(strip_mul, x *y)
BINARY(strip_div, x / y)
/* (x != x: NaN) */
BINARY(strip_max, ((x > y) | (x != x)) ? x : y)
BINARY(strip_min, ((x < y) | (x != x)) ? x : y)

tnd_strip_fn tnd_strip_fast(enum tnd_net_op op, int kind)
{
    static const tnd_strip_fn unary[] = {
        [TND_UNARY_NEG] = strip_neg,   [TND_UNARY_ABS] = strip_abs,
        [TND_UNARY_SQRT] = strip_sqrt, [TND_UNARY_RECIPROCAL] = strip_reciprocal,
        [TND_UNARY_EXP] = strip_exp,   [TND_UNARY_TANH] = strip_tanh,
        [TND_UNARY_ERF] = strip_erf};
    static const tnd_strip_fn binary[] = {
        [TND_BINARY_ADD] = strip_add, [TND_BINARY_SUB] = strip_sub, [TND_BINARY_MUL] = strip_mul,
        [TND_BINARY_DIV] = strip_div, [TND_BINARY_MAX] = strip_max, [TND_BINARY_MIN] = strip_min};
    const size_t i = (size_t)kind;
    switch (op) {
    case TND_NET_COPY:
        return strip_copy;
    case TND_NET_UNARY:
        return i < sizeof(unary) / sizeof(unary[0]) ? unary[i] : NULL;
    case TND_NET_BINARY:
        return i < sizeof(binary) / sizeof(binary[0]) ? binary[i] : NULL;
    default:
        return NULL;
    }
}
