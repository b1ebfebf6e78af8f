/* SPDX-License-Identifier: MIT
 * Attention of the queries of one token: for single tokens, and for tokens of different texts,
 * which share no keys. The tiles of TND_KEYS keys of which the token sees any are processed in
 * chunks of a few tiles. A chunk gives each query a part: largest score, sum of weights, weighted
 * values. Parts are added in the order of the chunks, whichever thread computes them. So a query's
 * bits depend neither on the threads nor on the position of its text's tiles in the cache. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_parts.h"
#include "base/tnd_assert.h"

enum {
    /* Keys that are counted together. A sum over a multiple of these keys of a tile has the same
     * bits as one over the whole tile, since the rest adds zeros. */
    AT_ONCE = 16,
    CHUNK = TND_FEW_KEYS / TND_KEYS, /* tiles */
    PART_HEADER = 64,                /* bytes, so that sums begin at a cache line */
    STEP = 16 /* keys that are converted to floats together, so that they stay in the cache */
};

/* The part of some keys in a query's result. Its sums follow after PART_HEADER bytes. */
struct part {
    double weight; /* sum of exponentials */
    /* largest score; -infinity: no key is seen, and `weight` counts only if it is NaN */
    float largest;
    float unused;
};

/* A tile with keys that the token sees. */
struct seen {
    int32_t tile;
    int16_t n;        /* keys up to the last visible one, or a few more */
    int16_t is_whole; /* all of its keys are visible */
};

/* The queries being computed: some rows of some KV heads. */
struct block {
    const struct tnd_attention *a;
    struct tnd_attention_rows rows;
    int64_t token;
    size_t part_bytes;
    /* scratch */
    char *totals;      /* {rows, KV heads}: parts so far */
    char *parts;       /* {rows}: of the present chunk */
    float *queries;    /* {rows, KV heads}, padded, as tnd_few_kernels wants them */
    float *scores;     /* {TND_FEW_STRIDE, rows} */
    float *place;      /* {TND_FEW_KEYS}: mask, added to the scores */
    float *tile;       /* {head or value, TND_KEYS}: rows converted for the kernels */
    struct seen *seen; /* {tiles} */
    /* of the present chunk */
    const struct seen *tiles;
    int n_tiles, n_keys;
    const float *mask; /* added to scores; NULL: all 0 */
};

size_t tnd_attend_part_bytes(const struct tandem_tensor *node)
{
    return PART_HEADER + tnd_attention_padded(node->src[2]->ne[0]) * sizeof(float);
}

static float *sums_of(void *part)
{
    return (float *)(void *)((char *)part + PART_HEADER);
}

static int64_t tiles_of(const struct tandem_tensor *node)
{
    return (node->src[1]->ne[1] + TND_KEYS - 1) / TND_KEYS;
}

int64_t tnd_attend_chunks(const struct tandem_tensor *node)
{
    return (tiles_of(node) + CHUNK - 1) / CHUNK;
}

