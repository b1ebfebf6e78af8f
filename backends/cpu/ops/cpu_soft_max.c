/* SPDX-License-Identifier: MIT
 * soft_max and the causal mask. */
#include <math.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"

static void soft_max_row(const struct tnd_cpu_kernels *kernels, const float *a, const float *mask,
                         float scale, float *y, int64_t n)
{
    float largest = kernels->vec.scores(a, mask, scale, y, n);
    if (largest == -INFINITY) {
        /* everything is masked: all values become 0 (NaN stays) */
        for (int64_t i = 0; i < n; i++) {
            y[i] = isnan(y[i]) ? y[i] : 0.0f;
        }
        return;
    }
    double sum = kernels->vec.exp_sum(y, largest, n);
    kernels->vec.affine(y, 0.0f, (float)(1.0 / sum), y, n);
}

enum tandem_status tnd_cpu_soft_max(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    const struct tandem_tensor *mask = node->n_src > 1 ? node->src[1] : NULL;
    int64_t n_rows = tnd_tensor_rows(node);
    int64_t chunk = tnd_rows_chunk(n_rows, node->ne[0], worker->count);
    int64_t begin, end;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            const float *mask_row =
                mask != NULL ? (const float *)(void *)tnd_row_at(mask, row.i1, 0, 0) : NULL;
            soft_max_row(kernels, tnd_row_f32(a, row), mask_row, node->params.soft_max_scale,
                         tnd_row_f32(node, row), node->ne[0]);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_diag_mask_inf(const struct tnd_cpu_kernels *kernels,
                                         const struct tandem_tensor *node,
                                         struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    int64_t n = node->ne[0];
    int64_t n_rows = tnd_tensor_rows(node);
    int64_t chunk = tnd_rows_chunk(n_rows, n, worker->count);
    int64_t begin, end;
    (void)kernels;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            int64_t visible = node->params.n_past + row.i1 + 1;
            float *y = tnd_row_f32(node, row);
            visible = visible < n ? visible : n;
            memcpy(y, tnd_row_f32(a, row), (size_t)visible * sizeof(float));
            for (int64_t column = visible; column < n; column++) {
                y[column] = -INFINITY;
            }
        }
    }
    return TANDEM_OK;
}
