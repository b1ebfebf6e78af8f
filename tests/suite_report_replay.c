/* SPDX-License-Identifier: MIT
 * Replays by a virtual clock: small plans whose times are counted by hand, and the plans of
 * machines that are not here. */
#include <stdio.h>
#include <string.h>

#include "backends/registry.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/support_tune.h"
#include "tune/planner.h"
#include "tools/report/replay_print.h"
#include "tools/report/stub_backends.h"

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K, M = 4 };

static tandem_table *table;
static struct tnd_registry *registry;
static tandem_context *context;
static tandem_graph *graph;
static tandem_plan *plan;
static struct tnd_steps *steps;
static struct tnd_replay replay;

static void set_up(void)
{
    table = tune_new();
    check_ok(tandem_context_new(NULL, &context, NULL));
    graph = tandem_graph_new(context);
    registry = NULL;
    plan = NULL;
    steps = NULL;
    memset(&replay, 0, sizeof(replay));
}

static void tear_down(void)
{
    tnd_replay_fini(&replay);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
    tnd_registry_close(registry);
    tandem_table_free(table);
}

static tandem_tensor *matrix(enum tandem_type type, int64_t n, int64_t k)
{
    const int64_t ne[] = {k, n};
    return tandem_tensor_new(context, type, 2, ne);
}

static tandem_tensor *weight(int64_t n, int64_t k)
{
    return tandem_tensor_set_role(matrix(TANDEM_TYPE_Q4_0, n, k), TANDEM_ROLE_CONSTANT);
}

/* A product that the program wants, of an input of its own. */
static void add_product(int64_t n, int64_t k, int64_t m)
{
    tandem_tensor *x = matrix(TANDEM_TYPE_F32, m, k);
    tandem_graph_add(graph, tandem_mul_mat(context, weight(n, k), x));
}

/* False when this build does not read such files. */
static bool read_table(const char *path)
{
    struct tandem_error error;
    tandem_table_free(table);
    table = NULL;
    enum tandem_status status = tandem_table_load(path, &table, &error);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: tables as JSON need cJSON");
        return false;
    }
    check_ok(status);
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    return true;
}

static void make_plan(int n_threads)
{
    struct tnd_planner *planner = NULL;
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tnd_stub_backends_open(table, n_threads, &registry, NULL));
    const struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    tnd_planner_set_candidates(planner, tnd_stub_candidates);
    tnd_planner_set_table(planner, table);
    check_ok(tnd_planner_plan(planner, graph, n_threads, &plan, NULL));
    tnd_planner_free(planner);
}

static void replay_plan(double memory_gbps)
{
    check_ok(tnd_replay_unfold(graph, plan, registry, &steps, NULL));
    const struct tnd_replay_options options = {steps, registry, table, memory_gbps};
    check_ok(tnd_replay(&options, &replay, NULL));
}

static double busy(const char *lane)
{
    for (int i = 0; i < replay.n_lanes; i++) {
        if (strcmp(replay.lanes[i].name, lane) == 0) {
            return replay.lanes[i].busy_us;
        }
    }
    return -1;
}

static double on_path(const char *part)
{
    for (int i = 0; i < replay.n_parts; i++) {
        if (strcmp(replay.parts[i].name, part) == 0) {
            return replay.parts[i].us;
        }
    }
    return 0;
}

static void check_us(double got, double wanted)
{
    CU_ASSERT_DOUBLE_EQUAL(got, wanted, 1e-3 + 1e-6 * wanted);
}

/* ---- one lane ---- */

static void stages_on_the_cpu_take_their_sum(void)
{
    tune_add_cost(table, "cpu", 5, 1); /* each of two stages: 5 + M */
    add_product(N, K, M);
    add_product(N, K, M);
    make_plan(2);
    replay_plan(0);
    check_us(replay.makespan_us, 4 * 9);
    double shares = 0;
    for (int i = 0; i < replay.n_lanes; i++) {
        shares += replay.lanes[i].busy_us / replay.makespan_us;
    }
    CU_ASSERT_DOUBLE_EQUAL(shares, 1, 1e-9);
    check_us(replay.host_busy_us, replay.makespan_us);
    check_us(on_path("cpu"), replay.makespan_us);
    check_int(replay.n_untimed, 0);
}

static void a_split_product_is_replayed_on_both_lanes(void)
{
    tune_add_cost(table, "cpu", 500, 0);
    tune_add_cost(table, "opencl", 1000, 0);
    tune_add_link(table, "opencl", 2, 1e5);
    add_product(N, K, M);
    make_plan(2);
    check_int(tandem_plan_part_count(plan), 1);
    replay_plan(0);
    CU_ASSERT_DOUBLE_EQUAL(replay.makespan_us / (double)plan->schedule->makespan_us, 1, 0.05);
    CU_ASSERT_TRUE(replay.makespan_us < 800);
    CU_ASSERT_TRUE(busy("opencl") > 0.7 * replay.makespan_us);
}

