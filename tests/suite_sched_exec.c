/* SPDX-License-Identifier: MIT
 * The executor: right numbers whatever the plan, failures anywhere, cancel, overlap in virtual
 * time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/run.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

static long scaled(long least)
{
    return tnd_effort() >= 3 ? 100 * least : tnd_effort() == 2 ? 4 * least : least;
}

/* ---- a network: y = x + W2 (2 W1 x), nodes mul_mat, scale, mul_mat, add ---- */

enum { K = 20, N = 13, M = 3 };

struct network {
    tandem_context *context;
    tandem_tensor *x, *y;
    tandem_graph *graph;
    float expected[K * M];
};

static tandem_tensor *leaf(tandem_context *context, int64_t ne0, int64_t ne1, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *tensor =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){ne0, ne1});
    tnd_test_fill(&rng, tandem_tensor_data(tensor), ne0 * ne1);
    return tensor;
}

/* Values of `output` by the double-precision reference. */
static void expect(tandem_graph *graph, const tandem_tensor *output, float *out)
{
    void *buffer = graph->planned_bytes > 0 ? tnd_alloc(graph->planned_bytes) : NULL;
    tnd_graph_bind(graph, buffer);
    check_ok(tnd_eval_ref_graph(graph, NULL));
    memcpy(out, output->data, tandem_tensor_bytes(output));
    memset(output->data, 0, tandem_tensor_bytes(output));
    tnd_free(buffer);
}

static struct network network_new(uint64_t seed)
{
    struct network net;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &net.context, NULL), TANDEM_OK);
    tandem_tensor *w1 = leaf(net.context, K, N, seed);
    tandem_tensor *w2 = leaf(net.context, N, K, seed + 1);
    net.x = leaf(net.context, K, M, seed + 2);
    tandem_tensor *h = tandem_scale(net.context, tandem_mul_mat(net.context, w1, net.x), 2);
    net.y = tandem_add(net.context, net.x, tandem_mul_mat(net.context, w2, h));
    net.graph = tandem_graph_new(net.context);
    tandem_graph_add(net.graph, net.y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(net.graph, NULL), TANDEM_OK);
    expect(net.graph, net.y, net.expected);
    return net;
}

static tandem_plan *network_plan(const struct fakes *fakes, const struct network *net,
                                 int n_threads)
{
    tandem_plan *plan = fake_plan(net->graph, fakes->cpu_slot, n_threads);
    fake_plan_product(plan, 0, fakes->cpu_slot, fakes->cpu_slot, n_threads);
    fake_plan_product(plan, 2, fakes->cpu_slot, fakes->cpu_slot, n_threads);
    return plan;
}

static void check_network(const struct network *net, const char *what)
{
    check_nmse(net->y->data, net->expected, K * M, 1e-12, what);
    memset(net->y->data, 0, sizeof(net->expected));
}

static void every_thread_count_gives_the_same_numbers(void)
{
    struct fakes fakes;
    struct network net = network_new(1);
    fakes_open(&fakes, 8, -1, NULL);
    float first[K * M];
    for (int n_threads = 1; n_threads <= 12; n_threads++) { /* more than the pool has: cut */
        tandem_plan *plan = network_plan(&fakes, &net, n_threads);
        for (int repeat = 0; repeat < 20; repeat++) {
            struct tandem_error error = {0};
            check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error), TANDEM_OK, NULL,
                         &error);
            if (n_threads == 1 && repeat == 0) {
                memcpy(first, net.y->data, sizeof(first));
            }
            check_bits(net.y->data, first, sizeof(first), "bits for another thread count");
            check_network(&net, "fakecpu");
        }
        tandem_plan_free(plan);
    }
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

