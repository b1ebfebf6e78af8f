/* SPDX-License-Identifier: MIT
 * Driver of packed weights times quantised activations. Few tokens: one pass over all weights, a
 * stream at the speed of the memory. Many: part by part of K a panel of strips is unpacked into the
 * L1 cache, and all tokens pass over it. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "ggml-like/tnd_tensor.h"

/* Up to so many tokens codes are unpacked once for every 8 of them: cheaper than through the
 * cache. (Always, where kernels cannot unpack for those of kernels.h.) */
enum { FEW_TOKENS = 6 * TND_PACKED_TOKENS, TOKENS_MAX = 16 };

struct scratch {
    uint8_t values[TND_PANEL_ROWS_MAX * TND_KC_Q];
    float scales[TND_PANEL_ROWS_MAX * TND_KC_Q / 16];
    float mins[TND_PANEL_ROWS_MAX * TND_KC_Q / 16];
    float y[TOKENS_MAX * TND_PANEL_ROWS_MAX];
};

size_t tnd_matmul_packed_scratch(void)
{
    return (sizeof(struct scratch) + 63) / 64 * 64;
}

/* What stays the same during one call. */
struct product {
    const struct tnd_kernels_q *kernels;
    struct tnd_packed_kernels packed_kernels;
    const struct tnd_packed_weight *packed;
    tnd_gemm_q_fn *gemm;
    int64_t unit;
    size_t unit_bytes;
    const struct tnd_x_block *x;
    size_t x_blocks; /* from one token to the next */
    float *y;
    size_t y_stride;
    int64_t m, k;
    int64_t part; /* values of K in one pass */
    int64_t row_begin, row_end;
    int tile_tokens;
};

/* Where the result of a tile goes: straight into y, or at an end of the rows into a copy, since
 * kernels write whole panels. */
struct target {
    float *y;
    size_t stride;
    int first, n_rows; /* of the panel, that are wanted */
    bool is_copy;
};

static struct target find_target(const struct product *p, struct scratch *s, int64_t row,
                                 int panel_rows, int64_t token, int n_tokens, bool accumulate)
{
    struct target target;
    target.first = (int)tnd_max(p->row_begin - row, 0);
    target.n_rows = (int)tnd_min(p->row_end - row, panel_rows) - target.first;
    target.is_copy = target.n_rows < panel_rows;
    target.y = p->y + (size_t)token * p->y_stride + row;
    target.stride = p->y_stride;
    if (!target.is_copy) {
        return target;
    }
    if (accumulate) {
        for (int t = 0; t < n_tokens; t++) {
            memcpy(s->y + t * panel_rows + target.first,
                   target.y + (size_t)t * p->y_stride + target.first,
                   (size_t)target.n_rows * sizeof(float));
        }
    }
    target.y = s->y;
    target.stride = (size_t)panel_rows;
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

static void multiply_strip(const struct product *p, struct scratch *s, int64_t strip)
{
    const uint8_t *units = tnd_packed_strip(p->kernels, p->packed, strip);
    int64_t row = strip * TND_STRIP_ROWS;
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += p->part) {
        for (int64_t t = 0; t < p->m; t += p->tile_tokens) {
            int n_tokens = (int)tnd_min(p->m - t, p->tile_tokens);
            struct target target = find_target(p, s, row, TND_STRIP_ROWS, t, n_tokens, k0 > 0);
            p->packed_kernels.multiply(&(struct tnd_tile_packed){
                .units = units + (size_t)(k0 / p->unit) * p->unit_bytes,
                .n_blocks = (int)(tnd_min(p->part, p->k - k0) / TND_X_BLOCK),
                .n_tokens = n_tokens,
                .x = p->x + (size_t)t * p->x_blocks + k0 / TND_X_BLOCK,
                .x_blocks = p->x_blocks,
                .y = target.y,
                .y_stride = target.stride,
                .accumulate = k0 > 0,
                .ahead = t == 0 ? TND_PACKED_STREAM : 0,
            });
            keep_target(p, &target, row, t, n_tokens);
        }
    }
}

/* Strips first .. first + kernels->strips - 1 (missing ones are whatever the scratch holds, and
 * nobody looks at their rows). */
static void multiply_panel(const struct product *p, struct scratch *s, int64_t first,
                           int64_t n_strips)
{
    const struct tnd_kernels_q *kernels = p->kernels;
    const size_t values_strip = (size_t)(p->part * TND_STRIP_ROWS);
    const size_t scales_strip = values_strip / 16;
    const int panel_rows = kernels->strips * TND_STRIP_ROWS;
    int64_t row = first * TND_STRIP_ROWS;
    int64_t present = tnd_min(kernels->strips, n_strips - first);
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += p->part) {
        int n_blocks = (int)(tnd_min(p->part, p->k - k0) / TND_X_BLOCK);
        for (int64_t i = 0; i < present; i++) {
            const uint8_t *units = tnd_packed_strip(kernels, p->packed, first + i);
            p->packed_kernels.unpack(units + (size_t)(k0 / p->unit) * p->unit_bytes, n_blocks,
                                     p->packed->strip_bytes, s->values + (size_t)i * values_strip,
                                     s->scales + (size_t)i * scales_strip,
                                     s->mins + (size_t)i * scales_strip);
        }
        for (int64_t t = 0; t < p->m; t += p->tile_tokens) {
            int n_tokens = (int)tnd_min(p->m - t, p->tile_tokens);
            struct target target = find_target(p, s, row, panel_rows, t, n_tokens, k0 > 0);
            p->gemm(&(struct tnd_tile_q){
                .values = s->values,
                .scales = s->scales,
                .mins = s->mins,
                .values_strip = values_strip,
                .scales_strip = scales_strip,
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

void tnd_matmul_packed(const struct tnd_cpu_kernels *all, const struct tnd_packed_weight *packed,
                       const struct tandem_work *work, struct tandem_worker *worker)
{
    const struct tnd_kernels_q *kernels = &all->q;
    const struct tnd_packed_kernels packed_kernels = all->packed[packed->type];
    const struct tandem_tensor *node = work->node;
    const int64_t m = node->ne[1];
    const bool few = m <= FEW_TOKENS || packed_kernels.unpack == NULL;
    const int strips = few ? 1 : kernels->strips;
    struct product p = {
        .kernels = kernels,
        .packed_kernels = packed_kernels,
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
        .part = m <= TND_PACKED_TOKENS ? tnd_max(packed->k, 1) : TND_KC_Q,
        .row_begin = work->row_begin,
        .row_end = work->row_end,
        .tile_tokens = tnd_tile_tokens(m, few ? TND_PACKED_TOKENS : kernels->tokens),
    };
    if (p.row_begin >= p.row_end) {
        return;
    }
    int64_t n_strips = (packed->n + TND_STRIP_ROWS - 1) / TND_STRIP_ROWS;
    int64_t first = p.row_begin / (strips * TND_STRIP_ROWS);
    int64_t count = (p.row_end - 1) / (strips * TND_STRIP_ROWS) + 1 - first;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, count, tnd_chunk(count, worker->count, 8), &begin, &end)) {
        for (int64_t i = first + begin; i < first + end; i++) {
            if (few) {
                multiply_strip(&p, worker->scratch, i);
            } else {
                multiply_panel(&p, worker->scratch, i * strips, n_strips);
            }
        }
    }
}
