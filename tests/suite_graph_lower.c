/* SPDX-License-Identifier: MIT
 * Lowered nets against the reference: random ones of every operation, on one to three threads, and
 * by the reference of their nodes. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ggml-like/work.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "sched/conflict.h"
#include "sched/plan.h"
#include "tandem/runtime.h"
#include "tests/fuzz/random_net.h"
#include "tests/net_levels.h"
#include "tests/support.h"
#include "tune/rule.h"

enum { VALUES = 64 };

static int64_t below(struct tnd_rng *rng, int64_t n)
{
    return (int64_t)tnd_rng_below(rng, (uint64_t)n);
}

/* Small whole numbers: sums of products of them are exact in any order. */
static struct tnd_array *filled(struct tnd_rng *rng, enum tandem_dtype type,
                                const struct tnd_dims *shape, bool is_real)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        const double value = is_real ? (double)tnd_rng_normal(rng) : (double)(below(rng, 9) - 4);
        union tnd_values lanes;
        tnd_values_load(TANDEM_DTYPE_F64, &value, 1, 1, TND_LANE_F64, &lanes);
        tnd_values_store(type, TND_LANE_F64, &lanes, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(type));
    }
    return array;
}

static bool is_near(const struct tnd_array *a, const struct tnd_array *b, double tolerance)
{
    if (a->type != b->type || !tnd_dims_is_equal(&a->shape, &b->shape)) {
        return false;
    }
    for (int64_t i = 0; i < a->n; i++) {
        const double x = tnd_array_number(a, i);
        const double y = tnd_array_number(b, i);
        const bool is_same = x == y || (isnan(x) && isnan(y));
        if (!is_same && !(fabs(x - y) <= tolerance * (1.0 + fabs(y)))) {
            printf("value %lld: %.9g, expected %.9g\n", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

static tandem_runtime *open_runtime(int n_threads)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = n_threads;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    return runtime;
}

static void check_outputs(const struct tnd_net *net, const struct tnd_lowered *lowered,
                          struct tnd_array **want, double tolerance)
{
    for (int i = 0; i < net->n_outputs; i++) {
        struct tandem_error error = {0};
        struct tnd_array *got = NULL;
        if (check_ok(tnd_lowered_get_output(lowered, i, &got, &error))) {
            CU_ASSERT_TRUE(is_near(got, want[i], tolerance));
        }
        tnd_array_free(got);
    }
}

/* Nodes of small nets are not worth it, but here all threads shall have their part. */
static void share_all(const tandem_graph *graph, int n_threads, tandem_plan *plan)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tnd_work *work = tnd_work_of(graph->nodes[i]);
        if (work != NULL && work->n_items > 1) {
            plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].parallel = true;
            plan->nodes[i].n_threads = n_threads;
        }
    }
}

/* Plans a graph and computes it three times. The executor keeps the steps of a graph that it sees
 * for the second time; from then on nothing is allocated. */
static void compute_repeatedly(tandem_runtime *runtime, const struct tnd_net *net,
                               const struct tnd_lowered *lowered, int n_threads,
                               struct tnd_array **want, double tolerance)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tnd_lowered_graph(lowered);
    tandem_plan *plan = NULL;
    if (!check_status(tandem_runtime_plan(runtime, graph, &plan, &error), TANDEM_OK, NULL,
                      &error)) {
        return;
    }
    if (n_threads > 1) {
        share_all(graph, n_threads, plan);
    }
    for (int i = 0; i < 3; i++) {
        const long before = tnd_alloc_count();
        check_status(tandem_runtime_compute(runtime, graph, plan, NULL, &error), TANDEM_OK, NULL,
                     &error);
        CU_ASSERT_TRUE(i < 2 || tnd_alloc_count() == before);
        if (want != NULL) {
            check_outputs(net, lowered, want, tolerance);
        }
    }
    tandem_plan_free(plan);
}

