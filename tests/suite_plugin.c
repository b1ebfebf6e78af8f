/* SPDX-License-Identifier: MIT
 * The life of a backend from outside, docs/examples/backend.c: loaded, measured, checked, stored,
 * chosen, explained, drawn. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "measure/bench.h"
#include "measure/measure_checks.h"
#include "runtime/tnd_runtime.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tools/report/report_html.h"
#include "tune/explain.h"

enum { N = 64, K = 128, M = 4 };

static tandem_context *context;
static tandem_graph *graph;
static tandem_tensor *y;
static float want[N * M];

static tandem_runtime *open_with(const char *plugins, const char *table_path)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.backends = "cpu";
    options.n_threads = 2;
    options.plugins = plugins;
    options.table_path = table_path;
    (void)check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

static const char *plugin(void)
{
    return tnd_test_beside("example-backend.so");
}

static void begin(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    float values[N * K];
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q8_0, 2, (const int64_t[]){K, N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
    tnd_test_fill(&rng, values, N * K);
    check_ok(tandem_quantize(TANDEM_TYPE_Q8_0, values, tandem_tensor_data(w), N * K));
    tnd_test_fill(&rng, tandem_tensor_data(x), K * M);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    graph = tandem_graph_new(context);
    y = tandem_mul_mat(context, w, x);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_dequantize(TANDEM_TYPE_Q8_0, tandem_tensor_data(w), values, N * K));
    const float *activations = tandem_tensor_data(x);
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            double sum = 0;
            for (int k = 0; k < K; k++) {
                sum += (double)values[n * K + k] * activations[m * K + k];
            }
            want[m * N + n] = (float)sum;
        }
    }
}

static void end(void)
{
    tandem_context_free(context);
}

static int append(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

/* A sweep of a few hundredths of a second, and the checks of correctness. */
static tandem_table *measure(tandem_runtime *runtime)
{
    struct tnd_runtime_parts parts;
    tandem_table *table = tune_new();
    struct tnd_bench_options bench = {.n_types = 1, .types = {TANDEM_TYPE_Q8_0}};
    struct tnd_check_options checks = {.n_threads = 2, .when = 77};
    struct tnd_shapes shapes = {.count = 1, .shape = {{N, K}}};
    tnd_runtime_parts(runtime, &parts);
    bench.measure = (struct tnd_measure_options){
        .registry = parts.registry, .exec = parts.exec, .clock = parts.clock, .seed = 1};
    checks.measure = bench.measure;
    bench.shapes = &shapes;
    bench.n_m = 2;
    bench.m[0] = 1;
    bench.m[1] = M;
    bench.n_thread_counts = 1;
    bench.thread_counts[0] = 2;
    bench.effort = TND_EFFORT_ESTIMATE;
    check_ok(tnd_bench_run(&bench, table, NULL, NULL));
    check_ok(tnd_measure_checks(&checks, TANDEM_TYPE_Q8_0, table, NULL));
    tnd_fingerprint_read_all(parts.registry, &table->fingerprint);
    return table;
}

static int curves_of(const tandem_table *table, const char *backend)
{
    int n = 0;
    for (int i = 0; table != NULL && i < table->n_curves; i++) {
        n += strcmp(table->curves[i].key.backend, backend) == 0 && table->curves[i].n_samples > 0;
    }
    return n;
}

static const char *chosen_by(tandem_runtime *runtime, char out[32])
{
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    snprintf(out, 32, "%s", tandem_plan_node(plan, 0)->profile);
    memset(tandem_tensor_data(y), 0, sizeof(want));
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    (void)check_nmse(tandem_tensor_data(y), want, N * M, 1e-4, out);
    tandem_plan_free(plan);
    return out;
}

