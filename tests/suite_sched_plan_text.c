/* SPDX-License-Identifier: MIT
 * Plans as text: what is printed reads as itself, and nothing that is not a plan does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sched/plan_text.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

static struct fakes fakes;
static const uint64_t HASH = UINT64_C(0x0123456789abcdef);

static void set_up(void)
{
    fakes_open(&fakes, 2, -1, NULL);
}

static void tear_down(void)
{
    fakes_close(&fakes);
}

/* Three nodes with everything that a plan may hold. */
static tandem_plan *a_plan(void)
{
    tandem_plan *plan = NULL;
    struct tandem_plan_node node = *(const struct tandem_plan_node[]){{.profile = "cpu+fake"}};
    check_ok(tandem_plan_new(3, &plan, NULL));
    node.n_threads = 4;
    node.reason = TANDEM_REASON_TABLE;
    node.runner_up_us = 2210.7f;
    node.stage[0] = (struct tandem_task_config){
        .backend = TANDEM_BACKEND_CPU, .task = TANDEM_TASK_DEQUANTIZE_W, .parallel = true};
    node.stage[1] = (struct tandem_task_config){.backend = (uint8_t)fakes.device_slot,
                                                .task = TANDEM_TASK_MUL_MAT_F32,
                                                .own_threads = true,
                                                .wait = true};
    node.predicted_us[0] = 0.1f;
    node.predicted_us[1] = 1e9f;
    check_ok(tandem_plan_set_node(plan, 1, &node));
    memset(node.profile, 0, sizeof(node.profile));
    node.reason = TANDEM_REASON_HAND;
    memset(&node.stage[1], 0, sizeof(node.stage[1]));
    node.predicted_us[1] = 0;
    check_ok(tandem_plan_set_node(plan, 2, &node));
    return plan;
}

static struct tnd_text printed(const tandem_plan *plan)
{
    struct tnd_text text = TND_TEXT_INIT;
    check_ok(tnd_plan_print(plan, HASH, fakes.registry, &text, NULL));
    return text;
}

static enum tandem_status parse(const char *bytes, size_t n, tandem_plan **out,
                                struct tandem_error *error)
{
    uint64_t hash = 0;
    return tnd_plan_parse(bytes, n, "a.plan", fakes.registry, out, &hash, error);
}

