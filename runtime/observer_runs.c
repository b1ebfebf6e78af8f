/* SPDX-License-Identifier: MIT
 * Runs that are timed step by step: the machine's state, the cost of timing, and updating the
 * table. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/runtime_internal.h"
#include "table/table_layers.h"
#include "tune/policy.h"

static bool uses_device(const tandem_runtime *runtime, const tandem_plan *plan)
{
    const uint32_t own = tnd_registry_own_slots(runtime->registry);
    for (int i = 0; i < plan->n_nodes && own != 0; i++) {
        if ((own >> plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend & 1) != 0) {
            return true;
        }
    }
    return tandem_plan_part_count(plan) > 0;
}

static bool has_predictions(const tandem_plan *plan)
{
    for (int i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].predicted_us[TANDEM_STAGE_COMPUTE] > 0) {
            return true;
        }
    }
    return false;
}

static bool reserve(struct tnd_observer *observer, int n)
{
    if (n <= observer->n_times) {
        return true;
    }
    struct tnd_step_time *times = tnd_alloc((size_t)n * sizeof(times[0]));
    if (times == NULL) {
        return false;
    }
    tnd_free(observer->times);
    observer->times = times;
    observer->n_times = n;
    return true;
}

/* ---- cost of comparing, state of the machine ---- */

void tnd_observer_add_computed(tandem_runtime *runtime, uint64_t ns)
{
    /* a statistic; nothing depends on its order */
    atomic_fetch_add_explicit(&runtime->observer.computed_ns, ns, memory_order_relaxed);
}

void tnd_runtime_set_probe(tandem_runtime *runtime, tnd_watch_probe_fn probe)
{
    runtime->observer.probe = probe;
}

/* Whether the previous comparisons are within their share of the computing time. */
static bool is_affordable(const struct tnd_observer *observer)
{
    uint64_t computed_ns = atomic_load_explicit(&observer->computed_ns, memory_order_relaxed);
    return (double)observer->spent_ns <= TND_DRIFT_COST * (double)computed_ns;
}

/* Time that worker 0 spends on timing one step. The others read their clocks at the same time. */
static uint64_t step_ns(const struct tnd_clock *clock)
{
    enum {
        TIMES = 16,
        READINGS = 3 /* clock readings: around the step, and around the worker's part */
    };
    uint64_t begin_ns = clock->now_ns(clock);
    for (int i = 0; i < TIMES * READINGS; i++) {
        (void)clock->now_ns(clock);
        (void)clock->thread_ns(clock);
    }
    return (clock->now_ns(clock) - begin_ns) / TIMES;
}

/* The reference kernel's best time in the newest sweep, scaled to the probe's rounds; 0: unknown.
 */
static double table_chain_us(tandem_runtime *runtime)
{
    double us = 0;
    int64_t when = 0;
    pthread_mutex_lock(&runtime->lock);
    const struct tandem_table *table = runtime->table;
    for (int i = 0; table != NULL && i < table->n_sweeps; i++) {
        const struct tnd_sweep_state *sweep = &table->sweeps[i];
        if (sweep->when >= when && sweep->before.fastest_us > 0) {
            when = sweep->when;
            us = sweep->before.fastest_us * TND_PROBE_ROUNDS / TND_REFERENCE_ROUNDS;
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    return us;
}

static double worse(double a, double b)
{
    return a > b ? a : b;
}

/* Runs the probe; the worse of this probe and the previous one counts. */
static void probe(tandem_runtime *runtime, const tandem_plan *plan)
{
    struct tnd_observer *observer = &runtime->observer;
    double caller = 0;
    double team = 0;
    if (observer->probe != NULL) {
        observer->probe(&caller, &team);
    } else {
        struct tnd_probe_time time;
        int n_threads = tandem_plan_threads(plan);
        double table_us = table_chain_us(runtime);
        tnd_probe_run(runtime->pool, runtime->clock, n_threads > 1 ? n_threads : 1, &time);
        tnd_probe_compare(&observer->best, &time, n_threads > 1 ? n_threads : 1, &caller, &team);
        observer->moment.clock = table_us > 0 ? time.chain_us / table_us : 0;
    }
    observer->moment.caller = worse(observer->moment.caller, caller);
    observer->moment.team = worse(observer->moment.team, team);
}

struct tnd_step_time *tnd_observer_begin(tandem_runtime *runtime, const tandem_plan *plan,
                                         int *out_n_times, bool *out_sync_each)
{
    struct tnd_observer *observer = &runtime->observer;
    if (observer->is_off ||
        atomic_fetch_add_explicit(&observer->n_runs, 1, memory_order_relaxed) % TND_DRIFT_EVERY !=
            0 ||
        !has_predictions(plan) ||
        /* acquire: pairs with the release of the run that was compared before */
        atomic_exchange_explicit(&observer->is_taken, true, memory_order_acquire)) {
        return NULL;
    }
    if (!is_affordable(observer) ||
        !reserve(observer, (TANDEM_STAGES + 2) * tnd_plan_most_nodes(plan))) {
        atomic_store_explicit(&observer->is_taken, false, memory_order_release);
        return NULL;
    }
    uint64_t begin_ns = runtime->clock->now_ns(runtime->clock);
    observer->step_ns = observer->step_ns > 0 ? observer->step_ns : step_ns(runtime->clock);
    memset(&observer->moment, 0, sizeof(observer->moment));
    probe(runtime, plan);
    observer->spent_ns += runtime->clock->now_ns(runtime->clock) - begin_ns;
    *out_n_times = observer->n_times;
    *out_sync_each = uses_device(runtime, plan);
    return observer->times;
}

/* Makes the planner use the measured times. Both locks are held. */
static void adopt(tandem_runtime *runtime)
{
    tandem_table *corrected = NULL;
    if (tnd_drift_correct(runtime->observer.drift, runtime->table, &corrected, NULL) != TANDEM_OK) {
        return; /* out of memory: keeps the table */
    }
    tnd_planner_set_table(runtime->planner, corrected);
    tandem_table_free(runtime->corrected);
    runtime->corrected = corrected;
    tnd_arms_begin_round(&runtime->observer.arms);
}

static void tell(const tandem_runtime *runtime, const struct tnd_drift_event *event)
{
    const struct tnd_drift_case *one = &event->of;
    char what[160];
    tnd_drift_print(one, what, sizeof(what));
    double times = one->measured_us / one->predicted_us;
    if (event->news == TND_DRIFT_FOUND) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime",
                     "%s takes %.1f us, not %.1f us (%.2f times as long as the table says, noise "
                     "%.0f %%); later plans go by that. mulmat-tune bench measures it anew",
                     what, one->measured_us, one->predicted_us, times, 100 * one->noise);
    } else if (event->news == TND_DRIFT_GIVEN_BACK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime",
                     "%s: that it takes %.1f us, not %.1f us, is withdrawn; later plans go by the "
                     "table again",
                     what, one->measured_us, one->predicted_us);
    }
}

