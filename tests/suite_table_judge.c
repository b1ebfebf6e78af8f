/* SPDX-License-Identifier: MIT
 * Standard errors of samples, and curves that do not fall. */
#include "tests/suite_table.h"
#include "tests/support_tune.h"

#include <math.h>

#include "table/judge.h"
#include "table/table_cells.h"

static tandem_table *table;

static void set_up(void)
{
    table = tune_new();
}

static void tear_down(void)
{
    tandem_table_free(table);
}

static void add(const struct tnd_curve_key *key, int64_t m, double us, uint32_t count)
{
    const struct tnd_sample sample = {.m = m, .median_us = us, .count = count, .when = 100};
    check_ok(tnd_table_add(table, key, &sample));
}

static struct tnd_curve_key product(void)
{
    return tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 2);
}

static const struct tnd_sample *sample_at(int i)
{
    return &table->curves[0].samples[i];
}

static void one_sample_is_never_exact(void)
{
    const double least = hypot(TND_SINGLE_SHOT_ERROR, TND_MOMENT_ERROR);
    const struct tnd_sample one = {.m = 1, .median_us = 200, .count = 1};
    const struct tnd_sample unknown = {.m = 1, .median_us = 200};
    CU_ASSERT_DOUBLE_EQUAL(tnd_sample_error(&one), 200 * least, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_sample_error(&unknown), 200 * least, 1e-9);
}

/* Two that agree by chance say little about the machine; many say what their spread is. */
static void a_spread_of_few_samples_is_mixed_with_the_single_shot_error(void)
{
    const double two = tnd_time_error(100, 0, 2, 0.04) / 100;
    CU_ASSERT_DOUBLE_EQUAL(two, hypot(0.04 / 2, TND_MOMENT_ERROR), 1e-9);
    const double many = tnd_time_error(100, 5, 400, 0.04) / 100;
    const double sigma = 0.05 * TND_MAD_TO_SIGMA / 20;
    CU_ASSERT_DOUBLE_EQUAL(many, hypot(sigma, TND_MOMENT_ERROR), 1e-4);
}

static void many_samples_of_one_moment_leave_its_error(void)
{
    CU_ASSERT_DOUBLE_EQUAL(tnd_time_error(100, 0.1, 100000, 0.04), 100 * TND_MOMENT_ERROR, 1e-3);
}

static void the_noise_of_the_sweep_counts(void)
{
    const struct tnd_curve_key key = product();
    const struct tnd_sweep_state sweep = {
        .when = 100, .before = {70, 70 * 1.3}, .between = {70, 700}, .after = {70, 71}};
    add(&key, 8, 100, 1);
    check_ok(tnd_table_judge(table));
    CU_ASSERT_DOUBLE_EQUAL(sample_at(0)->error_us, 100 * hypot(0.04, 0.01), 1e-9);
    check_ok(tnd_table_add_sweep(table, &sweep));
    check_ok(tnd_table_judge(table));
    CU_ASSERT_DOUBLE_EQUAL(sample_at(0)->error_us, 100 * hypot(0.3, 0.01), 1e-9);
}

/* Of the committed table of a Zen 4: quantize and product of 32000 x 2048 on one sample each. */
static void a_time_that_more_tokens_undercut_is_fitted(void)
{
    const struct tnd_curve_key key = product();
    add(&key, 192, 50.1, 2);
    add(&key, 256, 62.3, 1);
    add(&key, 384, 147.6, 1);
    add(&key, 512, 115.9, 1);
    check_ok(tnd_table_judge(table));
    CU_ASSERT_TRUE(tnd_sample_is_contradicted(sample_at(2)));
    CU_ASSERT_TRUE(tnd_sample_us(sample_at(2)) < 122);
    CU_ASSERT_TRUE(sample_at(2)->error_us > 25);
    for (int i = 0; i < 4; i += i == 1 ? 2 : 1) {
        CU_ASSERT_FALSE(tnd_sample_is_contradicted(sample_at(i)));
        CU_ASSERT_EQUAL(tnd_sample_us(sample_at(i)), sample_at(i)->median_us);
    }
}

static void what_noise_explains_stays_as_it_was_measured(void)
{
    const struct tnd_curve_key key = product();
    add(&key, 8, 104, 1);
    add(&key, 16, 100, 1);
    add(&key, 24, 103, 1);
    check_ok(tnd_table_judge(table));
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(tnd_sample_us(sample_at(i)), sample_at(i)->median_us);
    }
}

/* OpenBLAS takes 16 tokens in half the time of 12. */
static void a_fall_that_many_samples_show_is_believed(void)
{
    const struct tnd_curve_key key = product();
    add(&key, 8, 150, 24);
    add(&key, 12, 200, 24);
    add(&key, 16, 100, TND_PROOF_SAMPLES);
    check_ok(tnd_table_judge(table));
    CU_ASSERT_EQUAL(tnd_sample_us(sample_at(1)), 200);
    tandem_table_free(table);
    table = tune_new();
    add(&key, 8, 150, 24);
    add(&key, 12, 200, 24);
    add(&key, 16, 100, TND_PROOF_SAMPLES - 1);
    check_ok(tnd_table_judge(table));
    CU_ASSERT_TRUE(tnd_sample_is_contradicted(sample_at(1)));
}

