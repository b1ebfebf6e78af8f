/* SPDX-License-Identifier: MIT
 * Products of BF16 weights and activations that are rounded to BF16: against the double-precision
 * reference of the same rounded numbers, within the bound of such products against that of the
 * unrounded ones, with the same bits however the work is shared out. */
#include <CUnit/CUnit.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/packing/packed_weights.h"
#include "base/cpu.h"
#include "base/half.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_mul.h"
#include "tests/support.h"
#include "tune/policy.h"

static struct tnd_cpu_kernels kernels;

static bool has_kernels(void)
{
    tnd_cpu_kernels_for(tnd_cpu_features_all(), &kernels);
    if (kernels.packed_bf16.multiply == NULL) {
        tnd_skip("products of BF16 need AVX-512 with BF16");
    }
    return kernels.packed_bf16.multiply != NULL;
}

/* ---- rounding ---- */

/* As VCVTNEPS2BF16 rounds, but for what is finite and would not stay so. */
static uint16_t rounded(float x)
{
    const float most = tnd_bf16_to_f32(0x7f7f);
    const bool is_finite = fabsf(x) <= FLT_MAX;
    if (fabsf(x) < FLT_MIN) {
        return signbit(x) ? 0x8000 : 0;
    }
    return tnd_f32_to_bf16(is_finite ? fmaxf(fminf(x, most), -most) : x);
}

static void activations_are_rounded_to_the_nearest_and_stay_finite(void)
{
    static const float special[] = {0.0f,      -0.0f,       FLT_MIN,     FLT_MIN / 3, -FLT_MIN / 3,
                                    FLT_MAX,   -FLT_MAX,    INFINITY,    -INFINITY,   3.39e38f,
                                    -3.4e38f,  1.00390625f, 1.01171875f, /* ties */
                                    0x1p-149f, 1.003906369f};
    enum { SPECIAL = sizeof(special) / sizeof(special[0]), N = 4099 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    static float x[N];
    if (!has_kernels()) {
        return;
    }
    for (int i = 0; i < N; i++) { /* numbers of all sizes */
        const uint32_t bits = (uint32_t)tnd_test_rng_next(&rng);
        x[i] = i < SPECIAL ? special[i] : tnd_f32_from_bits(bits);
    }
    for (int n = 0; n <= N; n = n < 40 ? n + 1 : n * 3 + 7) {
        uint16_t *y = tnd_guarded_alloc((size_t)n * sizeof(uint16_t), 2);
        kernels.packed_bf16.round(x, n, y);
        for (int i = 0; i < n; i++) {
            if (isnan(x[i])) {
                CU_ASSERT_TRUE(isnan(tnd_bf16_to_f32(y[i])));
            } else {
                check_int(y[i], rounded(x[i]));
            }
        }
        tnd_guarded_free(y);
    }
}

/* ---- products ---- */

/* Runs a product, with a packed copy if there is one, by some workers, in some row ranges. */
static void compute(struct tnd_test_mul *p, int workers, int splits)
{
    tnd_test_mul_compute(&kernels, p, TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_BF16, workers, splits);
}

static struct tnd_packed_weights *pack(struct tnd_test_mul *p)
{
    static const struct tnd_packed_options unlimited = {.limit_bytes = SIZE_MAX};
    struct tnd_packed_weights *weights = NULL;
    struct tnd_packed_weight *packed = NULL;
    p->node->src[0]->flags |= TND_TENSOR_CONSTANT;
    check_ok(tnd_packed_weights_new(&unlimited, &weights, NULL));
    check_ok(tnd_packed_weights_add(weights, p->node->src[0], &packed, NULL));
    p->packed = packed;
    return weights;
}

/* The reference of what the kernels are given. */
static double *reference_of_rounded(struct tnd_test_mul *p)
{
    float *x = p->x;
    const size_t bytes = (size_t)(p->m * p->k) * sizeof(float);
    float *before = malloc(bytes + 1);
    memcpy(before, x, bytes);
    for (int64_t i = 0; i < p->m * p->k; i++) {
        x[i] = tnd_bf16_to_f32(rounded(x[i]));
    }
    double *want = tnd_test_mul_reference(p);
    memcpy(x, before, bytes);
    free(before);
    return want;
}

static void check_product(int64_t n, int64_t m, int64_t k, enum tnd_test_pattern pattern)
{
    struct tnd_test_mul p;
    tnd_test_mul_open(&p, TANDEM_TYPE_BF16, n, m, k, pattern);
    struct tnd_packed_weights *weights = pack(&p);
    struct tnd_packed_weight *packed = p.packed;
    double *want = reference_of_rounded(&p);
    double *exact = tnd_test_mul_reference(&p);
    const size_t bytes = (size_t)(n * m) * sizeof(float);
    float *first = malloc(bytes);
    compute(&p, 1, 1);
    memcpy(first, p.y, bytes);
    check_nmse_double(p.y, want, n * m, 1e-12, p.name);
    check_nmse_double(p.y, exact, n * m, TND_CHECK_NMSE_BF16, p.name);
    for (int i = 0; i < 12; i++) {
        p.packed = i < 6 ? packed : NULL; /* without a copy the rows serve */
        memset(p.y, 0x7f, bytes);
        compute(&p, 1 + i % 3, 1 + i % 2);
        check_bits(p.y, first, bytes, p.name);
    }
    free(first);
    free(want);
    free(exact);
    tnd_packed_weights_free(weights);
    tnd_test_mul_close(&p);
}

static void products_are_those_of_the_rounded_activations(void)
{
    static const int64_t tokens[] = {1, 2, 3, 7, 11, 12, 13, 25, 49, 175};
    static const int64_t depths[] = {1, 2, 3, 31, 64, 255, 256, 257, 513, 1000};
    if (!has_kernels()) {
        return;
    }
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 10; j++) {
            const int64_t n = 1 + (i * 13 + j * 29) % 100;
            check_product(n, tokens[i], depths[j],
                          (i + j) % 2 == 0 ? TND_TEST_RANDOM : TND_TEST_OUTLIERS);
        }
        check_product(50, tokens[i], 300, TND_TEST_CONSTANT_ROWS);
        check_product(50, tokens[i], 300, TND_TEST_ZEROS);
        check_product(50, tokens[i], 300, TND_TEST_LARGE);
        check_product(50, tokens[i], 300, TND_TEST_ALTERNATING);
    }
}

