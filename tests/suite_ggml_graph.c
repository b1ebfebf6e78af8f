/* SPDX-License-Identifier: MIT
 * Graphs: order, outputs, shared memory, hazards, depth, failing memory. */
#include <string.h>

#include "base/alloc.h"
#include "tests/suite_ggml.h"

static tandem_graph *finished(tandem_context *context, tandem_tensor *const *results, int n)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(context);
    for (int i = 0; i < n; i++) {
        tandem_graph_add(graph, results[i]);
    }
    if (tandem_graph_finish(graph, &error) != TANDEM_OK) {
        check_string(error.text, "finished");
        return NULL;
    }
    return graph;
}

static void nodes_run_in_the_order_of_building_without_views(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 4, 0, 0);
    tandem_tensor *a = tandem_scale(c, x, 2.0f);
    tandem_tensor *b = tandem_scale(c, x, 3.0f);
    tandem_tensor *unused = tandem_sqr(c, b);
    tandem_tensor *turned = tandem_transpose(c, a);
    tandem_tensor *d = tandem_cont(c, turned);
    tandem_tensor *e = tandem_add(c, b, d);
    /* added last to first */
    tandem_graph *graph = finished(c, (tandem_tensor *[]){e, a}, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_int(tandem_graph_node_count(graph), 4);
    CU_ASSERT_PTR_EQUAL(tandem_graph_node(graph, 0), a);
    CU_ASSERT_PTR_EQUAL(tandem_graph_node(graph, 1), b);
    CU_ASSERT_PTR_EQUAL(tandem_graph_node(graph, 2), d);
    CU_ASSERT_PTR_EQUAL(tandem_graph_node(graph, 3), e);
    CU_ASSERT_PTR_NULL(tandem_graph_node(graph, 4));
    CU_ASSERT_PTR_NULL(tandem_graph_node(graph, -1));
    CU_ASSERT_PTR_NULL(unused->graph);
    check_ok(ggml_compute(graph, NULL));
    const float *values = tandem_tensor_data(e);
    CU_ASSERT_EQUAL(values[1], 3.0f + 2.0f * 4.0f);
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(a))[5], 10.0f);
    tandem_context_free(c);
}

static void reads_before_and_after_a_cpy_see_old_and_new_values(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *cache = ggml_ramp(c, 1.0f, 4, 2, 0, 0); /* {4, 2}: 0..7 */
    tandem_tensor *fresh = ggml_ramp(c, 100.0f, 4, 0, 0, 0);
    tandem_tensor *row = tandem_view(c, cache, 1, (int64_t[]){4}, NULL, 16);
    tandem_tensor *before = tandem_scale(c, row, 1.0f);
    tandem_tensor *write = tandem_cpy(c, fresh, row);
    tandem_tensor *after = tandem_scale(c, row, 1.0f);
    tandem_tensor *through = tandem_scale(c, write, 2.0f);
    tandem_graph *graph = finished(c, (tandem_tensor *[]){after, through, before}, 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_ok(ggml_compute(graph, NULL));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(before))[3], 7.0f);
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(after))[3], 300.0f);
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(through))[3], 600.0f);
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(cache))[7], 300.0f);
    CU_ASSERT_PTR_EQUAL(tandem_tensor_data(write), (char *)tandem_tensor_data(cache) + 16);
    tandem_context_free(c);
}

static void cpy_into_a_result_writes_into_its_memory(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 2, 0, 0);
    tandem_tensor *y = tandem_scale(c, x, 10.0f); /* {4, 2} */
    tandem_tensor *part = tandem_view(c, y, 1, (int64_t[]){4}, NULL, 16);
    tandem_tensor *write = tandem_cpy(c, ggml_ramp(c, -1.0f, 4, 0, 0, 0), part);
    tandem_tensor *sum = tandem_add(c, y, tandem_sqr(c, write));
    tandem_graph *graph = finished(c, (tandem_tensor *[]){sum}, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_ok(ggml_compute(graph, NULL));
    const float *values = tandem_tensor_data(sum); /* y + repeated squares */
    CU_ASSERT_EQUAL(values[3], 30.0f + 9.0f);
    CU_ASSERT_EQUAL(values[7], -3.0f + 9.0f);
    tandem_context_free(c);
}

