/* SPDX-License-Identifier: MIT
 * Nets of 8-bit integers, as quantisers write them, lowered to sums of integers: the sums have
 * every bit of the reference, and what is made of them is right. */
#include <math.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "tandem/runtime.h"
#include "tests/support.h"

enum { MOST_VALUES = 8 };

static struct tnd_test_rng rng;

static int64_t between(int64_t low, int64_t high)
{
    return tnd_test_rng_int(&rng, low, high);
}

static struct tnd_array *random_array(enum tandem_dtype type, const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        if (type == TANDEM_DTYPE_F32) {
            ((float *)array->data)[i] = tnd_test_rng_float(&rng) * 4 - 2;
        } else {
            ((uint8_t *)array->data)[i] = (uint8_t)between(0, 255);
        }
    }
    return array;
}

/* ---- what quantisers write ---- */

static int numbers(struct tnd_net *net, const struct tnd_dims *shape, float low, float high)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    for (int64_t i = 0; i < array->n; i++) {
        ((float *)array->data)[i] = low + (high - low) * tnd_test_rng_float(&rng);
    }
    return tnd_net_constant(net, array);
}

static int bytes(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape)
{
    return tnd_net_constant(net, random_array(type, shape));
}

/* (integers - zero) * scale; shape: of both */
static int dequantised(struct tnd_net *net, int integers, const struct tnd_dims *shape, float scale)
{
    const enum tandem_dtype type = tnd_net_value(net, integers)->type;
    int x = tnd_net_cast(net, integers, TANDEM_DTYPE_F32);
    if (between(0, 2) > 0) {
        x = tnd_net_binary(net, TANDEM_BINARY_SUB, x,
                           tnd_net_cast(net, bytes(net, type, shape), TANDEM_DTYPE_F32));
    }
    return tnd_net_binary(net, TANDEM_BINARY_MUL, x, numbers(net, shape, scale, 2 * scale));
}

static int quantised(struct tnd_net *net, int x, enum tandem_dtype type, double scale)
{
    const double least = type == TANDEM_DTYPE_I8 ? -128 : 0;
    const double zero = (double)between(0, 255) + least;
#define WITH(kind, number)                                                                         \
    tnd_net_binary(net, TANDEM_BINARY_##kind, x, tnd_net_scalar(net, TANDEM_DTYPE_F32, number))
    x = WITH(DIV, scale);
    x = tnd_net_unary(net, TANDEM_UNARY_ROUND, x);
    x = WITH(ADD, zero);
    x = WITH(MAX, least);
    x = WITH(MIN, least + 255);
    return tnd_net_cast(net, x, type);
}

static enum tandem_dtype byte_type(void)
{
    return between(0, 1) == 0 ? TANDEM_DTYPE_I8 : TANDEM_DTYPE_U8;
}

/* ---- checks ---- */

static int count_sums(const tandem_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        n += graph->nodes[i]->op == TANDEM_OP_CONV_INT8 ||
             graph->nodes[i]->op == TANDEM_OP_PRODUCT_INT8 ||
             graph->nodes[i]->op == TANDEM_OP_BINARY_INT8;
    }
    return n;
}

/* Bytes may differ by one where a float lay between two. */
static void compare(const struct tnd_array *got, const struct tnd_array *want, uint64_t seed)
{
    double worst = 0;
    int64_t n_other = 0;
    for (int64_t i = 0; i < got->n; i++) {
        const double x = tnd_array_number(got, i);
        const double y = tnd_array_number(want, i);
        const bool is_same = x == y || (isnan(x) && isnan(y));
        const double d = is_same ? 0 : isfinite(x) && isfinite(y) ? fabs(x - y) : 1e30;
        const double size = isfinite(y) ? 1 + fabs(y) : 1;
        worst = fmax(worst, got->type == TANDEM_DTYPE_F32 ? d / size : d);
        n_other += d != 0;
    }
    const bool is_byte = tandem_dtype_bytes(got->type) == 1;
    const double most = got->type == TANDEM_DTYPE_F32 ? 2e-5 : is_byte ? 1 : 0;
    if (worst > most || (is_byte && n_other > 2 + got->n / 50)) {
        printf("    seed %llu, %s: %g off, %lld of %lld differ\n", (unsigned long long)seed,
               tandem_dtype_name(got->type), worst, (long long)n_other, (long long)got->n);
        CU_FAIL("a result is wrong");
    }
}

