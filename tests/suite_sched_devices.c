/* SPDX-License-Identifier: MIT
 * The executor with the backends of the library: the pretended device in virtual time beside the
 * CPU. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/plan_text.h"
#include "sched/trace.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { K = 64, N = 24, M = 5 };

struct machine {
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_clock_virtual clock;
    tandem_backend *sim;
    int sim_slot;
};

static void machine_open(struct machine *machine, const char *settings)
{
    struct tnd_registry_options options = {
        .backends = "cpu,sim", .settings = settings, .n_threads_max = 8};
    struct tnd_pool_options pool_options = {.n_threads = 3, .n_cpus = 2, .spin_limit = -1};
    CU_ASSERT_EQUAL_FATAL(tnd_registry_open(&options, &machine->registry, NULL), TANDEM_OK);
    machine->sim_slot = tnd_registry_find(machine->registry, "sim", NULL);
    CU_ASSERT_TRUE_FATAL(machine->sim_slot > 0);
    machine->sim = tnd_registry_backend(machine->registry, machine->sim_slot);
    tnd_clock_virtual_init(&machine->clock, 0);
    tnd_sim_set_clock(machine->sim, &machine->clock.clock);
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&pool_options, &machine->pool, NULL), TANDEM_OK);
    CU_ASSERT_EQUAL_FATAL(
        tnd_exec_new(machine->pool, machine->registry, &machine->clock.clock, &machine->exec, NULL),
        TANDEM_OK);
}

static void machine_close(struct machine *machine)
{
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(machine->sim, &statistics);
    check_int(statistics.in_flight, 0);
    tnd_exec_free(machine->exec);
    tnd_pool_free(machine->pool);
    tnd_registry_close(machine->registry);
}

/* ---- a product, something beside it that takes 70 us of virtual time, and their sum ---- */

struct pair {
    tandem_context *context;
    tandem_tensor *y;
    tandem_graph *graph;
    float expected[N * M];
};

static enum tandem_status take_70_us(void *user, const tandem_tensor *node, int64_t begin,
                                     int64_t end)
{
    const float *from = node->src[0]->data;
    float *to = node->data;
    (void)begin;
    (void)end;
    for (int i = 0; i < N * M; i++) {
        to[i] = 2 * from[i];
    }
    tnd_clock_virtual_advance(user, 70000);
    return TANDEM_OK;
}

static tandem_tensor *leaf(tandem_context *context, int64_t ne0, int64_t ne1, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *tensor =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){ne0, ne1});
    tnd_test_fill(&rng, tandem_tensor_data(tensor), ne0 * ne1);
    return tensor;
}

/* Nodes: mul_mat, custom, add; the custom one reads the product or a leaf. */
static struct pair pair_new(struct machine *machine, bool is_independent)
{
    struct pair pair;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &pair.context, NULL), TANDEM_OK);
    tandem_tensor *a =
        tandem_mul_mat(pair.context, leaf(pair.context, K, N, 1), leaf(pair.context, K, M, 2));
    tandem_tensor *from = is_independent ? leaf(pair.context, N, M, 3) : a;
    tandem_tensor *b = tandem_custom(pair.context, 2, (const int64_t[]){N, M}, &from, 1, 1,
                                     take_70_us, &machine->clock);
    pair.y = tandem_add(pair.context, a, b);
    pair.graph = tandem_graph_new(pair.context);
    tandem_graph_add(pair.graph, pair.y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(pair.graph, NULL), TANDEM_OK);
    void *buffer = tnd_alloc(pair.graph->planned_bytes);
    tnd_graph_bind(pair.graph, buffer);
    check_ok(tnd_eval_ref_graph(pair.graph, NULL));
    memcpy(pair.expected, pair.y->data, sizeof(pair.expected));
    tnd_free(buffer);
    return pair;
}

