/* SPDX-License-Identifier: MIT
 * Attention of a few queries, one at a time: scores are dots of rows. For single tokens, and for
 * queries of different texts, which share no keys: what a token sees of a tile is found once for
 * all heads in hand, and most tiles are left at that. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_parts.h"
#include "base/tnd_assert.h"

/* Keys that are counted together; a sum over a part of a tile that consists of such has the bits of
 * one over all, as the rest adds zeros. */
enum { AT_ONCE = 16 };

/* Queries in hand: some rows of some KV heads. */
struct block {
    const struct tnd_attention *a;
    struct tnd_attention_rows rows;
    /* scratch */
    float *scores;  /* {TND_KEYS} */
    float *masks;   /* {TND_KEYS, TND_PANEL_QUERIES_MAX}: of each token */
    float *keys;    /* {head, TND_KEYS}; unused for F32, like values */
    float *values;  /* {value, TND_KEYS} */
    float *sums;    /* {value, rows, KV heads}: weighted values so far */
    float *largest; /* {rows, KV heads} */
    double *weight; /* {rows, KV heads}: sum of exponentials so far */
    /* of the tile in hand, of each token */
    const float *mask[TND_PANEL_QUERIES_MAX]; /* to add; NULL: all 0 */
    bool is_seen[TND_PANEL_QUERIES_MAX];
};

/* A tile of keys and values in hand. */
struct tile {
    const float *keys, *values;
    int64_t key_stride, value_stride;
};

