/* SPDX-License-Identifier: MIT
 * Plans in which the CPU and up to three devices work at once: side by side, split by rows, one
 * after the other, as the table says. What is planned is computed, too: pretended devices with
 * memory of their own stand under the names of OpenCL's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "backends/sim/sim.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/exec.h"
#include "sched/plan.h"
#include "tests/support_tune.h"
#include "tune/placement.h"
#include "tune/planner.h"

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K, M = 4, DEVICES = 3 };

static const char *const names[DEVICES] = {"opencl", "opencl1", "opencl2"};
static const char *const profiles[DEVICES] = {"opencl", "opencl@opencl1", "opencl@opencl2"};

static struct tnd_registry *registry;
static struct tnd_planner *planner;
static struct tnd_pool *pool;
static struct tnd_exec *exec;
static tandem_context *context;
static tandem_table *costs;
static double link_rate = 1e5; /* bytes a microsecond */

static void set_up_devices(const char *settings)
{
    static struct tandem_backend_api apis[DEVICES];
    /* Asked for and not there, so that they have profiles. */
    const struct tnd_registry_options registry_options = {
        .backends = "opencl1,opencl2",
        .settings = "opencl1:device=none;opencl2:device=none",
        .n_threads_max = 4};
    const struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    for (int i = 0; i < DEVICES; i++) {
        apis[i] = tnd_sim_own_api;
        apis[i].name = names[i];
        apis[i].kind = TANDEM_KIND_OPENCL;
        check_ok(tnd_registry_add(registry, &apis[i], settings, NULL));
    }
    const struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    costs = tune_new();
}

static void set_up(void)
{
    set_up_devices(NULL);
}

/* Devices sleep in products and transfers, too slow for weights to travel. */
enum { PRODUCT_MS = 4 };

static void set_up_slow(void)
{
    char settings[128];
    link_rate = 10;
    snprintf(settings, sizeof(settings), "gflops=%.9f,upload_gbps=%.9f,download_gbps=%.9f",
             2e-6 * N * K * M / PRODUCT_MS, 1e-3 * link_rate, 1e-3 * link_rate);
    set_up_devices(settings);
}

static void tear_down(void)
{
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_planner_free(planner);
    tnd_registry_close(registry);
    tandem_context_free(context);
    tandem_table_free(costs);
}

static void tear_down_slow(void)
{
    link_rate = 1e5;
    tear_down();
}

/* The CPU takes 2 x cpu_us (two stages) for a product, devices as given; moving costs link_us. */
static void set_costs(double cpu_us, const double *device_us, int n_devices, double link_us)
{
    tune_add_cost(costs, "cpu", cpu_us, 0);
    for (int i = 0; i < n_devices; i++) {
        tune_add_cost(costs, profiles[i], device_us[i], 0);
        tune_add_link(costs, names[i], link_us, link_rate);
    }
    tnd_planner_set_table(planner, costs);
}

enum { FEW = 64, LONG = 4096, TOKENS = 64 }; /* of a product with few rows */

static tandem_tensor *weights_of(struct tnd_test_rng *rng, int64_t n, int64_t k)
{
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){k, n});
    for (int64_t i = 0; i < n; i++) {
        float row[LONG];
        tnd_test_fill(rng, row, (size_t)k);
        check_ok(tandem_quantize(TANDEM_TYPE_Q4_0, row,
                                 (char *)tandem_tensor_data(w) + (size_t)i * w->nb[1], k));
    }
    return tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
}

static tandem_tensor *weights(struct tnd_test_rng *rng)
{
    return weights_of(rng, N, K);
}

/* `n_products` of the same x in each of `n_layers`, added up. */
static tandem_graph *layers(int n_layers, int n_products, tandem_tensor **out_y)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
    tnd_test_fill(&rng, tandem_tensor_data(x), K * M);
    for (int i = 0; i < n_layers; i++) {
        tandem_tensor *sum = NULL;
        for (int p = 0; p < n_products; p++) {
            tandem_tensor *y = tandem_mul_mat(context, weights(&rng), x);
            sum = sum != NULL ? tandem_add(context, sum, y) : y;
        }
        x = tandem_rms_norm(context, tandem_concat(context, sum, sum, 0), 1e-5F);
    }
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    *out_y = x;
    return graph;
}

