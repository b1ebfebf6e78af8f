/* SPDX-License-Identifier: MIT
 * What is applied to the sums of a convolution before they leave the registers: bias, residual,
 * bounds. Included, and so compiled, once per instruction set. */
#ifndef TND_CONV_ENDING_H
#define TND_CONV_ENDING_H

#include "backends/cpu/kernels/conv_tile.h"
#include "base/lanes_math.h"

/* Loads the first `n` values, at most a vector; the other lanes are 0. */
static inline tnd_vec ending_load(const float *from, int n)
{
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#else
    (void)n; /* (a whole vector) */
    return tnd_vec_load(from);
#endif
}

static inline void ending_store(float *to, int n, tnd_vec v)
{
#if defined(__AVX512F__)
    if (n < TND_VEC_LANES) {
        _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), v);
        return;
    }
#endif
    (void)n;
    tnd_vec_store(to, v);
}

#define ENDING_EACH                                                                                \
    TND_CONV_UNROLL                                                                                \
    for (int m = 0; m < most; m++)                                                                 \
        TND_CONV_UNROLL                                                                            \
    for (int v = 0; v < n_vectors; v++)
#define ENDING_CASE(name, expression)                                                              \
    case TND_CODE_##name:                                                                          \
        ENDING_EACH                                                                                \
        {                                                                                          \
            if (m < n_places) {                                                                    \
                const tnd_vec x = sum[m][v];                                                       \
                const tnd_vec y = ending_load(operand->from + m * operand->row + at_vector(v),     \
                                              v + 1 < n_vectors ? TND_VEC_LANES : last);           \
                sum[m][v] = (expression);                                                          \
            }                                                                                      \
        }                                                                                          \
        break;
#define at_vector(v) (column + (v)*TND_VEC_LANES)

/* Applies the ending to the sums of `n_places` positions (at most `most`) and stores them:
 * `n_vectors` vectors of filters from `column` of the tile on; the last vector has `last`
 * filters. */
static inline __attribute__((always_inline)) void
end_sums(const struct tnd_conv_ending *ending, tnd_vec (*sum)[TND_CONV_PANELS], const int most,
         int n_places, const int n_vectors, int column, int last, float *out)
{
    for (const struct tnd_fuse_code *code = ending->codes; code->op != TND_CODE_END; code++) {
        const struct tnd_strip_operand *operand = &ending->operands[code->in];
        switch ((enum tnd_code_op)code->op) {
            TND_CODE_ENDING_LIST(ENDING_CASE)
        default: /* TND_CODE_HARD_SWISH */
            ENDING_EACH
            {
                sum[m][v] = tnd_vec_hard_swish(sum[m][v]);
            }
            break;
        }
    }
    ENDING_EACH
    {
        if (m < n_places) {
            ending_store(out + m * ending->line + at_vector(v),
                         v + 1 < n_vectors ? TND_VEC_LANES : last, sum[m][v]);
        }
    }
}
#undef at_vector
#undef ENDING_CASE
#undef ENDING_EACH

#endif
