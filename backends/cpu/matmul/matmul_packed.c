/* SPDX-License-Identifier: MIT
 * Driver of packed weights times quantised activations. A skinny product reads all weights once, as
 * a stream at memory speed. For a wider one, a tile of panels is unpacked into the L1 cache part by
 * part of K and multiplied by all tokens. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/cpu.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

enum {
    TOKENS_MAX = 16,
    PART_MOST = TND_UNPACK_PART_MOST,
    PART_LEAST = 512, /* least values of K per pass of a skinny product: a multiple of every unit */
    L2_BYTES = 512 * 1024 /* if unknown */
};

struct scratch {
    uint8_t values[TND_TILE_ROWS_MAX * PART_MOST];
    float scales[TND_TILE_ROWS_MAX * PART_MOST / 16];
    float mins[TND_TILE_ROWS_MAX * PART_MOST / 16];
    float y[TOKENS_MAX * TND_TILE_ROWS_MAX];
};

size_t tnd_matmul_packed_scratch(void)
{
    return (sizeof(struct scratch) + 63) / 64 * 64;
}

/* What is constant during a call. */
struct product {
    const struct tnd_kernels_q *kernels;
    const struct tnd_tuning *tuning;
    struct tnd_packed_kernels packed_kernels;
    tnd_packed_fn *multiply; /* of packed_kernels */
    const struct tnd_packed_weight *packed;
    tnd_gemm_q_fn *gemm;
    int64_t unit;
    size_t unit_bytes;
    const struct tnd_x_block *x;
    size_t x_blocks; /* between tokens */
    float *y;
    size_t y_stride;
    int64_t m, k;
    int64_t part; /* values of K per pass */
    int64_t row_begin, row_end;
    int tile_tokens;
};

/* Destination of a tile's result: y itself, or at an end of the rows a copy, because kernels write
 * whole tiles. */
struct target {
    float *y;
    size_t stride;
    int first, n_rows; /* wanted rows of the tile */
    bool is_copy;
};

static struct target find_target(const struct product *p, struct scratch *s, int64_t row,
                                 int tile_rows, int64_t token, int n_tokens, bool accumulate)
{
    struct target target;
    target.first = (int)tnd_max(p->row_begin - row, 0);
    target.n_rows = (int)tnd_min(p->row_end - row, tile_rows) - target.first;
    TND_ASSERT(target.n_rows > 0 && n_tokens <= TOKENS_MAX);
    target.is_copy = target.n_rows < tile_rows;
    target.y = p->y + (size_t)token * p->y_stride + row;
    target.stride = p->y_stride;
    if (!target.is_copy) {
        return target;
    }
    if (accumulate) {
        for (int t = 0; t < n_tokens; t++) {
            memcpy(s->y + t * tile_rows + target.first,
                   target.y + (size_t)t * p->y_stride + target.first,
                   (size_t)target.n_rows * sizeof(float));
        }
    }
    target.y = s->y;
    target.stride = (size_t)tile_rows;
    return target;
}

static void keep_target(const struct product *p, const struct target *target, int64_t row,
                        int64_t token, int n_tokens)
{
    for (int t = 0; t < n_tokens && target->is_copy; t++) {
        memcpy(p->y + (size_t)(token + t) * p->y_stride + row + target->first,
               target->y + (size_t)t * target->stride + target->first,
               (size_t)target->n_rows * sizeof(float));
    }
}

static void multiply_panel(const struct product *p, struct scratch *s, int64_t panel)
{
    const uint8_t *units = tnd_packed_panel(p->kernels, p->packed, panel);
    int64_t row = panel * TND_PANEL_ROWS;
    const int ahead = p->m == 1 ? p->tuning->packed_ahead_1 : p->tuning->packed_ahead;
    TND_ASSERT(p->tile_tokens <= TND_PACKED_TOKENS && row < p->row_end);
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += p->part) {
        for (int64_t t = 0; t < p->m; t += p->tile_tokens) {
            int n_tokens = (int)tnd_min(p->m - t, p->tile_tokens);
            struct target target = find_target(p, s, row, TND_PANEL_ROWS, t, n_tokens, k0 > 0);
            p->multiply(&(struct tnd_tile_packed){
                .units = units + (size_t)(k0 / p->unit) * p->unit_bytes,
                .n_blocks = (int)(tnd_min(p->part, p->k - k0) / TND_X_BLOCK),
                .n_tokens = n_tokens,
                .x = p->x + (size_t)t * p->x_blocks + k0 / TND_X_BLOCK,
                .x_blocks = p->x_blocks,
                .y = target.y,
                .y_stride = target.stride,
                .accumulate = k0 > 0,
                .ahead = ahead,
                .is_fetched = t > 0,
                .into_l2 = ahead > p->tuning->packed_into_l1,
            });
            keep_target(p, &target, row, t, n_tokens);
        }
    }
}

/* Multiplies panels first .. first + kernels->panels - 1. (Missing panels have arbitrary values;
 * their rows are not used.) */