size_t tnd_attend_rows_scratch(const struct tandem_tensor *node)
{
    const size_t key = tnd_attention_padded(node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(node->src[2]->ne[0]);
    const size_t rows = (size_t)TND_PANEL_QUERIES_MAX * TND_ROW_HEADS;
    return (TND_KEYS * (1 + TND_PANEL_QUERIES_MAX + key + value) + rows * (value + 1)) *
               sizeof(float) +
           rows * sizeof(double);
}

static void lay_out(struct block *block)
{
    const size_t key = tnd_attention_padded(block->a->node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(block->a->node->src[2]->ne[0]);
    const size_t rows = (size_t)TND_PANEL_QUERIES_MAX * TND_ROW_HEADS;
    block->weight = block->a->scratch;
    block->scores = (float *)(block->weight + rows);
    block->masks = block->scores + TND_KEYS;
    block->keys = block->masks + (size_t)TND_KEYS * TND_PANEL_QUERIES_MAX;
    block->values = block->keys + TND_KEYS * key;
    block->sums = block->values + TND_KEYS * value;
    block->largest = block->sums + rows * value;
}

/* Rows t .. t + n - 1 of a KV head as floats: where they are, or converted into `place`. Sets the
 * stride in floats. */
static const float *tile_of(const struct block *block, const struct tandem_tensor *a,
                            int64_t kv_head, int64_t t, int n, float *place, int64_t *out_stride)
{
    if (a->type == TANDEM_TYPE_F32) {
        *out_stride = (int64_t)(a->nb[1] / sizeof(float));
        return (const float *)(const void *)tnd_row_at(a, t, kv_head, 0);
    }
    *out_stride = (int64_t)tnd_attention_padded(a->ne[0]);
    for (int i = 0; i < n; i++) {
        tnd_attention_convert(block->a->kernels, a, t + i, kv_head, place + i * *out_stride);
    }
    return place;
}

/* How many of n keys somebody sees; *out_end: behind the last of them, or a few more. */
static int count_seen(const int32_t *orders, int n, int32_t first, int32_t last, int *out_end)
{
    int n_seen = 0;
    *out_end = 0;
    for (int i = 0; i < n; i += AT_ONCE) {
        int n_here = 0;
        if (n - i >= AT_ONCE) { /* nearly always: without branches */
            for (int j = 0; j < AT_ONCE; j++) {
                n_here += (orders[i + j] <= last) & (orders[i + j] >= first);
            }
        } else {
            for (int j = i; j < n; j++) {
                n_here += (orders[j] <= last) & (orders[j] >= first);
            }
        }
        n_seen += n_here;
        *out_end = n_here > 0 ? i + AT_ONCE : *out_end;
    }
    *out_end = *out_end < n ? *out_end : n;
    return n_seen;
}

/* What token m sees of keys t .. t + n - 1: nothing behind the first *out_end of them. Sets the row
 * to add (made in `place` when there is none), NULL: all 0. */
static void mask_of(const struct block *block, int64_t m, int64_t t, int n, float *place,
                    const float **out_row, int *out_end)
{
    const struct tandem_tensor *node = block->a->node;
    const int32_t *orders = tnd_attention_orders(node);
    const float *row = tnd_attention_mask(node, m);
    *out_row = NULL;
    *out_end = row != NULL ? 0 : n;
    if (row != NULL) {
        *out_row = row + t;
        for (int i = 0; i < n && *out_end == 0; i++) {
            *out_end = row[t + i] != -INFINITY ? n : 0;
        }
    } else if (orders != NULL) {
        const int32_t last = orders[node->src[1]->ne[1] + m];
        const int32_t first = tnd_attention_first(node, last);
        const int n_seen = count_seen(orders + t, n, first, last, out_end);
        for (int i = 0; i < n && 0 < n_seen && n_seen < n; i++) {
            const int is_seen = (orders[t + i] <= last) & (orders[t + i] >= first);
            place[i] = is_seen != 0 ? 0.0f : -INFINITY;
        }
        *out_row = n_seen < n ? place : NULL;
    }
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

static int64_t token_of(const struct block *block, int row)
{
    return (block->rows.first + row) / block->a->group;
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

/* What each token of the block sees of n keys. Returns how many of these anybody needs: nobody sees
 * those behind them. */
static int look(struct block *block, int64_t t, int n)
{
    const int64_t first = token_of(block, 0);
    const int n_tokens = (int)(token_of(block, block->rows.n - 1) - first + 1);
    int n_needed = 0;
    for (int m = 0; m < n_tokens; m++) {
        int end;
        mask_of(block, first + m, t, n, block->masks + (size_t)m * TND_KEYS, &block->mask[m], &end);
        block->is_seen[m] = end > 0;
        n_needed = end > n_needed ? end : n_needed;
    }
    return n_needed;
}

/* Queries of one KV head meet a tile. */
static void meet(struct block *block, int head, int64_t t, int n)
{
    const struct tnd_attention *a = block->a;
    const struct tnd_vec *vec = &a->kernels->vec;
    const struct tandem_tensor *node = a->node;
    const int64_t kv_head = block->rows.kv_head + head;
    struct tile tile;
    tile.keys = tile_of(block, node->src[1], kv_head, t, n, block->keys, &tile.key_stride);
    tile.values = tile_of(block, node->src[2], kv_head, t, n, block->values, &tile.value_stride);
    for (int i = 0; i < block->rows.n; i++) {
        const int64_t m = token_of(block, i) - token_of(block, 0);
        const int r = head * block->rows.n + i;
        if (!block->is_seen[m]) {
            continue;
        }
        vec->dots(tnd_attention_query(a, kv_head, block->rows.first + i), tile.keys,
                  tile.key_stride, block->scores, n, node->src[0]->ne[0]);
        if (weigh(block, r, block->mask[m], n)) {
            vec->add_rows(block->scores, tile.values, tile.value_stride, sums_of(block, r), n,
                          node->ne[0]);
        }
    }
}

static void finish(struct block *block, int head)
{
    const struct tnd_attention *a = block->a;
    for (int i = 0; i < block->rows.n; i++) {
        const int r = head * block->rows.n + i;
        /* who saw nothing gets zeros; a weight that is no number goes on */
        const float factor = block->weight[r] == 0.0 ? 0.0f : (float)(1.0 / block->weight[r]);
        a->kernels->vec.affine(
            sums_of(block, r), 0.0f, factor,
            tnd_attention_result(a, block->rows.kv_head + head, block->rows.first + i),
            a->node->src[2]->ne[0]);
    }
}

void tnd_attend_rows(const struct tnd_attention *attention, const struct tnd_attention_rows *rows)
{
    const int64_t n_keys = attention->node->src[1]->ne[1];
    struct block block = {.a = attention, .rows = *rows};
    TND_ASSERT(rows->n <= TND_PANEL_QUERIES_MAX && rows->n_heads <= TND_ROW_HEADS);
    lay_out(&block);
    for (int r = 0; r < rows->n * rows->n_heads; r++) {
        block.largest[r] = -INFINITY;
        block.weight[r] = 0.0;
        memset(sums_of(&block, r), 0, (size_t)attention->node->ne[0] * sizeof(float));
    }
    for (int64_t t = 0; t < n_keys; t += TND_KEYS) {
        const int n = look(&block, t, n_keys - t < TND_KEYS ? (int)(n_keys - t) : TND_KEYS);
        for (int head = 0; n > 0 && head < rows->n_heads; head++) {
            meet(&block, head, t, n);
        }
    }
    for (int head = 0; head < rows->n_heads; head++) {
        finish(&block, head);
    }
}
