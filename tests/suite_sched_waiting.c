/* SPDX-License-Identifier: MIT
 * Waiting by prediction: the decisions as pure functions; then threads that expect an end which is
 * a thousand seconds away, so that only a wake-up can end their sleep. A lost one shows as the time
 * limit of tests/process.sh. */
#include <sched.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "sched/timed_wait.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { ELEMENTS = 64, WORKERS = 3 };

static const uint64_t US = 1000;
static const uint64_t FAR_NS = 1000u * UINT64_C(1000000000);

/* ---- decisions ---- */

static void a_wait_longer_than_waking_is_slept_until_waking_is_due(void)
{
    check_int(tnd_timed_wait_until(5000 * US, 7000 * US, 60 * US), 6940 * US);
    check_int(tnd_timed_wait_until(6939 * US, 7000 * US, 60 * US), 6940 * US);
    check_int(tnd_timed_wait_until(6940 * US, 7000 * US, 60 * US), 0); /* waking takes as long */
    check_int(tnd_timed_wait_until(6990 * US, 7000 * US, 60 * US), 0);
    check_int(tnd_timed_wait_until(7000 * US, 7000 * US, 60 * US), 0);
    check_int(tnd_timed_wait_until(8000 * US, 7000 * US, 60 * US), 0); /* past */
    check_int(tnd_timed_wait_until(8000 * US, 0, 60 * US), 0);         /* unknown */
}

static void naps_grow_while_the_end_is_overdue_and_end_in_sleep(void)
{
    const uint64_t expected_ns = 1000 * US;
    const uint64_t wake_ns = 60 * US;
    uint64_t now_ns = expected_ns + 30 * US;
    uint64_t end_ns = expected_ns;
    uint64_t last_ns = 0;
    int n_naps = 0;
    while ((end_ns = tnd_timed_wait_renew(now_ns, end_ns, wake_ns)) != 0) {
        uint64_t until_ns = tnd_timed_wait_until(now_ns, end_ns, wake_ns);
        CU_ASSERT(until_ns > now_ns);
        CU_ASSERT(until_ns - now_ns >= last_ns);
        last_ns = until_ns - now_ns;
        now_ns = end_ns + 650 * US + (uint64_t)n_naps * 650 * US; /* spun in vain meanwhile */
        n_naps++;
        CU_ASSERT_FATAL(n_naps < 100);
    }
    CU_ASSERT(n_naps > 3);
    check_int(tnd_timed_wait_renew(5000 * US, 0, wake_ns), 0); /* nothing was expected */
}

static void the_cost_of_waking_follows_what_is_measured(void)
{
    uint64_t wake_ns = TND_WAKE_FIRST_NS;
    for (int i = 0; i < 1000; i++) {
        wake_ns = tnd_wake_cost_learn(wake_ns, i % 10 == 0 ? 40 * US : 15 * US);
    }
    CU_ASSERT(wake_ns > 25 * US && wake_ns < 40 * US); /* near the late ones, not the mean */
    wake_ns = tnd_wake_cost_learn(wake_ns, FAR_NS);    /* lost its CPU */
    CU_ASSERT(wake_ns <= TND_WAKE_MOST_NS);
    for (int i = 0; i < 1000; i++) {
        wake_ns = tnd_wake_cost_learn(wake_ns, 0);
    }
    check_int(wake_ns, TND_WAKE_LEAST_NS);
}

/* ---- the pool ---- */

/* Without dozing its workers would spin for minutes. */
static struct tnd_pool *tireless_pool(int n_threads)
{
    struct tnd_pool_options options = {
        .n_threads = n_threads, .n_cpus = WORKERS, .spin_limit = INT64_MAX};
    struct tnd_pool *pool = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    return pool;
}

static uint64_t timed_waits_of(const struct tnd_pool *pool)
{
    struct tnd_pool_statistics statistics;
    tnd_pool_statistics(pool, &statistics);
    return statistics.timed_waits;
}

static void expect_far_and_wait_for_sleepers(struct tnd_pool *pool, unsigned n)
{
    uint64_t before = timed_waits_of(pool);
    tnd_pool_expect(pool, tnd_clock_real()->now_ns(tnd_clock_real()) + FAR_NS);
    while (timed_waits_of(pool) < before + n) {
        sched_yield();
    }
    tnd_pool_expect(pool, 0); /* who sleeps does not look */
}

static void add_one(void *user, int index, int count)
{
    (void)count;
    ((long *)user)[index]++;
}

