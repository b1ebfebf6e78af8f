/* SPDX-License-Identifier: MIT
 * The work of the probe, and its best times. */
#include "measure/probe.h"

#include <math.h>

#include "base/tnd_assert.h"
#include "measure/measure_reference.h"
#include "tune/policy.h"

enum { FLOATS = 2048, LANES = 16 }; /* two arrays that fit into the L1 cache */

struct probing {
    const struct tnd_clock *clock;
    double chain_us;
    double us[TND_PROBE_TEAMS];
};

/* The chain of reference rounds only depends on the clock rate: a program on the other hardware
 * thread of the core does not slow it down. Multiplying and adding from the cache is slowed
 * down. */
static void multiply(const float *a, const float *b)
{
    float sums[LANES] = {0};
    for (int pass = 0; pass < TND_PROBE_PASSES; pass++) {
        for (int i = 0; i < FLOATS; i += LANES) {
            for (int lane = 0; lane < LANES; lane++) {
                sums[lane] += a[i + lane] * b[i + lane];
            }
        }
    }
    for (int lane = 1; lane < LANES; lane++) {
        sums[0] += sums[lane];
    }
    volatile float kept = sums[0]; /* keeps the compiler from removing the work */
    (void)kept;
}

static void work(void *user, int index, int count)
{
    struct probing *probing = user;
    float a[FLOATS], b[FLOATS];
    (void)count;
    if (index >= TND_PROBE_TEAMS) {
        return;
    }
    for (int i = 0; i < FLOATS; i++) {
        a[i] = (float)(i + index);
        b[i] = (float)(i % 7);
    }
    uint64_t begin_ns = probing->clock->now_ns(probing->clock);
    tnd_reference_work(TND_PROBE_ROUNDS);
    if (index == 0) {
        probing->chain_us = (double)(probing->clock->now_ns(probing->clock) - begin_ns) / 1e3;
    }
    multiply(a, b);
    probing->us[index] = (double)(probing->clock->now_ns(probing->clock) - begin_ns) / 1e3;
}

void tnd_probe_run(struct tnd_pool *pool, const struct tnd_clock *clock, int n_threads,
                   struct tnd_probe_time *out)
{
    struct probing probing = {.clock = clock};
    TND_ASSERT(n_threads >= 1);
    (void)tnd_pool_run(pool, n_threads, work, &probing);
    out->chain_us = probing.chain_us;
    out->caller_us = probing.us[0];
    out->team_us = 0;
    for (int i = 0; i < TND_PROBE_TEAMS; i++) {
        out->team_us = fmax(out->team_us, probing.us[i]);
    }
}

/* Updates the best known time with `us`; returns the ratio of `us` to it. */
static double compare(double *io_best_us, double us)
{
    *io_best_us = *io_best_us > 0 ? fmin(*io_best_us * (1 + TND_PROBE_FORGETS), us) : us;
    return *io_best_us > 0 ? us / *io_best_us : 1.0;
}

void tnd_probe_compare(struct tnd_probe_best *best, const struct tnd_probe_time *time,
                       int n_threads, double *out_caller, double *out_team)
{
    int at = n_threads <= TND_PROBE_TEAMS ? n_threads - 1 : TND_PROBE_TEAMS - 1;
    TND_ASSERT(at >= 0);
    *out_caller = compare(&best->caller_us[at], time->caller_us);
    *out_team = compare(&best->team_us[at], time->team_us);
}

bool tnd_time_is_quiet(const struct tnd_step_time *time)
{
    double lost_us = (double)time->lost_ns / 1e3;
    double us = (double)(time->end_ns - time->begin_ns) / 1e3;
    return lost_us <= fmax(TND_QUIET_LOST * us, TND_QUIET_LOST_US);
}
