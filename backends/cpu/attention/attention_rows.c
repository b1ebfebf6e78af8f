/* SPDX-License-Identifier: MIT
 * Attention of a few queries, one at a time: scores are dots of rows. For single tokens, and for
 * queries of different texts, which share no keys. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_parts.h"

/* Queries in hand. */
struct block {
    const struct tnd_attention *a;
    int64_t kv_head, first;
    int n;
    /* scratch */
    float *scores; /* {TND_KEYS} */
    float *mask;   /* {TND_KEYS} */
    float *keys;   /* {head, TND_KEYS}; unused for F32, like values */
    float *values; /* {value, TND_KEYS} */
    float *sums;   /* {value, TND_PANEL_QUERIES_MAX}: weighted values so far */
    float largest[TND_PANEL_QUERIES_MAX];
    double weight[TND_PANEL_QUERIES_MAX]; /* sum of exponentials so far */
};

/* A tile of keys and values in hand. */
struct tile {
    int64_t first;
    int n;
    const float *keys, *values;
    int64_t key_stride, value_stride;
};

size_t tnd_attend_rows_scratch(const struct tandem_tensor *node)
{
    const size_t key = tnd_attention_padded(node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(node->src[2]->ne[0]);
    return (2 * TND_KEYS + TND_KEYS * (key + value) + TND_PANEL_QUERIES_MAX * value) *
           sizeof(float);
}

static void lay_out(struct block *block)
{
    const size_t key = tnd_attention_padded(block->a->node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(block->a->node->src[2]->ne[0]);
    block->scores = block->a->scratch;
    block->mask = block->scores + TND_KEYS;
    block->keys = block->mask + TND_KEYS;
    block->values = block->keys + TND_KEYS * key;
    block->sums = block->values + TND_KEYS * value;
}

/* Rows t .. t + n - 1 of a KV head as floats: where they are, or converted into `place`. Sets the
 * stride in floats. */
static const float *tile_of(const struct block *block, const struct tandem_tensor *a, int64_t t,
                            int n, float *place, int64_t *out_stride)
{
    if (a->type == TANDEM_TYPE_F32) {
        *out_stride = (int64_t)(a->nb[1] / sizeof(float));
        return (const float *)(const void *)tnd_row_at(a, t, block->kv_head, 0);
    }
    *out_stride = (int64_t)tnd_attention_padded(a->ne[0]);
    for (int i = 0; i < n; i++) {
        tnd_attention_convert(block->a->kernels, a, t + i, block->kv_head, place + i * *out_stride);
    }
    return place;
}

/* What token m sees of keys t .. t + n - 1. False: nothing. Sets the row to add (made in `place`
 * when there is none), NULL: all 0. */
static bool mask_of(const struct block *block, int64_t m, int64_t t, int n, float *place,
                    const float **out_row)
{
    const struct tandem_tensor *node = block->a->node;
    const int32_t *orders = tnd_attention_orders(node);
    const float *row = tnd_attention_mask(node, m);
    int n_seen = 0;
    *out_row = NULL;
    if (row != NULL) {
        *out_row = row + t;
        for (int i = 0; i < n && n_seen == 0; i++) {
            n_seen += row[t + i] != -INFINITY;
        }
    } else if (orders != NULL) {
        const int32_t last = orders[node->src[1]->ne[1] + m];
        const int32_t first = tnd_attention_first(node, last);
        for (int i = 0; i < n; i++) {
            const int is_seen = (orders[t + i] <= last) & (orders[t + i] >= first);
            place[i] = is_seen != 0 ? 0.0f : -INFINITY;
            n_seen += is_seen;
        }
        *out_row = n_seen < n ? place : NULL;
    } else {
        n_seen = n;
    }
    return n_seen > 0;
}

static bool has_nan(const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        if (isnan(x[i])) {
            return true;
        }
    }
    return false;
}

static float *sums_of(const struct block *block, int r)
{
    return block->sums + (size_t)r * tnd_attention_padded(block->a->node->ne[0]);
}

/* Makes weights of the scores of query r. False: nothing is to be added. */
static bool weigh(struct block *block, int r, const float *mask, int n)
{
    const struct tnd_cpu_kernels *kernels = block->a->kernels;
    const struct tandem_tensor *node = block->a->node;
    float *scores = block->scores;
    const float largest =
        kernels->vec.scores(scores, mask, node->params.attention.scale, scores, n);
    if (largest == -INFINITY) { /* nothing to see, unless what there is is no number */
        block->weight[r] = has_nan(scores, n) ? (double)NAN : block->weight[r];
        return false;
    }
    if (largest > block->largest[r]) {
        const float shrink = expf(block->largest[r] - largest); /* 0 at the first tile */
        float *sums = sums_of(block, r);
        block->weight[r] *= (double)shrink;
        kernels->vec.affine(sums, 0.0f, shrink, sums, node->ne[0]);
        block->largest[r] = largest;
    }
    block->weight[r] += kernels->vec.exp_sum(scores, block->largest[r], n);
    return true;
}

/* Query r of the block meets one tile. */
static void meet(struct block *block, int r, const struct tile *tile)
{
    const struct tnd_attention *a = block->a;
    const float *x = tnd_attention_query(a, block->kv_head, block->first + r);
    const float *mask;
    if (!mask_of(block, (block->first + r) / a->group, tile->first, tile->n, block->mask, &mask)) {
        return;
    }
    a->kernels->vec.dots(x, tile->keys, tile->key_stride, block->scores, tile->n,
                         a->node->src[0]->ne[0]);
    if (weigh(block, r, mask, tile->n)) {
        a->kernels->vec.add_rows(block->scores, tile->values, tile->value_stride, sums_of(block, r),
                                 tile->n, a->node->ne[0]);
    }
}

/* Whether any query of the block sees something of a tile. */
static bool is_seen(const struct block *block, int64_t t, int n)
{
    const float *ignored;
    const int64_t last = (block->first + block->n - 1) / block->a->group;
    for (int64_t m = block->first / block->a->group; m <= last; m++) {
        if (mask_of(block, m, t, n, block->mask, &ignored)) {
            return true;
        }
    }
    return false;
}

void tnd_attend_rows(const struct tnd_attention *attention, int64_t kv_head, int64_t first, int n)
{
    const struct tandem_tensor *k = attention->node->src[1];
    const struct tandem_tensor *v = attention->node->src[2];
    struct block block = {.a = attention, .kv_head = kv_head, .first = first, .n = n};
    lay_out(&block);
    for (int r = 0; r < n; r++) {
        block.largest[r] = -INFINITY;
    }
    memset(block.sums, 0, (size_t)n * tnd_attention_padded(v->ne[0]) * sizeof(float));
    for (int64_t t = 0; t < k->ne[1]; t += TND_KEYS) {
        struct tile tile = {.first = t,
                            .n = k->ne[1] - t < TND_KEYS ? (int)(k->ne[1] - t) : TND_KEYS};
        if (!is_seen(&block, t, tile.n)) {
            continue;
        }
        tile.keys = tile_of(&block, k, t, tile.n, block.keys, &tile.key_stride);
        tile.values = tile_of(&block, v, t, tile.n, block.values, &tile.value_stride);
        for (int r = 0; r < n; r++) {
            meet(&block, r, &tile);
        }
    }
    for (int r = 0; r < n; r++) {
        /* who saw nothing gets zeros; a weight that is no number goes on */
        const float factor = block.weight[r] == 0.0 ? 0.0f : (float)(1.0 / block.weight[r]);
        attention->kernels->vec.affine(sums_of(&block, r), 0.0f, factor,
                                       tnd_attention_result(attention, kv_head, first + r),
                                       v->ne[0]);
    }
}
