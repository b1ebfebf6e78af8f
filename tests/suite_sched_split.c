/* SPDX-License-Identifier: MIT
 * Split products and orders of nodes: the same bits as without, what stays on devices, what is
 * refused, and that lanes overlap in real time. Random splits: suite_sched_random.c. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/conflict.h"
#include "sched/exec.h"
#include "sched/trace.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { K = 256, N = 70 };

extern const struct tandem_backend_api tnd_backend_sim;

static struct fakes fakes;
static int own, own2; /* slots of two devices with memory of their own */

static void open_devices(const char *settings)
{
    fakes_open(&fakes, 2, -1, NULL);
    check_ok(tnd_registry_add(fakes.registry, &tnd_sim_own_api, settings, NULL));
    check_ok(tnd_registry_add(fakes.registry, &tnd_sim_own2_api, settings, NULL));
    own = tnd_registry_find(fakes.registry, "simown", NULL);
    own2 = tnd_registry_find(fakes.registry, "simown2", NULL);
}

static struct tnd_sim_statistics statistics_of(int slot)
{
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(tnd_registry_backend(fakes.registry, slot), &statistics);
    return statistics;
}

static enum tandem_status run(struct tandem_graph *graph, const tandem_plan *plan,
                              struct tandem_error *error)
{
    return tnd_exec_run(fakes.exec, graph, plan, NULL, error);
}

static void check_run(struct tandem_graph *graph, const tandem_plan *plan)
{
    struct tandem_error error = {0};
    check_status(run(graph, plan, &error), TANDEM_OK, NULL, &error);
}

/* ---- one product, and something behind it that keeps its result from being an output ---- */

struct product {
    tandem_context *weights;
    tandem_context *context;
    tandem_tensor *w, *x, *y;
    tandem_graph *graph;
};

static void product_build(struct product *p)
{
    check_ok(tandem_context_new(NULL, &p->context, NULL));
    p->y = tandem_scale(p->context, tandem_mul_mat(p->context, p->w, p->x), 1.5F);
    p->graph = tandem_graph_new(p->context);
    tandem_graph_add(p->graph, p->y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(p->graph, NULL), TANDEM_OK);
}

static struct product product_new(enum tandem_type type, int64_t m)
{
    struct product p;
    struct tnd_test_rng rng = tnd_test_rng_new((uint64_t)type * 100 + (uint64_t)m);
    float *values = malloc(sizeof(float) * K * N);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &p.weights, NULL), TANDEM_OK);
    p.w = tandem_tensor_new_2d(p.weights, type, K, N);
    p.x = tandem_tensor_new_2d(p.weights, TANDEM_TYPE_F32, K, m);
    tnd_test_fill(&rng, values, K * N);
    check_ok(tandem_quantize(type, values, p.w->data, K * N));
    tnd_test_fill(&rng, p.x->data, K * m);
    tandem_tensor_set_role(p.w, TANDEM_ROLE_CONSTANT);
    product_build(&p);
    free(values);
    return p;
}

static void product_free(struct product *p)
{
    tnd_exec_forget(fakes.exec, p->w);
    tandem_context_free(p->context);
    tandem_context_free(p->weights);
}

static struct tandem_plan_part part_of(const tandem_plan *plan, enum tandem_split split,
                                       int64_t begin, int64_t end, int slot)
{
    struct tandem_plan_part part;
    tandem_plan *other = NULL;
    memset(&part, 0, sizeof(part));
    check_ok(tandem_plan_copy(plan, &other, NULL));
    if (slot > 0) {
        fake_plan_node(other, 0, slot, 1);
    }
    part.split = split;
    part.begin = begin;
    part.end = end;
    part.choice = *tandem_plan_node(other, 0);
    tandem_plan_free(other);
    return part;
}

/* `slot` 0: as the node's own choice. */
static void add_part(tandem_plan *plan, enum tandem_split split, int64_t begin, int64_t end,
                     int slot)
{
    struct tandem_plan_part part = part_of(plan, split, begin, end, slot);
    check_ok(tandem_plan_add_part(plan, &part, NULL));
}

/* ---- bits ---- */