/* The reference computes the net as it was built, the runtime what passes made of it. */
static void check_net(struct tnd_net *net, int sums, uint64_t seed)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tnd_array *inputs[MOST_VALUES];
    struct tnd_array *want[MOST_VALUES] = {NULL};
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    tandem_runtime *runtime = NULL;
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        inputs[i] = random_array(v->type, &v->shape);
    }
    check_ok(tnd_net_run(net, inputs, want, &error));
    check_ok(tnd_net_optimize(net, TND_PASSES_ALL, NULL, &error));
    check_ok(tnd_net_check(net, &error));
    check_ok(tnd_net_lower(net, &lowered, &error));
    check_int(count_sums(tnd_lowered_graph(lowered)), sums);
    check_int(tnd_graph_reference_work(tnd_lowered_graph(lowered)).n_hot, 0);
    for (int i = 0; i < net->n_inputs; i++) {
        check_ok(tnd_lowered_set_input(lowered, i, inputs[i], &error));
    }
    options.n_threads = 1 + (int)(seed % 3);
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
    for (int i = 0; i < net->n_outputs; i++) {
        struct tnd_array *got = NULL;
        check_ok(tnd_lowered_get_output(lowered, i, &got, &error));
        compare(got, want[i], seed);
        tnd_array_free(got);
        tnd_array_free(want[i]);
    }
    for (int i = 0; i < net->n_inputs; i++) {
        tnd_array_free(inputs[i]);
    }
    tandem_runtime_close(runtime);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

/* ---- convolutions ---- */

static struct tnd_window random_window(int64_t groups)
{
    const int64_t extent = between(1, 3);
    const int64_t stride = between(1, 2);
    const int64_t side = between(0, 1);
    return (struct tnd_window){.n = 2,
                               .extent = {extent, extent},
                               .stride = {stride, stride},
                               .dilation = {1, 1},
                               .begin = {side, side},
                               .end = {side, side},
                               .groups = groups};
}

/* The largest of up to 81 places. */
static int pooled(struct tnd_net *net, int x)
{
    const int64_t side = between(1, 4);
    const struct tnd_window window = {.n = 2,
                                      .extent = {2 * side + 1, 2 * side + 1},
                                      .stride = {between(1, 2), between(1, 2)},
                                      .dilation = {1, 1},
                                      .begin = {side, side},
                                      .end = {side, side},
                                      .groups = 1};
    return tnd_net_pool(net, TANDEM_POOL_MAX, x, &window);
}

/* conv of what stands for bytes, bias, bounds, to bytes; also the floats in between. */
static void check_conv(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const int64_t kind = between(0, 2); /* 1: groups; 2: one filter a channel */
    const int64_t groups = kind == 0 ? 1 : kind == 1 ? 2 : between(2, 40);
    const int64_t channels = kind == 2 ? groups : groups * between(1, 20);
    const int64_t filters = kind == 2 ? groups : groups * between(1, 40);
    const struct tnd_window window = random_window(groups);
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims x_shape = {4, {between(1, 2), channels, between(5, 9), between(5, 9)}};
    const struct tnd_dims w_shape = {
        4, {filters, channels / groups, window.extent[0], window.extent[1]}};
    const struct tnd_dims by_filter = {4, {filters, 1, 1, 1}};
    const struct tnd_dims bias = {3, {filters, 1, 1}};
    struct tnd_net *net = tnd_net_new();
    const double size = 100 * sqrt((double)(w_shape.dims[1] * window.extent[0] * window.extent[1]));
    const int x_bytes = tnd_net_input(net, byte_type(), &x_shape, "x", NULL);
    const int x = dequantised(net, x_bytes, &one, 0.02f);
    const int w = dequantised(net, bytes(net, byte_type(), &w_shape),
                              between(0, 1) == 0 ? &one : &by_filter, (float)(0.5 / size));
    int y = tnd_net_conv(net, x, w, &window);
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, y, numbers(net, &bias, -1, 1));
    const int64_t activation = between(0, 3);
    if (activation == 1 || activation == 2) {
        y = tnd_net_binary(net, TANDEM_BINARY_MAX, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0));
    }
    if (activation == 2) {
        y = tnd_net_binary(net, TANDEM_BINARY_MIN, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 1.5));
    } else if (activation == 3) { /* no part of the sums */
        y = tnd_net_unary(net, TANDEM_UNARY_SILU, y);
    }
    if (between(0, 3) == 0) {
        (void)tnd_net_output(net, y);
    } else {
        const int y_bytes = quantised(net, y, byte_type(), 0.02);
        (void)tnd_net_output(net, between(0, 1) == 0 ? y_bytes : pooled(net, y_bytes));
        if (between(0, 3) == 0) {
            (void)tnd_net_output(net, pooled(net, x_bytes));
        }
    }
    check_net(net, 1, seed);
}

