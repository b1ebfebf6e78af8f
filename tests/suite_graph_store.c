/* SPDX-License-Identifier: MIT
 * Constants that nets for several extents share: found by how they are made, dropped with their
 * last holder, made again. */
#include <string.h>

#include "base/rng.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "tandem/runtime.h"
#include "tests/support.h"

enum { CHANNELS = 32, SIDE = 6, WIDTH = 40 };

static struct tnd_array *numbers(uint64_t seed, struct tnd_dims shape)
{
    struct tnd_rng rng;
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &shape);
    tnd_rng_init(&rng, seed);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        ((float *)array->data)[i] = tnd_rng_float(&rng) - 0.5F;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(array);
    return array;
}

static int weights(struct tnd_net *net, uint64_t seed, struct tnd_dims shape)
{
    return tnd_net_constant(net, numbers(seed, shape));
}

/* A convolution with a batch norm behind it, then rows that are multiplied by a matrix which is the
 * sum of two. */
static struct tnd_net *build(struct tnd_store *store, int64_t batch)
{
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims x = {4, {batch, CHANNELS, SIDE, SIDE}};
    const struct tnd_dims rows = {2, {batch * CHANNELS, SIDE * SIDE}};
    struct tnd_window window = {.n = 2, .groups = 1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(net);
    net->store = store;
    for (int i = 0; i < 2; i++) {
        window.extent[i] = 3;
        window.stride[i] = window.dilation[i] = window.begin[i] = window.end[i] = 1;
    }
    const int input = tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL);
    const int filters = weights(net, 1, (struct tnd_dims){4, {CHANNELS, CHANNELS, 3, 3}});
    const int scale = weights(net, 2, (struct tnd_dims){4, {1, CHANNELS, 1, 1}});
    const int a = weights(net, 3, (struct tnd_dims){2, {SIDE * SIDE, WIDTH}});
    const int b = weights(net, 4, (struct tnd_dims){2, {SIDE * SIDE, WIDTH}});
    int value = tnd_net_conv(net, input, filters, &window);
    value = tnd_net_binary(net, TANDEM_BINARY_MUL, value, scale);
    value = tnd_net_reshape(net, value, &rows);
    value = tnd_net_matmul(net, value, tnd_net_binary(net, TANDEM_BINARY_ADD, a, b));
    (void)tnd_net_output(net, value);
    CU_ASSERT_EQUAL_FATAL(net->status, TANDEM_OK);
    return net;
}

struct made {
    struct tnd_net *net;
    struct tnd_lowered *lowered;
};

static struct made lower(struct tnd_net *net, struct tnd_store *store)
{
    struct tandem_error error = {.text = ""};
    struct made made = {.net = net};
    check_status(tnd_net_optimize(made.net, TND_PASSES_ALL, NULL, &error), TANDEM_OK, NULL, &error);
    const struct tnd_lower_options options = {.gives_up = made.net};
    check_status(tnd_net_lower_with(made.net, &options, &made.lowered, &error), TANDEM_OK, NULL,
                 &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(made.lowered);
    if (store != NULL) {
        tnd_store_sweep(store);
    }
    return made;
}

static struct made make(struct tnd_store *store, int64_t batch)
{
    return lower(build(store, batch), store);
}

static void unmake(struct made *made)
{
    tnd_lowered_free(made->lowered);
    tnd_net_free(made->net);
}

static struct tnd_array *run(tandem_runtime *runtime, const struct made *made, int64_t batch)
{
    struct tnd_array *x = numbers(9, (struct tnd_dims){4, {batch, CHANNELS, SIDE, SIDE}});
    struct tnd_array *y = NULL;
    check_ok(tnd_lowered_set_input(made->lowered, 0, x, NULL));
    check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(made->lowered), NULL, NULL, NULL));
    check_ok(tnd_lowered_get_output(made->lowered, 0, &y, NULL));
    tnd_array_free(x);
    return y;
}

