/* SPDX-License-Identifier: MIT
 * Convolutions and products of 8-bit integers against the reference, bit by bit: random windows,
 * types, zero points and results, with the kernels of every instruction set of this machine and
 * emulated tiles, by one to three workers, with guard bytes around the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/cpu.h"
#include "ggml-like/binary_int8.h"
#include "ggml-like/product_int8.h"
#include "ggml-like/tensor_internal.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_cpu_cases.h"

enum { GUARD = 64, MOST = 1 << 13 };

static struct tnd_test_rng rng;

static int64_t between(int64_t low, int64_t high)
{
    return tnd_test_rng_int(&rng, low, high);
}

/* ---- cases ---- */

static struct tnd_conv_int8 random_conv(void)
{
    struct tnd_conv_int8 conv = {.n = (int)between(0, 3),
                                 .images = between(1, 3),
                                 .x_is_signed = between(0, 1) == 1,
                                 .result = (enum tnd_int8_result)between(0, 3)};
    const int64_t kind = between(0, 3); /* 1: groups; 2: one filter a channel */
    conv.groups = kind == 1 ? between(2, 3) : kind == 2 ? between(2, 70) : 1;
    conv.channels = kind == 2 ? conv.groups : conv.groups * between(1, conv.n == 0 ? 200 : 40);
    conv.filters = kind == 2 ? conv.groups : conv.groups * between(1, 70);
    conv.images = conv.n == 0 ? between(1, 150) : conv.images;
    for (int i = 0; i < conv.n; i++) {
        conv.taps[i] = between(1, 3);
        conv.stride[i] = between(1, 2);
        conv.dilation[i] = between(1, 2);
        conv.begin[i] = between(0, 2);
        conv.in[i] = between(1, 9);
        const int64_t window = (conv.taps[i] - 1) * conv.dilation[i] + 1;
        const int64_t room = conv.in[i] + conv.begin[i] + between(0, 2) - window;
        conv.out[i] = room < 0 ? 1 : room / conv.stride[i] + 1;
    }
    conv.zero_x = (int32_t)(conv.x_is_signed ? between(-128, 127) : between(0, 255));
    const int32_t least = conv.result == TND_INT8_S8 ? -128 : 0;
    conv.zero_y = (int32_t)between(0, 255) + least;
    conv.low = conv.result >= TND_INT8_S8 ? (float)(least - conv.zero_y) : -INFINITY;
    conv.high = conv.result >= TND_INT8_S8 ? (float)(least + 255 - conv.zero_y) : INFINITY;
    return conv;
}

static tandem_tensor *bytes_tensor(tandem_context *context, int64_t bytes)
{
    const int64_t n = (bytes + 3) / 4;
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tensor);
    return tensor;
}

/* Bytes of all values, extreme ones among them. */
static void fill_bytes(void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t pick = between(0, 9);
        ((uint8_t *)to)[i] = (uint8_t)(pick == 0   ? 0
                                       : pick == 1 ? 255
                                       : pick == 2 ? 128
                                       : pick == 3 ? 127
                                                   : between(0, 255));
    }
}

static void fill_filters(const struct tnd_conv_int8 *conv, struct tnd_int8_filter *filters)
{
    const double spread = 300.0 / sqrt((double)tnd_int8_k(conv)) / (128 * 128);
    for (int64_t f = 0; f < tnd_int8_padded_filters(conv); f++) {
        filters[f].bias = (int32_t)between(-5000, 5000);
        filters[f].scale = (float)(spread * (0.2 + (double)tnd_test_rng_float(&rng)));
        filters[f].offset = tnd_test_rng_float(&rng) * 20 - 10;
    }
}

/* Packs weights {filters, K} side by side. */
static bool pack(struct tnd_conv_int8 *conv, enum tandem_dtype type, const void *w, void *out,
                 struct tnd_int8_filter *filters)
{
    const int64_t k = tnd_int8_k(conv);
    const struct tnd_view view = {
        .type = type, .shape = {2, {conv->filters, k}}, .strides = {k, 1}, .data = w};
    return tnd_int8_pack(conv, &view, out, filters);
}

