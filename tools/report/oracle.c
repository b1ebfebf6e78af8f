/* SPDX-License-Identifier: MIT
 * Measures how much the planner's choice costs over the best choice. */
#include "tools/report/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/candidates.h"
#include "tune/profiles.h"
#include "tune/policy.h"

enum { MAX_ROUNDS = 64 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int n)
{
    TND_ASSERT(n > 0);
    qsort(values, (size_t)n, sizeof(values[0]), compare_doubles);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The planner's choice for the problem, for a graph of one node, as any program would ask for
 * it. */
static enum tandem_status ask_planner(const struct tnd_oracle_options *options,
                                      const struct tnd_problem *problem, int n_threads,
                                      struct tandem_plan_node *out, struct tandem_error *error)
{
    tandem_context *context;
    TND_TRY(tandem_context_new(NULL, &context, error));
    const int64_t w_ne[2] = {problem->k, problem->n};
    const int64_t x_ne[2] = {problem->k, problem->m};
    static char nothing; /* weights are never read while planning */
    tandem_tensor *w = tandem_tensor_borrow(context, problem->type, 2, w_ne, &nothing, SIZE_MAX);
    tandem_tensor *x = tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, x_ne, &nothing, SIZE_MAX);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    enum tandem_status status = tandem_graph_finish(graph, error);
    tandem_plan *plan = NULL;
    if (status == TANDEM_OK) {
        status = tnd_planner_plan(options->planner, graph, n_threads, &plan, error);
    }
    if (status == TANDEM_OK) {
        *out = *tandem_plan_node(plan, 0);
    }
    tandem_plan_free(plan);
    tandem_context_free(context);
    return status;
}

/* Lists every open profile at the thread counts that the planner considers. */
static int list_candidates(const struct tnd_oracle_options *options, enum tandem_type type,
                           int n_threads, struct tandem_plan_node *out)
{
    int n = 0;
    for (int p = 0; p < tnd_profile_count(options->measure.registry); p++) {
        for (int threads = 1; n < TND_ORACLE_MAX_CANDIDATES;) {
            /* Streaming weights is only for devices without room for them. */
            if (tnd_plan_node_for_profile(options->measure.registry, p, type, threads, &out[n]) &&
                !tnd_task_is(out[n].stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W)) {
                n++;
            }
            if (threads >= n_threads) {
                break;
            }
            threads = tnd_next_thread_count(options->table, threads, n_threads);
        }
    }
    return n;
}

/* State while one problem is measured. */
struct trial {
    const struct tnd_oracle_options *options;
    struct tnd_measure *measure;
    int64_t m;
    int n_candidates;
    int chosen; /* index of the plan's candidate; -1: not among them */
    struct tandem_plan_node candidates[TND_ORACLE_MAX_CANDIDATES];
};

static enum tandem_status time_candidate(const struct trial *trial, int candidate, int64_t m,
                                         double budget_s, bool is_warm, double *out_us,
                                         struct tandem_error *error)
{
    TND_ASSERT(candidate >= 0 && candidate < trial->n_candidates);
    struct tnd_measure_effort effort = {.budget_s = budget_s, .min_repeats = 1, .is_warm = is_warm};
    struct tnd_measure_result result;
    TND_TRY(
        tnd_measure_run(trial->measure, m, &trial->candidates[candidate], &effort, &result, error));
    *out_us = result.total.median_us;
    return TANDEM_OK;
}

/* Drops candidates that are far behind on fewer tokens: the slowest ones would take most of a
 * cell's time. Never drops the choice. */
static enum tandem_status leave_out_hopeless(struct trial *trial, struct tandem_error *error)
{
    double times[TND_ORACLE_MAX_CANDIDATES];
    double fastest_us = 0;
    int n = 0;
    int64_t m = trial->m / 8 > TND_ORACLE_PROBE_M ? trial->m / 8 : TND_ORACLE_PROBE_M;
    if (trial->m <= TND_ORACLE_PROBE_M) {
        return TANDEM_OK;
    }
    for (int i = 0; i < trial->n_candidates; i++) {
        TND_TRY(time_candidate(trial, i, m, 1e-6, false, &times[i], error));
        fastest_us = i == 0 || times[i] < fastest_us ? times[i] : fastest_us;
    }
    int chosen = trial->chosen;
    for (int i = 0; i < trial->n_candidates; i++) {
        if (i == trial->chosen || times[i] <= TND_ORACLE_PROBE_OUT * fastest_us) {
            chosen = i == trial->chosen ? n : chosen;
            trial->candidates[n++] = trial->candidates[i];
        }
    }
    trial->n_candidates = n;
    trial->chosen = chosen;
    return TANDEM_OK;
}

