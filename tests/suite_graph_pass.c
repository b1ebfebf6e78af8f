/* SPDX-License-Identifier: MIT
 * Passes over nets: where each fires, where it must not, and random nets before and after. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/pass_internal.h"
#include "tests/fuzz/random_net.h"
#include "tests/support.h"

static const struct tnd_dims matrix = {2, {2, 3}};

static int input(struct tnd_net *net, enum tandem_dtype type)
{
    return tnd_net_input(net, type, &matrix, "x", NULL);
}

static int with(struct tnd_net *net, enum tandem_binary kind, int x, double number)
{
    return tnd_net_binary(net, kind, x, tnd_net_scalar(net, tnd_net_value(net, x)->type, number));
}

/* Runs passes over a net with one more output; it must have `nodes` nodes then. Frees it. */
static void expect(struct tnd_net *net, int value, unsigned passes, int nodes)
{
    struct tandem_error error = {.text = ""};
    (void)tnd_net_output(net, value);
    check_status(tnd_net_optimize(net, passes, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
    check_int(net->n_nodes, nodes);
    tnd_net_free(net);
}

#define EXPECT_AFTER(type, passes, nodes, expression)                                              \
    do {                                                                                           \
        struct tnd_net *net = tnd_net_new();                                                       \
        const int x = input(net, (type));                                                          \
        expect(net, (expression), (passes), (nodes));                                              \
    } while (0)

#define STRENGTH (TND_PASS_BIT(TND_PASS_STRENGTH) | TND_PASS_BIT(TND_PASS_DEAD))
#define CLAMP    (TND_PASS_BIT(TND_PASS_CLAMP) | TND_PASS_BIT(TND_PASS_DEAD))
#define EQUAL    (TND_PASS_BIT(TND_PASS_EQUAL) | TND_PASS_BIT(TND_PASS_DEAD))

static void what_depends_on_constants_alone_is_computed(void)
{
    const unsigned fold = TND_PASS_BIT(TND_PASS_FOLD);
    EXPECT_AFTER(
        TANDEM_DTYPE_F32, fold, 1,
        tnd_net_binary(net, TANDEM_BINARY_ADD, x,
                       with(net, TANDEM_BINARY_MUL, tnd_net_scalar(net, TANDEM_DTYPE_F32, 3), 4)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, fold, 1, tnd_net_unary(net, TANDEM_UNARY_EXP, x));
}

/* 3 * 2^22 values of 4 bytes from one value. */
static void a_large_result_of_small_operands_is_not_folded(void)
{
    static const struct tnd_dims large = {2, {3, 1 << 22}};
    struct tnd_net *net = tnd_net_new();
    const int one = tnd_net_scalar(net, TANDEM_DTYPE_F32, 1);
    expect(net, tnd_net_copy(net, tnd_net_expand(net, one, &large)), TND_PASS_BIT(TND_PASS_FOLD),
           1);
}

static void an_operation_that_fails_is_not_folded(void)
{
    static const int64_t bad[] = {7};
    struct tnd_net *net = tnd_net_new();
    const int list = tnd_net_integers(net, bad, 1);
    expect(net, tnd_net_gather(net, list, list, 0), TND_PASSES_ALL, 1);
}

/* The net is specialised with an input only where its builder asked for that. */
static void values_that_an_input_may_have_are_not_folded(void)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &matrix);
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", array);
    expect(net, tnd_net_unary(net, TANDEM_UNARY_EXP, x), TND_PASSES_ALL, 1);
    net = tnd_net_new();
    const int y = tnd_net_input(net, TANDEM_DTYPE_F32, &matrix, "x", array);
    const int e = tnd_net_unary(net, TANDEM_UNARY_EXP, y);
    CU_ASSERT_PTR_NOT_NULL(tnd_net_known(net, e));
    expect(net, e, TND_PASSES_ALL, 0);
    tnd_array_free(array);
}

static void what_no_output_needs_goes(void)
{
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32);
    (void)tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_unary(net, TANDEM_UNARY_NEG, x));
    expect(net, tnd_net_unary(net, TANDEM_UNARY_NEG, x), TND_PASS_BIT(TND_PASS_DEAD), 1);
}