static void workers_of_nodes_may_differ(void)
{
    struct fakes fakes;
    struct network net = network_new(2);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    long n_runs = scaled(100);
    fakes_open(&fakes, 8, -1, NULL);
    tandem_plan *plan = network_plan(&fakes, &net, 1);
    for (long run = 0; run < n_runs; run++) {
        for (int i = 0; i < 4; i++) {
            struct tandem_plan_node node = *tandem_plan_node(plan, i);
            node.n_threads = (int)tnd_test_rng_int(&rng, 1, 8);
            for (int s = 0; s < TANDEM_STAGES; s++) {
                node.stage[s].parallel = tnd_test_rng_int(&rng, 0, 2) > 0;
                node.stage[s].wait = tnd_test_rng_int(&rng, 0, 3) == 0;
            }
            tandem_plan_set_node(plan, i, &node);
        }
        tnd_exec_run(fakes.exec, net.graph, plan, NULL, NULL);
        check_network(&net, "changing thread counts");
    }
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

static void a_run_allocates_nothing_the_second_time(void)
{
    struct fakes fakes;
    struct network net = network_new(3);
    fakes_open(&fakes, 4, -1, NULL);
    tandem_plan *plan = network_plan(&fakes, &net, 4);
    check_ok(tnd_exec_run(fakes.exec, net.graph, plan, NULL, NULL));
    long before = tnd_alloc_count();
    for (int i = 0; i < 5; i++) {
        check_ok(tnd_exec_run(fakes.exec, net.graph, plan, NULL, NULL));
    }
    /* The reference arithmetic that adds may allocate, the executor may not. */
    CU_ASSERT(tnd_alloc_count() - before <= 10);
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

/* ---- random graphs on random backends ---- */

static tandem_tensor *pick(struct tnd_test_rng *rng, tandem_tensor **list, int n)
{
    /* Late ones more often: long chains. */
    int a = (int)tnd_test_rng_int(rng, 0, n - 1);
    int b = (int)tnd_test_rng_int(rng, 0, n - 1);
    return list[a > b ? a : b];
}

enum { SIDE = 6, MAX_TENSORS = 40 };

/* All tensors are SIDE x SIDE; a cache is written and read in between. */
static tandem_tensor *random_network(tandem_context *context, tandem_graph *graph,
                                     struct tnd_test_rng *rng)
{
    tandem_tensor *list[MAX_TENSORS];
    tandem_tensor *cache = leaf(context, SIDE, SIDE, 5);
    int n = 0;
    list[n++] = leaf(context, SIDE, SIDE, 6);
    list[n++] = leaf(context, SIDE, SIDE, 7);
    while (n < MAX_TENSORS) {
        tandem_tensor *a = pick(rng, list, n);
        tandem_tensor *b = pick(rng, list, n);
        switch (tnd_test_rng_int(rng, 0, 4)) {
        case 0:
            list[n++] = tandem_scale(context, a, 0.5f);
            break;
        case 1:
            list[n++] = tandem_add(context, a, b);
            break;
        case 2:
            list[n++] = tandem_scale(context, tandem_mul_mat(context, list[0], a), 0.5f);
            break;
        case 3:
            tandem_graph_add(graph, tandem_cpy(context, a, cache));
            list[n++] = tandem_scale(context, cache, 0.5f);
            break;
        default:
            list[n++] = tandem_cont(context, tandem_transpose(context, a));
            break;
        }
    }
    tandem_tensor *sum = list[n - 1];
    for (int i = n - 6; i < n - 1; i++) {
        sum = tandem_add(context, sum, list[i]);
    }
    tandem_graph_add(graph, sum);
    return sum;
}

static tandem_plan *random_plan(const struct fakes *fakes, const tandem_graph *graph,
                                struct tnd_test_rng *rng)
{
    tandem_plan *plan = fake_plan(graph, fakes->cpu_slot, 1);
    for (int i = 0; i < graph->n_nodes; i++) {
        int init_slot = tnd_test_rng_int(rng, 0, 2) == 0 ? fakes->device_slot : fakes->cpu_slot;
        int slot = tnd_test_rng_int(rng, 0, 1) == 0 ? fakes->device_slot : fakes->cpu_slot;
        int n_threads = (int)tnd_test_rng_int(rng, 1, 3);
        if (graph->nodes[i]->op == TANDEM_OP_MUL_MAT &&
            tandem_tensor_is_contiguous(graph->nodes[i]->src[1])) {
            fake_plan_product(plan, i, init_slot, slot, n_threads);
        } else {
            fake_plan_node(plan, i, slot, n_threads);
        }
    }
    return plan;
}

static void random_graphs_give_reference_results_on_random_backends(void)
{
    struct fakes fakes;
    long n_graphs = scaled(10);
    fakes_open(&fakes, 3, -1, NULL);
    for (long i = 0; i < n_graphs; i++) {
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() * 1000 + (uint64_t)i);
        tandem_context *context = NULL;
        float expected[SIDE * SIDE];
        struct tandem_error error = {0};
        check_ok(tandem_context_new(NULL, &context, NULL));
        tandem_graph *graph = tandem_graph_new(context);
        tandem_tensor *output = random_network(context, graph, &rng);
        check_status(tandem_graph_finish(graph, &error), TANDEM_OK, NULL, &error);
        expect(graph, output, expected);
        for (int repeat = 0; repeat < 4; repeat++) {
            tandem_plan *plan = random_plan(&fakes, graph, &rng);
            check_status(tnd_exec_run(fakes.exec, graph, plan, NULL, &error), TANDEM_OK, NULL,
                         &error);
            check_nmse(output->data, expected, SIDE * SIDE, 1e-9, "random graph");
            memset(output->data, 0, sizeof(expected));
            tandem_plan_free(plan);
        }
        tandem_context_free(context);
    }
    fakes_close(&fakes);
}

/* ---- failing ---- */

static void an_error_of_any_worker_in_any_stage_ends_the_run(void)
{
    /* The last one fails while the others are on their way to a barrier inside the step. */
    static const enum tandem_task tasks[] = {TANDEM_TASK_DEQUANTIZE_W, TANDEM_TASK_NODE,
                                             TANDEM_TASK_MUL_MAT_F32};
    static const char *const places[] = {"node 0 (mul_mat) init", "node 1 (scale) compute",
                                         "node 0 (mul_mat) compute"};
    struct fakes fakes;
    struct network net = network_new(4);
    fakes_open(&fakes, 4, -1, NULL);
    tandem_plan *plan = network_plan(&fakes, &net, 4);
    for (int t = 0; t < 3; t++) {
        for (int worker = 0; worker < 4; worker++) {
            struct tandem_error error = {0};
            fakes.cpu->fail_task = tasks[t];
            fakes.cpu->fail_worker = worker;
            fakes.cpu->fail_status = TANDEM_E_DEVICE_MEMORY;
            check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error),
                         TANDEM_E_DEVICE_MEMORY, "was told to fail", &error);
            check_contains(error.text, places[t]);
            fakes.cpu->fail_task = TANDEM_TASK_NONE;
            check_ok(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error));
            check_network(&net, "after a failure");
        }
    }
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