static void outputs_keep_memory_of_their_own_even_through_views(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 8, 0, 0, 0);
    tandem_tensor *a = tandem_scale(c, x, 2.0f);
    tandem_tensor *seen =
        tandem_view(c, tandem_reshape(c, a, 2, (int64_t[]){4, 2}), 1, (int64_t[]){2}, NULL, 24);
    tandem_tensor *b = tandem_scale(c, a, 2.0f);
    tandem_tensor *last = tandem_sqr(c, b);
    tandem_tensor *late = tandem_view(c, last, 1, (int64_t[]){1}, NULL, 28);
    tandem_graph *graph = finished(c, (tandem_tensor *[]){seen, last}, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CU_ASSERT_PTR_NOT_NULL(tandem_tensor_data(seen));
    check_ok(ggml_compute(graph, NULL));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(seen))[1], 14.0f);
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(last))[7], 28.0f * 28.0f);
    /* a view that no graph reached still finds the output */
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(late))[0], 28.0f * 28.0f);
    struct tandem_memory_report report = TANDEM_MEMORY_REPORT_INIT;
    check_ok(tandem_graph_memory(graph, &report));
    check_int(report.output_bytes, 128);
    check_int(report.n_results, 1);
    tandem_context_free(c);
}

static void results_share_bytes_and_small_steps_run_in_place(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *t = ggml_ramp(c, 1.0f, 64, 64, 0, 0);
    const size_t bytes = tandem_tensor_bytes(t);
    for (int i = 0; i < 50; i++) {
        t = tandem_rms_norm(c, t, 1e-5f);
        t = tandem_silu(c, tandem_scale(c, t, 2.0f));
    }
    tandem_graph *graph = finished(c, &t, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    struct tandem_memory_report report = TANDEM_MEMORY_REPORT_INIT;
    check_ok(tandem_graph_memory(graph, &report));
    check_int(report.n_results, 149);
    check_int(report.sum_bytes, 149 * bytes);
    check_int(report.planned_bytes, 2 * bytes);
    CU_ASSERT_EQUAL(graph->nodes[1]->plan_offset, graph->nodes[0]->plan_offset);
    tandem_context_free(c);
}

static void operands_that_live_on_are_not_overwritten(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 16, 0, 0, 0);
    tandem_tensor *a = tandem_scale(c, x, 1.0f);
    tandem_tensor *view = tandem_reshape(c, a, 2, (int64_t[]){4, 4});
    tandem_tensor *b = tandem_scale(c, a, 2.0f); /* a lives on in its view */
    tandem_tensor *s = tandem_add(c, b, b);      /* twice the same operand */
    tandem_tensor *r = tandem_mul(c, tandem_cont(c, tandem_transpose(c, view)),
                                  tandem_reshape(c, s, 2, (int64_t[]){4, 4}));
    tandem_graph *graph = finished(c, &r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CU_ASSERT_NOT_EQUAL(a->plan_offset, b->plan_offset);
    check_ok(ggml_compute(graph, NULL));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(r))[1], 4.0f * 4.0f);
    tandem_context_free(c);
}

static void parts_of_a_result_are_no_place_for_another(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *a = tandem_scale(c, ggml_ramp(c, 1.0f, 12, 0, 0, 0), 1.0f); /* 48 bytes */
    tandem_tensor *part = tandem_view(c, a, 1, (int64_t[]){8}, NULL, 16);      /* 32 of them */
    tandem_tensor *b =
        tandem_scale(c, part, 2.0f); /* as long as `a` once rounded up, but shifted */
    tandem_tensor *r = tandem_rms_norm(c, b, 1.0f);
    CU_ASSERT_PTR_NOT_NULL(finished(c, &r, 1));
    CU_ASSERT_NOT_EQUAL(a->plan_offset, b->plan_offset);
    tandem_context_free(c);
}

