/* SPDX-License-Identifier: MIT
 * The observer of a runtime. Measures nothing itself except a short probe of the machine, and
 * writes nothing unless the program asks. Entry points: tnd_observer_plan, tnd_observer_told and
 * tnd_observer_end. */
#include "runtime/observer.h"

#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_assert.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/fallback.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"
#include "tune/moves.h"
#include "tune/place.h"

static const char *const kind_names[TND_PLAN_KINDS] = {"the table's plan", "nothing at once",
                                                       "the CPU alone", "the device alone"};

enum tandem_status tnd_observer_init(struct tnd_observer *observer, bool is_off,
                                     struct tandem_error *error)
{
    tnd_arms_init(&observer->arms);
    pthread_mutex_init(&observer->lock, NULL);
    atomic_init(&observer->n_runs, 0);
    atomic_init(&observer->computed_ns, 0);
    atomic_init(&observer->is_taken, false);
    observer->is_off = is_off;
    observer->drift = is_off ? NULL : tnd_drift_new();
    return is_off || observer->drift != NULL
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_MEMORY, "runtime", 0, 0, "runtime: out of memory");
}

void tnd_observer_fini(struct tnd_observer *observer)
{
    tnd_arms_fini(&observer->arms);
    tnd_drift_free(observer->drift);
    tnd_free(observer->times);
    pthread_mutex_destroy(&observer->lock);
}

/* ---- which plan ---- */

/* M of a class: exact up to 8, then four ranges per doubling. */
static int64_t range_of(int64_t m)
{
    int64_t power = 1;
    while (power <= m / 2) {
        power *= 2;
    }
    int64_t step = power / 4 > 0 ? power / 4 : 1;
    return power + (m - power) / step * step;
}

/* Hash of the graph's products only: a KV cache and its operations grow with each token. Never 0.
 * `out_tokens`: the largest M of any product. */
static uint64_t find_key(const tandem_graph *graph, int n_threads, int64_t *out_tokens)
{
    uint64_t key = (uint64_t)n_threads;
    *out_tokens = 1;
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        const bool is_of_experts = node->op == TANDEM_OP_MUL_MAT_ID;
        if (!is_of_experts && (node->op != TANDEM_OP_MUL_MAT || !tnd_mul_mat_is_plain(node))) {
            continue;
        }
        const tandem_tensor *w = node->src[0];
        const int64_t tokens = node->ne[is_of_experts ? 2 : 1];
        const uint64_t words[] = {key,
                                  (uint64_t)w->type,
                                  (uint64_t)w->ne[0],
                                  (uint64_t)w->ne[1],
                                  (uint64_t)w->ne[2], /* experts */
                                  (uint64_t)(is_of_experts ? node->ne[1] : 0),
                                  (uint64_t)range_of(tokens)};
        key = tnd_hash_words(words, sizeof(words));
        *out_tokens = tokens > *out_tokens ? tokens : *out_tokens;
    }
    return key | 1;
}

/* Whether the plan runs several lanes at once. */
static bool is_both_at_once(const struct tnd_runtime_parts *parts, const tandem_plan *plan)
{
    if (tandem_plan_part_count(plan) > 0 || tandem_plan_order(plan) != NULL) {
        return true;
    }
    bool may_stream = tnd_registry_own_slots(parts->registry) != 0;
    for (int i = 0; i < plan->n_nodes && may_stream; i++) {
        if (plan->nodes[i].reason == TANDEM_REASON_TABLE &&
            tnd_task_is(plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W)) {
            return true;
        }
    }
    return false;
}

static bool is_on_device(const struct tnd_runtime_parts *parts, const tandem_plan *plan)
{
    const uint32_t own = tnd_registry_own_slots(parts->registry);
    for (int i = 0; i < plan->n_nodes; i++) {
        if ((own >> plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend & 1) != 0) {
            return true;
        }
    }
    return tandem_plan_part_count(plan) > 0;
}

static bool is_same(const tandem_plan *a, const tandem_plan *b)
{
    for (int i = 0; i < a->n_nodes; i++) {
        if (memcmp(a->nodes[i].stage, b->nodes[i].stage, sizeof(a->nodes[i].stage)) != 0) {
            return false;
        }
    }
    return true;
}

