/* SPDX-License-Identifier: MIT
 * A division for each phase: prompts by layers, generated tokens by rows (shard.h). A rank keeps
 * keys and values of all heads for its layers, and of its heads for all layers. What a batch has
 * computed goes to the ranks on which the next batch needs it. The number of a batch's tokens says
 * which division computes it, so all ranks decide alike. */
#ifndef TND_LLAMA_PHASES_H
#define TND_LLAMA_PHASES_H

#include "llama/session.h"

/** The model, or part of one, that computes a batch of m tokens. */
const tandem_model *tnd_llama_part_for(const tandem_session *session, int64_t m);
/** Layers of which this rank's cache needs all heads; none in sessions that are not mixed. */
struct tnd_llama_kv_wide tnd_llama_wide_layers(const tandem_session *session);

/** Before a batch of m tokens takes cells: if it goes by layers, ranks get those heads of their
 *  layers that other ranks have computed by rows. For all sessions. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_begin(tandem_session *session, int64_t m,
                                         struct tandem_error *error);
/** After a batch of m tokens: if it went by layers, ranks get their heads of all layers. For all
 *  sessions. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_end(tandem_session *session, int64_t m,
                                       struct tandem_error *error);

#endif