static tandem_plan *plan_of(const tandem_graph *graph)
{
    tandem_plan *plan = NULL;
    check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL));
    return plan;
}

/* Computes by the plan and on the CPU alone; both give the same up to rounding. */
static void check_result(tandem_graph *graph, const tandem_plan *plan, tandem_tensor *y)
{
    size_t n = (size_t)tandem_tensor_elements(y);
    float *want = malloc(n * sizeof(float));
    struct tandem_error error = {0};
    tandem_plan *alone = NULL;
    tnd_planner_force(planner, 0);
    check_ok(tnd_planner_plan(planner, graph, 2, &alone, NULL));
    tnd_planner_force(planner, -1);
    check_ok(tnd_exec_run(exec, graph, alone, NULL, NULL));
    memcpy(want, tandem_tensor_data(y), n * sizeof(float));
    memset(tandem_tensor_data(y), 0, n * sizeof(float));
    check_status(tnd_exec_run(exec, graph, plan, NULL, &error), TANDEM_OK, NULL, &error);
    check_nmse(tandem_tensor_data(y), want, (int64_t)n, 5e-4, "planned against the CPU alone");
    tandem_plan_free(alone);
    free(want);
}

/* Bits of sides that compute something: 1 the CPU, 2, 4, 8 the devices. */
static unsigned sides_of(const tandem_plan *plan)
{
    unsigned sides = 0;
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        bool computes = span->lane == TANDEM_LANE_COMPUTE && span->stage == TANDEM_STAGE_COMPUTE;
        for (int d = 0; d < DEVICES && computes; d++) {
            bool is_it = span->backend == tnd_registry_find(registry, names[d], NULL);
            sides |= is_it ? 2U << d : 0;
        }
        sides |= computes && span->backend == TANDEM_BACKEND_CPU ? 1 : 0;
    }
    return sides;
}

static void independent_products_run_side_by_side(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(3, 4, &y);
    set_costs(50, (const double[]){100}, 1, 2);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan), 3);
    CU_ASSERT_PTR_NOT_NULL(tandem_plan_order(plan));
    CU_ASSERT_TRUE(plan->schedule->makespan_us < 0.75F * plan->schedule->single_us);
    check_result(graph, plan, y);
    tandem_plan_free(plan);
}

static void check_events(tandem_graph *graph, const tandem_plan *plan);

/* Half of the rows take half of the time, half of the columns all of it. */
static void set_costs_of_halves(const char *profile, double us)
{
    tune_add_cost_of(costs, profile, N / 2, K, us / 2, 0);
    tune_add_cost_of(costs, profile, N, K / 2, us, 0);
}

static void rows_of_a_product_are_split(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(4, 1, &y);
    set_costs_of_halves("cpu", 500);
    set_costs_of_halves("opencl", 1000);
    set_costs(500, (const double[]){1000}, 1, 2);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan), 3);
    check_int(tandem_plan_part_count(plan), 4);
    for (int i = 0; i < tandem_plan_part_count(plan); i++) {
        check_int(tandem_plan_part(plan, i)->split, TANDEM_SPLIT_ROWS);
    }
    CU_ASSERT_TRUE(plan->schedule->makespan_us < 0.75F * plan->schedule->single_us);
    check_result(graph, plan, y);
    tandem_plan_free(plan);
}

/* A router's shape, which takes as long on each side; moving all of X takes half of that. */
static tandem_plan *plan_of_few_rows(double us, tandem_graph **out_graph, tandem_tensor **out_y)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_tensor *x =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){LONG, TOKENS});
    tnd_test_fill(&rng, tandem_tensor_data(x), (size_t)LONG * TOKENS);
    *out_graph = tandem_graph_new(context);
    *out_y = tandem_mul_mat(context, weights_of(&rng, FEW, LONG), x);
    tandem_graph_add(*out_graph, *out_y);
    check_ok(tandem_graph_finish(*out_graph, NULL));
    for (int half = 1; half <= 2; half++) {
        tune_add_cost_of(costs, "cpu", FEW, LONG / half, us / 2 / half, 0);
        tune_add_cost_of(costs, "opencl", FEW, LONG / half, us / half, 0);
    }
    tune_add_link(costs, "opencl", 2, 1000);
    tnd_planner_set_table(planner, costs);
    return plan_of(*out_graph);
}

