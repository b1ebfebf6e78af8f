/* SPDX-License-Identifier: MIT
 * Pass "affine": where it fires, where it must not, and random chains within the bound that
 * graph/pass_affine.c derives. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/pass.h"
#include "tests/support.h"

#define AFFINE (TND_PASS_BIT(TND_PASS_AFFINE) | TND_PASS_BIT(TND_PASS_DEAD))

static int constant(struct tnd_net *net, const struct tnd_dims *shape, double first)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        ((float *)array->data)[i] = (float)(first + 0.25 * (double)i);
    }
    return tnd_net_constant(net, array);
}

/* A convolution of 4 channels by 6 filters in groups; its result is 2x6x3x3. */
static int conv(struct tnd_net *net, int groups)
{
    static const struct tnd_dims image = {4, {2, 4, 5, 5}};
    const struct tnd_dims filters = {4, {6, 4 / groups, 3, 3}};
    const struct tnd_window window = {
        .n = 2, .extent = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .groups = groups};
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &image, "x", NULL);
    return tnd_net_conv(net, x, constant(net, &filters, -4), &window);
}

static int by_channel(struct tnd_net *net, enum tandem_binary kind, int x, double first)
{
    static const struct tnd_dims channels = {3, {6, 1, 1}};
    return tnd_net_binary(net, kind, x, constant(net, &channels, first));
}

static int by_number(struct tnd_net *net, enum tandem_binary kind, int x, double number)
{
    return tnd_net_binary(net, kind, x, tnd_net_scalar(net, TANDEM_DTYPE_F32, number));
}

