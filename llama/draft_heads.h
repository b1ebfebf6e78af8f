/* SPDX-License-Identifier: MIT
 * Drafts by a layer of the model that predicts ahead (multi-token prediction: DeepSeek-AI 2024,
 * arXiv:2412.19437, 2.2). From the model's last state of a token (normed) and the following token
 * it computes logits of the token after that. For longer drafts it is fed its own states. */
#ifndef TND_LLAMA_DRAFT_HEADS_H
#define TND_LLAMA_DRAFT_HEADS_H

#include "llama/session.h"

struct tnd_draft_heads;

/** For all sequences of a session; opens a session of its own over the model's draft layer.
 * Errors: NOT_FOUND (the model has no such layer), MEMORY. */
enum tandem_status tnd_draft_heads_new(const tandem_session *session,
                                       struct tnd_draft_heads **out_heads,
                                       struct tandem_error *error);
/** NULL is allowed. */
void tnd_draft_heads_free(struct tnd_draft_heads *heads);
/** The session that computes drafts. */
tandem_session *tnd_draft_heads_session(const struct tnd_draft_heads *heads);
/** Records the state {dim} of a token that the model has decoded at a position; positions ascend.
 * A position that comes again replaces everything from there on. */
void tnd_draft_heads_note(struct tnd_draft_heads *heads, int32_t sequence, int64_t position,
                          const float *state);
/** Lets the layer decode recorded states if many are pending. `text`: all n tokens of the
 * sequence. */
void tnd_draft_heads_catch_up(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                              int64_t n);
/** Drafts at most k tokens after the text; the model has not decoded its last token yet. Returns
 * how many; 0: states are missing; -1: the layer could not be computed. */
int tnd_draft_heads_ask(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                        int64_t n, int k, int32_t *out);

#endif
