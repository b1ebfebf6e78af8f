/* SPDX-License-Identifier: MIT
 * Tensor types: traits, exact decoding, encoding of reference blocks, error of the round trip,
 * hostile values. The reference vectors are those of the test data's folder quants. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_type.h"
#include "tests/support.h"

#define VALUES 4096

static const enum tandem_type all_types[] = {
#define TYPE_ROW(NAME, number, text, values, bytes) TANDEM_TYPE_##NAME,
    TANDEM_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};
enum { N_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

/* "Q4_0" for the type whose text is "q4_0". */
static void upper_name(enum tandem_type type, char *out)
{
    const char *name = tandem_type_name(type);
    size_t i = 0;
    for (; name[i] != '\0'; i++) {
        out[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    }
    out[i] = '\0';
}

/* Sum of four uniform values: near enough to normal. */
static float bell(struct tnd_test_rng *rng)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += tnd_test_rng_float(rng);
    }
    return sum;
}

static void names_lead_back_to_their_types(void)
{
    for (int i = 0; i < N_TYPES; i++) {
        enum tandem_type type = all_types[i];
        enum tandem_type found = TANDEM_TYPE_I32;
        char upper[32];
        upper_name(type, upper);
        CU_ASSERT_TRUE(tandem_type_is_valid(type));
        CU_ASSERT_TRUE(tandem_type_from_name(tandem_type_name(type), &found));
        CU_ASSERT_EQUAL(found, type);
        CU_ASSERT_TRUE(tandem_type_from_name(upper, &found));
        CU_ASSERT_EQUAL(found, type);
    }
    enum tandem_type untouched = TANDEM_TYPE_Q8_0;
    CU_ASSERT_FALSE(tandem_type_from_name("q4", &untouched));
    CU_ASSERT_FALSE(tandem_type_from_name("", &untouched));
    CU_ASSERT_FALSE(tandem_type_from_name(NULL, &untouched));
    CU_ASSERT_EQUAL(untouched, TANDEM_TYPE_Q8_0);
    CU_ASSERT_STRING_EQUAL(tandem_type_name((enum tandem_type)4), "unknown");
    CU_ASSERT_STRING_EQUAL(tandem_type_name((enum tandem_type)31), "unknown");
    CU_ASSERT_FALSE(tandem_type_is_valid((enum tandem_type)9));
}

static void row_bytes_follow_the_blocks_and_refuse_the_rest(void)
{
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_F32, 7), 28);
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_Q4_0, 64), 36);
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_Q6_K, 512), 420);
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_Q4_0, 33), 0);
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_Q4_0, -32), 0);
    CU_ASSERT_EQUAL(tandem_type_row_bytes((enum tandem_type)5, 32), 0);
    CU_ASSERT_EQUAL(tandem_type_row_bytes(TANDEM_TYPE_F32, INT64_MAX), 0);
    CU_ASSERT_TRUE(tandem_type_is_quantized(TANDEM_TYPE_Q4_0));
    CU_ASSERT_FALSE(tandem_type_is_quantized(TANDEM_TYPE_BF16));
}

static void conversions_refuse_wrong_arguments(void)
{
    float x[64] = {0};
    CU_ASSERT_EQUAL(tandem_quantize(TANDEM_TYPE_I32, x, x, 4), TANDEM_E_TYPE);
    CU_ASSERT_EQUAL(tandem_dequantize(TANDEM_TYPE_I32, x, x, 4), TANDEM_E_TYPE);
    CU_ASSERT_EQUAL(tandem_quantize(TANDEM_TYPE_Q4_0, x, x, 31), TANDEM_E_ARGUMENT);
    CU_ASSERT_EQUAL(tandem_quantize(TANDEM_TYPE_Q4_0, x, x, -32), TANDEM_E_ARGUMENT);
    CU_ASSERT_EQUAL(tandem_dequantize((enum tandem_type)77, x, x, 32), TANDEM_E_ARGUMENT);
    CU_ASSERT_EQUAL(tandem_dequantize(TANDEM_TYPE_Q4_0, NULL, x, 32), TANDEM_E_ARGUMENT);
    CU_ASSERT_EQUAL(tandem_dequantize(TANDEM_TYPE_Q4_0, NULL, NULL, 0), TANDEM_OK);
}

/* Reads quants/<TYPE>.<set>.<kind>.bin; NULL (and a skip) when it is not there. */
static void *read_vector(enum tandem_type type, const char *set, const char *kind, char *out_path,
                         size_t path_bytes, size_t *out_bytes)
{
    char upper[32];
    upper_name(type, upper);
    snprintf(out_path, path_bytes, "quants/%s.%s.%s.bin", upper, set, kind);
    const char *path = tnd_test_data(out_path);
    return path != NULL ? tnd_test_read_file(path, out_bytes) : NULL;
}

