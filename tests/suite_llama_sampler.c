/* SPDX-License-Identifier: MIT
 * Choosing tokens. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_sample.h"
#include "llama/sampler.h"
#include "llama/utf8.h"
#include "tests/suite_llama.h"
#include "tests/support_models.h"

static void temperature_zero_takes_the_likeliest_and_the_first_among_equals(void)
{
    tandem_sampler *sampler = tnd_test_sampler(4, 0.0f, 0.9f, 1);
    const float logits[4] = {-1.0f, 2.0f, 2.0f, 0.0f};
    for (int i = 0; i < 10; i++) {
        check_int(tandem_sampler_sample(sampler, logits), 1);
    }
    tandem_sampler_free(sampler);
}

/* How often each of 4 tokens comes in 40,000 draws. */
static void count_draws(float temperature, float top_p, const float logits[4], int counts[4])
{
    tandem_sampler *sampler = tnd_test_sampler(4, temperature, top_p, tnd_test_seed());
    for (int i = 0; i < 4; i++) {
        counts[i] = 0;
    }
    for (int i = 0; i < 40000; i++) {
        counts[tandem_sampler_sample(sampler, logits)]++;
    }
    tandem_sampler_free(sampler);
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
    tandem_sampler *a = tnd_test_sampler(4, 1.0f, 0.9f, 11);
    tandem_sampler *b = tnd_test_sampler(4, 1.0f, 0.9f, 11);
    tandem_sampler *c = tnd_test_sampler(4, 1.0f, 0.9f, 12);
    int n_other = 0;
    for (int i = 0; i < 200; i++) {
        const int32_t token = tandem_sampler_sample(a, logits);
        check_int(tandem_sampler_sample(b, logits), token);
        n_other += tandem_sampler_sample(c, logits) != token;
    }
    CU_ASSERT(n_other > 0);
    tandem_sampler_free(a);
    tandem_sampler_free(b);
    tandem_sampler_free(c);
}

static void logits_that_are_no_numbers_still_give_a_token(void)
{
    tandem_sampler *sampler = tnd_test_sampler(4, 1.0f, 0.9f, 1);
    const float logits[4] = {NAN, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 20; i++) {
        const int32_t token = tandem_sampler_sample(sampler, logits);
        CU_ASSERT(token >= 0 && token < 4);
    }
    tandem_sampler_free(sampler);
}

/* ---- top-k, top-p and min-p against a plain sort ---- */

struct one {
    float logit;
    uint64_t weight;
    int32_t token;
};

static int likelier(const void *a, const void *b)
{
    const struct one *x = a;
    const struct one *y = b;
    return x->logit != y->logit ? (x->logit > y->logit ? -1 : 1) : (x->token < y->token ? -1 : 1);
}

static uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return tnd_sample_key(bits);
}

/* Probabilities after all steps, {n}; those of tokens that are not kept are 0. What is kept follows
 * from a sort and sums of the weights that the sampler has. */
static void exact(const struct tandem_sampler_options *o, const float *logits, double *out)
{
    struct one *all = calloc((size_t)o->vocabulary, sizeof(*all));
    struct tandem_sample_settings s;
    tandem_sample_settings_fill(&s, o->temperature, o->top_k, o->top_p, o->min_p, 0);
    const int64_t n = o->vocabulary;
    float largest = -INFINITY;
    uint64_t sum = 0, part = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = logits[i] > largest ? logits[i] : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        all[i] = (struct one){logits[i], tnd_sample_weight(&s, key_of(largest), key_of(logits[i])),
                              (int32_t)i};
        out[i] = 0.0;
    }
    qsort(all, (size_t)n, sizeof(*all), likelier);
    const int64_t k = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    for (int64_t i = 0; i < k; i++) {
        sum += all[i].weight;
    }
    int64_t kept = 0;
    while (kept < k && all[kept].weight >= s.least &&
           (o->top_p == 0.0f || (long double)part < (long double)o->top_p * (long double)sum)) {
        part += all[kept++].weight;
    }
    double shares = 0.0;
    for (int64_t i = 0; i < kept; i++) {
        out[all[i].token] = exp(((double)all[i].logit - (double)largest) / (double)o->temperature);
        shares += out[all[i].token];
    }
    for (int64_t i = 0; i < kept; i++) {
        out[all[i].token] /= shares;
    }
    free(all);
}

