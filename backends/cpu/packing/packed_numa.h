/* SPDX-License-Identifier: MIT
 * Where the packed weights of the CPU backend lie on a machine of several NUMA nodes. */
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

/** What the setting numa= asks for; `cpu` is the CPU backend. */
enum tnd_numa_policy tnd_cpu_numa_asked(const tandem_backend *cpu);

/** Copies made from now on lie so. A mirrored one takes its bytes once a node; where there is no
 *  memory for that, it is not mirrored. Any thread. */
void tnd_cpu_numa_set(tandem_backend *cpu, const struct tnd_packed_numa *numa);

#endif
