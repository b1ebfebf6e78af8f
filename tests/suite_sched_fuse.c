/* SPDX-License-Identifier: MIT
 * Chains of nodes that run as one step: which are found, which are left alone, and that nothing of
 * it can be seen in the results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/fuse.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { N = 40, M = 6, MOST_NODES = 48 };

static struct fakes fakes;
static tandem_context *context;

static void set_up(void)
{
    fakes_open(&fakes, 8, -1, NULL);
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
}

static void tear_down(void)
{
    tandem_context_free(context);
    fakes_close(&fakes);
}

static tandem_tensor *leaf(int64_t ne0, int64_t ne1, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *tensor =
        tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){ne0, ne1});
    tnd_test_fill(&rng, tandem_tensor_data(tensor), ne0 * ne1);
    return tensor;
}

/* A graph, and its nodes' places in chains when all of them run whole on `slot`. */
struct fused_graph {
    tandem_graph *graph;
    tandem_plan *plan;
    struct tnd_items items;
};

static void fuse_again(struct fused_graph *f)
{
    check_ok(tnd_items_renew(f->graph, f->plan, fakes.registry, NULL, &f->items, NULL));
    tnd_fuse(f->graph, fakes.registry, &f->items);
}

static void fused_free(struct fused_graph *f)
{
    tnd_free(f->items.memory);
    tandem_plan_free(f->plan);
}

static struct fused_graph fuse(tandem_tensor *a, tandem_tensor *b, int slot)
{
    struct fused_graph f = {.graph = tandem_graph_new(context)};
    tandem_graph_add(f.graph, a);
    if (b != NULL) {
        tandem_graph_add(f.graph, b);
    }
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(f.graph, NULL), TANDEM_OK);
    f.plan = fake_plan(f.graph, slot, 2);
    fuse_again(&f);
    return f;
}

/* The chains as text: "012" and "34", or "-" for none. */
static void check_chains(const struct fused_graph *f, const char *expected)
{
    char text[2 * MOST_NODES] = "";
    size_t n = 0;
    for (int i = 0; i < f->graph->n_nodes; i++) {
        int nodes[TANDEM_FUSED_NODES];
        if (f->items.list[i].into >= 0 || f->items.list[i].from < 0) {
            continue;
        }
        int count = tnd_fused_items(&f->items, i, nodes);
        text[n] = ' ';
        n += n > 0;
        for (int j = 0; j < count; j++) {
            text[n++] = (char)('0' + nodes[j]);
        }
    }
    check_string(n > 0 ? text : "-", expected);
}

/* Runs it in both ways and on one to eight threads: the same bits. */
static void check_results(struct fused_graph *f, tandem_tensor *a, tandem_tensor *b, int slot)
{
    size_t a_bytes = tandem_tensor_bytes(a);
    size_t b_bytes = b != NULL ? tandem_tensor_bytes(b) : 0;
    char *alone = malloc(a_bytes + b_bytes);
    for (int n_threads = 0; n_threads <= 8; n_threads++) {
        tandem_plan *plan = fake_plan(f->graph, slot, n_threads > 0 ? n_threads : 1);
        tnd_exec_set_execution(fakes.exec, n_threads > 0 ? TANDEM_EXECUTE_DEFAULT : 0);
        check_ok(tnd_exec_run(fakes.exec, f->graph, plan, NULL, NULL));
        if (n_threads == 0) {
            memcpy(alone, a->data, a_bytes);
            memcpy(alone + a_bytes, b != NULL ? b->data : alone, b_bytes);
        } else {
            check_bits(a->data, alone, a_bytes, "fused");
            check_bits(b != NULL ? b->data : alone, b != NULL ? alone + a_bytes : alone, b_bytes,
                       "fused, second output");
        }
        memset(a->data, 0, a_bytes);
        tandem_plan_free(plan);
    }
    free(alone);
}

static void check_pattern(tandem_tensor *a, tandem_tensor *b, const char *chains)
{
    struct fused_graph f = fuse(a, b, TANDEM_BACKEND_CPU);
    check_chains(&f, chains);
    check_results(&f, a, b, TANDEM_BACKEND_CPU);
    fused_free(&f);
}

/* ---- patterns ---- */

