/* SPDX-License-Identifier: MIT
 * What speaks for and against the times of a table: noisy and stale samples, warm ones, checked
 * results, slow-downs, the machine's state. */
#include <stdio.h>
#include <string.h>

#include "tests/support_tune.h"
#include "table/table_cells.h"
#include "table/table_layers.h"

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

/* ---- noisy and stale ---- */

static void a_sample_is_noisy_above_eight_percent(void)
{
    struct tnd_sample sample = {8, 100.0, 8.0, 9, 1, 0, 0, 0, 0};
    CU_ASSERT_FALSE(tnd_sample_is_noisy(&sample));
    sample.spread_us = 8.1;
    CU_ASSERT_TRUE(tnd_sample_is_noisy(&sample));
}

static struct tnd_curve_key key_of_ten_samples(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, false, 1);
    for (int m = 10; m <= 100; m += 10) {
        tune_add(table, &key, m, m);
    }
    return key;
}

static void what_an_estimate_rests_on_becomes_stale(void)
{
    static const struct {
        int64_t m;
        int first, second; /* M that are marked; 0: none */
    } cases[] = {{1, 10, 0},    {10, 10, 0},   {11, 10, 20},
                 {99, 90, 100}, {100, 100, 0}, {999, 100, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_curve_key key = key_of_ten_samples();
        check_int(tnd_table_mark_stale(table, &key, cases[i].m), 1 + (cases[i].second != 0));
        check_int(tnd_table_mark_stale(table, &key, cases[i].m), 0); /* they are already */
        for (int s = 0; s < table->curves[0].n_samples; s++) {
            const struct tnd_sample *sample = &table->curves[0].samples[s];
            CU_ASSERT_EQUAL(tnd_sample_is_stale(sample),
                            sample->m == cases[i].first || sample->m == cases[i].second);
        }
        check_int(tune_count_stale(table), 1 + (cases[i].second != 0));
        free_table();
        make_table();
    }
    struct tnd_curve_key unknown = tune_key(1, 32, TANDEM_TASK_NODE, false, 1);
    check_int(tnd_table_mark_stale(table, &unknown, 1), 0);
}

static const struct tnd_sample *first_sample(const tandem_table *of)
{
    return &of->curves[0].samples[0];
}

static void a_stale_mark_survives_merging_with_what_it_marks(void)
{
    struct tnd_curve_key key = key_of_ten_samples();
    tandem_table *old = NULL;
    check_ok(tandem_table_copy(table, &old, NULL));
    tnd_table_mark_stale(table, &key, 10);
    check_ok(tandem_table_merge(table, old, NULL));
    CU_ASSERT_TRUE(tnd_sample_is_stale(first_sample(table)));
    check_ok(tandem_table_merge(old, table, NULL));
    CU_ASSERT_TRUE(tnd_sample_is_stale(first_sample(old)));
    tandem_table_free(old);
}

static void a_fresh_sample_clears_the_mark_whatever_its_count(void)
{
    struct tnd_curve_key key = key_of_ten_samples();
    const char *path = tnd_test_temp("stale.json");
    tnd_table_mark_stale(table, &key, 10);
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_JSON, NULL));
    for (int round = 0; round < 2; round++) {
        /* at first one that is as old as the stale one, then a newer one */
        tandem_table *fresh = tune_new();
        const struct tnd_sample sample = {10, 77.0, 1.0, 2, 100 + round, 0, 0, 0, 0};
        check_ok(tnd_table_add(fresh, &key, &sample));
        check_ok(tnd_table_update_file(path, fresh, NULL, NULL));
        tandem_table_free(fresh);
        tandem_table *read = NULL;
        check_ok(tandem_table_load(path, &read, NULL));
        CU_ASSERT_EQUAL(tnd_sample_is_stale(first_sample(read)), round == 0);
        CU_ASSERT_EQUAL(first_sample(read)->median_us, round == 0 ? 10.0 : 77.0);
        check_int(tune_count_stale(read), round == 0);
        /* What was given up does not come back, not even with its higher count. */
        check_ok(tandem_table_merge(read, table, NULL));
        CU_ASSERT_EQUAL(tnd_sample_is_stale(first_sample(read)), round == 0);
        tandem_table_free(read);
    }
}

/* ---- warm curves ---- */

static void warm_times_stand_beside_cold_ones(void)
{
    struct tnd_curve_key cold = tune_key(64, 32, TANDEM_TASK_NODE, true, 2);
    struct tnd_curve_key warm = cold;
    warm.warm = true;
    tune_add(table, &cold, 8, 30.0);
    tune_add(table, &warm, 8, 10.0);
    check_int(table->n_curves, 2);
    CU_ASSERT_EQUAL(tnd_table_find(table, &cold)->samples[0].median_us, 30.0);
    CU_ASSERT_EQUAL(tnd_table_find(table, &warm)->samples[0].median_us, 10.0);
}

