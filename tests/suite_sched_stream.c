/* SPDX-License-Identifier: MIT
 * Weights in flight to the pretended device with memory of its own, which has no room for any of
 * them, in virtual time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/trace.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { K = 64, M = 5, LAYERS = 5, WEIGHT_BYTES = K * K * 4 };

struct machine {
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct tnd_clock_virtual clock;
    tandem_backend *sim;
    int slot;
};

static void machine_open(struct machine *machine, const char *settings)
{
    char text[160];
    snprintf(text, sizeof(text), "sim:memory=own,budget=1%s", settings);
    struct tnd_registry_options options = {
        .backends = "cpu,sim", .settings = text, .n_threads_max = 4};
    struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    CU_ASSERT_EQUAL_FATAL(tnd_registry_open(&options, &machine->registry, NULL), TANDEM_OK);
    machine->slot = tnd_registry_find(machine->registry, "sim", NULL);
    CU_ASSERT_TRUE_FATAL(machine->slot > 0);
    machine->sim = tnd_registry_backend(machine->registry, machine->slot);
    tnd_clock_virtual_init(&machine->clock, 0);
    tnd_sim_set_clock(machine->sim, &machine->clock.clock);
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&pool_options, &machine->pool, NULL), TANDEM_OK);
    CU_ASSERT_EQUAL_FATAL(
        tnd_exec_new(machine->pool, machine->registry, &machine->clock.clock, &machine->exec, NULL),
        TANDEM_OK);
}

static struct tnd_sim_statistics statistics_of(const struct machine *machine)
{
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(machine->sim, &statistics);
    return statistics;
}

static void machine_close(struct machine *machine)
{
    check_int(statistics_of(machine).in_flight, 0);
    check_int(statistics_of(machine).unmapped_accesses, 0);
    tnd_exec_free(machine->exec);
    check_int(statistics_of(machine).mirrors, 0);
    check_int(statistics_of(machine).residents, 0);
    tnd_pool_free(machine->pool);
    tnd_registry_close(machine->registry);
}

/* ---- a chain of products ---- */

struct chain {
    tandem_context *context;
    tandem_tensor *y;
    tandem_graph *graph;
    tandem_plan *plan;
    float expected[K * M];
};

static tandem_tensor *leaf(tandem_context *context, int64_t rows, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *tensor =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, rows});
    tnd_test_fill(&rng, tandem_tensor_data(tensor), K * rows);
    return tensor;
}

static enum tandem_status take_70_us(void *user, const tandem_tensor *node, int64_t begin,
                                     int64_t end)
{
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    tnd_clock_virtual_advance(user, 70000);
    return TANDEM_OK;
}

static void plan_streamed(tandem_plan *plan, int i, int slot)
{
    struct tandem_plan_node node = *tandem_plan_node(plan, i);
    node.stage[TANDEM_STAGE_COMPUTE] = (struct tandem_task_config){
        .backend = (uint8_t)slot, .task = TANDEM_TASK_NODE_STREAMED, .wait = true};
    check_ok(tandem_plan_set_node(plan, i, &node));
}

/* LAYERS products; behind the first one, with `host`, an operation of the host that takes 70 us. */
static struct chain chain_new(struct machine *machine, bool is_constant, bool has_host)
{
    struct chain chain;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &chain.context, NULL), TANDEM_OK);
    tandem_tensor *x = leaf(chain.context, M, 100);
    for (int i = 0; i < LAYERS; i++) {
        tandem_tensor *w = leaf(chain.context, K, (uint64_t)i + 1);
        if (is_constant) {
            tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        }
        x = tandem_mul_mat(chain.context, w, x);
        if (i == 0 && has_host) {
            x = tandem_custom(chain.context, 2, (const int64_t[]){K, M}, &x, 1, 1, take_70_us,
                              &machine->clock);
        }
    }
    chain.y = x;
    chain.graph = tandem_graph_new(chain.context);
    tandem_graph_add(chain.graph, chain.y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(chain.graph, NULL), TANDEM_OK);
    void *buffer = tnd_alloc(chain.graph->planned_bytes);
    tnd_graph_bind(chain.graph, buffer);
    check_ok(tnd_eval_ref_graph(chain.graph, NULL));
    memcpy(chain.expected, chain.y->data, sizeof(chain.expected));
    tnd_free(buffer);
    check_ok(tandem_plan_new(chain.graph->n_nodes, &chain.plan, NULL));
    for (int i = 0; i < chain.graph->n_nodes; i++) {
        if (chain.graph->nodes[i]->op == TANDEM_OP_MUL_MAT) {
            plan_streamed(chain.plan, i, machine->slot);
        }
    }
    return chain;
}

