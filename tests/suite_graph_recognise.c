/* SPDX-License-Identifier: MIT
 * Pass "recognise": where it fires, where it must not, and what its operations compute. */
#include <math.h>
#include <string.h>

#include "graph/lower.h"
#include "graph/pass.h"
#include "tandem/runtime.h"
#include "tests/support.h"

/* ---- nets ---- */

static int number(struct tnd_net *net, enum tandem_binary kind, int x, double by)
{
    return tnd_net_binary(net, kind, x, tnd_net_scalar(net, tnd_net_value(net, x)->type, by));
}

static int input(struct tnd_net *net, enum tandem_dtype type, int n, const int64_t *dims)
{
    struct tnd_dims shape = {.n = n};
    memcpy(shape.dims, dims, (size_t)n * sizeof(dims[0]));
    return tnd_net_input(net, type, &shape, "x", NULL);
}

static int count(const struct tnd_net *net, enum tnd_net_op op)
{
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        n += net->nodes[i].op == op;
    }
    return n;
}

static void optimise(struct tnd_net *net, int output)
{
    struct tandem_error error = {.text = ""};
    (void)tnd_net_output(net, output);
    check_status(tnd_net_optimize(net, TND_PASSES_ALL, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
}

/* The one node of a kind. */
static const struct tnd_net_node *only(const struct tnd_net *net, enum tnd_net_op op)
{
    int i = 0;
    CU_ASSERT_EQUAL_FATAL(count(net, op), 1);
    while (net->nodes[i].op != op) {
        i++;
    }
    return &net->nodes[i];
}

/* After all passes `net` has so many operations of this kind. Frees it. */
static void expect(struct tnd_net *net, int output, enum tnd_net_op op, int n)
{
    optimise(net, output);
    check_int(count(net, op), n);
    tnd_net_free(net);
}

#define ROWS                                                                                       \
    (const int64_t[])                                                                              \
    {                                                                                              \
        2, 3, 8                                                                                    \
    }

static void softmax_along_the_last_axis_becomes_one(void)
{
    struct tnd_net *net = tnd_net_new();
    expect(net, tnd_net_softmax(net, input(net, TANDEM_DTYPE_F32, 3, ROWS), 2), TND_NET_SOFTMAX, 1);
    net = tnd_net_new();
    expect(net, tnd_net_softmax(net, input(net, TANDEM_DTYPE_F64, 3, ROWS), 2), TND_NET_SOFTMAX, 1);
    net = tnd_net_new(); /* of other rows, as a whole */
    const struct tnd_dims flat = {2, {6, 8}};
    const int x = tnd_net_reshape(net, input(net, TANDEM_DTYPE_F32, 3, ROWS), &flat);
    expect(net, tnd_net_softmax(net, x, 1), TND_NET_SOFTMAX, 1);
}

static void what_only_looks_like_softmax_stays(void)
{
    struct tnd_net *net = tnd_net_new(); /* another axis */
    expect(net, tnd_net_softmax(net, input(net, TANDEM_DTYPE_F32, 3, ROWS), 1), TND_NET_SOFTMAX, 0);
    net = tnd_net_new(); /* without the largest value it overflows where softmax does not */
    int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    int e = tnd_net_unary(net, TANDEM_UNARY_EXP, x);
    expect(net,
           tnd_net_binary(net, TANDEM_BINARY_DIV, e, tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, 4)),
           TND_NET_SOFTMAX, 0);
    net = tnd_net_new(); /* the largest value of another row */
    x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int top = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 6);
    e = tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_binary(net, TANDEM_BINARY_SUB, x, top));
    expect(net,
           tnd_net_binary(net, TANDEM_BINARY_DIV, e, tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, 4)),
           TND_NET_SOFTMAX, 0);
    net = tnd_net_new(); /* the smallest value */
    x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int low = tnd_net_reduce(net, TANDEM_REDUCE_MIN, x, 4);
    e = tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_binary(net, TANDEM_BINARY_SUB, x, low));
    expect(net,
           tnd_net_binary(net, TANDEM_BINARY_DIV, e, tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, 4)),
           TND_NET_SOFTMAX, 0);
}

