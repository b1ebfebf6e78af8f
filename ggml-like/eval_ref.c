/* SPDX-License-Identifier: MIT
 * Reference executor: every operation in double precision on one thread, written for reading and
 * not for speed. It is what all kernels are compared with, so it follows the formulas of
 * tandem/ops.h and nothing else. */
#include "ggml-like/eval_ref.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_type.h"

char *tnd_ref_at(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    return (char *)tensor->data +
           (size_t)(i0 / tandem_type_block_values(tensor->type)) * tensor->nb[0] +
           (size_t)i1 * tensor->nb[1] + (size_t)i2 * tensor->nb[2] + (size_t)i3 * tensor->nb[3];
}

double tnd_ref_value(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3)
{
    const char *at = tnd_ref_at(tensor, i0, i1, i2, i3);
    float value;
    if (tensor->type == TANDEM_TYPE_F32) {
        memcpy(&value, at, sizeof(value));
        return value;
    }
    if (tensor->type == TANDEM_TYPE_I32) {
        int32_t integer;
        memcpy(&integer, at, sizeof(integer));
        return integer;
    }
    tnd_type_traits(tensor->type)->dequantize(at, &value, 1);
    return value;
}

static enum tandem_status no_memory(const struct tandem_tensor *node, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, node->name, 0, 0, "%s: no memory for a row",
                         tandem_op_name(node->op));
}

/* ---- linear ---- */

enum tandem_status tnd_ref_get_rows(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *w = node->src[0];   /* {K, V} */
    const struct tandem_tensor *ids = node->src[1]; /* {M} */
    for (int64_t m = 0; m < node->ne[1]; m++) {
        int32_t row;
        memcpy(&row, tnd_ref_at(ids, m, 0, 0, 0), sizeof(row));
        if (row < 0 || row >= w->ne[1]) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, node->name, row, w->ne[1],
                                 "get_rows: index %lld is %d, expected 0 to %lld", (long long)m,
                                 (int)row, (long long)w->ne[1] - 1);
        }
        tnd_type_traits(w->type)->dequantize(
            tnd_ref_at(w, 0, row, 0, 0), (float *)(void *)tnd_ref_at(node, 0, m, 0, 0), w->ne[0]);
    }
    return TANDEM_OK;
}

/* Column n of every matrix of the result: one row of each matrix of W against all rows of X. */
static void mul_mat_row(struct tandem_tensor *node, const float *w_row, int64_t n, int64_t i2,
                        int64_t i3)
{
    const struct tandem_tensor *x = node->src[1]; /* {K, M, c, d} */
    for (int64_t m = 0; m < x->ne[1]; m++) {
        const float *x_row = (const float *)(void *)tnd_ref_at(x, 0, m, i2, i3);
        double sum = 0.0;
        for (int64_t k = 0; k < x->ne[0]; k++) {
            sum += (double)w_row[k] * (double)x_row[k];
        }
        *(float *)(void *)tnd_ref_at(node, n, m, i2, i3) = (float)sum;
    }
}

enum tandem_status tnd_ref_mul_mat(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *w = node->src[0]; /* {K, N, a, b} */
    if (tandem_tensor_elements(node) == 0) {
        return TANDEM_OK;
    }
    float *w_row = tnd_alloc(((size_t)w->ne[0] + 1) * sizeof(float)); /* {K} */
    if (w_row == NULL) {
        return no_memory(node, error);
    }
    const int64_t repeat2 = node->ne[2] / w->ne[2];
    const int64_t repeat3 = node->ne[3] / w->ne[3];
    for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {
            for (int64_t n = 0; n < node->ne[0]; n++) {
                tnd_type_traits(w->type)->dequantize(
                    tnd_ref_at(w, 0, n, i2 / repeat2, i3 / repeat3), w_row, w->ne[0]);
                mul_mat_row(node, w_row, n, i2, i3);
            }
        }
    }
    tnd_free(w_row);
    return TANDEM_OK;
}

/* ---- element by element ---- */