/* Runs a net both ways with random inputs, repeatedly on each number of threads. */
static void check_net(struct tnd_net *net, struct tnd_rng *rng, bool is_real, double tolerance)
{
    struct tnd_array *inputs[VALUES];
    struct tnd_array *want[VALUES] = {NULL};
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        inputs[i] = filled(rng, v->type, &v->shape, is_real);
    }
    const struct tnd_lower_options options = {.gives_up = net};
    if (check_status(tnd_net_run(net, inputs, want, &error), TANDEM_OK, NULL, &error) &&
        check_status(tnd_net_lower_with(net, &options, &lowered, &error), TANDEM_OK, NULL,
                     &error)) {
        for (int i = 0; i < net->n_inputs; i++) {
            check_ok(tnd_lowered_set_input(lowered, i, inputs[i], &error));
        }
        check_status(tnd_test_reference(tnd_lowered_graph(lowered), &error), TANDEM_OK, NULL,
                     &error);
        check_outputs(net, lowered, want, tolerance);
        for (int threads = 1; threads <= 3; threads++) {
            tandem_runtime *runtime = open_runtime(threads);
            compute_repeatedly(runtime, net, lowered, threads, want, tolerance);
            tandem_runtime_close(runtime);
        }
    }
    for (int i = 0; i < net->n_outputs; i++) {
        tnd_array_free(want[i]);
    }
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(inputs[i]);
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

/* ---- by operation ---- */

static int input(struct tnd_net *net, int n, const int64_t *dims)
{
    struct tnd_dims shape = {.n = n};
    memcpy(shape.dims, dims, (size_t)n * sizeof(dims[0]));
    return tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
}
#define INPUT(net, n, ...) input(net, n, (const int64_t[]){__VA_ARGS__})

static int constant(struct tnd_net *net, struct tnd_rng *rng, int n, const int64_t *dims)
{
    struct tnd_dims shape = {.n = n};
    memcpy(shape.dims, dims, (size_t)n * sizeof(dims[0]));
    return tnd_net_constant(net, filled(rng, TANDEM_DTYPE_F32, &shape, false));
}
#define CONSTANT(net, rng, n, ...) constant(net, rng, n, (const int64_t[]){__VA_ARGS__})

static int permuted(struct tnd_net *net, int value, int a, int b, int c)
{
    const int axes[] = {a, b, c};
    return tnd_net_permute(net, value, axes);
}

static void products_of_every_layout_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    static const int64_t shapes[][4] = {{1, 1, 1, 1}, {1, 7, 33, 5}, {3, 4, 9, 17}, {2, 65, 64, 30},
                                        {2, 3, 0, 4}, {0, 3, 2, 4},  {2, 0, 2, 4}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t *s = shapes[i];
        struct tnd_net *net = tnd_net_new();
        const int a = INPUT(net, 3, s[0], s[1], s[2]);
        const int b = INPUT(net, 3, s[0], s[2], s[3]);
        const int at = permuted(net, INPUT(net, 3, s[0], s[2], s[1]), 0, 2, 1);
        const int bt = permuted(net, INPUT(net, 3, s[0], s[3], s[2]), 0, 2, 1);
        const int outer = permuted(net, INPUT(net, 3, s[1], s[0], s[2]), 1, 0, 2);
        const int weights = CONSTANT(net, &rng, 2, s[2], s[3]);
        (void)tnd_net_output(net, tnd_net_matmul(net, a, b));
        (void)tnd_net_output(net, tnd_net_matmul(net, at, bt));
        (void)tnd_net_output(net, tnd_net_matmul(net, outer, weights));
        (void)tnd_net_output(net, tnd_net_matmul(net, a, weights));
        (void)tnd_net_output(net, tnd_net_matmul(net, CONSTANT(net, &rng, 2, s[1], s[2]), bt));
        check_net(net, &rng, false, 0.0);
    }
}

/* The weights of the first product and of the convolution are packed in another form; those of the
 * second product are read where they are. */
