/* SPDX-License-Identifier: MIT
 * Element-wise operations. The result may overwrite the first operand. */
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"

enum { SPAN = TND_CPU_SPAN };

/* ---- two operands ---- */

void tnd_cpu_binary_row(const struct tnd_cpu_kernels *kernels, enum tandem_op op, const float *a,
                        const float *b, int64_t b_values, float *y, int64_t n)
{
    tnd_vec_binary_fn *kernel = kernels->vec.binary[op];
    TND_ASSERT(kernel != NULL && b_values > 0 && n % b_values == 0);
    if (b_values >= 16 || b_values == n) {
        for (int64_t i = 0; i < n; i += b_values) {
            kernel(a + i, b, y + i, b_values);
        }
        return;
    }
    /* short rows are repeated in a buffer first */
    float repeated[256];
    int64_t filled = sizeof(repeated) / sizeof(repeated[0]) / b_values * b_values;
    filled = filled < n ? filled : n;
    for (int64_t first = 0; first < b_values; first++) {
        const float value = b[first];
        for (int64_t i = first; i < filled; i += b_values) {
            repeated[i] = value;
        }
    }
    for (int64_t i = 0; i < n; i += filled) {
        kernel(a + i, repeated, y + i, n - i < filled ? n - i : filled);
    }
}

enum tandem_status tnd_cpu_binary(const struct tnd_cpu_kernels *kernels,
                                  const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    const struct tandem_tensor *b = node->src[1];
    int64_t n_rows = node->ne[0] > 0 ? tnd_tensor_rows(node) : 0;
    int64_t chunk = tnd_rows_chunk(n_rows, node->ne[0], worker->count);
    int64_t begin, end;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            struct tnd_row b_row = {row.i1 % b->ne[1], row.i2 % b->ne[2], row.i3 % b->ne[3]};
            tnd_cpu_binary_row(kernels, node->op, tnd_row_f32(a, row), tnd_row_f32(b, b_row),
                               b->ne[0], tnd_row_f32(node, row), node->ne[0]);
        }
    }
    return TANDEM_OK;
}

/* ---- one operand ---- */

void tnd_cpu_unary_row(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                       const float *a, float *y, int64_t n)
{
    if (node->op == TANDEM_OP_SCALE) {
        kernels->vec.affine(a, 0.0f, node->params.factor, y, n);
    } else if (node->op == TANDEM_OP_CLAMP) {
        kernels->vec.clamp(a, node->params.clamp.low, node->params.clamp.high, y, n);
    } else {
        TND_ASSERT(kernels->vec.unary[node->op] != NULL);
        kernels->vec.unary[node->op](a, y, n);
    }
}

enum tandem_status tnd_cpu_unary(const struct tnd_cpu_kernels *kernels,
                                 const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    int64_t begin, end;
    if (tandem_tensor_is_contiguous(a) && tandem_tensor_is_contiguous(node)) {
        /* a few long rows are divided, too */
        int64_t n = tandem_tensor_elements(node);
        int64_t spans = (n + SPAN - 1) / SPAN;
        int64_t chunk = tnd_rows_chunk(spans, SPAN, worker->count);
        while (worker->next(worker, spans, chunk, &begin, &end)) {
            int64_t first = begin * SPAN;
            int64_t last = end * SPAN < n ? end * SPAN : n;
            tnd_cpu_unary_row(kernels, node, (const float *)a->data + first,
                              (float *)node->data + first, last - first);
        }
        return TANDEM_OK;
    }
    int64_t n_rows = tnd_tensor_rows(node);
    int64_t chunk = tnd_rows_chunk(n_rows, node->ne[0], worker->count);
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            tnd_cpu_unary_row(kernels, node, tnd_row_f32(a, row), tnd_row_f32(node, row),
                              node->ne[0]);
        }
    }
    return TANDEM_OK;
}