static tandem_tensor *norm(tandem_tensor *x)
{
    return tandem_mul(context, tandem_rms_norm(context, x, 1e-5f), leaf(N, 1, 9));
}

static void a_norm_and_its_weights_are_one(void)
{
    check_pattern(norm(leaf(N, M, 1)), NULL, "01");
}

static void silu_and_the_product_with_up_are_one(void)
{
    tandem_tensor *gate = tandem_mul_mat(context, leaf(N, N, 1), leaf(N, M, 2));
    tandem_tensor *up = tandem_mul_mat(context, leaf(N, N, 3), leaf(N, M, 4));
    check_pattern(tandem_mul(context, tandem_silu(context, gate), up), NULL, "23");
}

static void a_sum_that_is_kept_is_normed_with_it(void)
{
    tandem_tensor *sum = tandem_add(context, leaf(N, M, 1), leaf(N, M, 2));
    tandem_tensor *y = tandem_mul_mat(context, leaf(N, N, 3), norm(sum));
    check_pattern(tandem_add(context, sum, y), NULL, "012");
}

static void nodes_in_between_do_not_hinder(void)
{
    tandem_tensor *x = leaf(N, M, 1);
    tandem_tensor *gate = tandem_silu(context, tandem_mul_mat(context, leaf(N, N, 2), x));
    tandem_tensor *up = tandem_mul_mat(context, leaf(N, N, 3), x);
    check_pattern(tandem_mul(context, gate, up), NULL, "13");
}

static void a_chain_has_an_end(void)
{
    tandem_tensor *x = leaf(N, M, 1);
    for (int i = 0; i < 6; i++) {
        x = tandem_scale(context, tandem_sqr(context, x), 0.5f);
    }
    check_pattern(x, NULL, "01234567 89:;");
}

static void outputs_and_what_others_read_are_written(void)
{
    tandem_tensor *normed = tandem_rms_norm(context, leaf(N, M, 1), 1e-5f);
    check_pattern(tandem_mul(context, normed, leaf(N, 1, 2)), normed, "01");
    tandem_tensor *sum = tandem_add(context, leaf(N, M, 3), leaf(N, M, 4));
    tandem_tensor *part = tandem_view(context, sum, 1, (int64_t[]){8}, NULL, 0);
    tandem_tensor *y = tandem_silu(context, sum);
    check_pattern(y, tandem_scale(context, part, 2), "01");
    sum = tandem_add(context, leaf(N, M, 3), leaf(N, M, 4)); /* read before the chain would run */
    y = tandem_scale(context, tandem_view(context, sum, 1, (int64_t[]){8}, NULL, 0), 2);
    check_pattern(tandem_silu(context, sum), y, "-");
}

static void other_shapes_and_operations_stand_alone(void)
{
    tandem_tensor *w = tandem_silu(context, leaf(N, 1, 1));
    check_pattern(tandem_mul(context, leaf(N, M, 2), w), NULL, "-"); /* repeated for all rows */
    tandem_tensor *x = tandem_silu(context, leaf(N, M, 3));
    tandem_tensor *turned = tandem_cont(context, tandem_transpose(context, x));
    check_pattern(tandem_soft_max(context, turned, NULL, 1.0f), NULL, "-");
    tandem_tensor *viewed = tandem_view(context, tandem_silu(context, leaf(N, M, 4)), 2,
                                        (int64_t[]){N, 2}, (size_t[]){N * sizeof(float)}, 0);
    check_pattern(tandem_scale(context, viewed, 2), NULL, "-");
}

static void devices_and_other_backends_are_left_alone(void)
{
    tandem_tensor *y = norm(leaf(N, M, 1));
    struct fused_graph f = fuse(y, NULL, fakes.cpu_slot); /* does not fuse */
    check_chains(&f, "-");
    fake_plan_node(f.plan, 0, TANDEM_BACKEND_CPU, 1);
    fuse_again(&f);
    check_chains(&f, "-");
    fake_plan_node(f.plan, 0, fakes.device_slot, 1);
    fake_plan_node(f.plan, 1, fakes.device_slot, 1);
    fuse_again(&f);
    check_chains(&f, "-");
    fake_plan_node(f.plan, 0, TANDEM_BACKEND_CPU, 1);
    fake_plan_node(f.plan, 1, TANDEM_BACKEND_CPU, 1);
    fuse_again(&f);
    check_chains(&f, "01");
    fused_free(&f);
}