/* Times all candidates alternately; slow ones once. *out_best gets the fastest. */
static enum tandem_status find_best(const struct trial *trial, double cell_s,
                                    struct tnd_oracle_cell *cell, int *out_best,
                                    struct tandem_error *error)
{
    double times[TND_ORACLE_MAX_CANDIDATES][TND_ORACLE_FIRST_ROUNDS];
    double fastest_us = 0;
    double budget_s =
        TND_ORACLE_FIRST_SHARE * cell_s / (TND_ORACLE_FIRST_ROUNDS * trial->n_candidates);
    for (int round = 0; round < TND_ORACLE_FIRST_ROUNDS; round++) {
        bool is_long = fastest_us > 1e6 * TND_MEASURE_BUDGET_S;
        for (int i = 0; i < trial->n_candidates; i++) {
            if (round > 0 && times[i][0] > TND_ORACLE_HOPELESS * fastest_us) {
                times[i][round] = times[i][0];
                continue;
            }
            TND_TRY(time_candidate(trial, i, trial->m, budget_s, is_long, &times[i][round], error));
        }
        for (int i = 0; i < trial->n_candidates && round == 0; i++) {
            fastest_us = i == 0 || times[i][0] < fastest_us ? times[i][0] : fastest_us;
        }
    }
    *out_best = 0;
    for (int i = 0; i < trial->n_candidates; i++) {
        struct tnd_oracle_candidate *candidate = &cell->candidates[i];
        memcpy(candidate->profile, trial->candidates[i].profile, sizeof(candidate->profile));
        candidate->threads = trial->candidates[i].n_threads;
        candidate->median_us = median_of(times[i], TND_ORACLE_FIRST_ROUNDS); /* sorts the times */
        candidate->spread_us = (times[i][TND_ORACLE_FIRST_ROUNDS - 1] - times[i][0]) / 2;
        *out_best = candidate->median_us < cell->candidates[*out_best].median_us ? i : *out_best;
    }
    cell->n_candidates = trial->n_candidates;
    return TANDEM_OK;
}

static double ratio_of(double a, double b)
{
    return b > 0 ? a / b : 1.0;
}

/* Times of the choice, the best, and the best again: the third one shows the noise. */
struct duel {
    int rounds;
    double times[3][MAX_ROUNDS];
};

/* Runs rounds in which each of the three goes first equally often. */
static enum tandem_status fight(const struct trial *trial, int best, int rounds, double cell_s,
                                struct duel *duel, struct tandem_error *error)
{
    const int candidates[3] = {trial->chosen, best, best};
    double budget_s = (1 - TND_ORACLE_FIRST_SHARE) * cell_s / (3 * rounds);
    for (int round = 0; round < rounds && duel->rounds < MAX_ROUNDS; round++) {
        for (int turn = 0; turn < 3; turn++) {
            int i = (turn + round) % 3;
            double *us = &duel->times[i][duel->rounds];
            bool is_long = duel->rounds > 0 && us[-1] > 1e6 * TND_MEASURE_BUDGET_S;
            TND_TRY(time_candidate(trial, candidates[i], trial->m, budget_s, is_long, us, error));
        }
        duel->rounds++;
    }
    return TANDEM_OK;
}

/* A disturbance longer than a round affects all three alike, so ratios are taken within a round. */
static void judge_rounds(const struct duel *duel, struct tnd_oracle_cell *cell)
{
    double ratios[MAX_ROUNDS];
    double sorted[3][MAX_ROUNDS];
    memcpy(sorted, duel->times, sizeof(sorted));
    for (int i = 0; i < duel->rounds; i++) {
        ratios[i] = ratio_of(duel->times[0][i], (duel->times[1][i] + duel->times[2][i]) / 2);
    }
    cell->chosen_us = median_of(sorted[0], duel->rounds);
    double best_us = median_of(sorted[1], duel->rounds);
    double again_us = median_of(sorted[2], duel->rounds);
    double same = ratio_of(best_us, again_us);
    cell->noise = same > 1 ? same - 1 : 1 / same - 1;
    cell->best_us = (best_us + again_us) / 2;
    double slower = median_of(ratios, duel->rounds) - 1;
    cell->regret = slower > 0 ? slower : 0;
}

/* `best_us`: approximate time of the best. */
static enum tandem_status compare(const struct trial *trial, int best, double best_us,
                                  double cell_s, struct tnd_oracle_cell *cell,
                                  struct tandem_error *error)
{
    enum { LEAST = 3 };
    struct duel duel = {0};
    int rounds = trial->options->rounds > 0 ? trial->options->rounds : TND_MEASURE_REPEATS;
    bool is_long = best_us > 1e6 * TND_MEASURE_BUDGET_S;
    rounds = is_long && rounds > LEAST ? LEAST : rounds;
    TND_TRY(fight(trial, best, rounds, cell_s, &duel, error));
    judge_rounds(&duel, cell);
    if (cell->regret > TND_NOISY_FRAC / 2) {
        TND_TRY(fight(trial, best, rounds, cell_s, &duel, error));
        judge_rounds(&duel, cell);
    }
    return TANDEM_OK;
}

