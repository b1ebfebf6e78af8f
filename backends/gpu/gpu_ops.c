/* SPDX-License-Identifier: MIT
 * Operations on a device: which function runs which operation, and what is refused for which
 * reason. Counts have 32 bits in the kernels, so larger nodes are refused; strides and addresses
 * have 64. */
#include "backends/gpu/gpu_ops.h"

#include "backends/gpu/gpu_ops_parts.h"
#include "base/alloc.h"

enum { GROUP = 128, SMALL_GROUP = 64 };

/* One row per operation; `supports` NULL: all shapes and types are supported. */
static const struct {
    tnd_gpu_op_submit_fn *submit;
    tnd_gpu_op_supports_fn *supports;
} drivers[TANDEM_OP_COUNT] = {
    [TANDEM_OP_GET_ROWS] = {tnd_gpu_get_rows, tnd_gpu_get_rows_supports},
    [TANDEM_OP_MUL_MAT] = {tnd_gpu_mul_mat_views, NULL},
    [TANDEM_OP_MUL_MAT_ID] = {tnd_gpu_mul_mat_id, tnd_gpu_mul_mat_id_supports},
    [TANDEM_OP_TOP_K] = {tnd_gpu_top_k, tnd_gpu_top_k_supports},
    [TANDEM_OP_SAMPLE] = {tnd_gpu_sample, NULL},
    [TANDEM_OP_GATHER] = {tnd_gpu_gather, tnd_gpu_gather_supports},
    [TANDEM_OP_WEIGHTED_SUM] = {tnd_gpu_weighted_sum, NULL},
    [TANDEM_OP_ADD] = {tnd_gpu_binary, NULL},
    [TANDEM_OP_SUB] = {tnd_gpu_binary, NULL},
    [TANDEM_OP_MUL] = {tnd_gpu_binary, NULL},
    [TANDEM_OP_DIV] = {tnd_gpu_binary, NULL},
    [TANDEM_OP_SCALE] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_SQR] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_SQRT] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_SILU] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_SIGMOID] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_TANH] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_GELU] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_GELU_ERF] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_RELU] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_CLAMP] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_DIAG_MASK_INF] = {tnd_gpu_unary, NULL},
    [TANDEM_OP_RMS_NORM] = {tnd_gpu_norm, NULL},
    [TANDEM_OP_NORM] = {tnd_gpu_norm, NULL},
    [TANDEM_OP_ROPE] = {tnd_gpu_rope, NULL},
    [TANDEM_OP_SOFT_MAX] = {tnd_gpu_soft_max, NULL},
    [TANDEM_OP_CPY] = {tnd_gpu_copy, tnd_gpu_copy_supports},
    [TANDEM_OP_CONT] = {tnd_gpu_copy, tnd_gpu_copy_supports},
    [TANDEM_OP_CONCAT] = {tnd_gpu_copy, tnd_gpu_copy_supports},
    [TANDEM_OP_ATTENTION] = {tnd_gpu_attention, tnd_gpu_attention_supports},
    [TANDEM_OP_PROGRAM] = {tnd_gpu_work, tnd_gpu_work_supports},
    [TANDEM_OP_MOVE] = {tnd_gpu_work, tnd_gpu_work_supports},
    [TANDEM_OP_REDUCE] = {tnd_gpu_work, tnd_gpu_work_supports},
    [TANDEM_OP_POOL] = {tnd_gpu_work, tnd_gpu_work_supports},
    [TANDEM_OP_CONV] = {tnd_gpu_work, tnd_gpu_work_supports},
    [TANDEM_OP_CONTRACT] = {tnd_gpu_work, tnd_gpu_work_supports},
};

/* ---- shared ---- */

enum tandem_status tnd_gpu_ops_refuse(const struct tnd_gpu_device *device,
                                      const tandem_tensor *node, const char *reason,
                                      struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, 0, 0, "backend %s: %s %s",
                         device->driver->name, tandem_op_name(node->op), reason);
}

enum tandem_status tnd_gpu_ops_find(struct tnd_gpu_device *device, const struct tandem_work *work,
                                    int i, struct tnd_gpu_range other,
                                    struct tnd_gpu_range *out_range, struct tandem_error *error)
{
    const tandem_tensor *tensor = i < work->node->n_src ? work->node->src[i] : NULL;
    if (tensor == NULL || tandem_tensor_elements(tensor) == 0) {
        *out_range = other;
        return TANDEM_OK;
    }
    return tnd_gpu_operand(device, work, i, out_range, error);
}

