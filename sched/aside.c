/* SPDX-License-Identifier: MIT
 * All is advice: numbers may be old when they are read, and the system may move a thread again. */
#include "sched/aside.h"

#include <sched.h>

bool tnd_aside_take(struct tnd_aside *aside, unsigned round)
{
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= TND_ASIDE_CPUS) {
        return true; /* nothing is known of it */
    }
    /* relaxed: nothing hangs on it but where threads run */
    return atomic_exchange_explicit(&aside->taken[cpu], round, memory_order_relaxed) != round;
}

bool tnd_aside_step(struct tnd_aside *aside, unsigned round)
{
    cpu_set_t allowed;
    if (tnd_aside_take(aside, round) || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return false;
    }
    cpu_set_t is_free = allowed;
    for (int cpu = 0; cpu < TND_ASIDE_CPUS && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &is_free) &&
            atomic_load_explicit(&aside->taken[cpu], memory_order_relaxed) == round) {
            CPU_CLR((size_t)cpu, &is_free);
        }
    }
    if (CPU_COUNT(&is_free) == 0 || sched_setaffinity(0, sizeof(is_free), &is_free) != 0) {
        return false;
    }
    (void)tnd_aside_take(aside, round); /* it is there now */
    (void)sched_setaffinity(0, sizeof(allowed), &allowed);
    return true;
}
