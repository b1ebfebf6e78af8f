/* SPDX-License-Identifier: MIT
 * Measuring one product: by a backend whose work moves a virtual clock, by the pretended device,
 * and once for real to see that the numbers belong to a right product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/pool.h"
#include "tests/support_tune.h"
#include "tune/op_cost.h"
#include "measure/bench.h"
#include "measure/measure.h"
#include "measure/measure_moves.h"
#include "measure/measure_ops.h"
#include "measure/measure_peaks.h"
#include "tune/planner.h"
#include "tune/policy.h"
#include "tune/profiles.h"

/* ---- a backend whose tasks take scripted times ---- */

static struct tnd_clock_virtual virtual_clock;
static uint64_t costs_us[16];  /* of mul_mat_f32, in turn */
static uint64_t stolen_us[16]; /* beside each: another program runs */
static int n_costs;
static uint64_t n_products;
static const void *seen[64]; /* weights of the products */
static int n_seen;
static enum tandem_status ticker_answer;

static const struct tandem_backend_api ticker_api;

static enum tandem_status ticker_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    *out_backend = calloc(1, sizeof(**out_backend));
    (*out_backend)->api = &ticker_api;
    return TANDEM_OK;
}

static void ticker_close(tandem_backend *backend)
{
    free(backend);
}

static enum tandem_status ticker_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)error;
    return task == TANDEM_TASK_DEQUANTIZE_W || task == TANDEM_TASK_MUL_MAT_F32
               ? TANDEM_OK
               : TANDEM_E_UNSUPPORTED_BACKEND;
}

static void note_weights(const void *data)
{
    for (int i = 0; i < n_seen; i++) {
        if (seen[i] == data) {
            return;
        }
    }
    if (n_seen < 64) {
        seen[n_seen++] = data;
    }
}

static enum tandem_status ticker_run(tandem_backend *backend, const struct tandem_work *work,
                                     struct tandem_worker *worker)
{
    (void)backend;
    if (worker->index > 0) {
        return TANDEM_OK;
    }
    if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
        tnd_clock_virtual_advance(&virtual_clock, 7000);
        return TANDEM_OK;
    }
    note_weights(work->node->src[0]->data);
    tnd_clock_virtual_steal(&virtual_clock, 1000 * stolen_us[n_products % (uint64_t)n_costs]);
    tnd_clock_virtual_advance(&virtual_clock, 1000 * costs_us[n_products++ % (uint64_t)n_costs]);
    return ticker_answer;
}

static const struct tandem_backend_api ticker_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "ticker",
    .kind = TANDEM_KIND_OPENCL,
    .open = ticker_open,
    .close = ticker_close,
    .supports = ticker_supports,
    .run = ticker_run,
};

/* ---- what a test needs ---- */

static struct tnd_registry *registry;
static struct tnd_pool *pool;
static struct tnd_exec *exec;
static struct tnd_measure_options options;

static void begin(const char *settings)
{
    struct tnd_registry_options registry_options = {"sim", settings, 4, {0}};
    struct tnd_pool_options pool_options = {
        .n_threads = 3, .n_cpus = 2, .spin_limit = -1}; /* parks early or late: nothing to test */
    struct tandem_error error = {0};
    tnd_clock_virtual_init(&virtual_clock, 5000);
    check_status(tnd_registry_open(&registry_options, &registry, &error), TANDEM_OK, NULL, &error);
    check_ok(tnd_registry_add(registry, &ticker_api, NULL, &error));
    tnd_sim_set_clock(tnd_registry_backend(registry, tnd_registry_find(registry, "sim", NULL)),
                      &virtual_clock.clock);
    check_ok(tnd_pool_new(&pool_options, &pool, &error));
    check_ok(tnd_exec_new(pool, registry, &virtual_clock.clock, &exec, &error));
    options = (struct tnd_measure_options){.registry = registry,
                                           .exec = exec,
                                           .clock = &virtual_clock.clock,
                                           .rotate_bytes = 1,
                                           .limit_bytes = (size_t)64 << 20,
                                           .seed = tnd_test_seed()};
    costs_us[0] = 100;
    memset(stolen_us, 0, sizeof(stolen_us));
    n_costs = 1;
    n_products = 0;
    n_seen = 0;
    ticker_answer = TANDEM_OK;
}