void tnd_observer_end(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                      const struct tnd_step_time *times, int n_times, uint64_t ns, bool is_synced)
{
    struct tnd_observer *observer = &runtime->observer;
    int n_events = 0;
    uint64_t begin_ns = runtime->clock->now_ns(runtime->clock);
    TND_ASSERT(times == observer->times && n_times >= 0 && n_times <= observer->n_times);
    bool is_warm = n_times > 0 && tnd_planner_is_warm(runtime->planner, graph);
    if (n_times > 0) {
        probe(runtime, plan);
    }
    pthread_mutex_lock(&observer->lock);
    pthread_mutex_lock(&runtime->lock);
    if (observer->table_round != runtime->table_round) {
        observer->table_round = runtime->table_round;
        tnd_drift_clear(observer->drift);
    }
    if (runtime->table != NULL && n_times > 0) {
        n_events =
            tnd_drift_observe(observer->drift, tnd_runtime_locked_table(runtime), runtime->registry,
                              graph, plan, is_warm, &observer->moment, times, n_times);
    }
    if (n_events > 0) {
        adopt(runtime);
    }
    pthread_mutex_unlock(&runtime->lock);
    for (int i = 0; i < n_events; i++) {
        tell(runtime, tnd_drift_event(observer->drift, i));
    }
    pthread_mutex_unlock(&observer->lock);
    observer->spent_ns += runtime->clock->now_ns(runtime->clock) - begin_ns;
    observer->spent_ns += (uint64_t)n_times * observer->step_ns;
    observer->spent_ns += is_synced ? ns / 2 : 0; /* nothing overlaps: at most twice as long */
    atomic_store_explicit(&observer->is_taken, false, memory_order_release);
}

/* ---- public calls ---- */

/* The drift of the table in use; NULL: none. The observer is locked. */
static const struct tnd_drift *current_drift(tandem_runtime *runtime)
{
    pthread_mutex_lock(&runtime->lock);
    bool is_current = runtime->observer.table_round == runtime->table_round;
    pthread_mutex_unlock(&runtime->lock);
    return is_current ? runtime->observer.drift : NULL;
}

int tandem_runtime_drift(tandem_runtime *runtime, struct tandem_drift_info *out_drift, int n)
{
    if (tnd_runtime_check(runtime, "drift", NULL) != TANDEM_OK) {
        return 0;
    }
    n = out_drift != NULL ? n : 0;
    pthread_mutex_lock(&runtime->observer.lock);
    const struct tnd_drift *drift = current_drift(runtime);
    int count = drift != NULL ? tnd_drift_count(drift) : 0;
    for (int i = 0; i < count && i < n; i++) {
        const struct tnd_drift_case *one = tnd_drift_at(drift, i);
        struct tandem_drift_info *info = &out_drift[i];
        memset(info, 0, sizeof(*info));
        tnd_drift_print(one, info->what, sizeof(info->what));
        info->predicted_us = one->predicted_us;
        info->measured_us = one->measured_us;
        info->noise = one->noise;
    }
    pthread_mutex_unlock(&runtime->observer.lock);
    return count;
}

enum tandem_status tandem_runtime_save_drift(tandem_runtime *runtime, const char *path,
                                             struct tandem_error *error)
{
    char own[TND_TABLE_PATH_MAX];
    tandem_table *stale = NULL;
    enum tandem_status status = TANDEM_OK;
    TND_TRY(tnd_runtime_check(runtime, "save_drift", error));
    if (path == NULL) {
        TND_TRY(tnd_table_own_path(own, sizeof(own), error));
        path = own;
    }
    pthread_mutex_lock(&runtime->observer.lock);
    const struct tnd_drift *drift = current_drift(runtime);
    pthread_mutex_lock(&runtime->lock);
    bool has_any = drift != NULL && tnd_drift_count(drift) > 0 && runtime->table != NULL;
    if (has_any) {
        status = tnd_drift_stale_cells(drift, runtime->table, &stale, error);
    }
    pthread_mutex_unlock(&runtime->lock);
    pthread_mutex_unlock(&runtime->observer.lock);
    if (has_any && status == TANDEM_OK) {
        status = tnd_runtime_update_file(runtime, path, stale, error);
    }
    tandem_table_free(stale);
    return status;
}