static void other_extents_take_the_same_weights(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tnd_store *store = tnd_store_new();
    tandem_runtime *runtime = NULL;
    struct made kept[6];
    options.n_threads = 2;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(runtime);
    size_t bytes = 0;
    for (int round = 0; round < 2; round++) { /* the second time values are read and made again */
        for (int i = 0; i < 6; i++) {
            kept[i] = make(store, i + 1);
            bytes = i == 0 ? tnd_store_bytes(store) : bytes;
            CU_ASSERT_TRUE(tnd_store_bytes(store) <= bytes);
            CU_ASSERT_TRUE(bytes > CHANNELS * CHANNELS * 9 * sizeof(float));
            struct made alone = make(NULL, i + 1);
            struct tnd_array *got = run(runtime, &kept[i], i + 1);
            struct tnd_array *want = run(runtime, &alone, i + 1);
            CU_ASSERT_EQUAL(memcmp(got->data, want->data, (size_t)want->n * sizeof(float)), 0);
            tnd_array_free(got);
            tnd_array_free(want);
            unmake(&alone);
        }
        for (int i = 0; i < 6; i++) {
            unmake(&kept[i]);
        }
        CU_ASSERT_TRUE(tnd_store_bytes(store) < bytes / 2);
    }
    tandem_runtime_close(runtime);
    tnd_store_free(store);
}

/* ---- each kind of prepared weights ---- */

static const struct tnd_window point = {
    .n = 2, .extent = {1, 1}, .stride = {2, 2}, .dilation = {1, 1}, .groups = 1};

static int window_of_three(struct tnd_net *net, int value, uint64_t seed, int64_t groups)
{
    const struct tnd_dims shape = {4, {CHANNELS, CHANNELS / groups, 3, 3}};
    return tnd_net_conv(net, value, weights(net, seed, shape),
                        &(struct tnd_window){.n = 2,
                                             .extent = {3, 3},
                                             .stride = {1, 1},
                                             .dilation = {1, 1},
                                             .begin = {1, 1},
                                             .end = {1, 1},
                                             .groups = groups});
}

static int narrow(struct tnd_net *net, uint64_t seed, struct tnd_dims shape, enum tandem_dtype type,
                  double factor)
{
    struct tnd_array *wide = numbers(seed, shape);
    struct tnd_array *array = tnd_array_new(type, &shape);
    CU_ASSERT_PTR_NOT_NULL_FATAL(array);
    for (int64_t i = 0; i < wide->n; i++) {
        const union tnd_values value = {.f64 = {factor * ((const float *)wide->data)[i]}};
        tnd_values_store(type, TND_LANE_F64, &value, 1,
                         (char *)array->data + i * (int64_t)tandem_dtype_bytes(type));
    }
    tnd_array_free(wide);
    return tnd_net_constant(net, array);
}

static int as_sums(struct tnd_net *net, int value)
{
    return tnd_net_cast(net, value, TANDEM_DTYPE_I32);
}

/* Winograd's method, one filter a channel, direct sums; a product with weights of FLOAT16; a
 * convolution and a product of bytes. */