static void convolutions_of_what_stands_for_bytes_are_right(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_conv(tnd_test_seed() * 1009 + (uint64_t)i);
    }
}

/* Weights {channels, filters, ..} as those of transposed convolutions are moved: padded by 0,
 * reversed, their axes in another order; `by` is the axis of their scales. */
static int moved_weights(struct tnd_net *net, const struct tnd_dims *shape, int by)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    const int64_t behind[TANDEM_NET_MAX_DIMS] = {0, 0, between(0, 2), 1};
    const int turn[] = {1, 0, 2, 3};
    struct tnd_dims scales = {4, {1, 1, 1, 1}};
    scales.dims[by] = shape->dims[by];
    int w = dequantised(net, bytes(net, byte_type(), shape), &scales, 0.0005f);
    if (between(0, 2) > 0) {
        w = tnd_net_pad(net, TANDEM_PAD_CONSTANT, w, none, behind,
                        tnd_net_scalar(net, TANDEM_DTYPE_F32, 0));
        const int64_t n = shape->dims[2] + behind[2];
        w = tnd_net_slice(net, w, 2, n - 1, n, -1);
    }
    return tnd_net_permute(net, w, turn);
}

/* {1, 4 * filters, h, w} to {1, filters, 2 * h, 2 * w}, phases first. */
static int shuffled(struct tnd_net *net, int y)
{
    const struct tnd_dims from = tnd_net_value(net, y)->shape;
    const int64_t filters = from.dims[1] / 4;
    const struct tnd_dims split = {6, {1, 2, 2, filters, from.dims[2], from.dims[3]}};
    const struct tnd_dims to = {4, {1, filters, 2 * from.dims[2], 2 * from.dims[3]}};
    const int turn[] = {0, 3, 4, 1, 5, 2};
    return tnd_net_reshape(net, tnd_net_permute(net, tnd_net_reshape(net, y, &split), turn), &to);
}

static void check_moved(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const struct tnd_dims one = {.n = 0};
    const int64_t filters = 4 * between(1, 20);
    const int by = (int)between(0, 1);
    const struct tnd_dims x_shape = {4, {1, between(2, 30), between(5, 9), between(5, 9)}};
    const struct tnd_dims w_shape = {4, {x_shape.dims[1], filters, between(1, 3), between(1, 3)}};
    const struct tnd_window window = {
        .n = 2, .stride = {1, 1}, .dilation = {1, 1}, .begin = {1, 0}, .end = {1, 0}, .groups = 1};
    struct tnd_net *net = tnd_net_new();
    const int x =
        dequantised(net, tnd_net_input(net, byte_type(), &x_shape, "x", NULL), &one, 0.02f);
    const int w = moved_weights(net, &w_shape, by);
    struct tnd_window filled = window;
    filled.extent[0] = tnd_net_value(net, w)->shape.dims[2];
    filled.extent[1] = tnd_net_value(net, w)->shape.dims[3];
    const int y = shuffled(net, tnd_net_conv(net, x, w, &filled));
    const int bytes_of_y = quantised(net, y, TANDEM_DTYPE_U8, 0.05);
    const int twice[] = {bytes_of_y, bytes_of_y};
    (void)tnd_net_output(net, tnd_net_concat(net, twice, 2, 1));
    (void)tnd_net_output(net, tnd_net_slice(net, bytes_of_y, 1, filters / 8, 1, 1));
    check_net(net, by == 1, seed);
}

