/* SPDX-License-Identifier: MIT
 * mulmat-tune test --oracle --net: measures how much the chosen methods of a net's convolutions
 * cost over the fastest ones. First all methods run alternately; then the choice against the
 * fastest of them, again and alternately, as in tools/report/oracle.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/emit.h"
#include "runtime/tune_convs.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/net_convs.h"
#include "tools/mulmat-tune/test_parts.h"
#include "tools/report/oracle.h"
#include "tools/say.h"
#include "tune/conv_choice.h"
#include "tune/policy.h"

enum { MOST_ROUNDS = 64, MOST_TIMES = 400, LEAST_TIMES = 3 };

struct exam {
    const struct test_request *request;
    tandem_runtime *runtime;
    const struct tnd_clock *clock;
    tandem_table *table; /* a copy of the one in use; NULL: none */
    double cell_s, end_s;
    struct net_convs convs;
    struct tnd_oracle_cell *cells; /* only regret, noise and times are used */
    struct tnd_conv_choice *choices;
    enum tnd_conv_method *best;
    int n_cells;
};

static double now_s(const struct exam *exam)
{
    return (double)exam->clock->now_ns(exam->clock) / 1e9;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, int n, double part)
{
    qsort(values, (size_t)n, sizeof(values[0]), compare_numbers);
    return values[(int)(part * (n - 1))];
}

/* Computes repeatedly for a given time. Takes the lower quartile, since other programs slow down
 * single runs. */
static enum tandem_status time_method(const struct exam *exam, struct tnd_conv_trial *trial,
                                      enum tnd_conv_method method, double budget_s, double *out_us,
                                      struct tandem_error *error)
{
    double us[MOST_TIMES];
    const double end_s = now_s(exam) + budget_s;
    int n = 0;
    while (n < LEAST_TIMES || (n < MOST_TIMES && now_s(exam) < end_s)) {
        TND_TRY(tnd_conv_trial_run(trial, method, &us[n++], error));
    }
    *out_us = quantile(us, n, 0.25);
    return TANDEM_OK;
}

static enum tandem_status find_best(const struct exam *exam, struct tnd_conv_trial *trial,
                                    enum tnd_conv_method *out, struct tandem_error *error)
{
    double us[TND_CONV_METHODS][TND_ORACLE_FIRST_ROUNDS];
    double fastest_us = 0;
    const double budget_s =
        TND_ORACLE_FIRST_SHARE * exam->cell_s / (TND_ORACLE_FIRST_ROUNDS * TND_CONV_METHODS);
    for (int round = 0; round < TND_ORACLE_FIRST_ROUNDS; round++) {
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            if (tnd_conv_trial_has(trial, (enum tnd_conv_method)method)) {
                TND_TRY(time_method(exam, trial, (enum tnd_conv_method)method, budget_s,
                                    &us[method][round], error));
            }
        }
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (tnd_conv_trial_has(trial, (enum tnd_conv_method)method)) {
            const double median_us = quantile(us[method], TND_ORACLE_FIRST_ROUNDS, 0.5);
            if (fastest_us == 0 || median_us < fastest_us) {
                fastest_us = median_us;
                *out = (enum tnd_conv_method)method;
            }
        }
    }
    return TANDEM_OK;
}

/* Times the choice, the best method, and the best one again, which shows the noise. */
static enum tandem_status fight(const struct exam *exam, struct tnd_conv_trial *trial,
                                enum tnd_conv_method chosen, enum tnd_conv_method best,
                                struct tnd_oracle_cell *cell, struct tandem_error *error)
{
    const enum tnd_conv_method methods[3] = {chosen, best, best};
    double us[3][MOST_ROUNDS];
    double ratios[MOST_ROUNDS];
    const int rounds = exam->request->rounds > 0 ? (int)exam->request->rounds : TND_MEASURE_REPEATS;
    const double budget_s = (1 - TND_ORACLE_FIRST_SHARE) * exam->cell_s / (3 * rounds);
    for (int round = 0; round < rounds; round++) {
        for (int turn = 0; turn < 3; turn++) {
            const int i = (turn + round) % 3;
            TND_TRY(time_method(exam, trial, methods[i], budget_s, &us[i][round], error));
        }
        ratios[round] = 2 * us[0][round] / (us[1][round] + us[2][round]);
    }
    const double slower = quantile(ratios, rounds, 0.5) - 1;
    cell->chosen_us = quantile(us[0], rounds, 0.5);
    const double best_us = quantile(us[1], rounds, 0.5);
    const double again_us = quantile(us[2], rounds, 0.5);
    cell->best_us = (best_us + again_us) / 2;
    cell->noise = best_us > again_us ? best_us / again_us - 1 : again_us / best_us - 1;
    cell->regret = slower > 0 && chosen != best ? slower : 0;
    return TANDEM_OK;
}

