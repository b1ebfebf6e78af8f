/* SPDX-License-Identifier: MIT
 * The reference kernel and what its times mean. */
#include "tune/measure_reference.h"

#include <math.h>
#include <stdio.h>

#include "tune/measure.h"

enum { RUNS = 31, ROUNDS = 60000 }; /* a round is a multiplication and an addition: four cycles */

/* What the fastest and the usual run may differ, from time to time and from each other. */
#define STEADY_FRAC 0.10
#define QUIET_FRAC  0.15

/* Nobody reads it; without it the work would be left out. */
static volatile uint64_t result;

/* Each round needs the one before: nothing to vectorise, no memory. Constants: Knuth's MMIX. */
static void work(void)
{
    uint64_t value = result;
    for (int i = 0; i < ROUNDS; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    result = value;
}

void tnd_reference_time(const struct tnd_clock *clock, struct tnd_reference_time *out)
{
    double us[RUNS];
    double scratch[RUNS];
    double fastest = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        uint64_t begin_ns = clock->now_ns(clock);
        work();
        us[i] = (double)(clock->now_ns(clock) - begin_ns) / 1e3;
        fastest = fmin(fastest, us[i]);
    }
    out->fastest_us = fastest;
    out->median_us = tnd_stage_time_of(us, RUNS, scratch).median_us;
}

void tnd_sweep_state_between(struct tnd_sweep_state *sweep, const struct tnd_reference_time *time)
{
    sweep->between.fastest_us = fmax(sweep->between.fastest_us, time->fastest_us);
    sweep->between.median_us = fmax(sweep->between.median_us, time->median_us);
}

/* The same in a list; between may be missing. */
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

/* How much slower the usual run was than the fastest of the same moment; the worst moment. */
static double interruption(const struct tnd_sweep_state *sweep)
{
    const struct tnd_reference_time *times[3];
    int n = times_of(sweep, times);
    double worst = 1;
    for (int i = 0; i < n; i++) {
        if (times[i]->fastest_us > 0) {
            worst = fmax(worst, times[i]->median_us / times[i]->fastest_us);
        }
    }
    return worst;
}

enum tnd_machine_mood tnd_sweep_mood(const struct tnd_sweep_state *sweep)
{
    const struct tnd_reference_time *times[3];
    int n = times_of(sweep, times);
    double fastest = INFINITY;
    double slowest = 0;
    for (int i = 0; i < n; i++) {
        fastest = fmin(fastest, times[i]->fastest_us);
        slowest = fmax(slowest, times[i]->fastest_us);
    }
    if (slowest > fastest * (1 + STEADY_FRAC)) {
        return TND_MACHINE_THROTTLED;
    }
    return interruption(sweep) > 1 + QUIET_FRAC ? TND_MACHINE_BUSY : TND_MACHINE_STEADY;
}

void tnd_sweep_mood_text(const struct tnd_sweep_state *sweep, char *out, size_t bytes)
{
    const struct tnd_reference_time *times[3];
    int n = times_of(sweep, times);
    switch (tnd_sweep_mood(sweep)) {
    case TND_MACHINE_THROTTLED: {
        size_t length = 0;
        char path[80] = "";
        for (int i = 0; i < n && length < sizeof(path); i++) {
            length += (size_t)snprintf(path + length, sizeof(path) - length, "%s%.0f",
                                       i > 0 ? " -> " : "", times[i]->fastest_us);
        }
        snprintf(out, bytes,
                 "the machine was throttled or busy: reference kernel %s us; measure again", path);
        break;
    }
    case TND_MACHINE_BUSY:
        snprintf(out, bytes,
                 "the machine was busy: half of the reference kernel's runs took %.1f times the "
                 "fastest or longer; measure again when it is idle",
                 interruption(sweep));
        break;
    default:
        snprintf(out, bytes, "%s", "");
    }
}
