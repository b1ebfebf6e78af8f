/* SPDX-License-Identifier: MIT
 * Checks now and then how many CPUs are available: the control group's quota, and what other
 * programs leave. Both may change while a program runs. Fewer threads are faster than threads that
 * wait for one without a CPU. */
#ifndef TND_QUOTA_H
#define TND_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/tnd_log.h"
#include "sched/topology.h"

struct tnd_quota {
    const char *root; /* control groups and the process's own file: tnd_cgroup_cpus */
    const char *self;
    const char *stat; /* "/proc/stat" */
    const struct tnd_clock *clock;
    _Atomic(const struct tnd_topology *) topology; /* NULL: other programs are ignored */
    double at_open;                                /* CPUs; 0: no quota */
    _Atomic uint64_t due_ns;                       /* time of the next check */
    uint64_t looked_ns, own_ns;                    /* at the last check; guarded by due_ns */
    int64_t busy_ticks;                            /* also at the last check, of busy_cpus CPUs */
    int busy_cpus;                                 /* 0: unknown */
    atomic_int limit;                              /* threads; 0: as when it was opened */
    atomic_int left;                               /* by other programs; 0: all */
};

/** `topology` (may be NULL) must stay valid: its CPUs are shared with other programs. */
void tnd_quota_init(struct tnd_quota *quota, double at_open, const struct tnd_topology *topology,
                    const struct tnd_clock *clock);
/** Stops adapting to other programs: the program chooses the number of threads itself. Any thread.
 */
void tnd_quota_ignore_others(struct tnd_quota *quota);
/** Busy ticks of these CPUs in a file like /proc/stat, without niced programs. *out_cpus: number of
 * these CPUs in the file; 0: no file. */
int64_t tnd_quota_busy(const char *path, const struct tnd_topology *topology, int *out_cpus);
/** Checks if it is due; otherwise only reads the clock. Any thread. */
void tnd_quota_look(struct tnd_quota *quota, const struct tnd_log *log);
/** Most threads that a plan may have; 0: only the caller limits them. `is_long`: a graph of long
 * products, which may use CPUs that other programs keep busy (tnd_rule_is_long). Any thread. */
int tnd_quota_limit(const struct tnd_quota *quota, bool is_long);

#endif
