/* SPDX-License-Identifier: MIT
 * The guard over plans in which devices and the CPU work at once: turns, verdicts, and a device
 * that is slower than its table says, in virtual time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/policy.h"
#include "tune/profiles.h"

/* ---- verdicts ---- */

static tandem_context *context;
static struct tnd_registry *registry;
static struct tnd_guard guard;

static void set_up(void)
{
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 2};
    check_ok(tnd_registry_open(&options, &registry, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    tnd_guard_init(&guard);
}

static void tear_down(void)
{
    tnd_guard_fini(&guard);
    tandem_context_free(context);
    tnd_registry_close(registry);
}

/* A graph without nodes: verdicts look at keys and times alone. */
static tandem_graph *empty_graph(tandem_plan **out_plan)
{
    tandem_graph *graph = tandem_graph_new(context);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_plan_new(0, out_plan, NULL));
    return graph;
}

/* Uses until the verdict, and microseconds of all of them. */
struct course {
    int n_uses; /* when it was decided; 0: it was not */
    enum tnd_guard_state state;
    double total_us;
};

static struct course run_course(const struct tnd_guard_key *key, int n, double both_us,
                                double single_us, struct tnd_test_rng *rng)
{
    struct course course = {0, TND_GUARD_TRIAL, 0};
    tandem_plan *plan = NULL;
    tandem_graph *graph = empty_graph(&plan);
    for (int use = 1; use <= n; use++) {
        struct tnd_guard_entry entry;
        bool is_both = tnd_guard_choose(&guard, key, registry, graph, plan);
        double us = is_both ? both_us : single_us;
        us *= 1 + 0.04 * (double)tnd_test_rng_int(rng, 0, 100) / 100;
        us *= tnd_test_rng_int(rng, 1, 20) == 1 ? 2 : 1; /* another program */
        course.total_us += us;
        if (tnd_guard_note(&guard, key->graph, is_both, (uint64_t)(us * 1e3), &entry)) {
            check_int(course.n_uses, 0);
            course.n_uses = use;
            course.state = entry.state;
        }
    }
    tandem_plan_free(plan);
    return course;
}

/* Predicted: 600 us in place of 1000. True: twice that. */
static void a_device_that_lies_is_dropped_within_eight_uses(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct tnd_test_rng rng = tnd_test_rng_new(seed);
        const struct tnd_guard_key key = {2 * seed + 1, seed};
        struct course course = run_course(&key, 500, 1200, 1000, &rng);
        check_int(course.state, TND_GUARD_DROPPED);
        CU_ASSERT_TRUE(course.n_uses > 0 && course.n_uses <= TND_GUARD_USES);
        /* against the best single way, met by the same disturbances */
        rng = tnd_test_rng_new(seed);
        double alone_us = 0;
        for (int use = 0; use < 500; use++) {
            double us = 1000 * (1 + 0.04 * (double)tnd_test_rng_int(&rng, 0, 100) / 100);
            alone_us += us * (tnd_test_rng_int(&rng, 1, 20) == 1 ? 2 : 1);
        }
        CU_ASSERT_TRUE(course.total_us < 1.05 * alone_us);
    }
}

static void a_device_that_keeps_its_word_is_kept(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct tnd_test_rng rng = tnd_test_rng_new(seed);
        const struct tnd_guard_key key = {2 * seed + 1, seed};
        struct course course = run_course(&key, 20, 600, 1000, &rng);
        check_int(course.state, TND_GUARD_KEPT);
        CU_ASSERT_TRUE(course.n_uses > 0 && course.n_uses <= TND_GUARD_USES);
    }
}

static void prompts_of_other_lengths_inherit_the_verdict(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(1);
    for (uint64_t i = 0; i < TND_GUARD_LIKE; i++) {
        const struct tnd_guard_key key = {2 * i + 1, 7};
        check_int(run_course(&key, 20, 2000, 1000, &rng).state, TND_GUARD_DROPPED);
    }
    const struct tnd_guard_key alike = {101, 7};
    const struct tnd_guard_key other = {103, 8};
    struct course course = run_course(&alike, 20, 1e6, 1000, &rng);
    CU_ASSERT_TRUE(course.total_us < 1e6); /* not once */
    check_int(run_course(&other, 20, 500, 1000, &rng).state, TND_GUARD_KEPT);
}

static void beyond_its_room_the_guard_gives_the_single_plan(void)
{
    tandem_plan *plan = NULL;
    tandem_graph *graph = empty_graph(&plan);
    for (uint64_t i = 0; i <= TND_GUARD_ENTRIES; i++) {
        const struct tnd_guard_key key = {2 * i + 1, i};
        check_int(tnd_guard_choose(&guard, &key, registry, graph, plan), i < TND_GUARD_ENTRIES);
    }
    tandem_plan_free(plan);
}

/* ---- a runtime with a device that lies ---- */

enum { N = 256, LAYERS = 3, M = 8, USES = 500 };

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

