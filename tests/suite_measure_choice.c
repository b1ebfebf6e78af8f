/* SPDX-License-Identifier: MIT
 * What measuring decides for the planner: devices that compute wrong numbers, thread counts to
 * measure, operations measured once for real, names of models. */
#include <string.h>

#include "backends/sim/sim.h"
#include "ggml-like/tnd_tensor.h"
#include "measure/bench.h"
#include "measure/measure_checks.h"
#include "measure/measure_ops.h"
#include "measure/models.h"
#include "sched/pool.h"
#include "tests/support_tune.h"
#include "tune/candidates.h"
#include "tune/op_cost.h"
#include "tune/planner.h"

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K, CACHE = 1 << 20 };

static struct tnd_registry *registry;
static struct tnd_planner *planner;
static tandem_context *context;
static tandem_table *table;
static struct tandem_backend_api opencl_api;

static void set_up(void)
{
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 8};
    check_ok(tnd_registry_open(&options, &registry, NULL));
    struct tnd_planner_options planner_options = {
        .registry = registry, .clock = tnd_clock_real(), .cache_bytes = CACHE};
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    table = tune_new();
}

static void tear_down(void)
{
    tnd_planner_free(planner);
    tandem_table_free(table);
    tandem_context_free(context);
    tnd_registry_close(registry);
}

static void add_device(const char *settings)
{
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_add(registry, &opencl_api, settings, NULL));
}

static tandem_graph *product(int64_t n, int64_t k, int64_t m)
{
    return tune_product(context, TANDEM_TYPE_Q4_0, n, k, m);
}

static struct tandem_plan_node plan_one(const tandem_graph *graph, int n_threads)
{
    return tune_plan_one(planner, graph, n_threads);
}

static void a_device_that_computes_wrong_numbers_is_never_chosen(void)
{
    static const char *const settings[] = {"wrong=0", "wrong=1"};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct tnd_pool_options pool_options = {.n_threads = 1, .n_cpus = 1, .spin_limit = -1};
        struct tnd_pool *pool = NULL;
        struct tnd_exec *exec = NULL;
        add_device(settings[wrong]);
        check_ok(tnd_pool_new(&pool_options, &pool, NULL));
        check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
        struct tnd_check_options gate = {.measure = {.registry = registry,
                                                     .exec = exec,
                                                     .clock = tnd_clock_real(),
                                                     .limit_bytes = (size_t)64 << 20},
                                         .n_threads = 1,
                                         .when = 1};
        tune_add_cost(table, "cpu", 500, 10);
        tune_add_cost(table, "opencl", 1, 0.01);
        tune_add_link(table, "opencl", 1, 1e6);
        check_ok(tnd_measure_checks(&gate, TANDEM_TYPE_Q4_0, table, NULL));
        tnd_planner_set_table(planner, table);
        for (int64_t m = 1; m <= 64; m *= 8) {
            struct tandem_plan_node node = plan_one(product(N, K, m), 2);
            check_string(node.profile, wrong == 1 ? "cpu" : "opencl");
        }
        tnd_exec_free(exec);
        tnd_pool_free(pool);
        tear_down();
        set_up();
    }
}

static void all_cores_of_the_faster_kind_are_a_thread_count(void)
{
    static const int on_14[] = {1, 2, 4, 6, 12, 14};
    static const int on_6[] = {1, 2, 4, 6};
    int counts[TND_MAX_BENCH_THREADS];
    check_int(tnd_bench_thread_counts(14, 6, counts), 6);
    for (int i = 0; i < 6; i++) {
        check_int(counts[i], on_14[i]);
        const struct tnd_handoff handoff = {
            .threads = on_14[i], .spin_us = 1, .wake_us = 9, .count = 1, .when = 1};
        if (on_14[i] > 1) {
            check_ok(tnd_table_add_handoff(table, &handoff));
        }
    }
    check_int(tnd_bench_thread_counts(6, 0, counts), 4);
    for (int i = 0; i < 4; i++) {
        check_int(counts[i], on_6[i]);
    }
    check_int(tnd_bench_thread_counts(1, 0, counts), 1);
    check_int(tnd_next_thread_count(table, 4, 14), 6); /* as measured, */
    check_int(tnd_next_thread_count(NULL, 4, 14), 8);  /* or by doubling */
    check_int(tnd_next_thread_count(table, 4, 5), 5);
}

static void operations_are_measured_on_this_machine(void)
{
    static const int counts[] = {1, 2};
    struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    struct tnd_pool *pool = NULL;
    struct tnd_exec *exec = NULL;
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
    struct tnd_measure_options options = {
        .registry = registry, .exec = exec, .clock = tnd_clock_real()};
    check_ok(tnd_measure_ops(&options, counts, 2, 1e-6, 7, table, NULL));
    check_int(table->n_curves, 0); /* too little time to begin with */
    check_ok(tnd_measure_ops(&options, counts, 2, 0.5, 7, table, NULL));
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        CU_ASSERT_TRUE(curve->samples[0].count > 0 && curve->samples[0].median_us > 0);
        check_int(curve->samples[0].when, 7);
    }
    CU_ASSERT_TRUE(table->n_curves >= 2); /* a busy machine gets no further than the first */
    int threads = 0;
    tandem_tensor *matrix = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (int64_t[]){64, 8});
    CU_ASSERT_TRUE(
        tnd_op_threads(table, tandem_add(context, matrix, matrix), 2, 0, &threads, NULL));
    tnd_exec_free(exec);
    tnd_pool_free(pool);
}

