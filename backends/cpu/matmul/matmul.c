/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend: which task supports which node, how much memory it needs, and
 * calls of the drivers matmul_q.c and matmul_f.c. Knows no instruction set. */
#include "backends/cpu/matmul/matmul.h"

#include "backends/cpu/matmul/matmul_id.h"
#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

static enum tandem_status refuse(const struct tandem_tensor *node, struct tandem_error *error,
                                 const char *reason)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, 0, 0, "cpu mul_mat: %s",
                         reason);
}

enum tandem_status tnd_cpu_can_pack(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *weight, struct tandem_error *error)
{
    if (kernels->packed[weight->type].multiply == NULL && kernels->packed_f[weight->type] == NULL) {
        return refuse(weight, error, "no packed form of this type for this instruction set");
    }
    if (weight->root != weight || (weight->flags & TND_TENSOR_CONSTANT) == 0) {
        return refuse(weight, error,
                      "only weights that never change (TANDEM_ROLE_CONSTANT) are packed");
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_mul_mat_supports(const struct tnd_cpu_kernels *kernels,
                                            const struct tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error)
{
    const bool has_experts = node->op == TANDEM_OP_MUL_MAT_ID;
    if (node->op != TANDEM_OP_MUL_MAT && !has_experts) {
        return refuse(node, error, "the node is another operation");
    }
    enum tandem_type type = node->src[0]->type;
    if (task == TANDEM_TASK_NODE) {
        return TANDEM_OK;
    }
    if (has_experts && (task == TANDEM_TASK_DEQUANTIZE_W || task == TANDEM_TASK_MUL_MAT_F32)) {
        return refuse(node, error, "weights of experts are not dequantised as a whole");
    }
    if (!has_experts && !tnd_mul_mat_is_plain(node)) {
        return refuse(node, error, "batched or strided operands run as one node");
    }
    switch (task) {
    case TANDEM_TASK_QUANTIZE_X:
    case TANDEM_TASK_MUL_MAT_Q:
        return tnd_quant_code(type) != NULL
                   ? TANDEM_OK
                   : refuse(node, error, "weights of this type have no integer product");
    case TANDEM_TASK_TILE_X:
    case TANDEM_TASK_MUL_MAT_TILES:
        return kernels->amx.name != NULL
                   ? TANDEM_OK
                   : refuse(node, error, "this CPU has no AMX, or the system does not permit it");
    case TANDEM_TASK_MUL_MAT_PACKED:
        return tnd_cpu_can_pack(kernels, node->src[0], error);
    case TANDEM_TASK_MUL_MAT_BF16:
        if (has_experts) {
            return refuse(node, error, "weights of experts meet no rounded activations");
        }
        if (type != TANDEM_TYPE_BF16 || kernels->packed_bf16.multiply == NULL) {
            return refuse(node, error, "the weights are not BF16, or this CPU has no BF16 product");
        }
        return tnd_cpu_can_pack(kernels, node->src[0], error);
    case TANDEM_TASK_DEQUANTIZE_W:
        return type != TANDEM_TYPE_F32 ? TANDEM_OK
                                       : refuse(node, error, "the weights are F32 already");
    case TANDEM_TASK_MUL_MAT_F32:
        return TANDEM_OK;
    default:
        return refuse(node, error, "no such task");
    }
}

size_t tnd_cpu_mul_mat_workspace(const struct tandem_tensor *node, uint32_t task)
{
    const struct tandem_tensor *w = node->src[0];
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        return tnd_cpu_mul_mat_id_workspace(node, task);
    }
    switch (task) {
    case TANDEM_TASK_QUANTIZE_X:
    case TANDEM_TASK_MUL_MAT_Q:
    case TANDEM_TASK_MUL_MAT_PACKED:
        if (tnd_quant_code(w->type) == NULL) {
            return 0;
        }
        return (size_t)node->ne[1] * tnd_x_row_blocks(w->ne[0]) * sizeof(struct tnd_x_block);
    case TANDEM_TASK_TILE_X:
    case TANDEM_TASK_MUL_MAT_TILES:
        return tnd_matmul_amx_workspace(w->type, node->ne[1], w->ne[0]);
    case TANDEM_TASK_DEQUANTIZE_W:
    case TANDEM_TASK_MUL_MAT_F32:
        return w->type == TANDEM_TYPE_F32 ? 0 : (size_t)w->ne[0] * (size_t)w->ne[1] * sizeof(float);
    default:
        return 0;
    }
}

/* Scratch memory of the packed product, or of the unpacked one if there is no copy. */
static size_t packed_scratch(const struct tandem_tensor *node)
{
    int64_t m = node->ne[1];
    int64_t k = node->src[0]->ne[0];
    bool quantized = tnd_quant_code(node->src[0]->type) != NULL;
    size_t packed = quantized ? tnd_matmul_packed_scratch() : tnd_matmul_packed_f_scratch(m, k);
    size_t rows = quantized ? tnd_matmul_q_scratch() : tnd_matmul_f_scratch(m, k);
    return packed > rows ? packed : rows;
}

size_t tnd_cpu_mul_mat_scratch(const struct tandem_tensor *node, uint32_t task)
{
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        return tnd_cpu_mul_mat_id_scratch(node, task);
    }
    switch (task) {
    case TANDEM_TASK_MUL_MAT_Q:
        return tnd_quant_code(node->src[0]->type) != NULL
                   ? tnd_matmul_q_scratch()
                   : tnd_matmul_f_scratch(node->ne[1], node->src[0]->ne[0]);
    case TANDEM_TASK_MUL_MAT_PACKED:
    case TANDEM_TASK_MUL_MAT_BF16:
        return packed_scratch(node);
    case TANDEM_TASK_TILE_X:
    case TANDEM_TASK_MUL_MAT_TILES:
        return tnd_matmul_amx_scratch();
    case TANDEM_TASK_MUL_MAT_F32:
    case TANDEM_TASK_NODE:
        return tnd_matmul_f_scratch(node->ne[1], node->src[0]->ne[0]);
    default:
        return 0;
    }
}