/* Index of the plan's choice among the candidates. */
static int find_chosen(const struct trial *trial, const struct tandem_plan_node *chosen)
{
    for (int i = 0; i < trial->n_candidates; i++) {
        if (trial->candidates[i].n_threads == chosen->n_threads &&
            strcmp(trial->candidates[i].profile, chosen->profile) == 0) {
            return i;
        }
    }
    return -1;
}

static enum tandem_status answer(const struct tnd_oracle_options *options,
                                 struct tnd_measure *measure, const struct tandem_plan_node *chosen,
                                 struct tnd_oracle_cell *cell, struct tandem_error *error)
{
    struct trial trial = {.options = options, .measure = measure, .m = cell->problem.m};
    double cell_s = options->cell_s > 0 ? options->cell_s : 2.0;
    int best = 0;
    trial.n_candidates =
        list_candidates(options, cell->problem.type, cell->limit_threads, trial.candidates);
    trial.chosen = find_chosen(&trial, chosen);
    if (trial.chosen < 0 && trial.n_candidates < TND_ORACLE_MAX_CANDIDATES) {
        trial.chosen = trial.n_candidates++;
        trial.candidates[trial.chosen] = *chosen;
    }
    TND_TRY(leave_out_hopeless(&trial, error));
    TND_TRY(find_best(&trial, cell_s, cell, &best, error));
    memcpy(cell->problem.profile, chosen->profile, sizeof(cell->problem.profile));
    cell->problem.threads = chosen->n_threads;
    cell->best_threads = trial.candidates[best].n_threads;
    memcpy(cell->best_profile, trial.candidates[best].profile, sizeof(cell->best_profile));
    if (best == trial.chosen) {
        cell->chosen_us = cell->best_us = cell->candidates[best].median_us;
        return TANDEM_OK;
    }
    return compare(&trial, best, cell->candidates[best].median_us, cell_s, cell, error);
}

/* A large regret may come from a disturbed moment. Compares the choice and the best again later;
 * the second result counts. */
static enum tandem_status ask_again(const struct tnd_oracle_options *options,
                                    struct tnd_measure *measure, struct tnd_oracle_cell *cell,
                                    struct tandem_error *error)
{
    struct trial trial = {.options = options, .measure = measure, .m = cell->problem.m};
    const struct {
        const char *profile;
        int threads;
    } wanted[2] = {{cell->problem.profile, cell->problem.threads},
                   {cell->best_profile, cell->best_threads}};
    struct tandem_plan_node all[TND_ORACLE_MAX_CANDIDATES];
    int n = list_candidates(options, cell->problem.type, cell->limit_threads, all);
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < n; i++) {
            if (strcmp(all[i].profile, wanted[w].profile) == 0 &&
                all[i].n_threads == wanted[w].threads) {
                trial.candidates[trial.n_candidates++] = all[i];
                break;
            }
        }
    }
    if (trial.n_candidates < 2) {
        return TANDEM_OK; /* the choice is not among the candidates */
    }
    return compare(&trial, 1, cell->best_us, options->cell_s > 0 ? options->cell_s : 2.0, cell,
                   error);
}

/* Adds the table's estimates of the two candidates that were compared. */
static void add_estimates(const struct tnd_oracle_options *options, struct tnd_oracle_cell *cell)
{
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n = tnd_candidates_here(options->measure.registry, options->table, NULL, cell->problem.type,
                                0, candidates);
    for (int i = 0; i < n && options->table != NULL; i++) {
        struct tnd_prediction prediction;
        const char *name = candidates[i].profile.name;
        if (strcmp(name, cell->problem.profile) == 0 &&
            tnd_predict(options->table, candidates, i, &cell->problem, cell->problem.threads, NULL,
                        &prediction)) {
            cell->chosen_estimate = prediction.total;
        }
        if (strcmp(name, cell->best_profile) == 0 &&
            tnd_predict(options->table, candidates, i, &cell->problem, cell->best_threads, NULL,
                        &prediction)) {
            cell->best_estimate = prediction.total;
        }
    }
}

/* Minimum time of a cell: each candidate three times, most of them slower than the choice; slow
 * ones once or twice. */
