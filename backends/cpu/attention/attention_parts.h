/* SPDX-License-Identifier: MIT
 * What the two ways of attention on the CPU share (attention_rows.c: one query at a time;
 * attention_panels.c: many). A row is a query of one KV head: token * group + head of its group.
 * Keys are met in tiles that begin at key 0 whatever the split, so a query's bits do not depend on
 * the thread count. */
#ifndef TND_ATTENTION_PARTS_H
#define TND_ATTENTION_PARTS_H

#include <stdbool.h>

#include "backends/cpu/ops/cpu_ops.h"

enum {
    TND_QUERY_PANELS = 8, /* that share a tile */
    TND_ROW_HEADS = 4     /* KV heads that tnd_attend_rows computes together, at most */
};

struct tnd_attention {
    const struct tnd_cpu_kernels *kernels;
    const struct tandem_tensor *node;
    int64_t group; /* query heads of a KV head */
    void *scratch; /* of this worker */
};

/* The same rows of adjacent KV heads. */
struct tnd_attention_rows {
    int64_t kv_head, first;
    int n_heads; /* up to TND_ROW_HEADS */
    int n;       /* up to TND_PANEL_QUERIES_MAX */
};

void tnd_attend_rows(const struct tnd_attention *attention, const struct tnd_attention_rows *rows);
size_t tnd_attend_rows_scratch(const struct tandem_tensor *node);

/* Some panels of a KV head, a panel being kernels->attention.queries rows, from row 0 on. */
struct tnd_query_panels {
    int64_t kv_head, first;
    int n; /* up to TND_QUERY_PANELS */
};

/** Whether queries of a panel are of different texts: it is for tnd_attend_rows then. */
bool tnd_attention_is_far_apart(const struct tnd_attention *attention, int64_t panel);
/** Computes some panels, but for those that are far apart. What those after them will read is
 *  brought nearer meanwhile. */
void tnd_attend_panels(const struct tnd_attention *attention, const struct tnd_query_panels *panels,
                       const struct tnd_query_panels *next);
size_t tnd_attend_panels_scratch(const struct tandem_tensor *node);

/** Row t of a KV head's keys or values as floats. */
void tnd_attention_convert(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *a,
                           int64_t t, int64_t kv_head, float *y);

/** Places in their texts of keys (T) and queries (M), NULL where the mask is no such. */
const int32_t *tnd_attention_orders(const struct tandem_tensor *node);
/** The first place that a query at `last` sees. */
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

static inline float *tnd_attention_result(const struct tnd_attention *a, int64_t kv_head,
                                          int64_t row)
{
    const int64_t head = kv_head * a->group + row % a->group;
    return (float *)(void *)tnd_row_at(a->node, head, row / a->group, 0);
}

#endif
