/* SPDX-License-Identifier: MIT
 * Weights in the cache. */
#include "tune/warm.h"

bool tnd_graph_stays_in(const struct tandem_graph *graph, size_t bytes)
{
    size_t sum = 0;
    for (int i = 0; i < graph->n_nodes && sum <= bytes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            const tandem_tensor *src = node->src[s];
            if (src != NULL && (src->root->flags & TND_TENSOR_CONSTANT) != 0 &&
                node->op != TANDEM_OP_GET_ROWS) { /* GET_ROWS reads only a few rows */
                sum += tandem_tensor_bytes(src);
            }
        }
    }
    return bytes > 0 && sum <= bytes;
}

bool tnd_table_has_warm(const struct tandem_table *table)
{
    for (int i = 0; table != NULL && i < table->n_curves; i++) {
        if (table->curves[i].key.warm) {
            return true;
        }
    }
    return false;
}
