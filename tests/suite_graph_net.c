/* SPDX-License-Identifier: MIT
 * Nets: views, known values, inputs that a net was made for, the reference. */
#include <math.h>
#include <string.h>

#include "graph/net_formula.h"
#include "tests/support.h"

static const struct tnd_dims matrix = {2, {2, 3}};

/* An array of 0, 1, 2, ... */
static struct tnd_array *counting(enum tandem_dtype type, const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        const double value = (double)i;
        union tnd_values lanes;
        tnd_values_load(TANDEM_DTYPE_F64, &value, 1, 1, TND_LANE_F64, &lanes);
        tnd_values_store(type, TND_LANE_F64, &lanes, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(type));
    }
    return array;
}

/* Runs a net of one input 0, 1, 2, ... and one output, whose values must be `want`. */
static void check_values(struct tnd_net *net, const double *want, int64_t n)
{
    const struct tnd_net_value *input = tnd_net_value(net, net->inputs[0]);
    struct tnd_array *in = counting(input->type, &input->shape);
    struct tnd_array *out = NULL;
    struct tandem_error error = {0};
    check_status(tnd_net_run(net, &in, &out, &error), TANDEM_OK, NULL, &error);
    if (out != NULL && check_int(out->n, n)) {
        for (int64_t i = 0; i < n; i++) {
            CU_ASSERT_EQUAL(tnd_array_number(out, i), want[i]);
        }
    }
    tnd_array_free(in);
    tnd_array_free(out);
}

static void views_of_views_are_read_by_their_strides(void)
{
    static const int swap[] = {1, 0};
    static const double want[] = {5, 2, 4, 1, 3, 0};
    struct tnd_net *net = tnd_net_new();
    int value = tnd_net_input(net, TANDEM_DTYPE_I32, &matrix, "x", NULL);
    value = tnd_net_slice(net, value, 1, 2, 3, -1);
    value = tnd_net_slice(net, value, 0, 1, 2, -1);
    value = tnd_net_permute(net, value, swap);
    check_int(net->n_nodes, 0);
    (void)tnd_net_output(net, value);
    check_int(net->n_nodes, 1);
    check_values(net, want, 6);
    tnd_net_free(net);
}

/* Of x = 0 .. 5. */
static void formulas_bind_and_choose_as_they_are_written(void)
{
    static const struct {
        const char *text;
        int n_nodes;
        double want[6];
    } cases[] = {
        {"x, y?, n: x + n * x - 3", 3, {-3, 0, 3, 6, 9, 12}},
        {"x, y?, n: x - n - n", 2, {-4, -3, -2, -1, 0, 1}},
        {"x, y?, n: x > 1 & x <= n * 2 | x == 0 ? -x : 1", 7, {0, 1, -2, -3, -4, 1}},
        {"x, y?, n: (x + 0) * 1 + n / 4 + 0.5", 2, {1, 2, 3, 4, 5, 6}},
        {"x, y?, n: n - 1 < x ? x % 3 : pow(x, n)", 4, {0, 1, 2, 0, 1, 2}},
        {"x, y?, n: x + y * n + float64(y) - y", 0, {0, 1, 2, 3, 4, 5}},
        {"x, y?, n: float64(int32(max(x / n, 1))) + abs(-x)", 7, {1, 2, 3, 4, 6, 7}},
        {"x, y?, n: float64(!(x < n) == (x >= n))", 5, {1, 1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_net *net = tnd_net_new();
        const int x = tnd_net_input(net, TANDEM_DTYPE_F64, &matrix, "x", NULL);
        const int y = tnd_net_formula(net, cases[i].text, x, TANDEM_NET_NONE, 2.0);
        check_int(net->n_nodes, cases[i].n_nodes);
        (void)tnd_net_output(net, y);
        check_values(net, cases[i].want, 6);
        tnd_net_free(net);
    }
}

static void a_reshape_is_a_view_where_strides_can_say_it(void)
{
    static const int swap[] = {1, 0};
    static const struct tnd_dims flat = {1, {6}};
    static const struct tnd_dims cube = {3, {2, 1, 3}};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", NULL);
    (void)tnd_net_reshape(net, tnd_net_reshape(net, x, &flat), &cube);
    check_int(net->n_nodes, 0);
    const int turned = tnd_net_reshape(net, tnd_net_permute(net, x, swap), &flat);
    check_int(net->n_nodes, 1);
    static const double want[] = {0, 3, 1, 4, 2, 5};
    (void)tnd_net_output(net, turned);
    check_values(net, want, 6);
    tnd_net_free(net);
}

static void products_broadcast_as_numpys(void)
{
    static const struct tnd_dims vector = {1, {3}};
    static const double want[] = {5, 14};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", NULL);
    const int v = tnd_net_constant(net, counting(TANDEM_DTYPE_F32, &vector));
    (void)tnd_net_output(net, tnd_net_matmul(net, x, v));
    check_values(net, want, 2);
    tnd_net_free(net);
}

static void a_net_made_for_the_values_of_an_input_runs_with_no_others(void)
{
    static const struct tnd_dims pair = {1, {2}};
    struct tandem_error error = {0};
    struct tnd_array *in = counting(TANDEM_DTYPE_I64, &pair);
    struct tnd_array *out = NULL;
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_I64, &pair, "steps", in);
    const int sum = tnd_net_binary(net, TANDEM_BINARY_ADD, x, x);
    const struct tnd_array *known = tnd_net_known(net, sum);
    CU_ASSERT_TRUE(known != NULL && tnd_array_integer(known, 1) == 2);
    (void)tnd_net_output(net, sum);
    check_ok(tnd_net_run(net, &in, &out, &error));
    tnd_array_free(out);
    struct tnd_array *other = tnd_array_new(TANDEM_DTYPE_I64, &pair);
    check_status(tnd_net_run(net, &other, &out, &error), TANDEM_E_ARGUMENT, "steps", &error);
    tnd_net_free(net);
    tnd_array_free(other);
    tnd_array_free(in);
}

static void the_first_error_of_a_builder_stays(void)
{
    static const struct tnd_dims four = {1, {4}};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", NULL);
    const int y = tnd_net_input(net, TANDEM_DTYPE_F32, &four, "y", NULL);
    check_int(tnd_net_binary(net, TANDEM_BINARY_ADD, x, y), TANDEM_NET_NONE);
    check_int(net->status, TANDEM_E_SHAPE);
    check_contains(net->error.text, "2x3 and 4");
    check_int(tnd_net_unary(net, TANDEM_UNARY_NEG, x), TANDEM_NET_NONE);
    check_int(net->status, TANDEM_E_SHAPE);
    tnd_net_free(net);
}

/* {B, M, N} of queries, keys and values with one feature, all 0, 1, 2, ... */
static void attention_is_softmax_of_products_times_values(void)
{
    static const struct tnd_dims cube = {3, {1, 2, 1}};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F64, &cube, "x", NULL);
    (void)tnd_net_output(net, tnd_net_attention(net, x, x, x, TANDEM_NET_NONE, 1.0));
    /* row 0: both products are 0; row 1: 0 and 1 */
    const double e = exp(-1.0);
    const double want[] = {0.5, 1 / (1 + e)};
    check_values(net, want, 2);
    tnd_net_free(net);
}