static void end(void)
{
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_registry_close(registry);
}

static struct tandem_plan_node choose(const char *backend, enum tandem_task task)
{
    struct tandem_plan_node node;
    memset(&node, 0, sizeof(node));
    strcpy(node.profile, "test");
    node.n_threads = 1;
    node.stage[TANDEM_STAGE_COMPUTE].backend = (uint8_t)tnd_registry_find(registry, backend, NULL);
    node.stage[TANDEM_STAGE_COMPUTE].task = (uint8_t)task;
    return node;
}

static struct tnd_measure *open_measure(enum tandem_type type, int64_t n, int64_t k, int64_t m_max)
{
    struct tnd_measure *measure = NULL;
    struct tandem_error error = {0};
    check_status(tnd_measure_open(&options, type, n, k, m_max, &measure, &error), TANDEM_OK, NULL,
                 &error);
    return measure;
}

/* ---- tests ---- */

static void a_device_takes_the_time_of_its_script(void)
{
    begin("sim:latency_us=250");
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tandem_plan_node choice = choose("sim", TANDEM_TASK_NODE);
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 4, &choice, NULL, &result, NULL));
    CU_ASSERT_EQUAL(result.stage[TANDEM_STAGE_COMPUTE].median_us, 250);
    CU_ASSERT_EQUAL(result.stage[TANDEM_STAGE_COMPUTE].spread_us, 0);
    check_int(result.stage[TANDEM_STAGE_INIT].count, 0);
    check_int(result.stage[TANDEM_STAGE_FINALIZE].count, 0);
    CU_ASSERT_EQUAL(result.total.median_us, 250);
    tnd_measure_close(measure);
    end();
}

static void stages_are_timed_one_by_one_and_together(void)
{
    begin(NULL);
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_Q8_0, 16, 32, 4);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    choice.stage[TANDEM_STAGE_INIT] = choice.stage[TANDEM_STAGE_COMPUTE];
    choice.stage[TANDEM_STAGE_INIT].task = TANDEM_TASK_DEQUANTIZE_W;
    choice.stage[TANDEM_STAGE_INIT].parallel = true;
    choice.n_threads = 2;
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 2, &choice, NULL, &result, NULL));
    CU_ASSERT_EQUAL(result.stage[TANDEM_STAGE_INIT].median_us, 7);
    CU_ASSERT_EQUAL(result.stage[TANDEM_STAGE_COMPUTE].median_us, 100);
    CU_ASSERT_EQUAL(result.total.median_us, 107);
    check_int(result.total.count, result.stage[TANDEM_STAGE_INIT].count);
    tnd_measure_close(measure);
    end();
}

/* Products of one X may share groups and the INIT stage in a program; here each is by itself. */
static void every_product_is_timed_by_itself(void)
{
    begin(NULL);
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_Q8_0, 16, 32, 4);
    struct tandem_plan_node choice = choose("cpu", TANDEM_TASK_MUL_MAT_Q);
    choice.stage[TANDEM_STAGE_INIT] = choice.stage[TANDEM_STAGE_COMPUTE];
    choice.stage[TANDEM_STAGE_INIT].task = TANDEM_TASK_QUANTIZE_X;
    choice.stage[TANDEM_STAGE_INIT].parallel = true;
    choice.stage[TANDEM_STAGE_COMPUTE].parallel = true;
    choice.n_threads = 2;
    struct tnd_measure_effort effort = {.expected_us = 1}; /* many in a graph */
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 2, &choice, &effort, &result, NULL));
    CU_ASSERT_TRUE(result.total.count > 3);
    check_int(result.stage[TANDEM_STAGE_INIT].count, result.total.count);
    check_int(result.stage[TANDEM_STAGE_COMPUTE].count, result.total.count);
    tnd_measure_close(measure);
    end();
}

static void the_result_is_the_median_and_the_median_deviation(void)
{
    begin(NULL);
    /* Eight products a run, the first of which is left out: seven different samples in each run. */
    static const uint64_t costs[8] = {9999, 10, 20, 30, 40, 50, 60, 7000};
    memcpy(costs_us, costs, sizeof(costs));
    n_costs = 8;
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure_effort effort = {.budget_s = 100, .max_repeats = 70};
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 70);
    CU_ASSERT_EQUAL(result.total.median_us, 40);
    CU_ASSERT_EQUAL(result.total.spread_us, 20);
    tnd_measure_close(measure);
    end();
}

