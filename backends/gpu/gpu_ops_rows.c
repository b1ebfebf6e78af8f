/* SPDX-License-Identifier: MIT
 * Element-wise and row-wise operations on a device: kernels/ops_elementwise.cl and ops_rows.cl.
 * Operands are F32 with dense rows, results contiguous. */
#include <math.h>

#include "backends/gpu/gpu_ops_parts.h"

/* As in the kernels. */
enum layout { LAYOUT_DENSE, LAYOUT_REPEATED, LAYOUT_STRIDED };
enum binary_op { BINARY_ADD, BINARY_SUB, BINARY_MUL, BINARY_DIV };
enum unary_op {
    UNARY_SCALE,
    UNARY_SQR,
    UNARY_SQRT,
    UNARY_SILU,
    UNARY_GELU,
    UNARY_RELU,
    UNARY_MASK,
    UNARY_GELU_ERF,
    UNARY_SIGMOID,
    UNARY_TANH,
    UNARY_CLAMP
};

static const uint32_t kernel_ops[TANDEM_OP_COUNT] = {
    [TANDEM_OP_ADD] = BINARY_ADD,           [TANDEM_OP_SUB] = BINARY_SUB,
    [TANDEM_OP_MUL] = BINARY_MUL,           [TANDEM_OP_DIV] = BINARY_DIV,
    [TANDEM_OP_SCALE] = UNARY_SCALE,        [TANDEM_OP_SQR] = UNARY_SQR,
    [TANDEM_OP_SQRT] = UNARY_SQRT,          [TANDEM_OP_SILU] = UNARY_SILU,
    [TANDEM_OP_GELU] = UNARY_GELU,          [TANDEM_OP_RELU] = UNARY_RELU,
    [TANDEM_OP_DIAG_MASK_INF] = UNARY_MASK, [TANDEM_OP_GELU_ERF] = UNARY_GELU_ERF,
    [TANDEM_OP_SIGMOID] = UNARY_SIGMOID,    [TANDEM_OP_TANH] = UNARY_TANH,
    [TANDEM_OP_CLAMP] = UNARY_CLAMP,
};

/* Result and first operand. */
struct ends {
    struct tnd_gpu_range y, a;
};

static enum tandem_status find_ends(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    struct ends *out, struct tandem_error *error)
{
    struct ends ends;
    TND_TRY(tnd_gpu_operand(device, work, -1, &ends.y, error));
    TND_TRY(tnd_gpu_operand(device, work, 0, &ends.a, error));
    *out = ends;
    return TANDEM_OK;
}

/* Whether b is one run of values that is repeated along a: its extents are those of a, then 1. */
static bool is_repeated_run(const tandem_tensor *a, const tandem_tensor *b)
{
    int i = 0;
    while (i < TANDEM_MAX_DIMS && b->ne[i] == a->ne[i]) {
        i++;
    }
    while (i < TANDEM_MAX_DIMS && b->ne[i] == 1) {
        i++;
    }
    return i == TANDEM_MAX_DIMS && tandem_tensor_is_contiguous(b);
}