static void a_run_wakes_workers_that_sleep_by_the_clock(void)
{
    struct tnd_pool *pool = tireless_pool(2);
    long done[2] = {0, 0};
    for (int i = 1; i <= 20; i++) {
        tnd_pool_run(pool, 2, add_one, done);
        if (i > 1) { /* a worker has the run's way of waiting from its first run on */
            expect_far_and_wait_for_sleepers(pool, 1);
        }
    }
    tnd_pool_run(pool, 2, add_one, done);
    check_int(done[0], 21);
    check_int(done[1], 21);
    tnd_pool_free(pool);
}

static void workers_that_sleep_by_the_clock_end_with_the_pool(void)
{
    struct tnd_pool *pool = tireless_pool(3);
    long done[3] = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        tnd_pool_run(pool, 3, add_one, done);
    }
    expect_far_and_wait_for_sleepers(pool, 2);
    check_ok(tnd_pool_resize(pool, 2)); /* ends one of them */
    tnd_pool_free(pool);
}

static void a_pause_does_not_disturb_workers_that_sleep_by_the_clock(void)
{
    struct tnd_pool *pool = tireless_pool(2);
    long done[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        tnd_pool_run(pool, 2, add_one, done);
    }
    expect_far_and_wait_for_sleepers(pool, 1);
    tnd_pool_pause(pool);
    tnd_pool_run(pool, 2, add_one, done);
    tnd_pool_resume(pool);
    tnd_pool_run(pool, 2, add_one, done);
    check_int(done[1], 4);
    tnd_pool_free(pool);
}

static void expectations_that_change_at_any_time_lose_no_work(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    long n_runs = tnd_effort() >= 2 ? 20000 : 2000;
    for (int n_threads = 2; n_threads <= 4; n_threads++) { /* with 4 they are crowded */
        struct tnd_pool_options options = {
            .n_threads = n_threads, .n_cpus = WORKERS, .spin_limit = 200};
        struct tnd_pool *pool = NULL;
        long done[4] = {0};
        CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
        for (long i = 0; i < n_runs; i++) {
            uint64_t now_ns = tnd_clock_real()->now_ns(tnd_clock_real());
            uint64_t in_ns = (uint64_t)tnd_test_rng_int(&rng, 0, 150000);
            int kind = (int)tnd_test_rng_int(&rng, 0, 3); /* soon, past, unknown, far */
            tnd_pool_expect(pool, kind == 0   ? now_ns + in_ns
                                  : kind == 1 ? now_ns - in_ns
                                  : kind == 2 ? 0
                                              : now_ns + FAR_NS);
            tnd_pool_run(pool, n_threads, add_one, done);
        }
        for (int i = 0; i < n_threads; i++) {
            check_int(done[i], n_runs);
        }
        tnd_pool_free(pool);
    }
}

/* ---- runs ---- */

/* One node of the CPU's that lasts until somebody waits by the clock. */
struct patience {
    struct tnd_pool *pool;
    uint64_t before;
    bool is_cancelled;
};

static enum tandem_status wait_for_a_timed_wait(void *user, const tandem_tensor *node,
                                                int64_t begin, int64_t end)
{
    const struct patience *patience = user;
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    while (timed_waits_of(patience->pool) == patience->before) {
        sched_yield();
    }
    return TANDEM_OK;
}

static bool is_cancelled(void *user)
{
    struct patience *patience = user;
    return patience->is_cancelled && timed_waits_of(patience->pool) != patience->before;
}

