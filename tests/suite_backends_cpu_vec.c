/* SPDX-License-Identifier: MIT
 * Row kernels of every instruction set of this machine against the plain ones: every length up to a
 * few vectors, between guard pages, hard values, all 16-bit floats, the error of the
 * exponential. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/rng.h"
#include "tests/suite_backends_cpu_cases.h"

enum { N_LEVELS = 4, LONGEST = 70 };

/* The kernels of one level; false when this machine lacks it. */
static bool all_kernels_of(int level, struct tnd_cpu_kernels *out)
{
    static const char *const names[N_LEVELS] = {"scalar", "avx2", "avx512", "neon"};
    tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features_all(), names[level]), out);
    return strcmp(out->vec.isa, names[level]) == 0;
}

static bool kernels_of(int level, struct tnd_vec *out)
{
    struct tnd_cpu_kernels kernels;
    bool is_there = all_kernels_of(level, &kernels);
    *out = kernels.vec;
    return is_there;
}

/* Steps of the floating-point grid between two values of one sign; NaNs are equal to each other. */
static int64_t units_apart(float a, float b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b) ? 0 : INT64_MAX;
    }
    if (a == b) {
        return 0;
    }
    if ((a < 0) != (b < 0)) {
        return INT64_MAX;
    }
    return llabs((int64_t)tnd_f32_bits(a) - (int64_t)tnd_f32_bits(b));
}

static const float hard_values[] = {
    0.0f,    -0.0f,    1.0f,   -1.0f,   INFINITY,  -INFINITY, NAN,      88.7f,
    88.8f,   -87.4f,   -88.0f, -103.9f, -104.1f,   -1000.0f,  1e30f,    -1e30f,
    3.4e38f, -3.4e38f, 1e-40f, -1e-40f, 0x1p-149f, 65504.0f,  65520.0f, 0.5f,
};
enum { N_HARD = sizeof(hard_values) / sizeof(hard_values[0]) };

/* ---- the exponential ---- */

static double exp_error(const struct tnd_vec *vec, const float *x, int n)
{
    float y[256];
    double worst = 0;
    vec->exp(x, y, n);
    for (int i = 0; i < n; i++) {
        double want = exp((double)x[i]);
        if (want > 3.4028235677973366e38) { /* rounds to infinity */
            worst = isinf(y[i]) ? worst : HUGE_VAL;
            continue;
        }
        int exponent;
        frexp(want, &exponent);
        double unit = ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
        double error = fabs((double)y[i] - want) / unit;
        worst = error > worst ? error : worst;
    }
    return worst;
}

void tnd_cpu_exp_is_right_to_two_units(void)
{
    struct tnd_rng rng;
    float x[256];
    struct tnd_vec vec;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int level = 0; level < N_LEVELS; level++) {
        if (!kernels_of(level, &vec)) {
            continue;
        }
        double worst = 0;
        for (int round = 0; round < 2000 * tnd_effort(); round++) {
            for (int i = 0; i < 256; i++) {
                /* the whole range, and densely around 0 */
                x[i] = (tnd_rng_float(&rng) * 2 - 1) * (i % 2 == 0 ? 106.0f : 1.5f);
            }
            double error = exp_error(&vec, x, 256);
            worst = error > worst ? error : worst;
        }
        CU_ASSERT_TRUE(worst <= 2);
        if (worst > 2) {
            printf("\n    exp of %s: %.2f units\n", vec.isa, worst);
        }
    }
}

/* ---- functions of one value ---- */

static int compare_unary(tnd_vec_unary_fn *got, tnd_vec_unary_fn *want, const float *x, int n,
                         int64_t units)
{
    float *y = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
    float expected[LONGEST];
    int wrong = 0;
    got(x, y, n);
    want(x, expected, n);
    for (int i = 0; i < n; i++) {
        wrong += units_apart(y[i], expected[i]) > units;
    }
    tnd_guarded_free(y);
    return wrong;
}

/* Far below 0 its values have few right digits. */
static int compare_gelu_erf(const struct tnd_vec *vec, const struct tnd_vec *plain, const float *x,
                            int n)
{
    float got[LONGEST], want[LONGEST];
    int wrong = 0;
    vec->unary[TANDEM_OP_GELU_ERF](x, got, n);
    plain->unary[TANDEM_OP_GELU_ERF](x, want, n);
    for (int i = 0; i < n; i++) {
        const bool is_near = fabsf(got[i] - want[i]) <= 2e-7f * fabsf(x[i]);
        wrong += !is_near && got[i] != want[i] && !(isnan(got[i]) && isnan(want[i]));
    }
    return wrong;
}