static void a_plan_prints_as_documented(void)
{
    tandem_plan *plan = a_plan();
    struct tnd_text text = printed(plan);
    check_string(tnd_text_string(&text), "tandem-plan 1\n"
                                         "graph 0123456789abcdef nodes 3\n"
                                         "node 0 cpu threads 1 only second 0\n"
                                         "  compute cpu node one spin 0\n"
                                         "node 1 cpu+fake threads 4 table second "
                                         "2210.699951171875\n"
                                         "  init cpu dequantize_w parallel spin "
                                         "0.10000000149011612\n"
                                         "  compute fakedev mul_mat_f32 own sleep 1000000000\n"
                                         "node 2 - threads 4 hand second 2210.699951171875\n"
                                         "  init cpu dequantize_w parallel spin "
                                         "0.10000000149011612\n"
                                         "end\n");
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void a_plan_reads_back_bit_for_bit(void)
{
    tandem_plan *plan = a_plan();
    tandem_plan *again = NULL;
    uint64_t hash = 0;
    struct tnd_text text = printed(plan);
    check_ok(tnd_plan_parse(text.bytes, text.n, "a.plan", fakes.registry, &again, &hash, NULL));
    CU_ASSERT_EQUAL(hash, HASH);
    check_int(again->n_nodes, plan->n_nodes);
    check_bits(again->nodes, plan->nodes, 3 * sizeof(plan->nodes[0]), "nodes");
    tandem_plan_free(again);
    tandem_plan_free(plan);
    tnd_text_fini(&text);
}

static void a_plan_that_is_cut_anywhere_is_refused(void)
{
    tandem_plan *plan = a_plan();
    struct tnd_text text = printed(plan);
    for (size_t n = 0; n + 1 < text.n; n++) { /* the last line's end may be missing */
        struct tandem_error error = {0};
        tandem_plan *again = NULL;
        char *bytes = tnd_guarded_alloc(n, 1);
        memcpy(bytes, text.bytes, n);
        CU_ASSERT_NOT_EQUAL(parse(bytes, n, &again, &error), TANDEM_OK);
        CU_ASSERT_PTR_NULL(again);
        check_contains(error.text, "a.plan");
        tnd_guarded_free(bytes);
    }
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void damage_is_told_with_its_place(void)
{
    static const struct {
        const char *text;
        enum tandem_status status;
        const char *part;
    } cases[] = {
        {"tandem-plan 3\n", TANDEM_E_TABLE_VERSION, "version 3"},
        {"tandem-table 1\n", TANDEM_E_FORMAT, "a.plan:1:1: expected 'tandem-plan'"},
        {"tandem-plan 1\ngraph 12 nodes 0\nend\n", TANDEM_E_FORMAT, "hexadecimal"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 9999999\nend\n", TANDEM_E_TRUNCATED,
         "9999999 nodes do not fit"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes -1\nend\n", TANDEM_E_FORMAT, "number of"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 0\nend\nend\n", TANDEM_E_FORMAT,
         "a.plan:4:1: expected the end of the file"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 1 cpu threads 1 only second 0\nend\n",
         TANDEM_E_FORMAT, "a.plan:3:6: expected 'node'"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 cpu threads 0 only second 0\nend\n",
         TANDEM_E_FORMAT, "from 1 to 65536"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 c\x1bu threads 1 only second 0\n"
         "end\n",
         TANDEM_E_FORMAT, "the name of a profile"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 cpu threads 1 luck second 0\nend\n",
         TANDEM_E_FORMAT, "only, table, rule"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 cpu threads 1 only second nan\n"
         "end\n",
         TANDEM_E_FORMAT, "microseconds"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 cpu threads 1 only second 0\n"
         "  compute abacus node one spin 0\nend\n",
         TANDEM_E_UNSUPPORTED_BACKEND, "'abacus' is not open here"},
        {"tandem-plan 1\ngraph 0123456789abcdef nodes 1\nnode 0 cpu threads 1 only second 0\n"
         "  compute cpu dance one spin 0\nend\n",
         TANDEM_E_FORMAT, "a.plan:4:15: expected the name of a task"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_plan *plan = NULL;
        check_status(parse(cases[i].text, strlen(cases[i].text), &plan, &error), cases[i].status,
                     cases[i].part, &error);
        CU_ASSERT_PTR_NULL(plan);
    }
}

static void plans_that_could_not_run_are_not_printed(void)
{
    tandem_plan *plan = a_plan();
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {0};
    plan->nodes[1].stage[1].backend = 15;
    check_status(tnd_plan_print(plan, HASH, fakes.registry, &text, &error), TANDEM_E_ARGUMENT,
                 "node 1 has", &error);
    check_int(text.n, 0);
    plan->nodes[1].stage[1].backend = 1;
    plan->nodes[2].reason = 77;
    check_status(tnd_plan_print(plan, HASH, fakes.registry, &text, &error), TANDEM_E_ARGUMENT,
                 "node 2 has", &error);
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void names_set_by_hand_stay_one_word(void)
{
    tandem_plan *plan = NULL;
    tandem_plan *again = NULL;
    check_ok(tandem_plan_new(1, &plan, NULL));
    strcpy(plan->nodes[0].profile, "my own\nway");
    struct tnd_text text = printed(plan);
    check_ok(parse(text.bytes, text.n, &again, NULL));
    check_string(tandem_plan_node(again, 0)->profile, "my_own_way");
    tandem_plan_free(again);
    tandem_plan_free(plan);
    tnd_text_fini(&text);
}

static void running_out_of_memory_leaks_nothing(void)
{
    tandem_plan *plan = a_plan();
    struct tnd_text text = printed(plan);
    long live = tnd_alloc_live();
    for (long nth = 1; nth < 32; nth++) {
        struct tandem_error error = {0};
        struct tnd_text again = TND_TEXT_INIT;
        tnd_alloc_fail_after(nth);
        enum tandem_status status = tnd_plan_print(plan, HASH, fakes.registry, &again, &error);
        tnd_alloc_fail_after(-1);
        tnd_text_fini(&again);
        check_int(tnd_alloc_live(), live);
        if (status == TANDEM_OK) {
            break;
        }
        check_int(status, TANDEM_E_MEMORY);
    }
    struct tandem_error error = {0};
    tandem_plan *read = NULL;
    tnd_alloc_fail_after(1);
    check_status(parse(text.bytes, text.n, &read, &error), TANDEM_E_MEMORY, "plan", &error);
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void predicted_times_that_are_no_times_are_refused(void)
{
    const float wrong[] = {-1.0f, -INFINITY, NAN};
    tandem_plan *plan = a_plan();
    for (int i = 0; i < 3; i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, 0);
        node.predicted_us[TANDEM_STAGE_COMPUTE] = wrong[i];
        check_int(tandem_plan_set_node(plan, 0, &node), TANDEM_E_ARGUMENT);
    }
    tandem_plan_free(plan);
}

/* ---- schedules ---- */

static struct tandem_plan_part a_part(const tandem_plan *plan, int64_t begin, int64_t end)
{
    struct tandem_plan_part part;
    memset(&part, 0, sizeof(part));
    part.node = 1;
    part.begin = begin;
    part.end = end;
    part.choice = *tandem_plan_node(plan, 1);
    return part;
}

static tandem_plan *a_scheduled_plan(void)
{
    static const int32_t order[] = {1, 0, 2};
    tandem_plan *plan = a_plan();
    struct tandem_plan_part low = a_part(plan, 0, 8);
    struct tandem_plan_part high = a_part(plan, 24, 32);
    struct tandem_plan_span own = {1, -1, TANDEM_BACKEND_CPU, TANDEM_LANE_COMPUTE, 0, 0, 0, 30.1F};
    struct tandem_plan_span up = {1,    0,    (uint8_t)fakes.device_slot, TANDEM_LANE_UPLOAD, 0, 0,
                                  0.5F, 12.5F};
    check_ok(tandem_plan_add_part(plan, &high, NULL));
    check_ok(tandem_plan_add_part(plan, &low, NULL)); /* lands before the other one */
    check_ok(tandem_plan_set_order(plan, order, 3, NULL));
    check_ok(tandem_plan_add_span(plan, &own, NULL));
    check_ok(tandem_plan_add_span(plan, &up, NULL));
    return plan;
}

static void a_schedule_prints_behind_the_nodes_as_documented(void)
{
    tandem_plan *plan = a_scheduled_plan();
    struct tnd_text text = printed(plan);
    const char *tail = strstr(tnd_text_string(&text), "part ");
    check_contains(tnd_text_string(&text), "tandem-plan 2\n");
    check_string(tail != NULL ? tail : "",
                 "part 1 rows 0 8 cpu+fake threads 4 table second 2210.699951171875\n"
                 "  init cpu dequantize_w parallel spin 0.10000000149011612\n"
                 "  compute fakedev mul_mat_f32 own sleep 1000000000\n"
                 "part 1 rows 24 32 cpu+fake threads 4 table second 2210.699951171875\n"
                 "  init cpu dequantize_w parallel spin 0.10000000149011612\n"
                 "  compute fakedev mul_mat_f32 own sleep 1000000000\n"
                 "order 1 0 2\n"
                 "span 1 own cpu compute init 0 30.100000381469727\n"
                 "span 1 0 fakedev upload init 0.5 12.5\n"
                 "end\n");
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void check_same_schedule(const tandem_plan *a, const tandem_plan *b)
{
    check_int(tandem_plan_part_count(a), tandem_plan_part_count(b));
    for (int i = 0; i < tandem_plan_part_count(a); i++) {
        const struct tandem_plan_part *one = tandem_plan_part(a, i);
        const struct tandem_plan_part *two = tandem_plan_part(b, i);
        CU_ASSERT_TRUE(one->node == two->node && one->split == two->split &&
                       one->begin == two->begin && one->end == two->end);
        check_bits(&one->choice, &two->choice, sizeof(one->choice), "choice");
    }
    check_bits(tandem_plan_order(a), tandem_plan_order(b), 3 * sizeof(int32_t), "order");
    check_int(tandem_plan_span_count(a), tandem_plan_span_count(b));
    for (int i = 0; i < tandem_plan_span_count(a); i++) {
        check_bits(tandem_plan_span(a, i), tandem_plan_span(b, i), sizeof(struct tandem_plan_span),
                   "span");
    }
}

static void a_schedule_is_copied_and_reads_back_and_can_be_cleared(void)
{
    tandem_plan *plan = a_scheduled_plan();
    tandem_plan *copy = NULL;
    tandem_plan *again = NULL;
    struct tnd_text text = printed(plan);
    check_ok(tandem_plan_copy(plan, &copy, NULL));
    check_ok(parse(text.bytes, text.n, &again, NULL));
    check_same_schedule(plan, copy);
    check_same_schedule(plan, again);
    tandem_plan_clear_schedule(copy);
    check_int(tandem_plan_part_count(copy), 0);
    CU_ASSERT_PTR_NULL(tandem_plan_order(copy));
    CU_ASSERT_FALSE(tnd_plan_is_scheduled(copy));
    tnd_plan_remove_parts(again, 1);
    check_int(tandem_plan_part_count(again), 0);
    CU_ASSERT_PTR_NOT_NULL(tandem_plan_order(again));
    tnd_text_fini(&text);
    tandem_plan_free(copy);
    tandem_plan_free(again);
    tandem_plan_free(plan);
}

static void a_schedule_that_is_cut_anywhere_is_refused(void)
{
    tandem_plan *plan = a_scheduled_plan();
    struct tnd_text text = printed(plan);
    for (size_t n = 0; n + 1 < text.n; n++) {
        struct tandem_error error = {0};
        tandem_plan *again = NULL;
        char *bytes = tnd_guarded_alloc(n, 1);
        memcpy(bytes, text.bytes, n);
        CU_ASSERT_NOT_EQUAL(parse(bytes, n, &again, &error), TANDEM_OK);
        CU_ASSERT_PTR_NULL(again);
        tnd_guarded_free(bytes);
    }
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static void damage_in_a_schedule_is_told_with_its_place(void)
{
    static const char head[] = "tandem-plan 2\ngraph 0123456789abcdef nodes 2\n"
                               "node 0 cpu threads 1 only second 0\n"
                               "node 1 cpu threads 1 only second 0\n";
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"part 2 rows 0 8 cpu threads 1 only second 0\nend\n", "a.plan:5:6: expected the number"},
        {"part 1 heads 0 8 cpu threads 1 only second 0\nend\n", "rows or columns"},
        {"part 1 rows 8 8 cpu threads 1 only second 0\nend\n", "the first row"},
        {"part 1 rows 0 8 cpu threads 1 only second 0\n"
         "part 1 rows 7 9 cpu threads 1 only second 0\nend\n",
         "parts that do not overlap"},
        {"part 1 rows 0 8 cpu threads 1 only second 0\n"
         "part 1 columns 8 9 cpu threads 1 only second 0\nend\n",
         "parts that do not overlap"},
        {"order 1 1\nend\n", "each node once"},
        {"order 1\nend\n", "each node once"},
        {"order 1 0 0\nend\n", "each node once"},
        {"span 0 none cpu compute compute 0 1\nend\n", "a part or 'own'"},
        {"span 0 own cpu sideways compute 0 1\nend\n", "compute, upload or download"},
        {"span 0 own cpu compute compute 2 1\nend\n", "ends behind its begin"},
        {"span 0 own cpu compute compute 2 nan\nend\n", "begin and end"},
        {"order 1 0\npart 1 rows 0 8 cpu threads 1 only second 0\nend\n", "'span' or 'end'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_plan *plan = NULL;
        char text[512];
        snprintf(text, sizeof(text), "%s%s", head, cases[i].text);
        check_status(parse(text, strlen(text), &plan, &error), TANDEM_E_FORMAT, cases[i].part,
                     &error);
        CU_ASSERT_PTR_NULL(plan);
    }
}

static void parts_orders_and_spans_that_mean_nothing_are_refused(void)
{
    static const int32_t twice[] = {0, 1, 1};
    static const int32_t outside[] = {0, 1, 3};
    tandem_plan *plan = a_scheduled_plan();
    struct tandem_plan_part part = a_part(plan, 30, 40);
    struct tandem_plan_span span = *tandem_plan_span(plan, 0);
    check_int(tandem_plan_add_part(plan, &part, NULL), TANDEM_E_ARGUMENT);
    part = a_part(plan, 40, 40);
    check_int(tandem_plan_add_part(plan, &part, NULL), TANDEM_E_ARGUMENT);
    part = a_part(plan, 40, 48);
    part.split = TANDEM_SPLIT_COLUMNS; /* the others are of rows */
    check_int(tandem_plan_add_part(plan, &part, NULL), TANDEM_E_ARGUMENT);
    part.split = TANDEM_SPLIT_ROWS;
    part.choice.predicted_us[1] = NAN;
    check_int(tandem_plan_add_part(plan, &part, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_plan_set_order(plan, twice, 3, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_plan_set_order(plan, outside, 3, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_plan_set_order(plan, outside, 2, NULL), TANDEM_E_ARGUMENT);
    span.end_us = INFINITY;
    check_int(tandem_plan_add_span(plan, &span, NULL), TANDEM_E_ARGUMENT);
    span.end_us = span.begin_us;
    span.backend = TANDEM_BACKEND_NONE;
    check_int(tandem_plan_add_span(plan, &span, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_plan_part_count(plan), 2);
    check_int(tandem_plan_span_count(plan), 2);
    CU_ASSERT_PTR_NULL(tandem_plan_part(plan, 2));
    CU_ASSERT_PTR_NULL(tandem_plan_span(plan, 2));
    check_ok(tandem_plan_set_order(plan, NULL, 0, NULL));
    CU_ASSERT_PTR_NULL(tandem_plan_order(plan));
    check_string(tandem_split_name((enum tandem_split)7), "unknown");
    check_string(tandem_lane_name((enum tandem_lane)7), "unknown");
    tandem_plan_free(plan);
}

static void running_out_of_memory_for_a_schedule_leaks_nothing(void)
{
    tandem_plan *plan = a_scheduled_plan();
    struct tnd_text text = printed(plan);
    long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long nth = 1; nth < 64 && status != TANDEM_OK; nth++) {
        tandem_plan *copy = NULL;
        tandem_plan *read = NULL;
        tnd_alloc_fail_after(nth);
        status = tandem_plan_copy(plan, &copy, NULL);
        status = status == TANDEM_OK ? parse(text.bytes, text.n, &read, NULL) : status;
        tnd_alloc_fail_after(-1);
        CU_ASSERT_TRUE(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        tandem_plan_free(copy);
        tandem_plan_free(read);
        check_int(tnd_alloc_live(), live);
    }
    check_int(status, TANDEM_OK);
    tnd_text_fini(&text);
    tandem_plan_free(plan);
}

static CU_TestInfo tests[] = {
    {"predicted_times_that_are_no_times_are_refused",
     predicted_times_that_are_no_times_are_refused},
    {"a_plan_prints_as_documented", a_plan_prints_as_documented},
    {"a_plan_reads_back_bit_for_bit", a_plan_reads_back_bit_for_bit},
    {"a_plan_that_is_cut_anywhere_is_refused", a_plan_that_is_cut_anywhere_is_refused},
    {"damage_is_told_with_its_place", damage_is_told_with_its_place},
    {"plans_that_could_not_run_are_not_printed", plans_that_could_not_run_are_not_printed},
    {"names_set_by_hand_stay_one_word", names_set_by_hand_stay_one_word},
    {"running_out_of_memory_leaks_nothing", running_out_of_memory_leaks_nothing},
    {"a_schedule_prints_behind_the_nodes_as_documented",
     a_schedule_prints_behind_the_nodes_as_documented},
    {"a_schedule_is_copied_and_reads_back_and_can_be_cleared",
     a_schedule_is_copied_and_reads_back_and_can_be_cleared},
    {"a_schedule_that_is_cut_anywhere_is_refused", a_schedule_that_is_cut_anywhere_is_refused},
    {"damage_in_a_schedule_is_told_with_its_place", damage_in_a_schedule_is_told_with_its_place},
    {"parts_orders_and_spans_that_mean_nothing_are_refused",
     parts_orders_and_spans_that_mean_nothing_are_refused},
    {"running_out_of_memory_for_a_schedule_leaks_nothing",
     running_out_of_memory_for_a_schedule_leaks_nothing},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_plan_text[] = {
    {"plan text", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
