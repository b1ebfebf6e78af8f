/* SPDX-License-Identifier: MIT
 * A grammar in a sampler: where the output stands, and masks of tokens for the states that were met
 * last. */
#ifndef TND_LLAMA_GRAMMAR_GUARD_H
#define TND_LLAMA_GRAMMAR_GUARD_H

#include "tandem/llama.h"

struct tnd_grammar_guard;

/** Borrows both. NULL: no memory. */
struct tnd_grammar_guard *tnd_grammar_guard_new(const tandem_grammar *grammar,
                                                const tandem_token_trie *trie);
void tnd_grammar_guard_free(struct tnd_grammar_guard *guard);
/** The output begins anew. */
void tnd_grammar_guard_reset(struct tnd_grammar_guard *guard);
/** {vocabulary}: which tokens may follow; NULL: none may, or the guard has failed. */
const bool *tnd_grammar_guard_mask(struct tnd_grammar_guard *guard);
void tnd_grammar_guard_accept(struct tnd_grammar_guard *guard, int32_t token);
enum tandem_grammar_state tnd_grammar_guard_state(const struct tnd_grammar_guard *guard);

#endif