static uint64_t time_of_run(struct machine *machine, struct pair *pair, const tandem_plan *plan)
{
    struct tandem_error error = {0};
    uint64_t begin = machine->clock.clock.now_ns(&machine->clock.clock);
    check_status(tnd_exec_run(machine->exec, pair->graph, plan, NULL, &error), TANDEM_OK, NULL,
                 &error);
    check_nmse(pair->y->data, pair->expected, N * M, 1e-9, "device and CPU");
    return machine->clock.clock.now_ns(&machine->clock.clock) - begin;
}

static void work_beside_a_device_takes_the_longer_of_both(void)
{
    struct machine machine;
    machine_open(&machine, "sim:latency_us=100");
    for (int is_independent = 0; is_independent < 2; is_independent++) {
        struct pair pair = pair_new(&machine, is_independent);
        tandem_plan *plan = NULL;
        check_ok(tandem_plan_new(3, &plan, NULL));
        uint64_t on_cpu = time_of_run(&machine, &pair, plan);
        check_int(on_cpu, 70000);
        fake_plan_node(plan, 0, machine.sim_slot, 1);
        uint64_t overlapped = time_of_run(&machine, &pair, plan);
        check_int(overlapped, is_independent ? 100000 : 170000);
        tandem_plan_free(plan);
        tandem_context_free(pair.context);
    }
    machine_close(&machine);
}

static void every_stage_of_a_product_may_be_on_another_backend(void)
{
    struct machine machine;
    machine_open(&machine, NULL);
    struct pair pair = pair_new(&machine, true);
    for (int init = 0; init < 2; init++) {
        for (int compute = 0; compute < 2; compute++) {
            tandem_plan *plan = NULL;
            struct tnd_steps *steps = NULL;
            struct tandem_error error = {0};
            check_ok(tandem_plan_new(3, &plan, NULL));
            fake_plan_product(plan, 0, init ? machine.sim_slot : 1, compute ? machine.sim_slot : 1,
                              2);
            enum tandem_status status =
                tnd_steps_new(pair.graph, plan, machine.registry, &steps, &error);
            if (status == TANDEM_OK) {
                time_of_run(&machine, &pair, plan);
            } else {
                check_status(status, TANDEM_E_UNSUPPORTED_BACKEND, "node 0 (mul_mat) stage",
                             &error);
            }
            tnd_steps_free(steps);
            tandem_plan_free(plan);
        }
    }
    tandem_context_free(pair.context);
    machine_close(&machine);
}

static void faults_of_the_device_reach_the_caller_and_leave_nothing_in_flight(void)
{
    static const struct {
        const char *settings;
        enum tandem_status status;
    } faults[] = {
        {"sim:fail_at=1,fail=submit", TANDEM_E_DEVICE},
        {"sim:fail_at=1,fail=memory", TANDEM_E_DEVICE_MEMORY},
        {"sim:fail_at=1,fail=sync", TANDEM_E_DEVICE},
        {"sim:fail_at=1,fail=timeout", TANDEM_E_DEVICE_TIMEOUT},
        {"sim:fail_at=1,fail=lost", TANDEM_E_DEVICE_LOST},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct machine machine;
        struct tandem_error error = {0};
        tandem_plan *plan = NULL;
        machine_open(&machine, faults[i].settings);
        struct pair pair = pair_new(&machine, true);
        check_ok(tandem_plan_new(3, &plan, NULL));
        fake_plan_node(plan, 0, machine.sim_slot, 1);
        check_status(tnd_exec_run(machine.exec, pair.graph, plan, NULL, &error), faults[i].status,
                     "node 0 (mul_mat) compute", &error);
        fake_plan_node(plan, 0, TANDEM_BACKEND_CPU, 1);
        time_of_run(&machine, &pair, plan); /* the executor is as good as new */
        tandem_plan_free(plan);
        tandem_context_free(pair.context);
        machine_close(&machine);
    }
}

/* ---- a graph inside a graph ---- */

struct inner {
    struct machine *machine;
    struct pair pair;
    tandem_plan *plan;
    enum tandem_status status;
};