/* The CPU's ways of computing a product. */
static const struct {
    enum tandem_task init, compute;
} tasks[] = {
    {TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q},
    {TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_PACKED},
    {TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_PACKED},
    {TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_F32},
    {TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_MUL_MAT_F32},
    {TANDEM_TASK_NONE, TANDEM_TASK_NODE},
};

/* A plan of the graph with the i-th of them; NULL where it does not serve. */
static tandem_plan *cpu_plan(const struct product *p, size_t i)
{
    tandem_plan *plan = NULL;
    struct tandem_plan_node node;
    const tandem_tensor *product = tandem_graph_node(p->graph, 0);
    bool needs_f32 =
        tasks[i].init == TANDEM_TASK_NONE && tasks[i].compute == TANDEM_TASK_MUL_MAT_F32;
    if ((needs_f32 && p->w->type != TANDEM_TYPE_F32) ||
        (tasks[i].init != TANDEM_TASK_NONE &&
         tnd_registry_supports(fakes.registry, 1, product, tasks[i].init, NULL) != TANDEM_OK) ||
        tnd_registry_supports(fakes.registry, 1, product, tasks[i].compute, NULL) != TANDEM_OK) {
        return NULL;
    }
    check_ok(tandem_plan_new(2, &plan, NULL));
    node = *tandem_plan_node(plan, 0);
    node.n_threads = 2;
    node.stage[0].task = (uint8_t)tasks[i].init;
    node.stage[0].backend = tasks[i].init != TANDEM_TASK_NONE ? TANDEM_BACKEND_CPU : 0;
    node.stage[0].parallel = node.stage[1].parallel = true;
    node.stage[1].task = (uint8_t)tasks[i].compute;
    check_ok(tandem_plan_set_node(plan, 0, &node));
    return plan;
}

static int check_cpu_splits(struct product *p)
{
    static const int64_t ranges[][2] = {{0, 1}, {0, 33}, {17, 70}, {64, 70}, {69, 70}};
    size_t bytes = tandem_tensor_bytes(p->y);
    float *want = malloc(bytes);
    int n_ways = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(want);
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        tandem_plan *plan = cpu_plan(p, i);
        if (plan == NULL) {
            continue;
        }
        check_run(p->graph, plan);
        memcpy(want, p->y->data, bytes);
        for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
            tandem_plan_clear_schedule(plan);
            add_part(plan, TANDEM_SPLIT_ROWS, ranges[r][0], ranges[r][1], 0);
            memset(p->y->data, 0, bytes);
            check_run(p->graph, plan);
            if (!check_bits(p->y->data, want, bytes, tandem_type_name(p->w->type))) {
                printf("  task %s, rows %lld .. %lld\n", tandem_task_name(tasks[i].compute),
                       (long long)ranges[r][0], (long long)ranges[r][1]);
            }
        }
        tandem_plan_free(plan);
        n_ways++;
    }
    free(want);
    return n_ways;
}

static void a_split_by_rows_changes_no_bit_of_any_kernel_of_the_cpu(void)
{
    static const int64_t tokens[] = {1, 3, 17};
    open_devices(NULL);
    int n_ways = 0;
    for (int type = 0; type < 256; type++) {
        if (!tandem_type_is_valid((enum tandem_type)type) || type == TANDEM_TYPE_I32) {
            continue;
        }
        for (int i = 0; i < 3; i++) {
            struct product p = product_new((enum tandem_type)type, tokens[i]);
            n_ways += check_cpu_splits(&p);
            product_free(&p);
        }
    }
    CU_ASSERT_TRUE(n_ways > 60);
    fakes_close(&fakes);
}