static void samples_beside_another_program_are_left_out(void)
{
    begin(NULL);
    static const uint64_t stolen[8] = {0, 0, 0, 0, 0, 500, 500, 500};
    for (int i = 0; i < 8; i++) {
        costs_us[i] = 40;
        stolen_us[i] = stolen[i];
    }
    n_costs = 8; /* a run */
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure_effort effort = {.budget_s = 100};
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 8); /* four of each run */
    CU_ASSERT_EQUAL(result.total.median_us, 40);
    CU_ASSERT_EQUAL(result.total.spread_us, 0);
    /* On a machine that is always busy its times are all there is. */
    for (int i = 0; i < 8; i++) {
        stolen_us[i] = 500;
    }
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 1); /* alike, and wrong alike */
    CU_ASSERT_EQUAL(result.total.median_us, 540);
    CU_ASSERT_EQUAL(result.total.spread_us, 500);
    effort = (struct tnd_measure_effort){.budget_s = 1e-6, .min_repeats = 1, .expected_us = 1e6};
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 1);
    CU_ASSERT_EQUAL(result.total.median_us, 540);
    tnd_measure_close(measure);
    end();
}

static void measuring_stops_when_values_agree_or_the_budget_ends(void)
{
    begin(NULL);
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure_effort effort = {.budget_s = 1000, .max_repeats = 500};
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 7);
    /* Never agree: the budget of 10 ms ends it, 8 products of 1 ms a run after warming up. */
    costs_us[0] = 500;
    costs_us[1] = 1500;
    n_costs = 2;
    effort.budget_s = 0.010;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 7);
    /* Far above the budget: one run and no more. */
    costs_us[0] = costs_us[1] = 1000000;
    effort.min_repeats = 50;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(result.total.count, 7);
    tnd_measure_close(measure);
    end();
}

static void weights_rotate_through_the_bytes_that_were_asked_for(void)
{
    begin(NULL);
    options.rotate_bytes = 9 * 16 * 32 * sizeof(float) + 1;
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure_effort effort = {.budget_s = 100, .min_repeats = 60};
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(n_seen, 10);
    tnd_measure_close(measure);
    /* The limit counts more: room for 3 copies beside the activations. */
    n_seen = 0;
    options.limit_bytes = 3 * 16 * 32 * sizeof(float) + 4 * 32 * sizeof(float) + 10;
    measure = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    check_ok(tnd_measure_run(measure, 1, &choice, &effort, &result, NULL));
    check_int(n_seen, 3);
    tnd_measure_close(measure);
    end();
}

/* Small packed copies that served for all rows would stay in the cache. */
static void packed_copies_rotate_as_the_rows_do(void)
{
    begin(NULL);
    size_t weight_bytes = 64 * tandem_type_row_bytes(TANDEM_TYPE_Q4_0, 256);
    options.rotate_bytes = 19 * weight_bytes + 1;
    struct tandem_plan_node choice;
    int profile = tnd_profile_find(registry, "cpu-packed");
    if (profile < 0 ||
        !tnd_plan_node_for_profile(registry, profile, TANDEM_TYPE_Q4_0, 1, &choice)) {
        end(); /* no kernels for packed weights on this CPU */
        return;
    }
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_Q4_0, 64, 256, 4);
    check_ok(tnd_measure_prepare(measure, &choice, NULL));
    size_t bytes = tnd_backend_prepared_bytes(tnd_registry_backend(registry, TANDEM_BACKEND_CPU));
    CU_ASSERT_TRUE(bytes >= 20 * weight_bytes);
    tnd_measure_close(measure);
    check_int(tnd_backend_prepared_bytes(tnd_registry_backend(registry, TANDEM_BACKEND_CPU)), 0);
    end();
}

static void what_is_measured_is_a_right_product(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16,
                                             TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q2_K,
                                             TANDEM_TYPE_Q6_K};
    begin(NULL);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct tnd_measure *measure = open_measure(types[i], 70, 256, 9);
        struct tandem_plan_node choice = choose("cpu", TANDEM_TASK_NODE);
        struct tnd_measure_result result;
        float *want = malloc(70 * 9 * sizeof(float));
        for (int64_t m = 9; m > 0; m -= 4) {
            check_ok(tnd_measure_run(measure, m, &choice, NULL, &result, NULL));
            check_ok(tnd_measure_reference(measure, m, want, NULL));
            check_nmse(tnd_measure_output(measure), want, 70 * m, 5e-4, tandem_type_name(types[i]));
        }
        free(want);
        tnd_measure_close(measure);
    }
    end();
}

