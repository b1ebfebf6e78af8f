/* SPDX-License-Identifier: MIT
 * Plans as data, and their unfolding into steps and groups. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

static struct fakes fakes;

static void set_up(void)
{
    fakes_open(&fakes, 4, -1, NULL);
}

static void tear_down(void)
{
    fakes_close(&fakes);
}

/* ---- plans ---- */

static void a_new_plan_runs_every_node_on_one_cpu_thread(void)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_plan_new(3, &plan, NULL));
    check_int(tandem_plan_node_count(plan), 3);
    check_int(tandem_plan_threads(plan), 1);
    for (int i = 0; i < 3; i++) {
        struct tandem_task_config config = tandem_node_task_conf(plan, i, TANDEM_STAGE_COMPUTE);
        check_int(config.backend, TANDEM_BACKEND_CPU);
        check_int(config.task, TANDEM_TASK_NODE);
        check_int(tandem_node_task_conf(plan, i, TANDEM_STAGE_INIT).backend, TANDEM_BACKEND_NONE);
        check_string(tandem_plan_node(plan, i)->profile, "cpu");
    }
    CU_ASSERT_PTR_NULL(tandem_plan_node(plan, 3));
    CU_ASSERT_PTR_NULL(tandem_plan_node(plan, -1));
    tandem_plan_free(plan);
    tandem_plan_free(NULL);
}

static void plans_are_changed_by_hand_and_copied(void)
{
    tandem_plan *plan = NULL;
    tandem_plan *copy = NULL;
    struct tandem_task_config config = {.backend = 2, .task = TANDEM_TASK_DEQUANTIZE_W};
    check_ok(tandem_plan_new(2, &plan, NULL));
    check_ok(tandem_node_set_task_conf(plan, 1, TANDEM_STAGE_INIT, config));
    check_int(tandem_plan_node(plan, 1)->reason, TANDEM_REASON_HAND);
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_ONLY);
    struct tandem_plan_node node = *tandem_plan_node(plan, 0);
    node.n_threads = 7;
    memset(node.profile, 'x', sizeof(node.profile));
    check_ok(tandem_plan_set_node(plan, 0, &node));
    check_int(strlen(tandem_plan_node(plan, 0)->profile), sizeof(node.profile) - 1);
    check_int(tandem_plan_threads(plan), 7);
    check_ok(tandem_plan_copy(plan, &copy, NULL));
    check_bits(tandem_plan_node(copy, 0), tandem_plan_node(plan, 0),
               2 * sizeof(struct tandem_plan_node), "nodes of the copy");
    tandem_plan_free(plan);
    tandem_plan_free(copy);
}

static void plans_refuse_what_does_not_exist(void)
{
    tandem_plan *plan = NULL;
    struct tandem_error error = {0};
    struct tandem_task_config config = {.backend = 1, .task = TANDEM_TASK_NODE};
    check_status(tandem_plan_new(-1, &plan, &error), TANDEM_E_ARGUMENT, "-1 nodes", &error);
    check_ok(tandem_plan_new(1, &plan, NULL));
    check_status(tandem_plan_set_node(plan, 1, tandem_plan_node(plan, 0)), TANDEM_E_ARGUMENT, NULL,
                 NULL);
    check_status(tandem_plan_set_node(plan, 0, NULL), TANDEM_E_ARGUMENT, NULL, NULL);
    check_status(tandem_node_set_task_conf(plan, 0, (enum tandem_stage)3, config),
                 TANDEM_E_ARGUMENT, NULL, NULL);
    config.backend = TANDEM_MAX_BACKENDS;
    check_status(tandem_node_set_task_conf(plan, 0, TANDEM_STAGE_INIT, config), TANDEM_E_ARGUMENT,
                 NULL, NULL);
    config.backend = 1;
    config.task = TANDEM_TASK_COUNT;
    check_status(tandem_node_set_task_conf(plan, 0, TANDEM_STAGE_INIT, config), TANDEM_E_ARGUMENT,
                 NULL, NULL);
    check_int(tandem_node_task_conf(NULL, 0, TANDEM_STAGE_INIT).backend, 0);
    check_int(tandem_plan_node_count(NULL), 0);
    check_string(tandem_stage_name(TANDEM_STAGE_FINALIZE), "finalize");
    check_string(tandem_stage_name((enum tandem_stage)9), "unknown");
    check_string(tandem_plan_reason_name(TANDEM_REASON_HAND), "hand");
    check_string(tandem_plan_reason_name((enum tandem_plan_reason)9), "unknown");
    tandem_plan_free(plan);
}

