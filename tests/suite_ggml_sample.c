/* SPDX-License-Identifier: MIT
 * Weights of logits by vectors: the integers of the plain formula, for any bits. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "ggml-like/sample_weights.h"
#include "tests/support.h"

enum { N = 64, GUARD = 0x5a5a5a5a };

typedef void (*weigh_fn)(const struct tandem_sample_settings *settings, float largest,
                         uint32_t largest_key, const float *logits, int64_t n, uint32_t *keys,
                         uint32_t *weights);

static weigh_fn vectors(void)
{
#if defined(__x86_64__)
    return (tnd_cpu_features() & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2 ? tnd_sample_weights_avx2
                                                                       : NULL;
#elif defined(__aarch64__)
    return tnd_sample_weights_neon;
#else
    return NULL;
#endif
}

/* Bits of all kinds: any, those where formulas have edges, and plain logits. */
static uint32_t some_bits(struct tnd_test_rng *rng, bool is_plain)
{
    static const uint32_t edges[] = {0,          0x80000000u, 1,           0x80000001u, 0x7fffff,
                                     0x800000,   0x7f800000,  0xff800000u, 0x7f800001,  0xffffffffu,
                                     0x7f7fffff, 0xff7fffffu, 0x3f800000,  0x3f800001};
    const int64_t kind = is_plain ? 2 : tnd_test_rng_int(rng, 0, 3);
    float value = tnd_test_rng_float(rng) * 30.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return kind == 0   ? (uint32_t)tnd_test_rng_next(rng)
           : kind == 1 ? edges[tnd_test_rng_int(rng, 0, sizeof(edges) / sizeof(edges[0]) - 1)]
                       : bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void weights_of_vectors_are_those_of_the_formula(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const weigh_fn weigh = vectors();
    int64_t n_wrong = 0;
    int64_t n_between = 0; /* neither 0 nor 1 */
    for (int round = 0; weigh != NULL && round < 4000; round++) {
        struct tandem_sample_settings s;
        float logits[N];
        uint32_t keys[N + 1], weights[N + 1];
        tandem_sample_settings_fill(&s, expf(tnd_test_rng_float(&rng) * 8.0f), 0, 0, 0, 0);
        if (round % 4 == 0) { /* settings that no temperature gives */
            s.scale = (uint32_t)tnd_test_rng_next(&rng);
            s.exponent = (int32_t)tnd_test_rng_next(&rng) >> tnd_test_rng_int(&rng, 0, 31);
        }
        uint32_t largest = 0;
        for (int i = 0; i < N; i++) {
            const uint32_t bits = some_bits(&rng, round % 3 == 0);
            const uint32_t key = tnd_sample_key(bits);
            logits[i] = float_of(bits);
            largest = key > largest && (round % 2 == 0 || i < 9) ? key : largest;
        }
        if (largest == 0) {
            continue;
        }
        const uint32_t bits = largest >> 31 != 0 ? largest & 0x7fffffffu : ~largest;
        const float value = float_of((bits & 0x7f800000u) == 0 ? 0 : bits);
        const int n = (int)tnd_test_rng_int(&rng, 0, N / 8) * 8;
        keys[n] = weights[n] = GUARD;
        weigh(&s, value, largest, logits, n, keys, weights);
        n_wrong += keys[n] != GUARD || weights[n] != GUARD;
        for (int i = 0; i < n; i++) {
            uint32_t of_logit;
            memcpy(&of_logit, &logits[i], sizeof(of_logit));
            const uint32_t key = tnd_sample_key(of_logit);
            const bool has_chance = key != 0 && key <= largest;
            const uint32_t want = has_chance ? tnd_sample_weight(&s, largest, key) : 0;
            n_wrong += keys[i] != key || weights[i] != want;
            n_between += want > 0 && want < TANDEM_SAMPLE_ONE;
        }
    }
    check_int(n_wrong, 0);
    CU_ASSERT_TRUE(weigh == NULL || n_between > 10000);
}

/* ---- rows in parts ---- */

enum { MOST = 700, PARTS = 5, MOST_FIRST = 40 };

static struct tandem_sample_settings some_settings(struct tnd_test_rng *rng)
{
    static const float shares[] = {0.0f, 0.1f, 0.5f, 0.9f, 0.999f};
    static const float leasts[] = {0.0f, 0.001f, 0.1f, 0.9f, 1.0f};
    struct tandem_sample_settings s;
    const bool is_warm = tnd_test_rng_int(rng, 0, 4) > 0;
    tandem_sample_settings_fill(&s, is_warm ? expf(tnd_test_rng_float(rng) * 5.0f) : 0.0f,
                                tnd_test_rng_int(rng, 0, 1) * tnd_test_rng_int(rng, 1, MOST_FIRST),
                                shares[tnd_test_rng_int(rng, 0, 4)],
                                leasts[tnd_test_rng_int(rng, 0, 4)], tnd_test_rng_next(rng));
    return s;
}

/* Chooses from a row in parts, some of them empty; returns whether that is certain. */
static bool choose_in_parts(const struct tandem_sample_settings *s, const float *row, int n,
                            int64_t k, struct tnd_test_rng *rng, void *memory,
                            struct tandem_sample_choice *out)
{
    struct tandem_sample_first firsts[PARTS][MOST_FIRST];
    struct tandem_sample_part parts[PARTS];
    float largest = -INFINITY;
    int at = 0;
    for (int i = 0; i < n; i++) {
        largest = row[i] > largest ? row[i] : largest;
    }
    for (int p = 0; p < PARTS; p++) {
        const int end = p == PARTS - 1 ? n : (int)tnd_test_rng_int(rng, at, n);
        parts[p] = (struct tandem_sample_part){.first = firsts[p], .is_all = true};
        if (end > at) {
            parts[p].n =
                tandem_sample_first(row + at, end - at, k, memory, firsts[p], &parts[p].is_all);
            parts[p].sum = tandem_sample_sum(s, largest, row + at, end - at);
        }
        for (int64_t i = 0; i < parts[p].n; i++) {
            firsts[p][i].index += at;
        }
        at = end;
    }
    return tandem_sample_parts(s, parts, PARTS, memory, out);
}

/* Few values, so that many are equal, also where parts meet; infinities and no numbers. */
static void a_row_in_parts_gives_the_choice_of_the_whole_row(void)
{
    static char
        memory[sizeof(struct tnd_sample_memory) + 2 * MOST * sizeof(struct tnd_sample_candidate)];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    int64_t n_wrong = 0, n_open = 0, n_certain = 0;
    for (int round = 0; round < 20000; round++) {
        struct tandem_sample_settings s = some_settings(&rng);
        struct tandem_sample_choice want = {0, 0, 0}, got = {0, 0, 0};
        const int n = (int)tnd_test_rng_int(&rng, 1, MOST);
        const int64_t least = s.k > 0 ? s.k : 1;
        const int64_t k = tnd_test_rng_int(&rng, least, MOST_FIRST);
        float row[MOST];
        const int kind = round % 4;
        for (int i = 0; i < n; i++) {
            row[i] = kind == 0   ? (float)tnd_test_rng_int(&rng, -3, 3)
                     : kind == 1 ? float_of(some_bits(&rng, false))
                     : kind == 2 ? float_of(some_bits(&rng, true))
                                 : tnd_test_rng_float(&rng) * 3.0f;
        }
        (void)tandem_sample_row(&s, row, n, NULL, memory, NULL, &want);
        const bool is_certain = choose_in_parts(&s, row, n, k, &rng, memory, &got);
        n_wrong += is_certain && memcmp(&got, &want, sizeof(want)) != 0;
        n_wrong += !is_certain && (s.scale == 0 || s.k > 0);
        n_open += !is_certain;
        n_certain += is_certain && s.scale != 0 && s.k == 0;
    }
    check_int(n_wrong, 0);
    CU_ASSERT_TRUE(n_open > 1000 && n_certain > 1000);
}

/* What ranks tell comes from outside. */
static void parts_that_tell_too_little_are_not_certain(void)
{
    static char memory[sizeof(struct tnd_sample_memory) + 64];
    const struct tandem_sample_first first = {1.0f, 3}, none = {NAN, 5};
    struct tandem_sample_part parts[] = {{&first, 1, false, 0}, {NULL, 0, false, 0}};
    struct tandem_sample_choice choice;
    struct tandem_sample_settings s;
    tandem_sample_settings_fill(&s, 1.0f, 2, 0.0f, 0.0f, 0);
    CU_ASSERT_FALSE(tandem_sample_parts(&s, parts, 1, memory, &choice));
    tandem_sample_settings_fill(&s, 0.0f, 0, 0.0f, 0.0f, 0);
    CU_ASSERT_FALSE(tandem_sample_parts(&s, parts, 2, memory, &choice));
    parts[1] = (struct tandem_sample_part){&none, 1, true, 0};
    CU_ASSERT_TRUE(tandem_sample_parts(&s, parts, 2, memory, &choice));
    check_int(choice.index, 3);
    CU_ASSERT_TRUE(tandem_sample_parts(&s, parts + 1, 1, memory, &choice));
    check_int(choice.weight, 0);
    CU_ASSERT_FALSE(tandem_sample_parts(NULL, parts, 1, memory, &choice));
    check_int(tandem_sample_sum(NULL, 1.0f, NULL, 4), 0);
    check_int(tandem_sample_first(NULL, 4, 1, memory, NULL, NULL), 0);
}

static CU_TestInfo sample_tests[] = {
    {"a_row_in_parts_gives_the_choice_of_the_whole_row",
     a_row_in_parts_gives_the_choice_of_the_whole_row},
    {"parts_that_tell_too_little_are_not_certain", parts_that_tell_too_little_are_not_certain},
    {"weights_of_vectors_are_those_of_the_formula", weights_of_vectors_are_those_of_the_formula},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_sample[] = {
    {"sample", NULL, NULL, NULL, NULL, sample_tests},
    CU_SUITE_INFO_NULL,
};
