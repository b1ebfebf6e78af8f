/* SPDX-License-Identifier: MIT
 * Properties of all tokens. */
#include "tools/tandem-server/srv_vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1024 };

/* Bytes of a token in the middle of a text, including an incomplete character at its end. */
static size_t piece_of(const tandem_tokenizer *tokenizer, int32_t id, char *out)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, false);
    size_t n = tandem_token_stream_next(&stream, id, out, PIECE_BYTES - 4);
    if (n > PIECE_BYTES - 4) {
        return 0;
    }
    memcpy(out + n, stream.pending, stream.n_pending);
    return n + stream.n_pending;
}

/* Only counts the bytes while there is no memory for them. */
static void fill(struct srv_vocabulary *vocabulary)
{
    const int64_t known = tandem_tokenizer_vocabulary(vocabulary->tokenizer);
    char piece[PIECE_BYTES];
    size_t at = 0;
    for (int64_t i = 0; i < vocabulary->n; i++) {
        const size_t n = i < known ? piece_of(vocabulary->tokenizer, (int32_t)i, piece) : 0;
        vocabulary->starts[i] = at;
        if (vocabulary->bytes != NULL) {
            memcpy(vocabulary->bytes + at, piece, n);
        }
        at += n;
    }
    vocabulary->starts[vocabulary->n] = at;
}

enum tandem_status tnd_srv_vocabulary_init(struct srv_vocabulary *vocabulary,
                                           const tandem_tokenizer *tokenizer,
                                           const tandem_model *model,
                                           const tandem_chat_template *chat_template)
{
    *vocabulary = (struct srv_vocabulary){.tokenizer = tokenizer,
                                          .n = tandem_model_hparams(model)->vocabulary};
    vocabulary->starts = calloc((size_t)vocabulary->n + 1, sizeof(vocabulary->starts[0]));
    if (vocabulary->starts == NULL) {
        return TANDEM_E_MEMORY;
    }
    fill(vocabulary);
    vocabulary->bytes = malloc(vocabulary->starts[vocabulary->n] + 1);
    if (vocabulary->bytes == NULL) {
        return TANDEM_E_MEMORY;
    }
    fill(vocabulary);
    for (const char *const *mark = tnd_srv_call_marks(); *mark != NULL; mark++) {
        const int32_t id = tandem_tokenizer_find(tokenizer, *mark);
        if (id >= 0 && vocabulary->n_marks < SRV_MAX_MARKS) {
            vocabulary->marks[vocabulary->n_marks++] = id;
        }
    }
    vocabulary->n_ends =
        tandem_chat_ends(chat_template, model, tokenizer, vocabulary->ends, SRV_MAX_ENDS);
    return tandem_token_trie_new(tokenizer, vocabulary->n, vocabulary->ends, vocabulary->n_ends,
                                 &vocabulary->trie, NULL);
}

void tnd_srv_vocabulary_free(struct srv_vocabulary *vocabulary)
{
    free(vocabulary->bytes);
    free(vocabulary->starts);
    tandem_token_trie_free(vocabulary->trie);
}

const char *tnd_srv_vocabulary_bytes(const struct srv_vocabulary *vocabulary, int32_t id,
                                     size_t *out_n)
{
    if (id < 0 || id >= vocabulary->n) {
        *out_n = 0;
        return "";
    }
    *out_n = vocabulary->starts[id + 1] - vocabulary->starts[id];
    return vocabulary->bytes + vocabulary->starts[id];
}

bool tnd_srv_vocabulary_is_end(const struct srv_vocabulary *vocabulary, int32_t id)
{
    for (size_t i = 0; i < vocabulary->n_ends; i++) {
        if (vocabulary->ends[i] == id) {
            return true;
        }
    }
    return false;
}

bool tnd_srv_vocabulary_is_mark(const struct srv_vocabulary *vocabulary, int32_t id)
{
    for (int i = 0; i < vocabulary->n_marks; i++) {
        if (vocabulary->marks[i] == id) {
            return true;
        }
    }
    return false;
}

void tnd_srv_logprobs(const float *logits, int64_t n, int32_t id, int n_top,
                      struct srv_token *token)
{
    float largest = -INFINITY;
    double sum = 0.0;
    int n_found = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = logits[i] > largest ? logits[i] : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += logits[i] > -INFINITY ? exp((double)(logits[i] - largest)) : 0.0;
    }
    const float base = largest + (float)log(sum);
    token->logprob = logits[id] - base;
    for (int64_t i = 0; i < n; i++) { /* insertion sort: the list is short */
        int at = n_found;
        while (at > 0 && logits[i] - base > token->top[at - 1].logprob) {
            at--;
        }
        if (at < n_top) {
            n_found += n_found < n_top;
            memmove(token->top + at + 1, token->top + at,
                    (size_t)(n_found - 1 - at) * sizeof(token->top[0]));
            token->top[at] = (struct srv_top){(int32_t)i, logits[i] - base};
        }
    }
    for (; n_found < n_top; n_found++) { /* small vocabularies may have fewer */
        token->top[n_found] = (struct srv_top){-1, -INFINITY};
    }
}
