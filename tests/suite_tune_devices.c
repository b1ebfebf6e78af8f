/* SPDX-License-Identifier: MIT
 * Devices in plans: profiles of OpenCL, placement of graphs. A made-up backend stands under the
 * name of the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/exec.h"
#include "tests/support_tune.h"
#include "tune/candidates.h"
#include "tune/explain.h"
#include "tune/place.h"
#include "tune/planner.h"
#include "tune/profiles.h"
#include "tune/stream_cost.h"

/* ---- a device that accepts works and never does them ---- */

static const struct tandem_backend_api device_api;

static enum tandem_status device_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    *out_backend = calloc(1, sizeof(**out_backend));
    (*out_backend)->api = &device_api;
    return TANDEM_OK;
}

static void device_close(tandem_backend *backend)
{
    free(backend);
}

static enum tandem_op unsupported = TANDEM_OP_NONE;

static enum tandem_status device_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)task;
    (void)error;
    return node->op == unsupported ? TANDEM_E_UNSUPPORTED_BACKEND : TANDEM_OK;
}

static enum tandem_status device_submit(tandem_backend *backend, const struct tandem_work *work,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    (void)backend;
    (void)work;
    (void)out_ticket;
    (void)error;
    return TANDEM_E_DEVICE;
}

static enum tandem_status device_sync(tandem_backend *backend, uint64_t ticket,
                                      struct tandem_error *error)
{
    (void)backend;
    (void)ticket;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                     struct tandem_error *error)
{
    (void)bytes;
    (void)error;
    *out_handle = backend;
    return TANDEM_OK;
}

static void device_unmap(tandem_backend *backend, void *handle)
{
    (void)backend;
    (void)handle;
}

static enum tandem_status device_upload(tandem_backend *backend, struct tandem_place to,
                                        const void *from, size_t bytes, struct tandem_error *error)
{
    (void)backend;
    (void)to;
    (void)from;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_download(tandem_backend *backend, struct tandem_place from,
                                          void *to, size_t bytes, uint64_t *out_ticket,
                                          struct tandem_error *error)
{
    (void)backend;
    (void)from;
    (void)to;
    (void)bytes;
    (void)error;
    *out_ticket = 1;
    return TANDEM_OK;
}

static const struct tandem_backend_api device_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "opencl",
    .kind = TANDEM_KIND_OPENCL,
    .open = device_open,
    .close = device_close,
    .supports = device_supports,
    .submit = device_submit,
    .sync = device_sync,
    .memory = TANDEM_MEMORY_OWN,
    .map = device_map,
    .unmap = device_unmap,
    .upload = device_upload,
    .download = device_download,
};

static struct tnd_registry *registry;

static void set_up(void)
{
    struct tnd_registry_options options;
    memset(&options, 0, sizeof(options));
    options.backends = "openblas,opencl1"; /* the second device is asked for, and not there */
    options.settings = "opencl1:device=none";
    options.n_threads_max = 8;
    check_ok(tnd_registry_open(&options, &registry, NULL));
    check_ok(tnd_registry_add(registry, &device_api, NULL, NULL));
}

static void tear_down(void)
{
    tnd_registry_close(registry);
}

/* ---- profiles ---- */

