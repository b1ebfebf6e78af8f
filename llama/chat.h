/* SPDX-License-Identifier: MIT
 * Inside of a chat: how conversations are written for models that were trained on them (templates
 * by name), and what is kept of one. */
#ifndef TND_LLAMA_CHAT_H
#define TND_LLAMA_CHAT_H

#include "llama/model.h"

struct tnd_chat_template {
    const char *name;
    const char *system_before, *system_after; /* around the system's text */
    const char *user_before, *user_after;     /* around what the user says */
    const char *first_user_before;            /* for the first one behind a system's text */
    const char *answer_end;  /* behind an answer; NULL: the tokenizer's end token */
    const char *stop;        /* token that ends an answer, beside the tokenizer's end; NULL: none */
    bool has_special_tokens; /* the texts above name tokens; else all is plain text */
    bool begins_every_turn;  /* with the beginning token; else only the conversation */
};

struct tandem_chat {
    struct tandem_chat_options options;
    const struct tnd_chat_template *template;
    struct tandem_chat_info info;
    int64_t n_keep;      /* tokens in front that a shift keeps */
    bool is_answer_open; /* its end has not been decoded */
    int32_t *ids;        /* {id_capacity}, of the turn in hand */
    size_t n_ids, id_capacity;
    int32_t ends[TND_LLAMA_MAX_ENDS + 2]; /* tokens that end an answer */
    size_t n_ends;
};

/** NULL for names that are not known. */
const struct tnd_chat_template *tnd_chat_template_find(const char *name);

/** The tokens of the next turn, for tests: borrowed until the next call. */
enum tandem_status tnd_chat_render(tandem_chat *chat, const char *text, size_t n,
                                   const int32_t **out_ids, size_t *out_n,
                                   struct tandem_error *error);

#endif