static void weights_that_are_moved_stay_bytes(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_moved(tnd_test_seed() * 1201 + (uint64_t)i);
    }
}

static void count_quantised(void *context, const struct tnd_net *net, const struct tnd_pass *pass,
                            int round, int fired)
{
    (void)net;
    (void)pass;
    (void)round;
    *(int *)context += fired > 0 ? fired : 0;
}

/* Weights {filters, 2, 1, 1}, to and fro by some pads, and then to more filters. */
static int quantised_of_moves(int n_moves, int64_t filters)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    const int64_t forth[TANDEM_NET_MAX_DIMS] = {0, 0, 1, 0};
    const int64_t back[TANDEM_NET_MAX_DIMS] = {0, 0, -1, 0};
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims w_shape = {4, {4, 2, 1, 1}};
    const struct tnd_dims x_shape = {4, {1, 2, 3, 3}};
    const struct tnd_window window = {
        .n = 2, .extent = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    const int64_t more[TANDEM_NET_MAX_DIMS] = {filters - 4, 0, 0, 0};
    struct tandem_error error = {.text = ""};
    int fired = 0;
    const struct tnd_pass_dump dump = {.dump = count_quantised, .context = &fired};
    struct tnd_net *net = tnd_net_new();
    const int x =
        dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &x_shape, "x", NULL), &one, 0.02f);
    const int zero = tnd_net_scalar(net, TANDEM_DTYPE_F32, 0);
    int w = dequantised(net, bytes(net, TANDEM_DTYPE_I8, &w_shape), &one, 0.02f);
    for (int i = 0; i < n_moves; i++) {
        w = tnd_net_pad(net, TANDEM_PAD_CONSTANT, w, i % 2 == 0 ? forth : back, none, zero);
    }
    w = tnd_net_pad(net, TANDEM_PAD_CONSTANT, w, more, none, zero);
    (void)tnd_net_output(net, tnd_net_conv(net, x, w, &window));
    check_ok(tnd_net_optimize(net, TND_PASS_BIT(TND_PASS_QUANTISE), &dump, &error));
    check_ok(tnd_net_check(net, &error));
    tnd_net_free(net);
    return fired;
}

/* Neither the stack nor memory end. */
static void more_moves_than_weights_need_stay_floats(void)
{
    rng = tnd_test_rng_new(tnd_test_seed());
    check_int(quantised_of_moves(10, 40), 1);
    check_int(quantised_of_moves(100000, 40), 0);
    check_int(quantised_of_moves(2, (int64_t)1 << 29), 0);
}

/* ---- products ---- */

/* x by weights {K, N}, or turned {N, K}; a batch that weights are repeated for. */
static void check_product(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const int64_t k = between(1, 150);
    const int64_t n = between(1, 60);
    const bool is_turned = between(0, 1) == 1;
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims x_shape = {3, {between(1, 3), between(1, 40), k}};
    const struct tnd_dims w_shape = {2, {is_turned ? n : k, is_turned ? k : n}};
    const struct tnd_dims by_column = {2, {is_turned ? n : 1, is_turned ? 1 : n}};
    const struct tnd_dims bias = {1, {n}};
    const int turn[] = {1, 0};
    struct tnd_net *net = tnd_net_new();
    const int x =
        dequantised(net, tnd_net_input(net, byte_type(), &x_shape, "x", NULL), &one, 0.02f);
    int w = dequantised(net, bytes(net, byte_type(), &w_shape),
                        between(0, 1) == 0 ? &one : &by_column, (float)(0.005 / sqrt((double)k)));
    w = is_turned ? tnd_net_permute(net, w, turn) : w;
    int y = tnd_net_matmul(net, x, w);
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, y, numbers(net, &bias, -1, 1));
    (void)tnd_net_output(net, between(0, 1) == 0 ? y : quantised(net, y, byte_type(), 0.02));
    check_net(net, 1, seed);
}

static void products_of_what_stands_for_bytes_are_right(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_product(tnd_test_seed() * 2003 + (uint64_t)i);
    }
}

