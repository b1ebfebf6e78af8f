/* SPDX-License-Identifier: MIT
 * What is measured next: made-up machines whose times are a function of the cell, and a clock that
 * only adds up. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/support_tune.h"
#include "measure/adapt.h"

enum { MOST_LINES = 16, MOST_CELLS = 4096 };

/* A machine: line i takes fixed + slope * m, and `step` more from `step_m` on. */
struct made_up_line {
    struct tnd_adapt_line is;
    double fixed_us, slope_us, step_us;
    int64_t step_m;
};

static struct made_up_line lines[MOST_LINES];
static int n_lines;
static double noise;        /* times are up to this fraction longer */
static int64_t disturbed_m; /* the first visit of line 0 there takes twice as long; 0: none */
static struct tnd_test_rng rng;
static struct tnd_adapt *adapt;
static struct tnd_adapt_cell visited[MOST_CELLS];
static int n_visited;
static double elapsed_s;

static double true_us(int line, int64_t m)
{
    const struct made_up_line *l = &lines[line];
    return l->fixed_us + l->slope_us * (double)m + (m >= l->step_m ? l->step_us : 0);
}

/* A visit is a warm-up and one run, and 1 ms at the least. */
static double trial_s(double us)
{
    return fmax(2 * us * 1e-6, 0.001);
}

static double cost_s(void *user, int line, int64_t m, double expected_us)
{
    (void)user;
    (void)line;
    (void)m;
    return trial_s(expected_us);
}

static void add_line(int group, int profile, double calls, double fixed_us, double slope_us)
{
    struct made_up_line *line = &lines[n_lines++];
    *line = (struct made_up_line){.fixed_us = fixed_us, .slope_us = slope_us, .step_m = INT64_MAX};
    line->is = (struct tnd_adapt_line){.group = group,
                                       .profile = profile,
                                       .threads = 2,
                                       .type = TANDEM_TYPE_Q4_0,
                                       .calls = calls,
                                       .work = 1e6,
                                       .fixed_tokens = 10};
}

static void begin(bool is_fixed, double tolerance)
{
    static const int64_t m[] = {1, 8, 32, 128, 512};
    struct tnd_adapt_options options = {.m = m,
                                        .n_m = 5,
                                        .is_fixed = is_fixed,
                                        .most_threads = 2,
                                        .tolerance = tolerance,
                                        .max_trials = 1000,
                                        .cost_s = cost_s};
    check_ok(tnd_adapt_new(&options, &adapt, NULL));
    for (int i = 0; i < n_lines; i++) {
        check_ok(tnd_adapt_add_line(adapt, &lines[i].is));
    }
    rng = tnd_test_rng_new(tnd_test_seed());
    n_visited = 0;
    elapsed_s = 0;
}

static void end(void)
{
    tnd_adapt_free(adapt);
    n_lines = 0;
    noise = 0;
    disturbed_m = 0;
}

/* Visits cells until the budget or the machine's secrets end. */
static void run(double budget_s)
{
    struct tnd_adapt_cell cell;
    while (n_visited < MOST_CELLS && tnd_adapt_next(adapt, budget_s - elapsed_s, budget_s, &cell)) {
        double us = true_us(cell.line, cell.m) * (1 + noise * tnd_test_rng_float(&rng));
        if (cell.line == 0 && cell.m == disturbed_m && cell.is_new) {
            us *= 2;
        }
        struct tnd_stage_time total = {us, 0, 7};
        visited[n_visited++] = cell;
        elapsed_s += trial_s(us);
        check_ok(tnd_adapt_done(adapt, &cell, &total));
    }
}

/* Visits to the cells of a line with low < m < high. */
static int visits_between(int line, int64_t low, int64_t high)
{
    int n = 0;
    for (int i = 0; i < n_visited; i++) {
        n += visited[i].line == line && visited[i].m > low && visited[i].m < high;
    }
    return n;
}

static int visits_of_group(int group)
{
    int n = 0;
    for (int i = 0; i < n_visited; i++) {
        n += lines[visited[i].line].is.group == group;
    }
    return n;
}

/* ---- tests ---- */

static void few_m_come_first_and_all_ways_are_compared(void)
{
    add_line(0, 0, 1, 10, 30);
    add_line(0, 1, 1, 3000, 5);
    begin(false, 0.02);
    run(1e9);
    for (int i = 0; i < 8; i++) { /* two lines, all M but the largest */
        CU_ASSERT_TRUE(visited[i].is_new && visited[i].rank == 2);
    }
    CU_ASSERT_TRUE(visits_between(0, 0, 1000) > 5 && visits_between(1, 0, 1000) > 5);
    end();
}

