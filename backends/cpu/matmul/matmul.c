/* SPDX-License-Identifier: MIT
 * Matrix products of the CPU backend: which task can run for which node, what memory it needs, and
 * the way to the drivers matmul_q.c and matmul_f.c. Knows no instruction set. */
#include "backends/cpu/matmul/matmul.h"

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/packing/packed_weights.h"
#include "base/cpu.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

static enum tandem_status refuse(const struct tandem_tensor *node, struct tandem_error *error,
                                 const char *reason)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, 0, 0, "cpu mul_mat: %s",
                         reason);
}

enum tandem_status tnd_cpu_can_pack(const struct tandem_tensor *weight, struct tandem_error *error)
{
    struct tnd_packed_kernels kernels;
    if (!tnd_packed_kernels_for(tnd_cpu_features(), weight->type, &kernels) &&
        tnd_packed_f_kernel(tnd_cpu_features(), weight->type) == NULL) {
        return refuse(weight, error, "no packed form of this type for this instruction set");
    }
    if (weight->root != weight || (weight->flags & TND_TENSOR_CONSTANT) == 0) {
        return refuse(weight, error,
                      "only weights that never change (TANDEM_ROLE_CONSTANT) are packed");
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_mul_mat_supports(const struct tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error)
{
    if (node->op != TANDEM_OP_MUL_MAT) {
        return refuse(node, error, "the node is another operation");
    }
    enum tandem_type type = node->src[0]->type;
    if (task == TANDEM_TASK_NODE) {
        return TANDEM_OK;
    }
    if (!tnd_mul_mat_is_plain(node)) {
        return refuse(node, error, "batched or strided operands run as one node");
    }
    switch (task) {
    case TANDEM_TASK_QUANTIZE_X:
    case TANDEM_TASK_MUL_MAT_Q:
        return tandem_type_is_quantized(type)
                   ? TANDEM_OK
                   : refuse(node, error, "float weights have no integer product");
    case TANDEM_TASK_MUL_MAT_PACKED:
        return tnd_cpu_can_pack(node->src[0], error);
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
    switch (task) {
    case TANDEM_TASK_QUANTIZE_X:
    case TANDEM_TASK_MUL_MAT_Q:
    case TANDEM_TASK_MUL_MAT_PACKED:
        if (!tandem_type_is_quantized(w->type)) {
            return 0;
        }
        return (size_t)node->ne[1] * tnd_x_row_blocks(w->ne[0]) * sizeof(struct tnd_x_block);
    case TANDEM_TASK_DEQUANTIZE_W:
    case TANDEM_TASK_MUL_MAT_F32:
        return w->type == TANDEM_TYPE_F32 ? 0 : (size_t)w->ne[0] * (size_t)w->ne[1] * sizeof(float);
    default:
        return 0;
    }
}

/* Or that of the rows, when there is no copy. */
static size_t packed_scratch(const struct tandem_tensor *node)
{
    int64_t m = node->ne[1];
    int64_t k = node->src[0]->ne[0];
    bool quantized = tandem_type_is_quantized(node->src[0]->type);
    size_t packed = quantized ? tnd_matmul_packed_scratch() : tnd_matmul_packed_f_scratch(m, k);
    size_t rows = quantized ? tnd_matmul_q_scratch() : tnd_matmul_f_scratch(m, k);
    return packed > rows ? packed : rows;
}

size_t tnd_cpu_mul_mat_scratch(const struct tandem_tensor *node, uint32_t task)
{
    switch (task) {
    case TANDEM_TASK_MUL_MAT_Q:
        return tnd_matmul_q_scratch();
    case TANDEM_TASK_MUL_MAT_PACKED:
        return packed_scratch(node);
    case TANDEM_TASK_MUL_MAT_F32:
    case TANDEM_TASK_NODE:
        return tnd_matmul_f_scratch(node->ne[1], node->src[0]->ne[0]);
    default:
        return 0;
    }
}

bool tnd_cpu_mul_mat_is_same_x(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    int form[2] = {0, 0};
    int offset[2] = {0, 0};
    return a->op == TANDEM_OP_MUL_MAT && b->op == TANDEM_OP_MUL_MAT && a->src[1] == b->src[1] &&
           tnd_quant_form(a->src[0]->type, &form[0], &offset[0]) &&
           tnd_quant_form(b->src[0]->type, &form[1], &offset[1]) && form[0] == form[1] &&
           offset[0] == offset[1];
}

/* QUANTIZE_X: all tokens, whatever the row range is: every share of the rows needs them. */
static void quantize_x(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                       struct tandem_worker *worker)
{
    const struct tandem_tensor *x = work->node->src[1];
    struct tnd_x_block *out = work->workspace;
    int64_t m = x->ne[1];
    int form = 0;
    int offset = 0;
    int64_t begin;
    int64_t end;
    (void)tnd_quant_form(work->node->src[0]->type, &form, &offset);
    while (worker->next(worker, m, tnd_chunk(m, worker->count, 16), &begin, &end)) {
        for (int64_t t = begin; t < end; t++) {
            const char *row = (const char *)x->data + (size_t)t * x->nb[1];
            kernels->q.quantize_x((const float *)(const void *)row, x->ne[0], form, offset,
                                  out + (size_t)t * tnd_x_row_blocks(x->ne[0]));
        }
    }
}

static void dequantize_w(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                         struct tandem_worker *worker)
{
    const struct tandem_tensor *w = work->node->src[0];
    float *out = work->workspace;
    int64_t n = work->row_end - work->row_begin;
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

enum tandem_status tnd_cpu_mul_mat_run_with(const struct tnd_cpu_kernels *kernels,
                                            const struct tandem_work *work,
                                            struct tandem_worker *worker)
{
    TND_TRY(tnd_cpu_mul_mat_supports(work->node, work->task, worker->error));
    TND_TRY(check_memory(work, worker));
    switch (work->task) {
    case TANDEM_TASK_QUANTIZE_X:
        quantize_x(kernels, work, worker);
        break;
    case TANDEM_TASK_DEQUANTIZE_W:
        dequantize_w(kernels, work, worker);
        break;
    case TANDEM_TASK_MUL_MAT_Q:
        tnd_matmul_q(&kernels->q, work, worker);
        break;
    default:
        tnd_matmul_f(kernels, work, worker);
        break;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_mul_mat_run(const struct tandem_work *work, struct tandem_worker *worker)
{
    return tnd_cpu_mul_mat_run_with(tnd_cpu_kernels(), work, worker);
}

enum tandem_status tnd_cpu_mul_mat_packed_run(struct tnd_packed_weights *weights,
                                              const struct tandem_work *work,
                                              struct tandem_worker *worker)
{
    const struct tandem_tensor *weight = work->node->src[0];
    const struct tnd_cpu_kernels *kernels = tnd_cpu_kernels();
    struct tnd_packed_kernels packed_kernels;
    TND_TRY(tnd_cpu_mul_mat_supports(work->node, work->task, worker->error));
    TND_TRY(check_memory(work, worker));
    const struct tnd_packed_weight *packed =
        weights != NULL ? tnd_packed_weights_find(weights, weight) : NULL;
    /* Without a copy the rows serve, with the same bits. */
    if (!tandem_type_is_quantized(weight->type)) {
        if (packed != NULL) {
            tnd_matmul_packed_f(tnd_packed_f_kernel(tnd_cpu_features(), weight->type), packed, work,
                                worker);
        } else {
            tnd_matmul_f(kernels, work, worker);
        }
    } else if (packed != NULL &&
               tnd_packed_kernels_for(tnd_cpu_features(), weight->type, &packed_kernels)) {
        tnd_matmul_packed(&kernels->q, &packed_kernels, packed, work, worker);
    } else {
        tnd_matmul_q(&kernels->q, work, worker);
    }
    return TANDEM_OK;
}
