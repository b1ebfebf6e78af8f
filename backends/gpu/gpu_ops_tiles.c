/* SPDX-License-Identifier: MIT
 * Attention and matrix products of views on a device: kernels/ops_tiles.cl. */
#include "backends/gpu/gpu_ops_parts.h"

enum {
    TILE = 64,    /* as in the kernels */
    FEW_ROWS = 4, /* of the second operand in a group: two variants of each program */
    MANY_ROWS = 16,
    MAX_SPLITS = 64
};

static int rows_for(int64_t n)
{
    return n <= FEW_ROWS ? FEW_ROWS : MANY_ROWS;
}

static int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

/* ---- attention ---- */

/* How the work is divided. Rows are queries of a KV head: by token, then by head of its group. */
struct cut {
    int rows; /* in a group of work items */
    int64_t group, n_rows, row_blocks, column_blocks, splits;
    int64_t kv_heads;
};

/* If there are too few groups to keep all units busy, several groups share the keys of a query. */
static int64_t splits_for(const struct tnd_gpu_device *device, int64_t groups, int64_t n_keys)
{
    const int64_t wanted = parts_of(2 * (int64_t)device->caps.compute_units, groups);
    const int64_t tiles = parts_of(n_keys, TILE);
    int64_t splits = wanted < tiles ? wanted : tiles;
    splits = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    splits = splits > 1 ? splits : 1;
    /* so that no split is empty */
    return tiles > 0 ? parts_of(tiles, parts_of(tiles, splits)) : 1;
}

static struct cut cut_of(const struct tnd_gpu_device *device, const tandem_tensor *node)
{
    const tandem_tensor *k = node->src[1];
    struct cut cut = {.group = node->ne[1] / k->ne[2], .kv_heads = k->ne[2]};
    cut.n_rows = node->ne[2] * cut.group;
    cut.rows = rows_for(cut.n_rows);
    cut.row_blocks = parts_of(cut.n_rows, cut.rows);
    cut.column_blocks = parts_of(node->ne[0], (int64_t)tnd_gpu_ops_group(device));
    cut.splits = splits_for(device, cut.kv_heads * cut.row_blocks * cut.column_blocks, k->ne[1]);
    return cut;
}

enum tandem_status tnd_gpu_attention_supports(const struct tnd_gpu_device *device,
                                              const tandem_tensor *node, struct tandem_error *error)
{
    (void)device;
    if (node->src[1]->type != node->src[2]->type) {
        return tnd_gpu_ops_refuse(device, node, "needs keys and values of one type", error);
    }
    return TANDEM_OK;
}

/* As in the kernel. */
static uint32_t mask_kind(const tandem_tensor *mask)
{
    return mask == NULL ? 0 : mask->type == TANDEM_TYPE_F32 ? 1 : 2;
}

struct attention_ranges {
    struct tnd_gpu_range y, q, k, v, mask, sinks, partial, stats;
};

static enum tandem_status find_operands(struct tnd_gpu_device *device,
                                        const struct tandem_work *work,
                                        struct attention_ranges *out, struct tandem_error *error)
{
    TND_TRY(tnd_gpu_operand(device, work, -1, &out->y, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 0, out->y, &out->q, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 1, out->y, &out->k, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 2, out->y, &out->v, error));
    const tandem_tensor *node = work->node;
    const bool has_mask = tnd_attention_mask_of(node) != NULL;
    const bool has_sinks = tnd_attention_sinks_of(node) != NULL;
    out->mask = out->y; /* not read without a mask */
    out->sinks = out->y;
    if (has_mask) {
        TND_TRY(tnd_gpu_ops_find(device, work, 3, out->y, &out->mask, error));
    }
    if (has_sinks) {
        TND_TRY(tnd_gpu_ops_find(device, work, node->n_src - 1, out->y, &out->sinks, error));
    }
    out->partial = out->y; /* not written without splits */
    out->stats = out->y;
    return TANDEM_OK;
}

/* Memory for the sums of each split: values, then the largest score and the weight of each row. */
static enum tandem_status find_partial(struct tnd_gpu_device *device, const tandem_tensor *node,
                                       const struct cut *cut, struct attention_ranges *out,
                                       struct tandem_error *error)
{
    const size_t rows = (size_t)(cut->n_rows * cut->kv_heads * cut->splits);
    const size_t sums = (rows * (size_t)node->ne[0] * sizeof(float) + 63) / 64 * 64;
    if (cut->splits == 1) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_SUMS, sums + rows * 2 * sizeof(float),
                            &out->partial, error));
    out->stats = out->partial;
    out->stats.offset += sums;
    return TANDEM_OK;
}

