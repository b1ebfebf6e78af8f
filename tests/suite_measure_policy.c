/* SPDX-License-Identifier: MIT
 * The numbers of tune/policy.h as answers show them: what an error bar, an uncertainty or a bound
 * is worth. Whoever changes a number sees here what follows. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "measure/adapt_line.h"
#include "measure/measure.h"
#include "measure/measure_checks.h"
#include "measure/measure_reference.h"
#include "tests/support_tune.h"
#include "tune/candidates.h"
#include "tune/moves.h"
#include "tune/rule.h"
#include "tune/thread_model.h"

static const struct tnd_table_stage compute = {"cpu", TANDEM_KIND_CPU, TANDEM_TASK_MUL_MAT_Q,
                                               true,  false,           false};
static tandem_table *table;

static void set_up(void)
{
    table = tune_new();
}

static void tear_down(void)
{
    tandem_table_free(table);
}

static void add(int threads, int64_t m, double us)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, threads);
    tune_add(table, &key, m, us);
}

/* The error bar as a share of the time. */
static double error_of(int64_t n, int64_t m, int threads)
{
    struct tnd_estimate out = {0};
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0, n,
                                      32, m, threads, &out));
    return (out.error_us - out.noise_us) / out.us;
}

static void error_bars_grow_with_the_distance_from_what_was_measured(void)
{
    add(1, 8, 80);
    add(1, 16, 160);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 8, 1), 0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 12, 1), 0.02, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 32, 1), 0.10 + 0.05, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 64, 1), 2 * 0.10 + 0.05, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 4, 1), 0.16 + 0.05, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(error_of(128, 8, 1), 0.15, 1e-9);
    add(4, 8, 20);
    add(4, 16, 40);
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 8, 2), 0.10, 1e-9);
    add(1, 24, 480); /* a bend: the line behind says 320 us more or less */
    CU_ASSERT_DOUBLE_EQUAL(error_of(64, 12, 1), 0.02 + 0.5 * 120 / 120, 1e-9);
}

static void thread_counts_have_floors(void)
{
    const double counts[] = {1, 4};
    const double times[] = {100, 1};
    CU_ASSERT_TRUE(tnd_thread_model(counts, times, 2, 2).us >= 0.5);
    CU_ASSERT_TRUE(tnd_thread_model(counts, times, 2, 1000).us >= 0.1);
}

static void a_quarter_of_the_error_and_the_spread_of_noise_count(void)
{
    const struct tnd_estimate estimate = {.us = 100, .error_us = 20, .spread_us = 10};
    CU_ASSERT_DOUBLE_EQUAL(tnd_cautious_us(&estimate, false), 105, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cautious_us(&estimate, true), 115, 1e-9);
}

static void a_clear_lead_is_three_sigmas_and_a_tenth(void)
{
    const struct tnd_estimate incumbent = {.us = 100, .error_us = 0};
    const struct tnd_estimate slightly = {.us = 91, .error_us = 0};
    const struct tnd_estimate clearly = {.us = 89, .error_us = 0};
    const struct tnd_estimate unsure = {.us = 60, .error_us = 14};
    const struct tnd_estimate sure = {.us = 55, .error_us = 14};
    CU_ASSERT_FALSE(tnd_lead_is_clear(&slightly, &incumbent));
    CU_ASSERT_TRUE(tnd_lead_is_clear(&clearly, &incumbent));
    CU_ASSERT_FALSE(tnd_lead_is_clear(&unsure, &incumbent));
    CU_ASSERT_TRUE(tnd_lead_is_clear(&sure, &incumbent));
}

static void sharing_costs_eight_hand_offs(void)
{
    tune_add_handoff(table, 2, 1.5, 20);
    CU_ASSERT_DOUBLE_EQUAL(tnd_estimate_sharing(table, 2), 12, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_estimate_sharing(table, 1), 0, 1e-9);
}

static void without_times_the_cpu_kernels_serve(void)
{
    static const char *const cpus[] = {"", "GenuineIntel 6 207", "AuthenticAMD 25 17"};
    for (int i = 0; i < 3; i++) { /* pairs of BF16 have a rate worth it on AMD's */
        const int pairs = i == 2 ? 1 : 0;
        CU_ASSERT_PTR_NULL(tnd_rule_profile(cpus[i], -1));
        check_string(tnd_rule_profile(cpus[i], 0), pairs == 1 ? "cpu-bf16" : "cpu-packed");
        check_string(tnd_rule_profile(cpus[i], pairs), "cpu-packed");
        check_string(tnd_rule_profile(cpus[i], pairs + 1), "cpu");
        CU_ASSERT_PTR_NULL(tnd_rule_profile(cpus[i], pairs + 2));
        check_int(tnd_rule_rank(cpus[i], "cpu-packed"), pairs);
        check_int(tnd_rule_rank(cpus[i], "cpu"), INT_MAX);
        check_int(tnd_rule_rank(cpus[i], "cpu-bf16"), pairs == 1 ? 0 : INT_MAX);
    }
    CU_ASSERT(tnd_rule_rounds("cpu-bf16") && !tnd_rule_rounds("cpu-packed"));
}

