/* SPDX-License-Identifier: MIT
 * Matrix operations, mul_mat and get_rows: builders and reference. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/tnd_type.h"

bool tnd_build_ready_weights(tandem_context *context, enum tandem_op op, const tandem_tensor *w)
{
    const char *name = tandem_op_name(op);
    if (!tnd_build_ready(context, op, "w", w)) {
        return false;
    }
    if (w->type == TANDEM_TYPE_I32) {
        tnd_build_fail(context, TANDEM_E_TYPE, name, w->type, 0,
                       "%s: w is i32, expected a type of weights", name);
        return false;
    }
    if (w->nb[0] != tandem_type_block_bytes(w->type)) {
        char shape[TND_SHAPE_TEXT_BYTES];
        tnd_build_fail(context, TANDEM_E_SHAPE, name, (int64_t)w->nb[0],
                       (int64_t)tandem_type_block_bytes(w->type),
                       "%s: rows of w %s are not dense (nb[0] is %zu): use cont", name,
                       tnd_shape_text(w->ne, shape), w->nb[0]);
        return false;
    }
    return true;
}

/* Weights, or I32 with dense rows. */
static bool ready_rows(tandem_context *context, const tandem_tensor *w)
{
    if (w == NULL || w->type != TANDEM_TYPE_I32) {
        return tnd_build_ready_weights(context, TANDEM_OP_GET_ROWS, w);
    }
    if (!tnd_build_ready(context, TANDEM_OP_GET_ROWS, "w", w)) {
        return false;
    }
    if (w->nb[0] != sizeof(int32_t)) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "get_rows", (int64_t)w->nb[0], sizeof(int32_t),
                       "get_rows: rows of w are not dense (nb[0] is %zu): use cont", w->nb[0]);
        return false;
    }
    return true;
}

tandem_tensor *tandem_get_rows(tandem_context *context, tandem_tensor *w, tandem_tensor *ids)
{
    char w_shape[TND_SHAPE_TEXT_BYTES];
    char ids_shape[TND_SHAPE_TEXT_BYTES];
    if (!ready_rows(context, w) || !tnd_build_ready(context, TANDEM_OP_GET_ROWS, "ids", ids)) {
        return NULL;
    }
    if (ids->type != TANDEM_TYPE_I32) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "get_rows", ids->type, TANDEM_TYPE_I32,
                              "get_rows: ids is %s, expected i32", tandem_type_name(ids->type));
    }
    if (w->ne[2] != 1 || w->ne[3] != 1) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "get_rows", w->ne[2] * w->ne[3], 1,
                              "get_rows: w %s is no matrix", tnd_shape_text(w->ne, w_shape));
    }
    if (tnd_tensor_rows(ids) != 1 || ids->nb[0] != sizeof(int32_t)) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "get_rows", tnd_tensor_rows(ids), 1,
                              "get_rows: ids %s is no dense row",
                              tnd_shape_text(ids->ne, ids_shape));
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {w->ne[0], ids->ne[0], 1, 1}; /* {K, M} */
    enum tandem_type type = w->type == TANDEM_TYPE_I32 ? TANDEM_TYPE_I32 : TANDEM_TYPE_F32;
    return tnd_build_node(context, TANDEM_OP_GET_ROWS, type, ne, w, ids);
}

/* Whether `few` matrices can be repeated evenly to `many`. */
static bool is_repeated(int64_t few, int64_t many)
{
    return few == many || (few > 0 && many % few == 0);
}

tandem_tensor *tandem_mul_mat(tandem_context *context, tandem_tensor *w, tandem_tensor *x)
{
    if (!tnd_build_ready_weights(context, TANDEM_OP_MUL_MAT, w) ||
        !tnd_build_ready_f32(context, TANDEM_OP_MUL_MAT, "x", x)) {
        return NULL;
    }
    char w_shape[TND_SHAPE_TEXT_BYTES];
    char x_shape[TND_SHAPE_TEXT_BYTES];
    if (w->ne[0] != x->ne[0]) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "mul_mat", x->ne[0], w->ne[0],
                              "mul_mat: K of w %s is %lld, K of x %s is %lld",
                              tnd_shape_text(w->ne, w_shape), (long long)w->ne[0],
                              tnd_shape_text(x->ne, x_shape), (long long)x->ne[0]);
    }
    for (int i = 2; i < TANDEM_MAX_DIMS; i++) {
        if (!is_repeated(w->ne[i], x->ne[i])) {
            return tnd_build_fail(
                context, TANDEM_E_SHAPE, "mul_mat", x->ne[i], w->ne[i],
                "mul_mat: ne[%d] of x %s is %lld, not a multiple of ne[%d] of w %s", i,
                tnd_shape_text(x->ne, x_shape), (long long)x->ne[i], i,
                tnd_shape_text(w->ne, w_shape));
        }
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {w->ne[1], x->ne[1], x->ne[2], x->ne[3]}; /* {N, M, c, d} */
    return tnd_build_node(context, TANDEM_OP_MUL_MAT, TANDEM_TYPE_F32, ne, w, x);
}

/* ---- reference ---- */

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
        if (w->type == TANDEM_TYPE_I32) {
            memcpy(tnd_ref_at(node, 0, m, 0, 0), tnd_ref_at(w, 0, row, 0, 0),
                   (size_t)w->ne[0] * sizeof(row));
            continue;
        }
        tnd_type_traits(w->type)->dequantize(
            tnd_ref_at(w, 0, row, 0, 0), (float *)(void *)tnd_ref_at(node, 0, m, 0, 0), w->ne[0]);
    }
    return TANDEM_OK;
}

/* Column n of every matrix of the result: one row of each matrix of W times all rows of X. */
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
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, 0, 0, "%s: no memory for a row",
                             tandem_op_name(node->op));
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