/* Optimises a net with one more output; `nodes` are left. Frees it. */
static void expect(struct tnd_net *net, int value, int nodes)
{
    struct tandem_error error = {.text = ""};
    (void)tnd_net_output(net, value);
    check_status(tnd_net_optimize(net, AFFINE, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
    check_int(net->n_nodes, nodes);
    tnd_net_free(net);
}

#define EXPECT(nodes, expression)                                                                  \
    do {                                                                                           \
        struct tnd_net *net = tnd_net_new();                                                       \
        const int value = (expression);                                                            \
        expect(net, value, (nodes));                                                               \
    } while (0)

#define ADD TANDEM_BINARY_ADD
#define SUB TANDEM_BINARY_SUB
#define MUL TANDEM_BINARY_MUL
#define DIV TANDEM_BINARY_DIV

static int batch_norm(struct tnd_net *net, int x)
{
    x = by_channel(net, SUB, x, 0.5);
    x = by_channel(net, MUL, x, 0.25);
    x = by_channel(net, MUL, x, -2);
    return by_channel(net, ADD, x, 3);
}

static void a_batch_norm_becomes_weights_and_one_shift(void)
{
    EXPECT(2, batch_norm(net, conv(net, 1)));
    EXPECT(2, batch_norm(net, conv(net, 2)));
    EXPECT(1, by_channel(net, MUL, conv(net, 2), 1));
    EXPECT(1, by_number(net, DIV, conv(net, 1), 3));
    EXPECT(2, tnd_net_binary(net, SUB, tnd_net_scalar(net, TANDEM_DTYPE_F32, 1), conv(net, 1)));
}

/* {2, 3, 4} by {4, 6}, and {6, 3} by {2, 3, 4}. */
static int product(struct tnd_net *net, bool is_left)
{
    static const struct tnd_dims shape = {3, {2, 3, 4}};
    static const struct tnd_dims right = {2, {4, 6}};
    static const struct tnd_dims left = {2, {6, 3}};
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
    return is_left ? tnd_net_matmul(net, constant(net, &left, 1), x)
                   : tnd_net_matmul(net, x, constant(net, &right, 1));
}

static void scales_of_products_go_into_the_constant_side(void)
{
    static const struct tnd_dims columns = {1, {6}};
    static const struct tnd_dims rows = {2, {6, 1}};
    static const struct tnd_dims heads = {4, {2, 3, 2, 3}};
    static const struct tnd_dims head = {2, {2, 3}};
    EXPECT(2, by_number(net, MUL,
                        tnd_net_binary(net, ADD, product(net, false), constant(net, &columns, 1)),
                        0.5));
    EXPECT(2, tnd_net_copy(net,
                           tnd_net_binary(net, MUL, product(net, true), constant(net, &rows, 1))));
    EXPECT(3, tnd_net_copy(/* along the product's sums, which no weight has for itself */
                           net, tnd_net_binary(
                                    net, MUL, product(net, true),
                                    tnd_net_slice(net, constant(net, &columns, 1), 0, 0, 4, 1))));
    EXPECT(2, tnd_net_copy(net, tnd_net_binary(net, MUL, /* read as heads */
                                               tnd_net_reshape(net, product(net, false), &heads),
                                               constant(net, &head, 1))));
}

static void constants_of_a_chain_combine(void)
{
    static const struct tnd_dims matrix = {2, {2, 6}};
    static const struct tnd_dims columns = {1, {6}};
    static const struct tnd_dims rows = {2, {2, 1}};
    static const struct tnd_dims flat = {1, {12}};
#define X tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", NULL)
#define FLAT_EXP                                                                                   \
    tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_input(net, TANDEM_DTYPE_F32, &flat, "x", NULL))
    EXPECT(2, by_number(net, ADD, by_number(net, MUL, by_number(net, ADD, X, 1), 2), 3));
    EXPECT(1, by_number(net, ADD, tnd_net_binary(net, SUB, X, constant(net, &columns, 1)), 3));
    EXPECT(1, by_number(net, DIV, by_number(net, MUL, X, 5), 3));
    EXPECT(2, by_number(net, MUL, by_number(net, ADD, X, 1), 2)); /* no shorter way */
    EXPECT(3,
           by_number(net, ADD, /* in the shape that has the columns as a dimension */
                     tnd_net_binary(net, MUL,
                                    tnd_net_reshape(net, by_number(net, ADD, FLAT_EXP, 1), &matrix),
                                    constant(net, &columns, 1)),
                     3));
    EXPECT(2, tnd_net_binary(net, ADD, /* rows by columns: a matrix of constants */
                             tnd_net_binary(net, ADD, X, constant(net, &columns, 1)),
                             constant(net, &rows, 1)));
#undef X
#undef FLAT_EXP
}

static void what_others_read_is_not_changed(void)
{
    struct tnd_net *net = tnd_net_new();
    const int y = conv(net, 1);
    (void)tnd_net_output(net, y);
    expect(net, by_channel(net, MUL, y, 1), 2); /* the result */
    net = tnd_net_new();
    const int z = conv(net, 1);
    const struct tnd_net_node *node = &net->nodes[net->values[z].node];
    const int other = tnd_net_conv(net, node->inputs[0], node->inputs[1], &node->params.window);
    (void)tnd_net_output(net, other);
    expect(net, by_channel(net, MUL, z, 1), 3); /* the weights */
    net = tnd_net_new();
    const int shifted = by_channel(net, ADD, conv(net, 1), 1);
    (void)tnd_net_output(net, shifted);
    expect(net, by_channel(net, MUL, shifted, 2), 3); /* a step between */
}

static void numbers_that_would_get_lost_stay(void)
{
    EXPECT(2, by_number(net, MUL, conv(net, 1), (double)INFINITY));
    EXPECT(2, by_number(net, MUL, conv(net, 1), (double)NAN));
    EXPECT(2, by_number(net, DIV, conv(net, 1), 0));
    EXPECT(2, by_number(net, MUL, conv(net, 1), 0x1p127));  /* weights up to 8 */
    EXPECT(2, by_number(net, MUL, conv(net, 1), 0x1p-126)); /* weights from 1/4 */
    EXPECT(1, by_number(net, MUL, conv(net, 1), 0));
    EXPECT(2, by_number(net, MUL, by_number(net, MUL, conv(net, 1), 0x1p-100), 0x1p-100));
}

static void integers_and_halves_are_left_alone(void)
{
    static const struct tnd_dims matrix = {2, {2, 6}};
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_I32, TANDEM_DTYPE_F16};
    for (int i = 0; i < 2; i++) {
        struct tnd_net *net = tnd_net_new();
        int x = tnd_net_input(net, types[i], &matrix, "x", NULL);
        x = tnd_net_binary(net, MUL, x, tnd_net_scalar(net, types[i], 3));
        expect(net, tnd_net_binary(net, MUL, x, tnd_net_scalar(net, types[i], 3)), 2);
    }
}

