/* SPDX-License-Identifier: MIT
 * Runs a plan; if a device fails, runs the graph again without it. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_mapped.h"
#include "base/options.h"
#include "base/tnd_log.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/work.h"
#include "runtime/fallback.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"

enum { MOST_TRANSFERS = 5 /* per node in a trace; more than occur */ };

/* The caller's callback for times of a run. */
struct listener {
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
    void *user;
};

/* Reports the times to the trace and to the caller, if asked for. */
static void tell_times(const struct tnd_runtime_parts *parts, const tandem_graph *graph,
                       const tandem_plan *plan, const struct listener *listener,
                       const struct tnd_step_time *times, int n_times, enum tandem_status status)
{
    if (parts->trace != NULL) {
        tnd_trace_add(parts->trace, graph, plan, parts->registry, parts->pool, times, n_times);
    }
    for (int i = 0; i < n_times && listener->timed != NULL && status == TANDEM_OK; i++) {
        if (times[i].stage < TANDEM_STAGES) {
            listener->timed(listener->user, graph->nodes[times[i].node],
                            (enum tandem_stage)times[i].stage,
                            (double)(times[i].end_ns - times[i].begin_ns) / 1e3);
        }
    }
}

/* Runs a plan. If the caller or a trace wants times, allocates those of all stages for the run; the
 * observer has its own. */
static enum tandem_status run_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                   tandem_graph *graph, const tandem_plan *plan,
                                   struct tnd_exec_run_options *options,
                                   const struct listener *listener, struct tandem_error *error)
{
    struct tnd_step_time *times = NULL;
    int n_times = 0;
    if (parts->trace != NULL || listener->timed != NULL) {
        options->n_times = (TANDEM_STAGES + MOST_TRANSFERS) * tnd_plan_most_nodes(plan);
        times = tnd_calloc((size_t)options->n_times, sizeof(times[0]));
        if (times == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "trace", options->n_times, 0,
                                 "trace: out of memory for %d times", options->n_times);
        }
        options->times = times;
        options->out_n_times = &n_times;
        enum tandem_status status = tnd_exec_run(parts->exec, graph, plan, options, error);
        tell_times(parts, graph, plan, listener, times, n_times, status);
        tnd_free(times);
        return status;
    }
    options->sync_each = false;
    options->limit_ns = tnd_observer_limit(runtime, graph, plan);
    options->times = tnd_observer_begin(runtime, plan, &options->n_times, &options->sync_each);
    options->asks_lost = options->times != NULL;
    options->out_n_times = &n_times;
    bool is_packing = false;
    options->out_is_packing = &is_packing;
    uint64_t begin_ns = parts->clock->now_ns(parts->clock);
    enum tandem_status status = tnd_exec_run(parts->exec, graph, plan, options, error);
    uint64_t ns = parts->clock->now_ns(parts->clock) - begin_ns;
    tnd_observer_add_computed(runtime, ns);
    if (options->times != NULL) {
        tnd_observer_end(runtime, graph, plan, options->times,
                         status == TANDEM_OK && !is_packing ? n_times : 0, ns, options->sync_each);
    }
    if (status == TANDEM_OK && plan->observed_key != 0 && !options->sync_each && !is_packing) {
        tnd_observer_told(runtime, graph, plan, ns, false);
    }
    return status;
}

/* ---- failures of devices ---- */

/* Log level of giving up a plan: DEBUG in a look, whose verdict is logged anyway. */
static enum tandem_log_level late_level(tandem_runtime *runtime, const tandem_plan *plan)
{
    struct tnd_arm_class one;
    bool is_look = plan->observed_key != 0 &&
                   tnd_arms_get(&runtime->observer.arms, plan->observed_key, &one) &&
                   one.serving != plan->kind;
    return is_look ? TANDEM_LOG_DEBUG : TANDEM_LOG_WARN;
}