static void finish_returns_the_first_error_of_the_builders(void)
{
    struct tandem_error error = {0};
    tandem_context *c = ggml_context();
    tandem_graph *graph = tandem_graph_new(c);
    tandem_tensor *bad =
        tandem_mul_mat(c, ggml_ramp(c, 1.0f, 64, 512, 0, 0), ggml_ramp(c, 1.0f, 32, 7, 0, 0));
    tandem_graph_add(graph, tandem_silu(c, tandem_add(c, bad, bad)));
    check_status(tandem_graph_finish(graph, &error), TANDEM_E_SHAPE,
                 "mul_mat: K of w {64, 512} is 64, K of x {32, 7} is 32", &error);
    check_int(tandem_graph_node_count(graph), 0);
    CU_ASSERT_PTR_NULL(tandem_graph_new(c));
    tandem_context_free(c);
}

static void graphs_are_finished_once_and_closed_then(void)
{
    struct tandem_error error = {0};
    struct tandem_memory_report report = TANDEM_MEMORY_REPORT_INIT;
    tandem_context *c = ggml_context();
    tandem_tensor *a = tandem_sqr(c, ggml_ramp(c, 1.0f, 4, 0, 0, 0));
    tandem_tensor *b = tandem_sqr(c, a);
    tandem_graph *graph = tandem_graph_new(c);
    CU_ASSERT_EQUAL(tandem_graph_memory(graph, &report), TANDEM_E_STATE);
    CU_ASSERT_EQUAL(tnd_eval_ref_graph(graph, NULL), TANDEM_E_STATE);
    tandem_graph_add(graph, a);
    tandem_graph_add(graph, a);
    check_ok(tandem_graph_finish(graph, &error));
    check_int(tandem_graph_node_count(graph), 1);
    check_status(tandem_graph_finish(graph, &error), TANDEM_E_STATE, "finished already", &error);
    tandem_graph_add(graph, b);
    check_context(c, TANDEM_E_STATE, "sqr cannot be added");
    CU_ASSERT_EQUAL(tandem_graph_finish(NULL, NULL), TANDEM_E_ARGUMENT);
    tandem_graph_add(NULL, a);
    tandem_context_free(c);
}

static void a_null_result_fails_the_graph(void)
{
    struct tandem_error error = {0};
    tandem_context *c = ggml_context();
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, NULL);
    check_status(tandem_graph_finish(graph, &error), TANDEM_E_ARGUMENT, "NULL", &error);
    tandem_context_free(c);
}

static void a_context_goes_on_behind_an_error_that_was_cleared(void)
{
    struct tandem_error error = {0};
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 0, 0, 0);
    tandem_tensor *y = tandem_scale(c, x, 2.0f);
    CU_ASSERT_PTR_NULL(tandem_add(c, y, ggml_ramp(c, 1.0f, 3, 0, 0, 0)));
    CU_ASSERT_PTR_NULL(tandem_scale(c, x, 2.0f));
    tandem_context_clear_error(c);
    check_ok(tandem_context_status(c, NULL));
    tandem_graph *failed = tandem_graph_new(c);
    tandem_graph_add(failed, tandem_scale(c, y, 3.0f));
    tandem_graph_add(failed, NULL);
    check_status(tandem_graph_finish(failed, &error), TANDEM_E_ARGUMENT, "NULL", &error);
    tandem_context_clear_error(c);
    tandem_tensor *z = tandem_scale(c, y, 5.0f); /* y was marked for the graph that failed */
    tandem_graph *graph = finished(c, &z, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_ok(ggml_compute(graph, NULL));
    float got[4], want[4];
    check_ok(tandem_tensor_get(z, 0, 4, got, NULL));
    check_ok(tandem_tensor_get(x, 0, 4, want, NULL));
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_DOUBLE_EQUAL(got[i], 10.0 * (double)want[i], 1e-6);
    }
    tandem_context_clear_error(NULL);
    tandem_context_free(c);
}

static void an_empty_graph_and_a_leaf_need_nothing(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 0, 0, 0);
    tandem_graph *graph = finished(c, &x, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_int(tandem_graph_node_count(graph), 0);
    check_int(graph->planned_bytes, 0);
    tnd_graph_bind(graph, NULL);
    check_ok(tnd_eval_ref_graph(graph, NULL));
    tandem_context_free(c);
}

