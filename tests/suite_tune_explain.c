/* SPDX-License-Identifier: MIT
 * Explanations: what they say is what the planner does, and the numbers of the published MacBook
 * table, worked out by hand. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tandem/graph.h"
#include "tandem/ops.h"
#include "tests/support_tune.h"
#include "tune/explain.h"
#include "tune/planner.h"
#include "tune/profiles.h"

static struct tnd_explanation explain_of_table(const tandem_table *table, int64_t n, int64_t k,
                                               int64_t m, int n_threads)
{
    struct tnd_explain_options options;
    struct tnd_explanation explanation;
    memset(&options, 0, sizeof(options));
    memset(&explanation, 0, sizeof(explanation));
    options.table = table;
    options.n_threads = n_threads;
    options.problem =
        (struct tnd_problem){.op = "mul_mat", .type = TANDEM_TYPE_Q4_0, .n = n, .k = k, .m = m};
    check_ok(tnd_explain(&options, &explanation, NULL));
    return explanation;
}

static void check_text(const struct tnd_explanation *explanation, const char *wanted)
{
    struct tnd_text text = TND_TEXT_INIT;
    tnd_explain_text(explanation, &text);
    check_string(tnd_text_string(&text), wanted);
    tnd_text_fini(&text);
}

/* cpu at M = 16: 22 + 14387; Accelerate: 12468 + 7173. 19641 / 14409 = 1.3631. Between 16 and 24
 * the difference goes from 5232 to -1026, so it is 0 at 16 + 8 * 5232 / 6258 = 22.69. Each time has
 * the error of one sample, 4.12 %, and between two of them 2 % and half of the bends more: at 18
 * that is less than the difference, at 19 more; at 24 1493 are more than 1026. Factors: 14409 f =
 * 12468 f + 7173 gives 3.70; for Accelerate 14409 = 12468 + 7173 f gives 1 / 3.70. */
static void the_published_table_is_explained(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation explanation = explain_of_table(table, 4096, 4096, 16, 1);
    check_text(&explanation,
               "mul_mat:q4_0:n4096:k4096:m16, at most 1 thread (microseconds)\n"
               "    profile              threads     total      +-      init   compute\n"
               "  * cpu                        1   14409.0   594.1      22.0   14387.0\n"
               "    cpu+accelerate             1   19641.0   809.8   12468.0    7173.0\n"
               "  wins: cpu on 1 thread, 36.3 % ahead of cpu+accelerate (a quarter of the errors "
               "counted)\n"
               "  from M = 23 on: cpu+accelerate instead of cpu; the error bars overlap from M = "
               "19 to 25\n"
               "  if cpu were 3.70 times as slow: cpu+accelerate\n"
               "  if accelerate were 3.70 times as fast: cpu+accelerate\n");
    check_int(explanation.thin, 0);
    tnd_explanation_fini(&explanation);
    tandem_table_free(table);
}

