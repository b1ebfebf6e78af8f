/* SPDX-License-Identifier: MIT
 * Runtimes with a device that is slower than its table says, or stalls, in virtual time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/sim/sim.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/runtime_internal.h"
#include "runtime/winners.h"
#include "sched/plan.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/planner_internal.h"
#include "tune/policy.h"
#include "tune/profiles.h"

/* ---- a runtime with a device that lies ---- */

enum { N = 256, LAYERS = 3, M = 8, USES = 2000 };

static bool device_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    static const struct tandem_backend_profile profiles[] = {
        {.name = "simown",
         .what = "on the pretended device",
         .compute = {.task = TANDEM_TASK_NODE, .wait = true},
         .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
        {.name = "simown+stream",
         .what = "the same, with weights that travel",
         .compute = {.task = TANDEM_TASK_NODE_STREAMED, .wait = true},
         .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
    };
    (void)type;
    if (i < 0 || i >= 2) {
        return false;
    }
    *out = profiles[i];
    return true;
}

static tandem_context *context;
static tandem_runtime *runtime;
static struct tnd_clock_virtual clock_;
static tandem_tensor *y;
static tandem_graph *graph_of_layers;
static char log_text[1024];
static int n_dropped, n_late;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    n_late += strstr(text, "takes much longer than it did") != NULL;
    if (strstr(text, "serves from now on") != NULL) {
        snprintf(log_text, sizeof(log_text), "%s", text);
        n_dropped++;
    }
}

/* The rest of the model. */
static enum tandem_status take_a_millisecond(void *user, const tandem_tensor *node, int64_t begin,
                                             int64_t end)
{
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    tnd_clock_virtual_advance(user, 1000000);
    return TANDEM_OK;
}

static void add_cost(tandem_table *table, const char *profile, double us)
{
    struct tnd_table_profile described;
    int i = tnd_profile_find(runtime->registry, profile);
    CU_ASSERT_TRUE_FATAL(i >= 0);
    CU_ASSERT_TRUE_FATAL(tnd_profile_describe(runtime->registry, i, TANDEM_TYPE_Q4_0, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        for (int64_t m = 1; m <= 64 && stage->backend[0] != '\0'; m *= 2) {
            struct tnd_curve_key key;
            struct tnd_sample sample = {.m = m, .median_us = us, .count = 9, .when = 1};
            tnd_stage_key(stage, s, TANDEM_TYPE_Q4_0, N, N, 1, &key);
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

/* Products in a row, and what takes a millisecond; beside them one of `experts`. */
static tandem_graph *build_graph_of(int64_t experts)
{
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){N, M});
    float *row = malloc(N * sizeof(float));
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    tnd_test_fill(&rng, tandem_tensor_data(x), (int64_t)N * M);
    for (int i = 0; i < LAYERS; i++) {
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){N, N});
        for (int r = 0; r < N; r++) {
            tnd_test_fill(&rng, row, N);
            check_ok(tandem_quantize(TANDEM_TYPE_Q4_0, row,
                                     (char *)tandem_tensor_data(w) + (size_t)r * w->nb[1], N));
        }
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        x = tandem_mul_mat(context, w, x);
    }
    free(row);
    tandem_graph *graph = tandem_graph_new(context);
    if (experts > 0) {
        tandem_tensor *w =
            tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 3, (const int64_t[]){N, N / 2, experts});
        tandem_tensor *rows =
            tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (const int64_t[]){N, 1, M});
        tandem_tensor *ids =
            tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (const int64_t[]){1, M});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_graph_add(graph, tandem_mul_mat_id(context, w, rows, ids));
    }
    y = tandem_custom(context, 2, (const int64_t[]){N, M}, &x, 1, 1, take_a_millisecond, &clock_);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

static struct tandem_backend_api api;

