/* SPDX-License-Identifier: MIT
 * Half and bfloat16 conversions against their definition, every value of 16 bits. */
#include <math.h>

#include "base/float_mode.h"
#include "base/half.h"
#include "base/rng.h"
#include "tests/suite_base.h"

/* The value of a half by IEEE 754: (-1)^s * m * 2^(e - 25), or with a hidden bit. */
static double half_value(unsigned half)
{
    int exponent = (int)(half >> 10 & 31);
    double mantissa = half & 1023;
    double magnitude;
    if (exponent == 31) {
        magnitude = mantissa == 0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        magnitude = ldexp(mantissa, -24);
    } else {
        magnitude = ldexp(mantissa + 1024, exponent - 25);
    }
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/* Checks are counted by hand: one CUnit assertion each would be millions. */
static int count_wrong_halves(void)
{
    int wrong = 0;
    for (unsigned half = 0; half < 65536; half++) {
        float got = tnd_f16_to_f32((uint16_t)half);
        double want = half_value(half);
        if (isnan(want)) {
            /* quiet, with sign and payload */
            wrong += !isnan(got) || tnd_f32_to_f16(got) != (half | 0x200);
        } else {
            wrong += got != want || (signbit(got) != 0) != ((half & 0x8000) != 0) ||
                     tnd_f32_to_f16(got) != half;
        }
    }
    return wrong;
}

static void every_half_becomes_its_float_and_comes_back(void)
{
    check_int(count_wrong_halves(), 0);
}

/* As on the pool's threads: a subnormal half is a normal float. */
static void halves_keep_their_values_where_subnormal_floats_are_zeros(void)
{
    const uint64_t mode = tnd_float_mode_flush();
    const int wrong = count_wrong_halves();
    tnd_float_mode_restore(mode);
    check_int(wrong, 0);
}

static void floats_round_to_the_nearest_half_and_ties_to_even(void)
{
    int wrong = 0;
    for (unsigned half = 0; half < 0x7c00; half++) {
        double low = half_value(half);
        /* What follows the largest half counts as 65536, the next power of two. */
        double high = half + 1 == 0x7c00 ? 65536 : half_value(half + 1);
        float middle = (float)((low + high) / 2);
        unsigned even = (half & 1) == 0 ? half : half + 1;
        wrong += tnd_f32_to_f16(middle) != even;
        wrong += tnd_f32_to_f16(-middle) != (even | 0x8000);
        wrong += tnd_f32_to_f16(nextafterf(middle, -1)) != half;
        wrong += tnd_f32_to_f16(nextafterf(middle, INFINITY)) != half + 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void extreme_floats_become_halves_that_make_sense(void)
{
    CU_ASSERT_EQUAL(tnd_f32_to_f16(INFINITY), 0x7c00);
    CU_ASSERT_EQUAL(tnd_f32_to_f16(-INFINITY), 0xfc00);
    CU_ASSERT_EQUAL(tnd_f32_to_f16(3e38f), 0x7c00);
    CU_ASSERT_EQUAL(tnd_f32_to_f16(0x1p-149f), 0);
    CU_ASSERT_EQUAL(tnd_f32_to_f16(-0.0f), 0x8000);
    CU_ASSERT_TRUE(isnan(tnd_f16_to_f32(tnd_f32_to_f16(NAN))));
    /* A NaN whose payload is only in the bits that are cut stays a NaN. */
    CU_ASSERT_EQUAL(tnd_f32_to_f16(tnd_f32_from_bits(0x7f800001u)), 0x7e00);
}

static void every_bfloat16_becomes_its_float_and_comes_back(void)
{
    int wrong = 0;
    for (unsigned bf16 = 0; bf16 < 65536; bf16++) {
        float value = tnd_bf16_to_f32((uint16_t)bf16);
        unsigned back = tnd_f32_to_bf16(value);
        wrong += tnd_f32_bits(value) != bf16 << 16;
        wrong += isnan(value) ? back != (bf16 | 0x40) : back != bf16;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void floats_round_to_the_nearest_bfloat16_and_ties_to_even(void)
{
    int wrong = 0;
    for (uint32_t bf16 = 0; bf16 < 0x7f80; bf16++) {
        uint32_t even = (bf16 & 1) == 0 ? bf16 : bf16 + 1;
        wrong += tnd_f32_to_bf16(tnd_f32_from_bits(bf16 << 16 | 0x8000)) != even;
        wrong += tnd_f32_to_bf16(tnd_f32_from_bits(bf16 << 16 | 0x80008000)) != (even | 0x8000);
        wrong += tnd_f32_to_bf16(tnd_f32_from_bits(bf16 << 16 | 0x7fff)) != bf16;
        wrong += tnd_f32_to_bf16(tnd_f32_from_bits(bf16 << 16 | 0x8001)) != bf16 + 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(tnd_f32_to_bf16(tnd_f32_from_bits(0x7f800001u)), 0x7fc0);
    CU_ASSERT_EQUAL(tnd_f32_to_bf16(tnd_f32_from_bits(0xffffffffu)), 0xffff);
}

CU_TestInfo tnd_tests_base_half[] = {
    {"every_half_becomes_its_float_and_comes_back", every_half_becomes_its_float_and_comes_back},
    {"halves_keep_their_values_where_subnormal_floats_are_zeros",
     halves_keep_their_values_where_subnormal_floats_are_zeros},
    {"floats_round_to_the_nearest_half_and_ties_to_even",
     floats_round_to_the_nearest_half_and_ties_to_even},
    {"extreme_floats_become_halves_that_make_sense", extreme_floats_become_halves_that_make_sense},
    {"every_bfloat16_becomes_its_float_and_comes_back",
     every_bfloat16_becomes_its_float_and_comes_back},
    {"floats_round_to_the_nearest_bfloat16_and_ties_to_even",
     floats_round_to_the_nearest_bfloat16_and_ties_to_even},
    CU_TEST_INFO_NULL,
};