static void norms_and_gelus_are_what_they_are_composed_of(void)
{
    static const struct tnd_dims two = {1, {2}};
    static const double layer[] = {-1, 1};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F64, &two, "x", NULL);
    (void)tnd_net_output(net, tnd_net_norm(net, TANDEM_NORM_LAYER, x, 1, 0.0));
    check_values(net, layer, 2);
    tnd_net_free(net);
    const double gelu[] = {0, 0.5 * (1 + erf(0.70710678118654752440))};
    net = tnd_net_new();
    (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_GELU,
                                            tnd_net_input(net, TANDEM_DTYPE_F64, &two, "x", NULL)));
    check_values(net, gelu, 2);
    tnd_net_free(net);
}

static void attention_of_operands_that_do_not_fit_is_refused(void)
{
    static const struct tnd_dims cube = {3, {1, 2, 1}};
    static const struct tnd_dims other = {3, {1, 2, 2}};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &cube, "x", NULL);
    const int y = tnd_net_input(net, TANDEM_DTYPE_F32, &other, "y", NULL);
    check_int(tnd_net_attention(net, x, y, x, TANDEM_NET_NONE, 1.0), TANDEM_NET_NONE);
    check_int(net->status, TANDEM_E_SHAPE);
    tnd_net_free(net);
}

/* The list of values grows, and moves, while a builder has the shape of one of them. */
static void a_shape_may_be_that_of_a_value_of_the_net(void)
{
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims flat = {1, {6}};
    const int turned[] = {1, 0};
    int value = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", NULL);
    const int other = tnd_net_reshape(net, value, &flat);
    for (int i = 0; i < 200; i++) {
        value = tnd_net_reshape(net, value, &tnd_net_value(net, other)->shape);
        value = tnd_net_reshape(net, value, &tnd_net_value(net, 0)->shape);
        value = tnd_net_permute(net, value, turned);
        value = tnd_net_reshape(net, value, &tnd_net_value(net, other)->shape);
        if (!check_int(tnd_net_value(net, value)->shape.n, 1) ||
            !check_int(tnd_net_value(net, value)->shape.dims[0], 6)) {
            break;
        }
    }
    tnd_net_free(net);
}

static CU_TestInfo tests_net[] = {
    {"a_shape_may_be_that_of_a_value_of_the_net", a_shape_may_be_that_of_a_value_of_the_net},
    {"formulas_bind_and_choose_as_they_are_written", formulas_bind_and_choose_as_they_are_written},
    {"views_of_views_are_read_by_their_strides", views_of_views_are_read_by_their_strides},
    {"a_reshape_is_a_view_where_strides_can_say_it", a_reshape_is_a_view_where_strides_can_say_it},
    {"products_broadcast_as_numpys", products_broadcast_as_numpys},
    {"a_net_made_for_the_values_of_an_input_runs_with_no_others",
     a_net_made_for_the_values_of_an_input_runs_with_no_others},
    {"the_first_error_of_a_builder_stays", the_first_error_of_a_builder_stays},
    {"attention_is_softmax_of_products_times_values",
     attention_is_softmax_of_products_times_values},
    {"norms_and_gelus_are_what_they_are_composed_of",
     norms_and_gelus_are_what_they_are_composed_of},
    {"attention_of_operands_that_do_not_fit_is_refused",
     attention_of_operands_that_do_not_fit_is_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_net[] = {
    {"net", NULL, NULL, NULL, NULL, tests_net},
    CU_SUITE_INFO_NULL,
};
