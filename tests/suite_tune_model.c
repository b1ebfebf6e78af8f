/* SPDX-License-Identifier: MIT
 * What a predicted time may never be, on random curves: cheaper for more tokens, faster than the
 * samples or the machine allow, more than linearly faster with more threads, surer from afar. */
#include "tests/support_tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/curve_fit.h"
#include "table/curve_line.h"
#include "tune/candidates.h"
#include "tune/estimate.h"
#include "tune/policy.h"
#include "tune/thread_model.h"

enum { ROUNDS = 200, N = 64, K = 32 };

static const struct tnd_table_stage compute = {"cpu", TANDEM_KIND_CPU, TANDEM_TASK_MUL_MAT_Q,
                                               true,  false,           false};

static double uniform(struct tnd_test_rng *rng, double low, double high)
{
    return low + (high - low) * (double)tnd_test_rng_int(rng, 0, 1000000) / 1e6;
}

/* A curve of  fixed + per_m * m  with noise, on `threads` threads. */
static void add_random(tandem_table *table, struct tnd_test_rng *rng, int threads, double noise)
{
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, threads);
    double fixed = exp(uniform(rng, 0, 8));
    double per_m = exp(uniform(rng, 0, 6)) / threads;
    int64_t m = tnd_test_rng_int(rng, 1, 16);
    int n = (int)tnd_test_rng_int(rng, 1, 9);
    for (int i = 0; i < n; i++) {
        double us = (fixed + per_m * (double)m) * (1 + uniform(rng, -noise, noise));
        tune_add(table, &key, m, us);
        m += tnd_test_rng_int(rng, 1, m);
    }
}

static double at(const struct tnd_curve *curve, double m, const struct tnd_curve_bounds *bounds)
{
    return tnd_curve_at(curve, (int64_t)m, bounds).us;
}

/* The times around one end. */
static void check_outside(const struct tnd_curve *curve, const struct tnd_curve_bounds *bounds)
{
    const struct tnd_sample *first = &curve->samples[0];
    const struct tnd_sample *last = &curve->samples[curve->n_samples - 1];
    double before = 0;
    for (int64_t m = 1; m <= first->m; m++) {
        double us = at(curve, (double)m, bounds);
        CU_ASSERT_TRUE(us >= before);
        CU_ASSERT_TRUE(us >= first->median_us * (double)m / (double)first->m * (1 - 1e-12));
        CU_ASSERT_TRUE(us >= fmin(bounds->floor_us, first->median_us));
        before = us;
    }
    CU_ASSERT_EQUAL(before, first->median_us);
    before = last->median_us;
    for (int64_t m = last->m + 1; m < 64 * last->m; m += 1 + m / 8) {
        double us = at(curve, (double)m, bounds);
        double roof = bounds->least_per_m * (double)m;
        double own_roof = last->median_us * (double)m / (double)last->m;
        CU_ASSERT_TRUE(us > before);
        CU_ASSERT_TRUE(us <= own_roof * (1 + 1e-12)); /* the fixed cost is not negative */
        CU_ASSERT_TRUE(us >= fmin(roof, own_roof) * (1 - 1e-12));
        before = us;
    }
    double next = at(curve, (double)last->m + 1, bounds);
    CU_ASSERT_TRUE(next - last->median_us <= last->median_us / (double)last->m * (1 + 1e-9));
}

static void times_outside_of_the_samples_are_monotone_and_below_no_roof(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        tandem_table *table = tune_new();
        add_random(table, &rng, 1, 0.5);
        const struct tnd_curve_bounds bounds = {exp(uniform(&rng, -3, 6)), exp(uniform(&rng, 0, 8)),
                                                0};
        check_outside(&table->curves[0], &bounds);
        tandem_table_free(table);
    }
}

/* Neighbouring points of a real sweep: their slopes are noise, the line through all is not. */
static void noise_between_the_last_points_does_not_hide_the_slope(void)
{
    static const double us[] = {1340,  2637,  3980,  5368,  6431,  7665,  10063, 10618,
                                12119, 14625, 13919, 14892, 15691, 17458, 19328, 18482};
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
    for (int i = 0; i < 16; i++) {
        tune_add(table, &key, 8 * (i + 1), us[i]);
    }
    double there = at(&table->curves[0], 512, &(struct tnd_curve_bounds){0});
    CU_ASSERT_TRUE(fabs(there / 75000 - 1) < 0.1); /* measured */
    tandem_table_free(table);
}

static void the_fit_finds_the_line_in_spite_of_outliers(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 200; round++) {
        tandem_table *table = tune_new();
        struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
        double fixed = uniform(&rng, 0, 1000);
        int wrong = (int)tnd_test_rng_int(&rng, 0, 8);
        for (int i = 0; i < 9; i++) {
            double us = fixed + 10 * (double)(8 + 8 * i);
            tune_add(table, &key, 8 + 8 * i, us * (i == wrong ? 1.5 : 1.0));
        }
        struct tnd_curve_fit fit = tnd_curve_fit_end(&table->curves[0], true, 0);
        CU_ASSERT_TRUE(fabs(fit.per_m - 10) < 2.5);
        CU_ASSERT_TRUE(fit.residual >= 0 && fit.residual < 0.2);
        tandem_table_free(table);
    }
}