static void the_profiles_of_a_device_name_its_stages(void)
{
    static const struct {
        const char *profile;
        const char *init, *compute;
        enum tandem_task compute_task;
        enum tandem_backend_kind compute_kind;
    } want[] = {
        {"opencl", "", "opencl", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast", "cpu", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+clblast", "opencl", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+openblas", "opencl", "openblas", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_OPENBLAS},
        {"opencl@opencl1", "", "opencl1", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast@opencl1", "cpu", "opencl1", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct tnd_table_profile found;
        memset(&found, 0, sizeof(found));
        CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, want[i].profile, TANDEM_TYPE_Q4_0, &found));
        const struct tnd_table_stage *init = &found.stage[TANDEM_STAGE_INIT];
        const struct tnd_table_stage *compute = &found.stage[TANDEM_STAGE_COMPUTE];
        check_string(init->backend, want[i].init);
        check_string(compute->backend, want[i].compute);
        check_int(init->task, want[i].init[0] != '\0' ? TANDEM_TASK_DEQUANTIZE_W : 0);
        check_int(compute->task, want[i].compute_task);
        check_int(compute->kind, want[i].compute_kind);
        CU_ASSERT_TRUE(compute->wait);
        CU_ASSERT_FALSE(compute->parallel);
        /* What the device computes is fetched from it. */
        const struct tnd_table_stage *finalize = &found.stage[TANDEM_STAGE_FINALIZE];
        bool is_on_host = want[i].compute_kind == TANDEM_KIND_OPENBLAS;
        check_string(finalize->backend, is_on_host ? "" : want[i].compute);
        check_int(finalize->kind, is_on_host ? 0 : want[i].compute_kind);
        check_int(finalize->task, is_on_host ? TANDEM_TASK_NONE : TANDEM_TASK_FINALIZE);
        /* F32 weights need no INIT, indices are no weights. */
        CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, want[i].profile, TANDEM_TYPE_F32, &found));
        check_string(found.stage[TANDEM_STAGE_INIT].backend, "");
        CU_ASSERT_FALSE(tnd_profile_describe_name(NULL, want[i].profile, TANDEM_TYPE_I32, &found));
    }
}

static void a_profile_resolves_where_its_device_is_open_and_else_says_why(void)
{
    struct tandem_task_config stages[TANDEM_STAGES];
    struct tnd_table_profile profile;
    char reason[128] = "";
    int slot = tnd_registry_find(registry, "opencl", NULL);
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu+clblast", TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_TRUE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_int(stages[TANDEM_STAGE_INIT].backend, TANDEM_BACKEND_CPU);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_INIT].parallel);
    check_int(stages[TANDEM_STAGE_COMPUTE].backend, slot);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_COMPUTE].wait);
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl@opencl1", TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_FALSE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_contains(reason, "opencl1");
}

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K };

/* ---- placement ---- */

static struct tnd_planner *planner;
static tandem_context *context;
static tandem_table *costs;

static char last_log[512];
static int log_lines;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    snprintf(last_log, sizeof(last_log), "%s", text);
    log_lines++;
}

static void set_up_planner(void)
{
    set_up();
    log_lines = 0;
    unsupported = TANDEM_OP_NONE;
    const struct tnd_planner_options options = {.registry = registry,
                                                .clock = tnd_clock_real(),
                                                .log = {remember_line, NULL, TANDEM_LOG_INFO}};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    costs = tune_new();
}

static void tear_down_planner(void)
{
    tnd_planner_free(planner);
    tandem_context_free(context);
    tandem_table_free(costs);
    tear_down();
}

/* One layer of N x N products with an activation between, `n_layers` times over; M tokens. Every
 * third node is a product. */
static tandem_graph *chain(int n_layers, int64_t m)
{
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    for (int i = 0; i < n_layers; i++) {
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_tensor *y = tandem_silu(context, tandem_mul_mat(context, w, x)); /* N x M */
        x = tandem_concat(context, y, y, 0);                                    /* K x M */
    }
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

/* "dhh": backends of the nodes, device or host, in a static buffer. */
static const char *homes(const tandem_graph *graph)
{
    static char text[256];
    tandem_plan *plan = NULL;
    int slot = tnd_registry_find(registry, "opencl", NULL);
    memset(text, 0, sizeof(text));
    if (check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL))) {
        for (int i = 0; i < tandem_plan_node_count(plan) && i < 255; i++) {
            const struct tandem_plan_node *node = tandem_plan_node(plan, i);
            text[i] = node->stage[TANDEM_STAGE_COMPUTE].backend == slot ? 'd' : 'h';
        }
    }
    tandem_plan_free(plan);
    return text;
}