static float random_logit(struct tnd_test_rng *rng, int64_t i, bool has_ties)
{
    const double x = (double)tnd_test_rng_int(rng, -100000, 100000) / 12500.0;
    return has_ties && i % 3 == 0 ? (float)(int)x : (float)x;
}

static void what_is_kept_is_what_a_full_sort_keeps(void)
{
    enum { N = 3000 };
    static float logits[N];
    static double want[N];
    static int32_t tokens[N];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const struct {
        int64_t k;
        float p, min;
    } cases[] = {{1, 0, 0},     {40, 0, 0},          {2999, 0, 0},  {3000, 0, 0},     {5000, 0, 0},
                 {0, 0.9f, 0},  {0, 0.5f, 0},        {0, 1e-6f, 0}, {0, 0.9999f, 0},  {40, 0.9f, 0},
                 {0, 0, 0.05f}, {100, 0.95f, 0.01f}, {0, 0, 1.0f},  {0, 0.999999f, 0}};
    for (int round = 0; round < 6 * tnd_effort(); round++) {
        const int64_t n = round % 3 == 0 ? 7 : N;
        for (int64_t i = 0; i < n; i++) {
            logits[i] = round % 5 == 4 ? 1.5f : random_logit(&rng, i, round % 2 == 1);
        }
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            const struct tandem_sampler_options o = {.size = sizeof(o),
                                                     .vocabulary = n,
                                                     .temperature = round % 4 == 3 ? 0.1f : 1.0f,
                                                     .top_k = cases[c].k,
                                                     .top_p = cases[c].p,
                                                     .min_p = cases[c].min};
            tandem_sampler *sampler = NULL;
            int64_t n_want = 0, n_wrong = 0;
            check_ok(tandem_sampler_new(&o, &sampler, NULL));
            exact(&o, logits, want);
            const int64_t kept = tnd_sampler_keep(sampler, logits, tokens);
            for (int64_t i = 0; i < n; i++) {
                n_want += want[i] > 0.0;
            }
            for (int64_t i = 0; i < kept; i++) {
                n_wrong += !(want[tokens[i]] > 0.0);
            }
            check_int(kept, n_want);
            check_int(n_wrong, 0);
            tandem_sampler_free(sampler);
        }
    }
}

static void keys_stand_in_the_order_of_the_numbers(void)
{
    static const float ascending[] = {-FLT_MAX,  -1.5f,   -1.0f, -FLT_MIN, -0x1p-149f, 0.0f,
                                      0x1p-149f, FLT_MIN, 1.0f,  1.5f,     FLT_MAX,    INFINITY};
    uint32_t previous = 0;
    for (size_t i = 0; i < sizeof(ascending) / sizeof(ascending[0]); i++) {
        CU_ASSERT(key_of(ascending[i]) > previous);
        previous = key_of(ascending[i]);
    }
    check_int(key_of(-0.0f), key_of(0.0f));
    check_int(key_of(NAN), 0);
    check_int(key_of(-NAN), 0);
    check_int(key_of(-INFINITY), 0);
}

/* To 3 units of 2^-31, and what the rounding of a difference of floats makes of it. */
static void weights_are_exponentials(void)
{
    static const float temperatures[] = {1e-30f, 0.01f, 0.5f, 0.7f, 1.0f, 1.3f, 10.0f, 1e30f};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    double worst = 0.0;
    for (size_t t = 0; t < sizeof(temperatures) / sizeof(temperatures[0]); t++) {
        const double temperature = (double)temperatures[t];
        struct tandem_sample_settings s;
        tandem_sample_settings_fill(&s, temperatures[t], 0, 0, 0, 0);
        for (int i = 0; i < 3000; i++) {
            const float largest = (float)tnd_test_rng_int(&rng, -1000000, 1000000) / 70000.0f;
            const double width = temperature * 25.0 * (double)tnd_test_rng_int(&rng, 0, 1000) / 1e3;
            const float logit = (float)((double)largest - (width < 1e30 ? width : 1e30));
            const float distance = largest - logit;
            const double x = (double)distance / temperature;
            const double want = exp(-x) * 0x1p31;
            const double got = tnd_sample_weight(&s, key_of(largest), key_of(logit));
            worst = fmax(worst, fabs(got - want) - 1e-9 * want);
        }
    }
    CU_ASSERT(worst < 3.0);
}