static void operations_without_times_take_none_or_those_of_memory(void)
{
    tune_add_cost(table, "cpu", 5, 1);
    tandem_tensor *x = matrix(TANDEM_TYPE_F32, M, K);
    tandem_tensor *y = tandem_mul_mat(context, weight(N, K), x);
    tandem_graph_add(graph, tandem_silu(context, y));
    make_plan(2);
    replay_plan(0);
    check_us(replay.makespan_us, 18);
    check_int(replay.n_untimed, 1);
    check_int(replay.n_untimed_products, 0);
    tnd_replay_fini(&replay);
    const struct tnd_replay_options options = {steps, registry, table, 2.0};
    check_ok(tnd_replay(&options, &replay, NULL));
    check_us(replay.makespan_us, 18 + 2.0 * N * M * 4 / 2e3); /* read and written at 2 GB/s */
    check_int(replay.n_untimed, 0);
}

static void a_product_that_the_table_does_not_cover_is_told(void)
{
    tune_add_cost(table, "cpu", 5, 1);
    add_product(64 * N, K, M); /* too far from what was measured */
    make_plan(2);
    replay_plan(0);
    CU_ASSERT_EQUAL(replay.makespan_us, 0);
    check_int(replay.n_untimed_products, 2);
}

/* ---- devices ---- */

static void run_on_device(int node)
{
    struct tandem_plan_node choice = *tandem_plan_node(plan, node);
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n =
        tnd_stub_candidates(registry, table, graph->nodes[node], TANDEM_TYPE_Q4_0, 0, candidates);
    for (int w = 0; w < n; w++) {
        if (strcmp(candidates[w].profile.name, "opencl") == 0) {
            choice = candidates[w].node;
        }
    }
    check_ok(tandem_plan_set_node(plan, node, &choice));
}

static void run_on_cpu(int node)
{
    struct tandem_plan_node choice = *tandem_plan_node(plan, node);
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n =
        tnd_stub_candidates(registry, table, graph->nodes[node], TANDEM_TYPE_Q4_0, 0, candidates);
    for (int w = 0; w < n; w++) {
        if (strcmp(candidates[w].profile.name, "cpu") == 0) {
            choice = candidates[w].node;
        }
    }
    check_ok(tandem_plan_set_node(plan, node, &choice));
}

static void works_of_a_device_overlap_with_the_cpu(void)
{
    tune_add_cost(table, "cpu", 50, 0);     /* two stages: 100 us */
    tune_add_cost(table, "opencl", 100, 0); /* works in host memory: there are no transfers */
    add_product(N, K, M);
    add_product(N, K, M);
    make_plan(1);
    run_on_device(0);
    run_on_cpu(1);
    replay_plan(0);
    check_us(replay.makespan_us, 100);
    check_us(busy("opencl"), 100);
    check_us(busy("cpu, 1 thread"), 100);
}

/* The CPU takes twice as long while the device works, the device half as long again: of the
 * device's 100 us 150 pass, in which 75 us of the CPU's are done. */
static void backends_that_work_at_the_same_time_slow_each_other_down(void)
{
    tune_add_cost(table, "cpu", 100, 0);
    tune_add_cost(table, "opencl", 100, 0);
    check_ok(tnd_table_add_slowdown(table, &(struct tnd_slowdown){"cpu", "opencl", 2, 5, 1}));
    check_ok(tnd_table_add_slowdown(table, &(struct tnd_slowdown){"opencl", "cpu", 1.5, 5, 1}));
    add_product(N, K, M);
    add_product(N, K, M);
    make_plan(1);
    run_on_device(0);
    run_on_cpu(1);
    replay_plan(0);
    check_us(busy("opencl"), 150);
    check_us(replay.makespan_us, 150 + 200 - 75);
}

static void a_stage_waits_for_what_the_device_computes(void)
{
    tune_add_cost(table, "cpu", 50, 0);
    tune_add_cost(table, "opencl", 100, 0);
    tandem_tensor *x = matrix(TANDEM_TYPE_F32, M, K);
    tandem_tensor *y = tandem_mul_mat(context, weight(K, K), x);
    tandem_graph_add(graph, tandem_mul_mat(context, weight(N, K), y));
    make_plan(1);
    run_on_device(0);
    run_on_cpu(1);
    replay_plan(0);
    check_us(replay.makespan_us, busy("opencl") + 100);
    check_us(on_path("opencl"), busy("opencl"));
    check_us(on_path("cpu"), 100);
}

