/* SPDX-License-Identifier: MIT
 * NUMA nodes of a runtime: whether workers and rows are divided by them, and where weights lie. */
#ifndef TND_RUNTIME_NODES_H
#define TND_RUNTIME_NODES_H

#include "runtime/runtime_internal.h"

/** Pretends what TANDEM_NUMA asks for. */
void tnd_numa_pretend(struct tnd_topology *topology);
/** For the pool; NULL where there is one node, or the CPU's setting is numa=off. */
const struct tnd_topology *tnd_numa_topology(const tandem_runtime *runtime);
/** Tells the CPU backend where weights that are packed from now on lie: as its setting asks, or
 *  what `table` (may be NULL) has measured to be best. */
void tnd_numa_place(const tandem_runtime *runtime, const struct tandem_table *table);

/** "cpu node 0 rows 0-2047, cpu node 1 rows 2048-4095" for a product that workers of the CPU
 *  share by nodes, else "". Returns the length. */
size_t tnd_numa_describe_rows(struct tnd_pool *pool, const tandem_tensor *node,
                              const struct tandem_plan_node *choice, char *out, size_t n);

#endif
