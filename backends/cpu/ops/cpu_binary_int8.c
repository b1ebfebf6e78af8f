/* SPDX-License-Identifier: MIT
 * Sums and products of two arrays of 8-bit integers, by rows in which both operands are
 * contiguous. */
#include "backends/cpu/ops/cpu_ops.h"

enum { SPAN = 16384 }; /* least values per chunk, about a microsecond */

enum tandem_status tnd_cpu_binary_int8(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_tensor *node,
                                       struct tandem_worker *worker)
{
    const struct tnd_binary_int8 *op = node->params.binary_int8;
    const uint8_t *b = node->src[1]->data;
    const int64_t n_chunks = (op->n + SPAN - 1) / SPAN;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_chunks, 1, &begin, &end)) {
        const int64_t last = tnd_min(end * SPAN, op->n);
        for (int64_t i = begin * SPAN; i < last;) {
            const int64_t at = i % op->row;
            const struct tnd_int8_binary call = {.op = op,
                                                 .a = (const uint8_t *)node->src[0]->data + i,
                                                 .b = b + i / (op->row * op->every) * op->row + at,
                                                 .y = (uint8_t *)node->data + i,
                                                 .n = tnd_min(op->row - at, last - i)};
            kernels->int8.binary(&call);
            i += call.n;
        }
    }
    return TANDEM_OK;
}
