/* SPDX-License-Identifier: MIT
 * The inner loops of convolutions, of every instruction set that this machine has: sums of tiles of
 * every size, and what follows them. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "graph/conv_tile.h"
#include "graph/net_kernels.h"
#include "tests/support.h"

enum { TAPS = 3, RUN = 5, GUARD = 8, PLACES = TND_CONV_PIXELS, FILTERS = TND_CONV_FILTERS };

static int find_kernels(const struct tnd_conv_kernel **out)
{
    int n = 0;
    out[n++] = &tnd_conv_scalar;
#if defined(__x86_64__)
    const uint32_t features = tnd_cpu_features();
    if ((features & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        out[n++] = &tnd_conv_avx2;
    }
    if ((features & TND_CPU_SET_AVX512) == TND_CPU_SET_AVX512) {
        out[n++] = &tnd_conv_avx512;
    }
#endif
    return n;
}

static void check_sums(const struct tnd_conv_kernel *kernel, int places)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)places);
    float x[TAPS * PLACES * RUN];
    float w[TAPS * RUN * FILTERS];
    float y[PLACES * FILTERS + GUARD];
    const float *rows[TAPS * PLACES];
    const struct tnd_conv_tile tile = {.rows = rows, .n_taps = TAPS, .run = RUN, .w = w, .y = y};
    tnd_test_fill(&rng, x, TAPS * PLACES * RUN);
    tnd_test_fill(&rng, w, TAPS * RUN * FILTERS);
    for (int i = 0; i < TAPS * places; i++) {
        rows[i] = x + (TAPS * places - 1 - i) * RUN; /* (anywhere) */
    }
    for (int i = 0; i < PLACES * FILTERS + GUARD; i++) {
        y[i] = -77;
    }
    kernel->run[places - 1](&tile);
    bool is_right = true;
    for (int i = 0; i < places * kernel->filters; i++) {
        double sum = 0;
        for (int k = 0; k < TAPS * RUN; k++) {
            sum += (double)rows[k / RUN * places + i / kernel->filters][k % RUN] *
                   (double)w[k * kernel->filters + i % kernel->filters];
        }
        is_right = is_right && fabs(sum - (double)y[i]) < 1e-5;
    }
    CU_ASSERT_TRUE(is_right);
    CU_ASSERT_EQUAL(y[places * kernel->filters], -77);
}

static void tiles_of_every_size_have_the_right_sums(void)
{
    const struct tnd_conv_kernel *kernels[3];
    for (int k = find_kernels(kernels) - 1; k >= 0; k--) {
        for (int places = 1; places <= kernels[k]->pixels; places++) {
            check_sums(kernels[k], places);
        }
    }
}

/* Values that operations treat apart, and others. */
static void fill_odd(struct tnd_test_rng *rng, float *values, int n)
{
    static const float odd[] = {NAN,   INFINITY,  -INFINITY,  0.0f,
                                -0.0f, 0x1p-149f, -0x1p-130f, 0x1p127f};
    tnd_test_fill(rng, values, n);
    for (int i = 0; i < n; i++) {
        const int64_t which = tnd_test_rng_int(rng, 0, 15);
        values[i] = which < 8 ? odd[which] : values[i];
    }
}

/* The bits but for which NaN it is. */
static bool is_same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

/* Two steps over 3 places, against the reference. */
static void check_finish(const struct tnd_conv_kernel *kernel, enum tnd_binary first,
                         enum tnd_binary second, bool is_right)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 10 * first + second);
    const int n = kernel->filters;
    float sums[3 * FILTERS];
    float bias[FILTERS];
    float more[3 * FILTERS];
    float y[3 * 50];
    const struct tnd_conv_step steps[2] = {{.kind = first, .is_right = is_right, .at = bias},
                                           {.kind = second, .at = more, .row = FILTERS}};
    const struct tnd_conv_finish finish = {.sums = sums,
                                           .stride = FILTERS,
                                           .y = y,
                                           .line = 50,
                                           .n_places = 3,
                                           .steps = steps,
                                           .n_steps = 2};
    fill_odd(&rng, sums, 3 * FILTERS);
    fill_odd(&rng, bias, FILTERS);
    fill_odd(&rng, more, 3 * FILTERS);
    for (int i = 0; i < 3 * 50; i++) {
        y[i] = -77;
    }
    kernel->finish(&finish);
    int wrong = 0;
    for (int m = 0; m < 3; m++) {
        union tnd_values in[2];
        union tnd_values between[2];
        union tnd_values out;
        memcpy(in[is_right].f32, sums + m * FILTERS, (size_t)n * sizeof(float));
        memcpy(in[!is_right].f32, bias, (size_t)n * sizeof(float));
        memcpy(between[1].f32, more + m * FILTERS, (size_t)n * sizeof(float));
        tnd_binary_strip(first, TND_LANE_F32, &in[0], &in[1], n, 0, &between[0]);
        tnd_binary_strip(second, TND_LANE_F32, &between[0], &between[1], n, 0, &out);
        for (int f = 0; f < 50; f++) {
            wrong += !is_same(y[m * 50 + f], f < n ? out.f32[f] : -77);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void what_follows_a_tile_has_the_bits_of_a_program(void)
{
    static const enum tnd_binary kinds[] = {TND_BINARY_ADD, TND_BINARY_SUB, TND_BINARY_MUL,
                                            TND_BINARY_DIV, TND_BINARY_MAX, TND_BINARY_MIN};
    const struct tnd_conv_kernel *kernels[3];
    for (int k = find_kernels(kernels) - 1; k >= 0; k--) {
        for (int i = 0; i < 6 * 6; i++) {
            check_finish(kernels[k], kinds[i / 6], kinds[i % 6], false);
            check_finish(kernels[k], kinds[i / 6], kinds[i % 6], true);
        }
    }
}

static CU_TestInfo tests_tile[] = {
    {"tiles_of_every_size_have_the_right_sums", tiles_of_every_size_have_the_right_sums},
    {"what_follows_a_tile_has_the_bits_of_a_program",
     what_follows_a_tile_has_the_bits_of_a_program},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_tile[] = {
    {"tile", NULL, NULL, NULL, NULL, tests_tile},
    CU_SUITE_INFO_NULL,
};
