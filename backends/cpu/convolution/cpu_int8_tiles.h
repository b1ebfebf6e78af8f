/* SPDX-License-Identifier: MIT
 * What convolutions and products of 8-bit integers share: rows of bytes by panels of filters, tile
 * by tile, and what filters add to their sums. */
#ifndef TND_CPU_INT8_TILES_H
#define TND_CPU_INT8_TILES_H

#include "backends/cpu/kernels/kernels.h"

static inline int64_t tnd_int8_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/** What filters add to their sums (base: the bias, less what zero_x adds to the sum, and with what
 *  kernels take off x), and what makes a result of them: of this many filters, one list behind the
 *  other. */
struct tnd_int8_parameters {
    int32_t *zero_w, *base;
    float *scale, *offset;
};

enum { TND_INT8_PARAMETERS = 4 }; /* lists of 32-bit numbers */

/** Lists for n filters in memory of n * TND_INT8_PARAMETERS numbers. */
struct tnd_int8_parameters tnd_int8_parameters_in(void *memory, int64_t n);
/** Fills in one: `k` values of a sum; x_less: of the kernels, 0 where they do not multiply. */
void tnd_int8_set_parameter(const struct tnd_int8_parameters *parameters, int64_t f,
                            const struct tnd_int8_filter *filter, int64_t k, int32_t zero_x,
                            int x_less);

/** Rows of x by some panels. */
struct tnd_int8_tiles {
    const struct tnd_int8_kernels *kernels;
    const struct tnd_conv_int8 *conv;
    struct tnd_int8_parameters parameters; /* from the first filter on */
    int64_t n_filters;
    int64_t k;        /* values of a sum; rows have them up to a multiple of the kernels' step */
    const uint8_t *x; /* rows of bytes that count from 0 */
    int64_t x_stride; /* bytes from one to the next */
    int64_t n_rows;
    const int32_t *x_sums; /* of each row; NULL: no weight has a zero point */
    const int8_t *w;       /* panels, K filled up to a multiple of TND_INT8_STEP */
    void *y;               /* rows of conv->filters values */
};

void tnd_int8_run_tiles(const struct tnd_int8_tiles *tiles);

/** The sum of n bytes. */
int32_t tnd_int8_sum_row(const uint8_t *row, int64_t n);
/** Signed bytes as ones that count from 0, and back. */
void tnd_int8_flip(uint8_t *bytes, int64_t n);

#endif