static void a_failing_device_is_drained(void)
{
    struct fakes fakes;
    struct network net = network_new(5);
    struct tandem_error error = {0};
    fakes_open(&fakes, 2, -1, NULL);
    tandem_plan *plan = network_plan(&fakes, &net, 2);
    fake_plan_product(plan, 0, fakes.device_slot, fakes.device_slot, 1);

    fakes.device->sync_status = TANDEM_E_DEVICE_LOST;
    check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error), TANDEM_E_DEVICE_LOST,
                 "node 0 (mul_mat) init: sync was told", &error);
    check_int(fakes.device->n_in_flight, 0);

    fakes.device->sync_status = TANDEM_OK;
    fakes.device->fail_task = TANDEM_TASK_MUL_MAT_F32;
    fakes.device->fail_status = TANDEM_E_DEVICE_MEMORY;
    check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error), TANDEM_E_DEVICE_MEMORY,
                 "submit was told", &error);
    check_int(fakes.device->n_in_flight, 0);

    fakes.device->fail_task = TANDEM_TASK_NONE;
    check_ok(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error));
    check_network(&net, "after device failures");
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

static void an_error_on_the_cpu_drains_the_device(void)
{
    struct fakes fakes;
    struct network net = network_new(6);
    struct tandem_error error = {0};
    fakes_open(&fakes, 2, -1, NULL);
    /* The device computes node 0; node 1 (which waits for it) fails on the CPU; node 3 is never
     * reached. */
    tandem_plan *plan = fake_plan(net.graph, fakes.cpu_slot, 1);
    fake_plan_node(plan, 0, fakes.device_slot, 1);
    fakes.cpu->fail_task = TANDEM_TASK_NODE;
    fakes.cpu->fail_status = TANDEM_E_ARGUMENT;
    check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error), TANDEM_E_ARGUMENT,
                 "node 1", &error);
    check_int(fakes.device->n_in_flight, 0);
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

