/* SPDX-License-Identifier: MIT
 * Whether the weights of a graph stay in the cache from one computation to the next, so that times
 * measured with weights in the cache apply. */
#ifndef TND_WARM_H
#define TND_WARM_H

#include "ggml-like/tnd_tensor.h"
#include "table/tnd_table.h"

/** Whether the constant operands of all nodes take at most `bytes` in total. False for 0 bytes. */
bool tnd_graph_stays_in(const struct tandem_graph *graph, size_t bytes);
/** Whether the table (NULL: no) has any times of weights that stay in the cache. */
bool tnd_table_has_warm(const struct tandem_table *table);

#endif