static enum tandem_status compute_inner(void *user, const tandem_tensor *node, int64_t begin,
                                        int64_t end)
{
    struct inner *inner = user;
    (void)begin;
    (void)end;
    inner->status = tnd_exec_run(inner->machine->exec, inner->pair.graph, inner->plan, NULL, NULL);
    memcpy(node->data, inner->pair.y->data, sizeof(inner->pair.expected));
    return inner->status;
}

static void a_custom_operation_may_compute_another_graph(void)
{
    struct machine machine;
    struct inner inner = {.machine = &machine};
    tandem_context *context = NULL;
    tandem_plan *plan = NULL;
    machine_open(&machine, NULL);
    inner.pair = pair_new(&machine, true);
    check_ok(tandem_plan_new(3, &inner.plan, NULL));
    fake_plan_node(inner.plan, 0, TANDEM_BACKEND_CPU, 3);
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = leaf(context, N, M, 4);
    tandem_tensor *y =
        tandem_custom(context, 2, (const int64_t[]){N, M}, &x, 1, 1, compute_inner, &inner);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_plan_new(1, &plan, NULL));
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        fake_plan_node(plan, 0, TANDEM_BACKEND_CPU, n_threads);
        memset(y->data, 0, sizeof(inner.pair.expected));
        check_ok(tnd_exec_run(machine.exec, graph, plan, NULL, NULL));
        check_nmse(y->data, inner.pair.expected, N * M, 1e-9, "inner graph");
    }
    tandem_plan_free(plan);
    tandem_plan_free(inner.plan);
    tandem_context_free(context);
    tandem_context_free(inner.pair.context);
    machine_close(&machine);
}

/* The product on a device with memory of its own; FINALIZE fetches it. */
static tandem_plan *plan_that_fetches(const struct machine *machine, bool has_finalize)
{
    tandem_plan *plan = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_plan_new(3, &plan, NULL), TANDEM_OK);
    fake_plan_node(plan, 0, machine->sim_slot, 1);
    if (has_finalize) {
        struct tandem_plan_node node = *tandem_plan_node(plan, 0);
        node.stage[TANDEM_STAGE_FINALIZE] = (struct tandem_task_config){
            .backend = (uint8_t)machine->sim_slot, .task = TANDEM_TASK_FINALIZE, .wait = true};
        node.predicted_us[TANDEM_STAGE_FINALIZE] = 12.5f;
        check_ok(tandem_plan_set_node(plan, 0, &node));
    }
    return plan;
}

static const struct tnd_step *find_step(const struct tnd_steps *steps, enum tnd_step_kind kind)
{
    for (int i = 0; i < steps->n_steps; i++) {
        if (steps->steps[i].kind == kind) {
            return &steps->steps[i];
        }
    }
    return NULL;
}

static void fetching_a_result_is_finalize_of_the_node_that_wrote_it(void)
{
    struct machine machine;
    machine_open(&machine, "sim:memory=own");
    struct pair pair = pair_new(&machine, true);
    for (int has_finalize = 0; has_finalize < 2; has_finalize++) {
        tandem_plan *plan = plan_that_fetches(&machine, has_finalize);
        struct tnd_steps *steps = NULL;
        check_ok(tnd_steps_new(pair.graph, plan, machine.registry, &steps, NULL));
        const struct tnd_step *upload = find_step(steps, TND_STEP_UPLOAD);
        const struct tnd_step *download = find_step(steps, TND_STEP_DOWNLOAD);
        CU_ASSERT_TRUE_FATAL(upload != NULL && download != NULL);
        check_int(upload->stage, TANDEM_STAGE_INIT);
        check_int(upload->item, 0);
        /* put off until the sum needs it: the custom node runs beside the device */
        check_int(download[-1].item, 1);
        check_int(download[1].item, 2);
        check_int(download->item, has_finalize ? 0 : 2);
        check_int(download->stage, has_finalize ? TANDEM_STAGE_FINALIZE : TANDEM_STAGE_INIT);
        check_int(steps->n_steps, 6);
        tnd_steps_free(steps);
        uint64_t took_ns = time_of_run(&machine, &pair, plan);
        check_int(took_ns, 70000);
        tandem_plan_free(plan);
    }
    tandem_context_free(pair.context);
    machine_close(&machine);
}

