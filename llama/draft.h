/* SPDX-License-Identifier: MIT
 * Speculation inside of a session: tokens that may follow are drafted and decoded together with the
 * one that was chosen. Their logits wait until the caller asks for the same tokens; keys and values
 * of others are dropped. Callers see no difference but the time: whatever they choose, they choose
 * it from logits of the model. Idea: Leviathan et al., arXiv 2211.17192; drafts from the text
 * itself: prompt look-up decoding (Saxena 2023). */
#ifndef TND_LLAMA_DRAFT_H
#define TND_LLAMA_DRAFT_H

#include "llama/session.h"

enum {
    TND_DRAFT_MOST = 16, /* tokens of a draft */
    TND_DRAFT_BATCH = 64 /* tokens of a batch with drafts */
};

/** How likely a drafted token of a text is the one that follows. */
struct tnd_draft_hope {
    double acceptance;
    int64_t n;            /* drafted tokens that it was learnt from */
    int64_t wait, period; /* tokens until the draft model tries again */
};

/** Notes whether a drafted token was the one that followed. */
void tnd_draft_learn(struct tnd_draft_hope *hope, bool was_right);
/** How many tokens to draft for each of `n` texts, at most room[i], so that the most tokens an
 *  hour are expected: `m` tokens are decoded in any case. `draft_us`: of one token by the draft
 *  model; 0: none, or not known. */
void tnd_draft_choose(const struct tnd_batch_times *times, double draft_us,
                      const struct tnd_draft_hope *const *hopes, const int *room, int n, int64_t m,
                      int *out);
/** Tokens that followed the longest earlier stretch that equals the end of the text; at least two
 *  tokens must be equal. Writes at most `most`, returns how many. */
int tnd_draft_look_up(const int32_t *text, int64_t n, int most, int32_t *out);

#endif