static void equal_probabilities_prefer_lower_tokens(void)
{
    enum { N = 500 };
    float logits[N];
    int32_t tokens[N];
    const struct tandem_sampler_options o = {
        .size = sizeof(o), .vocabulary = N, .temperature = 1.0f, .top_k = 7};
    tandem_sampler *sampler = NULL;
    for (int i = 0; i < N; i++) {
        logits[i] = i % 2 == 0 ? 1.0f : -2.0f;
    }
    check_ok(tandem_sampler_new(&o, &sampler, NULL));
    check_int(tnd_sampler_keep(sampler, logits, tokens), 7);
    for (int i = 0; i < 7; i++) {
        check_int(tokens[i], 2 * i);
    }
    tandem_sampler_free(sampler);
}

static void what_is_no_number_is_never_chosen_while_another_can_be(void)
{
    const float with_nan[4] = {NAN, -3.0f, NAN, -INFINITY};
    const float with_inf[4] = {NAN, INFINITY, 5.0f, INFINITY};
    const float nothing[4] = {NAN, -INFINITY, NAN, -INFINITY};
    for (int t = 0; t < 2; t++) {
        tandem_sampler *sampler = tnd_test_sampler(4, (float)t, 0.9f, 3);
        for (int i = 0; i < 50; i++) {
            check_int(tandem_sampler_sample(sampler, with_nan), 1);
            check_int(tandem_sampler_sample(sampler, with_inf) % 2, 1);
            check_int(tandem_sampler_sample(sampler, nothing), 0);
        }
        tandem_sampler_free(sampler);
    }
}

/* ---- draws against the exact distribution ---- */

/* Pearson's chi-square of n draws; tokens that are expected fewer than 10 times count together.
 * Six standard deviations above the mean of the distribution are allowed: 1 in 10^8 by chance. */
static void check_draws(const struct tandem_sampler_options *o, const float *logits, int64_t n)
{
    const int64_t vocabulary = o->vocabulary;
    double *want = calloc((size_t)vocabulary, sizeof(*want));
    int64_t *got = calloc((size_t)vocabulary, sizeof(*got));
    tandem_sampler *sampler = NULL;
    double chi = 0.0, rare_want = 0.0, rare_got = 0.0;
    int64_t bins = 0, impossible = 0;
    check_ok(tandem_sampler_new(o, &sampler, NULL));
    exact(o, logits, want);
    for (int64_t i = 0; i < n; i++) {
        got[tandem_sampler_sample(sampler, logits)]++;
    }
    for (int64_t i = 0; i < vocabulary; i++) {
        const double expected = want[i] * (double)n;
        impossible += want[i] == 0.0 ? got[i] : 0;
        if (expected < 10.0) {
            rare_want += expected;
            rare_got += (double)got[i];
        } else {
            chi += ((double)got[i] - expected) * ((double)got[i] - expected) / expected;
            bins++;
        }
    }
    if (rare_want >= 10.0) {
        chi += (rare_got - rare_want) * (rare_got - rare_want) / rare_want;
        bins++;
    }
    const double degrees = (double)(bins > 1 ? bins - 1 : 1);
    CU_ASSERT(chi < degrees + 6.0 * sqrt(2.0 * degrees));
    if (chi >= degrees + 6.0 * sqrt(2.0 * degrees)) {
        printf("  chi-square %.1f with %.0f degrees of freedom\n", chi, degrees);
    }
    check_int(impossible, 0);
    tandem_sampler_free(sampler);
    free(want);
    free(got);
}

static void draws_pass_a_chi_square_test(void)
{
    enum { N = 300 };
    float logits[N];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int i = 0; i < N; i++) {
        logits[i] = random_logit(&rng, i, true) * 0.4f;
    }
    const struct tandem_sampler_options cases[] = {
        {.size = sizeof(cases[0]), .vocabulary = N, .temperature = 1.0f, .seed = 1},
        {.size = sizeof(cases[0]), .vocabulary = N, .temperature = 0.7f, .top_k = 40, .seed = 2},
        {.size = sizeof(cases[0]), .vocabulary = N, .temperature = 1.3f, .top_p = 0.8f, .seed = 3},
        {.size = sizeof(cases[0]),
         .vocabulary = N,
         .temperature = 1.0f,
         .top_k = 100,
         .top_p = 0.9f,
         .min_p = 0.05f,
         .seed = 4},
        {.size = sizeof(cases[0]), .vocabulary = 2, .temperature = 1.0f, .seed = 5},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_draws(&cases[i], logits, tnd_effort() >= 3 ? 1000000 : 100000);
    }
}

