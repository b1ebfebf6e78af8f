/* SPDX-License-Identifier: MIT
 * Estimates: over M, over thread counts, over shapes; version 1 tables. */
#include "tests/support_tune.h"

#include <math.h>
#include <string.h>

#include "tune/estimate.h"
#include "tune/thread_model.h"

static const struct tnd_table_stage cpu_compute = {"cpu", TANDEM_KIND_CPU, TANDEM_TASK_MUL_MAT_Q,
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

static void add_line(const struct tnd_curve_key *key, double offset, double slope)
{
    for (int64_t m = 8; m <= 32; m += 8) {
        tune_add(table, key, m, offset + slope * (double)m);
    }
}

static double on_curve(int64_t m)
{
    double us = -1.0;
    CU_ASSERT_TRUE(tnd_estimate_curve(&table->curves[0], m, &us));
    return us;
}

static double stage(int64_t n, int64_t k, int64_t m, int threads)
{
    struct tnd_estimate out = {0};
    bool found = tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0, n,
                                    k, m, threads, &out);
    return found ? out.us : -1.0;
}

static void measured_points_are_exact_and_lines_lie_between(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    tune_add(table, &key, 8, 10.0);
    tune_add(table, &key, 16, 30.0);
    tune_add(table, &key, 24, 20.0);
    CU_ASSERT_EQUAL(on_curve(8), 10.0);
    CU_ASSERT_EQUAL(on_curve(16), 30.0);
    CU_ASSERT_EQUAL(on_curve(24), 20.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(10), 15.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(20), 25.0, 1e-9);
}

static void beyond_the_last_point_the_line_goes_on(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&key, 100.0, 2.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(512), 100.0 + 2.0 * 512, 1e-6);
}

/* No stage that works by token gives tokens away, whatever noise says. */
static void falling_curves_grow_beyond_the_last_point(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    tune_add(table, &key, 8, 12438.0);
    tune_add(table, &key, 16, 12468.0);
    tune_add(table, &key, 24, 10948.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(96), 10948.0 * (1 + 0.2 * 3), 1e-6);
    tandem_table_free(table);
    table = tune_new();
    key = tune_key(64, 32, TANDEM_TASK_DEQUANTIZE_W, true, 1);
    tune_add(table, &key, 8, 12438.0);
    tune_add(table, &key, 16, 12468.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(4096), 12468.0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(1), 12438.0, 1e-6);
}

static void one_outlier_among_the_last_points_does_not_turn_the_line(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    tune_add(table, &key, 8, 80.0);
    tune_add(table, &key, 16, 160.0);
    tune_add(table, &key, 24, 400.0); /* should be 240 */
    tune_add(table, &key, 32, 320.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(64), 320.0 + 10.0 * 32, 1e-6);
}

static void below_the_first_point_the_line_keeps_its_fixed_cost(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&key, 1.0, 10.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(1), 11.0, 1e-9);
    tandem_table_free(table);
    table = tune_new();
    add_line(&key, 1000.0, 1.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(1), 1001.0, 1e-9);
}

static void a_single_point_is_read_by_its_task(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    tune_add(table, &key, 8, 80.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(1), 10.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(80), 800.0, 1e-9);
    tandem_table_free(table);
    table = tune_new();
    key = tune_key(64, 32, TANDEM_TASK_DEQUANTIZE_W, true, 1);
    tune_add(table, &key, 8, 80.0);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(1), 80.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(on_curve(80), 80.0, 1e-9);
}

static void nothing_is_estimated_from_nothing(void)
{
    double us = 7.0;
    struct tnd_curve empty;
    memset(&empty, 0, sizeof(empty));
    CU_ASSERT_FALSE(tnd_estimate_curve(&empty, 8, &us));
    CU_ASSERT_FALSE(tnd_estimate_curve(NULL, 8, &us));
    CU_ASSERT_EQUAL(us, 7.0);
    CU_ASSERT_EQUAL(stage(64, 32, 8, 1), -1.0);
}

