/* SPDX-License-Identifier: MIT
 * The planner: candidates, prediction, choice, memory of choices. */
#include "tune/planner.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "tune/candidates.h"
#include "tune/problem.h"
#include "tune/profiles.h"
#include "tune/rule.h"

struct choice_key {
    int64_t n, k, m;
    int32_t type;
    int32_t threads;
};

struct choice {
    struct choice_key key; /* threads == 0: empty slot */
    struct tandem_plan_node node;
};

enum { FIRST_CAPACITY = 256, LAST_CAPACITY = 65536 };

struct tnd_planner {
    const struct tnd_registry *registry;
    const struct tnd_clock *clock;
    struct tnd_log log;
    pthread_mutex_t lock; /* guards everything below; never held together with another lock */
    const struct tandem_table *table;
    int forced;
    uint32_t types_reported; /* bit a type: its absence from the table was logged */
    struct choice *choices;  /* open addressing, power of two */
    size_t capacity;
    size_t used;
};

/* ---- memory of choices ---- */

static size_t slot_of(const struct choice_key *key, size_t capacity)
{
    return (size_t)tnd_hash_bytes(key, sizeof(*key), 0) & (capacity - 1);
}

static struct choice *find_choice(struct choice *choices, size_t capacity,
                                  const struct choice_key *key)
{
    size_t i = slot_of(key, capacity);
    while (choices[i].key.threads != 0 && memcmp(&choices[i].key, key, sizeof(*key)) != 0) {
        i = (i + 1) & (capacity - 1);
    }
    return &choices[i];
}

static void forget_choices(struct tnd_planner *planner)
{
    memset(planner->choices, 0, planner->capacity * sizeof(planner->choices[0]));
    planner->used = 0;
}

/* Makes room for one more choice. When the table is as large as it may get, or memory is short,
 * everything is forgotten instead: choices are cheap to find again. */
static void reserve_choice(struct tnd_planner *planner)
{
    if (2 * (planner->used + 1) <= planner->capacity) {
        return;
    }
    size_t capacity = 2 * planner->capacity;
    struct choice *choices =
        capacity <= LAST_CAPACITY ? tnd_calloc(capacity, sizeof(choices[0])) : NULL;
    if (choices == NULL) {
        forget_choices(planner);
        return;
    }
    for (size_t i = 0; i < planner->capacity; i++) {
        if (planner->choices[i].key.threads != 0) {
            *find_choice(choices, capacity, &planner->choices[i].key) = planner->choices[i];
        }
    }
    tnd_free(planner->choices);
    planner->choices = choices;
    planner->capacity = capacity;
}

enum tandem_status tnd_planner_new(const struct tnd_planner_options *options,
                                   struct tnd_planner **out_planner, struct tandem_error *error)
{
    struct tnd_planner *planner = tnd_calloc(1, sizeof(*planner));
    struct choice *choices = tnd_calloc(FIRST_CAPACITY, sizeof(choices[0]));
    if (planner == NULL || choices == NULL) {
        tnd_free(planner);
        tnd_free(choices);
        return tnd_error_set(error, TANDEM_E_MEMORY, "planner", 0, 0, "planner: out of memory");
    }
    planner->registry = options->registry;
    planner->clock = options->clock;
    planner->log = options->log;
    planner->forced = -1;
    planner->choices = choices;
    planner->capacity = FIRST_CAPACITY;
    pthread_mutex_init(&planner->lock, NULL);
    *out_planner = planner;
    return TANDEM_OK;
}

void tnd_planner_free(struct tnd_planner *planner)
{
    if (planner == NULL) {
        return;
    }
    pthread_mutex_destroy(&planner->lock);
    tnd_free(planner->choices);
    tnd_free(planner);
}

void tnd_planner_set_table(struct tnd_planner *planner, const struct tandem_table *table)
{
    pthread_mutex_lock(&planner->lock);
    planner->table = table;
    planner->types_reported = 0;
    forget_choices(planner);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_force(struct tnd_planner *planner, int profile)
{
    pthread_mutex_lock(&planner->lock);
    planner->forced = profile;
    forget_choices(planner);
    pthread_mutex_unlock(&planner->lock);
}

/* ---- candidates ---- */

bool tnd_plan_node_for_profile(const struct tnd_registry *registry, int profile,
                               enum tandem_type type, int n_threads, struct tandem_plan_node *out)
{
    struct tnd_table_profile described;
    struct tandem_plan_node node;
    memset(&node, 0, sizeof(node));
    if (!tnd_profile_describe(profile, type, &described) ||
        !tnd_profile_resolve(&described, registry, node.stage, NULL, 0)) {
        return false;
    }
    memcpy(node.profile, described.name, sizeof(node.profile));
    node.n_threads = n_threads;
    *out = node;
    return true;
}

static bool choose_by_table(const struct tnd_planner *planner, const tandem_tensor *node,
                            const struct tnd_problem *problem, int n_threads,
                            struct tandem_plan_node *out)
{
    struct tnd_way ways[TND_TABLE_MAX_PROFILES];
    struct tnd_choice choice;
    int n_ways = tnd_ways_here(planner->registry, planner->table, node, problem->type, ways);
    tnd_choose(planner->table, ways, n_ways, problem, n_threads, NULL, NULL, NULL, &choice);
    if (choice.best.way < 0) {
        return false;
    }
    *out = ways[choice.best.way].node;
    out->n_threads = choice.best.threads;
    out->reason = TANDEM_REASON_TABLE;
    out->runner_up_us = choice.second.way >= 0 ? (float)choice.second.total.us : 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        out->predicted_us[s] = (float)choice.best.stage[s].us;
    }
    return true;
}

