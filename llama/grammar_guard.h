/* SPDX-License-Identifier: MIT
 * A grammar as a constraint of a sampler: the state of the output, and cached masks of allowed
 * tokens for recent states. */
#ifndef TND_LLAMA_GRAMMAR_GUARD_H
#define TND_LLAMA_GRAMMAR_GUARD_H

#include "tandem/llama.h"

struct tnd_grammar_guard;

/** Borrows grammar and trie. NULL: no memory. */
struct tnd_grammar_guard *tnd_grammar_guard_new(const tandem_grammar *grammar,
                                                const tandem_token_trie *trie);
void tnd_grammar_guard_free(struct tnd_grammar_guard *guard);
/** Starts a new output. */
void tnd_grammar_guard_reset(struct tnd_grammar_guard *guard);
/** {vocabulary}: tokens that may follow; NULL: none may, or the guard has failed. */
const bool *tnd_grammar_guard_mask(struct tnd_grammar_guard *guard);
void tnd_grammar_guard_accept(struct tnd_grammar_guard *guard, int32_t token);
enum tandem_grammar_state tnd_grammar_guard_state(const struct tnd_grammar_guard *guard);

#endif
