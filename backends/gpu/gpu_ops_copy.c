/* SPDX-License-Identifier: MIT
 * Moves values on a device: get_rows, cpy, cont, concat; kernels/ops_get_rows.cl, ops_copy.cl. */
#include <string.h>

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_indices.h"
#include "backends/gpu/gpu_ops_parts.h"

/* ---- rows by index ---- */

/* The kernels check indices, so any values are supported. */
enum tandem_status tnd_gpu_get_rows_supports(const struct tnd_gpu_device *device,
                                             const tandem_tensor *node, struct tandem_error *error)
{
    (void)device;
    const enum tandem_type type = node->src[0]->type;
    if (!tnd_gpu_has_decoder(type) && type != TANDEM_TYPE_I32) {
        return tnd_gpu_ops_refuse(device, node, "decodes no rows of this type", error);
    }
    return node->src[0]->ne[1] > 0 ? TANDEM_OK
                                   : tnd_gpu_ops_refuse(device, node, "has no row to read", error);
}

enum tandem_status tnd_gpu_get_rows(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *w = node->src[0]; /* {K, V} */
    const int64_t row_parts = (w->ne[0] + 15) / 16;
    const int64_t n = row_parts * node->ne[1];
    struct tnd_gpu_range y, w_range, ids, fault;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_indices_look(device, node, node->src[1], 0, w->ne[1], error));
    TND_TRY(tnd_gpu_indices_fault(device, &fault, error));
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(tnd_gpu_original(device, work, &w_range, error));
    TND_TRY(tnd_gpu_operand(device, work, 1, &ids, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_GET_ROWS, 1 + (int)w->type, 0,
                              error));
    TND_TRY(tnd_gpu_bind_get_rows(&launch, y, w_range, ids, fault, (uint32_t)n, (uint32_t)w->ne[0],
                                  (uint32_t)row_parts, (uint32_t)w->ne[1], w->nb[1], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

/* ---- copies ---- */

/* As in the kernel. */
enum kind { KIND_WORD, KIND_SHORT, KIND_F32, KIND_F16, KIND_BF16, KIND_NONE };

static enum kind kind_of(enum tandem_type type)
{
    return type == TANDEM_TYPE_F32    ? KIND_F32
           : type == TANDEM_TYPE_F16  ? KIND_F16
           : type == TANDEM_TYPE_BF16 ? KIND_BF16
                                      : KIND_NONE;
}

/* The kinds of a copy between two types; KIND_NONE: not supported by these kernels. Copies within a
 * type keep every bit. */
static void kinds_of(enum tandem_type from, enum tandem_type to, enum kind *out_from,
                     enum kind *out_to)
{
    *out_from = kind_of(from);
    *out_to = kind_of(to);
    if (from == to && !tandem_type_is_quantized(to)) {
        *out_from = tandem_type_block_bytes(to) == 4 ? KIND_WORD : KIND_SHORT;
        *out_to = *out_from;
    }
}

enum tandem_status tnd_gpu_copy_supports(const struct tnd_gpu_device *device,
                                         const tandem_tensor *node, struct tandem_error *error)
{
    enum kind from, to;
    (void)device;
    if ((node->type == TANDEM_TYPE_Q8_0 || node->type == TANDEM_TYPE_Q4_0) &&
        node->src[0]->type == TANDEM_TYPE_F32) {
        return TANDEM_OK;
    }
    kinds_of(node->src[0]->type, node->type, &from, &to);
    if (from == KIND_NONE || to == KIND_NONE) {
        return tnd_gpu_ops_refuse(device, node, "makes no blocks but q8_0 and q4_0, and reads none",
                                  error);
    }
    return TANDEM_OK;
}

/* Source or destination: a strided block of values. */
struct side {
    struct tnd_gpu_range range;
    uint64_t ne[TANDEM_MAX_DIMS];
    uint64_t nb[TANDEM_MAX_DIMS];
};

static struct side side_of(const tandem_tensor *tensor, const int64_t *ne,
                           struct tnd_gpu_range range)
{
    struct side side = {.range = range};
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        side.ne[i] = (uint64_t)ne[i];
        side.nb[i] = tensor->nb[i];
    }
    return side;
}

/* Merges dimensions that are contiguous in memory. If all values form a single row, an extent
 * becomes 0, which tells the kernel so. */
static void merge_dimensions(struct side *side)
{
    int n = 0;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        if (side->ne[i] == 1) {
            continue;
        }
        if (n > 0 && side->nb[i] == side->ne[n - 1] * side->nb[n - 1]) {
            side->ne[n - 1] *= side->ne[i];
            continue;
        }
        side->nb[n] = side->nb[i];
        side->ne[n++] = side->ne[i];
    }
    for (int i = n; i < TANDEM_MAX_DIMS; i++) {
        side->ne[i] = 1;
        side->nb[i] = 0;
    }
    if (n <= 1) {
        side->ne[0] = 0;
    }
}

