/* SPDX-License-Identifier: MIT
 * Byte-pair merging. The symbols of a text stand in a doubly linked list; a heap holds every pair
 * of neighbours that makes a token. Pairs that a merge has broken stay in the heap and are
 * recognised when they come up, so that n symbols take O(n log n). */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define NONE         UINT32_MAX
#define LOWEST_SCORE (-1e10f) /* llama2.c merges only above this */

struct symbol {
    int32_t id; /* -1: merged into the symbol before it */
    uint32_t previous;
    uint32_t next;
};

struct pair {
    float score;
    uint32_t left; /* index of the left symbol: the order among equals */
    int32_t left_id;
    int32_t right_id;
    int32_t merged_id;
};

struct merger {
    const tandem_tokenizer *tokenizer;
    struct symbol *symbols;
    struct pair *heap; /* the best pair first */
    size_t n_heap;
    char *text; /* room for one token */
};

static bool goes_before(const struct pair *a, const struct pair *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void heap_push(struct merger *merger, struct pair pair)
{
    size_t at = merger->n_heap++;
    while (at > 0 && goes_before(&pair, &merger->heap[(at - 1) / 2])) {
        merger->heap[at] = merger->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->heap[at] = pair;
}

static struct pair heap_pop(struct merger *merger)
{
    const struct pair best = merger->heap[0];
    const struct pair last = merger->heap[--merger->n_heap];
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

/* Puts the pair that begins at `left` into the heap when it makes a token. */
static void consider(struct merger *merger, uint32_t left)
{
    const uint32_t right = left == NONE ? NONE : merger->symbols[left].next;
    if (right == NONE) {
        return;
    }
    const tandem_tokenizer *tokenizer = merger->tokenizer;
    const struct tnd_token *a = &tokenizer->tokens[merger->symbols[left].id];
    const struct tnd_token *b = &tokenizer->tokens[merger->symbols[right].id];
    const size_t length = (size_t)a->length + b->length;
    if (length > tokenizer->max_length) {
        return;
    }
    memcpy(merger->text, a->text, a->length);
    memcpy(merger->text + a->length, b->text, b->length);
    const int32_t id = tnd_tokenizer_find(tokenizer, merger->text, length);
    if (id >= 0 && tokenizer->tokens[id].score > LOWEST_SCORE) {
        heap_push(merger, (struct pair){.score = tokenizer->tokens[id].score,
                                        .left = left,
                                        .left_id = merger->symbols[left].id,
                                        .right_id = merger->symbols[right].id,
                                        .merged_id = id});
    }
}

static void merge_all(struct merger *merger)
{
    struct symbol *symbols = merger->symbols;
    while (merger->n_heap > 0) {
        const struct pair pair = heap_pop(merger);
        struct symbol *left = &symbols[pair.left];
        if (left->id != pair.left_id || left->next == NONE ||
            symbols[left->next].id != pair.right_id) {
            continue; /* broken by an earlier merge */
        }
        struct symbol *right = &symbols[left->next];
        left->id = pair.merged_id;
        left->next = right->next;
        right->id = -1;
        if (left->next != NONE) {
            symbols[left->next].previous = pair.left;
        }
        consider(merger, left->previous);
        consider(merger, pair.left);
    }
}

enum tandem_status tnd_tokenizer_merge(const tandem_tokenizer *tokenizer, int32_t *ids, size_t *n,
                                       struct tandem_error *error)
{
    const size_t count = *n;
    if (count < 2) {
        return TANDEM_OK;
    }
    /* n - 1 pairs at first, and each of at most n - 1 merges adds two */
    struct merger merger = {.tokenizer = tokenizer,
                            .symbols = tnd_calloc(count, sizeof(struct symbol)),
                            .heap = tnd_calloc(count, 3 * sizeof(struct pair)),
                            .n_heap = 0,
                            .text = tnd_alloc(tokenizer->max_length)};
    enum tandem_status status = TANDEM_OK;
    if (merger.symbols == NULL || merger.heap == NULL || merger.text == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "tokenizer", (int64_t)count, 0,
                               "tokenizer: no memory to encode %zu symbols", count);
        goto end;
    }
    for (size_t i = 0; i < count; i++) {
        merger.symbols[i] = (struct symbol){.id = ids[i],
                                            .previous = i == 0 ? NONE : (uint32_t)i - 1,
                                            .next = i + 1 == count ? NONE : (uint32_t)i + 1};
    }
    for (size_t i = 0; i + 1 < count; i++) {
        consider(&merger, (uint32_t)i);
    }
    merge_all(&merger);
    *n = 0;
    for (size_t i = 0; i < count; i++) {
        if (merger.symbols[i].id >= 0) {
            ids[(*n)++] = merger.symbols[i].id;
        }
    }
end:
    tnd_free(merger.symbols);
    tnd_free(merger.heap);
    tnd_free(merger.text);
    return status;
}
