/* SPDX-License-Identifier: MIT
 * Neighbours that do not depend on one another: they share the groups of their stages, INIT that
 * would do the same twice runs once, and nothing of it can be seen in the results. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/concurrent.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { K = 24, N = 17, M = 5 };

static struct fakes fakes;

static void set_up(void)
{
    fakes_open(&fakes, 4, -1, NULL);
}

static void tear_down(void)
{
    fakes_close(&fakes);
}

/* Nodes 0, 1, 2: products of one X, the first two of one W. Node 3: a scale of X. Nodes 4, 5: what
 * joins the products. */
struct three {
    tandem_context *context;
    tandem_tensor *x, *y;
    tandem_graph *graph;
    tandem_plan *plan;
    float expected[N * M];
};

static tandem_tensor *leaf(tandem_context *context, int64_t ne0, int64_t ne1, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *tensor =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){ne0, ne1});
    tnd_test_fill(&rng, tandem_tensor_data(tensor), ne0 * ne1);
    return tensor;
}

static struct three three_new(int n_threads)
{
    struct three t;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &t.context, NULL), TANDEM_OK);
    tandem_tensor *w = leaf(t.context, K, N, 1);
    tandem_tensor *w2 = leaf(t.context, K, N, 2);
    t.x = leaf(t.context, K, M, 3);
    tandem_tensor *a = tandem_mul_mat(t.context, w, t.x);
    tandem_tensor *b = tandem_mul_mat(t.context, w, t.x);
    tandem_tensor *c = tandem_mul_mat(t.context, w2, t.x);
    tandem_tensor *s = tandem_scale(t.context, t.x, 3);
    t.y = tandem_add(t.context, tandem_mul(t.context, a, b), c);
    t.graph = tandem_graph_new(t.context);
    tandem_graph_add(t.graph, s);
    tandem_graph_add(t.graph, t.y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(t.graph, NULL), TANDEM_OK);
    void *buffer = tnd_alloc(t.graph->planned_bytes);
    tnd_graph_bind(t.graph, buffer);
    check_ok(tnd_eval_ref_graph(t.graph, NULL));
    memcpy(t.expected, t.y->data, sizeof(t.expected));
    tnd_free(buffer);
    t.plan = fake_plan(t.graph, fakes.cpu_slot, n_threads);
    for (int i = 0; i < 3; i++) {
        fake_plan_product(t.plan, i, fakes.cpu_slot, fakes.cpu_slot, n_threads);
    }
    return t;
}

static void three_free(struct three *t)
{
    tandem_plan_free(t->plan);
    tandem_context_free(t->context);
}

/* End of the concurrent nodes when nothing is fused. */
static int concurrent_end(const tandem_graph *graph, const tandem_plan *plan, int first)
{
    struct tnd_items items = {0};
    check_ok(tnd_items_renew(graph, plan, fakes.registry, NULL, &items, NULL));
    int end = tnd_concurrent_end(&items, fakes.registry, first);
    tnd_free(items.memory);
    return end;
}

