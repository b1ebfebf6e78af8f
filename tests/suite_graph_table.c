/* SPDX-License-Identifier: MIT
 * Bytes that a byte decides are looked up, values that are turned are moved in squares: the results
 * have the bits of the reference. */
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "tandem/runtime.h"
#include "tests/net_levels.h"
#include "tests/support.h"

static struct tnd_test_rng rng;

static int64_t between(int64_t low, int64_t high)
{
    return tnd_test_rng_int(&rng, low, high);
}

static int scalar(struct tnd_net *net, double x)
{
    return tnd_net_scalar(net, TANDEM_DTYPE_F32, x);
}

static int dequantised(struct tnd_net *net, int x)
{
    const int number = tnd_net_cast(net, x, TANDEM_DTYPE_F32);
    const int shifted =
        tnd_net_binary(net, TANDEM_BINARY_SUB, number, scalar(net, (double)between(-128, 255)));
    return tnd_net_binary(net, TANDEM_BINARY_MUL, shifted, scalar(net, 0.031));
}

static int quantised(struct tnd_net *net, int x)
{
    const enum tandem_dtype type = between(0, 1) == 0 ? TANDEM_DTYPE_I8 : TANDEM_DTYPE_U8;
    const double least = type == TANDEM_DTYPE_I8 ? -128 : 0;
    x = tnd_net_unary(net, TANDEM_UNARY_ROUND,
                      tnd_net_binary(net, TANDEM_BINARY_DIV, x, scalar(net, 0.027)));
    x = tnd_net_binary(net, TANDEM_BINARY_MAX, x, scalar(net, least));
    x = tnd_net_binary(net, TANDEM_BINARY_MIN, x, scalar(net, least + 255));
    return tnd_net_cast(net, x, type);
}

/* Some function of x, which is a function of the byte too; NaN where x is below some number: the
 * bounds of a quantisation do not keep it out. */
static int function_of(struct tnd_net *net, int x)
{
    static const enum tandem_unary unary[] = {TANDEM_UNARY_EXP, TANDEM_UNARY_ABS, TANDEM_UNARY_NEG,
                                              TANDEM_UNARY_TANH, TANDEM_UNARY_SIN};
    int y = x;
    for (int64_t i = between(1, 4); i > 0; i--) {
        switch (between(0, 3)) {
        case 0:
            y = tnd_net_unary(net, unary[between(0, 4)], y);
            break;
        case 1:
            y = tnd_net_binary(net, TANDEM_BINARY_MUL, x, y);
            break;
        case 2:
            y = tnd_net_select(net, tnd_net_binary(net, TANDEM_BINARY_LESS, x, scalar(net, 0.5)), y,
                               scalar(net, 1.5));
            break;
        default:
            y = tnd_net_binary(net, TANDEM_BINARY_ADD, y, scalar(net, 0.25));
        }
    }
    return y;
}

/* The same values, in another shape sometimes. */
static int reshaped(struct tnd_net *net, int x)
{
    const struct tnd_dims *from = &tnd_net_value(net, x)->shape;
    const struct tnd_dims to = {2, {from->dims[0] * from->dims[1], from->dims[2]}};
    const struct tnd_dims back = *from;
    if (between(0, 2) > 0) {
        return x;
    }
    x = tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_reshape(net, x, &to));
    return tnd_net_reshape(net, x, &back);
}

static int count_tables(const tandem_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        n += strcmp(graph->nodes[i]->name, "table") == 0;
    }
    return n;
}