size_t tnd_gpu_ops_group(const struct tnd_gpu_device *device)
{
    return device->caps.max_group < GROUP ? SMALL_GROUP : GROUP;
}

enum tandem_status tnd_gpu_ops_begin(struct tnd_gpu_launch *launch, struct tnd_gpu_device *device,
                                     enum tnd_gpu_source source, int type, int rows,
                                     struct tandem_error *error)
{
    const size_t group = tnd_gpu_ops_group(device);
    const struct tnd_gpu_variant variant = {
        .type = type, .rows = rows, .group = group == GROUP ? 0 : (int32_t)group};
    return tnd_gpu_launch_begin(launch, device, source, &variant, error);
}

enum tandem_status tnd_gpu_ops_run_groups(struct tnd_gpu_launch *launch, uint64_t n,
                                          struct tandem_error *error)
{
    const size_t local = tnd_gpu_ops_group(launch->device);
    const size_t global = (size_t)n * local;
    return tnd_gpu_launch_run(launch, 1, &global, &local, error);
}

enum tandem_status tnd_gpu_ops_run_items(struct tnd_gpu_launch *launch, uint64_t n,
                                         struct tandem_error *error)
{
    const size_t group = tnd_gpu_ops_group(launch->device);
    return tnd_gpu_ops_run_groups(launch, (n + group - 1) / group, error);
}

/* ---- what is supported ---- */

/* Whether all extents fit into 32 bits; the number of an operand's values may exceed that. */
static bool is_small(const tandem_tensor *tensor)
{
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        if (tensor->ne[i] > INT32_MAX) {
            return false;
        }
    }
    return true;
}

/* Whether kernels can read whole words; planned memory always allows it. */
static bool is_aligned(const tandem_tensor *tensor)
{
    const size_t alignment =
        tensor->type == TANDEM_TYPE_F32 || tensor->type == TANDEM_TYPE_I32 ? 4 : 2;
    return (uintptr_t)tensor->root->data % alignment == 0;
}

enum tandem_status tnd_gpu_ops_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                        struct tandem_error *error)
{
    if ((unsigned int)node->op >= TANDEM_OP_COUNT || drivers[node->op].submit == NULL) {
        return tnd_gpu_ops_refuse(device, node, "has no kernel", error);
    }
    if (device->caps.max_group < SMALL_GROUP || device->caps.local_bytes < 24 * 1024) {
        return tnd_gpu_ops_refuse(device, node, "needs groups of 64 and 24 KiB of local memory",
                                  error);
    }
    bool fits = is_small(node) && tandem_tensor_elements(node) <= INT32_MAX;
    bool aligned = is_aligned(node);
    for (int i = 0; i < node->n_src; i++) {
        fits = fits && is_small(node->src[i]);
        aligned = aligned && is_aligned(node->src[i]);
    }
    if (!fits) {
        return tnd_gpu_ops_refuse(device, node, "has more values than kernels count (2^31 - 1)",
                                  error);
    }
    if (!aligned) {
        return tnd_gpu_ops_refuse(device, node, "has an operand at an odd address", error);
    }
    if (node->op != TANDEM_OP_CPY && !tandem_tensor_is_contiguous(node)) {
        return tnd_gpu_ops_refuse(device, node, "has a result with gaps", error);
    }
    return drivers[node->op].supports != NULL ? drivers[node->op].supports(device, node, error)
                                              : TANDEM_OK;
}

enum tandem_status tnd_gpu_ops_submit(struct tnd_gpu_device *device, const struct tandem_work *work,
                                      struct tandem_error *error)
{
    if (tandem_tensor_elements(work->node) == 0) {
        return TANDEM_OK;
    }
    return drivers[work->node->op].submit(device, work, error);
}

/* ---- state ---- */

enum tandem_status tnd_gpu_ops_open(struct tnd_gpu_device *device, struct tandem_error *error)
{
    device->ops = tnd_calloc(1, sizeof(*device->ops));
    return device->ops != NULL ? TANDEM_OK : tnd_gpu_no_memory(device, sizeof(*device->ops), error);
}

void tnd_gpu_ops_close(struct tnd_gpu_device *device)
{
    if (device->ops != NULL) {
        device->driver->buffer_free(device->context, device->ops->fault);
    }
    tnd_gpu_work_close(device);
    tnd_free(device->ops);
    device->ops = NULL;
}