/* Whatever the noise: errors are above 0, what is believed lies between the measured times, and
 * judging twice changes nothing. */
static void random_curves_are_judged_within_their_times(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const struct tnd_curve_key key = product();
    for (int round = 0; round < 500; round++) {
        const int n = (int)tnd_test_rng_int(&rng, 1, 20);
        tandem_table_free(table);
        table = tune_new();
        for (int i = 0; i < n; i++) {
            add(&key, 1 + 3 * i, exp((double)tnd_test_rng_int(&rng, -3, 9)),
                (uint32_t)tnd_test_rng_int(&rng, 0, 12));
        }
        check_ok(tnd_table_judge(table));
        for (int i = 0; i < n; i++) {
            const struct tnd_sample before = *sample_at(i);
            CU_ASSERT_TRUE(before.error_us > 0 && isfinite(before.error_us));
            CU_ASSERT_TRUE(before.fit_us >= exp(-3.001) && before.fit_us <= exp(9.001));
            check_ok(tnd_table_judge(table));
            CU_ASSERT_EQUAL(sample_at(i)->fit_us, before.fit_us);
            CU_ASSERT_EQUAL(sample_at(i)->error_us, before.error_us);
        }
    }
}

static void tables_that_are_parsed_or_merged_are_judged(void)
{
    tandem_table *read = tune_parse(tune_example);
    tandem_table *copy = NULL;
    for (int i = 0; i < read->n_curves; i++) {
        CU_ASSERT_TRUE(read->curves[i].samples[0].error_us > 0);
    }
    const struct tnd_curve_key key = product();
    add(&key, 8, 100, 1);
    CU_ASSERT_EQUAL(sample_at(0)->error_us, 0);
    check_ok(tandem_table_copy(table, &copy, NULL));
    CU_ASSERT_TRUE(copy->curves[0].samples[0].error_us > 0);
    tandem_table_free(copy);
    tandem_table_free(read);
}

/* By the newest of the table: what is of one age compares as before. */
static void older_samples_have_larger_errors(void)
{
    const struct tnd_curve_key key = product();
    const int64_t month = 30 * 86400;
    const int64_t ages[] = {0, month, 4 * month, 400 * month};
    for (int i = 0; i < 4; i++) {
        const struct tnd_sample sample = {
            .m = i + 1, .median_us = 100, .count = 9, .when = 500 * month - ages[i]};
        check_ok(tnd_table_add(table, &key, &sample));
    }
    check_ok(tnd_table_judge(table));
    const double now = sample_at(0)->error_us;
    CU_ASSERT_DOUBLE_EQUAL(sample_at(1)->error_us, hypot(now, 1), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(sample_at(2)->error_us, hypot(now, 2), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(sample_at(3)->error_us, hypot(now, 100 * TND_SINGLE_SHOT_ERROR), 1e-9);
}

/* Of an even number the lower one of the middle counts: what disturbs only slows down. */
static void times_in_a_row_have_a_median_and_an_error(void)
{
    const float us[] = {100, 102, 98, 300};
    double error_us = -1;
    CU_ASSERT_DOUBLE_EQUAL(tandem_judge_times(us, 4, &error_us), 100, 1e-6);
    CU_ASSERT(error_us > 0 && error_us < 4);
    CU_ASSERT_DOUBLE_EQUAL(tandem_judge_times(us, 1, &error_us), 100, 1e-6);
    CU_ASSERT(error_us >= 100 * TND_SINGLE_SHOT_ERROR);
    CU_ASSERT_EQUAL(tandem_judge_times(us, 0, &error_us), 0);
    CU_ASSERT_EQUAL(tandem_judge_times(NULL, 4, NULL), 0);
}

static CU_TestInfo tests[] = {
    {"older_samples_have_larger_errors", older_samples_have_larger_errors},
    {"times_in_a_row_have_a_median_and_an_error", times_in_a_row_have_a_median_and_an_error},
    {"one_sample_is_never_exact", one_sample_is_never_exact},
    {"a_spread_of_few_samples_is_mixed_with_the_single_shot_error",
     a_spread_of_few_samples_is_mixed_with_the_single_shot_error},
    {"many_samples_of_one_moment_leave_its_error", many_samples_of_one_moment_leave_its_error},
    {"the_noise_of_the_sweep_counts", the_noise_of_the_sweep_counts},
    {"a_time_that_more_tokens_undercut_is_fitted", a_time_that_more_tokens_undercut_is_fitted},
    {"what_noise_explains_stays_as_it_was_measured", what_noise_explains_stays_as_it_was_measured},
    {"a_fall_that_many_samples_show_is_believed", a_fall_that_many_samples_show_is_believed},
    {"random_curves_are_judged_within_their_times", random_curves_are_judged_within_their_times},
    {"tables_that_are_parsed_or_merged_are_judged", tables_that_are_parsed_or_merged_are_judged},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_table_judge[] = {
    {"errors of times", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