static void equal_operations_become_one(void)
{
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 2,
                 tnd_net_binary(net, TANDEM_BINARY_ADD, tnd_net_unary(net, TANDEM_UNARY_EXP, x),
                                tnd_net_unary(net, TANDEM_UNARY_EXP, x)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 2, /* constants with the same bytes too */
                 tnd_net_binary(net, TANDEM_BINARY_MUL, with(net, TANDEM_BINARY_ADD, x, 3),
                                with(net, TANDEM_BINARY_ADD, x, 3)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 3, /* other parameters: not equal */
                 tnd_net_binary(net, TANDEM_BINARY_MUL, tnd_net_scan(net, x, 0, true, false),
                                tnd_net_scan(net, x, 0, false, false)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 3, /* zeros of both signs are not the same bytes */
                 tnd_net_binary(net, TANDEM_BINARY_MUL, with(net, TANDEM_BINARY_ADD, x, 0.0),
                                with(net, TANDEM_BINARY_ADD, x, -0.0)));
}

static void copies_of_views_go_where_readers_can_read_them(void)
{
    static const int swap[] = {1, 0};
    static const struct tnd_dims flat = {1, {6}};
    EXPECT_AFTER(
        TANDEM_DTYPE_F32, EQUAL, 1,
        tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_copy(net, tnd_net_permute(net, x, swap))));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 1, /* a view of the copy composes with the copied one */
                 tnd_net_unary(net, TANDEM_UNARY_NEG,
                               tnd_net_slice(net, tnd_net_copy(net, tnd_net_permute(net, x, swap)),
                                             0, 2, 2, -1)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 2, /* strides cannot say it */
                 tnd_net_unary(net, TANDEM_UNARY_NEG,
                               tnd_net_reshape(net, tnd_net_permute(net, x, swap), &flat)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, EQUAL, 1, /* outputs are no views */
                 tnd_net_copy(net, tnd_net_permute(net, x, swap)));
}

static void neutral_numbers_go_where_no_bit_changes(void)
{
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0, with(net, TANDEM_BINARY_MUL, x, 1));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0, with(net, TANDEM_BINARY_DIV, x, 1));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0, with(net, TANDEM_BINARY_SUB, x, 0));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0, with(net, TANDEM_BINARY_ADD, x, -0.0));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 1, with(net, TANDEM_BINARY_ADD, x, 0));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 1, with(net, TANDEM_BINARY_MUL, x, 0));
    EXPECT_AFTER(TANDEM_DTYPE_I32, STRENGTH, 0, with(net, TANDEM_BINARY_ADD, x, 0));
    EXPECT_AFTER(TANDEM_DTYPE_I32, STRENGTH, 1,
                 with(net, TANDEM_BINARY_MUL, x, 0)); /* a copy of 0 */
}

/* Counts the operations of a kind that are left. */
static int count(const struct tnd_net *net, enum tnd_net_op op, int kind)
{
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        n += net->nodes[i].op == op && net->nodes[i].params.kind == kind;
    }
    return n;
}

static void expect_kind(struct tnd_net *net, int value, unsigned passes, enum tnd_net_op op,
                        int kind, int want)
{
    struct tandem_error error = {.text = ""};
    (void)tnd_net_output(net, value);
    check_status(tnd_net_optimize(net, passes, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
    check_int(count(net, op, kind), want);
    tnd_net_free(net);
}

#define EXPECT_KIND(type, passes, op, kind, want, expression)                                      \
    do {                                                                                           \
        struct tnd_net *net = tnd_net_new();                                                       \
        const int x = input(net, (type));                                                          \
        expect_kind(net, (expression), (passes), (op), (kind), (want));                            \
    } while (0)

static void a_division_becomes_a_product_where_the_inverse_is_exact(void)
{
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_BINARY, TANDEM_BINARY_MUL, 1,
                with(net, TANDEM_BINARY_DIV, x, 4));
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_BINARY, TANDEM_BINARY_DIV, 1,
                with(net, TANDEM_BINARY_DIV, x, 3));
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_BINARY, TANDEM_BINARY_DIV,
                1, /* 1/c is subnormal */
                with(net, TANDEM_BINARY_DIV, x, 0x1p127));
    EXPECT_KIND(TANDEM_DTYPE_I32, STRENGTH, TND_NET_BINARY, TANDEM_BINARY_DIV, 1,
                with(net, TANDEM_BINARY_DIV, x, 4));
}

