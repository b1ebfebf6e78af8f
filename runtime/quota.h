/* SPDX-License-Identifier: MIT
 * The CPUs that are there for us, looked at now and then: what the control group grants, and what
 * other programs leave. Both may change while a program runs. Threads that wait for one which has
 * no CPU are slower than fewer threads. */
#ifndef TND_QUOTA_H
#define TND_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/tnd_log.h"
#include "sched/topology.h"

struct tnd_quota {
    const char *root; /* of the control groups, and the process's own file: tnd_cgroup_cpus */
    const char *self;
    const char *stat; /* "/proc/stat" */
    const struct tnd_clock *clock;
    _Atomic(const struct tnd_topology *) topology; /* NULL: other programs are not looked at */
    double at_open;                                /* CPUs; 0: no quota */
    _Atomic uint64_t due_ns;                       /* when to look again */
    uint64_t looked_ns, own_ns;                    /* at the last look; guarded by due_ns */
    int64_t busy_ticks;                            /* and then, of busy_cpus CPUs */
    int busy_cpus;                                 /* 0: not told */
    atomic_int limit;                              /* threads; 0: as when it was opened */
    atomic_int left;                               /* by other programs; 0: all */
};

/** `topology` (may be NULL), which has to stay: its CPUs are shared with other programs. */
void tnd_quota_init(struct tnd_quota *quota, double at_open, const struct tnd_topology *topology,
                    const struct tnd_clock *clock);
/** From now on the number of threads is the program's business. Any thread. */
void tnd_quota_ignore_others(struct tnd_quota *quota);
/** Ticks that these CPUs were busy, by a file like /proc/stat, without programs that give way
 *  (niced), and of how many of these CPUs the file tells; 0: it is not there. */
int64_t tnd_quota_busy(const char *path, const struct tnd_topology *topology, int *out_cpus);
/** Looks if it is time to. Costs a reading of the clock else. Any thread. */
void tnd_quota_look(struct tnd_quota *quota, const struct tnd_log *log);
/** Most threads that a plan may have; 0: only the caller limits them. `is_long`: a graph of long
 * products, which may use CPUs that other programs keep busy (tnd_rule_is_long). Any thread. */
int tnd_quota_limit(const struct tnd_quota *quota, bool is_long);

#endif
