/* SPDX-License-Identifier: MIT
 * What drivers hand to the kernels of programs and of rows of nets. */
#ifndef TND_STRIP_H
#define TND_STRIP_H

#include "ggml-like/fuse_code.h"

/** Where the values of a register are: value `i` of a call is from[i & mask], for whole grains. Of
 *  a tile: value `c` of row `r` of a block from row `b` on is from[((b & mask) + r) * row + c]. */
struct tnd_strip_operand {
    float *from;
    int64_t mask;
    int64_t row;
};

struct tnd_strip_call {
    const struct tnd_fuse_code *codes;
    const struct tnd_strip_operand *operands; /* by register */
    float *out;
    int64_t n;    /* a multiple of TND_STRIP_GRAIN; of a tile: rows */
    int64_t line; /* of a tile: values from one row of `out` to the next */
    bool is_half; /* of a tile: rows of one vector */
};

struct tnd_strip_kernel {
    void (*run)(const struct tnd_strip_call *call);
    /* some rows of two vectors each, or of one */
    void (*run_tile)(const struct tnd_strip_call *call);
    int width; /* values of two vectors */
    /* of `n` values, a multiple of TND_STRIP_GRAIN, in place: functions, and behind them the casts
     * to each type; NULL: there is none */
    void (*functions[TND_N_STRIP_FUNCTIONS + TND_N_DTYPES])(float *values, int n);
    /* the largest and the smallest of a row; NaN where one is */
    float (*largest)(const float *values, int64_t n);
    float (*smallest)(const float *values, int64_t n);
    /* adds rows of `n` values, one after the other, to a sum for each column */
    void (*add_rows)(const float *from, int64_t stride, int64_t n_rows, int n, double *sums);
    /* to[i] = table[from[i]], of 256 entries; `to` may be `from` */
    void (*look_up)(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t n);
    /* values of a type in memory as floats, and floats cast to such values; any `n` */
    void (*load[TND_N_DTYPES])(const void *restrict from, float *restrict to, int64_t n);
    void (*store[TND_N_DTYPES])(const float *restrict from, void *restrict to, int64_t n);
};

#endif