/* ---- random chains ---- */

/* Builds a chain from a seed. `is_bound`: of absolute values, sums in place of differences. */
struct chain {
    struct tnd_test_rng rng;
    bool is_bound;
    enum tandem_dtype type;
    struct tnd_net *net;
    int roundings;   /* K + 2 t + 3 */
    bool is_regular; /* all constants are uniform or by channel */
};

static int chain_number(struct chain *chain, const struct tnd_dims *shape)
{
    struct tnd_array *array =
        tnd_array_new(chain->is_bound ? TANDEM_DTYPE_F64 : chain->type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        const double value = (double)(float)(tnd_test_rng_int(&chain->rng, 0, 1) ? 1 : -1) *
                             (double)(0.125f + 2 * tnd_test_rng_float(&chain->rng) *
                                                   tnd_test_rng_float(&chain->rng));
        const double stored = chain->is_bound ? fabs(value) : value;
        if (array->type == TANDEM_DTYPE_F32) {
            ((float *)array->data)[i] = (float)stored;
        } else {
            ((double *)array->data)[i] = (double)(float)stored;
        }
    }
    return tnd_net_constant(chain->net, array);
}

static int chain_base(struct chain *chain)
{
    static const struct tnd_dims image = {3, {2, 4, 5}};
    static const struct tnd_dims sides[] = {{2, {5, 6}}, {2, {3, 4}}};
    struct tnd_net *net = chain->net;
    const int kind = (int)tnd_test_rng_int(&chain->rng, 0, 3);
    const int groups = (int)tnd_test_rng_int(&chain->rng, 1, 2);
    const struct tnd_dims filters = {3, {6, 4 / groups, 2}};
    const struct tnd_window window = {
        .n = 1, .extent = {2}, .stride = {1}, .dilation = {1}, .begin = {1}, .groups = groups};
    const int x =
        tnd_net_input(net, chain->is_bound ? TANDEM_DTYPE_F64 : chain->type, &image, "x", NULL);
    chain->roundings = kind == 0 ? 3 : 3 + 8;
    switch (kind) {
    case 0:
        return x;
    case 1:
        return tnd_net_matmul(net, x, chain_number(chain, &sides[0]));
    case 2:
        return tnd_net_matmul(net, chain_number(chain, &sides[1]), x);
    default:
        return tnd_net_conv(net, x, chain_number(chain, &filters), &window);
    }
}

static int chain_step(struct chain *chain, int x)
{
    static const enum tandem_binary kinds[] = {ADD, SUB, MUL, DIV};
    enum tandem_binary kind = kinds[tnd_test_rng_int(&chain->rng, 0, 3)];
    struct tnd_dims shape = tnd_net_value(chain->net, x)->shape;
    const int keeps = (int)tnd_test_rng_int(&chain->rng, -1, 5); /* -1: none; 3 to 5: all */
    for (int d = 0; d < shape.n && keeps < 3; d++) {
        shape.dims[d] = d == keeps ? shape.dims[d] : 1;
    }
    chain->is_regular &= keeps < 0;
    const int c = chain_number(chain, &shape);
    const bool is_left = kind != DIV && tnd_test_rng_int(&chain->rng, 0, 3) == 0;
    kind = chain->is_bound && kind == SUB ? ADD : kind;
    chain->roundings += 2;
    return is_left ? tnd_net_binary(chain->net, kind, c, x)
                   : tnd_net_binary(chain->net, kind, x, c);
}