static void thread_counts_follow_the_model_and_are_exact_where_measured(void)
{
    const int counts[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, counts[i]);
        add_line(&key, 0.0, 10.0 + 800.0 / counts[i] + 2.0 * counts[i]);
    }
    for (int threads = 1; threads <= 12; threads++) {
        double expected = 16.0 * (10.0 + 800.0 / threads + 2.0 * threads);
        CU_ASSERT_DOUBLE_EQUAL(stage(64, 32, 16, threads), expected, 1e-6 * expected);
    }
}

/* Reading the weights bounds few tokens, computing many: a curve with two points knows nothing of
 * the corner that the other thread count's curve shows. */
static void a_thin_curve_follows_the_one_of_another_thread_count(void)
{
    struct tnd_curve_key two = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 2);
    struct tnd_curve_key one = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    for (int64_t m = 1; m <= 512; m *= 2) {
        tune_add(table, &two, m, fmax(100.0, 10.0 * (double)m));
    }
    tune_add(table, &one, 1, 150.0);
    tune_add(table, &one, 128, 2560.0); /* ratios 1.5 and 2 */
    CU_ASSERT_EQUAL(stage(64, 32, 1, 1), 150.0);
    CU_ASSERT_EQUAL(stage(64, 32, 128, 1), 2560.0);
    CU_ASSERT_DOUBLE_EQUAL(stage(64, 32, 8, 1), 100.0 * (1.5 + 0.5 * 3 / 7), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(stage(64, 32, 512, 1), 2 * 5120.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(stage(64, 32, 48, 2), 480.0, 1e-9); /* its own points are near */
}

static void noisy_thread_counts_stay_exact_and_between_sensible(void)
{
    const double counts[] = {1, 2, 4, 8};
    const double times[] = {100.0, 56.0, 27.0, 30.0};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(tnd_thread_model(counts, times, 4, counts[i]).us, times[i]);
    }
    double three = tnd_thread_model(counts, times, 4, 3.0).us;
    double six = tnd_thread_model(counts, times, 4, 6.0).us;
    CU_ASSERT_TRUE(three > 25.0 && three < 56.0);
    CU_ASSERT_TRUE(six > 15.0 && six < 35.0);
    CU_ASSERT_TRUE(tnd_thread_model(counts, times, 4, 1000.0).us > 0.0);
    CU_ASSERT_EQUAL(tnd_thread_model(counts, times, 1, 6.0).high_us, 100.0);
    /* Two counts: the simplest line that meets both. */
    double between = tnd_thread_model(counts, times, 2, 1.5).us;
    CU_ASSERT_TRUE(between > 56.0 && between < 100.0);
}

static void random_times_never_give_a_negative_or_infinite_estimate(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 5000; round++) {
        double counts[6];
        double times[6];
        int n = (int)tnd_test_rng_int(&rng, 1, 6);
        double count = 0.0;
        for (int i = 0; i < n; i++) {
            count += (double)tnd_test_rng_int(&rng, 1, 9);
            counts[i] = count;
            times[i] =
                (double)tnd_test_rng_int(&rng, 0, 3) * exp((double)tnd_test_rng_int(&rng, -9, 20));
        }
        double us = tnd_thread_model(counts, times, n, (double)tnd_test_rng_int(&rng, 1, 70)).us;
        if (!(us >= 0.0) || !isfinite(us)) {
            CU_FAIL("estimate is negative or not finite");
        }
    }
}

/* The end of its range is the time of the count that was measured. */
static void a_single_measured_thread_count_is_not_divided(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&key, 0.0, 10.0);
    struct tnd_estimate out = {0};
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                      64, 32, 16, 4, &out));
    CU_ASSERT_DOUBLE_EQUAL(out.us + out.above_us, 160.0, 1e-9);
    CU_ASSERT_TRUE(out.us > 40 && out.us < 80 && out.us - out.below_us >= 40);
}

