/* SPDX-License-Identifier: MIT
 * Weights that are placed: a pretended device with memory of its own keeps those that it was given
 * and no others, whatever the planner would like best. */
#include <stdio.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "runtime/tnd_runtime.h"
#include "sched/plan.h"
#include "tandem/tandem.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/policy.h"

enum { WIDTH = 64, LAYERS = 4, TOKENS = 3, BYTES = WIDTH * WIDTH * 4 };

/* Of each device: the reserve, results of a prompt, a matrix in F32. */
#define FIXED (TND_FIT_RESERVE_BYTES + 4 * (4 * WIDTH * TND_FIT_PROMPT_TOKENS + WIDTH * WIDTH))

/* ---- the device ---- */

static struct tandem_backend_api api;
static tandem_runtime *runtime;

static int sim_slot(void)
{
    int slot = tandem_runtime_backend_count(runtime) - 1;
    check_string(tandem_runtime_backend_name(runtime, slot), "simown");
    return slot;
}

static struct tnd_sim_statistics statistics(void)
{
    struct tnd_runtime_parts parts;
    struct tnd_sim_statistics out;
    tnd_runtime_parts(runtime, &parts);
    tnd_sim_statistics(tnd_registry_backend(parts.registry, sim_slot()), &out);
    return out;
}

/* ---- a table by which the device is ten times as fast ---- */

static tandem_table *make_table(void)
{
    static const struct {
        const char *name;
        double us;
    } sides[] = {{"cpu", 1000}, {"simown", 100}};
    tandem_table *table = tune_new();
    for (int i = 0; i < 2; i++) {
        const enum tandem_task task = tune_add_profile(table, sides[i].name);
        tune_add_rate(table, sides[i].name, task, WIDTH, WIDTH, sides[i].us, 0.01 * sides[i].us);
    }
    tune_add_link(table, "simown", 1, 10000);
    return table;
}

/* ---- a model: y = W3 (W2 (W1 (W0 x))) ---- */

static tandem_context *context;
static tandem_tensor *weights[LAYERS], *result;
static tandem_graph *graph;
static struct tandem_place_weight list[LAYERS];
static char names[LAYERS][TANDEM_MAX_NAME];

static void make_model(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(8);
    const int64_t ne[] = {WIDTH, WIDTH};
    const int64_t x_ne[] = {WIDTH, TOKENS};
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, x_ne);
    tnd_test_fill(&rng, tandem_tensor_data(x), WIDTH * TOKENS);
    for (int l = 0; l < LAYERS; l++) {
        weights[l] = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
        tnd_test_fill(&rng, tandem_tensor_data(weights[l]), WIDTH * WIDTH);
        tandem_tensor_set_role(weights[l], TANDEM_ROLE_CONSTANT);
        x = tandem_mul_mat(context, weights[l], x);
        snprintf(names[l], sizeof(names[l]), "blk.%d.ffn_up.weight", l);
        list[l] = (struct tandem_place_weight){
            names[l], tandem_tensor_data(weights[l]), BYTES, TANDEM_TYPE_F32, WIDTH, WIDTH, 1};
    }
    result = x;
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, result);
    check_ok(tandem_graph_finish(graph, NULL));
}

static void open_device(const char *settings)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    api = tune_sim_api(0);
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_ok(tandem_runtime_add_backend(runtime, &api, settings, NULL));
    tandem_table *table = make_table();
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    make_model();
}

static void set_up(void)
{
    open_device(NULL);
}

static void tear_down(void)
{
    tandem_context_free(context);
    tandem_runtime_close(runtime);
}

static enum tandem_status place(int64_t memory, bool only_if_needed, struct tandem_error *error)
{
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    options.device_memory = &memory;
    options.n_device_memory = 1;
    options.only_if_needed = only_if_needed;
    return tandem_runtime_place(runtime, list, LAYERS, &options, error);
}

/* ---- tests ---- */

