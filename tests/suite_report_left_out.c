/* SPDX-License-Identifier: MIT
 * Cells left out of made-up tables and predicted from the rest. */
#include <math.h>
#include <string.h>

#include "tests/support_tune.h"
#include "tools/report/left_out.h"

static tandem_table *table;
static struct tnd_left_out list;

static void set_up(void)
{
    struct tnd_table_profile profile;
    memset(&profile, 0, sizeof(profile));
    strcpy(profile.name, "mine"); /* no build describes it: the table does */
    profile.stage[TANDEM_STAGE_COMPUTE] =
        (struct tnd_table_stage){"cpu", TANDEM_KIND_CPU, TANDEM_TASK_NODE, true, false, false};
    table = tune_new();
    memset(&list, 0, sizeof(list));
    check_ok(tnd_table_add_profile(table, &profile));
}

static void tear_down(void)
{
    tnd_left_out_fini(&list);
    tandem_table_free(table);
}

/* M from `first` to `last` in doublings: 50 us and 3 us a token, on so many threads. */
static void add_line(int threads, int64_t first, int64_t last)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, threads);
    for (int64_t m = first; m <= last; m *= 2) {
        tune_add(table, &key, m, 50 + 3.0 * (double)m / threads);
    }
}

static int count(enum tnd_left_out_side side, int distance, int64_t m, int threads)
{
    int n = 0;
    for (int i = 0; i < list.n_cells; i++) {
        const struct tnd_left_out_cell *cell = &list.cells[i];
        n += cell->side == side && cell->distance == distance && cell->problem.m == m &&
             cell->problem.threads == threads;
    }
    return n;
}

static void the_outermost_m_are_left_out_at_twice_and_at_four_times_the_rest(void)
{
    struct tnd_calibration all;
    add_line(1, 4, 256);
    check_ok(tnd_left_out_add(table, &list));
    check_int(list.n_cells, 4);
    for (int distance = 1; distance <= 2; distance++) {
        check_int(count(TND_LEFT_OUT_ABOVE, distance, 256, 1), 1);
        check_int(count(TND_LEFT_OUT_BELOW, distance, 4, 1), 1);
    }
    check_string(list.cells[0].problem.profile, "mine");
    CU_ASSERT_EQUAL(list.cells[0].measured_us, 50 + 3.0 * 256);
    check_ok(tnd_left_out_calibration(&list, 3, 7, &all));
    check_int(all.n, 4);
    CU_ASSERT_TRUE(all.worst < 0.05); /* a line is what the model knows */
    CU_ASSERT_EQUAL(all.within, 1);
}

static void what_is_left_out_is_left_out_on_all_thread_counts(void)
{
    add_line(1, 4, 256);
    add_line(2, 4, 128);
    check_ok(tnd_left_out_add(table, &list));
    /* Two threads end at 128, and half of 256 stays: only what is beyond 128 goes. */
    check_int(count(TND_LEFT_OUT_ABOVE, 1, 256, 1), 1);
    check_int(count(TND_LEFT_OUT_ABOVE, 1, 128, 2) + count(TND_LEFT_OUT_ABOVE, 2, 128, 2), 0);
    check_int(count(TND_LEFT_OUT_BELOW, 1, 4, 2), 1);
    for (int64_t m = 4; m <= 128; m *= 2) {
        check_int(count(TND_LEFT_OUT_THREADS, 1, m, 2), 1);
        check_int(count(TND_LEFT_OUT_THREADS, 1, m, 1), 0);
    }
}

static void a_wide_gap_counts_for_the_distance_that_it_has(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, 1);
    static const int64_t m[] = {1, 8, 16, 32, 128};
    for (size_t i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
        tune_add(table, &key, m[i], 50 + 3.0 * (double)m[i]);
    }
    check_ok(tnd_left_out_add(table, &list));
    check_int(list.n_cells, 2);
    check_int(count(TND_LEFT_OUT_ABOVE, 2, 128, 1), 1);
    check_int(count(TND_LEFT_OUT_BELOW, 3, 1, 1), 1);
}

static void tables_that_know_too_little_leave_nothing_out(void)
{
    struct tnd_calibration none;
    check_ok(tnd_left_out_add(table, &list));
    add_line(1, 8, 16);
    check_ok(tnd_left_out_add(table, &list));
    check_int(list.n_cells, 0);
    check_ok(tnd_left_out_calibration(&list, 7, 7, &none));
    check_int(none.n, 0);
}

static void a_calibration_counts_errors_and_what_lies_within_the_bars(void)
{
    struct tnd_calibration c;
    static const double predicted[] = {100, 110, 150, 95, 30};
    for (int i = 0; i < 5; i++) {
        struct tnd_left_out_cell cell = {.side = i < 4 ? TND_LEFT_OUT_ABOVE : TND_LEFT_OUT_THREADS,
                                         .distance = 1 + i % 2,
                                         .measured_us = 100,
                                         .predicted_us = predicted[i],
                                         .error_us = 10};
        check_ok(tnd_vector_insert(&list.cells_vector, sizeof(cell), 100, i));
        list.cells[i] = cell;
    }
    check_ok(tnd_left_out_calibration(&list, 1, 7, &c));
    check_int(c.n, 4);
    CU_ASSERT_DOUBLE_EQUAL(c.within, 0.75, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(c.worst, 0.5, 1e-12);
    check_int(c.worst_at, 2);
    CU_ASSERT_DOUBLE_EQUAL(c.median, 0.1, 1e-12);
    check_ok(tnd_left_out_calibration(&list, 7, 1, &c));
    check_int(c.n, 3);
    CU_ASSERT_DOUBLE_EQUAL(c.worst, 0.7, 1e-12);
}

static CU_TestInfo tests[] = {
    {"the outermost M are left out at twice and at four times the rest",
     the_outermost_m_are_left_out_at_twice_and_at_four_times_the_rest},
    {"what is left out is left out on all thread counts",
     what_is_left_out_is_left_out_on_all_thread_counts},
    {"a wide gap counts for the distance that it has",
     a_wide_gap_counts_for_the_distance_that_it_has},
    {"tables that know too little leave nothing out",
     tables_that_know_too_little_leave_nothing_out},
    {"a calibration counts errors and what lies within the bars",
     a_calibration_counts_errors_and_what_lies_within_the_bars},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_left_out[];
CU_SuiteInfo suites_report_left_out[] = {
    {"left out", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