static void outputs_of_one_graph_feed_the_next(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *x = ggml_ramp(c, 1.0f, 4, 0, 0, 0);
    tandem_tensor *a = tandem_scale(c, x, 2.0f);
    tandem_tensor *hidden = tandem_scale(c, a, 3.0f);
    tandem_tensor *b = tandem_scale(c, hidden, 5.0f);
    tandem_graph *first = finished(c, (tandem_tensor *[]){a, b}, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    check_ok(ggml_compute(first, NULL));
    tandem_tensor *d = tandem_add(c, b, tandem_reshape(c, a, 2, (int64_t[]){4, 1}));
    tandem_graph *second = finished(c, &d, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    check_int(tandem_graph_node_count(second), 1);
    check_ok(ggml_compute(second, NULL));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(d))[3], 96.0f);

    tandem_context *other = ggml_context();
    tandem_tensor *far = tandem_sqr(other, b);
    CU_ASSERT(ggml_compute_one(other, far));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(far))[1], 900.0f);
    CU_ASSERT_PTR_NULL(tandem_sqr(other, hidden));
    check_context(other, TANDEM_E_ARGUMENT, "another context");
    tandem_context_free(other);

    tandem_graph *third = tandem_graph_new(c);
    tandem_graph_add(third, tandem_sqr(c, hidden));
    struct tandem_error error = {0};
    check_status(tandem_graph_finish(third, &error), TANDEM_E_STATE, "another graph", &error);
    tandem_context_free(c);
}

static void weights_of_another_context_are_only_read(void)
{
    tandem_context *weights = ggml_context();
    tandem_tensor *w = ggml_ramp(weights, 1.0f, 2, 2, 0, 0);
    tandem_tensor *part = tandem_view(weights, w, 1, (int64_t[]){2}, NULL, 8);
    tandem_tensor before = *part;
    tandem_context *c = ggml_context();
    tandem_tensor *y = tandem_mul_mat(c, w, tandem_sqr(c, part));
    CU_ASSERT(ggml_compute_one(c, y));
    CU_ASSERT_EQUAL(((float *)tandem_tensor_data(y))[1], 2.0f * 4.0f + 3.0f * 9.0f);
    check_bits(part, &before, sizeof(before), "view of a weight");
    tandem_context_free(c);
    tandem_context_free(weights);
}

static void graphs_may_be_a_hundred_thousand_nodes_deep(void)
{
    tandem_context *c = ggml_context();
    tandem_tensor *t = ggml_ramp(c, 1.0f, 1, 0, 0, 0);
    for (int i = 0; i < 100000; i++) {
        t = tandem_add(c, tandem_reshape(c, t, 2, (int64_t[]){1, 1}), t);
        t = i % 2 == 0 ? tandem_rms_norm(c, t, 1.0f) : t;
    }
    tandem_graph *graph = finished(c, &t, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    check_int(tandem_graph_node_count(graph), 150000);
    check_int(graph->planned_bytes, 128);
    tandem_context_free(c);
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    char *text = user;
    if (strlen(text) + n >= 4096) {
        return 1;
    }
    strncat(text, bytes, n);
    return 0;
}

static int refuse(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return 1;
}

static void printing_says_what_each_node_is(void)
{
    char text[4096] = "";
    tandem_context *c = ggml_context();
    tandem_tensor *w = tandem_tensor_set_name(ggml_ramp(c, 1.0f, 8, 3, 0, 0), "wq");
    tandem_tensor *h = tandem_rms_norm(c, ggml_ramp(c, 1.0f, 8, 2, 0, 0), 1e-5f);
    tandem_tensor *y = tandem_tensor_set_name(tandem_mul_mat(c, w, h), "q");
    tandem_graph *graph = finished(c, &y, 1);
    check_ok(tandem_graph_print(graph, collect, text));
    check_contains(text, "0 rms_norm");
    check_contains(text, "1 mul_mat");
    check_contains(text, "{3, 2}");
    check_contains(text, "(wq, %0)");
    check_contains(text, "output");
    CU_ASSERT_EQUAL(tandem_graph_print(graph, refuse, NULL), TANDEM_E_FILE);
    CU_ASSERT_EQUAL(tandem_graph_print(graph, NULL, NULL), TANDEM_E_ARGUMENT);
    tandem_context_free(c);
}

/* One small model with everything that allocates. */
static enum tandem_status build_and_finish(void)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    options.chunk_bytes = 1024; /* many allocations */
    tandem_context *c = NULL;
    enum tandem_status status = tandem_context_new(&options, &c, NULL);
    if (status != TANDEM_OK) {
        CU_ASSERT_PTR_NULL(c);
        return status;
    }
    const int64_t ne[2] = {16, 16};
    tandem_tensor *x = tandem_tensor_new(c, TANDEM_TYPE_F32, 2, ne);
    tandem_tensor *w = tandem_tensor_new(c, TANDEM_TYPE_F32, 2, ne);
    for (int i = 0; i < 5; i++) {
        x = tandem_add(c, tandem_mul_mat(c, w, tandem_rms_norm(c, x, 1e-5f)), x);
    }
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, x);
    status = graph == NULL ? tandem_context_status(c, NULL) : tandem_graph_finish(graph, NULL);
    CU_ASSERT_EQUAL(tandem_context_status(c, NULL), status);
    tandem_context_free(c);
    return status;
}