/* ---- operations on a device, by a virtual clock ---- */

static struct tnd_clock_virtual virtual_clock;
static struct tnd_pool *virtual_pool;
static struct tnd_measure_options virtual_options;

static void begin_with_device(const char *settings)
{
    struct tnd_pool_options pool_options = {.n_threads = 1, .n_cpus = 1, .spin_limit = -1};
    tnd_clock_virtual_init(&virtual_clock, 5000);
    check_ok(tnd_registry_add(registry, &tnd_sim_own_api, settings, NULL));
    tnd_sim_set_clock(tnd_registry_backend(registry, tnd_registry_find(registry, "simown", NULL)),
                      &virtual_clock.clock);
    virtual_options =
        (struct tnd_measure_options){.registry = registry, .clock = &virtual_clock.clock};
    check_ok(tnd_pool_new(&pool_options, &virtual_pool, NULL));
    check_ok(
        tnd_exec_new(virtual_pool, registry, &virtual_clock.clock, &virtual_options.exec, NULL));
}

static void end_with_device(void)
{
    tnd_exec_free(virtual_options.exec);
    tnd_pool_free(virtual_pool);
}

static void operations_of_a_device_are_measured_without_waiting_for_it(void)
{
    begin_with_device("latency_us=50");
    int slot = tnd_registry_find(registry, "simown", NULL);
    struct tnd_sim_statistics statistics;
    int n_ops = 0;
    int n_samples = 0; /* of greedy ones and drawn ones, by their passes */
    check_ok(tnd_measure_device_ops(&virtual_options, slot, 20, 1e-6, 7, table, NULL));
    check_int(table->n_curves, 0); /* too little time to begin with */
    check_ok(tnd_measure_device_ops(&virtual_options, slot, 20, 0.7, 7, table, NULL));
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        check_string(curve->key.backend, "simown");
        check_int(curve->key.threads, 1);
        CU_ASSERT_FALSE(curve->key.parallel);
        for (int s = 0; s < curve->n_samples; s++) {
            CU_ASSERT_DOUBLE_EQUAL(curve->samples[s].median_us, 30, 1e-6);
            check_int(curve->samples[s].when, 7);
        }
        n_ops += strcmp(curve->key.op, "attention") == 0;
        if (strcmp(curve->key.op, "sample") == 0) {
            CU_ASSERT_TRUE(curve->key.k == tnd_op_sample_passes(0) ||
                           curve->key.k == tnd_op_sample_passes(~0));
            CU_ASSERT_TRUE(curve->key.n >= 32768);
            n_samples++;
        }
    }
    CU_ASSERT_TRUE(n_ops > 0);
    check_int(n_samples, 4);
    CU_ASSERT_TRUE(table->n_curves >= 9);
    tnd_sim_statistics(tnd_registry_backend(registry, slot), &statistics);
    check_int(statistics.residents, 0); /* nothing stays on the device */
    end_with_device();
}

static void a_device_that_fails_ends_the_measuring_of_operations(void)
{
    begin_with_device("fail=sync,fail_at=20");
    int slot = tnd_registry_find(registry, "simown", NULL);
    struct tandem_error error = {0};
    enum tandem_status status =
        tnd_measure_device_ops(&virtual_options, slot, 20, 0.25, 7, table, &error);
    CU_ASSERT_TRUE(status >= TANDEM_E_DEVICE && status <= TANDEM_E_DEVICE_TIMEOUT);
    check_int(error.status, status);
    end_with_device();
}

static void model_names_and_shape_lists_are_understood(void)
{
    struct tnd_shapes shapes;
    struct tandem_error error;
    check_ok(tnd_shapes_parse("7b", &shapes, NULL));
    check_int(shapes.count, 4);
    check_int(shapes.shape[1].k, 11008);
    check_ok(tnd_shapes_parse("64x32,64x32,7X5", &shapes, NULL));
    check_int(shapes.count, 2);
    check_int(shapes.shape[1].n, 7);
    check_status(tnd_shapes_parse("8B", &shapes, &error), TANDEM_E_NOT_FOUND, "7B", &error);
    check_status(tnd_shapes_parse("64x", &shapes, &error), TANDEM_E_FORMAT, "character 1", &error);
    check_status(tnd_shapes_parse("64x32;", &shapes, &error), TANDEM_E_FORMAT, "','", &error);
    check_status(tnd_shapes_parse("1x99999999", &shapes, &error), TANDEM_E_FORMAT, "NxK", &error);
}

static CU_TestInfo tests[] = {
    {"a_device_that_computes_wrong_numbers_is_never_chosen",
     a_device_that_computes_wrong_numbers_is_never_chosen},
    {"all_cores_of_the_faster_kind_are_a_thread_count",
     all_cores_of_the_faster_kind_are_a_thread_count},
    {"operations_are_measured_on_this_machine", operations_are_measured_on_this_machine},
    {"operations of a device are measured without waiting for it",
     operations_of_a_device_are_measured_without_waiting_for_it},
    {"a device that fails ends the measuring of operations",
     a_device_that_fails_ends_the_measuring_of_operations},
    {"model_names_and_shape_lists_are_understood", model_names_and_shape_lists_are_understood},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_choice[];
CU_SuiteInfo suites_measure_choice[] = {
    {"what measuring decides", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
