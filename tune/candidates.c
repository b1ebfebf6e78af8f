/* SPDX-License-Identifier: MIT
 * One list of candidates and one comparison. */
#include "tune/candidates.h"

#include <math.h>
#include <string.h>

#include "tune/profiles.h"
#include "tune/policy.h"

/* The profile as the table measured it: tables of version 1 bring their own stages, which differ
 * from ours in what ran in parallel. */
static const struct tnd_table_profile *as_measured(const struct tandem_table *table,
                                                   const struct tnd_table_profile *described)
{
    const struct tnd_table_profile *own =
        table != NULL && table->version == 1 ? tnd_table_profile(table, described->name) : NULL;
    return own != NULL ? own : described;
}

bool tnd_node_is_supported(const struct tnd_registry *registry, const struct tandem_plan_node *way,
                           const tandem_tensor *node)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &way->stage[s];
        if (tnd_registry_backend(registry, config->backend) != NULL &&
            tnd_registry_supports(registry, config->backend, node, (enum tandem_task)config->task,
                                  NULL) != TANDEM_OK) {
            return false;
        }
    }
    return true;
}

static void look_up_check(const struct tandem_table *table, enum tandem_type type, double bound,
                          struct tnd_way *way)
{
    way->verdict = TND_VERDICT_UNKNOWN;
    if (table != NULL) {
        way->verdict = tnd_table_check(table, way->profile.name, type, bound, &way->nmse);
    }
    way->is_barred =
        way->verdict == TND_VERDICT_WRONG || (way->verdict == TND_VERDICT_UNKNOWN && bound > 0);
}

/* F32 weights need no INIT, so that ways which differ in who dequantises are one. */
static bool is_among(const struct tnd_way *ways, int n, const struct tnd_table_profile *profile)
{
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        found = tnd_profile_is_same(&ways[i].profile, profile);
    }
    return found;
}

int tnd_ways_here(const struct tnd_registry *registry, const struct tandem_table *table,
                  const tandem_tensor *node, enum tandem_type type, double error_bound,
                  struct tnd_way *out)
{
    int n = 0;
    for (int i = 0; i < tnd_profile_count() && n < TND_TABLE_MAX_PROFILES; i++) {
        struct tnd_way way;
        memset(&way, 0, sizeof(way));
        if (!tnd_profile_describe(i, type, &way.profile) ||
            !tnd_profile_resolve(&way.profile, registry, way.node.stage, NULL, 0) ||
            (node != NULL && !tnd_node_is_supported(registry, &way.node, node))) {
            continue;
        }
        memcpy(way.node.profile, way.profile.name, sizeof(way.node.profile));
        way.profile = *as_measured(table, &way.profile);
        if (is_among(out, n, &way.profile)) {
            continue;
        }
        way.node.n_threads = 1;
        look_up_check(table, type, error_bound, &way);
        out[n++] = way;
    }
    return n;
}

int tnd_ways_of_table(const struct tandem_table *table, enum tandem_type type, double error_bound,
                      struct tnd_way *out)
{
    int n = 0;
    for (int i = 0; i < table->n_profiles; i++) {
        struct tnd_way way;
        memset(&way, 0, sizeof(way));
        way.profile = table->profiles[i];
        /* A table of version 2 names the stages for one type; ours know each. */
        int ours = table->version == 1 ? -1 : tnd_profile_find(way.profile.name);
        if ((ours >= 0 && !tnd_profile_describe(ours, type, &way.profile)) ||
            is_among(out, n, &way.profile)) {
            continue;
        }
        look_up_check(table, type, error_bound, &way);
        out[n++] = way;
    }
    return n;
}

int tnd_next_thread_count(const struct tandem_table *table, int threads, int limit)
{
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
    return estimate->us + TND_CAUTION * estimate->error_us + (noisy ? estimate->spread_us : 0);
}

bool tnd_predict(const struct tandem_table *table, const struct tnd_way *ways, int way,
                 const struct tnd_problem *problem, int threads,
                 const struct tnd_neighbours *neighbours, struct tnd_candidate *out)
{
    const struct tnd_table_profile *profile = &ways[way].profile;
    struct tnd_moves *moves = &out->moves;
    bool at_home = neighbours != NULL && neighbours->at_home;
    out->way = way;
    out->threads = threads;
    if (table == NULL ||
        !tnd_estimate_moves(table, profile, problem->n, problem->k, problem->m, moves) ||
        (at_home && strcmp(moves->home, neighbours->home) != 0)) {
        return false;
    }
    if (!tnd_estimate_stages(table, profile, problem->type, problem->n, problem->k, problem->m,
                             threads, neighbours != NULL && neighbours->is_warm, out->stage,
                             &out->total)) {
        return false;
    }
    out->moving = moves->inside;
    if (!at_home) {
        out->moving.us += moves->x.us + moves->y.us;
        out->moving.error_us += moves->x.error_us + moves->y.error_us;
        if (neighbours != NULL && moves->home[0] != '\0' && tnd_profile_leaves_sleepers(profile)) {
            out->moving.us += tnd_estimate_wake(table, neighbours->crew);
        }
    }
    out->total.us += out->moving.us;
    out->total.error_us += out->moving.error_us;
    out->cautious_us = tnd_cautious_us(&out->total, out->total.noisy);
    if (uses_threads(profile)) {
        out->cautious_us += tnd_estimate_sharing(table, threads);
    }
    return true;
}

static bool is_better(const struct tnd_candidate *a, const struct tnd_candidate *b)
{
    return b->way < 0 || a->cautious_us < b->cautious_us;
}

bool tnd_lead_is_clear(const struct tnd_estimate *challenger, const struct tnd_estimate *incumbent)
{
    double noise_us =
        TND_CLEAR_SIGMAS * TND_MAD_TO_SIGMA * hypot(challenger->error_us, incumbent->error_us);
    return incumbent->us - challenger->us > fmax(noise_us, TND_CLEAR_LEAD * incumbent->us);
}

void tnd_choose(const struct tandem_table *table, const struct tnd_way *ways, int n_ways,
                const struct tnd_problem *problem, int n_threads,
                const struct tnd_neighbours *neighbours,
                void (*visit)(void *user, const struct tnd_candidate *candidate), void *user,
                struct tnd_choice *out)
{
    const struct tnd_neighbours among_hosts = {.crew = n_threads};
    neighbours = neighbours != NULL ? neighbours : &among_hosts;
    struct tnd_choice choice = {.best = {.way = -1, .cautious_us = INFINITY},
                                .second = {.way = -1, .cautious_us = INFINITY}};
    for (int w = 0; w < n_ways; w++) {
        struct tnd_candidate own = {.way = -1};
        for (int threads = 1;; threads = tnd_next_thread_count(table, threads, n_threads)) {
            struct tnd_candidate one;
            if (tnd_predict(table, ways, w, problem, threads, neighbours, &one)) {
                if (visit != NULL) {
                    visit(user, &one);
                }
                if (is_better(&one, &own)) {
                    own = one;
                }
            }
            if (threads >= n_threads || !uses_threads(&ways[w].profile)) {
                break;
            }
        }
        if (own.way < 0 || ways[w].is_barred) {
            continue;
        }
        if (is_better(&own, &choice.best)) {
            choice.second = choice.best;
            choice.best = own;
        } else if (is_better(&own, &choice.second)) {
            choice.second = own;
        }
    }
    *out = choice;
}