static double least_s(const struct tnd_oracle_options *options, const struct tnd_oracle_cell *cell)
{
    const struct tnd_problem *problem = &cell->problem;
    double us = cell->predicted_us > 0 ? cell->predicted_us
                                       : (double)problem->n * (double)problem->k *
                                             (double)problem->m / TND_SLOWEST_MADDS * 1e6;
    double runs = 3.0 * tnd_profile_count(options->measure.registry) + 2.0 * TND_MEASURE_REPEATS;
    runs = us > 1e6 * TND_MEASURE_BUDGET_S ? runs / 2 : runs;
    double cell_s = options->cell_s > 0 ? options->cell_s : 2.0;
    double needed_s = 1e-6 * us * runs;
    return needed_s > cell_s ? needed_s : cell_s;
}

static bool fits(const struct tnd_oracle_options *options, const struct tnd_oracle_cell *cell)
{
    const struct tnd_clock *clock = options->measure.clock;
    return options->end_s <= 0 ||
           (double)clock->now_ns(clock) / 1e9 + least_s(options, cell) <= options->end_s;
}

static enum tandem_status tell(const struct tnd_oracle_options *options,
                               const struct tnd_oracle_cell *cell, struct tandem_error *error)
{
    if (options->progress != NULL && options->progress(options->user, cell)) {
        return tnd_error_set(error, TANDEM_E_CANCELLED, "oracle", 0, 0, "oracle: stopped");
    }
    return TANDEM_OK;
}

static enum tandem_status run_question(const struct tnd_oracle_options *options,
                                       struct tnd_measure *measure, enum tandem_type type,
                                       const struct tnd_shape *shape,
                                       const struct tnd_oracle_question *question,
                                       struct tnd_oracle_cell *cell, bool *out_answered,
                                       struct tandem_error *error)
{
    struct tandem_plan_node chosen;
    memset(cell, 0, sizeof(*cell));
    strcpy(cell->problem.op, "mul_mat");
    cell->problem.type = type;
    cell->problem.n = shape->n;
    cell->problem.k = shape->k;
    cell->problem.m = question->m;
    cell->limit_threads = question->threads;
    TND_TRY(ask_planner(options, &cell->problem, question->threads, &chosen, error));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        cell->predicted_us += (double)chosen.predicted_us[s];
    }
    *out_answered = fits(options, cell);
    if (!*out_answered) {
        return TANDEM_OK;
    }
    TND_TRY(answer(options, measure, &chosen, cell, error));
    add_estimates(options, cell);
    return tell(options, cell, error);
}

enum tandem_status tnd_oracle_run(const struct tnd_oracle_options *options, enum tandem_type type,
                                  const struct tnd_shape *shape,
                                  const struct tnd_oracle_question *questions, int n,
                                  struct tnd_oracle_cell *out_cells, int *out_n,
                                  struct tandem_error *error)
{
    struct tnd_measure *measure;
    struct tnd_measure_options measure_options = options->measure;
    int64_t most_m = 1;
    int done = 0;
    for (int i = 0; i < n; i++) {
        most_m = questions[i].m > most_m ? questions[i].m : most_m;
    }
    measure_options.is_whole = true; /* transfers count as part of a choice's cost */
    TND_TRY(tnd_measure_open(&measure_options, type, shape->n, shape->k, most_m, &measure, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n && status == TANDEM_OK; i++) {
        bool answered = false;
        status = run_question(options, measure, type, shape, &questions[i], &out_cells[done],
                              &answered, error);
        done += answered ? 1 : 0;
    }
    for (int i = 0; i < done && status == TANDEM_OK; i++) {
        if (out_cells[i].regret > TND_ORACLE_EXPLAIN) {
            status = ask_again(options, measure, &out_cells[i], error);
        }
        if (out_cells[i].regret > TND_ORACLE_EXPLAIN) {
            tnd_oracle_explain(&out_cells[i]);
        }
    }
    tnd_measure_close(measure);
    *out_n = done;
    return status;
}

enum tandem_status tnd_oracle_regret(const struct tnd_oracle_cell *cells, int n,
                                     struct tnd_regret *out)
{
    double *regrets = tnd_calloc((size_t)n, sizeof(regrets[0]));
    if (regrets == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        regrets[i] = cells[i].regret;
    }
    out->median = median_of(regrets, n); /* sorts the array */
    int rank = (int)(0.95 * n + 0.999999);
    out->p95 = regrets[rank > 0 ? rank - 1 : 0];
    out->worst = regrets[n - 1];
    int n_compared = 0;
    for (int i = 0; i < n; i++) {
        if (cells[i].noise > 0) { /* otherwise the choice was the best one and was not compared */
            regrets[n_compared++] = cells[i].noise;
        }
    }
    out->noise = n_compared > 0 ? median_of(regrets, n_compared) : 0;
    tnd_free(regrets);
    return TANDEM_OK;
}