/* 4 threads: version 1 divides the parallel stages, 14387 / 4 and 12468 / 4. */
static void threads_divide_what_version_1_calls_parallel(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation explanation = explain_of_table(table, 4096, 4096, 16, 4);
    check_int(explanation.n_predictions, 6);
    check_int(explanation.choice.best.threads, 4);
    CU_ASSERT_DOUBLE_EQUAL(explanation.choice.best.total.us, 22 + 14387 / 4.0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(explanation.choice.second.total.us, 12468 / 4.0 + 7173, 0.01);
    for (int i = 1; i < explanation.n_predictions; i++) {
        CU_ASSERT_TRUE(explanation.predictions[i - 1].cautious_us <=
                       explanation.predictions[i].cautious_us);
    }
    tnd_explanation_fini(&explanation);
    tandem_table_free(table);
}

static void the_named_factor_is_where_the_winner_changes(void)
{
    static const double factors[] = {0.275, 0.265};
    static const char *const winners[] = {"cpu", "cpu+accelerate"};
    for (int i = 0; i < 2; i++) {
        tandem_table *table = tune_parse(tune_example);
        CU_ASSERT_TRUE(tnd_table_scale(table, "accelerate", factors[i]));
        CU_ASSERT_FALSE(tnd_table_scale(table, "opencl", 2));
        struct tnd_explanation explanation = explain_of_table(table, 4096, 4096, 16, 1);
        check_string(tnd_explain_profile(&explanation, &explanation.choice.best), winners[i]);
        tnd_explanation_fini(&explanation);
        tandem_table_free(table);
    }
}

static const char *winner_at(const tandem_table *table, int64_t m)
{
    static char name[32];
    struct tnd_explanation explanation = explain_of_table(table, 11008, 4096, m, 1);
    strcpy(name, tnd_explain_profile(&explanation, &explanation.choice.best));
    tnd_explanation_fini(&explanation);
    return name;
}

static void turns_are_where_the_winner_changes(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation before = explain_of_table(table, 11008, 4096, 3, 1);
    struct tnd_explanation behind = explain_of_table(table, 11008, 4096, 90, 1);
    CU_ASSERT_TRUE(before.above.found && !before.below.found);
    CU_ASSERT_TRUE(!behind.above.found && behind.below.found);
    check_int(before.above.m, behind.below.m);
    check_string(before.above.from, "cpu");
    check_string(behind.below.to, "cpu+accelerate");
    check_string(winner_at(table, before.above.m - 1), "cpu");
    check_string(winner_at(table, before.above.m), "cpu+accelerate");
    CU_ASSERT_TRUE(before.above.low <= before.above.m && before.above.m <= before.above.high);
    tnd_explanation_fini(&before);
    tnd_explanation_fini(&behind);
    tandem_table_free(table);
}

static void thin_data_names_the_command_that_helps(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation none = explain_of_table(NULL, 512, 256, 32, 2);
    check_int(none.thin, TND_THIN_NO_TABLE);
    check_string(none.command, "mulmat-tune bench --model 512x256 --type q4_0 --threads 1,2");
    struct tnd_explanation uncovered = explain_of_table(table, 64, 64, 32, 1);
    check_int(uncovered.thin, TND_THIN_NO_CELL);
    struct tnd_explanation shape = explain_of_table(table, 5120, 5120, 8, 1);
    CU_ASSERT_TRUE((shape.thin & TND_THIN_SHAPE) != 0);
    check_string(shape.command, "mulmat-tune bench --model 5120x5120 --type q4_0 --threads 1");
    struct tnd_explanation lead = explain_of_table(table, 4096, 4096, 23, 1);
    check_int(lead.thin, TND_THIN_LEAD);
    check_string(lead.command,
                 "mulmat-tune bench --model 4096x4096 --type q4_0 -m 19,23,25 --threads 1");
    struct tnd_explanation beyond = explain_of_table(table, 4096, 4096, 100, 1);
    CU_ASSERT_TRUE((beyond.thin & TND_THIN_BEYOND) != 0);
    struct tnd_explanation good = explain_of_table(table, 4096, 4096, 8, 1);
    check_int(good.thin, 0);
    check_string(good.command, "");
    struct tnd_explanation *all[] = {&none, &uncovered, &shape, &lead, &beyond, &good};
    for (int i = 0; i < 6; i++) {
        tnd_explanation_fini(all[i]);
    }
    tandem_table_free(table);
}

static void check_both(const struct tnd_explanation *explanation, const char *text,
                       const char *json)
{
    struct tnd_text out = TND_TEXT_INIT;
    tnd_explain_text(explanation, &out);
    check_contains(tnd_text_string(&out), text);
    tnd_text_fini(&out);
    out = (struct tnd_text)TND_TEXT_INIT;
    tnd_explain_json(explanation, "", &out);
    check_contains(tnd_text_string(&out), json);
    tnd_text_fini(&out);
}

/* The example was measured at M = 8, 16 and 24. */
static void too_far_from_what_was_measured_the_rule_serves(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation near = explain_of_table(table, 4096, 4096, 96, 1);
    CU_ASSERT_TRUE(near.choice.best.candidate >= 0);
    check_int(near.thin & TND_THIN_BEYOND, TND_THIN_BEYOND);
    const int64_t far[] = {1, 97};
    for (int i = 0; i < 2; i++) {
        struct tnd_explanation e = explain_of_table(table, 4096, 4096, far[i], 1);
        CU_ASSERT_TRUE(e.choice.best.candidate < 0 && e.n_predictions > 0);
        check_int(e.thin, TND_THIN_BEYOND);
        check_both(&e, "more than four times; the rule serves", "\"thin\": [\"beyond\"]");
        check_contains(e.command, "mulmat-tune bench --model 4096x4096 --type q4_0 -m ");
        tnd_explanation_fini(&e);
    }
    tnd_explanation_fini(&near);
    tandem_table_free(table);
}

static void threads_that_were_never_measured_get_a_range(void)
{
    tandem_table *table = tune_new();
    struct tnd_table_profile cpu;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_Q4_0, &cpu));
    check_ok(tnd_table_add_profile(table, &cpu));
    for (int threads = 1; threads <= 2; threads++) {
        struct tnd_curve_key compute = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, threads);
        struct tnd_curve_key init = tune_key(64, 32, TANDEM_TASK_QUANTIZE_X, true, threads);
        tune_add(table, &compute, 8, 10000.0 / threads / (threads == 2 ? 1.02 : 1));
        tune_add(table, &init, 8, 10);
    }
    struct tnd_explanation measured = explain_of_table(table, 64, 32, 8, 2);
    check_int(measured.scaling.threads, 0);
    struct tnd_explanation eight = explain_of_table(table, 64, 32, 8, 8);
    check_int(eight.scaling.threads, 8);
    CU_ASSERT_TRUE(eight.scaling.low > 4 && eight.scaling.high < 8);
    check_both(&eight, "  8 threads: 4.", "\"scaling\": {\"threads\": 8, \"low\": 4.");
    tnd_explanation_fini(&measured);
    tnd_explanation_fini(&eight);
    tandem_table_free(table);
}

