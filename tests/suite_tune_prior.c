/* SPDX-License-Identifier: MIT
 * The rule as the prior: what choices by a table cost that was measured beside other programs. The
 * committed table of a Zen 4 is the machine; its times get the noise of a load. */
#include "tests/support_tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/candidates.h"
#include "tune/rule.h"

#ifdef TND_HAVE_CJSON

#define MACHINE "bench-data/epyc-zen4-2-cores/table.json"

enum { THREADS = 2, ROUNDS = 12, MOST = 4096 };

struct regrets {
    int n;
    double of[MOST], over_rule[MOST];
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_share(double *values, int n, double share)
{
    qsort(values, (size_t)n, sizeof(values[0]), ascending);
    return values[(int)(share * (n - 1))];
}

static double uniform(struct tnd_test_rng *rng)
{
    return (double)tnd_test_rng_int(rng, 1, 1000000) / 1e6;
}

/* A few percent always; beside a load, a share of the samples takes longer by an exponentially
 * distributed part of the time. */
static double disturbed(struct tnd_test_rng *rng, double load)
{
    const double calm = 1 + 0.02 * (uniform(rng) + uniform(rng) + uniform(rng) - 1.5);
    return uniform(rng) < load ? calm * (1 - 0.6 * log(uniform(rng))) : calm;
}

/* The machine's table as `count` samples of each cell beside a load say it is. */
static tandem_table *measure(struct tnd_test_rng *rng, const tandem_table *machine, double load,
                             int count)
{
    tandem_table *noisy = NULL;
    tandem_table *judged = NULL;
    check_ok(tandem_table_copy(machine, &noisy, NULL));
    for (int i = 0; i < noisy->n_curves; i++) {
        for (int s = 0; s < noisy->curves[i].n_samples; s++) {
            struct tnd_sample *sample = &noisy->curves[i].samples[s];
            double times[9];
            double away[9];
            for (int j = 0; j < count; j++) {
                times[j] = sample->median_us * disturbed(rng, load);
            }
            const double median = at_share(times, count, 0.5);
            for (int j = 0; j < count; j++) {
                away[j] = fabs(times[j] - median);
            }
            sample->median_us = median;
            sample->spread_us = at_share(away, count, 0.5);
            sample->count = (uint32_t)count;
        }
    }
    for (int i = 0; i < noisy->n_sweeps; i++) {
        noisy->sweeps[i].before = (struct tnd_reference_time){65, 65 * (1 + 0.6 * load)};
        noisy->sweeps[i].after = noisy->sweeps[i].before;
    }
    check_ok(tandem_table_copy(noisy, &judged, NULL)); /* times of another evidence */
    tandem_table_free(noisy);
    return judged;
}

static double true_us(const tandem_table *machine, const struct tnd_candidate *candidates,
                      int candidate, const struct tnd_problem *problem, int threads)
{
    struct tnd_prediction truth;
    return tnd_predict(machine, candidates, candidate, problem, threads, NULL, &truth)
               ? truth.total.us
               : INFINITY;
}

static void judge(const tandem_table *machine, const tandem_table *measured,
                  const struct tnd_problem *problem, struct regrets *out)
{
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    struct tnd_choice choice;
    const int n = tnd_candidates_of_table(measured, problem->type, 0, candidates);
    double best = INFINITY;
    double rule = INFINITY;
    const int threads = tnd_rule_problem_threads(problem, THREADS, 2, 1.0);
    for (int i = 0; i < n; i++) {
        for (int t = 1; t <= THREADS; t++) {
            best = fmin(best, true_us(machine, candidates, i, problem, t));
        }
        if (tnd_rule_rank("", candidates[i].profile.name) == 0) {
            rule = true_us(machine, candidates, i, problem, threads);
        }
    }
    tnd_choose(measured, candidates, n, problem, THREADS, NULL, NULL, NULL, &choice);
    const double got =
        choice.best.candidate < 0
            ? rule
            : true_us(machine, candidates, choice.best.candidate, problem, choice.best.threads);
    if (isfinite(best) && isfinite(rule) && isfinite(got) && out->n < MOST) {
        out->of[out->n] = got / best - 1;
        out->over_rule[out->n++] = got / rule - 1;
    }
}

/* M between the measured ones as well. */
static struct regrets regrets_of(const tandem_table *machine, double load, int count)
{
    static const int64_t m[] = {1, 3, 8, 23, 64, 200, 512};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct regrets out = {.n = 0};
    for (int round = 0; round < ROUNDS; round++) {
        tandem_table *measured = measure(&rng, machine, load, count);
        struct tnd_problem problem = {.op = "mul_mat"};
        for (int i = 0; i < machine->n_curves; i++) {
            const struct tnd_curve_key *key = &machine->curves[i].key;
            if (strcmp(key->op, "mul_mat") != 0 ||
                (key->type == problem.type && key->n == problem.n && key->k == problem.k)) {
                continue;
            }
            problem.type = key->type;
            problem.n = key->n;
            problem.k = key->k;
            for (size_t j = 0; j < sizeof(m) / sizeof(m[0]); j++) {
                problem.m = m[j];
                judge(machine, measured, &problem, &out);
            }
        }
        tandem_table_free(measured);
    }
    return out;
}

static void a_table_measured_beside_a_load_costs_little_over_the_rule(void)
{
    static const struct {
        double load;
        int count;
        double most; /* 95th percentile of the regret */
    } cases[] = {{0, 9, 0.06}, {0.25, 1, 0.1}, {0.25, 3, 0.1}, {0.5, 1, 0.1}, {0.5, 3, 0.1}};
    tandem_table *machine = NULL;
    check_ok(tandem_table_load(MACHINE, &machine, NULL));
    printf("\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct regrets got = regrets_of(machine, cases[i].load, cases[i].count);
        CU_ASSERT_TRUE_FATAL(got.n > 100);
        const double regret[3] = {at_share(got.of, got.n, 0.5), at_share(got.of, got.n, 0.95),
                                  at_share(got.of, got.n, 1)};
        double mean = 0;
        for (int j = 0; j < got.n; j++) {
            mean += got.over_rule[j] / got.n;
        }
        const double over[3] = {at_share(got.over_rule, got.n, 0.5),
                                at_share(got.over_rule, got.n, 0.95),
                                at_share(got.over_rule, got.n, 1)};
        printf(
            "  load %.2f, %d samples: regret %.1f, %.1f, %.1f %% (median, 95th, worst); over the "
            "rule %.1f %% in the mean, %.1f, %.1f, %.1f %%\n",
            cases[i].load, cases[i].count, 100 * regret[0], 100 * regret[1], 100 * regret[2],
            100 * mean, 100 * over[0], 100 * over[1], 100 * over[2]);
        CU_ASSERT_TRUE(regret[1] <= cases[i].most);
        CU_ASSERT_TRUE(over[1] <= 0.005);
        CU_ASSERT_TRUE(mean <= 0.005 && (i > 0 || mean < -0.005));
    }
    tandem_table_free(machine);
}

#endif

static CU_TestInfo tests[] = {
#ifdef TND_HAVE_CJSON
    {"a_table_measured_beside_a_load_costs_little_over_the_rule",
     a_table_measured_beside_a_load_costs_little_over_the_rule},
#endif
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_tune_prior[] = {
    {"the rule as prior", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