static void without_a_table_a_device_is_not_used(void)
{
    check_string(homes(chain(2, 64)), "hhhhhh");
    check_string(homes(chain(2, 64)), "hhhhhh");
    check_int(log_lines, 1); /* once */
    check_contains(last_log, "opencl is open but was never measured");
    tune_add_cost(costs, "cpu", 50, 0);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 4)), "hhhhhh");
    check_int(log_lines, 2); /* the new table does not know it either */
}

static void a_chain_stays_on_a_device_that_pays_as_a_whole(void)
{
    tune_add_cost(costs, "cpu", 50, 0); /* two stages: 100 us */
    tune_add_cost(costs, "opencl", 80, 0);
    tune_add_link(costs, "opencl", 60, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(1, 4)), "hhh"); /* 60 + 80 + 60 us */
    /* 100 us for each layer against 120 us once and 80 us for each: */
    check_string(homes(chain(5, 4)), "hhhhhhhhhhhhhhh");
    check_string(homes(chain(7, 4)), "ddddddddddddddddddddd");
}

/* "-f": nodes that FINALIZE of the plan fetches from the device, in a static buffer. */
static const char *fetches(const tandem_graph *graph, double predicted_us)
{
    static char text[256];
    tandem_plan *plan = NULL;
    int slot = tnd_registry_find(registry, "opencl", NULL);
    memset(text, 0, sizeof(text));
    if (check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL))) {
        for (int i = 0; i < tandem_plan_node_count(plan) && i < 255; i++) {
            const struct tandem_plan_node *node = tandem_plan_node(plan, i);
            const struct tandem_task_config *finalize = &node->stage[TANDEM_STAGE_FINALIZE];
            bool is_there = finalize->backend != TANDEM_BACKEND_NONE;
            text[i] = is_there ? 'f' : '-';
            check_int(finalize->backend, is_there ? slot : 0);
            check_int(finalize->task, is_there ? TANDEM_TASK_FINALIZE : TANDEM_TASK_NONE);
            CU_ASSERT_DOUBLE_EQUAL(node->predicted_us[TANDEM_STAGE_FINALIZE],
                                   is_there ? predicted_us : 0, 0.01);
        }
    }
    tandem_plan_free(plan);
    return text;
}

static void a_result_that_the_host_reads_is_fetched_by_finalize(void)
{
    tune_add_cost(costs, "cpu", 500, 0);
    tune_add_cost(costs, "opencl", 10, 0);
    tune_add_link(costs, "opencl", 10, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 4)), "dddddd");
    check_string(fetches(chain(2, 4), 10), "-----f"); /* the output alone */
    unsupported = TANDEM_OP_CONCAT;
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 4)), "ddhddh");
    check_string(fetches(chain(2, 4), 10), "-f--f-");
    tnd_planner_set_table(planner, NULL);
    check_string(fetches(chain(2, 4), 0), "------");
}

static void a_slow_device_is_left_alone(void)
{
    tune_add_cost(costs, "cpu", 50, 0);
    tune_add_cost(costs, "opencl", 101, 0);
    tune_add_link(costs, "opencl", 0.001, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(8, 4)), "hhhhhhhhhhhhhhhhhhhhhhhh");
}

static void what_a_device_cannot_do_comes_back_to_the_host(void)
{
    unsupported = TANDEM_OP_CONCAT;
    tune_add_cost(costs, "cpu", 500, 0);
    tune_add_cost(costs, "opencl", 10, 0);
    tune_add_link(costs, "opencl", 10, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(3, 4)), "ddhddhddh");
    unsupported = TANDEM_OP_SILU; /* concat's operands are not on the device then */
    check_string(homes(chain(2, 4)), "dhhdhh");
}

static void transfers_count_by_their_bytes(void)
{
    tune_add_cost(costs, "cpu", 20, 0);
    tune_add_cost(costs, "opencl", 20, 0);
    tune_add_link(costs, "opencl", 0.1, 100); /* 4 * 512 * 64 bytes: 1311 us */
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 64)), "hhhhhh");
}