static bool choose_profile(const struct tnd_planner *planner, int profile,
                           const tandem_tensor *node, enum tandem_type type, int n_threads,
                           enum tandem_plan_reason reason, struct tandem_plan_node *out)
{
    struct tandem_plan_node candidate;
    if (!tnd_plan_node_for_profile(planner->registry, profile, type, n_threads, &candidate) ||
        !tnd_node_is_supported(planner->registry, &candidate, node)) {
        return false;
    }
    candidate.reason = reason;
    *out = candidate;
    return true;
}

/* Says once a type that the table does not cover it. */
static bool should_report(struct tnd_planner *planner, enum tandem_type type)
{
    uint32_t bit = UINT32_C(1) << (unsigned)type % 32; /* BCML1 (240) alone wraps, to a free bit */
    bool first = (planner->types_reported & bit) == 0;
    planner->types_reported |= bit;
    return planner->table != NULL && first;
}

static void choose_plain_product(struct tnd_planner *planner, const tandem_tensor *node,
                                 int n_threads, struct tandem_plan_node *out, bool *out_report)
{
    struct tnd_problem problem;
    tnd_problem_of_node(node, &problem);
    int rule_threads = tnd_rule_threads(node, n_threads);
    if (planner->forced >= 0 && choose_profile(planner, planner->forced, node, problem.type,
                                               rule_threads, TANDEM_REASON_FORCED, out)) {
        return;
    }
    if (planner->table != NULL && planner->forced < 0) {
        if (choose_by_table(planner, node, &problem, n_threads, out)) {
            return;
        }
        *out_report = should_report(planner, problem.type);
    }
    int by_rule = tnd_profile_find(tnd_rule_profile(problem.m));
    if (planner->forced >= 0 || by_rule < 0 ||
        !choose_profile(planner, by_rule, node, problem.type, rule_threads, TANDEM_REASON_RULE,
                        out)) {
        int cpu = tnd_profile_find("cpu");
        if (!choose_profile(planner, cpu, node, problem.type, rule_threads, TANDEM_REASON_RULE,
                            out)) {
            memset(out, 0, sizeof(*out));
        }
    }
}

static void choose_whole(const tandem_tensor *node, int n_threads, struct tandem_plan_node *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->profile, "cpu", 4);
    out->stage[TANDEM_STAGE_COMPUTE].backend = TANDEM_BACKEND_CPU;
    out->stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
    out->n_threads = tnd_rule_threads(node, n_threads);
    out->stage[TANDEM_STAGE_COMPUTE].parallel = out->n_threads > 1;
    out->reason = TANDEM_REASON_ONLY;
}

static void choose(struct tnd_planner *planner, const tandem_tensor *node, int n_threads,
                   struct tandem_plan_node *out, const tandem_tensor **out_report)
{
    if (node->op != TANDEM_OP_MUL_MAT || !tnd_mul_mat_is_plain(node)) {
        choose_whole(node, n_threads, out);
        return;
    }
    struct choice_key key;
    memset(&key, 0, sizeof(key)); /* padding takes part in hash and comparison */
    key.n = node->src[0]->ne[1];
    key.k = node->src[0]->ne[0];
    key.m = node->ne[1];
    key.type = (int32_t)node->src[0]->type;
    key.threads = n_threads;
    struct choice *choice = find_choice(planner->choices, planner->capacity, &key);
    if (choice->key.threads == 0) {
        struct tandem_plan_node chosen;
        bool report = false;
        memset(&chosen, 0, sizeof(chosen));
        choose_plain_product(planner, node, n_threads, &chosen, &report);
        if (chosen.profile[0] == '\0') {
            choose_whole(node, n_threads, out);
            return;
        }
        if (report) {
            *out_report = node;
        }
        reserve_choice(planner);
        choice = find_choice(planner->choices, planner->capacity, &key);
        choice->key = key;
        choice->node = chosen;
        planner->used++;
    }
    *out = choice->node;
}

enum tandem_status tnd_planner_plan(struct tnd_planner *planner, const struct tandem_graph *graph,
                                    int n_threads, struct tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    uint64_t begin_ns = planner->clock->now_ns(planner->clock);
    struct tandem_plan *plan;
    TND_TRY(tandem_plan_new(graph->n_nodes, &plan, error));
    const tandem_tensor *report = NULL;
    pthread_mutex_lock(&planner->lock);
    for (int i = 0; i < graph->n_nodes; i++) {
        choose(planner, graph->nodes[i], n_threads, &plan->nodes[i], &report);
    }
    pthread_mutex_unlock(&planner->lock);
    if (report != NULL) {
        char text[TND_PROBLEM_MAX];
        struct tnd_problem problem;
        tnd_problem_of_node(report, &problem);
        tnd_problem_print(&problem, text, sizeof(text));
        tnd_log_line(&planner->log, TANDEM_LOG_WARN, "tune",
                     "%s: outside the timing table, the fixed rule serves; run mulmat-tune bench",
                     text);
    }
    plan->took_us = (double)(planner->clock->now_ns(planner->clock) - begin_ns) / 1000.0;
    *out_plan = plan;
    return TANDEM_OK;
}