/* Builds the chain of a seed and runs it after passes. */
static struct tnd_array *run_chain(uint64_t seed, bool is_bound, unsigned passes, struct chain *out,
                                   int *nodes)
{
    struct tandem_error error = {.text = ""};
    struct tnd_array *result = NULL;
    struct chain chain = {.rng = tnd_test_rng_new(seed), .is_bound = is_bound, .is_regular = true};
    chain.net = tnd_net_new();
    chain.type = tnd_test_rng_int(&chain.rng, 0, 1) ? TANDEM_DTYPE_F32 : TANDEM_DTYPE_F64;
    int x = chain_base(&chain);
    for (int i = (int)tnd_test_rng_int(&chain.rng, 1, 6); i > 0; i--) {
        x = chain_step(&chain, x);
    }
    (void)tnd_net_output(chain.net, x);
    check_status(tnd_net_optimize(chain.net, passes, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(chain.net, &error), TANDEM_OK, NULL, &error);
    const struct tnd_net_value *value = tnd_net_value(chain.net, chain.net->inputs[0]);
    struct tnd_array *in = tnd_array_new(value->type, &value->shape);
    struct tnd_test_rng rng = tnd_test_rng_new(seed + 1);
    for (int64_t i = 0; i < in->n; i++) {
        const float number = 2 * tnd_test_rng_float(&rng) - 1;
        if (in->type == TANDEM_DTYPE_F32) {
            ((float *)in->data)[i] = number;
        } else {
            ((double *)in->data)[i] = (double)(is_bound ? fabsf(number) : number);
        }
    }
    check_status(tnd_net_run(chain.net, &in, &result, &error), TANDEM_OK, NULL, &error);
    *nodes = chain.net->n_nodes;
    *out = chain;
    tnd_array_free(in);
    tnd_net_free(chain.net);
    return result;
}

static void random_chains_stay_within_the_bound(void)
{
    const int n = 10000;
    for (int i = 0; i < n; i++) {
        const uint64_t seed = tnd_test_seed() * 7000003 + 2 * (uint64_t)i;
        struct chain chain;
        int nodes;
        int left;
        struct tnd_array *bound = run_chain(seed, true, 0, &chain, &nodes);
        struct tnd_array *want = run_chain(seed, false, 0, &chain, &nodes);
        struct tnd_array *got = run_chain(seed, false, AFFINE, &chain, &left);
        const double u = chain.type == TANDEM_DTYPE_F32 ? 0x1p-24 : 0x1p-53;
        const double factor = 2 * chain.roundings * u / (1 - chain.roundings * u);
        bool is_good = bound != NULL && want != NULL && got != NULL && left <= nodes &&
                       (!chain.is_regular || left <= 2);
        for (int64_t k = 0; is_good && k < want->n; k++) {
            is_good = fabs(tnd_array_number(got, k) - tnd_array_number(want, k)) <=
                      factor * tnd_array_number(bound, k) * (1 + 1e-12);
        }
        if (!is_good) {
            printf("\n    chain of seed %llu: %d nodes, %d left\n", (unsigned long long)seed, nodes,
                   left);
        }
        CU_ASSERT_TRUE(is_good);
        tnd_array_free(bound);
        tnd_array_free(want);
        tnd_array_free(got);
    }
}

static CU_TestInfo tests_affine[] = {
    {"a_batch_norm_becomes_weights_and_one_shift", a_batch_norm_becomes_weights_and_one_shift},
    {"scales_of_products_go_into_the_constant_side", scales_of_products_go_into_the_constant_side},
    {"constants_of_a_chain_combine", constants_of_a_chain_combine},
    {"what_others_read_is_not_changed", what_others_read_is_not_changed},
    {"numbers_that_would_get_lost_stay", numbers_that_would_get_lost_stay},
    {"integers_and_halves_are_left_alone", integers_and_halves_are_left_alone},
    {"random_chains_stay_within_the_bound", random_chains_stay_within_the_bound},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_affine[] = {
    {"affine", NULL, NULL, NULL, NULL, tests_affine},
    CU_SUITE_INFO_NULL,
};
