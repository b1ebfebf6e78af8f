/* SPDX-License-Identifier: MIT
 * Conversations. Texts of a template may name special tokens; what the user says never does. */
#include "llama/chat.h"

#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"

/* ---- tokens of a turn ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "chat", 0, 0, "chat: no memory for a turn");
}

static enum tandem_status reserve(struct tnd_chat *chat, size_t n, struct tandem_error *error)
{
    if (chat->n_ids + n <= chat->id_capacity) {
        return TANDEM_OK;
    }
    const size_t capacity = 2 * (chat->n_ids + n);
    int32_t *ids = realloc(chat->ids, capacity * sizeof(ids[0]));
    if (ids == NULL) {
        return no_memory(error);
    }
    chat->ids = ids;
    chat->id_capacity = capacity;
    return TANDEM_OK;
}

static enum tandem_status add_token(struct tnd_chat *chat, int32_t id, struct tandem_error *error)
{
    if (id < 0) {
        return TANDEM_OK; /* the tokenizer has none of that kind */
    }
    LLAMA_TRY(reserve(chat, 1, error));
    chat->ids[chat->n_ids++] = id;
    return TANDEM_OK;
}

static enum tandem_status add_text(struct tnd_chat *chat, const char *text, size_t n,
                                   bool special_tokens, struct tandem_error *error)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    const size_t room = 2 * n + 16;
    size_t n_new = 0;
    options.special_tokens = special_tokens;
    if (n == 0) {
        return TANDEM_OK;
    }
    LLAMA_TRY(reserve(chat, room, error));
    LLAMA_TRY(tandem_tokenizer_encode_with(chat->tokenizer, text, n, &options,
                                           chat->ids + chat->n_ids, room, &n_new, error));
    chat->n_ids += n_new;
    return TANDEM_OK;
}

/* Parts of a turn, in order. The user's words are the only ones that are not the template's. */
struct part {
    const char *text;
    size_t n;
    bool is_users;
};

/* Plain text is encoded in one piece, since tokenizers may put a blank in front of each. */
static enum tandem_status add_parts(struct tnd_chat *chat, const struct part *parts, int n_parts,
                                    struct tandem_error *error)
{
    if (chat->template->has_special_tokens) {
        for (int i = 0; i < n_parts; i++) {
            LLAMA_TRY(add_text(chat, parts[i].text, parts[i].n, !parts[i].is_users, error));
        }
        return TANDEM_OK;
    }
    size_t n = 0;
    for (int i = 0; i < n_parts; i++) {
        n += parts[i].n;
    }
    char *all = malloc(n + 1);
    if (all == NULL) {
        return no_memory(error);
    }
    n = 0;
    for (int i = 0; i < n_parts; i++) {
        memcpy(all + n, parts[i].text, parts[i].n);
        n += parts[i].n;
    }
    const enum tandem_status status = add_text(chat, all, n, false, error);
    free(all);
    return status;
}

static struct part part_of(const char *text)
{
    return (struct part){.text = text, .n = strlen(text), .is_users = false};
}

static enum tandem_status render(struct tnd_chat *chat, const char *text, size_t n,
                                 struct tandem_error *error)
{
    const struct tnd_chat_template *t = chat->template;
    const bool is_first = chat->n_turns == 0;
    const bool has_system = is_first && chat->system != NULL && chat->system[0] != '\0';
    struct part parts[6];
    int n_parts = 0;
    chat->n_ids = 0;
    if (chat->is_answer_open && t->answer_end == NULL) {
        LLAMA_TRY(add_token(chat, tandem_tokenizer_eos(chat->tokenizer), error));
    } else if (chat->is_answer_open) {
        LLAMA_TRY(
            add_text(chat, t->answer_end, strlen(t->answer_end), t->has_special_tokens, error));
    }
    if (is_first ? tandem_tokenizer_adds_bos(chat->tokenizer) || t->begins_every_turn
                 : t->begins_every_turn) {
        LLAMA_TRY(add_token(chat, tandem_tokenizer_bos(chat->tokenizer), error));
    }
    if (has_system) {
        parts[n_parts++] = part_of(t->system_before);
        parts[n_parts++] = part_of(chat->system);
        parts[n_parts++] = part_of(t->system_after);
    }
    parts[n_parts++] = part_of(has_system ? t->first_user_before : t->user_before);
    parts[n_parts++] = (struct part){.text = text, .n = n, .is_users = true};
    parts[n_parts++] = part_of(t->user_after);
    return add_parts(chat, parts, n_parts, error);
}

enum tandem_status tnd_chat_render(struct tnd_chat *chat, const char *text, size_t n,
                                   const int32_t **out_ids, size_t *out_n,
                                   struct tandem_error *error)
{
    LLAMA_TRY(render(chat, text, n, error));
    *out_ids = chat->ids;
    *out_n = chat->n_ids;
    return TANDEM_OK;
}

/* ---- turns ---- */

/* Makes room for n more tokens by forgetting the oldest half of what may be forgotten. */
static enum tandem_status make_room(struct tnd_chat *chat, int64_t n, struct tandem_error *error)
{
    const int64_t context = tnd_llama_session_context(chat->session);
    const int64_t position = tnd_llama_session_position(chat->session);
    const int64_t needed = position + n - context;
    const int64_t loose = position - chat->n_keep;
    if (needed <= 0) {
        return TANDEM_OK;
    }
    if (needed > loose) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "chat", n, context - chat->n_keep,
                              "chat: %lld tokens do not fit into a context of %lld", (long long)n,
                              (long long)context);
    }
    const int64_t dropped = needed > loose / 2 ? needed : loose / 2;
    LLAMA_TRY(tnd_llama_session_shift(chat->session, 0, chat->n_keep, dropped, error));
    chat->n_shifted += dropped;
    return TANDEM_OK;
}