static void columns_are_summed_over_any_number_of_parts(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q6_K};
    open_devices(NULL);
    for (int i = 0; i < 2 * 3; i++) {
        struct product p = product_new(types[i % 3], i < 3 ? 1 : 5);
        tandem_plan *plan = fake_plan(p.graph, own, 1);
        float want[N * 5];
        bool has_blocks = types[i % 3] == TANDEM_TYPE_Q6_K; /* one block a row: nothing to split */
        check_run(p.graph, plan);
        memcpy(want, p.y->data, tandem_tensor_bytes(p.y));
        add_part(plan, TANDEM_SPLIT_COLUMNS, 0, 64, TANDEM_BACKEND_CPU);
        add_part(plan, TANDEM_SPLIT_COLUMNS, 160, 256, own2);
        if (has_blocks) {
            struct tandem_error error = {0};
            check_status(run(p.graph, plan, &error), TANDEM_E_ARGUMENT, "whole blocks", &error);
        } else {
            memset(p.y->data, 0, tandem_tensor_bytes(p.y));
            check_run(p.graph, plan);
            check_nmse(p.y->data, want, tandem_tensor_elements(p.y), 1e-4, "columns");
        }
        tandem_plan_free(plan);
        product_free(&p);
    }
    fakes_close(&fakes);
}

/* ---- what stays ---- */

static void rows_of_a_weight_stay_on_their_device_until_it_is_forgotten(void)
{
    open_devices(NULL);
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    for (int round = 0; round < 3; round++) {
        tandem_plan *plan = fake_plan(p.graph, own2, 1);
        add_part(plan, TANDEM_SPLIT_ROWS, 40, 70, own);
        check_run(p.graph, plan);
        tandem_plan_free(plan);
        tandem_context_free(p.context); /* the next token has a graph of its own */
        product_build(&p);
    }
    check_int(statistics_of(own).weight_uploads, 1);
    check_int(statistics_of(own2).weight_uploads, 1);
    check_int(statistics_of(own).residents, 1);
    tandem_plan *whole = fake_plan(p.graph, own, 1);
    check_run(p.graph, whole); /* whole and part beside one another, as prompts and tokens want */
    check_int(statistics_of(own).residents, 2);
    tnd_exec_forget(fakes.exec, p.w);
    check_int(statistics_of(own).residents, 0);
    check_int(statistics_of(own2).residents, 0);
    add_part(whole, TANDEM_SPLIT_ROWS, 0, 30, own2);
    check_run(p.graph, whole);
    check_int(statistics_of(own2).weight_uploads, 2);
    check_int(statistics_of(own).unmapped_accesses + statistics_of(own2).unmapped_accesses, 0);
    tandem_plan_free(whole);
    product_free(&p);
    fakes_close(&fakes);
}

static void the_second_run_of_a_split_allocates_nothing_while_steps_run(void)
{
    open_devices(NULL);
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_plan *plan = NULL;
    check_ok(tandem_plan_new(2, &plan, NULL));
    add_part(plan, TANDEM_SPLIT_ROWS, 8, 70, 0);
    check_run(p.graph, plan);
    tnd_alloc_fail_after(1);
    check_run(p.graph, plan);
    tnd_alloc_fail_after(-1);
    tandem_plan_free(plan);
    product_free(&p);
    fakes_close(&fakes);
}

static void running_out_of_memory_while_splitting_leaves_nothing(void)
{
    open_devices(NULL);
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_plan *plan = fake_plan(p.graph, own2, 1);
    add_part(plan, TANDEM_SPLIT_COLUMNS, 64, 256, own);
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long nth = 1; nth < 200 && status != TANDEM_OK; nth++) {
        tnd_alloc_fail_after(nth);
        status = run(p.graph, plan, NULL);
        tnd_alloc_fail_after(-1);
        CU_ASSERT_TRUE(status == TANDEM_OK || status == TANDEM_E_MEMORY ||
                       status == TANDEM_E_DEVICE_MEMORY);
    }
    check_int(status, TANDEM_OK);
    tandem_plan_free(plan);
    product_free(&p);
    fakes_close(&fakes);
}

static void parts_of_contexts_that_are_gone_are_given_up(void)
{
    open_devices(NULL);
    for (int i = 0; i < 4; i++) {
        struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
        tandem_plan *plan = fake_plan(p.graph, own, 1);
        add_part(plan, TANDEM_SPLIT_COLUMNS, 0, 32, own2);
        check_run(p.graph, plan);
        tandem_plan_free(plan);
        tandem_context_free(p.context);
        tandem_context_free(p.weights); /* nothing was forgotten */
        CU_ASSERT_TRUE(statistics_of(own).residents == 1);
        CU_ASSERT_TRUE(statistics_of(own2).residents == 1);
    }
    fakes_close(&fakes);
}