/* Bytes as int32, less a zero point that is known, an input of bytes, or 0. */
static int centred(struct tnd_net *net, int x)
{
    const enum tandem_dtype type = tnd_net_value(net, x)->type;
    const struct tnd_dims one = {.n = 0};
    const int64_t kind = between(0, 2);
    const int wide = tnd_net_cast(net, x, TANDEM_DTYPE_I32);
    const int zero = kind == 0   ? bytes(net, type, &one)
                     : kind == 1 ? tnd_net_input(net, type, &one, "zero", NULL)
                                 : TANDEM_NET_NONE;
    return kind == 2 ? wide
                     : tnd_net_binary(net, TANDEM_BINARY_SUB, wide,
                                      tnd_net_cast(net, zero, TANDEM_DTYPE_I32));
}

/* Both operands are computed. Also weights behind a product whose operand is turned and read in
 * another shape. */
static void check_computed(uint64_t seed)
{
    static const int turn[] = {0, 2, 1};
    rng = tnd_test_rng_new(seed);
    const bool is_turned = between(0, 1) == 1;
    const int64_t k = between(1, 900);
    const int64_t n = between(1, 30);
    const struct tnd_dims a_shape = {3, {between(1, 3), between(1, 30), k}};
    const struct tnd_dims b_shape = {3, {a_shape.dims[0], is_turned ? n : k, is_turned ? k : n}};
    struct tnd_net *net = tnd_net_new();
    const struct tnd_dims turned = {2, {a_shape.dims[0] * k, a_shape.dims[1]}};
    const struct tnd_dims w_shape = {2, {a_shape.dims[1], n}};
    const int a_bytes = tnd_net_input(net, byte_type(), &a_shape, "a", NULL);
    const int a = centred(net, a_bytes);
    const int b = centred(net, tnd_net_input(net, byte_type(), &b_shape, "b", NULL));
    const int rows = tnd_net_reshape(net, tnd_net_permute(net, a_bytes, turn), &turned);
    const int w = tnd_net_cast(net, bytes(net, TANDEM_DTYPE_I8, &w_shape), TANDEM_DTYPE_I32);
    (void)tnd_net_output(net,
                         tnd_net_matmul(net, a, is_turned ? tnd_net_permute(net, b, turn) : b));
    (void)tnd_net_output(net, tnd_net_matmul(net, centred(net, rows), w));
    check_net(net, 2, seed);
}

static void products_of_computed_bytes_have_every_bit(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 40 : 300); i++) {
        check_computed(tnd_test_seed() * 2011 + (uint64_t)i);
    }
}

/* Heads {1, length, n, width} as {1, n, length, width} or {1, n, width, length}, read where they
 * lie, perhaps from the last row back. */
static int heads(struct tnd_net *net, int x, bool is_turned)
{
    static const int by_head[] = {0, 2, 1, 3};
    static const int turned[] = {0, 2, 3, 1};
    const int64_t n = tnd_net_value(net, x)->shape.dims[1];
    x = between(0, 4) == 0 ? tnd_net_slice(net, x, 1, n - 1, n, -1) : x;
    return tnd_net_permute(net, x, is_turned ? turned : by_head);
}

/* Products of attention: of two that stand for bytes, a number that scales them, to bytes. */
static void check_heads(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const struct tnd_dims one = {.n = 0};
    const bool is_turned = between(0, 1) == 1; /* keys; else values */
    const int64_t k = between(1, 90);
    const int64_t n = between(1, 70);
    const struct tnd_dims q = {4, {1, between(1, 40), between(1, 3), k}};
    const struct tnd_dims keys = {4, {q.dims[0], is_turned ? n : k, q.dims[2], is_turned ? k : n}};
    struct tnd_net *net = tnd_net_new();
    const int a = dequantised(net, tnd_net_input(net, byte_type(), &q, "a", NULL), &one, 0.02f);
    const int b = dequantised(net, tnd_net_input(net, byte_type(), &keys, "b", NULL), &one,
                              (float)(0.005 / sqrt((double)k)));
    int y = tnd_net_matmul(net, heads(net, a, false), heads(net, b, is_turned));
    y = tnd_net_binary(net, TANDEM_BINARY_MUL, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0.5));
    (void)tnd_net_output(net, between(0, 1) == 0 ? y : quantised(net, y, byte_type(), 0.02));
    check_net(net, 1, seed);
}

