/* SPDX-License-Identifier: MIT
 * Kernels of attention for many queries. A panel is a few vectors of queries that share a KV head.
 * Lanes of scores are queries, and keys are broadcast; lanes of sums are values, and weights are
 * broadcast. So nothing is summed across lanes, the order of a query's additions does not depend on
 * other queries, and keys and values are used without transposing them. */
#ifndef TND_ATTENTION_PANEL_H
#define TND_ATTENTION_PANEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TND_KEYS = 64,             /* keys and values of a tile, which a panel processes at a time */
    TND_KEY_BLOCK = 64,        /* values of a key that are adjacent in a tile */
    TND_PANEL_QUERIES_MAX = 48 /* most queries of a panel */
};

/* A panel and a tile in words of 16 bits, two in 32 bits: number i of row r is about step r times
 * word i. A step of NaN: the row is met as floats (of a panel's queries, keys and values). */
struct tnd_panel_words {
    const int32_t *queries; /* {panel, pairs of the head} */
    const int32_t *keys;    /* {key_stride, n_keys}: pairs of the head */
    int64_t key_stride;
    const int32_t *values; /* {value_stride, pairs of keys} */
    const float *query_steps, *key_steps, *value_steps;
    float *weights; /* {panel, TND_KEYS}, of values that are floats: scratch */
};

/* A panel and a tile. Arrays with {panel} have `queries` numbers per row. */
struct tnd_query_panel {
    int n_queries, n_keys;
    bool is_first;       /* first tile of the panel: sums are not read */
    int64_t head, value; /* length of a key, of a value */
    float *queries;      /* {panel, head}, times the scale, by the cap where there is one */
    float cap;           /* scores become cap * tanh(score); 0: they stay */
    const float *keys;   /* {TND_KEY_BLOCK, TND_KEYS, blocks of the head} */
    const float *values; /* {value_stride, n_keys}, up to the next 16 values */
    struct tnd_panel_words words; /* for attend of words, whose keys are {2 * key_stride, n_keys} */
    int64_t value_stride;
    int n_seen;                  /* keys that all queries see, before any that only some do */
    const float *mask;           /* {panel, n_keys}, added to the scores, or NULL */
    const int32_t *orders;       /* {n_keys}: seen from first to last; or NULL */
    const int32_t *first, *last; /* {panel} */
    float *scores;               /* {panel, TND_KEYS}: scratch */
    float *largest, *weight;     /* {panel}: of the scores so far, sum of exponentials */
    float *sums;                 /* {value_stride, panel}: weighted values so far */
    const void *const *soon;     /* {n_soon}: cache lines that are needed next */
    int n_soon;
};

/* Attention of rows that were rounded to fewer bits than a float has, in words. */
struct tnd_attention_words {
    /** Of queries as `transpose` leaves them. */
    void (*lay_queries)(const float *queries, int64_t head, int32_t *words, float *steps);
    /** Of rows of `n` values, a multiple of 16. */
    void (*lay_keys)(const float *keys, int n_keys, int64_t n, int32_t *words, float *steps);
    void (*lay_values)(const float *values, int n_keys, int64_t n, int32_t *words, float *steps);
    /** As attend of tnd_attention_kernels. */
    void (*attend)(const struct tnd_query_panel *panel);
};

struct tnd_attention_kernels {
    int queries; /* queries of a whole panel */
    /** y[i][r] = rows[r][i] * factor for `n` values of `n_rows` rows (at most a panel); the rest of
     *  a vector of queries is 0. */
    void (*transpose)(const float *const *rows, int n_rows, int64_t n, float factor, float *y);
    /** Adds the tile's values to the sums, with weights e^(score - largest). Begin with largest
     *  -infinity and weight 0. NaN scores make weight and sums NaN. */
    void (*attend)(const struct tnd_query_panel *panel);
    /** rows[r][i] = sums[r][i] / weight[r]; 0 where nothing was seen. */
    void (*finish)(const struct tnd_query_panel *panel, float *const *rows);
    struct tnd_attention_words words; /* attend is NULL: not supported */
};

/** In plain C. */
extern const struct tnd_attention_kernels tnd_attention_scalar;

#endif