static void version_1_divides_parallel_stages_and_only_those(void)
{
    tandem_table *old = tune_parse(tune_example);
    const int64_t n = 4096;
    double stages[TANDEM_STAGES];
    struct tnd_estimate out;
    CU_ASSERT_TRUE(
        tnd_estimate_profile(old, &old->profiles[0], TANDEM_TYPE_Q4_0, n, n, 16, 4, &out, stages));
    CU_ASSERT_DOUBLE_EQUAL(stages[0], 22.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(stages[1], 14387.0 / 4, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(out.us, 22.0 + 14387.0 / 4, 1e-9);
    CU_ASSERT_TRUE(
        tnd_estimate_profile(old, &old->profiles[1], TANDEM_TYPE_Q4_0, n, n, 16, 4, &out, stages));
    CU_ASSERT_DOUBLE_EQUAL(stages[0], 12468.0 / 4, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(stages[1], 7173.0, 1e-9);
    /* A stage that we run in parallel although the file's was not: as the original would. */
    struct tnd_table_profile ours = old->profiles[0];
    ours.stage[TANDEM_STAGE_INIT].parallel = true;
    CU_ASSERT_TRUE(tnd_estimate_profile(old, &ours, TANDEM_TYPE_Q4_0, n, n, 16, 2, &out, stages));
    CU_ASSERT_DOUBLE_EQUAL(stages[0], 11.0, 1e-9);
    tandem_table_free(old);
}

static void a_stage_on_one_thread_serves_for_its_parallel_twin(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, false, 1);
    add_line(&key, 0.0, 10.0);
    CU_ASSERT_DOUBLE_EQUAL(stage(64, 32, 16, 1), 160.0, 1e-9);
    CU_ASSERT_EQUAL(stage(64, 32, 16, 2), -1.0); /* measured, not assumed */
}

static void unmeasured_shapes_scale_by_work_from_the_nearest(void)
{
    struct tnd_curve_key near = tune_key(4096, 4096, TANDEM_TASK_MUL_MAT_Q, true, 1);
    struct tnd_curve_key far = tune_key(1024, 1024, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&near, 0.0, 16.0);
    add_line(&far, 0.0, 99.0);
    CU_ASSERT_DOUBLE_EQUAL(stage(4096, 5120, 16, 1), 16.0 * 16 * 1.25, 1e-6);
    CU_ASSERT_EQUAL(stage(4096, 4096 * 16, 16, 1), -1.0); /* too far */
    CU_ASSERT_EQUAL(stage(64, 64, 16, 1), -1.0);
    struct tnd_estimate out;
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                      4096, 5120, 16, 1, &out));
    CU_ASSERT_FALSE(out.measured_shape);
    CU_ASSERT_TRUE(out.error_us > 0.0);
    CU_ASSERT_FALSE(tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q8_0,
                                       4096, 4096, 16, 1, &out));
    /* Quantising activations goes with K alone. */
    struct tnd_curve_key init = tune_key(4096, 4096, TANDEM_TASK_QUANTIZE_X, true, 1);
    add_line(&init, 0.0, 2.0);
    struct tnd_table_stage quantize = cpu_compute;
    quantize.task = TANDEM_TASK_QUANTIZE_X;
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &quantize, TANDEM_STAGE_INIT, TANDEM_TYPE_Q4_0, 8192,
                                      5120, 16, 1, &out));
    CU_ASSERT_DOUBLE_EQUAL(out.us, 2.0 * 16 * 1.25, 1e-6);
}

static void shapes_between_measured_ones_keep_the_fixed_cost_of_a_stage(void)
{
    /* 30 us for the hand-off, and 10 us for each 1024 x 1024 weights, whatever M is */
    struct tnd_curve_key small = tune_key(512, 1024, TANDEM_TASK_MUL_MAT_Q, true, 1);
    struct tnd_curve_key large = tune_key(4096, 1024, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&small, 35.0, 0.0);
    add_line(&large, 70.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(stage(1024, 1024, 16, 1), 40.0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(stage(2048, 1024, 16, 1), 50.0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(stage(1024, 512, 16, 1), 35.0, 1e-6); /* as much work as the small */
}

static void spread_makes_an_estimate_noisy(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    struct tnd_sample calm = {8, 100.0, 1.0, 9, 1, 0, 0, 0, 0};
    struct tnd_sample wild = {16, 200.0, 90.0, 9, 1, 0, 0, 0, 0};
    check_ok(tnd_table_add(table, &key, &calm));
    check_ok(tnd_table_add(table, &key, &wild));
    struct tnd_estimate out;
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                      64, 32, 8, 1, &out));
    CU_ASSERT_FALSE(out.noisy);
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &cpu_compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                      64, 32, 16, 1, &out));
    CU_ASSERT_TRUE(out.noisy);
}