static void products_of_attention_are_sums_of_bytes(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_heads(tnd_test_seed() * 2017 + (uint64_t)i);
    }
}

/* ---- sums and products of two ---- */

/* Operands of one shape, or one repeated for all places of an image, in any order. */
static void check_pair(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const bool is_product = between(0, 1) == 1;
    const int64_t repeats = between(0, 2); /* the second, the first */
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims shape = {4,
                                   {between(1, 3), between(1, 80), between(1, 6), between(1, 6)}};
    const struct tnd_dims few = {4, {shape.dims[0], shape.dims[1], 1, 1}};
    struct tnd_net *net = tnd_net_new();
    int x[2];
    for (int i = 0; i < 2; i++) {
        const struct tnd_dims *own = repeats == i + 1 ? &few : &shape;
        const bool is_flat = repeats == 0 && between(0, 3) == 0;
        const struct tnd_dims flat = {2,
                                      {own->dims[0] * own->dims[1], own->dims[2] * own->dims[3]}};
        x[i] = tnd_net_input(net, byte_type(), is_flat ? &flat : own, i == 0 ? "a" : "b", NULL);
        x[i] = dequantised(net, x[i], &one, 0.02f);
        x[i] = is_flat ? tnd_net_reshape(net, x[i], own) : x[i];
    }
    int y = tnd_net_binary(net, is_product ? TANDEM_BINARY_MUL : TANDEM_BINARY_ADD, x[0], x[1]);
    if (between(0, 2) == 0) {
        y = tnd_net_binary(net, TANDEM_BINARY_MAX, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0));
    }
    y = quantised(net, y, byte_type(), 0.03 + 0.02 * (double)tnd_test_rng_float(&rng));
    (void)tnd_net_output(net, y);
    check_net(net, 1, seed);
}

static void sums_and_products_of_what_stands_for_bytes_are_one_node(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_pair(tnd_test_seed() * 4001 + (uint64_t)i);
    }
}

/* int32 of bytes less their zero points, as MatMulInteger and ConvInteger: every bit, with a zero
 * point that is computed too. */
static void check_integers(uint64_t seed)
{
    rng = tnd_test_rng_new(seed);
    const int64_t k = between(1, 100);
    const enum tandem_dtype type = byte_type();
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims x_shape = {2, {between(1, 50), k}};
    const struct tnd_dims w_shape = {2, {k, between(1, 50)}};
    struct tnd_net *net = tnd_net_new();
    int x = tnd_net_cast(net, tnd_net_input(net, type, &x_shape, "x", NULL), TANDEM_DTYPE_I32);
    int w = tnd_net_cast(net, bytes(net, byte_type(), &w_shape), TANDEM_DTYPE_I32);
    const int64_t zero = between(0, 2);
    if (zero > 0) {
        const int point =
            zero == 1 ? bytes(net, type, &one) : tnd_net_input(net, type, &one, "zero", NULL);
        x = tnd_net_binary(net, TANDEM_BINARY_SUB, x, tnd_net_cast(net, point, TANDEM_DTYPE_I32));
    }
    w = tnd_net_binary(net, TANDEM_BINARY_SUB, w,
                       tnd_net_cast(net, bytes(net, TANDEM_DTYPE_U8, &one), TANDEM_DTYPE_I32));
    (void)tnd_net_output(net, tnd_net_matmul(net, x, w));
    check_net(net, 1, seed);
}

static void sums_of_integers_have_every_bit(void)
{
    for (int i = 0; i < (tnd_effort() == 1 ? 60 : 400); i++) {
        check_integers(tnd_test_seed() * 3001 + (uint64_t)i);
    }
}