/* Two threads, one thread for long, two threads; the end is predicted a thousand seconds off. */
static void workers_sleep_by_the_clock_beside_one_thread_and_are_woken_by_work_or_cancel(void)
{
    struct tnd_registry *registry = NULL;
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 2};
    struct patience patience = {.pool = tireless_pool(2)};
    struct tnd_exec_run_options run_options = {.cancel = is_cancelled, .user = &patience};
    struct tnd_exec *exec = NULL;
    tandem_context *context = NULL;
    tandem_plan *plan = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_registry_open(&options, &registry, NULL), TANDEM_OK);
    check_ok(tnd_exec_new(patience.pool, registry, tnd_clock_real(), &exec, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){ELEMENTS});
    memset(x->data, 0, tandem_tensor_bytes(x));
    ((float *)x->data)[5] = 1;
    tandem_tensor *first = tandem_scale(context, x, 2);
    tandem_tensor *slow = tandem_custom(context, 1, (const int64_t[]){ELEMENTS}, &first, 1, 1,
                                        wait_for_a_timed_wait, &patience);
    tandem_tensor *y = tandem_scale(context, slow, 3);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    check_ok(tandem_plan_new(3, &plan, NULL));
    fake_plan_node(plan, 0, TANDEM_BACKEND_CPU, 2);
    fake_plan_node(plan, 2, TANDEM_BACKEND_CPU, 2);
    plan->nodes[1].stage[TANDEM_STAGE_COMPUTE].wait = true;
    plan->nodes[1].predicted_us[TANDEM_STAGE_COMPUTE] = 1e9f;
    for (int i = 0; i < 6; i++) {
        patience.before = timed_waits_of(patience.pool);
        patience.is_cancelled = i % 2 == 1;
        enum tandem_status status = tnd_exec_run(exec, graph, plan, &run_options, NULL);
        check_int(status, patience.is_cancelled ? TANDEM_E_CANCELLED : TANDEM_OK);
        if (!patience.is_cancelled) {
            CU_ASSERT_EQUAL(((const float *)y->data)[5], 6);
        }
    }
    tandem_plan_free(plan);
    tnd_exec_free(exec);
    tandem_context_free(context);
    tnd_registry_close(registry);
    tnd_pool_free(patience.pool);
}

/* Whatever is predicted of a device: the same numbers at the same (virtual) time. */
static void predictions_of_a_device_change_neither_results_nor_their_time(void)
{
    static const float predicted_us[] = {0, 0.3f, 0.7f, 100, 1e30f};
    struct fakes fakes;
    struct tnd_clock_virtual clock;
    tandem_context *context = NULL;
    tnd_clock_virtual_init(&clock, 1000);
    fakes_open(&fakes, 2, -1, &clock);
    fakes.device->cost_ns = 700;
    fakes.cpu->cost_ns = 500;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){ELEMENTS});
    memset(x->data, 0, tandem_tensor_bytes(x));
    ((float *)x->data)[5] = 1;
    tandem_tensor *y =
        tandem_scale(context, tandem_scale(context, tandem_scale(context, x, 2), 3), 5);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    fake_plan_node(plan, 1, fakes.device_slot, 1);
    plan->nodes[1].stage[TANDEM_STAGE_COMPUTE].wait = true;
    for (size_t i = 0; i < sizeof(predicted_us) / sizeof(predicted_us[0]); i++) {
        uint64_t begin_ns = clock.clock.now_ns(&clock.clock);
        plan->nodes[1].predicted_us[TANDEM_STAGE_COMPUTE] = predicted_us[i];
        check_ok(tnd_exec_run(fakes.exec, graph, plan, NULL, NULL));
        CU_ASSERT_EQUAL(((const float *)y->data)[5], 30);
        check_int(clock.clock.now_ns(&clock.clock) - begin_ns, 500 + 700 + 500);
    }
    tandem_plan_free(plan);
    tandem_context_free(context);
    fakes_close(&fakes);
}

static CU_TestInfo tests[] = {
    {"a_wait_longer_than_waking_is_slept_until_waking_is_due",
     a_wait_longer_than_waking_is_slept_until_waking_is_due},
    {"naps_grow_while_the_end_is_overdue_and_end_in_sleep",
     naps_grow_while_the_end_is_overdue_and_end_in_sleep},
    {"the_cost_of_waking_follows_what_is_measured", the_cost_of_waking_follows_what_is_measured},
    {"a_run_wakes_workers_that_sleep_by_the_clock", a_run_wakes_workers_that_sleep_by_the_clock},
    {"workers_that_sleep_by_the_clock_end_with_the_pool",
     workers_that_sleep_by_the_clock_end_with_the_pool},
    {"a_pause_does_not_disturb_workers_that_sleep_by_the_clock",
     a_pause_does_not_disturb_workers_that_sleep_by_the_clock},
    {"expectations_that_change_at_any_time_lose_no_work",
     expectations_that_change_at_any_time_lose_no_work},
    {"workers_sleep_by_the_clock_beside_one_thread_and_are_woken_by_work_or_cancel",
     workers_sleep_by_the_clock_beside_one_thread_and_are_woken_by_work_or_cancel},
    {"predictions_of_a_device_change_neither_results_nor_their_time",
     predictions_of_a_device_change_neither_results_nor_their_time},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_waiting[] = {
    {"waiting", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