static void mistakes_have_a_reason(void)
{
    begin(NULL);
    struct tnd_measure *measure = NULL;
    struct tandem_error error = {0};
    check_status(tnd_measure_open(&options, TANDEM_TYPE_Q4_0, 8, 33, 1, &measure, &error),
                 TANDEM_E_ARGUMENT, "no multiple of the 32", &error);
    check_status(tnd_measure_open(&options, TANDEM_TYPE_F32, 0, 33, 1, &measure, &error),
                 TANDEM_E_ARGUMENT, "n 0", &error);
    check_status(tnd_measure_open(&options, TANDEM_TYPE_F32, 1 << 20, 1 << 20, 1, &measure, &error),
                 TANDEM_E_LIMIT, "allowed are", &error);
    check_status(
        tnd_measure_open(&options, TANDEM_TYPE_F32, INT64_MAX / 2, 1 << 20, 1, &measure, &error),
        TANDEM_E_OVERFLOW, "too large", &error);
    CU_ASSERT_PTR_NULL(measure);
    measure = open_measure(TANDEM_TYPE_F32, 8, 8, 4);
    CU_ASSERT_PTR_NULL(tnd_measure_output(measure));
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure_result result;
    check_status(tnd_measure_run(measure, 5, &choice, NULL, &result, &error), TANDEM_E_ARGUMENT,
                 "1 to 4", &error);
    ticker_answer = TANDEM_E_DEVICE_LOST;
    check_status(tnd_measure_run(measure, 4, &choice, NULL, &result, &error), TANDEM_E_DEVICE_LOST,
                 NULL, &error);
    ticker_answer = TANDEM_OK;
    check_ok(tnd_measure_run(measure, 4, &choice, NULL, &result, &error));
    choice.stage[TANDEM_STAGE_COMPUTE].backend = 15;
    CU_ASSERT_NOT_EQUAL(tnd_measure_run(measure, 4, &choice, NULL, &result, &error), TANDEM_OK);
    tnd_measure_close(measure);
    tnd_measure_close(NULL);
    end();
}

static void every_failing_allocation_is_an_error_without_a_leak(void)
{
    begin(NULL);
    struct tandem_plan_node choice = choose("ticker", TANDEM_TASK_MUL_MAT_F32);
    struct tnd_measure *warm = open_measure(TANDEM_TYPE_F32, 16, 32, 4);
    struct tnd_measure_result result;
    check_ok(tnd_measure_run(warm, 3, &choice, NULL, &result, NULL)); /* the executor's buffers */
    tnd_measure_close(warm);
    long live = tnd_alloc_live();
    bool succeeded = false;
    for (long nth = 1; nth < 200 && !succeeded; nth++) {
        struct tnd_measure *measure = NULL;
        struct tandem_error error = {0};
        tnd_alloc_fail_after(nth);
        enum tandem_status status =
            tnd_measure_open(&options, TANDEM_TYPE_F32, 16, 32, 4, &measure, &error);
        if (status == TANDEM_OK) {
            status = tnd_measure_run(measure, 3, &choice, NULL, &result, &error);
        }
        tnd_alloc_fail_after(-1);
        succeeded = status == TANDEM_OK;
        check_status(status, succeeded ? TANDEM_OK : TANDEM_E_MEMORY, NULL, &error);
        tnd_measure_close(measure);
        check_int(tnd_alloc_live(), live);
    }
    CU_ASSERT_TRUE(succeeded);
    end();
}

/* A device with memory of its own: 250 us a work, 1000 bytes a microsecond each way. */
static void begin_with_device(void)
{
    begin(NULL);
    check_ok(tnd_registry_add(registry, &tnd_sim_own_api,
                              "latency_us=250,upload_gbps=1,download_gbps=1", NULL));
    tnd_sim_set_clock(tnd_registry_backend(registry, tnd_registry_find(registry, "simown", NULL)),
                      &virtual_clock.clock);
}