static tandem_tensor *build(tandem_context *context, struct tnd_conv_int8 *conv)
{
    int64_t x_values = conv->images * conv->channels;
    int64_t taps = 1;
    for (int i = 0; i < conv->n; i++) {
        x_values *= conv->in[i];
        taps *= conv->taps[i];
    }
    const int64_t w_values = conv->filters * (conv->channels / conv->groups) * taps;
    tandem_tensor *x = bytes_tensor(context, x_values);
    tandem_tensor *w = bytes_tensor(context, tnd_int8_weight_bytes(conv));
    tandem_tensor *filters = bytes_tensor(context, tnd_int8_padded_filters(conv) *
                                                       (int64_t)sizeof(struct tnd_int8_filter));
    tandem_tensor *zero = between(0, 1) == 1 ? bytes_tensor(context, 1) : NULL;
    int32_t *plain = malloc((size_t)w_values * sizeof(int32_t));
    CU_ASSERT_PTR_NOT_NULL_FATAL(plain);
    fill_bytes(x->data, x_values);
    const int32_t zero_w = (int32_t)between(-1, 1) * (int32_t)between(0, 127);
    for (int64_t i = 0; i < w_values; i++) {
        uint8_t byte;
        fill_bytes(&byte, 1);
        plain[i] = (int8_t)byte - zero_w;
    }
    fill_filters(conv, filters->data);
    CU_ASSERT_TRUE_FATAL(pack(conv, TANDEM_DTYPE_I32, plain, w->data, filters->data));
    free(plain);
    if (zero != NULL) {
        *(uint8_t *)zero->data = (uint8_t)conv->zero_x;
    }
    tandem_tensor *node = tnd_build_conv_int8(context, conv, x, w, filters, zero);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    return node;
}

/* ---- kernels ---- */

/* Kernels `i`, and what they are called; false: no more, or this machine has not these. */
static bool kernels_of(int i, struct tnd_cpu_kernels *out, const char **name)
{
    static const char *const names[] = {"scalar", "avx2", "avxvnni", "avx512", "vnni",
                                        "amx",    "neon", "dotprod", "i8mm",   "emulated tiles"};
    const int n = (int)(sizeof(names) / sizeof(names[0]));
    *name = i < n ? names[i] : NULL;
    if (i >= n) {
        return false;
    }
    if (i == n - 1) {
        tnd_cpu_kernels_for(0, out);
        tnd_fill_tiles_emulated(out);
        return true;
    }
    const uint32_t features = tnd_cpu_mask(tnd_cpu_features_all(), names[i]);
    tnd_cpu_kernels_for(features, out);
    return strcmp(tnd_cpu_isa_name(features), names[i]) == 0;
}

static bool check_kernels(const struct tnd_cpu_kernels *kernels, tandem_tensor *node,
                          const uint8_t *want, size_t bytes, int n_workers)
{
    static _Alignas(64) uint8_t memory[MOST + 2 * GUARD];
    struct tandem_error error = {0};
    memset(memory, 0x5a, sizeof(memory));
    node->data = memory + GUARD;
    check_ok(tnd_cpu_run_in_turn(kernels, node, n_workers, &error));
    bool is_right = memcmp(node->data, want, bytes) == 0;
    for (int i = 0; i < GUARD; i++) {
        is_right = is_right && memory[i] == 0x5a && memory[GUARD + bytes + (size_t)i] == 0x5a;
    }
    return is_right;
}

static size_t result_bytes(const struct tnd_conv_int8 *conv)
{
    return (size_t)(tnd_int8_places(conv) * conv->filters) * (conv->result >= TND_INT8_S8 ? 1 : 4);
}

/* All kernels against the reference. */
static void check_node(tandem_tensor *node, uint64_t seed)
{
    static uint8_t want[MOST];
    struct tandem_error error = {0};
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const size_t bytes = result_bytes(conv);
    memset(want, 0, sizeof(want));
    node->data = want;
    check_ok(tnd_eval_ref_node(node, &error));
    for (int i = 0;; i++) {
        struct tnd_cpu_kernels kernels;
        const char *name;
        const bool exists = kernels_of(i, &kernels, &name);
        if (name == NULL) {
            break;
        }
        /* (emulated tiles take a thousand times as long as others) */
        const bool is_slow = kernels.int8.step == TND_INT8_STEP && kernels.int8.begin != NULL &&
                             strcmp(kernels.amx.name, "amx") != 0;
        const int most = !exists || (is_slow && seed % 8 != 0) ? 0 : is_slow ? 1 : 3;
        for (int workers = 1; workers <= most; workers++) {
            if (!check_kernels(&kernels, node, want, bytes, workers)) {
                printf("    %s, %d workers, seed %llu: %d dimensions, %lld channels, %lld filters, "
                       "%lld groups, result %d\n",
                       name, workers, (unsigned long long)seed, conv->n, (long long)conv->channels,
                       (long long)conv->filters, (long long)conv->groups, (int)conv->result);
                CU_FAIL("sums differ");
            }
        }
    }
}

