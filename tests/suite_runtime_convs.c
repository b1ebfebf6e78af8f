/* SPDX-License-Identifier: MIT
 * The chooser of a runtime: nets that are lowered with it take methods by its table, which is
 * measured on first use where TANDEM_TUNE asks for that. */
#include <stdlib.h>
#include <string.h>

#include "graph/net_public.h"
#include "runtime/tune_convs.h"
#include "table/conv_problem.h"
#include "table/records.h"
#include "tandem/nets.h"
#include "tandem/runtime.h"
#include "tests/support_tune.h"

enum { SIDE = 12 };

static tandem_runtime *open_runtime(const char *table_path)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = NULL;
    options.n_threads = 2;
    options.backends = "cpu";
    options.table_path = table_path;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

/* 3 x 3, 16 channels, `filters`: how its convolution is computed. */
static struct tnd_conv_choice choice_of(const tandem_runtime *runtime, int64_t filters)
{
    static float weights[64 * 16 * 9];
    const int64_t x_dims[] = {1, 16, SIDE, SIDE};
    const int64_t w_dims[] = {filters, 16, 3, 3};
    struct tandem_lower_options options = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_window window = TANDEM_WINDOW_INIT;
    struct tandem_error error = {.text = ""};
    tandem_net *net = NULL;
    tandem_lowered *lowered = NULL;
    check_ok(tandem_net_new(&net, &error));
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 4, x_dims, "x");
    const int w = tandem_net_constant(net, TANDEM_DTYPE_F32, 4, w_dims, weights);
    (void)tandem_net_output(net, tandem_net_conv(net, x, w, &window), "y");
    options.chooser = tandem_runtime_chooser(runtime);
    check_status(tandem_net_lower(net, &options, &lowered, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lowered);
    const struct tnd_conv_choice choice = *tnd_lowered_conv(tnd_lowered_of(lowered), 0);
    tandem_lowered_free(lowered);
    tandem_net_free(net);
    return choice;
}

static void a_net_takes_methods_by_the_table_of_the_runtime(void)
{
    tandem_runtime *runtime = open_runtime("");
    CU_ASSERT_PTR_NULL(tandem_runtime_chooser(NULL));
    const struct tnd_conv_choice by_rule = choice_of(runtime, 24);
    CU_ASSERT_FALSE(by_rule.is_measured);
    for (int fastest = 0; fastest < TND_CONV_METHODS; fastest++) {
        tandem_table *table = tune_new();
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            struct tnd_conv_time record;
            tnd_conv_key(&by_rule.question.shape, (enum tnd_conv_method)method, 2, &record);
            record.median_us = method == fastest ? 10 : 20;
            record.count = 9;
            check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
        }
        check_ok(tandem_runtime_set_table(runtime, table, NULL));
        const struct tnd_conv_choice choice = choice_of(runtime, 24);
        check_int(choice.method, fastest);
        CU_ASSERT_TRUE(choice.is_measured);
        tandem_table_free(table);
    }
    check_ok(tandem_runtime_set_threads(runtime, 1)); /* of which the table tells nothing */
    CU_ASSERT_FALSE(choice_of(runtime, 24).is_measured);
    tandem_runtime_close(runtime);
}

static void a_convolution_is_measured_by_each_method_that_it_has(void)
{
    static const char *const problems[] = {"conv:f32:w3x3:c16:f8:r5x6:p1x1:e",
                                           "conv:f32:w3x3:c16:f8:r5x6:p1x1:s2x1",
                                           "conv:f32:w3x3:c16:f16:r5x6:p1x1:g16:e"};
    tandem_runtime *runtime = open_runtime("");
    for (int i = 0; i < 3; i++) {
        struct tandem_error error = {.text = ""};
        struct tnd_conv_shape shape;
        struct tnd_conv_trial *trial = NULL;
        int threads;
        int n = 0;
        check_ok(tnd_conv_problem_parse(problems[i], &shape, &threads, &error));
        check_ok(tnd_conv_trial_open(runtime, &shape, TND_CONV_ON_CPU, &trial, &error));
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            double us = -1;
            if (tnd_conv_trial_has(trial, (enum tnd_conv_method)method)) {
                check_ok(tnd_conv_trial_run(trial, (enum tnd_conv_method)method, &us, &error));
                CU_ASSERT_TRUE(us >= 0);
                n++;
            }
        }
        check_int(n, 3 - i);
        tnd_conv_trial_close(trial);
        struct tnd_conv_choice choice;
        check_ok(tnd_conv_ask(NULL, &shape, &choice, &error));
        struct tnd_conv_shape twice[] = {choice.question.shape, shape, shape};
        check_int(tnd_conv_distinct(twice, 3),
                  i < 2 ? 1 : 0); /* it is the same, and has a choice */
    }
    tandem_runtime_close(runtime);
}

