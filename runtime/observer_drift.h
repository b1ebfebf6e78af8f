/* SPDX-License-Identifier: MIT
 * Drift: what stages take while programs run, against what was predicted for them. A deviation that
 * lasts over several graphs, stands out of the noise and is not shared by the rest of the machine
 * becomes a case; a copy of the table with the measured times in place of the wrong ones lets the
 * planner choose anew. A case that proves wrong is withdrawn. Measures nothing itself.
 * docs/planning.md "Drift" tells the rules. */
#ifndef TND_OBSERVER_DRIFT_H
#define TND_OBSERVER_DRIFT_H

#include "sched/exec.h"
#include "table/tnd_table.h"

enum { TND_DRIFT_MAX_CASES = 64 };
#define TND_DRIFT_MOVE "move" /* in place of an operation: the stage is TANDEM_STAGES + direction */

/* One cell that deviates. */
struct tnd_drift_case {
    struct tnd_curve_key key;
    int64_t m;           /* of moves: bytes */
    double predicted_us; /* as planned when it was found */
    double measured_us;  /* what it takes when the machine is as fast as when it was measured */
    double noise;        /* of the run times, as a fraction */
    bool is_on_trial;    /* planned by as if it were right */
    uint64_t next_trial, trial_end; /* as numbers of graphs */
    uint32_t trial_runs;            /* graphs from one trial to the next */
    uint8_t good;                   /* graphs in a row in which it was as predicted */
};

/* How the machine was while a graph ran, as a probe next to it tells. */
struct tnd_drift_moment {
    double caller, team; /* how many times as long as at best the probe took; 0: not asked */
    double clock; /* how many times as long as for the table the reference kernel took; 0: unknown
                   */
};

enum tnd_drift_news {
    TND_DRIFT_FOUND,      /* a cell is wrong */
    TND_DRIFT_GIVEN_BACK, /* one that was found wrong is not: its case is withdrawn */
    TND_DRIFT_TRIED       /* a case begins or ends a trial: plans change, and no more */
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
/** Begins anew: another table serves. */
void tnd_drift_clear(struct tnd_drift *drift);

/** Compares the times of one run with the predictions of its plan, as far as the machine was quiet.
 *  `table` is the one planned by. Returns the number of events, of tnd_drift_event: with any, the
 *  table to plan by has changed. Not from two threads at once; so for all functions here. */
int tnd_drift_observe(struct tnd_drift *drift, const struct tandem_table *table,
                      const struct tnd_registry *registry, const struct tandem_graph *graph,
                      const struct tandem_plan *plan, bool is_warm,
                      const struct tnd_drift_moment *moment, const struct tnd_step_time *times,
                      int n_times);
/** What the last run brought. */
const struct tnd_drift_event *tnd_drift_event(const struct tnd_drift *drift, int i);

int tnd_drift_count(const struct tnd_drift *drift);
const struct tnd_drift_case *tnd_drift_at(const struct tnd_drift *drift, int i);
/** "mul_mat:q4_0:n4096:k4096:m1 compute mul_mat_q on cpu, threads 2" */
void tnd_drift_print(const struct tnd_drift_case *one, char *out, size_t n);

/** A copy of `table` in which every case that is not on trial has its measured time, marked stale.
 *  Tables of version 1 are copied as they are. Errors: MEMORY. */
enum tandem_status tnd_drift_correct(const struct tnd_drift *drift,
                                     const struct tandem_table *table, tandem_table **out_table,
                                     struct tandem_error *error);
/** A table of the machine of `table` with nothing but the cells that the cases make stale. Errors:
 *  MEMORY. */
enum tandem_status tnd_drift_stale_cells(const struct tnd_drift *drift,
                                         const struct tandem_table *table, tandem_table **out_table,
                                         struct tandem_error *error);

#endif
