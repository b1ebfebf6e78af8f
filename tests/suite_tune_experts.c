/* SPDX-License-Identifier: MIT
 * Products of experts are planned by the tokens that an expert gets: by the table's times of plain
 * products where it has some, else by the rule. */
#include <math.h>
#include <string.h>

#include "backends/registry.h"
#include "sched/plan.h"
#include "tests/support_tune.h"
#include "tune/experts.h"
#include "tune/placement.h"
#include "tune/planner.h"

static struct tnd_registry *registry;
static tandem_context *context;
static struct tnd_planner *planner;

static void set_up(void)
{
    struct tnd_registry_options options = {"", NULL, 2, {0}};
    check_ok(tnd_registry_open(&options, &registry, NULL));
    struct tnd_planner_options planner_options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
}

static void tear_down(void)
{
    tnd_planner_free(planner);
    tandem_context_free(context);
    tnd_registry_close(registry);
}

/* 16 experts of 256 x 512, of which each token uses 4. */
static tandem_graph *experts(int64_t m)
{
    const int64_t w_ne[] = {512, 256, 16};
    const int64_t x_ne[] = {512, 1, m};
    const int64_t ids_ne[] = {4, m};
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 3, w_ne);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(
        graph, tandem_mul_mat_id(context, w, tandem_tensor_new(context, TANDEM_TYPE_F32, 3, x_ne),
                                 tandem_tensor_new(context, TANDEM_TYPE_I32, 2, ids_ne)));
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

static struct tandem_plan_node planned(const tandem_graph *graph)
{
    tandem_plan *plan = NULL;
    struct tandem_plan_node node = {.profile = ""};
    if (check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL))) {
        node = plan->nodes[0];
    }
    tandem_plan_free(plan);
    return node;
}

static void the_expected_number_of_experts_in_use_follows_from_chance(void)
{
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active(8, 2, 1), 2.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active(8, 2, 2), 3.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active(128, 8, 1000000), 128.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active(4, 4, 3), 4.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active(0, 0, 3), 0.0, 1e-12);
}

static void one_token_reads_the_experts_that_it_uses_and_many_share_all(void)
{
    struct tnd_problem problem;
    tnd_experts_problem(experts(1)->nodes[0], NULL, &problem);
    check_int(problem.n, 4 * 256);
    check_int(problem.m, 1);
    check_int(problem.k, 512);
    tnd_experts_problem(experts(400)->nodes[0], NULL, &problem);
    check_int(problem.n, 16 * 256);
    check_int(problem.m, 100);
}

/* Expert 0 for every token, 1 for every second, the rest for one in a hundred. */
static const float uneven[16] = {1,     0.5f,  0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f,
                                 0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f};

static void known_use_takes_the_place_of_chance(void)
{
    struct tnd_problem problem;
    struct tnd_expert_use use = {.shares = uneven, .n = 16, .sum = 1.64};
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active_used(&use, 1), 1.64, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active_used(&use, 2), 1 + 0.75 + 14 * 0.0199, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active_used(&use, 2), 1 + 0.75 + 14 * 0.0199, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(tnd_experts_active_used(&use, 0), 0, 1e-12);
    tnd_experts_problem(experts(1)->nodes[0], &use, &problem);
    check_int(problem.n, 420); /* 1.64 * 256 */
    check_int(problem.m, 1);
    tnd_experts_problem(experts(100)->nodes[0], &use, &problem);
    check_int(problem.n, (int64_t)(256 * (2 + 14 * (1 - pow(0.99, 100))) + 0.5));
    check_int(problem.m, 15); /* 164 pairs for 10.9 experts */
    const float nobody[2] = {0, 0};
    struct tnd_expert_use idle = {.shares = nobody, .n = 2};
    tnd_experts_problem(experts(100)->nodes[0], &idle, &problem);
    check_int(problem.n, 1);
    check_int(problem.m, 1);
}