/* ---- checks, slow-downs, sweeps ---- */

static struct tnd_check check_of(const char *profile, int64_t m, double nmse, int64_t when)
{
    struct tnd_check check = {"", TANDEM_TYPE_Q4_0, m, 64, 32, nmse, 1e-3, when};
    strcpy(check.profile, profile);
    return check;
}

static void one_wrong_result_makes_a_profile_wrong(void)
{
    double nmse = -1;
    const struct tnd_check good = check_of("cpu", 1, 1e-6, 5);
    const struct tnd_check bad = check_of("cpu", 7, 0.5, 5);
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, &nmse), TND_VERDICT_UNKNOWN);
    CU_ASSERT_EQUAL(nmse, -1);
    check_ok(tnd_table_add_check(table, &good));
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, &nmse), TND_VERDICT_RIGHT);
    CU_ASSERT_EQUAL(nmse, 1e-6);
    /* The application's own bound decides where it names one. */
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 1e-7, NULL), TND_VERDICT_WRONG);
    check_ok(tnd_table_add_check(table, &bad));
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, &nmse), TND_VERDICT_WRONG);
    CU_ASSERT_EQUAL(nmse, 0.5);
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_F16, 0, NULL), TND_VERDICT_UNKNOWN);
    /* Repaired, and checked again. */
    const struct tnd_check repaired = check_of("cpu", 7, 1e-7, 6);
    check_ok(tnd_table_add_check(table, &repaired));
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, NULL), TND_VERDICT_RIGHT);
    check_int(table->n_checks, 2);
}

static void what_is_no_evidence_is_refused(void)
{
    const struct tnd_check checks[] = {check_of("", 1, 0, 0), check_of("cpu", 0, 0, 0),
                                       check_of("cpu", 1, -1, 0), check_of("cpu", 1, 0.0 / 0.0, 0)};
    for (int i = 0; i < 4; i++) {
        check_int(tnd_table_add_check(table, &checks[i]), TANDEM_E_ARGUMENT);
    }
    const struct tnd_slowdown slowdowns[] = {{"", "b", 1, 0, 0},
                                             {"a", "", 1, 0, 0},
                                             {"a", "b", 0.99, 0, 0},
                                             {"a", "b", 0.0 / 0.0, 0, 0},
                                             {"a", "b", 1e9, 0, 0}};
    for (int i = 0; i < 5; i++) {
        check_int(tnd_table_add_slowdown(table, &slowdowns[i]), TANDEM_E_ARGUMENT);
    }
    const struct tnd_sweep_state sweep = {1, {1, 1}, {-1, 1}, {1, 1}};
    check_int(tnd_table_add_sweep(table, &sweep), TANDEM_E_ARGUMENT);
    check_int(table->n_checks + table->n_slowdowns + table->n_sweeps, 0);
}

static void add_peak(const char *unit, int threads, double rate)
{
    struct tnd_peak peak = {"", threads, rate, 3, 1};
    snprintf(peak.unit, sizeof(peak.unit), "%s", unit);
    check_ok(tnd_table_add_peak(table, &peak));
}

static void a_peak_of_threads_that_were_not_measured_is_bounded_by_its_neighbours(void)
{
    const struct tnd_peak none = {"read", 0, 1, 3, 1};
    check_int(tnd_table_add_peak(table, &none), TANDEM_E_ARGUMENT);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 2), 0);
    add_peak("read", 2, 20);
    add_peak("read", 8, 32);
    add_peak("int8 VNNI", 1, 100);
    add_peak("int8 VNNI", 1, 90); /* disturbed */
    add_peak("int8 AMX", 1, 800);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 1), 20);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 2), 20);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 3), 30);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 4), 32);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "read", 16), 64);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "int8 VNNI", 1), 100);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "int8", 3), 2400);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "int", 1), 0);
    add_peak("int8 VNNI", 2, 3000); /* so one thread of the two does half of it */
    CU_ASSERT_EQUAL(tnd_table_peak(table, "int8", 1), 1500);
    add_peak("bf16", 1, 50);
    add_peak("bf16", 4, 40);
    CU_ASSERT_EQUAL(tnd_table_peak(table, "bf16", 4), 50);
}

static void slow_downs_are_found_by_who_and_beside_whom(void)
{
    const struct tnd_slowdown slowdown = {"cpu", "openblas", 1.5, 3, 1};
    double factor = 0;
    check_ok(tnd_table_add_slowdown(table, &slowdown));
    CU_ASSERT_TRUE(tnd_table_slowdown(table, "cpu", "openblas", &factor));
    CU_ASSERT_EQUAL(factor, 1.5);
    CU_ASSERT_FALSE(tnd_table_slowdown(table, "openblas", "cpu", &factor));
    CU_ASSERT_FALSE(tnd_table_slowdown(table, "cpu", "cpu", &factor));
}