static void a_product_of_few_rows_is_split_by_columns(void)
{
    tandem_tensor *y;
    tandem_graph *graph;
    tandem_plan *plan = plan_of_few_rows(2000, &graph, &y);
    check_int(sides_of(plan), 3);
    check_int(tandem_plan_part_count(plan), 1);
    if (tandem_plan_part_count(plan) == 1) {
        check_int(tandem_plan_part(plan, 0)->split, TANDEM_SPLIT_COLUMNS);
        check_int(tandem_plan_part(plan, 0)->end, LONG);
    }
    CU_ASSERT_TRUE(plan->schedule->makespan_us < 0.75F * plan->schedule->single_us);
    check_result(graph, plan, y);
    check_events(graph, plan);
    tandem_plan_free(plan);
}

/* Copying the columns of X takes longer than what could be gained. */
static void cheap_products_of_few_rows_stay_whole(void)
{
    tandem_tensor *y;
    tandem_graph *graph;
    tandem_plan *plan = plan_of_few_rows(150, &graph, &y);
    check_int(sides_of(plan), 1);
    check_int(tandem_plan_part_count(plan), 0);
    tandem_plan_free(plan);
}

static void rows_are_split_over_three_devices(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(2, 1, &y);
    static const double device_us[DEVICES] = {1000, 1500, 2000};
    for (int d = 0; d < DEVICES; d++) {
        set_costs_of_halves(profiles[d], device_us[d]);
    }
    set_costs(50000, device_us, DEVICES, 2);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan), 14);
    check_int(tandem_plan_part_count(plan), 4);
    for (int i = 0; i < tandem_plan_part_count(plan); i++) {
        check_int(tandem_plan_part(plan, i)->split, TANDEM_SPLIT_ROWS);
    }
    CU_ASSERT_TRUE(plan->schedule->makespan_us < 0.6F * plan->schedule->single_us);
    check_result(graph, plan, y);
    tandem_plan_free(plan);
}

static void independent_products_run_on_three_devices(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(2, 6, &y);
    set_costs(300, (const double[]){100, 110, 120}, 3, 2);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan) & 14, 14);
    CU_ASSERT_TRUE(plan->schedule->makespan_us < 0.7F * plan->schedule->single_us);
    check_result(graph, plan, y);
    tandem_plan_free(plan);
}

/* Dear transfers, cheap products: one device from begin to end, whatever else is there. */
static void layers_stay_together_where_moving_is_dear(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(4, 3, &y);
    set_costs(100, (const double[]){100, 90, 110}, 3, 300);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan), 4);
    check_int(tandem_plan_part_count(plan), 0);
    CU_ASSERT_PTR_NULL(tandem_plan_order(plan));
    check_result(graph, plan, y);
    tandem_plan_free(plan);
}

static void slow_downs_of_the_table_forbid_working_at_once(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(3, 4, &y);
    struct tnd_slowdown slow = {"cpu", "opencl", 1.95, 1, 1};
    check_ok(tnd_table_add_slowdown(costs, &slow));
    memcpy(slow.backend, "opencl", 7);
    memcpy(slow.beside, "cpu", 4);
    check_ok(tnd_table_add_slowdown(costs, &slow));
    set_costs(50, (const double[]){120}, 1, 2);
    tandem_plan *plan = plan_of(graph);
    check_int(sides_of(plan), 1);
    check_int(tandem_plan_part_count(plan), 0);
    tandem_plan_free(plan);
}

static void a_single_plan_has_nothing_at_once(void)
{
    tandem_tensor *y;
    tandem_graph *graph = layers(3, 4, &y);
    tandem_plan *plan = NULL;
    set_costs(50, (const double[]){100}, 1, 2);
    check_ok(tnd_planner_plan_kind(planner, graph, 2, TND_PLAN_SINGLE, &plan, NULL));
    check_int(tandem_plan_part_count(plan), 0);
    CU_ASSERT_PTR_NULL(tandem_plan_order(plan));
    tandem_plan_free(plan);
}

