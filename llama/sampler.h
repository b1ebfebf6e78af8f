/* SPDX-License-Identifier: MIT
 * What this room and tests see of a sampler. */
#ifndef TND_LLAMA_SAMPLER_H
#define TND_LLAMA_SAMPLER_H

#include <stdint.h>

#include "tandem/llama.h"
#include "tandem/sample.h"

/** The tokens that top-k, top-p and min-p keep of `logits`, ascending; returns how many.
 *  `out_tokens` has space for the vocabulary. */
int64_t tnd_sampler_keep(tandem_sampler *sampler, const float *logits, int32_t *out_tokens);

/** Keeps the output valid UTF-8 unless the sampler's options say otherwise; nothing where it does
 *  so already by the same tokenizer. Errors: MEMORY. */
enum tandem_status tnd_sampler_mask(tandem_sampler *sampler, const tandem_tokenizer *tokenizer,
                                    struct tandem_error *error);

/** Whether the next choice is one of the operation `sample` over `vocabulary` logits: its settings,
 *  mask (bits; NULL: none; the sampler's) and, added to `steps`, its steps. The sampler is as
 *  before: after the choice call tnd_sampler_took. */
bool tnd_sampler_ask(const tandem_sampler *sampler, int64_t vocabulary,
                     struct tandem_sample_settings *out_settings, const uint32_t **out_mask,
                     int *steps);
/** What a choice depends on beside the logits. */
struct tnd_sampler_request {
    struct tandem_sample_settings settings;
    float penalty; /**< of the tokens `recent`, where there are any */
    const int32_t *recent;
    int64_t n_recent;
    const bool *mask; /**< {vocabulary}; NULL: none */
};
/** The same of any next choice, borrowed until the sampler changes. Returns false where a grammar
 *  allows no token, and for logits of another vocabulary. */
bool tnd_sampler_request(tandem_sampler *sampler, int64_t vocabulary,
                         struct tnd_sampler_request *out);
/** A token's logit after the penalty for repeating it. */
float tnd_sampler_weaken(float logit, float penalty);
/** Uses up the random number of the last tnd_sampler_ask. */
void tnd_sampler_took(tandem_sampler *sampler);
/** tandem_sampler_sample, and the token's probability (NULL: not wanted). */
int32_t tnd_sampler_choose(tandem_sampler *sampler, const float *logits, float *out_probability);
/** Probability of the chosen token among those that were kept, 0 to 1. */
float tnd_sampler_probability(const struct tandem_sample_choice *choice);

/** Whether a choice is one: FORMAT where a grammar that the text does not end by allowed none. */
enum tandem_status tnd_sampler_check(const tandem_sampler *sampler, int32_t token,
                                     struct tandem_error *error);

#endif
