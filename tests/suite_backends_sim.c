/* SPDX-License-Identifier: MIT
 * The pretended device: scripted times on a virtual clock, an in-order queue, faults, right
 * results. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_stage.h"

static struct tnd_registry *registry;
static tandem_backend *sim;
static tandem_context *context;
static struct tnd_clock_virtual virtual_clock;
static tandem_tensor *node; /* 16 x 32 weights, 4 tokens: 4,096 floating point operations */

static void begin(const char *settings)
{
    struct tnd_registry_options options = {"sim", settings, 1, {0}};
    struct tandem_error error = {0};
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_OK, NULL, &error);
    sim = tnd_registry_backend(registry, tnd_registry_find(registry, "sim", NULL));
    tnd_clock_virtual_init(&virtual_clock, 1000);
    tnd_sim_set_clock(sim, &virtual_clock.clock);
    (void)check_ok(tandem_context_new(NULL, &context, &error));
    node = tnd_test_product(context, TANDEM_TYPE_F32, 16, 32, 4, tnd_test_seed());
}

static void end(void)
{
    tandem_context_free(context);
    tnd_registry_close(registry);
}

static uint64_t now(void)
{
    return virtual_clock.clock.now_ns(&virtual_clock.clock);
}

static enum tandem_status submit(uint64_t *out_ticket, struct tandem_error *error)
{
    struct tandem_work work = {.node = node,
                               .task = TANDEM_TASK_NODE,
                               .row_begin = 0,
                               .row_end = 16,
                               .workspace = NULL,
                               .workspace_bytes = 0};
    return tnd_backend_submit(sim, &work, out_ticket, error);
}

static void time_passes_as_the_script_says(void)
{
    /* 5,000 ns + 4,096 flop at 1 GFLOP/s + (2,048 + 512) bytes at 2 GB/s + 256 bytes at 1 GB/s */
    begin("sim:latency_us=5,gflops=1,upload_gbps=2,download_gbps=1");
    uint64_t ticket = 0;
    uint64_t before = now();
    (void)check_ok(submit(&ticket, NULL));
    check_int(now(), before);
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    check_int(now() - before, 5000 + 4096 + 1280 + 256);
    /* The weights are there now. */
    before = now();
    (void)check_ok(submit(&ticket, NULL));
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    check_int(now() - before, 5000 + 4096 + 256 + 256);
    end();
}

static void the_device_works_while_the_cpu_does_something_else(void)
{
    begin("sim:latency_us=10");
    uint64_t ticket = 0;
    uint64_t before = now();
    (void)check_ok(submit(&ticket, NULL));
    tnd_clock_virtual_advance(&virtual_clock, 25000);
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    check_int(now() - before, 25000);
    end();
}

static void works_queue_up_behind_each_other(void)
{
    begin("sim:latency_us=10");
    uint64_t tickets[3] = {0};
    uint64_t before = now();
    for (int i = 0; i < 3; i++) {
        (void)check_ok(submit(&tickets[i], NULL));
    }
    (void)check_ok(tnd_backend_sync(sim, tickets[2], NULL));
    check_int(now() - before, 30000);
    (void)check_ok(tnd_backend_sync(sim, tickets[0], NULL));
    (void)check_ok(tnd_backend_sync(sim, tickets[1], NULL));
    check_int(now() - before, 30000);
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(sim, &statistics);
    check_int(statistics.submits, 3);
    check_int(statistics.syncs, 3);
    check_int(statistics.computed, 3);
    check_int(statistics.in_flight, 0);
    check_int(statistics.busy_ns, 30000);
    end();
}

static void results_appear_at_sync_and_not_before(void)
{
    begin("");
    uint64_t ticket = 0;
    tnd_test_spoil(node);
    float spoiled = *(float *)node->data;
    (void)check_ok(submit(&ticket, NULL));
    CU_ASSERT_EQUAL(*(float *)node->data, spoiled);
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    float got[64];
    memcpy(got, node->data, sizeof(got));
    (void)check_ok(tnd_eval_ref_node(node, NULL));
    (void)check_nmse(got, node->data, 64, 1e-12, "sim product");
    end();
}

static void a_synchronous_driver_waits_in_submit(void)
{
    begin("sim:latency_us=7,sync=1");
    uint64_t ticket = 0;
    uint64_t before = now();
    (void)check_ok(submit(&ticket, NULL));
    check_int(now() - before, 7000);
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    check_int(now() - before, 7000);
    end();
}

static void a_ticket_is_synced_once(void)
{
    begin("");
    uint64_t ticket = 0;
    struct tandem_error error = {0};
    (void)check_ok(submit(&ticket, NULL));
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    (void)check_status(tnd_backend_sync(sim, ticket, &error), TANDEM_E_STATE, "not in flight",
                       &error);
    (void)check_status(tnd_backend_sync(sim, 999, &error), TANDEM_E_STATE, "999", &error);
    end();
}

