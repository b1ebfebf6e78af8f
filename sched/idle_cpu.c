/* SPDX-License-Identifier: MIT
 * Everything here is best effort: what is read may be out of date, and the system may move a thread
 * again. */
#include "sched/idle_cpu.h"

#include <sched.h>

#include "base/tnd_assert.h"
#include "sched/park.h"

bool tnd_cpu_claim(struct tnd_cpu_claims *claims, unsigned round)
{
    TND_ASSERT(round != 0);
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= TND_CLAIM_CPUS) {
        return true; /* the CPU is unknown */
    }
    /* relaxed: only the placement of threads depends on it */
    return atomic_exchange_explicit(&claims->taken[cpu], round, memory_order_relaxed) != round;
}

bool tnd_cpu_move_to_idle(struct tnd_cpu_claims *claims, unsigned round)
{
    cpu_set_t allowed;
    if (tnd_cpu_claim(claims, round) || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return false;
    }
    cpu_set_t is_free = allowed;
    for (int cpu = 0; cpu < TND_CLAIM_CPUS && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &is_free) &&
            atomic_load_explicit(&claims->taken[cpu], memory_order_relaxed) == round) {
            CPU_CLR((size_t)cpu, &is_free);
        }
    }
    if (CPU_COUNT(&is_free) == 0 || sched_setaffinity(0, sizeof(is_free), &is_free) != 0) {
        return false;
    }
    (void)tnd_cpu_claim(claims, round); /* the thread runs there now */
    TND_POINT("between moving and being free again");
    cpu_set_t found;
    if (sched_getaffinity(0, sizeof(found), &found) == 0 && CPU_EQUAL(&found, &is_free)) {
        (void)sched_setaffinity(0, sizeof(allowed), &allowed);
    } /* else another thread has changed the mask of this one meanwhile: keep that */
    return true;
}