static struct tnd_steps *unfold(const struct three *t)
{
    struct tnd_steps *steps = NULL;
    check_ok(tnd_steps_new(t->graph, t->plan, fakes.registry, &steps, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(steps);
    return steps;
}

static void independent_neighbours_share_the_groups_of_their_stages(void)
{
    struct three t = three_new(2);
    struct tnd_steps *steps = unfold(&t);
    check_int(steps->n_groups, 4); /* INIT, COMPUTE, mul, add */
    check_int(steps->groups[0].n_steps, 2);
    check_int(steps->groups[0].n_workers, 2);
    check_int(steps->groups[1].n_steps, 4); /* the scale has no INIT */
    check_int(steps->steps[2].item, 0);
    check_int(steps->steps[5].item, 3);
    check_int(steps->steps[5].until, 2);
    tnd_steps_free(steps);
    three_free(&t);
}

static void an_init_that_serves_two_nodes_runs_once(void)
{
    struct three t = three_new(2);
    struct tnd_steps *steps = unfold(&t);
    check_int(steps->steps[0].item, 0);
    check_int(steps->steps[1].item, 2);
    check_int(steps->steps[1].stage, TANDEM_STAGE_INIT);
    check_int(steps->steps[3].workspace_offset, steps->steps[2].workspace_offset);
    CU_ASSERT_NOT_EQUAL(steps->steps[4].workspace_offset, steps->steps[2].workspace_offset);
    check_int(steps->workspace_bytes, 2 * steps->steps[0].workspace_bytes);
    tnd_steps_free(steps);
    three_free(&t);
}

static void one_thread_nodes_stand_beside_parallel_ones(void)
{
    struct three t = three_new(2);
    fake_plan_node(t.plan, 3, fakes.cpu_slot, 1);
    struct tnd_steps *steps = unfold(&t);
    check_int(steps->groups[1].n_steps, 4);
    check_int(steps->groups[1].n_workers, 2);
    check_int(steps->steps[2].item, 3); /* first: the others have begun with the rest */
    check_int(steps->steps[2].n_workers, 1);
    tnd_steps_free(steps);

    for (int i = 0; i < 3; i++) { /* nobody to share with */
        fake_plan_product(t.plan, i, fakes.cpu_slot, fakes.cpu_slot, 1);
    }
    steps = unfold(&t);
    check_int(steps->groups[0].n_steps, 7);
    check_int(steps->groups[0].n_workers, 1);
    tnd_steps_free(steps);
    three_free(&t);
}

static void some_nodes_stand_alone(void)
{
    struct three t = three_new(2);
    struct tandem_task_config config = tandem_node_task_conf(t.plan, 2, TANDEM_STAGE_COMPUTE);
    config.wait = true;
    check_ok(tandem_node_set_task_conf(t.plan, 2, TANDEM_STAGE_COMPUTE, config));
    check_int(concurrent_end(t.graph, t.plan, 0), 2);
    config.wait = false;
    config.own_threads = true;
    check_ok(tandem_node_set_task_conf(t.plan, 2, TANDEM_STAGE_COMPUTE, config));
    check_int(concurrent_end(t.graph, t.plan, 0), 2);
    config.own_threads = false;
    check_ok(tandem_node_set_task_conf(t.plan, 2, TANDEM_STAGE_COMPUTE, config));
    check_int(concurrent_end(t.graph, t.plan, 0), 4);

    fake_plan_product(t.plan, 1, fakes.cpu_slot, fakes.cpu_slot, 3);
    check_int(concurrent_end(t.graph, t.plan, 0), 1);
    fake_plan_product(t.plan, 1, fakes.cpu_slot, fakes.device_slot, 2);
    check_int(concurrent_end(t.graph, t.plan, 0), 1);
    check_int(concurrent_end(t.graph, t.plan, 1), 2);
    three_free(&t);
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

static void custom_operations_and_shared_memory_end_a_wave(void)
{
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = leaf(context, K, M, 1);
    tandem_tensor *cache = leaf(context, K, M, 2);
    tandem_tensor *read = tandem_scale(context, cache, 2);
    tandem_tensor *write = tandem_cpy(context, x, cache);
    tandem_tensor *other = tandem_scale(context, x, 2);
    tandem_tensor *custom = tandem_custom(context, 2, x->ne, &x, 1, 4, do_nothing, NULL);
    tandem_graph_add(graph, read);
    tandem_graph_add(graph, write);
    tandem_graph_add(graph, other);
    tandem_graph_add(graph, custom);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(graph, NULL), TANDEM_OK);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    check_int(concurrent_end(graph, plan, 0), 1);
    check_int(concurrent_end(graph, plan, 1), 3);
    check_int(concurrent_end(graph, plan, 3), 4);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void a_wave_is_as_long_as_its_workspace_allows(void)
{
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = leaf(context, 1024, 1, 1);
    struct three t = {.context = context, .graph = graph};
    for (int i = 0; i < 4; i++) { /* 3 MiB of weights each */
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (int64_t[]){1024, 768});
        tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    }
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(graph, NULL), TANDEM_OK);
    t.plan = fake_plan(graph, fakes.cpu_slot, 2);
    for (int i = 0; i < 4; i++) {
        fake_plan_product(t.plan, i, fakes.cpu_slot, fakes.cpu_slot, 2);
    }
    struct tnd_steps *steps = unfold(&t);
    check_int(steps->groups[0].n_steps, 3);
    check_int(steps->workspace_bytes, 9 << 20);
    check_int(steps->n_groups, 4);
    check_int(steps->steps[steps->n_steps - 1].item, 3);
    tnd_steps_free(steps);
    three_free(&t);
}

static void results_are_the_same_on_any_number_of_threads(void)
{
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        struct three t = three_new(n_threads);
        for (int repeat = 0; repeat < 20; repeat++) {
            memset(t.y->data, 0, sizeof(t.expected));
            check_ok(tnd_exec_run(fakes.exec, t.graph, t.plan, NULL, NULL));
            check_nmse(t.y->data, t.expected, N * M, 1e-12, "concurrent nodes");
        }
        three_free(&t);
    }
}

