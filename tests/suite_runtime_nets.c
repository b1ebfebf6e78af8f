/* SPDX-License-Identifier: MIT
 * Nets on the CPU and on a device at once: the planner places their nodes like all others. */
#include <string.h>

#include "backends/sim/sim.h"
#include "tandem/tandem.h"
#include "tests/support.h"
#include "tests/support_tune.h"

enum { WIDTH = 256, ROWS = 16, CHAIN = 3 };
#define PRODUCT_US 1000.0

static const char *const sides[] = {"cpu", "simown"};
static struct tandem_backend_api api; /* borrowed by runtimes */

/* The device is `speed` times as fast as the CPU. */
static tandem_runtime *open_runtime(double speed)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tandem_table *table = tune_new();
    api = tune_sim_api(0);
    check_ok(tandem_runtime_add_backend(runtime, &api, "", NULL));
    for (int i = 0; i < 2; i++) {
        const enum tandem_task task = tune_add_profile(table, sides[i]);
        tune_add_rate(table, sides[i], task, WIDTH, WIDTH, i == 0 ? PRODUCT_US : PRODUCT_US / speed,
                      0.001);
    }
    tune_add_link(table, "simown", 1, 10000);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    return runtime;
}

static int weights(tandem_net *net, struct tnd_test_rng *rng)
{
    static float values[WIDTH * WIDTH];
    const int64_t dims[] = {WIDTH, WIDTH};
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        values[i] = tnd_test_rng_float(rng) / 16;
    }
    return tandem_net_constant(net, TANDEM_DTYPE_F32, 2, dims, values);
}

/* Two chains of products and functions side by side, and their sum. */
static tandem_lowered *make_net(void)
{
    const int64_t dims[] = {ROWS, WIDTH};
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    struct tandem_error error = {.text = ""};
    tandem_net *net = NULL;
    tandem_lowered *lowered = NULL;
    check_ok(tandem_net_new(&net, NULL));
    const int x = tandem_net_input(net, TANDEM_DTYPE_F32, 2, dims, "x");
    int a = x, b = x;
    for (int i = 0; i < CHAIN; i++) {
        a = tandem_net_unary(net, TANDEM_UNARY_TANH, tandem_net_matmul(net, a, weights(net, &rng)));
        b = tandem_net_unary(net, TANDEM_UNARY_GELU, tandem_net_matmul(net, b, weights(net, &rng)));
    }
    tandem_net_output(net, tandem_net_binary(net, TANDEM_BINARY_ADD, a, b), "y");
    check_status(tandem_net_lower(net, NULL, &lowered, &error), TANDEM_OK, NULL, &error);
    tandem_net_free(net);
    return lowered;
}

static const float *compute(tandem_lowered *lowered, tandem_runtime *runtime)
{
    struct tandem_net_array y = {.name = NULL};
    float x[ROWS * WIDTH];
    struct tnd_test_rng rng = tnd_test_rng_new(6);
    tnd_test_fill(&rng, x, ROWS * WIDTH);
    check_ok(tandem_lowered_set_input(lowered, 0, x, sizeof(x), NULL));
    check_ok(tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, NULL));
    CU_ASSERT_TRUE_FATAL(tandem_lowered_output(lowered, 0, &y));
    return y.data;
}

static double predicted(tandem_lowered *lowered, tandem_runtime *runtime, bool *is_at_once)
{
    struct tandem_prediction prediction = {0};
    check_ok(tandem_runtime_predict(runtime, tandem_lowered_graph(lowered), &prediction, NULL));
    *is_at_once = prediction.is_at_once;
    return prediction.us;
}

static void a_net_is_computed_on_the_cpu_and_a_device_at_once(void)
{
    float want[ROWS * WIDTH];
    bool is_at_once;
    tandem_lowered *lowered = make_net();
    tandem_runtime *alone = open_runtime(1e-6);
    memcpy(want, compute(lowered, alone), sizeof(want));
    CU_ASSERT(predicted(lowered, alone, &is_at_once) > 2 * CHAIN * PRODUCT_US * 0.97);
    CU_ASSERT_FALSE(is_at_once);
    tandem_runtime_close(alone);

    /* As fast as the CPU: half of the rows each, so that the best plan takes half of the time.
     * (What a part takes is estimated from whole products, some percent too high.) */
    tandem_runtime *equal = open_runtime(1);
    const double us = predicted(lowered, equal, &is_at_once);
    CU_ASSERT_TRUE(is_at_once);
    CU_ASSERT(us < CHAIN * PRODUCT_US * 1.06);
    check_nmse(compute(lowered, equal), want, ROWS * WIDTH, 1e-9, "a mixed plan");
    tandem_runtime_close(equal);

    /* three times as fast: the CPU takes a quarter of the rows */
    tandem_runtime *faster = open_runtime(3);
    CU_ASSERT(predicted(lowered, faster, &is_at_once) < 2 * CHAIN * PRODUCT_US / 4 * 1.13);
    check_nmse(compute(lowered, faster), want, ROWS * WIDTH, 1e-9, "a faster device");
    tandem_runtime_close(faster);
    tandem_lowered_free(lowered);
}

static CU_TestInfo tests_nets[] = {
    {"a_net_is_computed_on_the_cpu_and_a_device_at_once",
     a_net_is_computed_on_the_cpu_and_a_device_at_once},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_runtime_nets[] = {
    {"nets on devices", NULL, NULL, NULL, NULL, tests_nets},
    CU_SUITE_INFO_NULL,
};