enum tandem_status tnd_gpu_binary(struct tnd_gpu_device *device, const struct tandem_work *work,
                                  struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    const tandem_tensor *b = node->src[1];
    const int64_t n = tandem_tensor_elements(node);
    enum layout layout = LAYOUT_STRIDED;
    int64_t b_row = b->ne[0];
    if (tandem_tensor_is_contiguous(a) && is_repeated_run(a, b)) {
        b_row = tandem_tensor_elements(b);
        layout = b_row == n ? LAYOUT_DENSE : LAYOUT_REPEATED;
    }
    struct ends ends;
    struct tnd_gpu_range b_range;
    struct tnd_gpu_launch launch;
    TND_TRY(find_ends(device, work, &ends, error));
    TND_TRY(tnd_gpu_operand(device, work, 1, &b_range, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ELEMENTWISE, 0, 0, error));
    TND_TRY(tnd_gpu_bind_binary(&launch, ends.y, ends.a, b_range, kernel_ops[node->op],
                                (uint32_t)layout, (uint32_t)n, (uint32_t)node->ne[0],
                                (uint32_t)node->ne[1], (uint32_t)node->ne[2], a->nb[1], a->nb[2],
                                a->nb[3], (uint32_t)b_row, (uint32_t)b->ne[1], (uint32_t)b->ne[2],
                                (uint32_t)b->ne[3], b->nb[1], b->nb[2], b->nb[3], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

enum tandem_status tnd_gpu_unary(struct tnd_gpu_device *device, const struct tandem_work *work,
                                 struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    const int64_t n = tandem_tensor_elements(node);
    const bool is_clamp = node->op == TANDEM_OP_CLAMP;
    const bool is_mask = node->op == TANDEM_OP_DIAG_MASK_INF;
    const bool is_dense = tandem_tensor_is_contiguous(a) && !is_mask; /* a mask needs the places */
    struct ends ends;
    struct tnd_gpu_launch launch;
    TND_TRY(find_ends(device, work, &ends, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ELEMENTWISE, 0, 0, error));
    TND_TRY(tnd_gpu_bind_unary(
        &launch, ends.y, ends.a, kernel_ops[node->op], is_dense ? LAYOUT_DENSE : LAYOUT_STRIDED,
        is_clamp                      ? node->params.clamp.low
        : node->op == TANDEM_OP_SCALE ? node->params.factor
                                      : 0.0f,
        is_clamp ? node->params.clamp.high : 0.0f, is_mask ? node->params.n_past : 0, (uint32_t)n,
        (uint32_t)node->ne[0], (uint32_t)node->ne[1], (uint32_t)node->ne[2], a->nb[1], a->nb[2],
        a->nb[3], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

enum tandem_status tnd_gpu_norm(struct tnd_gpu_device *device, const struct tandem_work *work,
                                struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    struct ends ends;
    struct tnd_gpu_launch launch;
    TND_TRY(find_ends(device, work, &ends, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROWS, 0, 0, error));
    TND_TRY(tnd_gpu_bind_norm_rows(&launch, ends.y, ends.a, node->op == TANDEM_OP_NORM,
                                   node->params.eps, (uint32_t)node->ne[0], (uint32_t)node->ne[1],
                                   (uint32_t)node->ne[2], a->nb[1], a->nb[2], a->nb[3], error));
    return tnd_gpu_ops_run_groups(&launch, (uint64_t)tnd_tensor_rows(node), error);
}

enum tandem_status tnd_gpu_soft_max(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    const tandem_tensor *mask = node->n_src > 1 ? node->src[1] : NULL;
    struct ends ends;
    struct tnd_gpu_range mask_range;
    struct tnd_gpu_launch launch;
    TND_TRY(find_ends(device, work, &ends, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 1, ends.a, &mask_range, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROWS, 0, 0, error));
    TND_TRY(tnd_gpu_bind_soft_max_rows(&launch, ends.y, ends.a, mask_range, mask != NULL,
                                       node->params.soft_max_scale, (uint32_t)node->ne[0],
                                       (uint32_t)node->ne[1], (uint32_t)node->ne[2], a->nb[1],
                                       a->nb[2], a->nb[3], mask != NULL ? mask->nb[1] : 0, error));
    return tnd_gpu_ops_run_groups(&launch, (uint64_t)tnd_tensor_rows(node), error);
}

enum tandem_status tnd_gpu_rope(struct tnd_gpu_device *device, const struct tandem_work *work,
                                struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    const tandem_tensor *factors = node->n_src > 2 ? node->src[2] : NULL;
    const int64_t n_pairs = node->params.rope.n_rot / 2;
    const int64_t n = tnd_tensor_rows(node) * (node->ne[0] - n_pairs);
    const double step =
        n_pairs == 0 ? 0.0 : log2((double)node->params.rope.freq_base) / (double)n_pairs;
    const float step_high = (float)step; /* a double for devices without doubles */
    struct ends ends;
    struct tnd_gpu_range positions, factors_range;
    struct tnd_gpu_launch launch;
    TND_TRY(find_ends(device, work, &ends, error));
    TND_TRY(tnd_gpu_operand(device, work, 1, &positions, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 2, ends.a, &factors_range, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROWS, 0, 0, error));
    TND_TRY(tnd_gpu_bind_rope_rows(
        &launch, ends.y, ends.a, positions, factors_range, factors != NULL,
        node->params.rope.pairs == TANDEM_ROPE_ADJACENT, (uint32_t)n, (uint32_t)n_pairs, step_high,
        (float)(step - (double)step_high), node->params.rope.freq_scale, (uint32_t)node->ne[0],
        (uint32_t)node->ne[1], (uint32_t)node->ne[2], a->nb[1], a->nb[2], a->nb[3], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}
