/* SPDX-License-Identifier: MIT
 * How the workers of a run wait while worker 0 syncs a device or works alone. Worker 0 publishes
 * when they may be needed; sched/park.c does the rest. Predictions come with the steps, and a wrong
 * one only costs time: work that is ready wakes all sleepers. */
#include "base/tnd_assert.h"
#include "sched/timed_wait.h"
#include "sched/run.h"

enum {
    CALLER_SLACK_NS = 50 * 1000 /* how late the system wakes threads other than the workers */
};

/* Long, but of unknown length. */
#define FOREVER_NS (UINT64_MAX / 4)

/* Plans may be written by hand, too: bounds the prediction. */
static uint64_t predicted_ns(const struct tnd_step *step)
{
    double ns = 1000.0 * (double)step->predicted_us;
    TND_ASSERT(ns >= 0); /* checked when the plan was made */
    return ns < (double)FOREVER_NS ? (uint64_t)ns : FOREVER_NS;
}

uint64_t tnd_run_predict_end(struct tnd_run *run, const struct tnd_step *step)
{
    uint64_t *io_expected_ns = &run->expected_ns_of[step->backend];
    if (!tnd_step_is_timed(step)) {
        return *io_expected_ns; /* the last known end is a lower bound */
    }
    uint64_t now_ns = run->clock->now_ns(run->clock);
    uint64_t begin_ns = *io_expected_ns > now_ns ? *io_expected_ns : now_ns;
    begin_ns = begin_ns < FOREVER_NS ? begin_ns : FOREVER_NS; /* many long ones add up */
    *io_expected_ns = begin_ns + predicted_ns(step);
    return *io_expected_ns;
}

/* The end is expected `for_ns` from now; 0: unknown. */
static void publish(struct tnd_run *run, uint64_t for_ns)
{
    const struct tnd_clock *clock = tnd_clock_real();
    uint64_t expected_ns = for_ns == 0 ? 0 : clock->now_ns(clock) + for_ns;
    atomic_store_explicit(&run->expected_ns, expected_ns, memory_order_relaxed);
    tnd_pool_expect(run->pool, expected_ns);
}

/* Sleeps three quarters of the predicted time: nothing wakes worker 0 when the device is done
 * early. Returns whether worker 0 slept. */
static bool sleep_before_sync(const struct tnd_run *run, int slot, uint64_t now_ns,
                              uint64_t left_ns)
{
    uint64_t wake_ns = tnd_pool_wake_ns(run->pool) + CALLER_SLACK_NS;
    uint64_t until_ns = tnd_timed_wait_until(now_ns, now_ns + left_ns / 4 * 3, wake_ns);
    if (until_ns == 0 ||
        !atomic_load_explicit(&run->devices[slot].sync_spins, memory_order_relaxed)) {
        return false;
    }
    run->clock->wait_until_ns(run->clock, until_ns);
    return true;
}

void tnd_run_wait_begin(struct tnd_run *run, const struct tnd_step *step, int slot,
                        uint64_t expected_ns, struct tnd_run_wait *out)
{
    bool is_timed = slot > 0 ? step->wait && expected_ns != 0 : tnd_step_is_timed(step);
    TND_ASSERT(slot >= 0 && slot < TND_MAX_SLOTS);
    out->timed_slot = is_timed ? slot : 0;
    out->hints = is_timed && run->uses_pool; /* else no worker will be needed */
    out->parks = step->wait && !out->hints;
    if (out->parks) {
        tnd_pool_park_begin(run->pool);
        atomic_store_explicit(&run->expected_ns, FOREVER_NS, memory_order_relaxed);
    }
    if (!is_timed) {
        return;
    }
    uint64_t now_ns = run->clock->now_ns(run->clock);
    uint64_t left_ns = slot == 0              ? predicted_ns(step)
                       : expected_ns > now_ns ? expected_ns - now_ns
                                              : 0;
    if (out->hints) {
        publish(run, left_ns);
    }
    if (slot > 0) {
        out->slept = sleep_before_sync(run, slot, now_ns, left_ns);
        out->now_ns = run->clock->now_ns(run->clock);
        out->cpu_ns = tnd_thread_cpu_ns();
    }
}

/* Learns whether the sync spins. If it ended at once after a sleep, the sleep was too long: the
 * next sync begins without one. */
static void learn(struct tnd_run *run, const struct tnd_run_wait *wait)
{
    uint64_t took_ns = run->clock->now_ns(run->clock) - wait->now_ns;
    bool is_long = took_ns > tnd_pool_wake_ns(run->pool);
    if (is_long || wait->slept) {
        bool spins = is_long && tnd_thread_cpu_ns() - wait->cpu_ns > took_ns / 2;
        atomic_store_explicit(&run->devices[wait->timed_slot].sync_spins, spins,
                              memory_order_relaxed);
    }
}

void tnd_run_wait_end(struct tnd_run *run, const struct tnd_run_wait *wait)
{
    if (wait->parks) {
        tnd_pool_park_end(run->pool);
        atomic_store_explicit(&run->expected_ns, 0, memory_order_relaxed);
    }
    if (wait->hints) {
        publish(run, 0);
    }
    if (wait->timed_slot > 0) {
        learn(run, wait);
    }
}
