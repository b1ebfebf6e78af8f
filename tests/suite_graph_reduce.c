/* SPDX-License-Identifier: MIT
 * The reference's reductions, running sums and sorting: all types, several axes, views, nothing to
 * reduce, what is no number. */
#include <math.h>
#include <string.h>

#include "graph/net.h"
#include "tests/support.h"

static int values_of(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape,
                     const double *values)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        union tnd_values lanes;
        lanes.f64[0] = values == NULL ? (double)i : values[i];
        tnd_values_store(type, TND_LANE_F64, &lanes, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(type));
    }
    return tnd_net_constant(net, array);
}

static void check_value(struct tnd_net *net, int value, const double *want, int64_t n)
{
    const struct tnd_array *array = tnd_net_known(net, value);
    CU_ASSERT_PTR_NOT_NULL(array);
    if (array == NULL || !check_int(array->n, n)) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double got = tnd_array_number(array, i);
        CU_ASSERT_TRUE(got == want[i] || (isnan(got) && isnan(want[i])));
    }
}

static void any_axes_of_any_view_are_reduced(void)
{
    static const struct tnd_dims cube = {3, {2, 3, 4}};
    static const int turned[] = {2, 0, 1};
    static const double outer[] = {6, 22, 38, 54, 70, 86};
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, TANDEM_DTYPE_I32, &cube, NULL);
    static const double want_a[] = {60, 66, 72, 78};
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 3), want_a, 4);
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 4), outer, 6);
    const int y = tnd_net_slice(net, tnd_net_permute(net, x, turned), 0, 3, 4, -1);
    static const double want_b[] = {78, 72, 66, 60};
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, y, 6), want_b, 4);
    static const double all = 276;
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, y, 7), &all, 1);
    static const double none[] = {0, 1, 2, 3};
    const int row = tnd_net_slice(net, tnd_net_slice(net, x, 0, 0, 1, 1), 1, 0, 1, 1);
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_MAX, row, 0), none, 4);
    tnd_net_free(net);
}

static void nothing_reduces_to_what_changes_nothing(void)
{
    static const struct tnd_dims none = {2, {0, 1}};
    for (int type = 0; type < TND_N_DTYPES; type++) {
        struct tnd_net *net = tnd_net_new();
        const int x = values_of(net, (enum tandem_dtype)type, &none, NULL);
        const double neutral[] = {type == TANDEM_DTYPE_F8E8M0 ? 0x1p-127 : 0, 1}; /* (no 0) */
        check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 1), &neutral[0], 1);
        check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_PROD, x, 1), &neutral[1], 1);
        /* the largest of nothing is not above any value, the smallest not below */
        const int most = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 1);
        const int least = tnd_net_reduce(net, TANDEM_REDUCE_MIN, x, 1);
        const int one = tnd_net_scalar(net, (enum tandem_dtype)type, 1);
        check_value(net, tnd_net_binary(net, TANDEM_BINARY_MIN, least, one), &neutral[1], 1);
        check_value(net, tnd_net_binary(net, TANDEM_BINARY_MAX, most, one), &neutral[1], 1);
        tnd_net_free(net);
    }
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, TANDEM_DTYPE_I64, &none, NULL);
    const struct tnd_array *least =
        tnd_net_known(net, tnd_net_reduce(net, TANDEM_REDUCE_MIN, x, 1));
    CU_ASSERT_EQUAL(tnd_array_integer(least, 0), INT64_MAX);
    tnd_net_free(net);
}

static void sums_of_floats_are_kept_in_double_and_integers_wrap(void)
{
    static const struct tnd_dims three = {1, {3}};
    static const double large[] = {1e8, 1, -1e8};
    static const double bytes[] = {200, 100, 1};
    static const double one = 1;
    static const double wrapped = 45;
    struct tnd_net *net = tnd_net_new();
    check_value(
        net,
        tnd_net_reduce(net, TANDEM_REDUCE_SUM, values_of(net, TANDEM_DTYPE_F32, &three, large), 1),
        &one, 1);
    check_value(
        net,
        tnd_net_reduce(net, TANDEM_REDUCE_SUM, values_of(net, TANDEM_DTYPE_U8, &three, bytes), 1),
        &wrapped, 1);
    tnd_net_free(net);
}