static struct tnd_estimate estimate(const tandem_table *table, int64_t m, int threads)
{
    struct tnd_estimate out = {0};
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &compute, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0, N, K,
                                      m, threads, &out));
    return out;
}

static void error_bars_grow_with_distance_and_noise(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        tandem_table *table = tune_new();
        add_random(table, &rng, 1, 0.2);
        const struct tnd_curve *curve = &table->curves[0];
        int64_t last = curve->samples[curve->n_samples - 1].m;
        double before = 0;
        for (int64_t m = last; m <= 16 * last; m *= 2) {
            struct tnd_estimate one = estimate(table, m, 1);
            CU_ASSERT_TRUE(one.error_us / one.us >= before);
            CU_ASSERT_DOUBLE_EQUAL(one.outside, log2((double)m / (double)last), 1e-9);
            before = one.error_us / one.us;
        }
        tandem_table_free(table);
    }
}

static void error_bars_carry_the_residual_of_the_line(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
    double share[2];
    for (int noisy = 0; noisy < 2; noisy++) {
        tandem_table *table = tune_new();
        for (int64_t m = 8; m <= 64; m += 8) {
            tune_add(table, &key, m, 10 * (double)m * (1 + noisy * uniform(&rng, -0.2, 0.2)));
        }
        struct tnd_estimate one = estimate(table, 128, 1);
        share[noisy] = (one.error_us - one.noise_us) / one.us;
        tandem_table_free(table);
    }
    CU_ASSERT_DOUBLE_EQUAL(share[0], TND_ERROR_BEYOND, 1e-6);
    CU_ASSERT_TRUE(share[1] > share[0] + 0.02);
}

static void add_peak(tandem_table *table, const char *unit, double rate)
{
    struct tnd_peak peak = {"", 1, rate, 1, 1};
    snprintf(peak.unit, sizeof(peak.unit), "%s", unit);
    check_ok(tnd_table_add_peak(table, &peak));
}

/* Weights of 1,152 bytes, 4,096 operations a token. */
static void peaks_of_the_table_are_roofs_outside_of_the_samples(void)
{
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
    for (int64_t m = 8; m <= 24; m += 8) {
        tune_add(table, &key, m, 2000);
    }
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 48, 1).us, 2000 * 1.2, 1e-6);
    add_peak(table, "int8 VNNI", 4096 / 50.0 / 1e3);
    add_peak(table, "fma", 4096 / 70.0 / 1e3);
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 48, 1).us, 2000 + 24 * 50, 1e-6);
    add_peak(table, "bf16", 1e3);
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 48, 1).us, 2000 * 1.2, 1e-6);
    tandem_table_free(table);
    table = tune_new();
    for (int64_t m = 8; m <= 24; m += 8) {
        tune_add(table, &key, m, 250 * (double)m);
    }
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 1, 1).us, 250, 1e-6);
    add_peak(table, "read", 1152 / 1000.0 / 1e3);
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 1, 1).us, 1000, 1e-6);
    add_peak(table, "read", 1e-6); /* the samples are believed */
    CU_ASSERT_TRUE(estimate(table, 1, 1).us <= 2000);
    tandem_table_free(table);
}

/* Float products take 16 tokens at once, fewer one by one. */
static double stairs(int64_t m)
{
    return m < 16 ? 1000 + 100 * (double)m : 400 + 800 * (double)((m + 15) / 16);
}

static void stairs_of_kernels_are_followed(void)
{
    static const int64_t measured[] = {1, 4, 8, 20, 40, 130};
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_NODE, true, 1);
    struct tnd_table_stage node = compute;
    key.type = TANDEM_TYPE_F32;
    node.task = TANDEM_TASK_NODE;
    for (int i = 0; i < 6; i++) {
        tune_add(table, &key, measured[i], stairs(measured[i]));
    }
    double before = 0;
    for (int64_t m = 1; m <= 500; m++) {
        struct tnd_estimate out = {0};
        CU_ASSERT_TRUE(tnd_estimate_stage(table, &node, TANDEM_STAGE_COMPUTE, TANDEM_TYPE_F32, N, K,
                                          m, 1, &out));
        CU_ASSERT_TRUE(fabs(out.us / stairs(m) - 1) < 0.02);
        CU_ASSERT_TRUE(fabs(out.us - stairs(m)) <= out.error_us + 1e-9);
        CU_ASSERT_TRUE(m == 16 || out.us >= before);
        before = out.us;
    }
    tandem_table_free(table);
}