static void a_profile_needs_all_of_its_stages(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    add_line(&key, 0.0, 10.0);
    struct tnd_table_profile profile = {"cpu", {{"", 0, 0, false, false, false}}};
    struct tnd_estimate out = {.us = -1.0};
    CU_ASSERT_FALSE(
        tnd_estimate_profile(table, &profile, TANDEM_TYPE_Q4_0, 64, 32, 8, 1, &out, NULL));
    profile.stage[TANDEM_STAGE_COMPUTE] = cpu_compute;
    CU_ASSERT_TRUE(
        tnd_estimate_profile(table, &profile, TANDEM_TYPE_Q4_0, 64, 32, 8, 1, &out, NULL));
    CU_ASSERT_EQUAL(out.us, 80.0);
    profile.stage[TANDEM_STAGE_INIT] = cpu_compute;
    out.us = -1.0;
    CU_ASSERT_FALSE(
        tnd_estimate_profile(table, &profile, TANDEM_TYPE_Q4_0, 64, 32, 8, 1, &out, NULL));
    CU_ASSERT_EQUAL(out.us, -1.0);
}

static CU_TestInfo tests[] = {
    {"measured_points_are_exact_and_lines_lie_between",
     measured_points_are_exact_and_lines_lie_between},
    {"beyond_the_last_point_the_line_goes_on", beyond_the_last_point_the_line_goes_on},
    {"falling_curves_grow_beyond_the_last_point", falling_curves_grow_beyond_the_last_point},
    {"one_outlier_among_the_last_points_does_not_turn_the_line",
     one_outlier_among_the_last_points_does_not_turn_the_line},
    {"below_the_first_point_the_line_keeps_its_fixed_cost",
     below_the_first_point_the_line_keeps_its_fixed_cost},
    {"a_single_point_is_read_by_its_task", a_single_point_is_read_by_its_task},
    {"nothing_is_estimated_from_nothing", nothing_is_estimated_from_nothing},
    {"thread_counts_follow_the_model_and_are_exact_where_measured",
     thread_counts_follow_the_model_and_are_exact_where_measured},
    {"a_thin_curve_follows_the_one_of_another_thread_count",
     a_thin_curve_follows_the_one_of_another_thread_count},
    {"noisy_thread_counts_stay_exact_and_between_sensible",
     noisy_thread_counts_stay_exact_and_between_sensible},
    {"random_times_never_give_a_negative_or_infinite_estimate",
     random_times_never_give_a_negative_or_infinite_estimate},
    {"a_single_measured_thread_count_is_not_divided",
     a_single_measured_thread_count_is_not_divided},
    {"version_1_divides_parallel_stages_and_only_those",
     version_1_divides_parallel_stages_and_only_those},
    {"a_stage_on_one_thread_serves_for_its_parallel_twin",
     a_stage_on_one_thread_serves_for_its_parallel_twin},
    {"shapes_between_measured_ones_keep_the_fixed_cost_of_a_stage",
     shapes_between_measured_ones_keep_the_fixed_cost_of_a_stage},
    {"unmeasured_shapes_scale_by_work_from_the_nearest",
     unmeasured_shapes_scale_by_work_from_the_nearest},
    {"spread_makes_an_estimate_noisy", spread_makes_an_estimate_noisy},
    {"a_profile_needs_all_of_its_stages", a_profile_needs_all_of_its_stages},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_estimate[];
CU_SuiteInfo suites_tune_estimate[] = {
    {"estimate", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
