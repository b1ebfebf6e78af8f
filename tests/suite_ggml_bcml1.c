/* SPDX-License-Identifier: MIT
 * BCML1: where its bits lie, that least squares never loses against rounding between the smallest
 * and the largest value (Q4_1), what it gains, and that all instruction sets give the same bits. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/half.h"
#include "ggml-like/quant_bcml1.h"
#include "ggml-like/tnd_type.h"
#include "tests/support.h"

enum { VALUES = 32, BYTES = 20 };

/* ---- blocks to compress ---- */

/* Normal with variance 1 (sum of twelve uniform values). */
static float normal(struct tnd_test_rng *rng)
{
    float sum = 0;
    for (int i = 0; i < 12; i++) {
        sum += 0.5f * tnd_test_rng_float(rng);
    }
    return sum;
}

enum kind {
    NORMAL,
    UNIFORM,
    CONSTANT,
    TWO_VALUES,
    OUTLIER,
    NARROW_FAR_FROM_ZERO,
    NEXT_TO_EACH_OTHER,
    TINY,
    SMALLER_THAN_HALVES,
    NEAR_THE_LARGEST_HALF,
    LARGER_THAN_HALVES,
    SPREAD_BY_POWERS,
    RAMP,
    NO_NUMBERS,
    N_KINDS
};
static const char *const kind_names[] = {"normal",
                                         "uniform",
                                         "constant",
                                         "two values",
                                         "outlier",
                                         "narrow, far from zero",
                                         "next to each other",
                                         "tiny",
                                         "smaller than halves",
                                         "near the largest half",
                                         "larger than halves",
                                         "spread by powers",
                                         "ramp",
                                         "no numbers"};

/* One value of a block; `base` is the same for all of the block. */
static float value_of(enum kind kind, int i, float base, struct tnd_test_rng *rng)
{
    const float u = tnd_test_rng_float(rng);
    switch (kind) {
    case NORMAL:
        return 0.03f * normal(rng);
    case UNIFORM:
        return u;
    case CONSTANT:
        return 7.0f * base;
    case TWO_VALUES:
        return u < 0 ? base : -0.3f;
    case OUTLIER:
        return i == 17 ? 300.0f * base : 0.1f * u;
    case NARROW_FAR_FROM_ZERO:
        return 100.0f * base + 0.01f * u;
    case NEXT_TO_EACH_OTHER:
        return nextafterf(base, u < 0 ? 9.0f : -9.0f);
    case TINY:
        return 3e-6f * u;
    case SMALLER_THAN_HALVES:
        return 1e-9f * u;
    case NEAR_THE_LARGEST_HALF:
        return 65519.0f * u;
    case LARGER_THAN_HALVES:
        return 1e30f * u * u * u;
    case SPREAD_BY_POWERS:
        return copysignf(exp2f(24.0f * base * fabsf(u) - 10.0f), u);
    case RAMP:
        return base * (float)i;
    default: {
        const float odd[] = {NAN, -NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-45f, 0.0f};
        return fabsf(u) < 0.1f ? odd[(int)(fabsf(u) * 80.0f)] : base;
    }
    }
}

static void fill_block(enum kind kind, struct tnd_test_rng *rng, float *x)
{
    const float base = tnd_test_rng_float(rng);
    for (int i = 0; i < VALUES; i++) {
        x[i] = value_of(kind, i, base, rng);
    }
}

/* Sum of the squared differences between values and what their blocks decode to. */
static double squared_error(enum tandem_type type, const void *blocks, const float *x, int64_t n)
{
    float y[VALUES];
    double sum = 0;
    for (int64_t b = 0; b < n / VALUES; b++) {
        check_ok(tandem_dequantize(type, (const char *)blocks + b * BYTES, y, VALUES));
        for (int i = 0; i < VALUES; i++) {
            double difference = (double)y[i] - (double)x[b * VALUES + i];
            sum += difference * difference;
        }
    }
    return sum;
}

/* ---- tests ---- */

static void bits_lie_where_the_documents_say(void)
{
    unsigned char block[BYTES];
    const uint16_t multiplier = tnd_f32_to_f16(0.5f);
    const uint16_t offset = tnd_f32_to_f16(-3.0f);
    float y[VALUES];
    memcpy(block, &multiplier, 2);
    memcpy(block + 2, &offset, 2);
    for (int i = 0; i < 16; i++) { /* value 2 i is low, 2 i + 1 high */
        block[4 + i] = (unsigned char)(i | (15 - i) << 4);
    }
    check_int(tandem_type_block_values(TANDEM_TYPE_BCML1), VALUES);
    check_int(tandem_type_block_bytes(TANDEM_TYPE_BCML1), BYTES);
    check_ok(tandem_dequantize(TANDEM_TYPE_BCML1, block, y, VALUES));
    for (int i = 0; i < VALUES; i++) {
        const int q = i % 2 == 0 ? i / 2 : 15 - i / 2;
        CU_ASSERT_EQUAL(y[i], (float)q * 0.5f - 3.0f);
    }
    /* values on such a line come back exactly, from the same block */
    unsigned char again[BYTES];
    check_ok(tandem_quantize(TANDEM_TYPE_BCML1, y, again, VALUES));
    check_bits(again, block, BYTES, "values on a line");
}

