/* SPDX-License-Identifier: MIT
 * Arguments of the kernels for fused programs and for rows of nets. */
#ifndef TND_STRIP_H
#define TND_STRIP_H

#include "ggml-like/fuse_code.h"

/** Address of a register's values: value `i` of a call is from[i & mask], for whole grains. In
 * tiles: value `c` of row `r` of a block from row `b` on is from[((b & mask) + r) * row + c]. */
struct tnd_strip_operand {
    float *from;
    int64_t mask;
    int64_t row;
};

struct tnd_strip_call {
    const struct tnd_fuse_code *codes;
    const struct tnd_strip_operand *operands; /* by register */
    float *out;
    int64_t n;    /* a multiple of TND_STRIP_GRAIN; in tiles: rows */
    int64_t line; /* in tiles: stride between rows of `out` */
    bool is_half; /* in tiles: a row is one vector, not two */
};

struct tnd_strip_kernel {
    void (*run)(const struct tnd_strip_call *call);
    /* some rows of one or two vectors each */
    void (*run_tile)(const struct tnd_strip_call *call);
    int width; /* values of two vectors */
    /* in place on `n` values, a multiple of TND_STRIP_GRAIN: functions, then the casts to each
     * type; NULL: not implemented */
    void (*functions[TND_N_STRIP_FUNCTIONS + TND_N_DTYPES])(float *values, int n);
    /* the largest and the smallest value of a row; NaN propagates */
    float (*largest)(const float *values, int64_t n);
    float (*smallest)(const float *values, int64_t n);
    /* adds rows of `n` values, in order, to one sum per column */
    void (*add_rows)(const float *from, int64_t stride, int64_t n_rows, int n, double *sums);
    /* to[i] = table[from[i]], of 256 entries; `to` may be `from` */
    void (*look_up)(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t n);
    /* conversion of stored values of a type to floats, and of floats to stored values, as by a
     * cast; any `n` */
    void (*load[TND_N_DTYPES])(const void *restrict from, float *restrict to, int64_t n);
    void (*store[TND_N_DTYPES])(const float *restrict from, void *restrict to, int64_t n);
};

#endif