static void powers_become_products_and_roots(void)
{
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_BINARY, TANDEM_BINARY_MUL, 1,
                with(net, TANDEM_BINARY_POW, x, 2));
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_UNARY, TANDEM_UNARY_RECIPROCAL, 1,
                with(net, TANDEM_BINARY_POW, x, -1));
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_UNARY, TANDEM_UNARY_SQRT, 0, /* x may be -0 */
                with(net, TANDEM_BINARY_POW, x, 0.5));
    EXPECT_KIND(TANDEM_DTYPE_F32, STRENGTH, TND_NET_UNARY, TANDEM_UNARY_SQRT, 1,
                with(net, TANDEM_BINARY_POW, tnd_net_unary(net, TANDEM_UNARY_ABS, x), 0.5));
}

static void a_cube_is_products(void)
{
    const unsigned recognise = TND_PASS_BIT(TND_PASS_RECOGNISE) | TND_PASS_BIT(TND_PASS_DEAD);
    EXPECT_KIND(TANDEM_DTYPE_F32, recognise, TND_NET_BINARY, TANDEM_BINARY_MUL, 2,
                with(net, TANDEM_BINARY_POW, x, 3));
    EXPECT_KIND(TANDEM_DTYPE_F32, recognise, TND_NET_BINARY, TANDEM_BINARY_POW, 1,
                with(net, TANDEM_BINARY_POW, x, 4));
}

static void what_undoes_itself_goes(void)
{
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0,
                 tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_unary(net, TANDEM_UNARY_NEG, x)));
    EXPECT_AFTER(TANDEM_DTYPE_I32, STRENGTH, 0,
                 tnd_net_unary(net, TANDEM_UNARY_NOT, tnd_net_unary(net, TANDEM_UNARY_NOT, x)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 2, /* of floats: whether they are 0 */
                 tnd_net_unary(net, TANDEM_UNARY_NOT, tnd_net_unary(net, TANDEM_UNARY_NOT, x)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 0,
                 tnd_net_cast(net, tnd_net_cast(net, x, TANDEM_DTYPE_F64), TANDEM_DTYPE_F32));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 2,
                 tnd_net_cast(net, tnd_net_cast(net, x, TANDEM_DTYPE_F16), TANDEM_DTYPE_F32));
    EXPECT_AFTER(TANDEM_DTYPE_I8, STRENGTH, 2, /* -1 wraps as an integer, saturates as a float */
                 tnd_net_cast(net, tnd_net_cast(net, x, TANDEM_DTYPE_F32), TANDEM_DTYPE_U8));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 2,
                 tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL,
                               tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL, x)));
}

static void gathering_in_equal_steps_is_a_view(void)
{
    static const int64_t even[] = {-1, 1};
    static const int64_t odd[] = {0, 0, 1};
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 1,
                 tnd_net_unary(net, TANDEM_UNARY_NEG,
                               tnd_net_gather(net, x, tnd_net_integers(net, even, 2), 1)));
    EXPECT_AFTER(TANDEM_DTYPE_F32, STRENGTH, 2,
                 tnd_net_unary(net, TANDEM_UNARY_NEG,
                               tnd_net_gather(net, x, tnd_net_integers(net, odd, 3), 1)));
}

static void chains_of_bounds_merge(void)
{
    EXPECT_AFTER(TANDEM_DTYPE_F32, CLAMP, 1,
                 with(net, TANDEM_BINARY_MAX, with(net, TANDEM_BINARY_MAX, x, 0), 0));
    EXPECT_AFTER(TANDEM_DTYPE_F32, CLAMP, 2,
                 with(net, TANDEM_BINARY_MIN,
                      with(net, TANDEM_BINARY_MAX,
                           with(net, TANDEM_BINARY_MIN, with(net, TANDEM_BINARY_MAX, x, 0), 6), -1),
                      5));
    EXPECT_AFTER(TANDEM_DTYPE_F32, CLAMP,
                 2, /* the bounds cross: NaN is not a number between them */
                 with(net, TANDEM_BINARY_MIN, with(net, TANDEM_BINARY_MAX, x, 3), 2));
    EXPECT_AFTER(TANDEM_DTYPE_F32, CLAMP, 2, /* NaN bounds nothing */
                 with(net, TANDEM_BINARY_MAX, with(net, TANDEM_BINARY_MAX, x, (double)NAN), 0));
    EXPECT_AFTER(TANDEM_DTYPE_F32, CLAMP, 1,
                 with(net, TANDEM_BINARY_MAX, tnd_net_unary(net, TANDEM_UNARY_EXP, x), 0));
}

