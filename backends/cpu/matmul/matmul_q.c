/* SPDX-License-Identifier: MIT
 * Driver of quantised weights times quantised activations: a tile of rows is decoded part by part
 * of K into scratch memory that stays in the L1 cache, and multiplied by all tokens. Knows no
 * instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

enum {
    GROUPS = TND_KC_Q_SKINNY / 16,
    TAIL_ROW_BYTES = TND_KC_Q_SKINNY / 32 * 34 + 32, /* Q8_0 is the widest */
    SKINNY_TOKENS = 4,
    TOKENS_MAX = 16,
    SPAN = 128 /* values decoded between two prefetches, at least one block */
};

struct scratch {
    uint8_t values[TND_TILE_ROWS_MAX * TND_KC_Q_SKINNY];
    float scales[TND_TILE_ROWS_MAX * GROUPS];
    float mins[TND_TILE_ROWS_MAX * GROUPS];
    float y[TOKENS_MAX * TND_TILE_ROWS_MAX];
    uint8_t tail[TND_LANES_MAX * TAIL_ROW_BYTES];
};

/* The single token of tnd_gemv_q. */
struct gemv_scratch {
    int8_t x[TND_GEMV_K_MAX];
    float x_scale[TND_GEMV_K_MAX / TND_X_BLOCK];
    int32_t x_correction[TND_GEMV_K_MAX / TND_X_BLOCK];
    float x_sum[TND_GEMV_K_MAX / TND_X_BLOCK];
};

/* What is constant during a call. */
struct product {
    const struct tnd_kernels_q *kernels;
    const struct tnd_type_traits *traits;
    tnd_decode_q_fn *decode;
    tnd_gemm_q_fn *gemm;
    const uint8_t *w; /* blocks, K x N */
    size_t w_row_bytes;
    const struct tnd_x_block *x;
    size_t x_blocks; /* between tokens */
    float *y;
    size_t y_stride;
    int64_t m, n, k;
    int64_t group; /* values that share a scale */
    int64_t kc;    /* values of K decoded at a time */
    size_t values_panel, scales_panel;
    int tile_tokens;
};

size_t tnd_x_row_blocks(int64_t k)
{
    /* one more than needed: rows of 2^n blocks would compete for the same cache sets */
    return (size_t)(k / TND_X_BLOCK) + 1;
}

size_t tnd_matmul_q_scratch(void)
{
    size_t bytes = sizeof(struct gemv_scratch) > sizeof(struct scratch)
                       ? sizeof(struct gemv_scratch)
                       : sizeof(struct scratch);
    return (bytes + 63) / 64 * 64;
}

/* Prefetches share `part` of `parts` of the next tile. Hardware prefetchers cannot follow as many
 * streams as there are rows, but the rows of a tile are contiguous: they are fetched linearly, a
 * little with each decoded span. Inlined, because gcc considers calls of a function that only
 * prefetches as having no effect, and drops them. */
TND_INLINE void prefetch_next(const struct product *p, int64_t row, int64_t part, int64_t parts)
{
    int64_t tile_rows = (int64_t)p->kernels->lanes * p->kernels->panels;
    int64_t rows = tnd_min(tile_rows, p->n - row - tile_rows);
    if (rows <= 0) {
        return;
    }
    const uint8_t *next = p->w + (size_t)(row + tile_rows) * p->w_row_bytes;
    size_t lines = ((size_t)rows * p->w_row_bytes) / 64;
    size_t end = lines * (size_t)(part + 1) / (size_t)parts;
    for (size_t line = lines * (size_t)part / (size_t)parts; line < end; line++) {
        __builtin_prefetch(next + line * 64, 0, 3);
    }
}