/* Two functions, one of the other; where the first is an output too, both are looked up. */
static void check_table(uint64_t seed, tandem_runtime *runtime)
{
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    struct tnd_array *want[2] = {NULL, NULL};
    rng = tnd_test_rng_new(seed);
    const struct tnd_dims shape = {3, {between(1, 3), between(1, 40), between(1, 40)}};
    struct tnd_net *net = tnd_net_new();
    const enum tandem_dtype type = between(0, 1) == 0 ? TANDEM_DTYPE_I8 : TANDEM_DTYPE_U8;
    struct tnd_array *x = tnd_array_new(type, &shape);
    for (int64_t i = 0; i < x->n; i++) {
        ((uint8_t *)x->data)[i] = (uint8_t)between(0, 255);
    }
    const int in = tnd_net_input(net, type, &shape, "x", NULL);
    const int first = quantised(net, function_of(net, reshaped(net, dequantised(net, in))));
    const int second = quantised(net, function_of(net, reshaped(net, dequantised(net, first))));
    const bool two = between(0, 1) == 0;
    (void)tnd_net_output(net, second);
    if (two) {
        (void)tnd_net_output(net, first);
    }
    check_ok(tnd_net_run(net, &x, want, &error));
    if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        CU_ASSERT_EQUAL(count_tables(tnd_lowered_graph(lowered)), two ? 2 : 1);
        memcpy(tnd_lowered_input(lowered, 0), x->data, (size_t)x->n);
        check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
        for (int i = 0; i < (two ? 2 : 1) && want[i] != NULL; i++) {
            if (memcmp(tnd_lowered_output(lowered, i), want[i]->data, (size_t)x->n) != 0) {
                printf("    net of seed %llu\n", (unsigned long long)seed);
                CU_FAIL("a value that was looked up differs");
            }
        }
    }
    tnd_lowered_free(lowered);
    tnd_array_free(want[0]);
    tnd_array_free(want[1]);
    tnd_array_free(x);
    tnd_net_free(net);
}

/* Bytes that are quantised anew, in another shape and order, and by another scale sometimes; and a
 * product of them: strength keeps the bits of all, and leaves nothing of a quantisation that gives
 * bytes back. */
static void check_order(uint64_t seed)
{
    static const int turned[] = {1, 2, 0};
    struct tandem_error error = {.text = ""};
    struct tnd_array *before[2] = {NULL, NULL};
    struct tnd_array *after[2] = {NULL, NULL};
    rng = tnd_test_rng_new(seed);
    const struct tnd_dims shape = {3, {between(1, 3), between(1, 9), between(1, 9)}};
    const struct tnd_dims flat = {2, {shape.dims[1] * shape.dims[2], shape.dims[0]}};
    const bool is_same = between(0, 1) == 0;
    const bool is_read_twice = between(0, 2) == 0;
    struct tnd_net *net = tnd_net_new();
    struct tnd_array *x = tnd_array_new(TANDEM_DTYPE_U8, &shape);
    for (int64_t i = 0; i < x->n; i++) {
        ((uint8_t *)x->data)[i] = (uint8_t)between(0, 255);
    }
    const int in = tnd_net_input(net, TANDEM_DTYPE_U8, &shape, "x", NULL);
    const double zero = (double)between(0, 255);
    int y = tnd_net_cast(net, in, TANDEM_DTYPE_F32);
    y = tnd_net_binary(net, TANDEM_BINARY_SUB, y, scalar(net, zero));
    y = tnd_net_binary(net, TANDEM_BINARY_MUL, y, scalar(net, 0.031));
    const int wide = y;
    const bool is_part = between(0, 2) == 0;
    y = is_part ? tnd_net_slice(net, y, 1, shape.dims[1] / 2, shape.dims[1] - shape.dims[1] / 2, 1)
                : tnd_net_reshape(net, tnd_net_permute(net, y, turned), &flat);
    y = tnd_net_binary(net, TANDEM_BINARY_DIV, y, scalar(net, is_same ? 0.031 : 0.017));
    y = tnd_net_unary(net, TANDEM_UNARY_ROUND, y);
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, y, scalar(net, zero));
    y = tnd_net_binary(net, TANDEM_BINARY_MAX, y, scalar(net, 0));
    y = tnd_net_binary(net, TANDEM_BINARY_MIN, y, scalar(net, 255));
    y = tnd_net_cast(net, y, TANDEM_DTYPE_U8);
    (void)tnd_net_output(net, y);
    if (is_read_twice) {
        (void)tnd_net_output(net, wide);
    } else if (!is_part) {
        static const int swapped[] = {1, 0};
        const int real = tnd_net_binary(net, TANDEM_BINARY_MUL,
                                        tnd_net_cast(net, y, TANDEM_DTYPE_F32), scalar(net, 0.5));
        const int other = tnd_net_binary(
            net, TANDEM_BINARY_ADD,
            tnd_net_cast(net, tnd_net_permute(net, y, swapped), TANDEM_DTYPE_F32), scalar(net, 2));
        (void)tnd_net_output(net, tnd_net_matmul(net, other, real));
    }
    check_ok(tnd_net_run(net, &x, before, &error));
    check_ok(tnd_net_optimize(net, TND_PASS_BIT(TND_PASS_STRENGTH) | TND_PASS_BIT(TND_PASS_DEAD),
                              NULL, &error));
    check_ok(tnd_net_check(net, &error));
    check_ok(tnd_net_run(net, &x, after, &error));
    for (int i = 0; i < net->n_nodes && is_same; i++) {
        CU_ASSERT_FALSE(net->nodes[i].op == TND_NET_UNARY);
    }
    for (int i = 0; i < 2 && before[i] != NULL && after[i] != NULL; i++) {
        CU_ASSERT_EQUAL(before[i]->n, after[i]->n);
        if (memcmp(before[i]->data, after[i]->data,
                   (size_t)before[i]->n * tandem_dtype_bytes(before[i]->type)) != 0) {
            printf("    net of seed %llu\n", (unsigned long long)seed);
            CU_FAIL("a value differs once it is computed in another order");
        }
    }
    for (int i = 0; i < 2; i++) {
        tnd_array_free(before[i]);
        tnd_array_free(after[i]);
    }
    tnd_array_free(x);
    tnd_net_free(net);
}

