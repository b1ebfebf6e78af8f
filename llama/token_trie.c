/* SPDX-License-Identifier: MIT
 * The bytes of all tokens as a trie, so that one walk finds the tokens that a grammar allows and
 * skips all tokens with a prefix that it does not allow. */
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"

enum { MOST_TOKEN_BYTES = 512, MOST_ENDS = 72 };

/* Nodes are stored in preorder: a node's first child is the next node. */
struct trie_node {
    int32_t behind;      /* the node after its subtree */
    int32_t first, last; /* tokens that end here, in `order` */
    uint16_t depth;      /* bytes from the root to this node, inclusive */
    uint8_t byte;
};

struct tandem_token_trie {
    int64_t vocabulary;
    size_t *starts; /* {vocabulary + 1}: the bytes of each token */
    char *bytes;
    int32_t *order; /* tokens that have bytes, sorted by them */
    int32_t n_order;
    struct trie_node *nodes;
    int32_t n_nodes;
    int depth; /* bytes of the longest token */
    int32_t ends[MOST_ENDS];
    size_t n_ends;
};

/* Bytes of a token within a text, including those of an incomplete character at its end. */
static size_t bytes_of(const tandem_tokenizer *tokenizer, int32_t id, char *out)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, false);
    const size_t n = tandem_token_stream_next(&stream, id, out, MOST_TOKEN_BYTES - 4);
    if (n > MOST_TOKEN_BYTES - 4) {
        return 0;
    }
    memcpy(out + n, stream.pending, stream.n_pending);
    return n + stream.n_pending;
}

/* Only counts bytes as long as no memory is allocated for them. */
static void fill_bytes(tandem_token_trie *trie, const tandem_tokenizer *tokenizer)
{
    const int64_t known = tandem_tokenizer_vocabulary(tokenizer);
    char piece[MOST_TOKEN_BYTES];
    size_t at = 0;
    for (int64_t i = 0; i < trie->vocabulary; i++) {
        const size_t n = i < known ? bytes_of(tokenizer, (int32_t)i, piece) : 0;
        trie->starts[i] = at;
        if (trie->bytes != NULL) {
            memcpy(trie->bytes + at, piece, n);
        }
        at += n;
    }
    trie->starts[trie->vocabulary] = at;
}

static size_t length(const tandem_token_trie *trie, int32_t id)
{
    return trie->starts[id + 1] - trie->starts[id];
}

