/* SPDX-License-Identifier: MIT
 * Shared by convolutions and products of 8-bit integers: multiplies rows of bytes by panels of
 * filters, tile by tile, and turns sums into results. */
#ifndef TND_CPU_INT8_TILES_H
#define TND_CPU_INT8_TILES_H

#include "backends/cpu/kernels/kernels.h"

static inline int64_t tnd_int8_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/** Lists with one entry per filter: what is added to its sums, and how they become results. base:
 * the bias, minus the contribution of zero_x and of what kernels subtract from x. */
struct tnd_int8_parameters {
    int32_t *zero_w, *base;
    float *scale, *offset;
};

enum { TND_INT8_PARAMETERS = 4 }; /* lists of 32-bit numbers */

/** Places the lists for n filters in memory of n * TND_INT8_PARAMETERS numbers. */
struct tnd_int8_parameters tnd_int8_parameters_in(void *memory, int64_t n);
/** Sets the entry of a filter: `k` values per sum; x_less: what the kernels subtract from x, 0 for
 * products without kernels. */
void tnd_int8_set_parameter(const struct tnd_int8_parameters *parameters, int64_t f,
                            const struct tnd_int8_filter *filter, int64_t k, int32_t zero_x,
                            int x_less);

/** Some rows of x by some panels. */
struct tnd_int8_tiles {
    const struct tnd_int8_kernels *kernels;
    const struct tnd_conv_int8 *conv;
    struct tnd_int8_parameters parameters; /* from filter `first` on */
    int64_t n_filters;
    int64_t k;        /* values per sum; rows are padded to a multiple of the kernels' step */
    const uint8_t *x; /* rows of unsigned bytes */
    int64_t x_stride; /* in bytes, between rows */
    int64_t n_rows;
    const int32_t *x_sums; /* per row; NULL: no weight has a zero point */
    const int8_t *w;       /* panels, K padded to a multiple of TND_INT8_STEP */
    void *y;               /* rows of conv->filters values */
};

void tnd_int8_run_tiles(const struct tnd_int8_tiles *tiles);

/** The sum of n bytes. */
int32_t tnd_int8_sum_row(const uint8_t *row, int64_t n);
/** Converts signed bytes to unsigned ones (plus 128), and back. */
void tnd_int8_flip(uint8_t *bytes, int64_t n);

#endif