/* Weights that anybody may change travel each time. */
static void weights_without_a_role_count_as_transfers(void)
{
    tune_add_cost(costs, "cpu", 50, 0);
    tune_add_cost(costs, "opencl", 20, 0);
    tune_add_link(costs, "opencl", 1, 1000);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(1, 4)), "ddd");
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4});
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x)); /* 73,728 bytes: 75 us */
    check_ok(tandem_graph_finish(graph, NULL));
    check_string(homes(graph), "h");
}

static void a_forced_device_takes_all_that_it_supports(void)
{
    tnd_planner_force(planner, tnd_profile_find(registry, "opencl"));
    check_string(homes(chain(2, 4)), "dddddd");
    unsupported = TANDEM_OP_SILU;
    tnd_planner_force(planner, tnd_profile_find(registry, "opencl+clblast"));
    check_string(homes(chain(2, 4)), "dhddhd");
    unsupported = TANDEM_OP_NONE;
    /* Operations follow the products of the other profiles. */
    tnd_planner_force(planner, tnd_profile_find(registry, "cpu+clblast"));
    check_string(homes(chain(2, 4)), "dddddd");
    tnd_planner_force(planner, tnd_profile_find(registry, "cpu"));
    check_string(homes(chain(2, 4)), "hhhhhh");
    if (tnd_registry_find(registry, "openblas", NULL) >= 0) {
        tnd_planner_force(planner, tnd_profile_find(registry, "opencl+openblas"));
        check_string(homes(chain(2, 4)), "hhhhhh");
    }
    /* The second device is not open: its profile applies nowhere. */
    tnd_planner_force(planner, tnd_profile_find(registry, "opencl@opencl1"));
    check_string(homes(chain(2, 4)), "hhhhhh");
}

static void workers_sleep_on_a_device_only_where_waking_is_cheaper(void)
{
    tandem_plan *plan = NULL;
    tune_add_cost(costs, "cpu", 500, 0);
    tune_add_cost(costs, "opencl", 40, 0);
    tune_add_link(costs, "opencl", 1, 1e9);
    tune_add_handoff(costs, 2, 1, 31);
    for (int i = 0; i < 2; i++) {
        tnd_planner_set_table(planner, costs);
        check_ok(tnd_planner_plan(planner, chain(1, 4), 2, &plan, NULL));
        const struct tandem_plan_node *node = tandem_plan_node(plan, 0);
        check_int(node->stage[TANDEM_STAGE_COMPUTE].wait, i == 0);
        check_int(node->reason, TANDEM_REASON_TABLE);
        CU_ASSERT_DOUBLE_EQUAL(node->predicted_us[TANDEM_STAGE_COMPUTE], 40, 0.01);
        tandem_plan_free(plan);
        costs->handoffs[0].wake_us = 51;
    }
}

static void a_device_out_of_service_is_not_planned_for(void)
{
    tune_add_cost(costs, "cpu", 500, 0);
    tune_add_cost(costs, "opencl", 10, 0);
    tune_add_link(costs, "opencl", 1, 1e9);
    tnd_planner_set_table(planner, costs);
    tandem_graph *graph = chain(2, 4);
    check_string(homes(graph), "dddddd");
    CU_ASSERT_TRUE(tnd_registry_quarantine(registry, tnd_registry_find(registry, "opencl", NULL),
                                           "it failed"));
    check_string(homes(graph), "hhhhhh");
    tnd_planner_force(planner, tnd_profile_find(registry, "opencl"));
    check_string(homes(graph), "hhhhhh");
}

