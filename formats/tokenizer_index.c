/* SPDX-License-Identifier: MIT
 * Finding tokens by their texts: a hash table for whole tokens, sorted lists for those that begin
 * at a place. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

/* ---- whole tokens ---- */

/* Slot of the token with this text, or the free slot where it would stand. */
static size_t find_slot(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    size_t at = (size_t)tnd_hash_bytes(text, n, 0) & (tokenizer->n_slots - 1);
    while (tokenizer->slots[at] != 0) {
        const struct tnd_token *token = &tokenizer->tokens[tokenizer->slots[at] - 1];
        if (token->length == n && memcmp(token->text, text, n) == 0) {
            break;
        }
        at = (at + 1) & (tokenizer->n_slots - 1);
    }
    return at;
}

/* Texts such as "<s>" and "<0x0A>" are names, which a text must not reach by merging. */
static bool is_found_by_text(const tandem_tokenizer *tokenizer, int64_t id)
{
    const struct tnd_token *token = &tokenizer->tokens[id];
    if (tokenizer->model == TND_MODEL_RANKS && !tokenizer->joins_texts) {
        return token->length > 0 &&
               (tokenizer->added == NULL || !tokenizer->added[id].is_outside_model);
    }
    return token->type == TND_TOKEN_NORMAL || token->type == TND_TOKEN_USER ||
           token->type == TND_TOKEN_UNUSED;
}

static bool begins_with(const char *text, size_t n, const char *word, size_t length)
{
    return n >= length && memcmp(text, word, length) == 0;
}

/* Whether a token has the blank after another character: then a text must not be split there. */
static bool has_inside(const struct tnd_token *token, const char *blank, size_t length)
{
    for (size_t i = 1; i < token->length; i++) {
        if (begins_with(token->text + i, token->length - i, blank, length) &&
            !(i >= length && begins_with(token->text + i - length, length, blank, length))) {
            return true;
        }
    }
    return false;
}

static const char *const blanks[] = {" ", "\xe2\x96\x81"};

/* No merge crosses a place before a blank if no token does, and if the blank is never dropped. */
static void find_cuts(tandem_tokenizer *tokenizer)
{
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(blanks[i]);
        bool cuts = tnd_tokenizer_find(tokenizer, blanks[i], length) >= 0;
        for (int64_t id = 0; cuts && id < tokenizer->n_tokens; id++) {
            cuts = !is_found_by_text(tokenizer, id) ||
                   !has_inside(&tokenizer->tokens[id], blanks[i], length);
        }
        tokenizer->cuts_at_blank[i] = cuts;
    }
}

size_t tnd_tokenizer_run(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    for (size_t at = 1; at < n; at++) {
        const int i = text[at] == ' ' ? 0 : text[at] == '\xe2' ? 1 : -1;
        if (i < 0 || !tokenizer->cuts_at_blank[i]) {
            continue;
        }
        const size_t length = strlen(blanks[i]);
        if (begins_with(text + at, n - at, blanks[i], length) &&
            !(at >= length && begins_with(text + at - length, length, blanks[i], length))) {
            return at;
        }
    }
    return n;
}

enum tandem_status tnd_tokenizer_index(tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    size_t n_slots = 16;
    while (n_slots < (size_t)tokenizer->n_tokens * 2) {
        n_slots *= 2;
    }
    tokenizer->slots = tnd_calloc(n_slots, sizeof(tokenizer->slots[0]));
    if (tokenizer->slots == NULL) {
        return tnd_tokenizer_no_memory("tokenizer", n_slots * sizeof(tokenizer->slots[0]), error);
    }
    tokenizer->n_slots = n_slots;
    tokenizer->max_length = 0;
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        if (!is_found_by_text(tokenizer, id)) {
            continue;
        }
        const size_t at = find_slot(tokenizer, token->text, token->length);
        if (tokenizer->slots[at] == 0) {
            tokenizer->slots[at] = (uint32_t)id + 1;
        }
        if (token->length > tokenizer->max_length) {
            tokenizer->max_length = token->length;
        }
    }
    find_cuts(tokenizer);
    return TANDEM_OK;
}

int32_t tnd_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    return (int32_t)tokenizer->slots[find_slot(tokenizer, text, n)] - 1;
}

/* ---- tokens that begin at a place ---- */