static void constants_that_are_not_read_any_more_are_given_up(void)
{
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    struct tnd_net *net = tnd_net_new();
    const struct tnd_window window = {
        .n = 1, .extent = {2}, .stride = {1}, .dilation = {1}, .groups = 1};
    const int x = INPUT(net, 3, 1, 5, 7);
    const int first = tnd_net_matmul(net, x, CONSTANT(net, &rng, 2, 7, 3));
    const int second =
        tnd_net_matmul(net, x, permuted(net, CONSTANT(net, &rng, 3, 1, 4, 7), 0, 2, 1));
    const int conv = tnd_net_conv(net, x, CONSTANT(net, &rng, 3, 6, 5, 2), &window);
    (void)tnd_net_output(net, first);
    (void)tnd_net_output(net, second);
    (void)tnd_net_output(net, conv);
    check_int(net->n_owned, 3);
    const struct tnd_lower_options options = {.gives_up = net};
    check_ok(tnd_net_lower_with(net, &options, &lowered, &error));
    check_int(net->n_owned, 1);
    check_int(net->owned[0]->n, 28);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

/* Rows that are few enough not to turn the matrix for, one more, and matrices of several blocks. */
static void products_of_few_rows_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    static const int64_t shapes[][4] = {
        {1, 1, 1, 2}, {3, 1, 64, 1500}, {2, 8, 7, 513}, {2, 9, 7, 30}, {1, 3, 6, 512}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t *s = shapes[i];
        struct tnd_net *net = tnd_net_new();
        const int b = INPUT(net, 3, s[0], s[2], s[3]);
        const int one = INPUT(net, 2, s[2], s[3]);
        const int at = permuted(net, INPUT(net, 3, s[0], s[2], s[1]), 0, 2, 1);
        const int part = tnd_net_slice(net, b, 2, 1, s[3] - 1, 1);
        const int rows = CONSTANT(net, &rng, 3, s[0], s[1], s[2]);
        (void)tnd_net_output(net, tnd_net_matmul(net, at, b));
        (void)tnd_net_output(net, tnd_net_matmul(net, at, one));
        (void)tnd_net_output(net, tnd_net_matmul(net, at, part));
        (void)tnd_net_output(net, tnd_net_matmul(net, rows, part));
        (void)tnd_net_output(net,
                             tnd_net_matmul(net, at, tnd_net_slice(net, b, 1, s[2] - 1, s[2], -1)));
        check_net(net, &rng, false, 0.0);
    }
}

static int unary_chain(struct tnd_net *net, int x, int n)
{
    for (int i = 0; i < n; i++) {
        x = tnd_net_unary(net, i % 2 == 0 ? TANDEM_UNARY_NEG : TANDEM_UNARY_ABS, x);
    }
    return x;
}

static void every_function_of_values_gives_the_bits_of_the_reference(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int64_t n = 1; n < 9000; n = n * 3 + 1) {
        struct tnd_net *net = tnd_net_new();
        const int x = INPUT(net, 2, 3, n);
        const int y = INPUT(net, 2, 1, n);
        const int z = INPUT(net, 2, 3, 1);
        for (int kind = TANDEM_UNARY_NEG; kind <= TANDEM_UNARY_ROUND && n < 500; kind++) {
            (void)tnd_net_output(net, tnd_net_unary(net, (enum tandem_unary)kind, x));
        }
        for (int kind = TANDEM_BINARY_ADD; kind <= TANDEM_BINARY_MIN; kind++) {
            (void)tnd_net_output(
                net, tnd_net_binary(net, (enum tandem_binary)kind, x, kind % 2 == 0 ? y : z));
        }
        const int less = tnd_net_binary(net, TANDEM_BINARY_LESS, x, y);
        const int chosen =
            tnd_net_select(net, less, tnd_net_binary(net, TANDEM_BINARY_MUL, x, z), y);
        (void)tnd_net_output(net, unary_chain(net, chosen, 40));
        (void)tnd_net_output(net, tnd_net_cast(net, chosen, TANDEM_DTYPE_I8));
        (void)tnd_net_output(
            net, tnd_net_cast(net, tnd_net_cast(net, x, TANDEM_DTYPE_F16), TANDEM_DTYPE_F64));
        check_net(net, &rng, true, 0.0);
    }
}

static const struct tnd_window small_window = {.n = 2,
                                               .extent = {3, 2},
                                               .stride = {2, 1},
                                               .dilation = {1, 2},
                                               .begin = {1, 0},
                                               .end = {1, 2},
                                               .groups = 1};

/* A convolution with constant weights, of `groups`, and what may follow it with channels last. */
static void add_convolutions(struct tnd_net *net, struct tnd_rng *rng, int64_t channels,
                             int64_t filters, int64_t groups)
{
    struct tnd_window window = small_window;
    window.groups = groups;
    const int x = INPUT(net, 4, 2, channels, 9, 8);
    const int w = CONSTANT(net, rng, 4, filters, channels / groups, 3, 2);
    const int bias = CONSTANT(net, rng, 4, 1, filters, 1, 1);
    const int y = tnd_net_conv(net, x, w, &window);
    const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, y, bias);
    const int relu =
        tnd_net_binary(net, TANDEM_BINARY_MAX, sum, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0));
    window.groups = 1;
    const int pool = tnd_net_pool(net, TANDEM_POOL_MAX, relu, &window);
    (void)tnd_net_output(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, pool, 12u));
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_SUM, x, &window));
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_ARG_MAX, relu, &window));
    const struct tnd_window large = {.n = 2,
                                     .extent = {4, 3},
                                     .stride = {2, 1},
                                     .dilation = {1, 2},
                                     .begin = {3, 2},
                                     .end = {3, 2},
                                     .groups = 1};
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_MAX, relu, &large));
    const struct tnd_window one = {
        .n = 2, .extent = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    const int point = tnd_net_conv(net, relu, CONSTANT(net, rng, 4, 5, filters, 1, 1), &one);
    (void)tnd_net_output(net,
                         tnd_net_binary(net, TANDEM_BINARY_SUB, point, INPUT(net, 4, 1, 5, 1, 1)));
    (void)tnd_net_output(net, tnd_net_conv(net, x, INPUT(net, 4, 2, channels, 3, 2), &window));
}

