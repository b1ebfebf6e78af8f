/* SPDX-License-Identifier: MIT
 * Spin, then sleep. Why no wake-up is lost: the sleeper first adds itself to `sleepers`, then
 * looks at the word; the waker first writes the word, then looks at `sleepers`. All four are
 * seq_cst, so at least one of the two sees the other. A waker that sees a sleeper takes the
 * mutex, which the sleeper holds from adding itself until it is asleep: the broadcast finds it.
 * The timed re-check is for C libraries whose condition variables may lose a signal (glibc
 * before 2.41, bug 25847), not for us. */
#include "sched/park.h"

#include <sched.h>
#include <time.h>

enum {
    POLLS_BEFORE_YIELDS = 2048, /* afterwards one poll in YIELD_EVERY lets others run */
    YIELD_EVERY = 256,
    CROWDED_POLLS = 40,
    CROWDED_YIELDS = 8,
    RECHECK_NS = 50 * 1000 * 1000,
    NS_PER_S = 1000 * 1000 * 1000
};

bool tnd_condition_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* setting the time must not matter */
    int failed = pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed == 0;
}

void tnd_condition_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_nsec += RECHECK_NS;
    if (when.tv_nsec >= NS_PER_S) {
        when.tv_nsec -= NS_PER_S;
        when.tv_sec++;
    }
    pthread_cond_timedwait(cond, mutex, &when);
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

static bool spin_until(const atomic_uint *word, unsigned value, const struct tnd_spin *spin)
{
    int64_t polls = spin->polls;
    if (spin->crowded && polls > CROWDED_POLLS + CROWDED_YIELDS) {
        polls = CROWDED_POLLS + CROWDED_YIELDS;
    }
    for (int64_t i = 0; i < polls; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) == value) {
            return true; /* pairs with the store in whoever wakes us */
        }
        if (spin->cut_short != NULL &&
            atomic_load_explicit(spin->cut_short, memory_order_relaxed) != 0) {
            return false;
        }
        bool yield =
            spin->crowded ? i >= CROWDED_POLLS : i >= POLLS_BEFORE_YIELDS && i % YIELD_EVERY == 0;
        if (yield) {
            sched_yield();
        } else {
            relax();
        }
    }
    return false;
}

static void sleep_until(struct tnd_park *park, atomic_uint *word, unsigned value)
{
    if (park->counts != NULL) {
        atomic_fetch_add_explicit(&park->counts->parks, 1, memory_order_relaxed);
    }
    pthread_mutex_lock(&park->mutex);
    atomic_fetch_add(&park->sleepers, 1);
    TND_POINT("between announcing sleep and looking again");
    while (atomic_load(word) != value) {
        tnd_condition_wait(&park->cond, &park->mutex);
    }
    atomic_fetch_sub_explicit(&park->sleepers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&park->mutex);
}

void tnd_park_until(struct tnd_park *park, atomic_uint *word, unsigned value,
                    const struct tnd_spin *spin)
{
    TND_POINT("before waiting");
    if (!spin_until(word, value, spin) &&
        atomic_load_explicit(word, memory_order_acquire) != value) {
        TND_POINT("between spin and sleep");
        sleep_until(park, word, value);
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
        atomic_fetch_add_explicit(&park->counts->wakes, 1, memory_order_relaxed);
    }
}