static tandem_runtime *runtime;
static struct tnd_clock_virtual clock_;
static tandem_tensor *y;
static tandem_graph *graph_of_layers;
static char log_text[1024];
static int n_dropped;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    if (strstr(text, "dropped for good") != NULL) {
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
        last = is_streamed ? i : last;
    }
    uint64_t took_ns = clock_.clock.now_ns(&clock_.clock) - begin_ns;
    check_int(n_dropped, 1);
    check_contains(log_text, "dropped for good");
    CU_ASSERT_TRUE(n_streamed >= 2 && last <= TND_GUARD_USES);
    CU_ASSERT_TRUE((double)took_ns < 1.05 * 1e6 * USES);

    check_ok(tandem_runtime_explain(runtime, graph_of_layers, NULL, collect, &text));
    check_contains(tnd_text_string(&text), "devices and CPU at once: dropped, best of ");
    tnd_text_fini(&text);
}

static void the_table_is_told_of_a_dropped_plan(void)
{
#ifdef TND_HAVE_CJSON
    static float expected[N * M];
    tandem_table *saved = NULL;
    const char *path = tnd_test_temp("guard.json");
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    for (int i = 0; i < TND_GUARD_USES; i++) {
        (void)use(expected);
    }
    check_int(n_dropped, 1);
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_ok(tandem_table_load(path, &saved, NULL));
    check_int(tune_count_stale(saved), 1); /* of the device, at this M */
    tandem_table_free(saved);
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
    CU_ASSERT_TRUE(streams(plan) && plan->guard_key != 0);
    check_ok(tandem_plan_copy(plan, &copy, NULL));
    CU_ASSERT_TRUE(copy->guard_key == 0);
    for (int i = 0; i < 20; i++) {
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        CU_ASSERT_TRUE(streams(plan));
    }
    check_int(n_dropped, 0); /* nothing to compare with */
    check_ok(tandem_plan_set_node(plan, 0, tandem_plan_node(plan, 0)));
    CU_ASSERT_TRUE(plan->guard_key == 0);
    tandem_plan_free(copy);
    tandem_plan_free(plan);
}

static void a_runtime_drops_split_products_that_are_slower_than_predicted(void)
{
    static float expected[N * M];
    bool is_split = false;
    int last = 0;
    memset(expected, 0, sizeof(expected));
    for (int i = 1; i <= 2 * TND_GUARD_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
        last = tandem_plan_part_count(plan) > 0 ? i : last;
        is_split = is_split || last == i;
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        memcpy(expected, tandem_tensor_data(y), i == 1 ? sizeof(expected) : 0);
        check_nmse(tandem_tensor_data(y), expected, (int64_t)N * M, 1e-3, "split or not");
        tandem_plan_free(plan);
    }
    CU_ASSERT_TRUE(is_split && last <= TND_GUARD_USES);
    check_int(n_dropped, 1);
}

/* The same products with other experts behind them are another graph. */
static void a_verdict_is_for_graphs_with_the_same_experts(void)
{
    tandem_graph *of_two = build_graph_of(2);
    tandem_graph *of_three = build_graph_of(3);
    char text[256];
    for (int i = 1; i <= 2 * TND_GUARD_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, of_two, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, of_two, plan, NULL, NULL));
        tandem_plan_free(plan);
    }
    check_int(n_dropped, 1);
    tnd_guard_explain(runtime, of_two, text, sizeof(text));
    check_contains(text, "dropped");
    tnd_guard_explain(runtime, of_three, text, sizeof(text));
    check_string(text, "");
    tnd_guard_explain(runtime, graph_of_layers, text, sizeof(text));
    check_string(text, "");
}

static CU_TestInfo verdict_tests[] = {
    {"a_device_that_lies_is_dropped_within_eight_uses",
     a_device_that_lies_is_dropped_within_eight_uses},
    {"a_device_that_keeps_its_word_is_kept", a_device_that_keeps_its_word_is_kept},
    {"prompts_of_other_lengths_inherit_the_verdict", prompts_of_other_lengths_inherit_the_verdict},
    {"beyond_its_room_the_guard_gives_the_single_plan",
     beyond_its_room_the_guard_gives_the_single_plan},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo split_tests[] = {
    {"a_runtime_drops_split_products_that_are_slower_than_predicted",
     a_runtime_drops_split_products_that_are_slower_than_predicted},
    {"a_verdict_is_for_graphs_with_the_same_experts",
     a_verdict_is_for_graphs_with_the_same_experts},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo runtime_tests[] = {
    {"a_runtime_drops_weights_in_flight_that_are_slower_than_predicted",
     a_runtime_drops_weights_in_flight_that_are_slower_than_predicted},
    {"the_table_is_told_of_a_dropped_plan", the_table_is_told_of_a_dropped_plan},
    {"a_plan_that_a_program_keeps_or_changes_is_run_as_it_is",
     a_plan_that_a_program_keeps_or_changes_is_run_as_it_is},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_guard[];
CU_SuiteInfo suites_runtime_guard[] = {
    {"guard", NULL, NULL, set_up, tear_down, verdict_tests},
    {"guarded runtime", NULL, NULL, set_up_runtime, tear_down_runtime, runtime_tests},
    {"guarded splits", NULL, NULL, set_up_splits, tear_down_runtime, split_tests},
    CU_SUITE_INFO_NULL,
};
