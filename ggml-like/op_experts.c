/* SPDX-License-Identifier: MIT
 * Operations of mixtures of experts (Shazeer et al. 2017, arXiv:1701.06538): products with weights
 * that each token selects, and what a router needs to select them. Builders and reference. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/tnd_type.h"

/* Whether `ids` is I32 {any, m} with dense rows. */
static bool ids_ready(tandem_context *context, enum tandem_op op, const tandem_tensor *ids,
                      int64_t m)
{
    const char *name = tandem_op_name(op);
    char shape[TND_SHAPE_TEXT_BYTES];
    if (!tnd_build_ready(context, op, "ids", ids)) {
        return false;
    }
    if (ids->type != TANDEM_TYPE_I32) {
        tnd_build_fail(context, TANDEM_E_TYPE, name, ids->type, TANDEM_TYPE_I32,
                       "%s: ids is %s, expected i32", name, tandem_type_name(ids->type));
        return false;
    }
    if (ids->nb[0] != sizeof(int32_t) || ids->ne[1] != m || ids->ne[2] != 1 || ids->ne[3] != 1) {
        tnd_build_fail(context, TANDEM_E_SHAPE, name, ids->ne[1], m,
                       "%s: ids %s has no dense row for each of %lld tokens", name,
                       tnd_shape_text(ids->ne, shape), (long long)m);
        return false;
    }
    return true;
}

tandem_tensor *tandem_mul_mat_id(tandem_context *context, tandem_tensor *w, tandem_tensor *x,
                                 tandem_tensor *ids)
{
    const enum tandem_op op = TANDEM_OP_MUL_MAT_ID;
    if (!tnd_build_ready_weights(context, op, w) || !tnd_build_ready_f32(context, op, "x", x) ||
        !ids_ready(context, op, ids, x->ne[2])) {
        return NULL;
    }
    char w_shape[TND_SHAPE_TEXT_BYTES];
    char x_shape[TND_SHAPE_TEXT_BYTES];
    if (w->ne[0] != x->ne[0] || w->ne[3] != 1 || x->ne[3] != 1) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "mul_mat_id", x->ne[0], w->ne[0],
                              "mul_mat_id: w %s is not {K, N, experts}, or its K is not that of x "
                              "%s",
                              tnd_shape_text(w->ne, w_shape), tnd_shape_text(x->ne, x_shape));
    }
    if (x->ne[1] != 1 && x->ne[1] != ids->ne[0]) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "mul_mat_id", x->ne[1], ids->ne[0],
                              "mul_mat_id: x %s has neither one row a token nor one for each of "
                              "the %lld experts that a token uses",
                              tnd_shape_text(x->ne, x_shape), (long long)ids->ne[0]);
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {w->ne[1], ids->ne[0], x->ne[2], 1}; /* {N, used, M} */
    tandem_tensor *node = tnd_build_node(context, op, TANDEM_TYPE_F32, ne, w, x);
    if (node != NULL) {
        node->src[2] = ids;
        node->n_src = 3;
    }
    return node;
}

tandem_tensor *tandem_top_k(tandem_context *context, tandem_tensor *a, int64_t k)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_TOP_K, "a", a)) {
        return NULL;
    }
    if (k < 1 || k > a->ne[0]) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "top_k", k, a->ne[0],
                              "top_k: k is %lld, expected 1 to %lld", (long long)k,
                              (long long)a->ne[0]);
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {k, a->ne[1], a->ne[2], a->ne[3]};
    return tnd_build_node(context, TANDEM_OP_TOP_K, TANDEM_TYPE_I32, ne, a, NULL);
}

tandem_tensor *tandem_gather(tandem_context *context, tandem_tensor *a, tandem_tensor *ids)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_GATHER, "a", a) ||
        !ids_ready(context, TANDEM_OP_GATHER, ids, a->ne[1])) {
        return NULL;
    }
    if (a->ne[2] != 1 || a->ne[3] != 1) {
        char shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_SHAPE, "gather", a->ne[2], 1,
                              "gather: a %s is no matrix", tnd_shape_text(a->ne, shape));
    }
    return tnd_build_node(context, TANDEM_OP_GATHER, TANDEM_TYPE_F32, ids->ne, a, ids);
}

tandem_tensor *tandem_weighted_sum(tandem_context *context, tandem_tensor *a,
                                   tandem_tensor *weights)
{
    const enum tandem_op op = TANDEM_OP_WEIGHTED_SUM;
    if (!tnd_build_ready_f32(context, op, "a", a) ||
        !tnd_build_ready_f32(context, op, "weights", weights)) {
        return NULL;
    }
    if (a->ne[3] != 1 || weights->ne[0] != a->ne[1] || weights->ne[1] != a->ne[2] ||
        weights->ne[2] != 1 || weights->ne[3] != 1) {
        char shape[TND_SHAPE_TEXT_BYTES];
        char weights_shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_SHAPE, "weighted_sum", weights->ne[0], a->ne[1],
                              "weighted_sum: weights %s has no value for each row of a %s",
                              tnd_shape_text(weights->ne, weights_shape),
                              tnd_shape_text(a->ne, shape));
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {a->ne[0], a->ne[2], 1, 1}; /* {N, M} */
    return tnd_build_node(context, op, TANDEM_TYPE_F32, ne, a, weights);
}