/* ---- what is refused ---- */

static void check_refused(struct product *p, const struct tandem_plan_part *part, const char *why)
{
    struct tandem_error error = {0};
    tandem_plan *plan = fake_plan(p->graph, own, 1);
    check_ok(tandem_plan_add_part(plan, part, NULL));
    check_status(run(p->graph, plan, &error), TANDEM_E_ARGUMENT, why, &error);
    tandem_plan_free(plan);
}

static void parts_that_a_node_does_not_have_are_refused(void)
{
    open_devices(NULL);
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_plan *plan = fake_plan(p.graph, own, 1);
    struct tandem_error error = {0};
    struct tandem_plan_part part = part_of(plan, TANDEM_SPLIT_ROWS, 0, 70, own);
    check_refused(&p, &part, "node 0 (mul_mat) cannot be split so: the parts leave no range");
    part.end = 71;
    check_refused(&p, &part, "leave no range");
    part.begin = 8;
    part.end = 16; /* two ranges are left */
    check_refused(&p, &part, "or several");
    part.node = 1;
    check_refused(&p, &part, "node 1 (scale) cannot be split so: it is no product");
    part.node = 0;
    part.split = TANDEM_SPLIT_COLUMNS;
    part.begin = 0;
    part.end = 33;
    check_refused(&p, &part, "whole blocks");
    part.end = 32;
    tandem_tensor_set_role(p.w, TANDEM_ROLE_INPUT);
    check_refused(&p, &part, "constant weights");
    tandem_tensor_set_role(p.w, TANDEM_ROLE_CONSTANT);
    part.choice.stage[1].backend = 15;
    check_ok(tandem_plan_add_part(plan, &part, NULL));
    check_status(run(p.graph, plan, &error), TANDEM_E_ARGUMENT, "node 0 (mul_mat) stage compute",
                 &error);
    tandem_plan_free(plan);
    product_free(&p);
    fakes_close(&fakes);
}

static enum tandem_status do_nothing(void *user, const tandem_tensor *node, int64_t begin,
                                     int64_t end)
{
    (void)user;
    (void)node;
    (void)begin;
    (void)end;
    return TANDEM_OK;
}

static enum tandem_status run_in_order(struct tandem_graph *graph, const int32_t *order,
                                       struct tandem_error *error)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_plan_new(graph->n_nodes, &plan, NULL));
    check_ok(tandem_plan_set_order(plan, order, graph->n_nodes, NULL));
    enum tandem_status status = run(graph, plan, error);
    tandem_plan_free(plan);
    return status;
}

static void orders_that_break_what_nodes_need_are_refused(void)
{
    tandem_context *c = NULL;
    const int64_t ne[] = {32};
    struct tandem_error error = {0};
    open_devices(NULL);
    check_ok(tandem_context_new(NULL, &c, NULL));
    tandem_tensor *x = tandem_tensor_new_1d(c, TANDEM_TYPE_F32, 32);
    tandem_tensor *a = tandem_soft_max(c, x, NULL, 1); /* 0; its bytes serve node 2 again */
    tandem_tensor *b = tandem_soft_max(c, a, NULL, 1); /* 1 */
    tandem_tensor *d = tandem_soft_max(c, b, NULL, 1); /* 2 */
    tandem_tensor *e = tandem_custom(c, 1, ne, &x, 1, 1, do_nothing, NULL); /* 3 */
    tandem_tensor *f = tandem_custom(c, 1, ne, &x, 1, 1, do_nothing, NULL); /* 4 */
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, tandem_add(c, tandem_add(c, d, e), f)); /* 5, 6 */
    check_ok(tandem_graph_finish(graph, NULL));
    static const int32_t needs[] = {1, 0, 2, 3, 4, 5, 6};
    static const int32_t custom[] = {0, 1, 2, 4, 3, 5, 6};
    static const int32_t moved[] = {3, 0, 1, 2, 4, 5, 6};
    check_status(run_in_order(graph, needs, &error), TANDEM_E_ARGUMENT,
                 "node 1 before node 0, which it needs", &error);
    check_status(run_in_order(graph, custom, &error), TANDEM_E_ARGUMENT, "node 4 before node 3",
                 &error);
    bool shares = false;
    for (int i = 0; i < 3; i++) {
        shares =
            shares || tnd_nodes_conflict(tandem_graph_node(graph, i), tandem_graph_node(graph, 3));
    }
    check_int(run_in_order(graph, moved, &error), shares ? TANDEM_E_ARGUMENT : TANDEM_OK);
    tandem_context_free(c);
    fakes_close(&fakes);
}

