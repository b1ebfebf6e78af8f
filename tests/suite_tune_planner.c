/* SPDX-License-Identifier: MIT
 * The planner: table, rule, force, memory of choices; the rule. */
#include <stdio.h>
#include <string.h>

#include "backends/registry.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/support_tune.h"
#include "tune/planner.h"
#include "tune/profiles.h"

static struct tnd_registry *registry;
static struct tnd_planner *planner;
static tandem_context *context;
static tandem_table *table;
static char last_log[512];
static int log_lines;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    snprintf(last_log, sizeof(last_log), "%s", text);
    log_lines++;
}

static void set_up(void)
{
    struct tnd_registry_options options;
    memset(&options, 0, sizeof(options));
    options.n_threads_max = 8;
    check_ok(tnd_registry_open(&options, &registry, NULL));
    struct tnd_planner_options planner_options = {.registry = registry,
                                                  .clock = tnd_clock_real(),
                                                  .log = {remember_line, NULL, TANDEM_LOG_INFO}};
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tandem_table_new(&table, NULL));
    log_lines = 0;
}

static void tear_down(void)
{
    tnd_planner_free(planner);
    tnd_registry_close(registry);
    tandem_table_free(table);
    tandem_context_free(context);
}

static bool has_openblas(void)
{
    if (tnd_registry_find(registry, "openblas", NULL) >= 0) {
        return true;
    }
    tnd_skip("OpenBLAS is not on this machine");
    return false;
}

static tandem_graph *product(enum tandem_type type, int64_t n, int64_t k, int64_t m)
{
    return tune_product(context, type, n, k, m);
}

static struct tandem_plan_node plan_one(const tandem_graph *graph, int n_threads)
{
    return tune_plan_one(planner, graph, n_threads);
}

/* Puts a made-up cost into all stages of a profile: each takes fixed + per_token * m
 * microseconds. */
static void add_cost(const char *profile, enum tandem_type type, int64_t n, int64_t k, int threads,
                     double fixed, double per_token)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, type, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        for (int64_t m = 1; m <= 64 && stage->backend[0] != '\0'; m *= 4) {
            struct tnd_curve_key key;
            memset(&key, 0, sizeof(key));
            strcpy(key.op, "mul_mat");
            key.type = type;
            key.n = n;
            key.k = k;
            strcpy(key.backend, stage->backend);
            key.stage = (uint8_t)s;
            key.task = stage->task;
            key.parallel = stage->parallel;
            key.own_threads = stage->own_threads;
            key.threads = stage->parallel || stage->own_threads ? threads : 1;
            struct tnd_sample sample = {m, fixed + per_token * (double)m, 0.1, 10, 1, 0, 0, 0, 0};
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

/* No instruction set below AVX2 has packed weights. */
static bool has_packed(void)
{
    return strcmp(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 1), 1).profile, "cpu") != 0;
}

static void without_a_table_a_prompt_runs_by_cpu_kernels_on_all_threads(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_K,
                                             TANDEM_TYPE_F16, TANDEM_TYPE_F32};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int64_t m = 8; m <= 512; m *= 2) {
            struct tandem_plan_node node = plan_one(product(types[i], 512, 512, m), 4);
            CU_ASSERT_TRUE(strcmp(node.profile, has_packed() ? "cpu-packed" : "cpu") == 0);
            CU_ASSERT_TRUE(node.stage[TANDEM_STAGE_COMPUTE].parallel);
            check_int(node.n_threads, 4);
            check_int(node.reason, TANDEM_REASON_RULE);
        }
    }
    check_int(log_lines, 0);
}

static void without_a_table_weights_that_change_are_not_packed(void)
{
    tandem_graph *graph = product(TANDEM_TYPE_Q4_0, 512, 512, 32);
    tandem_tensor_set_role(graph->nodes[0]->src[0], TANDEM_ROLE_INPUT);
    struct tandem_plan_node node = plan_one(graph, 2);
    check_string(node.profile, "cpu");
    check_int(node.reason, TANDEM_REASON_RULE);
}

static void without_memory_for_copies_nothing_is_packed(void)
{
    tear_down();
    struct tnd_registry_options options = {.n_threads_max = 8, .settings = "cpu:packed=off"};
    struct tnd_planner_options planner_options = {.clock = tnd_clock_real()};
    check_ok(tnd_registry_open(&options, &registry, NULL));
    planner_options.registry = registry;
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tandem_table_new(&table, NULL));
    check_string(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 32), 2).profile, "cpu");
}

