/* SPDX-License-Identifier: MIT
 * Drift: measured times of stages in running programs against predictions. A deviation that lasts
 * over several graphs, exceeds the noise and is not shared by the rest of the machine becomes a
 * case; the planner then uses a copy of the table with the measured times instead of the wrong
 * ones. A case that proves wrong is withdrawn. Measures nothing itself. Rules: docs/planning.md
 * "Drift". */
#ifndef TND_OBSERVER_DRIFT_H
#define TND_OBSERVER_DRIFT_H

#include "sched/exec.h"
#include "table/tnd_table.h"

enum { TND_DRIFT_MAX_CASES = 64 };
#define TND_DRIFT_MOVE "move" /* instead of an operation; the stage is TANDEM_STAGES + direction */

/* One cell that deviates. */
struct tnd_drift_case {
    struct tnd_curve_key key;
    int64_t m;           /* of transfers: bytes */
    double predicted_us; /* as planned when it was found */
    double measured_us;  /* corrected to the machine's speed when the table was measured */
    double noise;        /* of the run times, as a fraction */
    bool is_on_trial;    /* the planner uses the original time */
    uint64_t next_trial, trial_end; /* numbers of graphs */
    uint32_t trial_runs;            /* graphs from one trial to the next */
    uint8_t good;                   /* consecutive graphs as predicted */
};

/* State of the machine while a graph ran, by a probe next to it. */
struct tnd_drift_moment {
    double caller, team; /* time of the probe relative to its best; 0: not probed */
    double clock; /* how many times as long as for the table the reference kernel took; 0: unknown
                   */
};

enum tnd_drift_news {
    TND_DRIFT_FOUND,      /* a cell is wrong */
    TND_DRIFT_GIVEN_BACK, /* a case is withdrawn: its cell is right */
    TND_DRIFT_TRIED       /* a case begins or ends a trial: only plans change */
};
struct tnd_drift_event {
    enum tnd_drift_news news;
    struct tnd_drift_case of;
};

struct tnd_drift;

struct tnd_drift_cases {
    int n;
    struct tnd_drift_case list[TND_DRIFT_MAX_CASES]; /* oldest first; of one cell the last counts */
};
/** For observer_table.c. */
const struct tnd_drift_cases *tnd_drift_cases(const struct tnd_drift *drift);

/** NULL without memory. */
struct tnd_drift *tnd_drift_new(void);
/** NULL is allowed. */
void tnd_drift_free(struct tnd_drift *drift);
/** Clears all watches and cases, for another table. */
void tnd_drift_clear(struct tnd_drift *drift);

/** Compares the times of one run with its plan's predictions, as far as the machine was quiet.
 * `table` is the planner's. Returns the number of events (tnd_drift_event); if any, the table to
 * plan by has changed. Like all functions here, not from two threads at once. */
int tnd_drift_observe(struct tnd_drift *drift, const struct tandem_table *table,
                      const struct tnd_registry *registry, const struct tandem_graph *graph,
                      const struct tandem_plan *plan, bool is_warm,
                      const struct tnd_drift_moment *moment, const struct tnd_step_time *times,
                      int n_times);
/** Event `i` of the last run. */
const struct tnd_drift_event *tnd_drift_event(const struct tnd_drift *drift, int i);

int tnd_drift_count(const struct tnd_drift *drift);
const struct tnd_drift_case *tnd_drift_at(const struct tnd_drift *drift, int i);
/** "mul_mat:q4_0:n4096:k4096:m1 compute mul_mat_q on cpu, threads 2" */
void tnd_drift_print(const struct tnd_drift_case *one, char *out, size_t n);

/** Copies `table` with the measured time, marked stale, of each case that is not on trial. Copies
 * tables of version 1 unchanged. Errors: MEMORY. */
enum tandem_status tnd_drift_correct(const struct tnd_drift *drift,
                                     const struct tandem_table *table, tandem_table **out_table,
                                     struct tandem_error *error);
/** Makes a table for the machine of `table` that has only the stale cells of the cases. Errors:
 * MEMORY. */
enum tandem_status tnd_drift_stale_cells(const struct tnd_drift *drift,
                                         const struct tandem_table *table, tandem_table **out_table,
                                         struct tandem_error *error);

#endif
