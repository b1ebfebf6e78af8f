/* SPDX-License-Identifier: MIT
 * Barriers on top of park. Two forms: `wait`, for equal workers; and `pass`/`gather`/`release`,
 * where worker 0 works alone while all others wait. One barrier is used in one form at a time. */
#ifndef TND_BARRIER_H
#define TND_BARRIER_H

#include "sched/park.h"

enum { TND_BARRIER_LEFT = 1 << 16 }; /* arrivals and leavers share one word, so that they are
                                      * compared together */

struct tnd_barrier {
    _Alignas(TND_CACHE_LINE) atomic_uint arrived;      /* plus TND_BARRIER_LEFT for each worker that
                                                        * left */
    _Alignas(TND_CACHE_LINE) atomic_uint phase;        /* counts releases, may wrap */
    _Alignas(TND_CACHE_LINE) struct tnd_park arrivals; /* where worker 0 sleeps in gather */
    struct tnd_park releases;                          /* where the others sleep */
};

bool tnd_barrier_init(struct tnd_barrier *barrier, struct tnd_park_counts *counts);
void tnd_barrier_fini(struct tnd_barrier *barrier);

/** Returns when `count` workers have arrived. */
void tnd_barrier_wait(struct tnd_barrier *barrier, int count, const struct tnd_spin *spin);

/** Leaves for good: later waits of the others do not count on this worker. After all have left,
 *  tnd_barrier_reset makes the barrier usable again. */
void tnd_barrier_leave(struct tnd_barrier *barrier, int count);
void tnd_barrier_reset(struct tnd_barrier *barrier);

/** Workers 1..count-1: `ticket` is the worker's own, set by tnd_barrier_ticket before the first
 *  release. */
unsigned tnd_barrier_ticket(struct tnd_barrier *barrier);
void tnd_barrier_arrive(struct tnd_barrier *barrier, int count);
void tnd_barrier_pass(struct tnd_barrier *barrier, unsigned *io_ticket,
                      const struct tnd_spin *spin);

/** Worker 0: release lets the others go on; gather waits until all others have arrived. */
void tnd_barrier_release(struct tnd_barrier *barrier);
void tnd_barrier_gather(struct tnd_barrier *barrier, int count, const struct tnd_spin *spin);

#endif
