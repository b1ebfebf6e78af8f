/* SPDX-License-Identifier: MIT
 * The planner: what is chosen for each node, by table, rule or force. */
#include "tune/planner.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "tune/candidates.h"
#include "tune/experts.h"
#include "tune/op_cost.h"
#include "tune/placement.h"
#include "table/problem.h"
#include "tune/profiles.h"
#include "tune/plan_cache.h"
#include "tune/rule.h"
#include "tune/stream_cost.h"
#include "tune/warm.h"

/* What a product costs that runs by the rule: a candidate with times is preferred. */
#define BY_RULE_US 1e9

struct tnd_planner {
    const struct tnd_registry *registry;
    const struct tnd_clock *clock;
    struct tnd_log log;
    int n_cpus;
    int n_cores;
    tnd_candidates_fn candidates;
    tnd_refused_fn refused_by; /* NULL: there is room for all weights */
    void *refused_user;
    size_t cache_bytes;
    pthread_mutex_t lock; /* guards everything below; ahead of those of
                             refused_by, never held together with another one */
    const struct tandem_table *table;
    bool has_warm; /* the table knows times of weights that stay in the cache */
    double error_bound;
    int forced;
    uint32_t types_reported; /* bit a type: its absence from the table was logged */
    bool idle_reported;      /* a device that nobody has measured was logged */
    struct tnd_plan_cache memory;
    struct tnd_placement *placement; /* NULL: weights may be anywhere */
    struct tnd_schedule_cache schedules;
};

enum tandem_status tnd_planner_new(const struct tnd_planner_options *options,
                                   struct tnd_planner **out_planner, struct tandem_error *error)
{
    struct tnd_planner *planner = tnd_calloc(1, sizeof(*planner));
    if (planner == NULL || tnd_plan_cache_init(&planner->memory) != TANDEM_OK) {
        tnd_free(planner);
        return tnd_error_set(error, TANDEM_E_MEMORY, "planner", 0, 0, "planner: out of memory");
    }
    planner->registry = options->registry;
    planner->clock = options->clock;
    planner->log = options->log;
    planner->n_cpus = options->n_cpus;
    planner->n_cores = options->n_cores;
    planner->candidates = tnd_candidates_here;
    planner->cache_bytes = options->cache_bytes;
    planner->forced = -1;
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
    tnd_plan_cache_fini(&planner->memory);
    tnd_placement_free(planner->placement);
    tnd_schedule_cache_clear(&planner->schedules);
    tnd_free(planner);
}