static void a_device_keeps_the_weights_that_are_placed_on_it(void)
{
    float want[WIDTH * TOKENS];
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tandem_error error = {0};
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    memcpy(want, tandem_tensor_data(result), sizeof(want));
    check_int(statistics().residents, LAYERS); /* nothing was placed */
    for (int l = 0; l < LAYERS; l++) {
        tandem_runtime_forget(runtime, weights[l]);
    }
    check_int(statistics().residents, 0);
    check_status(place(FIXED + 2 * BYTES + BYTES / 2, false, &error), TANDEM_OK, NULL, &error);
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_weights, LAYERS);
    check_int(info.n_placed, 2);
    check_int(info.placed_bytes, 2 * BYTES);
    CU_ASSERT_TRUE(info.generation_us > 2 * 1000 && info.generation_us < 2 * 1000 + 2 * 200);
    uint64_t uploads = statistics().weight_uploads;
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    check_nmse(tandem_tensor_data(result), want, WIDTH * TOKENS, 1e-12, "placed weights");
    check_int(statistics().residents, 2);
    check_int(statistics().weight_uploads - uploads, 2);
    int n_there = 0;
    for (int l = 0; l < LAYERS; l++) {
        const char *where = tandem_runtime_placed_on(runtime, list[l].data);
        CU_ASSERT_TRUE(where != NULL);
        n_there += where != NULL && strcmp(where, "simown") == 0;
    }
    check_int(n_there, 2);
    /* Nothing is placed again: all of them may be there. */
    check_ok(tandem_runtime_place(runtime, NULL, 0, NULL, NULL));
    CU_ASSERT_TRUE(tandem_runtime_placed_on(runtime, list[0].data) == NULL);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    check_int(statistics().residents, LAYERS);
}

static void other_weights_may_be_anywhere(void)
{
    struct tandem_error error = {0};
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    const int64_t memory = FIXED; /* no room for any */
    options.device_memory = &memory;
    options.n_device_memory = 1;
    check_status(tandem_runtime_place(runtime, list, LAYERS - 1, &options, &error), TANDEM_OK, NULL,
                 &error);
    check_string(tandem_runtime_placed_on(runtime, list[0].data), "cpu");
    CU_ASSERT_TRUE(tandem_runtime_placed_on(runtime, list[LAYERS - 1].data) == NULL);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    check_int(statistics().residents, 1);
}

/* y = W0 x + b with W0 on the device and b, which nothing pays for, in host memory: the sum is
 * computed there, for the device would have to keep b. */
static void other_operations_leave_weights_where_they_are(void)
{
    const int64_t ne[] = {WIDTH, 1};
    struct tandem_place_weight two[2] = {list[0]};
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    const int64_t memory = FIXED + BYTES;
    tandem_tensor *b = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
    memset(tandem_tensor_data(b), 0, WIDTH * sizeof(float));
    tandem_tensor_set_role(b, TANDEM_ROLE_CONSTANT);
    two[1] = (struct tandem_place_weight){
        "b", tandem_tensor_data(b), WIDTH * sizeof(float), TANDEM_TYPE_F32, WIDTH, 1, 1};
    tandem_tensor *y = tandem_mul_mat(context, weights[0], weights[1]);
    tandem_graph *sum = tandem_graph_new(context);
    tandem_graph_add(sum, tandem_add(context, y, b));
    check_ok(tandem_graph_finish(sum, NULL));
    options.device_memory = &memory;
    options.n_device_memory = 1;
    check_ok(tandem_runtime_place(runtime, two, 2, &options, NULL));
    check_string(tandem_runtime_placed_on(runtime, two[0].data), "simown");
    check_string(tandem_runtime_placed_on(runtime, two[1].data), "cpu");
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_plan(runtime, sum, &plan, NULL));
    for (int i = 0; i < tandem_graph_node_count(sum); i++) {
        const struct tandem_task_config *compute =
            &tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE];
        bool is_product = strcmp(tandem_tensor_op_name(tandem_graph_node(sum, i)), "mul_mat") == 0;
        check_int(compute->backend, is_product ? sim_slot() : TANDEM_BACKEND_CPU);
    }
    tandem_plan_free(plan);
}

static enum tandem_status nothing(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)user;
    (void)node;
    (void)begin;
    (void)end;
    return TANDEM_OK;
}

