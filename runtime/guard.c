/* SPDX-License-Identifier: MIT
 * Turns and verdicts of the guard. Start at tnd_guard_plan and tnd_guard_told. */
#include "runtime/guard.h"

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
#include "tune/policy.h"

enum { SINGLE = 0, BOTH = 1 };

void tnd_guard_init(struct tnd_guard *guard)
{
    memset(guard, 0, sizeof(*guard));
    pthread_mutex_init(&guard->lock, NULL);
    atomic_init(&guard->n_dropped, 0);
}

void tnd_guard_fini(struct tnd_guard *guard)
{
    tnd_free(guard->entries);
    pthread_mutex_destroy(&guard->lock);
}

bool tnd_guard_has_dropped(const struct tnd_guard *guard)
{
    return atomic_load_explicit(&guard->n_dropped, memory_order_acquire) > 0;
}

/* ---- keys ---- */

static int64_t power_below(int64_t m)
{
    int64_t power = 1;
    while (power <= m / 2) {
        power *= 2;
    }
    return power;
}

/* The products alone: a KV cache grows from token to token, and its operations with it. */
static void find_key(const tandem_graph *graph, int n_threads, struct tnd_guard_key *out)
{
    uint64_t keys[2] = {(uint64_t)n_threads, (uint64_t)n_threads};
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        const bool is_of_experts = node->op == TANDEM_OP_MUL_MAT_ID;
        if (!is_of_experts && (node->op != TANDEM_OP_MUL_MAT || !tnd_mul_mat_is_plain(node))) {
            continue;
        }
        const tandem_tensor *w = node->src[0];
        const int64_t tokens = node->ne[is_of_experts ? 2 : 1];
        for (int like = 0; like < 2; like++) {
            const uint64_t words[] = {keys[like],
                                      (uint64_t)w->type,
                                      (uint64_t)w->ne[0],
                                      (uint64_t)w->ne[1],
                                      (uint64_t)w->ne[2], /* experts */
                                      (uint64_t)(is_of_experts ? node->ne[1] : 0),
                                      (uint64_t)(like ? power_below(tokens) : tokens)};
            keys[like] = tnd_hash_words(words, sizeof(words));
        }
    }
    out->graph = keys[0] | 1;
    out->like = keys[1];
}

/* ---- entries; under the lock ---- */

static struct tnd_guard_entry *find_entry(const struct tnd_guard *guard, uint64_t graph_key)
{
    for (int i = 0; i < guard->n_entries; i++) {
        if (guard->entries[i].key.graph == graph_key) {
            return &guard->entries[i];
        }
    }
    return NULL;
}

/* Graphs that differ in M alone meet the same device: where it has lost twice more often than it
 * has won, it gets no further trial. */
static bool is_like_dropped(const struct tnd_guard *guard, uint64_t like)
{
    int n_lost = 0;
    for (int i = 0; i < guard->n_entries; i++) {
        const struct tnd_guard_entry *entry = &guard->entries[i];
        if (entry->key.like == like) {
            n_lost += entry->state == TND_GUARD_DROPPED;
            n_lost -= entry->state == TND_GUARD_KEPT;
        }
    }
    return n_lost >= TND_GUARD_LIKE;
}

/* Plain products alone: what products of experts take depends on which experts the tokens choose,
 * and says little of the curves that price them. */
static void add_cell(struct tnd_guard_entry *entry, const struct tnd_registry *registry,
                     const tandem_tensor *node, const struct tandem_plan_node *choice)
{
    const struct tandem_task_config *config = &choice->stage[TANDEM_STAGE_COMPUTE];
    if ((tnd_registry_own_slots(registry) >> config->backend & 1) == 0 ||
        node->op != TANDEM_OP_MUL_MAT || !tnd_mul_mat_is_plain(node)) {
        return;
    }
    struct tnd_guard_cell cell = {.m = node->ne[1]};
    struct tnd_table_stage stage = {
        .task = config->task, .parallel = config->parallel, .own_threads = config->own_threads};
    snprintf(stage.backend, sizeof(stage.backend), "%s",
             tnd_registry_name(registry, config->backend));
    tnd_stage_key(&stage, TANDEM_STAGE_COMPUTE, node->src[0]->type, node->ne[0],
                  node->src[0]->ne[0], choice->n_threads, &cell.key);
    for (int i = 0; i < entry->n_cells; i++) {
        if (entry->cells[i].m == cell.m &&
            tnd_curve_key_compare(&entry->cells[i].key, &cell.key) == 0) {
            return;
        }
    }
    if (entry->n_cells < TND_GUARD_CELLS) {
        entry->cells[entry->n_cells++] = cell;
    }
}

