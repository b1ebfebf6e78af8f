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

static CU_TestInfo sample_tests[] = {
    {"weights_of_vectors_are_those_of_the_formula", weights_of_vectors_are_those_of_the_formula},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_sample[] = {
    {"sample", NULL, NULL, NULL, NULL, sample_tests},
    CU_SUITE_INFO_NULL,
};