/* Decodes `n` values from column k0 on of `n_rows` rows into the tile; missing rows are zeros. */
static void decode_tile(const struct product *p, struct scratch *s, int64_t row, int n_rows,
                        int64_t k0, int64_t n)
{
    int lanes = p->kernels->lanes;
    size_t offset = (size_t)(k0 / p->traits->block_values) * p->traits->block_bytes;
    size_t part_bytes = (size_t)(n / p->traits->block_values) * p->traits->block_bytes;
    TND_ASSERT(k0 % p->traits->block_values == 0 && n % p->traits->block_values == 0);
    TND_ASSERT(0 <= row && row + n_rows <= p->n && 0 <= n && n <= p->kc);
    for (int panel = 0; panel < p->kernels->panels; panel++) {
        int valid = n_rows - panel * lanes;
        const uint8_t *rows = p->w + (size_t)(valid > 0 ? row + panel * lanes : 0) * p->w_row_bytes;
        size_t row_bytes = p->w_row_bytes;
        rows += offset;
        if (valid < lanes) {
            memset(s->tail, 0, sizeof(s->tail));
            for (int r = 0; r < valid; r++) {
                memcpy(s->tail + (size_t)r * TAIL_ROW_BYTES, rows + (size_t)r * row_bytes,
                       part_bytes);
            }
            rows = s->tail;
            row_bytes = TAIL_ROW_BYTES;
        }
        size_t groups = (size_t)panel * p->scales_panel;
        uint8_t *values = s->values + (size_t)panel * p->values_panel;
        int64_t span = p->traits->block_values > SPAN ? p->traits->block_values : SPAN;
        int64_t spans = (p->k + span - 1) / span;
        for (int64_t i = 0; i < n; i += span) {
            prefetch_next(p, row, panel * spans + (k0 + i) / span, p->kernels->panels * spans);
            size_t skip = (size_t)(i / p->traits->block_values) * p->traits->block_bytes;
            size_t skip_groups = (size_t)(i / p->group * lanes);
            p->decode(rows + skip, row_bytes, tnd_min(span, n - i), values + (size_t)(i * lanes),
                      s->scales + groups + skip_groups, s->mins + groups + skip_groups);
        }
    }
}

/* A tile at the end of the rows: goes through a copy, because kernels write whole tiles. */
static void gemm_tail(const struct product *p, struct scratch *s, struct tnd_tile_q *tile,
                      int n_rows)
{
    float *y = tile->y;
    size_t tile_rows = (size_t)p->kernels->lanes * (size_t)p->kernels->panels;
    for (int t = 0; t < tile->n_tokens && tile->accumulate; t++) {
        memcpy(s->y + (size_t)t * tile_rows, y + (size_t)t * p->y_stride,
               (size_t)n_rows * sizeof(float));
    }
    tile->y = s->y;
    tile->y_stride = tile_rows;
    p->gemm(tile);
    for (int t = 0; t < tile->n_tokens; t++) {
        memcpy(y + (size_t)t * p->y_stride, s->y + (size_t)t * tile_rows,
               (size_t)n_rows * sizeof(float));
    }
}

/* Multiplies the decoded part of the tile by all tokens. */
static void multiply_tile(const struct product *p, struct scratch *s, int64_t row, int n_rows,
                          int64_t k0, int64_t n)
{
    bool whole = n_rows == p->kernels->lanes * p->kernels->panels;
    for (int64_t t = 0; t < p->m; t += p->tile_tokens) {
        struct tnd_tile_q tile = {
            .values = s->values,
            .scales = s->scales,
            .mins = s->mins,
            .values_panel = p->values_panel,
            .scales_panel = p->scales_panel,
            .n_blocks = (int)(n / TND_X_BLOCK),
            .n_tokens = (int)tnd_min(p->m - t, p->tile_tokens),
            .x = p->x + (size_t)t * p->x_blocks + k0 / TND_X_BLOCK,
            .x_blocks = p->x_blocks,
            .y = p->y + (size_t)t * p->y_stride + row,
            .y_stride = p->y_stride,
            .accumulate = k0 > 0,
        };
        if (whole) {
            p->gemm(&tile);
        } else {
            gemm_tail(p, s, &tile, n_rows);
        }
    }
}