static int compare_clamp(const struct tnd_vec *vec, const struct tnd_vec *plain, const float *x,
                         int n)
{
    static const float bounds[][2] = {{-1, 2}, {0, 0}, {-INFINITY, 0.5f}, {-INFINITY, INFINITY}};
    float *y = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
    float expected[LONGEST];
    int wrong = 0;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        vec->clamp(x, bounds[i][0], bounds[i][1], y, n);
        plain->clamp(x, bounds[i][0], bounds[i][1], expected, n);
        wrong += memcmp(y, expected, (size_t)n * sizeof(float)) != 0;
    }
    tnd_guarded_free(y);
    return wrong;
}

/* x ends at a page that cannot be read. */
static int compare_all_unary(const struct tnd_vec *vec, const struct tnd_vec *plain, const float *x,
                             int n)
{
    return compare_unary(vec->unary[TANDEM_OP_SQR], plain->unary[TANDEM_OP_SQR], x, n, 0) +
           compare_unary(vec->unary[TANDEM_OP_SQRT], plain->unary[TANDEM_OP_SQRT], x, n, 0) +
           compare_unary(vec->unary[TANDEM_OP_RELU], plain->unary[TANDEM_OP_RELU], x, n, 0) +
           compare_unary(vec->exp, plain->exp, x, n, 2) +
           compare_unary(vec->unary[TANDEM_OP_SILU], plain->unary[TANDEM_OP_SILU], x, n, 4) +
           compare_unary(vec->unary[TANDEM_OP_SIGMOID], plain->unary[TANDEM_OP_SIGMOID], x, n, 4) +
           compare_unary(vec->unary[TANDEM_OP_TANH], plain->unary[TANDEM_OP_TANH], x, n, 4) +
           compare_unary(vec->unary[TANDEM_OP_GELU], plain->unary[TANDEM_OP_GELU], x, n, 4) +
           compare_gelu_erf(vec, plain, x, n) + compare_clamp(vec, plain, x, n);
}

void tnd_cpu_functions_agree_on_all_lengths_and_hard_values(void)
{
    struct tnd_rng rng;
    struct tnd_vec plain, vec;
    tnd_rng_init(&rng, tnd_test_seed());
    (void)kernels_of(0, &plain);
    for (int level = 1; level < N_LEVELS; level++) {
        int wrong = 0;
        if (!kernels_of(level, &vec)) {
            continue;
        }
        for (int n = 0; n <= LONGEST; n++) {
            float *x = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
            for (int i = 0; i < n; i++) {
                x[i] = tnd_rng_normal(&rng) * 3;
            }
            wrong += compare_all_unary(&vec, &plain, x, n);
            for (int i = 0; i < n; i++) {
                x[i] = hard_values[(i + n) % N_HARD];
            }
            wrong += compare_all_unary(&vec, &plain, x, n);
            tnd_guarded_free(x);
        }
        check_int(wrong, 0);
    }
}

/* ---- two operands, sums, soft_max, rope ---- */

static int compare_rows(const struct tnd_vec *vec, const struct tnd_vec *plain, const float *a,
                        const float *b, int n)
{
    tnd_vec_binary_fn *const got[] = {vec->binary[TANDEM_OP_ADD], vec->binary[TANDEM_OP_SUB],
                                      vec->binary[TANDEM_OP_MUL], vec->binary[TANDEM_OP_DIV]};
    tnd_vec_binary_fn *const want[] = {plain->binary[TANDEM_OP_ADD], plain->binary[TANDEM_OP_SUB],
                                       plain->binary[TANDEM_OP_MUL], plain->binary[TANDEM_OP_DIV]};
    float *y = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
    float expected[LONGEST];
    int wrong = 0;
    for (int i = 0; i < 4; i++) {
        got[i](a, b, y, n);
        want[i](a, b, expected, n);
        wrong += memcmp(y, expected, (size_t)n * sizeof(float)) != 0;
    }
    vec->affine(a, 0.25f, 3.0f, y, n);
    plain->affine(a, 0.25f, 3.0f, expected, n);
    wrong += memcmp(y, expected, (size_t)n * sizeof(float)) != 0;
    wrong += vec->scores(a, b, 0.5f, y, n) != plain->scores(a, b, 0.5f, expected, n);
    wrong += memcmp(y, expected, (size_t)n * sizeof(float)) != 0;
    double sum = vec->exp_sum(y, 1.0f, n);
    wrong += fabs(sum - plain->exp_sum(expected, 1.0f, n)) > 1e-5 * sum;
    wrong += fabs(vec->sum(a, n) - plain->sum(a, n)) > 1e-5 * (n + 1);
    wrong += fabs(vec->sum_squares(a, 0.5f, n) - plain->sum_squares(a, 0.5f, n)) > 1e-5 * (n + 1);
    vec->rope_adjacent(a, b, b, y, n / 2 * 2);
    plain->rope_adjacent(a, b, b, expected, n / 2 * 2);
    wrong += memcmp(y, expected, (size_t)(n / 2 * 2) * sizeof(float)) != 0;
    vec->rope_halves(a, b, b + n / 2, y, n / 2);
    plain->rope_halves(a, b, b + n / 2, expected, n / 2);
    wrong += memcmp(y, expected, (size_t)(n / 2 * 2) * sizeof(float)) != 0;
    const int half = n / 2;
    memset(y, 0, (size_t)half * sizeof(float));
    memset(expected, 0, (size_t)half * sizeof(float));
    vec->add_rows(b, a, half, y, n >= 2 ? 2 : 0, half);
    plain->add_rows(b, a, half, expected, n >= 2 ? 2 : 0, half);
    for (int i = 0; i < half; i++) {
        wrong += fabsf(y[i] - expected[i]) > 1e-6f;
    }
    tnd_guarded_free(y);
    return wrong;
}