/* What the table says of each product. */
static void open_with(const char *device, double cpu_us, double device_us)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_table *table = tune_new();
    n_dropped = 0;
    check_ok(tandem_context_new(NULL, &context, NULL));
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    options.log = remember_line;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    api = tnd_sim_own_api;
    api.profile = device_profile;
    check_ok(tandem_runtime_add_backend(runtime, &api, device, NULL));
    int slot = tnd_registry_find(runtime->registry, "simown", NULL);
    CU_ASSERT_TRUE_FATAL(slot > 0);
    tnd_clock_virtual_init(&clock_, 0);
    tnd_sim_set_clock(tnd_registry_backend(runtime->registry, slot), &clock_.clock);
    runtime->clock = &clock_.clock;
    tnd_exec_set_clock(runtime->exec, &clock_.clock);
    add_cost(table, "cpu", cpu_us);
    add_cost(table, "simown", device_us);
    tune_add_link(table, "simown", 1, 1e6);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    graph_of_layers = build_graph_of(0);
}

/* The device has no room, and its weights take 400 us in place of 1 us. */
static void set_up_runtime(void)
{
    open_with("budget=1,upload_gbps=0.0922,gflops=1000", 100, 2);
}

/* Both are told to be equally fast; the device is not. */
static void set_up_splits(void)
{
    open_with("gflops=0.02", 2000, 2000);
}

/* 52 ms a product in place of 20 us. */
static void set_up_liar(void)
{
    open_with("gflops=0.02", 2000, 20);
}

static void tear_down_runtime(void)
{
    tandem_runtime_close(runtime);
    tandem_context_free(context);
}

static bool streams(const tandem_plan *plan)
{
    return strcmp(tandem_plan_node(plan, 0)->profile, "simown+stream") == 0;
}

/* One use; whether it streamed. Turns go by what was computed: planning alone changes none. */
static bool use(float *expected)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    tandem_plan_free(plan);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    bool is_streamed = streams(plan);
    check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
    if (expected[0] == 0) { /* the first one, on the CPU: nothing was refused yet */
        memcpy(expected, tandem_tensor_data(y), (size_t)N * M * sizeof(float));
    }
    check_nmse(tandem_tensor_data(y), expected, (int64_t)N * M, 1e-3, "by either plan");
    tandem_plan_free(plan);
    return is_streamed;
}