static void transfers_of_a_device_are_measured_apart(void)
{
    begin_with_device();
    struct tnd_measure_result result;
    struct tandem_plan_node choice = choose("simown", TANDEM_TASK_NODE);
    struct tnd_measure *measure = open_measure(TANDEM_TYPE_F32, 64, 128, 4);
    check_ok(tnd_measure_run(measure, 4, &choice, NULL, &result, NULL));
    CU_ASSERT_EQUAL(result.stage[TANDEM_STAGE_COMPUTE].median_us, 250);
    double result_us = 4 * 64 * 4 / 1000.0; /* the way of the result */
    CU_ASSERT_TRUE(result.moving.median_us >= result_us);
    CU_ASSERT_DOUBLE_EQUAL(result.total.median_us, 250 + result.moving.median_us, 1e-6);
    tnd_measure_close(measure);
    /* As in a program, X comes along. */
    double moving_us = result.moving.median_us;
    options.is_whole = true;
    measure = open_measure(TANDEM_TYPE_F32, 64, 128, 4);
    check_ok(tnd_measure_run(measure, 4, &choice, NULL, &result, NULL));
    CU_ASSERT_TRUE(result.total.median_us >= 250 + moving_us + 4 * 128 * 4 / 1000.0);
    struct tnd_sim_statistics statistics;
    tnd_measure_close(measure);
    tnd_sim_statistics(tnd_registry_backend(registry, tnd_registry_find(registry, "simown", NULL)),
                       &statistics);
    check_int(statistics.residents, 0); /* nothing stays on the device */
    end();
}

static void transfers_give_latency_and_rate(void)
{
    begin_with_device();
    tandem_table *table = tune_new();
    int slot = tnd_registry_find(registry, "simown", NULL);
    check_ok(tnd_measure_transfers(registry, slot, &virtual_clock.clock, 1 << 20, 77, table, NULL));
    check_ok(tnd_measure_transfers(registry, 1, &virtual_clock.clock, 1 << 20, 77, table, NULL));
    check_int(table->n_transfers, 2);
    for (int d = 0; d < TND_DIRECTIONS; d++) {
        const struct tnd_curve *curve = tnd_table_transfer(table, "simown", (enum tnd_direction)d);
        CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
        check_int(curve->n_samples, 5);
        check_int(curve->samples[0].m, 4096);
        check_int(curve->samples[4].when, 77);
        double slope = curve->samples[4].median_us - curve->samples[3].median_us;
        CU_ASSERT_DOUBLE_EQUAL(slope, ((1 << 20) - (1 << 18)) / 1000.0, 1);
    }
    tandem_table_free(table);
    end();
}

static void a_failing_device_ends_the_measuring_of_transfers(void)
{
    tandem_table *table = tune_new();
    bool passed = false;
    for (int nth = 1; nth < 5000 && !passed; nth += 13) {
        struct tnd_registry_options registry_options = {"cpu", NULL, 1, {0}};
        struct tnd_registry *mine = NULL;
        char settings[64];
        struct tandem_error error = {0};
        snprintf(settings, sizeof(settings), "latency_us=999,fail=any,fail_at=%d", nth);
        tnd_clock_virtual_init(&virtual_clock, 5000);
        check_ok(tnd_registry_open(&registry_options, &mine, NULL));
        check_ok(tnd_registry_add(mine, &tnd_sim_own_api, settings, NULL));
        int slot = tnd_registry_find(mine, "simown", NULL);
        tnd_sim_set_clock(tnd_registry_backend(mine, slot), &virtual_clock.clock);
        passed = tnd_measure_transfers(mine, slot, &virtual_clock.clock, 4096, 77, table, &error) ==
                 TANDEM_OK;
        tnd_registry_close(mine);
    }
    CU_ASSERT_TRUE(passed);
    tandem_table_free(table);
}

