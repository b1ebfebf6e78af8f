/* SPDX-License-Identifier: MIT
 * The kernels of attention_strip.h in plain C: a query at a time. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "backends/cpu/kernels/attention_strip.h"

enum { STRIP = 16 };

static void strip_turn(const float *const *rows, int n_rows, int64_t n, float factor, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        for (int r = 0; r < STRIP; r++) {
            y[i * STRIP + r] = r < n_rows ? rows[r][i] * factor : 0.0f;
        }
    }
}

static float score_of(const struct tnd_strip *strip, int r, int j)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < strip->head; i++) {
        const int64_t block = i / TND_KEY_BLOCK * TND_KEY_BLOCK;
        const float *key = strip->keys + block * TND_KEYS + j * TND_KEY_BLOCK;
        sum += key[i - block] * strip->queries[i * STRIP + r];
    }
    if (strip->mask != NULL) {
        return sum + strip->mask[j * STRIP + r];
    }
    const int32_t *order = strip->orders != NULL ? &strip->orders[j] : NULL;
    return order == NULL || (strip->first[r] <= *order && *order <= strip->last[r]) ? sum
                                                                                    : -INFINITY;
}

static void attend_one(const struct tnd_strip *strip, int r)
{
    float largest = strip->largest[r];
    float weight = 0.0f;
    for (int j = 0; j < strip->n_keys; j++) {
        const float score = score_of(strip, r, j);
        strip->scores[j * STRIP + r] = score;
        largest = score > largest ? score : largest; /* NaN does not count */
    }
    const float shift = largest > -FLT_MAX ? largest : -FLT_MAX; /* nothing seen: 0 for all */
    const float shrink = expf(strip->largest[r] - shift);
    for (int j = 0; j < strip->n_keys; j++) {
        strip->scores[j * STRIP + r] = expf(strip->scores[j * STRIP + r] - shift);
        weight += strip->scores[j * STRIP + r];
    }
    for (int64_t i = 0; i < strip->value; i++) {
        float sum = strip->sums[i * STRIP + r] * shrink;
        for (int j = 0; j < strip->n_keys; j++) {
            sum += strip->scores[j * STRIP + r] * strip->values[j * strip->value_stride + i];
        }
        strip->sums[i * STRIP + r] = sum;
    }
    strip->largest[r] = largest;
    strip->weight[r] = strip->weight[r] * shrink + weight;
}

static void strip_attend(const struct tnd_strip *strip)
{
    for (int r = 0; r < strip->n_queries; r++) {
        attend_one(strip, r);
    }
}

static void strip_finish(const struct tnd_strip *strip, float *const *rows)
{
    for (int r = 0; r < strip->n_queries; r++) {
        const float factor = strip->weight[r] == 0.0f ? 0.0f : 1.0f / strip->weight[r];
        for (int64_t i = 0; i < strip->value; i++) {
            rows[r][i] = strip->sums[i * STRIP + r] * factor;
        }
    }
}

const struct tnd_strip_kernels tnd_strip_scalar = {STRIP, strip_turn, strip_attend, strip_finish};
