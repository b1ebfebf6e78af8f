/* SPDX-License-Identifier: MIT
 * Plans that are explained, saved, loaded and run again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "runtime/explain_ops.h"
#include "tandem/tandem.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/op_cost.h"

static tandem_runtime *runtime;
static tandem_context *context;
static tandem_tensor *x, *y;
static tandem_graph *graph;

static tandem_graph *network(enum tandem_type type, int64_t m)
{
    tandem_tensor *w = tandem_tensor_new(context, type, 2, (const int64_t[]){256, 256});
    struct tnd_test_rng rng = tnd_test_rng_new(7);
    float row[256];
    for (int64_t n = 0; n < 256; n++) {
        tnd_test_fill(&rng, row, 256);
        check_ok(tandem_quantize(
            type, row, (char *)tandem_tensor_data(w) + (size_t)n * tandem_tensor_nb(w)[1], 256));
    }
    x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){256, m});
    tnd_test_fill(&rng, tandem_tensor_data(x), 256 * m);
    y = tandem_mul_mat(context, w, tandem_silu(context, tandem_mul_mat(context, w, x)));
    tandem_graph *made = tandem_graph_new(context);
    tandem_graph_add(made, y);
    check_ok(tandem_graph_finish(made, NULL));
    return made;
}

static void set_up(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 3;
    options.table_path = "";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    graph = network(TANDEM_TYPE_Q4_0, 40);
}

static void tear_down(void)
{
    tandem_runtime_close(runtime);
    tandem_context_free(context);
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    char *out = user;
    size_t used = strlen(out);
    snprintf(out + used, 8192 - used, "%.*s", (int)n, bytes);
    return 0;
}

/* ---- measuring for a graph ---- */

/* Seconds: sanitizers and a busy machine leave time enough for one measurement of each way. */
#define BUDGET_S    5.0
#define BUDGET_TEXT "5"

static int n_told;

static bool tell(void *user, double elapsed_s, double budget_s)
{
    n_told++;
    CU_ASSERT_TRUE(elapsed_s >= 0 && budget_s == BUDGET_S);
    return user != NULL && n_told == 3;
}

/* What was measured serves. Beside busy programs the budget may end before the node's own cells. */
static void check_measured(tandem_runtime *of, const tandem_plan *planned)
{
    const uint8_t reason = tandem_plan_node(planned, 0)->reason;
    check_ok(tandem_runtime_table_status(of, NULL));
    CU_ASSERT_TRUE(reason == TANDEM_REASON_TABLE || reason == TANDEM_REASON_RULE);
    if (reason == TANDEM_REASON_TABLE) {
        CU_ASSERT_TRUE(tandem_plan_node(planned, 0)->predicted_us[TANDEM_STAGE_COMPUTE] > 0);
    }
}