static void chain_free(struct chain *chain)
{
    tandem_plan_free(chain->plan);
    tandem_context_free(chain->context);
}

static uint64_t chain_run(struct machine *machine, struct chain *chain)
{
    struct tandem_error error = {0};
    uint64_t begin = machine->clock.clock.now_ns(&machine->clock.clock);
    memset(chain->y->data, 0, sizeof(chain->expected));
    check_status(tnd_exec_run(machine->exec, chain->graph, chain->plan, NULL, &error), TANDEM_OK,
                 NULL, &error);
    check_nmse(chain->y->data, chain->expected, K * M, 1e-9, "weights in flight");
    return machine->clock.clock.now_ns(&machine->clock.clock) - begin;
}

/* ---- tests ---- */

static void weights_without_room_travel_in_every_run(void)
{
    struct machine machine;
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    for (uint64_t run = 1; run <= 3; run++) {
        (void)chain_run(&machine, &chain);
        check_int(statistics_of(&machine).streams, run * LAYERS);
        check_int(statistics_of(&machine).weight_uploads, 0);
    }
    chain_free(&chain);
    machine_close(&machine);
}

static void the_next_weights_are_sent_behind_each_work_into_the_other_slot(void)
{
    struct machine machine;
    struct tnd_steps *steps = NULL;
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    check_ok(tnd_steps_new(chain.graph, chain.plan, machine.registry, &steps, NULL));
    int n_streams = 0;
    int n_works = 0;
    for (int i = 0; i < steps->n_steps; i++) {
        const struct tnd_step *step = &steps->steps[i];
        if (step->kind == TND_STEP_STREAM) {
            check_int(step->item, n_streams);
            check_int(step->stream, n_streams % TND_STREAM_SLOTS + 1);
            check_int(step->moved.bytes, WEIGHT_BYTES);
            check_int(n_works, n_streams == 0 ? 0 : n_streams);
            n_streams++;
        } else if (step->kind == TND_STEP_WORK) {
            check_int(step->item, n_works);
            check_int(step->stream, n_works % TND_STREAM_SLOTS + 1);
            n_works++;
            check_int(n_streams, n_works);
        }
    }
    check_int(n_streams, LAYERS);
    check_int(n_works, LAYERS);
    tnd_steps_free(steps);
    chain_free(&chain);
    machine_close(&machine);
}

/* Sending the weights of a layer takes 16,384 ns, and so does its product: the first weights are
 * waited for, then both go on at the same time. */
static void weights_travel_while_the_device_computes(void)
{
    struct machine machine;
    machine_open(&machine, ",upload_gbps=1,gflops=2.5");
    struct chain chain = chain_new(&machine, true, false);
    uint64_t took_ns = chain_run(&machine, &chain);
    check_int(took_ns, (LAYERS + 1) * WEIGHT_BYTES);
    chain_free(&chain);
    machine_close(&machine);
}

static void a_slot_is_written_when_its_work_is_over(void)
{
    struct machine machine;
    machine_open(&machine, ",upload_gbps=1,gflops=0.25");
    struct chain chain = chain_new(&machine, true, false);
    uint64_t took_ns = chain_run(&machine, &chain); /* ten times as long as sending */
    check_int(took_ns, WEIGHT_BYTES + LAYERS * 10 * WEIGHT_BYTES);
    chain_free(&chain);
    machine_close(&machine);
}

/* 70 us of the host: the weights of the second layer arrive meanwhile. */
static void weights_travel_while_the_host_computes(void)
{
    struct machine machine;
    machine_open(&machine, ",upload_gbps=1");
    struct chain chain = chain_new(&machine, true, true);
    uint64_t took_ns = chain_run(&machine, &chain);
    /* the first weights, the host; then those of layers three to five in turn, since computing
     * takes no time, and the host's result is sent beside them */
    check_int(took_ns, WEIGHT_BYTES + 70000 + (LAYERS - 2) * WEIGHT_BYTES);
    chain_free(&chain);
    machine_close(&machine);
}

static void weights_that_change_travel_as_operands(void)
{
    struct machine machine;
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, false, false);
    (void)chain_run(&machine, &chain);
    check_int(statistics_of(&machine).streams, 0);
    chain_free(&chain);
    machine_close(&machine);
}

