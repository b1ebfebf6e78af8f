/* SPDX-License-Identifier: MIT
 * Speculative decoding within a session: tokens that may follow are drafted and decoded together
 * with the chosen one. Their logits are kept until the caller asks for the same tokens; keys and
 * values of other drafts are dropped. Callers see only a difference in time: they always choose
 * from logits of the model. Idea: Leviathan et al., arXiv 2211.17192; drafts from the text itself:
 * prompt look-up decoding (Saxena 2023). */
#ifndef TND_LLAMA_DRAFT_H
#define TND_LLAMA_DRAFT_H

#include "llama/session.h"

enum {
    TND_DRAFT_MOST = 16, /* most tokens of a draft */
    TND_DRAFT_BATCH = 64 /* most tokens of a batch with drafts */
};

/** How likely a drafted token of a text is accepted. */
struct tnd_draft_hope {
    double acceptance;
    int64_t n;            /* drafted tokens that this is based on */
    int64_t wait, period; /* tokens until the draft model is tried again */
};

/** Records whether a drafted token was accepted. */
void tnd_draft_learn(struct tnd_draft_hope *hope, bool was_right);
/** Chooses how many tokens to draft for each of `n` texts, at most room[i], to maximise expected
 * tokens per time. `m` tokens are decoded in any case. `draft_us`: time per token of the draft
 * model; 0: there is none, or its time is unknown. */
void tnd_draft_choose(const struct tnd_batch_times *times, double draft_us,
                      const struct tnd_draft_hope *const *hopes, const int *room, int n, int64_t m,
                      int *out);
/** Finds the longest earlier run of tokens that equals the end of the text (at least two tokens)
 * and copies what followed it. Writes at most `most` tokens; returns how many. */
int tnd_draft_look_up(const int32_t *text, int64_t n, int most, int32_t *out);

#endif
