/* SPDX-License-Identifier: MIT
 * Custom nodes with a source on an OpenCL device: nets whose nodes are forced there give what the
 * reference gives. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/lower.h"
#include "tandem/profile.h"
#include "tandem/runtime.h"
#include "tests/suite_graph.h"
#include "tests/support.h"

enum { MOST = 16, ROWS = 7, COLUMNS = 33 };

static struct tnd_rng rng;

tandem_runtime *graph_test_device(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu,opencl";
    options.settings = "opencl:device=0,cache=off";
    options.profile = "opencl";
    const enum tandem_status status = tandem_runtime_open(&options, &runtime, &error);
    if (status != TANDEM_OK || tandem_runtime_backend_count(runtime) < 2) {
        tnd_skip("opencl: %s", status != TANDEM_OK ? error.text : "no device");
        tandem_runtime_close(runtime);
        return NULL;
    }
    return runtime;
}

static tandem_runtime *open_runtime(void)
{
    tnd_rng_init(&rng, tnd_test_seed());
    return graph_test_device();
}

/* Positive values below 1, where all functions have a value. */
static void fill(struct tnd_array *array)
{
    for (int64_t i = 0; i < array->n; i++) {
        const double value = 0.1 + 0.8 * (double)tnd_rng_float(&rng);
        union tnd_values lane;
        tnd_values_load(TANDEM_DTYPE_F64, &value, 1, 1, TND_LANE_F64, &lane);
        tnd_values_store(array->type, TND_LANE_F64, &lane, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(array->type));
    }
}

int graph_test_on_device(tandem_runtime *runtime, const tandem_graph *graph)
{
    struct tandem_error error = {0};
    tandem_plan *plan = NULL;
    int n = 0;
    if (check_ok(tandem_runtime_plan(runtime, graph, &plan, &error))) {
        for (int i = 0; i < tandem_plan_node_count(plan); i++) {
            n +=
                tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE].backend > TANDEM_BACKEND_CPU;
        }
    }
    tandem_plan_free(plan);
    return n;
}

static void compare(const struct tnd_array *got, const struct tnd_array *want)
{
    double largest = 1e-30;
    double difference = 0;
    for (int64_t i = 0; i < want->n; i++) {
        largest = fmax(largest, fabs(tnd_array_number(want, i)));
        difference = fmax(difference, fabs(tnd_array_number(got, i) - tnd_array_number(want, i)));
    }
    CU_ASSERT_TRUE(difference <= 1e-5 * largest);
    if (!(difference <= 1e-5 * largest)) {
        printf("differs by %g, the largest is %g\n", difference, largest);
    }
}

/* Runs a net on the device and by the reference. `n_nodes`: how many of its nodes the device has at
 * least. Frees the net. */
static void check_net(struct tnd_net *net, tandem_runtime *runtime, int n_nodes)
{
    struct tnd_array *in[MOST];
    struct tnd_array *want[MOST] = {NULL};
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(v->type, &v->shape);
        fill(in[i]);
    }
    if (check_status(tnd_net_run(net, in, want, &error), TANDEM_OK, NULL, &error) &&
        check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        for (int i = 0; i < net->n_inputs; i++) {
            check_ok(tnd_lowered_set_input(lowered, i, in[i], &error));
        }
        CU_ASSERT_TRUE(graph_test_on_device(runtime, tnd_lowered_graph(lowered)) >= n_nodes);
        for (int k = 0; k < 2; k++) {
            check_status(
                tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error),
                TANDEM_OK, NULL, &error);
        }
        for (int i = 0; i < net->n_outputs; i++) {
            struct tnd_array *got = NULL;
            if (check_ok(tnd_lowered_get_output(lowered, i, &got, &error))) {
                compare(got, want[i]);
            }
            tnd_array_free(got);
            tnd_array_free(want[i]);
        }
    }
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(in[i]);
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

static int input(struct tnd_net *net, enum tandem_dtype type, int64_t rows, int64_t columns)
{
    const struct tnd_dims shape = {2, {rows, columns}};
    return tnd_net_input(net, type, &shape, "x", NULL);
}

/* ---- tests ---- */

static void functions_of_one_value_run_on_the_device(void)
{
    tandem_runtime *runtime = open_runtime();
    if (runtime == NULL) {
        return;
    }
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32, ROWS, COLUMNS);
    int sum = x;
    for (int kind = 0; kind < TND_N_UNARY; kind++) {
        int v = x;
        if (kind == TANDEM_UNARY_ACOSH) {
            v = tnd_net_binary(net, TANDEM_BINARY_ADD, x,
                               tnd_net_scalar(net, TANDEM_DTYPE_F32, 1.5));
        }
        v = tnd_net_unary(net, (enum tandem_unary)kind, v);
        sum = tnd_net_binary(net, TANDEM_BINARY_ADD, sum,
                             v == TANDEM_NET_NONE || tnd_net_value(net, v)->type == TANDEM_DTYPE_F32
                                 ? v
                                 : tnd_net_cast(net, v, TANDEM_DTYPE_F32));
    }
    (void)tnd_net_output(net, sum);
    check_net(net, runtime, 2);
    tandem_runtime_close(runtime);
}

