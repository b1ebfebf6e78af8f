/* SPDX-License-Identifier: MIT
 * Choosing the next token from logits. The same seed gives the same choices on every machine that
 * gives the same logits. */
#ifndef TND_LLAMA_SAMPLER_H
#define TND_LLAMA_SAMPLER_H

#include "tandem/status.h"

struct tnd_llama_sampler;

/** `temperature` 0 takes the likeliest token; else probabilities are soft_max(logits /
 *  temperature), of which the smallest set that sums to `top_p` (0 or 1: all) is drawn from
 *  (Holtzman et al. 2020). Errors: ARGUMENT, MEMORY. */
enum tandem_status tnd_llama_sampler_new(int64_t vocabulary, float temperature, float top_p,
                                         uint64_t seed, struct tnd_llama_sampler **out_sampler,
                                         struct tandem_error *error);
/** NULL is allowed. */
void tnd_llama_sampler_free(struct tnd_llama_sampler *sampler);

/** The next token. `logits`: as many floats as the vocabulary has tokens. */
int32_t tnd_llama_sampler_choose(struct tnd_llama_sampler *sampler, const float *logits);

#endif