/* Where all samples are of one kind nothing changes, and no step is known of other kernels. */
static void without_stairs_lines_stay_lines(void)
{
    const struct tnd_curve_bounds steps = {.step = 16};
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
    tune_add(table, &key, 1, 100);
    tune_add(table, &key, 32, 3200);
    CU_ASSERT_DOUBLE_EQUAL(estimate(table, 17, 1).us, 1700, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(at(&table->curves[0], 12, &steps), 1200, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(at(&table->curves[0], 17, &steps), 3200, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(at(&table->curves[0], 16, &steps), 1600, 1e-9);
    tandem_table_free(table);
    table = tune_new(); /* one sample below the first whole step has no slope of its own */
    for (int64_t m = 8; m <= 64; m *= 2) {
        tune_add(table, &key, m, 50 + 3 * (double)m);
    }
    CU_ASSERT_DOUBLE_EQUAL(at(&table->curves[0], 4, &steps), 62, 1e-9);
    tandem_table_free(table);
}

static void no_speed_up_is_more_than_linear(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 20 * ROUNDS; round++) {
        double counts[5];
        double times[5];
        int n = (int)tnd_test_rng_int(&rng, 1, 5);
        double count = 0;
        for (int i = 0; i < n; i++) {
            count += (double)tnd_test_rng_int(&rng, 1, 4);
            counts[i] = count;
            times[i] = 1000 / count * (1 + uniform(&rng, -0.3, 0.6));
        }
        double threads = (double)tnd_test_rng_int(&rng, 1, 64);
        struct tnd_thread_time time = tnd_thread_model(counts, times, n, threads);
        CU_ASSERT_TRUE(time.low_us <= time.us && time.us <= time.high_us);
        for (int i = 0; i < n && counts[i] < threads; i++) {
            bool is_measured = time.low_us == time.high_us && counts[n - 1] >= threads;
            double linear = times[i] * counts[i] / threads;
            CU_ASSERT_TRUE(is_measured || time.low_us >= linear * (1 - 1e-12));
        }
    }
}

static void more_threads_than_measured_give_a_range(void)
{
    const double counts[] = {1, 2};
    const double times[] = {100, 47}; /* superlinear: noise */
    struct tnd_thread_time eight = tnd_thread_model(counts, times, 2, 8);
    CU_ASSERT_TRUE(100 / eight.low_us < 8);
    CU_ASSERT_TRUE(100 / eight.low_us > 7);
    CU_ASSERT_TRUE(100 / eight.high_us > 4);
    CU_ASSERT_TRUE(100 / eight.high_us < 6);
    const double slow[] = {100, 80};
    struct tnd_thread_time limited = tnd_thread_model(counts, slow, 2, 8);
    CU_ASSERT_TRUE(100 / limited.low_us < 2.2);
    CU_ASSERT_TRUE(100 / limited.high_us > 1.2);
    struct tnd_thread_time alone = tnd_thread_model(counts, times, 1, 8);
    CU_ASSERT_DOUBLE_EQUAL(alone.us, 100 * (TND_SERIAL_PRIOR + (1 - TND_SERIAL_PRIOR) / 8), 1e-9);
    CU_ASSERT_EQUAL(alone.high_us, 100);
    CU_ASSERT_TRUE(alone.low_us > 12.5);
}

static void the_pessimistic_end_of_the_range_is_compared(void)
{
    tandem_table *table = tune_new();
    struct tnd_curve_key one = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 1);
    struct tnd_curve_key two = tune_key(N, K, TANDEM_TASK_MUL_MAT_Q, true, 2);
    tune_add(table, &one, 8, 100);
    tune_add(table, &two, 8, 51);
    struct tnd_estimate four = estimate(table, 8, 4);
    CU_ASSERT_TRUE(four.below_us > 0 && four.above_us > 0);
    CU_ASSERT_TRUE(four.error_us >= fmax(four.below_us, four.above_us));
    CU_ASSERT_TRUE(tnd_cautious_us(&four, false) >= four.us + four.above_us);
    struct tnd_estimate measured = estimate(table, 8, 2);
    CU_ASSERT_EQUAL(measured.below_us + measured.above_us, 0);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"times_outside_of_the_samples_are_monotone_and_below_no_roof",
     times_outside_of_the_samples_are_monotone_and_below_no_roof},
    {"noise_between_the_last_points_does_not_hide_the_slope",
     noise_between_the_last_points_does_not_hide_the_slope},
    {"the_fit_finds_the_line_in_spite_of_outliers", the_fit_finds_the_line_in_spite_of_outliers},
    {"error_bars_grow_with_distance_and_noise", error_bars_grow_with_distance_and_noise},
    {"error_bars_carry_the_residual_of_the_line", error_bars_carry_the_residual_of_the_line},
    {"peaks_of_the_table_are_roofs_outside_of_the_samples",
     peaks_of_the_table_are_roofs_outside_of_the_samples},
    {"stairs_of_kernels_are_followed", stairs_of_kernels_are_followed},
    {"without_stairs_lines_stay_lines", without_stairs_lines_stay_lines},
    {"no_speed_up_is_more_than_linear", no_speed_up_is_more_than_linear},
    {"more_threads_than_measured_give_a_range", more_threads_than_measured_give_a_range},
    {"the_pessimistic_end_of_the_range_is_compared", the_pessimistic_end_of_the_range_is_compared},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_model[];
CU_SuiteInfo suites_tune_model[] = {
    {"model of times", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
