/* SPDX-License-Identifier: MIT
 * Why operations beside plain products have the threads that they have. */
#ifndef TND_EXPLAIN_OPS_H
#define TND_EXPLAIN_OPS_H

#include "base/text.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "table/tnd_table.h"

/** One line for each different operation of nodes that are not `done`: what was predicted for 1, 2,
 *  4, .. n_threads threads, and what was chosen. Marks them as done; returns how many they are. */
int tnd_explain_ops(const struct tandem_table *table, const tandem_graph *graph,
                    const tandem_plan *plan, int n_threads, bool *done, struct tnd_text *out);

#endif