bool tnd_cpu_mul_mat_is_same_x(const struct tandem_tensor *a, const struct tandem_tensor *b,
                               uint32_t task)
{
    const bool is_product = a->op == TANDEM_OP_MUL_MAT || a->op == TANDEM_OP_MUL_MAT_ID;
    if (!is_product || a->op != b->op || a->src[1] != b->src[1]) {
        return false;
    }
    if (task != TANDEM_TASK_QUANTIZE_X) {
        return task == TANDEM_TASK_TILE_X &&
               tnd_matmul_amx_x_parts(a->src[0]->type) == tnd_matmul_amx_x_parts(b->src[0]->type);
    }
    const struct tnd_quant_code *code_a = tnd_quant_code(a->src[0]->type);
    const struct tnd_quant_code *code_b = tnd_quant_code(b->src[0]->type);
    return code_a != NULL && code_b != NULL && code_a->form == code_b->form &&
           code_a->offset == code_b->offset;
}

/* QUANTIZE_X: all tokens, whatever the row range, because every range of rows needs them. */
static void quantize_x(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                       struct tandem_worker *worker)
{
    const struct tandem_tensor *x = work->node->src[1];
    struct tnd_x_block *out = work->workspace;
    int64_t m = x->ne[1];
    const struct tnd_quant_code *code = tnd_quant_code(work->node->src[0]->type);
    TND_ASSERT(x->ne[0] % TND_X_BLOCK == 0 && x->nb[0] == sizeof(float));
    int64_t begin;
    int64_t end;
    while (worker->next(worker, m, tnd_chunk(m, worker->count, 16), &begin, &end)) {
        for (int64_t t = begin; t < end; t++) {
            const char *row = (const char *)x->data + (size_t)t * x->nb[1];
            kernels->q.quantize_x((const float *)(const void *)row, x->ne[0], code->form,
                                  code->offset, out + (size_t)t * tnd_x_row_blocks(x->ne[0]));
        }
    }
}

