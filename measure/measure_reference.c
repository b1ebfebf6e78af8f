/* SPDX-License-Identifier: MIT
 * The reference kernel, and the interpretation of its times. */
#include "measure/measure_reference.h"
#include "base/tnd_assert.h"
#include "tune/policy.h"

#include <math.h>
#include <stdio.h>

/* Each round depends on the one before: it cannot be vectorised, and needs no memory. Constants:
 * Knuth's MMIX. */
void tnd_reference_work(int rounds)
{
    volatile uint64_t kept = 0; /* keeps the compiler from removing the work */
    uint64_t value = kept;
    for (int i = 0; i < rounds; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    kept = value;
}

void tnd_reference_time(const struct tnd_clock *clock, struct tnd_reference_time *out)
{
    double fastest_us = INFINITY;
    double sum_us = 0;
    for (int i = 0; i < TND_REFERENCE_RUNS; i++) {
        uint64_t begin_ns = clock->now_ns(clock);
        tnd_reference_work(TND_REFERENCE_ROUNDS);
        double us = (double)(clock->now_ns(clock) - begin_ns) / 1e3;
        fastest_us = fmin(fastest_us, us);
        sum_us += us;
    }
    out->fastest_us = fastest_us;
    out->mean_us = sum_us / TND_REFERENCE_RUNS;
}

void tnd_sweep_state_between(struct tnd_sweep_state *sweep, const struct tnd_reference_time *time)
{
    sweep->between.fastest_us = fmax(sweep->between.fastest_us, time->fastest_us);
    sweep->between.mean_us = fmax(sweep->between.mean_us, time->mean_us);
}

/* The times before, during and after as a list; `between` may be missing. */
static int times_of(const struct tnd_sweep_state *sweep, const struct tnd_reference_time *out[3])
{
    int n = 0;
    out[n++] = &sweep->before;
    if (sweep->between.fastest_us > 0) {
        out[n++] = &sweep->between;
    }
    out[n++] = &sweep->after;
    return n;
}

/* Mean time over the fastest one at the same moment; of the worst moment. A mean, because a thread
 * that shares its CPU is interrupted rarely, but for long. */
static double interruption(const struct tnd_sweep_state *sweep)
{
    const struct tnd_reference_time *times[3];
    int n = times_of(sweep, times);
    double worst = 1;
    for (int i = 0; i < n; i++) {
        if (times[i]->fastest_us > 0) {
            worst = fmax(worst, times[i]->mean_us / times[i]->fastest_us);
        }
    }
    return worst;
}

bool tnd_sweep_state_text(const struct tnd_sweep_state *sweep, char *out, size_t bytes)
{
    const struct tnd_reference_time *times[3];
    int n = times_of(sweep, times);
    double fastest = INFINITY;
    double slowest = 0;
    for (int i = 0; i < n; i++) {
        fastest = fmin(fastest, times[i]->fastest_us);
        slowest = fmax(slowest, times[i]->fastest_us);
    }
    TND_ASSERT(bytes > 0);
    out[0] = '\0';
    if (slowest > fastest * (1 + TND_STEADY)) {
        size_t length = 0;
        char path[80] = "";
        for (int i = 0; i < n && length < sizeof(path); i++) {
            length += (size_t)snprintf(path + length, sizeof(path) - length, "%s%.0f",
                                       i > 0 ? " -> " : "", times[i]->fastest_us);
        }
        snprintf(out, bytes,
                 "the machine was throttled or busy: reference kernel %s us; measure again", path);
    } else if (interruption(sweep) > 1 + TND_QUIET) {
        snprintf(out, bytes,
                 "the machine was busy: the reference kernel took %.1f times as long as its "
                 "fastest run; measure again when it is idle",
                 interruption(sweep));
    }
    return out[0] != '\0';
}
