/* SPDX-License-Identifier: MIT
 * The arithmetic of the simulated device: matrix products row by row, everything else through the
 * reference of ggml-like. */
#include "backends/sim/sim_compute.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

static enum tandem_status refuse(uint32_t task, const tandem_tensor *node, const char *why,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, "sim", (int64_t)task, 0,
                         "backend sim: task %s of %s: %s", tandem_task_name((enum tandem_task)task),
                         tandem_op_name(node->op), why);
}

enum tandem_status tnd_sim_compute_supports(const tandem_tensor *node, uint32_t task,
                                            struct tandem_error *error)
{
    if (tnd_op_is_view(node->op) || node->op == TANDEM_OP_NONE) {
        return refuse(task, node, "there is nothing to compute", error);
    }
    if (task == TANDEM_TASK_NODE) {
        return TANDEM_OK;
    }
    if (task != TANDEM_TASK_DEQUANTIZE_W && task != TANDEM_TASK_MUL_MAT_F32) {
        return refuse(task, node, "offers node, dequantize_w and mul_mat_f32", error);
    }
    if (!tnd_mul_mat_is_plain(node)) {
        return refuse(task, node, "is for products of two dense matrices whose first is a leaf",
                      error);
    }
    if (task == TANDEM_TASK_DEQUANTIZE_W && node->src[0]->type == TANDEM_TYPE_F32) {
        return refuse(task, node, "the weights are F32 already", error);
    }
    size_t bytes = 0;
    if (!tnd_mul_size((size_t)node->src[0]->ne[0], (size_t)node->src[0]->ne[1], &bytes) ||
        !tnd_mul_size(bytes, sizeof(float), &bytes)) {
        return refuse(task, node, "the weights are too large", error);
    }
    return TANDEM_OK;
}

size_t tnd_sim_compute_workspace(const tandem_tensor *node, uint32_t task)
{
    if (task == TANDEM_TASK_NODE || node->op != TANDEM_OP_MUL_MAT ||
        node->src[0]->type == TANDEM_TYPE_F32 ||
        tnd_sim_compute_supports(node, task, NULL) != TANDEM_OK) {
        return 0;
    }
    return (size_t)node->src[0]->ne[0] * (size_t)node->src[0]->ne[1] * sizeof(float);
}

/* ---- matrix products ---- */

/* Eight partial sums: fast enough for tests, and the same order for every row. */
static double dot(const float *a, const float *b, int64_t n)
{
    double sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++) {
            sums[j] += (double)a[i + j] * (double)b[i + j];
        }
    }
    for (; i < n; i++) {
        sums[0] += (double)a[i] * (double)b[i];
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static enum tandem_status grow_row(struct tnd_sim_row *row, int64_t n, struct tandem_error *error)
{
    if (n <= row->n) {
        return TANDEM_OK;
    }
    float *values = tnd_alloc((size_t)n * sizeof(float));
    if (values == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "sim", n, 0,
                             "backend sim: no memory for a row");
    }
    tnd_free(row->values);
    row->values = values;
    row->n = n;
    return TANDEM_OK;
}

/* Computes column n of matrix (i2, i3) of the result. */
static void multiply_row(const tandem_tensor *node, const float *w_row, int64_t n, int64_t i2,
                         int64_t i3)
{
    const tandem_tensor *x = node->src[1]; /* {K, M, c, d} */
    const char *from = (const char *)x->data + (size_t)i2 * x->nb[2] + (size_t)i3 * x->nb[3];
    char *to = (char *)node->data + (size_t)i2 * node->nb[2] + (size_t)i3 * node->nb[3];
    for (int64_t m = 0; m < node->ne[1]; m++) {
        const float *x_row = (const float *)(const void *)(from + (size_t)m * x->nb[1]);
        float *y_row = (float *)(void *)(to + (size_t)m * node->nb[1]);
        y_row[n] = (float)dot(w_row, x_row, x->ne[0]);
    }
}

/* Converts rows of W one after the other; W_F32 (or NULL) holds them as floats already. */
static void multiply_matrix(const struct tandem_work *work, const float *w_f32, float *row,
                            int64_t i2, int64_t i3)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *w = node->src[0]; /* {K, N, a, b} */
    int64_t w2 = i2 / (node->ne[2] / w->ne[2]);
    int64_t w3 = i3 / (node->ne[3] / w->ne[3]);
    const size_t matrix = (size_t)w2 * w->nb[2] + (size_t)w3 * w->nb[3];
    const struct tnd_type_traits *traits = tnd_type_traits(w->type);
    for (int64_t n = work->row_begin; n < work->row_end; n++) {
        const float *values = w_f32 != NULL ? w_f32 + n * w->ne[0] : row;
        if (w_f32 == NULL) {
            traits->dequantize((const char *)w->data + matrix + (size_t)n * w->nb[1], row,
                               w->ne[0]);
        }
        multiply_row(node, values, n, i2, i3);
    }
}

static enum tandem_status multiply(const struct tandem_work *work, const float *w_f32,
                                   struct tnd_sim_row *row, struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    if (w_f32 == NULL) {
        TND_TRY(grow_row(row, node->src[0]->ne[0], error));
    }
    for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {
            multiply_matrix(work, w_f32, row->values, i2, i3);
        }
    }
    return TANDEM_OK;
}

static void dequantize(const struct tandem_work *work)
{
    const tandem_tensor *w = work->node->src[0];
    const struct tnd_type_traits *traits = tnd_type_traits(w->type);
    for (int64_t n = work->row_begin; n < work->row_end; n++) {
        traits->dequantize((const char *)w->data + (size_t)n * w->nb[1],
                           (float *)work->workspace + n * w->ne[0], w->ne[0]);
    }
}

enum tandem_status tnd_sim_compute(const struct tandem_work *work, struct tnd_sim_row *row,
                                   struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
        dequantize(work);
        return TANDEM_OK;
    }
    if (node->op == TANDEM_OP_MUL_MAT) {
        bool from_workspace =
            work->task == TANDEM_TASK_MUL_MAT_F32 && node->src[0]->type != TANDEM_TYPE_F32;
        return multiply(work, from_workspace ? work->workspace : NULL, row, error);
    }
    return tnd_eval_ref_node((tandem_tensor *)node, error);
}

void tnd_sim_spoil(const struct tandem_work *work)
{
    const tandem_tensor *node = work->node;
    bool is_empty = tandem_tensor_elements(node) == 0 ||
                    (node->op == TANDEM_OP_MUL_MAT && work->row_begin >= work->row_end);
    if (is_empty || node->type != TANDEM_TYPE_F32 || work->task == TANDEM_TASK_DEQUANTIZE_W) {
        return;
    }
    float *value = node->data;
    value += node->op == TANDEM_OP_MUL_MAT ? work->row_begin : 0;
    *value = -2 * *value + 100;
}