static void functions_of_two_values_and_choices_run_on_the_device(void)
{
    tandem_runtime *runtime = open_runtime();
    if (runtime == NULL) {
        return;
    }
    struct tnd_net *net = tnd_net_new();
    const int a = input(net, TANDEM_DTYPE_F32, ROWS, COLUMNS);
    const int b = input(net, TANDEM_DTYPE_F32, 1, COLUMNS);
    int sum = a;
    for (int kind = 0; kind <= TANDEM_BINARY_LESS_EQUAL; kind++) {
        if (kind >= TANDEM_BINARY_AND && kind <= TANDEM_BINARY_SHIFT_RIGHT) {
            continue;
        }
        int v = tnd_net_binary(net, (enum tandem_binary)kind, a, b);
        v = kind >= TANDEM_BINARY_EQUAL ? tnd_net_select(net, v, a, b) : v;
        sum = tnd_net_binary(net, TANDEM_BINARY_ADD, sum, v);
    }
    (void)tnd_net_output(net, sum);
    check_net(net, runtime, 1);
    tandem_runtime_close(runtime);
}

static void other_types_and_views_run_on_the_device(void)
{
    static const int axes[] = {1, 0};
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F16, TANDEM_DTYPE_BF16, TANDEM_DTYPE_I64,
                                              TANDEM_DTYPE_U8};
    tandem_runtime *runtime = open_runtime();
    if (runtime == NULL) {
        return;
    }
    struct tnd_net *net = tnd_net_new();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const int x = input(net, types[i], COLUMNS, ROWS);
        const int y = input(net, TANDEM_DTYPE_F32, ROWS, 2 * COLUMNS);
        const int flipped = tnd_net_slice(net, y, 1, 2 * COLUMNS - 1, COLUMNS, -2);
        const int wide = tnd_net_cast(net, tnd_net_permute(net, x, axes), TANDEM_DTYPE_F32);
        const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, wide, flipped);
        (void)tnd_net_output(net, tnd_net_cast(net, sum, types[i]));
    }
    check_net(net, runtime, 4);
    tandem_runtime_close(runtime);
}

static void reductions_run_on_the_device(void)
{
    tandem_runtime *runtime = open_runtime();
    if (runtime == NULL) {
        return;
    }
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32, ROWS, COLUMNS);
    for (int kind = TANDEM_REDUCE_SUM; kind <= TANDEM_REDUCE_MIN; kind++) {
        for (unsigned axes = 1; axes <= 3; axes++) {
            (void)tnd_net_output(net, tnd_net_reduce(net, (enum tandem_reduce)kind, x, axes));
        }
    }
    check_net(net, runtime, 12);
    tandem_runtime_close(runtime);
}

static void constants_of_several_values_reach_the_device(void)
{
    const struct tnd_dims shape = {1, {COLUMNS}};
    tandem_runtime *runtime = open_runtime();
    struct tnd_array *bias = tnd_array_new(TANDEM_DTYPE_F32, &shape);
    if (runtime == NULL || bias == NULL) {
        tnd_array_free(bias);
        return;
    }
    fill(bias);
    struct tnd_net *net = tnd_net_new();
    const int constant = tnd_net_constant(net, bias);
    const int x = input(net, TANDEM_DTYPE_F32, ROWS, COLUMNS);
    const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, x, constant);
    (void)tnd_net_output(net, tnd_net_binary(net, TANDEM_BINARY_MAX, sum,
                                             tnd_net_scalar(net, TANDEM_DTYPE_F32, 0.7)));
    check_net(net, runtime, 1);
    tandem_runtime_close(runtime);
}

static CU_TestInfo tests_device[] = {
    {"functions_of_one_value_run_on_the_device", functions_of_one_value_run_on_the_device},
    {"functions_of_two_values_and_choices_run_on_the_device",
     functions_of_two_values_and_choices_run_on_the_device},
    {"other_types_and_views_run_on_the_device", other_types_and_views_run_on_the_device},
    {"reductions_run_on_the_device", reductions_run_on_the_device},
    {"constants_of_several_values_reach_the_device", constants_of_several_values_reach_the_device},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_device[] = {
    {"device", NULL, NULL, NULL, NULL, tests_device},
    CU_SUITE_INFO_NULL,
};
