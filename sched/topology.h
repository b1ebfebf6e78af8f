/* SPDX-License-Identifier: MIT
 * The processors of this machine as seen by this process: cores, SMT, core kinds, caches, NUMA,
 * allowed CPUs and the cgroup's CPU quota. Read with hwloc if built in, else from sysfs. */
#ifndef TND_TOPOLOGY_H
#define TND_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

enum { TND_MAX_CPUS = 1024, TND_MAX_NODES = 64 };

struct tnd_topology {
    int n_cpus;  /* logical CPUs that this process may use */
    int n_cores; /* physical cores among them */
    int n_numa_nodes;
    int n_core_kinds;          /* 1 unless hybrid */
    int threads_per_core;      /* largest SMT width */
    double quota_cpus;         /* CPUs that the cgroup allows (may be fractional); 0: no quota */
    int recommended_threads;   /* one for each core, within the quota; >= 1 */
    size_t l1d_bytes;          /* of one core; 0 unknown */
    size_t l2_bytes;           /* of one core */
    size_t l3_bytes;           /* of the largest L3 */
    uint64_t hash;             /* of the machine's whole shape, for the fingerprint */
    int cpu_ids[TND_MAX_CPUS]; /* OS numbers of the allowed CPUs, best order for placing threads: */
    uint8_t
        kind[TND_MAX_CPUS]; /* first one CPU of every core, fastest kind first; core kind of each */
    /* NUMA node of each: 0 .. n_numa_nodes - 1, in the order of the system's numbers. Machines with
     * more than TND_MAX_NODES nodes count as one node. */
    uint8_t node[TND_MAX_CPUS];
    int node_ids[TND_MAX_NODES]; /* the system's number of each node */
    bool from_hwloc;
    char text[128]; /* "2 cores, 2 threads, 1 NUMA node, L2 1 MiB, L3 32 MiB" */
};

/** Number of cores of the fastest kind, if there are several kinds; else 0. */
int tnd_topology_fast_cores(const struct tnd_topology *topology);

/** Reads this machine. What cannot be found out is 0 or 1, never an error. Errors: MEMORY. */
enum tandem_status tnd_topology_read(struct tnd_topology *out_topology, struct tandem_error *error);
/** Divides the cores among `n_nodes` simulated NUMA nodes, neighbours together, at least one core a
 *  node; their memory is that of the first real node. For tests and experiments without a NUMA
 *  machine. The hash does not change. */
void tnd_topology_pretend(struct tnd_topology *topology, int n_nodes);
#endif