static void put(struct tnd_adapt_points *points, int64_t m, double us)
{
    const struct tnd_stage_time time = {us, 0, 1};
    check_ok(tnd_adapt_put(points, m, &time));
}

static void gaps_and_ends_of_a_line_are_uncertain(void)
{
    struct tnd_adapt_points points = {0};
    put(&points, 8, 80);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&points, 16), 0.25, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_point_uncertainty(&points.points[0]), 0.04, 1e-9);
    put(&points, 32, 320);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&points, 64), 0.08, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&points, 16), 0.08, 1e-9);
    put(&points, 16, 160); /* as predicted: three quarters are left */
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&points, 12), 0.03, 1e-9);
    put(&points, 24, 300); /* predicted 240: off by a fifth */
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&points, 20), 0.4 * (0.2 - 0.01), 1e-9);
    tnd_vector_fini(&points.points_vector);
    struct tnd_adapt_point bent[] = {{.m = 8, .us = 80, .uncertainty = -1},
                                     {.m = 16, .us = 160, .uncertainty = -1},
                                     {.m = 24, .us = 480, .uncertainty = -1}};
    const struct tnd_adapt_points curve = {.points = bent, .n_points = 3};
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_gap_uncertainty(&curve, 12), 0.25 * 120 / 120, 1e-9);
    bent[1].us = 80 * 2 * 1.15 + 16; /* above the time a token of the point before */
    bent[2].us = 1000;
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_outlier(&curve, 1), 16 / bent[1].us, 1e-9);
}

static void points_lie_where_kernels_step(void)
{
    check_int(tnd_adapt_middle(8, 9), 0);
    check_int(tnd_adapt_middle(8, 11), 9);
    check_int(tnd_adapt_middle(100, 124), 0);
    check_int(tnd_adapt_middle(100, 126), 116);
    check_int(tnd_adapt_middle(16, 33), 24);
    check_int(tnd_adapt_middle(18, 34), 28);
}

static void short_products_share_a_graph(void)
{
    check_int(tnd_measure_nodes(1), 8);
    check_int(tnd_measure_nodes(1000), 5);
    check_int(tnd_measure_nodes(5000), 1);
}

static void bounds_of_errors_follow_the_weights(void)
{
    CU_ASSERT_EQUAL(tnd_check_bound(TANDEM_TYPE_F32), 1e-10);
    CU_ASSERT_EQUAL(tnd_check_bound(TANDEM_TYPE_F16), 1e-6);
    CU_ASSERT_EQUAL(tnd_check_bound(TANDEM_TYPE_BF16), 2e-5);
    CU_ASSERT_EQUAL(tnd_check_bound(TANDEM_TYPE_Q4_0), 5e-4);
}

static void a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter(void)
{
    char text[160];
    const struct tnd_sweep_state within = {1, {100, 124}, {0, 0}, {109, 130}};
    const struct tnd_sweep_state moved = {1, {100, 100}, {0, 0}, {111, 111}};
    const struct tnd_sweep_state busy = {1, {100, 126}, {0, 0}, {100, 100}};
    CU_ASSERT_FALSE(tnd_sweep_state_text(&within, text, sizeof(text)));
    CU_ASSERT_TRUE(tnd_sweep_state_text(&moved, text, sizeof(text)));
    CU_ASSERT_TRUE(tnd_sweep_state_text(&busy, text, sizeof(text)));
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static CU_TestInfo tests[] = {
    TEST(error_bars_grow_with_the_distance_from_what_was_measured),
    TEST(thread_counts_have_floors),
    TEST(a_quarter_of_the_error_and_the_spread_of_noise_count),
    TEST(a_clear_lead_is_three_sigmas_and_a_tenth),
    TEST(sharing_costs_eight_hand_offs),
    TEST(without_times_the_cpu_kernels_serve),
    TEST(gaps_and_ends_of_a_line_are_uncertain),
    TEST(points_lie_where_kernels_step),
    TEST(short_products_share_a_graph),
    TEST(bounds_of_errors_follow_the_weights),
    TEST(a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter),
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_policy[];
CU_SuiteInfo suites_measure_policy[] = {
    {"policy", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