static void peaks_are_measured_within_their_budget_and_reading_only_with_time_for_it(void)
{
    static const int counts[] = {1, 2, 64};
    begin(NULL);
    tandem_table *table = tune_new();
    check_ok(tnd_measure_peaks(pool, &virtual_clock.clock, counts, 3, 1, 5, table, NULL));
    check_int(table->n_peaks, 0); /* the clock stands still */
    check_ok(tnd_measure_peaks(pool, tnd_clock_real(), counts, 3, 0.01, 5, table, NULL));
    CU_ASSERT_TRUE(tnd_table_peak(table, "fma", 1) > 0 && tnd_table_peak(table, "int8", 2) > 0);
    CU_ASSERT_TRUE(tnd_table_peak(table, "read", 1) + tnd_table_peak(table, "cache", 1) == 0);
    for (int i = 0; i < table->n_peaks; i++) {
        CU_ASSERT_TRUE(table->peaks[i].threads <= 2 && table->peaks[i].count >= 2);
        check_int(table->peaks[i].when, 5);
    }
    /* time to fill twice the last cache, which is 300 MiB on some servers */
    double budget_s = 0.25 + 2.1 * (double)tnd_cpu_caches().l3_bytes / TND_PEAK_BYTES_A_SECOND;
    check_ok(tnd_measure_peaks(pool, tnd_clock_real(), counts, 1, budget_s, 5, table, NULL));
    CU_ASSERT_TRUE(tnd_table_peak(table, "read", 1) > 0);
    CU_ASSERT_TRUE(tnd_table_peak(table, "cache", 1) > 0);
    tandem_table_free(table);
    end();
}

/* The pretended device under the name of the real one: a sweep of all its profiles. */
static struct tandem_backend_api opencl_api;

static bool stop_never(void *user, const struct tnd_bench_progress *progress)
{
    (void)user;
    (void)progress;
    return false;
}

static void a_sweep_measures_all_profiles_of_a_device(void)
{
    static const char *const names[] = {"cpu", "opencl", "cpu+clblast", "opencl+clblast"};
    struct tnd_shapes shapes = {.model = "custom", .count = 1, .shape = {{64, 128}}};
    struct tnd_bench_options bench = {
        .shapes = &shapes,
        .n_types = 1,
        .types = {TANDEM_TYPE_Q4_0},
        .n_m = 2,
        .m = {1, 4},
        .n_thread_counts = 1,
        .thread_counts = {1},
        .progress = stop_never,
    };
    begin(NULL);
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_add(registry, &opencl_api, "latency_us=300,upload_gbps=1,download_gbps=1",
                              NULL));
    int slot = tnd_registry_find(registry, "opencl", NULL);
    tnd_sim_set_clock(tnd_registry_backend(registry, slot), &virtual_clock.clock);
    bench.measure = options;
    tandem_table *table = tune_new();
    struct tandem_error error = {0};
    check_status(tnd_bench_run(&bench, table, NULL, &error), TANDEM_OK, NULL, &error);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CU_ASSERT_PTR_NOT_NULL(tnd_table_profile(table, names[i]));
    }
    check_int(table->n_transfers, 2);
    /* The product takes 300 us on the device, less a round trip of as much: a quarter is kept. */
    struct tnd_curve_key key = tune_key(64, 128, TANDEM_TASK_NODE, false, 1);
    strcpy(key.backend, "opencl");
    const struct tnd_curve *curve = tnd_table_find(table, &key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
    CU_ASSERT_DOUBLE_EQUAL(curve->samples[0].median_us, 75, 1);
    table->gpu_kind = TANDEM_KIND_CLBLAST;
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_contains(tnd_text_string(&text), " Q4_0 5 CLBLAST 1 ");
    tandem_table *again = tune_parse(text.bytes);
    CU_ASSERT_PTR_NOT_NULL(tnd_table_profile(again, "cpu+clblast"));
    CU_ASSERT_PTR_NOT_NULL(tnd_table_profile(again, "opencl+clblast"));
    tandem_table_free(again);
    tnd_text_fini(&text);
    tandem_table_free(table);
    end();
}

/* ---- the run of a bench in virtual time: one device, whose works take 300 us ---- */

static struct tnd_shapes device_shapes;
static struct tnd_bench_options device_bench;
static uint64_t stop_at_visit;

static bool stop_then(void *user, const struct tnd_bench_progress *progress)
{
    (void)user;
    CU_ASSERT_TRUE(progress->elapsed_s >= 0 && progress->left_s >= -1e-3);
    return (uint64_t)progress->trials == stop_at_visit;
}

