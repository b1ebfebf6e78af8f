/* SPDX-License-Identifier: MIT
 * What is said of a table's trouble: noisy, stale and wrong cells, and what is missing; reports
 * leave warm times out. */
#include <string.h>

#include "tests/suite_report.h"
#include "tests/support_tune.h"
#include "tools/report/table_health.h"

static tandem_table *table;

static void make_table(void)
{
    table = tune_new();
}

static void free_table(void)
{
    tandem_table_free(table);
    table = NULL;
}

static struct tnd_curve_key key_of_ten_samples(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, false, 1);
    for (int m = 10; m <= 100; m += 10) {
        tune_add(table, &key, m, m);
    }
    return key;
}

static struct tnd_check check_of(const char *profile, int64_t m, double nmse, int64_t when)
{
    struct tnd_check check = {"", TANDEM_TYPE_Q4_0, m, 64, 32, nmse, 1e-3, when};
    strcpy(check.profile, profile);
    return check;
}

/* Reports are about cold ones; what is noisy is named. */
static void reports_name_what_is_noisy_and_leave_warm_times_out(void)
{
    const struct tnd_analyze_options text_options = {TND_ANALYZE_TEXT, "t", NULL, 0,
                                                     TANDEM_TYPE_NUMBERS};
    tune_add_cost(table, "cpu", 100, 1);
    struct tnd_text before = tune_analyze(table, &text_options);
    struct tnd_curve_key warm = table->curves[0].key;
    warm.warm = true;
    warm.threads = 1;
    tune_add(table, &warm, 77, 1.0);
    struct tnd_text after = tune_analyze(table, &text_options);
    check_string(tnd_text_string(&after), tnd_text_string(&before));
    for (int i = 0; i < table->n_curves; i++) {
        table->curves[i].samples[0].spread_us = 50;
    }
    struct tnd_text noisy = tune_analyze(table, &text_options);
    check_contains(tnd_text_string(&noisy), "Noisy (spread above 8 % of the median): cpu at M = 1");
    tnd_text_fini(&before);
    tnd_text_fini(&after);
    tnd_text_fini(&noisy);
}

static void add_cpu_beside_openblas(void)
{
    struct tnd_table_profile profile;
    memset(&profile, 0, sizeof(profile));
    strcpy(profile.name, "both");
    profile.stage[TANDEM_STAGE_INIT] =
        (struct tnd_table_stage){"cpu", TANDEM_KIND_CPU, TANDEM_TASK_NODE, true, false, false};
    profile.stage[TANDEM_STAGE_COMPUTE] = (struct tnd_table_stage){
        "openblas", TANDEM_KIND_OPENBLAS, TANDEM_TASK_NODE, false, true, false};
    check_ok(tnd_table_add_profile(table, &profile));
}

static void a_table_in_good_health_has_nothing_said_about_it(void)
{
    struct tnd_text words = TND_TEXT_INIT;
    struct tnd_health health;
    key_of_ten_samples();
    tnd_table_health(table, &health, &words);
    check_string(tnd_text_string(&words), "");
    check_int(health.n_samples, 10);
    check_int(health.n_noisy + health.n_stale + health.n_wrong + health.n_unchecked +
                  health.n_missing_pairs,
              0);
    CU_ASSERT_TRUE(health.is_steady);
    tnd_text_fini(&words);
}

static void trouble_is_counted_and_the_worst_of_it_named(void)
{
    static const char *const parts[] = {
        "6 of 17 times are noisy (spread above 8 % of the median), the worst:",
        "mul_mat:q4_0:n64:k32:m207:t1 openblas node: 100.0 us, spread 63 %",
        "and 1 more",
        "1 time is stale",
        "mul_mat:q4_0:n64:k32:m20:t1 cpu node",
        "profile both computes wrong results from q4_0 weights (error 0.5)",
        "nobody measured how much openblas slows down while cpu works",
        "at the last measuring the machine was throttled",
    };
    struct tnd_curve_key key = key_of_ten_samples();
    tnd_table_mark_stale(table, &key, 20);
    add_cpu_beside_openblas();
    strcpy(key.backend, "openblas");
    for (int i = 1; i <= 7; i++) {
        const struct tnd_sample sample = {200 + i, 100.0, 9.0 * i - (i == 1), 5, 100, 0, 0, 0, 0};
        check_ok(tnd_table_add(table, &key, &sample));
    }
    const struct tnd_check wrong = check_of("both", 7, 0.5, 5);
    const struct tnd_slowdown slowdown = {"cpu", "openblas", 1.5, 3, 1};
    const struct tnd_sweep_state sweep = {100, {100, 100}, {0, 0}, {131, 131}};
    struct tnd_text words = TND_TEXT_INIT;
    struct tnd_health health;
    tnd_table_health(table, &health, NULL);
    check_int(health.n_unchecked, 1);
    check_int(health.n_missing_pairs, 2);
    check_ok(tnd_table_add_check(table, &wrong));
    check_ok(tnd_table_add_slowdown(table, &slowdown));
    check_ok(tnd_table_add_sweep(table, &sweep));
    tnd_table_health(table, &health, &words);
    check_int(health.n_noisy, 6);
    check_int(health.n_stale, 1);
    check_int(health.n_wrong, 1);
    check_int(health.n_unchecked, 0);
    check_int(health.n_missing_pairs, 1);
    CU_ASSERT_FALSE(health.is_steady);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        check_contains(tnd_text_string(&words), parts[i]);
    }
    tnd_text_fini(&words);
}

static CU_TestInfo tests[] = {
    {"reports_name_what_is_noisy_and_leave_warm_times_out",
     reports_name_what_is_noisy_and_leave_warm_times_out},
    {"a_table_in_good_health_has_nothing_said_about_it",
     a_table_in_good_health_has_nothing_said_about_it},
    {"trouble_is_counted_and_the_worst_of_it_named", trouble_is_counted_and_the_worst_of_it_named},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_health[];
CU_SuiteInfo suites_report_health[] = {
    {"health of tables", NULL, NULL, make_table, free_table, tests},
    CU_SUITE_INFO_NULL,
};