/* Floats of bytes that are joined and quantised: the bytes are joined, each operand quantised by
 * itself, with the same bits, unless something else reads the joined floats. */
static void check_join(uint64_t seed)
{
    struct tandem_error error = {.text = ""};
    struct tnd_array *x[3];
    struct tnd_array *before[2] = {NULL, NULL};
    struct tnd_array *after[2] = {NULL, NULL};
    int operands[3];
    rng = tnd_test_rng_new(seed);
    const int n = (int)between(1, 3);
    const int axis = (int)between(0, 2);
    const bool is_read_twice = between(0, 2) == 0;
    struct tnd_dims shape = {3, {between(1, 3), between(1, 9), between(1, 9)}};
    struct tnd_net *net = tnd_net_new();
    for (int i = 0; i < n; i++) {
        shape.dims[axis] = between(1, 5);
        x[i] = tnd_array_new(TANDEM_DTYPE_U8, &shape);
        for (int64_t k = 0; k < x[i]->n; k++) {
            ((uint8_t *)x[i]->data)[k] = (uint8_t)between(0, 255);
        }
        operands[i] = dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &shape, "x", NULL));
    }
    const int joined = tnd_net_concat(net, operands, n, axis);
    (void)tnd_net_output(net, quantised(net, joined));
    if (is_read_twice) {
        (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_ABS, joined));
    }
    check_ok(tnd_net_run(net, x, before, &error));
    check_ok(tnd_net_optimize(net, TND_PASS_BIT(TND_PASS_STRENGTH) | TND_PASS_BIT(TND_PASS_DEAD),
                              NULL, &error));
    check_ok(tnd_net_check(net, &error));
    check_ok(tnd_net_run(net, x, after, &error));
    for (int i = 0; i < net->n_nodes; i++) {
        CU_ASSERT_TRUE(net->nodes[i].op != TND_NET_CONCAT || is_read_twice ||
                       tandem_dtype_bytes(net->values[net->nodes[i].output].type) == 1);
    }
    for (int i = 0; i < 2 && before[i] != NULL && after[i] != NULL; i++) {
        CU_ASSERT_EQUAL(memcmp(before[i]->data, after[i]->data,
                               (size_t)before[i]->n * tandem_dtype_bytes(before[i]->type)),
                        0);
    }
    for (int i = 0; i < 2; i++) {
        tnd_array_free(before[i]);
        tnd_array_free(after[i]);
    }
    for (int i = 0; i < n; i++) {
        tnd_array_free(x[i]);
    }
    tnd_net_free(net);
}

static void joined_bytes_are_quantised_one_by_one(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 200 : 3000); i++) {
        check_join(tnd_test_seed() * 5001 + (uint64_t)i);
    }
}

static void bytes_that_come_back_are_not_computed(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 200 : 3000); i++) {
        check_order(tnd_test_seed() * 9001 + (uint64_t)i);
    }
}

/* Random cases on a CPU without a table. */
static void check_cases(void (*check)(uint64_t seed, tandem_runtime *runtime), uint64_t factor,
                        int few, int many)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = NULL;
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    for (int i = 0; i < (tnd_effort() == 1 ? few : many); i++) {
        check(tnd_test_seed() * factor + (uint64_t)i, runtime);
    }
    tandem_runtime_close(runtime);
}

