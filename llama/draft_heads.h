/* SPDX-License-Identifier: MIT
 * Drafts by a layer of the model that predicts ahead (multi-token prediction: DeepSeek-AI 2024,
 * arXiv:2412.19437, 2.2). It sees what the model made of a token (its last state, normed) and the
 * token behind, and gives logits of the next one; drafts of more tokens feed it its own states. */
#ifndef TND_LLAMA_DRAFT_HEADS_H
#define TND_LLAMA_DRAFT_HEADS_H

#include "llama/session.h"

struct tnd_draft_heads;

/** For all sequences of a session, over whose model's layer it opens a session of its own. Errors:
 *  NOT_FOUND (the model has no such layer), MEMORY. */
enum tandem_status tnd_draft_heads_new(const tandem_session *session,
                                       struct tnd_draft_heads **out_heads,
                                       struct tandem_error *error);
/** NULL is allowed. */
void tnd_draft_heads_free(struct tnd_draft_heads *heads);
/** The session that computes drafts. */
tandem_session *tnd_draft_heads_session(const struct tnd_draft_heads *heads);
/** The state {dim} of a token that the model decoded at a position, in the order of positions. A
 *  position that comes again takes the place of what was behind it. */
void tnd_draft_heads_note(struct tnd_draft_heads *heads, int32_t sequence, int64_t position,
                          const float *state);
/** Lets the layer see noted states where many wait. `text`: all n tokens of the sequence. */
void tnd_draft_heads_catch_up(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                              int64_t n);
/** At most k tokens behind the text, whose last one the model has not decoded. Returns how many; 0:
 *  states are missing; -1: the layer could not be computed. */
int tnd_draft_heads_ask(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                        int64_t n, int k, int32_t *out);

#endif