/* Handles a failure of a run. False: there is nothing else to try. */
static bool handle_failure(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                           const tandem_plan *plan, const struct tnd_exec_failure *failure,
                           const struct tandem_error *why, uint32_t *io_excluded)
{
    TND_ASSERT(failure->slot >= 0 && failure->slot < TND_MAX_SLOTS);
    const char *name = tnd_registry_name(parts->registry, failure->slot);
    switch (failure->kind) {
    case TND_FAILURE_FAULT:
        if (tnd_registry_quarantine(parts->registry, failure->slot, why->text)) {
            tnd_exec_drop_device(parts->exec, failure->slot);
            tnd_runtime_forget_choices(runtime);
        }
        return failure->slot > TANDEM_BACKEND_CPU;
    case TND_FAILURE_WEIGHT:
        tnd_arms_begin_round(&runtime->observer.arms);
        tnd_log_line(parts->log, TANDEM_LOG_WARN, "runtime",
                     "%s has no room for some weights, their nodes run elsewhere: %s", name,
                     why->text);
        return true;
    case TND_FAILURE_ROOM:
        tnd_log_line(parts->log, TANDEM_LOG_WARN, "runtime",
                     "%s is left out of this computation: %s", name, why->text);
        *io_excluded |= UINT32_C(1) << failure->slot;
        return true;
    case TND_FAILURE_LATE:
        tnd_log_line(parts->log, late_level(runtime, plan), "runtime",
                     "%s takes much longer than it did: %s; the CPU computes this graph alone",
                     name, why->text);
        return true;
    default:
        return false;
    }
}

static enum tandem_status not_repeatable(const tandem_graph *graph,
                                         const struct tnd_exec_failure *failure,
                                         const struct tandem_error *why, struct tandem_error *error)
{
    TND_ASSERT(failure->not_repeated_node >= 0 && failure->not_repeated_node < graph->n_nodes);
    const tandem_tensor *node = graph->nodes[failure->not_repeated_node];
    return tnd_error_set(error, why->status, why->where, why->got, why->limit,
                         "%.150s; node %d (%s) has %s, so the graph cannot be repeated", why->text,
                         failure->not_repeated_node, tandem_op_name(node->op),
                         node->op == TANDEM_OP_CUSTOM ? "called a function of the program"
                                                      : "overwritten a leaf that was read before");
}

/* Fails if weights lie in a mapped file that was truncated or is incomplete: the results were
 * computed from zeros. */
static enum tandem_status check_weights(const tandem_graph *graph, struct tandem_error *error)
{
    struct tandem_error why = {.text = ""};
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            const tandem_tensor *src = node->src[s];
            if (src != NULL && src->data != NULL &&
                tandem_mapped_check(src->data, tandem_tensor_bytes(src), &why) != TANDEM_OK) {
                return tnd_error_set(error, why.status, src->name, why.got, why.limit,
                                     "'%.64s' in %.180s", src->name, why.text);
            }
        }
    }
    return TANDEM_OK;
}

/* *io_plan is replaced by one that may run; *io_own frees what was made here. */
static enum tandem_status adapt(const struct tnd_runtime_parts *parts, const tandem_graph *graph,
                                int n_threads, uint32_t excluded, const tandem_plan **io_plan,
                                tandem_plan **io_own, struct tandem_error *error)
{
    if ((*io_plan)->n_nodes != graph->n_nodes ||
        !tnd_fallback_is_needed(parts, graph, *io_plan, excluded)) {
        return TANDEM_OK;
    }
    if (*io_own == NULL) {
        TND_TRY(tandem_plan_copy(*io_plan, io_own, error));
        *io_plan = *io_own;
    }
    return tnd_fallback_adapt(parts, graph, n_threads, excluded, *io_own, error);
}

