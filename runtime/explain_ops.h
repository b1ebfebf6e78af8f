/* SPDX-License-Identifier: MIT
 * Why operations beside plain products have the place and the threads that they have. */
#ifndef TND_EXPLAIN_OPS_H
#define TND_EXPLAIN_OPS_H

#include "backends/registry.h"
#include "base/text.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "table/tnd_table.h"

/** One line for each different operation of nodes that are not `done`: what was chosen, and what is
 *  predicted for 1, 2, 4, .. n_threads threads of the CPU and for devices. Marks them as done;
 *  returns how many they are. */
int tnd_explain_ops(const struct tandem_table *table, const struct tnd_registry *registry,
                    const tandem_graph *graph, const tandem_plan *plan, int n_threads, bool *done,
                    struct tnd_text *out);

#endif
