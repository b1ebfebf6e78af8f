/* SPDX-License-Identifier: MIT
 * The monotonic clock of the machine and the virtual clock of tests. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"

static const uint64_t NS_PER_S = 1000000000u;

static uint64_t real_now_ns(const struct tnd_clock *clock)
{
    (void)clock;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void real_wait_until_ns(const struct tnd_clock *clock, uint64_t when_ns)
{
    (void)clock;
    const struct timespec when = tnd_timespec(when_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
    }
}

static uint64_t real_thread_ns(const struct tnd_clock *clock)
{
    (void)clock;
    return tnd_thread_cpu_ns();
}

const struct tnd_clock *tnd_clock_real(void)
{
    static const struct tnd_clock clock = {real_now_ns, real_wait_until_ns, real_thread_ns};
    return &clock;
}

uint64_t tnd_thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t virtual_now_ns(const struct tnd_clock *clock)
{
    const struct tnd_clock_virtual *self = (const struct tnd_clock_virtual *)clock;
    /* acquire: pairs with the release of the thread that moved the clock, so that what it did
     * before the move is seen after it. */
    return atomic_load_explicit(&self->now_ns, memory_order_acquire);
}

static void virtual_wait_until_ns(const struct tnd_clock *clock, uint64_t when_ns)
{
    /* Clocks are passed as const, but a virtual clock is always a modifiable object. */
    struct tnd_clock_virtual *self = (struct tnd_clock_virtual *)(uintptr_t)clock;
    uint64_t now = atomic_load_explicit(&self->now_ns, memory_order_acquire);
    while (now < when_ns &&
           !atomic_compare_exchange_weak_explicit(&self->now_ns, &now, when_ns,
                                                  memory_order_acq_rel, memory_order_acquire)) {
    }
}

static uint64_t virtual_thread_ns(const struct tnd_clock *clock)
{
    const struct tnd_clock_virtual *self = (const struct tnd_clock_virtual *)clock;
    /* acquire: as above; stolen_ns is read first, so that it never exceeds the clock read after
     * it */
    uint64_t stolen_ns = atomic_load_explicit(&self->stolen_ns, memory_order_acquire);
    return virtual_now_ns(clock) - stolen_ns;
}

void tnd_clock_virtual_init(struct tnd_clock_virtual *clock, uint64_t now_ns)
{
    clock->clock.now_ns = virtual_now_ns;
    clock->clock.wait_until_ns = virtual_wait_until_ns;
    clock->clock.thread_ns = virtual_thread_ns;
    atomic_init(&clock->now_ns, now_ns);
    atomic_init(&clock->stolen_ns, 0);
}

void tnd_clock_virtual_advance(struct tnd_clock_virtual *clock, uint64_t by_ns)
{
    atomic_fetch_add_explicit(&clock->now_ns, by_ns, memory_order_acq_rel);
}

void tnd_clock_virtual_steal(struct tnd_clock_virtual *clock, uint64_t by_ns)
{
    tnd_clock_virtual_advance(clock, by_ns);
    atomic_fetch_add_explicit(&clock->stolen_ns, by_ns, memory_order_acq_rel);
}