static void a_graph_like_an_earlier_one_is_planned_by_a_look_up(void)
{
    tandem_tensor *y;
    set_costs(50, (const double[]){100}, 1, 2);
    tandem_plan *plan = plan_of(layers(3, 4, &y));
    tandem_plan *again = plan_of(layers(3, 4, &y));
    check_int(tandem_plan_span_count(again), tandem_plan_span_count(plan));
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        check_int(tandem_plan_order(again)[i], tandem_plan_order(plan)[i]);
    }
    tandem_plan_free(plan);
    tandem_plan_free(again);
}

/* ---- layers in sequence on several devices ---- */

enum { MOST_LAYERS = 12, MOST_CHAINS = 6 };

/* Several sequences go through the same layers, of which each device keeps as many: no sequence
 * needs another one. */
static tandem_graph *sequences(int n_chains, int n_layers, int n_devices, tandem_tensor **out_last)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_tensor *x[MOST_CHAINS];
    struct tnd_placed placed[MOST_LAYERS];
    struct tnd_placement *placement = NULL;
    tandem_graph *graph = tandem_graph_new(context);
    for (int b = 0; b < n_chains; b++) {
        x[b] = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
        tnd_test_fill(&rng, tandem_tensor_data(x[b]), K * M);
    }
    for (int l = 0; l < n_layers; l++) {
        tandem_tensor *w = weights(&rng);
        int slot = tnd_registry_find(registry, names[l * n_devices / n_layers], NULL);
        placed[l] = (struct tnd_placed){w->data, slot, NULL, 0};
        for (int b = 0; b < n_chains; b++) {
            tandem_tensor *y = tandem_mul_mat(context, w, x[b]);
            x[b] = tandem_rms_norm(context, tandem_concat(context, y, y, 0), 1e-5F);
        }
    }
    for (int b = 0; b < n_chains; b++) {
        tandem_graph_add(graph, x[b]);
    }
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tnd_placement_new(placed, n_layers, &placement, NULL));
    tnd_planner_set_placement(planner, placement);
    *out_last = x[n_chains - 1];
    return graph;
}

/* Whether all devices are inside of a step of this run when the step `at` begins. */
static bool are_all_busy(const struct tnd_step_time *times, int n_times, int at, int n_devices)
{
    unsigned slots = 0;
    for (int i = 0; i < n_times; i++) {
        const bool is_in_flight =
            times[i].begin_ns <= times[at].begin_ns && times[at].begin_ns < times[i].end_ns;
        slots |= is_in_flight && times[i].kind == TND_STEP_WORK ? 1U << times[i].backend : 0;
    }
    return __builtin_popcount(slots >> (TANDEM_BACKEND_CPU + 1)) == n_devices;
}

/* Devices sleep in their products, so that they do so at the same time however busy this machine
 * is; its scheduler may spoil some runs. */
static void check_overlap(tandem_graph *graph, const tandem_plan *plan, int n_devices)
{
    static struct tnd_step_time times[1024];
    int n_times = 0;
    bool is_seen = false;
    struct tnd_exec_run_options options = {
        .times = times, .n_times = 1024, .out_n_times = &n_times};
    for (int run = 0; run < 100 && !is_seen; run++) {
        check_ok(tnd_exec_run(exec, graph, plan, &options, NULL));
        for (int at = 0; at < n_times && !is_seen; at++) {
            is_seen = are_all_busy(times, n_times, at, n_devices);
        }
    }
    CU_ASSERT_TRUE(is_seen);
}