static tandem_runtime *open_with_device(uint8_t *out_slot)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = NULL;
    uint8_t slots[TND_MAX_SLOTS];
    options.n_threads = 2;
    options.backends = "cpu,sim";
    options.settings = "sim:memory=own";
    options.table_path = "";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    check_int(tnd_conv_devices(runtime, slots), 1);
    *out_slot = slots[0];
    return runtime;
}

static void convolutions_are_measured_on_a_device(void)
{
    uint8_t slot;
    struct tandem_error error = {.text = ""};
    struct tnd_conv_shape shape;
    int threads;
    tandem_runtime *runtime = open_with_device(&slot);
    tandem_table *table = tune_new();
    check_ok(tnd_conv_problem_parse("conv:f32:w3x3:c16:f8:r5x6:p1x1:e", &shape, &threads, &error));
    const struct tnd_conv_tuning tuning = {
        .shapes = &shape, .n = 1, .slot = slot, .budget_s = 0.05};
    check_status(tnd_tune_convs(runtime, &tuning, table, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_TRUE(table->n_convolutions >= 1);
    for (int i = 0; i < table->n_convolutions; i++) {
        check_string(table->convolutions[i].device, "sim");
        check_int(table->convolutions[i].threads, 1);
        CU_ASSERT_TRUE(table->convolutions[i].count >= 3);
        CU_ASSERT_STRING_NOT_EQUAL(table->convolutions[i].method, "winograd");
    }
    tandem_table_free(table);
    tandem_runtime_close(runtime);
}

/* What a plan does with the one convolution of a net. */
static int planned_slot(tandem_runtime *runtime, struct tnd_conv_choice *out_choice)
{
    static float weights[24 * 16 * 9];
    const int64_t x_dims[] = {1, 16, SIDE, SIDE};
    const int64_t w_dims[] = {24, 16, 3, 3};
    struct tandem_lower_options options = TANDEM_LOWER_OPTIONS_INIT;
    struct tandem_window window = TANDEM_WINDOW_INIT;
    tandem_net *net = NULL;
    tandem_lowered *lowered = NULL;
    tandem_plan *plan = NULL;
    int slot = -1;
    check_ok(tandem_net_new(&net, NULL));
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 4, x_dims, "x");
    const int w = tandem_net_constant(net, TANDEM_DTYPE_F32, 4, w_dims, weights);
    (void)tandem_net_output(net, tandem_net_conv(net, x, w, &window), "y");
    options.chooser = tandem_runtime_chooser(runtime);
    check_ok(tandem_net_lower(net, &options, &lowered, NULL));
    tandem_graph *graph = tandem_lowered_graph(lowered);
    *out_choice = *tnd_lowered_conv(tnd_lowered_of(lowered), 0);
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        if (graph->nodes[i]->op == TANDEM_OP_CONV) {
            slot = tandem_node_task_conf(plan, i, TANDEM_STAGE_COMPUTE).backend;
        }
    }
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    tandem_plan_free(plan);
    tandem_lowered_free(lowered);
    tandem_net_free(net);
    return slot;
}

static void a_convolution_is_placed_by_measured_times(void)
{
    uint8_t slot;
    struct tnd_conv_choice choice;
    tandem_runtime *runtime = open_with_device(&slot);
    const struct tnd_conv_shape shape = choice_of(runtime, 24).question.shape;
    for (int is_faster = 0; is_faster < 2; is_faster++) {
        tandem_table *table = tune_new();
        struct tnd_conv_time record;
        tune_add_link(table, "sim", 1, 1000);
        tnd_conv_key(&shape, TND_CONV_DIRECT, 2, &record);
        record.median_us = 1000;
        record.count = 9;
        check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
        tnd_conv_key(&shape, TND_CONV_DIRECT, 1, &record);
        strcpy(record.device, "sim");
        record.median_us = is_faster ? 100 : 900;
        record.count = 9;
        check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
        tnd_conv_key(&shape, TND_CONV_COLUMNS, 1, &record); /* what the rule would take */
        strcpy(record.device, "sim");
        record.median_us = 2000;
        record.count = 9;
        check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
        check_ok(tandem_runtime_set_table(runtime, table, NULL));
        const int placed = planned_slot(runtime, &choice);
        check_int(choice.question.for_device, is_faster);
        check_string(choice.question.device, is_faster ? "sim" : "");
        check_int(placed == slot, is_faster);
        tandem_table_free(table);
    }
    tandem_runtime_close(runtime);
}

