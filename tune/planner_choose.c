/* SPDX-License-Identifier: MIT
 * Chooses for one node: by a forced profile, by the table, by the rule. */
#include <string.h>

#include "base/cpu.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/candidates.h"
#include "tune/conv_choice.h"
#include "tune/experts.h"
#include "tune/op_cost.h"
#include "tune/placement.h"
#include "tune/planner_internal.h"
#include "tune/profiles.h"
#include "tune/rule.h"
#include "tune/stream_cost.h"

/* Time of a product planned by the rule: so long that a candidate with times is preferred. */
#define BY_RULE_US 1e9

uint32_t tnd_plan_refused(const struct tnd_planner *planner, const tandem_tensor *weight)
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

/* Idle workers sleep during stages that take longer than waking them: all workers while a device or
 * one thread works, the rest while fewer threads work. */
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

/* Whether the table has a time of the CPU's own profile. Without one (removed as wrong, or never
 * measured) any other profile in the table would win unopposed. */
static bool knows_cpu(const struct tandem_table *table, const struct tnd_candidate *candidates,
                      int n_candidates, const struct tnd_problem *problem, int n_threads)
{
    struct tnd_prediction prediction;
    int candidate = 0;
    while (candidate < n_candidates && strcmp(candidates[candidate].profile.name, "cpu") != 0) {
        candidate++;
    }
    bool found = candidate == n_candidates; /* the CPU does not support the product */
    for (int t = 1; t <= n_threads && !found; t = tnd_next_thread_count(table, t, n_threads)) {
        found = tnd_predict(table, candidates, candidate, problem, t, NULL, &prediction);
        if (t == n_threads) {
            break;
        }
    }
    return found;
}

/* The choice made with an earlier table, as the present one predicts it. */
struct incumbent {
    const struct tandem_plan_node *node; /* NULL: none */
    const struct tnd_candidate *candidates;
    struct tnd_prediction prediction; /* candidate -1: the present table has no times of it */
    bool met_cpu;                     /* the table has a time for the CPU's own profile */
};

static void meet_incumbent(void *user, const struct tnd_prediction *prediction)
{
    struct incumbent *incumbent = user;
    const struct tnd_candidate *candidate = &incumbent->candidates[prediction->candidate];
    incumbent->met_cpu = incumbent->met_cpu || strcmp(candidate->profile.name, "cpu") == 0;
    if (incumbent->node != NULL && prediction->threads == incumbent->node->n_threads &&
        !candidate->is_excluded && !tnd_is_beyond(&prediction->total) &&
        strcmp(candidate->profile.name, incumbent->node->profile) == 0) {
        incumbent->prediction = *prediction;
    }
}