static int collect(void *user, const char *bytes, size_t n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void a_runtime_drops_weights_in_flight_that_are_slower_than_predicted(void)
{
    static float expected[N * M];
    struct tnd_text text = TND_TEXT_INIT;
    int n_streamed = 0;
    int last = 0;
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    uint64_t begin_ns = clock_.clock.now_ns(&clock_.clock);
    for (int i = 1; i <= USES; i++) {
        bool is_streamed = use(expected);
        n_streamed += is_streamed;
        last = is_streamed && i <= TND_OBSERVER_REST ? i : last;
    }
    uint64_t took_ns = clock_.clock.now_ns(&clock_.clock) - begin_ns;
    check_int(n_dropped, 1);
    check_contains(log_text, "the first serves from now on");
    CU_ASSERT_TRUE(n_streamed >= 2 && last <= TND_OBSERVER_USES);
    printf("\n    %d of %d uses streamed, %.3f of the CPU alone", n_streamed, USES,
           (double)took_ns / (1e6 * USES));
    CU_ASSERT_TRUE((double)took_ns < 1.05 * 1e6 * USES);

    check_ok(tandem_runtime_explain(runtime, graph_of_layers, NULL, collect, &text));
    check_contains(tnd_text_string(&text), " measured, serves\n");
    tnd_text_fini(&text);
}

/* Devices are observed, too: their steps one by one, in few of many runs. */
static void the_table_is_told_of_a_device_that_lies(void)
{
#ifdef TND_HAVE_CJSON
    static float expected[N * M];
    struct tandem_drift_info drift[4];
    tandem_table *saved = NULL;
    tandem_plan *plan = NULL;
    const char *path = tnd_test_temp("observer.json");
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    CU_ASSERT_TRUE(streams(plan));
    bool is_told = false;
    for (int i = 0; i < 5000 && !is_told; i++) { /* transfers may be told of first */
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        const int n = (int)tandem_runtime_drift(runtime, drift, 4);
        for (int k = 0; k < n && k < 4; k++) {
            is_told = is_told || (strstr(drift[k].what, "simown") != NULL &&
                                  drift[k].measured_us > 100 * drift[k].predicted_us);
        }
    }
    CU_ASSERT_TRUE(is_told);
    const struct tnd_observer *observer = &runtime->observer;
    CU_ASSERT_TRUE((double)observer->spent_ns <= 2e6 + TND_DRIFT_COST * (double)clock_.now_ns);
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_ok(tandem_table_load(path, &saved, NULL));
    int64_t n_stale = tune_count_stale(saved);
    for (int i = 0; i < saved->n_transfers; i++) {
        n_stale += tnd_sample_is_stale(&saved->transfers[i].curve.samples[0]);
    }
    CU_ASSERT_TRUE(n_stale >= 1);
    tandem_table_free(saved);
    tandem_plan_free(plan);
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static void a_plan_that_a_program_keeps_or_changes_is_run_as_it_is(void)
{
    static float expected[N * M];
    tandem_plan *plan = NULL;
    tandem_plan *copy = NULL;
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    CU_ASSERT_TRUE(streams(plan) && plan->observed_key != 0);
    check_ok(tandem_plan_copy(plan, &copy, NULL));
    CU_ASSERT_TRUE(copy->observed_key == 0);
    for (int i = 0; i < 20; i++) {
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        CU_ASSERT_TRUE(streams(plan));
    }
    check_int(n_dropped, 0); /* nothing to compare with */
    check_ok(tandem_plan_set_node(plan, 0, tandem_plan_node(plan, 0)));
    CU_ASSERT_TRUE(plan->observed_key == 0);
    tandem_plan_free(copy);
    tandem_plan_free(plan);
}

static void a_runtime_drops_split_products_that_are_slower_than_predicted(void)
{
    static float expected[N * M];
    bool is_split = false;
    int last = 0;
    memset(expected, 0, sizeof(expected));
    for (int i = 1; i <= 2 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
        last = tandem_plan_part_count(plan) > 0 ? i : last;
        is_split = is_split || last == i;
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        memcpy(expected, tandem_tensor_data(y), i == 1 ? sizeof(expected) : 0);
        check_nmse(tandem_tensor_data(y), expected, (int64_t)N * M, 1e-3, "split or not");
        tandem_plan_free(plan);
    }
    CU_ASSERT_TRUE(is_split && last <= TND_OBSERVER_USES);
    check_int(n_dropped, 1);
}

/* A table that sends all to a device: the CPU alone is a candidate though it is predicted to be a
 * hundred times slower. */
static void a_device_that_the_table_makes_too_fast_is_left_for_the_cpu(void)
{
    int n_device = 0;
    int last = 0;
    for (int i = 1; i <= 4 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
        bool is_device = plan->nodes[0].stage[TANDEM_STAGE_COMPUTE].backend > TANDEM_BACKEND_CPU;
        n_device += is_device;
        last = is_device ? i : last;
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        tandem_plan_free(plan);
    }
    CU_ASSERT_TRUE(n_device >= 2 && n_device <= TND_OBSERVER_USES);
    CU_ASSERT_TRUE(last <= TND_OBSERVER_USES);
    check_int(n_dropped, 1);
}

static uint64_t stall_ns;

static enum tandem_status stall(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    tnd_clock_virtual_advance(user, 1000000 + stall_ns);
    return TANDEM_OK;
}

/* A computation by a plan on the device that takes two seconds in place of a millisecond. */
static void a_computation_that_stalls_is_given_up_and_done_by_the_cpu(void)
{
    static float expected[N * M];
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){N, M});
    tnd_test_fill(&rng, tandem_tensor_data(x), (int64_t)N * M);
    for (int i = 0; i < 2; i++) {
        tandem_tensor *w = graph_of_layers->nodes[i]->src[0];
        x = tandem_mul_mat(context, w, x);
        if (i == 0) {
            x = tandem_custom(context, 2, (const int64_t[]){N, M}, &x, 1, 1, stall, &clock_);
        }
    }
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    tandem_plan *plan = NULL;
    for (int i = 0; i < 3; i++) { /* times that count */
        tandem_plan_free(plan);
        plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    }
    memcpy(expected, tandem_tensor_data(x), sizeof(expected));
    uint64_t limit_ns = tnd_observer_limit(runtime, graph, plan);
    CU_ASSERT_TRUE(limit_ns > 0 && limit_ns < UINT64_C(1000000000));
    stall_ns = UINT64_C(2000000000);
    log_text[0] = '\0';
    n_late = 0;
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    stall_ns = 0;
    check_int(n_late, 1);
    check_nmse(tandem_tensor_data(x), expected, (int64_t)N * M, 1e-3, "by the CPU alone");
    tandem_plan_free(plan);
}