static bool stop(void *user, int turn, int n_turns, double elapsed_s)
{
    (void)elapsed_s;
    check_int(n_turns, 4);
    return ++*(int *)user == 2 && turn == 1;
}

static void measuring_ends_where_it_is_told_to(void)
{
    struct tandem_error error = {.text = ""};
    struct tnd_conv_shape shapes[2];
    int n_told = 0;
    int threads;
    tandem_runtime *runtime = open_runtime("");
    tandem_table *table = tune_new();
    check_ok(tnd_conv_problem_parse("conv:f32:w1:c2:f3:r4", &shapes[0], &threads, &error));
    check_ok(tnd_conv_problem_parse("conv:f32:w2:c2:f3:r4", &shapes[1], &threads, &error));
    const struct tnd_conv_tuning tuning = {.shapes = shapes,
                                           .n = 2,
                                           .slot = TND_CONV_ON_CPU,
                                           .budget_s = 1e6,
                                           .progress = stop,
                                           .user = &n_told};
    struct tnd_conv_tuning brief = tuning;
    brief.budget_s = 0; /* the budget is over: each once, the first one alone */
    brief.progress = NULL;
    check_ok(tnd_tune_convs(runtime, &brief, table, &error));
    check_int(table->n_convolutions, 2);
    CU_ASSERT_TRUE(table->convolutions[0].count >= 3);
    check_status(tnd_tune_convs(runtime, &tuning, table, &error), TANDEM_E_CANCELLED, "1 of 4",
                 &error);
    check_int(n_told, 2);
    check_int(table->n_convolutions, 2);
    tandem_table_free(table);
    tandem_runtime_close(runtime);
}

static void the_first_net_is_measured_once_and_only_when_asked_for(void)
{
#ifdef TND_HAVE_CJSON
    const char *path = tnd_test_temp("first-net.json");
    setenv("TANDEM_TABLE", path, 1);
    setenv("TANDEM_TUNE", "on-first-use", 1);
    setenv("TANDEM_TUNE_BUDGET", "0.05", 1);
    tandem_runtime *runtime = open_runtime(NULL);
    struct tnd_conv_choice choice = choice_of(runtime, 24);
    CU_ASSERT_TRUE(choice.is_measured);
    check_int(choice.times[TND_CONV_DIRECT].n_near, 0);
    choice = choice_of(runtime, 48); /* later ones are not, but near */
    CU_ASSERT_TRUE(choice.times[TND_CONV_DIRECT].n_near > 0);
    tandem_runtime_close(runtime);
    unsetenv("TANDEM_TUNE");
    unsetenv("TANDEM_TUNE_BUDGET");
    runtime = open_runtime(NULL); /* the next process */
    choice = choice_of(runtime, 24);
    CU_ASSERT_TRUE(choice.is_measured);
    check_int(choice.times[TND_CONV_DIRECT].n_near, 0);
    tandem_runtime_close(runtime);
    unsetenv("TANDEM_TABLE");
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static CU_TestInfo tests[] = {
    {"a_net_takes_methods_by_the_table_of_the_runtime",
     a_net_takes_methods_by_the_table_of_the_runtime},
    {"a_convolution_is_measured_by_each_method_that_it_has",
     a_convolution_is_measured_by_each_method_that_it_has},
    {"convolutions_are_measured_on_a_device", convolutions_are_measured_on_a_device},
    {"a_convolution_is_placed_by_measured_times", a_convolution_is_placed_by_measured_times},
    {"measuring_ends_where_it_is_told_to", measuring_ends_where_it_is_told_to},
    {"the_first_net_is_measured_once_and_only_when_asked_for",
     the_first_net_is_measured_once_and_only_when_asked_for},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_convs[];
CU_SuiteInfo suites_runtime_convs[] = {
    {"convolutions", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