static void check_case(uint64_t seed)
{
    tandem_context *context = NULL;
    struct tnd_conv_int8 conv;
    rng = tnd_test_rng_new(seed);
    do {
        conv = random_conv();
    } while (result_bytes(&conv) + 4 > MOST);
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    check_node(build(context, &conv), seed);
    tandem_context_free(context);
}

static void all_kernels_have_the_bits_of_the_reference(void)
{
    const int n = tnd_effort() == 1 ? 60 : 3000;
    for (int i = 0; i < n; i++) {
        check_case(tnd_test_seed() * 100003 + (uint64_t)i);
    }
}

/* ---- products of two computed matrices ---- */

/* A matrix with gaps of random sizes, whose rows or columns lie side by side; `to` its bytes. */
static struct tnd_int8_matrix random_matrix(int64_t n, int64_t rows, int64_t columns, bool has_rows,
                                            int64_t *bytes)
{
    struct tnd_int8_matrix m = {.offset = between(0, 5)};
    const bool by_row = has_rows || between(0, 1) == 1;
    const int64_t least = has_rows ? 1 : between(1, 2);
    m.column = by_row ? least : rows * least + between(0, 3);
    m.row = by_row ? columns * least + between(0, 3) : least;
    m.product = between(0, 3) == 0 ? 0 : rows * columns * 3 + between(0, 7);
    *bytes = m.offset + (n - 1) * m.product + (rows - 1) * m.row + (columns - 1) * m.column + 1;
    return m;
}