/* Of a short budget nothing goes into ways that could not serve without it. */
static void the_way_of_the_rule_comes_first(void)
{
    add_line(0, 0, 1, 3000, 5);
    add_line(1, 1, 1, 10, 30);
    lines[1].is.is_of_rule = true;
    begin(false, 0.02);
    run(1e9);
    for (int i = 0; i < 8; i++) {
        check_int(visited[i].line, i < 4 ? 1 : 0);
    }
    end();
}

static void a_huge_budget_ends_when_everything_is_certain(void)
{
    add_line(0, 0, 1, 10, 30);
    add_line(0, 1, 1, 3000, 5);
    add_line(1, 0, 7, 20, 60);
    begin(false, 0.002);
    run(1e9);
    struct tnd_adapt_state state;
    check_ok(tnd_adapt_state(adapt, &state));
    check_int(state.unmeasured, 0);
    check_int(state.unknown_lines, 0);
    check_int(state.trials, n_visited);
    CU_ASSERT_TRUE(n_visited <= 2 * state.cells); /* straight lines: a second visit tells all */
    CU_ASSERT_TRUE(state.median_uncertainty < 0.002);
    end();
}

/* Points at 8 (visited twice: certain), 16 and 32 (once: 4 % uncertain) on a straight line, whose
 * gaps are 3 % uncertain: the median is that of a gap. */
static void the_median_uncertainty_counts_gaps_and_points(void)
{
    static const int64_t m[] = {8, 32, 16, 8};
    struct tnd_adapt_state state;
    add_line(0, 0, 1, 0, 10);
    begin(false, 0.02);
    for (int i = 0; i < 4; i++) {
        const struct tnd_adapt_cell cell = {.line = 0, .m = m[i]};
        const struct tnd_stage_time total = {10 * (double)m[i], 0, 1};
        check_ok(tnd_adapt_done(adapt, &cell, &total));
    }
    check_ok(tnd_adapt_state(adapt, &state));
    CU_ASSERT_DOUBLE_EQUAL(state.median_uncertainty, 0.03, 1e-9);
    end();
}

static void m_are_added_where_the_curve_bends_or_another_way_wins(void)
{
    add_line(0, 0, 1, 100, 10); /* straight */
    add_line(1, 0, 1, 100, 10); /* with a step */
    add_line(2, 0, 1, 100, 10); /* crosses the next one at 60 */
    add_line(2, 1, 1, 580, 2);
    lines[1].step_m = 100;
    lines[1].step_us = 3000;
    begin(false, 0.02);
    run(1e9);
    CU_ASSERT_TRUE(visits_between(1, 32, 128) > visits_between(0, 32, 128));
    CU_ASSERT_TRUE(visits_between(2, 32, 128) + visits_between(3, 32, 128) >
                   visits_between(0, 32, 128));
    /* Near the step the prediction is right although nobody told where it is. */
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_expect_us(adapt, 1, 80, false) / true_us(1, 80), 1, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_expect_us(adapt, 1, 256, false) / true_us(1, 256), 1, 0.03);
    end();
}

static void spare_time_goes_to_what_is_called_most_and_is_least_certain(void)
{
    add_line(0, 0, 100, 100, 10);
    add_line(1, 0, 1, 100, 10);
    noise = 0.2;
    begin(false, 0.001);
    run(0.5);
    CU_ASSERT_TRUE(visits_of_group(0) > 2 * visits_of_group(1));
    CU_ASSERT_TRUE(visits_of_group(1) >= 4); /* its first grid all the same */
    end();
}

static void a_budget_is_used_but_never_overdrawn(void)
{
    static const double budgets_s[] = {0.003, 0.05, 0.5, 5};
    for (int i = 0; i < 4; i++) {
        for (int profile = 0; profile < 4; profile++) {
            add_line(0, profile, 10, 50 * (profile + 1), 20);
            lines[n_lines - 1].is.work = 2e5;
        }
        noise = 0.1;
        begin(false, 0.0001);
        run(budgets_s[i]);
        CU_ASSERT_TRUE(elapsed_s <= budgets_s[i]);
        CU_ASSERT_TRUE(elapsed_s >= 0.95 * budgets_s[i] - 0.001);
        end();
    }
}

static void too_little_time_is_spent_on_the_most_valuable_cells(void)
{
    add_line(0, 0, 1, 100, 10);
    add_line(1, 0, 50, 100, 10);
    begin(false, 0.01);
    run(0.0115); /* what nobody knows is taken to be slow: 11 ms */
    CU_ASSERT_TRUE(n_visited >= 1);
    check_int(visited[0].line, 1);
    check_int(visited[0].m, 1);
    struct tnd_adapt_state state;
    check_ok(tnd_adapt_state(adapt, &state));
    CU_ASSERT_TRUE(state.unmeasured > 0);
    end();
    add_line(0, 0, 1, 100, 10);
    begin(false, 0.01);
    run(0.0005);
    check_int(n_visited, 0);
    check_ok(tnd_adapt_state(adapt, &state));
    check_int(state.unknown_lines, 1);
    end();
}