/* ---- graphs to unfold ---- */

static tandem_context *context_new(void)
{
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    return context;
}

static tandem_graph *finished(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, a);
    if (b != NULL) {
        tandem_graph_add(graph, b);
    }
    check_status(tandem_graph_finish(graph, &error), TANDEM_OK, NULL, &error);
    return graph;
}

/* n scales, one after the other. */
static tandem_graph *chain(tandem_context *context, int n)
{
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){32});
    for (int i = 0; i < n; i++) {
        x = tandem_scale(context, x, 2);
    }
    return finished(context, x, NULL);
}

static struct tnd_steps *unfold(const tandem_graph *graph, const tandem_plan *plan)
{
    struct tnd_steps *steps = NULL;
    struct tandem_error error = {0};
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error), TANDEM_OK, NULL,
                 &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(steps);
    return steps;
}

static void one_thread_steps_fold_into_one_group(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = chain(context, 5);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_steps, 5);
    check_int(steps->n_groups, 1);
    check_int(steps->n_workers, 1);
    check_int(steps->workspace_bytes, 0);
    tnd_steps_free(steps);

    fake_plan_node(plan, 2, fakes.cpu_slot, 3);
    steps = unfold(graph, plan);
    check_int(steps->n_groups, 3);
    check_int(steps->n_workers, 3);
    check_int(steps->groups[0].n_steps, 2);
    check_int(steps->groups[1].n_workers, 3);
    check_int(steps->groups[2].first_step, 3);
    check_int(steps->steps[2].until, 2);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void parallel_steps_stand_alone(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = chain(context, 3);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_groups, 3);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void idle_workers_sleep_in_a_gap_that_asks_for_it(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = chain(context, 4);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    fake_plan_node(plan, 1, fakes.cpu_slot, 1);
    struct tandem_task_config config = tandem_node_task_conf(plan, 1, TANDEM_STAGE_COMPUTE);
    config.wait = true;
    check_ok(tandem_node_set_task_conf(plan, 1, TANDEM_STAGE_COMPUTE, config));
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_groups, 4);
    CU_ASSERT_TRUE(steps->groups[0].wait_after);
    CU_ASSERT_FALSE(steps->groups[2].wait_after);
    CU_ASSERT_FALSE(steps->groups[3].wait_after);
    tnd_steps_free(steps);
    plan->nodes[1].predicted_us[TANDEM_STAGE_COMPUTE] = 500; /* they wait as they will be told */
    steps = unfold(graph, plan);
    CU_ASSERT_TRUE(tnd_step_is_timed(&steps->steps[1]));
    CU_ASSERT_FALSE(steps->groups[0].wait_after);
    tnd_steps_free(steps);
    plan->nodes[1].stage[TANDEM_STAGE_COMPUTE].own_threads = true; /* wants all CPUs to its end */
    plan->nodes[1].n_threads = 2;
    steps = unfold(graph, plan);
    CU_ASSERT_FALSE(tnd_step_is_timed(&steps->steps[1]));
    CU_ASSERT_TRUE(steps->groups[0].wait_after);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

/* ---- devices ---- */

/* Two independent products and their sum: nodes 0, 1, 2. */
static tandem_graph *two_products(tandem_context *context)
{
    tandem_tensor *w1 = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){16, 8});
    tandem_tensor *w2 = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){16, 8});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){16, 3});
    tandem_tensor *a = tandem_mul_mat(context, w1, x);
    tandem_tensor *b = tandem_mul_mat(context, w2, x);
    return finished(context, tandem_add(context, a, b), NULL);
}