/* Copies all values of operand i to `to`. */
static enum tandem_status copy_side(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    int i, struct side to, enum tandem_type to_type,
                                    struct tandem_error *error)
{
    const tandem_tensor *from_tensor = work->node->src[i];
    const int64_t n = tandem_tensor_elements(from_tensor);
    enum kind from_kind, to_kind;
    struct tnd_gpu_range range;
    struct tnd_gpu_launch launch;
    if (n == 0) { /* half of a concat may be empty */
        return TANDEM_OK;
    }
    kinds_of(from_tensor->type, to_type, &from_kind, &to_kind);
    TND_TRY(tnd_gpu_operand(device, work, i, &range, error));
    struct side from = side_of(from_tensor, from_tensor->ne, range);
    merge_dimensions(&from);
    merge_dimensions(&to);
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_COPY, 0, 0, error));
    TND_TRY(tnd_gpu_bind_copy_values(
        &launch, to.range, from.range, (uint32_t)to_kind, (uint32_t)from_kind, (uint32_t)n,
        (uint32_t)to.ne[0], (uint32_t)to.ne[1], (uint32_t)to.ne[2], to.nb[0], to.nb[1], to.nb[2],
        to.nb[3], (uint32_t)from.ne[0], (uint32_t)from.ne[1], (uint32_t)from.ne[2], from.nb[0],
        from.nb[1], from.nb[2], from.nb[3], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

static enum tandem_status copy_to_blocks(struct tnd_gpu_device *device,
                                         const struct tandem_work *work, struct tnd_gpu_range to,
                                         struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    const int64_t row_blocks = node->ne[0] / tandem_type_block_values(node->type);
    const int64_t n = row_blocks * tnd_tensor_rows(node);
    struct tnd_gpu_range from;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_operand(device, work, 0, &from, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_COPY, 0, 0, error));
    const uint32_t rows[] = {(uint32_t)row_blocks, (uint32_t)node->ne[1], (uint32_t)node->ne[2]};
    TND_TRY(
        (node->type == TANDEM_TYPE_Q4_0 ? tnd_gpu_bind_copy_to_q4_0 : tnd_gpu_bind_copy_to_q8_0)(
            &launch, to, from, (uint32_t)n, rows[0], rows[1], rows[2], node->nb[1], node->nb[2],
            node->nb[3], a->nb[1], a->nb[2], a->nb[3], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

enum tandem_status tnd_gpu_copy(struct tnd_gpu_device *device, const struct tandem_work *work,
                                struct tandem_error *error)
{
    const tandem_tensor *node = work->node; /* of a cpy: a view of its destination */
    const tandem_tensor *a = node->src[0];
    struct tnd_gpu_range to;
    TND_TRY(tnd_gpu_operand(device, work, -1, &to, error));
    if (tandem_type_is_quantized(node->type)) {
        return copy_to_blocks(device, work, to, error);
    }
    if (node->op != TANDEM_OP_CONCAT) {
        return copy_side(device, work, 0, side_of(node, node->ne, to), node->type, error);
    }
    const tandem_tensor *b = node->src[1];
    const int dim = node->params.concat_dim;
    TND_TRY(copy_side(device, work, 0, side_of(node, a->ne, to), node->type, error));
    to.offset += (uint64_t)a->ne[dim] * node->nb[dim];
    return copy_side(device, work, 1, side_of(node, b->ne, to), node->type, error);
}