static void every_failing_allocation_ends_in_a_memory_error_without_leak(void)
{
    const long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long fail = 1; status != TANDEM_OK && fail < 1000; fail++) {
        tnd_alloc_fail_after(fail);
        status = build_and_finish();
        tnd_alloc_fail_after(-1);
        CU_ASSERT(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        CU_ASSERT(status == TANDEM_E_MEMORY || fail > 5);
    }
    check_int(status, TANDEM_OK);
    check_int(tnd_alloc_live(), live);
}

static CU_TestInfo graph_tests[] = {
    {"nodes_run_in_the_order_of_building_without_views",
     nodes_run_in_the_order_of_building_without_views},
    {"reads_before_and_after_a_cpy_see_old_and_new_values",
     reads_before_and_after_a_cpy_see_old_and_new_values},
    {"cpy_into_a_result_writes_into_its_memory", cpy_into_a_result_writes_into_its_memory},
    {"outputs_keep_memory_of_their_own_even_through_views",
     outputs_keep_memory_of_their_own_even_through_views},
    {"results_share_bytes_and_small_steps_run_in_place",
     results_share_bytes_and_small_steps_run_in_place},
    {"operands_that_live_on_are_not_overwritten", operands_that_live_on_are_not_overwritten},
    {"parts_of_a_result_are_no_place_for_another", parts_of_a_result_are_no_place_for_another},
    {"finish_returns_the_first_error_of_the_builders",
     finish_returns_the_first_error_of_the_builders},
    {"graphs_are_finished_once_and_closed_then", graphs_are_finished_once_and_closed_then},
    {"a_null_result_fails_the_graph", a_null_result_fails_the_graph},
    {"a_context_goes_on_behind_an_error_that_was_cleared",
     a_context_goes_on_behind_an_error_that_was_cleared},
    {"an_empty_graph_and_a_leaf_need_nothing", an_empty_graph_and_a_leaf_need_nothing},
    {"outputs_of_one_graph_feed_the_next", outputs_of_one_graph_feed_the_next},
    {"weights_of_another_context_are_only_read", weights_of_another_context_are_only_read},
    {"graphs_may_be_a_hundred_thousand_nodes_deep", graphs_may_be_a_hundred_thousand_nodes_deep},
    {"printing_says_what_each_node_is", printing_says_what_each_node_is},
    {"every_failing_allocation_ends_in_a_memory_error_without_leak",
     every_failing_allocation_ends_in_a_memory_error_without_leak},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_graph[] = {
    {"graph", NULL, NULL, NULL, NULL, graph_tests},
    CU_SUITE_INFO_NULL,
};