static struct tnd_guard_entry *add_entry(struct tnd_guard *guard, const struct tnd_guard_key *key,
                                         const struct tnd_registry *registry,
                                         const tandem_graph *graph, const tandem_plan *plan)
{
    if (guard->entries == NULL) {
        guard->entries = tnd_calloc(TND_GUARD_ENTRIES, sizeof(guard->entries[0]));
    }
    if (guard->entries == NULL || guard->n_entries == TND_GUARD_ENTRIES) {
        return NULL;
    }
    struct tnd_guard_entry *entry = &guard->entries[guard->n_entries];
    entry->key = *key;
    entry->state = is_like_dropped(guard, key->like) ? TND_GUARD_DROPPED : TND_GUARD_TRIAL;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_plan_part *parts = NULL;
        int n_parts = tnd_plan_parts_of(plan, i, &parts);
        add_cell(entry, registry, graph->nodes[i], &plan->nodes[i]);
        for (int j = 0; j < n_parts; j++) {
            add_cell(entry, registry, graph->nodes[i], &parts[j].choice);
        }
    }
    guard->n_entries++;
    return entry;
}

bool tnd_guard_choose(struct tnd_guard *guard, const struct tnd_guard_key *key,
                      const struct tnd_registry *registry, const tandem_graph *graph,
                      const tandem_plan *plan)
{
    bool is_both = false;
    pthread_mutex_lock(&guard->lock);
    struct tnd_guard_entry *entry = find_entry(guard, key->graph);
    entry = entry != NULL ? entry : add_entry(guard, key, registry, graph, plan);
    if (entry != NULL && entry->state == TND_GUARD_TRIAL) {
        is_both = entry->n_timed[BOTH] <= entry->n_timed[SINGLE];
    } else {
        is_both = entry != NULL && entry->state == TND_GUARD_KEPT;
    }
    pthread_mutex_unlock(&guard->lock);
    return is_both;
}

/* By the best time of each: what disturbs a run only adds to it. */
static void judge(struct tnd_guard_entry *entry)
{
    int n = entry->n_timed[SINGLE] < entry->n_timed[BOTH] ? entry->n_timed[SINGLE]
                                                          : entry->n_timed[BOTH];
    double ratio = (double)entry->best_ns[BOTH] / (double)(entry->best_ns[SINGLE] + 1);
    bool is_clear = ratio > 1 + TND_GUARD_CLEAR || ratio < 1 - TND_GUARD_CLEAR;
    if (2 * n >= TND_GUARD_USES || (n >= 2 && is_clear)) {
        entry->state = ratio < 1 ? TND_GUARD_KEPT : TND_GUARD_DROPPED;
    }
}

bool tnd_guard_note(struct tnd_guard *guard, uint64_t graph_key, bool is_both, uint64_t ns,
                    struct tnd_guard_entry *out)
{
    bool is_decided = false;
    pthread_mutex_lock(&guard->lock);
    struct tnd_guard_entry *entry = find_entry(guard, graph_key);
    if (entry != NULL && entry->state == TND_GUARD_TRIAL) {
        uint64_t *best_ns = &entry->best_ns[is_both];
        *best_ns = entry->n_timed[is_both]++ == 0 || ns < *best_ns ? ns : *best_ns;
        judge(entry);
        is_decided = entry->state != TND_GUARD_TRIAL;
        *out = *entry;
        if (entry->state == TND_GUARD_DROPPED) {
            atomic_fetch_add_explicit(&guard->n_dropped, 1, memory_order_release);
        }
    }
    pthread_mutex_unlock(&guard->lock);
    return is_decided;
}

/* ---- of a runtime ---- */

/* Whether the plan has more at work at once than one way alone. */
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

static bool is_dropped(struct tnd_guard *guard, const tandem_graph *graph, int n_threads)
{
    struct tnd_guard_key key;
    if (!tnd_guard_has_dropped(guard)) {
        return false;
    }
    find_key(graph, n_threads, &key);
    pthread_mutex_lock(&guard->lock);
    const struct tnd_guard_entry *entry = find_entry(guard, key.graph);
    bool is_so = entry != NULL && entry->state == TND_GUARD_DROPPED;
    pthread_mutex_unlock(&guard->lock);
    return is_so;
}

static enum tandem_status plan_once(const struct tnd_runtime_parts *parts,
                                    const tandem_graph *graph, int n_threads, bool is_single,
                                    tandem_plan **out_plan, struct tandem_error *error)
{
    tandem_plan *plan = NULL;
    TND_TRY(is_single ? tnd_planner_plan_single(parts->planner, graph, n_threads, &plan, error)
                      : tnd_planner_plan(parts->planner, graph, n_threads, &plan, error));
    enum tandem_status status = tnd_fallback_adapt(parts, graph, n_threads, 0, plan, error);
    if (status != TANDEM_OK) {
        tandem_plan_free(plan);
        return status;
    }
    *out_plan = plan;
    return TANDEM_OK;
}

