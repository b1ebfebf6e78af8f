/* SPDX-License-Identifier: MIT
 * A division for each phase: prompts by layers, generated tokens by rows (shard.h). A rank has all
 * heads of its layers, for prompts, and its heads of all layers: what batches leave behind goes
 * from the ranks that computed it to those that the next batch needs it on. Ranks decide alike: by
 * the number of a batch's tokens. */
#ifndef TND_LLAMA_PHASES_H
#define TND_LLAMA_PHASES_H

#include "llama/session.h"

/** The model, or part of one, that computes a batch of m tokens. */
const tandem_model *tnd_llama_part_for(const tandem_session *session, int64_t m);
/** Layers of which the cache needs all heads; none where there is one part alone. */
struct tnd_llama_kv_wide tnd_llama_wide_layers(const tandem_session *session);

/** Before cells are taken for a batch of m tokens: if it goes by layers, ranks get all heads of
 *  their layers of what was computed by rows. For all sessions. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_begin(tandem_session *session, int64_t m,
                                         struct tandem_error *error);
/** Behind a batch: if it went by layers, ranks get their heads of all layers of its tokens. For all
 *  sessions. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_end(tandem_session *session, int64_t m,
                                       struct tandem_error *error);

#endif
