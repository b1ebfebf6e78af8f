/* SPDX-License-Identifier: MIT
 * Block codecs, one pair per tensor type. Functions carry the type's NAME of tandem/type-list.h, so
 * that the traits in type.c are generated from that list. The scalar code behind them is the
 * reference for every SIMD version. Layouts: ggml-common.h of the ggml project. */
#ifndef TND_QUANT_H
#define TND_QUANT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TND_QUANT_DECLARE(NAME)                                                                    \
    void tnd_dequantize_##NAME(const void *src, float *dst, int64_t n);                            \
    void tnd_quantize_##NAME(const float *src, void *dst, int64_t n);

/* quant_legacy.c */
TND_QUANT_DECLARE(F32)
TND_QUANT_DECLARE(F16)
TND_QUANT_DECLARE(BF16)
TND_QUANT_DECLARE(Q4_0)
TND_QUANT_DECLARE(Q4_1)
TND_QUANT_DECLARE(Q5_0)
TND_QUANT_DECLARE(Q5_1)
TND_QUANT_DECLARE(Q8_0)

/* quant_k.c */
TND_QUANT_DECLARE(Q2_K)
TND_QUANT_DECLARE(Q3_K)
TND_QUANT_DECLARE(Q4_K)
TND_QUANT_DECLARE(Q5_K)
TND_QUANT_DECLARE(Q6_K)

/* quant_book.c */
TND_QUANT_DECLARE(IQ4_NL)
TND_QUANT_DECLARE(IQ4_XS)
TND_QUANT_DECLARE(MXFP4)

/* quant_grid.c, quant_grid_fit.c */
TND_QUANT_DECLARE(IQ2_XXS)
TND_QUANT_DECLARE(IQ2_XS)
TND_QUANT_DECLARE(IQ2_S)
TND_QUANT_DECLARE(IQ3_XXS)
TND_QUANT_DECLARE(IQ3_S)
TND_QUANT_DECLARE(IQ1_S)
TND_QUANT_DECLARE(IQ1_M)
TND_QUANT_DECLARE(TQ1_0)
TND_QUANT_DECLARE(TQ2_0)

/* quant_bcml1.c */
TND_QUANT_DECLARE(BCML1)
#undef TND_QUANT_DECLARE

/* Types whose blocks depend on an importance of each value: `importance` has n numbers, or is NULL.
 * An error's weight is the importance times sqrt(mean x^2 + x^2). */
#define TND_WEIGHTED_TYPES(X)                                                                      \
    X(Q2_K)                                                                                        \
    X(Q3_K)                                                                                        \
    X(Q4_K)                                                                                        \
    X(Q5_K)                                                                                        \
    X(Q6_K)                                                                                        \
    X(IQ4_NL)                                                                                      \
    X(IQ4_XS)                                                                                      \
    X(IQ3_XXS)                                                                                     \
    X(IQ3_S)                                                                                       \
    X(IQ2_XXS)                                                                                     \
    X(IQ2_XS)                                                                                      \
    X(IQ2_S)                                                                                       \
    X(IQ1_S)                                                                                       \
    X(IQ1_M)
#define TND_WEIGHTED_DECLARE(NAME)                                                                 \
    void tnd_quantize_weighted_##NAME(const float *src, const float *importance, void *dst,        \
                                      int64_t n);
TND_WEIGHTED_TYPES(TND_WEIGHTED_DECLARE)
#undef TND_WEIGHTED_DECLARE

/* Codecs of a type, made from functions for one block, a struct tnd_block_`block` of VALUES values:
 * get_`block`(block, y) decodes it, put_`block`(x, block) encodes it; with an importance or NULL,
 * put_`block`(x, importance, block). Blocks in memory may be unaligned, so they are copied in and
 * out. */
#define TND_DEQUANTIZE_BLOCKS(NAME, block, VALUES)                                                 \
    void tnd_dequantize_##NAME(const void *src, float *dst, int64_t n)                             \
    {                                                                                              \
        for (int64_t b = 0; b < n / (VALUES); b++) {                                               \
            struct tnd_block_##block one;                                                          \
            memcpy(&one, (const char *)src + (size_t)b * sizeof(one), sizeof(one));                \
            get_##block(&one, dst + b * (VALUES));                                                 \
        }                                                                                          \
    }
#define TND_QUANTIZE_BLOCKS(NAME, block, VALUES)                                                   \
    void tnd_quantize_##NAME(const float *src, void *dst, int64_t n)                               \
    {                                                                                              \
        for (int64_t b = 0; b < n / (VALUES); b++) {                                               \
            struct tnd_block_##block one;                                                          \
            memset(&one, 0, sizeof(one));                                                          \
            put_##block(src + b * (VALUES), &one);                                                 \
            memcpy((char *)dst + (size_t)b * sizeof(one), &one, sizeof(one));                      \
        }                                                                                          \
    }
