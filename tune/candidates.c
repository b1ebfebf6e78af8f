/* SPDX-License-Identifier: MIT
 * Lists candidates, predicts them, and chooses among them. */
#include "tune/candidates.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "backends/task.h"
#include "tune/objective.h"
#include "tune/profiles.h"
#include "tune/policy.h"
#include "tune/rule.h"
#include "tune/stream_cost.h"

/* The profile as the table describes it: in tables of version 1 different stages may have run in
 * parallel than in ours. */
static const struct tnd_table_profile *as_measured(const struct tandem_table *table,
                                                   const struct tnd_table_profile *described)
{
    const struct tnd_table_profile *own =
        table != NULL && table->version == 1 ? tnd_table_profile(table, described->name) : NULL;
    return own != NULL ? own : described;
}

bool tnd_node_is_supported(const struct tnd_registry *registry,
                           const struct tandem_plan_node *candidate, const tandem_tensor *node)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &candidate->stage[s];
        const tandem_backend *backend = tnd_registry_backend(registry, config->backend);
        bool is_asked = backend != NULL && !tnd_task_is(config->task, TND_TASK_FETCHES);
        if (is_asked && tnd_registry_supports(registry, config->backend, node,
                                              (enum tandem_task)config->task, NULL) != TANDEM_OK) {
            return false;
        }
    }
    return true;
}

static void find_check(const struct tandem_table *table, enum tandem_type type, double bound,
                       struct tnd_candidate *candidate)
{
    TND_ASSERT(candidate != NULL);
    candidate->verdict = TND_VERDICT_UNKNOWN;
    if (table != NULL) {
        candidate->verdict =
            tnd_table_check(table, candidate->profile.name, type, bound, &candidate->nmse);
    }
    candidate->is_excluded = candidate->verdict == TND_VERDICT_WRONG ||
                             (candidate->verdict == TND_VERDICT_UNKNOWN && bound > 0);
}

/* Whether an equal candidate is already listed. F32 weights need no INIT, so profiles that differ
 * only in the backend that dequantises are equal. */
static bool is_among(const struct tnd_candidate *candidates, int n,
                     const struct tnd_table_profile *profile)
{
    TND_ASSERT(n >= 0 && n <= TND_TABLE_MAX_PROFILES);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        found = tnd_profile_is_same(&candidates[i].profile, profile);
    }
    return found;
}

int tnd_candidates_here(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out)
{
    int n = 0;
    for (int i = 0; i < tnd_profile_count(registry) && n < TND_TABLE_MAX_PROFILES; i++) {
        struct tnd_candidate candidate;
        memset(&candidate, 0, sizeof(candidate));
        if (!tnd_profile_describe(registry, i, type, &candidate.profile) ||
            !tnd_profile_resolve(&candidate.profile, registry, candidate.node.stage, NULL, 0) ||
            (node != NULL && !tnd_node_is_supported(registry, &candidate.node, node))) {
            continue;
        }
        memcpy(candidate.node.profile, candidate.profile.name, sizeof(candidate.node.profile));
        candidate.profile = *as_measured(table, &candidate.profile);
        if (is_among(out, n, &candidate.profile)) {
            continue;
        }
        candidate.node.n_threads = 1;
        find_check(table, type, error_bound, &candidate);
        out[n++] = candidate;
    }
    return n;
}

int tnd_candidates_of_table(const struct tandem_table *table, enum tandem_type type,
                            double error_bound, struct tnd_candidate *out)
{
    int n = 0;
    for (int i = 0; i < table->n_profiles; i++) {
        struct tnd_candidate candidate;
        memset(&candidate, 0, sizeof(candidate));
        candidate.profile = table->profiles[i];
        /* A table of version 2 describes a profile's stages for one type; the registry knows them
         * for each. */
        const char *name = table->profiles[i].name;
        bool is_ours = table->version != 1 && tnd_profile_is_known(NULL, name);
        if ((is_ours && !tnd_profile_describe_name(NULL, name, type, &candidate.profile)) ||
            is_among(out, n, &candidate.profile)) {
            continue;
        }
        find_check(table, type, error_bound, &candidate);
        out[n++] = candidate;
    }
    return tnd_stream_twins(table, out, n);
}

int tnd_next_thread_count(const struct tandem_table *table, int threads, int limit)
{
    TND_ASSERT(threads >= 1 && limit >= threads);
    int next = 2 * threads;
    for (int i = 0; table != NULL && i < table->n_handoffs; i++) {
        int measured = table->handoffs[i].threads;
        next = measured > threads && measured < next ? measured : next;
    }
    return next < limit ? next : limit;
}

/* Whether the number of threads makes a difference. */
static bool uses_threads(const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] != '\0' && (stage->parallel || stage->own_threads)) {
            return true;
        }
    }
    return false;
}

double tnd_cautious_us(const struct tnd_estimate *estimate, bool noisy)
{
    TND_ASSERT(estimate->error_us >= 0 && estimate->spread_us >= 0);
    double caution_us = fmax(TND_CAUTION * estimate->error_us,
                             estimate->above_us + TND_CAUTION * estimate->noise_us);
    return estimate->us + caution_us + (noisy ? estimate->spread_us : 0);
}

