/* SPDX-License-Identifier: MIT
 * Kernels of attention for many queries. A strip is a few vectors of queries that share a KV head;
 * lanes are queries, keys and values are broadcast. So nothing is summed across lanes, every query
 * is computed in one order whatever is beside it, and keys and values are used as they lie. */
#ifndef TND_ATTENTION_STRIP_H
#define TND_ATTENTION_STRIP_H

#include <stdint.h>

enum {
    TND_KEYS = 64,      /* keys and values that a strip meets at a time: a tile */
    TND_KEY_BLOCK = 64, /* values of a key that lie together in a tile */
    TND_STRIP_MAX = 48  /* queries of a strip at most */
};

/* A strip meets a tile. Arrays with a {strip} have `tnd_strip_kernels.queries` numbers a row. */
struct tnd_strip {
    int n_queries, n_keys;
    int64_t head, value; /* length of a key, of a value */
    float *queries;      /* {strip, head}, times the scale */
    const float *keys;   /* {TND_KEY_BLOCK, TND_KEYS, blocks of the head} */
    const float *values; /* {value_stride, n_keys} */
    int64_t value_stride;
    const float *mask;           /* {strip, n_keys}, added to the scores, or NULL */
    const int32_t *orders;       /* {n_keys}: seen from first to last, or NULL: all are seen */
    const int32_t *first, *last; /* {strip} */
    float *scores;               /* {strip, TND_KEYS}: scratch */
    float *largest, *weight;     /* {strip}: of the scores so far, sum of exponentials */
    float *sums;                 /* {strip, value}: weighted values so far */
    const void *const *soon;     /* {n_soon}: lines of memory that are needed next */
    int n_soon;
};

struct tnd_strip_kernels {
    int queries; /* of a whole strip */
    /** y[i][r] = rows[r][i] * factor for `n` values of `n_rows` rows (at most a strip); the rest of
     *  a vector of queries is 0. */
    void (*turn)(const float *const *rows, int n_rows, int64_t n, float factor, float *y);
    /** Adds the tile's values to the sums, with weights e^(score - largest). Begin with largest
     *  -infinity, weight and sums 0. Scores that are no number make weight and sums such. */
    void (*attend)(const struct tnd_strip *strip);
    /** rows[r][i] = sums[i][r] / weight[r]; 0 where nothing was seen. */
    void (*finish)(const struct tnd_strip *strip, float *const *rows);
};

/** In plain C. */
extern const struct tnd_strip_kernels tnd_strip_scalar;

#endif