static void sequences_in_flight_keep_every_device_with_layers_busy(void)
{
    static const struct {
        int n_chains, n_layers, n_devices;
    } cases[] = {{2, 4, 2}, {4, 4, 2}, {3, 6, 3}, {6, 6, 3}};
    const double product_us = 1e3 * PRODUCT_MS;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_tensor *y;
        int n_chains = cases[i].n_chains;
        int n_devices = cases[i].n_devices;
        tandem_graph *graph = sequences(n_chains, cases[i].n_layers, n_devices, &y);
        set_costs(20 * product_us, (const double[]){product_us, product_us, product_us}, n_devices,
                  0.001);
        tandem_plan *plan = plan_of(graph);
        check_int(sides_of(plan), n_devices == 2 ? 6 : 14);
        CU_ASSERT_PTR_NOT_NULL(tandem_plan_order(plan));
        /* A device works while the first sequence is on its way to it and the last one behind. */
        double moved_us = 2 * sizeof(float) * K * M / link_rate; /* to a device and from it */
        double stage_us = product_us * cases[i].n_layers / n_devices + moved_us;
        double ideal_us = stage_us * (n_chains + n_devices - 1);
        double makespan_us = (double)plan->schedule->makespan_us;
        CU_ASSERT_TRUE(0.85 * makespan_us < ideal_us);
        check_overlap(graph, plan, n_devices);
        printf("  %d sequences, %d devices: %.1f ms, ideal %.1f, one after the other %.1f\n",
               n_chains, n_devices, makespan_us / 1e3, ideal_us / 1e3,
               (double)plan->schedule->single_us / 1e3);
        check_result(graph, plan, y);
        tandem_plan_free(plan);
    }
}

/* ---- what runs is what was predicted ---- */

enum { MOST_EVENTS = 512 };

/* Something that a lane does, as plan and trace both tell it. */
struct event {
    int backend, lane, node, part;
    bool is_join;
    double begin_us;
};

static int compare_events(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;
    return x->begin_us < y->begin_us ? -1 : x->begin_us > y->begin_us;
}

static bool is_same(const struct event *a, const struct event *b)
{
    return a->backend == b->backend && a->lane == b->lane && a->node == b->node &&
           a->part == b->part && a->is_join == b->is_join;
}

static bool is_among(const struct event *list, int n, const struct event *event)
{
    bool any = false;
    for (int i = 0; i < n && !any; i++) {
        any = is_same(&list[i], event);
    }
    return any;
}

/* Uploads of several operands are one event. */
static int predicted_events(const tandem_plan *plan, struct event *out)
{
    int n = 0;
    CU_ASSERT_TRUE_FATAL(tandem_plan_span_count(plan) <= MOST_EVENTS);
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        bool is_join = span->lane == TANDEM_LANE_COMPUTE && span->stage == TANDEM_STAGE_FINALIZE;
        const struct event event = {span->backend, span->lane,
                                    span->node,    is_join ? -1 : span->part,
                                    is_join,       (double)span->begin_us};
        bool is_known = span->lane == TANDEM_LANE_UPLOAD && is_among(out, n, &event);
        out[n] = event;
        n += !is_known;
    }
    qsort(out, (size_t)n, sizeof(out[0]), compare_events);
    return n;
}

/* Stages of a node on one lane are one event, and so are uploads of several operands, and joining
 * all parts. What takes no time in the plan has no span: operations that the table does not know.
 */