#define TND_QUANTIZE_BLOCKS_WEIGHTED(NAME, block, VALUES)                                          \
    void tnd_quantize_weighted_##NAME(const float *src, const float *importance, void *dst,        \
                                      int64_t n)                                                   \
    {                                                                                              \
        for (int64_t b = 0; b < n / (VALUES); b++) {                                               \
            struct tnd_block_##block one;                                                          \
            memset(&one, 0, sizeof(one));                                                          \
            put_##block(src + b * (VALUES), importance != NULL ? importance + b * (VALUES) : NULL, \
                        &one);                                                                     \
            memcpy((char *)dst + (size_t)b * sizeof(one), &one, sizeof(one));                      \
        }                                                                                          \
    }                                                                                              \
    void tnd_quantize_##NAME(const float *src, void *dst, int64_t n)                               \
    {                                                                                              \
        tnd_quantize_weighted_##NAME(src, NULL, dst, n);                                           \
    }

/* I32 holds indices: no float codec. */
#define tnd_dequantize_I32 NULL
#define tnd_quantize_I32   NULL

/* Blocks as stored in memory and in files. Scales are f16 bits. */

struct tnd_block_q4_0 { /* d * (q[i] - 8); low nibbles are values 0..15, high ones 16..31 */
    uint16_t d;
    uint8_t qs[16];
};
struct tnd_block_q4_1 { /* d * q[i] + m; BCML1 too, with q in another order */
    uint16_t d, m;
    uint8_t qs[16];
};
struct tnd_block_q5_0 { /* d * (q[i] - 16); bit i of qh is bit 4 of q[i] */
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};
struct tnd_block_q5_1 { /* d * q[i] + m */
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};
struct tnd_block_q8_0 { /* d * q[i] */
    uint16_t d;
    int8_t qs[32];
};

/* K-quants: 256 values in groups of 16 or 32 with integer group scales. */

struct tnd_block_q2_k { /* d * (scales[g] & 15) * q - dmin * (scales[g] >> 4),
                           16 groups */
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d, dmin;
};
struct tnd_block_q3_k { /* d * (scale[g] - 32) * (q - 4), 16 groups, 6-bit
                           scales */
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
};
struct tnd_block_q4_k { /* d * scale[g] * q - dmin * min[g], 8 groups, 6-bit
                           scales and minima */
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
};
struct tnd_block_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};
struct tnd_block_q6_k { /* d * scales[g] * (q - 32), 16 groups */
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
};

/* 4-bit codes that index a codebook. */

struct tnd_block_iq4_nl { /* d * book[q[i]], nibbles as in Q4_0 */
    uint16_t d;
    uint8_t qs[16];
};
struct tnd_block_iq4_xs { /* d * (scale[g] - 32) * book[q[i]], 8 groups, 6-bit scales; the nibbles
                             of each group as in Q4_0 */
    uint16_t d, scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
};
struct tnd_block_mxfp4 { /* 2^(e - 128) * book[q[i]], nibbles as in Q4_0 */
    uint8_t e;
    uint8_t qs[16];
};

/* The codebooks. IQ4: kvalues_iq4nl of ggml-common.h, shared by IQ4_NL and IQ4_XS. FP4: twice the
 * numbers of E2M1 (OCP Microscaling Formats 1.0, table 5), to make them integers. Negative zero is
 * 0, as in ggml. */
#define TND_BOOK_IQ4_VALUES                                                                        \
    {                                                                                              \
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113                   \
    }
#define TND_BOOK_FP4_VALUES                                                                        \
    {                                                                                              \
        0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12                                    \
    }

/** 2^(e - 128) as bf16 bits: exact, subnormal for e < 2. Half of what E8M0 defines, because the
 * codebook is doubled. 255 is NaN in E8M0, but 2^127 in ggml and here. */
static inline uint16_t tnd_e8m0_half(uint8_t e)
{
    return (uint16_t)(e < 2 ? 0x20 << e : (e - 1) << 7);
}

/** Scale of group `g` (0..7) of IQ4_XS, -32..31. */
static inline int tnd_iq4_xs_scale(const struct tnd_block_iq4_xs *block, int g)
{
    int low = block->scales_l[g / 2] >> (4 * (g % 2)) & 15;
    return (low | (block->scales_h >> (2 * g) & 3) << 4) - 32;
}

/** Scale and minimum of group `g` (0..7) in the 12 bytes that Q4_K and Q5_K
 * share. */
static inline void tnd_k4_scale_min(const uint8_t *packed, int g, int *out_scale, int *out_min)
{
    if (g < 4) {
        *out_scale = packed[g] & 63;
        *out_min = packed[g + 4] & 63;
    } else {
        *out_scale = (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
        *out_min = packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
    }
}

/** Scale of group `g` (0..15) of Q3_K, -32..31. */
static inline int tnd_q3_k_scale(const uint8_t *packed, int g)
{
    int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
    int high = packed[8 + g % 4] >> (2 * (g / 4)) & 3;
    return (low | high << 4) - 32;
}

#endif