static void note(void *context, const struct tnd_net *net, const struct tnd_pass *pass, int round,
                 int fired)
{
    int *counts = context;
    CU_ASSERT_TRUE(net->n_nodes >= 0 && pass->name[0] != '\0' && round >= 0);
    counts[fired < 0 ? 0 : 1]++;
}

static void the_dump_sees_each_pass_before_and_after_and_switched_off_ones_never(void)
{
    int counts[2] = {0, 0};
    const struct tnd_pass_dump dump = {.dump = note, .context = counts};
    struct tandem_error error = {.text = ""};
    struct tnd_net *net = tnd_net_new();
    (void)tnd_net_output(net, with(net, TANDEM_BINARY_MUL, input(net, TANDEM_DTYPE_F32), 1));
    check_ok(tnd_net_optimize(net, CLAMP, &dump, &error));
    check_int(net->n_nodes, 1);
    check_int(counts[0], 2);
    check_int(counts[1], 2);
    tnd_net_free(net);
}

static void a_net_that_is_wrong_is_told(void)
{
    struct tandem_error error = {.text = ""};
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32);
    const int part = tnd_net_slice(net, x, 0, 1, 1, 1);
    (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_NEG, part));
    check_ok(tnd_net_check(net, &error));
    net->values[part].offset = 5;
    check_status(tnd_net_check(net, &error), TANDEM_E_ARGUMENT, "a view out of its value", &error);
    net->values[part].offset = 3;
    net->values[net->nodes[0].output].type = TANDEM_DTYPE_I8;
    net->values[net->nodes[0].output].shape.dims[0] = 2;
    check_status(tnd_net_check(net, &error), TANDEM_E_ARGUMENT, "do not fit", &error);
    tnd_net_free(net);
}

/* ---- random nets ---- */

#define MOST_PORTS 4

static bool is_near(double a, double b, double scale)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-7 * scale;
}

