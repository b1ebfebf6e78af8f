/* SPDX-License-Identifier: MIT
 * Selecting the likeliest of many candidates in linear time, and what tests see of a sampler. */
#ifndef TND_LLAMA_SAMPLER_SELECT_H
#define TND_LLAMA_SAMPLER_SELECT_H

#include <stdint.h>

#include "tandem/llama.h"

/** Half-precision numbers from 0 to 1: bits 0 to 0x3c00. */
#define TND_SELECT_KEYS 0x3c01

struct tnd_token_candidate {
    float weight; /* 0 to 1, a number: exp((logit - largest) / temperature) */
    int32_t token;
};

/** Working memory of a selection; no initial contents. */
struct tnd_select_memory {
    struct tnd_token_candidate *spare; /* twice as many as there are candidates */
    uint32_t counts[TND_SELECT_KEYS];
    double sums[TND_SELECT_KEYS];
};

/** Bits of a weight rounded down to half precision: they stand in the order of the weights. */
uint32_t tnd_select_key(float weight);

/** Moves to the front of `candidates` (tokens ascending) the likeliest: at most k of them, and no
 *  more than needed for `share` of the weight of all; at least one if n > 0. Of equal weights the
 *  lower tokens. Returns how many; they are in ascending order of tokens. O(n). */
int64_t tnd_select(struct tnd_token_candidate *candidates, int64_t n, int64_t k, double share,
                   struct tnd_select_memory *memory);

/** The tokens that top-k, top-p and min-p keep of `logits`, in no order; returns how many.
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
