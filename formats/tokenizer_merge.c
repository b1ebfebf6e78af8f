/* SPDX-License-Identifier: MIT
 * Pair merging. The symbols of a text stand in a doubly linked list; a heap holds every pair of
 * neighbours that makes a token. Pairs that a merge has broken stay in the heap and are recognised
 * when they come up, so that n symbols take O(n log n). */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/vector.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define NONE         UINT32_MAX
#define LOWEST_SCORE (-1e10) /* llama2.c merges only above this */

struct tnd_merge_pair {
    double score;
    uint32_t left;   /* index of the left symbol: the order among equals */
    uint32_t length; /* of both; symbols only grow, so another length means that they have merged */
    int32_t merged;
};

static bool goes_before(const struct tnd_merge_pair *a, const struct tnd_merge_pair *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void heap_push(struct tnd_merger *merger, struct tnd_merge_pair pair)
{
    if (!tnd_grow(&merger->heap, merger->n_heap, &merger->heap_capacity, sizeof(pair))) {
        merger->failed = true;
        return;
    }
    size_t at = merger->n_heap++;
    while (at > 0 && goes_before(&pair, &merger->heap[(at - 1) / 2])) {
        merger->heap[at] = merger->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->heap[at] = pair;
}

static struct tnd_merge_pair heap_pop(struct tnd_merger *merger)
{
    TND_ASSERT(merger->n_heap > 0);
    const struct tnd_merge_pair best = merger->heap[0];
    const struct tnd_merge_pair last = merger->heap[--merger->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < merger->n_heap; child = 2 * at + 1) {
        if (child + 1 < merger->n_heap &&
            goes_before(&merger->heap[child + 1], &merger->heap[child])) {
            child++;
        }
        if (!goes_before(&merger->heap[child], &last)) {
            break;
        }
        merger->heap[at] = merger->heap[child];
        at = child;
    }
    merger->heap[at] = last;
    return best;
}

/* Joins two neighbours; false: the result is not a token. */
static bool join(const tandem_tokenizer *tokenizer, const char *text, const struct tnd_symbol *a,
                 const struct tnd_symbol *b, struct tnd_merge_pair *out)
{
    if (tokenizer->model == TND_MODEL_RANKS && !tokenizer->joins_texts) {
        const struct tnd_merge *merge =
            a->id < 0 || b->id < 0 ? NULL : tnd_merges_find(tokenizer, a->id, b->id);
        if (merge == NULL) {
            return false;
        }
        out->score = -(double)merge->rank;
        out->merged = merge->merged;
        return true;
    }
    const size_t length = (size_t)a->length + b->length;
    const int32_t id = length > tokenizer->max_length
                           ? -1
                           : tnd_tokenizer_find(tokenizer, text + a->start, length);
    if (id < 0 || !(tokenizer->tokens[id].score > LOWEST_SCORE)) {
        return false;
    }
    out->score = tokenizer->tokens[id].score;
    out->merged = id;
    return true;
}

/* Puts the pair that begins at `left` into the heap when it makes a token. */
static void consider(struct tnd_merger *merger, const tandem_tokenizer *tokenizer, const char *text,
                     uint32_t left)
{
    const uint32_t right = left == NONE ? NONE : merger->symbols[left].next;
    if (right == NONE) {
        return;
    }
    const struct tnd_symbol *a = &merger->symbols[left];
    const struct tnd_symbol *b = &merger->symbols[right];
    TND_ASSERT(left < merger->n && right < merger->n);
    struct tnd_merge_pair pair = {.left = left, .length = a->length + b->length};
    if (!a->is_fixed && !b->is_fixed && join(tokenizer, text, a, b, &pair)) {
        heap_push(merger, pair);
    }
}

void tnd_merger_add(struct tnd_merger *merger, struct tnd_symbol symbol)
{
    if (!tnd_grow(&merger->symbols, merger->n, &merger->capacity, sizeof(symbol))) {
        merger->failed = true;
        return;
    }
    merger->symbols[merger->n++] = symbol;
}

static void merge_best(struct tnd_merger *merger, const tandem_tokenizer *tokenizer,
                       const char *text)
{
    struct tnd_symbol *symbols = merger->symbols;
    const struct tnd_merge_pair pair = heap_pop(merger);
    TND_ASSERT(pair.left < merger->n);
    struct tnd_symbol *left = &symbols[pair.left];
    if (left->length == 0 || left->next == NONE ||
        left->length + symbols[left->next].length != pair.length) {
        return; /* broken by an earlier merge */
    }
    struct tnd_symbol *right = &symbols[left->next];
    left->id = pair.merged;
    left->length = pair.length;
    left->next = right->next;
    right->length = 0;
    if (left->next != NONE) {
        symbols[left->next].previous = pair.left;
    }
    consider(merger, tokenizer, text, left->previous);
    consider(merger, tokenizer, text, pair.left);
}

bool tnd_merger_run(struct tnd_merger *merger, const tandem_tokenizer *tokenizer, const char *text)
{
    merger->n_heap = 0;
    for (size_t i = 0; i < merger->n; i++) {
        merger->symbols[i].previous = i == 0 ? NONE : (uint32_t)i - 1;
        merger->symbols[i].next = i + 1 == merger->n ? NONE : (uint32_t)i + 1;
    }
    for (size_t i = 0; i + 1 < merger->n; i++) {
        consider(merger, tokenizer, text, (uint32_t)i);
    }
    while (merger->n_heap > 0 && !merger->failed) {
        merge_best(merger, tokenizer, text);
    }
    return !merger->failed;
}

void tnd_merger_fini(struct tnd_merger *merger)
{
    tnd_free(merger->symbols);
    tnd_free(merger->heap);
    *merger = (struct tnd_merger){0};
}
