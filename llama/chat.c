/* SPDX-License-Identifier: MIT
 * Conversations. Texts of a template may name special tokens; what the user says never does. */
#include "llama/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/sampler_select.h"
#include "llama/session.h"

/* ---- tokens of a turn ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "chat", 0, 0, "chat: no memory for a turn");
}

static enum tandem_status reserve(tandem_chat *chat, size_t n, struct tandem_error *error)
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

static enum tandem_status add_token(tandem_chat *chat, int32_t id, struct tandem_error *error)
{
    if (id < 0) {
        return TANDEM_OK; /* the tokenizer has none of that kind */
    }
    LLAMA_TRY(reserve(chat, 1, error));
    chat->ids[chat->n_ids++] = id;
    return TANDEM_OK;
}

static enum tandem_status add_text(tandem_chat *chat, const char *text, size_t n,
                                   bool special_tokens, struct tandem_error *error)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    const size_t capacity = 2 * n + 16;
    size_t n_new = 0;
    options.special_tokens = special_tokens;
    if (n == 0) {
        return TANDEM_OK;
    }
    LLAMA_TRY(reserve(chat, capacity, error));
    LLAMA_TRY(tandem_tokenizer_encode_with(chat->options.tokenizer, text, n, &options,
                                           chat->ids + chat->n_ids, capacity, &n_new, error));
    chat->n_ids += n_new;
    return TANDEM_OK;
}

/* Parts of a turn, in order. The user's words are the only ones that are not the template's. */
struct part {
    const char *text;
    size_t n;
    bool is_users;
};