static void values_that_are_looked_up_are_those_of_the_reference(void)
{
    check_cases(check_table, 7001, 200, 3000);
}

/* Values whose last two dimensions change places, in numbers that no square divides. */
static void check_turn(uint64_t seed, tandem_runtime *runtime)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_U8, TANDEM_DTYPE_F32, TANDEM_DTYPE_I32};
    static const int turned[] = {0, 2, 1};
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    struct tnd_array *want = NULL;
    rng = tnd_test_rng_new(seed);
    const struct tnd_dims shape = {3, {between(1, 3), between(1, 70), between(1, 150)}};
    struct tnd_net *net = tnd_net_new();
    struct tnd_array *x = tnd_array_new(types[between(0, 2)], &shape);
    const size_t bytes = (size_t)x->n * tandem_dtype_bytes(x->type);
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)x->data)[i] = (uint8_t)between(0, 255);
    }
    (void)tnd_net_output(
        net, tnd_net_permute(net, tnd_net_input(net, x->type, &shape, "x", NULL), turned));
    check_ok(tnd_net_run(net, &x, &want, &error));
    if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        memcpy(tnd_lowered_input(lowered, 0), x->data, bytes);
        check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
        CU_ASSERT_EQUAL(memcmp(tnd_lowered_output(lowered, 0), want->data, bytes), 0);
    }
    tnd_lowered_free(lowered);
    tnd_array_free(want);
    tnd_array_free(x);
    tnd_net_free(net);
}

static void turned_values_are_those_of_the_reference(void)
{
    check_cases(check_turn, 3001, 100, 2000);
}

/* Constants that differ from channel to channel, and two bytes, decide more than a table has. */
static void what_two_values_decide_is_not_looked_up(void)
{
    const struct tnd_dims shape = {2, {4, 3}};
    const struct tnd_dims row = {1, {3}};
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    struct tnd_net *net = tnd_net_new();
    rng = tnd_test_rng_new(3);
    struct tnd_array *scales = tnd_array_new(TANDEM_DTYPE_F32, &row);
    tnd_test_fill(&rng, scales->data, 3);
    const int a = dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &shape, "a", NULL));
    const int b = dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &shape, "b", NULL));
    (void)tnd_net_output(net, quantised(net, tnd_net_binary(net, TANDEM_BINARY_ADD, a, b)));
    (void)tnd_net_output(net, quantised(net, tnd_net_binary(net, TANDEM_BINARY_MUL, a,
                                                            tnd_net_constant(net, scales))));
    if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        CU_ASSERT_EQUAL(count_tables(tnd_lowered_graph(lowered)), 0);
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

static void kernels_look_up_every_byte(void)
{
    enum { MOST = 256 + 70, GUARD = 8 };
    uint8_t table[256];
    uint8_t from[MOST];
    uint8_t to[MOST + GUARD];
    rng = tnd_test_rng_new(5);
    for (int i = 0; i < 256; i++) {
        table[i] = (uint8_t)between(0, 255);
    }
    for (int i = 0; i < MOST; i++) {
        from[i] = (uint8_t)(i * 7);
    }
    for (int k = 0; tnd_test_strip(k) != NULL; k++) {
        int wrong = 0;
        for (int n = 0; n <= MOST; n++) {
            memset(to, 99, sizeof(to));
            tnd_test_strip(k)->look_up(table, from, to, n);
            for (int i = 0; i < MOST + GUARD; i++) {
                wrong += to[i] != (i < n ? table[from[i]] : 99);
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

static CU_TestInfo tests[] = {
    {"bytes_that_come_back_are_not_computed", bytes_that_come_back_are_not_computed},
    {"turned_values_are_those_of_the_reference", turned_values_are_those_of_the_reference},
    {"joined_bytes_are_quantised_one_by_one", joined_bytes_are_quantised_one_by_one},
    {"values that are looked up are those of the reference",
     values_that_are_looked_up_are_those_of_the_reference},
    {"what two values decide is not looked up", what_two_values_decide_is_not_looked_up},
    {"kernels look up every byte", kernels_look_up_every_byte},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_table[] = {
    {"table", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