/* The result of a graph of products alone. */
static tandem_tensor *build_products(tandem_graph **out_graph)
{
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){N, M});
    tnd_test_fill(&rng, tandem_tensor_data(x), (int64_t)N * M);
    for (int i = 0; i < 2; i++) {
        x = tandem_mul_mat(context, graph_of_layers->nodes[i]->src[0], x);
    }
    *out_graph = tandem_graph_new(context);
    tandem_graph_add(*out_graph, x);
    check_ok(tandem_graph_finish(*out_graph, NULL));
    return x;
}

/* A work that takes a minute in place of some microseconds, seen by nobody but who waits for it. */
static void a_stall_inside_of_a_wait_is_left_and_the_device_found_again(void)
{
    static float expected[N * M];
    tandem_backend *device = tnd_registry_backend(
        runtime->registry, tnd_registry_find(runtime->registry, "simown", NULL));
    struct tnd_sim_statistics before, after;
    tandem_graph *graph;
    tandem_plan *plan = NULL;
    tandem_tensor *x = build_products(&graph);
    for (int i = 0; i < 3; i++) { /* times that count */
        tandem_plan_free(plan);
        plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    }
    tnd_sim_statistics(device, &before);
    CU_ASSERT_TRUE_FATAL(before.submits > 0);
    memcpy(expected, tandem_tensor_data(x), sizeof(expected));
    const uint64_t limit_ns = tnd_observer_limit(runtime, graph, plan);
    CU_ASSERT_TRUE(limit_ns > 0 && limit_ns < UINT64_C(1000000000));

    n_late = 0;
    tnd_sim_stall(device, 60e6);
    uint64_t begin_ns = clock_.clock.now_ns(&clock_.clock);
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    check_int(n_late, 1);
    CU_ASSERT_TRUE(clock_.clock.now_ns(&clock_.clock) - begin_ns < UINT64_C(1000000000));
    check_nmse(tandem_tensor_data(x), expected, (int64_t)N * M, 1e-3, "by the CPU alone");

    /* While the device works on, it is asked for nothing, and writes to nothing. */
    tnd_sim_statistics(device, &before);
    begin_ns = clock_.clock.now_ns(&clock_.clock);
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    tnd_sim_statistics(device, &after);
    check_int(n_late, 2);
    CU_ASSERT_EQUAL(after.submits, before.submits);
    CU_ASSERT_TRUE(clock_.clock.now_ns(&clock_.clock) - begin_ns < 100000000);
    memset(tandem_tensor_data(x), 0, sizeof(expected));
    tnd_clock_virtual_advance(&clock_, UINT64_C(70000000000));
    check_ok(tandem_runtime_fetch(runtime, x, false, NULL));
    CU_ASSERT_EQUAL(((const float *)tandem_tensor_data(x))[0], 0);

    /* Then it is used again. */
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    tnd_sim_statistics(device, &after);
    check_int(n_late, 2);
    CU_ASSERT_TRUE(after.submits > before.submits);
    CU_ASSERT_EQUAL(memcmp(tandem_tensor_data(x), expected, sizeof(expected)), 0);
    tandem_plan_free(plan);
}

