/* SPDX-License-Identifier: MIT
 * Kernels of attention for a few queries that share a KV head, such as those of a single token:
 * lanes are values of the head. Keys and values are read in place, in their own type, and once for
 * all queries of a block. The order of additions of a score, and of a value's sum, does not depend
 * on the other queries and keys. */
#ifndef TND_ATTENTION_FEW_H
#define TND_ATTENTION_FEW_H

#include <stddef.h>
#include <stdint.h>

#include "tandem/tensor.h"

enum {
    TND_FEW_KEYS = 256,                 /* keys of a chunk, whose scores are adjacent */
    TND_FEW_STRIDE = TND_FEW_KEYS + 16, /* floats from one query's scores to the next one's: a power
                                           of 2 would put all rows into the same lines of a cache */
    TND_FEW_QUERIES_MAX = 8             /* most queries of a block */
};

/* Keys or values of a tile. */
struct tnd_few_rows {
    const void *rows;
    size_t stride; /* bytes */
    int n;
};

/* Rows that are needed next: kernels prefetch row j while they compute row j. */
struct tnd_few_soon {
    const char *rows;
    size_t stride, bytes; /* distance of rows, size of a row */
    int n;
};

/** scores[r * TND_FEW_STRIDE + j] = sum of query r times key j, for `n` values of a head.
 *  `queries`: as `lay` leaves them. */
typedef void tnd_few_scores_fn(const float *queries, int n_queries, const struct tnd_few_rows *keys,
                               int64_t n, float *scores, const struct tnd_few_soon *soon);
/** sums[r * sum_stride + i] += sum over j, in this order, of weights[r * TND_FEW_STRIDE + j] *
 *  values[j][i]. Rows of sums and weights up to the next power of 2 of n_queries are there, and of
 *  sums up to the next 16 values. */
typedef void tnd_few_sums_fn(const float *weights, int n_queries, const struct tnd_few_rows *values,
                             int64_t n, float *sums, int64_t sum_stride,
                             const struct tnd_few_soon *soon);
/** y[j * y_stride + i] = rows[j][i] as floats, exactly; up to the next 16 values are written. */
typedef void tnd_few_floats_fn(const void *rows, size_t stride, int n_rows, int64_t n, float *y,
                               int64_t y_stride);

struct tnd_few_kernels {
    int queries; /* queries of a block: a power of 2 */
    /* rows of types other than F32 are read in place if their length is a multiple of this */
    int whole;
    int wide; /* with this many queries or more, `scores` takes F32 and F16 alone, in rows whose
                  length is a multiple of `whole` */
    /** Brings rows of `n` values into the order that `scores` reads: up to the next multiple of 16
     *  values and the next power of 2 of n_rows, the rest 0. */
    void (*lay)(const float *const *rows, int n_rows, int64_t n, float *y);
    tnd_few_scores_fn *scores[TANDEM_TYPE_NUMBERS]; /* NULL: no kernel for this type */
    tnd_few_sums_fn *sums[TANDEM_TYPE_NUMBERS];
    tnd_few_floats_fn *floats[TANDEM_TYPE_NUMBERS]; /* rows of a panel's tile; NULL as above */
};

/** In plain C. */
extern const struct tnd_few_kernels tnd_few_scalar;

#endif