static void multiply_tile(const struct product *p, struct scratch *s, int64_t first,
                          int64_t n_panels)
{
    const struct tnd_kernels_q *kernels = p->kernels;
    const size_t values_panel = (size_t)(p->part * TND_PANEL_ROWS);
    const size_t scales_panel = values_panel / 16;
    const int tile_rows = kernels->panels * TND_PANEL_ROWS;
    int64_t row = first * TND_PANEL_ROWS;
    int64_t present = tnd_min(kernels->panels, n_panels - first);
    TND_ASSERT(kernels->lanes == TND_PANEL_ROWS && present > 0 && p->part <= PART_MOST);
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += p->part) {
        int n_blocks = (int)(tnd_min(p->part, p->k - k0) / TND_X_BLOCK);
        for (int64_t i = 0; i < present; i++) {
            const uint8_t *units = tnd_packed_panel(kernels, p->packed, first + i);
            p->packed_kernels.unpack(units + (size_t)(k0 / p->unit) * p->unit_bytes, n_blocks,
                                     p->packed->panel_bytes, s->values + (size_t)i * values_panel,
                                     s->scales + (size_t)i * scales_panel,
                                     s->mins + (size_t)i * scales_panel);
        }
        for (int64_t t = 0; t < p->m; t += p->tile_tokens) {
            int n_tokens = (int)tnd_min(p->m - t, p->tile_tokens);
            struct target target = find_target(p, s, row, tile_rows, t, n_tokens, k0 > 0);
            p->gemm(&(struct tnd_tile_q){
                .values = s->values,
                .scales = s->scales,
                .mins = s->mins,
                .values_panel = values_panel,
                .scales_panel = scales_panel,
                .n_blocks = n_blocks,
                .n_tokens = n_tokens,
                .x = p->x + (size_t)t * p->x_blocks + k0 / TND_X_BLOCK,
                .x_blocks = p->x_blocks,
                .y = target.y,
                .y_stride = target.stride,
                .accumulate = k0 > 0,
            });
            keep_target(p, &target, row, t, n_tokens);
        }
    }
}

/* Values of K per pass: as many as leave half of the L2 cache to the activations of all tokens,
 * which each panel reads again. Shorter passes cost time: 512 values took 1.09 times as long as all
 * 11008 (Zen 4, 16 to 48 tokens). */
static int64_t skinny_part(int64_t m)
{
    const size_t l2_bytes = tnd_cpu_caches().l2_bytes;
    const size_t share = (l2_bytes > 0 ? l2_bytes : L2_BYTES) / 2;
    const size_t blocks = share / sizeof(struct tnd_x_block) / (size_t)tnd_max(m, 1);
    const int64_t values = (int64_t)blocks * TND_X_BLOCK;
    return tnd_max(values / PART_LEAST, 1) * PART_LEAST;
}

void tnd_matmul_packed(const struct tnd_cpu_kernels *all, const struct tnd_packed_weight *packed,
                       const struct tandem_work *work, struct tandem_worker *worker)
{
    const struct tnd_kernels_q *kernels = &all->q;
    const struct tnd_packed_kernels packed_kernels = all->packed[packed->type];
    const struct tandem_tensor *node = work->node;
    const int64_t m = node->ne[1];
    const bool is_skinny = m <= all->tuning.packed_skinny || packed_kernels.unpack == NULL;
    const int panels = is_skinny ? 1 : kernels->panels;
    struct product p = {
        .kernels = kernels,
        .tuning = &all->tuning,
        .packed_kernels = packed_kernels,
        .multiply = m == 1 && packed_kernels.multiply_one != NULL ? packed_kernels.multiply_one
                                                                  : packed_kernels.multiply,
        .packed = packed,
        .gemm = kernels->gemm[packed->type],
        .unit = tnd_packed_unit_values(packed->type),
        .unit_bytes = tnd_packed_unit_bytes(packed->type),
        .x = work->workspace,
        .x_blocks = tnd_x_row_blocks(packed->k),
        .y = node->data,
        .y_stride = node->nb[1] / sizeof(float),
        .m = m,
        .k = packed->k,
        .part = is_skinny ? skinny_part(m) : all->tuning.unpack_part,
        .row_begin = work->row_begin,
        .row_end = work->row_end,
        .tile_tokens = tnd_tile_tokens(m, is_skinny ? TND_PACKED_TOKENS : kernels->tokens),
    };
    TND_ASSERT(packed->n == node->ne[0] && packed->k == node->src[0]->ne[0]);
    TND_ASSERT(p.multiply != NULL && p.gemm != NULL);
    TND_ASSERT(p.part > 0 && p.part % p.unit == 0);
    if (p.row_begin >= p.row_end) {
        return;
    }
    int64_t n_panels = (packed->n + TND_PANEL_ROWS - 1) / TND_PANEL_ROWS;
    int64_t first = p.row_begin / (panels * TND_PANEL_ROWS);
    int64_t count = (p.row_end - 1) / (panels * TND_PANEL_ROWS) + 1 - first;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, count, tnd_chunk(count, worker->count, 8), &begin, &end)) {
        for (int64_t i = first + begin; i < first + end; i++) {
            if (is_skinny) {
                multiply_panel(&p, worker->scratch, i);
            } else {
                multiply_tile(&p, worker->scratch, i * panels, n_panels);
            }
        }
    }
}