static bool is_stop(const struct tnd_chat *chat, int32_t token)
{
    return token == tandem_tokenizer_eos(chat->tokenizer) ||
           token == tandem_tokenizer_bos(chat->tokenizer) ||
           (chat->template->stop != NULL &&
            token == tandem_tokenizer_find(chat->tokenizer, chat->template->stop));
}

static bool is_cancelled(struct tnd_chat *chat)
{
    return chat->cancel != NULL && chat->cancel(chat->user);
}

/* Feeds one token of the answer and its text. False ends the answer. */
static enum tandem_status go_on(struct tnd_chat *chat, struct tandem_token_stream *stream,
                                int32_t token, bool *out_more, struct tandem_error *error)
{
    char text[1024];
    const size_t n = tandem_token_stream_next(stream, token, text, sizeof(text));
    chat->n_answer++;
    *out_more = n == 0 || n > sizeof(text) || chat->emit(chat->user, text, n);
    LLAMA_TRY(make_room(chat, 1, error));
    return tnd_llama_session_feed(chat->session, &token, 1, 1, error);
}

static enum tandem_status answer(struct tnd_chat *chat, struct tandem_error *error)
{
    struct tandem_token_stream stream =
        tandem_token_stream_begin(chat->tokenizer, !chat->template->has_special_tokens);
    const int64_t bound =
        chat->max_answer > 0 ? chat->max_answer : tnd_llama_session_context(chat->session) / 2;
    enum tandem_status status = TANDEM_OK;
    char rest[8];
    bool more = true;
    while (status == TANDEM_OK && more && chat->n_answer < bound) {
        chat->was_cancelled = is_cancelled(chat);
        if (chat->was_cancelled) {
            break;
        }
        const int32_t token =
            tnd_llama_sampler_choose(chat->sampler, tnd_llama_session_logits(chat->session));
        tnd_llama_sampler_accept(chat->sampler, token, true);
        if (is_stop(chat, token)) {
            break;
        }
        status = go_on(chat, &stream, token, &more, error);
    }
    const size_t n = tandem_token_stream_end(&stream, rest, sizeof(rest));
    if (n > 0 && n <= sizeof(rest)) {
        (void)chat->emit(chat->user, rest, n);
    }
    if (status == TANDEM_E_CANCELLED) { /* the token in hand is not in the context: no matter */
        chat->was_cancelled = true;
        return TANDEM_OK;
    }
    return status;
}

/* What of the first turn a shift must keep: beginning token and system's text. */
static enum tandem_status count_kept(struct tnd_chat *chat, struct tandem_error *error)
{
    const struct tnd_chat_template *t = chat->template;
    struct part parts[3];
    chat->n_ids = 0;
    if (chat->system != NULL && chat->system[0] != '\0') {
        parts[0] = part_of(t->system_before);
        parts[1] = part_of(chat->system);
        parts[2] = part_of(t->system_after);
        LLAMA_TRY(add_parts(chat, parts, 3, error));
    }
    chat->n_keep = (int64_t)chat->n_ids + 1;
    return TANDEM_OK;
}

/* A turn that was stopped while it was fed is forgotten; after a shift, or where a window has lost
 * what was before, the whole conversation is. */
static void forget_turn(struct tnd_chat *chat, int64_t begin, int64_t shifted)
{
    const int64_t position = begin - (chat->n_shifted - shifted);
    if (position <= 0 || tnd_llama_session_rewind(chat->session, position) != position) {
        tnd_chat_reset(chat);
    }
}

enum tandem_status tnd_chat_say(struct tnd_chat *chat, const char *text, size_t n,
                                struct tandem_error *error)
{
    const int64_t begin = tnd_llama_session_position(chat->session);
    const int64_t shifted = chat->n_shifted;
    enum tandem_status status = TANDEM_OK;
    if (chat->n_turns == 0) {
        LLAMA_TRY(count_kept(chat, error));
    }
    LLAMA_TRY(render(chat, text, n, error));
    chat->n_prompt = (int64_t)chat->n_ids;
    chat->n_answer = 0;
    chat->was_cancelled = false;
    if (chat->n_ids == 0) {
        return TANDEM_OK; /* nothing was said */
    }
    LLAMA_TRY(make_room(chat, chat->n_prompt, error));
    tnd_llama_session_set_cancel(chat->session, chat->cancel, chat->user);
    status = tnd_llama_session_feed(chat->session, chat->ids, chat->n_prompt, 512, error);
    if (status == TANDEM_OK) {
        for (size_t i = 0; i < chat->n_ids; i++) {
            tnd_llama_sampler_accept(chat->sampler, chat->ids[i], false);
        }
        chat->n_turns++;
        chat->is_answer_open = true;
        status = answer(chat, error);
    } else {
        forget_turn(chat, begin, shifted);
        chat->was_cancelled = status == TANDEM_E_CANCELLED;
        status = chat->was_cancelled ? TANDEM_OK : status;
    }
    tnd_llama_session_set_cancel(chat->session, NULL, NULL);
    return status;
}

void tnd_chat_reset(struct tnd_chat *chat)
{
    (void)tnd_llama_session_rewind(chat->session, 0);
    tnd_llama_sampler_reset(chat->sampler);
    chat->n_turns = 0;
    chat->n_keep = 0;
    chat->n_shifted = 0;
    chat->is_answer_open = false;
}

void tnd_chat_fini(struct tnd_chat *chat)
{
    free(chat->ids);
    chat->ids = NULL;
    chat->n_ids = 0;
    chat->id_capacity = 0;
}
