/* SPDX-License-Identifier: MIT
 * The kernels of attention_few.h in plain C: one query at a time, floats only. */
#include "backends/cpu/kernels/attention_few.h"

#include <string.h>

static void few_lay(const float *const *rows, int n_rows, int64_t n, float *y)
{
    memcpy(y, rows[0], (size_t)n_rows * (size_t)n * sizeof(float)); /* n_rows is 1 */
}

static const float *row_of(const struct tnd_few_rows *rows, int j)
{
    return (const float *)(const void *)((const char *)rows->rows + (size_t)j * rows->stride);
}

static void few_scores(const float *queries, int n_queries, const struct tnd_few_rows *keys,
                       int64_t n, float *scores, const struct tnd_few_soon *soon)
{
    (void)n_queries;
    (void)soon;
    for (int j = 0; j < keys->n; j++) {
        const float *key = row_of(keys, j);
        scores[j] = 0.0f;
        for (int64_t i = 0; i < n; i++) {
            scores[j] += queries[i] * key[i];
        }
    }
}

static void few_sums(const float *weights, int n_queries, const struct tnd_few_rows *values,
                     int64_t n, float *sums, int64_t sum_stride, const struct tnd_few_soon *soon)
{
    (void)n_queries;
    (void)sum_stride;
    (void)soon;
    for (int j = 0; j < values->n; j++) {
        const float *value = row_of(values, j);
        for (int64_t i = 0; i < n; i++) {
            sums[i] += weights[j] * value[i];
        }
    }
}

const struct tnd_few_kernels tnd_few_scalar = {.queries = 1,
                                               .whole = 1,
                                               .wide = 2,
                                               .lay = few_lay,
                                               .scores[TANDEM_TYPE_F32] = few_scores,
                                               .sums[TANDEM_TYPE_F32] = few_sums};