static void a_full_queue_is_an_error_and_not_a_hang(void)
{
    begin("");
    uint64_t ticket = 0;
    struct tandem_error error = {0};
    int accepted = 0;
    while (accepted < 10000 && submit(&ticket, &error) == TANDEM_OK) {
        accepted++;
    }
    check_int(accepted, 256);
    check_int(error.status, TANDEM_E_DEVICE_MEMORY);
    (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
    (void)check_ok(submit(&ticket, &error));
    end(); /* closes with work in flight */
}

static void faults_come_at_the_scripted_call(void)
{
    static const struct {
        const char *settings;
        enum tandem_status submit, sync, next;
    } cases[] = {
        {"sim:fail=submit,fail_at=2", TANDEM_E_DEVICE, TANDEM_OK, TANDEM_OK},
        {"sim:fail=memory,fail_at=2", TANDEM_E_DEVICE_MEMORY, TANDEM_OK, TANDEM_OK},
        {"sim:fail=sync,fail_at=2", TANDEM_OK, TANDEM_E_DEVICE, TANDEM_OK},
        {"sim:fail=timeout,fail_at=2", TANDEM_OK, TANDEM_E_DEVICE_TIMEOUT, TANDEM_OK},
        {"sim:fail=lost,fail_at=2", TANDEM_OK, TANDEM_E_DEVICE_LOST, TANDEM_E_DEVICE_LOST},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].settings);
        uint64_t ticket = 0;
        struct tandem_error error = {0};
        (void)check_ok(submit(&ticket, NULL));
        (void)check_ok(tnd_backend_sync(sim, ticket, NULL));
        (void)check_status(submit(&ticket, &error), cases[i].submit,
                           cases[i].submit != TANDEM_OK ? "scripted" : NULL, &error);
        if (cases[i].submit == TANDEM_OK) {
            (void)check_status(tnd_backend_sync(sim, ticket, &error), cases[i].sync, "scripted",
                               &error);
        }
        (void)check_status(submit(&ticket, &error), cases[i].next, NULL, &error);
        struct tnd_sim_statistics statistics;
        tnd_sim_statistics(sim, &statistics);
        check_int(statistics.in_flight, cases[i].next == TANDEM_OK ? 1 : 0);
        end();
    }
}

static void wrong_results_are_wrong_by_far(void)
{
    begin("sim:wrong=1");
    struct tnd_test_stage stage = {.backend = sim, .node = node, .task = TANDEM_TASK_NODE};
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    float got = *(float *)node->data;
    (void)check_ok(tnd_eval_ref_node(node, NULL));
    CU_ASSERT_TRUE(got - *(float *)node->data > 10 || *(float *)node->data - got > 10);
    end();
}

/* 4 experts of 16 x 32, two tokens that use 2 each: 4 x 16 x 32 multiply-adds, 2,048 bytes each. */
static void experts_take_the_time_of_their_multiply_adds(void)
{
    begin("sim:gflops=1,upload_gbps=1");
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (int64_t[]){32, 16, 4});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (int64_t[]){32, 1, 2});
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){2, 2});
    node = tnd_test_node(context, tandem_mul_mat_id(context, w, x, ids));
    struct tnd_test_stage stage = {.backend = sim, .node = node, .task = TANDEM_TASK_NODE};
    uint64_t before = now();
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    check_int(now() - before, 2 * 4 * 16 * 32 + 4 * 2048 + 256 + 16);
    before = now();
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    check_int(now() - before, 2 * 4 * 16 * 32 + 256 + 16);
    end();
}

static void weights_move_once_until_they_are_forgotten(void)
{
    begin("sim:upload_gbps=1");
    struct tnd_test_stage stage = {.backend = sim, .node = node, .task = TANDEM_TASK_NODE};
    struct tnd_sim_statistics statistics;
    uint64_t before = now();
    void *handle = NULL;
    (void)check_ok(tnd_backend_prepare(sim, node->src[0], &handle, NULL));
    (void)check_ok(tnd_backend_prepare(sim, node->src[0], &handle, NULL));
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    tnd_sim_statistics(sim, &statistics);
    check_int(statistics.weight_uploads, 1);
    check_int(statistics.upload_bytes, 2048 + 2 * 512);
    check_int(now() - before, 2048 + 2 * 512);
    tnd_backend_forget(sim, handle);
    (void)check_ok(tnd_test_run_stage(&stage, NULL));
    tnd_sim_statistics(sim, &statistics);
    check_int(statistics.weight_uploads, 2);
    end();
}

CU_TestInfo tnd_tests_sim[] = {
    {"time passes as the script says", time_passes_as_the_script_says},
    {"the device works while the cpu does something else",
     the_device_works_while_the_cpu_does_something_else},
    {"works queue up behind each other", works_queue_up_behind_each_other},
    {"results appear at sync and not before", results_appear_at_sync_and_not_before},
    {"a synchronous driver waits in submit", a_synchronous_driver_waits_in_submit},
    {"a ticket is synced once", a_ticket_is_synced_once},
    {"a full queue is an error and not a hang", a_full_queue_is_an_error_and_not_a_hang},
    {"faults come at the scripted call", faults_come_at_the_scripted_call},
    {"wrong results are wrong by far", wrong_results_are_wrong_by_far},
    {"experts take the time of their multiply-adds", experts_take_the_time_of_their_multiply_adds},
    {"weights move once until they are forgotten", weights_move_once_until_they_are_forgotten},
    CU_TEST_INFO_NULL,
};
