/* SPDX-License-Identifier: MIT
 * Norms along rows. */
#include <math.h>

#include "backends/cpu/ops/cpu_ops.h"

void tnd_cpu_norm_row(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                      const float *a, float *y, int64_t n)
{
    float shift = node->op == TANDEM_OP_NORM ? (float)(kernels->vec.sum(a, n) / (double)n) : 0.0f;
    double mean = kernels->vec.sum_squares(a, shift, n) / (double)n;
    float factor = (float)(1.0 / sqrt(mean + (double)node->params.eps));
    kernels->vec.affine(a, shift, factor, y, n);
}

enum tandem_status tnd_cpu_norm(const struct tnd_cpu_kernels *kernels,
                                const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    int64_t n = node->ne[0];
    int64_t n_rows = n > 0 ? tnd_tensor_rows(node) : 0;
    int64_t chunk = tnd_rows_chunk(n_rows, n, worker->count);
    int64_t begin, end;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            tnd_cpu_norm_row(kernels, node, tnd_row_f32(a, row), tnd_row_f32(node, row), n);
        }
    }
    return TANDEM_OK;
}
