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
    TILE = 64,    /* keys at a time: with heads of 128 values, keys and values stay in L2 */
    QUERIES = 64, /* that share a tile at most */
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
    float *scores; /* {TILE} */
    float *mask;   /* {TILE} */
    float *keys;   /* {head, TILE}; unused for F32 */
    float *turned; /* {TILE, head} */
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
    return (2 * TILE + TILE * (2 * key + value) + QUERIES * value) * sizeof(float);
}

static void lay_out(struct block *block, float *scratch)
{
    const size_t key = padded(block->node->src[1]->ne[0]);
    const size_t value = padded(block->node->src[2]->ne[0]);
    block->scores = scratch;
    block->mask = block->scores + TILE;
    block->keys = block->mask + TILE;
    block->turned = block->keys + TILE * key;
    block->values = block->turned + TILE * key;
    block->sums = block->values + TILE * value;
}

/* Rows t .. t + n - 1 of a KV head as floats: where they are, or converted into `place`. Sets the
 * stride in floats. */
static const float *tile_of(const struct block *block, const struct tandem_tensor *a, int64_t t,
                            int n, float *place, int64_t *out_stride)
{
    const char *from = tnd_row_at(a, t, block->kv_head, 0);
    if (a->type == TANDEM_TYPE_F32) {
        *out_stride = (int64_t)(a->nb[1] / sizeof(float));
        return (const float *)(const void *)from;
    }
    const int64_t stride = (int64_t)padded(a->ne[0]);
    for (int i = 0; i < n; i++, from += a->nb[1]) {
        if (a->type == TANDEM_TYPE_F16) {
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

/* Exchanges keys and their values, 8 rows at a time. */
static const float *turn(const struct block *block, const float *keys, int64_t stride, int n)
{
    const int64_t length = block->node->src[1]->ne[0];
    for (int j0 = 0; j0 < n; j0 += 8) {
        const int end = n - j0 < 8 ? n : j0 + 8;
        for (int64_t i = 0; i < length; i++) {
            float *to = block->turned + i * TILE;
            for (int j = j0; j < end; j++) {
                to[j] = keys[j * stride + i];
            }
        }
    }
    return block->turned;
}

/* What token m sees of keys t .. t + n - 1. False: nothing. Sets the row to add, NULL: all 0. */
static bool mask_of(const struct block *block, int64_t m, int64_t t, int n, const float **out_row)
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
    const int32_t *orders = mask->data;
    const int64_t order = orders[block->node->src[1]->ne[1] + m];
    int n_seen = 0;
    for (int i = 0; i < n; i++) {
        const int64_t distance = order - orders[t + i];
        const bool is_seen = distance >= 0 && distance < block->node->params.attention.window;
        block->mask[i] = is_seen ? 0.0f : -INFINITY;
        n_seen += is_seen;
    }
    *out_row = n_seen < n ? block->mask : NULL;
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

/* Query r of the block meets one tile. */
static void meet(struct block *block, int r, int64_t t, int n, const float *keys,
                 int64_t key_stride, const float *values, int64_t value_stride)
{
    const struct tnd_vec *vec = block->vec;
    const struct tandem_tensor *q = block->node->src[0];
    const int64_t n_values = block->node->ne[0];
    const int64_t row = block->first + r;
    const int64_t head = block->kv_head * block->group + row % block->group;
    const float *x = (const float *)(void *)tnd_row_at(q, row / block->group, head, 0);
    float *sums = block->sums + (size_t)r * padded(n_values);
    const float *mask;
    if (!mask_of(block, row / block->group, t, n, &mask)) {
        return;
    }
    if (block->is_turned) {
        memset(block->scores, 0, (size_t)n * sizeof(float));
        vec->add_rows(x, keys, key_stride, block->scores, q->ne[0], n);
    } else {
        vec->dots(x, keys, key_stride, block->scores, n, q->ne[0]);
    }
    const float largest =
        vec->scores(block->scores, mask, block->node->params.attention.scale, block->scores, n);
    if (largest == -INFINITY) { /* nothing to see, unless what there is is no number */
        block->weight[r] = has_nan(block->scores, n) ? (double)NAN : block->weight[r];
        return;
    }
    if (largest > block->largest[r]) {
        const float shrink = expf(block->largest[r] - largest); /* 0 at the first tile */
        block->weight[r] *= (double)shrink;
        vec->affine(sums, 0.0f, shrink, sums, n_values);
        block->largest[r] = largest;
    }
    block->weight[r] += vec->exp_sum(block->scores, block->largest[r], n);
    vec->add_rows(block->scores, values, value_stride, sums, n, n_values);
}

/* Whether any query of the block sees something of a tile. */
static bool is_seen(const struct block *block, int64_t t, int n)
{
    const float *ignored;
    const int64_t last = (block->first + block->n - 1) / block->group;
    for (int64_t m = block->first / block->group; m <= last; m++) {
        if (mask_of(block, m, t, n, &ignored)) {
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
        int64_t key_stride, value_stride;
        if (!is_seen(block, t, n)) {
            continue;
        }
        const float *keys = tile_of(block, k, t, n, block->keys, &key_stride);
        if (block->is_turned) {
            keys = turn(block, keys, key_stride, n);
            key_stride = TILE;
        }
        const float *values = tile_of(block, v, t, n, block->values, &value_stride);
        for (int r = 0; r < block->n; r++) {
            meet(block, r, t, n, keys, key_stride, values, value_stride);
        }
    }
    for (int r = 0; r < block->n; r++) {
        const int64_t row = block->first + r;
        const int64_t head = block->kv_head * block->group + row % block->group;
        float *y = (float *)(void *)tnd_row_at(block->node, head, row / block->group, 0);
        /* who saw nothing gets zeros; a weight that is no number goes on */
        const float factor = block->weight[r] == 0.0 ? 0.0f : (float)(1.0 / block->weight[r]);
        block->vec->affine(block->sums + (size_t)r * padded(n_values), 0.0f, factor, y, n_values);
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
