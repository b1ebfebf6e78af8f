/* SPDX-License-Identifier: MIT
 * The bytes of all tokens, computed once: for grammars and log-probabilities. */
#ifndef TANDEM_SERVER_SRV_VOCABULARY_H
#define TANDEM_SERVER_SRV_VOCABULARY_H

#include "tandem/llama.h"
#include "tools/tandem-server/srv_job.h"

enum {
    SRV_MAX_ENDS = 96, /* more than tandem_chat_ends returns */
    SRV_MAX_MARKS = 64 /* more than tnd_srv_call_marks has */
};

struct srv_vocabulary {
    const tandem_tokenizer *tokenizer;
    int64_t n;                  /* of the model; a tokenizer may have fewer tokens */
    char *bytes;                /* of all tokens, concatenated; special ones have none */
    size_t *starts;             /* {n + 1} */
    int32_t ends[SRV_MAX_ENDS]; /* tokens that end a text */
    size_t n_ends;
    tandem_token_trie *trie;      /* for grammars */
    int32_t marks[SRV_MAX_MARKS]; /* special tokens that mark calls and reasoning */
    int n_marks;
};

/** Errors: MEMORY. Call tnd_srv_vocabulary_free in any case. */
enum tandem_status tnd_srv_vocabulary_init(struct srv_vocabulary *vocabulary,
                                           const tandem_tokenizer *tokenizer,
                                           const tandem_model *model,
                                           const tandem_chat_template *chat_template);
void tnd_srv_vocabulary_free(struct srv_vocabulary *vocabulary);
/** The bytes of a token; `out_n` gets their number. */
const char *tnd_srv_vocabulary_bytes(const struct srv_vocabulary *vocabulary, int32_t id,
                                     size_t *out_n);
bool tnd_srv_vocabulary_is_end(const struct srv_vocabulary *vocabulary, int32_t id);
/** Whether a special token is shown in chat answers. */
bool tnd_srv_vocabulary_is_mark(const struct srv_vocabulary *vocabulary, int32_t id);
/** Computes the log-probabilities of the chosen token and of the n_top most likely ones. */
void tnd_srv_logprobs(const float *logits, int64_t n, int32_t id, int n_top,
                      struct srv_token *token);

#endif