static void only_devices_with_memory_of_their_own_stream(void)
{
    struct machine machine;
    struct tandem_error error = {0};
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    plan_streamed(chain.plan, 0, TANDEM_BACKEND_CPU);
    check_status(tnd_exec_run(machine.exec, chain.graph, chain.plan, NULL, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "node_streamed", &error);
    chain_free(&chain);
    machine_close(&machine);
}

static void a_device_that_fails_in_mid_stream_leaves_nothing_behind(void)
{
    for (int call = 1; call <= 20; call++) {
        struct machine machine;
        char settings[64];
        struct tandem_error error = {0};
        snprintf(settings, sizeof(settings), ",fail_at=%d,fail=any", call);
        machine_open(&machine, settings);
        struct chain chain = chain_new(&machine, true, true);
        enum tandem_status status =
            tnd_exec_run(machine.exec, chain.graph, chain.plan, NULL, &error);
        CU_ASSERT_TRUE(status == TANDEM_OK || error.text[0] != '\0');
        (void)chain_run(&machine, &chain); /* as good as new */
        chain_free(&chain);
        machine_close(&machine);
    }
}

static void slots_grow_with_the_weights(void)
{
    struct machine machine;
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    (void)chain_run(&machine, &chain);
    uint64_t maps = statistics_of(&machine).maps;
    (void)chain_run(&machine, &chain);
    /* the slots and the intermediates stay; X and the output are mapped again */
    check_int(statistics_of(&machine).maps - maps, 2);
    chain_free(&chain);
    machine_close(&machine);
}

/* Half of the rows on the device, whose weights travel, the others on the CPU meanwhile. */
static void rows_of_a_split_product_may_travel(void)
{
    struct machine machine;
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    for (int i = 0; i < LAYERS; i++) {
        struct tandem_plan_part part = {.node = i,
                                        .split = TANDEM_SPLIT_ROWS,
                                        .begin = K / 2,
                                        .end = K,
                                        .choice = *tandem_plan_node(chain.plan, i)};
        fake_plan_node(chain.plan, i, TANDEM_BACKEND_CPU, 2);
        check_ok(tandem_plan_add_part(chain.plan, &part, NULL));
    }
    (void)chain_run(&machine, &chain);
    check_int(statistics_of(&machine).streams, LAYERS);
    check_int(statistics_of(&machine).weight_uploads, 0);
    chain_free(&chain);
    machine_close(&machine);
}

static void streams_stand_in_traces(void)
{
    struct machine machine;
    struct tnd_step_time times[32];
    int n_times = 0;
    struct tnd_trace *trace = NULL;
    const char *path = tnd_test_temp("stream.json");
    struct tnd_exec_run_options options = {.times = times, .n_times = 32, .out_n_times = &n_times};
    machine_open(&machine, "");
    struct chain chain = chain_new(&machine, true, false);
    check_ok(tnd_exec_run(machine.exec, chain.graph, chain.plan, &options, NULL));
    check_ok(tnd_trace_new(path, &trace, NULL));
    tnd_trace_add(trace, chain.graph, NULL, machine.registry, NULL, times, n_times);
    check_ok(tnd_trace_close(trace, NULL));
    char *json = tnd_test_read_file(path, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    check_contains(json, "\"stream of weights for mul_mat ");
    check_contains(json, "{\"bytes\":16384}");
    free(json);
    chain_free(&chain);
    machine_close(&machine);
}

static CU_TestInfo tests[] = {
    {"weights_without_room_travel_in_every_run", weights_without_room_travel_in_every_run},
    {"the_next_weights_are_sent_behind_each_work_into_the_other_slot",
     the_next_weights_are_sent_behind_each_work_into_the_other_slot},
    {"weights_travel_while_the_device_computes", weights_travel_while_the_device_computes},
    {"a_slot_is_written_when_its_work_is_over", a_slot_is_written_when_its_work_is_over},
    {"weights_travel_while_the_host_computes", weights_travel_while_the_host_computes},
    {"weights_that_change_travel_as_operands", weights_that_change_travel_as_operands},
    {"only_devices_with_memory_of_their_own_stream", only_devices_with_memory_of_their_own_stream},
    {"a_device_that_fails_in_mid_stream_leaves_nothing_behind",
     a_device_that_fails_in_mid_stream_leaves_nothing_behind},
    {"slots_grow_with_the_weights", slots_grow_with_the_weights},
    {"rows_of_a_split_product_may_travel", rows_of_a_split_product_may_travel},
    {"streams_stand_in_traces", streams_stand_in_traces},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_stream[] = {
    {"stream", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
