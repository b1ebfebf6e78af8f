/* SPDX-License-Identifier: MIT
 * Time as an interface, so that everything about waiting can be tested with a clock that tests
 * move. */
#ifndef TND_CLOCK_H
#define TND_CLOCK_H

#include <stdint.h>
#include <time.h>

/** A clock; implementations embed it as their first member. Any thread. */
struct tnd_clock {
    uint64_t (*now_ns)(const struct tnd_clock *clock);                      /* never goes back */
    void (*wait_until_ns)(const struct tnd_clock *clock, uint64_t when_ns); /* sleeps */
    /* CPU time of the calling thread: time spent running, without time spent waiting for a CPU */
    uint64_t (*thread_ns)(const struct tnd_clock *clock);
};

/** The machine's monotonic clock. */
const struct tnd_clock *tnd_clock_real(void);

/** A time of the monotonic clock as a timespec. */
static inline struct timespec tnd_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

/** CPU time of the calling thread: time spent running, without time spent waiting for a CPU. */
uint64_t tnd_thread_cpu_ns(void);

/** A clock that stands still until somebody advances it. Waiting on it advances it to the awaited
 * time. */
struct tnd_clock_virtual {
    struct tnd_clock clock;
    _Atomic uint64_t now_ns;
    _Atomic uint64_t stolen_ns; /* the part of now_ns in which no thread ran */
};

void tnd_clock_virtual_init(struct tnd_clock_virtual *clock, uint64_t now_ns);
void tnd_clock_virtual_advance(struct tnd_clock_virtual *clock, uint64_t by_ns);
/** Advances the clock without CPU time for any thread. */
void tnd_clock_virtual_steal(struct tnd_clock_virtual *clock, uint64_t by_ns);

#endif