static void an_explanation_is_one_json_object(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_explanation explanation = explain_of_table(table, 4096, 4096, 23, 1);
    struct tnd_text text = TND_TEXT_INIT;
    tnd_explain_json(&explanation, "", &text);
    const char *json = tnd_text_string(&text);
    check_contains(json, "{\"problem\": \"mul_mat:q4_0:n4096:k4096:m23\", \"max_threads\": 1,");
    check_contains(json, "\"winner\": {\"profile\": \"cpu+accelerate\", \"threads\": 1, ");
    check_contains(json, "\"below\": {\"m\": 23, \"low\": 19, \"high\": 25, \"from\": \"cpu\", ");
    check_contains(json, "\"above\": null, \"m_limit\": 96,");
    check_contains(json, "\"thin\": [\"lead\"]");
    int depth = 0;
    for (const char *at = json; *at != '\0'; at++) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        CU_ASSERT_TRUE(depth > 0 || at[1] == '\0');
    }
    check_int(depth, 0);
    tnd_text_fini(&text);
    tnd_explanation_fini(&explanation);
    tandem_table_free(table);
}

/* Random costs for every stage of every profile of this machine. */
static tandem_table *random_table(struct tnd_test_rng *rng, const struct tnd_registry *registry)
{
    tandem_table *table = tune_new();
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n_candidates = tnd_candidates_here(registry, table, NULL, TANDEM_TYPE_Q4_0, 0, candidates);
    for (int i = 0; i < n_candidates * TANDEM_STAGES; i++) {
        const struct tnd_table_stage *stage = &candidates[i / TANDEM_STAGES].profile.stage[i % 3];
        for (int threads = 1; threads <= 4 && stage->backend[0] != '\0'; threads *= 2) {
            struct tnd_curve_key key =
                tune_key(512, 256, (enum tandem_task)stage->task, stage->parallel, threads);
            strcpy(key.backend, stage->backend);
            key.stage = (uint8_t)(i % TANDEM_STAGES);
            key.own_threads = stage->own_threads;
            key.threads = stage->parallel || stage->own_threads ? threads : 1;
            for (int64_t m = 1; m <= 64; m *= 4) {
                tune_add(table, &key, m, (double)tnd_test_rng_int(rng, 1, 100));
            }
        }
    }
    return table;
}

