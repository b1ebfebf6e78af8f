/* SPDX-License-Identifier: MIT
 * The reference's functions of one, two and three values: all types and kinds, views of every
 * stride, empty and deep shapes, what overflows and what is no number. */
#include <math.h>
#include <string.h>

#include "graph/net.h"
#include "tests/support.h"

static const struct tnd_dims scalar = {0};

static void put(struct tnd_array *array, int64_t i, double value)
{
    union tnd_values lanes;
    lanes.f64[0] = value;
    tnd_values_store(array->type, TND_LANE_F64, &lanes, 1,
                     (char *)array->data + (size_t)i * tandem_dtype_bytes(array->type));
}

/* A constant list. */
static int list(struct tnd_net *net, enum tandem_dtype type, const double *values, int64_t n)
{
    const struct tnd_dims shape = {1, {n}};
    struct tnd_array *array = tnd_array_new(type, &shape);
    for (int64_t i = 0; i < n; i++) {
        put(array, i, values[i]);
    }
    return tnd_net_constant(net, array);
}

/* Values that count up from 0. */
static int counting(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        put(array, i, (double)i);
    }
    return tnd_net_constant(net, array);
}

static bool is_equal(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* What a value is when the net computes it. */
static void check_value(struct tnd_net *net, int value, const double *want, int64_t n)
{
    const struct tnd_array *array = tnd_net_known(net, value);
    CU_ASSERT_PTR_NOT_NULL(array);
    if (array == NULL || !check_int(array->n, n)) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        CU_ASSERT_TRUE(is_equal(tnd_array_number(array, i), want[i]));
    }
}

static double unary_of(enum tandem_dtype type, enum tandem_unary kind, double x)
{
    struct tnd_net *net = tnd_net_new();
    const int value = tnd_net_unary(net, kind, list(net, type, &x, 1));
    const struct tnd_array *array = tnd_net_known(net, value);
    const double result = array == NULL ? (double)NAN : tnd_array_number(array, 0);
    CU_ASSERT_PTR_NOT_NULL(array);
    tnd_net_free(net);
    return result;
}

static double binary_of(enum tandem_dtype type, enum tandem_binary kind, double x, double y)
{
    struct tnd_net *net = tnd_net_new();
    const int value = tnd_net_binary(net, kind, list(net, type, &x, 1), list(net, type, &y, 1));
    const struct tnd_array *array = tnd_net_known(net, value);
    const double result = array == NULL ? (double)NAN : tnd_array_number(array, 0);
    CU_ASSERT_PTR_NOT_NULL(array);
    tnd_net_free(net);
    return result;
}

static void every_function_is_defined_for_every_type(void)
{
    static const double values[] = {0, 1, -1, 127, -128, 65535, 1e30, -1e30, INFINITY, NAN};
    for (int type = 0; type < TND_N_DTYPES; type++) {
        const bool is_float = tnd_dtype_kind((enum tandem_dtype)type) == TND_KIND_FLOAT;
        struct tnd_net *net = tnd_net_new();
        const int x = list(net, (enum tandem_dtype)type, values, 10);
        for (int kind = 0; kind <= TANDEM_UNARY_IS_INF; kind++) {
            CU_ASSERT_PTR_NOT_NULL(tnd_net_known(net, tnd_net_unary(net, kind, x)));
        }
        const struct tnd_dims column = {2, {10, 1}};
        const int y = tnd_net_reshape(net, x, &column);
        for (int kind = 0; kind <= TANDEM_BINARY_LESS_EQUAL; kind++) {
            if (!is_float || kind < TANDEM_BINARY_AND || kind > TANDEM_BINARY_SHIFT_RIGHT) {
                CU_ASSERT_PTR_NOT_NULL(tnd_net_known(net, tnd_net_binary(net, kind, x, y)));
            }
        }
        for (int other = 0; other < TND_N_DTYPES; other++) {
            CU_ASSERT_PTR_NOT_NULL(tnd_net_known(net, tnd_net_cast(net, x, other)));
        }
        check_int(net->status, TANDEM_OK);
        tnd_net_free(net);
    }
}