static void finalize_costs_nothing_where_the_result_stays_on_the_device(void)
{
    struct machine machine;
    machine_open(&machine, "sim:memory=own");
    struct pair pair = pair_new(&machine, true);
    tandem_plan *plan = plan_that_fetches(&machine, true);
    struct tnd_steps *steps = NULL;
    fake_plan_node(plan, 2, machine.sim_slot, 1); /* the sum reads the product where it is */
    check_ok(tnd_steps_new(pair.graph, plan, machine.registry, &steps, NULL));
    for (int i = 0; i < steps->n_steps; i++) {
        CU_ASSERT_FALSE(steps->steps[i].kind == TND_STEP_DOWNLOAD && steps->steps[i].item == 0);
    }
    tnd_steps_free(steps);
    (void)time_of_run(&machine, &pair, plan);
    tandem_plan_free(plan);
    tandem_context_free(pair.context);
    machine_close(&machine);
}

static void progress_told(void *user, int n_done, int n_total)
{
    int *last = user;
    CU_ASSERT_TRUE(n_done >= *last && n_done <= n_total);
    *last = n_done;
}

static void finalize_shows_in_plan_texts_times_traces_and_progress(void)
{
    struct machine machine;
    machine_open(&machine, "sim:memory=own");
    struct pair pair = pair_new(&machine, true);
    tandem_plan *plan = plan_that_fetches(&machine, true);
    struct tnd_text text = TND_TEXT_INIT;
    check_ok(tnd_plan_print(plan, 1, machine.registry, &text, NULL));
    check_contains(tnd_text_string(&text), "  finalize sim finalize one sleep 12.5\n");
    tnd_text_fini(&text);

    struct tnd_step_time times[8];
    int n_times = 0;
    int last = 0;
    struct tnd_exec_run_options options = {.progress = progress_told,
                                           .user = &last,
                                           .times = times,
                                           .n_times = 8,
                                           .out_n_times = &n_times};
    check_ok(tnd_exec_run(machine.exec, pair.graph, plan, &options, NULL));
    check_int(last, 3);
    int n_finalize = 0;
    for (int i = 0; i < n_times; i++) {
        if (times[i].stage == TANDEM_STAGE_FINALIZE) {
            check_int(times[i].node, 0);
            check_int(times[i].bytes, sizeof(pair.expected));
            n_finalize++;
        }
    }
    check_int(n_finalize, 1);

    struct tnd_trace *trace = NULL;
    const char *path = tnd_test_temp("finalize.json");
    check_ok(tnd_trace_new(path, &trace, NULL));
    tnd_trace_add(trace, pair.graph, NULL, machine.registry, NULL, times, n_times);
    check_ok(tnd_trace_close(trace, NULL));
    char *json = tnd_test_read_file(path, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    check_contains(json, "\"download for mul_mat ");
    check_contains(json, "\"cat\":\"finalize,transfer\"");
    free(json);
    tandem_plan_free(plan);
    tandem_context_free(pair.context);
    machine_close(&machine);
}

/* ---- what a device keeps of a weight ---- */

/* A product whose weights are borrowed and constant, placed on the device. */
struct borrowed {
    tandem_context *context;
    tandem_tensor *w, *y;
    tandem_graph *graph;
    tandem_plan *plan;
};

static struct borrowed borrowed_new(const struct machine *machine, float *weights)
{
    struct borrowed product;
    const int64_t ne[] = {K, N};
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &product.context, NULL), TANDEM_OK);
    product.w = tandem_tensor_borrow(product.context, TANDEM_TYPE_F32, 2, ne, weights,
                                     K * N * sizeof(float));
    tandem_tensor_set_role(product.w, TANDEM_ROLE_CONSTANT);
    product.y = tandem_mul_mat(product.context, product.w, leaf(product.context, K, M, 2));
    product.graph = tandem_graph_new(product.context);
    tandem_graph_add(product.graph, product.y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(product.graph, NULL), TANDEM_OK);
    check_ok(tandem_plan_new(1, &product.plan, NULL));
    fake_plan_node(product.plan, 0, machine->sim_slot, 1);
    return product;
}

