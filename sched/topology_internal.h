/* SPDX-License-Identifier: MIT
 * What both readers of the topology fill in: one row for each logical CPU. topology.c computes
 * order and sums from the rows. */
#ifndef TND_TOPOLOGY_INTERNAL_H
#define TND_TOPOLOGY_INTERNAL_H

#include "sched/topology.h"

/** One logical CPU of the whole machine. */
struct tnd_cpu_row {
    int id;   /* the system's number */
    int core; /* numbers of core and package, equal for CPUs that share it; any values */
    int package;
    int numa_node;   /* the system's number */
    int smt;         /* place in the core, 0 first; set by topology.c */
    int speed;       /* of the core kind, 0 or more, larger is faster, in any unit */
    int rank;        /* of the speed; set by topology.c */
    bool is_allowed; /* to this process */
};

struct tnd_cpu_rows {
    int n;
    struct tnd_cpu_row row[TND_MAX_CPUS];
    size_t l1d_bytes, l2_bytes, l3_bytes; /* 0 unknown */
};

/** Computes sums, order and text from the rows; sorts `rows`. quota_cpus 0: none. */
void tnd_topology_fill(struct tnd_cpu_rows *rows, double quota_cpus, struct tnd_topology *out);

/** Reads a sysfs ("/sys"); every online CPU counts as allowed. False when there is nothing to
 *  read. */
bool tnd_topology_rows_from_sysfs(const char *sysfs, struct tnd_cpu_rows *out);

/** Reads with hwloc: an XML file, a synthetic description ("package:1 core:2 pu:2"), or (both
 *  NULL) this machine. False when hwloc is not built in or fails. */
bool tnd_topology_rows_from_hwloc(const char *xml_path, const char *synthetic,
                                  struct tnd_cpu_rows *out);

#endif