static int measured_events(tandem_graph *graph, const tandem_plan *plan,
                           const struct event *predicted, int n_predicted, struct event *out)
{
    static const int lanes[] = {TANDEM_LANE_COMPUTE, TANDEM_LANE_UPLOAD, TANDEM_LANE_DOWNLOAD,
                                TANDEM_LANE_UPLOAD};
    static struct tnd_step_time times[MOST_EVENTS];
    int n_times = 0;
    int n = 0;
    struct tandem_error error = {0};
    struct tnd_exec_run_options options = {
        .times = times, .n_times = MOST_EVENTS, .out_n_times = &n_times};
    check_status(tnd_exec_run(exec, graph, plan, &options, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &times[i];
        bool is_join = time->kind == TND_STEP_WORK && time->role == TND_ITEM_JOIN;
        const struct event event = {time->backend, lanes[time->kind],
                                    time->node,    is_join ? -1 : time->part,
                                    is_join,       (double)(time->begin_ns / 1000)};
        bool is_free = time->kind == TND_STEP_WORK &&
                       !tnd_mul_mat_is_plain(graph->nodes[time->node]) &&
                       !is_among(predicted, n_predicted, &event);
        if (is_free) {
            continue;
        }
        if (!is_among(out, n, &event)) {
            out[n++] = event;
        }
    }
    return n;
}

static void print_events(const char *what, const struct event *events, int n, int backend, int lane)
{
    printf("\n    %s, backend %d lane %d:", what, backend, lane);
    for (int i = 0; i < n; i++) {
        if (events[i].backend == backend && events[i].lane == lane) {
            printf(" %d%s%s", events[i].node, events[i].part >= 0 ? "p" : "",
                   events[i].is_join ? "j" : "");
        }
    }
}

/* Each lane does the same in the same order. */
static void check_lane(const struct event *predicted, int n_predicted, const struct event *measured,
                       int n_measured, int backend, int lane)
{
    int at = 0;
    bool is_good = true;
    for (int i = 0; i < n_predicted; i++) {
        if (predicted[i].backend != backend || predicted[i].lane != lane) {
            continue;
        }
        while (at < n_measured && (measured[at].backend != backend || measured[at].lane != lane)) {
            at++;
        }
        is_good = is_good && at < n_measured && is_same(&predicted[i], &measured[at]);
        at++;
    }
    for (; at < n_measured; at++) {
        is_good = is_good && (measured[at].backend != backend || measured[at].lane != lane);
    }
    CU_ASSERT_TRUE(is_good);
    if (!is_good) {
        print_events("predicted", predicted, n_predicted, backend, lane);
        print_events("measured ", measured, n_measured, backend, lane);
    }
}

static void check_events(tandem_graph *graph, const tandem_plan *plan)
{
    static struct event predicted[MOST_EVENTS];
    static struct event measured[MOST_EVENTS];
    int n_predicted = predicted_events(plan, predicted);
    int n_measured = measured_events(graph, plan, predicted, n_predicted, measured);
    CU_ASSERT_TRUE(n_predicted > 4);
    for (int backend = 0; backend < tnd_registry_count(registry); backend++) {
        for (int lane = 0; lane < TANDEM_LANES; lane++) {
            check_lane(predicted, n_predicted, measured, n_measured, backend, lane);
        }
    }
}

static void every_lane_does_in_order_what_the_plan_says(void)
{
    static const struct {
        int n_layers, n_products, n_devices;
        double cpu_us, device_us[DEVICES], link_us;
    } cases[] = {
        {3, 4, 1, 50, {100, 0, 0}, 2},          /* side by side */
        {4, 1, 1, 500, {1000, 0, 0}, 2},        /* split */
        {2, 1, 3, 1000, {1000, 1500, 2000}, 2}, /* split over three */
        {2, 6, 3, 300, {100, 110, 120}, 2},     /* side by side on three */
        {4, 3, 3, 100, {100, 90, 110}, 300},    /* all on one */
        {3, 5, 2, 60, {80, 200, 0}, 9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_tensor *y;
        tandem_graph *graph = layers(cases[i].n_layers, cases[i].n_products, &y);
        tandem_table_free(costs);
        costs = tune_new();
        set_costs(cases[i].cpu_us, cases[i].device_us, cases[i].n_devices, cases[i].link_us);
        tandem_plan *plan = plan_of(graph);
        check_events(graph, plan);
        tandem_plan_free(plan);
    }
}

static CU_TestInfo overlap_tests[] = {
    {"independent products run side by side", independent_products_run_side_by_side},
    {"every lane does in order what the plan says", every_lane_does_in_order_what_the_plan_says},
    {"rows of a product are split", rows_of_a_product_are_split},
    {"a product of few rows is split by columns", a_product_of_few_rows_is_split_by_columns},
    {"cheap products of few rows stay whole", cheap_products_of_few_rows_stay_whole},
    {"rows are split over three devices", rows_are_split_over_three_devices},
    {"independent products run on three devices", independent_products_run_on_three_devices},
    {"layers stay together where moving is dear", layers_stay_together_where_moving_is_dear},
    {"slow-downs of the table forbid working at once",
     slow_downs_of_the_table_forbid_working_at_once},
    {"a single plan has nothing at once", a_single_plan_has_nothing_at_once},
    {"a graph like an earlier one is planned by a look-up",
     a_graph_like_an_earlier_one_is_planned_by_a_look_up},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo sequence_tests[] = {
    {"sequences in flight keep every device with layers busy",
     sequences_in_flight_keep_every_device_with_layers_busy},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_overlap[];
CU_SuiteInfo suites_tune_overlap[] = {
    {"working at once", NULL, NULL, set_up, tear_down, overlap_tests},
    {"sequences in flight", NULL, NULL, set_up_slow, tear_down_slow, sequence_tests},
    CU_SUITE_INFO_NULL,
};
