/* SPDX-License-Identifier: MIT
 * The kernels of attention_panel.h in plain C: one query at a time. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "backends/cpu/kernels/attention_panel.h"

enum { PANEL = 16 };

static void panel_transpose(const float *const *rows, int n_rows, int64_t n, float factor, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        for (int r = 0; r < PANEL; r++) {
            y[i * PANEL + r] = r < n_rows ? rows[r][i] * factor : 0.0f;
        }
    }
}

static float score_of(const struct tnd_query_panel *panel, int r, int j)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < panel->head; i++) {
        const int64_t block = i / TND_KEY_BLOCK * TND_KEY_BLOCK;
        const float *key = panel->keys + block * TND_KEYS + j * TND_KEY_BLOCK;
        sum += key[i - block] * panel->queries[i * PANEL + r];
    }
    sum = panel->cap > 0.0f ? panel->cap * tanhf(sum) : sum;
    if (panel->mask != NULL) {
        return sum + panel->mask[j * PANEL + r];
    }
    const int32_t *order = panel->orders != NULL ? &panel->orders[j] : NULL;
    return j < panel->n_seen || order == NULL ||
                   (panel->first[r] <= *order && *order <= panel->last[r])
               ? sum
               : -INFINITY;
}

static void attend_one(const struct tnd_query_panel *panel, int r)
{
    float largest = panel->largest[r];
    float weight = 0.0f;
    for (int j = 0; j < panel->n_keys; j++) {
        const float score = score_of(panel, r, j);
        panel->scores[j * PANEL + r] = score;
        largest = score > largest ? score : largest; /* NaN does not count */
    }
    const float shift = largest > -FLT_MAX ? largest : -FLT_MAX; /* nothing seen: 0 for all */
    const float shrink = expf(panel->largest[r] - shift);
    for (int j = 0; j < panel->n_keys; j++) {
        panel->scores[j * PANEL + r] = expf(panel->scores[j * PANEL + r] - shift);
        weight += panel->scores[j * PANEL + r];
    }
    for (int64_t i = 0; i < panel->value; i++) {
        float *out = &panel->sums[r * panel->value_stride + i];
        float sum = panel->is_first ? 0.0f : *out * shrink;
        for (int j = 0; j < panel->n_keys; j++) {
            sum += panel->scores[j * PANEL + r] * panel->values[j * panel->value_stride + i];
        }
        *out = sum;
    }
    panel->largest[r] = largest;
    panel->weight[r] = panel->weight[r] * shrink + weight;
}

static void panel_attend(const struct tnd_query_panel *panel)
{
    for (int r = 0; r < panel->n_queries; r++) {
        attend_one(panel, r);
    }
}

static void panel_finish(const struct tnd_query_panel *panel, float *const *rows)
{
    for (int r = 0; r < panel->n_queries; r++) {
        const float factor = panel->weight[r] == 0.0f ? 0.0f : 1.0f / panel->weight[r];
        for (int64_t i = 0; i < panel->value; i++) {
            rows[r][i] = panel->sums[r * panel->value_stride + i] * factor;
        }
    }
}

const struct tnd_attention_kernels tnd_attention_scalar = {
    .queries = PANEL, .transpose = panel_transpose, .attend = panel_attend, .finish = panel_finish};
