/* SPDX-License-Identifier: MIT
 * Spin, then sleep. A timed wait is a sleep with a deadline, after which the same wait begins
 * again, so what holds for sleeps holds for timed waits. Why no wake-up is lost: the sleeper first
 * adds itself to `sleepers`, then reads the word; the waker first writes the word, then reads
 * `sleepers`. All four are seq_cst, so at least one of the two sees the other. A waker that sees a
 * sleeper takes the mutex, which the sleeper holds from adding itself until it is asleep: the
 * broadcast reaches it. The timed re-check is only for C libraries whose condition variables may
 * lose a signal (glibc before 2.41, bug 25847). */
#include "sched/park.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/tnd_assert.h"
#include "sched/timed_wait.h"

enum {
    POLLS_BEFORE_YIELDS = 2048, /* afterwards one poll in YIELD_EVERY lets others run */
    YIELD_EVERY = 256,
    CROWDED_POLLS = 40,
    CROWDED_YIELDS = 8,
    RECHECK_NS = 50 * 1000 * 1000
};

bool tnd_condition_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* immune to changes of the system's
                                                              * time */
    int failed = pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed == 0;
}

static uint64_t now_ns(void)
{
    return tnd_clock_real()->now_ns(tnd_clock_real());
}

/* Sleeps until `when_ns`, but at most until the next re-check. */
static void wait_until_ns(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t when_ns)
{
    const uint64_t recheck_ns = now_ns() + RECHECK_NS;
    when_ns = when_ns < recheck_ns ? when_ns : recheck_ns;
    const struct timespec when = tnd_timespec(when_ns);
    pthread_cond_timedwait(cond, mutex, &when);
}

void tnd_condition_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    wait_until_ns(cond, mutex, UINT64_MAX);
}

bool tnd_park_init(struct tnd_park *park, struct tnd_park_counts *counts)
{
    if (pthread_mutex_init(&park->mutex, NULL) != 0) {
        return false;
    }
    if (!tnd_condition_init(&park->cond)) {
        pthread_mutex_destroy(&park->mutex);
        return false;
    }
    atomic_init(&park->sleepers, 0);
    park->counts = counts;
    return true;
}

void tnd_park_fini(struct tnd_park *park)
{
    pthread_cond_destroy(&park->cond);
    pthread_mutex_destroy(&park->mutex);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

enum spin_end {
    SPIN_SEEN,     /* the word has its value */
    SPIN_TIRED,    /* the limit of polls was reached */
    SPIN_CUT,      /* `cut_short` is set */
    SPIN_FORECAST, /* the expected end differs from `known_ns` */
};

static enum spin_end spin_until(const atomic_uint *word, unsigned value,
                                const struct tnd_spin *spin, uint64_t known_ns)
{
    int64_t polls = spin->polls;
    if (spin->crowded && polls > CROWDED_POLLS + CROWDED_YIELDS) {
        polls = CROWDED_POLLS + CROWDED_YIELDS;
    }
    for (int64_t i = 0; i < polls; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) == value) {
            return SPIN_SEEN; /* pairs with the waker's store */
        }
        if (spin->cut_short != NULL &&
            atomic_load_explicit(spin->cut_short, memory_order_relaxed) != 0) {
            return SPIN_CUT;
        }
        if (spin->expected_ns != NULL &&
            atomic_load_explicit(spin->expected_ns, memory_order_relaxed) != known_ns) {
            return SPIN_FORECAST;
        }
        bool yield =
            spin->crowded ? i >= CROWDED_POLLS : i >= POLLS_BEFORE_YIELDS && i % YIELD_EVERY == 0;
        if (yield) {
            sched_yield();
        } else {
            relax();
        }
    }
    return SPIN_TIRED;
}