static void a_plugin_is_measured_checked_stored_chosen_explained_drawn_and_invalidated(void)
{
    begin();
    tandem_runtime *runtime = open_with(plugin(), "");
    tandem_table *table = measure(runtime);
    check_int(curves_of(table, "example"), 2); /* NODE and MUL_MAT_F32 */
    check_int(tnd_table_check(table, "example", TANDEM_TYPE_Q8_0, 0, NULL), TND_VERDICT_RIGHT);
    check_int(tnd_table_check(table, "cpu+example", TANDEM_TYPE_Q8_0, 0, NULL), TND_VERDICT_RIGHT);
    /* As if it were the fastest by far. */
    CU_ASSERT_TRUE(tnd_table_scale(table, "example", 1e-3));
    char path[512];
    snprintf(path, sizeof(path), "%s", tnd_test_temp("plugin.json"));
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_JSON, NULL));
    tandem_table_free(table);
    tandem_runtime_close(runtime);

    runtime = open_with(plugin(), path);
    check_ok(tandem_runtime_table_status(runtime, NULL));
    char profile[32];
    check_string(chosen_by(runtime, profile), "example");
    struct tnd_text text = TND_TEXT_INIT;
    check_ok(tandem_runtime_explain(runtime, graph, NULL, append, &text));
    check_contains(tnd_text_string(&text), "example");
    check_ok(tandem_table_load(path, &table, NULL));
    tnd_text_clear(&text);
    const struct tnd_report_source source = {table, "plugin.json"};
    const struct tnd_analyze_options options = {.type = TANDEM_TYPE_NUMBERS};
    check_ok(tnd_report_html(&source, 1, &options, NULL, append, &text, NULL));
    check_contains(tnd_text_string(&text), "cpu+example");
    tnd_text_fini(&text);
    tandem_runtime_close(runtime);

    /* Another revision is another backend: its times are void, and only those. */
    char spec[600];
    snprintf(spec, sizeof(spec), "%s:revision=2", plugin());
    runtime = open_with(spec, path);
    tandem_table *left = NULL;
    check_ok(tnd_runtime_copy_table(runtime, &left, NULL));
    check_int(curves_of(left, "example"), 0);
    check_int(curves_of(left, "cpu"), curves_of(table, "cpu"));
    CU_ASSERT_TRUE(curves_of(left, "cpu") > 0);
    CU_ASSERT_TRUE(strcmp(chosen_by(runtime, profile), "example") != 0);
    tandem_table_free(left);
    tandem_table_free(table);
    tandem_runtime_close(runtime);
    end();
}

static void a_plugin_that_cannot_be_used_is_refused_with_the_reason(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    char spec[600];
    options.table_path = "";
    options.backends = "cpu";
    options.plugins = "/no/such/file.so";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "/no/such/file.so", &error);
    options.plugins = "libm.so.6";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 TANDEM_PLUGIN_SYMBOL, &error);
    snprintf(spec, sizeof(spec), "%s:colour=red", plugin());
    options.plugins = spec;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ARGUMENT,
                 "expected revision=TEXT", &error);
    snprintf(spec, sizeof(spec), "%s;%s", plugin(), plugin());
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_EXISTS, "example",
                 &error);
    CU_ASSERT_PTR_NULL(runtime);
}

/* ---- adding while others compute ---- */

struct computing {
    tandem_runtime *runtime;
    _Atomic bool is_over;
    int n_wrong;
};

static void *compute(void *user)
{
    struct computing *computing = user;
    while (!atomic_load(&computing->is_over)) {
        tandem_plan *plan = NULL;
        computing->n_wrong +=
            tandem_runtime_plan(computing->runtime, graph, &plan, NULL) != TANDEM_OK ||
            tandem_runtime_compute(computing->runtime, graph, plan, NULL, NULL) != TANDEM_OK;
        tandem_plan_free(plan);
    }
    return NULL;
}

static const struct tandem_backend_api *plugin_api; /* of the plugin, as an open runtime has it */
static struct tandem_backend_api renamed[8];

static void a_backend_is_added_while_another_thread_plans_and_computes(void)
{
    begin();
    tandem_runtime *source = open_with(plugin(), "");
    struct computing computing = {.runtime = open_with(NULL, "")};
    struct tnd_runtime_parts parts;
    pthread_t thread;
    tnd_runtime_parts(source, &parts);
    int slot = tnd_registry_find(parts.registry, "example", NULL);
    plugin_api = tnd_registry_backend(parts.registry, slot)->api;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, compute, &computing), 0);
    int before = tandem_runtime_backend_count(computing.runtime);
    for (int i = 0; i < 8; i++) {
        static char names[8][8];
        struct tandem_error error = {0};
        snprintf(names[i], sizeof(names[i]), "ex%c", 'a' + i);
        renamed[i] = *plugin_api;
        renamed[i].name = names[i];
        (void)check_status(tandem_runtime_add_backend(computing.runtime, &renamed[i], NULL, &error),
                           TANDEM_OK, NULL, &error);
    }
    atomic_store(&computing.is_over, true);
    pthread_join(thread, NULL);
    check_int(computing.n_wrong, 0);
    check_int(tandem_runtime_backend_count(computing.runtime), before + 8);
    check_ok(tandem_runtime_force_profile(computing.runtime, "example", NULL));
    char profile[32];
    check_string(chosen_by(computing.runtime, profile), "example");
    tandem_runtime_close(computing.runtime);
    tandem_runtime_close(source);
    end();
}

static CU_TestInfo tests_plugin[] = {
    {"a plugin is measured, checked, stored, chosen, explained, drawn and invalidated",
     a_plugin_is_measured_checked_stored_chosen_explained_drawn_and_invalidated},
    {"a plugin that cannot be used is refused with the reason",
     a_plugin_that_cannot_be_used_is_refused_with_the_reason},
    {"a backend is added while another thread plans and computes",
     a_backend_is_added_while_another_thread_plans_and_computes},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {"a backend as a plugin", NULL, NULL, NULL, NULL, tests_plugin},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