static void integers_wrap(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_I8, TANDEM_DTYPE_I16, TANDEM_DTYPE_I32};
    for (int i = 0; i < 3; i++) {
        const double least = -ldexp(1.0, (8 << i) - 1);
        CU_ASSERT_EQUAL(unary_of(types[i], TANDEM_UNARY_NEG, least), least);
        CU_ASSERT_EQUAL(unary_of(types[i], TANDEM_UNARY_ABS, least), least);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_DIV, least, -1), least);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_SUB, least, 1), -least - 1);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_MOD, least, -1), 0);
    }
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_U8, TANDEM_BINARY_ADD, 255, 2), 1);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_U16, TANDEM_BINARY_SUB, 0, 1), 65535);
    CU_ASSERT_EQUAL(unary_of(TANDEM_DTYPE_U32, TANDEM_UNARY_NEG, 1), 4294967295.0);
    CU_ASSERT_EQUAL(unary_of(TANDEM_DTYPE_U32, TANDEM_UNARY_NOT, 1), 4294967294.0);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I64, TANDEM_BINARY_POW, 2, 64), 0);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I32, TANDEM_BINARY_POW, 3, 21), 1870418611);
}

static void divisions_by_nothing_give_nothing(void)
{
    static const enum tandem_binary kinds[] = {TANDEM_BINARY_DIV, TANDEM_BINARY_MOD,
                                               TANDEM_BINARY_FMOD};
    for (int type = TANDEM_DTYPE_I8; type <= TANDEM_DTYPE_BOOL; type++) {
        for (int i = 0; i < 3; i++) {
            CU_ASSERT_EQUAL(binary_of((enum tandem_dtype)type, kinds[i], 1, 0), 0);
        }
    }
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_F32, TANDEM_BINARY_DIV, -1, 0), -(double)INFINITY);
}

static void shifts_by_the_width_or_more_leave_nothing(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_U8, TANDEM_DTYPE_I16, TANDEM_DTYPE_I32,
                                              TANDEM_DTYPE_I64, TANDEM_DTYPE_U64};
    for (int i = 0; i < 5; i++) {
        const double width = (double)(8 * tandem_dtype_bytes(types[i]));
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_SHIFT_LEFT, 1, width), 0);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_SHIFT_RIGHT, 1, width), 0);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_SHIFT_LEFT, 3, 2), 12);
    }
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I8, TANDEM_BINARY_SHIFT_RIGHT, -8, 1), -4);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I64, TANDEM_BINARY_SHIFT_RIGHT, -8, 1), -4);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I32, TANDEM_BINARY_SHIFT_RIGHT, -8, 32), -1);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I8, TANDEM_BINARY_SHIFT_RIGHT, -8, -1), -1);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I32, TANDEM_BINARY_SHIFT_LEFT, 1, -1), 0);
}

static void operations_on_bits_take_no_floats(void)
{
    for (int kind = TANDEM_BINARY_AND; kind <= TANDEM_BINARY_SHIFT_RIGHT; kind++) {
        struct tnd_net *net = tnd_net_new();
        const int x = tnd_net_scalar(net, TANDEM_DTYPE_F16, 1);
        check_int(tnd_net_binary(net, (enum tandem_binary)kind, x, x), TANDEM_NET_NONE);
        check_int(net->status, TANDEM_E_TYPE);
        tnd_net_free(net);
    }
}

static void remainders_take_the_sign_that_they_should(void)
{
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I8, TANDEM_BINARY_MOD, -7, 3), 2);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_I8, TANDEM_BINARY_FMOD, -7, 3), -1);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_F64, TANDEM_BINARY_MOD, -7, 3), 2);
    CU_ASSERT_EQUAL(binary_of(TANDEM_DTYPE_F64, TANDEM_BINARY_FMOD, 7, -3), 1);
}

static void no_number_stays_no_number(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F32, TANDEM_DTYPE_F64, TANDEM_DTYPE_F16,
                                              TANDEM_DTYPE_BF16};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_TRUE(isnan(binary_of(types[i], TANDEM_BINARY_MAX, NAN, 1)));
        CU_ASSERT_TRUE(isnan(binary_of(types[i], TANDEM_BINARY_MIN, 1, NAN)));
        CU_ASSERT_TRUE(isnan(unary_of(types[i], TANDEM_UNARY_SIGN, NAN)));
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_EQUAL, NAN, NAN), 0);
        CU_ASSERT_EQUAL(binary_of(types[i], TANDEM_BINARY_LESS_EQUAL, NAN, 1), 0);
        CU_ASSERT_EQUAL(unary_of(types[i], TANDEM_UNARY_IS_NAN, NAN), 1);
        CU_ASSERT_EQUAL(unary_of(types[i], TANDEM_UNARY_IS_INF, -INFINITY), 1);
    }
}