static void convolutions_and_pools_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    static const int64_t cases[][3] = {{1, 1, 1}, {3, 40, 1},  {6, 6, 6},
                                       {6, 4, 2}, {33, 70, 1}, {70, 70, 70}};
    tnd_rng_init(&rng, tnd_test_seed());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_net *net = tnd_net_new();
        add_convolutions(net, &rng, cases[i][0], cases[i][1], cases[i][2]);
        check_net(net, &rng, false, 0.0);
    }
}

static void windows_of_one_and_three_dimensions_work(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    const struct tnd_window line = {.n = 1,
                                    .extent = {3},
                                    .stride = {2},
                                    .dilation = {2},
                                    .begin = {3},
                                    .end = {1},
                                    .groups = 1};
    const struct tnd_window cube = {.n = 3,
                                    .extent = {2, 1, 2},
                                    .stride = {1, 2, 1},
                                    .dilation = {1, 1, 2},
                                    .begin = {0, 1, 1},
                                    .end = {1, 0, 1},
                                    .groups = 1};
    struct tnd_net *net = tnd_net_new();
    const int x = INPUT(net, 3, 2, 5, 20);
    const int y = INPUT(net, 5, 1, 3, 4, 5, 6);
    const int a = tnd_net_conv(net, x, CONSTANT(net, &rng, 3, 7, 5, 3), &line);
    const int b = tnd_net_conv(net, y, CONSTANT(net, &rng, 5, 2, 3, 2, 1, 2), &cube);
    (void)tnd_net_output(net, a);
    (void)tnd_net_output(net, unary_chain(net, b, 3));
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_MAX, a, &line));
    (void)tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_SUM, y, &cube));
    check_net(net, &rng, false, 0.0);
}

static void sums_along_any_axes_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (unsigned axes = 0; axes < 8; axes++) {
        struct tnd_net *net = tnd_net_new();
        const int x = INPUT(net, 3, 3, 5, 70);
        const int turned = permuted(net, x, 2, 0, 1);
        for (int kind = TANDEM_REDUCE_SUM; kind <= TANDEM_REDUCE_MIN; kind++) {
            (void)tnd_net_output(net, tnd_net_reduce(net, (enum tandem_reduce)kind, x, axes));
            (void)tnd_net_output(net, tnd_net_reduce(net, (enum tandem_reduce)kind, turned, axes));
        }
        const int integers = tnd_net_cast(net, x, TANDEM_DTYPE_I16);
        (void)tnd_net_output(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, integers, axes));
        (void)tnd_net_output(net, tnd_net_reduce(net, TANDEM_REDUCE_MAX, INPUT(net, 2, 2, 0), 2u));
        check_net(net, &rng, true, 1e-5);
    }
}