static void the_largest_of_no_numbers_is_no_number(void)
{
    static const struct tnd_dims three = {1, {3}};
    static const double values[] = {1, NAN, 2};
    static const double nan = NAN;
    static const double at = 1;
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, TANDEM_DTYPE_F32, &three, values);
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 1), &nan, 1);
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_MIN, x, 1), &nan, 1);
    check_value(net, tnd_net_arg_reduce(net, true, x, 0, false), &at, 1);
    tnd_net_free(net);
}

static void the_first_or_the_last_of_equal_ones_is_picked(void)
{
    static const struct tnd_dims matrix = {2, {2, 3}};
    static const double values[] = {3, 1, 3, 1, 1, 2};
    static const double first[] = {0, 2};
    static const double last[] = {2, 2};
    static const double least[] = {1, 0};
    static const double least_last[] = {1, 1};
    for (int type = 0; type < TANDEM_DTYPE_BOOL; type++) {
        struct tnd_net *net = tnd_net_new();
        const int x = values_of(net, (enum tandem_dtype)type, &matrix, values);
        check_value(net, tnd_net_arg_reduce(net, true, x, 1, false), first, 2);
        check_value(net, tnd_net_arg_reduce(net, true, x, 1, true), last, 2);
        check_value(net, tnd_net_arg_reduce(net, false, x, 1, false), least, 2);
        check_value(net, tnd_net_arg_reduce(net, false, x, 1, true), least_last, 2);
        tnd_net_free(net);
    }
}

static void running_sums_go_both_ways(void)
{
    static const struct tnd_dims four = {1, {4}};
    static const double plain[] = {0, 1, 3, 6};
    static const double exclusive[] = {0, 0, 1, 3};
    static const double reverse[] = {6, 6, 5, 3};
    static const double both[] = {6, 5, 3, 0};
    for (int type = 0; type < TANDEM_DTYPE_BOOL; type++) {
        struct tnd_net *net = tnd_net_new();
        const int x = values_of(net, (enum tandem_dtype)type, &four, NULL);
        check_value(net, tnd_net_scan(net, x, 0, false, false), plain, 4);
        check_value(net, tnd_net_scan(net, x, 0, true, false), exclusive, 4);
        check_value(net, tnd_net_scan(net, x, 0, false, true), reverse, 4);
        check_value(net, tnd_net_scan(net, x, 0, true, true), both, 4);
        const int turned = tnd_net_slice(net, x, 0, 3, 4, -1);
        static const double of_turned[] = {3, 5, 6, 6};
        check_value(net, tnd_net_scan(net, turned, 0, false, false), of_turned, 4);
        tnd_net_free(net);
    }
}

static void sorting_keeps_the_order_of_equal_ones(void)
{
    static const struct tnd_dims five = {1, {5}};
    static const double values[] = {2, 1, 2, 0, 1};
    static const double rising[] = {3, 1, 4, 0, 2};
    static const double falling[] = {0, 2, 1, 4, 3};
    for (int type = 0; type < TANDEM_DTYPE_BOOL; type++) {
        struct tnd_net *net = tnd_net_new();
        const int x = values_of(net, (enum tandem_dtype)type, &five, values);
        check_value(net, tnd_net_arg_sort(net, x, 0, false), rising, 5);
        check_value(net, tnd_net_arg_sort(net, x, 0, true), falling, 5);
        tnd_net_free(net);
    }
    static const double with_nan[] = {NAN, 1, INFINITY, -INFINITY, NAN};
    static const double order[] = {3, 1, 2, 0, 4};
    static const double order_falling[] = {0, 4, 2, 1, 3};
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, TANDEM_DTYPE_F64, &five, with_nan);
    check_value(net, tnd_net_arg_sort(net, x, 0, false), order, 5);
    check_value(net, tnd_net_arg_sort(net, x, 0, true), order_falling, 5);
    tnd_net_free(net);
}

