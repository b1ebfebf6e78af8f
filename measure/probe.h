/* SPDX-License-Identifier: MIT
 * How fast the machine is at this moment: a fixed small piece of work on all threads of a team,
 * timed next to what somebody else computes. What takes longer together with the probe is the
 * machine's doing. */
#ifndef TND_MEASURE_PROBE_H
#define TND_MEASURE_PROBE_H

#include "base/clock.h"
#include "sched/exec.h"

struct tnd_probe_time {
    double chain_us;  /* of the caller: TND_PROBE_ROUNDS rounds of the reference kernel */
    double caller_us; /* of the caller: those and a small product */
    double team_us;   /* the same of the slowest worker, the caller included */
};

/** Lets `n_threads` workers of the pool, the caller among them, do the same work at the same time,
 *  about 20 us each. A worker's time begins when the worker begins. */
void tnd_probe_run(struct tnd_pool *pool, const struct tnd_clock *clock, int n_threads,
                   struct tnd_probe_time *out);

/* What a probe takes when nothing disturbs it, as far as is known: by threads. */
enum { TND_PROBE_TEAMS = 64 };
struct tnd_probe_best {
    double caller_us[TND_PROBE_TEAMS]; /* 0: unknown */
    double team_us[TND_PROBE_TEAMS];
};

/** How many times as long as at best the probe took on the caller and on the team. The best times
 *  follow slowly when all are longer: a machine that is slow for good is no disturbed one. */
void tnd_probe_compare(struct tnd_probe_best *best, const struct tnd_probe_time *time,
                       int n_threads, double *out_caller, double *out_team);

/** Whether no worker of a step was off its CPU, or late, for more than a tenth of the step's time;
 *  lost_ns was asked for. */
bool tnd_time_is_quiet(const struct tnd_step_time *time);

#endif