/* Everything that moves values or goes along an axis, of a value of rank 3. */
static void add_moves(struct tnd_net *net, struct tnd_rng *rng, int x, int axis)
{
    const int64_t begin[] = {1, -1, 2};
    const int64_t end[] = {0, 2, 1};
    const int parts[] = {x, permuted(net, x, 0, 1, 2), x, x, x, x, x};
    const int64_t extent = tnd_net_value(net, x)->shape.dims[axis];
    int64_t list[6];
    for (int i = 0; i < 6; i++) {
        list[i] = below(rng, 2 * extent) - extent;
    }
    const int indices = tnd_net_integers(net, list, 6);
    const struct tnd_dims table = {2, {2, 3}};
    const struct tnd_dims cube = {3, {1, 2, 3}};
    const int squares = tnd_net_reshape(net, indices, &table);
    const int cubes = tnd_net_reshape(net, indices, &cube);
    (void)tnd_net_output(net, tnd_net_concat(net, parts, 7, axis));
    for (int mode = TANDEM_PAD_CONSTANT; mode <= TANDEM_PAD_WRAP; mode++) {
        (void)tnd_net_output(net, tnd_net_pad(net, (enum tandem_pad)mode, x, begin, end,
                                              tnd_net_scalar(net, TANDEM_DTYPE_F32, 3)));
    }
    (void)tnd_net_output(net, tnd_net_gather(net, x, squares, axis));
    (void)tnd_net_output(net, tnd_net_gather_elements(net, x, cubes, axis));
    (void)tnd_net_output(net, tnd_net_scatter_elements(net, TANDEM_SCATTER_ADD, x, cubes,
                                                       CONSTANT(net, rng, 3, 1, 2, 3), axis));
    (void)tnd_net_output(net, tnd_net_scan(net, x, axis, axis == 1, axis == 2));
    (void)tnd_net_output(net, tnd_net_arg_sort(net, x, axis, axis != 1));
    (void)tnd_net_output(net, tnd_net_arg_reduce(net, axis == 0, x, axis, axis == 1));
}

static void moves_and_sorts_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int axis = 0; axis < 3; axis++) {
        struct tnd_net *net = tnd_net_new();
        add_moves(net, &rng, INPUT(net, 3, 4, 5, 6), axis);
        check_net(net, &rng, false, 0.0);
        net = tnd_net_new();
        add_moves(net, &rng, permuted(net, INPUT(net, 3, 5, 4, 3), 2, 0, 1), axis);
        check_net(net, &rng, false, 0.0);
    }
}

static void values_are_joined_by_whole_runs(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int axis = 0; axis < 2; axis++) {
        struct tnd_net *net = tnd_net_new();
        const int x = INPUT(net, 3, 2, 3, 70);
        const int turned = permuted(net, INPUT(net, 3, 70, 2, 3), 1, 2, 0);
        const int parts[] = {x, turned, x, CONSTANT(net, &rng, 3, 2, 3, 70), turned, x};
        (void)tnd_net_output(net, tnd_net_concat(net, parts, 6, axis));
        check_net(net, &rng, false, 0.0);
    }
}

/* Rows of less than 16 values, more of them than an item has, of values of every size. */
static void short_rows_are_joined_and_padded(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_U8, TANDEM_DTYPE_F16, TANDEM_DTYPE_F32,
                                              TANDEM_DTYPE_F64};
    static const struct tnd_dims shape = {4, {3, 101, 2, 2}};
    static const struct tnd_dims other_shape = {4, {2, 2, 101, 3}};
    static const int turned[] = {3, 2, 0, 1};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int axis = 0; axis < 4; axis++) {
            struct tnd_net *net = tnd_net_new();
            const int x = tnd_net_input(net, types[i], &shape, "x", NULL);
            const int y = tnd_net_input(net, types[i], &other_shape, "y", NULL);
            const int parts[] = {x, tnd_net_permute(net, y, turned),
                                 tnd_net_slice(net, x, axis, 1, 1, 1),
                                 tnd_net_slice(net, x, axis, 0, 0, 1)};
            const int64_t begin[] = {axis == 0, axis == 1 ? -3 : 2, axis == 2, axis == 3};
            const int64_t end[] = {1, axis == 1, -1, axis == 2};
            (void)tnd_net_output(net, tnd_net_concat(net, parts, 4, axis));
            for (int mode = TANDEM_PAD_CONSTANT; mode <= TANDEM_PAD_WRAP; mode++) {
                (void)tnd_net_output(net, tnd_net_pad(net, (enum tandem_pad)mode, parts[1], begin,
                                                      end, tnd_net_scalar(net, types[i], 3)));
            }
            check_net(net, &rng, false, 0.0);
        }
    }
}

