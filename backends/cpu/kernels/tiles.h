/* SPDX-License-Identifier: MIT
 * Interface between drivers of matrix products and kernels: tiles over part of K. Vector lanes are
 * rows of W: a panel has as many rows as a vector has 32-bit lanes, a tile a few panels. So every
 * element of the result is summed over K in the same order, whatever M is. Knows no instruction
 * set. */
#ifndef TND_TILES_H
#define TND_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel-list.h"
#include "tandem/tensor.h"

enum {
    TND_AFFINE = 1,            /* value = scale * q + min */
    TND_GROUPS_OF_16 = 2,      /* a scale (and min) per 16 values, not 32 */
    TND_BOOK_IQ4 = 1 << 2,     /* codes are indices into a codebook: that of IQ4_NL and IQ4_XS */
    TND_BOOK_FP4 = 2 << 2,     /* of MXFP4; packed scales are bf16 */
    TND_BOOK_IQ3_XXS = 3 << 2, /* magnitudes of a grid (ggml-like/quant_grid.h), with both signs */
    TND_BOOK_IQ3_S = 4 << 2,
    TND_BOOK_IQ2 = 5 << 2,
    TND_BOOK_IQ1 = 6 << 2, /* -8, 0 and 8, each minus and plus 1 */
    TND_BOOKS = 7 << 2,
    TND_X_BLOCK = 32, /* activations that share a scale */
    TND_KC_Q = 512,   /* values of K per tile of quantised weights: it stays in L1 */
    TND_KC_Q_SKINNY =
        1024,              /* likewise for skinny products, where longer runs of each row pay off */
    TND_KC_F = 256,        /* likewise for float weights; each such part has a separate sum */
    TND_GEMV_ROWS = 16,    /* rows of a product with one token */
    TND_GEMV_BLOCKS = 128, /* and blocks that are summed before going on to other rows */
    TND_GEMV_K_MAX = 32768, /* longer rows are computed as for many tokens */
    TND_LANES_MAX = 16,
    TND_TILE_ROWS_MAX = 64
};

/* Bits per code in packed weights, for a type that has `bits` in kernel-list.h. */
#define TND_PACKED_BITS(form, bits)                                                                \
    (((form)&TND_BOOKS) == 0 ? (bits) : ((form)&TND_BOOKS) < TND_BOOK_IQ2 ? 4 : 3)

/* Factor of integer scales in addition to d. */
#define TND_BOOK_UNIT(form)                                                                        \
    (((form)&TND_BOOKS) == TND_BOOK_IQ3_XXS ? 0.25f                                                \
     : ((form)&TND_BOOKS) >= TND_BOOK_IQ2   ? 0.125f                                               \
                                            : 1.0f)

/* The numbers of a codebook plus the offset of its types in kernel-list.h; codebooks of 8 numbers
 * appear twice. */
static inline const uint8_t *tnd_book_codes(int form)
{
    static const uint8_t books[7][16] = {
        [TND_BOOK_IQ4 >> 2] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217,
                               241},
        [TND_BOOK_FP4 >> 2] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
        [TND_BOOK_IQ3_XXS >> 2] = {0, 10, 18, 26, 34, 42, 50, 58, 66, 74, 82, 90, 98, 106, 114,
                                   124},
        [TND_BOOK_IQ3_S >> 2] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
        [TND_BOOK_IQ2 >> 2] = {0, 18, 35, 51, 68, 86, 0, 0, 0, 18, 35, 51, 68, 86, 0, 0},
        [TND_BOOK_IQ1 >> 2] = {0, 2, 8, 10, 16, 18, 0, 0, 0, 2, 8, 10, 16, 18, 0, 0}};
    return books[(form & TND_BOOKS) >> 2];
}

/* Smaller activations become 0, because their inverse would overflow. */
#define TND_X_TINY 1e-30f

/* With larger activations, the sum of a block may overflow before the weights' scale makes it
 * small: 32 times the largest code, 128. Results are then infinite or NaN, even for weights of
 * 0. */
#define TND_X_HUGE 8e34f

/* 32 quantised activations of one token. */
struct tnd_x_block {
    int8_t q[TND_X_BLOCK];
    float scale;
    union {
        int32_t correction[2]; /* -offset * sum of q: of each 16 values, or in [0] of all 32 */
        float sum[2];          /* affine: scale times the sum of q, likewise */
    } group;
    float unused; /* keeps the block a multiple of 16 bytes */
};

