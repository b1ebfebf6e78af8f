/* SPDX-License-Identifier: MIT
 * The observer: predicted beside measured, in two sizes. Whole computations tell which plan of a
 * graph serves (observer_arms.h). Some runs are timed step by step, for at most TND_DRIFT_COST of
 * the computing time: every stage on every backend and every transfer; times that the table has
 * wrong are corrected in a copy of it, by which is planned (observer_drift.h). Nothing is switched
 * off for good: what was given up is tried again, and each change is one line in the log. */
#ifndef TND_OBSERVER_H
#define TND_OBSERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "measure/probe.h"
#include "runtime/observer_arms.h"
#include "runtime/observer_drift.h"
#include "runtime/tnd_runtime.h"

struct tnd_observer {
    struct tnd_arms arms;

    /* Runs that are timed step by step. */
    bool is_off; /* then the arms alone are left */
    atomic_uint n_runs;
    _Atomic uint64_t computed_ns; /* by all runs */
    atomic_bool is_taken;         /* by a run that is timed: guards the members below */
    struct tnd_step_time *times;
    int n_times;
    uint64_t spent_ns;              /* for comparing */
    uint64_t step_ns;               /* timing one step costs; 0: not measured yet */
    struct tnd_drift_moment moment; /* of the run, as the probe before it told */
    struct tnd_probe_best best;
    tnd_watch_probe_fn probe; /* of tests; NULL: the real one */

    pthread_mutex_t lock; /* guards the members below; taken before the runtime's */
    struct tnd_drift *drift;
    unsigned table_round; /* of the runtime, that the drift is about */
};

/** `is_off`: no steps are timed. Errors: MEMORY. */
enum tandem_status tnd_observer_init(struct tnd_observer *observer, bool is_off,
                                     struct tandem_error *error);
void tnd_observer_fini(struct tnd_observer *observer);

/** Plans a graph: the plan that serves, or one that is looked at. Errors: MEMORY. */
enum tandem_status tnd_observer_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                     const tandem_graph *graph, int n_threads,
                                     tandem_plan **out_plan, struct tandem_error *error);
/** What the plan would take that serves now; nothing is noted. Errors: MEMORY. */
enum tandem_status tnd_observer_predict(tandem_runtime *runtime,
                                        const struct tnd_runtime_parts *parts,
                                        const tandem_graph *graph, int n_threads,
                                        struct tandem_prediction *out, struct tandem_error *error);
/** How long a computation by the plan may take until it is given up; 0: for ever. */
uint64_t tnd_observer_limit(tandem_runtime *runtime, const tandem_graph *graph,
                            const tandem_plan *plan);
/** A computation by a plan of the observer's took so long, or was given up after it; a verdict goes
 *  to the log. */
void tnd_observer_told(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                       uint64_t ns, bool is_cut);
/** What an explanation says of a graph's plans; "" when there is only one. */
void tnd_observer_explain(tandem_runtime *runtime, const tandem_graph *graph, char *out, size_t n);

/** Room for the times of a run that is to be compared with its plan's predictions, after a probe of
 *  the machine; NULL: not this one. The caller owes tnd_observer_end when it is not NULL.
 *  `out_sync_each`: devices are to be synced after each step, so that steps have times. */
struct tnd_step_time *tnd_observer_begin(tandem_runtime *runtime, const tandem_plan *plan,
                                         int *out_n_times, bool *out_sync_each);
/** Takes the times of a run that succeeded (else n_times is 0) and took `ns`. `is_synced`: its
 *  devices were synced after each step, which costs. What lasts is said to the log, and the planner
 *  goes by it. */
void tnd_observer_end(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                      const struct tnd_step_time *times, int n_times, uint64_t ns, bool is_synced);
/** A run of a plan took so long: the share that comparing may cost grows. Any thread. */
void tnd_observer_add_computed(tandem_runtime *runtime, uint64_t ns);

#endif