enum tandem_status tnd_guard_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                  const tandem_graph *graph, int n_threads, tandem_plan **out_plan,
                                  struct tandem_error *error)
{
    struct tnd_guard_key key;
    tandem_plan *single = NULL;
    tandem_plan *plan = NULL;
    bool is_single = is_dropped(&runtime->guard, graph, n_threads);
    TND_TRY(plan_once(parts, graph, n_threads, is_single, &plan, error));
    if (!is_single && is_both_at_once(parts, plan)) {
        find_key(graph, n_threads, &key);
        bool is_both = tnd_guard_choose(&runtime->guard, &key, parts->registry, graph, plan);
        if (!is_both) {
            enum tandem_status status = plan_once(parts, graph, n_threads, true, &single, error);
            tandem_plan_free(plan);
            TND_TRY(status);
            plan = single;
        }
        plan->guard_key = key.graph;
        plan->is_both_at_once = is_both;
    }
    *out_plan = plan;
    return TANDEM_OK;
}

enum tandem_status tnd_guard_predict(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                     const tandem_graph *graph, int n_threads,
                                     struct tandem_prediction *out, struct tandem_error *error)
{
    tandem_plan *plan = NULL;
    bool is_single = is_dropped(&runtime->guard, graph, n_threads);
    struct tandem_prediction found = {0, 0, false};
    TND_TRY(plan_once(parts, graph, n_threads, is_single, &plan, error));
    found.is_at_once = is_both_at_once(parts, plan);
    found.us = tnd_plan_predicted_us(plan);
    found.gain_error_us =
        found.is_at_once && plan->schedule != NULL ? (double)plan->schedule->gain_error_us : 0;
    tandem_plan_free(plan);
    *out = found;
    return TANDEM_OK;
}

void tnd_guard_told(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                    uint64_t ns)
{
    struct tnd_guard_entry entry;
    if (!tnd_guard_note(&runtime->guard, plan->guard_key, plan->is_both_at_once, ns, &entry)) {
        return;
    }
    double both_us = (double)entry.best_ns[BOTH] / 1e3;
    double single_us = (double)entry.best_ns[SINGLE] / 1e3;
    bool is_loss = entry.state == TND_GUARD_DROPPED;
    tnd_log_line(&runtime->log, is_loss ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, "runtime",
                 "a graph of %d nodes takes %.1f us with devices and CPU at once, %.1f us without "
                 "(best of %d and %d uses): %s",
                 graph->n_nodes, both_us, single_us, entry.n_timed[BOTH], entry.n_timed[SINGLE],
                 is_loss ? "dropped for good. mulmat-tune bench measures the device anew" : "kept");
}

void tnd_guard_explain(tandem_runtime *runtime, const tandem_graph *graph, char *out, size_t n)
{
    static const char *const states[] = {"in its first uses", "kept", "dropped"};
    struct tnd_guard_key key;
    find_key(graph, tandem_runtime_threads(runtime), &key);
    out[0] = '\0';
    pthread_mutex_lock(&runtime->guard.lock);
    const struct tnd_guard_entry *entry = find_entry(&runtime->guard, key.graph);
    if (entry != NULL) {
        snprintf(out, n,
                 "devices and CPU at once: %s, best of %d uses %.1f us; without: best of %d uses "
                 "%.1f us\n",
                 states[entry->state], entry->n_timed[BOTH], (double)entry->best_ns[BOTH] / 1e3,
                 entry->n_timed[SINGLE], (double)entry->best_ns[SINGLE] / 1e3);
    }
    pthread_mutex_unlock(&runtime->guard.lock);
}

enum tandem_status tnd_guard_add_stale(tandem_runtime *runtime, const tandem_table *table,
                                       tandem_table *stale)
{
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&runtime->guard.lock);
    for (int i = 0; i < runtime->guard.n_entries; i++) {
        const struct tnd_guard_entry *entry = &runtime->guard.entries[i];
        bool is_loss = entry->state == TND_GUARD_DROPPED;
        for (int c = 0; is_loss && c < entry->n_cells && status == TANDEM_OK; c++) {
            status = tnd_stale_add(stale, table, &entry->cells[c].key, entry->cells[c].m);
        }
    }
    pthread_mutex_unlock(&runtime->guard.lock);
    return status;
}