/* What is no number, or too small for one, stays within its token. */
static void odd_numbers_reach_no_other_token(void)
{
    struct tnd_test_mul p;
    if (!has_kernels()) {
        return;
    }
    tnd_test_mul_open(&p, TANDEM_TYPE_BF16, 40, 6, 77, TND_TEST_RANDOM);
    struct tnd_packed_weights *weights = pack(&p);
    float *x = p.x;
    const float *y = p.y;
    x[0 * 77 + 76] = NAN;
    x[1 * 77 + 3] = 3.4e38f; /* rounds to a finite number */
    for (int i = 0; i < 77; i++) {
        x[2 * 77 + i] = 0x1p-140f;
    }
    x[3 * 77 + 9] = INFINITY;
    double *want = reference_of_rounded(&p);
    compute(&p, 2, 1);
    for (int r = 0; r < 40; r++) {
        CU_ASSERT_TRUE(isnan(y[r]));
        CU_ASSERT_TRUE(isfinite(y[40 + r]));
        CU_ASSERT_TRUE(y[80 + r] == 0.0f);
        CU_ASSERT_TRUE(isinf(y[120 + r]) || isnan(y[120 + r]));
    }
    check_nmse_double(y + 160, want + 160, 80, 1e-12, "beside odd numbers");
    free(want);
    tnd_packed_weights_free(weights);
    tnd_test_mul_close(&p);
}

static void other_weights_and_cpus_are_refused(void)
{
    struct tnd_test_mul p;
    struct tandem_error error = {0};
    struct tnd_cpu_kernels plain;
    tnd_cpu_kernels_for(0, &plain);
    tnd_test_mul_open(&p, TANDEM_TYPE_BF16, 4, 1, 32, TND_TEST_RANDOM);
    check_status(tnd_cpu_mul_mat_supports(&plain, p.node, TANDEM_TASK_MUL_MAT_BF16, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "no BF16 product", &error);
    tnd_test_mul_close(&p);
    if (!has_kernels()) {
        return;
    }
    tnd_test_mul_open(&p, TANDEM_TYPE_F16, 4, 1, 32, TND_TEST_RANDOM);
    check_status(tnd_cpu_mul_mat_supports(&kernels, p.node, TANDEM_TASK_MUL_MAT_BF16, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "not BF16", &error);
    tnd_test_mul_close(&p);
}

CU_TestInfo tnd_tests_bf16[] = {
    {"activations_are_rounded_to_the_nearest_and_stay_finite",
     activations_are_rounded_to_the_nearest_and_stay_finite},
    {"products_are_those_of_the_rounded_activations",
     products_are_those_of_the_rounded_activations},
    {"odd_numbers_reach_no_other_token", odd_numbers_reach_no_other_token},
    {"other_weights_and_cpus_are_refused", other_weights_and_cpus_are_refused},
    CU_TEST_INFO_NULL,
};
