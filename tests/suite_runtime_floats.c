/* SPDX-License-Identifier: MIT
 * Subnormal floats: zero on every thread of a run unless they are asked for, and the caller's
 * floating-point state is its own afterwards. */
#include <fenv.h>
#include <stdlib.h>

#include "tandem/tandem.h"
#include "tests/support.h"

enum { N = 512, K = 512, M = 8, MAX_THREADS = 2 };

static tandem_context *context;
static tandem_graph *graph;
static tandem_tensor *y;

static void fill(tandem_tensor *tensor, float value)
{
    float *values = tandem_tensor_data(tensor);
    for (int64_t i = 0; i < tandem_tensor_elements(tensor); i++) {
        values[i] = value;
    }
}

/* Each weight is subnormal, each product is not: K values of 2^-140 times 2^120. */
static void set_up(void)
{
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
    fill(w, 0x1p-140f);
    fill(x, 0x1p120f);
    y = tandem_mul_mat(context, w, x);
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
}

static void tear_down(void)
{
    tandem_context_free(context);
}

/* All values of the result, which must be the same. */
static float result_of(tandem_runtime *runtime, uint32_t execution)
{
    fill(y, -1.0F);
    tandem_runtime_set_execution(runtime, execution);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    const float *values = tandem_tensor_data(y);
    for (int i = 1; i < N * M; i++) {
        CU_ASSERT(values[i] == values[0]);
    }
    return values[0];
}

static tandem_runtime *open_with(int n_threads, const char *profile)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = n_threads;
    options.table_path = "";
    tandem_runtime *runtime = NULL;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_ok(tandem_runtime_force_profile(runtime, profile, NULL));
    return runtime;
}

static void subnormal_floats_are_zero_unless_they_are_asked_for(void)
{
    const float exact = (float)K * 0x1p-20F;
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
        tandem_runtime *runtime = open_with(threads, "cpu");
        CU_ASSERT(result_of(runtime, TANDEM_EXECUTE_DEFAULT) == 0.0F);
        CU_ASSERT(result_of(runtime, TANDEM_EXECUTE_DEFAULT | TANDEM_EXECUTE_SUBNORMALS) == exact);
        CU_ASSERT(result_of(runtime, 0) == 0.0F);
        tandem_runtime_close(runtime);
    }
}

static void the_callers_own_floating_point_state_is_restored(void)
{
    tandem_runtime *runtime = open_with(MAX_THREADS, "cpu");
    volatile float tiny = 0x1p-126F;
    check_int(fesetround(FE_UPWARD), 0);
    (void)result_of(runtime, TANDEM_EXECUTE_DEFAULT);
    check_int(fegetround(), FE_UPWARD);
    check_int(fesetround(FE_TONEAREST), 0);
    CU_ASSERT(tiny / 4.0F > 0.0F); /* subnormal floats are there for the caller */
    tandem_runtime_close(runtime);
}

static CU_TestInfo tests[] = {
    {"subnormal_floats_are_zero_unless_they_are_asked_for",
     subnormal_floats_are_zero_unless_they_are_asked_for},
    {"the_callers_own_floating_point_state_is_restored",
     the_callers_own_floating_point_state_is_restored},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_floats[];
CU_SuiteInfo suites_runtime_floats[] = {
    {"floats", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