/* Bits must be the same, but for NaN; a smooth net may round otherwise. */
static bool is_same(const struct tnd_array *a, const struct tnd_array *b, bool is_smooth)
{
    const size_t bytes = tandem_dtype_bytes(a->type);
    double scale = 1;
    if (a->type != b->type || !tnd_dims_is_equal(&a->shape, &b->shape)) {
        return false;
    }
    for (int64_t i = 0; i < a->n; i++) {
        scale = fmax(scale, fabs(tnd_array_number(a, i)));
    }
    for (int64_t i = 0; i < a->n; i++) {
        const double x = tnd_array_number(a, i);
        const double y = tnd_array_number(b, i);
        if (is_smooth ? !is_near(x, y, scale)
                      : !(isnan(x) && isnan(y)) &&
                            memcmp((char *)a->data + (size_t)i * bytes,
                                   (char *)b->data + (size_t)i * bytes, bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* Builds the net of some bytes, optimises it and runs it. */
static struct tnd_net *run_bytes(const uint8_t *bytes, size_t n, bool is_smooth, unsigned passes,
                                 struct tnd_array **out)
{
    struct tandem_error error = {.text = ""};
    struct tnd_array *in[MOST_PORTS] = {NULL};
    struct tnd_net *net = random_net_build(bytes, n, is_smooth, false);
    struct random_net from = {.bytes = bytes, .n = n, .is_smooth = is_smooth};
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    check_status(tnd_net_optimize(net, passes, NULL, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *value = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(value->type, &value->shape);
        random_net_fill(&from, in[i]);
    }
    memset(out, 0, MOST_PORTS * sizeof(out[0]));
    check_status(tnd_net_run(net, in, out, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(in[i]);
    }
    return net;
}

static void compare_passes(const uint8_t *bytes, size_t n, bool is_smooth, unsigned passes,
                           uint64_t seed)
{
    struct tnd_array *want[MOST_PORTS];
    struct tnd_array *got[MOST_PORTS];
    struct tnd_net *before = run_bytes(bytes, n, is_smooth, 0, want);
    struct tnd_net *after = run_bytes(bytes, n, is_smooth, passes, got);
    for (int i = 0; i < before->n_outputs; i++) {
        const bool is_good =
            want[i] != NULL && got[i] != NULL && is_same(want[i], got[i], is_smooth);
        if (!is_good) {
            printf("\n    net of seed %llu, passes %x: output %d differs\n",
                   (unsigned long long)seed, passes, i);
        }
        CU_ASSERT_TRUE(is_good);
    }
    for (int i = 0; i < MOST_PORTS; i++) {
        tnd_array_free(want[i]);
        tnd_array_free(got[i]);
    }
    tnd_net_free(before);
    tnd_net_free(after);
}

/* Each pass alone and all together, on nets of random bytes. */
static void check_random_nets(bool is_smooth, unsigned passes)
{
    const int n = tnd_effort() == 1 ? 500 : 10000;
    for (int i = 0; i < n; i++) {
        uint8_t bytes[192];
        const uint64_t seed = tnd_test_seed() * 1000003 + (uint64_t)i;
        struct tnd_test_rng rng = tnd_test_rng_new(seed);
        for (size_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = (uint8_t)tnd_test_rng_int(&rng, 0, 255);
        }
        for (int pass = 0; pass < TND_N_PASSES; pass++) {
            if ((passes & TND_PASS_BIT(pass)) != 0) {
                compare_passes(bytes, sizeof(bytes), is_smooth, TND_PASS_BIT(pass), seed);
            }
        }
        compare_passes(bytes, sizeof(bytes), is_smooth, passes, seed);
    }
}

/* ---- narrow floats ---- */

#define WIDEN (TND_PASS_BIT(TND_PASS_WIDEN) | TND_PASS_BIT(TND_PASS_DEAD))

static void narrow_floats_are_computed_wide_and_rounded_at_the_end(void)
{
    const enum tandem_dtype f16 = TANDEM_DTYPE_F16;
    const int axes[] = {1, 0};
    /* cast, exp, neg, cast */
    EXPECT_AFTER(f16, WIDEN, 4,
                 tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_unary(net, TANDEM_UNARY_EXP, x)));
    EXPECT_KIND(
        f16, TND_PASSES_ALL, TND_NET_CAST, TND_CAST_MAY_GO, 1,
        tnd_net_unary(net, TANDEM_UNARY_NEG,
                      tnd_net_copy(net, tnd_net_permute(
                                            net, tnd_net_unary(net, TANDEM_UNARY_EXP, x), axes))));
    /* what a program asks to round is rounded */
    EXPECT_KIND(TANDEM_DTYPE_F32, TND_PASSES_ALL, TND_NET_CAST, TND_CAST_ROUNDS, 2,
                tnd_net_cast(net, tnd_net_cast(net, x, f16), TANDEM_DTYPE_F32));
    /* moves alone stay narrow */
    EXPECT_AFTER(f16, WIDEN, 1, tnd_net_copy(net, tnd_net_permute(net, x, axes)));
    EXPECT_KIND(f16, WIDEN, TND_NET_BINARY, TANDEM_BINARY_LESS, 1,
                with(net, TANDEM_BINARY_LESS, x, 3));
}

/* One operation of narrow floats before and after the pass, all values of the type. */
static void one_operation_of_narrow_floats_keeps_its_bits(void)
{
    static const enum tandem_unary kinds[] = {TANDEM_UNARY_NEG, TANDEM_UNARY_EXP, TANDEM_UNARY_SQRT,
                                              TANDEM_UNARY_TANH, TANDEM_UNARY_ROUND};
    const struct tnd_dims all = {1, {65536}};
    for (int c = 0; c < 10; c++) {
        const enum tandem_dtype type = c < 5 ? TANDEM_DTYPE_F16 : TANDEM_DTYPE_BF16;
        struct tandem_error error = {.text = ""};
        struct tnd_array *x = tnd_array_new(type, &all);
        struct tnd_array *y[2] = {NULL, NULL};
        struct tnd_net *net = tnd_net_new();
        for (int i = 0; i < 65536; i++) {
            ((uint16_t *)x->data)[i] = (uint16_t)i;
        }
        (void)tnd_net_output(
            net, tnd_net_unary(net, kinds[c % 5], tnd_net_input(net, type, &all, "x", NULL)));
        check_ok(tnd_net_run(net, &x, &y[0], &error));
        check_ok(tnd_net_optimize(net, WIDEN, NULL, &error));
        check_ok(tnd_net_run(net, &x, &y[1], &error));
        check_int(net->n_nodes, 3);
        check_bits(y[1]->data, y[0]->data, 2 * 65536, "narrow floats");
        tnd_array_free(x);
        tnd_array_free(y[0]);
        tnd_array_free(y[1]);
        tnd_net_free(net);
    }
}

static void random_nets_keep_every_bit(void)
{
    check_random_nets(false, TND_PASSES_EXACT);
}

/* Of float64 and smooth functions alone, so that other roundings stay small. */
static void random_smooth_nets_keep_their_results(void)
{
    check_random_nets(true, TND_PASSES_ALL);
}

/* An allocation that fails anywhere leaves a net that is valid and says so. */
static void a_pass_without_a_change_leaves_the_net_in_place(void)
{
    struct tandem_error error = {0};
    struct tnd_net *net = tnd_net_new();
    const int y = with(net, TANDEM_BINARY_ADD, input(net, TANDEM_DTYPE_F32), 1.5);
    (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_EXP, y));
    tnd_rewrite_tidy(net);
    const struct tnd_net_value *values = net->values;
    for (int i = 0; i < TND_N_PASSES; i++) {
        int fired = -1;
        check_ok(tnd_rewrite_run(net, &tnd_passes[i], &fired, &error));
        check_int(fired, 0);
        CU_ASSERT_PTR_EQUAL(net->values, values);
    }
    check_ok(tnd_rewrite_pack(net, &error));
    check_ok(tnd_net_check(net, &error));
    check_int(net->n_nodes, 2);
    tnd_net_free(net);
}

/* The constant that is read first was made last. */
static void equal_constants_meet_in_any_order(void)
{
    struct tandem_error error = {0};
    struct tnd_net *net = tnd_net_new();
    const int x = input(net, TANDEM_DTYPE_F32);
    const int first = tnd_net_scalar(net, TANDEM_DTYPE_F32, 1.5);
    const int last = tnd_net_scalar(net, TANDEM_DTYPE_F32, 1.5);
    const int y = tnd_net_binary(net, TANDEM_BINARY_MUL, x, last);
    (void)tnd_net_output(net, tnd_net_binary(net, TANDEM_BINARY_DIV, y, first));
    check_ok(tnd_net_optimize(net, TND_PASS_BIT(TND_PASS_EQUAL), NULL, &error));
    check_int(net->n_owned, 1);
    tnd_net_free(net);
}

static void a_pass_without_memory_leaves_the_net_as_it_was(void)
{
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 37);
    }
    bool is_done = false;
    for (long after = 1; after < 2000 && !is_done; after++) {
        struct tandem_error error = {.text = ""};
        struct tnd_net *net = random_net_build(bytes, sizeof(bytes), false, false);
        tnd_alloc_fail_after(after);
        const enum tandem_status status = tnd_net_optimize(net, TND_PASSES_ALL, NULL, &error);
        tnd_alloc_fail_after(-1);
        is_done = status == TANDEM_OK;
        CU_ASSERT_TRUE(is_done || status == TANDEM_E_MEMORY);
        check_ok(tnd_net_check(net, &error));
        tnd_net_free(net);
    }
    CU_ASSERT_TRUE(is_done);
}

/* ---- order of dimensions ---- */

/* A convolution of {2, C, spatial}, what a program with channels last does with its result, and a
 * second convolution; `is_read`: the values in between are an output, too. */
static struct tnd_net *net_with_channels_last(int n, bool is_read)
{
    static const int forth[][5] = {{0, 2, 1}, {0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    static const int back[][5] = {{0, 2, 1}, {0, 3, 1, 2}, {0, 4, 1, 2, 3}};
    const struct tnd_window window = {
        .n = n, .extent = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}, .groups = 1};
    const int64_t before[5] = {0, 1, 0};
    const int64_t after[5] = {0, 0, 2};
    struct tnd_dims shape = {n + 2, {2, 3, 4, 5, 2}};
    struct tnd_dims weights = {n + 2, {3, 3, 1, 1, 1}};
    struct tnd_dims bias = {1, {3}};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
    const int w = tnd_net_input(net, TANDEM_DTYPE_F32, &weights, "w", NULL);
    const int b = tnd_net_input(net, TANDEM_DTYPE_F32, &bias, "b", NULL);
    int y = tnd_net_permute(net, tnd_net_conv(net, x, w, &window), forth[n - 1]);
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, y,
                       tnd_net_expand(net, b, &tnd_net_value(net, y)->shape));
    const int less = tnd_net_binary(net, TANDEM_BINARY_LESS, y, with(net, TANDEM_BINARY_MUL, y, 2));
    y = tnd_net_select(net, less, y, tnd_net_unary(net, TANDEM_UNARY_NEG, y));
    y = tnd_net_pad(net, TANDEM_PAD_CONSTANT, y, before, after,
                    tnd_net_scalar(net, TANDEM_DTYPE_F32, 7));
    const int both[] = {y, y};
    y = tnd_net_concat(net, both, 2, 1);
    if (is_read) {
        (void)tnd_net_output(net, y);
    }
    weights.dims[1] = tnd_net_value(net, y)->shape.dims[n + 1];
    const int v = tnd_net_input(net, TANDEM_DTYPE_F32, &weights, "v", NULL);
    y = tnd_net_permute(net, y, back[n - 1]);
    (void)tnd_net_output(net, tnd_net_conv(net, y, v, &window));
    return net;
}

static void run_net(struct tnd_net *net, struct tnd_array **out)
{
    struct tnd_array *in[MOST_PORTS] = {NULL};
    struct tandem_error error = {.text = ""};
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *value = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(value->type, &value->shape);
        for (int64_t k = 0; k < in[i]->n; k++) {
            ((float *)in[i]->data)[k] = (float)((k * 7 + i) % 23) - 11.0F;
        }
    }
    memset(out, 0, MOST_PORTS * sizeof(out[0]));
    check_status(tnd_net_run(net, in, out, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(in[i]);
    }
}

/* All that is computed between the convolutions has channels in dimension 1 afterwards, 3 of them
 * and the padding: no more than 5, where other dimensions are at least 2 of other extents. */
static void what_follows_a_convolution_is_computed_in_its_order(void)
{
    const unsigned layout = TND_PASS_BIT(TND_PASS_LAYOUT) | TND_PASS_BIT(TND_PASS_DEAD);
    for (int n = 1; n <= 3; n++) {
        for (int is_read = 0; is_read < 2; is_read++) {
            struct tandem_error error = {.text = ""};
            struct tnd_array *want[MOST_PORTS];
            struct tnd_array *got[MOST_PORTS];
            struct tnd_net *net = net_with_channels_last(n, is_read == 1);
            run_net(net, want);
            check_status(tnd_net_optimize(net, layout, NULL, &error), TANDEM_OK, NULL, &error);
            check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
            for (int i = 0; i < net->n_nodes && is_read == 0; i++) {
                const struct tnd_net_value *made = tnd_net_value(net, net->nodes[i].output);
                CU_ASSERT_TRUE(net->nodes[i].op == TND_NET_CONV || made->shape.n < n + 2 ||
                               made->shape.dims[1] == 3 || made->shape.dims[1] == 5);
            }
            run_net(net, got);
            for (int i = 0; i < net->n_outputs; i++) {
                CU_ASSERT_TRUE(is_same(want[i], got[i], false));
                tnd_array_free(want[i]);
                tnd_array_free(got[i]);
            }
            tnd_net_free(net);
        }
    }
}

static void note_round(void *context, const struct tnd_net *net, const struct tnd_pass *pass,
                       int round, int fired)
{
    int *most = context;
    (void)net;
    (void)pass;
    *most = fired >= 0 && round > *most ? round : *most;
}

/* What reads the sum flattens it in its own order, which no strides over the convolution's say. */
static void an_order_that_readers_need_stays_and_passes_end(void)
{
    static const struct tnd_dims shape = {4, {2, 3, 4, 5}};
    static const struct tnd_dims weights = {4, {3, 3, 1, 1}};
    static const struct tnd_dims flat = {1, {120}};
    static const int forth[] = {0, 2, 3, 1};
    const struct tnd_window window = {
        .n = 2, .extent = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    struct tandem_error error = {.text = ""};
    int most = 0;
    const struct tnd_pass_dump dump = {.dump = note_round, .context = &most};
    struct tnd_net *net = tnd_net_new();
    const int x = tnd_net_input(net, TANDEM_DTYPE_F32, &shape, "x", NULL);
    const int w = tnd_net_input(net, TANDEM_DTYPE_F32, &weights, "w", NULL);
    const int y = tnd_net_permute(net, tnd_net_conv(net, x, w, &window), forth);
    const int z = tnd_net_unary(net, TANDEM_UNARY_EXP, y);
    (void)tnd_net_output(net, tnd_net_unary(net, TANDEM_UNARY_NEG, tnd_net_reshape(net, z, &flat)));
    check_status(tnd_net_optimize(net, TND_PASSES_ALL, &dump, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_net_check(net, &error), TANDEM_OK, NULL, &error);
    check_int(net->n_nodes, 3);
    check_int(most, 0);
    tnd_net_free(net);
}

static CU_TestInfo tests_pass[] = {
    {"an_order_that_readers_need_stays_and_passes_end",
     an_order_that_readers_need_stays_and_passes_end},
    {"what_follows_a_convolution_is_computed_in_its_order",
     what_follows_a_convolution_is_computed_in_its_order},
    {"what_depends_on_constants_alone_is_computed", what_depends_on_constants_alone_is_computed},
    {"a_large_result_of_small_operands_is_not_folded",
     a_large_result_of_small_operands_is_not_folded},
    {"an_operation_that_fails_is_not_folded", an_operation_that_fails_is_not_folded},
    {"values_that_an_input_may_have_are_not_folded", values_that_an_input_may_have_are_not_folded},
    {"what_no_output_needs_goes", what_no_output_needs_goes},
    {"equal_operations_become_one", equal_operations_become_one},
    {"copies_of_views_go_where_readers_can_read_them",
     copies_of_views_go_where_readers_can_read_them},
    {"neutral_numbers_go_where_no_bit_changes", neutral_numbers_go_where_no_bit_changes},
    {"a_division_becomes_a_product_where_the_inverse_is_exact",
     a_division_becomes_a_product_where_the_inverse_is_exact},
    {"powers_become_products_and_roots", powers_become_products_and_roots},
    {"a_cube_is_products", a_cube_is_products},
    {"what_undoes_itself_goes", what_undoes_itself_goes},
    {"gathering_in_equal_steps_is_a_view", gathering_in_equal_steps_is_a_view},
    {"chains_of_bounds_merge", chains_of_bounds_merge},
    {"the_dump_sees_each_pass_before_and_after_and_switched_off_ones_never",
     the_dump_sees_each_pass_before_and_after_and_switched_off_ones_never},
    {"a_net_that_is_wrong_is_told", a_net_that_is_wrong_is_told},
    {"narrow_floats_are_computed_wide_and_rounded_at_the_end",
     narrow_floats_are_computed_wide_and_rounded_at_the_end},
    {"one_operation_of_narrow_floats_keeps_its_bits",
     one_operation_of_narrow_floats_keeps_its_bits},
    {"random_nets_keep_every_bit", random_nets_keep_every_bit},
    {"random_smooth_nets_keep_their_results", random_smooth_nets_keep_their_results},
    {"a_pass_without_a_change_leaves_the_net_in_place",
     a_pass_without_a_change_leaves_the_net_in_place},
    {"equal_constants_meet_in_any_order", equal_constants_meet_in_any_order},
    {"a_pass_without_memory_leaves_the_net_as_it_was",
     a_pass_without_memory_leaves_the_net_as_it_was},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_pass[] = {
    {"pass", NULL, NULL, NULL, NULL, tests_pass},
    CU_SUITE_INFO_NULL,
};