static double element(const struct tandem_tensor *node, double a, double b)
{
    switch (node->op) {
    case TANDEM_OP_ADD:
        return a + b;
    case TANDEM_OP_SUB:
        return a - b;
    case TANDEM_OP_MUL:
        return a * b;
    case TANDEM_OP_DIV:
        return a / b;
    case TANDEM_OP_SCALE:
        return a * (double)node->params.factor;
    case TANDEM_OP_SQR:
        return a * a;
    case TANDEM_OP_SQRT:
        return sqrt(a);
    case TANDEM_OP_SILU:
        return a / (1.0 + exp(-a));
    case TANDEM_OP_GELU:
        return 0.5 * a *
               (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (a + 0.044715 * a * a * a)));
    default:
        return a > 0.0 || isnan(a) ? a : 0.0; /* RELU */
    }
}

enum tandem_status tnd_ref_elementwise(struct tandem_tensor *node, struct tandem_error *error)
{
    (void)error;
    const struct tandem_tensor *a = node->src[0];
    const struct tandem_tensor *b = node->n_src > 1 ? node->src[1] : NULL;
    for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < node->ne[1]; i1++) {
                for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
                    const double x = tnd_ref_value(a, i0, i1, i2, i3);
                    const double y = b == NULL ? 0.0
                                               : tnd_ref_value(b, i0 % b->ne[0], i1 % b->ne[1],
                                                               i2 % b->ne[2], i3 % b->ne[3]);
                    *(float *)(void *)tnd_ref_at(node, i0, i1, i2, i3) = (float)element(node, x, y);
                }
            }
        }
    }
    return TANDEM_OK;
}

/* ---- nodes and graphs ---- */

static enum tandem_status operands_check(const struct tandem_tensor *node,
                                         struct tandem_error *error)
{
    bool is_complete = node->data != NULL;
    for (int i = 0; i < node->n_src; i++) {
        is_complete = is_complete && node->src[i]->data != NULL;
    }
    if (!is_complete) {
        return tnd_error_set(error, TANDEM_E_STATE, node->name, 0, 0,
                             "%s: the node or one of its operands has no memory",
                             tandem_op_name(node->op));
    }
    return TANDEM_OK;
}

static enum tandem_status run_custom(struct tandem_tensor *node, struct tandem_error *error)
{
    const enum tandem_status status =
        node->params.custom.fn(node->params.custom.user, node, 0, node->params.custom.n_items);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, node->name, 0, 0, "custom: the callback returned %s",
                             tandem_status_name(status));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_eval_ref_node(struct tandem_tensor *node, struct tandem_error *error)
{
    if (node->op == TANDEM_OP_NONE || tnd_op_is_view(node->op)) {
        return TANDEM_OK;
    }
    TND_TRY(operands_check(node, error));
    switch (node->op) {
    case TANDEM_OP_GET_ROWS:
        return tnd_ref_get_rows(node, error);
    case TANDEM_OP_MUL_MAT:
        return tnd_ref_mul_mat(node, error);
    case TANDEM_OP_RMS_NORM:
    case TANDEM_OP_NORM:
    case TANDEM_OP_ROPE:
    case TANDEM_OP_SOFT_MAX:
    case TANDEM_OP_DIAG_MASK_INF:
        return tnd_ref_rows(node, error);
    case TANDEM_OP_CPY:
    case TANDEM_OP_CONT:
    case TANDEM_OP_CONCAT:
        return tnd_ref_layout(node, error);
    case TANDEM_OP_ATTENTION:
        return tnd_ref_attention(node, error);
    case TANDEM_OP_CUSTOM:
        return run_custom(node, error);
    default:
        return tnd_ref_elementwise(node, error);
    }
}

enum tandem_status tnd_eval_ref_graph(struct tandem_graph *graph, struct tandem_error *error)
{
    if (!graph->finished) {
        return tnd_error_set(error, TANDEM_E_STATE, "graph", 0, 0, "graph: it is not finished");
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        TND_TRY(tnd_eval_ref_node(graph->nodes[i], error));
    }
    return TANDEM_OK;
}