/* ---- reference ---- */

/* Reads ids[i, m] and checks that it is in least .. n - 1. */
static enum tandem_status read_id(const struct tandem_tensor *node, const struct tandem_tensor *ids,
                                  int64_t i, int64_t m, int32_t least, int64_t n, int32_t *out,
                                  struct tandem_error *error)
{
    int32_t id;
    memcpy(&id, tnd_ref_at(ids, i, m, 0, 0), sizeof(id));
    if (id < least || id >= n) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, node->name, id, n,
                             "%s: index %lld of token %lld is %d, expected %d to %lld",
                             tandem_op_name(node->op), (long long)i, (long long)m, (int)id,
                             (int)least, (long long)n - 1);
    }
    *out = id;
    return TANDEM_OK;
}

/* The product of one token with one expert; zeros where the expert is -1. */
static void product_row(struct tandem_tensor *node, int32_t expert, int64_t used, int64_t m,
                        float *w_row)
{
    const struct tandem_tensor *w = node->src[0]; /* {K, N, experts} */
    const struct tandem_tensor *x = node->src[1]; /* {K, used or 1, M} */
    const float *x_row = (const float *)(void *)tnd_ref_at(x, 0, used % x->ne[1], m, 0);
    for (int64_t n = 0; n < node->ne[0]; n++) {
        double sum = 0.0;
        if (expert >= 0) {
            tnd_type_traits(w->type)->dequantize(tnd_ref_at(w, 0, n, expert, 0), w_row, w->ne[0]);
        }
        for (int64_t k = 0; expert >= 0 && k < w->ne[0]; k++) {
            sum += (double)w_row[k] * (double)x_row[k];
        }
        *(float *)(void *)tnd_ref_at(node, n, used, m, 0) = (float)sum;
    }
}

enum tandem_status tnd_ref_mul_mat_id(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *w = node->src[0];
    enum tandem_status status = TANDEM_OK;
    float *w_row = tnd_alloc(((size_t)w->ne[0] + 1) * sizeof(float)); /* {K} */
    if (w_row == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, 0, 0, "%s: no memory for a row",
                             tandem_op_name(node->op));
    }
    for (int64_t i = 0; i < node->ne[1] * node->ne[2] && status == TANDEM_OK; i++) {
        int32_t expert = 0;
        status = read_id(node, node->src[2], i % node->ne[1], i / node->ne[1], -1, w->ne[2],
                         &expert, error);
        if (status == TANDEM_OK) {
            product_row(node, expert, i % node->ne[1], i / node->ne[1], w_row);
        }
    }
    tnd_free(w_row);
    return status;
}

/* Whether index i of the row is sorted before index j. */
static bool stands_before(const struct tandem_tensor *a, int64_t i, int64_t j, int64_t i1,
                          int64_t i2, int64_t i3)
{
    const double x = tnd_ref_value(a, i, i1, i2, i3);
    const double y = tnd_ref_value(a, j, i1, i2, i3);
    const bool is_equal = x == y || (isnan(x) && isnan(y));
    return is_equal ? i < j : isnan(y) || x > y;
}

enum tandem_status tnd_ref_top_k(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *a = node->src[0];
    (void)error;
    for (int64_t row = 0; row < tnd_tensor_rows(node); row++) {
        const int64_t i1 = row % node->ne[1];
        const int64_t i2 = row / node->ne[1] % node->ne[2];
        const int64_t i3 = row / node->ne[1] / node->ne[2];
        for (int64_t i = 0; i < a->ne[0]; i++) {
            int64_t place = 0; /* how many are sorted before it */
            for (int64_t j = 0; j < a->ne[0]; j++) {
                place += stands_before(a, j, i, i1, i2, i3);
            }
            if (place < node->ne[0]) {
                *(int32_t *)(void *)tnd_ref_at(node, place, i1, i2, i3) = (int32_t)i;
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ref_gather(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *a = node->src[0]; /* {n, M} */
    for (int64_t m = 0; m < node->ne[1]; m++) {
        for (int64_t i = 0; i < node->ne[0]; i++) {
            int32_t id = 0;
            TND_TRY(read_id(node, node->src[1], i, m, 0, a->ne[0], &id, error));
            *(float *)(void *)tnd_ref_at(node, i, m, 0, 0) = (float)tnd_ref_value(a, id, m, 0, 0);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ref_weighted_sum(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *a = node->src[0];       /* {N, n, M} */
    const struct tandem_tensor *weights = node->src[1]; /* {n, M} */
    (void)error;
    for (int64_t m = 0; m < node->ne[1]; m++) {
        for (int64_t n = 0; n < node->ne[0]; n++) {
            double sum = 0.0;
            for (int64_t i = 0; i < a->ne[1]; i++) {
                sum += tnd_ref_value(weights, i, m, 0, 0) * tnd_ref_value(a, n, i, m, 0);
            }
            *(float *)(void *)tnd_ref_at(node, n, m, 0, 0) = (float)sum;
        }
    }
    return TANDEM_OK;
}