static void allocations_that_fail_leave_the_executor_usable(void)
{
    for (long n = 1; n < 200; n++) {
        struct fakes fakes;
        struct network net = network_new(7);
        struct tandem_error error = {0};
        fakes_open(&fakes, 3, -1, NULL);
        tandem_plan *plan = network_plan(&fakes, &net, 3);
        tnd_alloc_fail_after(n);
        enum tandem_status status = tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error);
        tnd_alloc_fail_after(-1);
        CU_ASSERT(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        bool is_over = status == TANDEM_OK && n > 20;
        check_ok(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error));
        check_network(&net, "after an allocation failed");
        tandem_plan_free(plan);
        fakes_close(&fakes);
        tandem_context_free(net.context);
        if (is_over) {
            break;
        }
    }
}

/* ---- cancel and progress ---- */

struct watcher {
    int polls_left;
    int n_reports;
    int last_done;
    int total;
};

static bool cancel(void *user)
{
    struct watcher *watcher = user;
    return watcher->polls_left-- <= 0;
}

static void watch(void *user, int n_done, int n_total)
{
    struct watcher *watcher = user;
    CU_ASSERT(n_done >= watcher->last_done && n_done <= n_total);
    watcher->n_reports++;
    watcher->last_done = n_done;
    watcher->total = n_total;
}

static void a_run_can_be_cancelled_before_any_group(void)
{
    struct fakes fakes;
    struct network net = network_new(8);
    struct tnd_clock_virtual clock; /* stands still: no node takes long */
    tnd_clock_virtual_init(&clock, 0);
    fakes_open(&fakes, 2, -1, &clock);
    tandem_plan *plan = network_plan(&fakes, &net, 2);
    fake_plan_node(plan, 3, fakes.cpu_slot, 1);
    for (int n = 0;; n++) {
        struct watcher watcher = {.polls_left = n};
        struct tnd_exec_run_options options = {
            .cancel = cancel, .progress = watch, .user = &watcher};
        struct tandem_error error = {0};
        enum tandem_status status = tnd_exec_run(fakes.exec, net.graph, plan, &options, &error);
        check_int(watcher.n_reports, n < 6 ? n : 6);
        if (status == TANDEM_OK) {
            check_int(n, 6); /* groups: 2 + 1 + 2 + 1 */
            check_int(watcher.last_done, 4);
            check_int(watcher.total, 4);
            break;
        }
        check_status(status, TANDEM_E_CANCELLED, "cancelled", &error);
        if (n > 6) {
            break;
        }
    }
    check_network(&net, "after cancels");
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

struct slow_caller {
    struct tnd_clock_virtual clock;
    int polls_left;
};

static bool cancel_late(void *user)
{
    struct slow_caller *caller = user;
    tnd_clock_virtual_advance(&caller->clock, 20 * 1000 * 1000);
    return caller->polls_left-- <= 0;
}

/* Steps of recurrent layers: barriers without chunks, as many as there are. */
static void barriers_of_a_step_may_be_more_than_its_loops(void)
{
    struct tnd_run_worker self = {.worker = {.count = 1}, .loop = UINT64_C(3) << 16};
    for (int i = 0; i < 70000; i++) {
        tnd_run_stage_barrier(&self.worker);
        CU_ASSERT_TRUE(self.loop >> 16 == 3);
    }
}

static void a_node_that_takes_long_can_be_cancelled(void)
{
    struct fakes fakes;
    struct network net = network_new(8);
    struct slow_caller caller = {.polls_left = 1}; /* before group 0, then inside it */
    struct tandem_error error = {0};
    tnd_clock_virtual_init(&caller.clock, 0);
    fakes_open(&fakes, 2, -1, &caller.clock);
    tandem_plan *plan = network_plan(&fakes, &net, 2);
    struct tnd_exec_run_options options = {.cancel = cancel_late, .user = &caller};
    check_status(tnd_exec_run(fakes.exec, net.graph, plan, &options, &error), TANDEM_E_CANCELLED,
                 "1 of", &error);
    check_status(tnd_exec_run(fakes.exec, net.graph, plan, NULL, &error), TANDEM_OK, NULL, &error);
    check_network(&net, "after a cancel inside a node");
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

/* ---- several callers on one executor ---- */

struct caller {
    struct fakes *fakes;
    struct network net;
    tandem_plan *plan;
    long n_runs;
    long n_wrong;
    pthread_t thread;
};

static void *compute_often(void *user)
{
    struct caller *caller = user;
    for (long i = 0; i < caller->n_runs; i++) {
        struct network *net = &caller->net;
        enum tandem_status status =
            tnd_exec_run(caller->fakes->exec, net->graph, caller->plan, NULL, NULL);
        const float *y = net->y->data;
        double difference = 0;
        for (int j = 0; j < K * M; j++) {
            double d = (double)y[j] - (double)net->expected[j];
            difference += d * d;
        }
        caller->n_wrong += status != TANDEM_OK || !(difference < 1e-6);
        memset(net->y->data, 0, sizeof(net->expected));
    }
    return NULL;
}

static void callers_share_one_executor(void)
{
    enum { N_CALLERS = 4 };
    struct fakes fakes;
    struct caller callers[N_CALLERS];
    long n_runs = scaled(100);
    fakes_open(&fakes, 3, -1, NULL);
    for (int i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){&fakes, network_new(10 + (uint64_t)i), NULL, n_runs, 0, 0};
        callers[i].plan = network_plan(&fakes, &callers[i].net, 1 + i % 3);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&callers[i].thread, NULL, compute_often, &callers[i]),
                              0);
    }
    for (long i = 0; i < n_runs / 10; i++) {
        tnd_pool_pause(fakes.pool);
        tnd_pool_resize(fakes.pool, 1 + (int)(i % 5));
        tnd_pool_resume(fakes.pool);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        check_int(callers[i].n_wrong, 0);
        tandem_plan_free(callers[i].plan);
        tandem_context_free(callers[i].net.context);
    }
    fakes_close(&fakes);
}

