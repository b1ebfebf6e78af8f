/* SPDX-License-Identifier: MIT
 * A division for each phase: prompts by layers, generated tokens by rows (shard.h). A rank keeps
 * keys and values of all heads for its layers, and of its own heads for all layers. The keys and
 * values of a batch go to the ranks on which the next batch needs them. The division follows from a
 * batch's number of tokens, so all ranks decide alike. */
#ifndef TND_LLAMA_PHASES_H
#define TND_LLAMA_PHASES_H

#include "llama/session.h"

/** The model, or the part of a model, that computes a batch of m tokens. */
const tandem_model *tnd_llama_part_for(const tandem_session *session, int64_t m);
/** Layers for which this rank's cache needs all heads; none in sessions with a single division. */
struct tnd_llama_kv_wide tnd_llama_wide_layers(const tandem_session *session);

/** Call before a batch of m tokens takes cells: if it runs by layers, ranks receive those heads of
 * their layers that other ranks have computed by rows. Any session. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_begin(tandem_session *session, int64_t m,
                                         struct tandem_error *error);
/** Call after a batch of m tokens: if it ran by layers, ranks receive their heads of all layers.
 * Any session. Errors: MEMORY, RANK. */
enum tandem_status tnd_llama_phase_end(tandem_session *session, int64_t m,
                                       struct tandem_error *error);

#endif
