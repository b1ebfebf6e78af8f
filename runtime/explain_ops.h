/* SPDX-License-Identifier: MIT
 * Explains the device and the threads of operations other than plain products. */
#ifndef TND_EXPLAIN_OPS_H
#define TND_EXPLAIN_OPS_H

#include "backends/registry.h"
#include "base/text.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "table/tnd_table.h"

/** Appends a line for each distinct operation among the nodes not `done`: the choice, and the times
 * predicted for 1, 2, 4, .. n_threads threads of the CPU and for devices. Marks these nodes as
 * done; returns their number. */
int tnd_explain_ops(const struct tandem_table *table, const struct tnd_registry *registry,
                    const tandem_graph *graph, const tandem_plan *plan, int n_threads, bool *done,
                    struct tnd_text *out);

#endif