/* ---- penalty and mask ---- */

static void a_penalty_makes_what_came_less_likely_once(void)
{
    const float logits[4] = {2.0f, 1.9f, -1.0f, -1.1f};
    const struct tandem_sampler_options o = {
        .size = sizeof(o), .vocabulary = 4, .repeat_penalty = 1.5f, .repeat_last = 2};
    tandem_sampler *sampler = NULL;
    check_ok(tandem_sampler_new(&o, &sampler, NULL));
    check_int(tandem_sampler_sample(sampler, logits), 0);
    tandem_sampler_accept(sampler, 0, true);
    tandem_sampler_accept(sampler, 0, true); /* twice: 2 / 1.5, not 2 / 1.5^2 */
    check_int(tandem_sampler_sample(sampler, logits), 1);
    tandem_sampler_accept(sampler, 1, true); /* 0 and 1 are remembered: 1.33 and 1.27 */
    check_int(tandem_sampler_sample(sampler, logits), 0);
    tandem_sampler_accept(sampler, 3, true);
    tandem_sampler_accept(sampler, 2, true); /* 0 and 1 are forgotten */
    check_int(tandem_sampler_sample(sampler, logits), 0);
    const float negative[4] = {-9.0f, -9.0f, -1.0f, -1.1f}; /* 2 and 3: -1.5 and -1.65 */
    check_int(tandem_sampler_sample(sampler, negative), 2);
    tandem_sampler_reset(sampler);
    tandem_sampler_accept(sampler, 2, false);
    check_int(tandem_sampler_sample(sampler, negative), 3);
    tandem_sampler_accept(sampler, 99, true); /* no token: ignored */
    tandem_sampler_free(sampler);
}