static void transfers_stand_around_the_works_of_a_device(void)
{
    tune_add_cost(table, "cpu", 1e6, 0);
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_link(table, "opencl", 1000, 1000); /* the latency alone outweighs the work */
    add_product(N, K, M);
    make_plan(1);
    check_string(tandem_plan_node(plan, 0)->profile, "opencl");
    replay_plan(0);
    double up = 1000 + 4.0 * K * M / 1000;
    double down = 1000 + 4096.0 / 1000; /* the smallest that was measured */
    check_us(busy("opencl upload"), up);
    check_us(busy("opencl download"), down);
    check_us(replay.makespan_us, up + 100 + down);
    check_us(on_path("opencl upload"), up);
    check_string(replay.parts[0].name, "opencl upload");
    /* X belongs to INIT, Y is fetched by FINALIZE, which the plan predicts. */
    check_int(replay.n_events, 3);
    check_int(replay.events[0].stage, TANDEM_STAGE_INIT);
    check_int(replay.events[1].stage, TANDEM_STAGE_COMPUTE);
    check_int(replay.events[2].stage, TANDEM_STAGE_FINALIZE);
    check_us((double)tandem_plan_node(plan, 0)->predicted_us[TANDEM_STAGE_FINALIZE], down);
}

/* A KV cache is read there, and stays there from pass to pass. */
static void states_are_on_the_device_already(void)
{
    tune_add_cost(table, "cpu", 1e6, 0);
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_link(table, "opencl", 10, 1000);
    tandem_tensor *state = tandem_tensor_set_role(matrix(TANDEM_TYPE_F32, M, K), TANDEM_ROLE_STATE);
    tandem_graph_add(graph, tandem_mul_mat(context, weight(N, K), state));
    make_plan(1);
    check_string(tandem_plan_node(plan, 0)->profile, "opencl");
    replay_plan(0);
    check_us(replay.makespan_us, 100 + 10 + 4096.0 / 1000);
    CU_ASSERT_TRUE(busy("opencl upload") < 0);
}