/* A rank's messages must not be sent twice: no run with them is given up for another plan. */
static void graphs_that_run_once_are_not_compared(void)
{
    const int64_t ne[] = {WIDTH, TOKENS};
    tandem_tensor *src[] = {result};
    tandem_graph *with = tandem_graph_new(context);
    tandem_graph_add(with, tandem_custom(context, 2, ne, src, 1, 1, nothing, NULL));
    tandem_graph_set_runs_once(with);
    check_ok(tandem_graph_finish(with, NULL));
    for (int i = 0; i < 2; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, i == 0 ? graph : with, &plan, NULL));
        CU_ASSERT_EQUAL(plan->observed_key != 0, i == 0);
        tandem_plan_free(plan);
    }
}

static void a_device_says_how_much_of_it_is_for_weights(void)
{
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tandem_error error = {0};
    char settings[32];
    tear_down();
    snprintf(settings, sizeof(settings), "budget=%d", 3 * BYTES);
    open_device(settings);
    check_status(place(0, true, &error), TANDEM_OK, NULL, &error);
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_placed, 3);
    check_status(place(FIXED + 2 * BYTES, true, &error), TANDEM_OK, NULL, &error);
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_placed, 2);
}

static void where_everything_fits_nothing_is_placed_unless_wanted(void)
{
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tandem_error error = {0};
    check_status(place(INT64_C(1) << 40, true, &error), TANDEM_OK, NULL, &error);
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_weights, 0);
    check_status(place(INT64_C(1) << 40, false, &error), TANDEM_OK, NULL, &error);
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_placed, LAYERS);
    check_status(place(0, true, &error), TANDEM_OK, NULL, &error); /* memory: nobody knows */
    check_ok(tandem_runtime_placement(runtime, &info));
    check_int(info.n_weights, 0);
}

static void placing_says_what_is_wrong(void)
{
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tandem_error error = {0};
    check_ok(place(FIXED + BYTES, false, &error));
    check_status(place(0, false, &error), TANDEM_E_ARGUMENT, "the memory of simown", &error);
    check_status(tandem_runtime_place(runtime, NULL, 1, NULL, &error), TANDEM_E_ARGUMENT, "place",
                 &error);
    check_status(tandem_runtime_place(runtime, list, -1, NULL, &error), TANDEM_E_ARGUMENT,
                 "-1 weights", &error);
    options.objective = (enum tandem_place_objective)3;
    check_status(tandem_runtime_place(runtime, list, 1, &options, &error), TANDEM_E_ARGUMENT,
                 "objective 3", &error);
    list[1].data = NULL;
    check_status(place(FIXED, false, &error), TANDEM_E_ARGUMENT, "weight 1", &error);
    list[1].data = tandem_tensor_data(weights[1]);
    list[1].n = 0;
    check_status(place(FIXED, false, &error), TANDEM_E_ARGUMENT, "blk.1.ffn_up", &error);
    list[1].n = WIDTH;
    list[1].bytes = SIZE_MAX;
    check_status(place(FIXED, false, &error), TANDEM_E_ARGUMENT, "weight 1", &error);
    list[1].bytes = BYTES;
    check_ok(tandem_runtime_set_table(runtime, NULL, NULL));
    check_status(place(FIXED, false, &error), TANDEM_E_NOT_FOUND, "no timing table", &error);
    check_ok(tandem_runtime_placement(runtime, &info)); /* what was placed before counts */
    check_int(info.n_placed, 1);
}

static CU_TestInfo tests[] = {
    {"graphs that run once are not compared", graphs_that_run_once_are_not_compared},
    {"a device keeps the weights that are placed on it",
     a_device_keeps_the_weights_that_are_placed_on_it},
    {"other weights may be anywhere", other_weights_may_be_anywhere},
    {"other operations leave weights where they are",
     other_operations_leave_weights_where_they_are},
    {"a device says how much of it is for weights", a_device_says_how_much_of_it_is_for_weights},
    {"where everything fits nothing is placed unless wanted",
     where_everything_fits_nothing_is_placed_unless_wanted},
    {"placing says what is wrong", placing_says_what_is_wrong},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_place[];
CU_SuiteInfo suites_runtime_place[] = {
    {"placing weights", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