static bool choose_by_table(struct tnd_plan_run *run, const tandem_tensor *node,
                            const struct tnd_problem *problem,
                            const struct tnd_neighbours *neighbours,
                            const struct tandem_plan_node *before, struct tnd_place_choice *out)
{
    const struct tnd_planner *planner = run->planner;
    int n_threads = run->n_threads;
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    struct tnd_choice choice;
    bool was_chosen = before != NULL && before->reason == TANDEM_REASON_TABLE;
    struct incumbent incumbent = {was_chosen ? before : NULL, candidates, {.candidate = -1}, false};
    int n_candidates = planner->candidates(planner->registry, planner->table, node, problem->type,
                                           planner->error_bound, candidates);
    n_candidates = tnd_stream_filter(
        candidates, n_candidates, tnd_plan_refused(planner, node->src[0]),
        !run->is_single && (node->src[0]->root->flags & TND_TENSOR_CONSTANT) != 0);
    tnd_choose(planner->table, candidates, n_candidates, problem, n_threads, neighbours,
               meet_incumbent, &incumbent, &choice);
    run->is_beyond = choice.best.candidate < 0 && choice.is_beyond;
    if (choice.best.candidate < 0 ||
        (!incumbent.met_cpu &&
         !knows_cpu(planner->table, candidates, n_candidates, problem, n_threads))) {
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

int tnd_plan_side(const struct tnd_plan_run *run, const struct tandem_plan_node *node)
{
    for (int side = 1; side <= run->n_devices; side++) {
        if (node->stage[TANDEM_STAGE_COMPUTE].backend == run->slots[side - 1]) {
            return side;
        }
    }
    return 0;
}

/* Whether a profile of the rule is allowed by what is known of its errors. */
static bool is_right(const struct tnd_planner *planner, const char *profile, enum tandem_type type)
{
    const enum tnd_verdict verdict =
        planner->table != NULL
            ? tnd_table_check(planner->table, profile, type, planner->error_bound, NULL)
            : TND_VERDICT_UNKNOWN;
    const bool needs_check = planner->error_bound > 0 && tnd_rule_rounds(profile);
    return verdict != TND_VERDICT_WRONG && (verdict != TND_VERDICT_UNKNOWN || !needs_check);
}

/* Chooses by the rule, which uses no devices. If another profile is forced, unpacked rows are used,
 * since the caller wants no copies. */
static void choose_by_rule(const struct tnd_planner *planner, const tandem_tensor *node,
                           const struct tnd_problem *problem, int threads,
                           struct tandem_plan_node *out)
{
    const char *name;
    bool found = false;
    for (int i = 0;
         planner->forced < 0 && !found && (name = tnd_rule_profile(tnd_cpu_id(), i)) != NULL; i++) {
        int profile = tnd_profile_find(planner->registry, name);
        found =
            profile >= 0 && is_right(planner, name, problem->type) &&
            choose_profile(planner, profile, node, problem->type, threads, TANDEM_REASON_RULE, out);
    }
    if (!found) {
        (void)choose_profile(planner, 0, node, problem->type, threads, TANDEM_REASON_RULE, out);
    }
}

void tnd_plan_problem(const struct tnd_planner *planner, const tandem_tensor *node,
                      struct tnd_problem *out)
{
    if (node->op == TANDEM_OP_MUL_MAT_ID) {
        tnd_experts_problem(node, tnd_placement_use(planner->placement, node->src[0]->root->data),
                            out);
    } else {
        tnd_problem_of_node(node, out);
    }
}

void tnd_plan_choose_product(struct tnd_plan_run *run, const tandem_tensor *node, int side,
                             const struct tandem_plan_node *before, struct tnd_place_choice *out)
{
    struct tnd_planner *planner = run->planner;
    struct tnd_problem problem;
    struct tnd_neighbours neighbours = {.is_on_side = side != TND_PLACE_ANY,
                                        .side = "",
                                        .neighbour_threads = run->n_threads,
                                        .is_warm = run->is_warm};
    tnd_plan_problem(planner, node, &problem);
    int rule_threads = tnd_rule_threads(node, run->n_threads, run->handoff_us);
    memset(out, 0, sizeof(*out));
    if (side > 0) {
        neighbours.side = tnd_registry_name(planner->registry, run->slots[side - 1]);
    }
    if (planner->forced >= 0 && choose_profile(planner, planner->forced, node, problem.type,
                                               rule_threads, TANDEM_REASON_FORCED, &out->node)) {
        if (side != TND_PLACE_ANY && tnd_plan_side(run, &out->node) != side) {
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

bool tnd_plan_conv_time(const struct tnd_plan_run *run, const tandem_tensor *node, int slot,
                        struct tnd_schedule_time *out)
{
    const struct tandem_table *table = run->planner->table;
    struct tnd_conv_shape shape;
    struct tnd_conv_estimate time;
    if (table == NULL || table->n_convolutions == 0 || !tnd_conv_node_shape(node, &shape)) {
        return false;
    }
    if (slot == TANDEM_BACKEND_CPU) {
        tnd_conv_estimate(table, &shape, TND_CONV_DIRECT, run->n_threads, &time);
    } else {
        tnd_conv_device_estimate(table, &shape, TND_CONV_DIRECT,
                                 tnd_registry_name(run->planner->registry, slot), &time);
    }
    *out = (struct tnd_schedule_time){(float)time.us, (float)time.error_us};
    return time.us >= 0;
}

void tnd_plan_choose_threads(const struct tnd_plan_run *run, const tandem_tensor *node,
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
        struct tnd_schedule_time time;
        if (run->n_devices > 0 && tnd_plan_conv_time(run, node, TANDEM_BACKEND_CPU, &time)) {
            out->predicted_us[TANDEM_STAGE_COMPUTE] = time.us;
        }
    }
    out->n_threads = threads;
    out->stage[TANDEM_STAGE_COMPUTE].parallel = threads > 1;
}

/* Describes a profile as in the table, or else as in the registry; false: unknown. */
static bool profile_of(const struct tnd_planner *planner, const char *name, enum tandem_type type,
                       struct tnd_table_profile *out)
{
    const struct tnd_table_profile *measured = tnd_table_profile(planner->table, name);
    if ((measured == NULL || planner->table->version != 1) &&
        tnd_profile_describe_name(planner->registry, name, type, out)) {
        return true;
    }
    if (measured != NULL) {
        *out = *measured;
    }
    return measured != NULL;
}

double tnd_plan_half_us(const struct tnd_plan_run *run, const tandem_tensor *node,
                        const struct tnd_place_choice *choice, enum tandem_split split)
{
    const struct tnd_planner *planner = run->planner;
    struct tnd_candidate candidate;
    struct tnd_prediction half;
    struct tnd_problem problem;
    struct tnd_neighbours neighbours = {.is_on_side = true,
                                        .side = "",
                                        .neighbour_threads = run->n_threads,
                                        .is_warm = run->is_warm};
    int side = tnd_plan_side(run, &choice->node);
    memset(&candidate, 0, sizeof(candidate));
    tnd_plan_problem(planner, node, &problem);
    problem.n /= split == TANDEM_SPLIT_ROWS ? 2 : 1;
    problem.k /= split == TANDEM_SPLIT_ROWS ? 1 : 2;
    if (side > 0) {
        neighbours.side = tnd_registry_name(planner->registry, run->slots[side - 1]);
    }
    bool is_known = choice->node.reason == TANDEM_REASON_TABLE &&
                    profile_of(planner, choice->node.profile, problem.type, &candidate.profile) &&
                    tnd_predict(planner->table, &candidate, 0, &problem, choice->node.n_threads,
                                &neighbours, &half);
    return is_known ? half.cautious_us : choice->us / 2;
}