static void measuring_for_a_graph_makes_the_runtime_plan_by_what_it_found(void)
{
    struct tandem_tune_options options = TANDEM_TUNE_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_plan *plan = NULL;
    options.budget_s = BUDGET_S;
    options.progress = tell;
    n_told = 0;
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_RULE);
    tandem_plan_free(plan);
    check_status(tandem_tune_graph(runtime, graph, &options, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_TRUE(n_told > 0);
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_measured(runtime, plan);
    tandem_plan_free(plan);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
}

static void measuring_for_a_graph_that_is_stopped_keeps_what_it_found(void)
{
    struct tandem_tune_options options = TANDEM_TUNE_OPTIONS_INIT;
    struct tandem_error error = {0};
    options.budget_s = BUDGET_S;
    options.progress = tell;
    options.user = &options;
    n_told = 0;
    check_status(tandem_tune_graph(runtime, graph, &options, &error), TANDEM_E_CANCELLED,
                 "3 measurements", &error);
    check_ok(tandem_runtime_table_status(runtime, NULL));
    options.budget_s = -1;
    check_status(tandem_tune_graph(runtime, graph, &options, &error), TANDEM_E_ARGUMENT, "budget",
                 &error);
    check_status(tandem_tune_graph(runtime, tandem_graph_new(context), NULL, &error),
                 TANDEM_E_STATE, "finish", &error);
}

static void the_first_use_is_measured_once_and_only_when_asked_for(void)
{
#ifdef TND_HAVE_CJSON
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    const char *path = tnd_test_temp("first-use.json");
    tandem_runtime *mine = NULL;
    tandem_plan *plan = NULL;
    setenv("TANDEM_TABLE", path, 1);
    setenv("TANDEM_TUNE", "on-first-use", 1);
    setenv("TANDEM_TUNE_BUDGET", BUDGET_TEXT, 1);
    options.n_threads = 2;
    check_ok(tandem_runtime_open(&options, &mine, NULL));
    check_ok(tandem_runtime_plan(mine, graph, &plan, NULL));
    check_measured(mine, plan);
    tandem_plan_free(plan);
    /* Other weights later: a request like any other. */
    tandem_graph *later = network(TANDEM_TYPE_Q8_0, 3);
    check_ok(tandem_runtime_plan(mine, later, &plan, NULL));
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_RULE);
    tandem_plan_free(plan);
    tandem_runtime_close(mine);
    tandem_table *kept = NULL;
    check_ok(tandem_table_load(path, &kept, NULL)); /* for the next process */
    tandem_table_free(kept);
    /* Without the variable nothing is measured, and a program that wants no table has none. */
    options.table_path = "";
    check_ok(tandem_runtime_open(&options, &mine, NULL));
    check_ok(tandem_runtime_plan(mine, later, &plan, NULL));
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_RULE);
    tandem_plan_free(plan);
    tandem_runtime_close(mine);
    unsetenv("TANDEM_TABLE");
    unsetenv("TANDEM_TUNE");
    unsetenv("TANDEM_TUNE_BUDGET");
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

#ifdef TND_HAVE_CJSON
static char warnings[4096];

static void remember_warning(void *user, enum tandem_log_level level, const char *room,
                             const char *text)
{
    (void)user;
    (void)room;
    if (level <= TANDEM_LOG_WARN) {
        size_t used = strlen(warnings);
        snprintf(warnings + used, sizeof(warnings) - used, "%s\n", text);
    }
}

static void open_plan_close(const struct tandem_runtime_options *options)
{
    tandem_runtime *mine = NULL;
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_open(options, &mine, NULL));
    check_ok(tandem_runtime_plan(mine, graph, &plan, NULL));
    tandem_plan_free(plan);
    tandem_runtime_close(mine);
}
#endif