static void placing_without_memory_is_an_error_without_a_leak(void)
{
    tandem_graph *graph = chain(2, 4);
    long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    tnd_planner_force(planner, tnd_profile_find(registry, "opencl"));
    for (long nth = 1; nth < 50 && status != TANDEM_OK; nth++) {
        tandem_plan *plan = NULL;
        tnd_alloc_fail_after(nth);
        status = tnd_planner_plan(planner, graph, 2, &plan, NULL);
        tnd_alloc_fail_after(-1);
        CU_ASSERT_TRUE(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        tandem_plan_free(plan);
        check_int(tnd_alloc_live(), live);
    }
    check_int(status, TANDEM_OK);
}

/* ---- what is placed is computed ---- */

/* As chain(), with values, and weights in Q8_0. */
static tandem_graph *real_chain(int n_layers, int64_t m, tandem_tensor **out_result)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    tnd_test_fill(&rng, tandem_tensor_data(x), K * m);
    for (int i = 0; i < n_layers; i++) {
        float row[K];
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q8_0, 2, (const int64_t[]){K, N});
        for (int64_t n = 0; n < N; n++) {
            tnd_test_fill(&rng, row, K);
            check_ok(tandem_quantize(TANDEM_TYPE_Q8_0, row,
                                     (char *)tandem_tensor_data(w) + (size_t)n * w->nb[1], K));
        }
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_tensor *y = tandem_silu(context, tandem_mul_mat(context, w, x));
        x = tandem_rms_norm(context, tandem_concat(context, y, y, 0), 1e-5F);
    }
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    *out_result = x;
    return graph;
}

static void graphs_give_the_right_result_wherever_they_are_placed(void)
{
    static struct tandem_backend_api opencl_api;
    static const char *const profiles[] = {"cpu", "opencl", "cpu+clblast", "opencl+clblast",
                                           "opencl+openblas"};
    enum { M = 5, LAYERS = 3 };
    struct tnd_registry_options registry_options = {.backends = "openblas", .n_threads_max = 4};
    const struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    struct tnd_registry *mine = NULL;
    struct tnd_planner *my_planner = NULL;
    struct tnd_pool *pool = NULL;
    struct tnd_exec *exec = NULL;
    tandem_tensor *y = NULL;
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_open(&registry_options, &mine, NULL));
    check_ok(tnd_registry_add(mine, &opencl_api, NULL, NULL));
    const struct tnd_planner_options options = {.registry = mine, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&options, &my_planner, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, mine, tnd_clock_real(), &exec, NULL));
    tandem_graph *graph = real_chain(LAYERS, M, &y);
    float *want = malloc(K * M * sizeof(float));
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        tandem_plan *plan = NULL;
        tnd_planner_force(my_planner, tnd_profile_find(mine, profiles[i]));
        check_ok(tnd_planner_plan(my_planner, graph, 2, &plan, NULL));
        memset(tandem_tensor_data(y), 0, K * M * sizeof(float));
        check_ok(tnd_exec_run(exec, graph, plan, NULL, NULL));
        if (i == 0) {
            memcpy(want, tandem_tensor_data(y), K * M * sizeof(float));
        }
        check_nmse(tandem_tensor_data(y), want, K * M, 5e-4, profiles[i]);
        tandem_plan_free(plan);
    }
    free(want);
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_planner_free(my_planner);
    tnd_registry_close(mine);
}

/* 8 experts of n x K, of which a token uses 4, with a router: priced by times of N x K. */
static tandem_graph *experts_of(int64_t n, int64_t m)
{
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 3, (const int64_t[]){K, n, 8});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (const int64_t[]){K, 1, m});
    tandem_tensor *scores = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){8, m});
    tandem_tensor *ids = tandem_top_k(context, scores, 4);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_tensor *y = tandem_mul_mat_id(context, w, x, ids);
    tandem_graph_add(graph, tandem_weighted_sum(context, y, tandem_gather(context, scores, ids)));
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

