/* SPDX-License-Identifier: MIT
 * NUMA nodes of a runtime: whether workers and rows are divided by node, and where weights are
 * placed. */
#ifndef TND_RUNTIME_NODES_H
#define TND_RUNTIME_NODES_H

#include "runtime/runtime_internal.h"

/** Simulates the nodes that TANDEM_NUMA asks for. */
void tnd_numa_pretend(struct tnd_topology *topology);
/** Topology for the pool; NULL: only one node, or the CPU's setting is numa=off. */
const struct tnd_topology *tnd_numa_topology(const tandem_runtime *runtime);
/** Sets where the CPU backend places weights packed from now on: by its setting, or as measured
 * best in `table` (may be NULL). */
void tnd_numa_place(const tandem_runtime *runtime, const struct tandem_table *table);

/** "cpu node 0 rows 0-2047, cpu node 1 rows 2048-4095" for a product that workers of the CPU
 *  share by nodes, else "". Returns the length. */
size_t tnd_numa_describe_rows(struct tnd_pool *pool, const tandem_tensor *node,
                              const struct tandem_plan_node *choice, char *out, size_t n);

#endif
