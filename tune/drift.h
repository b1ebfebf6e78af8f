/* SPDX-License-Identifier: MIT
 * Drift: what stages take while programs run, against what was predicted for them. A deviation that
 * lasts over several graphs, stands out of the noise and is not shared by the rest of the machine
 * becomes a case; a copy of the table with the measured times in place of the wrong ones lets the
 * planner choose anew. Measures nothing itself. docs/tuning.md "Drift" tells the rules. */
#ifndef TND_DRIFT_H
#define TND_DRIFT_H

#include "sched/exec.h"
#include "table/tnd_table.h"

enum { TND_DRIFT_MAX_CASES = 64 };

/* One cell that deviates. */
struct tnd_drift_case {
    struct tnd_curve_key key;
    int64_t m;
    double predicted_us; /* as planned when it was found */
    double measured_us;  /* what it takes when the machine is as fast as when it was measured */
    double noise;        /* of the run times, as a fraction */
};

struct tnd_drift;

/** NULL without memory. */
struct tnd_drift *tnd_drift_new(void);
/** NULL is allowed. */
void tnd_drift_free(struct tnd_drift *drift);
/** Begins anew: another table serves. */
void tnd_drift_clear(struct tnd_drift *drift);

/** Compares the times of one run with the predictions of its plan. `table` is the one planned by.
 *  Returns the number of cases found by this run: the last ones of tnd_drift_at. Not from two
 *  threads at once; so for all functions here. */
int tnd_drift_observe(struct tnd_drift *drift, const struct tandem_table *table,
                      const struct tnd_registry *registry, const struct tandem_graph *graph,
                      const struct tandem_plan *plan, bool is_warm,
                      const struct tnd_step_time *times, int n_times);

int tnd_drift_count(const struct tnd_drift *drift);
const struct tnd_drift_case *tnd_drift_at(const struct tnd_drift *drift, int i);
/** "mul_mat:q4_0:n4096:k4096:m1 compute mul_mat_q on cpu, threads 2" */
void tnd_drift_print(const struct tnd_drift_case *one, char *out, size_t n);

/** A copy of `table` in which every case has its measured time, marked stale. Tables of version 1
 *  are copied as they are. Errors: MEMORY. */
enum tandem_status tnd_drift_correct(const struct tnd_drift *drift,
                                     const struct tandem_table *table, tandem_table **out_table,
                                     struct tandem_error *error);
/** A table of the machine of `table` with nothing but the cells that the cases make stale. Errors:
 *  MEMORY. */
enum tandem_status tnd_drift_stale_cells(const struct tnd_drift *drift,
                                         const struct tandem_table *table, tandem_table **out_table,
                                         struct tandem_error *error);

#endif