static void the_newest_sweeps_are_kept(void)
{
    for (int i = 0; i < 2 * TND_TABLE_MAX_SWEEPS; i++) {
        /* 3, 6, 9, ... modulo 16: every time once, in no order */
        const struct tnd_sweep_state sweep = {3 * (i + 1) % 17, {1, 1}, {1, 1}, {1, 1}};
        check_ok(tnd_table_add_sweep(table, &sweep));
        check_ok(tnd_table_add_sweep(table, &sweep));
    }
    check_int(table->n_sweeps, TND_TABLE_MAX_SWEEPS);
    for (int i = 0; i < table->n_sweeps; i++) {
        check_int(table->sweeps[i].when, 16 - i);
    }
}

#ifdef TND_HAVE_CJSON

static void fill(void)
{
    struct tnd_curve_key key = key_of_ten_samples();
    tnd_table_mark_stale(table, &key, 20);
    key.warm = true;
    tune_add(table, &key, 8, 2.5);
    const struct tnd_check check = check_of("cpu", 7, 0.1 + 0.2, 5);
    const struct tnd_slowdown slowdown = {"cpu", "opencl", 1.0 + 1e-9, 3, 1};
    const struct tnd_sweep_state sweep = {9, {0.1, 0.3}, {1e-7, 2}, {7, 1e12}};
    check_ok(tnd_table_add_check(table, &check));
    check_ok(tnd_table_add_slowdown(table, &slowdown));
    check_ok(tnd_table_add_sweep(table, &sweep));
}

static void json_brings_back_all_evidence(void)
{
    fill();
    struct tnd_text first = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *again = tune_parse(tnd_text_string(&first));
    struct tnd_text second = tune_print(again, TANDEM_TABLE_JSON);
    check_string(tnd_text_string(&second), tnd_text_string(&first));
    check_contains(tnd_text_string(&first), "\"generation\": 1");
    check_contains(tnd_text_string(&first), "\"warm\": true");
    check_int(tune_count_stale(again), 1);
    CU_ASSERT_EQUAL(again->checks[0].nmse, 0.1 + 0.2);
    CU_ASSERT_EQUAL(again->slowdowns[0].factor, 1.0 + 1e-9);
    CU_ASSERT_EQUAL(again->sweeps[0].between.fastest_us, 1e-7);
    tnd_text_fini(&first);
    tnd_text_fini(&second);
    tandem_table_free(again);
}

/* Every digit of the evidence is under the checksum. */
static void a_changed_piece_of_evidence_is_noticed(void)
{
    static const char *const pieces[][2] = {
        {"\"nmse\": 0.3", "\"nmse\": 0.2"},
        {"\"beside\": \"opencl\"", "\"beside\": \"opencm\""},
        {"\"warm\": true", "\"warm\": false"},
        {"\"generation\": 1", "\"generation\": 2"},
        {"\"fastest_us\": 7", "\"fastest_us\": 8"},
    };
    fill();
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct tandem_error error = {0};
        tandem_table *read = NULL;
        struct tnd_text changed = TND_TEXT_INIT;
        const char *at = strstr(tnd_text_string(&text), pieces[i][0]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        tnd_text_add_bytes(&changed, text.bytes, (size_t)(at - text.bytes));
        tnd_text_add(&changed, pieces[i][1]);
        tnd_text_add(&changed, at + strlen(pieces[i][0]));
        check_status(tandem_table_parse(changed.bytes, changed.n, "test", &read, &error),
                     TANDEM_E_FORMAT, "checksum", &error);
        tnd_text_fini(&changed);
    }
    tnd_text_fini(&text);
}

#define ONE_CONVOLUTION(groups, stride, median, when)                                              \
    "{\"method\": \"direct\", \"channels\": 3, \"filters\": 4, " groups                            \
    ", \"window\": \"3x3\", \"stride\": " stride                                                   \
    ", \"dilation\": \"1x1\", \"padding\": \"0x0\", \"images\": 1, \"result\": \"5x6\", "          \
    "\"threads\": 2, \"median_us\": " median ", \"when\": " when "}"
#define CONVOLUTION(groups, stride, median)                                                        \
    "\"convolutions\": [" ONE_CONVOLUTION(groups, stride, median, "1") "]"