static void a_device_step_is_synced_before_its_first_user(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = two_products(context);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    fake_plan_node(plan, 0, fakes.device_slot, 1);
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_groups, 2); /* the independent product runs beside the device */
    check_int(steps->steps[0].n_workers, 0);
    check_int(steps->steps[0].group, 0);
    check_int(steps->steps[0].until, 1);
    check_int(steps->steps[1].group, 0);
    check_int(steps->steps[2].group, 1);
    tnd_steps_free(steps);

    fake_plan_node(plan, 1, fakes.cpu_slot, 2);
    steps = unfold(graph, plan);
    check_int(steps->n_groups, 3);
    check_int(steps->steps[0].until, 2);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void devices_in_flight_have_workspaces_of_their_own(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = two_products(context);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    fake_plan_product(plan, 0, fakes.cpu_slot, fakes.device_slot, 1);
    fake_plan_product(plan, 1, fakes.cpu_slot, fakes.cpu_slot, 1);
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_steps, 5);
    check_int(steps->steps[0].workspace_offset, 0);
    check_int(steps->steps[1].workspace_offset, 0); /* stages of a node share */
    check_int(steps->steps[2].workspace_offset, 512);
    check_int(steps->steps[3].workspace_offset, 512);
    check_int(steps->workspace_bytes, 1024);
    check_int(steps->scratch_bytes, 64);
    check_int(steps->steps[3].row_end, 8);
    tnd_steps_free(steps);

    fake_plan_product(plan, 0, fakes.cpu_slot, fakes.cpu_slot, 1);
    steps = unfold(graph, plan);
    check_int(steps->workspace_bytes, 512); /* nodes that follow each other share */
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void a_device_that_reads_memory_is_synced_before_it_is_overwritten(void)
{
    tandem_context *context = context_new();
    tandem_tensor *cache = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    tandem_tensor *read = tandem_scale(context, cache, 2);
    tandem_tensor *write = tandem_cpy(context, x, cache);
    tandem_graph *graph = finished(context, read, write);
    check_int(graph->n_nodes, 2);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    fake_plan_node(plan, 0, fakes.device_slot, 1);
    struct tnd_steps *steps = unfold(graph, plan);
    check_int(steps->n_groups, 2);
    check_int(steps->steps[0].until, 1);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

/* ---- refusals ---- */

static void bad_plans_are_refused_with_the_place_and_the_reason(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = chain(context, 2);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 1);
    struct tnd_steps *steps = NULL;
    struct tandem_error error = {0};
    struct tandem_plan_node node = *tandem_plan_node(plan, 1);

    fake_plan_product(plan, 1, fakes.cpu_slot, fakes.cpu_slot, 1);
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "node 1 (scale) stage init: fakecpu", &error);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "no such task for scale"));

    tandem_plan_set_node(plan, 1, &node);
    fake_plan_node(plan, 1, 13, 1);
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 "no backend in this slot", &error);
    fake_plan_node(plan, 1, 0, 1);
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 "there is no backend", &error);
    fake_plan_node(plan, 1, fakes.cpu_slot, 0);
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 "thread count", &error);
    tandem_plan_free(plan);

    check_ok(tandem_plan_new(3, &plan, NULL));
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 "3 nodes, the graph has 2", &error);
    check_status(tnd_steps_new(graph, NULL, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 NULL, &error);
    check_status(tnd_steps_new(tandem_graph_new(context), plan, fakes.registry, &steps, &error),
                 TANDEM_E_STATE, "not finished", &error);
    CU_ASSERT_PTR_NULL(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static void unfolding_again_takes_no_memory(void)
{
    tandem_context *context = context_new();
    tandem_graph *graph = chain(context, 40);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    struct tnd_steps *steps = unfold(graph, plan);
    check_ok(/* the second time, the plan is copied */
             tnd_steps_renew(graph, plan, fakes.registry, NULL, TANDEM_EXECUTE_DEFAULT, &steps,
                             NULL));
    long before = tnd_alloc_count();
    check_ok(
        tnd_steps_renew(graph, plan, fakes.registry, NULL, TANDEM_EXECUTE_DEFAULT, &steps, NULL));
    check_int(tnd_alloc_count(), before);
    check_int(steps->n_groups, 40);
    tnd_steps_free(steps);

    steps = NULL;
    tnd_alloc_fail_after(1);
    check_status(tnd_steps_new(graph, plan, fakes.registry, &steps, NULL), TANDEM_E_MEMORY, NULL,
                 NULL);
    tnd_alloc_fail_after(-1);
    CU_ASSERT_PTR_NULL(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

/* Renews steps that carry a mark; whether it is still there says whether they were kept. */
static bool are_kept(struct tnd_steps **io_steps, const tandem_graph *graph,
                     const tandem_plan *plan, uint32_t execution)
{
    const float mark = 1234.5F;
    (*io_steps)->steps[0].predicted_us = mark;
    check_ok(tnd_steps_renew(graph, plan, fakes.registry, NULL, execution, io_steps, NULL));
    return (*io_steps)->steps[0].predicted_us == mark;
}

static void steps_are_kept_while_nothing_changes(void)
{
    const uint32_t execution = TANDEM_EXECUTE_DEFAULT;
    tandem_context *context = context_new();
    tandem_tensor *leaf = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (const int64_t[]){64});
    tandem_graph *graph = chain(context, 5);
    tandem_plan *plan = fake_plan(graph, fakes.cpu_slot, 2);
    struct tnd_steps *steps = unfold(graph, plan);
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution)); /* most graphs run once */
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_TRUE(are_kept(&steps, graph, plan, execution));
    }
    fake_plan_node(plan, 3, fakes.cpu_slot, 1); /* in place */
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));
    check_int(steps->steps[3].n_workers, 1);
    CU_ASSERT_TRUE(are_kept(&steps, graph, plan, execution));
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, 0));
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));
    tandem_tensor_set_role(leaf, TANDEM_ROLE_CONSTANT);
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));

    tandem_graph *other = chain(context, 5);
    CU_ASSERT_FALSE(are_kept(&steps, other, plan, execution));
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));

    fake_plan_node(plan, 3, 13, 1); /* a failure leaves nothing behind */
    CU_ASSERT_EQUAL(tnd_steps_renew(graph, plan, fakes.registry, NULL, execution, &steps, NULL),
                    TANDEM_E_ARGUMENT);
    fake_plan_node(plan, 3, fakes.cpu_slot, 1);
    check_ok(tnd_steps_renew(graph, plan, fakes.registry, NULL, execution, &steps, NULL));
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));

    fake_plan_node(plan, 3, fakes.device_slot, 1);
    CU_ASSERT_FALSE(are_kept(&steps, graph, plan, execution));
    CU_ASSERT_TRUE(are_kept(&steps, graph, plan, execution));
    CU_ASSERT_TRUE(tnd_registry_quarantine(fakes.registry, fakes.device_slot, "it broke"));
    CU_ASSERT_EQUAL(tnd_steps_renew(graph, plan, fakes.registry, NULL, execution, &steps, NULL),
                    TANDEM_E_UNSUPPORTED_BACKEND);
    tnd_steps_free(steps);
    tandem_plan_free(plan);
    tandem_context_free(context);
}