/* Weighs a prediction by the objective, if that is not time alone. */
static void weigh(const struct tandem_table *table, const struct tnd_table_profile *profile,
                  const struct tnd_problem *problem, struct tnd_prediction *out)
{
    double stage_us[TANDEM_STAGES];
    double rest_us = out->total.us;
    out->joules = 0;
    out->weight = 1;
    if (table->objective == TANDEM_OBJECTIVE_TIME) {
        return;
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        stage_us[s] = out->stage[s].us;
        rest_us -= stage_us[s];
    }
    out->joules = tnd_estimate_joules(table, profile, problem->type, problem->n, problem->k,
                                      problem->m, out->threads, stage_us, fmax(rest_us, 0));
    out->weight = tnd_objective_weight(table, out->joules, out->total.us);
    out->cautious_us *= out->weight;
}

bool tnd_predict(const struct tandem_table *table, const struct tnd_candidate *candidates,
                 int candidate, const struct tnd_problem *problem, int threads,
                 const struct tnd_neighbours *neighbours, struct tnd_prediction *out)
{
    TND_ASSERT(candidate >= 0 && threads >= 1);
    const struct tnd_table_profile *profile = &candidates[candidate].profile;
    struct tnd_moves *moves = &out->moves;
    bool is_on_side = neighbours != NULL && neighbours->is_on_side;
    out->candidate = candidate;
    out->threads = threads;
    if (table == NULL ||
        !tnd_estimate_moves(table, profile, problem->n, problem->k, problem->m, moves) ||
        (is_on_side && strcmp(moves->device, neighbours->side) != 0)) {
        return false;
    }
    if (!tnd_estimate_stages(table, profile, problem->type, problem->n, problem->k, problem->m,
                             threads, neighbours != NULL && neighbours->is_warm, out->stage,
                             &out->total)) {
        return false;
    }
    tnd_stream_add(table, profile, problem->type, problem->n, problem->k, !is_on_side,
                   &out->stage[TANDEM_STAGE_COMPUTE], &out->total);
    out->moving = moves->inside;
    if (!is_on_side) { /* X counts as moving; FINALIZE downloads Y */
        struct tnd_estimate *finalize = &out->stage[TANDEM_STAGE_FINALIZE];
        finalize->us += moves->y.us;
        finalize->error_us += moves->y.error_us;
        out->total.us += moves->y.us;
        out->total.error_us += moves->y.error_us;
        out->moving.us += moves->x.us;
        out->moving.error_us += moves->x.error_us;
        if (neighbours != NULL && moves->device[0] != '\0' &&
            tnd_profile_leaves_sleepers(profile)) {
            out->moving.us += tnd_estimate_wake(table, neighbours->neighbour_threads);
        }
    }
    out->total.us += out->moving.us;
    out->total.error_us += out->moving.error_us;
    out->sharing_us = uses_threads(profile) ? tnd_estimate_sharing(table, threads) : 0;
    out->cautious_us = tnd_cautious_us(&out->total, out->total.noisy) + out->sharing_us;
    weigh(table, profile, problem, out);
    return true;
}

bool tnd_is_beyond(const struct tnd_estimate *estimate)
{
    return estimate->outside > TND_BEYOND_LOG2 + 1e-9;
}

static bool is_better(const struct tnd_prediction *a, const struct tnd_prediction *b)
{
    return b->candidate < 0 || a->cautious_us < b->cautious_us;
}

bool tnd_lead_is_clear(const struct tnd_estimate *challenger, const struct tnd_estimate *incumbent)
{
    double noise_us = TND_CLEAR_SIGMAS * hypot(challenger->error_us, incumbent->error_us);
    return incumbent->us - challenger->us > fmax(noise_us, TND_CLEAR_LEAD * incumbent->us);
}

bool tnd_prediction_leads(const struct tnd_prediction *challenger,
                          const struct tnd_prediction *incumbent)
{
    struct tnd_estimate a = challenger->total;
    struct tnd_estimate b = incumbent->total;
    a.us *= challenger->weight;
    a.error_us *= challenger->weight;
    b.us *= incumbent->weight;
    b.error_us *= incumbent->weight;
    return tnd_lead_is_clear(&a, &b);
}

/* The part of the error bar that is not noise of samples: interpolation, scaling of shapes, ranges.
 * The same kernels run in both candidates, so most of it affects both equally. */
static double model_error_us(const struct tnd_prediction *prediction)
{
    return prediction->weight * fmax(prediction->total.error_us - prediction->total.noise_us, 0.0);
}

/* Whether the table does not show clearly that `best` is faster than the rule's choice: then the
 * rule, which rests on many machines, decides. */
static bool is_tie(const struct tnd_prediction *rule, const struct tnd_prediction *best)
{
    const double rule_us = rule->weight * rule->total.us;
    const double lead_us = rule_us - best->weight * best->total.us;
    const double noise_us =
        hypot(rule->weight * rule->total.noise_us, best->weight * best->total.noise_us);
    const double model_us = TND_RULE_BARS * (model_error_us(rule) + model_error_us(best));
    return lead_us <= fmax(hypot(TND_CLEAR_SIGMAS * noise_us, model_us), TND_RULE_LEAD * rule_us);
}