static void dequantize_w(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                         struct tandem_worker *worker)
{
    const struct tandem_tensor *w = work->node->src[0];
    float *out = work->workspace;
    int64_t n = work->row_end - work->row_begin;
    TND_ASSERT(w->ne[2] == 1 && w->ne[3] == 1);
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n, tnd_chunk(n, worker->count, 32), &begin, &end)) {
        for (int64_t row = work->row_begin + begin; row < work->row_begin + end; row++) {
            kernels->dequantize[w->type]((const char *)w->data + (size_t)row * w->nb[1],
                                         out + row * w->ne[0], w->ne[0]);
        }
    }
}

static enum tandem_status check_memory(const struct tandem_work *work,
                                       const struct tandem_worker *worker)
{
    size_t workspace = tnd_cpu_mul_mat_workspace(work->node, work->task);
    size_t scratch = tnd_cpu_mul_mat_scratch(work->node, work->task);
    if (work->workspace_bytes < workspace || worker->scratch_bytes < scratch) {
        return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, work->node->name,
                             (int64_t)work->workspace_bytes, (int64_t)workspace,
                             "cpu mul_mat: %zu bytes of workspace and %zu of scratch, needs %zu "
                             "and %zu",
                             work->workspace_bytes, worker->scratch_bytes, workspace, scratch);
    }
    return TANDEM_OK;
}

/* Uses the packed copy; without one the original rows, with the same bits. For a type without an
 * integer kernel, the activations are not quantised, or only rounded by the task. */
static void mul_mat_q(const struct tnd_cpu_kernels *kernels, const struct tnd_packed_weight *packed,
                      const struct tandem_work *work, struct tandem_worker *worker)
{
    const bool quantized = tnd_quant_code(work->node->src[0]->type) != NULL;
    if (packed == NULL && quantized) {
        tnd_matmul_q(&kernels->q, work, worker);
    } else if (packed == NULL && work->task != TANDEM_TASK_MUL_MAT_BF16) {
        tnd_matmul_f(kernels, work, worker);
    } else if (quantized) {
        tnd_matmul_packed(kernels, packed, work, worker);
    } else {
        tnd_matmul_packed_f(kernels, packed, work, worker);
    }
}

enum tandem_status tnd_cpu_mul_mat_run(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_work *work, struct tandem_worker *worker)
{
    TND_TRY(tnd_cpu_mul_mat_supports(kernels, work->node, work->task, worker->error));
    TND_TRY(check_memory(work, worker));
    TND_ASSERT(0 <= work->row_begin && work->row_begin <= work->row_end);
    TND_ASSERT(work->row_end <= work->node->ne[0] || work->node->op == TANDEM_OP_MUL_MAT_ID);
    TND_ASSERT((uintptr_t)worker->scratch % TND_ALIGNMENT == 0); /* kernels store whole lines */
    if (work->node->op == TANDEM_OP_MUL_MAT_ID) {
        return tnd_cpu_mul_mat_id_run(kernels, work, worker);
    }
    switch (work->task) {
    case TANDEM_TASK_QUANTIZE_X:
        if (tnd_quant_code(work->node->src[0]->type) != NULL) {
            quantize_x(kernels, work, worker);
        }
        break;
    case TANDEM_TASK_DEQUANTIZE_W:
        dequantize_w(kernels, work, worker);
        break;
    case TANDEM_TASK_TILE_X:
        tnd_matmul_amx_tile_x(kernels, work, worker);
        break;
    case TANDEM_TASK_MUL_MAT_TILES:
        tnd_matmul_amx(kernels, work->prepared, work, worker);
        break;
    case TANDEM_TASK_MUL_MAT_Q:
        mul_mat_q(kernels, NULL, work, worker);
        break;
    case TANDEM_TASK_MUL_MAT_PACKED:
    case TANDEM_TASK_MUL_MAT_BF16:
        mul_mat_q(kernels, work->prepared, work, worker);
        break;
    default:
        tnd_matmul_f(kernels, work, worker);
        break;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_mul_mat(const struct tnd_cpu_kernels *kernels,
                                   const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_work work = {
        .node = node, .task = TANDEM_TASK_NODE, .row_end = node->ne[0]};
    return tnd_cpu_mul_mat_run(kernels, &work, worker);
}
