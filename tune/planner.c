/* SPDX-License-Identifier: MIT
 * The planner: plans each node by the table, the rule or a forced profile. */
#include <inttypes.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "tune/op_cost.h"
#include "tune/placement.h"
#include "tune/planner_internal.h"
#include "tune/warm.h"

static void forget_placed(struct tnd_planner *planner)
{
    tnd_schedule_cache_clear(&planner->schedules);
    tnd_plan_known_clear(&planner->known);
}

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
    forget_placed(planner);
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
    forget_placed(planner);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_force(struct tnd_planner *planner, int profile)
{
    pthread_mutex_lock(&planner->lock);
    planner->forced = profile;
    tnd_plan_cache_clear(&planner->memory);
    forget_placed(planner);
    pthread_mutex_unlock(&planner->lock);
}

int tnd_planner_forced(struct tnd_planner *planner)
{
    pthread_mutex_lock(&planner->lock);
    const int forced = planner->forced;
    pthread_mutex_unlock(&planner->lock);
    return forced;
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
    forget_placed(planner);
    pthread_mutex_unlock(&planner->lock);
}

void tnd_planner_set_placement(struct tnd_planner *planner, struct tnd_placement *placement)
{
    pthread_mutex_lock(&planner->lock);
    struct tnd_placement *before = planner->placement;
    planner->placement = placement;
    tnd_plan_known_clear(&planner->known);
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

/* Threads to use: more than there are CPUs would wait for each other. */
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

/* Whether to log that the table lacks a type: there is a table, and the type was not logged yet. */
static bool should_report(struct tnd_planner *planner, enum tandem_type type)
{
    /* only BCML1 (241) exceeds 31 bits; it wraps to a free one */
    uint32_t bit = UINT32_C(1) << (unsigned)type % 32;
    bool first = (planner->types_reported & bit) == 0;
    planner->types_reported |= bit;
    return planner->table != NULL && first;
}

/* Builds the cache key of an operation that is no product; false if caching it gains nothing. */
static bool key_of_whole(const struct tnd_plan_run *run, const tandem_tensor *node,
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

static const struct tnd_place_choice *recall(struct tnd_plan_run *run, const tandem_tensor *node,
                                             int side);

/* Chooses for a product of experts in host memory; false: no profile supports it. */
static bool choose_experts(struct tnd_plan_run *run, const tandem_tensor *node,
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
    struct tnd_plan_run *run = user;
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
    tnd_plan_choose_threads(run, node, was_chosen ? before->chosen.node.n_threads : 0,
                            &chosen.node);
    *out = chosen.node;
    if (is_kept) {
        (void)tnd_plan_cache_put(memory, &key, &chosen);
    }
}

/* Time of an operation on a side's device, cached by its work. */
static bool device_op_at(void *user, const tandem_tensor *node, int side,
                         struct tnd_schedule_time *out)
{
    struct tnd_plan_run *run = user;
    struct tnd_plan_cache *memory = &run->planner->memory;
    struct tnd_plan_cache_key key;
    if (node->op == TANDEM_OP_CONV) {
        return tnd_plan_conv_time(run, node, run->slots[side - 1], out);
    }
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

static int32_t weight_kind_of(const struct tnd_plan_run *run, const tandem_tensor *weight)
{
    int32_t warm = run->is_warm ? TND_WEIGHT_WARM : 0;
    if ((weight->root->flags & TND_TENSOR_CONSTANT) == 0) {
        return TND_WEIGHT_CHANGES + warm;
    }
    int32_t kind = weight->root == weight ? TND_WEIGHT_CONSTANT : TND_WEIGHT_PART_OF_CONSTANT;
    uint32_t refused = run->n_devices > 0 ? tnd_plan_refused(run->planner, weight) : 0;
    int32_t single = run->is_single && refused != 0 ? TND_WEIGHT_SINGLE : 0;
    return warm + kind + single + (int32_t)(refused * TND_WEIGHT_REFUSED);
}

static void key_of_product(const struct tnd_plan_run *run, const tandem_tensor *node, int side,
                           struct tnd_plan_cache_key *out)
{
    struct tnd_problem problem = {
        .n = node->src[0]->ne[1], .k = node->src[0]->ne[0], .m = node->ne[1]};
    bool is_experts = node->op == TANDEM_OP_MUL_MAT_ID;
    if (is_experts) {
        tnd_plan_problem(run->planner, node, &problem);
    }
    memset(out, 0, sizeof(*out)); /* padding takes part in hash and comparison */
    out->n = problem.n;
    out->k = problem.k;
    out->m = problem.m;
    out->type = (int32_t)node->src[0]->type;
    out->threads = run->n_threads;
    out->side = side > 0 ? run->slots[side - 1] : side;
    out->weight = weight_kind_of(run, node->src[0]) + (is_experts ? TND_WEIGHT_EXPERTS : 0);
}

/* Like tnd_plan_choose_product, cached by shape. */
static const struct tnd_place_choice *recall(struct tnd_plan_run *run, const tandem_tensor *node,
                                             int side)
{
    struct tnd_plan_cache *memory = &run->planner->memory;
    struct tnd_plan_cache_key key;
    key_of_product(run, node, side, &key);
    const struct tnd_plan_cache_entry *known = tnd_plan_cache_find(memory, &key);
    if (known == NULL || known->round != memory->round) {
        struct tnd_place_choice chosen;
        tnd_plan_choose_product(run, node, side, known != NULL ? &known->chosen.node : NULL,
                                &chosen);
        known = tnd_plan_cache_put(memory, &key, &chosen);
        run->is_new = true;
    }
    return &known->chosen;
}

/* Notes a type that the table does not cover, to be logged once. */
static void note_rule(struct tnd_plan_run *run, const tandem_tensor *node,
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
    struct tnd_plan_run *run = user;
    *out = *recall(run, node, side);
    bool found = out->node.profile[0] != '\0';
    bool is_forced_elsewhere = false;
    for (int other = 1; side == 0 && !found && other <= run->n_devices; other++) {
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

/* Time of half of the rows or columns with the same choice, cached by shape. */
static double half_at(void *user, const tandem_tensor *node, int side, enum tandem_split split)
{
    struct tnd_plan_run *run = user;
    struct tnd_place_choice choice = *recall(run, node, side);
    if (!(choice.half_us[split] > 0)) {
        struct tnd_plan_cache_key key;
        key_of_product(run, node, side, &key);
        choice.half_us[split] = tnd_plan_half_us(run, node, &choice, split);
        (void)tnd_plan_cache_put(&run->planner->memory, &key, &choice);
    }
    return choice.half_us[split];
}

/* Chooses without placing: `side` is TND_PLACE_ANY, or 0 for host memory. */
static void choose(struct tnd_plan_run *run, const tandem_tensor *node, int side,
                   struct tandem_plan_node *out)
{
    if (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node)) {
        run->is_new = false;
        *out = recall(run, node, side)->node;
        note_rule(run, node, out);
        if (out->profile[0] != '\0') {
            return;
        }
    }
    choose_whole(run, node, out);
}

/* Plans with devices: places all nodes together. */
static enum tandem_status place(struct tnd_plan_run *run, const struct tandem_graph *graph,
                                enum tnd_plan_kind kind, struct tandem_plan *plan,
                                struct tandem_error *error)
{
    const struct tnd_planner *planner = run->planner;
    struct tnd_place_options options = {
        .registry = planner->registry,
        .table = planner->table,
        .graph = graph,
        .n_threads = run->n_threads,
        .n_devices = run->n_devices,
        .forced_products = planner->forced >= 0,
        .forced_side = kind == TND_PLAN_DEVICE ? 1 : 0,
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
    /* With a forced profile whose stages are all on one device, other operations go to that device
     * too. */
    if (planner->forced >= 0 && tnd_plan_node_for_profile(planner->registry, planner->forced,
                                                          TANDEM_TYPE_Q4_0, 1, &forced)) {
        const struct tandem_task_config *init = &forced.stage[TANDEM_STAGE_INIT];
        const struct tandem_task_config *compute = &forced.stage[TANDEM_STAGE_COMPUTE];
        bool whole = init->backend == TANDEM_BACKEND_NONE || init->backend == compute->backend;
        options.forced_side = whole ? tnd_plan_side(run, &forced) : 0;
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

/* Name of an open device without times, to be logged once; NULL: none, or logged before. */
static const char *unmeasured_device(struct tnd_plan_run *run)
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

/* Logs what the table does not cover. Call it without the lock. */
static void tell_rule(const struct tnd_plan_run *run)
{
    char text[TND_PROBLEM_MAX];
    struct tnd_problem problem;
    tnd_problem_of_node(run->report, &problem);
    tnd_problem_print(&problem, text, sizeof(text));
    if (run->is_report_beyond) {
        tnd_log_line(&run->planner->log, TANDEM_LOG_WARN, "tune",
                     "%s: M is more than four times outside of what was measured, the "
                     "rule serves; run mulmat-tune bench --model %" PRId64 "x%" PRId64
                     " --type %s -m %" PRId64,
                     text, problem.n, problem.k, tandem_type_name(problem.type), problem.m);
    } else {
        tnd_log_line(&run->planner->log, TANDEM_LOG_INFO, "tune",
                     "%s: outside the timing table, the rule serves; run mulmat-tune bench", text);
    }
}

/* Hash of everything that the graph's placement depends on; 0: it must be placed anew each time. */
static uint64_t key_of_placed(const struct tnd_plan_run *run, const struct tandem_graph *graph,
                              enum tnd_plan_kind kind)
{
    const struct tnd_planner *planner = run->planner;
    uint64_t words[3 + TND_MAX_SLOTS / 8] = {(uint64_t)kind, (uint64_t)run->n_threads,
                                             (uint64_t)run->n_devices};
    uint64_t refused = 0;
    memcpy(&words[3], run->slots, (size_t)run->n_devices);
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        if (node->op == TANDEM_OP_MUL_MAT) {
            refused = refused * 31 + tnd_plan_refused(planner, node->src[0]);
        }
    }
    return tnd_plan_known_key(graph, tnd_hash_words(words, sizeof(words)) ^ refused);
}

/* Places all nodes, or copies the known plan of an equal graph. May replace *io_plan. */
static enum tandem_status place_known(struct tnd_plan_run *run, const struct tandem_graph *graph,
                                      enum tnd_plan_kind kind, struct tandem_plan **io_plan,
                                      struct tandem_error *error)
{
    struct tnd_plan_known *known = &run->planner->known;
    const uint64_t key = key_of_placed(run, graph, kind);
    struct tandem_plan *before = key != 0 ? tnd_plan_known_copy(known, key, graph->n_nodes) : NULL;
    if (before != NULL) {
        tandem_plan_free(*io_plan);
        *io_plan = before;
        return TANDEM_OK;
    }
    TND_TRY(place(run, graph, kind, *io_plan, error));
    if (key != 0) {
        tnd_plan_known_keep(known, key, *io_plan);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_planner_plan_kind(struct tnd_planner *planner,
                                         const struct tandem_graph *graph, int n_threads,
                                         enum tnd_plan_kind kind, struct tandem_plan **out_plan,
                                         struct tandem_error *error)
{
    uint64_t begin_ns = planner->clock->now_ns(planner->clock);
    struct tandem_plan *plan;
    TND_TRY(tandem_plan_new(graph->n_nodes, &plan, error));
    struct tnd_plan_run run = {
        .planner = planner, .n_threads = n_threads, .is_single = kind != TND_PLAN_BEST};
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&planner->lock);
    run.n_threads = limit_of(planner, n_threads);
    run.is_warm = planner->has_warm && tnd_graph_stays_in(graph, planner->cache_bytes);
    run.handoff_us = tnd_estimate_handoff(planner->table, run.n_threads);
    run.n_devices = tnd_place_devices(planner->registry, run.slots);
    const char *idle = unmeasured_device(&run);
    if (run.n_devices > 0 && kind != TND_PLAN_HOST &&
        (planner->table != NULL || planner->forced >= 0)) {
        status = place_known(&run, graph, kind, &plan, error);
    } else {
        int side = kind == TND_PLAN_HOST && planner->forced < 0 ? 0 : TND_PLACE_ANY;
        for (int i = 0; i < graph->n_nodes; i++) {
            choose(&run, graph->nodes[i], side, &plan->nodes[i]);
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
    return tnd_planner_plan_kind(planner, graph, n_threads, TND_PLAN_BEST, out_plan, error);
}