/* ---- steps ---- */

static void the_last_node_stands_for_its_chain(void)
{
    tandem_tensor *sum = tandem_add(context, leaf(N, M, 1), leaf(N, M, 2));
    tandem_tensor *y = norm(sum);
    struct fused_graph f = fuse(y, sum, TANDEM_BACKEND_CPU);
    struct tnd_steps *steps = NULL;
    fake_plan_node(f.plan, 0, TANDEM_BACKEND_CPU, 3);
    fake_plan_node(f.plan, 2, TANDEM_BACKEND_CPU, 1);
    check_ok(tnd_steps_new(f.graph, f.plan, fakes.registry, &steps, NULL));
    check_int(steps->n_steps, 1);
    check_int(steps->steps[0].item, 2);
    check_int(steps->steps[0].n_workers, 3); /* as many as one of its nodes wants */
    check_ok(tnd_steps_renew(f.graph, f.plan, fakes.registry, NULL, 0, &steps, NULL));
    check_int(steps->n_steps, 3);
    tnd_steps_free(steps);

    struct tnd_step_time times[4];
    int n_times = 0;
    struct tnd_exec_run_options options = {.times = times, .n_times = 4, .out_n_times = &n_times};
    tnd_exec_set_execution(fakes.exec, TANDEM_EXECUTE_DEFAULT);
    check_ok(tnd_exec_run(fakes.exec, f.graph, f.plan, &options, NULL));
    check_int(n_times, 1);
    check_int(times[0].node, 2);
    fused_free(&f);
}

static void nodes_that_are_fused_are_still_checked(void)
{
    struct fused_graph f = fuse(norm(leaf(N, M, 1)), NULL, TANDEM_BACKEND_CPU);
    struct tandem_error error = {0};
    struct tnd_steps *steps = NULL;
    fake_plan_node(f.plan, 0, TANDEM_BACKEND_CPU, 0);
    check_status(tnd_steps_new(f.graph, f.plan, fakes.registry, &steps, &error), TANDEM_E_ARGUMENT,
                 "node 0 (rms_norm)", &error);
    fused_free(&f);
}

/* ---- random graphs ---- */

static tandem_tensor *random_node(struct tnd_test_rng *rng, tandem_tensor **made, int n)
{
    int64_t back = n < 6 ? n : 6;
    tandem_tensor *x = made[n - 1 - tnd_test_rng_int(rng, 0, back - 1)];
    tandem_tensor *y = made[n - 1 - tnd_test_rng_int(rng, 0, back - 1)];
    tandem_tensor *row = tandem_view(context, y, 1, (int64_t[]){N}, NULL, 0);
    switch (tnd_test_rng_int(rng, 0, 10)) {
    case 0:
        return tandem_add(context, x, y);
    case 1:
        return tandem_mul(context, x, y);
    case 2:
        return tandem_sub(context, x, row);
    case 3:
        return tandem_rms_norm(context, x, 1e-5f);
    case 4:
        return tandem_norm(context, x, 1e-5f);
    case 5:
        return tandem_silu(context, x);
    case 6:
        return tandem_mul(context, tandem_silu(context, x), y);
    case 7:
        return tandem_mul(context, tandem_rms_norm(context, x, 1e-5f), row);
    case 8: /* over an earlier result, which others may still read; a leaf would not be the same */
        return tandem_cpy(context, x,
                          y->root == x->root || y->root->op == TANDEM_OP_NONE ? leaf(N, M, 5) : y);
    case 9:
        return tandem_mul_mat(context, leaf(N, N, 7), x);
    default:
        return tandem_scale(context, x, 0.5f);
    }
}

static void random_graphs_give_the_same_bits_fused_or_not(void)
{
    int n_graphs = 60 * tnd_effort();
    for (int g = 0; g < n_graphs; g++) {
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)g);
        tandem_tensor *made[MOST_NODES];
        int n = 3;
        for (int i = 0; i < n; i++) {
            made[i] = leaf(N, M, (uint64_t)i + 1);
        }
        while (n < 24) {
            made[n] = random_node(&rng, made, n);
            n++;
        }
        tandem_tensor *a = tandem_cont(context, made[n - 1]);
        tandem_tensor *b = tandem_cont(context, made[n - 3]);
        struct fused_graph f = fuse(a, b, TANDEM_BACKEND_CPU);
        check_results(&f, a, b, TANDEM_BACKEND_CPU);
        fused_free(&f);
        tandem_context_reset(context);
    }
}