static void a_table_that_found_packed_weights_wrong_keeps_the_rule_from_them(void)
{
    if (!has_packed()) {
        tnd_skip("no packed weights with this instruction set");
        return;
    }
    struct tnd_check check = {
        .type = TANDEM_TYPE_Q4_0, .m = 4, .n = 64, .k = 64, .nmse = 1, .bound = 1e-4};
    strcpy(check.profile, "cpu-packed");
    check_ok(tnd_table_add_check(table, &check));
    tnd_planner_set_table(planner, table);
    check_string(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 32), 2).profile, "cpu");
}

static void one_token_takes_no_more_threads_than_cores(void)
{
    struct tnd_planner_options options = {
        .registry = registry, .clock = tnd_clock_real(), .n_cpus = 8, .n_cores = 4};
    tnd_planner_free(planner);
    check_ok(tnd_planner_new(&options, &planner, NULL));
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 4096, 4096, 1), 8).n_threads, 4);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 4096, 4096, 1), 3).n_threads, 3);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 4096, 4096, 32), 8).n_threads, 8);
}

static void the_table_decides_by_tokens(void)
{
    if (!has_openblas()) {
        return;
    }
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 10, 10);
    add_cost("cpu+openblas", TANDEM_TYPE_Q4_0, 512, 512, 2, 60, 1);
    tnd_planner_set_table(planner, table);
    struct tandem_plan_node few = plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 2), 2);
    struct tandem_plan_node many = plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 30), 2);
    check_string(few.profile, "cpu");
    check_int(few.reason, TANDEM_REASON_TABLE);
    CU_ASSERT_DOUBLE_EQUAL(few.predicted_us[TANDEM_STAGE_COMPUTE], 30, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(few.runner_up_us, 124, 0.1);
    check_string(many.profile, "cpu+openblas");
    CU_ASSERT_DOUBLE_EQUAL(many.predicted_us[TANDEM_STAGE_COMPUTE], 90, 0.01);
}

/* cpu: a straight line. OpenBLAS: cheap up to M = 2, four times as dear from M = 4 on; where
 * between the two it jumps was not measured. */
static void the_plan_does_not_bet_on_where_a_step_lies(void)
{
    if (!has_openblas()) {
        return;
    }
    static const int64_t m[] = {1, 2, 4, 8};
    static const double cpu_us[] = {12.4, 12.6, 13, 13.8};
    static const double openblas_us[] = {4, 5, 20, 22};
    struct tnd_table_profile cpu, openblas;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_F32, &cpu));
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu+openblas", TANDEM_TYPE_F32, &openblas));
    for (int i = 0; i < 4; i++) {
        struct tnd_curve_key key = {.op = "mul_mat", .type = TANDEM_TYPE_F32, .n = 512, .k = 512};
        key.stage = TANDEM_STAGE_COMPUTE;
        key.threads = 1;
        strcpy(key.backend, "cpu");
        key.task = cpu.stage[TANDEM_STAGE_COMPUTE].task;
        key.parallel = true;
        struct tnd_sample sample = {m[i], cpu_us[i], 0.01, 9, 1, 0, 0, 0, 0};
        check_ok(tnd_table_add(table, &key, &sample));
        strcpy(key.backend, "openblas");
        key.task = openblas.stage[TANDEM_STAGE_COMPUTE].task;
        key.parallel = false;
        sample.median_us = openblas_us[i];
        check_ok(tnd_table_add(table, &key, &sample));
    }
    tnd_planner_set_table(planner, table);
    check_string(plan_one(product(TANDEM_TYPE_F32, 512, 512, 2), 1).profile, "cpu+openblas");
    struct tandem_plan_node between = plan_one(product(TANDEM_TYPE_F32, 512, 512, 3), 1);
    check_string(between.profile, "cpu");
    CU_ASSERT_DOUBLE_EQUAL(between.runner_up_us, 12.5, 0.01);
    check_string(plan_one(product(TANDEM_TYPE_F32, 512, 512, 5), 1).profile, "cpu");
}

static void the_table_decides_the_thread_count_too(void)
{
    add_cost("cpu", TANDEM_TYPE_Q8_0, 256, 256, 1, 1, 1);
    add_cost("cpu", TANDEM_TYPE_Q8_0, 256, 256, 4, 20, 0.25);
    tnd_planner_set_table(planner, table);
    check_int(plan_one(product(TANDEM_TYPE_Q8_0, 256, 256, 1), 4).n_threads, 1);
    check_int(plan_one(product(TANDEM_TYPE_Q8_0, 256, 256, 64), 4).n_threads, 4);
}

