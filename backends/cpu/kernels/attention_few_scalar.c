/* SPDX-License-Identifier: MIT
 * The kernels of attention_few.h in plain C: a query at a time, of floats. */
#include "backends/cpu/kernels/attention_few.h"

#include <string.h>

static void few_lay(const float *const *rows, int n_rows, int64_t n, float *y)
{
    memcpy(y, rows[0], (size_t)n_rows * (size_t)n * sizeof(float)); /* n_rows is 1 */
}

static void few_scores(const float *queries, int n_queries, const void *keys, size_t stride,
                       int n_keys, int64_t n, float *scores)
{
    (void)n_queries;
    for (int j = 0; j < n_keys; j++) {
        const float *key = (const float *)(const void *)((const char *)keys + (size_t)j * stride);
        scores[j] = 0.0f;
        for (int64_t i = 0; i < n; i++) {
            scores[j] += queries[i] * key[i];
        }
    }
}

static void few_sums(const float *weights, int n_queries, const void *values, size_t stride,
                     int n_values, int64_t n, float *sums, int64_t sum_stride)
{
    (void)n_queries;
    (void)sum_stride;
    for (int j = 0; j < n_values; j++) {
        const float *value =
            (const float *)(const void *)((const char *)values + (size_t)j * stride);
        for (int64_t i = 0; i < n; i++) {
            sums[i] += weights[j] * value[i];
        }
    }
}

const struct tnd_few_kernels tnd_few_scalar = {.queries = 1,
                                               .whole = 1,
                                               .lay = few_lay,
                                               .scores[TANDEM_TYPE_F32] = few_scores,
                                               .sums[TANDEM_TYPE_F32] = few_sums};