static enum tandem_status plan_once(const struct tnd_runtime_parts *parts,
                                    const tandem_graph *graph, int n_threads,
                                    enum tnd_plan_kind kind, tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    tandem_plan *plan = NULL;
    TND_TRY(tnd_planner_plan_kind(parts->planner, graph, n_threads, kind, &plan, error));
    enum tandem_status status = tnd_fallback_adapt(parts, graph, n_threads, 0, plan, error);
    if (status != TANDEM_OK) {
        tandem_plan_free(plan);
        return status;
    }
    *out_plan = plan;
    return TANDEM_OK;
}

static int64_t weight_bytes(const tandem_graph *graph)
{
    int64_t bytes = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *w = graph->nodes[i]->src[0];
        bool is_weight = graph->nodes[i]->op == TANDEM_OP_MUL_MAT && w->root == w &&
                         (w->flags & TND_TENSOR_CONSTANT) != 0;
        bytes += is_weight ? (int64_t)tandem_tensor_bytes(w) : 0;
    }
    return bytes;
}

static double upload_us(tandem_runtime *runtime, const char *device, int64_t bytes)
{
    pthread_mutex_lock(&runtime->lock);
    const struct tandem_table *table = tnd_runtime_locked_table(runtime);
    double us =
        table != NULL && bytes > 0 ? tnd_estimate_transfer(table, device, TND_UPLOAD, bytes).us : 0;
    pthread_mutex_unlock(&runtime->lock);
    return us;
}

/* Makes plans of all kinds to predict their times, and offers those that differ from the earlier
 * ones. */
static enum tandem_status offer(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                const tandem_graph *graph, int n_threads, uint64_t key,
                                int64_t tokens, struct tandem_error *error)
{
    tandem_plan *plans[TND_PLAN_KINDS] = {NULL};
    struct tnd_arm_offer offers[TND_PLAN_KINDS];
    uint8_t slots[TND_MAX_SLOTS];
    enum tandem_status status = TANDEM_OK;
    memset(offers, 0, sizeof(offers));
    const int n_devices = tnd_place_devices(parts->registry, slots);
    for (int kind = 0; kind < TND_PLAN_KINDS && status == TANDEM_OK; kind++) {
        status = plan_once(parts, graph, n_threads, (enum tnd_plan_kind)kind, &plans[kind], error);
    }
    for (int kind = 0; kind < TND_PLAN_KINDS && status == TANDEM_OK; kind++) {
        struct tnd_arm_offer *one = &offers[kind];
        const tandem_plan *plan = plans[kind];
        one->us = tnd_plan_predicted_us(plan);
        one->on_device = is_on_device(parts, plan);
        one->is_open = kind == TND_PLAN_BEST || one->us > 0;
        for (int other = 0; other < kind && one->is_open; other++) {
            bool is_like = !is_both_at_once(parts, plans[other]) && is_same(plans[other], plan);
            one->is_open = !offers[other].is_open || !is_like;
        }
    }
    /* weights are on one side already; packing takes no longer than moving them */
    if (n_devices > 0) {
        bool is_there = offers[TND_PLAN_BEST].on_device;
        const char *device = tnd_registry_name(parts->registry, slots[0]);
        offers[is_there ? TND_PLAN_HOST : TND_PLAN_DEVICE].entry_us =
            upload_us(runtime, device, weight_bytes(graph));
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        tandem_plan_free(plans[kind]);
    }
    return status == TANDEM_OK ? tnd_arms_offer(&runtime->observer.arms, key, tokens, offers)
                               : status;
}

/* Whether there are several plans: not without devices, or if the program forces a profile. */
static bool has_choice(const struct tnd_runtime_parts *parts)
{
    uint32_t own = tnd_registry_own_slots(parts->registry);
    return (own & ~tnd_registry_quarantined(parts->registry)) != 0 &&
           tnd_planner_forced(parts->planner) < 0;
}

