/* SPDX-License-Identifier: MIT
 * Converts the messages of a chat, with functions, calls and results, for a template that only
 * knows system, user and assistant messages. */
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-server/srv_params.h"
#include "tools/tandem-server/srv_template.h"

enum { MAX_MESSAGES = 4096 };

struct message {
    const char *role;
    size_t n; /* bytes of its text */
};

struct messages {
    struct message *items;
    size_t n;
    struct srv_text texts; /* of all messages, concatenated */
    struct srv_tools tools;
    bool was_result; /* the previous one was the result of a call */
};

/* Appends the text of a message: a string, or concatenated parts {"type":"text","text":".."}. */
static bool content_of(struct srv_body *body, const cJSON *message, int i, struct srv_text *out)
{
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
    if (cJSON_IsString(content)) {
        tnd_srv_add(out, content->valuestring, strlen(content->valuestring));
        return true;
    }
    if (!cJSON_IsArray(content)) {
        return tnd_srv_body_fault(body, "message %d: 'content' must be a string or parts", i);
    }
    for (const cJSON *part = content->child; part != NULL; part = part->next) {
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (!cJSON_IsString(type) || strcmp(type->valuestring, "text") != 0 ||
            !cJSON_IsString(text)) {
            return tnd_srv_body_fault(body, "message %d: only parts of type text are supported", i);
        }
        tnd_srv_add(out, text->valuestring, strlen(text->valuestring));
    }
    return true;
}

static void add_tools(struct messages *messages)
{
    if (messages->tools.list != NULL) {
        tnd_srv_tools_describe(&messages->tools, &messages->texts);
    }
}

/* Appends the text of a message, with the calls of an assistant's. */
static bool add_text(struct srv_body *body, struct messages *messages, const cJSON *message, int i)
{
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
    const cJSON *calls = cJSON_GetObjectItemCaseSensitive(message, "tool_calls");
    const bool has_none = content == NULL || cJSON_IsNull(content);
    return ((has_none && cJSON_IsArray(calls)) || content_of(body, message, i, &messages->texts)) &&
           tnd_srv_tools_add_calls(body, messages->tools.format, message, &messages->texts);
}

/* Results of calls become user messages; consecutive results become one message. */
static bool add_message(struct srv_body *body, struct messages *messages, const cJSON *message,
                        int i)
{
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
    struct srv_text *texts = &messages->texts;
    size_t begin = texts->n;
    if (!cJSON_IsString(role)) {
        return tnd_srv_body_fault(body, "message %d: 'role' must be a string", i);
    }
    const char *name = role->valuestring;
    const bool is_result = strcmp(name, "tool") == 0;
    /* "developer": OpenAI's name for the system role in newer models */
    name = is_result ? "user" : strcmp(name, "developer") == 0 ? "system" : name;
    if (is_result && messages->was_result) {
        tnd_srv_add(texts, "\n", 1);
        begin -= messages->items[--messages->n].n;
    }
    if (is_result) {
        tnd_srv_tools_add_result(messages->tools.format, false, texts);
    }
    if (!add_text(body, messages, message, i)) {
        return false;
    }
    if (is_result) {
        tnd_srv_tools_add_result(messages->tools.format, true, texts);
    } else if (i == 0 && strcmp(name, "system") == 0 && messages->tools.list != NULL) {
        tnd_srv_add(texts, "\n\n", 2);
        add_tools(messages);
    }
    messages->items[messages->n++] = (struct message){.role = name, .n = texts->n - begin};
    messages->was_result = is_result;
    return true;
}

static bool is_systems(const cJSON *message)
{
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
    return cJSON_IsString(role) && (strcmp(role->valuestring, "system") == 0 ||
                                    strcmp(role->valuestring, "developer") == 0);
}

static bool read_messages(struct srv_body *body, const cJSON *array, struct messages *messages)
{
    int i = 0;
    if (messages->tools.list != NULL && !is_systems(array->child)) {
        add_tools(messages);
        messages->items[messages->n++] = (struct message){.role = "system", .n = messages->texts.n};
    }
    for (const cJSON *one = array->child; one != NULL; one = one->next, i++) {
        if (!add_message(body, messages, one, i)) {
            return false;
        }
    }
    return !messages->texts.failed || tnd_srv_body_fault(body, "no memory for the messages");
}

/* Converts to objects with role and content. */
static cJSON *as_objects(struct messages *messages)
{
    cJSON *list = cJSON_CreateArray();
    const char *at = messages->texts.bytes != NULL ? messages->texts.bytes : "";
    bool is_good = list != NULL;
    for (size_t i = 0; i < messages->n && is_good; at += messages->items[i++].n) {
        cJSON *object = cJSON_CreateObject();
        char *text = strndup(at, messages->items[i].n);
        is_good = object != NULL && text != NULL &&
                  cJSON_AddStringToObject(object, "role", messages->items[i].role) != NULL &&
                  cJSON_AddStringToObject(object, "content", text) != NULL &&
                  cJSON_AddItemToArray(list, object);
        free(text);
    }
    if (!is_good) {
        cJSON_Delete(list);
        list = NULL;
    }
    return list;
}

/* The conversation as plain texts, for a template without functions. */
static cJSON *flat_messages(struct srv_body *body, const cJSON *array, struct messages *messages)
{
    messages->items = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof(messages->items[0]));
    if (messages->items == NULL || !read_messages(body, array, messages)) {
        tnd_srv_body_fault(body, "no memory for the messages");
        return NULL;
    }
    return as_objects(messages);
}

static bool has_calls(const cJSON *array)
{
    bool found = false;
    for (const cJSON *one = array->child; one != NULL && !found; one = one->next) {
        const cJSON *role = cJSON_GetObjectItemCaseSensitive(one, "role");
        found = cJSON_GetObjectItemCaseSensitive(one, "tool_calls") != NULL ||
                (cJSON_IsString(role) && strcmp(role->valuestring, "tool") == 0);
    }
    return found;
}

static bool knows_tools(const struct srv_server *server)
{
    const char *text = tandem_chat_template_text(server->chat_template, NULL);
    return text != NULL && strstr(text, "tools") != NULL;
}

bool tnd_srv_messages_read(const struct srv_server *server, struct srv_body *body,
                           struct srv_ids *out)
{
    const cJSON *array = tnd_srv_body_member(body, "messages");
    const int n = cJSON_GetArraySize(array);
    struct messages messages = {.n = 0};
    char *begun = NULL;
    if (!cJSON_IsArray(array) || n < 1 || n > MAX_MESSAGES) {
        return tnd_srv_body_fault(body, "'messages' must be an array of 1 to %d", MAX_MESSAGES);
    }
    bool is_good = tnd_srv_tools_read(body, server->call_format, &messages.tools);
    const bool is_flat = (messages.tools.list != NULL || has_calls(array)) && !knows_tools(server);
    cJSON *flat = is_good && is_flat ? flat_messages(body, array, &messages) : NULL;
    cJSON *list = is_good && (!is_flat || flat != NULL)
                      ? tnd_srv_template_messages(body, is_flat ? flat : array, &begun)
                      : NULL;
    is_good =
        list != NULL && tnd_srv_template_encode(server, body, list,
                                                is_flat ? NULL : messages.tools.list, begun, out);
    cJSON_Delete(list);
    cJSON_Delete(flat);
    free(begun);
    tnd_srv_tools_free(&messages.tools);
    tnd_srv_text_free(&messages.texts);
    free(messages.items);
    return is_good;
}