static void experts_run_where_they_are_predicted_to_be_faster(void)
{
    tune_add_cost(costs, "cpu", 50, 10); /* two stages */
    tune_add_cost(costs, "opencl", 100, 1);
    tune_add_link(costs, "opencl", 10, 1e9);
    tnd_planner_set_table(planner, costs);
    /* one token: 4 x 64 rows; 64 tokens: 32 for each expert, all 8 x 32 rows */
    check_string(homes(experts_of(64, 1)), "hhhh");
    check_string(homes(experts_of(32, 64)), "dddd");
    unsupported = TANDEM_OP_MUL_MAT_ID;
    tnd_planner_set_table(planner, costs);
    check_string(homes(experts_of(32, 64)), "hhhh");
    unsupported = TANDEM_OP_NONE;
}

/* Rows of a matrix of weights are what a split shares; experts have a third dimension. */
static void experts_are_not_split_by_rows(void)
{
    tandem_plan *plan = NULL;
    tune_add_cost(costs, "cpu", 0, 100);
    tune_add_cost(costs, "opencl", 0, 200);
    tune_add_link(costs, "opencl", 1, 1e9);
    tnd_planner_set_table(planner, costs);
    check_ok(tnd_planner_plan(planner, chain(1, 64), 2, &plan, NULL));
    CU_ASSERT_TRUE(tandem_plan_part_count(plan) > 0);
    tandem_plan_free(plan);
    check_ok(tnd_planner_plan(planner, experts_of(256, 64), 2, &plan, NULL));
    check_int(tandem_plan_part_count(plan), 0);
    tandem_plan_free(plan);
}

/* Products take 100 us on the host and on the first four devices, 1 us on the fifth one. */
static bool product_on_many(void *user, const tandem_tensor *node, int side,
                            struct tnd_place_choice *out)
{
    (void)user;
    (void)node;
    memset(out, 0, sizeof(*out));
    out->us = side == 5 ? 1 : 100;
    out->node.n_threads = 1;
    out->node.stage[TANDEM_STAGE_COMPUTE].backend = (uint8_t)side; /* a mark */
    return true;
}

static void whole_on_host(void *user, const tandem_tensor *node, struct tandem_plan_node *out)
{
    (void)user;
    (void)node;
    memset(out, 0, sizeof(*out));
}

static void any_number_of_devices_is_placed_on(void)
{
    static const char *const names[] = {"opencl", "two", "three", "four", "five", "six"};
    static struct tandem_backend_api apis[6];
    static struct tnd_schedule_cache schedules;
    tandem_plan *plan = NULL;
    struct tnd_place_options options = {.registry = registry,
                                        .table = costs,
                                        .n_threads = 1,
                                        .product = product_on_many,
                                        .whole = whole_on_host};
    for (int i = 0; i < 6; i++) {
        apis[i] = device_api;
        apis[i].name = names[i];
        if (i > 0) {
            check_ok(tnd_registry_add(registry, &apis[i], NULL, NULL));
        }
        tune_add_link(costs, names[i], 10, 1e9);
    }
    options.n_devices = tnd_place_devices(registry, options.slots);
    options.graph = chain(5, 4);
    check_int(options.n_devices, 6);
    check_ok(tandem_plan_new(15, &plan, NULL));
    check_ok(tnd_place(&options, &schedules, plan, NULL));
    const struct tandem_plan_node *nodes = tandem_plan_node(plan, 0);
    for (int i = 0; i < options.graph->n_nodes; i++) {
        bool is_product = options.graph->nodes[i]->op == TANDEM_OP_MUL_MAT;
        check_int(nodes[i].stage[TANDEM_STAGE_COMPUTE].backend,
                  is_product ? 5 : tnd_registry_find(registry, "five", NULL));
    }
    tandem_plan_free(plan);
    tnd_schedule_cache_clear(&schedules);
}