static void an_order_that_moves_every_node_is_refused_and_not_looked_at_for_hours(void)
{
    enum { N_NODES = 6000 };
    static int32_t order[N_NODES];
    tandem_context *c = NULL;
    struct tandem_error error = {0};
    open_devices(NULL);
    check_ok(tandem_context_new(NULL, &c, NULL));
    tandem_tensor *x = tandem_tensor_new_1d(c, TANDEM_TYPE_F32, 16);
    tandem_graph *graph = tandem_graph_new(c);
    for (int i = 0; i < N_NODES; i++) {
        tandem_graph_add(graph, tandem_relu(c, x));
        order[i] = N_NODES - 1 - i;
    }
    check_ok(tandem_graph_finish(graph, NULL));
    check_status(run_in_order(graph, order, &error), TANDEM_E_ARGUMENT, "too far", &error);
    tandem_context_free(c);
    fakes_close(&fakes);
}

/* ---- times ---- */

static void times_and_traces_name_the_parts_of_a_node(void)
{
    struct tnd_step_time times[32];
    int n_times = 0;
    struct tnd_exec_run_options options = {.times = times, .n_times = 32, .out_n_times = &n_times};
    open_devices(NULL);
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_plan *plan = cpu_plan(&p, 0);
    struct tandem_error error = {0};
    add_part(plan, TANDEM_SPLIT_ROWS, 8, 70, own);
    struct tandem_plan_span span = {0, 0, (uint8_t)own, TANDEM_LANE_UPLOAD, 0, 0, 1, 3};
    check_ok(tandem_plan_add_span(plan, &span, NULL));
    check_status(tnd_exec_run(fakes.exec, p.graph, plan, &options, &error), TANDEM_OK, NULL,
                 &error);
    int n_of[5] = {0};
    for (int i = 0; i < n_times; i++) {
        CU_ASSERT_TRUE(times[i].role <= TND_ITEM_JOIN && times[i].node < 2);
        n_of[times[i].role]++;
        if (times[i].role == TND_ITEM_JOIN && times[i].kind == TND_STEP_WORK) {
            CU_ASSERT_TRUE(times[i].stage == TANDEM_STAGE_FINALIZE && times[i].part == 0);
        }
    }
    CU_ASSERT_TRUE(n_of[TND_ITEM_PART] >= 3); /* with its upload and its download */
    check_int(n_of[TND_ITEM_JOIN], 1);
    check_int(n_of[TND_ITEM_WHOLE], 1);
    struct tnd_trace *trace = NULL;
    const char *path = tnd_test_temp("split.json");
    check_ok(tnd_trace_new(path, &trace, NULL));
    tnd_trace_add(trace, p.graph, plan, fakes.registry, NULL, times, n_times);
    check_ok(tnd_trace_close(trace, NULL));
    char *json = tnd_test_read_file(path, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    check_contains(json, "\"join of mul_mat  part 0\"");
    check_contains(json, "\"tid\":\"simown upload\"");
    check_contains(json, "\"pid\":2,\"tid\":\"simown upload\"");
    check_contains(json, "\"args\":{\"name\":\"predicted\"}");
    free(json);
    tandem_plan_free(plan);
    product_free(&p);
    fakes_close(&fakes);
}

/* ---- real time: devices sleep, they compute next to nothing ---- */

enum { SLEEP_MS = 20 };

static enum tandem_status sleep_a_while(void *user, const tandem_tensor *node, int64_t begin,
                                        int64_t end)
{
    const struct tnd_clock *clock = tnd_clock_real();
    (void)user;
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    clock->wait_until_ns(clock, clock->now_ns(clock) + (uint64_t)SLEEP_MS * 1000000);
    return TANDEM_OK;
}

static double run_ms(struct tandem_graph *graph, const tandem_plan *plan)
{
    const struct tnd_clock *clock = tnd_clock_real();
    uint64_t begin_ns = clock->now_ns(clock);
    check_run(graph, plan);
    return (double)(clock->now_ns(clock) - begin_ns) / 1e6;
}

/* By the second plan, `share_ms` run beside something else that run alone by the first one; 0: half
 * of the time. Others may be at work on this machine: the best of some runs counts. */
static void check_overlap(struct tandem_graph *graph, const tandem_plan *apart,
                          const tandem_plan *together, double share_ms)
{
    double before = 1e9;
    double after = 1e9;
    bool is_good = false;
    for (int i = 0; i < 20 && !is_good; i++) {
        double apart_ms = run_ms(graph, apart);
        double together_ms = run_ms(graph, together);
        before = apart_ms < before ? apart_ms : before;
        after = together_ms < after ? together_ms : after;
        is_good = before - after >= 0.9 * (share_ms > 0 ? share_ms : before / 2);
    }
    if (!is_good) {
        printf("  %.1f ms one after the other, %.1f ms together\n", before, after);
        CU_FAIL("the overlap is below 90 %");
    }
}

/* Milliseconds in which works of the CPU and of a device were both under way, as traces show. */
static double both_ms(const struct tnd_step_time *times, int n)
{
    double ms = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const struct tnd_step_time *host = &times[i];
            const struct tnd_step_time *device = &times[j];
            if (host->backend == TANDEM_BACKEND_CPU && device->backend == own &&
                device->kind == TND_STEP_WORK) {
                uint64_t begin_ns =
                    host->begin_ns > device->begin_ns ? host->begin_ns : device->begin_ns;
                uint64_t end_ns = host->end_ns < device->end_ns ? host->end_ns : device->end_ns;
                ms += begin_ns < end_ns ? (double)(end_ns - begin_ns) / 1e6 : 0;
            }
        }
    }
    return ms;
}