/* Sets scale and sums of a block after quantisation: `top` is the largest magnitude, low and high
 * are the sums of q over its halves. */
static inline void tnd_x_block_finish(struct tnd_x_block *out, float top, int32_t low, int32_t high,
                                      int form, int offset)
{
    const bool by_16 = (form & TND_GROUPS_OF_16) != 0;
    const int32_t sum[2] = {by_16 ? low : low + high, by_16 ? high : 0};
    out->scale = top < TND_X_TINY ? 0.0f : top / 127.0f;
    for (int g = 0; g < 2; g++) {
        if ((form & TND_AFFINE) != 0) {
            out->group.sum[g] = out->scale * (float)sum[g];
        } else {
            out->group.correction[g] = -offset * sum[g];
        }
    }
    out->unused = 0;
}

/* A product of one tile and a few tokens over part of K: y = w * x, or y += w * x. values: for each
 * block of 32 and each 4 values in it, the 4 bytes of each lane; scales and mins: for each block
 * and group, one float per lane. */
struct tnd_tile_q {
    const uint8_t *values;
    const float *scales;
    const float *mins;
    size_t values_panel, scales_panel; /* stride between panels, in bytes and in floats */
    int n_blocks;
    int n_tokens;
    const struct tnd_x_block *x;
    size_t x_blocks; /* between tokens */
    float *y;
    size_t y_stride; /* between tokens, in floats */
    bool accumulate;
};

/* A product of a few rows and one token over all of K. The members of tnd_x_block in separate
 * arrays, aligned to 64 bytes and padded with zeros to a multiple of 16 blocks. */
struct tnd_gemv_q {
    const uint8_t *rows;
    size_t row_bytes;
    int n_rows; /* at most TND_GEMV_ROWS */
    int n_blocks;
    const int8_t *x;
    const float *x_scale;
    const int32_t *x_correction; /* not of affine types */
    const float *x_sum;          /* of affine types */
    float *y;
};

/* A tile of floats. w: for each value of K, one float per lane. */
struct tnd_tile_f {
    const float *w;
    size_t w_panel; /* stride between panels, in floats */
    int n_values;
    int n_tokens;
    const float *x;
    size_t x_stride; /* between tokens, in floats */
    float *y;
    size_t y_stride;
    bool accumulate;
    const char *ahead; /* memory to prefetch, or NULL: one run per token */
    size_t ahead_stride, ahead_bytes;
};

/* Decodes one panel: rows at `rows`, row_bytes apart; n values, a multiple of the block. */
typedef void tnd_decode_q_fn(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                             float *scales, float *mins);
/* Collects bit `bit` of each of 512 bytes (aligned to 64), the first byte's in the lowest
 * position. */
typedef void tnd_pick_bits_fn(const uint8_t *from, int bit, uint8_t *out);
/* n is a multiple of 8. */
typedef void tnd_decode_f_fn(const uint8_t *rows, size_t row_bytes, int64_t n, float *w);
typedef void tnd_gemm_q_fn(const struct tnd_tile_q *tile);
typedef void tnd_gemv_q_fn(const struct tnd_gemv_q *job);
typedef void tnd_gemm_f_fn(const struct tnd_tile_f *tile);
/* Quantises n activations of one token (a multiple of 32). `form` and `offset` are those of the
 * weights. */
typedef void tnd_quantize_x_fn(const float *x, int64_t n, int form, int offset,
                               struct tnd_x_block *out);
/* Dequantises one row, bit-identical to tandem_dequantize. */
typedef void tnd_dequantize_fn(const void *src, float *dst, int64_t n);
/* Quantises n floats to a row. */
typedef void tnd_quantize_fn(const float *src, void *dst, int64_t n);

static inline int64_t tnd_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tnd_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* For loops over registers, which must be fully unrolled. Not with sanitizers: compiling would take
 * minutes per file. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TND_IS_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TND_IS_CHECKED 1
#endif
#endif
#if defined(TND_IS_CHECKED)
#define TND_UNROLL
#elif defined(__clang__)
#define TND_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TND_UNROLL _Pragma("GCC unroll 16")
#endif
#define TND_INLINE static inline __attribute__((always_inline))

#endif
