/* SPDX-License-Identifier: MIT
 * How to wait for something whose end is predicted: sleep while the rest of the wait is longer than
 * the cost of waking, be awake before the end, and sleep again when the end does not come. Pure
 * functions; park.c uses them. All times are nanoseconds of one clock. */
#ifndef TND_TIMED_WAIT_H
#define TND_TIMED_WAIT_H

#include <stdint.h>

enum {
    TND_WAKE_FIRST_NS = 60 * 1000, /* cost of waking before any was measured */
    TND_WAKE_LEAST_NS = 10 * 1000, /* bounds of the estimate: a thread that lost its CPU for */
    TND_WAKE_MOST_NS = 250 * 1000, /* a time slice says nothing about the cost of waking */
    TND_TIMED_WAIT_LONGEST_NS = 20 * 1000000 /* after this much overdue, sleep until woken */
};

/** When to wake from a sleep that begins now; 0: do not sleep, because the end is unknown (0),
 *  past, or closer than the cost of waking. */
uint64_t tnd_timed_wait_until(uint64_t now_ns, uint64_t expected_ns, uint64_t wake_ns);

/** The new expected end after the old one has passed: assumes that what is overdue by t lasts
 *  another t, so that the sleeps grow. 0: stop guessing, sleep until woken. */
uint64_t tnd_timed_wait_renew(uint64_t now_ns, uint64_t expected_ns, uint64_t wake_ns);

/** Updates the estimate of the cost of waking after a wake-up that was late by `late_ns`: rises
 *  fast and falls slowly, so that nearly all wake-ups are in time. */
uint64_t tnd_wake_cost_learn(uint64_t wake_ns, uint64_t late_ns);

#endif
