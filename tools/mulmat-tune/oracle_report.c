/* SPDX-License-Identifier: MIT
 * The report of mulmat-tune test --oracle. */
#include "tools/mulmat-tune/oracle_report.h"

#include <stdio.h>
#include <string.h>

#include "tools/mulmat-tune/cmd_output.h"
#include "base/emit.h"

static void add_decimal(struct tnd_text *text, const char *name, double value)
{
    tnd_text_printf(text, "\"%s\": ", name);
    tnd_text_add_double(text, value);
}

static void add_cell_json(struct tnd_text *text, const struct tnd_oracle_cell *cell)
{
    char problem[TND_PROBLEM_MAX];
    tnd_problem_print(&cell->problem, problem, sizeof(problem));
    tnd_text_printf(
        text, "    {\"problem\": \"%s\", \"type\": \"%s\", \"n\": %lld, \"k\": %lld, \"m\": %lld, ",
        problem, tandem_type_name(cell->problem.type), (long long)cell->problem.n,
        (long long)cell->problem.k, (long long)cell->problem.m);
    tnd_text_printf(text, "\"profile\": \"%s\", \"threads\": %d, ", cell->problem.profile,
                    cell->problem.threads);
    add_decimal(text, "predicted_us", cell->predicted_us);
    tnd_text_add(text, ", ");
    add_decimal(text, "chosen_us", cell->chosen_us);
    tnd_text_add(text, ", ");
    add_decimal(text, "best_us", cell->best_us);
    tnd_text_printf(text, ", \"best_profile\": \"%s\", \"best_threads\": %d, ", cell->best_profile,
                    cell->best_threads);
    add_decimal(text, "regret", cell->regret);
    tnd_text_add(text, ", ");
    add_decimal(text, "noise", cell->noise);
    tnd_text_printf(text, ", \"limit_threads\": %d, ", cell->limit_threads);
    add_decimal(text, "predicted_error_us", cell->chosen_estimate.error_us);
    tnd_text_add(text, ", ");
    add_decimal(text, "best_predicted_us", cell->best_estimate.us);
    tnd_text_add(text, ", ");
    add_decimal(text, "best_predicted_error_us", cell->best_estimate.error_us);
    if (cell->why[0] != '\0') {
        tnd_text_add(text, ", \"why\": ");
        tnd_emit_json_string(text, cell->why);
    }
    tnd_text_add(text, ", \"ways\": [");
    for (int i = 0; i < cell->n_candidates; i++) {
        tnd_text_printf(text, "%s{\"profile\": \"%s\", \"threads\": %d, ", i > 0 ? ", " : "",
                        cell->candidates[i].profile, cell->candidates[i].threads);
        add_decimal(text, "median_us", cell->candidates[i].median_us);
        tnd_text_add(text, ", ");
        add_decimal(text, "spread_us", cell->candidates[i].spread_us);
        tnd_text_add(text, "}");
    }
    tnd_text_add(text, "]}");
}

static void add_json(struct tnd_text *text, const struct tnd_oracle_cell *cells, int n,
                     const struct tnd_regret *regret)
{
    tnd_text_add(text, "{\n  ");
    add_decimal(text, "median_regret", regret->median);
    tnd_text_add(text, ",\n  ");
    add_decimal(text, "p95_regret", regret->p95);
    tnd_text_add(text, ",\n  ");
    add_decimal(text, "worst_regret", regret->worst);
    tnd_text_add(text, ",\n  ");
    add_decimal(text, "noise", regret->noise);
    tnd_text_add(text, ",\n  \"cells\": [\n");
    for (int i = 0; i < n; i++) {
        add_cell_json(text, &cells[i]);
        tnd_text_add(text, i + 1 < n ? ",\n" : "\n");
    }
    tnd_text_add(text, "  ]\n}\n");
}

/* Lists the reasons of all cells above TND_ORACLE_EXPLAIN. */
static void add_reasons(struct tnd_text *text, const struct tnd_oracle_cell *cells, int n)
{
    for (int i = 0; i < n; i++) {
        const struct tnd_oracle_cell *cell = &cells[i];
        char problem[TND_PROBLEM_MAX];
        if (cell->why[0] == '\0') {
            continue;
        }
        tnd_problem_print(&cell->problem, problem, sizeof(problem));
        tnd_text_printf(text,
                        "%s of %d threads: %.1f %%: predicted %.0f +- %.0f us, measured %.0f; ",
                        problem, cell->limit_threads, 100 * cell->regret, cell->chosen_estimate.us,
                        cell->chosen_estimate.error_us, cell->chosen_us);
        tnd_text_printf(text, "%s t%d: predicted %.0f +- %.0f, measured %.0f. Why: %s\n",
                        cell->best_profile, cell->best_threads, cell->best_estimate.us,
                        cell->best_estimate.error_us, cell->best_us, cell->why);
    }
}

static void add_text(struct tnd_text *text, const struct tnd_oracle_cell *cells, int n,
                     const struct tnd_regret *regret)
{
    tnd_text_printf(text, "%-36s %-23s %10s %7s\n", "problem", "chosen", "us", "regret");
    for (int i = 0; i < n; i++) {
        const struct tnd_oracle_cell *cell = &cells[i];
        struct tnd_problem bare = cell->problem;
        char problem[TND_PROBLEM_MAX];
        char chosen[48];
        bare.threads = cell->limit_threads;
        bare.profile[0] = '\0';
        tnd_problem_print(&bare, problem, sizeof(problem));
        snprintf(chosen, sizeof(chosen), "%s t%d", cell->problem.profile, cell->problem.threads);
        tnd_text_printf(text, "%-36s %-23s %10.1f %5.1f %%\n", problem, chosen, cell->chosen_us,
                        100 * cell->regret);
        if (cell->regret > 0) {
            snprintf(chosen, sizeof(chosen), "%s t%d", cell->best_profile, cell->best_threads);
            tnd_text_printf(text, "%36s %-23s %10.1f\n", "faster:", chosen, cell->best_us);
        }
    }
    tnd_text_printf(text,
                    "%d problems: median regret %.2f %%, 95th percentile %.2f %%, worst %.2f %%\n",
                    n, 100 * regret->median, 100 * regret->p95, 100 * regret->worst);
    tnd_text_printf(text, "noise: the best way differed from itself by %.2f %% in the median\n",
                    100 * regret->noise);
    add_reasons(text, cells, n);
}

enum tandem_status oracle_report(const struct tnd_oracle_cell *cells, int n,
                                 const struct tnd_regret *regret, bool json,
                                 struct tandem_error *error)
{
    struct tnd_text text = TND_TEXT_INIT;
    if (json) {
        add_json(&text, cells, n, regret);
    } else {
        add_text(&text, cells, n, regret);
    }
    return tnd_emit_end(&text, tnd_cmd_write, stdout, "oracle report", error);
}