enum tandem_status tnd_observer_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                     const tandem_graph *graph, int n_threads,
                                     tandem_plan **out_plan, struct tandem_error *error)
{
    struct tnd_arms *arms = &runtime->observer.arms;
    enum tnd_plan_kind kind = TND_PLAN_BEST;
    int64_t tokens = 1;
    uint64_t key = 0;
    if (has_choice(parts) && !graph->runs_once) {
        uint64_t now_ns = parts->clock->now_ns(parts->clock);
        key = find_key(graph, n_threads, &tokens);
        if (!tnd_arms_choose(arms, key, tokens, now_ns, &kind)) {
            TND_TRY(offer(runtime, parts, graph, n_threads, key, tokens, error));
            (void)tnd_arms_choose(arms, key, tokens, now_ns, &kind);
        }
    }
    TND_TRY(plan_once(parts, graph, n_threads, kind, out_plan, error));
    (*out_plan)->observed_key = key;
    (*out_plan)->kind = (uint8_t)kind;
    return TANDEM_OK;
}

enum tandem_status tnd_observer_predict(tandem_runtime *runtime,
                                        const struct tnd_runtime_parts *parts,
                                        const tandem_graph *graph, int n_threads,
                                        struct tandem_prediction *out, struct tandem_error *error)
{
    tandem_plan *plan = NULL;
    int64_t tokens;
    struct tnd_arm_class one = {.serving = TND_PLAN_BEST};
    struct tandem_prediction found = {0, 0, false};
    if (has_choice(parts)) {
        (void)tnd_arms_get(&runtime->observer.arms, find_key(graph, n_threads, &tokens), &one);
    }
    TND_TRY(plan_once(parts, graph, n_threads, (enum tnd_plan_kind)one.serving, &plan, error));
    found.is_at_once = is_both_at_once(parts, plan);
    found.us = tnd_plan_predicted_us(plan);
    found.gain_error_us =
        found.is_at_once && plan->schedule != NULL ? (double)plan->schedule->gain_error_us : 0;
    tandem_plan_free(plan);
    *out = found;
    return TANDEM_OK;
}

static int64_t tokens_of(const tandem_graph *graph)
{
    int64_t tokens;
    (void)find_key(graph, 1, &tokens);
    return tokens;
}

uint64_t tnd_observer_limit(tandem_runtime *runtime, const tandem_graph *graph,
                            const tandem_plan *plan)
{
    return plan->observed_key == 0
               ? 0
               : tnd_arms_limit(&runtime->observer.arms, plan->observed_key,
                                (enum tnd_plan_kind)plan->kind, tokens_of(graph));
}

void tnd_observer_told(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                       uint64_t ns, bool is_cut)
{
    struct tnd_arm_class one;
    const int64_t tokens = tokens_of(graph);
    enum tnd_arm_news news =
        tnd_arms_note(&runtime->observer.arms, plan->observed_key, (enum tnd_plan_kind)plan->kind,
                      tokens, ns, is_cut, runtime->clock->now_ns(runtime->clock), &one);
    if (news == TND_ARM_NOTHING) {
        return;
    }
    const struct tnd_arm *serving = &one.arms[one.serving];
    const struct tnd_arm *other = &one.arms[one.looked];
    const bool is_loss = news == TND_ARM_CHANGES;
    const double us = (double)tokens / 1e3;
    tnd_log_line(&runtime->log, is_loss ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, "runtime",
                 "a graph of %d nodes takes %.1f us with %s, %.1f us with %s: the first %s, the "
                 "other one is tried again later%s",
                 graph->n_nodes, serving->expected_ns * us, kind_names[one.serving],
                 other->expected_ns * us, kind_names[one.looked],
                 is_loss ? "serves from now on" : "stays",
                 is_loss && one.looked == TND_PLAN_BEST
                     ? ". mulmat-tune bench measures what the table has wrong"
                     : "");
}

void tnd_observer_explain(tandem_runtime *runtime, const tandem_graph *graph, char *out, size_t n)
{
    struct tnd_arm_class one;
    int64_t tokens;
    size_t used = 0;
    uint64_t key = find_key(graph, tnd_runtime_graph_threads(runtime, graph), &tokens);
    out[0] = '\0';
    if (!tnd_arms_get(&runtime->observer.arms, key, &one)) {
        return;
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        const struct tnd_arm *arm = &one.arms[kind];
        if (arm->is_open && used < n) {
            used += (size_t)snprintf(out + used, n - used, "%s: %.1f us%s%s\n", kind_names[kind],
                                     arm->expected_ns * (double)tokens / 1e3,
                                     arm->used_ns == 0 ? " predicted" : " measured",
                                     kind == one.serving ? ", serves" : "");
        }
    }
}
