/* SPDX-License-Identifier: MIT
 * Internals of a chat: what was said, and which of its tokens the session holds. */
#ifndef TND_LLAMA_CHAT_H
#define TND_LLAMA_CHAT_H

#include "llama/model.h"

enum { TND_CHAT_MAX_ENDS = 12 }; /* in addition to those that a model file names */

struct tnd_said {
    char *text; /* UTF-8, owned */
    size_t n;
    bool is_answer;
};

struct tandem_chat {
    struct tandem_chat_options options;
    tandem_chat_template *plain; /* owned; used if the caller gives no template */
    struct tandem_chat_info info;
    struct tnd_said *said; /* {said_capacity}, the oldest first */
    size_t n_said, said_capacity;
    int64_t base; /* tokens of a loaded state, before the conversation */
    int32_t *ids; /* {id_capacity}: tokens of the conversation as the template writes it now */
    size_t n_ids, id_capacity;
    int32_t *held; /* {held_capacity}: tokens that the session holds after `base` */
    size_t n_held, held_capacity;
    char *text; /* {n_text}: text of the tokens in `held`; NULL, 0: unknown */
    size_t n_text;
    int64_t n_keep;  /* leading tokens that a shift keeps */
    bool is_shifted; /* while an answer is computed: `held` ends at a gap */
    int32_t ends[TND_LLAMA_MAX_ENDS + TND_CHAT_MAX_ENDS]; /* tokens that end an answer */
    size_t n_ends;
};

/** Appends a turn; copies the text. Errors: MEMORY. */
enum tandem_status tnd_chat_add(tandem_chat *chat, const char *text, size_t n, bool is_answer,
                                struct tandem_error *error);
/** Removes and frees the newest `n` turns, or the oldest. */
void tnd_chat_drop_newest(tandem_chat *chat, size_t n);
void tnd_chat_drop_oldest(tandem_chat *chat, size_t n);
/** Writes the conversation to chat->ids, up to where the next answer begins, and its text to
 * `out`, whose old contents are freed. Errors: those of tandem_chat_template_render and
 * tandem_rendered_encode, MEMORY. */
enum tandem_status tnd_chat_write(tandem_chat *chat, struct tandem_rendered *out,
                                  struct tandem_error *error);
/** Records the text of the session's tokens: the conversation, then its answer. */
void tnd_chat_keep_text(tandem_chat *chat, const struct tandem_rendered *written,
                        const char *answer, size_t n);
/** Number of leading tokens of chat->ids for the system message, including the beginning token. */
int64_t tnd_chat_count_system(tandem_chat *chat);

#endif
