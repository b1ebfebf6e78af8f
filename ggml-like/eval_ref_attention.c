/* SPDX-License-Identifier: MIT
 * Reference of attention: all scores of one query at a time, in double precision. */
#include <math.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_type.h"

/* What the mask says of query m and key t: a number to add to the score, -infinity for "unseen". */
static double mask_value(const struct tandem_tensor *node, int64_t t, int64_t m)
{
    const struct tandem_tensor *mask = node->n_src > 3 ? node->src[3] : NULL;
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

/* One query of one head. `weights`: {T}; `row`: the longer of a key and a value. */
static void attend(const struct tandem_tensor *node, int64_t head, int64_t m, double *weights,
                   float *row)
{
    const struct tandem_tensor *q = node->src[0]; /* {head, M, heads} */
    const struct tandem_tensor *k = node->src[1]; /* {head, T, kv_heads} */
    const struct tandem_tensor *v = node->src[2]; /* {value, T, kv_heads} */
    const int64_t kv_head = head / (q->ne[2] / k->ne[2]);
    float *y = (float *)(void *)tnd_ref_at(node, 0, head, m, 0);
    double largest = -(double)INFINITY;
    double sum = 0.0;
    for (int64_t t = 0; t < k->ne[1]; t++) {
        double score = 0.0;
        dequantize_row(k, t, kv_head, row);
        for (int64_t i = 0; i < k->ne[0]; i++) {
            score += tnd_ref_value(q, i, m, head, 0) * (double)row[i];
        }
        weights[t] = score * (double)node->params.attention.scale + mask_value(node, t, m);
        largest = fmax(largest, weights[t]);
    }
    for (int64_t t = 0; t < k->ne[1]; t++) {
        weights[t] = largest == -(double)INFINITY ? 0.0 : exp(weights[t] - largest);
        sum += weights[t];
    }
    for (int64_t i = 0; i < v->ne[0]; i++) {
        y[i] = 0.0f;
    }
    for (int64_t t = 0; t < k->ne[1] && sum > 0.0; t++) {
        weights[t] /= sum;
    }
    for (int64_t i = 0; i < v->ne[0]; i++) {
        double value = 0.0;
        for (int64_t t = 0; t < k->ne[1]; t++) {
            if (weights[t] != 0.0) {
                dequantize_row(v, t, kv_head, row);
                value += weights[t] * (double)row[i];
            }
        }
        y[i] = (float)value;
    }
}

enum tandem_status tnd_ref_attention(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *k = node->src[1];
    const struct tandem_tensor *v = node->src[2];
    const int64_t longer = k->ne[0] > v->ne[0] ? k->ne[0] : v->ne[0];
    double *weights = tnd_alloc(((size_t)k->ne[1] + 1) * sizeof(double));
    float *row = tnd_alloc(((size_t)longer + 1) * sizeof(float));
    if (weights == NULL || row == NULL) {
        tnd_free(weights);
        tnd_free(row);
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, k->ne[1], 0,
                             "attention: no memory for %lld scores", (long long)k->ne[1]);
    }
    for (int64_t m = 0; m < node->ne[2]; m++) {
        for (int64_t head = 0; head < node->ne[1]; head++) {
            attend(node, head, m, weights, row);
        }
    }
    tnd_free(weights);
    tnd_free(row);
    return TANDEM_OK;
}