static void begin_bench_of_device(void)
{
    begin(NULL);
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_add(registry, &opencl_api, "latency_us=300,upload_gbps=1,download_gbps=1",
                              NULL));
    int slot = tnd_registry_find(registry, "opencl", NULL);
    tnd_sim_set_clock(tnd_registry_backend(registry, slot), &virtual_clock.clock);
    device_shapes = (struct tnd_shapes){
        .model = "custom", .count = 2, .shape = {{64, 128}, {96, 64}}, .use = {{.calls = 9}}};
    device_bench = (struct tnd_bench_options){.measure = options,
                                              .shapes = &device_shapes,
                                              .n_types = 1,
                                              .types = {TANDEM_TYPE_Q4_0},
                                              .n_thread_counts = 1,
                                              .thread_counts = {1},
                                              .profile = "opencl",
                                              .progress = stop_then};
    stop_at_visit = 0;
}

static double virtual_s(void)
{
    return (double)virtual_clock.clock.now_ns(&virtual_clock.clock) / 1e9;
}

static void a_budget_holds_all_that_a_bench_does(void)
{
    static const double budgets_s[] = {5, 15, 60};
    int cells_before = 0;
    for (int i = 0; i < 3; i++) {
        begin_bench_of_device();
        device_bench.n_m = TND_MAX_BENCH_M; /* more than there is time for */
        for (int m = 0; m < TND_MAX_BENCH_M; m++) {
            device_bench.m[m] = m + 1;
        }
        device_bench.measure.rotate_bytes = 1;
        device_bench.budget_s = budgets_s[i];
        device_bench.reserve_s = 0.01 * budgets_s[i];
        struct tnd_bench_summary summary;
        struct tandem_error error = {0};
        tandem_table *table = tune_new();
        double begin_s = virtual_s();
        check_status(tnd_bench_run(&device_bench, table, &summary, &error), TANDEM_OK, NULL,
                     &error);
        double took_s = virtual_s() - begin_s;
        CU_ASSERT_TRUE(took_s <= 0.99 * budgets_s[i]);
        CU_ASSERT_TRUE(took_s >= 0.95 * budgets_s[i] || summary.is_certain);
        CU_ASSERT_DOUBLE_EQUAL(summary.elapsed_s, took_s, 1e-6);
        CU_ASSERT_TRUE(summary.cells >= cells_before);
        CU_ASSERT_TRUE(summary.is_certain || summary.unmeasured > 0 || summary.trials > 128);
        cells_before = summary.cells;
        tandem_table_free(table);
        end();
    }
}

static void a_bench_that_is_stopped_keeps_what_it_measured(void)
{
    begin_bench_of_device();
    stop_at_visit = 3;
    struct tnd_bench_summary summary;
    struct tandem_error error = {0};
    tandem_table *table = tune_new();
    check_status(tnd_bench_run(&device_bench, table, &summary, &error), TANDEM_E_CANCELLED,
                 "after 3", &error);
    check_int(summary.trials, 3);
    check_int(table->n_curves > 0, 1);
    check_int(table->n_transfers, 2);
    tandem_table_free(table);
    end();
}

static void a_bench_without_a_budget_ends_when_all_is_certain(void)
{
    begin_bench_of_device();
    struct tnd_bench_summary summary;
    tandem_table *table = tune_new();
    check_ok(tnd_bench_run(&device_bench, table, &summary, NULL));
    CU_ASSERT_TRUE(summary.is_certain);
    check_int(summary.unmeasured, 0);
    check_int(summary.unknown, 0);
    check_int(summary.lines, 2);
    /* The full sweep has more cells, each measured twice. */
    int few = summary.cells;
    device_bench.effort = TND_EFFORT_PATIENT;
    check_ok(tnd_bench_run(&device_bench, table, &summary, NULL));
    check_int(summary.cells, 2 * 18);
    CU_ASSERT_TRUE(summary.trials >= 2 * summary.cells && few < summary.cells);
    tandem_table_free(table);
    end();
}

