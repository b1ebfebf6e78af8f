/* SPDX-License-Identifier: MIT
 * Conversations. Before each answer the template writes the whole conversation again; the session
 * keeps the tokens that are unchanged and computes only the others. */
#include "llama/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/sampler.h"
#include "llama/session.h"

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "chat", 0, 0, "chat: no memory for a turn");
}

/* ---- tokens that end an answer ---- */

/* In addition to the end tokens that the model file names. A token only counts if it occurs in the
 * template, so that an ordinary word of a vocabulary never ends an answer. From the model cards of
 * Llama 3, ChatML, Phi 3, Gemma, Gemma 4, GLM, Command R and gpt-oss. */
static const char *const end_names[TND_CHAT_MAX_ENDS - 2] = {
    "<|eot_id|>",    "<|eom_id|>", "<|im_end|>",      "<|end|>",
    "<end_of_turn>", "<turn|>",    "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>",
    "<|return|>",    "<|call|>"};

size_t tandem_chat_ends(const tandem_chat_template *chat_template, const tandem_model *model,
                        const tandem_tokenizer *tokenizer, int32_t *out_ids, size_t capacity)
{
    if (model == NULL || tokenizer == NULL || out_ids == NULL) {
        return 0;
    }
    const char *text = tandem_chat_template_text(chat_template, NULL);
    int32_t others[TND_CHAT_MAX_ENDS] = {model->n_ends == 0 ? tandem_tokenizer_eos(tokenizer) : -1,
                                         tandem_tokenizer_bos(tokenizer)};
    size_t n_others = 2;
    for (size_t i = 0; i < sizeof(end_names) / sizeof(end_names[0]); i++) {
        /* gpt-oss ends each message with <|end|>, and an answer has several messages */
        const bool is_inner = text != NULL && strcmp(end_names[i], "<|end|>") == 0 &&
                              strstr(text, "<|channel|>") != NULL;
        const bool is_written = text != NULL && !is_inner && strstr(text, end_names[i]) != NULL;
        others[n_others++] = is_written ? tandem_tokenizer_find(tokenizer, end_names[i]) : -1;
    }
    size_t n = 0;
    for (size_t i = 0; i < (size_t)model->n_ends + n_others; i++) {
        const bool is_models = i < (size_t)model->n_ends;
        const int32_t id = is_models ? model->ends[i] : others[i - (size_t)model->n_ends];
        if (id >= 0 && n < capacity) {
            out_ids[n] = id;
        }
        n += id >= 0;
    }
    return n;
}

/* ---- turns ---- */

/* Makes space for one more token of an answer: drops the oldest half of the tokens that may be
 * dropped. */
static enum tandem_status make_space(tandem_chat *chat, struct tandem_error *error)
{
    const int64_t context = tandem_session_context(chat->options.session);
    const int64_t position = tandem_session_position(chat->options.session, 0);
    const int64_t loose = position - chat->n_keep;
    if (position < context) {
        return TANDEM_OK;
    }
    if (loose < 1) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "chat", position, context,
                              "chat: %lld tokens do not fit into a context of %lld",
                              (long long)position + 1, (long long)context);
    }
    const int64_t dropped = loose > 1 ? loose / 2 : 1;
    LLAMA_TRY(tandem_session_shift(chat->options.session, 0, chat->n_keep, dropped, error));
    chat->info.n_shifted += dropped;
    /* what follows the gap has moved: the next turn is decoded from the gap on */
    chat->n_held = (size_t)(chat->n_keep - chat->base);
    chat->is_shifted = true;
    return TANDEM_OK;
}