/* Plain text is encoded as a whole, since tokenizers may put a blank in front of each. */
static enum tandem_status add_parts(tandem_chat *chat, const struct part *parts, int n_parts,
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

/* A turn: what the system (NULL: nothing) and the user say. */
static enum tandem_status encode_user(tandem_chat *chat, const struct tandem_message *system,
                                      const struct tandem_message *user, bool is_first,
                                      struct tandem_error *error)
{
    const struct tnd_chat_template *t = chat->template;
    struct part parts[6];
    int n_parts = 0;
    if (t->begins_every_turn || (is_first && tandem_tokenizer_adds_bos(chat->options.tokenizer))) {
        LLAMA_TRY(add_token(chat, tandem_tokenizer_bos(chat->options.tokenizer), error));
    }
    if (system != NULL) {
        parts[n_parts++] = part_of(t->system_before);
        parts[n_parts++] = (struct part){system->text, system->n, true};
        parts[n_parts++] = part_of(t->system_after);
    }
    parts[n_parts++] = part_of(system != NULL ? t->first_user_before : t->user_before);
    parts[n_parts++] = (struct part){user->text, user->n, true};
    parts[n_parts++] = part_of(t->user_after);
    return add_parts(chat, parts, n_parts, error);
}

static enum tandem_status end_answer(tandem_chat *chat, struct tandem_error *error)
{
    const struct tnd_chat_template *t = chat->template;
    return t->answer_end == NULL
               ? add_token(chat, tandem_tokenizer_eos(chat->options.tokenizer), error)
               : add_text(chat, t->answer_end, strlen(t->answer_end), t->has_special_tokens, error);
}

static enum tandem_status render(tandem_chat *chat, const char *text, size_t n,
                                 struct tandem_error *error)
{
    const bool is_first = chat->info.n_turns == 0;
    const char *told = chat->options.system != NULL ? chat->options.system : "";
    const struct tandem_message system = {"system", told, strlen(told)};
    const struct tandem_message user = {"user", text, n};
    chat->n_ids = 0;
    if (chat->is_answer_open) {
        LLAMA_TRY(end_answer(chat, error));
    }
    return encode_user(chat, is_first && system.n > 0 ? &system : NULL, &user, is_first, error);
}

enum tandem_status tnd_chat_render(tandem_chat *chat, const char *text, size_t n,
                                   const int32_t **out_ids, size_t *out_n,
                                   struct tandem_error *error)
{
    LLAMA_TRY(render(chat, text, n, error));
    *out_ids = chat->ids;
    *out_n = chat->n_ids;
    return TANDEM_OK;
}

/* ---- whole conversations ---- */

static enum tandem_status unknown_template(const char *name, struct tandem_error *error)
{
    char known[128] = "";
    for (int i = 0, at = 0; tandem_chat_template_name(i) != NULL; i++) {
        at += snprintf(known + at, sizeof(known) - (size_t)at, " %s", tandem_chat_template_name(i));
    }
    return tnd_llama_fail(error, TANDEM_E_ARGUMENT, name, 0, 0,
                          "unknown template '%.40s'; known:%s", name, known);
}

static bool is_of(const struct tandem_message *message, const char *role)
{
    return message->role != NULL && strcmp(message->role, role) == 0;
}

static enum tandem_status encode_all(tandem_chat *chat, const struct tandem_message *messages,
                                     size_t n, struct tandem_error *error)
{
    const struct tandem_message nothing = {"user", "", 0};
    for (size_t i = 0; i < n; i++) {
        const struct tandem_message *m = &messages[i];
        const struct tandem_message *system = i == 0 && is_of(m, "system") ? m : NULL;
        const bool is_answer = is_of(m, "assistant");
        if (m->text == NULL || (!is_answer && !is_of(m, "user") && !is_of(m, "system"))) {
            return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "role", (int64_t)i, 0,
                                  "chat: message %zu is of '%.20s'; expected system, user or "
                                  "assistant",
                                  i, m->role != NULL ? m->role : "nobody");
        }
        if (system != NULL && n > 1 && is_of(&messages[1], "user") && messages[1].text != NULL) {
            m = &messages[++i];
        } else if (system != NULL) {
            m = &nothing;
        }
        if (is_answer) {
            LLAMA_TRY(add_text(chat, m->text, m->n, false, error));
            LLAMA_TRY(i + 1 < n ? end_answer(chat, error) : TANDEM_OK);
        } else {
            LLAMA_TRY(encode_user(chat, system, m, i == 0 || system != NULL, error));
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_chat_encode(const char *template_name, const tandem_tokenizer *tokenizer,
                                      const struct tandem_message *messages, size_t n_messages,
                                      int32_t *out_ids, size_t capacity, size_t *out_n,
                                      struct tandem_error *error)
{
    LLAMA_REQUIRE(tokenizer, error);
    LLAMA_REQUIRE(messages, error);
    LLAMA_REQUIRE(out_n, error);
    const char *name = template_name != NULL ? template_name : "plain";
    tandem_chat chat = {.options.tokenizer = tokenizer, .template = tnd_chat_template_find(name)};
    if (chat.template == NULL) {
        return unknown_template(name, error);
    }
    if (n_messages == 0) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "messages", 0, 1, "chat: nothing is said");
    }
    enum tandem_status status = encode_all(&chat, messages, n_messages, error);
    if (status == TANDEM_OK) {
        *out_n = chat.n_ids;
        if (chat.n_ids > capacity || out_ids == NULL) {
            status = tnd_llama_fail(error, TANDEM_E_LIMIT, "chat", (int64_t)chat.n_ids,
                                    (int64_t)capacity, "chat: %zu tokens, space for %zu",
                                    chat.n_ids, capacity);
        } else if (chat.n_ids > 0) {
            memcpy(out_ids, chat.ids, chat.n_ids * sizeof(out_ids[0]));
        }
    }
    free(chat.ids);
    return status;
}

size_t tandem_chat_ends(const char *template_name, const tandem_model *model,
                        const tandem_tokenizer *tokenizer, int32_t *out_ids, size_t capacity)
{
    const struct tnd_chat_template *template =
        tnd_chat_template_find(template_name != NULL ? template_name : "plain");
    if (template == NULL || model == NULL || tokenizer == NULL || out_ids == NULL) {
        return 0;
    }
    const int32_t stop =
        template->stop != NULL ? tandem_tokenizer_find(tokenizer, template->stop) : -1;
    const int32_t others[] = {model->n_ends == 0 ? tandem_tokenizer_eos(tokenizer) : -1,
                              tandem_tokenizer_bos(tokenizer), stop};
    size_t n = 0;
    for (int i = 0; i < model->n_ends + 3; i++) {
        const int32_t id = i < model->n_ends ? model->ends[i] : others[i - model->n_ends];
        if (id >= 0 && n < capacity) {
            out_ids[n] = id;
        }
        n += id >= 0;
    }
    return n;
}

/* ---- turns ---- */

/* Makes space for n more tokens by dropping the oldest half of what may be dropped. */
static enum tandem_status make_space(tandem_chat *chat, int64_t n, struct tandem_error *error)
{
    const int64_t context = tandem_session_context(chat->options.session);
    const int64_t position = tandem_session_position(chat->options.session, 0);
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
    LLAMA_TRY(tandem_session_shift(chat->options.session, 0, chat->n_keep, dropped, error));
    chat->info.n_shifted += dropped;
    return TANDEM_OK;
}

static bool is_stop(const tandem_chat *chat, int32_t token)
{
    for (size_t i = 0; i < chat->n_ends; i++) {
        if (chat->ends[i] == token) {
            return true;
        }
    }
    return false;
}

static bool is_cancelled(tandem_chat *chat)
{
    return chat->options.cancel != NULL && chat->options.cancel(chat->options.user);
}

/* Emits the text of one token of the answer and decodes it. False ends the answer. */
static enum tandem_status go_on(tandem_chat *chat, struct tandem_token_stream *stream,
                                int32_t token, bool *out_more, struct tandem_error *error)
{
    char text[1024];
    const size_t n = tandem_token_stream_next(stream, token, text, sizeof(text));
    chat->info.n_answer++;
    *out_more = n == 0 || n > sizeof(text) || chat->options.emit(chat->options.user, text, n);
    LLAMA_TRY(make_space(chat, 1, error));
    return tandem_session_decode(chat->options.session, &token, 1, 1, error);
}

static enum tandem_status answer(tandem_chat *chat, struct tandem_error *error)
{
    struct tandem_token_stream stream =
        tandem_token_stream_begin(chat->options.tokenizer, !chat->template->has_special_tokens);
    const int64_t bound = chat->options.max_answer > 0
                              ? chat->options.max_answer
                              : tandem_session_context(chat->options.session) / 2;
    enum tandem_status status = TANDEM_OK;
    char rest[8];
    bool more = true;
    while (status == TANDEM_OK && more && chat->info.n_answer < bound) {
        chat->info.was_cancelled = is_cancelled(chat);
        if (chat->info.was_cancelled) {
            break;
        }
        const int32_t token = tandem_sampler_sample(
            chat->options.sampler, tandem_session_logits(chat->options.session, 0));
        status = tnd_sampler_check(chat->options.sampler, token, error);
        tandem_sampler_accept(chat->options.sampler, token, true);
        if (status != TANDEM_OK || token < 0 || is_stop(chat, token)) {
            break;
        }
        status = go_on(chat, &stream, token, &more, error);
    }
    const size_t n = tandem_token_stream_end(&stream, rest, sizeof(rest));
    if (n > 0 && n <= sizeof(rest)) {
        (void)chat->options.emit(chat->options.user, rest, n);
    }
    if (status == TANDEM_E_CANCELLED) { /* the token in hand is not in the context: no matter */
        chat->info.was_cancelled = true;
        return TANDEM_OK;
    }
    return status;
}

/* What of the first turn a shift must keep: beginning token and system's text. */
static enum tandem_status count_kept(tandem_chat *chat, struct tandem_error *error)
{
    const struct tnd_chat_template *t = chat->template;
    struct part parts[3];
    chat->n_ids = 0;
    if (chat->options.system != NULL && chat->options.system[0] != '\0') {
        parts[0] = part_of(t->system_before);
        parts[1] = part_of(chat->options.system);
        parts[2] = part_of(t->system_after);
        LLAMA_TRY(add_parts(chat, parts, 3, error));
    }
    chat->n_keep = (int64_t)chat->n_ids + 1;
    return TANDEM_OK;
}

/* Drops a turn that was stopped while it was decoded; after a shift, or where a window has lost
 * what was before, drops the whole conversation. */
static void drop_turn(tandem_chat *chat, int64_t begin, int64_t shifted)
{
    const int64_t position = begin - (chat->info.n_shifted - shifted);
    if (position <= 0 || tandem_session_rollback(chat->options.session, 0, position) != position) {
        tandem_chat_reset(chat);
    }
}

enum tandem_status tandem_chat_say(tandem_chat *chat, const char *text, size_t n,
                                   struct tandem_error *error)
{
    LLAMA_REQUIRE(chat, error);
    LLAMA_REQUIRE(text, error);
    const int64_t begin = tandem_session_position(chat->options.session, 0);
    const int64_t shifted = chat->info.n_shifted;
    enum tandem_status status = TANDEM_OK;
    if (chat->info.n_turns == 0) {
        LLAMA_TRY(count_kept(chat, error));
    }
    LLAMA_TRY(render(chat, text, n, error));
    chat->info.n_prompt = (int64_t)chat->n_ids;
    chat->info.n_answer = 0;
    chat->info.was_cancelled = false;
    if (chat->n_ids == 0) {
        return TANDEM_OK; /* nothing was said */
    }
    LLAMA_TRY(make_space(chat, chat->info.n_prompt, error));
    tandem_session_set_cancel(chat->options.session, chat->options.cancel, chat->options.user);
    status =
        tandem_session_decode(chat->options.session, chat->ids, chat->info.n_prompt, 512, error);
    if (status == TANDEM_OK) {
        for (size_t i = 0; i < chat->n_ids; i++) {
            tandem_sampler_accept(chat->options.sampler, chat->ids[i], false);
        }
        chat->info.n_turns++;
        chat->is_answer_open = true;
        status = answer(chat, error);
    } else {
        drop_turn(chat, begin, shifted);
        chat->info.was_cancelled = status == TANDEM_E_CANCELLED;
        status = chat->info.was_cancelled ? TANDEM_OK : status;
    }
    tandem_session_set_cancel(chat->options.session, NULL, NULL);
    return status;
}

void tandem_chat_reset(tandem_chat *chat)
{
    if (chat == NULL) {
        return;
    }
    (void)tandem_session_rollback(chat->options.session, 0, 0);
    tandem_sampler_reset(chat->options.sampler);
    chat->info.n_turns = 0;
    chat->n_keep = 0;
    chat->info.n_shifted = 0;
    chat->is_answer_open = false;
}

/* Turns are not part of a state: behind a text that was loaded, the next turn is not the first. */
void tandem_chat_resume(tandem_chat *chat)
{
    if (chat == NULL) {
        return;
    }
    const bool is_empty = tandem_session_position(chat->options.session, 0) == 0;
    chat->info.n_turns = is_empty ? 0 : 1;
    chat->is_answer_open = !is_empty;
    chat->n_keep = is_empty ? 0 : 1;
    tandem_sampler_reset(chat->options.sampler);
}

const struct tandem_chat_info *tandem_chat_info(const tandem_chat *chat)
{
    return chat != NULL ? &chat->info : NULL;
}

/* ---- opening ---- */

enum tandem_status tandem_chat_new(const struct tandem_chat_options *given, tandem_chat **out_chat,
                                   struct tandem_error *error)
{
    LLAMA_REQUIRE(out_chat, error);
    struct tandem_chat_options o = TANDEM_CHAT_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "chat options", &o, sizeof(o), error));
    const char *name = o.template_name != NULL ? o.template_name : "plain";
    const struct tnd_chat_template *template = tnd_chat_template_find(name);
    if (template == NULL) {
        return unknown_template(name, error);
    }
    LLAMA_REQUIRE(o.tokenizer, error); /* the others are refused by the calls that they serve */
    if (o.sampler != NULL) {
        LLAMA_TRY(tnd_sampler_mask(o.sampler, o.tokenizer, error));
    }
    tandem_chat *chat = calloc(1, sizeof(*chat));
    if (chat == NULL) {
        return no_memory(error);
    }
    chat->options = o;
    chat->template = template;
    if (o.session != NULL) {
        chat->n_ends = tandem_chat_ends(name, o.session->model, o.tokenizer, chat->ends,
                                        TND_LLAMA_MAX_ENDS + 2);
    }
    chat->info.size = sizeof(chat->info);
    *out_chat = chat;
    return TANDEM_OK;
}

void tandem_chat_free(tandem_chat *chat)
{
    if (chat != NULL) {
        free(chat->ids);
        free(chat);
    }
}