static void casts_out_of_range_are_defined(void)
{
    static const double values[] = {1e30, -1e30, NAN, -1.9, 300.7};
    static const double as_i64[] = {9223372036854775807.0, -9223372036854775808.0, 0, -1, 300};
    static const double as_i8[] = {-1, 0, 0, -1, 44};
    static const double as_bool[] = {1, 1, 1, 1, 1};
    struct tnd_net *net = tnd_net_new();
    const int x = list(net, TANDEM_DTYPE_F32, values, 5);
    check_value(net, tnd_net_cast(net, x, TANDEM_DTYPE_I64), as_i64, 5);
    check_value(net, tnd_net_cast(net, x, TANDEM_DTYPE_I8), as_i8, 5);
    check_value(net, tnd_net_cast(net, x, TANDEM_DTYPE_BOOL), as_bool, 5);
    tnd_net_free(net);
}

static void large_integers_are_exact(void)
{
    static const int64_t values[] = {9007199254740993, -9007199254740993};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_integers(net, values, 2);
    const int one = tnd_net_scalar(net, TANDEM_DTYPE_I64, 1);
    const struct tnd_array *sum =
        tnd_net_known(net, tnd_net_binary(net, TANDEM_BINARY_ADD, x, one));
    CU_ASSERT_EQUAL(tnd_array_integer(sum, 0), 9007199254740994);
    CU_ASSERT_EQUAL(tnd_array_integer(sum, 1), -9007199254740992);
    const int wide = tnd_net_cast(net, x, TANDEM_DTYPE_U64);
    const struct tnd_array *size = tnd_net_known(net, tnd_net_unary(net, TANDEM_UNARY_ABS, wide));
    CU_ASSERT_EQUAL((uint64_t)tnd_array_integer(size, 1), UINT64_MAX - 9007199254740992U);
    tnd_net_free(net);
}

static void views_of_every_stride_are_read(void)
{
    static const struct tnd_dims matrix = {2, {3, 100}};
    struct tnd_net *net = tnd_net_new();
    const int x = counting(net, TANDEM_DTYPE_I16, &matrix);
    /* columns backwards in threes, rows backwards; plus one row for all */
    int a = tnd_net_slice(net, x, 1, 99, 34, -3);
    a = tnd_net_slice(net, a, 0, 2, 3, -1);
    const int b = tnd_net_slice(net, tnd_net_slice(net, x, 0, 0, 1, 1), 1, 0, 34, 2);
    const struct tnd_array *sum = tnd_net_known(net, tnd_net_binary(net, TANDEM_BINARY_ADD, a, b));
    for (int row = 0; row < 3; row++) {
        for (int i = 0; i < 34; i++) {
            CU_ASSERT_EQUAL(tnd_array_integer(sum, row * 34 + i),
                            (2 - row) * 100 + 99 - 3 * i + 2 * i);
        }
    }
    tnd_net_free(net);
}

static void scalars_deep_and_empty_shapes_are_walked(void)
{
    static const struct tnd_dims deep = {8, {2, 1, 2, 1, 2, 1, 2, 3}};
    static const struct tnd_dims none = {8, {2, 1, 0, 1, 2, 1, 2, 3}};
    static const int turned[] = {7, 6, 5, 4, 3, 2, 1, 0};
    struct tnd_net *net = tnd_net_new();
    const int x = counting(net, TANDEM_DTYPE_U8, &deep);
    const int y = tnd_net_permute(net, x, turned);
    const struct tnd_array *copy = tnd_net_known(net, tnd_net_permute(net, y, turned));
    for (int64_t i = 0; copy != NULL && i < copy->n; i++) {
        CU_ASSERT_EQUAL(tnd_array_integer(copy, i), i);
    }
    const struct tnd_array *turn = tnd_net_known(net, tnd_net_copy(net, y));
    CU_ASSERT_EQUAL(tnd_array_integer(turn, 1), 24);
    CU_ASSERT_EQUAL(tnd_array_integer(turn, 16), 1);
    const int empty = counting(net, TANDEM_DTYPE_F32, &none);
    const struct tnd_array *nothing =
        tnd_net_known(net, tnd_net_unary(net, TANDEM_UNARY_EXP, empty));
    CU_ASSERT_TRUE(nothing != NULL && nothing->n == 0);
    const double want = -5;
    check_value(net, tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_scalar(net, TANDEM_DTYPE_I8, 5)),
                &want, 1);
    tnd_net_free(net);
}

