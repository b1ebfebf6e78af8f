/* SPDX-License-Identifier: MIT
 * What runs inside of a convolution must have the bits of what runs behind it. */
#include <string.h>

#include "graph/lower.h"
#include "tandem/runtime.h"
#include "tests/support.h"

/* Values around 1 of both signs. */
static void fill(struct tnd_test_rng *rng, struct tnd_array *array)
{
    tnd_test_fill(rng, array->data, array->n);
}

static int constant(struct tnd_net *net, struct tnd_test_rng *rng, const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    fill(rng, array);
    return tnd_net_constant(net, array);
}

/* Images {N, C, H, W} through one convolution, and an operand of some shape that fits. */
struct picture {
    struct tnd_test_rng rng;
    struct tnd_net *net;
    struct tnd_dims shape; /* of the convolution's result */
};

static int convolution(struct picture *p)
{
    const int64_t groups = tnd_test_rng_int(&p->rng, 1, 3);
    const int64_t channels = tnd_test_rng_int(&p->rng, 1, 5);
    const bool is_depthwise = tnd_test_rng_int(&p->rng, 0, 3) == 0;
    const bool is_whole = tnd_test_rng_int(&p->rng, 0, 1) == 0; /* (of tiles) */
    const int64_t filters = is_depthwise ? 1 : is_whole ? 32 : tnd_test_rng_int(&p->rng, 1, 40);
    const int64_t all = is_depthwise ? groups * 7 : groups;
    const int64_t each = is_depthwise ? 1 : channels;
    const struct tnd_dims x = {4,
                               {tnd_test_rng_int(&p->rng, 1, 3), all * each,
                                tnd_test_rng_int(&p->rng, 3, 12), tnd_test_rng_int(&p->rng, 3, 9)}};
    const struct tnd_dims w = {4, {all * filters, each, 3, 2}};
    const struct tnd_window window = {.n = 2,
                                      .extent = {3, 2},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .begin = {1, 0},
                                      .groups = all};
    const int y = tnd_net_conv(p->net, tnd_net_input(p->net, TANDEM_DTYPE_F32, &x, "x", NULL),
                               constant(p->net, &p->rng, &w), &window);
    p->shape = tnd_net_value(p->net, y)->shape;
    return y;
}

/* A constant or an input that broadcasts to the result. */
static int operand(struct picture *p)
{
    struct tnd_dims shape = p->shape;
    const int keeps = (int)tnd_test_rng_int(&p->rng, 0, 15);
    for (int d = 0; d < 4; d++) {
        shape.dims[d] = (keeps >> d & 1) != 0 ? shape.dims[d] : 1;
    }
    return tnd_test_rng_int(&p->rng, 0, 1)
               ? constant(p->net, &p->rng, &shape)
               : tnd_net_input(p->net, TANDEM_DTYPE_F32, &shape, "more", NULL);
}

static int step(struct picture *p, int y)
{
    static const enum tandem_unary functions[] = {TANDEM_UNARY_FLOOR, TANDEM_UNARY_EXP,
                                                  TANDEM_UNARY_SILU, TANDEM_UNARY_TANH,
                                                  TANDEM_UNARY_HARD_SWISH};
    static const enum tandem_binary kinds[] = {TANDEM_BINARY_ADD, TANDEM_BINARY_SUB,
                                               TANDEM_BINARY_MUL, TANDEM_BINARY_MAX,
                                               TANDEM_BINARY_MIN};
    switch (tnd_test_rng_int(&p->rng, 0, 7)) {
    case 0:
        return tnd_net_unary(p->net, TANDEM_UNARY_ABS, y);
    case 1:
        return tnd_net_unary(p->net, functions[tnd_test_rng_int(&p->rng, 0, 4)], y);
    case 2: {
        const int zero = tnd_net_scalar(p->net, TANDEM_DTYPE_F32, 0);
        return tnd_net_select(p->net, tnd_net_binary(p->net, TANDEM_BINARY_LESS, y, zero),
                              tnd_net_unary(p->net, TANDEM_UNARY_NEG, y), zero);
    }
    case 3:
        return tnd_net_binary(p->net, TANDEM_BINARY_MUL, y,
                              tnd_net_unary(p->net, TANDEM_UNARY_ABS, y));
    default:
        return tnd_net_binary(p->net, kinds[tnd_test_rng_int(&p->rng, 0, 4)], y, operand(p));
    }
}