static int compare(const tandem_token_trie *trie, int32_t a, int32_t b)
{
    const size_t n_a = length(trie, a), n_b = length(trie, b);
    const int order =
        memcmp(trie->bytes + trie->starts[a], trie->bytes + trie->starts[b], n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

/* Merge sort, because qsort cannot pass the trie to the comparison. */
static void sort(const tandem_token_trie *trie, int32_t *order, int32_t *spare, int32_t n)
{
    if (n < 2) {
        return;
    }
    const int32_t half = n / 2;
    int32_t a = 0, b = half;
    sort(trie, order, spare, half);
    sort(trie, order + half, spare, n - half);
    memcpy(spare, order, (size_t)n * sizeof(order[0]));
    for (int32_t i = 0; i < n; i++) {
        const bool takes_a = b >= n || (a < half && compare(trie, spare[a], spare[b]) <= 0);
        order[i] = takes_a ? spare[a++] : spare[b++];
    }
}

/* Builds nodes from the sorted tokens; only counts them as long as no memory is allocated. */
static void fill_nodes(tandem_token_trie *trie)
{
    int32_t open[MOST_TOKEN_BYTES + 1]; /* the path to the last node */
    size_t depth = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < trie->n_order; i++) {
        const int32_t id = trie->order[i];
        const char *bytes = trie->bytes + trie->starts[id];
        const char *last = i > 0 ? trie->bytes + trie->starts[trie->order[i - 1]] : NULL;
        size_t common = 0;
        while (common < depth && common < length(trie, id) && bytes[common] == last[common]) {
            common++;
        }
        while (depth > common) {
            depth--;
            if (trie->nodes != NULL) {
                trie->nodes[open[depth]].behind = n;
            }
        }
        for (; depth < length(trie, id); depth++, n++) {
            open[depth] = n;
            if (trie->nodes != NULL) {
                trie->nodes[n] = (struct trie_node){.first = i,
                                                    .last = i,
                                                    .depth = (uint16_t)(depth + 1),
                                                    .byte = (uint8_t)bytes[depth]};
            }
        }
        if (trie->nodes != NULL) {
            trie->nodes[open[depth - 1]].last = i + 1;
        }
        trie->depth = (int)depth > trie->depth ? (int)depth : trie->depth;
    }
    while (trie->nodes != NULL && depth > 0) {
        trie->nodes[open[--depth]].behind = n;
    }
    trie->n_nodes = n;
}

static bool build(tandem_token_trie *trie, const tandem_tokenizer *tokenizer)
{
    const size_t n = (size_t)trie->vocabulary;
    trie->starts = calloc(n + 1, sizeof(trie->starts[0]));
    trie->order = calloc(n, sizeof(trie->order[0]));
    int32_t *spare = calloc(n, sizeof(spare[0]));
    if (trie->starts != NULL && trie->order != NULL && spare != NULL) {
        fill_bytes(trie, tokenizer);
        trie->bytes = malloc(trie->starts[n] + 1);
    }
    if (trie->bytes == NULL) {
        free(spare);
        return false;
    }
    fill_bytes(trie, tokenizer);
    for (int64_t i = 0; i < trie->vocabulary; i++) {
        if (length(trie, (int32_t)i) > 0) {
            trie->order[trie->n_order++] = (int32_t)i;
        }
    }
    sort(trie, trie->order, spare, trie->n_order);
    free(spare);
    fill_nodes(trie);
    trie->nodes = calloc((size_t)trie->n_nodes + 1, sizeof(trie->nodes[0]));
    if (trie->nodes != NULL) {
        fill_nodes(trie);
    }
    return trie->nodes != NULL;
}

enum tandem_status tandem_token_trie_new(const tandem_tokenizer *tokenizer, int64_t vocabulary,
                                         const int32_t *ends, size_t n_ends,
                                         tandem_token_trie **out_trie, struct tandem_error *error)
{
    LLAMA_REQUIRE(tokenizer, error);
    LLAMA_REQUIRE(out_trie, error);
    if (vocabulary < 1 || vocabulary > INT32_MAX || n_ends > MOST_ENDS ||
        (n_ends > 0 && ends == NULL)) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "token trie", vocabulary, INT32_MAX,
                              "token trie: %lld tokens, %zu ends; expected 1 or more, at most %d",
                              (long long)vocabulary, n_ends, (int)MOST_ENDS);
    }
    tandem_token_trie *trie = calloc(1, sizeof(*trie));
    if (trie != NULL) {
        trie->vocabulary = vocabulary;
        trie->n_ends = n_ends;
        if (n_ends > 0) {
            memcpy(trie->ends, ends, n_ends * sizeof(ends[0]));
        }
    }
    if (trie == NULL || !build(trie, tokenizer)) {
        tandem_token_trie_free(trie);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "token trie", vocabulary, 0,
                              "token trie: no memory for %lld tokens", (long long)vocabulary);
    }
    *out_trie = trie;
    return TANDEM_OK;
}

void tandem_token_trie_free(tandem_token_trie *trie)
{
    if (trie != NULL) {
        free(trie->starts);
        free(trie->bytes);
        free(trie->order);
        free(trie->nodes);
        free(trie);
    }
}

int64_t tnd_token_trie_vocabulary(const tandem_token_trie *trie)
{
    return trie->vocabulary;
}

static bool is_end(const tandem_token_trie *trie, int32_t id)
{
    for (size_t i = 0; i < trie->n_ends; i++) {
        if (trie->ends[i] == id) {
            return true;
        }
    }
    return false;
}

int64_t tnd_token_trie_mask(const tandem_token_trie *trie, struct tnd_matcher *matcher,
                            int32_t state, bool *out)
{
    int32_t states[MOST_TOKEN_BYTES + 1]; /* state after each byte of the path */
    int64_t n_set = 0;
    states[0] = state;
    memset(out, 0, (size_t)trie->vocabulary * sizeof(out[0]));
    for (int32_t i = 0; i < trie->n_nodes;) {
        const struct trie_node *node = &trie->nodes[i];
        const int32_t next = tnd_matcher_next(matcher, states[node->depth - 1], node->byte);
        if (next == TND_MATCHER_FAILED) {
            return -1;
        }
        if (next == TND_MATCHER_DEAD) {
            i = node->behind;
            continue;
        }
        states[node->depth] = next;
        for (int32_t k = node->first; k < node->last; k++) {
            out[trie->order[k]] = true;
        }
        n_set += node->last - node->first;
        i++;
    }
    for (size_t i = 0; i < trie->n_ends; i++) {
        const int32_t id = trie->ends[i];
        if (id >= 0 && id < trie->vocabulary) {
            n_set -= out[id];
            out[id] = tnd_matcher_accepts(matcher, state);
            n_set += out[id];
        }
    }
    return n_set;
}

int32_t tnd_token_trie_next(const tandem_token_trie *trie, struct tnd_matcher *matcher,
                            int32_t state, int32_t token)
{
    if (token < 0 || token >= trie->vocabulary || is_end(trie, token)) {
        return state;
    }
    for (size_t i = trie->starts[token]; i < trie->starts[token + 1] && state > 0; i++) {
        state = tnd_matcher_next(matcher, state, (uint8_t)trie->bytes[i]);
    }
    return state;
}