static void check_decoding(enum tandem_type type, const char *set)
{
    char path[128];
    size_t block_bytes = 0;
    size_t value_bytes = 0;
    void *blocks = read_vector(type, set, "blocks", path, sizeof(path), &block_bytes);
    float *expected = read_vector(type, set, "f32", path, sizeof(path), &value_bytes);
    if (blocks != NULL && expected != NULL) {
        int64_t n = (int64_t)(value_bytes / sizeof(float));
        float *values = malloc(value_bytes);
        check_int(tandem_type_row_bytes(type, n), block_bytes);
        check_ok(tandem_dequantize(type, blocks, values, n));
        check_bits(values, expected, value_bytes, path);
        free(values);
    }
    free(blocks);
    free(expected);
}

static const enum tandem_type legacy_types[] = {TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0,
                                                TANDEM_TYPE_Q4_1, TANDEM_TYPE_Q5_0,
                                                TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0};
static const enum tandem_type k_types[] = {TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K, TANDEM_TYPE_Q4_K,
                                           TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K};
enum {
    N_LEGACY = sizeof(legacy_types) / sizeof(legacy_types[0]),
    N_K = sizeof(k_types) / sizeof(k_types[0])
};

static void decoded_values_equal_the_reference_bit_for_bit(void)
{
    for (int i = 0; i < N_LEGACY; i++) {
        check_decoding(legacy_types[i], "rand");
        check_decoding(legacy_types[i], "tok_embd");
    }
    for (int i = 0; i < N_K; i++) {
        check_decoding(k_types[i], "rand");
    }
}

static void encoded_blocks_equal_the_reference_byte_for_byte(void)
{
    const int64_t n = 512 * 64;
    const size_t header = 7 * sizeof(int32_t);
    size_t checkpoint_bytes = 0;
    const char *checkpoint_path = tnd_test_data("llama/stories260K.bin");
    if (checkpoint_path == NULL) {
        return;
    }
    char *checkpoint = tnd_test_read_file(checkpoint_path, &checkpoint_bytes);
    if (checkpoint == NULL || checkpoint_bytes < header + (size_t)n * sizeof(float)) {
        CU_FAIL("the checkpoint is too short");
        free(checkpoint);
        return;
    }
    float *embedding = malloc((size_t)n * sizeof(float));
    memcpy(embedding, checkpoint + header, (size_t)n * sizeof(float));
    for (int i = 0; i < N_LEGACY; i++) {
        char path[128];
        size_t bytes = 0;
        void *expected =
            read_vector(legacy_types[i], "tok_embd", "blocks", path, sizeof(path), &bytes);
        if (expected != NULL && check_int(tandem_type_row_bytes(legacy_types[i], n), bytes)) {
            void *blocks = malloc(bytes);
            check_ok(tandem_quantize(legacy_types[i], embedding, blocks, n));
            check_bits(blocks, expected, bytes, path);
            free(blocks);
        }
        free(expected);
    }
    free(embedding);
    free(checkpoint);
}

/* Largest accepted normalised squared error of a round trip of bell-shaped values. */
static double error_bound(enum tandem_type type)
{
    switch (type) {
    case TANDEM_TYPE_F32:
        return 0;
    case TANDEM_TYPE_F16:
        return 1e-7;
    case TANDEM_TYPE_BF16:
        return 5e-6;
    case TANDEM_TYPE_Q8_0:
        return 5e-5;
    case TANDEM_TYPE_Q6_K:
        return 3.2e-4;
    case TANDEM_TYPE_Q5_0:
        return 2e-3;
    case TANDEM_TYPE_Q5_1:
        return 1.6e-3;
    case TANDEM_TYPE_Q5_K:
        return 1.4e-3;
    case TANDEM_TYPE_Q4_0:
        return 9e-3;
    case TANDEM_TYPE_Q4_1:
        return 7e-3;
    case TANDEM_TYPE_BCML1:
    case TANDEM_TYPE_Q4_K:
    case TANDEM_TYPE_IQ4_NL:
    case TANDEM_TYPE_IQ4_XS:
        return 5.5e-3;
    case TANDEM_TYPE_MXFP4:
        return 1.4e-2;
    case TANDEM_TYPE_Q3_K:
    case TANDEM_TYPE_IQ3_S:
        return 2.2e-2;
    case TANDEM_TYPE_IQ3_XXS:
        return 3.5e-2;
    case TANDEM_TYPE_IQ2_XS:
        return 9e-2;
    case TANDEM_TYPE_IQ2_XXS:
        return 0.12;
    case TANDEM_TYPE_IQ1_M:
    case TANDEM_TYPE_IQ1_S:
        return 0.21;
    case TANDEM_TYPE_TQ1_0: /* three levels: right for what has no more */
    case TANDEM_TYPE_TQ2_0:
        return 0.65;
    default:
        return 8e-2;
    }
}

