/* SPDX-License-Identifier: MIT
 * Interface of samplers for this room and for tests. */
#ifndef TND_LLAMA_SAMPLER_H
#define TND_LLAMA_SAMPLER_H

#include <stdint.h>

#include "tandem/llama.h"
#include "tandem/sample.h"

/** The tokens that top-k, top-p and min-p keep of `logits`, ascending; returns how many.
 *  `out_tokens` has space for the vocabulary. */
int64_t tnd_sampler_keep(tandem_sampler *sampler, const float *logits, int32_t *out_tokens);

/** Keeps the output valid UTF-8 unless the sampler's options say otherwise; does nothing if it
 * does so already with the same tokenizer. Errors: MEMORY. */
enum tandem_status tnd_sampler_mask(tandem_sampler *sampler, const tandem_tokenizer *tokenizer,
                                    struct tandem_error *error);

/** Whether the operation `sample` over `vocabulary` logits can make the next choice. If so, writes
 * its settings and mask (bits, borrowed from the sampler; NULL: none) and adds its steps to
 * `steps`. Does not change the sampler: after the choice call tnd_sampler_took. */
bool tnd_sampler_ask(const tandem_sampler *sampler, int64_t vocabulary,
                     struct tandem_sample_settings *out_settings, const uint32_t **out_mask,
                     int *steps);
/** Inputs of a choice other than the logits. */
struct tnd_sampler_request {
    struct tandem_sample_settings settings;
    float penalty; /**< of the tokens `recent`, where there are any */
    const int32_t *recent;
    int64_t n_recent;
    const bool *mask; /**< {vocabulary}; NULL: none */
};
/** The same for any next choice, borrowed until the sampler changes. False if a grammar allows no
 * token, or for logits of another vocabulary. */
bool tnd_sampler_request(tandem_sampler *sampler, int64_t vocabulary,
                         struct tnd_sampler_request *out);
/** A token's logit after the penalty for repeating it. */
float tnd_sampler_weaken(float logit, float penalty);
/** Consumes the random number that the last tnd_sampler_ask returned. */
void tnd_sampler_took(tandem_sampler *sampler);
/** tandem_sampler_sample, which also returns the token's probability (NULL: not wanted). */
int32_t tnd_sampler_choose(tandem_sampler *sampler, const float *logits, float *out_probability);
/** Probability of the chosen token among those that were kept, 0 to 1. */
float tnd_sampler_probability(const struct tandem_sample_choice *choice);

/** Checks a choice: FORMAT if a grammar allowed no token although its text is not complete. */
enum tandem_status tnd_sampler_check(const tandem_sampler *sampler, int32_t token,
                                     struct tandem_error *error);

#endif