static void of_two_times_of_a_convolution_the_newer_counts(void)
{
    static const char list[] =
        "{\"version\": 2, \"profiles\": [], \"curves\": [], \"convolutions\": [" ONE_CONVOLUTION(
            "\"groups\": 1", "\"1x1\"", "7", "2") ", " ONE_CONVOLUTION("\"groups\": 1", "\"1x1\"",
                                                                       "5", "1") "]}";
    tandem_table *both = tune_parse(list);
    check_int(both->n_convolutions, 1);
    CU_ASSERT_EQUAL(both->convolutions[0].median_us, 7);
    CU_ASSERT_EQUAL(both->convolutions[0].count, 0);
    tandem_table_free(both);
}

static void broken_evidence_is_refused_with_its_place(void)
{
    static const struct {
        const char *member;
        const char *part;
    } cases[] = {
        {"\"checks\": [{\"profile\": \"cpu\", \"type\": \"q4_0\", \"n\": 1, \"k\": 1, \"m\": 1, "
         "\"nmse\": -1, \"bound\": 1}]",
         "checks[0].nmse: expected an error from 0 to 1e12, found -1"},
        {"\"checks\": [{\"profile\": \"cpu\", \"type\": \"q4_0\", \"n\": 1, \"k\": 1, \"m\": 0, "
         "\"nmse\": 1, \"bound\": 1}]",
         "checks[0].m"},
        {"\"peaks\": [{\"unit\": \"fma\", \"threads\": 1, \"rate\": -1}]", "peaks[0].rate"},
        {"\"slowdowns\": [{\"backend\": \"cpu\", \"beside\": \"x\", \"factor\": 0.5}]",
         "slowdowns[0].factor: expected a factor from 1 to 1000"},
        {"\"convolutions\": [{\"method\": \"direct\"}]", "convolutions[0].channels"},
        {CONVOLUTION("\"groups\": 0", "\"1x1\"", "1"), "convolutions[0].groups"},
        {CONVOLUTION("\"groups\": 1", "\"\"", "1"), "convolutions[0].stride"},
        {CONVOLUTION("\"groups\": 1", "\"1234567890123456789012345678901234567890\"", "1"),
         "convolutions[0].stride"},
        {CONVOLUTION("\"groups\": 1", "\"1x1\"", "-1"), "convolutions[0].median_us"},
        {CONVOLUTION("\"groups\": 1", "\"1x1\"", "1e300"), "convolutions[0].median_us"},
        {CONVOLUTION("\"groups\": 1", "\"1x1\"", "\"nan\""), "convolutions[0].median_us"},
        {"\"slowdowns\": {}", "slowdowns"},
        {"\"sweeps\": [{\"when\": 1, \"before\": 3}]", "sweeps[0].before: expected an object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_table *read = NULL;
        struct tnd_text text = TND_TEXT_INIT;
        tnd_text_printf(&text, "{\"version\": 2, \"profiles\": [], \"curves\": [], %s}",
                        cases[i].member);
        check_status(tandem_table_parse(text.bytes, text.n, "test", &read, &error), TANDEM_E_FORMAT,
                     cases[i].part, &error);
        tnd_text_fini(&text);
    }
}

#endif

static CU_TestInfo tests[] = {
    {"a_peak_of_threads_that_were_not_measured_is_bounded_by_its_neighbours",
     a_peak_of_threads_that_were_not_measured_is_bounded_by_its_neighbours},
    {"a_sample_is_noisy_above_eight_percent", a_sample_is_noisy_above_eight_percent},
    {"what_an_estimate_rests_on_becomes_stale", what_an_estimate_rests_on_becomes_stale},
    {"a_stale_mark_survives_merging_with_what_it_marks",
     a_stale_mark_survives_merging_with_what_it_marks},
    {"a_fresh_sample_clears_the_mark_whatever_its_count",
     a_fresh_sample_clears_the_mark_whatever_its_count},
    {"warm_times_stand_beside_cold_ones", warm_times_stand_beside_cold_ones},
    {"one_wrong_result_makes_a_profile_wrong", one_wrong_result_makes_a_profile_wrong},
    {"what_is_no_evidence_is_refused", what_is_no_evidence_is_refused},
    {"slow_downs_are_found_by_who_and_beside_whom", slow_downs_are_found_by_who_and_beside_whom},
    {"the_newest_sweeps_are_kept", the_newest_sweeps_are_kept},
#ifdef TND_HAVE_CJSON
    {"json_brings_back_all_evidence", json_brings_back_all_evidence},
    {"a_changed_piece_of_evidence_is_noticed", a_changed_piece_of_evidence_is_noticed},
    {"of_two_times_of_a_convolution_the_newer_counts",
     of_two_times_of_a_convolution_the_newer_counts},
    {"broken_evidence_is_refused_with_its_place", broken_evidence_is_refused_with_its_place},
#endif
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_table_trust[] = {
    {"trust in tables", NULL, NULL, make_table, free_table, tests},
    CU_SUITE_INFO_NULL,
};
