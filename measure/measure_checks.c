/* SPDX-License-Identifier: MIT
 * Compares results with the reference. Nothing is timed here. */
#include "measure/measure_checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tune/planner.h"
#include "tune/profiles.h"
#include "tune/policy.h"

/* K is a multiple of every block; the first shape has tails in tiles of rows and of tokens. */
static const struct {
    int64_t m[2]; /* 0: none */
    int64_t n, k;
} problems[] = {{{1, 37}, 77, 768}, {{64, 0}, 256, 512}};
enum { N_PROBLEMS = sizeof(problems) / sizeof(problems[0]) };

double tnd_check_bound(enum tandem_type type)
{
    return type == TANDEM_TYPE_F32    ? TND_CHECK_NMSE_F32
           : type == TANDEM_TYPE_F16  ? TND_CHECK_NMSE_F16
           : type == TANDEM_TYPE_BF16 ? TND_CHECK_NMSE_BF16
                                      : TND_CHECK_NMSE;
}

double tnd_check_error(const float *got, const float *want, int64_t m, int64_t n)
{
    TND_ASSERT(m >= 0 && n > 0);
    double worst = 0;
    for (int64_t row = 0; row < m; row++) {
        double error = 0;
        double power = 0;
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            double difference = (double)got[i] - (double)want[i];
            error += difference * difference;
            power += (double)want[i] * (double)want[i];
        }
        double nmse = power > 0 ? error / power : error;
        if (!(nmse < TND_CHECK_NOT_FINITE)) {
            return TND_CHECK_NOT_FINITE;
        }
        worst = fmax(worst, nmse);
    }
    return worst;
}

/* A backend that does not support this type or shape refuses; one that fails has no result to
 * compare. */
static enum tandem_status check_profile(const struct tnd_check_options *options, int profile,
                                        struct tnd_measure *measure, const float *want,
                                        const struct tnd_check *problem, struct tandem_table *table)
{
    static const struct tnd_measure_effort once = {
        .budget_s = TND_CHECK_NMSE_F16, .min_repeats = 1, .max_repeats = 1, .spread_frac = 1};
    struct tandem_plan_node choice;
    struct tnd_table_profile described;
    struct tnd_measure_result result;
    struct tnd_check check = *problem;
    const char *name = tnd_profile_at(options->measure.registry, profile)->name;
    if ((options->profile != NULL && strcmp(name, options->profile) != 0) ||
        !tnd_profile_describe(options->measure.registry, profile, check.type, &described) ||
        !tnd_plan_node_for_profile(options->measure.registry, profile, check.type,
                                   options->n_threads, &choice)) {
        return TANDEM_OK;
    }
    tnd_measure_spoil(measure);
    enum tandem_status status = tnd_measure_run(measure, check.m, &choice, &once, &result, NULL);
    if (status != TANDEM_OK) {
        return status == TANDEM_E_MEMORY ? status : TANDEM_OK;
    }
    snprintf(check.profile, sizeof(check.profile), "%s", name);
    check.nmse = tnd_check_error(tnd_measure_output(measure), want, check.m, check.n);
    TND_TRY(tnd_table_add_profile(table, &described)); /* a check refers to the profile's stages */
    return tnd_table_add_check(table, &check);
}

static bool is_late(const struct tnd_check_options *options)
{
    const struct tnd_clock *clock = options->measure.clock;
    return options->deadline_ns != 0 && clock->now_ns(clock) >= options->deadline_ns;
}

static enum tandem_status check_problem(const struct tnd_check_options *options,
                                        struct tnd_measure *measure,
                                        const struct tnd_check *problem, struct tandem_table *table,
                                        struct tandem_error *error)
{
    size_t n_values = (size_t)problem->m * (size_t)problem->n;
    float *want = tnd_alloc(n_values * sizeof(float));
    if (want == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "gate", (int64_t)n_values, 0,
                             "gate: no memory for a result of %zu values", n_values);
    }
    enum tandem_status status = tnd_measure_reference(measure, problem->m, want, error);
    for (int p = 0; p < tnd_profile_count(options->measure.registry) && status == TANDEM_OK &&
                    !is_late(options);
         p++) {
        status = check_profile(options, p, measure, want, problem, table);
        if (status != TANDEM_OK) {
            tnd_error_set(error, status, "gate", 0, 0, "gate: %s", tandem_status_text(status));
        }
    }
    tnd_free(want);
    return status;
}

enum tandem_status tnd_measure_checks(const struct tnd_check_options *options,
                                      enum tandem_type type, struct tandem_table *table,
                                      struct tandem_error *error)
{
    struct tnd_measure_options measure_options = options->measure;
    measure_options.rotate_bytes = 1; /* one copy of the weights is enough */
    measure_options.is_whole = false;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < N_PROBLEMS && status == TANDEM_OK && !is_late(options); i++) {
        struct tnd_check problem = {.type = type,
                                    .n = problems[i].n,
                                    .k = problems[i].k,
                                    .bound = tnd_check_bound(type),
                                    .when = options->when};
        int64_t m_max = problems[i].m[0] > problems[i].m[1] ? problems[i].m[0] : problems[i].m[1];
        struct tnd_measure *measure = NULL;
        TND_TRY(
            tnd_measure_open(&measure_options, type, problem.n, problem.k, m_max, &measure, error));
        for (int j = 0; j < 2 && problems[i].m[j] > 0 && status == TANDEM_OK; j++) {
            problem.m = problems[i].m[j];
            status = check_problem(options, measure, &problem, table, error);
        }
        tnd_measure_close(measure);
    }
    return status;
}