/* ---- virtual time ---- */

/* Two products and their sum, as in the step suite. */
static void a_device_overlaps_with_an_independent_product(void)
{
    struct fakes fakes;
    struct tnd_clock_virtual clock;
    struct tnd_step_time times[3];
    int n_times = 0;
    struct tnd_exec_run_options options = {.times = times, .n_times = 3, .out_n_times = &n_times};
    tandem_context *context = NULL;
    tnd_clock_virtual_init(&clock, 1000);
    fakes_open(&fakes, 2, -1, &clock);
    fakes.device->events = calloc(FAKE_MAX_EVENTS, sizeof(struct fake_event));
    fakes.device->cost_ns = 700;
    fakes.cpu->cost_ns = 500;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = leaf(context, K, M, 1);
    tandem_tensor *a = tandem_mul_mat(context, leaf(context, K, N, 2), x);
    tandem_tensor *b = tandem_mul_mat(context, leaf(context, K, N, 3), x);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_add(context, a, b));
    check_ok(tandem_graph_finish(graph, NULL));
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    fake_plan_node(plan, 0, fakes.device_slot, 1);
    fake_plan_node(plan, 1, fakes.cpu_slot, 2);
    check_ok(tnd_exec_run(fakes.exec, graph, plan, &options, NULL));
    check_int(n_times, 3);
    check_int(times[0].begin_ns, 1000);
    check_int(times[0].end_ns, 1700);
    check_int(times[0].backend, fakes.device_slot);
    check_int(times[1].begin_ns, 1000);
    check_int(times[1].end_ns, 1500);
    check_int(times[2].begin_ns, 1700);
    check_int(times[2].end_ns, 2200); /* 700 + 500, not 700 + 500 + 500 */
    check_int(fakes.device->n_events, 2);
    tandem_plan_free(plan);
    tandem_context_free(context);
    fakes_close(&fakes);
}

static void time_that_a_worker_did_not_run_is_told_when_asked(void)
{
    static const uint64_t second = 1000000000;
    struct fakes fakes;
    struct tnd_clock_virtual clock;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        struct network net = network_new(9);
        struct tnd_step_time times[8];
        int n_times = 0;
        struct tnd_exec_run_options options = {
            .times = times, .n_times = 8, .out_n_times = &n_times};
        tnd_clock_virtual_init(&clock, 1000);
        fakes_open(&fakes, 2, -1, &clock);
        fakes.cpu->cost_ns = second;
        fakes.cpu->is_off_cpu = true;
        tandem_plan *plan = network_plan(&fakes, &net, n_threads);
        for (int asks = 0; asks < 2; asks++) {
            options.asks_lost = asks == 1;
            memset(times, 0xff, sizeof(times));
            check_ok(tnd_exec_run(fakes.exec, net.graph, plan, &options, NULL));
            CU_ASSERT_TRUE(n_times > 2);
            for (int i = 0; i < n_times; i++) {
                CU_ASSERT_TRUE(asks == 1 ? times[i].lost_ns > second / 2 : times[i].lost_ns == 0);
                CU_ASSERT_TRUE(times[i].lost_ns <= times[i].end_ns - times[i].begin_ns);
            }
        }
        tandem_plan_free(plan);
        fakes_close(&fakes);
        tandem_context_free(net.context);
    }
}

