/* SPDX-License-Identifier: MIT
 * Greedy choice, temperature and top-p. */
#include "llama/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "llama/llama_error.h"

struct candidate {
    float probability;
    int32_t token;
};

struct tnd_llama_sampler {
    int64_t vocabulary;
    float temperature;
    float top_p;
    uint64_t state;
    struct candidate *candidates; /* room for the vocabulary */
};

enum tandem_status tnd_llama_sampler_new(int64_t vocabulary, float temperature, float top_p,
                                         uint64_t seed, struct tnd_llama_sampler **out_sampler,
                                         struct tandem_error *error)
{
    if (vocabulary < 1 || vocabulary > INT32_MAX || !(temperature >= 0.0f) || !(top_p >= 0.0f) ||
        !(top_p <= 1.0f)) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "sampler", vocabulary, INT32_MAX,
                              "sampler: vocabulary %lld, temperature %g, top-p %g; expected 1 or "
                              "more, 0 or more, 0 to 1",
                              (long long)vocabulary, (double)temperature, (double)top_p);
    }
    struct tnd_llama_sampler *sampler = calloc(1, sizeof(*sampler));
    struct candidate *candidates = calloc((size_t)vocabulary, sizeof(candidates[0]));
    if (sampler == NULL || candidates == NULL) {
        free(sampler);
        free(candidates);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "sampler", vocabulary, 0,
                              "sampler: no memory for %lld candidates", (long long)vocabulary);
    }
    *sampler = (struct tnd_llama_sampler){.vocabulary = vocabulary,
                                          .temperature = temperature,
                                          .top_p = top_p > 0.0f ? top_p : 1.0f,
                                          .state = seed,
                                          .candidates = candidates};
    *out_sampler = sampler;
    return TANDEM_OK;
}

void tnd_llama_sampler_free(struct tnd_llama_sampler *sampler)
{
    if (sampler != NULL) {
        free(sampler->candidates);
        free(sampler);
    }
}

/* Uniform in [0, 1): splitmix64 (Steele, Lea and Flood 2014), its upper 24 bits. */
static float draw(struct tnd_llama_sampler *sampler)
{
    uint64_t z = sampler->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return (int32_t)best;
}

/* soft_max(logits / temperature) into the candidates, in the order of tokens */
static void fill_candidates(struct tnd_llama_sampler *sampler, const float *logits)
{
    const float top = logits[likeliest(logits, sampler->vocabulary)];
    float sum = 0.0f;
    for (int64_t i = 0; i < sampler->vocabulary; i++) {
        const float e = expf((logits[i] - top) / sampler->temperature);
        sampler->candidates[i] = (struct candidate){.probability = e, .token = (int32_t)i};
        sum += e;
    }
    for (int64_t i = 0; i < sampler->vocabulary; i++) {
        sampler->candidates[i].probability /= sum;
    }
}

/* Likeliest first, among equals the lower token. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->probability != y->probability) {
        return x->probability > y->probability ? -1 : 1;
    }
    return x->token < y->token ? -1 : 1;
}

/* Keeps the likeliest candidates whose sum reaches top_p; returns how many, and their sum. */
static int64_t keep_top(struct tnd_llama_sampler *sampler, float *out_sum)
{
    /* All that are below the floor sum to less than 1 - top_p, so the others reach top_p without
     * them: sorting the others is enough. */
    const float floor = (1.0f - sampler->top_p) / (float)sampler->vocabulary;
    int64_t n = 0;
    for (int64_t i = 0; i < sampler->vocabulary; i++) {
        if (sampler->candidates[i].probability >= floor) {
            sampler->candidates[n++] = sampler->candidates[i];
        }
    }
    qsort(sampler->candidates, (size_t)n, sizeof(sampler->candidates[0]), compare);
    int64_t kept = 0;
    float sum = 0.0f;
    while (kept < n && sum < sampler->top_p) {
        sum += sampler->candidates[kept++].probability;
    }
    *out_sum = sum;
    return kept;
}

int32_t tnd_llama_sampler_choose(struct tnd_llama_sampler *sampler, const float *logits)
{
    if (sampler->temperature == 0.0f) {
        return likeliest(logits, sampler->vocabulary);
    }
    int64_t n = sampler->vocabulary;
    float sum = 1.0f;
    fill_candidates(sampler, logits);
    if (sampler->top_p < 1.0f) {
        n = keep_top(sampler, &sum);
    }
    float left = draw(sampler) * sum;
    for (int64_t i = 0; i < n; i++) {
        left -= sampler->candidates[i].probability;
        if (left < 0.0f) {
            return sampler->candidates[i].token;
        }
    }
    /* rounding, or logits that are no numbers */
    return n > 0 ? sampler->candidates[n - 1].token : likeliest(logits, sampler->vocabulary);
}