static void the_first_use_does_not_replace_what_it_cannot_read(void)
{
#ifdef TND_HAVE_CJSON
    static const char newer[] = "{\"version\": 3, \"curves\": []}";
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    char path[600], aside[700] = "";
    tandem_table *read = NULL;
    snprintf(path, sizeof(path), "%s", tnd_test_temp("first-newer.json"));
    CU_ASSERT_TRUE(tnd_test_write_file(path, newer, strlen(newer)));
    setenv("TANDEM_TABLE", path, 1);
    setenv("TANDEM_TUNE", "on-first-use", 1);
    setenv("TANDEM_TUNE_BUDGET", BUDGET_TEXT, 1);
    options.n_threads = 2;
    options.log = remember_warning;
    options.log_level = TANDEM_LOG_WARN;
    warnings[0] = '\0';
    open_plan_close(&options);
    const char *name = strstr(warnings, "first-newer.json.bad-");
    CU_ASSERT_PTR_NOT_NULL(name);
    if (name != NULL) {
        snprintf(aside, sizeof(aside), "%s%.13s", path, name + strlen("first-newer.json"));
    }
    size_t n = 0;
    char *kept = tnd_test_read_file(aside, &n);
    check_string(kept, newer);
    free(kept);
    check_ok(tandem_table_load(path, &read, NULL));
    tandem_table_free(read);
    unsetenv("TANDEM_TABLE");
    unsetenv("TANDEM_TUNE");
    unsetenv("TANDEM_TUNE_BUDGET");
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static int refuse(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return 1;
}

static void a_saved_plan_gives_the_same_bits(void)
{
    struct tandem_profile_info profiles[32];
    int n = tandem_runtime_profiles(runtime, profiles, 32);
    size_t bytes = tandem_tensor_bytes(y);
    void *first = malloc(bytes);
    for (int i = 0; i < n; i++) {
        if (!profiles[i].available) {
            continue;
        }
        const char *path = tnd_test_temp("saved.plan");
        tandem_plan *plan = NULL;
        tandem_plan *again = NULL;
        check_ok(tandem_runtime_force_profile(runtime, profiles[i].name, NULL));
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_ok(tandem_runtime_force_profile(runtime, NULL, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
        memcpy(first, tandem_tensor_data(y), bytes);
        check_ok(tandem_runtime_save_plan(runtime, graph, plan, path, NULL));
        check_ok(tandem_runtime_load_plan(runtime, graph, path, &again, NULL));
        for (int j = 0; j < tandem_plan_node_count(plan); j++) {
            check_bits(tandem_plan_node(again, j), tandem_plan_node(plan, j),
                       sizeof(struct tandem_plan_node), profiles[i].name);
        }
        memset(tandem_tensor_data(y), 0, bytes);
        check_ok(tandem_runtime_compute(runtime, graph, again, NULL, NULL));
        check_bits(tandem_tensor_data(y), first, bytes, profiles[i].name);
        tandem_plan_free(plan);
        tandem_plan_free(again);
    }
    free(first);
}

/* The upper rows of both products by the CPU's own profile. */
static void split_products(tandem_plan *plan)
{
    tandem_plan *on_cpu = NULL;
    check_ok(tandem_plan_copy(plan, &on_cpu, NULL));
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        struct tandem_plan_part part;
        if (strcmp(tandem_tensor_op_name(tandem_graph_node(graph, i)), "mul_mat") == 0) {
            memset(&part, 0, sizeof(part));
            check_ok(tandem_runtime_force_node(runtime, graph, on_cpu, i, "cpu", NULL));
            part.node = i;
            part.begin = 100;
            part.end = 256;
            part.choice = *tandem_plan_node(on_cpu, i);
            check_ok(tandem_plan_add_part(plan, &part, NULL));
        }
    }
    tandem_plan_free(on_cpu);
}

static void every_profile_splits_with_the_cpu_and_a_saved_split_is_the_same(void)
{
    struct tandem_profile_info profiles[32];
    struct tandem_step_counts whole = {sizeof(whole), 0, 0, 0};
    struct tandem_step_counts split = {sizeof(split), 0, 0, 0};
    int n = tandem_runtime_profiles(runtime, profiles, 32);
    int64_t n_values = tandem_tensor_elements(y);
    float *first = malloc((size_t)n_values * sizeof(float));
    tandem_tensor_set_role(tandem_tensor_src(tandem_graph_node(graph, 0), 0), TANDEM_ROLE_CONSTANT);
    for (int i = 0; i < n && i < 32; i++) {
        const char *path = tnd_test_temp("split.plan");
        tandem_plan *plan = NULL;
        tandem_plan *again = NULL;
        if (!profiles[i].available) {
            continue;
        }
        check_ok(tandem_runtime_force_profile(runtime, profiles[i].name, NULL));
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_ok(tandem_runtime_force_profile(runtime, NULL, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
        check_ok(tandem_runtime_count_steps(runtime, graph, plan, &whole, NULL));
        memcpy(first, tandem_tensor_data(y), (size_t)n_values * sizeof(float));
        split_products(plan);
        check_ok(tandem_runtime_count_steps(runtime, graph, plan, &split, NULL));
        CU_ASSERT_TRUE(split.n_steps > whole.n_steps);
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
        if (strcmp(profiles[i].name, "cpu") == 0) { /* the same kernels */
            check_bits(tandem_tensor_data(y), first, (size_t)n_values * sizeof(float), "cpu");
        }
        /* by sums of F32 or of quantised activations */
        check_nmse(tandem_tensor_data(y), first, n_values, 1e-3, profiles[i].name);
        memcpy(first, tandem_tensor_data(y), (size_t)n_values * sizeof(float));
        check_ok(tandem_runtime_save_plan(runtime, graph, plan, path, NULL));
        check_ok(tandem_runtime_load_plan(runtime, graph, path, &again, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, again, NULL, NULL));
        check_bits(tandem_tensor_data(y), first, (size_t)n_values * sizeof(float),
                   profiles[i].name);
        tandem_plan_free(plan);
        tandem_plan_free(again);
    }
    free(first);
}

static void a_plan_serves_graphs_that_differ_in_tokens_alone(void)
{
    const char *path = tnd_test_temp("tokens.plan");
    struct tandem_error error = {0};
    tandem_plan *plan = NULL;
    tandem_plan *again = NULL;
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_ok(tandem_runtime_save_plan(runtime, graph, plan, path, NULL));
    tandem_graph *longer = network(TANDEM_TYPE_Q4_0, 5);
    check_ok(tandem_runtime_load_plan(runtime, longer, path, &again, NULL));
    check_ok(tandem_runtime_compute(runtime, longer, again, NULL, NULL));
    tandem_plan_free(again);
    again = NULL;
    tandem_graph *other = network(TANDEM_TYPE_Q8_0, 40);
    check_status(tandem_runtime_load_plan(runtime, other, path, &again, &error), TANDEM_E_ARGUMENT,
                 "another graph", &error);
    check_status(tandem_runtime_load_plan(runtime, graph, "/nowhere/a.plan", &again, &error),
                 TANDEM_E_FILE, "/nowhere/a.plan", &error);
    check_status(tandem_runtime_save_plan(runtime, graph, plan, "/nowhere/a.plan", &error),
                 TANDEM_E_FILE, "/nowhere/a.plan", &error);
    check_status(tandem_runtime_save_plan(runtime, graph, NULL, path, &error), TANDEM_E_ARGUMENT,
                 "0 nodes", &error);
    tandem_graph *open = tandem_graph_new(context);
    check_status(tandem_runtime_load_plan(runtime, open, path, &again, &error), TANDEM_E_STATE,
                 "not finished", &error);
    CU_ASSERT_PTR_NULL(again);
    tandem_plan_free(plan);
}

/* What the table says of a sum in each place, in the way of a plan that has it in `slot`. */
static void explain_sum(const tandem_table *table, const struct tnd_registry *registry, int slot,
                        struct tnd_text *out)
{
    bool done[] = {false};
    tandem_plan *plan = NULL;
    tandem_graph *sum = tandem_graph_new(context);
    tandem_graph_add(sum, tandem_add(context, x, x));
    check_ok(tandem_graph_finish(sum, NULL));
    check_ok(tandem_plan_new(1, &plan, NULL));
    struct tandem_plan_node *node = &plan->nodes[0];
    snprintf(node->profile, sizeof(node->profile), "%s", tnd_registry_name(registry, slot));
    node->n_threads = 1;
    node->stage[TANDEM_STAGE_COMPUTE].backend = slot;
    check_int(tnd_explain_ops(table, registry, sum, plan, 1, done, out), 1);
    tandem_plan_free(plan);
}

static void other_operations_are_explained_for_the_cpu_and_devices(void)
{
    const struct tnd_registry_options options = {.n_threads_max = 1};
    struct tandem_backend_api api = tnd_sim_own_api;
    struct tnd_registry *registry = NULL;
    tandem_table *table = tune_new();
    struct tnd_text text = TND_TEXT_INIT;
    api.name = "opencl";
    api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_open(&options, &registry, NULL));
    check_ok(tnd_registry_add(registry, &api, NULL, NULL));
    const int device = tnd_registry_find(registry, "opencl", NULL);
    struct tnd_curve_key key = tnd_op_key(TANDEM_OP_ADD, 256, 1, 1);
    tune_add(table, &key, 40, 100);
    explain_sum(table, registry, device, &text);
    key = tnd_op_device_key(TANDEM_OP_ADD, 256, 1, "opencl");
    tune_add(table, &key, 40, 900);
    explain_sum(table, registry, device, &text);
    explain_sum(table, registry, TANDEM_BACKEND_CPU, &text);
    check_contains(text.bytes,
                   "opencl, 1 thread; not measured there: as on the CPU; on the CPU: 1: 100.0 +- ");
    check_contains(text.bytes, "opencl, 1 thread; on opencl: 900.0 +- ");
    check_contains(text.bytes, "cpu, 1 thread; 1: 100.0 +- ");
    tnd_text_fini(&text);
    tandem_table_free(table);
    tnd_registry_close(registry);
}

/* Both products have one shape: they are told once. */
static void a_graph_is_explained_node_by_node(void)
{
    char text[8192] = "";
    check_ok(tandem_runtime_explain(runtime, graph, NULL, collect, text));
    check_contains(text, "node 0, 2: ");
    check_contains(text, "reason: rule");
    check_contains(text, "mul_mat:q4_0:n256:k256:m40, at most 3 threads");
    check_contains(text, "there is no timing table");
    check_contains(text, "mulmat-tune bench --model 256x256 --type q4_0 --threads 1,2,3");
    check_contains(text, "1 of 3 nodes have one way alone");
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_force_profile(runtime, "cpu", NULL));
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    text[0] = '\0';
    check_ok(tandem_runtime_explain(runtime, graph, plan, collect, text));
    check_contains(text, "reason: forced");
    check_int(tandem_runtime_explain(runtime, graph, plan, refuse, NULL), TANDEM_E_FILE);
    check_int(tandem_runtime_explain(runtime, NULL, plan, collect, text), TANDEM_E_ARGUMENT);
    tandem_graph *other = network(TANDEM_TYPE_F32, 1);
    tandem_plan *small = NULL;
    check_ok(tandem_plan_new(1, &small, NULL));
    check_int(tandem_runtime_explain(runtime, other, small, collect, text), TANDEM_E_ARGUMENT);
    tandem_plan_free(small);
    tandem_plan_free(plan);
}

static void running_out_of_memory_leaks_nothing(void)
{
    char text[8192] = "";
    tandem_plan *plan = NULL;
    const char *path = tnd_test_temp("memory.plan");
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_ok(tandem_runtime_save_plan(runtime, graph, plan, path, NULL));
    long live = tnd_alloc_live();
    int done = 0;
    for (long nth = 1; nth < 200 && done < 3; nth++) {
        tandem_plan *again = NULL;
        done = 0;
        tnd_alloc_fail_after(nth);
        done += tandem_runtime_explain(runtime, graph, NULL, collect, text) == TANDEM_OK;
        tnd_alloc_fail_after(nth);
        done += tandem_runtime_load_plan(runtime, graph, path, &again, NULL) == TANDEM_OK;
        tnd_alloc_fail_after(nth);
        done += tandem_runtime_save_plan(runtime, graph, plan, path, NULL) == TANDEM_OK;
        tnd_alloc_fail_after(-1);
        tandem_plan_free(again);
        check_int(tnd_alloc_live(), live);
        text[0] = '\0';
    }
    check_int(done, 3);
    tandem_plan_free(plan);
}

static CU_TestInfo tests[] = {
    {"measuring for a graph makes the runtime plan by what it found",
     measuring_for_a_graph_makes_the_runtime_plan_by_what_it_found},
    {"measuring for a graph that is stopped keeps what it found",
     measuring_for_a_graph_that_is_stopped_keeps_what_it_found},
    {"the_first_use_does_not_replace_what_it_cannot_read",
     the_first_use_does_not_replace_what_it_cannot_read},
    {"the first use is measured once and only when asked for",
     the_first_use_is_measured_once_and_only_when_asked_for},
    {"a_saved_plan_gives_the_same_bits", a_saved_plan_gives_the_same_bits},
    {"every_profile_splits_with_the_cpu_and_a_saved_split_is_the_same",
     every_profile_splits_with_the_cpu_and_a_saved_split_is_the_same},
    {"a_plan_serves_graphs_that_differ_in_tokens_alone",
     a_plan_serves_graphs_that_differ_in_tokens_alone},
    {"a_graph_is_explained_node_by_node", a_graph_is_explained_node_by_node},
    {"other_operations_are_explained_for_the_cpu_and_devices",
     other_operations_are_explained_for_the_cpu_and_devices},
    {"running_out_of_memory_leaks_nothing", running_out_of_memory_leaks_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_plans[];
CU_SuiteInfo suites_runtime_plans[] = {
    {"plans in files", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