static void times_are_cut_to_the_room_there_is(void)
{
    struct fakes fakes;
    struct network net = network_new(9);
    struct tnd_step_time times[2];
    int n_times = -1;
    struct tnd_exec_run_options options = {.times = times, .n_times = 2, .out_n_times = &n_times};
    fakes_open(&fakes, 2, -1, NULL);
    tandem_plan *plan = network_plan(&fakes, &net, 2);
    check_ok(tnd_exec_run(fakes.exec, net.graph, plan, &options, NULL));
    check_int(n_times, 2);
    check_int(times[1].stage, TANDEM_STAGE_COMPUTE);
    CU_ASSERT(times[0].end_ns >= times[0].begin_ns && times[1].begin_ns >= times[0].end_ns);
    tandem_plan_free(plan);
    fakes_close(&fakes);
    tandem_context_free(net.context);
}

/* ---- many tiny graphs ---- */

static void tiny_graphs_give_right_sums(void)
{
    struct fakes fakes;
    long n_runs = scaled(10000);
    long n_wrong = 0;
    tandem_context *context = NULL;
    fakes_open(&fakes, 2, -1, NULL);
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = leaf(context, 8, 1, 1);
    tandem_tensor *y = tandem_scale(context, tandem_scale(context, x, 3), 2);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    float *from = x->data;
    float *to = y->data;
    for (long i = 0; i < n_runs; i++) {
        for (int j = 0; j < 8; j++) {
            from[j] = (float)(i % 1000 + j);
        }
        if (i % 10 == 0) { /* a tenth of the runs changes the thread count */
            fake_plan_node(plan, 0, fakes.cpu_slot, 1 + (int)(i / 10 % 2));
            fake_plan_node(plan, 1, fakes.cpu_slot, 1 + (int)(i / 20 % 2));
        }
        n_wrong += tnd_exec_run(fakes.exec, graph, plan, NULL, NULL) != TANDEM_OK;
        for (int j = 0; j < 8; j++) {
            n_wrong += to[j] != 6 * from[j];
        }
    }
    check_int(n_wrong, 0);
    tandem_plan_free(plan);
    tandem_context_free(context);
    fakes_close(&fakes);
}

static CU_TestInfo tests[] = {
    {"every_thread_count_gives_the_same_numbers", every_thread_count_gives_the_same_numbers},
    {"workers_of_nodes_may_differ", workers_of_nodes_may_differ},
    {"a_run_allocates_nothing_the_second_time", a_run_allocates_nothing_the_second_time},
    {"random_graphs_give_reference_results_on_random_backends",
     random_graphs_give_reference_results_on_random_backends},
    {"an_error_of_any_worker_in_any_stage_ends_the_run",
     an_error_of_any_worker_in_any_stage_ends_the_run},
    {"a_failing_device_is_drained", a_failing_device_is_drained},
    {"an_error_on_the_cpu_drains_the_device", an_error_on_the_cpu_drains_the_device},
    {"allocations_that_fail_leave_the_executor_usable",
     allocations_that_fail_leave_the_executor_usable},
    {"a_run_can_be_cancelled_before_any_group", a_run_can_be_cancelled_before_any_group},
    {"barriers_of_a_step_may_be_more_than_its_loops",
     barriers_of_a_step_may_be_more_than_its_loops},
    {"a_node_that_takes_long_can_be_cancelled", a_node_that_takes_long_can_be_cancelled},
    {"callers_share_one_executor", callers_share_one_executor},
    {"a_device_overlaps_with_an_independent_product",
     a_device_overlaps_with_an_independent_product},
    {"time_that_a_worker_did_not_run_is_told_when_asked",
     time_that_a_worker_did_not_run_is_told_when_asked},
    {"times_are_cut_to_the_room_there_is", times_are_cut_to_the_room_there_is},
    {"tiny_graphs_give_right_sums", tiny_graphs_give_right_sums},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_exec[] = {
    {"executor", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