/* ---- norms ---- */

/* The ways in which people write x / sqrt(mean(x * x) + e). */
enum { DIVIDE, RECIPROCAL, ONE_OVER, POWER, TIMES_INVERSE, N_SPELLINGS };

static int spell_norm(struct tnd_net *net, int y, unsigned axes, double k, int spelling)
{
    const int squares = spelling == POWER ? number(net, TANDEM_BINARY_POW, y, 2)
                                          : tnd_net_binary(net, TANDEM_BINARY_MUL, y, y);
    const int sum = tnd_net_reduce(net, TANDEM_REDUCE_SUM, squares, axes);
    const int mean = spelling == TIMES_INVERSE ? number(net, TANDEM_BINARY_MUL, sum, 1 / k)
                                               : number(net, TANDEM_BINARY_DIV, sum, k);
    const int root =
        tnd_net_unary(net, TANDEM_UNARY_SQRT, number(net, TANDEM_BINARY_ADD, mean, 1e-5));
    switch (spelling) {
    case RECIPROCAL:
        return tnd_net_binary(net, TANDEM_BINARY_MUL, y,
                              tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL, root));
    case ONE_OVER: {
        const int one = tnd_net_scalar(net, tnd_net_value(net, y)->type, 1);
        return tnd_net_binary(net, TANDEM_BINARY_MUL,
                              tnd_net_binary(net, TANDEM_BINARY_DIV, one, root), y);
    }
    default:
        return tnd_net_binary(net, TANDEM_BINARY_DIV, y, root);
    }
}

static void norms_become_one_however_they_are_written(void)
{
    for (int spelling = 0; spelling < N_SPELLINGS; spelling++) {
        for (int is_wide = 0; is_wide < 2; is_wide++) { /* two dimensions a row */
            struct tnd_net *net = tnd_net_new();
            const unsigned axes = is_wide ? 6 : 4;
            const double k = is_wide ? 24 : 8;
            const int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
            optimise(net, spell_norm(net, x, axes, k, spelling));
            check_int(net->n_nodes, 2); /* and the output, which has the input's shape */
            check_string(tnd_net_node_name(only(net, TND_NET_NORM)), "rms_norm");
            tnd_net_free(net);
            net = tnd_net_new();
            const int z = input(net, TANDEM_DTYPE_F32, 3, ROWS);
            const int mean =
                number(net, TANDEM_BINARY_DIV, tnd_net_reduce(net, TANDEM_REDUCE_SUM, z, axes), k);
            const int y = tnd_net_binary(net, TANDEM_BINARY_SUB, z, mean);
            optimise(net, spell_norm(net, y, axes, k, spelling));
            check_int(net->n_nodes, 2); /* and the output, which has the input's shape */
            check_string(tnd_net_node_name(only(net, TND_NET_NORM)), "layer_norm");
            CU_ASSERT_DOUBLE_EQUAL(only(net, TND_NET_NORM)->params.number, 1e-5, 1e-12);
            tnd_net_free(net);
        }
    }
}

