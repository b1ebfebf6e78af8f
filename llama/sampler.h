/* SPDX-License-Identifier: MIT
 * What this room and tests see of a sampler. */
#ifndef TND_LLAMA_SAMPLER_H
#define TND_LLAMA_SAMPLER_H

#include <stdint.h>

#include "tandem/llama.h"

/** The tokens that top-k, top-p and min-p keep of `logits`, ascending; returns how many.
 *  `out_tokens` has space for the vocabulary. */
int64_t tnd_sampler_keep(tandem_sampler *sampler, const float *logits, int32_t *out_tokens);

/** Keeps the output valid UTF-8 unless the sampler's options say otherwise; nothing where it does
 *  so already by the same tokenizer. Errors: MEMORY. */
enum tandem_status tnd_sampler_mask(tandem_sampler *sampler, const tandem_tokenizer *tokenizer,
                                    struct tandem_error *error);

/** Whether a choice is one: FORMAT where a grammar that the text does not end by allowed none. */
enum tandem_status tnd_sampler_check(const tandem_sampler *sampler, int32_t token,
                                     struct tandem_error *error);

#endif
