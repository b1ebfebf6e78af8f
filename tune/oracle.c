/* SPDX-License-Identifier: MIT
 * Measuring what the planner's choice costs against the best choice. */
#include "tune/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/profiles.h"

enum { DEFAULT_ROUNDS = 7, MAX_ROUNDS = 64 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), compare_doubles);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The planner's choice for the problem, asked for through a graph of one node as any program
 * would. */
static enum tandem_status ask_planner(const struct tnd_oracle_options *options,
                                      const struct tnd_problem *problem,
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
        status = tnd_planner_plan(options->planner, graph, options->n_threads, &plan, error);
    }
    if (status == TANDEM_OK) {
        *out = *tandem_plan_node(plan, 0);
    }
    tandem_plan_free(plan);
    tandem_context_free(context);
    return status;
}

/* Every profile that is open, at the thread counts that the planner considers. */
static int list_ways(const struct tnd_oracle_options *options, enum tandem_type type,
                     struct tandem_plan_node *out)
{
    int n = 0;
    for (int p = 0; p < tnd_profile_count(); p++) {
        for (int threads = 1; n < TND_ORACLE_MAX_WAYS;) {
            if (tnd_plan_node_for_profile(options->measure.registry, p, type, threads, &out[n])) {
                n++;
            }
            if (threads >= options->n_threads) {
                break;
            }
            threads = 2 * threads < options->n_threads ? 2 * threads : options->n_threads;
        }
    }
    return n;
}

static enum tandem_status measure_ways(const struct tnd_oracle_options *options,
                                       struct tnd_measure *measure, int64_t m,
                                       const struct tandem_plan_node *ways, int n_ways,
                                       struct tnd_oracle_cell *cell, struct tandem_error *error)
{
    double times[TND_ORACLE_MAX_WAYS][MAX_ROUNDS];
    int rounds = options->rounds > 0 ? options->rounds : DEFAULT_ROUNDS;
    rounds = rounds < MAX_ROUNDS ? rounds : MAX_ROUNDS;
    double cell_s = options->cell_s > 0 ? options->cell_s : 2.0;
    struct tnd_measure_effort effort;
    memset(&effort, 0, sizeof(effort));
    effort.budget_s = cell_s / (rounds * (n_ways > 0 ? n_ways : 1));
    effort.min_repeats = 2;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n_ways; i++) {
            struct tnd_measure_result result;
            TND_TRY(tnd_measure_run(measure, m, &ways[i], &effort, &result, error));
            times[i][round] = result.total.median_us;
        }
    }
    for (int i = 0; i < n_ways; i++) {
        struct tnd_oracle_way *way = &cell->ways[i];
        memcpy(way->profile, ways[i].profile, sizeof(way->profile));
        way->threads = ways[i].n_threads;
        way->median_us = median_of(times[i], rounds);
        for (int round = 0; round < rounds; round++) {
            double deviation = times[i][round] - way->median_us;
            times[i][round] = deviation < 0 ? -deviation : deviation;
        }
        way->spread_us = median_of(times[i], rounds);
    }
    cell->n_ways = n_ways;
    return TANDEM_OK;
}

static void judge(struct tnd_oracle_cell *cell, const struct tandem_plan_node *chosen)
{
    memcpy(cell->problem.profile, chosen->profile, sizeof(cell->problem.profile));
    cell->problem.threads = chosen->n_threads;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        cell->predicted_us += (double)chosen->predicted_us[s];
    }
    for (int i = 0; i < cell->n_ways; i++) {
        const struct tnd_oracle_way *way = &cell->ways[i];
        if (cell->best_us == 0 || way->median_us < cell->best_us) {
            cell->best_us = way->median_us;
            cell->best_threads = way->threads;
            memcpy(cell->best_profile, way->profile, sizeof(cell->best_profile));
        }
        if (way->threads == chosen->n_threads && strcmp(way->profile, chosen->profile) == 0) {
            cell->chosen_us = way->median_us;
        }
    }
    cell->regret = cell->best_us > 0 ? cell->chosen_us / cell->best_us - 1.0 : 0;
}

enum tandem_status tnd_oracle_run(const struct tnd_oracle_options *options, enum tandem_type type,
                                  const struct tnd_shape *shape, const int64_t *m, int n_m,
                                  struct tnd_oracle_cell *out_cells, int done, int count,
                                  struct tandem_error *error)
{
    struct tandem_plan_node ways[TND_ORACLE_MAX_WAYS];
    int n_ways = list_ways(options, type, ways);
    struct tnd_measure *measure;
    struct tnd_measure_options measure_options = options->measure;
    measure_options.is_whole = true; /* what a choice costs with all that it moves */
    TND_TRY(
        tnd_measure_open(&measure_options, type, shape->n, shape->k, m[n_m - 1], &measure, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n_m && status == TANDEM_OK; i++) {
        struct tnd_oracle_cell *cell = &out_cells[i];
        memset(cell, 0, sizeof(*cell));
        strcpy(cell->problem.op, "mul_mat");
        cell->problem.type = type;
        cell->problem.n = shape->n;
        cell->problem.k = shape->k;
        cell->problem.m = m[i];
        struct tandem_plan_node chosen;
        status = ask_planner(options, &cell->problem, &chosen, error);
        if (status == TANDEM_OK) {
            status = measure_ways(options, measure, m[i], ways, n_ways, cell, error);
        }
        if (status == TANDEM_OK) {
            judge(cell, &chosen);
            if (options->progress != NULL &&
                options->progress(options->user, cell, done + i + 1, count)) {
                status = tnd_error_set(error, TANDEM_E_CANCELLED, "oracle", done + i + 1, count,
                                       "oracle: stopped after %d of %d cells", done + i + 1, count);
            }
        }
    }
    tnd_measure_close(measure);
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
    out->median = median_of(regrets, n); /* leaves the array sorted */
    int rank = (int)(0.95 * n + 0.999999);
    out->p95 = regrets[rank > 0 ? rank - 1 : 0];
    out->worst = regrets[n - 1];
    tnd_free(regrets);
    return TANDEM_OK;
}