static void what_only_looks_like_a_norm_stays(void)
{
    struct tnd_net *net = tnd_net_new(); /* the sum, no mean */
    int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    expect(net, spell_norm(net, x, 4, 1, DIVIDE), TND_NET_NORM, 0);
    net = tnd_net_new(); /* another axis */
    x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    expect(net, spell_norm(net, x, 1, 2, DIVIDE), TND_NET_NORM, 0);
    net = tnd_net_new(); /* squares of something else */
    x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int other = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int sum =
        tnd_net_reduce(net, TANDEM_REDUCE_SUM, tnd_net_binary(net, TANDEM_BINARY_MUL, x, other), 4);
    const int mean = number(net, TANDEM_BINARY_ADD, number(net, TANDEM_BINARY_DIV, sum, 8), 1e-5);
    expect(net,
           tnd_net_binary(net, TANDEM_BINARY_DIV, x, tnd_net_unary(net, TANDEM_UNARY_SQRT, mean)),
           TND_NET_NORM, 0);
    net = tnd_net_new(); /* a mean along other rows: the rms norm of a difference */
    x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int wide =
        number(net, TANDEM_BINARY_DIV, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 6), 24);
    optimise(net, spell_norm(net, tnd_net_binary(net, TANDEM_BINARY_SUB, x, wide), 4, 8, DIVIDE));
    check_int(only(net, TND_NET_NORM)->params.kind, TANDEM_NORM_RMS);
    tnd_net_free(net);
}

/* ---- attention ---- */

/* What attention is read from. */
struct heads {
    int64_t b, m, n, d, e;
    bool turns_keys, has_mask, divides, is_read; /* is_read: the weights are an output, too */
};

static int attend(struct tnd_net *net, const struct heads *h)
{
    static const int turned[] = {0, 2, 1};
    const int q = input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){h->b, h->m, h->d});
    const int k =
        h->turns_keys
            ? input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){h->b, h->d, h->n})
            : tnd_net_permute(net,
                              input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){h->b, h->n, h->d}),
                              turned);
    const int v = input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){h->b, h->n, h->e});
    int scores = tnd_net_matmul(net, q, k);
    scores = h->divides ? number(net, TANDEM_BINARY_DIV, scores, 4)
                        : number(net, TANDEM_BINARY_MUL, scores, 0.3);
    if (h->has_mask) {
        const int mask = input(net, TANDEM_DTYPE_F32, 2, (const int64_t[]){h->m, h->n});
        scores = tnd_net_binary(net, TANDEM_BINARY_ADD, mask, scores);
    }
    const int weights = tnd_net_softmax(net, scores, 2);
    if (h->is_read) {
        (void)tnd_net_output(net, weights);
    }
    return tnd_net_matmul(net, weights, v);
}

static void attention_becomes_one(void)
{
    static const struct {
        struct heads heads;
        int n; /* of TND_NET_ATTENTION */
    } cases[] = {
        {{2, 16, 20, 8, 6, false, false, false, false}, 1},
        {{2, 16, 20, 8, 6, true, true, true, false}, 1},
        {{1, 1, 20, 8, 6, false, true, false, false}, 1},
        {{1, 1, 20, 8, 6, true, false, false, false}, 0}, /* keys would be turned for one query */
        {{2, 16, 20, 8, 6, false, true, false, true}, 0}, /* the weights are read */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_net *net = tnd_net_new();
        expect(net, attend(net, &cases[i].heads), TND_NET_ATTENTION, cases[i].n);
    }
}

static void a_mask_of_each_matrix_keeps_the_products(void)
{
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){2, 16, 8});
    const int mask = input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){2, 16, 16});
    expect(net, tnd_net_attention(net, x, x, x, mask, 1), TND_NET_ATTENTION, 0);
}

/* ---- results ---- */

static bool is_close(double want, double got, double scale)
{
    return (isnan(want) && isnan(got)) || fabs(want - got) <= 4e-5 * scale ||
           (isinf(want) && want == got);
}

static void compare(const struct tnd_array *want, const struct tnd_array *got, uint64_t seed,
                    const char *what)
{
    double scale = 1e-6;
    CU_ASSERT_TRUE_FATAL(want != NULL && got != NULL && want->n == got->n);
    for (int64_t i = 0; i < want->n; i++) {
        const double x = tnd_array_number(want, i);
        scale = isfinite(x) ? fmax(scale, fabs(x)) : scale;
    }
    for (int64_t i = 0; i < want->n; i++) {
        const double x = tnd_array_number(want, i), y = tnd_array_number(got, i);
        if (!is_close(x, y, scale)) {
            printf("\n    seed %llu, %s: value %d is %.9g, expected %.9g\n",
                   (unsigned long long)seed, what, (int)i, y, x);
            CU_FAIL("the results differ");
            return;
        }
    }
}

