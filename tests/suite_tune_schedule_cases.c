/* SPDX-License-Identifier: MIT
 * Schedules of small problems that are written down here. */
#include <string.h>

#include "base/alloc.h"
#include "tests/support.h"
#include "tune/schedule.h"

enum { SIDES = 3 };

static struct tnd_schedule_side sides[SIDES];
static struct tnd_schedule_split split;

/* A product that all sides can do, between its input and its reader on the host. */
static const int32_t first_edge[] = {0, 0, 1, 2};
static const struct tnd_schedule_edge edges[] = {{0, false}, {1, false}};
static const double bytes[] = {0, 0, 0};
static const int16_t split_of[] = {-1, 0, -1};
static struct tnd_schedule_time times[3 * SIDES];

/* Sides take `us` for all rows, in proportion to the rows. */
static struct tnd_schedule_problem product(int n_sides, const double *us, double error_frac)
{
    memset(sides, 0, sizeof(sides));
    split = (struct tnd_schedule_split){.rows = 4096, .step = 32};
    for (int s = 0; s < n_sides; s++) {
        sides[s].own_memory = s > 0;
        split.can[s] = true;
        split.error_frac[s] = (float)error_frac;
        for (int p = 0; p < TND_SCHEDULE_CURVE_POINTS; p++) {
            split.us[s][p] = (float)(us[s] * p / (TND_SCHEDULE_CURVE_POINTS - 1));
        }
        for (int i = 0; i < 3; i++) {
            float here = (float)(i == 1 ? us[s] : s > 0 ? -1 : 0);
            times[i * n_sides + s] = (struct tnd_schedule_time){here, here * (float)error_frac};
        }
    }
    return (struct tnd_schedule_problem){.n_nodes = 3,
                                         .n_sides = n_sides,
                                         .n_splits = 1,
                                         .sides = sides,
                                         .times = times,
                                         .bytes = bytes,
                                         .first_edge = first_edge,
                                         .edges = edges,
                                         .splits = &split,
                                         .split_of = split_of};
}