static void outside_the_table_the_rule_serves_and_says_so_once(void)
{
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 10, 10);
    tnd_planner_set_table(planner, table);
    check_int(plan_one(product(TANDEM_TYPE_Q5_1, 512, 512, 4), 2).reason, TANDEM_REASON_RULE);
    check_int(plan_one(product(TANDEM_TYPE_Q5_1, 1024, 512, 4), 2).reason, TANDEM_REASON_RULE);
    check_int(log_lines, 1);
    check_contains(last_log, "mul_mat:q5_1:n512:k512:m4: outside the timing table");
}

/* add_cost measures M = 1 .. 64. */
static void beyond_four_times_the_measured_range_the_rule_serves(void)
{
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 10, 10);
    tnd_planner_set_table(planner, table);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 256), 2).reason, TANDEM_REASON_TABLE);
    check_int(log_lines, 0);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 257), 2).reason, TANDEM_REASON_RULE);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 1000), 2).reason, TANDEM_REASON_RULE);
    check_int(log_lines, 1);
    check_contains(last_log, "mul_mat:q4_0:n512:k512:m257: M is more than four times outside");
    check_contains(last_log, "mulmat-tune bench --model 512x512 --type q4_0 -m 257");
}

static void a_forced_profile_wins_wherever_it_applies(void)
{
    if (!has_openblas()) {
        return;
    }
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 1, 1);
    tnd_planner_set_table(planner, table);
    for (int i = 0; i < tnd_profile_count(registry); i++) {
        struct tandem_plan_node node;
        if (!tnd_plan_node_for_profile(registry, i, TANDEM_TYPE_Q4_0, 2, &node)) {
            continue; /* its device is not open */
        }
        tnd_planner_force(planner, i);
        node = plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 3), 2);
        check_string(node.profile, tnd_profile_at(registry, i)->name);
        check_int(node.reason, TANDEM_REASON_FORCED);
    }
    tnd_planner_force(planner, -1);
    check_int(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 3), 2).reason, TANDEM_REASON_TABLE);
}

/* A product of the shape of product(), whose weight anybody may change. */
static tandem_graph *product_of_changing(enum tandem_type type, int64_t n, int64_t k, int64_t m)
{
    tandem_graph *graph = product(type, n, k, m);
    const tandem_tensor *node = graph->nodes[0];
    tandem_tensor_set_role(node->src[0], TANDEM_ROLE_INPUT);
    return graph;
}

static void a_choice_for_constant_weights_is_not_remembered_for_others(void)
{
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 10, 10);
    add_cost("cpu-packed", TANDEM_TYPE_Q4_0, 512, 512, 2, 5, 5);
    tnd_planner_set_table(planner, table);
    if (strcmp(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 4), 2).profile, "cpu-packed") != 0) {
        tnd_skip("no packed weights with this instruction set");
        return;
    }
    check_string(plan_one(product_of_changing(TANDEM_TYPE_Q4_0, 512, 512, 4), 2).profile, "cpu");
    check_string(plan_one(product_of_changing(TANDEM_TYPE_Q4_0, 512, 512, 8), 2).profile, "cpu");
    check_string(plan_one(product(TANDEM_TYPE_Q4_0, 512, 512, 8), 2).profile, "cpu-packed");
}

static void a_new_table_replaces_remembered_choices(void)
{
    tandem_graph *graph = product(TANDEM_TYPE_Q4_0, 512, 512, 3);
    check_int(plan_one(graph, 2).reason, TANDEM_REASON_RULE);
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 1, 1);
    tnd_planner_set_table(planner, table);
    check_int(plan_one(graph, 2).reason, TANDEM_REASON_TABLE);
    tnd_planner_set_table(planner, NULL);
    check_int(plan_one(graph, 2).reason, TANDEM_REASON_RULE);
}

static void thousands_of_shapes_are_planned_alike_however_often(void)
{
    add_cost("cpu", TANDEM_TYPE_Q4_0, 512, 512, 2, 10, 10);
    tnd_planner_set_table(planner, table);
    struct tandem_plan_node first[64];
    tandem_graph *graphs[64];
    for (int i = 0; i < 64; i++) {
        graphs[i] = product(TANDEM_TYPE_Q4_0, 64, 512, i + 1);
        first[i] = plan_one(graphs[i], 2);
    }
    for (int m = 0; m < 3000; m++) { /* grows the memory of choices several times */
        tandem_context_reset(context);
        (void)plan_one(product(TANDEM_TYPE_Q4_0, 1, 32, m + 1), 2);
    }
    tandem_context_reset(context);
    for (int i = 0; i < 64; i++) {
        struct tandem_plan_node again = plan_one(product(TANDEM_TYPE_Q4_0, 64, 512, i + 1), 2);
        check_bits(&again, &first[i], sizeof(again), "plan node");
    }
}