static struct tnd_net *build_all(struct tnd_store *store, int64_t batch)
{
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims x = {4, {batch, CHANNELS, SIDE, SIDE}};
    const struct tnd_dims rows = {2, {batch, CHANNELS * SIDE * SIDE}};
    const struct tnd_dims of_points = {4, {CHANNELS, CHANNELS, 1, 1}};
    const struct tnd_dims of_rows = {2, {rows.dims[1], WIDTH}};
    CU_ASSERT_PTR_NOT_NULL_FATAL(net);
    net->store = store;
    const int floats = tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL);
    const int bytes = tnd_net_input(net, TANDEM_DTYPE_U8, &x, "b", NULL);
    const int smooth = window_of_three(net, window_of_three(net, floats, 1, 1), 2, CHANNELS);
    const int half = narrow(net, 4, of_rows, TANDEM_DTYPE_F16, 1);
    const int signed_points = narrow(net, 5, of_points, TANDEM_DTYPE_I8, 250);
    const int signed_rows = narrow(net, 6, of_rows, TANDEM_DTYPE_I8, 250);
    (void)tnd_net_output(net, tnd_net_conv(net, smooth, weights(net, 3, of_points), &point));
    (void)tnd_net_output(net, tnd_net_matmul(net, tnd_net_reshape(net, smooth, &rows),
                                             tnd_net_cast(net, half, TANDEM_DTYPE_F32)));
    (void)tnd_net_output(
        net, tnd_net_conv(net, as_sums(net, bytes), as_sums(net, signed_points), &point));
    (void)tnd_net_output(net, tnd_net_matmul(net, as_sums(net, tnd_net_reshape(net, bytes, &rows)),
                                             as_sums(net, signed_rows)));
    CU_ASSERT_EQUAL_FATAL(net->status, TANDEM_OK);
    return net;
}

static void no_weights_are_prepared_for_a_second_set_of_extents(void)
{
    enum { SETS = 6, WEIGHTS = CHANNELS * SIDE * SIDE * WIDTH };
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_runtime_info info = {.size = sizeof(info)};
    struct tnd_store *store = tnd_store_new();
    tandem_runtime *runtime = NULL;
    struct made kept[SETS];
    size_t packed = 0, stored = 0;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(runtime);
    for (int i = 0; i < SETS; i++) {
        kept[i] = lower(build_all(store, i + 1), store);
        check_ok(
            tandem_runtime_compute(runtime, tnd_lowered_graph(kept[i].lowered), NULL, NULL, NULL));
        check_ok(tandem_runtime_describe(runtime, &info));
        if (i == 0) {
            packed = info.prepared_bytes;
            stored = tnd_store_bytes(store);
            CU_ASSERT_TRUE(packed > WEIGHTS && stored > WEIGHTS);
        }
        check_int((long long)info.prepared_bytes, (long long)packed);
        check_int((long long)tnd_store_bytes(store), (long long)stored);
        /* (a set has values of its own, not weights) */
        CU_ASSERT_TRUE(tnd_lowered_bytes(kept[i].lowered) <=
                       tnd_lowered_bytes(kept[0].lowered) + (size_t)i * WEIGHTS);
    }
    for (int i = 0; i < SETS; i++) {
        unmake(&kept[i]);
    }
    tandem_runtime_close(runtime);
    tnd_store_free(store);
}

/* ---- the store alone ---- */

static int n_made;

static enum tandem_status double_values(const void *how, const struct tnd_view *in, int n_in,
                                        struct tnd_array *out, struct tandem_error *error)
{
    (void)how;
    n_made++;
    if (n_in == 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, NULL, 0, 0, "there is no operand");
    }
    for (int64_t i = 0; i < out->n; i++) {
        ((float *)out->data)[i] = 2 * ((const float *)in[0].data)[i];
    }
    return TANDEM_OK;
}