static enum tandem_status hold(tandem_chat *chat, const int32_t *ids, size_t n,
                               struct tandem_error *error)
{
    if (chat->n_held + n > chat->held_capacity) {
        const size_t capacity = 2 * (chat->n_held + n);
        int32_t *grown = realloc(chat->held, capacity * sizeof(grown[0]));
        if (grown == NULL) {
            return no_memory(error);
        }
        chat->held = grown;
        chat->held_capacity = capacity;
    }
    if (n > 0) {
        memcpy(chat->held + chat->n_held, ids, n * sizeof(ids[0]));
        chat->n_held += n;
    }
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

/* The answer so far: text for the listener and for the conversation. */
struct answer {
    struct tandem_token_stream stream;
    char *text;
    size_t n, capacity;
};

static enum tandem_status take_text(struct answer *answer, const char *text, size_t n,
                                    struct tandem_error *error)
{
    if (answer->n + n > answer->capacity) {
        const size_t capacity = 2 * (answer->n + n) + 256;
        char *grown = realloc(answer->text, capacity);
        if (grown == NULL) {
            return no_memory(error);
        }
        answer->text = grown;
        answer->capacity = capacity;
    }
    if (n > 0) {
        memcpy(answer->text + answer->n, text, n);
        answer->n += n;
    }
    return TANDEM_OK;
}

/* Emits the text of one token of the answer and decodes it. *out_more: false ends the answer. */
static enum tandem_status go_on(tandem_chat *chat, struct answer *answer, int32_t token,
                                bool *out_more, struct tandem_error *error)
{
    char text[1024];
    const size_t n = tandem_token_stream_next(&answer->stream, token, text, sizeof(text));
    chat->info.n_answer++;
    *out_more = n == 0 || n > sizeof(text) || chat->options.emit(chat->options.user, text, n);
    LLAMA_TRY(take_text(answer, text, n <= sizeof(text) ? n : 0, error));
    LLAMA_TRY(make_space(chat, error));
    LLAMA_TRY(tandem_session_sample_with(chat->options.session, 0, chat->options.sampler, error));
    LLAMA_TRY(tandem_session_decode(chat->options.session, &token, 1, 1, error));
    return chat->is_shifted ? TANDEM_OK : hold(chat, &token, 1, error);
}

static enum tandem_status answer_all(tandem_chat *chat, struct answer *answer,
                                     struct tandem_error *error)
{
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
        const int32_t token =
            tandem_session_sample(chat->options.session, 0, chat->options.sampler, NULL);
        status = tnd_sampler_check(chat->options.sampler, token, error);
        tandem_sampler_accept(chat->options.sampler, token, true);
        if (status != TANDEM_OK || token < 0 || is_stop(chat, token)) {
            break;
        }
        status = go_on(chat, answer, token, &more, error);
    }
    const size_t n = tandem_token_stream_end(&answer->stream, rest, sizeof(rest));
    if (n > 0 && n <= sizeof(rest)) {
        (void)chat->options.emit(chat->options.user, rest, n);
        (void)take_text(answer, rest, n, NULL);
    }
    if (status == TANDEM_E_CANCELLED) { /* its token is not decoded: harmless */
        chat->info.was_cancelled = true;
        return TANDEM_OK;
    }
    return status;
}

static enum tandem_status answer(tandem_chat *chat, const struct tandem_rendered *written,
                                 struct tandem_error *error)
{
    const bool at_begin = chat->n_ids == 0 || chat->ids[chat->n_ids - 1] ==
                                                  tandem_tokenizer_bos(chat->options.tokenizer);
    struct answer answer = {.stream = tandem_token_stream_begin(chat->options.tokenizer, at_begin)};
    chat->is_shifted = false;
    enum tandem_status status = answer_all(chat, &answer, error);
    const enum tandem_status added =
        tnd_chat_add(chat, answer.text != NULL ? answer.text : "", answer.n, true, error);
    if (status == TANDEM_OK && !chat->is_shifted && !chat->info.was_cancelled) {
        tnd_chat_keep_text(chat, written, answer.text, answer.n);
    } else {
        chat->n_text = 0;
    }
    free(answer.text);
    return status != TANDEM_OK ? status : added;
}

/* Shortens what the session holds to the prefix that it shares with the new conversation. If a
 * window has lost those cells, to nothing. */
static void keep_common(tandem_chat *chat)
{
    size_t common = 0;
    while (common < chat->n_held && common + 1 < chat->n_ids &&
           chat->held[common] == chat->ids[common]) {
        common++;
    }
    const int64_t wanted = chat->base + (int64_t)common;
    chat->n_text = common == chat->n_held ? chat->n_text : 0; /* else their text is invalid */
    if (tandem_session_rollback(chat->options.session, 0, wanted) != wanted) {
        (void)tandem_session_rollback(chat->options.session, 0, 0);
        chat->base = 0;
        common = 0;
    }
    chat->n_held = common;
}

/* Writes the conversation. If it leaves no room for an answer, drops the oldest turns, if possible
 * until half of the context is free. */
static enum tandem_status write_fitting(tandem_chat *chat, struct tandem_rendered *written,
                                        struct tandem_error *error)
{
    const int64_t context = tandem_session_context(chat->options.session);
    LLAMA_TRY(tnd_chat_write(chat, written, error));
    if (chat->base + (int64_t)chat->n_ids < context) {
        return TANDEM_OK;
    }
    const int64_t all = chat->base + (int64_t)chat->n_ids;
    chat->base = 0; /* a loaded state is dropped first */
    chat->n_text = 0;
    LLAMA_TRY(tnd_chat_write(chat, written, error));
    while ((int64_t)chat->n_ids > context / 2 && chat->n_said > 1) {
        tnd_chat_drop_oldest(chat, chat->n_said > 2 && chat->said[1].is_answer ? 2 : 1);
        LLAMA_TRY(tnd_chat_write(chat, written, error));
    }
    if ((int64_t)chat->n_ids >= context) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "chat", (int64_t)chat->n_ids, context,
                              "chat: %lld tokens do not fit into a context of %lld",
                              (long long)chat->n_ids, (long long)context);
    }
    chat->info.n_shifted += all - (int64_t)chat->n_ids;
    return TANDEM_OK;
}