static void round_trip_error_stays_small(void)
{
    static float x[VALUES];
    static float y[VALUES];
    static unsigned char blocks[VALUES * 4];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int i = 0; i < VALUES; i++) {
        x[i] = bell(&rng) + 0.1f;
    }
    for (int t = 0; t < N_TYPES; t++) {
        if (all_types[t] == TANDEM_TYPE_I32) {
            continue;
        }
        double error = 0;
        double power = 0;
        CU_ASSERT_EQUAL(tandem_quantize(all_types[t], x, blocks, VALUES), TANDEM_OK);
        CU_ASSERT_EQUAL(tandem_dequantize(all_types[t], blocks, y, VALUES), TANDEM_OK);
        for (int i = 0; i < VALUES; i++) {
            error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
            power += (double)x[i] * (double)x[i];
        }
        if (getenv("TANDEM_TEST_VERBOSE") != NULL ||
            !(error / power <= error_bound(all_types[t]))) {
            printf("\n    %s: NMSE %.3g", tandem_type_name(all_types[t]), error / power);
        }
        CU_ASSERT_TRUE(error / power <= error_bound(all_types[t]));
    }
}

/* Numbers of FP4 are up to a third apart, at a scale that is a power of two. */
static float constant_bound(enum tandem_type type)
{
    return type == TANDEM_TYPE_MXFP4 ? 0.2f : 0.02f;
}

static void constant_and_zero_rows_survive_the_round_trip(void)
{
    const float constants[] = {0.0f, 1.0f, -1.0f, 3.25f, -0.05f, 1000.0f};
    for (int t = 0; t < N_TYPES; t++) {
        if (all_types[t] == TANDEM_TYPE_I32) {
            continue;
        }
        for (size_t c = 0; c < sizeof(constants) / sizeof(constants[0]); c++) {
            float x[256];
            float y[256];
            unsigned char blocks[1024];
            for (int i = 0; i < 256; i++) {
                x[i] = constants[c];
            }
            tandem_quantize(all_types[t], x, blocks, 256);
            tandem_dequantize(all_types[t], blocks, y, 256);
            for (int i = 0; i < 256; i++) {
                if (!(fabsf(y[i] - x[i]) <= constant_bound(all_types[t]) * fabsf(x[i]))) {
                    printf("\n    %s: %g became %g", tandem_type_name(all_types[t]), (double)x[i],
                           (double)y[i]);
                    CU_FAIL("a constant row changed");
                    break;
                }
            }
        }
    }
}

/* Nothing is claimed about the values; sanitizers watch the conversions. */
static void hostile_values_never_cause_undefined_behaviour(void)
{
    const float hostile[] = {NAN,     -NAN,  INFINITY, -INFINITY, 3e38f, -3e38f,  1e-45f,
                             -1e-40f, 1e30f, 0.0f,     -0.0f,     1.0f,  65504.0f};
    const int n_hostile = (int)(sizeof(hostile) / sizeof(hostile[0]));
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int t = 0; t < N_TYPES; t++) {
        if (all_types[t] == TANDEM_TYPE_I32) {
            continue;
        }
        for (int round = 0; round < 200; round++) {
            float x[256];
            float y[256];
            unsigned char blocks[1024];
            for (int i = 0; i < 256; i++) {
                bool same = round < n_hostile;
                int64_t pick = tnd_test_rng_int(&rng, 0, n_hostile - 1);
                x[i] = same ? hostile[round] : round % 2 != 0 && pick > 0 ? 1.0f : hostile[pick];
            }
            CU_ASSERT_EQUAL(tandem_quantize(all_types[t], x, blocks, 256), TANDEM_OK);
            CU_ASSERT_EQUAL(tandem_dequantize(all_types[t], blocks, y, 256), TANDEM_OK);
        }
    }
}

/* The product and the sum are each rounded to single precision, as ggml's quantize_row_*_ref do:
 * 0.49999997 + 8.5 is 9 then. Zeros of either sign give the scale -0, as there. */
static void levels_of_q4_0_and_q5_0_are_rounded_in_single_precision(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q5_0};
    const float extremes[] = {-8.0f, -16.0f};
    for (int t = 0; t < 2; t++) {
        float x[32] = {extremes[t], 0.49999997f, -0.50000003f};
        float y[32];
        unsigned char block[22];
        CU_ASSERT_EQUAL(tandem_quantize(types[t], x, block, 32), TANDEM_OK);
        CU_ASSERT_EQUAL(tandem_dequantize(types[t], block, y, 32), TANDEM_OK);
        CU_ASSERT_TRUE(y[0] == extremes[t] && y[1] == 1.0f && y[2] == 0.0f);
        for (int i = 0; i < 32; i++) {
            x[i] = i % 3 == 0 ? -0.0f : 0.0f;
        }
        CU_ASSERT_EQUAL(tandem_quantize(types[t], x, block, 32), TANDEM_OK);
        check_int(block[0], 0);
        check_int(block[1], 0x80);
    }
}

