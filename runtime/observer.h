/* SPDX-License-Identifier: MIT
 * The observer compares predictions with measured times on two levels. Times of whole computations
 * decide which plan of a graph is used (observer_arms.h). Some runs are timed step by step, within
 * TND_DRIFT_COST of the computing time: every stage on every backend and every transfer; times that
 * are wrong in the table are corrected in a copy, which the planner uses (observer_drift.h).
 * Nothing is disabled for good: plans given up are tried again, and each change is one line in the
 * log. */
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
    bool is_off; /* steps are not timed; arms still work */
    atomic_uint n_runs;
    _Atomic uint64_t computed_ns; /* time of all runs */
    atomic_bool is_taken;         /* held by the timed run: guards the members below */
    struct tnd_step_time *times;
    int n_times;
    uint64_t spent_ns;              /* on comparing */
    uint64_t step_ns;               /* cost of timing one step; 0: not measured yet */
    struct tnd_drift_moment moment; /* machine state of the run, from the probe before it */
    struct tnd_probe_best best;
    tnd_watch_probe_fn probe; /* set by tests; NULL: the real one */

    pthread_mutex_t lock; /* guards the members below; taken before the runtime's */
    struct tnd_drift *drift;
    unsigned table_round; /* the runtime's table that the drift refers to */
};

/** `is_off`: no steps are timed. Errors: MEMORY. */
enum tandem_status tnd_observer_init(struct tnd_observer *observer, bool is_off,
                                     struct tandem_error *error);
void tnd_observer_fini(struct tnd_observer *observer);

/** Plans a graph: returns the serving plan, or one that gets a look. Errors: MEMORY. */
enum tandem_status tnd_observer_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                     const tandem_graph *graph, int n_threads,
                                     tandem_plan **out_plan, struct tandem_error *error);
/** Predicts the time of the serving plan without changing any state. Errors: MEMORY. */
enum tandem_status tnd_observer_predict(tandem_runtime *runtime,
                                        const struct tnd_runtime_parts *parts,
                                        const tandem_graph *graph, int n_threads,
                                        struct tandem_prediction *out, struct tandem_error *error);
/** Time limit of a computation by the plan, in nanoseconds; 0: none. */
uint64_t tnd_observer_limit(tandem_runtime *runtime, const tandem_graph *graph,
                            const tandem_plan *plan);
/** Reports the time of a computation by one of the observer's plans, or that it was given up after
 * this time. A verdict is logged. */
void tnd_observer_told(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                       uint64_t ns, bool is_cut);
/** Text about a graph's plans for explanations; "" if there is only one plan. */
void tnd_observer_explain(tandem_runtime *runtime, const tandem_graph *graph, char *out, size_t n);

/** Begins a run to be compared with its plan's predictions: probes the machine and returns memory
 * for the times; NULL: this run is not compared. If not NULL, the caller must call
 * tnd_observer_end. `out_sync_each`: sync devices after each step, so that steps have times. */
struct tnd_step_time *tnd_observer_begin(tandem_runtime *runtime, const tandem_plan *plan,
                                         int *out_n_times, bool *out_sync_each);
/** Ends such a run, which took `ns`; n_times is 0 if it failed. `is_synced`: devices were synced
 * after each step, which takes time. Lasting deviations are logged, and the planner uses the
 * measured times. */
void tnd_observer_end(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                      const struct tnd_step_time *times, int n_times, uint64_t ns, bool is_synced);
/** Adds the time of a run, of which comparing may take a share. Any thread. */
void tnd_observer_add_computed(tandem_runtime *runtime, uint64_t ns);

#endif