static enum tandem_status examine(struct exam *exam, int i, struct tandem_error *error)
{
    const struct tnd_conv_question *question = &exam->convs.questions[i];
    struct tnd_conv_trial *trial;
    char problem[TND_CONV_PROBLEM_MAX];
    const int threads = tandem_runtime_threads(exam->runtime);
    const int at = exam->n_cells;
    tnd_conv_choose(exam->table, threads, question, &exam->choices[at]);
    TND_TRY(tnd_conv_trial_open(exam->runtime, &question->shape, TND_CONV_ON_CPU, &trial, error));
    enum tandem_status status = find_best(exam, trial, &exam->best[at], error);
    if (status == TANDEM_OK) {
        status =
            fight(exam, trial, exam->choices[at].method, exam->best[at], &exam->cells[at], error);
    }
    if (status == TANDEM_OK && exam->cells[at].regret > TND_NOISY_FRAC / 2) { /* measure again */
        status = find_best(exam, trial, &exam->best[at], error);
        status = status == TANDEM_OK ? fight(exam, trial, exam->choices[at].method, exam->best[at],
                                             &exam->cells[at], error)
                                     : status;
    }
    tnd_conv_trial_close(trial);
    exam->n_cells += status == TANDEM_OK;
    tnd_conv_problem_print(&question->shape, threads, exam->choices[at].method, problem,
                           sizeof(problem));
    tnd_say("[%4d of %d] %s: regret %.1f %%\n", i + 1, exam->convs.n, problem,
            100 * exam->cells[at].regret);
    return status;
}

static void add_cell(const struct exam *exam, int i, struct tnd_text *out)
{
    const struct tnd_oracle_cell *cell = &exam->cells[i];
    const struct tnd_conv_choice *choice = &exam->choices[i];
    char problem[TND_CONV_PROBLEM_MAX];
    tnd_conv_problem_print(&choice->question.shape, tandem_runtime_threads(exam->runtime),
                           choice->method, problem, sizeof(problem));
    if (!exam->request->json) {
        tnd_text_printf(out, "%-56s %10.1f us, regret %5.1f %%", problem, cell->chosen_us,
                        100 * cell->regret);
        if (cell->regret > 0) {
            tnd_text_printf(out, ", faster: %s %.1f us", tnd_conv_method_name(exam->best[i]),
                            cell->best_us);
        }
        tnd_text_printf(out, " (%s)\n", choice->reason);
        return;
    }
    tnd_text_printf(out, "%s    {\"problem\": \"%s\", \"is_measured\": %s, \"best\": \"%s\", ",
                    i > 0 ? ",\n" : "", problem, choice->is_measured ? "true" : "false",
                    tnd_conv_method_name(exam->best[i]));
    tnd_text_printf(out,
                    "\"chosen_us\": %.3f, \"best_us\": %.3f, \"regret\": %.6f, \"noise\": %.6f}",
                    cell->chosen_us, cell->best_us, cell->regret, cell->noise);
}

static enum tandem_status report(const struct exam *exam, const struct tnd_regret *regret,
                                 struct tandem_error *error)
{
    struct tnd_text text = TND_TEXT_INIT;
    if (exam->request->json) {
        tnd_text_printf(&text,
                        "{\n  \"median_regret\": %.6f,\n  \"p95_regret\": %.6f,\n  "
                        "\"worst_regret\": %.6f,\n  \"noise\": %.6f,\n  \"cells\": [\n",
                        regret->median, regret->p95, regret->worst, regret->noise);
    }
    for (int i = 0; i < exam->n_cells; i++) {
        add_cell(exam, i, &text);
    }
    if (exam->request->json) {
        tnd_text_add(&text, "\n  ]\n}\n");
    } else {
        tnd_text_printf(&text,
                        "%d convolutions: median regret %.2f %%, 95th percentile %.2f %%, worst "
                        "%.2f %%\nnoise: the best way differed from itself by %.2f %% in the "
                        "median\n",
                        exam->n_cells, 100 * regret->median, 100 * regret->p95, 100 * regret->worst,
                        100 * regret->noise);
    }
    return tnd_emit_end(&text, tnd_cmd_write, stdout, "oracle report", error);
}

static enum tandem_status prepare(struct exam *exam, struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    const struct test_request *request = exam->request;
    tnd_runtime_parts(exam->runtime, &parts);
    exam->clock = parts.clock;
    TND_TRY(net_convs_read(&request->net, &exam->convs, error));
    const size_t n = (size_t)exam->convs.n + 1;
    exam->cells = tnd_calloc(n, sizeof(exam->cells[0]));
    exam->choices = tnd_calloc(n, sizeof(exam->choices[0]));
    exam->best = tnd_calloc(n, sizeof(exam->best[0]));
    if (exam->cells == NULL || exam->choices == NULL || exam->best == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for an oracle");
    }
    exam->cell_s = request->cell_s > 0     ? request->cell_s
                   : request->budget_s > 0 ? request->budget_s / (1.2 * (double)n)
                                           : 1;
    exam->end_s =
        request->budget_s > 0 ? (double)request->begin_ns / 1e9 + request->budget_s : 1e300;
    return tnd_runtime_copy_table(exam->runtime, &exam->table, error);
}

int test_oracle_net(const struct test_request *request, tandem_runtime *runtime)
{
    struct exam exam = {.request = request, .runtime = runtime};
    struct tandem_error error = {0};
    struct tnd_regret regret = {0};
    enum tandem_status status = prepare(&exam, &error);
    int result = 0;
    for (int i = 0; i < exam.convs.n && status == TANDEM_OK; i++) {
        status = i == 0 || now_s(&exam) < exam.end_s ? examine(&exam, i, &error) : status;
    }
    if (status == TANDEM_OK && exam.n_cells > 0) {
        status = tnd_oracle_regret(exam.cells, exam.n_cells, &regret);
        status = status == TANDEM_OK ? report(&exam, &regret, &error) : status;
        result = test_judge_regret(request, &regret);
    } else if (status == TANDEM_OK) {
        printf("no convolution with several methods\n");
    }
    net_convs_fini(&exam.convs);
    tandem_table_free(exam.table);
    tnd_free(exam.cells);
    tnd_free(exam.choices);
    tnd_free(exam.best);
    return status == TANDEM_OK ? result : tnd_cmd_failed(&error);
}