/* Softmax, a norm or attention of any extents. */
static struct tnd_net *any_net(uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    struct tnd_net *net = tnd_net_new();
    const int64_t b = tnd_test_rng_int(&rng, 1, 3);
    const int64_t m = tnd_test_rng_int(&rng, 1, 40);
    const int64_t k = tnd_test_rng_int(&rng, 1, 70);
    const int kind = (int)tnd_test_rng_int(&rng, 0, 3);
    int y;
    if (kind == 3) {
        const struct heads h = {b,
                                m,
                                k,
                                tnd_test_rng_int(&rng, 1, 40),
                                tnd_test_rng_int(&rng, 1, 40),
                                tnd_test_rng_int(&rng, 0, 1),
                                tnd_test_rng_int(&rng, 0, 1),
                                tnd_test_rng_int(&rng, 0, 1),
                                false};
        y = attend(net, &h);
    } else {
        const int x = input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){b, m, k});
        y = kind == 0
                ? tnd_net_softmax(net, x, 2)
                : tnd_net_norm(net, kind == 1 ? TANDEM_NORM_LAYER : TANDEM_NORM_RMS, x, 4, 1e-3);
    }
    (void)tnd_net_output(net, y);
    return net;
}

/* Values around 1; now and then NaN, infinity, large, subnormal, or rows of one value. Rows of
 * -infinity alone, where 0 / 0 gives NaN and we 0, have a test of their own; queries near infinity
 * would make such scores. */
static void fill(struct tnd_test_rng *rng, struct tnd_array *array, bool is_wild, bool is_query)
{
    static const float wild[] = {NAN, 1e30F, 1e-40F, -3e38F, INFINITY};
    float *values = array->data;
    tnd_test_fill(rng, values, array->n);
    for (int i = 0; is_wild && i < 3; i++) {
        values[tnd_test_rng_int(rng, 0, (int)array->n - 1)] =
            wild[tnd_test_rng_int(rng, 0, is_query ? 2 : 4)];
    }
    if (tnd_test_rng_int(rng, 0, 3) == 0) {
        for (int64_t i = 0; i < array->n; i++) {
            values[i] = 0.375F;
        }
    }
}

static void run_lowered(const struct tnd_net *net, tandem_runtime *runtime,
                        struct tnd_array *const *in, struct tnd_array **out)
{
    struct tnd_lowered *lowered = NULL;
    struct tandem_error error = {.text = ""};
    check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < net->n_inputs; i++) {
        check_ok(tnd_lowered_set_input(lowered, i, in[i], &error));
    }
    check_status(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error),
                 TANDEM_OK, NULL, &error);
    check_ok(tnd_lowered_get_output(lowered, 0, out, &error));
    tnd_lowered_free(lowered);
}

static void check_seed(uint64_t seed, bool is_wild, tandem_runtime *runtime)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed + 1);
    struct tandem_error error = {.text = ""};
    struct tnd_array *in[4] = {NULL}, *want = NULL, *got = NULL, *fast = NULL;
    struct tnd_net *before = any_net(seed), *after = any_net(seed);
    check_ok(tnd_net_optimize(after, TND_PASSES_ALL, NULL, &error));
    for (int i = 0; i < before->n_inputs; i++) {
        in[i] = tnd_array_new(TANDEM_DTYPE_F32, &tnd_net_value(before, before->inputs[i])->shape);
        fill(&rng, in[i], is_wild && i == 0, before->n_inputs > 1);
    }
    check_status(tnd_net_run(before, in, &want, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_run(after, in, &got, &error), TANDEM_OK, NULL, &error);
    run_lowered(after, runtime, in, &fast);
    compare(want, got, seed, "the reference");
    compare(want, fast, seed, "lowered");
    for (int i = 0; i < 4; i++) {
        tnd_array_free(in[i]);
    }
    tnd_array_free(want);
    tnd_array_free(got);
    tnd_array_free(fast);
    tnd_net_free(before);
    tnd_net_free(after);
}