static CU_TestInfo placement_tests[] = {
    {"any number of devices is placed on", any_number_of_devices_is_placed_on},
    {"graphs give the right result wherever they are placed",
     graphs_give_the_right_result_wherever_they_are_placed},
    {"experts run where they are predicted to be faster",
     experts_run_where_they_are_predicted_to_be_faster},
    {"experts are not split by rows", experts_are_not_split_by_rows},
    {"without a table a device is not used", without_a_table_a_device_is_not_used},
    {"a chain stays on a device that pays as a whole",
     a_chain_stays_on_a_device_that_pays_as_a_whole},
    {"a result that the host reads is fetched by FINALIZE",
     a_result_that_the_host_reads_is_fetched_by_finalize},
    {"a slow device is left alone", a_slow_device_is_left_alone},
    {"what a device cannot do comes back to the host",
     what_a_device_cannot_do_comes_back_to_the_host},
    {"transfers count by their bytes", transfers_count_by_their_bytes},
    {"weights without a role count as transfers", weights_without_a_role_count_as_transfers},
    {"a forced device takes all that it supports", a_forced_device_takes_all_that_it_supports},
    {"workers sleep on a device only where waking is cheaper",
     workers_sleep_on_a_device_only_where_waking_is_cheaper},
    {"a device out of service is not planned for", a_device_out_of_service_is_not_planned_for},
    {"placing without memory is an error without a leak",
     placing_without_memory_is_an_error_without_a_leak},
    CU_TEST_INFO_NULL,
};

/* ---- weights in flight ---- */

static bool is_refused;

static uint32_t refused_by(void *user, const tandem_tensor *weight)
{
    (void)user;
    CU_ASSERT_PTR_NOT_NULL(weight);
    return is_refused ? UINT32_C(1) << tnd_registry_find(registry, "opencl", NULL) : 0;
}

/* Of each product: computing takes 20 + M us on the device and 20 + 10 M us on the CPU, sending its
 * 73,728 bytes 134 us. */
static void set_up_streams(void)
{
    set_up_planner();
    tune_add_cost(costs, "cpu", 10, 5);
    tune_add_cost(costs, "opencl", 20, 1);
    tune_add_link(costs, "opencl", 60, 1e3);
    tnd_planner_set_refused(planner, refused_by, NULL);
    tnd_planner_set_table(planner, costs);
}

/* Of the second product: the first one may be computed here while weights of others travel. */
static const char *second_profile(int64_t m)
{
    static char name[32];
    tandem_plan *plan = NULL;
    if (check_ok(tnd_planner_plan(planner, chain(7, m), 2, &plan, NULL))) {
        snprintf(name, sizeof(name), "%s", tandem_plan_node(plan, 3)->profile);
    }
    tandem_plan_free(plan);
    return name;
}

static void weights_without_room_travel_for_prompts(void)
{
    is_refused = false;
    check_string(second_profile(4), "opencl");
    check_string(second_profile(16), "opencl");
    is_refused = true;
    check_string(second_profile(4), "cpu");
    check_string(second_profile(32), "opencl+stream");
    is_refused = false;
    check_string(second_profile(16), "opencl");
}

static void weights_in_flight_take_the_longer_of_both(void)
{
    struct tnd_table_profile streaming;
    struct tnd_table_profile resident;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl+stream", TANDEM_TYPE_Q4_0, &streaming));
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl", TANDEM_TYPE_Q4_0, &resident));
    CU_ASSERT_TRUE(tnd_profile_streams(&streaming) && !tnd_profile_streams(&resident));
    for (int64_t m = 16; m <= 512; m *= 2) {
        for (int is_alone = 0; is_alone < 2; is_alone++) {
            struct tnd_estimate stages[TANDEM_STAGES];
            struct tnd_estimate total;
            double sent_us = 60 + 73728 / 1e3;
            double compute_us = 20 + (double)m;
            CU_ASSERT_TRUE(tnd_estimate_stages(costs, &streaming, TANDEM_TYPE_Q4_0, N, K, m, 1,
                                               false, stages, &total));
            CU_ASSERT_DOUBLE_EQUAL(total.us, compute_us, 1e-6);
            tnd_stream_add(costs, &streaming, TANDEM_TYPE_Q4_0, N, K, is_alone,
                           &stages[TANDEM_STAGE_COMPUTE], &total);
            double longer_us = sent_us > compute_us ? sent_us : compute_us;
            CU_ASSERT_DOUBLE_EQUAL(total.us, is_alone ? sent_us + compute_us : longer_us, 1e-6);
            tnd_stream_add(costs, &resident, TANDEM_TYPE_Q4_0, N, K, is_alone,
                           &stages[TANDEM_STAGE_COMPUTE], &total);
            CU_ASSERT_DOUBLE_EQUAL(total.us, is_alone ? sent_us + compute_us : longer_us, 1e-6);
        }
    }
}