/* One token: rows are read in place. */
static void multiply_token(const struct product *p, tnd_gemv_q_fn *gemv,
                           const struct tandem_work *work, struct tandem_worker *worker)
{
    struct gemv_scratch *s = worker->scratch;
    int64_t n_blocks = p->k / TND_X_BLOCK;
    TND_ASSERT(p->m == 1 && p->k <= TND_GEMV_K_MAX);
    for (int64_t b = 0; b < n_blocks; b++) {
        memcpy(s->x + b * TND_X_BLOCK, p->x[b].q, TND_X_BLOCK);
        s->x_scale[b] = p->x[b].scale;
        memcpy(&s->x_correction[b], p->x[b].group.correction, sizeof(int32_t));
        memcpy(&s->x_sum[b], p->x[b].group.sum, sizeof(float));
    }
    for (int64_t b = n_blocks; b % 16 != 0; b++) {
        memset(s->x + b * TND_X_BLOCK, 0, TND_X_BLOCK);
        s->x_scale[b] = 0;
        s->x_correction[b] = 0;
        s->x_sum[b] = 0;
    }
    int64_t n_rows = work->row_end - work->row_begin;
    int64_t groups = (n_rows + TND_GEMV_ROWS - 1) / TND_GEMV_ROWS;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, groups, tnd_chunk(groups, worker->count, 16), &begin, &end)) {
        for (int64_t group = begin; group < end; group++) {
            int64_t row = work->row_begin + group * TND_GEMV_ROWS;
            gemv(&(struct tnd_gemv_q){
                .rows = p->w + (size_t)row * p->w_row_bytes,
                .row_bytes = p->w_row_bytes,
                .n_rows = (int)tnd_min(TND_GEMV_ROWS, work->row_end - row),
                .n_blocks = (int)n_blocks,
                .x = s->x,
                .x_scale = s->x_scale,
                .x_correction = s->x_correction,
                .x_sum = s->x_sum,
                .y = p->y + row,
            });
        }
    }
}

void tnd_matmul_q(const struct tnd_kernels_q *kernels, const struct tandem_work *work,
                  struct tandem_worker *worker)
{
    const struct tandem_tensor *node = work->node;
    const struct tandem_tensor *w = node->src[0];
    struct product p = {
        .kernels = kernels,
        .traits = tnd_type_traits(w->type),
        .decode = kernels->decode[w->type],
        .gemm = kernels->gemm[w->type],
        .w = w->data,
        .w_row_bytes = w->nb[1],
        .x = work->workspace,
        .x_blocks = tnd_x_row_blocks(w->ne[0]),
        .y = node->data,
        .y_stride = node->nb[1] / sizeof(float),
        .m = node->ne[1],
        .n = w->ne[1],
        .k = w->ne[0],
        .tile_tokens = tnd_tile_tokens(node->ne[1], kernels->tokens),
    };
    if (p.m == 1 && kernels->gemv[w->type] != NULL && p.k <= TND_GEMV_K_MAX) {
        multiply_token(&p, kernels->gemv[w->type], work, worker);
        return;
    }
    TND_ASSERT(p.decode != NULL && p.gemm != NULL && p.k % TND_X_BLOCK == 0);
    p.group = (tnd_quant_code(w->type)->form & TND_GROUPS_OF_16) != 0 ? 16 : 32;
    p.kc = p.m <= SKINNY_TOKENS ? TND_KC_Q_SKINNY : TND_KC_Q;
    p.values_panel = (size_t)(p.kc * kernels->lanes);
    p.scales_panel = (size_t)(p.kc / 16 * kernels->lanes);
    int64_t tile_rows = (int64_t)kernels->lanes * kernels->panels;
    int64_t n_tiles = (work->row_end - work->row_begin + tile_rows - 1) / tile_rows;
    int64_t chunk = tnd_chunk(n_tiles, worker->count, 8);
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_tiles, chunk, &begin, &end)) {
        for (int64_t tile = begin; tile < end; tile++) {
            int64_t row = work->row_begin + tile * tile_rows;
            int n_rows = (int)tnd_min(tile_rows, work->row_end - row);
            /* at least once: K may be 0 */
            for (int64_t k0 = 0; k0 == 0 || k0 < p.k; k0 += p.kc) {
                int64_t n = tnd_min(p.kc, p.k - k0);
                decode_tile(&p, worker->scratch, row, n_rows, k0, n);
                multiply_tile(&p, worker->scratch, row, n_rows, k0, n);
            }
        }
    }
}