static enum tandem_status join(struct tnd_gpu_device *device, const tandem_tensor *node,
                               const struct cut *cut, const struct attention_ranges *ranges,
                               struct tandem_error *error)
{
    const int64_t n = tandem_tensor_elements(node);
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_TILES,
                              1 + (int)node->src[1]->type, cut->rows, error));
    TND_TRY(tnd_gpu_bind_attention_join(
        &launch, ranges->y, ranges->partial, ranges->stats, (uint32_t)n, (uint32_t)node->ne[0],
        (uint32_t)cut->n_rows, (uint32_t)node->ne[1], (uint32_t)cut->group, (uint32_t)cut->splits,
        ranges->sinks, node->params.attention.has_sinks ? 1 : 0, error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

enum tandem_status tnd_gpu_attention(struct tnd_gpu_device *device, const struct tandem_work *work,
                                     struct tandem_error *error)
{
    const tandem_tensor *node = work->node; /* {value, heads, M} */
    const tandem_tensor *q = node->src[0];  /* {head, M, heads} */
    const tandem_tensor *k = node->src[1];  /* {head, T, kv_heads} */
    const tandem_tensor *v = node->src[2];  /* {value, T, kv_heads} */
    const tandem_tensor *mask = tnd_attention_mask_of(node);
    const struct cut cut = cut_of(device, node);
    struct attention_ranges ranges;
    struct tnd_gpu_launch launch;
    TND_TRY(find_operands(device, work, &ranges, error));
    TND_TRY(find_partial(device, node, &cut, &ranges, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_TILES, 1 + (int)k->type, cut.rows,
                              error));
    TND_TRY(tnd_gpu_bind_attention(
        &launch, ranges.y, ranges.partial, ranges.stats, ranges.q, ranges.k, ranges.v, ranges.mask,
        mask_kind(mask), (uint32_t)k->ne[0], (uint32_t)v->ne[0], (uint32_t)k->ne[1],
        (uint32_t)q->ne[1], (uint32_t)q->ne[2], (uint32_t)cut.group, (uint32_t)cut.row_blocks,
        (uint32_t)cut.column_blocks, (uint32_t)cut.splits, q->nb[1], q->nb[2], k->nb[1], k->nb[2],
        v->nb[1], v->nb[2], mask != NULL ? mask->nb[1] : 0,
        mask_kind(mask) == 2 ? node->params.attention.window : 0, node->params.attention.scale,
        node->params.attention.cap, ranges.sinks, node->params.attention.has_sinks ? 1 : 0, error));
    TND_TRY(tnd_gpu_ops_run_groups(
        &launch, (uint64_t)(cut.kv_heads * cut.row_blocks * cut.column_blocks * cut.splits),
        error));
    return cut.splits > 1 ? join(device, node, &cut, &ranges, error) : TANDEM_OK;
}

/* ---- products of views ---- */

enum tandem_status tnd_gpu_mul_mat_views(struct tnd_gpu_device *device,
                                         const struct tandem_work *work, struct tandem_error *error)
{
    const tandem_tensor *node = work->node; /* {N, M, c, d} */
    const tandem_tensor *w = node->src[0];  /* {K, N, a, b} */
    const tandem_tensor *x = node->src[1];  /* {K, M, c, d} */
    const int64_t n_blocks = parts_of(work->row_end - work->row_begin, TILE);
    const int rows = rows_for(node->ne[1]);
    const int64_t m_blocks = parts_of(node->ne[1], rows);
    struct tnd_gpu_range y, w_range, x_range;
    struct tnd_gpu_launch launch;
    if (n_blocks <= 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    if (tandem_tensor_elements(w) == 0) {
        w_range = y; /* not read */
    } else {
        TND_TRY(tnd_gpu_original(device, work, &w_range, error));
    }
    TND_TRY(tnd_gpu_ops_find(device, work, 1, y, &x_range, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_TILES, 1 + (int)w->type, rows,
                              error));
    TND_TRY(tnd_gpu_bind_mul_mat_views(
        &launch, y, w_range, x_range, (uint32_t)node->ne[0], (uint32_t)node->ne[1],
        (uint32_t)w->ne[0], (uint32_t)work->row_begin, (uint32_t)work->row_end, (uint32_t)n_blocks,
        (uint32_t)m_blocks, (uint32_t)node->ne[2], (uint32_t)(node->ne[2] / w->ne[2]),
        (uint32_t)(node->ne[3] / w->ne[3]), w->nb[1], w->nb[2], w->nb[3], x->nb[1], x->nb[2],
        x->nb[3], error));
    return tnd_gpu_ops_run_groups(
        &launch, (uint64_t)(n_blocks * m_blocks * node->ne[2] * node->ne[3]), error);
}
