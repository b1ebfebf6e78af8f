/* SPDX-License-Identifier: MIT
 * Waiting for a word in memory: bounded spin, then sleep; where the end is predicted, sleep until
 * shortly before it, then spin. The only place of the library that puts a thread to sleep for
 * another one. tests/model/park.pml is a model of it. */
#ifndef TND_PARK_H
#define TND_PARK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TND_CACHE_LINE 64

/* Named places where tests insert random yields; empty in the library. */
#ifndef TND_POINT
#define TND_POINT(name) ((void)0)
#endif

/** How long to spin before sleeping. */
struct tnd_spin {
    int64_t polls;               /* 0: sleep at once */
    bool crowded;                /* more threads than CPUs: yield early, sleep soon */
    const atomic_int *cut_short; /* spinning stops while it is not 0; may be NULL */
    /** When the wait is expected to end, on the monotonic clock; 0: unknown. May change at any
     *  time. A hint: a wrong one only costs time. May be NULL. */
    const _Atomic uint64_t *expected_ns;
};

/** Shared by all parks of a pool. */
struct tnd_park_counts {
    atomic_ullong parks;       /* times a thread went to sleep */
    atomic_ullong wakes;       /* broadcasts sent */
    atomic_ullong timed_waits; /* sleeps until shortly before an expected end, among `parks` */
    /** How late a thread wakes from a sleep that ends by the clock; see sched/timed_wait.h. 0: not
     *  measured yet. */
    _Atomic uint64_t wake_ns;
};

/** Wait queue of one atomic word. Any number of threads may wait; any thread may wake them. */
struct tnd_park {
    pthread_mutex_t
        mutex; /* taken only by sleepers and by those who wake them; no lock is taken inside */
    pthread_cond_t cond;
    atomic_int sleepers;
    struct tnd_park_counts *counts; /* may be NULL */
};

enum { TND_SPIN_DEFAULT = 20000 };

/** False when the system is out of resources. */
bool tnd_park_init(struct tnd_park *park, struct tnd_park_counts *counts);
void tnd_park_fini(struct tnd_park *park);

/** Returns when *word == value, with acquire order. The word must keep that value until every
 *  waiter has seen it. */
void tnd_park_until(struct tnd_park *park, atomic_uint *word, unsigned value,
                    const struct tnd_spin *spin);

/** Cost of waking as measured by the parks that share these counts, or a first guess. NULL
 * allowed. */
uint64_t tnd_park_wake_ns(const struct tnd_park_counts *counts);

/** A condition variable on monotonic time, and one bounded sleep on it: callers loop over their
 *  predicate. */
bool tnd_condition_init(pthread_cond_t *cond);
void tnd_condition_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

/** Wakes all sleepers. The caller must have changed the word with memory_order_seq_cst (the
 *  default) before; cheap when nobody sleeps. */
void tnd_park_wake(struct tnd_park *park);

#endif
