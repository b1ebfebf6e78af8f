/* SPDX-License-Identifier: MIT
 * Fused attention: builders and reference. The mask is the fourth operand: an F32 mask is added to
 * the scores, an I32 mask holds the positions of keys and queries in their texts. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/tnd_type.h"

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
    const bool covers =
        has_orders ? mask->ne[0] == t + m && tnd_tensor_rows(mask) == 1
                   : mask->ne[0] == t && mask->ne[1] >= m && mask->ne[2] == 1 && mask->ne[3] == 1;
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

static bool sinks_fit(tandem_context *context, const tandem_tensor *sinks, int64_t heads)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "sinks", sinks)) {
        return false;
    }
    if (sinks->ne[0] == heads && tnd_tensor_rows(sinks) == 1 && sinks->nb[0] == sizeof(float)) {
        return true;
    }
    char shape[TND_SHAPE_TEXT_BYTES];
    tnd_build_fail(context, TANDEM_E_SHAPE, "attention", sinks->ne[0], heads,
                   "attention: sinks %s, expected %lld dense numbers, one a head",
                   tnd_shape_text(sinks->ne, shape), (long long)heads);
    return false;
}

static bool numbers_fit(tandem_context *context, const struct tandem_attention_options *o)
{
    if (!isfinite(o->scale)) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "attention", 0, 0,
                       "attention: scale is %g, expected a finite number", (double)o->scale);
        return false;
    }
    if (!isfinite(o->cap) || o->cap < 0.0f) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "attention", 0, 0,
                       "attention: cap is %g, expected a finite number from 0 on", (double)o->cap);
        return false;
    }
    if (o->window < 0) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "attention", o->window, 0,
                       "attention: window is %lld, expected 0 or more", (long long)o->window);
        return false;
    }
    return true;
}

tandem_tensor *tandem_attention_with(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                     tandem_tensor *v,
                                     const struct tandem_attention_options *options)
{
    struct tandem_error error;
    struct tandem_attention_options o = TANDEM_ATTENTION_OPTIONS_INIT;
    if (context == NULL || context->error.status != TANDEM_OK) {
        return NULL;
    }
    enum tandem_status status =
        tnd_options_read(options, "attention options", &o, sizeof(o), &error);
    if (status != TANDEM_OK) {
        return tnd_build_fail(context, status, "attention", error.got, error.limit, "attention: %s",
                              error.text);
    }
    tandem_tensor *mask = o.mask;
    if (!tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "q", q) ||
        !memory_ready(context, "k", k) || !memory_ready(context, "v", v) ||
        !shapes_fit(context, q, k, v)) {
        return NULL;
    }
    if (mask != NULL && mask->type != TANDEM_TYPE_I32 &&
        !tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "mask", mask)) {
        return NULL;
    }
    if (mask != NULL && (!tnd_build_ready(context, TANDEM_OP_ATTENTION, "orders", mask) ||
                         !mask_fits(context, mask, k->ne[1], q->ne[1]))) {
        return NULL;
    }
    if ((o.sinks != NULL && !sinks_fit(context, o.sinks, q->ne[2])) || !numbers_fit(context, &o)) {
        return NULL;
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {v->ne[0], q->ne[2], q->ne[1], 1}; /* {value, heads, M} */
    tandem_tensor *node = tnd_build_node(context, TANDEM_OP_ATTENTION, TANDEM_TYPE_F32, ne, q, k);
    if (node != NULL) {
        node->src[2] = v;
        node->n_src = 3;
        if (mask != NULL) {
            node->src[node->n_src++] = mask;
        }
        if (o.sinks != NULL) {
            node->src[node->n_src++] = o.sinks;
        }
        node->params.attention.scale = o.scale;
        node->params.attention.cap = o.cap;
        node->params.attention.has_sinks = o.sinks != NULL;
        node->params.attention.window = o.window == 0 ? INT64_MAX : o.window;
    }
    return node;
}

tandem_tensor *tandem_attention(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                tandem_tensor *v, tandem_tensor *mask, float scale)
{
    struct tandem_attention_options options = TANDEM_ATTENTION_OPTIONS_INIT;
    options.mask = mask;
    options.scale = scale;
    if (mask != NULL && !tnd_build_ready_f32(context, TANDEM_OP_ATTENTION, "mask", mask)) {
        return NULL;
    }
    return tandem_attention_with(context, q, k, v, &options);
}

tandem_tensor *tandem_attention_ordered(tandem_context *context, tandem_tensor *q, tandem_tensor *k,
                                        tandem_tensor *v, tandem_tensor *orders, int64_t window,
                                        float scale)
{
    struct tandem_attention_options options = TANDEM_ATTENTION_OPTIONS_INIT;
    options.mask = orders;
    options.window = window;
    options.scale = scale;
    if (!tnd_build_ready(context, TANDEM_OP_ATTENTION, "orders", orders)) {
        return NULL;
    }
    if (orders->type != TANDEM_TYPE_I32) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "attention", orders->type, TANDEM_TYPE_I32,
                              "attention: orders is %s, expected i32",
                              tandem_type_name(orders->type));
    }
    return tandem_attention_with(context, q, k, v, &options);
}

