/* SPDX-License-Identifier: MIT
 * Counting barriers with a phase word. The word that waiters poll and the contended counter are in
 * separate cache lines. */
#include "sched/barrier.h"

#include "base/tnd_assert.h"

bool tnd_barrier_init(struct tnd_barrier *barrier, struct tnd_park_counts *counts)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->phase, 0);
    if (!tnd_park_init(&barrier->arrivals, counts)) {
        return false;
    }
    if (!tnd_park_init(&barrier->releases, counts)) {
        tnd_park_fini(&barrier->arrivals);
        return false;
    }
    return true;
}

void tnd_barrier_fini(struct tnd_barrier *barrier)
{
    tnd_park_fini(&barrier->releases);
    tnd_park_fini(&barrier->arrivals);
}

static bool is_complete(unsigned arrived, int count)
{
    TND_ASSERT(count > 0 && count < TND_BARRIER_LEFT);
    TND_ASSERT(arrived % TND_BARRIER_LEFT + arrived / TND_BARRIER_LEFT <= (unsigned)count);
    return arrived % TND_BARRIER_LEFT + arrived / TND_BARRIER_LEFT == (unsigned)count;
}

/* Called by the last worker to arrive or to leave: nobody else changes `arrived` now. */
static void open_barrier(struct tnd_barrier *barrier, unsigned arrived)
{
    unsigned left = arrived - arrived % TND_BARRIER_LEFT;
    atomic_store_explicit(&barrier->arrived, left,
                          memory_order_relaxed); /* published by the phase */
    atomic_fetch_add(&barrier->phase, 1);
    tnd_park_wake(&barrier->releases);
}

void tnd_barrier_wait(struct tnd_barrier *barrier, int count, const struct tnd_spin *spin)
{
    /* The phase cannot move before we have arrived, so it may be read without order. */
    unsigned next = atomic_load_explicit(&barrier->phase, memory_order_relaxed) + 1;
    TND_POINT("before arriving");
    /* acq_rel: the last one sees what all others wrote before they arrived. */
    unsigned after = 1 + atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel);
    if (is_complete(after, count)) {
        open_barrier(barrier, after);
    } else {
        tnd_park_until(&barrier->releases, &barrier->phase, next, spin);
    }
}

void tnd_barrier_leave(struct tnd_barrier *barrier, int count)
{
    unsigned after =
        TND_BARRIER_LEFT +
        atomic_fetch_add_explicit(&barrier->arrived, TND_BARRIER_LEFT, memory_order_acq_rel);
    if (after % TND_BARRIER_LEFT > 0 && is_complete(after, count)) {
        open_barrier(barrier, after);
    }
}

void tnd_barrier_reset(struct tnd_barrier *barrier)
{
    atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
}

unsigned tnd_barrier_ticket(struct tnd_barrier *barrier)
{
    return atomic_load_explicit(&barrier->phase, memory_order_relaxed);
}

void tnd_barrier_arrive(struct tnd_barrier *barrier, int count)
{
    TND_POINT("before arriving at the gathering");
    unsigned arrived = atomic_fetch_add(&barrier->arrived, 1) + 1;
    TND_ASSERT(arrived < (unsigned)count);
    if (arrived == (unsigned)count - 1) {
        tnd_park_wake(&barrier->arrivals);
    }
}

void tnd_barrier_pass(struct tnd_barrier *barrier, unsigned *io_ticket, const struct tnd_spin *spin)
{
    *io_ticket += 1;
    tnd_park_until(&barrier->releases, &barrier->phase, *io_ticket, spin);
}

void tnd_barrier_release(struct tnd_barrier *barrier)
{
    atomic_fetch_add(&barrier->phase, 1);
    tnd_park_wake(&barrier->releases);
}

void tnd_barrier_gather(struct tnd_barrier *barrier, int count, const struct tnd_spin *spin)
{
    tnd_park_until(&barrier->arrivals, &barrier->arrived, (unsigned)count - 1, spin);
    atomic_store_explicit(&barrier->arrived, 0,
                          memory_order_relaxed); /* published by the release */
}