/* Planning again is a look at each node and a copy. */
static void a_graph_that_was_placed_before_is_known(void)
{
    struct tnd_plan_known *known = &runtime->planner->known;
    uint64_t key = tnd_plan_known_key(graph_of_layers, 1);
    CU_ASSERT_EQUAL(tnd_plan_known_key(graph_of_layers, 1), key);
    CU_ASSERT_NOT_EQUAL(tnd_plan_known_key(graph_of_layers, 2), key);
    CU_ASSERT_NOT_EQUAL(tnd_plan_known_key(build_graph_of(0), 1), key); /* of other weights */
    CU_ASSERT_EQUAL(tnd_plan_known_key(build_graph_of(2), 1), 0);
    tandem_plan *plans[2] = {NULL, NULL};
    uint64_t used[2];
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_planner_plan(runtime->planner, graph_of_layers, 1, &plans[i], NULL));
        used[i] = known->n_lookups;
    }
    check_int((int64_t)(used[1] - used[0]), 1); /* nothing was kept the second time */
    check_int(tandem_plan_part_count(plans[1]), tandem_plan_part_count(plans[0]));
    CU_ASSERT_TRUE(memcmp(plans[0]->nodes, plans[1]->nodes,
                          (size_t)plans[0]->n_nodes * sizeof(plans[0]->nodes[0])) == 0);
    for (int i = 0; i < tandem_plan_part_count(plans[0]); i++) {
        CU_ASSERT_TRUE(memcmp(tandem_plan_part(plans[0], i), tandem_plan_part(plans[1], i),
                              sizeof(struct tandem_plan_part)) == 0);
    }
    tandem_plan_free(plans[0]);
    tandem_plan_free(plans[1]);
    tnd_runtime_forget_choices(runtime);
    CU_ASSERT_PTR_NULL(tnd_plan_known_copy(known, key, graph_of_layers->n_nodes));
}

/* The same products with other experts behind them are another graph. */
static void a_verdict_is_for_graphs_with_the_same_experts(void)
{
    tandem_graph *of_two = build_graph_of(2);
    tandem_graph *of_three = build_graph_of(3);
    char text[256];
    for (int i = 1; i <= 2 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, of_two, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, of_two, plan, NULL, NULL));
        tandem_plan_free(plan);
    }
    check_int(n_dropped, 1);
    tnd_observer_explain(runtime, of_two, text, sizeof(text));
    check_contains(text, "nothing at once");
    tnd_observer_explain(runtime, of_three, text, sizeof(text));
    check_string(text, "");
    tnd_observer_explain(runtime, graph_of_layers, text, sizeof(text));
    check_string(text, "");
}

/* ---- devices that are worth opening ---- */

/* A thousandth of a microsecond a byte; products of 256 x 512. */
static tandem_table *table_of(double cpu_us, double device_us, double link_us)
{
    tandem_table *table = tune_new();
    tune_add_cost(table, "cpu", 0, cpu_us);
    tune_add_cost(table, "opencl", device_us, 0);
    tune_add_link(table, "opencl", link_us, 1000);
    return table;
}

static void a_device_wins_that_is_clearly_the_fastest_for_some_product(void)
{
    struct tnd_curve_key key;
    int64_t m = 0;
    tandem_table *table = table_of(100, 50, 1);
    CU_ASSERT_TRUE(tnd_winners_is_one(table, "opencl", 1, &key, &m));
    CU_ASSERT_TRUE(key.n == TUNE_DEVICE_N && key.k == TUNE_DEVICE_K && m > 1);
    CU_ASSERT_TRUE(tnd_winners_is_one(table, "opencl", 1, NULL, NULL));
    CU_ASSERT_FALSE(tnd_winners_is_one(table, "opencl1", 1, NULL, NULL));
    CU_ASSERT_FALSE(tnd_winners_is_one(table, "cpu", 1, NULL, NULL));
    tandem_table_free(table);
    table = table_of(100, 1e9, 1);
    CU_ASSERT_FALSE(tnd_winners_is_one(table, "opencl", 1, NULL, NULL));
    tandem_table_free(table);
    table = table_of(100, 50, 1e9); /* the way there is too long */
    CU_ASSERT_FALSE(tnd_winners_is_one(table, "opencl", 1, NULL, NULL));
    tandem_table_free(table);
}

