/* SPDX-License-Identifier: MIT
 * Fused attention. Keys and values pass once, a tile at a time, by some queries that share a KV
 * head; each query keeps its running maximum, sum and weighted values (online soft_max, Milakov and
 * Gimelshein 2018). Tiles begin at key 0 whatever the split, so a query's bits depend neither on
 * the thread count nor on the queries beside it. */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/kernels.h"
#include "base/tnd_status.h"

enum {
    TILE = 64,     /* keys at a time: with heads of 128 values, keys and values stay in L2 */
    QUERIES = 128, /* that share a tile at most */
    /* From so many queries of a KV head on, keys are turned: lanes are keys then and nothing is
     * summed across lanes. It goes by the node, not by the block, so that bits do not change. */
    TURNED_QUERIES = 16
};

/* Queries in hand: rows of one KV head in the order token, head of its group. */
struct block {
    const struct tnd_vec *vec;
    const struct tandem_tensor *node;
    int64_t kv_head, group; /* query heads of a KV head */
    int64_t first;          /* row: token * group + head of the group */
    int n;
    bool is_turned;
    /* scratch */
    float *scores; /* {TILE, 4} */
    float *mask;   /* {TILE, 4} */
    float *keys;   /* {head, TILE}; unused for F32 */
    float *turned; /* {TILE, head} */
    float *strip;  /* {TND_LANES_MAX, head}: some of them, turned */
    float *values; /* {value, TILE} */
    float *sums;   /* {value, QUERIES}: weighted values so far */
    float largest[QUERIES];
    double weight[QUERIES]; /* sum of exponentials so far */
};

static size_t padded(int64_t n)
{
    return ((size_t)n + 15) / 16 * 16;
}

size_t tnd_cpu_attention_scratch(const struct tandem_tensor *node)
{
    const size_t key = padded(node->src[1]->ne[0]);
    const size_t value = padded(node->src[2]->ne[0]);
    return (8 * TILE + TILE * (2 * key + value) + TND_LANES_MAX * key + QUERIES * value) *
           sizeof(float);
}

static void lay_out(struct block *block, float *scratch)
{
    const size_t key = padded(block->node->src[1]->ne[0]);
    const size_t value = padded(block->node->src[2]->ne[0]);
    block->scores = scratch;
    block->mask = block->scores + 4 * TILE;
    block->keys = block->mask + 4 * TILE;
    block->turned = block->keys + TILE * key;
    block->strip = block->turned + TILE * key;
    block->values = block->strip + TND_LANES_MAX * key;
    block->sums = block->values + TILE * value;
}

/* Rows t .. t + n - 1 of a KV head as floats: where they are, or converted into `place`. Sets the
 * stride in floats. */
static const float *tile_of(const struct block *block, const struct tandem_tensor *a, int64_t t,
                            int n, bool is_used_often, float *place, int64_t *out_stride)
{
    const char *from = tnd_row_at(a, t, block->kv_head, 0);
    if (a->type == TANDEM_TYPE_F32 && !is_used_often) {
        *out_stride = (int64_t)(a->nb[1] / sizeof(float));
        return (const float *)(const void *)from;
    }
    const int64_t stride = (int64_t)padded(a->ne[0]);
    for (int i = 0; i < n; i++, from += a->nb[1]) {
        if (a->type == TANDEM_TYPE_F32) { /* rows of other heads between would waste the cache */
            memcpy(place + i * stride, from, (size_t)a->ne[0] * sizeof(float));
        } else if (a->type == TANDEM_TYPE_F16) {
            block->vec->f16_to_f32((const uint16_t *)(const void *)from, place + i * stride,
                                   a->ne[0]);
        } else if (a->type == TANDEM_TYPE_BF16) {
            block->vec->bf16_to_f32((const uint16_t *)(const void *)from, place + i * stride,
                                    a->ne[0]);
        } else {
            tnd_cpu_kernels()->dequantize[a->type](from, place + i * stride, a->ne[0]);
        }
    }
    *out_stride = stride;
    return place;
}

/* Exchanges keys and their values: whole strips by the decoder that brings rows of weights into
 * lanes, the rest one by one. */
static const float *turn(const struct block *block, const float *keys, int64_t stride, int n)
{
    const int64_t length = block->node->src[1]->ne[0];
    const struct tnd_kernels_f *kernels = &tnd_cpu_kernels()->f;
    const int lanes = kernels->lanes;
    int j = 0;
    for (; j + lanes <= n && length % 8 == 0 && lanes > 1; j += lanes) {
        kernels->decode[TANDEM_TYPE_F32]((const uint8_t *)(keys + j * stride),
                                         (size_t)stride * sizeof(float), length, block->strip);
        for (int64_t i = 0; i < length; i++) {
            memcpy(block->turned + i * TILE + j, block->strip + i * lanes,
                   (size_t)lanes * sizeof(float));
        }
    }
    for (; j < n; j++) {
        for (int64_t i = 0; i < length; i++) {
            block->turned[i * TILE + j] = keys[j * stride + i];
        }
    }
    return block->turned;
}