static void check_products(uint64_t seed)
{
    tandem_context *context = NULL;
    struct tnd_product_int8 p = {.w_is_signed = seed % 2 == 1};
    int64_t x_bytes;
    int64_t w_bytes;
    rng = tnd_test_rng_new(seed);
    do {
        p.sums = random_conv();
        p.n = between(1, 4);
        const int64_t rows = between(1, 40);
        p.sums.n = 0;
        p.sums.images = p.n * rows;
        p.sums.groups = 1;
        p.sums.channels = between(0, 1) == 0 ? 64 : between(1, 300);
        p.sums.filters = between(1, 90);
    } while (result_bytes(&p.sums) + 4 > MOST);
    const int64_t rows = p.sums.images / p.n;
    p.x = random_matrix(p.n, rows, p.sums.channels, true, &x_bytes);
    p.w = random_matrix(p.n, p.sums.channels, p.sums.filters, false, &w_bytes);
    p.zero_w = (int32_t)(p.w_is_signed ? between(-128, 127) : between(0, 255));
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *operands[5] = {
        bytes_tensor(context, x_bytes), bytes_tensor(context, w_bytes),
        bytes_tensor(context,
                     tnd_int8_padded_filters(&p.sums) * (int64_t)sizeof(struct tnd_int8_filter)),
        between(0, 1) == 0 ? NULL : bytes_tensor(context, 1),
        between(0, 1) == 0 ? NULL : bytes_tensor(context, 1)};
    fill_bytes(operands[0]->data, x_bytes);
    fill_bytes(operands[1]->data, w_bytes);
    fill_filters(&p.sums, operands[2]->data);
    for (int i = 3; i < 5; i++) {
        if (operands[i] != NULL) {
            *(uint8_t *)operands[i]->data = (uint8_t)between(0, 255);
        }
    }
    tandem_tensor *node = tnd_build_product_int8(context, &p, operands[0], operands[1], operands[2],
                                                 operands[3], operands[4]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    check_node(node, seed);
    tandem_context_free(context);
}

static void products_of_two_have_the_bits_of_the_reference(void)
{
    const int n = tnd_effort() == 1 ? 60 : 3000;
    for (int i = 0; i < n; i++) {
        check_products(tnd_test_seed() * 100019 + (uint64_t)i);
    }
}

static void matrices_that_reach_too_far_are_refused(void)
{
#define WHOLE                                                                                      \
    {                                                                                              \
        .product = 64, .row = 8, .column = 1                                                       \
    }
    static const struct {
        struct tnd_int8_matrix x, w;
        const char *says;
    } cases[] = {{{.product = 64, .row = 9, .column = 1}, WHOLE, "x has 128 bytes, expected 135"},
                 {WHOLE, {.product = 64, .row = 1, .column = 9}, "w has 128 bytes, expected 135"},
                 {WHOLE, {.product = 64, .row = -8, .column = 1}, "a step backwards"},
                 {{.product = INT64_MAX, .row = 8, .column = 1}, WHOLE, "64 bits"},
                 {{.offset = -1, .product = 8, .row = 8, .column = 1}, WHOLE, "a step backwards"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tnd_product_int8 p = {
            .sums = {.images = 16, .channels = 8, .filters = 8, .groups = 1},
            .n = 2,
            .x = cases[i].x,
            .w = cases[i].w};
        tandem_context *context = NULL;
        struct tandem_error error = {0};
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
        tandem_tensor *bytes = bytes_tensor(context, 128);
        tandem_tensor *filters = bytes_tensor(context, 16 * sizeof(struct tnd_int8_filter));
        CU_ASSERT_PTR_NULL(tnd_build_product_int8(context, &p, bytes, bytes, filters, NULL, NULL));
        check_status(tandem_context_status(context, &error), TANDEM_E_SHAPE, cases[i].says, &error);
        tandem_context_free(context);
    }
}

/* The largest sums that 8 bits can make in so many taps, which floats of depthwise windows hold;
 * `n` groups of a channel, or one of `n` channels. */
static void check_largest(int64_t groups, int64_t n)
{
    static int32_t w[20 * TND_INT8_TAPS];
    struct tnd_conv_int8 conv = {.n = 2,
                                 .images = 1,
                                 .groups = groups,
                                 .channels = n,
                                 .filters = groups,
                                 .in = {16, 16},
                                 .out = {1, 1},
                                 .taps = {16, 16},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .result = TND_INT8_I32};
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *x = bytes_tensor(context, n * TND_INT8_TAPS);
    tandem_tensor *packed = bytes_tensor(context, tnd_int8_weight_bytes(&conv));
    tandem_tensor *filters = bytes_tensor(context, tnd_int8_padded_filters(&conv) *
                                                       (int64_t)sizeof(struct tnd_int8_filter));
    memset(x->data, 255, (size_t)(n * TND_INT8_TAPS));
    for (int64_t i = 0; i < n * TND_INT8_TAPS; i++) {
        w[i] = -255;
    }
    CU_ASSERT_TRUE(pack(&conv, TANDEM_DTYPE_I32, w, packed->data, filters->data));
    tandem_tensor *node = tnd_build_conv_int8(context, &conv, x, packed, filters, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    for (int i = 0;; i++) {
        struct tnd_cpu_kernels kernels;
        struct tandem_error error = {0};
        const char *name;
        int32_t y[20] = {0};
        const bool exists = kernels_of(i, &kernels, &name);
        if (name == NULL) {
            break;
        }
        node->data = y;
        if (exists) {
            check_ok(tnd_cpu_run_in_turn(&kernels, node, 1, &error));
            check_int(y[groups - 1], -255 * 255 * TND_INT8_TAPS * (n / groups));
        }
    }
    tandem_context_free(context);
}

static void the_largest_sums_are_exact(void)
{
    check_largest(20, 20);
    check_largest(1, 20);
}

static void weights_that_need_more_bits_are_refused(void)
{
    struct tnd_conv_int8 conv = {.images = 1, .channels = 4, .filters = 1, .groups = 1};
    static const int32_t wide[] = {-100, 0, 156, 1};
    static const int32_t most[] = {-100, 0, 155, 1};
    uint8_t packed[TND_INT8_PANEL * TND_INT8_STEP];
    struct tnd_int8_filter filters[TND_INT8_PANEL];
    CU_ASSERT_FALSE(pack(&conv, TANDEM_DTYPE_I32, wide, packed, filters));
    CU_ASSERT_TRUE(pack(&conv, TANDEM_DTYPE_I32, most, packed, filters));
    CU_ASSERT_TRUE(conv.has_zero_w);
    check_int(filters[0].zero_w, -28);
}

/* By columns, too, as the weights of products lie. */
static void bytes_are_packed_as_their_integers(void)
{
    enum { N = 20, K = 70 };
    for (int round = 0; round < 40; round++) {
        const bool is_signed = between(0, 1) == 0;
        struct tnd_conv_int8 conv = {.images = 1, .channels = K, .filters = N, .groups = 1};
        const enum tandem_dtype type = is_signed ? TANDEM_DTYPE_I8 : TANDEM_DTYPE_U8;
        uint8_t bytes[N * K];
        int32_t integers[N * K];
        uint8_t packed[2][2 * TND_INT8_PANEL * 2 * TND_INT8_STEP] = {{0}};
        struct tnd_int8_filter filters[2][2 * TND_INT8_PANEL] = {{{0}}};
        fill_bytes(bytes, N * K);
        for (int i = 0; i < N * K; i++) {
            integers[i % N * K + i / N] = is_signed ? (int8_t)bytes[i] : bytes[i];
        }
        const struct tnd_view columns = {
            .type = type, .shape = {2, {N, K}}, .strides = {1, N}, .data = bytes};
        CU_ASSERT_TRUE(pack(&conv, TANDEM_DTYPE_I32, integers, packed[0], filters[0]));
        CU_ASSERT_TRUE(tnd_int8_pack(&conv, &columns, packed[1], filters[1]));
        check_int(memcmp(packed[0], packed[1], sizeof(packed[0])), 0);
        check_int(memcmp(filters[0], filters[1], sizeof(filters[0])), 0);
    }
}

static void operands_that_are_too_small_are_refused(void)
{
    const struct tnd_conv_int8 conv = {
        .images = 4, .channels = 8, .filters = 8, .groups = 1, .result = TND_INT8_I32};
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *small = bytes_tensor(context, 4);
    CU_ASSERT_PTR_NULL(tnd_build_conv_int8(context, &conv, small, small, small, NULL));
    check_status(tandem_context_status(context, &error), TANDEM_E_SHAPE, "x has 4 bytes", &error);
    tandem_context_free(context);
}

/* ---- sums and products of two ---- */

static float random_scale(void)
{
    return 0.53f + 0.5f * tnd_test_rng_float(&rng);
}

static struct tnd_binary_int8 random_binary(void)
{
    struct tnd_binary_int8 op = {.is_product = between(0, 1) == 1,
                                 .a_is_signed = between(0, 1) == 1,
                                 .b_is_signed = between(0, 1) == 1,
                                 .y_is_signed = between(0, 1) == 1,
                                 .divides = between(0, 1) == 1,
                                 .row = between(1, 200)};
    const bool is_repeated = between(0, 1) == 1;
    const int32_t least = op.y_is_signed ? -128 : 0;
    op.zero_a = (int32_t)between(0, 255) - (op.a_is_signed ? 128 : 0);
    op.zero_b = (int32_t)between(0, 255) - (op.b_is_signed ? 128 : 0);
    op.zero_y = (int32_t)between(0, 255) + least;
    op.scale_a = random_scale();
    op.scale_b = between(0, 3) == 0 ? op.scale_a : random_scale();
    op.scale_y = between(0, 3) == 0 ? op.scale_a * 2 : 4 * random_scale();
    op.low = (float)(least - op.zero_y);
    op.high = (float)(least + 255 - op.zero_y);
    op.low += (float)between(0, 3) * 10;
    op.low = fminf(op.low, op.high);
    op.every = is_repeated ? between(1, 5) : 1;
    op.n = op.row * op.every * (is_repeated ? between(1, 4) : 1);
    op.row = is_repeated ? op.row : op.n;
    return op;
}

static void check_binary(uint64_t seed)
{
    static uint8_t want[MOST];
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    rng = tnd_test_rng_new(seed);
    struct tnd_binary_int8 op = random_binary();
    CU_ASSERT_TRUE_FATAL(tnd_binary_int8_is_valid(&op));
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *a = bytes_tensor(context, op.n);
    tandem_tensor *b = bytes_tensor(context, op.n);
    fill_bytes(a->data, op.n);
    fill_bytes(b->data, op.n);
    tandem_tensor *node = tnd_build_binary_int8(context, &op, a, b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    node->data = want;
    check_ok(tnd_eval_ref_node(node, &error));
    tnd_binary_int8_avoid_division(&op);
    tandem_tensor *other = tnd_build_binary_int8(context, &op, a, b);
    for (int i = 0;; i++) {
        struct tnd_cpu_kernels kernels;
        const char *name;
        const bool exists = kernels_of(i, &kernels, &name);
        if (name == NULL) {
            break;
        }
        for (int workers = 1; exists && workers <= 3; workers++) {
            if (!check_kernels(&kernels, node, want, (size_t)op.n, workers) ||
                !check_kernels(&kernels, other, want, (size_t)op.n, workers)) {
                printf(
                    "    %s, %d workers, seed %llu: %lld values in rows of %lld, each for %lld\n",
                    name, workers, (unsigned long long)seed, (long long)op.n, (long long)op.row,
                    (long long)op.every);
                CU_FAIL("bytes differ");
            }
        }
    }
    tandem_context_free(context);
}

/* With the division, and with a factor where that gives the same. */
static void sums_and_products_of_two_have_the_bits_of_the_reference(void)
{
    const int n = tnd_effort() == 1 ? 60 : 2000;
    for (int i = 0; i < n; i++) {
        check_binary(tnd_test_seed() * 50021 + (uint64_t)i);
    }
}

/* A worker gets a part of a long row; parameters that no kernel may get are refused. */
static void sums_of_many_bytes_are_shared(void)
{
    enum { N = 70000 };
    static uint8_t y[N];
    struct tnd_binary_int8 op = {.scale_a = 1,
                                 .scale_b = 1,
                                 .scale_y = 1,
                                 .zero_b = 3,
                                 .high = 255,
                                 .n = N,
                                 .row = N,
                                 .every = 1};
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    struct tnd_cpu_kernels kernels;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    tandem_tensor *a = bytes_tensor(context, N);
    tandem_tensor *b = bytes_tensor(context, N);
    memset(a->data, 7, N);
    memset(b->data, 5, N);
    tandem_tensor *node = tnd_build_binary_int8(context, &op, a, b);
    tnd_cpu_kernels_for(tnd_cpu_features_all(), &kernels);
    node->data = y;
    check_ok(tnd_cpu_run_in_turn(&kernels, node, 3, &error));
    check_int(y[0], 9);
    check_int(y[N / 2], 9);
    check_int(y[N - 1], 9);
    op.n = N + 4;
    op.row = N + 4;
    CU_ASSERT_PTR_NULL(tnd_build_binary_int8(context, &op, a, b));
    check_status(tandem_context_status(context, &error), TANDEM_E_SHAPE, "a has 70000 bytes",
                 &error);
    op.divides = true;
    op.scale_y = 1e-8f;
    CU_ASSERT_FALSE(tnd_binary_int8_is_valid(&op));
    op.scale_y = NAN;
    CU_ASSERT_FALSE(tnd_binary_int8_is_valid(&op));
    tandem_context_free(context);
}

CU_TestInfo tnd_tests_int8[] = {
    {"all kernels have the bits of the reference", all_kernels_have_the_bits_of_the_reference},
    {"products of two have the bits of the reference",
     products_of_two_have_the_bits_of_the_reference},
    {"matrices that reach too far are refused", matrices_that_reach_too_far_are_refused},
    {"the largest sums are exact", the_largest_sums_are_exact},
    {"weights that need more bits are refused", weights_that_need_more_bits_are_refused},
    {"bytes are packed as their integers", bytes_are_packed_as_their_integers},
    {"operands that are too small are refused", operands_that_are_too_small_are_refused},
    {"sums and products of two have the bits of the reference",
     sums_and_products_of_two_have_the_bits_of_the_reference},
    {"sums of many bytes are shared", sums_of_many_bytes_are_shared},
    CU_TEST_INFO_NULL,
};
