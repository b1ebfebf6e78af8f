/* SPDX-License-Identifier: MIT
 * Orders of nodes other than the graph's. */
#ifndef TND_EXPAND_ORDER_H
#define TND_EXPAND_ORDER_H

#include "ggml-like/tnd_tensor.h"

/** Most pairs of nodes that may change places, for each node of a graph. */
#define TND_ORDER_PAIRS 1024

/** Whether the graph gives the same results in this order, which has each node once. Nodes that
 *  conflict by the memory that they touch (conflict.h) keep their order, and so do custom ones.
 *  `largest` has room for n_nodes numbers. Errors: ARGUMENT. */
enum tandem_status tnd_order_check(const struct tandem_graph *graph, const int32_t *order,
                                   int32_t *largest, struct tandem_error *error);

#endif