/* What token m sees of keys t .. t + n - 1. False: nothing. Sets the row to add (made in `place`
 * when there is none), NULL: all 0. */
static bool mask_of(const struct block *block, int64_t m, int64_t t, int n, float *place,
                    const float **out_row)
{
    const struct tandem_tensor *mask = block->node->n_src > 3 ? block->node->src[3] : NULL;
    *out_row = NULL;
    if (mask == NULL) {
        return true;
    }
    if (mask->type != TANDEM_TYPE_I32) {
        const float *row = (const float *)(void *)tnd_row_at(mask, m, 0, 0) + t;
        *out_row = row;
        for (int i = 0; i < n; i++) {
            if (row[i] != -INFINITY) {
                return true;
            }
        }
        return false;
    }
    const int32_t *orders = (const int32_t *)mask->data + t;
    const int32_t last = ((const int32_t *)mask->data)[block->node->src[1]->ne[1] + m];
    const int64_t window = block->node->params.attention.window;
    const int32_t first =
        window > (int64_t)last - INT32_MIN ? INT32_MIN : (int32_t)(last - window + 1);
    int n_seen = 0;
    for (int i = 0; i < n; i++) {
        const int is_seen = (orders[i] <= last) & (orders[i] >= first);
        place[i] = is_seen != 0 ? 0.0f : -INFINITY;
        n_seen += is_seen;
    }
    *out_row = n_seen < n ? place : NULL;
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

/* A tile of keys and values in hand. */
struct tile {
    int64_t first;
    int n;
    const float *keys, *values; /* turned keys: values of the head by keys */
    int64_t key_stride, value_stride;
};

static const float *query_of(const struct block *block, int r)
{
    const int64_t row = block->first + r;
    const int64_t head = block->kv_head * block->group + row % block->group;
    return (const float *)(void *)tnd_row_at(block->node->src[0], row / block->group, head, 0);
}

static float *sums_of(const struct block *block, int r)
{
    return block->sums + (size_t)r * padded(block->node->ne[0]);
}

/* Turns the scores of query r into weights of the tile's values. False: nothing is to be added. */
static bool weigh(struct block *block, int r, const float *mask, float *scores, int n)
{
    const struct tnd_vec *vec = block->vec;
    const float largest = vec->scores(scores, mask, block->node->params.attention.scale, scores, n);
    if (largest == -INFINITY) { /* nothing to see, unless what there is is no number */
        block->weight[r] = has_nan(scores, n) ? (double)NAN : block->weight[r];
        return false;
    }
    if (largest > block->largest[r]) {
        const float shrink = expf(block->largest[r] - largest); /* 0 at the first tile */
        float *sums = sums_of(block, r);
        block->weight[r] *= (double)shrink;
        vec->affine(sums, 0.0f, shrink, sums, block->node->ne[0]);
        block->largest[r] = largest;
    }
    block->weight[r] += vec->exp_sum(scores, block->largest[r], n);
    return true;
}

/* Query r of the block meets one tile. */
static void meet(struct block *block, int r, const struct tile *tile)
{
    const struct tnd_vec *vec = block->vec;
    const int64_t length = block->node->src[0]->ne[0];
    const float *x = query_of(block, r);
    const float *mask;
    if (!mask_of(block, (block->first + r) / block->group, tile->first, tile->n, block->mask,
                 &mask)) {
        return;
    }
    if (block->is_turned) {
        memset(block->scores, 0, (size_t)tile->n * sizeof(float));
        vec->add_rows(x, tile->keys, tile->key_stride, block->scores, length, tile->n);
    } else {
        vec->dots(x, tile->keys, tile->key_stride, block->scores, tile->n, length);
    }
    if (weigh(block, r, mask, block->scores, tile->n)) {
        vec->add_rows(block->scores, tile->values, tile->value_stride, sums_of(block, r), tile->n,
                      block->node->ne[0]);
    }
}

/* Queries r .. r + 3 meet a tile of turned keys together, which gives the bits of one by one.
 * False: not all of them see the tile, they must go one by one. */
static bool meet_four(struct block *block, int r, const struct tile *tile)
{
    const struct tnd_vec *vec = block->vec;
    const float *mask[4];
    const float *x[4];
    float *scores[4];
    float *sums[4];
    bool adds = true;
    bool each[4];
    int64_t token = -1;
    for (int i = 0; i < 4; i++) {
        const int64_t before = token;
        token = (block->first + r + i) / block->group;
        if (i > 0 && token == before) { /* another head of the token before: it sees the same */
            mask[i] = mask[i - 1];
        } else if (!mask_of(block, token, tile->first, tile->n, block->mask + i * TILE, &mask[i])) {
            return false;
        }
        x[i] = query_of(block, r + i);
        scores[i] = block->scores + i * TILE;
        sums[i] = sums_of(block, r + i);
    }
    memset(block->scores, 0, 4 * TILE * sizeof(float));
    vec->add_rows_4(x, tile->keys, tile->key_stride, scores, block->node->src[0]->ne[0], tile->n);
    for (int i = 0; i < 4; i++) {
        each[i] = weigh(block, r + i, mask[i], scores[i], tile->n);
        adds = adds && each[i];
    }
    if (adds) {
        const float *const weights[4] = {scores[0], scores[1], scores[2], scores[3]};
        vec->add_rows_4(weights, tile->values, tile->value_stride, sums, tile->n,
                        block->node->ne[0]);
    }
    for (int i = 0; i < 4 && !adds; i++) {
        if (each[i]) {
            vec->add_rows(scores[i], tile->values, tile->value_stride, sums[i], tile->n,
                          block->node->ne[0]);
        }
    }
    return true;
}

/* Whether any query of the block sees something of a tile. */
static bool is_seen(const struct block *block, int64_t t, int n)
{
    const float *ignored;
    const int64_t last = (block->first + block->n - 1) / block->group;
    for (int64_t m = block->first / block->group; m <= last; m++) {
        if (mask_of(block, m, t, n, block->mask, &ignored)) {
            return true;
        }
    }
    return false;
}

static void run_block(struct block *block)
{
    const struct tandem_tensor *k = block->node->src[1];
    const struct tandem_tensor *v = block->node->src[2];
    const int64_t n_values = v->ne[0];
    for (int r = 0; r < block->n; r++) {
        block->largest[r] = -INFINITY;
        block->weight[r] = 0.0;
    }
    memset(block->sums, 0, (size_t)block->n * padded(n_values) * sizeof(float));
    for (int64_t t = 0; t < k->ne[1]; t += TILE) {
        const int n = k->ne[1] - t < TILE ? (int)(k->ne[1] - t) : TILE;
        struct tile tile = {.first = t, .n = n};
        if (!is_seen(block, t, n)) {
            continue;
        }
        tile.keys = tile_of(block, k, t, n, false, block->keys, &tile.key_stride);
        if (block->is_turned) {
            tile.keys = turn(block, tile.keys, tile.key_stride, n);
            tile.key_stride = TILE;
        }
        tile.values = tile_of(block, v, t, n, block->is_turned, block->values, &tile.value_stride);
        for (int r = 0; r < block->n;) {
            if (block->is_turned && block->n - r >= 4 && meet_four(block, r, &tile)) {
                r += 4;
            } else {
                meet(block, r++, &tile);
            }
        }
    }
    for (int r = 0; r < block->n; r++) {
        const int64_t row = block->first + r;
        const int64_t head = block->kv_head * block->group + row % block->group;
        float *y = (float *)(void *)tnd_row_at(block->node, head, row / block->group, 0);
        /* who saw nothing gets zeros; a weight that is no number goes on */
        const float factor = block->weight[r] == 0.0 ? 0.0f : (float)(1.0 / block->weight[r]);
        block->vec->affine(sums_of(block, r), 0.0f, factor, y, n_values);
    }
}

enum tandem_status tnd_cpu_attention(const struct tnd_vec *vec, const struct tandem_tensor *node,
                                     struct tandem_worker *worker)
{
    const int64_t kv_heads = node->src[1]->ne[2];
    const size_t scratch = tnd_cpu_attention_scratch(node);
    int64_t begin, end;
    if (worker->scratch_bytes < scratch) {
        return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, node->name,
                             (int64_t)worker->scratch_bytes, (int64_t)scratch,
                             "cpu attention: %zu bytes of scratch, needs %zu",
                             worker->scratch_bytes, scratch);
    }
    if (tandem_tensor_elements(node) == 0) {
        return TANDEM_OK;
    }
    struct block block = {.vec = vec, .node = node, .group = node->ne[1] / kv_heads};
    const int64_t rows = node->ne[2] * block.group; /* of one KV head */
    int64_t step = rows * kv_heads / worker->count; /* so that everybody gets a share */
    step = step < 1 ? 1 : step > QUERIES ? QUERIES : step;
    const int64_t blocks = (rows + step - 1) / step;
    block.is_turned = rows >= TURNED_QUERIES;
    lay_out(&block, worker->scratch);
    while (worker->next(worker, blocks * kv_heads, 1, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            block.kv_head = i / blocks;
            block.first = i % blocks * step;
            block.n = (int)(rows - block.first < step ? rows - block.first : step);
            run_block(&block);
        }
    }
    return TANDEM_OK;
}