static void a_choice_keeps_all_bits_of_every_type(void)
{
    static const struct tnd_dims pair = {1, {2}};
    static const double truth[] = {1, 0};
    for (int type = 0; type < TND_N_DTYPES; type++) {
        struct tnd_net *net = tnd_net_new();
        const double want[] = {1, type == TANDEM_DTYPE_F8E8M0 ? 0x1p-127 : 0}; /* (no 0) */
        const int condition = list(net, TANDEM_DTYPE_BOOL, truth, 2);
        const int a = tnd_net_scalar(net, (enum tandem_dtype)type, 1);
        const int b = tnd_net_scalar(net, (enum tandem_dtype)type, 0);
        check_value(net, tnd_net_select(net, condition, a, b), want, 2);
        tnd_net_free(net);
    }
    struct tnd_net *net = tnd_net_new();
    const int condition = list(net, TANDEM_DTYPE_BOOL, truth, 2);
    struct tnd_array *large = tnd_array_new(TANDEM_DTYPE_U64, &pair);
    ((uint64_t *)large->data)[0] = UINT64_MAX;
    const int x = tnd_net_constant(net, large);
    const struct tnd_array *got = tnd_net_known(
        net, tnd_net_select(net, condition, x, tnd_net_scalar(net, TANDEM_DTYPE_U64, 3)));
    CU_ASSERT_EQUAL(((const uint64_t *)got->data)[0], UINT64_MAX);
    CU_ASSERT_EQUAL(((const uint64_t *)got->data)[1], 3);
    check_int(tnd_net_select(net, x, x, x), TANDEM_NET_NONE);
    check_int(net->status, TANDEM_E_TYPE);
    tnd_net_free(net);
}

static void shapes_whose_values_do_not_fit_are_refused(void)
{
    static const struct tnd_dims large = {3, {INT64_MAX / 2, 0, 4}};
    static const struct tnd_dims wrong = {2, {0, -1}};
    CU_ASSERT_EQUAL(tnd_dims_values(&large), -1);
    CU_ASSERT_EQUAL(tnd_dims_values(&wrong), -1);
    CU_ASSERT_EQUAL(tnd_dims_values(&scalar), 1);
    CU_ASSERT_PTR_NULL(tnd_array_new(TANDEM_DTYPE_F32, &large));
}

static CU_TestInfo tests_elementwise[] = {
    {"every_function_is_defined_for_every_type", every_function_is_defined_for_every_type},
    {"integers_wrap", integers_wrap},
    {"divisions_by_nothing_give_nothing", divisions_by_nothing_give_nothing},
    {"shifts_by_the_width_or_more_leave_nothing", shifts_by_the_width_or_more_leave_nothing},
    {"operations_on_bits_take_no_floats", operations_on_bits_take_no_floats},
    {"remainders_take_the_sign_that_they_should", remainders_take_the_sign_that_they_should},
    {"no_number_stays_no_number", no_number_stays_no_number},
    {"casts_out_of_range_are_defined", casts_out_of_range_are_defined},
    {"large_integers_are_exact", large_integers_are_exact},
    {"views_of_every_stride_are_read", views_of_every_stride_are_read},
    {"scalars_deep_and_empty_shapes_are_walked", scalars_deep_and_empty_shapes_are_walked},
    {"a_choice_keeps_all_bits_of_every_type", a_choice_keeps_all_bits_of_every_type},
    {"shapes_whose_values_do_not_fit_are_refused", shapes_whose_values_do_not_fit_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_elementwise[] = {
    {"elementwise", NULL, NULL, NULL, NULL, tests_elementwise},
    CU_SUITE_INFO_NULL,
};