static void utf8_is_told_from_other_bytes(void)
{
    const struct {
        const char *bytes;
        bool is_good;
        int left;
    } cases[] = {
        {"", true, 0},          {"abc", true, 0},
        {"\xc3\xa9", true, 0},  {"\xc3", true, 1},
        {"\xe2\x82", true, 1},  {"\xe2\x82\xac", true, 0},
        {"\xf0\x9f", true, 2},  {"\xf0\x9f\x98\x80", true, 0},
        {"\xc3z", false, 0},    {"\x80", false, 0},
        {"\xc0\x80", false, 0}, {"\xc1\xbf", false, 0},
        {"\xe0\x80", false, 0}, {"\xe0\xa0", true, 1},
        {"\xed\xa0", false, 0}, {"\xed\x9f", true, 1},
        {"\xf0\x80", false, 0}, {"\xf4\x8f", true, 2},
        {"\xf4\x90", false, 0}, {"\xf5", false, 0},
        {"\xff", false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_utf8 state = {0};
        check_int(tnd_utf8_accepts(&state, cases[i].bytes, strlen(cases[i].bytes)),
                  cases[i].is_good);
        check_int(state.left, cases[i].left);
    }
}

/* tok512.bin has all bytes as tokens 3 to 258. */
static void the_mask_keeps_the_output_valid(void)
{
    struct tnd_trained trained;
    tandem_sampler *sampler = NULL;
    float logits[512];
    struct tnd_utf8 state = {0};
    int n_partial = 0;
    if (!tnd_trained_open(&trained, 0)) {
        return;
    }
    const struct tandem_sampler_options o = {
        .size = sizeof(o), .vocabulary = 512, .temperature = 1.0f, .seed = 7};
    check_ok(tandem_sampler_new(&o, &sampler, NULL));
    check_ok(tandem_sampler_keep_utf8(sampler, trained.tokenizer, NULL));
    for (int i = 0; i < 512; i++) {
        logits[i] = i >= 3 + 0x80 && i < 259 ? 3.0f : 0.0f; /* bytes above 0x7f are likely */
    }
    int n_bad = 0;
    for (int i = 0; i < 3000; i++) {
        char bytes[64];
        const int32_t token = tandem_sampler_sample(sampler, logits);
        const size_t n = tandem_tokenizer_decode(trained.tokenizer, -1, token, bytes, 64);
        n_bad += (n == 0 && state.left > 0) || !tnd_utf8_accepts(&state, bytes, n);
        n_partial += state.left > 0;
        tandem_sampler_accept(sampler, token, true);
    }
    check_int(n_bad, 0);
    CU_ASSERT(n_partial > 500);
    tandem_sampler_free(sampler);
    tnd_trained_close(&trained);
}

/* tnd_model_write_tokenizer makes the bytes tokens 3 to 258, too. */
enum { CONTINUATION = 3 + 0x80, LEAD = 3 + 0xc3, LETTER = 3 + 'a', SMALL_VOCABULARY = 300 };

static tandem_tokenizer *small_tokenizer(void)
{
    tandem_tokenizer *tokenizer = NULL;
    const char *path = tnd_test_temp("sampler-tokens.bin");
    CU_ASSERT_TRUE_FATAL(tnd_model_write_tokenizer(path, SMALL_VOCABULARY));
    check_ok(tandem_tokenizer_open(path, 0, &tokenizer, NULL));
    return tokenizer;
}

/* What a generator and a chat make of a sampler: the token that it takes when one that no text can
 * begin with is the likeliest. */
static int32_t choice_of_a_generator(bool any_bytes, bool is_chat)
{
    static const int32_t prompt[] = {1};
    tandem_tokenizer *tokenizer = small_tokenizer();
    tandem_source *source = tnd_small_llama(TANDEM_TYPE_F32, 64);
    tandem_runtime *runtime = tnd_test_runtime(1, "cpu");
    tandem_model *model = NULL;
    tandem_sampler *sampler = NULL;
    tandem_generator *generator = NULL;
    tandem_chat *chat = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    tandem_session *session = tnd_test_session(model, runtime, 32);
    const struct tandem_sampler_options o = {
        .size = sizeof(o), .vocabulary = SMALL_VOCABULARY, .any_bytes = any_bytes};
    check_ok(tandem_sampler_new(&o, &sampler, NULL));
    struct tandem_generator_options generating = TANDEM_GENERATOR_OPTIONS_INIT;
    struct tandem_chat_options talking = TANDEM_CHAT_OPTIONS_INIT;
    generating.session = talking.session = session;
    generating.sampler = talking.sampler = sampler;
    generating.tokenizer = talking.tokenizer = tokenizer;
    generating.prompt = prompt;
    generating.n_prompt = 1;
    check_ok(is_chat ? tandem_chat_new(&talking, &chat, NULL)
                     : tandem_generator_new(&generating, &generator, NULL));
    float logits[SMALL_VOCABULARY] = {[CONTINUATION] = 2.0f, [LETTER] = 1.0f};
    const int32_t token = tandem_sampler_sample(sampler, logits);
    tandem_chat_free(chat);
    tandem_generator_free(generator);
    tandem_sampler_free(sampler);
    tandem_session_free(session);
    tandem_model_free(model);
    tandem_runtime_close(runtime);
    tandem_source_close(source);
    tandem_tokenizer_close(tokenizer);
    return token;
}

static void texts_stay_valid_utf8_unless_it_is_switched_off(void)
{
    for (int is_chat = 0; is_chat < 2; is_chat++) {
        check_int(choice_of_a_generator(false, is_chat != 0), LETTER);
        check_int(choice_of_a_generator(true, is_chat != 0), CONTINUATION);
    }
}

/* A text that ended within a character, by its length, made the next answer begin with a byte that
 * completes it. */
static void the_mask_begins_anew_behind_a_prompt(void)
{
    tandem_tokenizer *tokenizer = small_tokenizer();
    tandem_sampler *sampler = tnd_test_sampler(SMALL_VOCABULARY, 0.0f, 1.0f, 1);
    float logits[SMALL_VOCABULARY] = {[CONTINUATION] = 1.0f, [LETTER] = 2.0f};
    check_ok(tandem_sampler_keep_utf8(sampler, tokenizer, NULL));
    tandem_sampler_accept(sampler, LEAD, true);
    check_int(tandem_sampler_sample(sampler, logits), CONTINUATION);
    tandem_sampler_accept(sampler, LETTER, false);
    check_int(tandem_sampler_sample(sampler, logits), LETTER);
    tandem_sampler_free(sampler);
    tandem_tokenizer_close(tokenizer);
}

/* Where every token that fits has no chance the likeliest of the others is taken. */
static void a_mask_that_leaves_no_token_gives_way(void)
{
    tandem_tokenizer *tokenizer = small_tokenizer();
    float logits[SMALL_VOCABULARY];
    for (int i = 0; i < SMALL_VOCABULARY; i++) {
        logits[i] = i == CONTINUATION ? 1.0f : i == CONTINUATION + 1 ? 0.5f : -INFINITY;
    }
    for (int warm = 0; warm < 2; warm++) {
        tandem_sampler *sampler = tnd_test_sampler(SMALL_VOCABULARY, 0.01f * (float)warm, 1.0f, 1);
        check_ok(tandem_sampler_keep_utf8(sampler, tokenizer, NULL));
        check_int(tandem_sampler_sample(sampler, logits), CONTINUATION);
        tandem_sampler_free(sampler);
    }
    tandem_tokenizer_close(tokenizer);
}

/* ---- choices within a batch, on a device ---- */

static tandem_runtime *runtime_on_device(void)
{
    char settings[600];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    if (tandem_devices(NULL, 0, &error) < 1) {
        tnd_skip("opencl: no device: %s", error.text);
        return NULL;
    }
    snprintf(settings, sizeof(settings), "opencl:device=0,cache=%s", tnd_test_temp("programs"));
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu,opencl";
    options.profile = "opencl";
    options.settings = settings;
    (void)check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

/* Tokens that two texts get; returns how often logits were copied. */
static int64_t write_texts(const struct tandem_sampler_options *o, tandem_runtime *runtime,
                           bool has_mask, bool is_asked, bool one_wants_logits,
                           int32_t tokens[2][24])
{
    enum { STEPS = 24 };
    tandem_tokenizer *tokenizer = small_tokenizer();
    tandem_source *source = tnd_small_llama(TANDEM_TYPE_F32, 64);
    tandem_model *model = NULL;
    tandem_session *session = NULL;
    tandem_sampler *samplers[2] = {NULL, NULL};
    const struct tandem_session_options of_session = {
        .size = sizeof(of_session), .n_sequences = 2, .context = 64};
    int32_t next[2] = {1, 7};
    int64_t n_copied = 0;
    check_ok(tandem_model_new(source, &model, NULL));
    check_ok(tandem_session_new(model, runtime, &of_session, &session, NULL));
    for (int i = 0; i < 2; i++) {
        check_ok(tandem_sampler_new(o, &samplers[i], NULL));
        check_ok(has_mask ? tandem_sampler_keep_utf8(samplers[i], tokenizer, NULL) : TANDEM_OK);
    }
    for (int step = 0; step < STEPS; step++) {
        struct tandem_batch_entry entries[2];
        for (int i = 0; i < 2; i++) {
            entries[i] = (struct tandem_batch_entry){&next[i], 1, i, true};
            if (is_asked && !(one_wants_logits && i == 1)) {
                check_ok(tandem_session_sample_with(session, i, samplers[i], NULL));
            }
        }
        check_ok(tandem_session_decode_batch(session, entries, 2, NULL));
        for (int i = 0; i < 2; i++) {
            float p = -1.0f;
            n_copied += tandem_session_logits(session, i) != NULL;
            next[i] = tandem_session_sample(session, i, samplers[i], &p);
            CU_ASSERT(p > 0.0f && p <= 1.0f);
            tandem_sampler_accept(samplers[i], next[i], true);
            tokens[i][step] = next[i];
        }
    }
    check_int(tandem_session_sample(session, 2, samplers[0], NULL), -1);
    (void)check_status(tandem_session_sample_with(session, 2, samplers[0], NULL), TANDEM_E_ARGUMENT,
                       NULL, NULL);
    tandem_sampler_free(samplers[0]);
    tandem_sampler_free(samplers[1]);
    tandem_session_free(session);
    tandem_model_free(model);
    tandem_source_close(source);
    tandem_tokenizer_close(tokenizer);
    return n_copied;
}

static void a_batch_chooses_what_the_sampler_would(void)
{
    const struct tandem_sampler_options cases[] = {
        {.size = sizeof(cases[0]), .vocabulary = SMALL_VOCABULARY},
        {.size = sizeof(cases[0]), .vocabulary = SMALL_VOCABULARY, .temperature = 1.0f, .seed = 3},
        {.size = sizeof(cases[0]),
         .vocabulary = SMALL_VOCABULARY,
         .temperature = 1.5f,
         .top_k = 50,
         .top_p = 0.9f,
         .min_p = 0.01f,
         .seed = 4},
        {.size = sizeof(cases[0]),
         .vocabulary = SMALL_VOCABULARY,
         .temperature = 1.0f,
         .repeat_penalty = 1.2f,
         .seed = 5},
    };
    tandem_runtime *on_cpu = tnd_test_runtime(1, "cpu");
    tandem_runtime *on_device = runtime_on_device();
    for (size_t i = 0; on_device != NULL && i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tandem_sampler_options *o = &cases[i / 2];
        const bool has_mask = i % 2 == 1;
        const bool has_penalty = o->repeat_penalty > 0.0f;
        int32_t want[2][24], got[2][24];
        check_int(write_texts(o, on_cpu, has_mask, false, false, want), 48);
        check_int(write_texts(o, on_cpu, has_mask, true, false, got), 48); /* no device */
        check_bits(got, want, sizeof(want), "tokens of a CPU");
        const int64_t n_copied = write_texts(o, on_device, has_mask, true, false, got);
        check_bits(got, want, sizeof(want), "tokens of a batch");
        CU_ASSERT(has_penalty ? n_copied == 48 : has_mask ? n_copied < 48 : n_copied == 0);
        check_int(write_texts(o, on_device, has_mask, true, true, got), 48);
        check_bits(got, want, sizeof(want), "tokens where one text wants logits");
    }
    tandem_runtime_close(on_device);
    tandem_runtime_close(on_cpu);
}

static void wrong_parameters_are_refused(void)
{
    struct tandem_error error = {0};
    tandem_sampler *sampler = NULL;
    const struct {
        struct tandem_sampler_options options;
        const char *what;
    } bad[] = {
        {{.vocabulary = 4, .temperature = -1.0f, .top_p = 0.9f}, "temperature -1"},
        {{.vocabulary = 4, .temperature = NAN, .top_p = 0.9f}, NULL},
        {{.vocabulary = 4, .temperature = 1.0f, .top_p = 1.5f}, "top-p 1.5"},
        {{.vocabulary = 0, .temperature = 1.0f, .top_p = 0.9f}, NULL},
        {{.vocabulary = 4, .top_k = -1}, NULL},
        {{.vocabulary = 4, .min_p = 1.5f}, NULL},
        {{.vocabulary = 4, .repeat_penalty = INFINITY}, NULL},
        {{.vocabulary = 4, .repeat_last = -1}, NULL},
        {{.vocabulary = 4, .temperature = INFINITY}, NULL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tandem_sampler_options options = bad[i].options;
        check_status(tandem_sampler_new(&options, &sampler, &error), TANDEM_E_ABI, "_INIT macro",
                     &error);
        options.size = sizeof(options);
        check_status(tandem_sampler_new(&options, &sampler, &error), TANDEM_E_ARGUMENT, bad[i].what,
                     &error);
    }
    CU_ASSERT_PTR_NULL(sampler);
    tandem_sampler_free(NULL);
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
    {"what_is_kept_is_what_a_full_sort_keeps", what_is_kept_is_what_a_full_sort_keeps},
    {"keys_stand_in_the_order_of_the_numbers", keys_stand_in_the_order_of_the_numbers},
    {"weights_are_exponentials", weights_are_exponentials},
    {"equal_probabilities_prefer_lower_tokens", equal_probabilities_prefer_lower_tokens},
    {"what_is_no_number_is_never_chosen_while_another_can_be",
     what_is_no_number_is_never_chosen_while_another_can_be},
    {"draws_pass_a_chi_square_test", draws_pass_a_chi_square_test},
    {"a_penalty_makes_what_came_less_likely_once", a_penalty_makes_what_came_less_likely_once},
    {"utf8_is_told_from_other_bytes", utf8_is_told_from_other_bytes},
    {"texts_stay_valid_utf8_unless_it_is_switched_off",
     texts_stay_valid_utf8_unless_it_is_switched_off},
    {"the_mask_begins_anew_behind_a_prompt", the_mask_begins_anew_behind_a_prompt},
    {"a_mask_that_leaves_no_token_gives_way", a_mask_that_leaves_no_token_gives_way},
    {"the_mask_keeps_the_output_valid", the_mask_keeps_the_output_valid},
    {"a_batch_chooses_what_the_sampler_would", a_batch_chooses_what_the_sampler_would},
    {"wrong_parameters_are_refused", wrong_parameters_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_sampler[] = {
    {"sampler", NULL, NULL, NULL, NULL, sampler_tests},
    CU_SUITE_INFO_NULL,
};