static void borrowed_run(struct tnd_exec *exec, struct borrowed *product)
{
    float expected[N * M];
    check_ok(tnd_eval_ref_graph(product->graph, NULL));
    memcpy(expected, product->y->data, sizeof(expected));
    memset(product->y->data, 0, sizeof(expected));
    check_ok(tnd_exec_run(exec, product->graph, product->plan, NULL, NULL));
    check_nmse(product->y->data, expected, N * M, 1e-9, "borrowed weights");
}

static void borrowed_free(struct borrowed *product)
{
    tandem_plan_free(product->plan);
    tandem_context_free(product->context);
}

static struct tnd_sim_statistics statistics_of(const struct machine *machine)
{
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(machine->sim, &statistics);
    return statistics;
}

/* Nobody has said that the first one goes away. */
static void a_weight_of_a_later_context_at_the_same_address_is_another_one(void)
{
    struct machine machine;
    float weights[K * N];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    machine_open(&machine, "sim:memory=own");
    for (uint64_t round = 1; round <= 3; round++) {
        tnd_test_fill(&rng, weights, K * N);
        struct borrowed product = borrowed_new(&machine, weights);
        borrowed_run(machine.exec, &product);
        borrowed_run(machine.exec, &product);
        check_int(statistics_of(&machine).weight_uploads, round);
        check_int(statistics_of(&machine).residents, 1);
        borrowed_free(&product);
    }
    check_int(statistics_of(&machine).unmapped_accesses, 0);
    machine_close(&machine);
}

static void executors_keep_what_they_have_of_a_weight_apart(void)
{
    struct machine machine;
    struct tnd_exec *other = NULL;
    float weights[K * N];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, weights, K * N);
    machine_open(&machine, "sim:memory=own");
    check_ok(tnd_exec_new(machine.pool, machine.registry, &machine.clock.clock, &other, NULL));
    struct borrowed product = borrowed_new(&machine, weights);
    for (int i = 0; i < 2; i++) {
        borrowed_run(machine.exec, &product);
        borrowed_run(other, &product);
    }
    check_int(statistics_of(&machine).residents, 2);
    check_int(statistics_of(&machine).weight_uploads, 2);
    tnd_exec_forget(machine.exec, product.w);
    check_int(statistics_of(&machine).residents, 1);
    borrowed_run(other, &product);
    check_int(statistics_of(&machine).weight_uploads, 2);
    borrowed_free(&product); /* before what is kept of its weight */
    tnd_exec_free(other);
    check_int(statistics_of(&machine).residents, 0);
    check_int(statistics_of(&machine).unmapped_accesses, 0);
    machine_close(&machine);
}

static CU_TestInfo tests[] = {
    {"fetching_a_result_is_finalize_of_the_node_that_wrote_it",
     fetching_a_result_is_finalize_of_the_node_that_wrote_it},
    {"finalize_costs_nothing_where_the_result_stays_on_the_device",
     finalize_costs_nothing_where_the_result_stays_on_the_device},
    {"finalize_shows_in_plan_texts_times_traces_and_progress",
     finalize_shows_in_plan_texts_times_traces_and_progress},
    {"work_beside_a_device_takes_the_longer_of_both",
     work_beside_a_device_takes_the_longer_of_both},
    {"every_stage_of_a_product_may_be_on_another_backend",
     every_stage_of_a_product_may_be_on_another_backend},
    {"faults_of_the_device_reach_the_caller_and_leave_nothing_in_flight",
     faults_of_the_device_reach_the_caller_and_leave_nothing_in_flight},
    {"a_custom_operation_may_compute_another_graph", a_custom_operation_may_compute_another_graph},
    {"a weight of a later context at the same address is another one",
     a_weight_of_a_later_context_at_the_same_address_is_another_one},
    {"executors keep what they have of a weight apart",
     executors_keep_what_they_have_of_a_weight_apart},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_devices[] = {
    {"devices", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