/* Each iteration quarantines or excludes a device, or refuses weights for good. */
static enum tandem_status run_until_done(tandem_runtime *runtime, tandem_graph *graph,
                                         const tandem_plan *plan, tandem_plan **io_own,
                                         struct tnd_exec_run_options *options,
                                         const struct listener *listener,
                                         struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tnd_exec_failure failure;
    uint32_t excluded = 0;
    int n_threads = tnd_runtime_graph_threads(runtime, graph);
    tnd_runtime_parts(runtime, &parts);
    options->out_failure = &failure;
    for (int attempt = 0;; attempt++) {
        struct tandem_error why = {0};
        failure = (struct tnd_exec_failure){TND_FAILURE_NONE, 0, true, -1};
        uint32_t out = tnd_registry_quarantined(parts.registry);
        TND_TRY(adapt(&parts, graph, n_threads, excluded, &plan, io_own, error));
        enum tandem_status status = run_plan(runtime, &parts, graph, plan, options, listener, &why);
        if (status == TANDEM_OK) {
            return TANDEM_OK;
        }
        bool is_handled = handle_failure(runtime, &parts, plan, &failure, &why, &excluded) ||
                          (status == TANDEM_E_UNSUPPORTED_BACKEND &&
                           tnd_registry_quarantined(parts.registry) != out); /* by another run */
        if (is_handled && !failure.can_repeat) {
            return not_repeatable(graph, &failure, &why, error);
        }
        if (failure.kind == TND_FAILURE_LATE) {
            if (options->limit_ns > 0) {
                tnd_observer_told(runtime, graph, plan, options->limit_ns, true);
            }
            tandem_plan *host = NULL;
            TND_TRY(tnd_planner_plan_kind(parts.planner, graph, n_threads, TND_PLAN_HOST, &host,
                                          error));
            tandem_plan_free(*io_own);
            *io_own = host;
            plan = host;
        }
        if (!is_handled || attempt > 2 * TND_MAX_SLOTS) {
            if (error != NULL) {
                *error = why;
            }
            return status;
        }
    }
}

/* If an operation of a net failed for its values (an index out of range), reports its own error,
 * with operation and name, instead of that of the step. Call when no thread computes the graph. */
static void explain_fault(const tandem_graph *graph, struct tandem_error *error)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tnd_work *work = tnd_work_of(graph->nodes[i]);
        if (work != NULL && work->fault != NULL &&
            atomic_load_explicit(&work->fault->state, memory_order_acquire) == 2) {
            if (error != NULL) {
                *error = work->fault->error;
            }
            atomic_store_explicit(&work->fault->state, 0, memory_order_release);
        }
    }
}

enum tandem_status tandem_runtime_compute(tandem_runtime *runtime, tandem_graph *graph,
                                          const tandem_plan *plan,
                                          const struct tandem_compute_options *options,
                                          struct tandem_error *error)
{
    struct tandem_compute_options merged = TANDEM_COMPUTE_OPTIONS_INIT;
    TND_TRY(tnd_runtime_check(runtime, "compute", error));
    TND_TRY(tnd_options_read(options, "tandem_compute_options", &merged, sizeof(merged), error));
    TND_TRY(tnd_runtime_check_graph(graph, error));
    tandem_plan *own_plan = NULL;
    if (plan == NULL) {
        TND_TRY(tandem_runtime_plan(runtime, graph, &own_plan, error));
        plan = own_plan;
    }
    struct tnd_exec_run_options run_options;
    memset(&run_options, 0, sizeof(run_options));
    run_options.cancel = merged.cancel;
    run_options.progress = merged.progress;
    run_options.user = merged.user;
    run_options.packs_gradually = atomic_load(&runtime->packs_gradually);
    const struct listener listener = {merged.timed, merged.user};
    enum tandem_status status =
        run_until_done(runtime, graph, plan, &own_plan, &run_options, &listener, error);
    if (status != TANDEM_OK) {
        explain_fault(graph, error);
    }
    if (tnd_mapped_has_faults()) {
        enum tandem_status whole = check_weights(graph, error);
        status = whole != TANDEM_OK ? whole : status;
    }
    tandem_plan_free(own_plan);
    return status;
}

bool tandem_cancel_flag(void *user)
{
    const volatile int32_t *flag = user; /* only read: needs no memory order */
    return flag != NULL && *flag != 0;
}

/* ---- memory of devices ---- */

enum tandem_status tandem_runtime_fetch(tandem_runtime *runtime, const tandem_tensor *tensor,
                                        bool will_change, struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "fetch", error));
    TND_REQUIRE(tensor, "fetch", error);
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    return tnd_exec_fetch(parts.exec, tensor->root, will_change, error);
}

void tandem_runtime_forget(tandem_runtime *runtime, const tandem_tensor *tensor)
{
    if (tnd_runtime_check(runtime, "forget", NULL) == TANDEM_OK && tensor != NULL &&
        tensor->root->data != NULL) {
        struct tnd_runtime_parts parts;
        tnd_runtime_parts(runtime, &parts);
        tnd_exec_forget(parts.exec, tensor->root);
    }
}