void tnd_planner_set_table(struct tnd_planner *planner, const struct tandem_table *table)
{
    pthread_mutex_lock(&planner->lock);
    planner->table = table;
    planner->has_warm = tnd_table_has_warm(table);
    planner->types_reported = 0;
    planner->idle_reported = false;
    tnd_plan_cache_begin_round(&planner->memory);
    tnd_schedule_cache_clear(&planner->schedules);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_force(struct tnd_planner *planner, int profile)
{
    pthread_mutex_lock(&planner->lock);
    planner->forced = profile;
    tnd_plan_cache_clear(&planner->memory);
    tnd_schedule_cache_clear(&planner->schedules);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_set_candidates(struct tnd_planner *planner, tnd_candidates_fn candidates)
{
    planner->candidates = candidates;
}

void tnd_planner_set_refused(struct tnd_planner *planner, tnd_refused_fn refused_by, void *user)
{
    planner->refused_by = refused_by;
    planner->refused_user = user;
}

void tnd_planner_set_error_bound(struct tnd_planner *planner, double bound)
{
    pthread_mutex_lock(&planner->lock);
    planner->error_bound = bound;
    tnd_plan_cache_clear(&planner->memory);
    tnd_schedule_cache_clear(&planner->schedules);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_set_placement(struct tnd_planner *planner, struct tnd_placement *placement)
{
    pthread_mutex_lock(&planner->lock);
    struct tnd_placement *before = planner->placement;
    planner->placement = placement;
    pthread_mutex_unlock(&planner->lock);
    tnd_placement_free(before);
}

int tnd_planner_placed_slot(struct tnd_planner *planner, const void *data)
{
    pthread_mutex_lock(&planner->lock);
    int slot = tnd_placement_slot(planner->placement, data);
    pthread_mutex_unlock(&planner->lock);
    return slot;
}

/* Threads that wait for each other's CPU only cost. */
static int limit_of(const struct tnd_planner *planner, int n_threads)
{
    TND_ASSERT(n_threads >= 1);
    bool is_more = planner->table != NULL && planner->n_cpus > 0 && planner->n_cpus < n_threads;
    return is_more ? planner->n_cpus : n_threads;
}

int tnd_planner_limit(struct tnd_planner *planner, int n_threads)
{
    pthread_mutex_lock(&planner->lock);
    int limit = limit_of(planner, n_threads);
    pthread_mutex_unlock(&planner->lock);
    return limit;
}

bool tnd_planner_is_warm(struct tnd_planner *planner, const struct tandem_graph *graph)
{
    pthread_mutex_lock(&planner->lock);
    bool has_warm = planner->has_warm;
    pthread_mutex_unlock(&planner->lock);
    return has_warm && tnd_graph_stays_in(graph, planner->cache_bytes);
}

/* One graph that is being planned. */
struct plan_run {
    struct tnd_planner *planner;
    int n_threads;
    double handoff_us; /* measured between that many threads; 0: unknown */
    bool is_warm;      /* the weights stay in the cache */
    bool is_single;    /* nothing at once: no weights in flight, no schedule */
    int n_devices;
    uint8_t slots[TND_MAX_SLOTS];
    bool is_new;                 /* something was chosen that was not remembered */
    bool is_beyond;              /* for a node's M, too far from the measured ones */
    const tandem_tensor *report; /* a node that the table does not cover, to be told */
    bool is_report_beyond;       /* that is why */
};

/* ---- candidates ---- */

/* Bit a slot: devices without room for the weight, or where it is not to be. */
static uint32_t refused_by(const struct tnd_planner *planner, const tandem_tensor *weight)
{
    const tandem_tensor *root = weight->root;
    if ((root->flags & TND_TENSOR_CONSTANT) == 0) {
        return 0;
    }
    uint32_t refused =
        planner->refused_by != NULL ? planner->refused_by(planner->refused_user, root) : 0;
    return refused | tnd_placement_refused(planner->placement, root->data,
                                           tnd_registry_own_slots(planner->registry));
}

bool tnd_plan_node_for_profile(const struct tnd_registry *registry, int profile,
                               enum tandem_type type, int n_threads, struct tandem_plan_node *out)
{
    struct tnd_table_profile described;
    struct tandem_plan_node node;
    memset(&node, 0, sizeof(node));
    if (!tnd_profile_describe(registry, profile, type, &described) ||
        !tnd_profile_resolve(&described, registry, node.stage, NULL, 0)) {
        return false;
    }
    memcpy(node.profile, described.name, sizeof(node.profile));
    node.n_threads = n_threads;
    *out = node;
    return true;
}

/* Idle workers sleep where a stage lasts longer than waking them takes: all of them while a device
 * or one thread works, those that are left over while fewer threads work. */
static void choose_waiting(const struct tnd_planner *planner, const struct tnd_prediction *chosen,
                           int n_threads, struct tandem_plan_node *out)
{
    double wake_us = tnd_estimate_wake(planner->table, n_threads);
    for (int s = 0; s < TANDEM_STAGES; s++) {
        struct tandem_task_config *config = &out->stage[s];
        const tandem_backend *backend = tnd_registry_backend(planner->registry, config->backend);
        bool is_longer = chosen->stage[s].us >= wake_us;
        bool leaves_idle = !config->parallel || out->n_threads < n_threads;
        if (backend == NULL) {
            continue;
        }
        if (tnd_backend_is_own(backend)) {
            config->wait = config->wait && is_longer;
        } else if (leaves_idle && is_longer && wake_us > 0) {
            config->wait = true;
        }
    }
}

/* Whether the table has a time for the CPU's own profile. Without it (void, or never measured) what
 * else the table knows would win unopposed. */
static bool knows_cpu(const struct tandem_table *table, const struct tnd_candidate *candidates,
                      int n_candidates, const struct tnd_problem *problem, int n_threads)
{
    struct tnd_prediction prediction;
    int candidate = 0;
    while (candidate < n_candidates && strcmp(candidates[candidate].profile.name, "cpu") != 0) {
        candidate++;
    }
    bool found = candidate == n_candidates; /* the CPU does not take the product at all */
    for (int t = 1; t <= n_threads && !found; t = tnd_next_thread_count(table, t, n_threads)) {
        found = tnd_predict(table, candidates, candidate, problem, t, NULL, &prediction);
        if (t == n_threads) {
            break;
        }
    }
    return found;
}

/* The choice of another table, as this one predicts it. */
struct incumbent {
    const struct tandem_plan_node *node; /* NULL: there is none */
    const struct tnd_candidate *candidates;
    struct tnd_prediction prediction; /* candidate -1: the table knows it no more */
};

static void meet_incumbent(void *user, const struct tnd_prediction *prediction)
{
    struct incumbent *incumbent = user;
    const struct tnd_candidate *candidate = &incumbent->candidates[prediction->candidate];
    if (incumbent->node != NULL && prediction->threads == incumbent->node->n_threads &&
        !candidate->is_excluded && !tnd_is_beyond(&prediction->total) &&
        strcmp(candidate->profile.name, incumbent->node->profile) == 0) {
        incumbent->prediction = *prediction;
    }
}

static bool choose_by_table(struct plan_run *run, const tandem_tensor *node,
                            const struct tnd_problem *problem,
                            const struct tnd_neighbours *neighbours,
                            const struct tandem_plan_node *before, struct tnd_place_choice *out)
{
    const struct tnd_planner *planner = run->planner;
    int n_threads = run->n_threads;
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    struct tnd_choice choice;
    bool was_chosen = before != NULL && before->reason == TANDEM_REASON_TABLE;
    struct incumbent incumbent = {was_chosen ? before : NULL, candidates, {.candidate = -1}};
    int n_candidates = planner->candidates(planner->registry, planner->table, node, problem->type,
                                           planner->error_bound, candidates);
    n_candidates = tnd_stream_filter(candidates, n_candidates, refused_by(planner, node->src[0]),
                                     !run->is_single &&
                                         (node->src[0]->root->flags & TND_TENSOR_CONSTANT) != 0);
    tnd_choose(planner->table, candidates, n_candidates, problem, n_threads, neighbours,
               meet_incumbent, &incumbent, &choice);
    run->is_beyond = choice.best.candidate < 0 && choice.is_beyond;
    if (choice.best.candidate < 0 ||
        !knows_cpu(planner->table, candidates, n_candidates, problem, n_threads)) {
        return false;
    }
    if (incumbent.prediction.candidate >= 0 &&
        !tnd_prediction_leads(&choice.best, &incumbent.prediction)) {
        choice.second =
            choice.best.candidate != incumbent.prediction.candidate ? choice.best : choice.second;
        choice.best = incumbent.prediction;
    }
    out->node = candidates[choice.best.candidate].node;
    out->node.n_threads = choice.best.threads;
    out->node.reason = TANDEM_REASON_TABLE;
    out->node.runner_up_us = choice.second.candidate >= 0 ? (float)choice.second.total.us : 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        out->node.predicted_us[s] = (float)choice.best.stage[s].us;
    }
    choose_waiting(planner, &choice.best, n_threads, &out->node);
    out->us = choice.best.cautious_us;
    out->error_us = choice.best.total.error_us;
    return true;
}

static bool choose_profile(const struct tnd_planner *planner, int profile,
                           const tandem_tensor *node, enum tandem_type type, int n_threads,
                           enum tandem_plan_reason reason, struct tandem_plan_node *out)
{
    struct tandem_plan_node prediction;
    if (!tnd_plan_node_for_profile(planner->registry, profile, type, n_threads, &prediction) ||
        !tnd_node_is_supported(planner->registry, &prediction, node)) {
        return false;
    }
    prediction.reason = reason;
    *out = prediction;
    return true;
}

/* Whether the table is there, and nothing was said of the type yet. */
static bool should_report(struct tnd_planner *planner, enum tandem_type type)
{
    uint32_t bit = UINT32_C(1) << (unsigned)type % 32; /* BCML1 (241) alone wraps, to a free bit */
    bool first = (planner->types_reported & bit) == 0;
    planner->types_reported |= bit;
    return planner->table != NULL && first;
}

/* Where a choice reads X and leaves the result; 0: host memory. */
static int side_of(const struct plan_run *run, const struct tandem_plan_node *node)
{
    for (int side = 1; side <= run->n_devices; side++) {
        if (node->stage[TANDEM_STAGE_COMPUTE].backend == run->slots[side - 1]) {
            return side;
        }
    }
    return 0;
}

static bool is_wrong(const struct tnd_planner *planner, const char *profile, enum tandem_type type)
{
    return planner->table != NULL &&
           tnd_table_check(planner->table, profile, type, planner->error_bound, NULL) ==
               TND_VERDICT_WRONG;
}

/* By the rule, which knows no devices. Where another profile is forced, the rows serve: the caller
 * wants no copies. */
static void choose_by_rule(const struct tnd_planner *planner, const tandem_tensor *node,
                           const struct tnd_problem *problem, int threads,
                           struct tandem_plan_node *out)
{
    const char *name;
    bool found = false;
    for (int i = 0; planner->forced < 0 && !found && (name = tnd_rule_profile(i)) != NULL; i++) {
        int profile = tnd_profile_find(planner->registry, name);
        found =
            profile >= 0 && !is_wrong(planner, name, problem->type) &&
            choose_profile(planner, profile, node, problem->type, threads, TANDEM_REASON_RULE, out);
    }
    if (!found) {
        (void)choose_profile(planner, 0, node, problem->type, threads, TANDEM_REASON_RULE, out);
    }
}

/* Of experts the plain product that stands for them. */
static void problem_of(const struct tnd_planner *planner, const tandem_tensor *node,
                       struct tnd_problem *out)
{
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        tnd_experts_problem(node, tnd_placement_use(planner->placement, node->src[0]->root->data),
                            out);
    } else {
        tnd_problem_of_node(node, out);
    }
}

/* The best candidate at one side, or among all (TND_PLACE_ANY); a profile of "" when there is
 * none. */
static void choose_product(struct plan_run *run, const tandem_tensor *node, int side,
                           const struct tandem_plan_node *before, struct tnd_place_choice *out)
{
    struct tnd_planner *planner = run->planner;
    struct tnd_problem problem;
    struct tnd_neighbours neighbours = {.is_on_side = side != TND_PLACE_ANY,
                                        .side = "",
                                        .neighbour_threads = run->n_threads,
                                        .is_warm = run->is_warm};
    problem_of(planner, node, &problem);
    int rule_threads = tnd_rule_threads(node, run->n_threads, run->handoff_us);
    memset(out, 0, sizeof(*out));
    if (side > 0) {
        neighbours.side = tnd_registry_name(planner->registry, run->slots[side - 1]);
    }
    if (planner->forced >= 0 && choose_profile(planner, planner->forced, node, problem.type,
                                               rule_threads, TANDEM_REASON_FORCED, &out->node)) {
        if (side != TND_PLACE_ANY && side_of(run, &out->node) != side) {
            memset(out, 0, sizeof(*out));
        }
        return;
    }
    if (planner->table != NULL && planner->forced < 0 &&
        choose_by_table(run, node, &problem, &neighbours, before, out)) {
        return;
    }
    if (side <= 0) {
        rule_threads =
            tnd_rule_product_threads(node, run->n_threads, planner->n_cores, run->handoff_us);
        choose_by_rule(planner, node, &problem, rule_threads, &out->node);
        out->us = BY_RULE_US;
    }
}

/* Threads by the table where it knows the operation, else by the rule. */
static void choose_whole_threads(const struct plan_run *run, const tandem_tensor *node,
                                 int incumbent, struct tandem_plan_node *out)
{
    double us = 0;
    int threads = 0;
    if (tnd_op_threads(run->planner->table, node, run->n_threads, incumbent, &threads, &us)) {
        out->predicted_us[TANDEM_STAGE_COMPUTE] = (float)us;
        out->reason = TANDEM_REASON_TABLE;
    } else {
        threads = tnd_rule_threads(node, run->n_threads, run->handoff_us);
        out->reason = TANDEM_REASON_ONLY;
    }
    out->n_threads = threads;
    out->stage[TANDEM_STAGE_COMPUTE].parallel = threads > 1;
}

/* False where nothing is gained by remembering. */
static bool key_of_whole(const struct plan_run *run, const tandem_tensor *node,
                         struct tnd_plan_cache_key *out)
{
    struct tnd_op_work work;
    if (run->planner->table == NULL || !tnd_op_work_of(node, &work)) {
        return false;
    }
    memset(out, 0, sizeof(*out)); /* padding takes part in hash and comparison */
    out->n = work.n;
    out->k = work.k;
    out->m = work.m;
    out->type = TND_PLAN_CACHE_OPS + (int32_t)node->op;
    out->threads = run->n_threads;
    return true;
}

static const struct tnd_place_choice *recall(struct plan_run *run, const tandem_tensor *node,
                                             int side);

/* Products of experts, in host memory; false: no profile takes them. */
static bool choose_experts(struct plan_run *run, const tandem_tensor *node,
                           struct tandem_plan_node *out)
{
    const struct tnd_place_choice *chosen = recall(run, node, 0);
    if (chosen->node.profile[0] == '\0') {
        return false;
    }
    *out = chosen->node;
    return true;
}

static void choose_whole(void *user, const tandem_tensor *node, struct tandem_plan_node *out)
{
    struct plan_run *run = user;
    struct tnd_plan_cache *memory = &run->planner->memory;
    struct tnd_plan_cache_key key;
    if (node->op == TANDEM_OP_MUL_MAT_ID && choose_experts(run, node, out)) {
        return;
    }
    bool is_kept = key_of_whole(run, node, &key);
    const struct tnd_plan_cache_entry *before = is_kept ? tnd_plan_cache_find(memory, &key) : NULL;
    if (before != NULL && before->round == memory->round) {
        *out = before->chosen.node;
        return;
    }
    struct tnd_place_choice chosen;
    memset(&chosen, 0, sizeof(chosen));
    memcpy(chosen.node.profile, "cpu", 4);
    chosen.node.stage[TANDEM_STAGE_COMPUTE].backend = TANDEM_BACKEND_CPU;
    chosen.node.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
    bool was_chosen = before != NULL && before->chosen.node.reason == TANDEM_REASON_TABLE;
    choose_whole_threads(run, node, was_chosen ? before->chosen.node.n_threads : 0, &chosen.node);
    *out = chosen.node;
    if (is_kept) {
        (void)tnd_plan_cache_put(memory, &key, &chosen);
    }
}

/* On the device of a side, from memory where the same work was asked for before. */
static bool device_op_at(void *user, const tandem_tensor *node, int side,
                         struct tnd_schedule_time *out)
{
    struct plan_run *run = user;
    struct tnd_plan_cache *memory = &run->planner->memory;
    struct tnd_plan_cache_key key;
    if (!key_of_whole(run, node, &key)) {
        return false;
    }
    key.side = run->slots[side - 1];
    const struct tnd_plan_cache_entry *known = tnd_plan_cache_find(memory, &key);
    if (known == NULL || known->round != memory->round) {
        struct tnd_place_choice chosen;
        struct tnd_op_work work;
        struct tnd_estimate one;
        memset(&chosen, 0, sizeof(chosen));
        chosen.us = -1;
        if (tnd_op_work_of(node, &work) &&
            tnd_op_device_estimate(run->planner->table, &work,
                                   tnd_registry_name(run->planner->registry, key.side), &one)) {
            chosen.us = one.us;
            chosen.error_us = one.error_us;
        }
        known = tnd_plan_cache_put(memory, &key, &chosen);
    }
    *out = (struct tnd_schedule_time){(float)known->chosen.us, (float)known->chosen.error_us};
    return known->chosen.us >= 0;
}

static int32_t weight_kind_of(const struct plan_run *run, const tandem_tensor *weight)
{
    int32_t warm = run->is_warm ? TND_WEIGHT_WARM : 0;
    if ((weight->root->flags & TND_TENSOR_CONSTANT) == 0) {
        return TND_WEIGHT_CHANGES + warm;
    }
    int32_t kind = weight->root == weight ? TND_WEIGHT_CONSTANT : TND_WEIGHT_PART_OF_CONSTANT;
    uint32_t refused = run->n_devices > 0 ? refused_by(run->planner, weight) : 0;
    int32_t single = run->is_single && refused != 0 ? TND_WEIGHT_SINGLE : 0;
    return warm + kind + single + (int32_t)(refused * TND_WEIGHT_REFUSED);
}

/* As choose_product, from memory where the shape was seen before. */
static const struct tnd_place_choice *recall(struct plan_run *run, const tandem_tensor *node,
                                             int side)
{
    struct tnd_plan_cache *memory = &run->planner->memory;
    struct tnd_plan_cache_key key;
    memset(&key, 0, sizeof(key)); /* padding takes part in hash and comparison */
    key.n = node->src[0]->ne[1];
    key.k = node->src[0]->ne[0];
    key.m = node->ne[1];
    key.type = (int32_t)node->src[0]->type;
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        struct tnd_problem problem;
        problem_of(run->planner, node, &problem);
        key.n = problem.n;
        key.k = problem.k;
        key.m = problem.m;
    }
    key.threads = run->n_threads;
    key.side = side > 0 ? run->slots[side - 1] : side;
    key.weight = weight_kind_of(run, node->src[0]);
    key.weight += node->op == TANDEM_OP_MUL_MAT_ID ? TND_WEIGHT_EXPERTS : 0;
    const struct tnd_plan_cache_entry *known = tnd_plan_cache_find(memory, &key);
    if (known == NULL || known->round != memory->round) {
        struct tnd_place_choice chosen;
        choose_product(run, node, side, known != NULL ? &known->chosen.node : NULL, &chosen);
        known = tnd_plan_cache_put(memory, &key, &chosen);
        run->is_new = true;
    }
    return &known->chosen;
}