static double traced_overlap_ms(struct tandem_graph *graph, const tandem_plan *plan)
{
    struct tnd_step_time times[32];
    int n_times = 0;
    struct tnd_exec_run_options options = {.times = times, .n_times = 32, .out_n_times = &n_times};
    struct tandem_error error = {0};
    check_status(tnd_exec_run(fakes.exec, graph, plan, &options, &error), TANDEM_OK, NULL, &error);
    return both_ms(times, n_times);
}

/* A product on the device and work of the CPU that comes first in the graph, but does not need
 * it. */
static void an_order_lets_the_cpu_work_beside_a_device(void)
{
    const int64_t ne[] = {N, 2};
    open_devices("latency_us=10000"); /* of the upload and of the product, so 20 ms */
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_context *c = NULL;
    tandem_plan *plan = NULL;
    tandem_plan *apart = NULL;
    check_ok(tandem_context_new(NULL, &c, NULL));
    tandem_tensor *other = tandem_tensor_new_2d(c, TANDEM_TYPE_F32, N, 2);
    tandem_tensor *slow = tandem_custom(c, 2, ne, &other, 1, 1, sleep_a_while, NULL);
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, tandem_add(c, slow, tandem_mul_mat(c, p.w, p.x)));
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_plan_new(3, &plan, NULL));
    fake_plan_node(plan, 1, own, 1);
    check_ok(tandem_plan_copy(plan, &apart, NULL));
    check_ok(tandem_plan_set_order(plan, (const int32_t[]){1, 0, 2}, 3, NULL));
    check_overlap(graph, apart, plan, SLEEP_MS);
    CU_ASSERT_TRUE(traced_overlap_ms(graph, plan) >= 0.9 * SLEEP_MS); /* all of the CPU's work */
    tandem_plan_free(apart);
    tandem_plan_free(plan);
    tandem_context_free(c);
    product_free(&p);
    fakes_close(&fakes);
}