static void shares_end_at_the_same_time(void)
{
    struct tnd_schedule_problem problem = product(SIDES, (const double[]){400, 200, 100}, 0.01);
    struct tnd_schedule schedule;
    check_ok(tnd_schedule_find(&problem, &schedule, NULL));
    CU_ASSERT_TRUE(schedule.is_taken);
    CU_ASSERT_DOUBLE_EQUAL(schedule.single_us, 100, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(schedule.makespan_us, 400.0 / 7, 1);
    check_int(schedule.n_parts, 3);
    for (int i = 0; i < schedule.n_parts; i++) {
        static const int64_t want[] = {4096 / 7, 2 * 4096 / 7, 4 * 4096 / 7};
        const struct tnd_schedule_part *part = &schedule.parts[i];
        check_int(part->side, i);
        CU_ASSERT_DOUBLE_EQUAL(part->row_end - part->row_begin, want[i], 65);
        CU_ASSERT_TRUE(i == 0 || (part->row_end - part->row_begin) % 32 == 0);
    }
    int n_critical = 0;
    for (int i = 0; i < schedule.n_spans; i++) {
        n_critical += schedule.spans[i].is_critical;
        CU_ASSERT_TRUE(schedule.spans[i].end_us >= schedule.spans[i].begin_us);
    }
    CU_ASSERT_TRUE(n_critical > 0);
    tnd_schedule_fini(&schedule);
}

static void a_gain_within_twice_its_error_is_not_taken(void)
{
    struct tnd_schedule_problem problem = product(2, (const double[]){100, 400}, 0.05);
    struct tnd_schedule schedule;
    check_ok(tnd_schedule_find(&problem, &schedule, NULL)); /* 20 of 100 us against 8.2 */
    CU_ASSERT_TRUE(schedule.is_taken);
    CU_ASSERT_DOUBLE_EQUAL(schedule.makespan_us, 80, 1);
    tnd_schedule_fini(&schedule);
    problem = product(2, (const double[]){100, 400}, 0.15);
    check_ok(tnd_schedule_find(&problem, &schedule, NULL)); /* against 24.7 */
    CU_ASSERT_FALSE(schedule.is_taken);
    check_int(schedule.n_parts, 0);
    CU_ASSERT_DOUBLE_EQUAL(schedule.makespan_us, 100, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(schedule.best_us, 80, 1);
    tnd_schedule_fini(&schedule);
}

/* Moving X and the parts, and putting them together, make a split lose. */
static void a_split_pays_for_what_it_moves(void)
{
    struct tnd_schedule_problem problem = product(2, (const double[]){100, 100}, 0.01);
    struct tnd_schedule schedule;
    split.x_bytes = 1000;
    split.bytes_per_row = 10;
    sides[1].upload = (struct tnd_schedule_link){.n = 2, .bytes = {0, 1e6}, .us = {100, 1100}};
    sides[1].download = sides[1].upload;
    split.join_us_per_row = 0.01;
    check_ok(tnd_schedule_find(&problem, &schedule, NULL));
    CU_ASSERT_TRUE(schedule.best_us >= 99);
    tnd_schedule_fini(&schedule);
    sides[1].upload.us[0] = sides[1].download.us[0] = 0;
    split.join_us_per_row = 0.001;
    check_ok(tnd_schedule_find(&problem, &schedule, NULL));
    CU_ASSERT_TRUE(schedule.is_taken);
    tnd_schedule_fini(&schedule);
}

static void slow_downs_of_a_pair_can_make_a_split_lose(void)
{
    static const float slowdown[] = {1, 1.9F, 1.9F, 1};
    struct tnd_schedule_problem problem = product(2, (const double[]){100, 120}, 0.01);
    struct tnd_schedule schedule;
    problem.slowdown = slowdown;
    check_ok(tnd_schedule_find(&problem, &schedule, NULL));
    CU_ASSERT_FALSE(schedule.is_taken);
    tnd_schedule_fini(&schedule);
}

static void scheduling_without_memory_is_an_error(void)
{
    struct tnd_schedule_problem problem = product(2, (const double[]){100, 100}, 0.01);
    struct tandem_error error = {0};
    struct tnd_schedule schedule;
    long live = tnd_alloc_live();
    tnd_alloc_fail_after(1);
    check_status(tnd_schedule_find(&problem, &schedule, &error), TANDEM_E_MEMORY, "schedule",
                 &error);
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
}

/* The best of all orders and sides takes 11,612.3 us. Many beginnings do not fetch a result that
 * somebody elsewhere reads: with those, a search to its end looks at 10 million. */
static void a_graph_with_millions_of_orders_is_searched_to_its_end(void)
{
    enum { NODES = 10 };
    static const struct tnd_schedule_side machine[SIDES] = {
        {0},
        {.own_memory = true,
         .upload = {2, {0, 1e6}, {18, 41322}, 0},
         .download = {2, {0, 1e6}, {21, 248257}, 0}},
        {.own_memory = true,
         .upload = {2, {0, 1e6}, {203, 4217}, 0},
         .download = {2, {0, 1e6}, {56, 31915}, 0}}};
    static const float us[NODES][SIDES] = {
        {0, -1, -1},
        {6010.2F, 11612.3F, 11335.2F},
        {6649.4F, 9269.3F, 7481.8F},
        {2732.6F, 2681.2F, -1},
        {3504.1F, 1396.2F, 878.6F},
        {517, -1, 266.6F},
        {6363.1F, 1904.1F, 1430.1F},
        {364, 300.4F, 335.6F},
        {1295.8F, 260.5F, 765.4F},
        {0, -1, -1},
    };
    static const double results[NODES] = {1369,   15978,  14861, 4916,   114951,
                                          381956, 191946, 63096, 203785, 67089};
    static const int32_t first[NODES + 1] = {0, 0, 0, 1, 2, 3, 3, 5, 5, 6, 12};
    static const struct tnd_schedule_edge read[] = {
        {0, 1}, {0, 0}, {0, 0}, {1, 1}, {5, 0}, {5, 0},
        {2, 0}, {3, 0}, {4, 0}, {6, 0}, {7, 0}, {8, 0},
    };
    struct tnd_schedule_time all[NODES * SIDES];
    struct tnd_schedule schedule;
    for (int i = 0; i < NODES * SIDES; i++) {
        all[i] = (struct tnd_schedule_time){us[i / SIDES][i % SIDES], 0};
    }
    struct tnd_schedule_problem problem = {.n_nodes = NODES,
                                           .n_sides = SIDES,
                                           .sides = machine,
                                           .times = all,
                                           .bytes = results,
                                           .first_edge = first,
                                           .edges = read};
    check_ok(tnd_schedule_find(&problem, &schedule, NULL));
    CU_ASSERT_TRUE(schedule.makespan_us <= 11612.3 * 1.053);
    tnd_schedule_fini(&schedule);
}

static CU_TestInfo case_tests[] = {
    {"shares end at the same time", shares_end_at_the_same_time},
    {"a gain within twice its error is not taken", a_gain_within_twice_its_error_is_not_taken},
    {"a split pays for what it moves", a_split_pays_for_what_it_moves},
    {"slow-downs of a pair can make a split lose", slow_downs_of_a_pair_can_make_a_split_lose},
    {"a graph with millions of orders is searched to its end",
     a_graph_with_millions_of_orders_is_searched_to_its_end},
    {"scheduling without memory is an error", scheduling_without_memory_is_an_error},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_schedule_cases[];
CU_SuiteInfo suites_tune_schedule_cases[] = {
    {"schedules of written problems", NULL, NULL, NULL, NULL, case_tests},
    CU_SUITE_INFO_NULL,
};