/* Says once a type that the table does not cover it. */
static void note_rule(struct plan_run *run, const tandem_tensor *node,
                      const struct tandem_plan_node *chosen)
{
    struct tnd_planner *planner = run->planner;
    if (chosen->reason == TANDEM_REASON_RULE && run->is_new && planner->forced < 0 &&
        should_report(planner, node->src[0]->type)) {
        run->report = node;
        run->is_report_beyond = run->is_beyond;
    }
}

static bool product_at(void *user, const tandem_tensor *node, int side,
                       struct tnd_place_choice *out)
{
    struct plan_run *run = user;
    *out = *recall(run, node, side);
    bool found = out->node.profile[0] != '\0';
    bool is_forced_elsewhere = false;
    for (int other = 1; side == 0 && other <= run->n_devices; other++) {
        const struct tnd_place_choice *there = recall(run, node, other);
        bool forced = there->node.reason == TANDEM_REASON_FORCED;
        is_forced_elsewhere = is_forced_elsewhere || (forced && there->node.profile[0] != '\0');
    }
    if (side == 0 && !found && !is_forced_elsewhere) {
        choose_whole(user, node, &out->node);
        return true;
    }
    return found;
}

/* The same product with half of the weights' rows. */
static double half_at(void *user, const tandem_tensor *node, int side)
{
    tandem_tensor w = *node->src[0];
    tandem_tensor y = *node;
    w.root = &w;
    w.ne[1] /= 2;
    y.ne[0] = w.ne[1];
    y.src[0] = &w;
    return recall(user, &y, side)->us;
}

