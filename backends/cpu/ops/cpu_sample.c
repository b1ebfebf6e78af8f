/* SPDX-License-Identifier: MIT
 * Choosing one value of each row: a worker takes a whole row. */
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_sample.h"

size_t tnd_cpu_sample_scratch(const struct tandem_tensor *node)
{
    return tandem_sample_memory(node->src[0]->ne[0]);
}

enum tandem_status tnd_cpu_sample(const struct tnd_cpu_kernels *kernels,
                                  const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *logits = node->src[0]; /* {n, M} */
    const uint32_t *mask = node->n_src > 2 ? node->src[2]->data : NULL;
    const size_t scratch = tnd_cpu_sample_scratch(node);
    int64_t begin, end;
    (void)kernels;
    if (worker->scratch_bytes < scratch) {
        return tnd_error_set(worker->error, TANDEM_E_STATE, node->name,
                             (int64_t)worker->scratch_bytes, (int64_t)scratch,
                             "cpu sample: %zu bytes of scratch, needs %zu", worker->scratch_bytes,
                             scratch);
    }
    while (worker->next(worker, node->ne[1], 1, &begin, &end)) {
        for (int64_t m = begin; m < end; m++) {
            const struct tandem_sample_settings settings = tnd_sample_settings_of(node, m);
            struct tandem_sample_choice choice;
            tnd_sample_row(&settings, (const float *)(void *)tnd_row_at(logits, m, 0, 0),
                           logits->ne[0], mask, worker->scratch, &choice);
            memcpy(tnd_row_at(node, m, 0, 0), &choice, sizeof(choice));
        }
    }
    return TANDEM_OK;
}