static void check_many(bool is_wild)
{
    const int n = tnd_effort() == 1 ? 100 : 1000;
    for (int threads = 1; threads <= 3; threads++) {
        struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
        tandem_runtime *runtime = NULL;
        options.n_threads = threads;
        options.table_path = "";
        options.backends = "cpu";
        check_ok(tandem_runtime_open(&options, &runtime, NULL));
        for (int i = 0; i < n; i++) {
            check_seed(tnd_test_seed() * 1000033 + (uint64_t)(threads * n + i) * 2, is_wild,
                       runtime);
        }
        tandem_runtime_close(runtime);
    }
}

/* ---- silu ---- */

/* x by 1 + exp(-y), or times its inverse: the x that stands in front, and behind. */
static int spell_silu(struct tnd_net *net, int x, int y, int spelling)
{
    const int e = tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_unary(net, TANDEM_UNARY_NEG, y));
    const int sum = number(net, TANDEM_BINARY_ADD, e, 1);
    const int one = tnd_net_scalar(net, tnd_net_value(net, x)->type, 1);
    const int inverse = spelling == 1 ? tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL, sum)
                                      : tnd_net_binary(net, TANDEM_BINARY_DIV, one, sum);
    return spelling == 0   ? tnd_net_binary(net, TANDEM_BINARY_DIV, x, sum)
           : spelling == 1 ? tnd_net_binary(net, TANDEM_BINARY_MUL, x, inverse)
                           : tnd_net_binary(net, TANDEM_BINARY_MUL, inverse, x);
}

static bool is_silu(const struct tnd_net *net)
{
    return net->n_nodes == 1 && net->nodes[0].op == TND_NET_UNARY &&
           net->nodes[0].params.kind == TANDEM_UNARY_SILU;
}

static void silu_becomes_one_however_it_is_written(void)
{
    for (int spelling = 0; spelling < 3; spelling++) {
        struct tnd_net *net = tnd_net_new();
        const int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
        optimise(net, spell_silu(net, x, x, spelling));
        CU_ASSERT_TRUE(is_silu(net));
        tnd_net_free(net);
        net = tnd_net_new(); /* another number behind */
        const int a = input(net, TANDEM_DTYPE_F32, 3, ROWS);
        const int b = number(net, TANDEM_BINARY_ADD, a, 0.5);
        optimise(net, spell_silu(net, a, b, spelling));
        check_int(net->n_nodes > 4, true);
        tnd_net_free(net);
    }
    struct tnd_net *net = tnd_net_new(); /* the inverse is read by others, too */
    const int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
    const int y = spell_silu(net, x, x, 1);
    (void)tnd_net_output(net, net->nodes[net->n_nodes - 2].output);
    optimise(net, y);
    check_int(net->n_nodes > 4, true);
    tnd_net_free(net);
}

/* ---- hard_swish ---- */

/* By spelling: HardSigmoid and a product; a sum, bounds of 6, a quotient of the gate, or of the
 * product; products by the inverse. */
