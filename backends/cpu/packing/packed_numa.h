/* SPDX-License-Identifier: MIT
 * Placement of the CPU backend's packed weights on a machine with several NUMA nodes. */
#ifndef TND_PACKED_NUMA_H
#define TND_PACKED_NUMA_H

#include "base/numa.h"
#include "tandem/backend.h"

enum { TND_PACKED_NODES = 64 };

struct tnd_packed_numa {
    enum tnd_numa_policy policy; /* FIRST_TOUCH, INTERLEAVE or MIRROR; else as FIRST_TOUCH */
    int n_nodes;
    int node_ids[TND_PACKED_NODES]; /* the system's numbers */
};

/** The policy of the setting numa=; `cpu` is the CPU backend. */
enum tnd_numa_policy tnd_cpu_numa_asked(const tandem_backend *cpu);

/** Sets the placement of copies made from now on. A mirrored copy takes its bytes on each node; if
 * memory is short, it is not mirrored. Any thread. */
void tnd_cpu_numa_set(tandem_backend *cpu, const struct tnd_packed_numa *numa);

#endif