/* X comes from the device: the host's part must not wait for the device's. Both parts sleep. */
static void what_the_host_needs_is_fetched_before_the_device_goes_on(void)
{
    const int64_t ne[] = {N, 2};
    open_devices("latency_us=10000");
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_context *c = NULL;
    tandem_plan *plan = NULL;
    tandem_plan *apart = NULL;
    check_ok(tandem_context_new(NULL, &c, NULL));
    tandem_tensor *x = tandem_relu(c, p.x);       /* 0: on the device, 20 ms */
    tandem_tensor *y = tandem_mul_mat(c, p.w, x); /* 1: on the device, 10 ms */
    tandem_tensor *from = tandem_view(c, x, 2, ne, &x->nb[1], 0);
    tandem_tensor *z = tandem_custom(c, 2, ne, &from, 1, 1, sleep_a_while, NULL); /* 2: 20 ms */
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, y);
    tandem_graph_add(graph, z);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_plan_new(3, &plan, NULL));
    fake_plan_node(plan, 0, own, 1);
    fake_plan_node(plan, 1, own, 1);
    check_ok(tandem_plan_copy(plan, &apart, NULL)); /* relu, its download, product, ... */
    check_ok(tandem_plan_set_order(plan, (const int32_t[]){0, 1, 2}, 3, NULL));
    check_overlap(graph, apart, plan, 10);
    tandem_plan_free(apart);
    tandem_plan_free(plan);
    tandem_context_free(c);
    product_free(&p);
    fakes_close(&fakes);
}

static void the_parts_of_a_split_overlap(void)
{
    open_devices("gflops=0.0015"); /* 24 ms for half of the product */
    struct product p = product_new(TANDEM_TYPE_Q8_0, 2);
    tandem_plan *plan = fake_plan(p.graph, own, 1);
    fake_plan_node(plan, 1, TANDEM_BACKEND_CPU, 1);
    tandem_plan *whole = NULL;
    check_ok(tandem_plan_copy(plan, &whole, NULL));
    add_part(plan, TANDEM_SPLIT_ROWS, 35, 70, own2);
    check_overlap(p.graph, whole, plan, 0);
    tandem_plan_free(whole);
    tandem_plan_free(plan);
    product_free(&p);
    fakes_close(&fakes);
}

static CU_TestInfo tests[] = {
    {"a_split_by_rows_changes_no_bit_of_any_kernel_of_the_cpu",
     a_split_by_rows_changes_no_bit_of_any_kernel_of_the_cpu},
    {"columns_are_summed_over_any_number_of_parts", columns_are_summed_over_any_number_of_parts},
    {"rows_of_a_weight_stay_on_their_device_until_it_is_forgotten",
     rows_of_a_weight_stay_on_their_device_until_it_is_forgotten},
    {"the_second_run_of_a_split_allocates_nothing_while_steps_run",
     the_second_run_of_a_split_allocates_nothing_while_steps_run},
    {"running_out_of_memory_while_splitting_leaves_nothing",
     running_out_of_memory_while_splitting_leaves_nothing},
    {"parts_of_contexts_that_are_gone_are_given_up", parts_of_contexts_that_are_gone_are_given_up},
    {"parts_that_a_node_does_not_have_are_refused", parts_that_a_node_does_not_have_are_refused},
    {"orders_that_break_what_nodes_need_are_refused",
     orders_that_break_what_nodes_need_are_refused},
    {"an_order_that_moves_every_node_is_refused_and_not_looked_at_for_hours",
     an_order_that_moves_every_node_is_refused_and_not_looked_at_for_hours},
    {"times_and_traces_name_the_parts_of_a_node", times_and_traces_name_the_parts_of_a_node},
    {"an_order_lets_the_cpu_work_beside_a_device", an_order_lets_the_cpu_work_beside_a_device},
    {"what_the_host_needs_is_fetched_before_the_device_goes_on",
     what_the_host_needs_is_fetched_before_the_device_goes_on},
    {"the_parts_of_a_split_overlap", the_parts_of_a_split_overlap},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_split[] = {
    {"splits and orders", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