/* Squared errors of ggml (quantize_row_*_ref of commit d99724f2) for rows of 256 values c with two
 * outliers. Ours are no larger, but for rounding. */
static void constant_rows_with_outliers_lose_no_more_than_with_ggml(void)
{
    static const float outliers[] = {-100, -20, -5, -2, 2, 5, 20, 100};
    static const double theirs[N_K][16] = {
        {8.45e+02, 2.27e+02, 9.07e+00, 7.06e-02, 6.71e-02, 1.74e-05, 3.32e+01, 2.54e+02, 2.36e+02,
         2.70e+01, 9.52e-02, 1.06e+00, 1.55e-05, 1.02e-02, 8.75e-02, 9.34e+00},
        {2.56e+02, 3.09e+01, 2.12e+00, 1.53e-02, 1.53e-02, 2.12e+00, 3.09e+01, 2.56e+02, 2.56e+02,
         3.09e+01, 2.12e+00, 1.53e-02, 1.53e-02, 2.12e+00, 3.09e+01, 2.56e+02},
        {2.90e+00, 3.20e-02, 1.05e-01, 8.07e-03, 3.51e-02, 1.95e-01, 1.96e-01, 6.25e+01, 6.90e+01,
         4.45e-01, 1.97e-01, 4.69e-02, 3.91e-04, 6.25e-04, 5.07e-05, 2.15e-01},
        {2.39e+00, 3.14e-02, 4.39e-01, 7.13e-03, 4.72e-02, 4.84e-02, 1.79e-01, 6.21e+01, 6.93e+01,
         4.41e-01, 1.97e-01, 4.69e-02, 3.54e-04, 5.36e-04, 5.81e-05, 1.97e-01},
        {4.08e+01, 1.97e+00, 3.43e-02, 9.15e-05, 9.15e-05, 3.43e-02, 1.97e+00, 4.08e+01, 4.08e+01,
         1.97e+00, 3.43e-02, 9.15e-05, 9.15e-05, 3.43e-02, 1.97e+00, 4.08e+01}};
    for (int t = 0; t < N_K; t++) {
        for (int row = 0; row < 16; row++) {
            float x[256];
            float y[256];
            unsigned char blocks[256];
            double error = 0;
            double power = 0;
            for (int i = 0; i < 256; i++) {
                x[i] = row < 8 ? 1.0f : -1.0f;
            }
            x[77] = outliers[row % 8];
            x[200] = outliers[row % 8] * 0.7f;
            CU_ASSERT_EQUAL(tandem_quantize(k_types[t], x, blocks, 256), TANDEM_OK);
            CU_ASSERT_EQUAL(tandem_dequantize(k_types[t], blocks, y, 256), TANDEM_OK);
            for (int i = 0; i < 256; i++) {
                error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
                power += (double)x[i] * (double)x[i];
            }
            if (error > 1.01 * theirs[t][row] + 2e-5 * power) {
                printf("\n    %s, row %d: squared error %.3g, of ggml %.3g",
                       tandem_type_name(k_types[t]), row, error, theirs[t][row]);
                CU_FAIL("worse than ggml");
            }
        }
    }
}

static CU_TestInfo type_tests[] = {
    {"levels_of_q4_0_and_q5_0_are_rounded_in_single_precision",
     levels_of_q4_0_and_q5_0_are_rounded_in_single_precision},
    {"constant_rows_with_outliers_lose_no_more_than_with_ggml",
     constant_rows_with_outliers_lose_no_more_than_with_ggml},
    {"names_lead_back_to_their_types", names_lead_back_to_their_types},
    {"row_bytes_follow_the_blocks_and_refuse_the_rest",
     row_bytes_follow_the_blocks_and_refuse_the_rest},
    {"conversions_refuse_wrong_arguments", conversions_refuse_wrong_arguments},
    {"decoded_values_equal_the_reference_bit_for_bit",
     decoded_values_equal_the_reference_bit_for_bit},
    {"encoded_blocks_equal_the_reference_byte_for_byte",
     encoded_blocks_equal_the_reference_byte_for_byte},
    {"round_trip_error_stays_small", round_trip_error_stays_small},
    {"constant_and_zero_rows_survive_the_round_trip",
     constant_and_zero_rows_survive_the_round_trip},
    {"hostile_values_never_cause_undefined_behaviour",
     hostile_values_never_cause_undefined_behaviour},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_types[] = {
    {"types", NULL, NULL, NULL, NULL, type_tests},
    CU_SUITE_INFO_NULL,
};