static void least_squares_is_never_worse_than_plain_rounding(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const int rounds = tnd_effort() > 1 ? 2000 : 200;
    for (int kind = 0; kind < N_KINDS; kind++) {
        int worse = 0;
        for (int round = 0; round < rounds; round++) {
            float x[VALUES];
            unsigned char plain[BYTES];
            unsigned char fitted[BYTES];
            fill_block((enum kind)kind, &rng, x);
            check_ok(tandem_quantize(TANDEM_TYPE_Q4_1, x, plain, VALUES));
            check_ok(tandem_quantize(TANDEM_TYPE_BCML1, x, fitted, VALUES));
            double before = squared_error(TANDEM_TYPE_Q4_1, plain, x, VALUES);
            double after = squared_error(TANDEM_TYPE_BCML1, fitted, x, VALUES);
            /* rounding of these two sums themselves; no number: the halves have none for it */
            worse += after > before * (1 + 1e-12) || (isnan(after) && !isnan(before));
        }
        if (!check_int(worse, 0)) {
            printf("    %s\n", kind_names[kind]);
        }
    }
}

static void every_instruction_set_gives_the_same_bits(void)
{
#if defined(__x86_64__)
    if ((tnd_cpu_features_all() & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        const int rounds = tnd_effort() > 1 ? 1000 : 100;
        for (int kind = 0; kind < N_KINDS; kind++) {
            for (int round = 0; round < rounds; round++) {
                float x[3 * VALUES];
                unsigned char scalar[3 * BYTES];
                unsigned char fast[3 * BYTES];
                for (int b = 0; b < 3; b++) {
                    fill_block((enum kind)kind, &rng, x + b * VALUES);
                }
                tnd_quantize_bcml1_scalar(x, scalar, 3 * VALUES);
                tnd_quantize_bcml1_avx2(x, fast, 3 * VALUES);
                if (!check_bits(fast, scalar, sizeof(fast), kind_names[kind])) {
                    return;
                }
            }
        }
    }
#endif
}

static void blocks_do_not_depend_on_their_neighbours(void)
{
    enum { BLOCKS = 5 };
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    float x[BLOCKS * VALUES];
    unsigned char together[BLOCKS * BYTES];
    unsigned char alone[BLOCKS * BYTES];
    for (int b = 0; b < BLOCKS; b++) {
        fill_block((enum kind)b, &rng, x + b * VALUES);
        check_ok(tandem_quantize(TANDEM_TYPE_BCML1, x + b * VALUES, alone + b * BYTES, VALUES));
    }
    check_ok(tandem_quantize(TANDEM_TYPE_BCML1, x, together, BLOCKS * VALUES));
    check_bits(together, alone, sizeof(alone), "blocks");
}

/* RMS error of BCML1 over that of Q4_1, at most `limit`; docs/formats.md has the figures. */
static void check_gain(const char *name, const float *x, int64_t n, double limit)
{
    unsigned char *blocks = malloc((size_t)(n / VALUES * BYTES));
    check_ok(tandem_quantize(TANDEM_TYPE_Q4_1, x, blocks, n));
    double plain = squared_error(TANDEM_TYPE_Q4_1, blocks, x, n);
    check_ok(tandem_quantize(TANDEM_TYPE_BCML1, x, blocks, n));
    double fitted = squared_error(TANDEM_TYPE_BCML1, blocks, x, n);
    double ratio = sqrt(fitted / plain);
    double power = 0;
    for (int64_t i = 0; i < n; i++) {
        power += (double)x[i] * (double)x[i];
    }
    if (getenv("TANDEM_TEST_VERBOSE") != NULL || !(ratio <= limit)) {
        printf("\n    %s: RMS error %.5f of the values' RMS, plain %.5f, ratio %.4f", name,
               sqrt(fitted / power), sqrt(plain / power), ratio);
    }
    CU_ASSERT_TRUE(ratio <= limit);
    free(blocks);
}

static void least_squares_gains_a_tenth(void)
{
    const int64_t n = 32 * 4096;
    const size_t header = 7 * sizeof(int32_t);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    float *x = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        x[i] = normal(&rng);
    }
    check_gain("normal", x, n, 0.895);
    tnd_test_fill(&rng, x, n);
    check_gain("uniform", x, n, 0.885);
    const char *path = tnd_test_data("llama/stories260K.bin");
    size_t bytes = 0;
    char *checkpoint = path != NULL ? tnd_test_read_file(path, &bytes) : NULL;
    if (checkpoint != NULL && bytes > header + (size_t)n * sizeof(float)) {
        memcpy(x, checkpoint + header, (size_t)n * sizeof(float)); /* embedding, norms, wq, ... */
        check_gain("stories260K", x, n, tnd_test_stands_in("llama") ? 0.89 : 0.885);
    }
    free(checkpoint);
    free(x);
}

static CU_TestInfo bcml1_tests[] = {
    {"bits_lie_where_the_documents_say", bits_lie_where_the_documents_say},
    {"least_squares_is_never_worse_than_plain_rounding",
     least_squares_is_never_worse_than_plain_rounding},
    {"every_instruction_set_gives_the_same_bits", every_instruction_set_gives_the_same_bits},
    {"blocks_do_not_depend_on_their_neighbours", blocks_do_not_depend_on_their_neighbours},
    {"least_squares_gains_a_tenth", least_squares_gains_a_tenth},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_bcml1[] = {
    {"bcml1", NULL, NULL, NULL, NULL, bcml1_tests},
    CU_SUITE_INFO_NULL,
};