static void what_is_explained_is_what_is_planned(void)
{
    struct tnd_registry_options registry_options;
    struct tnd_registry *registry = NULL;
    struct tnd_planner *planner = NULL;
    tandem_context *context = NULL;
    memset(&registry_options, 0, sizeof(registry_options));
    registry_options.n_threads_max = 4;
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){256, 512});
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int i = 0; i < 60; i++) {
        int64_t m = tnd_test_rng_int(&rng, 1, 100);
        int n_threads = (int)tnd_test_rng_int(&rng, 1, 6);
        tandem_table *table = random_table(&rng, registry);
        const int64_t ne[] = {256, m};
        tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
        tandem_graph *graph = tandem_graph_new(context);
        tandem_plan *plan = NULL;
        tandem_graph_add(graph, tandem_mul_mat(context, w, x));
        check_ok(tandem_graph_finish(graph, NULL));
        tnd_planner_set_table(planner, table);
        tnd_planner_force(planner, -1); /* no incumbents */
        check_ok(tnd_planner_plan(planner, graph, n_threads, &plan, NULL));
        const struct tandem_plan_node *node = tandem_plan_node(plan, 0);

        struct tnd_explain_options explain = {.table = table,
                                              .registry = registry,
                                              .node = tandem_graph_node(graph, 0),
                                              .n_threads = n_threads};
        struct tnd_explanation e;
        tnd_problem_of_node(explain.node, &explain.problem);
        check_ok(tnd_explain(&explain, &e, NULL));
        check_string(tnd_explain_profile(&e, &e.choice.best), node->profile);
        check_int(e.choice.best.threads, node->n_threads);
        CU_ASSERT_EQUAL((float)e.choice.second.total.us, node->runner_up_us);
        for (int s = 0; s < TANDEM_STAGES; s++) {
            CU_ASSERT_EQUAL((float)e.choice.best.stage[s].us, node->predicted_us[s]);
        }
        CU_ASSERT_EQUAL(e.predictions[0].cautious_us, e.choice.best.cautious_us);
        tnd_explanation_fini(&e);
        tandem_plan_free(plan);
        tnd_planner_set_table(planner, NULL);
        tandem_table_free(table);
    }
    tandem_context_free(context);
    tnd_planner_free(planner);
    tnd_registry_close(registry);
}

/* 256 rows of 16 blocks of 18 bytes: 72 KiB. */
static void a_second_copy_of_weights_is_told_with_its_size(void)
{
    tandem_table *table = tune_new();
    tune_add_cost(table, "cpu", 50, 1);
    struct tnd_text text = TND_TEXT_INIT;
    struct tnd_explanation plain = explain_of_table(table, TUNE_DEVICE_N, TUNE_DEVICE_K, 4, 1);
    tnd_explain_text(&plain, &text);
    CU_ASSERT_PTR_NULL(strstr(tnd_text_string(&text), "memory"));
    tune_add_cost(table, "cpu-packed", 20, 1);
    struct tnd_explanation packed = explain_of_table(table, TUNE_DEVICE_N, TUNE_DEVICE_K, 4, 1);
    tnd_explain_text(&packed, &text);
    check_contains(tnd_text_string(&text),
                   "  memory: cpu-packed keeps the weights in a layout of its own, about 0.1 "
                   "MiB\n");
    tnd_text_fini(&text);
    tnd_explanation_fini(&plain);
    tnd_explanation_fini(&packed);
    tandem_table_free(table);
}

static void running_out_of_memory_is_told_and_leaks_nothing(void)
{
    tandem_table *table = tune_parse(tune_example);
    long live = tnd_alloc_live();
    struct tnd_explain_options options = {.table = table, .n_threads = 2};
    struct tnd_explanation explanation;
    struct tandem_error error = {0};
    options.problem = (struct tnd_problem){
        .op = "mul_mat", .type = TANDEM_TYPE_Q4_0, .n = 4096, .k = 4096, .m = 8};
    tnd_alloc_fail_after(1);
    check_status(tnd_explain(&options, &explanation, &error), TANDEM_E_MEMORY, "explain", &error);
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
    check_ok(tnd_explain(&options, &explanation, &error));
    tnd_explanation_fini(&explanation);
    check_int(tnd_alloc_live(), live);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"the_published_table_is_explained", the_published_table_is_explained},
    {"threads_divide_what_version_1_calls_parallel", threads_divide_what_version_1_calls_parallel},
    {"the_named_factor_is_where_the_winner_changes", the_named_factor_is_where_the_winner_changes},
    {"turns_are_where_the_winner_changes", turns_are_where_the_winner_changes},
    {"thin_data_names_the_command_that_helps", thin_data_names_the_command_that_helps},
    {"too_far_from_what_was_measured_the_rule_serves",
     too_far_from_what_was_measured_the_rule_serves},
    {"threads_that_were_never_measured_get_a_range", threads_that_were_never_measured_get_a_range},
    {"an_explanation_is_one_json_object", an_explanation_is_one_json_object},
    {"what_is_explained_is_what_is_planned", what_is_explained_is_what_is_planned},
    {"a_second_copy_of_weights_is_told_with_its_size",
     a_second_copy_of_weights_is_told_with_its_size},
    {"running_out_of_memory_is_told_and_leaks_nothing",
     running_out_of_memory_is_told_and_leaks_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_explain[];
CU_SuiteInfo suites_tune_explain[] = {
    {"explain", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