static struct tnd_array *doubled(struct tnd_store *store, const struct tnd_array *from)
{
    struct tnd_store_operand in = {
        .array = from, .view = {.type = TANDEM_DTYPE_F32, .shape = from->shape, .strides = {1}}};
    const struct tnd_store_recipe recipe = {.make = double_values,
                                            .in = &in,
                                            .n_in = 1,
                                            .type = TANDEM_DTYPE_F32,
                                            .shape = from->shape};
    struct tnd_array *out = NULL;
    check_ok(tnd_store_derive(store, &recipe, &out, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    return out;
}

static void values_that_went_are_made_again_from_the_first_on(void)
{
    enum { N = 5000, STEPS = 2000 };
    struct tnd_store *store = tnd_store_new();
    struct tnd_array *first = tnd_store_take(store, numbers(1, (struct tnd_dims){1, {N}}));
    struct tnd_array *last = first;
    const float want = ((const float *)first->data)[N - 1] * 8;
    n_made = 0;
    for (int i = 0; i < STEPS; i++) { /* each lets go of the one in front */
        struct tnd_array *next = doubled(store, last);
        tnd_array_free(last);
        last = next;
    }
    check_int(n_made, STEPS);
    tnd_array_free(last);
    CU_ASSERT_PTR_NULL(last->data);
    struct tnd_array *same = tnd_store_take(store, numbers(1, (struct tnd_dims){1, {N}}));
    CU_ASSERT_PTR_EQUAL(same, first);
    struct tnd_array *third = doubled(store, same);
    CU_ASSERT_PTR_NULL(third->data);
    check_int(n_made, STEPS);
    struct tnd_array *fourth = doubled(store, third);
    struct tnd_array *fifth = doubled(store, fourth);
    CU_ASSERT_TRUE(tnd_array_fill(fifth));
    check_int(n_made, STEPS + 3);
    CU_ASSERT_EQUAL(((const float *)fifth->data)[N - 1], want);
    CU_ASSERT_TRUE(tnd_store_bytes(store) <= 4 * N * sizeof(float));
    tnd_array_free(fifth);
    tnd_array_free(fourth);
    tnd_array_free(third);
    tnd_array_free(same);
    for (int i = 0; i < STEPS + 40; i++) { /* one step a net, from the last one on */
        tnd_store_sweep(store);
    }
    check_int((long long)tnd_store_bytes(store), 0);
    tnd_store_free(store);
}

static void failures_and_arrays_that_were_not_made_leave_nothing(void)
{
    struct tnd_store *store = tnd_store_new();
    const struct tnd_store_recipe recipe = {
        .make = double_values, .type = TANDEM_DTYPE_F32, .shape = {1, {5000}}};
    const struct tnd_store_recipe packed = {
        .how = "k", .n_how = 1, .type = TANDEM_DTYPE_F32, .shape = {1, {8}}};
    struct tandem_error error = {.text = ""};
    struct tnd_array *out = NULL;
    bool is_new = false;
    check_status(tnd_store_derive(store, &recipe, &out, &error), TANDEM_E_ARGUMENT, "no operand",
                 &error);
    check_int((long long)tnd_store_bytes(store), 0);
    out = tnd_store_find(store, &packed, &is_new);
    CU_ASSERT_TRUE(out != NULL && is_new);
    tnd_array_free(out); /* (not made) */
    out = tnd_store_find(store, &packed, &is_new);
    CU_ASSERT_TRUE_FATAL(out != NULL && is_new);
    ((float *)out->data)[0] = 3;
    tnd_store_made(out);
    struct tnd_array *again = tnd_store_find(store, &packed, &is_new);
    CU_ASSERT_TRUE(again == out && !is_new);
    const int64_t ne[] = {4, 2};
    tandem_tensor *tensor = tnd_store_tensor(out, 0, 2, ne);
    CU_ASSERT_PTR_NOT_NULL(tensor);
    CU_ASSERT_PTR_EQUAL(tnd_store_tensor(out, 0, 2, ne), tensor);
    CU_ASSERT_PTR_NULL(tnd_store_tensor(out, 4, 2, ne));
    tnd_array_free(out);
    tnd_array_free(again);
    check_int((long long)tnd_store_bytes(store), 0);
    tnd_store_free(store);
}

static CU_TestInfo tests_store[] = {
    {"other_extents_take_the_same_weights", other_extents_take_the_same_weights},
    {"values_that_went_are_made_again_from_the_first_on",
     values_that_went_are_made_again_from_the_first_on},
    {"no_weights_are_prepared_for_a_second_set_of_extents",
     no_weights_are_prepared_for_a_second_set_of_extents},
    {"failures_and_arrays_that_were_not_made_leave_nothing",
     failures_and_arrays_that_were_not_made_leave_nothing},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_store[] = {
    {"store", NULL, NULL, NULL, NULL, tests_store},
    CU_SUITE_INFO_NULL,
};
