/* SPDX-License-Identifier: MIT
 * Builders of fused attention. The mask is the fourth operand: F32 is added to the scores, I32 has
 * the places of keys and queries in their texts. */
#include <math.h>

#include "ggml-like/tensor_internal.h"

/* Keys or values: any type but I32, rows dense, a matrix for each KV head. */
static bool memory_ready(tandem_context *context, const char *role, const tandem_tensor *a)
{
    if (!tnd_build_ready(context, TANDEM_OP_ATTENTION, role, a)) {
        return false;
    }
    if (a->type == TANDEM_TYPE_I32) {
        tnd_build_fail(context, TANDEM_E_TYPE, "attention", a->type, 0,
                       "attention: %s is i32, expected a type of weights", role);
        return false;
    }
    if (a->nb[0] != tandem_type_block_bytes(a->type) || a->ne[3] != 1) {
        char shape[TND_SHAPE_TEXT_BYTES];
        tnd_build_fail(context, TANDEM_E_SHAPE, "attention", (int64_t)a->nb[0],
                       (int64_t)tandem_type_block_bytes(a->type),
                       "attention: %s %s has no dense rows, or 4 dimensions", role,
                       tnd_shape_text(a->ne, shape));
        return false;
    }
    return true;
}

static bool shapes_fit(tandem_context *context, const tandem_tensor *q, const tandem_tensor *k,
                       const tandem_tensor *v)
{
    const bool shares_out = k->ne[2] == q->ne[2] || (k->ne[2] > 0 && q->ne[2] % k->ne[2] == 0);
    if (q->ne[0] == k->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] && shares_out &&
        q->ne[3] == 1) {
        return true;
    }
    char q_shape[TND_SHAPE_TEXT_BYTES];
    char k_shape[TND_SHAPE_TEXT_BYTES];
    char v_shape[TND_SHAPE_TEXT_BYTES];
    tnd_build_fail(context, TANDEM_E_SHAPE, "attention", q->ne[0], k->ne[0],
                   "attention: q %s, k %s and v %s do not fit: expected {head, M, heads}, "
                   "{head, T, kv_heads} and {value, T, kv_heads}",
                   tnd_shape_text(q->ne, q_shape), tnd_shape_text(k->ne, k_shape),
                   tnd_shape_text(v->ne, v_shape));
    return false;
}

static bool mask_fits(tandem_context *context, const tandem_tensor *mask, int64_t t, int64_t m)
{
    const bool has_orders = mask->type == TANDEM_TYPE_I32;
    const bool covers = has_orders ? mask->ne[0] == t + m && tnd_tensor_rows(mask) == 1
                                   : mask->ne[0] == t && mask->ne[1] >= m && mask->ne[2] == 1 &&
                                         mask->ne[3] == 1;
    if (covers && mask->nb[0] == sizeof(float)) {
        return true;
    }
    char shape[TND_SHAPE_TEXT_BYTES];
    tnd_build_fail(context, TANDEM_E_SHAPE, "attention", mask->ne[0], has_orders ? t + m : t,
                   "attention: %s %s does not fit %lld keys and %lld queries",
                   has_orders ? "orders" : "mask", tnd_shape_text(mask->ne, shape), (long long)t,
                   (long long)m);
    return false;
}

static tandem_tensor *attention(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                tandem_tensor *v, tandem_tensor *mask, int64_t window, float scale)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "q", q) ||
        !memory_ready(context, "k", k) || !memory_ready(context, "v", v) ||
        !shapes_fit(context, q, k, v) ||
        (mask != NULL && !mask_fits(context, mask, k->ne[1], q->ne[1]))) {
        return NULL;
    }
    if (!isfinite(scale)) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "attention", 0, 0,
                              "attention: scale is %g, expected a finite number", (double)scale);
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {v->ne[0], q->ne[2], q->ne[1], 1}; /* {value, heads, M} */
    tandem_tensor *node = tnd_build_node(context, TANDEM_OP_ATTENTION, TANDEM_TYPE_F32, ne, q, k);
    if (node != NULL) {
        node->src[2] = v;
        node->src[3] = mask;
        node->n_src = mask != NULL ? 4 : 3;
        node->params.attention.scale = scale;
        node->params.attention.window = window;
    }
    return node;
}

tandem_tensor *tandem_attention(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                tandem_tensor *v, tandem_tensor *mask, float scale)
{
    if (mask != NULL && !tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "mask", mask)) {
        return NULL;
    }
    return attention(context, q, k, v, mask, INT64_MAX, scale);
}

tandem_tensor *tandem_attention_ordered(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                        tandem_tensor *v, tandem_tensor *orders, int64_t window,
                                        float scale)
{
    if (!tnd_build_ready(context, TANDEM_OP_ATTENTION, "orders", orders)) {
        return NULL;
    }
    if (orders->type != TANDEM_TYPE_I32) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "attention", orders->type, TANDEM_TYPE_I32,
                              "attention: orders is %s, expected i32",
                              tandem_type_name(orders->type));
    }
    if (window < 0) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "attention", window, 0,
                              "attention: window is %lld, expected 0 or more", (long long)window);
    }
    return attention(context, q, k, v, orders, window == 0 ? INT64_MAX : window, scale);
}
