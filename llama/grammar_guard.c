/* SPDX-License-Identifier: MIT
 * Grammars as constraints of samplers. */
#include "llama/grammar_guard.h"

#include <stdlib.h>

#include "llama/grammar.h"

enum { N_MASKS = 8 /* cached masks; a text alternates between few states */ };

struct mask {
    int32_t state; /* 0: none */
    int64_t n;     /* number of allowed tokens */
    uint64_t used;
    bool *tokens; /* {vocabulary} */
};

struct tnd_grammar_guard {
    struct tnd_matcher *matcher;
    const tandem_token_trie *trie;
    int32_t state;
    bool has_moved;
    uint64_t clock;
    struct mask masks[N_MASKS];
};

struct tnd_grammar_guard *tnd_grammar_guard_new(const tandem_grammar *grammar,
                                                const tandem_token_trie *trie)
{
    struct tnd_grammar_guard *guard = calloc(1, sizeof(*guard));
    if (guard == NULL) {
        return NULL;
    }
    guard->trie = trie;
    guard->matcher = tnd_matcher_new(grammar);
    if (guard->matcher == NULL) {
        free(guard);
        return NULL;
    }
    guard->state = tnd_matcher_begin(guard->matcher);
    return guard;
}

void tnd_grammar_guard_free(struct tnd_grammar_guard *guard)
{
    if (guard != NULL) {
        for (int i = 0; i < N_MASKS; i++) {
            free(guard->masks[i].tokens);
        }
        tnd_matcher_free(guard->matcher);
        free(guard);
    }
}

void tnd_grammar_guard_reset(struct tnd_grammar_guard *guard)
{
    if (guard->has_moved) {
        guard->state = tnd_matcher_begin(guard->matcher);
        guard->has_moved = false;
    }
}

/* The cached mask of a state, or else the least recently used one. */
static struct mask *find(struct tnd_grammar_guard *guard)
{
    struct mask *oldest = &guard->masks[0];
    for (int i = 0; i < N_MASKS; i++) {
        struct mask *mask = &guard->masks[i];
        if (mask->state == guard->state) {
            return mask;
        }
        oldest = mask->used < oldest->used ? mask : oldest;
    }
    return oldest;
}

const bool *tnd_grammar_guard_mask(struct tnd_grammar_guard *guard)
{
    if (guard->state <= 0) {
        return NULL;
    }
    struct mask *mask = find(guard);
    mask->used = ++guard->clock;
    if (mask->state != guard->state) {
        if (mask->tokens == NULL) {
            mask->tokens =
                calloc((size_t)tnd_token_trie_vocabulary(guard->trie), sizeof(mask->tokens[0]));
        }
        mask->state = 0;
        mask->n = mask->tokens != NULL
                      ? tnd_token_trie_mask(guard->trie, guard->matcher, guard->state, mask->tokens)
                      : -1;
        if (mask->n < 0) {
            guard->state = TND_MATCHER_FAILED;
            return NULL;
        }
        mask->state = guard->state;
    }
    return mask->n > 0 ? mask->tokens : NULL;
}

void tnd_grammar_guard_accept(struct tnd_grammar_guard *guard, int32_t token)
{
    bool has_changed = false;
    guard->has_moved = true;
    guard->state = tnd_token_trie_next(guard->trie, guard->matcher, guard->state, token);
    guard->state = tnd_matcher_tidy(guard->matcher, guard->state, &has_changed);
    for (int i = 0; has_changed && i < N_MASKS; i++) {
        guard->masks[i].state = 0;
    }
}

enum tandem_grammar_state tnd_grammar_guard_state(const struct tnd_grammar_guard *guard)
{
    const bool accepts = tnd_matcher_accepts(guard->matcher, guard->state);
    return guard->state <= 0                                   ? TANDEM_GRAMMAR_BROKEN
           : !accepts                                          ? TANDEM_GRAMMAR_OPEN
           : tnd_matcher_goes_on(guard->matcher, guard->state) ? TANDEM_GRAMMAR_MAY_END
                                                               : TANDEM_GRAMMAR_COMPLETE;
}
