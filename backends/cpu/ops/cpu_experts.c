/* SPDX-License-Identifier: MIT
 * What a router of experts computes besides products: top-k of rows, values by index, and weighted
 * sums of rows. */
#include <math.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_status.h"

/* The k largest values of a row, in order, by insertion sort: k is small. NaN is below all. */
static void top_k_row(const float *a, int64_t n, int32_t *out, int64_t k)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t place = kept;
        while (place > 0 &&
               (a[i] > a[out[place - 1]] || (isnan(a[out[place - 1]]) && !isnan(a[i])))) {
            place--;
        }
        if (place == k) {
            continue;
        }
        kept = kept < k ? kept + 1 : k;
        memmove(out + place + 1, out + place, (size_t)(kept - 1 - place) * sizeof(out[0]));
        out[place] = (int32_t)i;
    }
}

enum tandem_status tnd_cpu_top_k(const struct tnd_cpu_kernels *kernels,
                                 const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    const int64_t n_rows = tnd_tensor_rows(node);
    const int64_t chunk = tnd_rows_chunk(n_rows, a->ne[0], worker->count);
    int64_t begin, end;
    (void)kernels;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            const struct tnd_row row = tnd_row_of(node, i);
            top_k_row(tnd_row_f32(a, row), a->ne[0],
                      (int32_t *)(void *)tnd_row_at(node, row.i1, row.i2, row.i3), node->ne[0]);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_gather(const struct tnd_cpu_kernels *kernels,
                                  const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0]; /* {n, M} */
    const int64_t chunk = tnd_rows_chunk(node->ne[1], node->ne[0], worker->count);
    int64_t begin, end;
    (void)kernels;
    while (worker->next(worker, node->ne[1], chunk, &begin, &end)) {
        for (int64_t m = begin; m < end; m++) {
            const int32_t *ids = (const int32_t *)(void *)tnd_row_at(node->src[1], m, 0, 0);
            const float *from = (const float *)(void *)tnd_row_at(a, m, 0, 0);
            float *to = (float *)(void *)tnd_row_at(node, m, 0, 0);
            for (int64_t i = 0; i < node->ne[0]; i++) {
                if (ids[i] < 0 || ids[i] >= a->ne[0]) {
                    return tnd_error_set(
                        worker->error, TANDEM_E_ARGUMENT, node->name, ids[i], a->ne[0],
                        "gather: index %lld of token %lld is %d, expected 0 to "
                        "%lld",
                        (long long)i, (long long)m, (int)ids[i], (long long)a->ne[0] - 1);
                }
                to[i] = from[ids[i]];
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_weighted_sum(const struct tnd_cpu_kernels *kernels,
                                        const struct tandem_tensor *node,
                                        struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];       /* {N, n, M} */
    const struct tandem_tensor *weights = node->src[1]; /* {n, M} */
    const int64_t n = node->ne[0];
    const int64_t chunk = tnd_rows_chunk(node->ne[1], n * (a->ne[1] + 1), worker->count);
    int64_t begin, end;
    while (worker->next(worker, node->ne[1], chunk, &begin, &end)) {
        for (int64_t m = begin; m < end; m++) {
            float *y = (float *)(void *)tnd_row_at(node, m, 0, 0);
            memset(y, 0, (size_t)n * sizeof(y[0]));
            kernels->vec.add_rows((const float *)(void *)tnd_row_at(weights, m, 0, 0),
                                  (const float *)(void *)tnd_row_at(a, 0, m, 0),
                                  (int64_t)(a->nb[1] / sizeof(float)), y, a->ne[1], n);
        }
    }
    return TANDEM_OK;
}