static void choose(struct plan_run *run, const tandem_tensor *node, struct tandem_plan_node *out)
{
    if (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node)) {
        run->is_new = false;
        *out = recall(run, node, TND_PLACE_ANY)->node;
        note_rule(run, node, out);
        if (out->profile[0] != '\0') {
            return;
        }
    }
    choose_whole(run, node, out);
}

/* With devices: nodes are placed together. */
static enum tandem_status place(struct plan_run *run, const struct tandem_graph *graph,
                                struct tandem_plan *plan, struct tandem_error *error)
{
    const struct tnd_planner *planner = run->planner;
    struct tnd_place_options options = {
        .registry = planner->registry,
        .table = planner->table,
        .graph = graph,
        .n_threads = run->n_threads,
        .n_devices = run->n_devices,
        .forced_products = planner->forced >= 0,
        .placement = planner->placement,
        .only_singles = run->is_single,
        .product = product_at,
        .half_us = half_at,
        .whole = choose_whole,
        .device_op = device_op_at,
        .user = run,
    };
    struct tandem_plan_node forced;
    memcpy(options.slots, run->slots, sizeof(options.slots));
    /* A profile that is on one device from end to end takes the other operations along. */
    if (planner->forced >= 0 && tnd_plan_node_for_profile(planner->registry, planner->forced,
                                                          TANDEM_TYPE_Q4_0, 1, &forced)) {
        const struct tandem_task_config *init = &forced.stage[TANDEM_STAGE_INIT];
        const struct tandem_task_config *compute = &forced.stage[TANDEM_STAGE_COMPUTE];
        bool whole = init->backend == TANDEM_BACKEND_NONE || init->backend == compute->backend;
        options.forced_side = whole ? side_of(run, &forced) : 0;
    }
    TND_TRY(tnd_place(&options, &run->planner->schedules, plan, error));
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        if (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node)) {
            note_rule(run, node, &plan->nodes[i]);
        }
    }
    return TANDEM_OK;
}