/* Some nodes on a device with memory of its own, in the graph's order given as a schedule or not:
 * the others are fused where no device comes between, and that changes no bit. */
static void random_graphs_beside_a_device_give_the_same_bits_fused_or_not(void)
{
    int n_graphs = 60 * tnd_effort();
    int n_saved = 0;
    check_ok(tnd_registry_add(fakes.registry, &tnd_sim_own_api, NULL, NULL));
    int own = tnd_registry_find(fakes.registry, "simown", NULL);
    for (int g = 0; g < n_graphs; g++) {
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)g);
        tandem_tensor *made[MOST_NODES];
        int32_t order[MOST_NODES];
        float alone[N * M];
        int n_works[3] = {0};
        for (int n = 0; n < 24; n++) {
            made[n] = n < 3 ? leaf(N, M, (uint64_t)n + 1) : random_node(&rng, made, n);
        }
        tandem_tensor *a = tandem_cont(context, made[23]);
        struct fused_graph f = fuse(a, NULL, TANDEM_BACKEND_CPU);
        for (int i = 0; i < f.graph->n_nodes; i++) {
            bool is_there = tnd_test_rng_int(&rng, 0, 3) == 0;
            fake_plan_node(f.plan, i, is_there ? own : TANDEM_BACKEND_CPU, is_there ? 1 : 2);
            order[i] = i;
        }
        for (int way = 0; way < 3; way++) { /* plain, fused, fused with an order */
            struct tnd_step_time times[4 * MOST_NODES];
            int n_times = 0;
            struct tnd_exec_run_options options = {
                .times = times, .n_times = 4 * MOST_NODES, .out_n_times = &n_times};
            tnd_exec_set_execution(fakes.exec, way > 0 ? TANDEM_EXECUTE_DEFAULT : 0);
            if (way == 2) {
                check_ok(tandem_plan_set_order(f.plan, order, f.graph->n_nodes, NULL));
            }
            check_ok(tnd_exec_run(fakes.exec, f.graph, f.plan, &options, NULL));
            if (way == 0) {
                memcpy(alone, a->data, sizeof(alone));
            }
            check_bits(a->data, alone, sizeof(alone), "beside a device");
            for (int i = 0; i < n_times; i++) {
                n_works[way] += times[i].kind == TND_STEP_WORK;
            }
            CU_ASSERT_TRUE(n_works[way] <= n_works[0]);
            n_saved += n_works[0] - n_works[way];
            memset(a->data, 0, sizeof(alone));
        }
        fused_free(&f);
        tandem_context_reset(context);
    }
    CU_ASSERT_TRUE(n_saved > n_graphs / 4);
}

static CU_TestInfo fuse_tests[] = {
    {"a_norm_and_its_weights_are_one", a_norm_and_its_weights_are_one},
    {"silu_and_the_product_with_up_are_one", silu_and_the_product_with_up_are_one},
    {"a_sum_that_is_kept_is_normed_with_it", a_sum_that_is_kept_is_normed_with_it},
    {"nodes_in_between_do_not_hinder", nodes_in_between_do_not_hinder},
    {"a_chain_has_an_end", a_chain_has_an_end},
    {"outputs_and_what_others_read_are_written", outputs_and_what_others_read_are_written},
    {"other_shapes_and_operations_stand_alone", other_shapes_and_operations_stand_alone},
    {"devices_and_other_backends_are_left_alone", devices_and_other_backends_are_left_alone},
    {"the_last_node_stands_for_its_chain", the_last_node_stands_for_its_chain},
    {"nodes_that_are_fused_are_still_checked", nodes_that_are_fused_are_still_checked},
    {"random_graphs_give_the_same_bits_fused_or_not",
     random_graphs_give_the_same_bits_fused_or_not},
    {"random_graphs_beside_a_device_give_the_same_bits_fused_or_not",
     random_graphs_beside_a_device_give_the_same_bits_fused_or_not},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_fuse[] = {
    {"fusion", NULL, NULL, set_up, tear_down, fuse_tests},
    CU_SUITE_INFO_NULL,
};