/* The first OpenCL device there is: what bench says about it serves the planner. */
static void a_sweep_over_the_machines_own_device(void)
{
    struct tnd_registry_options registry_options = {
        "openblas,opencl", "opencl:device=0,cache=off", 4, {0}};
    struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    struct tnd_shapes shapes = {.model = "custom", .count = 1, .shape = {{48, 64}}};
    struct tnd_bench_options bench = {.shapes = &shapes,
                                      .n_types = 1,
                                      .types = {TANDEM_TYPE_Q4_0},
                                      .n_m = 1,
                                      .m = {1},
                                      .n_thread_counts = 1,
                                      .thread_counts = {1},
                                      .profile = "opencl",
                                      .budget_s = 4};
    const char *reason = NULL;
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    if (tnd_registry_find(registry, "opencl", &reason) < 0) {
        tnd_skip("opencl: %s", reason);
        tnd_registry_close(registry);
        return;
    }
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
    bench.measure = (struct tnd_measure_options){.registry = registry,
                                                 .exec = exec,
                                                 .clock = tnd_clock_real(),
                                                 .rotate_bytes = 1,
                                                 .seed = tnd_test_seed()};
    tandem_table *table = tune_new();
    struct tandem_error error = {0};
    check_status(tnd_bench_run(&bench, table, NULL, &error), TANDEM_OK, NULL, &error);
    check_int(table->n_transfers, 2);
    check_int(table->n_curves, 1);
    check_string(table->n_curves == 1 ? table->curves[0].key.backend : "", "opencl");
    tnd_fingerprint_read_all(registry, &table->fingerprint);
    const char *device = tnd_fingerprint_identity(&table->fingerprint, "opencl", "device");
    CU_ASSERT_TRUE(device[0] != '\0');
    CU_ASSERT_TRUE(tnd_fingerprint_identity(&table->fingerprint, "opencl", "driver")[0] != '\0');
    CU_ASSERT_PTR_NULL(strchr(device, ','));
    int slot = tnd_registry_find(registry, "opencl", NULL);
    struct tnd_op_work work = {.op = TANDEM_OP_ADD, .n = 64, .k = 1, .m = 8, .shares = 1};
    struct tnd_estimate time;
    CU_ASSERT_FALSE(tnd_op_device_estimate(table, &work, "opencl", &time));
    check_ok(tnd_measure_device_ops(&bench.measure, slot, 0, 0.2, 7, table, &error));
    CU_ASSERT_TRUE(table->n_curves > 1);
    CU_ASSERT_TRUE(tnd_op_device_estimate(table, &work, "opencl", &time));
    CU_ASSERT_FALSE(tnd_op_estimate(table, &work, 1, &time));
    tandem_table_free(table);
    end();
}

static CU_TestInfo tests[] = {
    {"a budget holds all that a bench does", a_budget_holds_all_that_a_bench_does},
    {"a bench that is stopped keeps what it measured",
     a_bench_that_is_stopped_keeps_what_it_measured},
    {"a bench without a budget ends when all is certain",
     a_bench_without_a_budget_ends_when_all_is_certain},
    {"a sweep over the machine's own device", a_sweep_over_the_machines_own_device},
    {"a sweep measures all profiles of a device", a_sweep_measures_all_profiles_of_a_device},
    {"transfers of a device are measured apart", transfers_of_a_device_are_measured_apart},
    {"transfers give latency and rate", transfers_give_latency_and_rate},
    {"a failing device ends the measuring of transfers",
     a_failing_device_ends_the_measuring_of_transfers},
    {"peaks are measured within their budget and reading only with time for it",
     peaks_are_measured_within_their_budget_and_reading_only_with_time_for_it},
    {"a device takes the time of its script", a_device_takes_the_time_of_its_script},
    {"stages are timed one by one and together", stages_are_timed_one_by_one_and_together},
    {"every product is timed by itself", every_product_is_timed_by_itself},
    {"the result is the median and the median deviation",
     the_result_is_the_median_and_the_median_deviation},
    {"samples beside another program are left out", samples_beside_another_program_are_left_out},
    {"measuring stops when values agree or the budget ends",
     measuring_stops_when_values_agree_or_the_budget_ends},
    {"weights rotate through the bytes that were asked for",
     weights_rotate_through_the_bytes_that_were_asked_for},
    {"packed copies rotate as the rows do", packed_copies_rotate_as_the_rows_do},
    {"what is measured is a right product", what_is_measured_is_a_right_product},
    {"mistakes have a reason", mistakes_have_a_reason},
    {"every failing allocation is an error without a leak",
     every_failing_allocation_is_an_error_without_a_leak},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_product[];
CU_SuiteInfo suites_measure_product[] = {
    {"measure", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