const struct tandem_tensor *tnd_attention_mask_of(const struct tandem_tensor *node)
{
    return node->n_src > 3 + (node->params.attention.has_sinks ? 1 : 0) ? node->src[3] : NULL;
}

const struct tandem_tensor *tnd_attention_sinks_of(const struct tandem_tensor *node)
{
    return node->params.attention.has_sinks ? node->src[node->n_src - 1] : NULL;
}

/* ---- reference ---- */

/* What the mask says of query m and key t: a number to add to the score, -infinity for "unseen". */
static double mask_value(const struct tandem_tensor *node, int64_t t, int64_t m)
{
    const struct tandem_tensor *mask = tnd_attention_mask_of(node);
    if (mask == NULL) {
        return 0.0;
    }
    if (mask->type != TANDEM_TYPE_I32) {
        return tnd_ref_value(mask, t, m, 0, 0);
    }
    const int64_t n_keys = node->src[1]->ne[1];
    const double distance =
        tnd_ref_value(mask, n_keys + m, 0, 0, 0) - tnd_ref_value(mask, t, 0, 0, 0);
    return distance >= 0.0 && distance < (double)node->params.attention.window ? 0.0
                                                                               : -(double)INFINITY;
}

static void dequantize_row(const struct tandem_tensor *a, int64_t i1, int64_t i2, float *out)
{
    tnd_type_traits(a->type)->dequantize(tnd_ref_at(a, 0, i1, i2, 0), out, a->ne[0]);
}

/* One query of one head. `weights`: {T}; `sums`: one value; `row`: the longer of a key and a
 * value. */
static void attend(const struct tandem_tensor *node, int64_t head, int64_t m, double *weights,
                   double *sums, float *row)
{
    const struct tandem_tensor *q = node->src[0]; /* {head, M, heads} */
    const struct tandem_tensor *k = node->src[1]; /* {head, T, kv_heads} */
    const struct tandem_tensor *v = node->src[2]; /* {value, T, kv_heads} */
    const int64_t kv_head = head / (q->ne[2] / k->ne[2]);
    float *y = (float *)(void *)tnd_ref_at(node, 0, head, m, 0);
    const struct tandem_tensor *sinks = tnd_attention_sinks_of(node);
    const double cap = (double)node->params.attention.cap;
    double largest = -(double)INFINITY;
    double sum = 0.0;
    for (int64_t t = 0; t < k->ne[1]; t++) {
        double score = 0.0;
        dequantize_row(k, t, kv_head, row);
        for (int64_t i = 0; i < k->ne[0]; i++) {
            score += tnd_ref_value(q, i, m, head, 0) * (double)row[i];
        }
        score *= (double)node->params.attention.scale;
        weights[t] = (cap > 0.0 ? cap * tanh(score / cap) : score) + mask_value(node, t, m);
        largest = fmax(largest, weights[t]);
    }
    for (int64_t t = 0; t < k->ne[1]; t++) {
        weights[t] = largest == -(double)INFINITY ? 0.0 : exp(weights[t] - largest);
        sum += weights[t];
    }
    if (sinks != NULL && sum > 0.0) {
        sum += exp(tnd_ref_value(sinks, head, 0, 0, 0) - largest);
    }
    for (int64_t i = 0; i < v->ne[0]; i++) {
        sums[i] = 0.0;
    }
    for (int64_t t = 0; t < k->ne[1] && sum > 0.0; t++) {
        const double weight = weights[t] / sum;
        if (weight == 0.0) {
            continue;
        }
        dequantize_row(v, t, kv_head, row);
        for (int64_t i = 0; i < v->ne[0]; i++) {
            sums[i] += weight * (double)row[i];
        }
    }
    for (int64_t i = 0; i < v->ne[0]; i++) {
        y[i] = (float)sums[i];
    }
}

enum tandem_status tnd_ref_attention(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *k = node->src[1];
    const struct tandem_tensor *v = node->src[2];
    const int64_t longer = k->ne[0] > v->ne[0] ? k->ne[0] : v->ne[0];
    double *weights = tnd_alloc((size_t)(k->ne[1] + v->ne[0] + 1) * sizeof(double));
    float *row = tnd_alloc(((size_t)longer + 1) * sizeof(float));
    if (weights == NULL || row == NULL) {
        tnd_free(weights);
        tnd_free(row);
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, k->ne[1], 0,
                             "attention: no memory for %lld scores", (long long)k->ne[1]);
    }
    for (int64_t m = 0; m < node->ne[2]; m++) {
        for (int64_t head = 0; head < node->ne[1]; head++) {
            attend(node, head, m, weights, weights + k->ne[1], row);
        }
    }
    tnd_free(weights);
    tnd_free(row);
    return TANDEM_OK;
}
