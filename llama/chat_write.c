/* SPDX-License-Identifier: MIT
 * Writes a conversation as variables of its template, as text and as tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/chat.h"
#include "llama/llama_error.h"

/* ---- what was said ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "chat", 0, 0, "chat: no memory for a turn");
}

enum tandem_status tnd_chat_add(tandem_chat *chat, const char *text, size_t n, bool is_answer,
                                struct tandem_error *error)
{
    char *copy = malloc(n + 1);
    if (chat->n_said == chat->said_capacity && copy != NULL) {
        const size_t capacity = 2 * chat->said_capacity + 8;
        struct tnd_said *grown = realloc(chat->said, capacity * sizeof(grown[0]));
        chat->said_capacity = grown != NULL ? capacity : chat->said_capacity;
        chat->said = grown != NULL ? grown : chat->said;
    }
    if (copy == NULL || chat->n_said == chat->said_capacity) {
        free(copy);
        return no_memory(error);
    }
    if (n > 0) {
        memcpy(copy, text, n);
    }
    copy[n] = '\0';
    chat->said[chat->n_said++] = (struct tnd_said){copy, n, is_answer};
    return TANDEM_OK;
}

void tnd_chat_drop_newest(tandem_chat *chat, size_t n)
{
    for (; n > 0 && chat->n_said > 0; n--) {
        free(chat->said[--chat->n_said].text);
    }
}

void tnd_chat_drop_oldest(tandem_chat *chat, size_t n)
{
    n = n < chat->n_said ? n : chat->n_said;
    for (size_t i = 0; i < n; i++) {
        free(chat->said[i].text);
    }
    chat->n_said -= n;
    memmove(chat->said, chat->said + n, chat->n_said * sizeof(chat->said[0]));
}

/* ---- variables ---- */

/* A growing text; after the first failure it stays failed. */
struct json {
    char *bytes;
    size_t n, capacity;
    bool failed;
};

static void add(struct json *json, const char *bytes, size_t n)
{
    if (json->n + n > json->capacity && !json->failed) {
        const size_t capacity = 2 * (json->n + n) + 256;
        char *grown = realloc(json->bytes, capacity);
        json->failed = grown == NULL;
        json->bytes = grown != NULL ? grown : json->bytes;
        json->capacity = grown != NULL ? capacity : json->capacity;
    }
    if (!json->failed && n > 0) {
        memcpy(json->bytes + json->n, bytes, n);
        json->n += n;
    }
}

static void add_text(struct json *json, const char *text)
{
    add(json, text, strlen(text));
}

static void add_quoted(struct json *json, const char *text, size_t n)
{
    char escaped[8];
    size_t plain = 0;
    add_text(json, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        add(json, text + plain, i - plain);
        snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        add(json, escaped, 6);
        plain = i + 1;
    }
    add(json, text + plain, n - plain);
    add_text(json, "\"");
}

static void add_message(struct json *json, const char *role, const char *text, size_t n)
{
    add_text(json, json->bytes[json->n - 1] == '[' ? "{\"role\":\"" : ",{\"role\":\"");
    add_text(json, role);
    add_text(json, "\",\"content\":");
    add_quoted(json, text, n);
    add_text(json, "}");
}

/* Placeholder for the unknown answer in a loaded state. It begins and ends with letters because
 * templates trim answers. */
static const char unknown_answer[] = "tandem-answer-of-a-loaded-state";

static void add_variables(struct json *json, const tandem_chat *chat, bool system_alone)
{
    const char *system = chat->options.system;
    add_text(json, "{\"add_generation_prompt\":true,");
    if (chat->options.variables != NULL && chat->options.variables[0] != '\0') {
        add_text(json, chat->options.variables);
        add_text(json, ",");
    }
    add_text(json, "\"messages\":[");
    if (json->failed) {
        return;
    }
    if (chat->base > 0) {
        add_message(json, "user", "?", 1);
        add_message(json, "assistant", unknown_answer, sizeof(unknown_answer) - 1);
    } else if (system != NULL && system[0] != '\0') {
        add_message(json, "system", system, strlen(system));
    }
    for (size_t i = 0; i < chat->n_said && !system_alone && !json->failed; i++) {
        const struct tnd_said *said = &chat->said[i];
        add_message(json, said->is_answer ? "assistant" : "user", said->text, said->n);
    }
    if (system_alone && !json->failed) {
        add_message(json, "user", "", 0);
    }
    add_text(json, "]}");
}

/* ---- tokens ---- */

static const tandem_chat_template *template_of(const tandem_chat *chat)
{
    return chat->options.chat_template != NULL ? chat->options.chat_template : chat->plain;
}

/* Length of the leading text that the session already holds: after a loaded state, up to the end of
 * the placeholder; else what was written and answered so far, if the template has left it
 * unchanged. Tokens that the model has chosen are kept, and only the rest is encoded. */