/* Whether the table has any time of the profile. */
static bool is_measured(const struct tandem_table *table, const struct tnd_table_profile *profile)
{
    const struct tnd_table_stage *compute = &profile->stage[TANDEM_STAGE_COMPUTE];
    for (int i = 0; table != NULL && i < table->n_curves; i++) {
        const struct tnd_curve_key *key = &table->curves[i].key;
        if (key->task == compute->task && strcmp(key->backend, compute->backend) == 0) {
            return true;
        }
    }
    return false;
}

static void prefer_the_rule(const struct tnd_prediction *first, bool is_unknown,
                            struct tnd_choice *io_choice)
{
    const struct tnd_prediction *best = &io_choice->best;
    if (first->candidate < 0 && is_unknown && best->candidate >= 0 &&
        best->moves.device[0] == '\0') { /* no lead can be shown over a candidate of unknown time */
        io_choice->best.candidate = io_choice->second.candidate = -1;
        return;
    }
    if (first->candidate >= 0 && best->candidate != first->candidate && is_tie(first, best)) {
        io_choice->second = *best;
        io_choice->best = *first;
    }
}

/* Prefers the rule's thread count for the winning candidate, if it was measured. The cost of
 * sharing is left out: it is not part of this product's time, and a hand-off between virtual cores
 * is measured up to five times too long. */
static void prefer_threads_of_rule(const struct tandem_table *table,
                                   const struct tnd_candidate *candidates,
                                   const struct tnd_problem *problem, int n_threads,
                                   const struct tnd_neighbours *neighbours,
                                   struct tnd_choice *io_choice)
{
    struct tnd_prediction *best = &io_choice->best;
    struct tnd_prediction rule;
    int n_cores = table != NULL && table->has_fingerprint ? (int)table->fingerprint.n_cores : 0;
    int threads = tnd_rule_problem_threads(problem, n_threads, n_cores,
                                           tnd_estimate_handoff(table, n_threads));
    if (best->candidate >= 0 && best->threads != threads &&
        uses_threads(&candidates[best->candidate].profile) &&
        tnd_predict(table, candidates, best->candidate, problem, threads, neighbours, &rule) &&
        !tnd_is_beyond(&rule.total) && rule.total.above_us <= 0 && is_tie(&rule, best)) {
        *best = rule;
    }
}

void tnd_choose(const struct tandem_table *table, const struct tnd_candidate *candidates,
                int n_candidates, const struct tnd_problem *problem, int n_threads,
                const struct tnd_neighbours *neighbours,
                void (*each)(void *user, const struct tnd_prediction *prediction), void *user,
                struct tnd_choice *out)
{
    TND_ASSERT(n_threads >= 1 && n_candidates <= TND_TABLE_MAX_PROFILES);
    const struct tnd_neighbours among_hosts = {.neighbour_threads = n_threads};
    neighbours = neighbours != NULL ? neighbours : &among_hosts;
    struct tnd_choice choice = {.best = {.candidate = -1, .cautious_us = INFINITY},
                                .second = {.candidate = -1, .cautious_us = INFINITY}};
    struct tnd_prediction first_of_rule = {.candidate = -1};
    bool is_unknown = false; /* a profile of the rule was measured, but has no prediction here */
    const char *cpu_id = table != NULL && table->has_fingerprint ? table->fingerprint.cpu_id : "";
    int first_rank = INT_MAX;
    for (int w = 0; w < n_candidates; w++) {
        struct tnd_prediction own = {.candidate = -1};
        for (int threads = 1;; threads = tnd_next_thread_count(table, threads, n_threads)) {
            struct tnd_prediction one;
            if (tnd_predict(table, candidates, w, problem, threads, neighbours, &one)) {
                if (each != NULL) {
                    each(user, &one);
                }
                if (is_better(&one, &own)) {
                    own = one;
                }
            }
            if (threads >= n_threads || !uses_threads(&candidates[w].profile)) {
                break;
            }
        }
        bool is_beyond = own.candidate >= 0 && tnd_is_beyond(&own.total);
        const int rank = tnd_rule_rank(cpu_id, candidates[w].profile.name);
        is_unknown |= rank < INT_MAX && own.candidate < 0 && !candidates[w].is_excluded &&
                      is_measured(table, &candidates[w].profile);
        if (own.candidate < 0 || candidates[w].is_excluded || is_beyond) {
            choice.is_beyond = choice.is_beyond || is_beyond;
            continue;
        }
        if (rank < first_rank) {
            first_rank = rank;
            first_of_rule = own;
        }
        if (is_better(&own, &choice.best)) {
            choice.second = choice.best;
            choice.best = own;
        } else if (is_better(&own, &choice.second)) {
            choice.second = own;
        }
    }
    prefer_the_rule(&first_of_rule, is_unknown, &choice);
    prefer_threads_of_rule(table, candidates, problem, n_threads, neighbours, &choice);
    *out = choice;
}