/* A table of thousands of products: those of most tokens are looked at, and it ends. */
static void a_long_table_is_looked_at_in_parts(void)
{
    tandem_table *table = tune_new();
    tune_add_link(table, "opencl", 1, 1000);
    for (int i = 0; i < 400; i++) {
        tune_add_cost_of(table, "cpu", 256 + i, 512, 0, 100);
        tune_add_cost_of(table, "opencl", 256 + i, 512, i == 399 ? 50 : 1e9, 0);
    }
    struct tnd_curve_key key = {.n = 0};
    int64_t m = 0;
    CU_ASSERT_TRUE(tnd_winners_is_one(table, "opencl", 1, &key, &m));
    check_int(key.n, 256 + 399);
    tandem_table_free(table);
}

static bool is_open(const tandem_runtime *opened, const char *name)
{
    bool is_found = false;
    for (int i = 1; i < tandem_runtime_backend_count(opened); i++) {
        is_found = is_found || strcmp(tandem_runtime_backend_name(opened, i), name) == 0;
    }
    return is_found;
}

/* Whether a runtime opens OpenCL by a table: not by one where it loses, nor without any. */
static void other_devices_are_not_opened(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *opened = NULL;
    char path[64] = "";
    tandem_table *table = table_of(100, 1e9, 1);
    (void)snprintf(path, sizeof(path), "/tmp/tandem-winners-%ld.json", (long)getpid());
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_JSON, NULL));
    tandem_table_free(table);
    options.backends = "auto";
    for (int i = 0; i < 2; i++) {
        options.table_path = i == 0 ? path : "";
        check_ok(tandem_runtime_open(&options, &opened, NULL));
        CU_ASSERT_TRUE(is_open(opened, "cpu") && !is_open(opened, "opencl"));
        tandem_runtime_close(opened);
    }
    (void)remove(path);
}

static CU_TestInfo winner_tests[] = {
    {"a_device_wins_that_is_clearly_the_fastest_for_some_product",
     a_device_wins_that_is_clearly_the_fastest_for_some_product},
    {"a_long_table_is_looked_at_in_parts", a_long_table_is_looked_at_in_parts},
    {"other_devices_are_not_opened", other_devices_are_not_opened},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo split_tests[] = {
    {"a_runtime_drops_split_products_that_are_slower_than_predicted",
     a_runtime_drops_split_products_that_are_slower_than_predicted},
    {"a_computation_that_stalls_is_given_up_and_done_by_the_cpu",
     a_computation_that_stalls_is_given_up_and_done_by_the_cpu},
    {"a_stall_inside_of_a_wait_is_left_and_the_device_found_again",
     a_stall_inside_of_a_wait_is_left_and_the_device_found_again},
    {"a_graph_that_was_placed_before_is_known", a_graph_that_was_placed_before_is_known},
    {"a_verdict_is_for_graphs_with_the_same_experts",
     a_verdict_is_for_graphs_with_the_same_experts},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo liar_tests[] = {
    {"a_device_that_the_table_makes_too_fast_is_left_for_the_cpu",
     a_device_that_the_table_makes_too_fast_is_left_for_the_cpu},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo runtime_tests[] = {
    {"a_runtime_drops_weights_in_flight_that_are_slower_than_predicted",
     a_runtime_drops_weights_in_flight_that_are_slower_than_predicted},
    {"the_table_is_told_of_a_device_that_lies", the_table_is_told_of_a_device_that_lies},
    {"a_plan_that_a_program_keeps_or_changes_is_run_as_it_is",
     a_plan_that_a_program_keeps_or_changes_is_run_as_it_is},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_observer[];
CU_SuiteInfo suites_runtime_observer[] = {
    {"winning devices", NULL, NULL, NULL, NULL, winner_tests},
    {"observed runtime", NULL, NULL, set_up_runtime, tear_down_runtime, runtime_tests},
    {"observed liar", NULL, NULL, set_up_liar, tear_down_runtime, liar_tests},
    {"observed splits", NULL, NULL, set_up_splits, tear_down_runtime, split_tests},
    CU_SUITE_INFO_NULL,
};