size_t tnd_attend_rows_scratch(const struct tandem_tensor *node)
{
    const size_t key = tnd_attention_padded(node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(node->src[2]->ne[0]);
    const size_t rows = TND_FEW_ROWS;
    return rows * (TND_ROW_HEADS + 1) * tnd_attend_part_bytes(node) +
           (rows * (TND_ROW_HEADS * key + TND_FEW_STRIDE) + TND_FEW_KEYS +
            TND_KEYS * (key > value ? key : value)) *
               sizeof(float) +
           (size_t)tiles_of(node) * sizeof(struct seen);
}

static void lay_out(struct block *block, const struct tnd_attention *a)
{
    const size_t key = tnd_attention_padded(a->node->src[1]->ne[0]);
    const size_t value = tnd_attention_padded(a->node->src[2]->ne[0]);
    const size_t rows = TND_FEW_ROWS;
    block->a = a;
    block->part_bytes = tnd_attend_part_bytes(a->node);
    block->totals = a->scratch;
    block->parts = block->totals + rows * TND_ROW_HEADS * block->part_bytes;
    block->queries = (float *)(void *)(block->parts + rows * block->part_bytes);
    block->scores = block->queries + rows * TND_ROW_HEADS * key;
    block->place = block->scores + rows * TND_FEW_STRIDE;
    block->tile = block->place + TND_FEW_KEYS;
    block->seen = (struct seen *)(void *)(block->tile + TND_KEYS * (key > value ? key : value));
}

/* ---- what a token sees ---- */

/* Counts the visible keys of n; *out_end: index after the last of them, or a few more. */
static int count_seen(const int32_t *orders, int n, int32_t first, int32_t last, int *out_end)
{
    int n_seen = 0;
    *out_end = 0;
    for (int i = 0; i < n; i += AT_ONCE) {
        int n_here = 0;
        if (n - i >= AT_ONCE) { /* the usual case, without branches */
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

static int sees_any(const float *mask, int n)
{
    for (int i = 0; i < n; i++) {
        if (mask[i] != -INFINITY) {
            return n;
        }
    }
    return 0;
}

/* Lists the tiles with keys that the token sees, in order. Returns their number. */
static int64_t look(const struct tandem_tensor *node, int64_t token, struct seen *out)
{
    const int64_t n_keys = node->src[1]->ne[1];
    const int32_t *orders = tnd_attention_orders(node);
    const float *row = tnd_attention_mask(node, token);
    const int32_t last = orders != NULL ? orders[n_keys + token] : 0;
    const int32_t first = orders != NULL ? tnd_attention_first(node, last) : 0;
    int64_t n_tiles = 0;
    for (int64_t t = 0; t < n_keys; t += TND_KEYS) {
        const int n = n_keys - t < TND_KEYS ? (int)(n_keys - t) : TND_KEYS;
        int end = n;
        int n_seen = n;
        if (orders != NULL) {
            n_seen = count_seen(orders + t, n, first, last, &end);
        } else if (row != NULL) {
            end = sees_any(row + t, n);
        }
        if (end > 0) {
            out[n_tiles++] = (struct seen){(int32_t)(t / TND_KEYS), (int16_t)end,
                                           (int16_t)(row == NULL && n_seen == n)};
        }
    }
    return n_tiles;
}

static int keys_of(const struct block *block, int i)
{
    return i < block->n_tiles - 1 ? TND_KEYS : block->tiles[i].n;
}

/* Fills in the mask that is added to the scores of tile i of the chunk. */
static void place_tile(const struct block *block, int i, float *place)
{
    const struct tandem_tensor *node = block->a->node;
    const int32_t *orders = tnd_attention_orders(node);
    const float *row = tnd_attention_mask(node, block->token);
    const int64_t t = (int64_t)block->tiles[i].tile * TND_KEYS;
    const int n = keys_of(block, i);
    if (row != NULL) {
        memcpy(place, row + t, (size_t)n * sizeof(float));
        return;
    }
    const int32_t last = orders != NULL ? orders[node->src[1]->ne[1] + block->token] : 0;
    const int32_t first = orders != NULL ? tnd_attention_first(node, last) : 0;
    for (int j = 0; j < n; j++) {
        const int is_seen = orders == NULL || ((orders[t + j] <= last) & (orders[t + j] >= first));
        place[j] = is_seen != 0 ? 0.0f : -INFINITY;
    }
}

static void take_chunk(struct block *block, const struct seen *tiles, int64_t n)
{
    block->tiles = tiles;
    block->n_tiles = n < CHUNK ? (int)n : CHUNK;
    block->n_keys = (block->n_tiles - 1) * TND_KEYS + tiles[block->n_tiles - 1].n;
    block->mask = NULL;
    for (int i = 0; i < block->n_tiles; i++) {
        block->mask = tiles[i].is_whole ? block->mask : block->place;
    }
    for (int i = 0; i < block->n_tiles && block->mask != NULL; i++) {
        place_tile(block, i, block->place + i * TND_KEYS);
    }
}

/* ---- a KV head and a chunk ---- */

/* Converts rows to floats in block->tile, padded with zeros to a multiple of 16. */
static struct tnd_few_rows floats_of(const struct block *block, const struct tandem_tensor *a,
                                     int64_t kv_head, int64_t t, int n)
{
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    const size_t stride = tnd_attention_padded(a->ne[0]);
    const bool is_whole = a->type == TANDEM_TYPE_F32 || a->ne[0] % few->whole == 0;
    if (is_whole && few->floats[a->type] != NULL) {
        few->floats[a->type](tnd_row_at(a, t, kv_head, 0), a->nb[1], n, a->ne[0], block->tile,
                             (int64_t)stride);
    }
    for (int j = 0; j < n && !(is_whole && few->floats[a->type] != NULL); j++) {
        float *y = block->tile + (size_t)j * stride;
        tnd_attention_convert(block->a->kernels, a, t + j, kv_head, y);
        memset(y + a->ne[0], 0, (stride - (size_t)a->ne[0]) * sizeof(float));
    }
    return (struct tnd_few_rows){block->tile, stride * sizeof(float), n};
}

/* Whether kernels read the rows in their own type and place. */
static bool is_used_as_it_lies(const struct block *block, const struct tandem_tensor *a)
{
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    return few->scores[a->type] != NULL &&
           (a->type == TANDEM_TYPE_F32 || a->ne[0] % few->whole == 0);
}

/* Keys or values of tiles that are processed after the present ones, for prefetching. */
struct soon {
    const struct tandem_tensor *a;
    int64_t kv_head;
    const struct seen *tiles;
    int64_t n_tiles;
};

/* Rows of tile i, from `begin` on, to be prefetched: kernels prefetch some while they compute as
 * many of the present rows. The stride of a head's rows is a whole token's row of all heads, too
 * long for the hardware prefetcher. */
static struct tnd_few_soon rows_soon(const struct soon *soon, int i, int begin)
{
    const struct tandem_tensor *a = soon->a;
    const int n = i < soon->n_tiles ? soon->tiles[i].n : 0;
    if (begin >= n) {
        return (struct tnd_few_soon){.n = 0};
    }
    const int64_t t = (int64_t)soon->tiles[i].tile * TND_KEYS + begin;
    return (struct tnd_few_soon){tnd_row_at(a, t, soon->kv_head, 0), a->nb[1],
                                 tandem_type_row_bytes(a->type, a->ne[0]), n - begin};
}

/* Keys to prefetch: the next KV head's in this chunk; after the last head the first head's in the
 * next chunk. `end`: end of all tiles to be processed. */
static struct soon keys_after(const struct block *block, int head, const struct seen *end)
{
    const bool is_last = head + 1 == block->rows.n_heads;
    const struct seen *tiles = is_last ? block->tiles + block->n_tiles : block->tiles;
    const int64_t rest = end - tiles;
    return (struct soon){block->a->node->src[1], block->rows.kv_head + (is_last ? 0 : head + 1),
                         tiles, rest < CHUNK ? rest : CHUNK};
}

/* Number of queries from r on that a kernel takes at once. */
static int at_once(const struct block *block, int r)
{
    const int queries = block->a->kernels->few.queries;
    return block->rows.n - r < queries ? block->rows.n - r : queries;
}

/* Computes scores of some keys, from key j of tile i of the chunk on. */
static void score_rows(struct block *block, int head, int i, int j, const struct tnd_few_rows *rows,
                       enum tandem_type type, struct tnd_few_soon soon)
{
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    const int64_t n = block->a->node->src[1]->ne[0];
    const size_t padded = tnd_attention_padded(n);
    const float *queries = block->queries + (size_t)head * TND_FEW_ROWS * padded;
    for (int r = 0; r < block->rows.n; r += few->queries, soon.n = 0) {
        few->scores[type](queries + (size_t)r * padded, at_once(block, r), rows, n,
                          block->scores + r * TND_FEW_STRIDE + i * TND_KEYS + j, &soon);
    }
}

static void score(struct block *block, int head)
{
    const int64_t kv_head = block->rows.kv_head + head;
    const struct soon soon = {block->a->node->src[2], kv_head, block->tiles, block->n_tiles};
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    const struct tandem_tensor *k = block->a->node->src[1];
    const bool is_float = k->type == TANDEM_TYPE_F32 || k->type == TANDEM_TYPE_F16;
    const bool is_used = is_used_as_it_lies(block, k) &&
                         (block->rows.n < few->wide || (is_float && k->ne[0] % few->whole == 0));
    for (int i = 0; i < block->n_tiles; i++) {
        const int64_t t = (int64_t)block->tiles[i].tile * TND_KEYS;
        const int n = keys_of(block, i);
        const int step = is_used ? TND_KEYS : STEP;
        for (int j = 0; j < n; j += step) {
            const int n_here = n - j < step ? n - j : step;
            const struct tnd_few_rows rows =
                is_used ? (struct tnd_few_rows){tnd_row_at(k, t, kv_head, 0), k->nb[1], n}
                        : floats_of(block, k, kv_head, t + j, n_here);
            score_rows(block, head, i, j, &rows, is_used ? k->type : TANDEM_TYPE_F32,
                       rows_soon(&soon, i, j));
        }
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

/* Turns each query's scores into weights, and begins its part: largest score and sum of weights. */
static void weigh(struct block *block)
{
    const struct tnd_vec *vec = &block->a->kernels->vec;
    const float cap = block->a->node->params.attention.cap;
    const float factor = block->a->node->params.attention.scale;
    const float scale = cap > 0.0f ? 1.0f : factor;
    for (int r = 0; r < block->rows.n; r++) {
        float *scores = block->scores + r * TND_FEW_STRIDE;
        struct part *part = (struct part *)(void *)(block->parts + (size_t)r * block->part_bytes);
        if (cap > 0.0f) {
            vec->affine(scores, 0.0f, factor / cap, scores, block->n_keys);
            vec->unary[TANDEM_OP_TANH](scores, scores, block->n_keys);
            vec->affine(scores, 0.0f, cap, scores, block->n_keys);
        }
        part->largest = vec->scores(scores, block->mask, scale, scores, block->n_keys);
        if (part->largest > -INFINITY) {
            part->weight = vec->exp_sum(scores, part->largest, block->n_keys);
        } else { /* no visible key, unless some score is NaN */
            part->weight = has_nan(scores, block->n_keys) ? (double)NAN : 0.0;
        }
    }
}

static void add_values(struct block *block, int head, const struct soon *soon)
{
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    const struct tandem_tensor *v = block->a->node->src[2];
    const int64_t kv_head = block->rows.kv_head + head;
    const bool is_used = is_used_as_it_lies(block, v);
    for (int r = 0; r < TND_FEW_ROWS && r < block->rows.n + TND_FEW_QUERIES_MAX; r++) {
        memset(sums_of(block->parts + (size_t)r * block->part_bytes), 0,
               (size_t)v->ne[0] * sizeof(float));
    }
    for (int i = 0; i < block->n_tiles; i++) {
        const int64_t t = (int64_t)block->tiles[i].tile * TND_KEYS;
        const int n = keys_of(block, i);
        const struct tnd_few_rows rows =
            is_used ? (struct tnd_few_rows){tnd_row_at(v, t, kv_head, 0), v->nb[1], n}
                    : floats_of(block, v, kv_head, t, n);
        struct tnd_few_soon next = rows_soon(soon, i, 0);
        for (int r = 0; r < block->rows.n; r += few->queries, next.n = 0) {
            few->sums[is_used ? v->type : TANDEM_TYPE_F32](
                block->scores + r * TND_FEW_STRIDE + i * TND_KEYS, at_once(block, r), &rows,
                v->ne[0], sums_of(block->parts + (size_t)r * block->part_bytes),
                (int64_t)(block->part_bytes / sizeof(float)), &next);
        }
    }
}

/* ---- parts ---- */

/* Adds a part to the total; both are changed. */
static void add_part(const struct tnd_attention *a, void *total_bytes, void *part_bytes)
{
    struct part *total = total_bytes;
    struct part *part = part_bytes;
    const int64_t n = a->node->src[2]->ne[0];
    if (part->largest == -INFINITY) {
        total->weight += part->weight;
        return;
    }
    const float largest = part->largest > total->largest ? part->largest : total->largest;
    /* only one of the two shrinks; multiplying the other by 1 would not change its bits */
    float shrink = 1.0f;
    float grow = 1.0f;
    if (total->largest != largest) {
        shrink = expf(total->largest - largest); /* 0 for the first part */
        a->kernels->vec.affine(sums_of(total), 0.0f, shrink, sums_of(total), n);
    }
    if (part->largest != largest) {
        grow = expf(part->largest - largest);
        a->kernels->vec.affine(sums_of(part), 0.0f, grow, sums_of(part), n);
    }
    a->kernels->vec.binary[TANDEM_OP_ADD](sums_of(total), sums_of(part), sums_of(total), n);
    total->weight = total->weight * (double)shrink + part->weight * (double)grow;
    total->largest = largest;
}

static void begin_total(const struct tnd_attention *a, void *total)
{
    *(struct part *)total = (struct part){.weight = 0.0, .largest = -INFINITY};
    memset(sums_of(total), 0, (size_t)a->node->src[2]->ne[0] * sizeof(float));
}

static void finish(const struct tnd_attention *a, void *total, int64_t kv_head, int64_t row)
{
    /* queries without visible keys get zeros; a NaN weight is kept */
    double weight = ((struct part *)total)->weight;
    if (weight != 0.0 && tnd_attention_sinks_of(a->node) != NULL) {
        const float sink = tnd_attention_sink(a, kv_head, row);
        weight += exp((double)sink - (double)((struct part *)total)->largest);
    }
    const float factor = weight == 0.0 ? 0.0f : (float)(1.0 / weight);
    a->kernels->vec.affine(sums_of(total), 0.0f, factor, tnd_attention_result(a, kv_head, row),
                           a->node->src[2]->ne[0]);
}

/* ---- blocks ---- */

static void *total_of(const struct block *block, int head, int row)
{
    return block->totals + (size_t)(head * block->rows.n + row) * block->part_bytes;
}

static void begin(struct block *block)
{
    const struct tnd_few_kernels *few = &block->a->kernels->few;
    const int64_t n = block->a->node->src[1]->ne[0];
    const size_t padded = tnd_attention_padded(n);
    for (int head = 0; head < block->rows.n_heads; head++) {
        for (int r = 0; r < block->rows.n; r += few->queries) {
            const float *rows[TND_FEW_QUERIES_MAX];
            for (int i = 0; i < at_once(block, r); i++) {
                rows[i] = tnd_attention_query(block->a, block->rows.kv_head + head,
                                              block->rows.first + r + i);
            }
            few->lay(rows, at_once(block, r), n,
                     block->queries + (size_t)(head * TND_FEW_ROWS + r) * padded);
        }
        for (int r = 0; r < block->rows.n; r++) {
            begin_total(block->a, total_of(block, head, r));
        }
    }
}

static char *shared_part(const struct tnd_attention *a, int64_t kv_head, int64_t row, int64_t chunk)
{
    const int64_t rows = a->node->ne[2] * a->group;
    const int64_t i = (kv_head * rows + row) * tnd_attend_chunks(a->node) + chunk;
    return a->parts + (size_t)i * tnd_attend_part_bytes(a->node);
}

/* Adds the KV head's parts of a chunk to the totals, or stores them for tnd_attend_join. */
static void hand_on(struct block *block, int head, int64_t chunk)
{
    for (int r = 0; r < block->rows.n; r++) {
        char *part = block->parts + (size_t)r * block->part_bytes;
        if (block->a->parts == NULL) {
            add_part(block->a, total_of(block, head, r), part);
        } else {
            memcpy(shared_part(block->a, block->rows.kv_head + head, block->rows.first + r, chunk),
                   part, block->part_bytes);
        }
    }
}

void tnd_attend_rows(const struct tnd_attention *attention, const struct tnd_attention_rows *rows)
{
    struct block block = {.rows = *rows, .token = rows->first / attention->group};
    TND_ASSERT(rows->n <= TND_FEW_ROWS && rows->n_heads <= TND_ROW_HEADS);
    TND_ASSERT((rows->first + rows->n - 1) / attention->group == block.token);
    lay_out(&block, attention);
    begin(&block);
    const int64_t n = look(attention->node, block.token, block.seen);
    const int64_t end = rows->chunk + rows->n_chunks;
    const struct seen *last = block.seen + (end * CHUNK < n ? end * CHUNK : n);
    for (int64_t chunk = rows->chunk; chunk < end && chunk * CHUNK < n; chunk++) {
        take_chunk(&block, block.seen + chunk * CHUNK, n - chunk * CHUNK);
        for (int head = 0; head < rows->n_heads; head++) {
            score(&block, head);
            weigh(&block);
            const struct soon soon = keys_after(&block, head, last);
            add_values(&block, head, &soon);
            hand_on(&block, head, chunk);
        }
    }
    for (int i = 0; i < rows->n_heads * rows->n && attention->parts == NULL; i++) {
        finish(attention, total_of(&block, 0, i), rows->kv_head + i / rows->n,
               rows->first + i % rows->n);
    }
}

void tnd_attend_join(const struct tnd_attention *attention, int64_t kv_head, int64_t row)
{
    struct block block = {.token = row / attention->group};
    lay_out(&block, attention);
    const int64_t n = look(attention->node, block.token, block.seen);
    begin_total(attention, block.totals);
    for (int64_t chunk = 0; chunk * CHUNK < n; chunk++) {
        add_part(attention, block.totals, shared_part(attention, kv_head, row, chunk));
    }
    finish(attention, block.totals, kv_head, row);
}
