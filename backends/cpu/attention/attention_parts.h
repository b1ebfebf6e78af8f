/* SPDX-License-Identifier: MIT
 * What both implementations of attention on the CPU share (attention_rows.c: one query at a time;
 * attention_panels.c: many). A row is a query of one KV head: token * group + head within its
 * group. Keys are processed in tiles that begin at key 0 whatever the split, so results are bitwise
 * independent of the thread count. */
#ifndef TND_ATTENTION_PARTS_H
#define TND_ATTENTION_PARTS_H

#include <stdbool.h>

#include "backends/cpu/ops/cpu_ops.h"

enum {
    TND_QUERY_PANELS = 8, /* panels that share a tile */
    TND_ROW_HEADS = 4,    /* most KV heads that tnd_attend_rows computes together */
    TND_FEW_ROWS = 48 /* most rows that it computes together; a multiple of TND_FEW_QUERIES_MAX */
};

struct tnd_attention {
    const struct tnd_cpu_kernels *kernels;
    const struct tandem_tensor *node;
    int64_t group; /* query heads of a KV head */
    void *scratch; /* this worker's own */
    char *parts;   /* shared: {chunks, rows, KV heads}; NULL: each row is computed by one worker */
};

/* The same rows of adjacent KV heads, all of one token, and the chunks of visible keys to
 * process. */
struct tnd_attention_rows {
    int64_t kv_head, first;
    int64_t chunk, n_chunks;
    int n_heads; /* up to TND_ROW_HEADS */
    int n;       /* up to TND_FEW_ROWS */
};

/** Computes the rows' results, or leaves their parts of these chunks in attention->parts. */
void tnd_attend_rows(const struct tnd_attention *attention, const struct tnd_attention_rows *rows);
/** Adds up a row's parts; bitwise equal to one worker computing all chunks. */
void tnd_attend_join(const struct tnd_attention *attention, int64_t kv_head, int64_t row);
size_t tnd_attend_rows_scratch(const struct tandem_tensor *node);
/** Bytes of a row's part of a chunk. */
size_t tnd_attend_part_bytes(const struct tandem_tensor *node);
/** Maximum number of chunks of a token. */
int64_t tnd_attend_chunks(const struct tandem_tensor *node);

/* Consecutive panels of a KV head. A panel is kernels->attention.queries rows, counted from row 0.
 */
struct tnd_query_panels {
    int64_t kv_head, first;
    int n; /* up to TND_QUERY_PANELS */
};

/** Whether queries of a panel belong to different texts, so that tnd_attend_rows must compute
 * it. */
bool tnd_attention_is_far_apart(const struct tnd_attention *attention, int64_t panel);
/** Computes panels, except those that are far apart; prefetches operands of `next` meanwhile. */
void tnd_attend_panels(const struct tnd_attention *attention, const struct tnd_query_panels *panels,
                       const struct tnd_query_panels *next);
size_t tnd_attend_panels_scratch(const struct tandem_tensor *node);

/** Row t of a KV head's keys or values as floats. */
void tnd_attention_convert(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *a,
                           int64_t t, int64_t kv_head, float *y);

/** Positions of keys (T) and queries (M) in their texts; NULL if the mask is not given by
 * positions. */
const int32_t *tnd_attention_orders(const struct tandem_tensor *node);
/** The first position visible to a query at position `last`. */
int32_t tnd_attention_first(const struct tandem_tensor *node, int32_t last);
/** Row of token m in the mask that is added to the scores; NULL when there is none. */
const float *tnd_attention_mask(const struct tandem_tensor *node, int64_t m);

static inline size_t tnd_attention_padded(int64_t n)
{
    return ((size_t)n + 15) / 16 * 16;
}

static inline const float *tnd_attention_query(const struct tnd_attention *a, int64_t kv_head,
                                               int64_t row)
{
    const int64_t head = kv_head * a->group + row % a->group;
    return (const float *)(void *)tnd_row_at(a->node->src[0], row / a->group, head, 0);
}

/* The sink: an additional score of a row's head, without a value. */
static inline float tnd_attention_sink(const struct tnd_attention *a, int64_t kv_head, int64_t row)
{
    const float *sinks = tnd_attention_sinks_of(a->node)->data;
    return sinks[kv_head * a->group + row % a->group];
}

static inline float *tnd_attention_result(const struct tnd_attention *a, int64_t kv_head,
                                          int64_t row)
{
    const int64_t head = kv_head * a->group + row % a->group;
    return (float *)(void *)tnd_row_at(a->node, head, row / a->group, 0);
}

#endif