static void weights_in_flight_bear_the_slow_down_that_was_measured(void)
{
    struct tnd_table_profile streaming;
    struct tnd_estimate stages[TANDEM_STAGES];
    struct tnd_estimate before[2];
    struct tnd_estimate after[2];
    struct tnd_slowdown slowdown = {
        .backend = "opencl", .beside = "opencl", .factor = 1.25, .count = 5, .when = 1};
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl+stream", TANDEM_TYPE_Q4_0, &streaming));
    for (int i = 0; i < 4; i++) {
        struct tnd_estimate *total = i < 2 ? &before[i] : &after[i - 2];
        if (i == 2) {
            check_ok(tnd_table_add_slowdown(costs, &slowdown));
        }
        CU_ASSERT_TRUE(tnd_estimate_stages(costs, &streaming, TANDEM_TYPE_Q4_0, N, K, 64, 1, false,
                                           stages, total));
        tnd_stream_add(costs, &streaming, TANDEM_TYPE_Q4_0, N, K, i % 2 == 0,
                       &stages[TANDEM_STAGE_COMPUTE], total);
    }
    CU_ASSERT_DOUBLE_EQUAL(after[0].us, before[0].us, 1e-6); /* alone: nothing else is computed */
    CU_ASSERT_DOUBLE_EQUAL(after[1].us, 1.25 * before[1].us, 1e-3);
}

static void the_crossover_of_weights_in_flight_is_the_first_m_at_which_they_win(void)
{
    struct tnd_table_profile streaming;
    struct tnd_table_profile host;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl+stream", TANDEM_TYPE_Q4_0, &streaming));
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_Q4_0, &host));
    /* 20 + 10 M > 133.728 from M = 12 on */
    check_int(tnd_stream_crossover(costs, &streaming, &host, TANDEM_TYPE_Q4_0, N, K, 1, 512), 12);
    check_int(tnd_stream_crossover(costs, &streaming, &host, TANDEM_TYPE_Q4_0, N, K, 1, 11), 0);
    tandem_table *without = tune_new();
    check_int(tnd_stream_crossover(without, &streaming, &host, TANDEM_TYPE_Q4_0, N, K, 1, 512), 0);
    tandem_table_free(without);
}

static CU_TestInfo stream_tests[] = {
    {"weights without room travel for prompts", weights_without_room_travel_for_prompts},
    {"weights in flight take the longer of both", weights_in_flight_take_the_longer_of_both},
    {"weights in flight bear the slow-down that was measured",
     weights_in_flight_bear_the_slow_down_that_was_measured},
    {"the crossover of weights in flight is the first M at which they win",
     the_crossover_of_weights_in_flight_is_the_first_m_at_which_they_win},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo profile_tests[] = {
    {"the profiles of a device name its stages", the_profiles_of_a_device_name_its_stages},
    {"a profile resolves where its device is open and else says why",
     a_profile_resolves_where_its_device_is_open_and_else_says_why},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_devices[];
CU_SuiteInfo suites_tune_devices[] = {
    {"device profiles", NULL, NULL, set_up, tear_down, profile_tests},
    {"placement", NULL, NULL, set_up_planner, tear_down_planner, placement_tests},
    {"weights in flight", NULL, NULL, set_up_streams, tear_down_planner, stream_tests},
    CU_SUITE_INFO_NULL,
};
