/* SPDX-License-Identifier: MIT
 * The CPU time that the control group grants, looked at now and then: it may change while a program
 * runs. */
#ifndef TND_QUOTA_H
#define TND_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/tnd_log.h"

struct tnd_quota {
    const char *root; /* of the control groups, and the process's own file: tnd_cgroup_cpus */
    const char *self;
    const struct tnd_clock *clock;
    double at_open;          /* CPUs; 0: no quota */
    _Atomic uint64_t due_ns; /* when to look again */
    atomic_int limit;        /* threads; 0: as when it was opened */
};

void tnd_quota_init(struct tnd_quota *quota, double at_open, const struct tnd_clock *clock);
/** Looks if it is time to. Costs a reading of the clock else. Any thread. */
void tnd_quota_look(struct tnd_quota *quota, const struct tnd_log *log);
/** The most threads that plans shall have; 0: no limit but the caller's. */
int tnd_quota_limit(const struct tnd_quota *quota);

#endif