static void a_point_above_the_line_around_it_is_measured_anew_before_finer_ones(void)
{
    add_line(0, 0, 1, 100, 10);
    add_line(0, 1, 1, 120, 12); /* faster than the first where that was disturbed */
    disturbed_m = 32;
    begin(false, 0.001);
    run(0.2);
    int again = -1;
    int finer = -1;
    for (int i = n_visited - 1; i >= 0; i--) {
        again = visited[i].line == 0 && visited[i].m == 32 && !visited[i].is_new ? i : again;
        finer = visited[i].rank == 0 ? i : finer;
    }
    CU_ASSERT(again >= 0);
    CU_ASSERT(finer > again);
    CU_ASSERT_DOUBLE_EQUAL(tnd_adapt_expect_us(adapt, 0, 32, false), 420, 0.01);
    end();
}

static void a_list_that_was_asked_for_is_measured_twice_and_nothing_else(void)
{
    add_line(0, 0, 1, 10, 30);
    add_line(0, 1, 1, 30000, 500); /* loses everywhere */
    lines[1].is.threads = 1;
    begin(true, 0.01);
    run(1e9);
    check_int(n_visited, 2 * 5 * 2);
    for (int i = 0; i < n_visited; i++) {
        CU_ASSERT_TRUE(visited[i].rank > 0);
        CU_ASSERT_EQUAL(visited[i].is_new, i < n_visited / 2);
    }
    end();
}

static void what_a_machine_cannot_compute_is_left_out(void)
{
    add_line(0, 0, 1, 10, 30);
    add_line(0, 1, 1, 20, 20);
    begin(true, 0.01);
    tnd_adapt_stop_at(adapt, 1, 32);
    run(1e9);
    check_int(n_visited, 2 * (5 + 2));
    check_int(visits_between(1, 31, 1000), 0);
    end();
}

static void failing_allocations_are_errors_without_a_leak(void)
{
    static const int64_t m[] = {1};
    long live = tnd_alloc_live();
    bool succeeded = false;
    for (long nth = 1; nth < 50 && !succeeded; nth++) {
        struct tnd_adapt_options options = {
            .m = m, .n_m = 1, .most_threads = 1, .max_trials = 2, .cost_s = cost_s};
        struct tnd_adapt_line line = {.threads = 1, .calls = 1, .work = 1};
        struct tnd_stage_time total = {5, 0, 7};
        struct tnd_adapt_cell cell;
        struct tnd_adapt *mine = NULL;
        tnd_alloc_fail_after(nth);
        enum tandem_status status = tnd_adapt_new(&options, &mine, NULL);
        status = status == TANDEM_OK ? tnd_adapt_add_line(mine, &line) : status;
        if (status == TANDEM_OK && tnd_adapt_next(mine, 1e9, 1e9, &cell)) {
            status = tnd_adapt_done(mine, &cell, &total);
        }
        tnd_alloc_fail_after(-1);
        succeeded = status == TANDEM_OK;
        check_int(status, succeeded ? TANDEM_OK : TANDEM_E_MEMORY);
        tnd_adapt_free(mine);
        check_int(tnd_alloc_live(), live);
    }
    CU_ASSERT_TRUE(succeeded);
}

static CU_TestInfo tests[] = {
    {"few M come first and all ways are compared", few_m_come_first_and_all_ways_are_compared},
    {"the_way_of_the_rule_comes_first", the_way_of_the_rule_comes_first},
    {"a huge budget ends when everything is certain",
     a_huge_budget_ends_when_everything_is_certain},
    {"the median uncertainty counts gaps and points",
     the_median_uncertainty_counts_gaps_and_points},
    {"M are added where the curve bends or another way wins",
     m_are_added_where_the_curve_bends_or_another_way_wins},
    {"spare time goes to what is called most and is least certain",
     spare_time_goes_to_what_is_called_most_and_is_least_certain},
    {"a budget is used but never overdrawn", a_budget_is_used_but_never_overdrawn},
    {"too little time is spent on the most valuable cells",
     too_little_time_is_spent_on_the_most_valuable_cells},
    {"a list that was asked for is measured twice and nothing else",
     a_list_that_was_asked_for_is_measured_twice_and_nothing_else},
    {"a point above the line around it is measured anew before finer ones",
     a_point_above_the_line_around_it_is_measured_anew_before_finer_ones},
    {"what a machine cannot compute is left out", what_a_machine_cannot_compute_is_left_out},
    {"failing allocations are errors without a leak",
     failing_allocations_are_errors_without_a_leak},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_adapt[];
CU_SuiteInfo suites_measure_adapt[] = {
    {"adaptive measuring", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
