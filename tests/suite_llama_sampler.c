/* SPDX-License-Identifier: MIT
 * Choosing tokens. */
#include <math.h>

#include "llama/sampler.h"
#include "tests/support.h"

static struct tnd_llama_sampler *sampler_new(int64_t vocabulary, float temperature, float top_p,
                                             uint64_t seed)
{
    struct tnd_llama_sampler *sampler = NULL;
    check_ok(tnd_llama_sampler_new(vocabulary, temperature, top_p, seed, &sampler, NULL));
    return sampler;
}

static void temperature_zero_takes_the_likeliest_and_the_first_among_equals(void)
{
    struct tnd_llama_sampler *sampler = sampler_new(4, 0.0f, 0.9f, 1);
    const float logits[4] = {-1.0f, 2.0f, 2.0f, 0.0f};
    for (int i = 0; i < 10; i++) {
        check_int(tnd_llama_sampler_choose(sampler, logits), 1);
    }
    tnd_llama_sampler_free(sampler);
}

/* How often each of 4 tokens comes in 40,000 draws. */
static void count_draws(float temperature, float top_p, const float logits[4], int counts[4])
{
    struct tnd_llama_sampler *sampler = sampler_new(4, temperature, top_p, tnd_test_seed());
    for (int i = 0; i < 4; i++) {
        counts[i] = 0;
    }
    for (int i = 0; i < 40000; i++) {
        counts[tnd_llama_sampler_choose(sampler, logits)]++;
    }
    tnd_llama_sampler_free(sampler);
}

static void draws_follow_the_probabilities(void)
{
    const float logits[4] = {logf(0.1f), logf(0.2f), logf(0.3f), logf(0.4f)};
    int counts[4];
    count_draws(1.0f, 1.0f, logits, counts);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_DOUBLE_EQUAL(counts[i], 4000.0 * (i + 1), 400.0);
    }
}

static void a_higher_temperature_makes_draws_more_even(void)
{
    const float logits[4] = {0.0f, 0.0f, 0.0f, 2.0f};
    int cold[4];
    int hot[4];
    count_draws(0.5f, 1.0f, logits, cold);
    count_draws(2.0f, 1.0f, logits, hot);
    CU_ASSERT(cold[3] > 36000);
    CU_ASSERT(hot[3] < 22000);
}

static void top_p_drops_the_unlikely_ones(void)
{
    const float logits[4] = {logf(0.1f), logf(0.2f), logf(0.3f), logf(0.4f)};
    int counts[4];
    count_draws(1.0f, 0.6f, logits, counts); /* 0.4 + 0.3 reach it */
    check_int(counts[0], 0);
    check_int(counts[1], 0);
    CU_ASSERT_DOUBLE_EQUAL(counts[3], 40000.0 * 4 / 7, 800.0);
    count_draws(1.0f, 0.001f, logits, counts);
    check_int(counts[3], 40000);
}

static void the_same_seed_draws_the_same_tokens(void)
{
    const float logits[4] = {0.0f, 0.1f, 0.2f, 0.3f};
    struct tnd_llama_sampler *a = sampler_new(4, 1.0f, 0.9f, 11);
    struct tnd_llama_sampler *b = sampler_new(4, 1.0f, 0.9f, 11);
    struct tnd_llama_sampler *c = sampler_new(4, 1.0f, 0.9f, 12);
    int n_other = 0;
    for (int i = 0; i < 200; i++) {
        const int32_t token = tnd_llama_sampler_choose(a, logits);
        check_int(tnd_llama_sampler_choose(b, logits), token);
        n_other += tnd_llama_sampler_choose(c, logits) != token;
    }
    CU_ASSERT(n_other > 0);
    tnd_llama_sampler_free(a);
    tnd_llama_sampler_free(b);
    tnd_llama_sampler_free(c);
}

static void logits_that_are_no_numbers_still_give_a_token(void)
{
    struct tnd_llama_sampler *sampler = sampler_new(4, 1.0f, 0.9f, 1);
    const float logits[4] = {NAN, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 20; i++) {
        const int32_t token = tnd_llama_sampler_choose(sampler, logits);
        CU_ASSERT(token >= 0 && token < 4);
    }
    tnd_llama_sampler_free(sampler);
}

static void wrong_parameters_are_refused(void)
{
    struct tandem_error error = {0};
    struct tnd_llama_sampler *sampler = NULL;
    check_status(tnd_llama_sampler_new(4, -1.0f, 0.9f, 1, &sampler, &error), TANDEM_E_ARGUMENT,
                 "temperature -1", &error);
    check_status(tnd_llama_sampler_new(4, NAN, 0.9f, 1, &sampler, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    check_status(tnd_llama_sampler_new(4, 1.0f, 1.5f, 1, &sampler, &error), TANDEM_E_ARGUMENT,
                 "top-p 1.5", &error);
    check_status(tnd_llama_sampler_new(0, 1.0f, 0.9f, 1, &sampler, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    CU_ASSERT_PTR_NULL(sampler);
    tnd_llama_sampler_free(NULL);
}

static CU_TestInfo sampler_tests[] = {
    {"temperature_zero_takes_the_likeliest_and_the_first_among_equals",
     temperature_zero_takes_the_likeliest_and_the_first_among_equals},
    {"draws_follow_the_probabilities", draws_follow_the_probabilities},
    {"a_higher_temperature_makes_draws_more_even", a_higher_temperature_makes_draws_more_even},
    {"top_p_drops_the_unlikely_ones", top_p_drops_the_unlikely_ones},
    {"the_same_seed_draws_the_same_tokens", the_same_seed_draws_the_same_tokens},
    {"logits_that_are_no_numbers_still_give_a_token",
     logits_that_are_no_numbers_still_give_a_token},
    {"wrong_parameters_are_refused", wrong_parameters_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_sampler[] = {
    {"sampler", NULL, NULL, NULL, NULL, sampler_tests},
    CU_SUITE_INFO_NULL,
};