/* The net of a seed. `is_apart`: the convolution's result is an output, so that it is computed. */
static struct tnd_net *build(uint64_t seed, bool is_apart)
{
    struct picture p = {.rng = tnd_test_rng_new(seed), .net = tnd_net_new()};
    const int conv = convolution(&p);
    int y = conv;
    for (int i = (int)tnd_test_rng_int(&p.rng, 1, 5); i > 0; i--) {
        y = step(&p, y);
    }
    if (tnd_test_rng_int(&p.rng, 0, 3) == 0) { /* another one that is added: one of two waits */
        struct tnd_dims w = {4, {p.shape.dims[1], 1, 1, 1}};
        const int other = tnd_net_conv(
            p.net,
            tnd_net_input(
                p.net, TANDEM_DTYPE_F32,
                &(struct tnd_dims){4, {p.shape.dims[0], 1, p.shape.dims[2], p.shape.dims[3]}},
                "other", NULL),
            constant(p.net, &p.rng, &w),
            &(struct tnd_window){
                .n = 2, .extent = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1});
        y = tnd_net_binary(p.net, TANDEM_BINARY_ADD, y, other);
    }
    (void)tnd_net_output(p.net, y);
    if (is_apart) {
        (void)tnd_net_output(p.net, conv);
    }
    return p.net;
}

/* Output 0 on two threads, and the number of nodes. */
static struct tnd_array *run(struct tnd_net *net, tandem_runtime *runtime, uint64_t seed,
                             int *n_nodes)
{
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    struct tnd_array *out = NULL;
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    check_status(net->status, TANDEM_OK, NULL, &net->error);
    if (check_status(tnd_net_lower(net, &lowered, &error), TANDEM_OK, NULL, &error)) {
        for (int i = 0; i < net->n_inputs; i++) {
            const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
            tnd_test_fill(&rng, tnd_lowered_input(lowered, i), tnd_dims_values(&v->shape));
        }
        check_ok(tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error));
        check_ok(tnd_lowered_get_output(lowered, 0, &out, &error));
        *n_nodes = tandem_graph_node_count(tnd_lowered_graph(lowered));
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
    return out;
}

static void an_epilogue_gives_the_bits_of_a_node_of_its_own(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = NULL;
    int fused = 0;
    const int n = tnd_effort() == 1 ? 300 : 3000;
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, &error));
    for (int i = 0; i < n; i++) {
        const uint64_t seed = tnd_test_seed() * 9000011 + (uint64_t)i;
        int n_with = 0;
        int n_apart = 0;
        struct tnd_array *with = run(build(seed, false), runtime, seed + 1, &n_with);
        struct tnd_array *apart = run(build(seed, true), runtime, seed + 1, &n_apart);
        if (with != NULL && apart != NULL &&
            !check_bits(with->data, apart->data, (size_t)with->n * sizeof(float), "epilogue")) {
            printf("    net of seed %llu\n", (unsigned long long)seed);
        }
        fused += n_with < n_apart;
        tnd_array_free(with);
        tnd_array_free(apart);
    }
    CU_ASSERT_TRUE(fused > n / 2); /* (some operands do not go by rows of channels) */
    tandem_runtime_close(runtime);
}

static CU_TestInfo tests_epilogue[] = {
    {"an_epilogue_gives_the_bits_of_a_node_of_its_own",
     an_epilogue_gives_the_bits_of_a_node_of_its_own},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_epilogue[] = {
    {"epilogue", NULL, NULL, NULL, NULL, tests_epilogue},
    CU_SUITE_INFO_NULL,
};