/* Says once that a device is open of which nothing was measured; NULL: not now. */
static const char *unmeasured_device(struct plan_run *run)
{
    struct tnd_planner *planner = run->planner;
    for (int d = 0; d < run->n_devices && planner->forced < 0 && !planner->idle_reported; d++) {
        const char *name = tnd_registry_name(planner->registry, run->slots[d]);
        if (planner->table == NULL ||
            tnd_table_transfer(planner->table, name, TND_UPLOAD) == NULL) {
            planner->idle_reported = true;
            return name;
        }
    }
    return NULL;
}

/* Outside of the lock. */
static void tell_rule(const struct plan_run *run)
{
    char text[TND_PROBLEM_MAX];
    struct tnd_problem problem;
    tnd_problem_of_node(run->report, &problem);
    tnd_problem_print(&problem, text, sizeof(text));
    if (run->is_report_beyond) {
        tnd_log_line(&run->planner->log, TANDEM_LOG_WARN, "tune",
                     "%s: M is more than four times outside of what was measured, the "
                     "rule serves; run mulmat-tune bench -model %" PRId64 "x%" PRId64
                     " -type %s -m %" PRId64,
                     text, problem.n, problem.k, tandem_type_name(problem.type), problem.m);
    } else {
        tnd_log_line(&run->planner->log, TANDEM_LOG_WARN, "tune",
                     "%s: outside the timing table, the rule serves; run mulmat-tune bench", text);
    }
}

