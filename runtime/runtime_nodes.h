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

#endif