static void values_are_joined_and_gathered_with_channels_behind(void)
{
    static const int64_t twice[] = {0, 0, 1, 1, -1};
    static const struct tnd_dims square = {2, {2, 2}};
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int axis = 0; axis < 4; axis++) {
        struct tnd_net *net = tnd_net_new();
        const int x = INPUT(net, 4, 2, 3, 9, 8);
        const int indices = tnd_net_integers(net, twice, 5);
        const int y = tnd_net_conv(net, x, CONSTANT(net, &rng, 4, 21, 3, 3, 2), &small_window);
        const struct tnd_dims shape = tnd_net_value(net, y)->shape;
        const int other = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "other", NULL);
        const int parts[] = {
            y,     other, y, tnd_net_constant(net, filled(&rng, TANDEM_DTYPE_F32, &shape, false)),
            other, y};
        const int joined = tnd_net_concat(net, parts, 6, axis);
        const int64_t channels = tnd_net_value(net, joined)->shape.dims[1];
        const int64_t begin[] = {1, 2, -1, 3};
        const int64_t end[] = {axis == 0, axis == 1, axis == 2, axis == 3};
        struct tnd_window window = small_window;
        (void)tnd_net_output(
            net, tnd_net_conv(net, joined, CONSTANT(net, &rng, 4, 2, channels, 3, 2), &window));
        (void)tnd_net_output(net, tnd_net_pad(net, TANDEM_PAD_CONSTANT, y, begin, end,
                                              tnd_net_scalar(net, TANDEM_DTYPE_F32, 5)));
        (void)tnd_net_output(
            net, tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_gather(net, y, indices, axis)));
        (void)tnd_net_output(
            net, tnd_net_gather(
                     net, y, tnd_net_reshape(net, tnd_net_slice(net, indices, 0, 0, 4, 1), &square),
                     axis));
        check_net(net, &rng, false, 0.0);
    }
}

static void outputs_may_be_inputs_constants_and_the_same_twice(void)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims scalar = {0};
    const struct tnd_dims odd = {1, {3}};
    const int x = tnd_net_input(net, TANDEM_DTYPE_I8, &odd, "x", NULL);
    const int y = tnd_net_input(net, TANDEM_DTYPE_BOOL, &scalar, "y", NULL);
    const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, x, x);
    const int both =
        tnd_net_binary(net, TANDEM_BINARY_ADD, tnd_net_scalar(net, TANDEM_DTYPE_F64, 2),
                       tnd_net_scalar(net, TANDEM_DTYPE_F64, 3));
    (void)tnd_net_output(net, x);
    (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_NOT, y));
    (void)tnd_net_output(net, sum);
    (void)tnd_net_output(net, sum);
    (void)tnd_net_output(net, both);
    (void)tnd_net_output(net, tnd_net_scalar(net, TANDEM_DTYPE_BOOL, 1));
    check_net(net, &rng, false, 0.0);
}

/* The reference says the same of index 4. */
static void check_index_in_reference(const struct tnd_net *net, const char *message)
{
    struct tandem_error error = {0};
    struct tnd_array *in[2];
    struct tnd_array *out[1] = {NULL};
    for (int i = 0; i < 2; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(v->type, &v->shape);
    }
    ((int64_t *)in[1]->data)[1] = 4;
    check_int(tnd_net_run(net, in, out, &error), TANDEM_E_ARGUMENT);
    check_string(error.text, message);
    tnd_array_free(in[0]);
    tnd_array_free(in[1]);
}

static void an_index_out_of_range_fails_the_computation(void)
{
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    const struct tnd_dims pair = {1, {2}};
    struct tnd_net *net = tnd_net_new();
    const int x = INPUT(net, 2, 4, 3);
    const int at = tnd_net_input(net, TANDEM_DTYPE_I64, &pair, "at", NULL);
    static const char message[] = "gather 'rows': index 4 into 4 values, expected -4 to 3";
    const int rows = tnd_net_gather(net, x, at, 0);
    tnd_net_name(net, rows, "rows");
    tnd_net_name(net, rows, "another"); /* (the first one stays) */
    (void)tnd_net_output(net, rows);
    check_ok(tnd_net_lower(net, &lowered, &error));
    tandem_runtime *runtime = open_runtime(2);
    int64_t *indices = tnd_lowered_input(lowered, 1);
    indices[1] = 4;
    check_int(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error),
              TANDEM_E_ARGUMENT);
    check_string(error.text, message);
    check_index_in_reference(net, message);
    indices[1] = -4;
    check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
    tandem_runtime_close(runtime);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

/* ---- random nets ---- */

