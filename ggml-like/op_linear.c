/* SPDX-License-Identifier: MIT
 * Builders of matrix operations: mul_mat and get_rows. They check and describe; nothing is
 * computed. */
#include "ggml-like/tensor_internal.h"

/* Whether `w` may stand as weights: any type but I32, rows dense. */
static bool weights_ready(tandem_context *context, enum tandem_op op, const tandem_tensor *w)
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

tandem_tensor *tandem_get_rows(tandem_context *context, tandem_tensor *w, tandem_tensor *ids)
{
    char w_shape[TND_SHAPE_TEXT_BYTES];
    char ids_shape[TND_SHAPE_TEXT_BYTES];
    if (!weights_ready(context, TANDEM_OP_GET_ROWS, w) ||
        !tnd_build_ready(context, TANDEM_OP_GET_ROWS, "ids", ids)) {
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
    return tnd_build_node(context, TANDEM_OP_GET_ROWS, TANDEM_TYPE_F32, ne, w, ids);
}

/* Whether `few` matrices can be shared out evenly to `many`. */
static bool is_repeated(int64_t few, int64_t many)
{
    return few == many || (few > 0 && many % few == 0);
}

tandem_tensor *tandem_mul_mat(tandem_context *context, tandem_tensor *w, tandem_tensor *x)
{
    if (!weights_ready(context, TANDEM_OP_MUL_MAT, w) ||
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