static enum tandem_status make_plan(struct tnd_planner *planner, const struct tandem_graph *graph,
                                    int n_threads, bool is_single, struct tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    uint64_t begin_ns = planner->clock->now_ns(planner->clock);
    struct tandem_plan *plan;
    TND_TRY(tandem_plan_new(graph->n_nodes, &plan, error));
    struct plan_run run = {.planner = planner, .n_threads = n_threads, .is_single = is_single};
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&planner->lock);
    run.n_threads = limit_of(planner, n_threads);
    run.is_warm = planner->has_warm && tnd_graph_stays_in(graph, planner->cache_bytes);
    run.handoff_us = tnd_estimate_handoff(planner->table, run.n_threads);
    run.n_devices = tnd_place_devices(planner->registry, run.slots);
    const char *idle = unmeasured_device(&run);
    if (run.n_devices > 0 && (planner->table != NULL || planner->forced >= 0)) {
        status = place(&run, graph, plan, error);
    } else {
        for (int i = 0; i < graph->n_nodes; i++) {
            choose(&run, graph->nodes[i], &plan->nodes[i]);
        }
    }
    pthread_mutex_unlock(&planner->lock);
    if (status != TANDEM_OK) {
        tandem_plan_free(plan);
        return status;
    }
    if (idle != NULL) {
        tnd_log_line(&planner->log, TANDEM_LOG_INFO, "tune",
                     "%s is open but was never measured, so it is not used; run mulmat-tune bench",
                     idle);
    }
    if (run.report != NULL) {
        tell_rule(&run);
    }
    plan->took_us = (double)(planner->clock->now_ns(planner->clock) - begin_ns) / 1000.0;
    *out_plan = plan;
    return TANDEM_OK;
}

enum tandem_status tnd_planner_plan(struct tnd_planner *planner, const struct tandem_graph *graph,
                                    int n_threads, struct tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    return make_plan(planner, graph, n_threads, false, out_plan, error);
}

enum tandem_status tnd_planner_plan_single(struct tnd_planner *planner,
                                           const struct tandem_graph *graph, int n_threads,
                                           struct tandem_plan **out_plan,
                                           struct tandem_error *error)
{
    return make_plan(planner, graph, n_threads, true, out_plan, error);
}
