/* SPDX-License-Identifier: MIT
 * Choosing the next token from logits. The same seed gives the same choices on every machine that
 * gives the same logits.
 *
 * A choice runs through these steps: a penalty for what came lately (Keskar et al. 2019); the mask
 * of valid UTF-8; temperature 0 takes the likeliest token, else p = soft_max(logits / temperature);
 * top-k keeps the k likeliest (Fan et al. 2018); top-p of these the smallest set that has top_p of
 * their probability (Holtzman et al. 2020); min-p of these what has at least min_p of the
 * likeliest's probability (Nguyen et al. 2024); one is drawn. Among equal probabilities the lower
 * token comes first. A logit that is no number, or -infinity, is never chosen while another can be;
 * tokens of +infinity share all probability. Each choice takes O(vocabulary). */
#ifndef TND_LLAMA_SAMPLER_H
#define TND_LLAMA_SAMPLER_H

#include "tandem/status.h"
#include "tandem/tokenizer.h"

struct tnd_llama_sampler;

/** Zeros switch a step off. */
struct tnd_llama_sampler_options {
    int64_t vocabulary;
    float temperature;
    int64_t top_k;
    float top_p; /* 0 and 1: all */
    float min_p;
    float repeat_penalty; /* 0 and 1: none; logits above 0 are divided by it, others multiplied */
    int64_t repeat_last;  /* tokens that the penalty remembers; 0: 64 */
    uint64_t seed;
};

/** Errors: ARGUMENT, MEMORY. */
enum tandem_status tnd_llama_sampler_open(const struct tnd_llama_sampler_options *options,
                                          struct tnd_llama_sampler **out_sampler,
                                          struct tandem_error *error);
/** The same with the most common options. */
enum tandem_status tnd_llama_sampler_new(int64_t vocabulary, float temperature, float top_p,
                                         uint64_t seed, struct tnd_llama_sampler **out_sampler,
                                         struct tandem_error *error);
/** NULL is allowed. */
void tnd_llama_sampler_free(struct tnd_llama_sampler *sampler);

/** From now on only tokens whose bytes keep the output valid UTF-8 are chosen, as long as there are
 *  any; tokens without text only between characters. Copies what it needs. Errors: MEMORY. */
enum tandem_status tnd_llama_sampler_keep_utf8(struct tnd_llama_sampler *sampler,
                                               const tandem_tokenizer *tokenizer,
                                               struct tandem_error *error);

/** The next token. `logits`: as many floats as the vocabulary has tokens. */
int32_t tnd_llama_sampler_choose(struct tnd_llama_sampler *sampler, const float *logits);

/** Remembers a token for the penalty, and its bytes for the mask if it `is_output`. */
void tnd_llama_sampler_accept(struct tnd_llama_sampler *sampler, int32_t token, bool is_output);
/** Forgets all tokens; the next choice begins a text. */
void tnd_llama_sampler_reset(struct tnd_llama_sampler *sampler);

/** For tests and measurements: the tokens that top-k, top-p and min-p keep of `logits`, in no
 *  order; returns how many. `out_tokens` has room for the vocabulary. */
int64_t tnd_llama_sampler_keep(struct tnd_llama_sampler *sampler, const float *logits,
                               int32_t *out_tokens);

#endif