static void memory_that_runs_out_is_an_error_without_a_leak(void)
{
    if (!read_table("bench-data/server-a100-computed/table.json")) {
        return;
    }
    add_product(4096, 4096, 1);
    make_plan(4);
    enum tandem_status status = TANDEM_E_MEMORY;
    for (int n = 1; status != TANDEM_OK && n < 100; n++) {
        struct tnd_registry *other = NULL;
        struct tnd_steps *own_steps = NULL;
        struct tnd_replay own = {0};
        long live = tnd_alloc_live();
        tnd_alloc_fail_after(n);
        status = tnd_stub_backends_open(table, 4, &other, NULL);
        status =
            status != TANDEM_OK ? status : tnd_replay_unfold(graph, plan, other, &own_steps, NULL);
        const struct tnd_replay_options options = {own_steps, other, table, 0};
        status = status != TANDEM_OK ? status : tnd_replay(&options, &own, NULL);
        tnd_alloc_fail_after(-1);
        CU_ASSERT_TRUE(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        tnd_replay_fini(&own);
        tnd_steps_free(own_steps);
        tnd_registry_close(other);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    check_int(status, TANDEM_OK);
}

static void workers_that_slept_are_woken_on_the_critical_path(void)
{
    tune_add_cost(table, "cpu", 50, 0);
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_handoff(table, 2, 1, 31);
    tandem_tensor *x = matrix(TANDEM_TYPE_F32, M, K);
    tandem_tensor *first = tandem_mul_mat(context, weight(K, K), x);
    tandem_tensor *second = tandem_mul_mat(context, weight(K, K), first);
    tandem_graph_add(graph, tandem_mul_mat(context, weight(N, K), second));
    make_plan(2);
    for (int i = 0; i < 3; i++) {
        run_on_cpu(i);
        struct tandem_plan_node choice = *tandem_plan_node(plan, i);
        choice.n_threads = 2;
        check_ok(tandem_plan_set_node(plan, i, &choice));
    }
    run_on_device(1); /* the profile sends them to sleep */
    replay_plan(0);
    check_us(busy("waking"), 30);
    check_us(on_path("waking"), 30);
}

/* ---- machines that are not here ---- */

/* 4096 x 4096 on one thread: the CPU's own kernels take 8 + 7477 us at M = 8, Accelerate 10948 +
 * 6641 at M = 24, and the former 31 + 18584. */
static void plans_of_the_published_macbook_are_counted_by_hand(void)
{
    (void)read_table("bench-data/macbook-pro-2018/table.txt");
    add_product(4096, 4096, 8);
    add_product(4096, 4096, 24);
    make_plan(1);
    replay_plan(0);
    check_string(tandem_plan_node(plan, 0)->profile, "cpu");
    check_string(tandem_plan_node(plan, 1)->profile, "cpu+accelerate");
    check_us(replay.makespan_us, 8 + 7477 + 10948 + 6641);
    check_us(busy("accelerate, 1 thread"), 6641);
    check_us(on_path("cpu"), 8 + 7477);
}

/* On four threads Accelerate does not pay up to M = 24: its COMPUTE is
 * divided by four, INIT runs on one. */
static void more_threads_keep_the_macbook_on_its_own_kernels(void)
{
    (void)read_table("bench-data/macbook-pro-2018/table.txt");
    add_product(4096, 4096, 24);
    make_plan(4);
    replay_plan(0);
    check_string(tandem_plan_node(plan, 0)->profile, "cpu");
    check_us(replay.makespan_us, 31 + 18584 / 4.0);
    check_us(replay.worker_us, 31 + 18584);
}

/* The card's times by README.md: 8 us for each launch, the bytes of the weights at 0.8 of 1555
 * GB/s. */
static void a_server_with_a_card_works_there_and_moves_tokens_alone(void)
{
    if (!read_table("bench-data/server-a100-computed/table.json")) {
        return;
    }
    add_product(4096, 4096, 1);
    make_plan(64);
    replay_plan(0);
    check_string(tandem_plan_node(plan, 0)->profile, "opencl");
    double bytes = 4096.0 * 4096 * 18 / 32 + 4.0 * (4096 + 4096);
    double moved = 4 * 4096 / (31.5 * 0.8 * 1e3);
    CU_ASSERT_DOUBLE_EQUAL(replay.makespan_us, 8 + bytes / (1555 * 0.8 * 1e3) + 2 * (10 + moved),
                           0.01);
    CU_ASSERT_TRUE(tandem_table_check(table, NULL) != TANDEM_OK); /* nobody plans by it here */
}

static void the_same_table_gives_the_same_bits(void)
{
    struct tnd_replay again;
    struct tnd_text one = TND_TEXT_INIT;
    struct tnd_text two = TND_TEXT_INIT;
    if (!read_table("bench-data/server-a100-computed/table.json")) {
        return;
    }
    tandem_tensor *x = matrix(TANDEM_TYPE_F32, 128, 4096);
    tandem_tensor *y = tandem_mul_mat(context, weight(11008, 4096), x);
    tandem_graph_add(graph, tandem_mul_mat(context, weight(4096, 11008), tandem_silu(context, y)));
    make_plan(8);
    replay_plan(100);
    const struct tnd_replay_options options = {steps, registry, table, 100};
    const struct tnd_replay_subject subject = {graph, &steps->items, 128, 8};
    check_ok(tnd_replay(&options, &again, NULL));
    tnd_replay_json(&replay, &subject, "", &one);
    tnd_replay_trace(&replay, &subject, 1, &one);
    tnd_replay_json(&again, &subject, "", &two);
    tnd_replay_trace(&again, &subject, 1, &two);
    check_string(tnd_text_string(&one), tnd_text_string(&two));
    tnd_text_fini(&one);
    tnd_text_fini(&two);
    tnd_replay_fini(&again);
}

static CU_TestInfo tests[] = {
    {"stages on the cpu take their sum", stages_on_the_cpu_take_their_sum},
    {"a split product is replayed on both lanes", a_split_product_is_replayed_on_both_lanes},
    {"operations without times take none or those of memory",
     operations_without_times_take_none_or_those_of_memory},
    {"a product that the table does not cover is told",
     a_product_that_the_table_does_not_cover_is_told},
    {"works of a device overlap with the cpu", works_of_a_device_overlap_with_the_cpu},
    {"backends that work at the same time slow each other down",
     backends_that_work_at_the_same_time_slow_each_other_down},
    {"a stage waits for what the device computes", a_stage_waits_for_what_the_device_computes},
    {"transfers stand around the works of a device", transfers_stand_around_the_works_of_a_device},
    {"states are on the device already", states_are_on_the_device_already},
    {"memory that runs out is an error without a leak",
     memory_that_runs_out_is_an_error_without_a_leak},
    {"workers that slept are woken on the critical path",
     workers_that_slept_are_woken_on_the_critical_path},
    {"plans of the published macbook are counted by hand",
     plans_of_the_published_macbook_are_counted_by_hand},
    {"more threads keep the macbook on its own kernels",
     more_threads_keep_the_macbook_on_its_own_kernels},
    {"a server with a card works there and moves tokens alone",
     a_server_with_a_card_works_there_and_moves_tokens_alone},
    {"the same table gives the same bits", the_same_table_gives_the_same_bits},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_replay[];
CU_SuiteInfo suites_report_replay[] = {
    {"replay", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
