/* SPDX-License-Identifier: MIT
 * A conversation: what the user says goes in by the rules of a template, the answer comes out piece
 * by piece. A context that is full is shifted: the oldest half behind the system's text is
 * forgotten. */
#ifndef TND_LLAMA_CHAT_H
#define TND_LLAMA_CHAT_H

#include "llama/chat_template.h"
#include "llama/sampler.h"
#include "llama/session.h"

/** Borrows everything; fill the members above the line and zero the rest. */
struct tnd_chat {
    struct tnd_llama_session *session; /* an empty one */
    struct tnd_llama_sampler *sampler;
    const tandem_tokenizer *tokenizer;
    const struct tnd_chat_template *template;
    const char *system;         /* what the model is told first; NULL: nothing */
    int64_t max_answer;         /* tokens; 0: no bound but half of the context */
    bool (*cancel)(void *user); /* asked between tokens; NULL: nobody is asked */
    /** Takes a piece of the answer, whole characters; returning false ends the answer. */
    bool (*emit)(void *user, const char *text, size_t n);
    void *user;
    /* ---- */
    int64_t n_turns;
    int64_t n_keep;    /* tokens in front that a shift keeps */
    int64_t n_shifted; /* tokens that shifts have forgotten */
    int64_t n_prompt;  /* tokens of the last turn, and of its answer */
    int64_t n_answer;
    bool was_cancelled;  /* the last answer */
    bool is_answer_open; /* its end has not been fed */
    int32_t *ids;        /* of the turn in hand */
    size_t n_ids, id_capacity;
};

/** Feeds what the user says and emits the answer. An answer that was cancelled stays in the
 *  conversation as far as it came. Errors: LIMIT (what is said does not fit into the context),
 *  those of the tokenizer and of tnd_llama_session_feed. */
enum tandem_status tnd_chat_say(struct tnd_chat *chat, const char *text, size_t n,
                                struct tandem_error *error);
/** Forgets the conversation. */
void tnd_chat_reset(struct tnd_chat *chat);
/** Frees what the conversation holds; the members above the line are the caller's. */
void tnd_chat_fini(struct tnd_chat *chat);

/** The tokens of the next turn, for tests: borrowed until the next call. */
enum tandem_status tnd_chat_render(struct tnd_chat *chat, const char *text, size_t n,
                                   const int32_t **out_ids, size_t *out_n,
                                   struct tandem_error *error);

#endif
