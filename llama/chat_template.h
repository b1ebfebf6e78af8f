/* SPDX-License-Identifier: MIT
 * How conversations are written for models that were trained on them: known templates by name. A
 * template that a model file brings is a program; it is looked at, never evaluated. */
#ifndef TND_LLAMA_CHAT_TEMPLATE_H
#define TND_LLAMA_CHAT_TEMPLATE_H

#include "tandem/formats.h"
#include "tandem/tokenizer.h"

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

/** "llama-2", "llama-3", "mistral-instruct", "chatml" or "plain"; NULL for other names. */
const struct tnd_chat_template *tnd_chat_template_find(const char *name);
/** i-th template; NULL behind the last. */
const struct tnd_chat_template *tnd_chat_template_at(int i);
/** The template that the model seems to want, by tokens that it has and by words in the template of
 *  its file; "plain" when nothing is recognised. `source` may be NULL. */
const struct tnd_chat_template *tnd_chat_template_guess(const tandem_source *source,
                                                        const tandem_tokenizer *tokenizer);

#endif
