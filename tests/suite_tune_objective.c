/* SPDX-License-Identifier: MIT
 * Plans that aim at energy, with made-up joules: one thread is slow and frugal, two are fast and
 * hungry. */
#include <math.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "sched/plan.h"
#include "tests/support_tune.h"
#include "tune/explain.h"
#include "tune/objective.h"
#include "tune/planner.h"
#include "tune/policy.h"
#include "tune/profiles.h"

enum { N = 1024, K = 256, M = 4 };

static tandem_table *table;

/* INIT takes 1 us; all of it draws so many watts. */
static void add_way(const char *profile, int threads, double us, double watts)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        struct tnd_curve_key key =
            tune_key(N, K, (enum tandem_task)stage->task, stage->parallel, threads);
        double stage_us = s == TANDEM_STAGE_COMPUTE ? us : 1;
        struct tnd_sample sample = {.m = M,
                                    .median_us = stage_us,
                                    .count = 9,
                                    .when = 1,
                                    .joules = watts * stage_us * 1e-6};
        key.stage = (uint8_t)s;
        if (stage->backend[0] != '\0') {
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

static void set_up(void)
{
    table = tune_new();
}

static void tear_down(void)
{
    tandem_table_free(table);
}

static void add_ways(void)
{
    add_way("cpu", 1, 1000, 10);       /* 10 mJ */
    add_way("cpu", 2, 600, 40);        /* 24 mJ */
    add_way("cpu-packed", 1, 800, 15); /* 12 mJ, least product */
    add_way("cpu-packed", 2, 550, 45); /* 25 mJ, fastest */
}

static const struct tnd_prediction *choose(enum tandem_objective objective, const char **out_name)
{
    static struct tnd_explanation e;
    struct tnd_explain_options options = {.table = table, .n_threads = 2};
    check_ok(tnd_problem_parse("mul_mat:q4_0:n1024:k256:m4", &options.problem, NULL));
    check_ok(tnd_objective_set(table, objective, NULL));
    tnd_explanation_fini(&e);
    check_ok(tnd_explain(&options, &e, NULL));
    *out_name = e.candidates[e.choice.best.candidate].profile.name;
    return &e.choice.best;
}

static void plans_choose_what_they_aim_at(void)
{
    static const struct {
        const char *profile;
        int threads;
    } wanted[] = {{"cpu-packed", 2}, {"cpu", 1}, {"cpu-packed", 1}};
    const char *name = "";
    add_ways();
    for (int objective = 0; objective < 3; objective++) {
        const struct tnd_prediction *best = choose((enum tandem_objective)objective, &name);
        check_string(name, wanted[objective].profile);
        check_int(best->threads, wanted[objective].threads);
        /* the predicted time stays a time */
        CU_ASSERT_TRUE(best->total.us >= 551 && best->total.us <= 1001);
    }
    (void)choose(TANDEM_OBJECTIVE_ENERGY, &name);
    const struct tnd_prediction *best = choose(TANDEM_OBJECTIVE_ENERGY, &name);
    CU_ASSERT_DOUBLE_EQUAL(best->joules, 0.01001, 1e-5);
}

static void an_objective_needs_joules(void)
{
    struct tandem_error error = {0};
    add_way("cpu", 1, 1000, 0);
    check_status(tnd_objective_set(table, TANDEM_OBJECTIVE_ENERGY, &error), TANDEM_E_TABLE,
                 "sudo mulmat-tune bench", &error);
    check_int(table->objective, TANDEM_OBJECTIVE_TIME);
    check_ok(tnd_objective_set(table, TANDEM_OBJECTIVE_TIME, NULL));
    /* joules that no machine takes are none */
    struct tnd_sample sample = {.m = M, .median_us = 1e-9, .count = 9, .joules = 1e9};
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 4);
    check_ok(tnd_table_add(table, &key, &sample));
    check_status(tnd_objective_set(table, TANDEM_OBJECTIVE_EDP, &error), TANDEM_E_TABLE, "",
                 &error);
}

static void power_comes_from_the_nearest_cell_that_has_some(void)
{
    struct tnd_table_profile cpu;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_Q4_0, &cpu));
    const struct tnd_table_stage *stage = &cpu.stage[TANDEM_STAGE_COMPUTE];
    add_ways();
    struct tnd_curve_key key =
        tune_key(4 * N, K, (enum tandem_task)stage->task, stage->parallel, 2);
    key.stage = TANDEM_STAGE_COMPUTE;
    for (int64_t m = 1; m <= 16; m *= 16) {
        struct tnd_sample sample = {
            .m = m, .median_us = 100, .count = 9, .joules = (m == 1 ? 20 : 60) * 1e-4};
        check_ok(tnd_table_add(table, &key, &sample));
    }
    struct {
        int64_t n, m;
        int threads;
        double watts;
    } cases[] = {{N, M, 1, 10},       {N, 512, 2, 40},    {2 * N - 1, 4, 1, 10},
                 {4 * N, 1, 2, 20},   {4 * N, 4, 2, 40},  {4 * N, 100, 2, 60},
                 {16 * N, 16, 2, 60}, {4 * N, 16, 1, 10}, {N, M, 64, 40}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double watts = tnd_estimate_watts(table, stage, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                          cases[i].n, K, cases[i].m, cases[i].threads);
        CU_ASSERT_DOUBLE_EQUAL(watts, cases[i].watts, 1e-9);
    }
    CU_ASSERT_EQUAL(
        tnd_estimate_watts(table, stage, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q8_0, N, K, M, 1), 0);
}

static void a_planner_aims_at_energy_and_keeps_an_incumbent_by_it(void)
{
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 8};
    struct tnd_registry *registry = NULL;
    struct tnd_planner *planner = NULL;
    tandem_context *context = NULL;
    add_ways();
    check_ok(tnd_registry_open(&options, &registry, NULL));
    struct tnd_planner_options planner_options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    check_ok(tandem_graph_finish(graph, NULL));
    for (int round = 0; round < 2; round++) { /* the second time there is an incumbent */
        tandem_plan *plan = NULL;
        check_ok(tnd_objective_set(
            table, round == 0 ? TANDEM_OBJECTIVE_TIME : TANDEM_OBJECTIVE_ENERGY, NULL));
        tnd_planner_set_table(planner, table);
        check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL));
        check_string(plan->nodes[0].profile, round == 0 ? "cpu-packed" : "cpu");
        check_int(plan->nodes[0].n_threads, round == 0 ? 2 : 1);
        tandem_plan_free(plan);
    }
    tandem_context_free(context);
    tnd_planner_free(planner);
    tnd_registry_close(registry);
}

static CU_TestInfo tests[] = {
    {"plans_choose_what_they_aim_at", plans_choose_what_they_aim_at},
    {"an_objective_needs_joules", an_objective_needs_joules},
    {"power_comes_from_the_nearest_cell_that_has_some",
     power_comes_from_the_nearest_cell_that_has_some},
    {"a_planner_aims_at_energy_and_keeps_an_incumbent_by_it",
     a_planner_aims_at_energy_and_keeps_an_incumbent_by_it},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_objective[];
CU_SuiteInfo suites_tune_objective[] = {
    {"objective", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