static int spell_hard_swish(struct tnd_net *net, int x, int y, int spelling, double shift)
{
    const bool is_sigmoid = spelling == 0;
    const bool is_inverse = spelling >= 3;
    int gate = is_sigmoid ? number(net, TANDEM_BINARY_MUL, y, 1.0 / 6) : y;
    gate = number(net, TANDEM_BINARY_ADD, gate, is_sigmoid ? 0.5 : 3 + shift);
    gate = number(net, TANDEM_BINARY_MAX, gate, 0);
    gate = number(net, TANDEM_BINARY_MIN, gate, is_sigmoid ? 1 : 6);
    if (!is_sigmoid && spelling % 2 == 1) {
        gate = number(net, is_inverse ? TANDEM_BINARY_MUL : TANDEM_BINARY_DIV, gate,
                      is_inverse ? 1.0 / 6 : 6);
    }
    const bool is_behind = spelling > 0 && spelling % 2 == 0;
    const int out =
        tnd_net_binary(net, TANDEM_BINARY_MUL, is_behind ? gate : x, is_behind ? x : gate);
    return !is_behind ? out
                      : number(net, is_inverse ? TANDEM_BINARY_MUL : TANDEM_BINARY_DIV, out,
                               is_inverse ? 1.0 / 6 : 6);
}

static void hard_swish_becomes_one_however_it_is_written(void)
{
    for (int spelling = 0; spelling < 5; spelling++) {
        for (int is_other = 0; is_other < 3; is_other++) {
            struct tnd_net *net = tnd_net_new();
            const int x = input(net, TANDEM_DTYPE_F32, 3, ROWS);
            const int y = is_other == 1 ? number(net, TANDEM_BINARY_ADD, x, 0.5) : x;
            const double shift = is_other == 2 ? 0.001 : 0;
            const int out = spell_hard_swish(net, x, y, spelling, shift);
            const bool is_one = is_other == 0 || (is_other == 2 && spelling == 0);
            optimise(net, out);
            CU_ASSERT_EQUAL(net->n_nodes == 1, is_one);
            CU_ASSERT_TRUE(!is_one || net->nodes[0].params.kind == TANDEM_UNARY_HARD_SWISH);
            tnd_net_free(net);
        }
    }
}

static void results_stay(void)
{
    check_many(false);
}

static void what_is_no_number_stays_none(void)
{
    check_many(true);
}

static void a_row_of_minus_infinity_alone_gives_zeros(void)
{
    struct tnd_net *net = tnd_net_new();
    struct tandem_error error = {.text = ""};
    struct tnd_array *in = tnd_array_new(TANDEM_DTYPE_F32, &(struct tnd_dims){3, {1, 2, 3}});
    struct tnd_array *out = NULL;
    optimise(net,
             tnd_net_softmax(net, input(net, TANDEM_DTYPE_F32, 3, (const int64_t[]){1, 2, 3}), 2));
    for (int i = 0; i < 6; i++) {
        ((float *)in->data)[i] = i < 3 ? -INFINITY : 0;
    }
    check_ok(tnd_net_run(net, &in, &out, &error));
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_DOUBLE_EQUAL(((float *)out->data)[i], i < 3 ? 0 : 1.0 / 3, 1e-6);
    }
    tnd_array_free(in);
    tnd_array_free(out);
    tnd_net_free(net);
}

static CU_TestInfo tests[] = {
    {"softmax_along_the_last_axis_becomes_one", softmax_along_the_last_axis_becomes_one},
    {"what_only_looks_like_softmax_stays", what_only_looks_like_softmax_stays},
    {"norms_become_one_however_they_are_written", norms_become_one_however_they_are_written},
    {"what_only_looks_like_a_norm_stays", what_only_looks_like_a_norm_stays},
    {"attention_becomes_one", attention_becomes_one},
    {"a_mask_of_each_matrix_keeps_the_products", a_mask_of_each_matrix_keeps_the_products},
    {"silu_becomes_one_however_it_is_written", silu_becomes_one_however_it_is_written},
    {"hard_swish_becomes_one_however_it_is_written", hard_swish_becomes_one_however_it_is_written},
    {"results_stay", results_stay},
    {"what_is_no_number_stays_none", what_is_no_number_stays_none},
    {"a_row_of_minus_infinity_alone_gives_zeros", a_row_of_minus_infinity_alone_gives_zeros},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_recognise[] = {
    {"recognise", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