static size_t known_text(const tandem_chat *chat, const struct tandem_rendered *rendered)
{
    if (chat->base > 0) {
        const char *found = strstr(rendered->text, unknown_answer);
        return found != NULL ? (size_t)(found - rendered->text) + sizeof(unknown_answer) - 1 : 0;
    }
    const bool is_same = chat->n_text > 0 && chat->n_text <= rendered->n &&
                         memcmp(chat->text, rendered->text, chat->n_text) == 0;
    return is_same ? chat->n_text : 0;
}

static enum tandem_status reserve(tandem_chat *chat, size_t wanted, struct tandem_error *error)
{
    if (wanted > chat->id_capacity) {
        int32_t *ids = realloc(chat->ids, wanted * sizeof(ids[0]));
        if (ids == NULL) {
            return no_memory(error);
        }
        chat->ids = ids;
        chat->id_capacity = wanted;
    }
    return TANDEM_OK;
}

static enum tandem_status encode(tandem_chat *chat, const struct tandem_rendered *rendered,
                                 struct tandem_error *error)
{
    const size_t known = known_text(chat, rendered);
    const size_t n_kept = known > 0 && chat->base == 0 ? chat->n_held : 0;
    struct tandem_rendered rest = *rendered;
    size_t n = 0;
    LLAMA_TRY(reserve(chat, n_kept + rendered->n + 16, error));
    if (n_kept > 0) {
        memcpy(chat->ids, chat->held, n_kept * sizeof(chat->ids[0]));
    }
    rest.text += known;
    rest.from_variables += known;
    rest.n -= known;
    enum tandem_status status = tandem_rendered_encode(
        chat->options.tokenizer, &rest, chat->ids + n_kept, chat->id_capacity - n_kept, &n, error);
    if (status == TANDEM_E_LIMIT && n > chat->id_capacity - n_kept) { /* now the number is known */
        LLAMA_TRY(reserve(chat, n_kept + n, error));
        status = tandem_rendered_encode(chat->options.tokenizer, &rest, chat->ids + n_kept,
                                        chat->id_capacity - n_kept, &n, error);
    }
    LLAMA_TRY(status);
    int32_t *added = chat->ids + n_kept;
    if (known > 0 && n > 0 && added[0] == tandem_tokenizer_bos(chat->options.tokenizer) &&
        tandem_tokenizer_adds_bos(chat->options.tokenizer)) {
        memmove(added, added + 1, --n * sizeof(added[0])); /* drops the beginning token */
    }
    chat->n_ids = n_kept + n;
    return TANDEM_OK;
}

static enum tandem_status write_all(tandem_chat *chat, bool system_alone,
                                    struct tandem_rendered *out, struct tandem_error *error)
{
    struct json json = {0};
    enum tandem_status status;
    add_variables(&json, chat, system_alone);
    status = json.failed ? no_memory(error)
                         : tandem_chat_template_render(template_of(chat), json.bytes, json.n,
                                                       chat->options.tokenizer, 0, out, error);
    free(json.bytes);
    return status == TANDEM_OK ? encode(chat, out, error) : status;
}

enum tandem_status tnd_chat_write(tandem_chat *chat, struct tandem_rendered *out,
                                  struct tandem_error *error)
{
    tandem_rendered_free(out);
    return write_all(chat, false, out, error);
}

int64_t tnd_chat_count_system(tandem_chat *chat)
{
    int32_t *ids = chat->ids;
    const size_t n_ids = chat->n_ids;
    const size_t capacity = chat->id_capacity;
    int64_t n = 0;
    if (chat->base > 0) {
        return chat->base;
    }
    const size_t n_text = chat->n_text;
    struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
    chat->ids = NULL;
    chat->n_ids = chat->id_capacity = chat->n_text = 0;
    if (write_all(chat, true, &rendered, NULL) == TANDEM_OK) { /* a template may refuse this */
        while ((size_t)n < n_ids && (size_t)n < chat->n_ids && ids[n] == chat->ids[n]) {
            n++;
        }
    }
    tandem_rendered_free(&rendered);
    free(chat->ids);
    chat->ids = ids;
    chat->n_text = n_text;
    chat->n_ids = n_ids;
    chat->id_capacity = capacity;
    return n > 0 ? n : 1;
}

void tnd_chat_keep_text(tandem_chat *chat, const struct tandem_rendered *written,
                        const char *answer, size_t n)
{
    free(chat->text);
    chat->n_text = 0;
    chat->text = chat->base == 0 ? malloc(written->n + n + 1) : NULL;
    if (chat->text != NULL) { /* without the text, the next turn is encoded as a whole */
        memcpy(chat->text, written->text, written->n);
        if (n > 0) {
            memcpy(chat->text + written->n, answer, n);
        }
        chat->n_text = written->n + n;
    }
}