void tnd_cpu_row_kernels_agree_on_all_lengths(void)
{
    struct tnd_rng rng;
    struct tnd_vec plain, vec;
    tnd_rng_init(&rng, tnd_test_seed());
    (void)kernels_of(0, &plain);
    for (int level = 1; level < N_LEVELS; level++) {
        int wrong = 0;
        if (!kernels_of(level, &vec)) {
            continue;
        }
        for (int n = 0; n <= LONGEST; n++) {
            float *a = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
            float *b = tnd_guarded_alloc((size_t)n * sizeof(float), 4);
            for (int i = 0; i < n; i++) {
                a[i] = tnd_rng_float(&rng) - 0.5f;
                b[i] = tnd_rng_float(&rng) + 0.5f;
            }
            wrong += compare_rows(&vec, &plain, a, b, n);
            tnd_guarded_free(a);
            tnd_guarded_free(b);
        }
        check_int(wrong, 0);
    }
}

void tnd_cpu_values_do_not_depend_on_their_place_in_a_row(void)
{
    struct tnd_rng rng;
    struct tnd_vec vec;
    float x[LONGEST], whole[LONGEST], one;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < LONGEST; i++) {
        x[i] = tnd_rng_normal(&rng) * 5;
    }
    for (int level = 0; level < N_LEVELS; level++) {
        int wrong = 0;
        if (!kernels_of(level, &vec)) {
            continue;
        }
        tnd_vec_unary_fn *const functions[] = {vec.unary[TANDEM_OP_SILU], vec.unary[TANDEM_OP_GELU],
                                               vec.exp};
        for (int f = 0; f < 3; f++) {
            functions[f](x, whole, LONGEST);
            for (int i = 0; i < LONGEST; i++) {
                functions[f](x + i, &one, 1);
                wrong += tnd_f32_bits(one) != tnd_f32_bits(whole[i]);
            }
        }
        check_int(wrong, 0);
    }
}

/* ---- 16-bit floats ---- */

void tnd_cpu_sixteen_bit_floats_convert_like_the_plain_ones(void)
{
    enum { N = 4099 };
    static uint16_t halves[65536], got[N];
    static float floats[65536], x[N];
    struct tnd_rng rng;
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        int wrong = 0;
        if (!all_kernels_of(level, &kernels)) {
            continue;
        }
        for (int i = 0; i < 65536; i++) {
            halves[i] = (uint16_t)i;
        }
        kernels.dequantize[TANDEM_TYPE_F16](halves, floats, 65536);
        for (int i = 0; i < 65536; i++) {
            wrong += tnd_f32_bits(floats[i]) != tnd_f32_bits(tnd_f16_to_f32(halves[i]));
        }
        kernels.dequantize[TANDEM_TYPE_BF16](halves, floats, 65536);
        for (int i = 0; i < 65536; i++) {
            wrong += tnd_f32_bits(floats[i]) != tnd_f32_bits(tnd_bf16_to_f32(halves[i]));
        }
        tnd_rng_init(&rng, tnd_test_seed());
        for (int round = 0; round < 100; round++) {
            for (int i = 0; i < N; i++) {
                uint32_t bits = (uint32_t)tnd_rng_u64(&rng);
                /* half of them in the range of halves, a quarter of those ties */
                if (i % 2 == 0) {
                    bits = (bits & 0x8fffffffu) | 0x30000000u;
                    bits = i % 8 == 0 ? (bits & ~0x1fffu) | 0x1000u : bits;
                }
                x[i] = tnd_f32_from_bits(bits);
            }
            kernels.quantize[TANDEM_TYPE_F16](x, got, N);
            for (int i = 0; i < N; i++) {
                wrong += got[i] != tnd_f32_to_f16(x[i]);
            }
            kernels.quantize[TANDEM_TYPE_BF16](x, got, N);
            for (int i = 0; i < N; i++) {
                wrong += got[i] != tnd_f32_to_bf16(x[i]);
            }
        }
        check_int(wrong, 0);
    }
}
