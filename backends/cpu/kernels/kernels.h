/* SPDX-License-Identifier: MIT
 * Interface between the drivers of the matrix products (matmul*.c) and the kernels of each
 * instruction set. Vector lanes are rows of W: a strip is as many rows as a vector has 32-bit
 * lanes, a panel a few strips. So every element of the result is summed over K in one order,
 * whatever M is. */
#ifndef TND_KERNELS_H
#define TND_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel-list.h"
#include "tandem/tensor.h"

enum {
    TND_AFFINE = 1,        /* value = scale * q + min */
    TND_GROUPS_OF_16 = 2,  /* a scale (and min) for every 16 values, not 32 */
    TND_X_BLOCK = 32,      /* activations that share a scale */
    TND_KC_Q = 512,        /* values of K that a panel of quantised weights holds: it stays in L1 */
    TND_KC_Q_FEW = 1024,   /* the same for few tokens: long stretches of each row matter more */
    TND_KC_F = 256,        /* the same for float weights; each such part is summed by itself */
    TND_GEMV_ROWS = 16,    /* rows of a product with one token */
    TND_GEMV_BLOCKS = 128, /* and its blocks that are summed before the next rows */
    TND_GEMV_K_MAX = 32768, /* longer rows go the way of many tokens */
    TND_LANES_MAX = 16,
    TND_PANEL_ROWS_MAX = 64
};

/* 32 quantised activations of one token. */
struct tnd_x_block {
    int8_t q[TND_X_BLOCK];
    float scale;
    union {
        int32_t correction[2]; /* -offset times the sum of q, of each 16 values or (in [0]) of 32 */
        float sum[2];          /* affine: scale times the sum of q, likewise */
    } group;
    float unused; /* keeps the block a multiple of 16 bytes */
};

/* A product of one panel and a few tokens over part of K: y = w * x, or y += w * x. values: per
 * block of 32 and group of 4 values: the 4 bytes of each lane; scales and mins: per block and
 * group the floats of the lanes. */
struct tnd_tile_q {
    const uint8_t *values;
    const float *scales;
    const float *mins;
    size_t values_strip, scales_strip; /* bytes, floats from one strip to the next */
    int n_blocks;
    int n_tokens;
    const struct tnd_x_block *x;
    size_t x_blocks; /* from one token to the next */
    float *y;
    size_t y_stride; /* floats from one token to the next */
    bool accumulate;
};

/* A product of a few rows and one token over all K. The activations of tnd_x_block, apart, aligned
 * to 64 and padded with zeros to a multiple of 16 blocks. */
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

/* The same for floats. w: per value of K the floats of the lanes. */
struct tnd_tile_f {
    const float *w;
    size_t w_strip; /* floats from one strip to the next */
    int n_values;
    int n_tokens;
    const float *x;
    size_t x_stride; /* floats from one token to the next */
    float *y;
    size_t y_stride;
    bool accumulate;
    const char *ahead; /* memory to fetch meanwhile, or NULL: `n_tokens` stretches */
    size_t ahead_stride, ahead_bytes;
};

/* Decodes one strip: rows at `rows`, row_bytes apart; n values, a multiple of the block. */
typedef void tnd_decode_q_fn(const uint8_t *rows, size_t row_bytes, int64_t n, uint8_t *values,
                             float *scales, float *mins);
/* n is a multiple of 8. */
typedef void tnd_decode_f_fn(const uint8_t *rows, size_t row_bytes, int64_t n, float *w);
typedef void tnd_gemm_q_fn(const struct tnd_tile_q *tile);
typedef void tnd_gemv_q_fn(const struct tnd_gemv_q *job);
typedef void tnd_gemm_f_fn(const struct tnd_tile_f *tile);
/* n activations of one token (a multiple of 32). `form` and `offset` are those of the weights. */
typedef void tnd_quantize_x_fn(const float *x, int64_t n, int form, int offset,
                               struct tnd_x_block *out);
/* One row to floats; the same bits as tandem_dequantize. */
typedef void tnd_dequantize_fn(const void *src, float *dst, int64_t n);

struct tnd_kernels_q {
    int lanes, strips, tokens; /* of a panel; `tokens` is the most that one tile takes */
    tnd_decode_q_fn *decode[TANDEM_TYPE_NUMBERS];
    tnd_gemm_q_fn *gemm[TANDEM_TYPE_NUMBERS];
    tnd_gemv_q_fn *gemv[TANDEM_TYPE_NUMBERS]; /* or NULL: for one token, with the bits of gemm */
    tnd_quantize_x_fn *quantize_x;
};

struct tnd_kernels_f {
    int lanes, strips, tokens;
    tnd_decode_f_fn *decode[TANDEM_TYPE_NUMBERS]; /* F32, F16, BF16 */
    tnd_gemm_f_fn *gemm;
    tnd_gemm_f_fn *gemm_strip; /* or NULL: one strip in place of a panel, with the same bits */
};

struct tnd_cpu_kernels {
    const char *isa_q, *isa_f; /* for reports: where the families come from */
    struct tnd_kernels_q q;
    struct tnd_kernels_f f;
    tnd_dequantize_fn *dequantize[TANDEM_TYPE_NUMBERS];
};

/** The kernels for a set of CPU features (tnd_cpu_features or a subset of it). */
void tnd_cpu_kernels_for(uint32_t features, struct tnd_cpu_kernels *out);

/** The kernels of this machine, chosen at the first call. Any thread. */
const struct tnd_cpu_kernels *tnd_cpu_kernels(void);

/** Form and offset of a quantised type as in kernel-list.h; false when it has no integer kernel. */
bool tnd_quant_form(enum tandem_type type, int *out_form, int *out_offset);

/* Each overwrites what its instruction set has. */
void tnd_kernels_fill_scalar(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_avx2(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_avx512(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_vnni(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_neon(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_dotprod(struct tnd_cpu_kernels *out);
void tnd_kernels_fill_i8mm(struct tnd_cpu_kernels *out);

/* Parts of them in other files: decoders, lanes, and row conversions. */
void tnd_decoders_scalar(struct tnd_cpu_kernels *out);
void tnd_decoders_avx2(struct tnd_cpu_kernels *out);
void tnd_gemv_vnni(struct tnd_kernels_q *out);
void tnd_decoders_q_avx512(struct tnd_kernels_q *out);
void tnd_decoders_f_avx512(struct tnd_kernels_f *out);
void tnd_dequantizers_avx2(struct tnd_cpu_kernels *out);
void tnd_decoders_neon(struct tnd_cpu_kernels *out);
void tnd_decoders_i8mm(struct tnd_cpu_kernels *out);
void tnd_dequantizers_neon(struct tnd_cpu_kernels *out);

/* A loop over registers: must be unrolled wholly. Not where each access is checked: compiling
 * would take minutes a file. */
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