static int compare_items(const void *left, const void *right)
{
    const struct tnd_prefix_item *a = left;
    const struct tnd_prefix_item *b = right;
    const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    if (order != 0) {
        return order;
    }
    if (a->length != b->length) {
        return a->length < b->length ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Which tokens an index holds. */
static bool belongs(const tandem_tokenizer *tokenizer, const struct tnd_prefix_index *index,
                    int64_t id)
{
    const struct tnd_token *token = &tokenizer->tokens[id];
    const bool is_user = token->type == TND_TOKEN_USER;
    const bool is_control = token->type == TND_TOKEN_CONTROL || token->type == TND_TOKEN_UNKNOWN;
    const bool is_normalized = tokenizer->added != NULL && tokenizer->added[id].is_normalized;
    if (token->length == 0) {
        return false;
    }
    if (index == &tokenizer->pieces) {
        return tokenizer->model == TND_MODEL_UNIGRAM &&
               (token->type == TND_TOKEN_NORMAL || is_user);
    }
    if (index == &tokenizer->users) {
        return is_user && !is_normalized;
    }
    if (index == &tokenizer->specials) {
        return ((is_user && !tokenizer->matches_inside) || is_control) && !is_normalized;
    }
    return is_user && is_normalized;
}

struct tnd_shown_text tnd_token_text(const tandem_tokenizer *tokenizer, int64_t id)
{
    const struct tnd_token *token = &tokenizer->tokens[id];
    const struct tnd_added *added = tokenizer->added == NULL ? NULL : &tokenizer->added[id];
    return added != NULL && added->text != NULL
               ? (struct tnd_shown_text){added->text, added->length}
               : (struct tnd_shown_text){token->text, token->length};
}

static enum tandem_status fill_index(tandem_tokenizer *tokenizer, struct tnd_prefix_index *index,
                                     const char *name, struct tandem_error *error)
{
    size_t n = 0;
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        n += belongs(tokenizer, index, id);
    }
    if (n == 0) {
        return TANDEM_OK;
    }
    index->items = tnd_calloc(n, sizeof(index->items[0]));
    if (index->items == NULL) {
        return tnd_tokenizer_no_memory(name, n * sizeof(index->items[0]), error);
    }
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        if (!belongs(tokenizer, index, id)) {
            continue;
        }
        if (token->length > TND_MAX_TOKEN_BYTES) {
            return tnd_error_set(error, TANDEM_E_FORMAT, name, token->length, TND_MAX_TOKEN_BYTES,
                                 "%s: token %lld is %u bytes long, expected at most %d", name,
                                 (long long)id, token->length, TND_MAX_TOKEN_BYTES);
        }
        const struct tnd_shown_text shown = tnd_token_text(tokenizer, id);
        index->items[index->n++] =
            (struct tnd_prefix_item){.text = shown.text, .length = shown.length, .id = (int32_t)id};
    }
    qsort(index->items, n, sizeof(index->items[0]), compare_items);
    size_t at = 0;
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (at < n && (unsigned char)index->items[at].text[0] < byte) {
            at++;
        }
        index->first[byte] = (uint32_t)at;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_tokenizer_index_prefixes(tandem_tokenizer *tokenizer, const char *name,
                                                struct tandem_error *error)
{
    TND_TRY(fill_index(tokenizer, &tokenizer->pieces, name, error));
    TND_TRY(fill_index(tokenizer, &tokenizer->users, name, error));
    TND_TRY(fill_index(tokenizer, &tokenizer->specials, name, error));
    return fill_index(tokenizer, &tokenizer->normalized, name, error);
}

struct tnd_prefix_walk tnd_prefix_begin(const struct tnd_prefix_index *index)
{
    return (struct tnd_prefix_walk){.index = index, .low = 0, .high = index->n, .depth = 0};
}

/* First item of [low, high) whose byte at `depth` is at least `byte`; all are longer. */
static size_t lower_bound(const struct tnd_prefix_walk *walk, size_t low, unsigned byte)
{
    size_t high = walk->high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((unsigned char)walk->index->items[middle].text[walk->depth] < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool tnd_prefix_step(struct tnd_prefix_walk *walk, char byte)
{
    const unsigned value = (unsigned char)byte;
    if (walk->depth == 0) {
        walk->low = walk->index->n > 0 ? walk->index->first[value] : 0;
        walk->high = walk->index->n > 0 ? walk->index->first[value + 1] : 0;
    } else {
        while (walk->low < walk->high && walk->index->items[walk->low].length == walk->depth) {
            walk->low++; /* ends here; equal texts stand side by side */
        }
        walk->low = lower_bound(walk, walk->low, value);
        walk->high = lower_bound(walk, walk->low, value + 1);
    }
    walk->depth++;
    return walk->low < walk->high;
}

int32_t tnd_prefix_id(const struct tnd_prefix_walk *walk)
{
    if (walk->low >= walk->high || walk->index->items[walk->low].length != walk->depth) {
        return -1;
    }
    return walk->index->items[walk->low].id;
}

int32_t tnd_prefix_longest(const struct tnd_prefix_index *index, const char *text, size_t n,
                           size_t *out_length)
{
    struct tnd_prefix_walk walk = tnd_prefix_begin(index);
    int32_t longest = -1;
    for (size_t i = 0; i < n && tnd_prefix_step(&walk, text[i]); i++) {
        const int32_t id = tnd_prefix_id(&walk);
        if (id >= 0) {
            longest = id;
            *out_length = i + 1;
        }
    }
    return longest;
}