/* Decodes the tokens that the session does not hold yet. */
static enum tandem_status read_turn(tandem_chat *chat, struct tandem_rendered *written,
                                    struct tandem_error *error)
{
    const int64_t base = chat->base;
    LLAMA_TRY(write_fitting(chat, written, error));
    if (base != chat->base) {
        chat->n_held = 0;
    }
    keep_common(chat);
    if (base > 0 && chat->base == 0) { /* the state is gone: write the conversation without it */
        chat->n_text = 0;
        LLAMA_TRY(write_fitting(chat, written, error));
    }
    const size_t n_new = chat->n_ids - chat->n_held;
    chat->info.n_prompt = (int64_t)n_new;
    chat->n_keep = tnd_chat_count_system(chat);
    if (n_new == 0) {
        return TANDEM_OK;
    }
    const enum tandem_status status = tandem_session_decode(
        chat->options.session, chat->ids + chat->n_held, (int64_t)n_new, 512, error);
    if (status != TANDEM_OK) { /* drops the tokens that were decoded, too */
        (void)tandem_session_rollback(chat->options.session, 0, chat->base + (int64_t)chat->n_held);
        return status;
    }
    for (size_t i = chat->n_held; i < chat->n_ids; i++) {
        tandem_sampler_accept(chat->options.sampler, chat->ids[i], false);
    }
    return hold(chat, chat->ids + chat->n_held, n_new, error);
}

enum tandem_status tandem_chat_say(tandem_chat *chat, const char *text, size_t n,
                                   struct tandem_error *error)
{
    LLAMA_REQUIRE(chat, error);
    LLAMA_REQUIRE(text, error);
    chat->info.n_prompt = 0;
    chat->info.n_answer = 0;
    chat->info.was_cancelled = false;
    LLAMA_TRY(tnd_chat_add(chat, text, n, false, error));
    tandem_session_set_cancel(chat->options.session, chat->options.cancel, chat->options.user);
    struct tandem_rendered written = TANDEM_RENDERED_INIT;
    enum tandem_status status = read_turn(chat, &written, error);
    if (status == TANDEM_OK && chat->n_ids > 0) {
        chat->info.n_turns++;
        status = answer(chat, &written, error);
    } else {
        tnd_chat_drop_newest(chat, 1);
        chat->info.was_cancelled = status == TANDEM_E_CANCELLED;
        status = chat->info.was_cancelled ? TANDEM_OK : status;
    }
    tandem_session_set_cancel(chat->options.session, NULL, NULL);
    tandem_rendered_free(&written);
    return status;
}

void tandem_chat_reset(tandem_chat *chat)
{
    if (chat == NULL) {
        return;
    }
    (void)tandem_session_rollback(chat->options.session, 0, 0);
    tandem_sampler_reset(chat->options.sampler);
    tnd_chat_drop_newest(chat, chat->n_said);
    chat->info.n_turns = 0;
    chat->info.n_shifted = 0;
    chat->base = 0;
    chat->n_held = 0;
    chat->n_text = 0;
    chat->n_keep = 0;
}

/* The texts of a loaded state are unknown: the conversation continues after its tokens. */
void tandem_chat_resume(tandem_chat *chat)
{
    if (chat == NULL) {
        return;
    }
    tnd_chat_drop_newest(chat, chat->n_said);
    chat->base = tandem_session_position(chat->options.session, 0);
    chat->info.n_turns = chat->base > 0;
    chat->n_held = 0;
    chat->n_text = 0;
    chat->n_keep = chat->base;
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
    LLAMA_REQUIRE(o.tokenizer, error); /* other options are checked by the calls that use them */
    LLAMA_TRY(o.session != NULL ? tnd_llama_check_writer(o.session, error) : TANDEM_OK);
    if (o.sampler != NULL) {
        LLAMA_TRY(tnd_sampler_mask(o.sampler, o.tokenizer, error));
    }
    tandem_chat *chat = calloc(1, sizeof(*chat));
    if (chat == NULL) {
        return no_memory(error);
    }
    chat->options = o;
    if (o.chat_template == NULL) {
        const enum tandem_status status = tandem_chat_template_open("plain", &chat->plain, error);
        if (status != TANDEM_OK) {
            free(chat);
            return status;
        }
    }
    if (o.session != NULL) {
        chat->n_ends = tandem_chat_ends(o.chat_template, o.session->model, o.tokenizer, chat->ends,
                                        sizeof(chat->ends) / sizeof(chat->ends[0]));
    }
    chat->info.size = sizeof(chat->info);
    *out_chat = chat;
    return TANDEM_OK;
}

void tandem_chat_free(tandem_chat *chat)
{
    if (chat != NULL) {
        tnd_chat_drop_newest(chat, chat->n_said);
        tandem_chat_template_free(chat->plain);
        free(chat->said);
        free(chat->text);
        free(chat->held);
        free(chat->ids);
        free(chat);
    }
}