static void count_one(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Announces the sleep, then sleeps until the word has its value or until `until_ns` (UINT64_MAX: no
 * deadline). Returns whether the word has its value. */
static bool sleep_until(struct tnd_park *park, atomic_uint *word, unsigned value, uint64_t until_ns)
{
    bool is_seen;
    if (park->counts != NULL) {
        count_one(&park->counts->parks);
    }
    pthread_mutex_lock(&park->mutex);
    atomic_fetch_add(&park->sleepers, 1);
    TND_POINT("between announcing sleep and looking again");
    while (!(is_seen = atomic_load(word) == value) &&
           (until_ns == UINT64_MAX || now_ns() < until_ns)) {
        wait_until_ns(&park->cond, &park->mutex, until_ns);
    }
    int before = atomic_fetch_sub_explicit(&park->sleepers, 1, memory_order_relaxed);
    TND_ASSERT(before > 0);
    (void)before;
    pthread_mutex_unlock(&park->mutex);
    return is_seen;
}

uint64_t tnd_park_wake_ns(const struct tnd_park_counts *counts)
{
    uint64_t wake_ns =
        counts != NULL ? atomic_load_explicit(&counts->wake_ns, memory_order_relaxed) : 0;
    return wake_ns != 0 ? wake_ns : TND_WAKE_FIRST_NS;
}

/* Sleeps until the word has its value or until `until_ns`, and updates the cost of waking. Returns
 * whether the word has its value. */
static bool sleep_timed(struct tnd_park *park, atomic_uint *word, unsigned value, uint64_t until_ns)
{
    struct tnd_park_counts *counts = park->counts;
    if (counts != NULL) {
        count_one(&counts->timed_waits);
    }
    if (sleep_until(park, word, value, until_ns)) {
        return true;
    }
    if (counts != NULL) { /* concurrent updates may be lost: harmless */
        uint64_t wake_ns = tnd_wake_cost_learn(tnd_park_wake_ns(counts), now_ns() - until_ns);
        atomic_store_explicit(&counts->wake_ns, wake_ns, memory_order_relaxed);
    }
    return false;
}

/* Spins; while an end is expected, also sleeps with a deadline. Returns whether the word has its
 * value; if not, the caller sleeps until it has. */
static bool stay_awake(struct tnd_park *park, atomic_uint *word, unsigned value,
                       const struct tnd_spin *spin)
{
    uint64_t known_ns = 0;    /* as published */
    uint64_t expected_ns = 0; /* the same, or renewed when overdue */
    for (;;) {
        uint64_t wake_ns = tnd_park_wake_ns(park->counts);
        switch (spin_until(word, value, spin, known_ns)) {
        case SPIN_SEEN:
            return true;
        case SPIN_CUT:
            return false;
        case SPIN_FORECAST:
            known_ns = atomic_load_explicit(spin->expected_ns, memory_order_relaxed);
            expected_ns = known_ns;
            break;
        case SPIN_TIRED:
            expected_ns = tnd_timed_wait_renew(now_ns(), expected_ns, wake_ns);
            if (expected_ns == 0) {
                return false;
            }
            break;
        }
        uint64_t until_ns = tnd_timed_wait_until(now_ns(), expected_ns, wake_ns);
        if (until_ns != 0 && spin->crowded) {
            return false; /* no spinning after a timed wait either: the caller sleeps until woken */
        }
        if (until_ns != 0 && sleep_timed(park, word, value, until_ns)) {
            return true;
        }
    }
}

void tnd_park_until(struct tnd_park *park, atomic_uint *word, unsigned value,
                    const struct tnd_spin *spin)
{
    TND_ASSERT(spin->polls >= 0);
    TND_POINT("before waiting");
    if (!stay_awake(park, word, value, spin) &&
        atomic_load_explicit(word, memory_order_acquire) != value) {
        TND_POINT("between spin and sleep");
        (void)sleep_until(park, word, value, UINT64_MAX);
    }
}

void tnd_park_wake(struct tnd_park *park)
{
    TND_POINT("between writing the word and waking");
    if (atomic_load(&park->sleepers) == 0) {
        return;
    }
    pthread_mutex_lock(&park->mutex);
    pthread_cond_broadcast(&park->cond);
    pthread_mutex_unlock(&park->mutex);
    if (park->counts != NULL) {
        count_one(&park->counts->wakes);
    }
}
