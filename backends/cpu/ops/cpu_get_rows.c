/* SPDX-License-Identifier: MIT
 * Rows of a matrix by index; nodes whose items a user's callback computes. */
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum tandem_status tnd_cpu_get_rows(const struct tnd_cpu_kernels *kernels,
                                    const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *w = node->src[0]; /* {K, V} */
    const int32_t *ids = node->src[1]->data;      /* {M}, dense */
    int64_t chunk = tnd_rows_chunk(node->ne[1], node->ne[0], worker->count);
    bool is_integer = w->type == TANDEM_TYPE_I32; /* stays I32 */
    TND_ASSERT((is_integer || kernels->dequantize[w->type] != NULL) && w->ne[0] == node->ne[0]);
    int64_t begin, end;
    while (worker->next(worker, node->ne[1], chunk, &begin, &end)) {
        for (int64_t m = begin; m < end; m++) {
            if (ids[m] < 0 || ids[m] >= w->ne[1]) {
                return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, node->name, ids[m], w->ne[1],
                                     "get_rows: index %lld is %d, expected 0 to %lld", (long long)m,
                                     (int)ids[m], (long long)w->ne[1] - 1);
            }
            if (is_integer) {
                memcpy(tnd_row_at(node, m, 0, 0), tnd_row_at(w, ids[m], 0, 0),
                       (size_t)w->ne[0] * sizeof(ids[0]));
                continue;
            }
            kernels->dequantize[w->type](tnd_row_at(w, ids[m], 0, 0),
                                         (float *)(void *)tnd_row_at(node, m, 0, 0), w->ne[0]);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_custom(const struct tnd_cpu_kernels *kernels,
                                  const struct tandem_tensor *node, struct tandem_worker *worker)
{
    int64_t n_items = node->params.custom.n_items;
    int64_t chunk = n_items / ((int64_t)worker->count * 4);
    int64_t begin, end;
    (void)kernels;
    while (worker->next(worker, n_items, chunk > 0 ? chunk : 1, &begin, &end)) {
        enum tandem_status status =
            node->params.custom.fn(node->params.custom.user, node, begin, end);
        if (status != TANDEM_OK) {
            return tnd_error_set(worker->error, status, node->name, begin, end,
                                 "custom: the callback returned %s for items %lld to %lld",
                                 tandem_status_name(status), (long long)begin, (long long)end - 1);
        }
    }
    return TANDEM_OK;
}