static void small_nodes_stay_on_one_thread(void)
{
    tandem_tensor *a = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    tandem_tensor *b =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){4096, 4096});
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_sqr(context, a));
    tandem_graph_add(graph, tandem_sqr(context, b));
    check_ok(tandem_graph_finish(graph, NULL));
    tandem_plan *plan = NULL;
    check_ok(tnd_planner_plan(planner, graph, 4, &plan, NULL));
    check_int(tandem_plan_node(plan, 0)->n_threads, 1);
    check_int(tandem_plan_node(plan, 1)->n_threads, 4);
    check_int(tandem_plan_threads(plan), 4);
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_ONLY);
    tandem_plan_free(plan);
}

static void running_out_of_memory_leaks_nothing(void)
{
    tandem_graph *graph = product(TANDEM_TYPE_Q4_0, 64, 64, 3);
    long live = tnd_alloc_live();
    for (long n = 1; n < 100; n++) {
        struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
        struct tnd_planner *mine = NULL;
        tandem_plan *plan = NULL;
        tnd_alloc_fail_after(n);
        enum tandem_status status = tnd_planner_new(&options, &mine, NULL);
        if (status == TANDEM_OK) {
            status = tnd_planner_plan(mine, graph, 2, &plan, NULL);
        }
        tnd_alloc_fail_after(-1);
        tandem_plan_free(plan);
        tnd_planner_free(mine);
        check_int(tnd_alloc_live(), live);
        if (status == TANDEM_OK) {
            return;
        }
        check_int(status, TANDEM_E_MEMORY);
    }
    CU_FAIL("never ran through");
}

static void times_of_a_library_alone_leave_the_choice_to_the_rule(void)
{
    if (!has_openblas()) {
        return;
    }
    const tandem_graph *graph = product(TANDEM_TYPE_F32, 512, 512, 4);
    struct tandem_plan_node by_rule = plan_one(graph, 1);
    add_cost("cpu+openblas", TANDEM_TYPE_F32, 512, 512, 1, 5, 1);
    tnd_planner_set_table(planner, table);
    struct tandem_plan_node node = plan_one(graph, 1);
    check_string(node.profile, by_rule.profile); /* perhaps faster: its times are void */
    check_int(node.reason, TANDEM_REASON_RULE);
    add_cost("cpu", TANDEM_TYPE_F32, 512, 512, 1, 50, 10);
    tnd_planner_set_table(planner, table);
    node = plan_one(graph, 1);
    check_string(node.profile, "cpu+openblas");
    check_int(node.reason, TANDEM_REASON_TABLE);
}

static CU_TestInfo tests[] = {
    {"without_a_table_a_prompt_runs_by_cpu_kernels_on_all_threads",
     without_a_table_a_prompt_runs_by_cpu_kernels_on_all_threads},
    {"without_a_table_weights_that_change_are_not_packed",
     without_a_table_weights_that_change_are_not_packed},
    {"without_memory_for_copies_nothing_is_packed", without_memory_for_copies_nothing_is_packed},
    {"a_table_that_found_packed_weights_wrong_keeps_the_rule_from_them",
     a_table_that_found_packed_weights_wrong_keeps_the_rule_from_them},
    {"one_token_takes_no_more_threads_than_cores", one_token_takes_no_more_threads_than_cores},
    {"the_table_decides_by_tokens", the_table_decides_by_tokens},
    {"the_plan_does_not_bet_on_where_a_step_lies", the_plan_does_not_bet_on_where_a_step_lies},
    {"the_table_decides_the_thread_count_too", the_table_decides_the_thread_count_too},
    {"outside_the_table_the_rule_serves_and_says_so_once",
     outside_the_table_the_rule_serves_and_says_so_once},
    {"beyond_four_times_the_measured_range_the_rule_serves",
     beyond_four_times_the_measured_range_the_rule_serves},
    {"a_forced_profile_wins_wherever_it_applies", a_forced_profile_wins_wherever_it_applies},
    {"a_choice_for_constant_weights_is_not_remembered_for_others",
     a_choice_for_constant_weights_is_not_remembered_for_others},
    {"a_new_table_replaces_remembered_choices", a_new_table_replaces_remembered_choices},
    {"thousands_of_shapes_are_planned_alike_however_often",
     thousands_of_shapes_are_planned_alike_however_often},
    {"small_nodes_stay_on_one_thread", small_nodes_stay_on_one_thread},
    {"running_out_of_memory_leaks_nothing", running_out_of_memory_leaks_nothing},
    {"times of a library alone leave the choice to the rule",
     times_of_a_library_alone_leave_the_choice_to_the_rule},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_planner[];
CU_SuiteInfo suites_tune_planner[] = {
    {"planner", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