/* Scales, shifts and bounds that the node does not take over: what they make stays what it was. */
static void check_odd(enum tandem_binary kind, float number, bool is_rounded)
{
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims x_shape = {2, {5, 8}};
    const struct tnd_dims w_shape = {2, {8, 20}};
    struct tnd_net *net = tnd_net_new();
    rng = tnd_test_rng_new(11);
    const int x =
        dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &x_shape, "x", NULL), &one, 0.02f);
    const int w = dequantised(net, bytes(net, TANDEM_DTYPE_I8, &w_shape), &one, 0.02f);
    int y = tnd_net_matmul(net, x, w);
    y = is_rounded ? tnd_net_unary(net, TANDEM_UNARY_ROUND, y) : y;
    y = tnd_net_binary(net, kind, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, (double)number));
    if (is_rounded) {
        y = tnd_net_binary(net, TANDEM_BINARY_MIN, y, tnd_net_scalar(net, TANDEM_DTYPE_F32, 100));
        y = tnd_net_cast(net, y, TANDEM_DTYPE_U8);
    }
    (void)tnd_net_output(net, y);
    check_net(net, 1, 3);
}

static void odd_numbers_behind_the_sums_keep_their_effect(void)
{
    check_odd(TANDEM_BINARY_MUL, INFINITY, false);
    check_odd(TANDEM_BINARY_MUL, NAN, false);
    check_odd(TANDEM_BINARY_DIV, 0.0f, false);
    check_odd(TANDEM_BINARY_ADD, -INFINITY, false);
    check_odd(TANDEM_BINARY_ADD, NAN, false);
    check_odd(TANDEM_BINARY_MAX, NAN, false);
    check_odd(TANDEM_BINARY_MAX, INFINITY, false);
    check_odd(TANDEM_BINARY_MUL, -2.0f, false);
    check_odd(TANDEM_BINARY_MAX, 3.5f, true);
    check_odd(TANDEM_BINARY_MAX, 3.0f, true);
}

/* Weights that are floats, or that need more bits, stay as they were; computed bytes do not. */
static void what_only_looks_like_bytes_stays(void)
{
    const struct tnd_dims one = {.n = 0};
    const struct tnd_dims small = {2, {4, 4}};
    struct tnd_net *net = tnd_net_new();
    rng = tnd_test_rng_new(7);
    const int x = dequantised(net, tnd_net_input(net, TANDEM_DTYPE_U8, &small, "x", NULL), &one, 1);
    const int w = dequantised(net, tnd_net_input(net, TANDEM_DTYPE_I8, &small, "w", NULL), &one, 1);
    (void)tnd_net_output(net, tnd_net_matmul(net, x, w));
    (void)tnd_net_output(net, tnd_net_matmul(net, x, numbers(net, &small, -1, 1)));
    check_net(net, 1, 1);
    net = tnd_net_new();
    const int i =
        tnd_net_cast(net, tnd_net_input(net, TANDEM_DTYPE_U8, &small, "x", NULL), TANDEM_DTYPE_I32);
    const int wide = tnd_net_cast(net,
                                  tnd_net_binary(net, TANDEM_BINARY_MUL, numbers(net, &small, 1, 2),
                                                 tnd_net_scalar(net, TANDEM_DTYPE_F32, 1e5)),
                                  TANDEM_DTYPE_I32);
    (void)tnd_net_output(net, tnd_net_matmul(net, i, wide));
    check_net(net, 0, 2);
}

static CU_TestInfo tests[] = {
    {"convolutions of what stands for bytes are right",
     convolutions_of_what_stands_for_bytes_are_right},
    {"weights that are moved stay bytes", weights_that_are_moved_stay_bytes},
    {"more moves than weights need stay floats", more_moves_than_weights_need_stay_floats},
    {"products of what stands for bytes are right", products_of_what_stands_for_bytes_are_right},
    {"products of computed bytes have every bit", products_of_computed_bytes_have_every_bit},
    {"products of attention are sums of bytes", products_of_attention_are_sums_of_bytes},
    {"sums of integers have every bit", sums_of_integers_have_every_bit},
    {"sums and products of what stands for bytes are one node",
     sums_and_products_of_what_stands_for_bytes_are_one_node},
    {"odd numbers behind the sums keep their effect",
     odd_numbers_behind_the_sums_keep_their_effect},
    {"what only looks like bytes stays", what_only_looks_like_bytes_stays},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_int8[] = {
    {"int8", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
