/* SPDX-License-Identifier: MIT
 * How fast the machine is at this moment: a fixed small piece of work on all threads of a team,
 * timed next to a program's computation. If both take longer, the machine has slowed down. */
#ifndef TND_MEASURE_PROBE_H
#define TND_MEASURE_PROBE_H

#include "base/clock.h"
#include "sched/exec.h"

struct tnd_probe_time {
    double chain_us;  /* on the calling thread: TND_PROBE_ROUNDS rounds of the reference kernel */
    double caller_us; /* on the calling thread: those rounds and a small product */
    double team_us;   /* the same work on the slowest worker, the caller included */
};

/** Runs the same work, about 20 us, on `n_threads` workers of the pool at the same time, the caller
 *  included. A worker's time begins when the worker begins. */
void tnd_probe_run(struct tnd_pool *pool, const struct tnd_clock *clock, int n_threads,
                   struct tnd_probe_time *out);

/* Best known times of an undisturbed probe, by number of threads. */
enum { TND_PROBE_TEAMS = 64 };
struct tnd_probe_best {
    double caller_us[TND_PROBE_TEAMS]; /* 0: unknown */
    double team_us[TND_PROBE_TEAMS];
};

/** Ratio of the probe's time to the best one, on the caller and on the team. The best times rise
 *  slowly when all times are longer: a machine that is slow for good is not disturbed. */
void tnd_probe_compare(struct tnd_probe_best *best, const struct tnd_probe_time *time,
                       int n_threads, double *out_caller, double *out_team);

/** Whether no worker of a step was off its CPU, or late, for more than a tenth of the step's time;
 *  requires lost_ns. */
bool tnd_time_is_quiet(const struct tnd_step_time *time);

#endif