static CU_TestInfo tests[] = {
    {"a_new_plan_runs_every_node_on_one_cpu_thread", a_new_plan_runs_every_node_on_one_cpu_thread},
    {"plans_are_changed_by_hand_and_copied", plans_are_changed_by_hand_and_copied},
    {"plans_refuse_what_does_not_exist", plans_refuse_what_does_not_exist},
    {"one_thread_steps_fold_into_one_group", one_thread_steps_fold_into_one_group},
    {"parallel_steps_stand_alone", parallel_steps_stand_alone},
    {"idle_workers_sleep_in_a_gap_that_asks_for_it", idle_workers_sleep_in_a_gap_that_asks_for_it},
    {"a_device_step_is_synced_before_its_first_user",
     a_device_step_is_synced_before_its_first_user},
    {"devices_in_flight_have_workspaces_of_their_own",
     devices_in_flight_have_workspaces_of_their_own},
    {"a_device_that_reads_memory_is_synced_before_it_is_overwritten",
     a_device_that_reads_memory_is_synced_before_it_is_overwritten},
    {"bad_plans_are_refused_with_the_place_and_the_reason",
     bad_plans_are_refused_with_the_place_and_the_reason},
    {"unfolding_again_takes_no_memory", unfolding_again_takes_no_memory},
    {"steps_are_kept_while_nothing_changes", steps_are_kept_while_nothing_changes},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_step[] = {
    {"plan and steps", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