static void an_error_beside_barriers_of_others_ends_the_run(void)
{
    struct three t = three_new(4);
    fake_plan_node(t.plan, 3, fakes.cpu_slot, 1);
    static const enum tandem_task tasks[] = {TANDEM_TASK_NODE, TANDEM_TASK_MUL_MAT_F32,
                                             TANDEM_TASK_DEQUANTIZE_W};
    for (int i = 0; i < 3; i++) {
        for (int worker = 0; worker < 4; worker++) {
            struct tandem_error error = {0};
            fakes.cpu->fail_task = tasks[i];
            fakes.cpu->fail_worker = worker;
            fakes.cpu->fail_status = TANDEM_E_DEVICE_MEMORY;
            check_status(tnd_exec_run(fakes.exec, t.graph, t.plan, NULL, &error),
                         TANDEM_E_DEVICE_MEMORY, "was told to fail", &error);
            fakes.cpu->fail_task = TANDEM_TASK_NONE;
            memset(t.y->data, 0, sizeof(t.expected));
            check_ok(tnd_exec_run(fakes.exec, t.graph, t.plan, NULL, &error));
            check_nmse(t.y->data, t.expected, N * M, 1e-12, "after a failure");
        }
    }
    three_free(&t);
}

static void every_step_of_a_shared_group_has_its_time(void)
{
    struct three t = three_new(2);
    struct tnd_step_time times[16];
    int n_times = 0;
    struct tnd_exec_run_options options = {.times = times, .n_times = 16, .out_n_times = &n_times};
    check_ok(tnd_exec_run(fakes.exec, t.graph, t.plan, &options, NULL));
    check_int(n_times, 8);
    for (int i = 0; i < n_times; i++) {
        CU_ASSERT(times[i].end_ns >= times[i].begin_ns);
        CU_ASSERT(i == 0 || times[i].begin_ns >= times[i - 1].begin_ns);
    }
    three_free(&t);
}

/* ---- orders ---- */

static void count_group(void *user, int n_done, int n_total)
{
    (void)n_done;
    (void)n_total;
    ++*(int *)user;
}

/* Steps and groups of a run; each group but the first costs a hand-off. */
static void count_run(const struct three *t, const tandem_plan *plan, int *out_steps,
                      int *out_groups)
{
    struct tnd_step_time times[16];
    struct tnd_exec_run_options options = {.progress = count_group,
                                           .user = out_groups,
                                           .times = times,
                                           .n_times = 16,
                                           .out_n_times = out_steps};
    *out_groups = 0;
    memset(t->y->data, 0, sizeof(t->expected));
    check_ok(tnd_exec_run(fakes.exec, t->graph, plan, &options, NULL));
    check_nmse(t->y->data, t->expected, N * M, 1e-12, "in an order");
}