static void empty_lines_are_sorted_and_summed(void)
{
    static const struct tnd_dims none = {2, {3, 0}};
    static const struct tnd_dims other = {2, {0, 3}};
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, TANDEM_DTYPE_F32, &none, NULL);
    const int y = values_of(net, TANDEM_DTYPE_F32, &other, NULL);
    check_value(net, tnd_net_arg_sort(net, x, 1, false), NULL, 0);
    check_value(net, tnd_net_scan(net, x, 1, true, false), NULL, 0);
    check_value(net, tnd_net_arg_reduce(net, true, y, 1, false), NULL, 0);
    check_int(tnd_net_arg_reduce(net, true, x, 1, false), TANDEM_NET_NONE);
    check_int(net->status, TANDEM_E_SHAPE);
    tnd_net_free(net);
}

/* Lines longer than what is loaded at once, and than what is sorted by comparing. */
enum { LONG = 200 };

static void check_long(enum tandem_dtype type, const double *values)
{
    static const struct tnd_dims line = {1, {LONG}};
    struct tnd_net *net = tnd_net_new();
    const int x = values_of(net, type, &line, values);
    double forward[LONG], backward[LONG], rising[LONG], falling[LONG];
    double sum = 0, behind = 0, last[2] = {0, 0};
    int at = 0;
    for (int i = 0; i < LONG; i++) {
        forward[i] = sum += values[i];
        backward[LONG - 1 - i] = behind += values[LONG - 1 - i];
        last[values[i] != 0] = i;
    }
    for (int want = 0; want < 2; want++) { /* the zeros, then the ones */
        for (int i = 0; i < LONG; i++) {
            if ((values[i] != 0) == (want == 1)) {
                rising[at++] = i;
            }
        }
    }
    const int n_zeros = LONG - (int)sum;
    memcpy(falling, rising + n_zeros, sizeof(double) * (size_t)(LONG - n_zeros));
    memcpy(falling + LONG - n_zeros, rising, sizeof(double) * (size_t)n_zeros);
    check_value(net, tnd_net_scan(net, x, 0, false, false), forward, LONG);
    check_value(net, tnd_net_scan(net, x, 0, false, true), backward, LONG);
    check_value(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 1u), &sum, 1);
    check_value(net, tnd_net_arg_reduce(net, true, x, 0, true), &last[1], 1);
    check_value(net, tnd_net_arg_reduce(net, false, x, 0, true), &last[0], 1);
    check_value(net, tnd_net_arg_sort(net, x, 0, false), rising, LONG);
    check_value(net, tnd_net_arg_sort(net, x, 0, true), falling, LONG);
    tnd_net_free(net);
}

static void long_lines_are_sorted_and_summed(void)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F64, TANDEM_DTYPE_F32, TANDEM_DTYPE_F16,
                                              TANDEM_DTYPE_I8,  TANDEM_DTYPE_U8,  TANDEM_DTYPE_I32,
                                              TANDEM_DTYPE_I64, TANDEM_DTYPE_U64};
    double values[LONG];
    for (int i = 0; i < LONG; i++) {
        values[i] = i % 3 == 0 || i % 7 == 0;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        check_long(types[i], values);
    }
    for (int i = 0; i < LONG; i++) { /* (-0 is no other number than 0) */
        values[i] = values[i] == 0 && i % 2 == 0 ? -0.0 : values[i];
    }
    check_long(TANDEM_DTYPE_F32, values);
}

static CU_TestInfo tests_reduce[] = {
    {"any_axes_of_any_view_are_reduced", any_axes_of_any_view_are_reduced},
    {"nothing_reduces_to_what_changes_nothing", nothing_reduces_to_what_changes_nothing},
    {"sums_of_floats_are_kept_in_double_and_integers_wrap",
     sums_of_floats_are_kept_in_double_and_integers_wrap},
    {"the_largest_of_no_numbers_is_no_number", the_largest_of_no_numbers_is_no_number},
    {"the_first_or_the_last_of_equal_ones_is_picked",
     the_first_or_the_last_of_equal_ones_is_picked},
    {"running_sums_go_both_ways", running_sums_go_both_ways},
    {"sorting_keeps_the_order_of_equal_ones", sorting_keeps_the_order_of_equal_ones},
    {"long_lines_are_sorted_and_summed", long_lines_are_sorted_and_summed},
    {"empty_lines_are_sorted_and_summed", empty_lines_are_sorted_and_summed},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_reduce[] = {
    {"reduce", NULL, NULL, NULL, NULL, tests_reduce},
    CU_SUITE_INFO_NULL,
};