/* One operation more, of values of shape {2, 3, 4, 5} mostly. */
static int grow(struct tnd_net *net, struct tnd_rng *rng, const int *values, int n)
{
    static const int swap[] = {0, 1, 3, 2};
    const int a = values[below(rng, n)];
    const int b = values[below(rng, n)];
    const int two[] = {a, b};
    const struct tnd_dims shape = tnd_net_value(net, values[0])->shape;
    const struct tnd_window window = {.n = 2,
                                      .extent = {3, 3},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .begin = {1, 1},
                                      .end = {1, 1},
                                      .groups = below(rng, 2) == 0 ? 1 : 3};
    switch (below(rng, 10)) {
    case 0:
        return tnd_net_binary(net, TANDEM_BINARY_MAX, a, b);
    case 1:
        return tnd_net_unary(net, TANDEM_UNARY_ABS, a);
    case 2:
        return tnd_net_select(net, tnd_net_binary(net, TANDEM_BINARY_LESS, a, b), b, a);
    case 3: {
        const int sum = tnd_net_reduce(net, TANDEM_REDUCE_MAX, a, (unsigned)below(rng, 16));
        return tnd_net_binary(net, TANDEM_BINARY_SUB, a, sum);
    }
    case 4:
        return tnd_net_conv(net, a, CONSTANT(net, rng, 4, 3, window.groups == 1 ? 3 : 1, 3, 3),
                            &window);
    case 5:
        return tnd_net_pool(net, TANDEM_POOL_MAX, a, &window);
    case 6:
        return tnd_net_slice(net, tnd_net_concat(net, two, 2, 1), 1, 1, 3, 1);
    case 7:
        return tnd_net_reshape(net, tnd_net_permute(net, a, swap), &shape);
    case 8:
        return tnd_net_slice(net, a, 3, 4, 5, -1);
    default:
        return tnd_net_binary(net, TANDEM_BINARY_MIN,
                              tnd_net_matmul(net, a, CONSTANT(net, rng, 2, 5, 5)), b);
    }
}

static void random_nets_are_those_of_the_reference(void)
{
    struct tnd_rng rng;
    const int n_nets = tnd_effort() > 1 ? 500 : 100;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < n_nets; i++) {
        struct tnd_net *net = tnd_net_new();
        int values[VALUES];
        int n = 0;
        values[n++] = INPUT(net, 4, 2, 3, 4, 5);
        values[n++] = INPUT(net, 4, 2, 3, 4, 5);
        const int steps = 2 + (int)below(&rng, 8);
        for (int k = 0; k < steps; k++, n++) {
            values[n] = grow(net, &rng, values, n);
            /* (kept small, so that sums stay exact) */
            values[n] = tnd_net_binary(net, TANDEM_BINARY_FMOD, values[n],
                                       tnd_net_scalar(net, TANDEM_DTYPE_F32, 8));
        }
        for (int k = n - 3; k < n; k++) {
            (void)tnd_net_output(net, values[k]);
        }
        check_net(net, &rng, false, 0.0);
    }
}

/* Of every operation and type: those that bytes describe. And smooth ones of float32, whose results
 * roundings change alone. */
static void nets_of_random_bytes_are_computed_without_allocating(void)
{
    const int n_nets = tnd_effort() > 1 ? 2000 : 200;
    tandem_runtime *runtime = open_runtime(2);
    struct tnd_rng rng;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < n_nets; i++) {
        struct tandem_error error = {0};
        struct tnd_lowered *lowered = NULL;
        uint8_t bytes[192];
        for (size_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = (uint8_t)below(&rng, 256);
        }
        struct tnd_net *net = random_net_build(bytes, sizeof(bytes), false, false);
        if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
            compute_repeatedly(runtime, net, lowered, 2, NULL, 0.0);
        }
        tnd_lowered_free(lowered);
        tnd_net_free(net);
        if (i % 5 == 0) {
            net = random_net_build(bytes, sizeof(bytes), true, true);
            check_ok(tnd_net_optimize(net, i % 2 == 0 ? 0 : TND_PASSES_ALL, NULL, &error));
            check_net(net, &rng, true, 1e-3);
        }
    }
    tandem_runtime_close(runtime);
}

/* ---- what nodes cost ---- */

static const tandem_tensor *node_of(const struct tnd_lowered *lowered, enum tandem_op op)
{
    const tandem_graph *graph = tnd_lowered_graph(lowered);
    for (int i = 0; i < graph->n_nodes; i++) {
        CU_ASSERT_NOT_EQUAL(graph->nodes[i]->op, TANDEM_OP_CUSTOM);
        if (graph->nodes[i]->op == op) {
            return graph->nodes[i];
        }
    }
    CU_FAIL("the net has no such node");
    return NULL;
}