static void a_placement_keeps_the_use_of_its_weights(void)
{
    static const char weights[3] = {0};
    float shares[16];
    struct tnd_placement *placement = NULL;
    memcpy(shares, uneven, sizeof(shares));
    const struct tnd_placed list[] = {
        {.data = &weights[2], .slot = 1, .shares = shares, .n_shares = 2},
        {.data = &weights[0], .slot = 1},
        {.data = &weights[1], .slot = 2, .shares = shares, .n_shares = 16}};
    check_ok(tnd_placement_new(list, 3, &placement, NULL));
    memset(shares, 0, sizeof(shares)); /* they were copied */
    CU_ASSERT_PTR_NULL(tnd_placement_use(placement, &weights[0]));
    CU_ASSERT_PTR_NULL(tnd_placement_use(placement, shares));
    CU_ASSERT_PTR_NULL(tnd_placement_use(NULL, &weights[1]));
    const struct tnd_expert_use *use = tnd_placement_use(placement, &weights[1]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(use);
    check_int(use->n, 16);
    CU_ASSERT_DOUBLE_EQUAL(use->sum, 1.64, 1e-6);
    use = tnd_placement_use(placement, &weights[2]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(use);
    CU_ASSERT_DOUBLE_EQUAL(use->sum, 1.5, 1e-6);
    tnd_placement_free(placement);
}

static void without_a_table_the_rule_serves(void)
{
    const struct tandem_plan_node node = planned(experts(64));
    check_int(node.reason, TANDEM_REASON_RULE);
    CU_ASSERT(strcmp(node.profile, "cpu-packed") == 0 || strcmp(node.profile, "cpu") == 0);
    check_int(node.stage[TANDEM_STAGE_INIT].task, TANDEM_TASK_QUANTIZE_X);
    check_int(node.n_threads, 2);
}

static void times_of_plain_products_price_them(void)
{
    tandem_table *table = tune_new();
    const int64_t shapes[2] = {4 * 256, 16 * 256};
    for (int i = 0; i < 2; i++) {
        const int64_t n = shapes[i];
        for (int64_t m = 1; m <= 128; m *= 2) {
            for (int threads = 1; threads <= 2; threads++) {
                struct tnd_curve_key key = tune_key(n, 512, TANDEM_TASK_QUANTIZE_X, true, threads);
                tune_add(table, &key, m, 1.0);
                key = tune_key(n, 512, TANDEM_TASK_MUL_MAT_Q, true, threads);
                tune_add(table, &key, m, (double)(n * m) / (100.0 * threads));
            }
        }
    }
    tnd_planner_set_table(planner, table);
    const struct tandem_plan_node one = planned(experts(1));
    const struct tandem_plan_node many = planned(experts(400));
    check_string(one.profile, "cpu");
    check_int(one.reason, TANDEM_REASON_TABLE);
    CU_ASSERT_DOUBLE_EQUAL(one.predicted_us[TANDEM_STAGE_COMPUTE], 4 * 256 / 200.0, 0.01);
    check_int(many.reason, TANDEM_REASON_TABLE);
    CU_ASSERT_DOUBLE_EQUAL(many.predicted_us[TANDEM_STAGE_COMPUTE], 16 * 256 * 100 / 200.0, 1.0);
    tnd_planner_set_table(planner, NULL);
    tandem_table_free(table);
}

static CU_TestInfo experts_tests[] = {
    {"the_expected_number_of_experts_in_use_follows_from_chance",
     the_expected_number_of_experts_in_use_follows_from_chance},
    {"one_token_reads_the_experts_that_it_uses_and_many_share_all",
     one_token_reads_the_experts_that_it_uses_and_many_share_all},
    {"known_use_takes_the_place_of_chance", known_use_takes_the_place_of_chance},
    {"a_placement_keeps_the_use_of_its_weights", a_placement_keeps_the_use_of_its_weights},
    {"without_a_table_the_rule_serves", without_a_table_the_rule_serves},
    {"times_of_plain_products_price_them", times_of_plain_products_price_them},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_tune_experts[] = {
    {"experts", NULL, NULL, set_up, tear_down, experts_tests},
    CU_SUITE_INFO_NULL,
};