static void a_schedule_without_splits_costs_no_step_and_no_group(void)
{
    static const int32_t orders[][6] = {{0, 1, 2, 3, 4, 5}, {3, 2, 1, 0, 4, 5}};
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        struct three t = three_new(n_threads);
        int want_steps, want_groups, n_steps, n_groups;
        check_int(t.graph->n_nodes, 6);
        count_run(&t, t.plan, &want_steps, &want_groups);
        check_int(want_groups, n_threads > 1 ? 4 : 1);
        for (int i = 0; i < 2; i++) {
            tandem_plan *plan = NULL;
            check_ok(tandem_plan_copy(t.plan, &plan, NULL));
            check_ok(tandem_plan_set_order(plan, orders[i], 6, NULL));
            count_run(&t, plan, &n_steps, &n_groups);
            check_int(n_steps, want_steps);
            check_int(n_groups, want_groups);
            tandem_plan_free(plan);
        }
        three_free(&t);
    }
}

/* What the products read is on a device: it is fetched before their first group. */
static void operands_from_a_device_come_before_the_group(void)
{
    struct three t = three_new(2);
    check_ok(tnd_registry_add(fakes.registry, &tnd_sim_own_api, NULL, NULL));
    int own = tnd_registry_find(fakes.registry, "simown", NULL);
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *x = tandem_scale(context, leaf(context, K, M, 3), 1);
    tandem_tensor *a = tandem_mul_mat(context, leaf(context, K, N, 1), x);
    tandem_tensor *b = tandem_mul_mat(context, leaf(context, K, N, 1), x);
    tandem_tensor *c = tandem_mul_mat(context, leaf(context, K, N, 2), x);
    struct three on_device = t;
    on_device.y = tandem_add(context, tandem_mul(context, a, b), c);
    on_device.graph = tandem_graph_new(context);
    tandem_graph_add(on_device.graph, on_device.y);
    check_ok(tandem_graph_finish(on_device.graph, NULL));
    for (int ordered = 0; ordered < 2; ordered++) {
        int n_steps, n_groups;
        on_device.plan = fake_plan(on_device.graph, fakes.cpu_slot, 2);
        fake_plan_node(on_device.plan, 0, own, 1);
        fake_plan_node(on_device.plan, 4, own, 1); /* and back */
        if (ordered == 1) {
            check_ok(tandem_plan_set_order(on_device.plan, (const int32_t[]){0, 3, 2, 1, 4, 5}, 6,
                                           NULL));
        }
        count_run(&on_device, on_device.plan, &n_steps, &n_groups);
        check_int(n_groups, 4); /* x and its download; the products; mul on the device; add */
        tandem_plan_free(on_device.plan);
    }
    tandem_context_free(context);
    three_free(&t);
}

static CU_TestInfo concurrent_tests[] = {
    {"independent_neighbours_share_the_groups_of_their_stages",
     independent_neighbours_share_the_groups_of_their_stages},
    {"an_init_that_serves_two_nodes_runs_once", an_init_that_serves_two_nodes_runs_once},
    {"one_thread_nodes_stand_beside_parallel_ones", one_thread_nodes_stand_beside_parallel_ones},
    {"some_nodes_stand_alone", some_nodes_stand_alone},
    {"custom_operations_and_shared_memory_end_a_wave",
     custom_operations_and_shared_memory_end_a_wave},
    {"a_wave_is_as_long_as_its_workspace_allows", a_wave_is_as_long_as_its_workspace_allows},
    {"results_are_the_same_on_any_number_of_threads",
     results_are_the_same_on_any_number_of_threads},
    {"an_error_beside_barriers_of_others_ends_the_run",
     an_error_beside_barriers_of_others_ends_the_run},
    {"every_step_of_a_shared_group_has_its_time", every_step_of_a_shared_group_has_its_time},
    {"a_schedule_without_splits_costs_no_step_and_no_group",
     a_schedule_without_splits_costs_no_step_and_no_group},
    {"operands_from_a_device_come_before_the_group", operands_from_a_device_come_before_the_group},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_wave[] = {
    {"concurrent", NULL, NULL, set_up, tear_down, concurrent_tests},
    CU_SUITE_INFO_NULL,
};