static void nodes_of_nets_are_shared_by_what_they_cost(void)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        const int64_t n = is_large ? 512 : 8;
        const struct tnd_dims shape = {4, {1, 32, n, n}};
        const struct tnd_window window = {.n = 2,
                                          .extent = {3, 3},
                                          .stride = {1, 1},
                                          .dilation = {1, 1},
                                          .begin = {0, 0},
                                          .groups = 32};
        const struct tnd_dims filters = {4, {32, 1, 3, 3}};
        struct tnd_rng rng;
        struct tnd_net *net = tnd_net_new();
        struct tnd_lowered *lowered = NULL;
        struct tandem_error error = {0};
        tnd_rng_init(&rng, tnd_test_seed());
        const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
        const int w = tnd_net_constant(net, filled(&rng, TANDEM_DTYPE_F32, &filters, true));
        const int axes[] = {0, 1, 3, 2};
        tnd_net_output(net, tnd_net_conv(net, x, w, &window));
        tnd_net_output(net, tnd_net_pool(net, TANDEM_POOL_MAX, x, &window));
        tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_EXP, x));
        tnd_net_output(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 4));
        tnd_net_output(net, tnd_net_permute(net, x, axes));
        if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
            static const enum tandem_op ops[] = {TANDEM_OP_CONV, TANDEM_OP_POOL, TANDEM_OP_PROGRAM,
                                                 TANDEM_OP_REDUCE, TANDEM_OP_MOVE};
            for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
                const tandem_tensor *node = node_of(lowered, ops[i]);
                if (node != NULL) {
                    check_int(tnd_rule_threads(node, 4, 1.0), is_large ? 4 : 1);
                }
            }
        }
        tnd_lowered_free(lowered);
        tnd_net_free(net);
    }
}

/* Two branches, each of one node. */
static void independent_nodes_of_nets_may_change_places(void)
{
    const struct tnd_dims shape = {1, {4096}};
    struct tnd_net *net = tnd_net_new();
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {0};
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
    tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_EXP, x));
    tnd_net_output(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 1));
    if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        const tandem_graph *graph = tnd_lowered_graph(lowered);
        check_int(graph->n_nodes, 2);
        CU_ASSERT_FALSE(tnd_nodes_conflict(graph->nodes[0], graph->nodes[1]));
        CU_ASSERT_NOT_EQUAL(graph->nodes[0]->op, TANDEM_OP_CUSTOM);
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

static CU_TestInfo tests_lower[] = {
    {"independent_nodes_of_nets_may_change_places", independent_nodes_of_nets_may_change_places},
    {"nodes_of_nets_are_shared_by_what_they_cost", nodes_of_nets_are_shared_by_what_they_cost},
    {"products_of_every_layout_are_those_of_the_reference",
     products_of_every_layout_are_those_of_the_reference},
    {"products_of_few_rows_are_those_of_the_reference",
     products_of_few_rows_are_those_of_the_reference},
    {"constants_that_are_not_read_any_more_are_given_up",
     constants_that_are_not_read_any_more_are_given_up},
    {"every_function_of_values_gives_the_bits_of_the_reference",
     every_function_of_values_gives_the_bits_of_the_reference},
    {"convolutions_and_pools_are_those_of_the_reference",
     convolutions_and_pools_are_those_of_the_reference},
    {"windows_of_one_and_three_dimensions_work", windows_of_one_and_three_dimensions_work},
    {"sums_along_any_axes_are_those_of_the_reference",
     sums_along_any_axes_are_those_of_the_reference},
    {"moves_and_sorts_are_those_of_the_reference", moves_and_sorts_are_those_of_the_reference},
    {"values_are_joined_by_whole_runs", values_are_joined_by_whole_runs},
    {"short_rows_are_joined_and_padded", short_rows_are_joined_and_padded},
    {"values_are_joined_and_gathered_with_channels_behind",
     values_are_joined_and_gathered_with_channels_behind},
    {"outputs_may_be_inputs_constants_and_the_same_twice",
     outputs_may_be_inputs_constants_and_the_same_twice},
    {"an_index_out_of_range_fails_the_computation", an_index_out_of_range_fails_the_computation},
    {"random_nets_are_those_of_the_reference", random_nets_are_those_of_the_reference},
    {"nets_of_random_bytes_are_computed_without_allocating",
     nets_of_random_bytes_are_computed_without_allocating},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_lower[] = {
    {"lower", NULL, NULL, NULL, NULL, tests_lower},
    CU_SUITE_INFO_NULL,
};
