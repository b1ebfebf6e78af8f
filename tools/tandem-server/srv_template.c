/* SPDX-License-Identifier: MIT
 * Conversations as variables of the model's chat template. */
#include "tools/tandem-server/srv_template.h"

#include <stdlib.h>
#include <string.h>

#include "tools/report/encoded.h"

/* ---- messages ---- */

/* Concatenates parts {"type":"text","text":".."}; other parts are refused. */
static cJSON *joined_parts(struct srv_body *body, const cJSON *parts, int i)
{
    struct srv_text text = {0};
    const cJSON *part = NULL;
    cJSON_ArrayForEach(part, parts)
    {
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
        const cJSON *one = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (!cJSON_IsString(type) || strcmp(type->valuestring, "text") != 0 ||
            !cJSON_IsString(one)) {
            tnd_srv_text_free(&text);
            tnd_srv_body_fault(body, "message %d: only parts of type text are supported", i);
            return NULL;
        }
        tnd_srv_add(&text, one->valuestring, strlen(one->valuestring));
    }
    cJSON *joined = cJSON_CreateString(text.bytes != NULL ? text.bytes : "");
    tnd_srv_text_free(&text);
    return joined;
}

/* OpenAI has arguments as a JSON string; templates expect the object. */
static void open_arguments(cJSON *message)
{
    cJSON *call = NULL;
    cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(message, "tool_calls"))
    {
        cJSON *function = cJSON_GetObjectItemCaseSensitive(call, "function");
        const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(function, "arguments");
        cJSON *opened = cJSON_IsString(arguments) ? cJSON_Parse(arguments->valuestring) : NULL;
        if (opened != NULL && cJSON_IsObject(opened)) {
            cJSON_ReplaceItemInObjectCaseSensitive(function, "arguments", opened);
        } else {
            cJSON_Delete(opened);
        }
    }
}

static bool check_message(struct srv_body *body, cJSON *message, int i)
{
    cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
    const bool has_calls = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(message, "tool_calls"));
    if (!cJSON_IsString(role)) {
        return tnd_srv_body_fault(body, "message %d: 'role' must be a string", i);
    }
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    bool is_known = false;
    for (size_t k = 0; k < sizeof(roles) / sizeof(roles[0]); k++) {
        is_known = is_known || strcmp(role->valuestring, roles[k]) == 0;
    }
    if (!is_known) {
        return tnd_srv_body_fault(body,
                                  "message %d is of '%.20s'; expected system, developer, user, "
                                  "assistant or tool",
                                  i, role->valuestring);
    }
    /* "developer": OpenAI's name for the system role in newer models */
    if (strcmp(role->valuestring, "developer") == 0) {
        cJSON_ReplaceItemInObjectCaseSensitive(message, "role", cJSON_CreateString("system"));
    }
    if (cJSON_IsArray(content)) {
        cJSON *joined = joined_parts(body, content, i);
        return joined != NULL && cJSON_ReplaceItemInObjectCaseSensitive(message, "content", joined);
    }
    if (!cJSON_IsString(content) && !has_calls) {
        return tnd_srv_body_fault(body, "message %d: 'content' must be a string or parts", i);
    }
    if (content == NULL) {
        cJSON_AddNullToObject(message, "content");
    }
    open_arguments(message);
    return true;
}

/* Removes an assistant's text at the end; its calls stay. */
static bool take_begun(cJSON *messages, char **out_begun)
{
    const int last = cJSON_GetArraySize(messages) - 1;
    cJSON *message = cJSON_GetArrayItem(messages, last);
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
    *out_begun = NULL;
    if (last < 1 || !cJSON_IsString(content) || strcmp(role->valuestring, "assistant") != 0 ||
        cJSON_GetObjectItemCaseSensitive(message, "tool_calls") != NULL) {
        return true;
    }
    *out_begun = strdup(content->valuestring);
    cJSON_DeleteItemFromArray(messages, last);
    return *out_begun != NULL;
}

cJSON *tnd_srv_template_messages(struct srv_body *body, const cJSON *messages, char **out_begun)
{
    cJSON *copy = cJSON_Duplicate(messages, true);
    bool is_good = copy != NULL;
    int i = 0;
    for (cJSON *message = is_good ? copy->child : NULL; message != NULL && is_good; i++) {
        cJSON *next = message->next;
        is_good = check_message(body, message, i);
        message = next;
    }
    if (!is_good || !take_begun(copy, out_begun)) {
        tnd_srv_body_fault(body, "no memory for the messages");
        cJSON_Delete(copy);
        return NULL;
    }
    return copy;
}

/* ---- variables ---- */

/* Adds members of the request that templates know, as llama.cpp's server and vLLM do. */
static bool add_others(cJSON *variables, const struct srv_body *body)
{
    static const char *const names[] = {"documents", "reasoning_effort", "enable_thinking"};
    const cJSON *member = NULL;
    bool is_good = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        member = tnd_srv_body_member(body, names[i]);
        is_good =
            is_good && (member == NULL ||
                        cJSON_AddItemToObject(variables, names[i], cJSON_Duplicate(member, true)));
    }
    cJSON_ArrayForEach(member, tnd_srv_body_member(body, "chat_template_kwargs"))
    {
        cJSON_DeleteItemFromObjectCaseSensitive(variables, member->string);
        is_good = is_good &&
                  cJSON_AddItemToObject(variables, member->string, cJSON_Duplicate(member, true));
    }
    return is_good;
}

static char *print_variables(const struct srv_body *body, const cJSON *messages, const cJSON *tools)
{
    cJSON *variables = cJSON_CreateObject();
    char *text = NULL;
    if (variables != NULL && cJSON_AddTrueToObject(variables, "add_generation_prompt") != NULL &&
        add_others(variables, body)) {
        /* (variables of these names would hide the conversation) */
        cJSON_DeleteItemFromObjectCaseSensitive(variables, "messages");
        cJSON_DeleteItemFromObjectCaseSensitive(variables, "tools");
        const bool is_good =
            cJSON_AddItemToObject(variables, "messages", cJSON_Duplicate(messages, true)) &&
            (tools == NULL ||
             cJSON_AddItemToObject(variables, "tools", cJSON_Duplicate(tools, true)));
        text = is_good ? cJSON_PrintUnformatted(variables) : NULL;
    }
    cJSON_Delete(variables);
    return text;
}

/* ---- tokens ---- */

/* Appends the beginning of an answer, marked as the client's text. */
static bool append(struct tandem_rendered *rendered, const char *begun)
{
    const size_t n = strlen(begun);
    char *text = malloc(rendered->n + n + 1);
    unsigned char *marks = malloc(rendered->n + n + 1);
    if (text == NULL || marks == NULL) {
        free(text);
        free(marks);
        return false;
    }
    memcpy(text, rendered->text, rendered->n);
    memcpy(text + rendered->n, begun, n + 1);
    memcpy(marks, rendered->from_variables, rendered->n);
    memset(marks + rendered->n, 1, n);
    rendered->text = text;
    rendered->from_variables = marks;
    rendered->n += n;
    return true;
}

/* The marks of reasoning that the template has opened; NULL: none. */
static const struct srv_marks *opened_reasoning(const struct tandem_rendered *rendered)
{
    const struct srv_marks *marks;
    size_t n = rendered->n;
    while (n > 0 && strchr(" \n\r\t", rendered->text[n - 1]) != NULL) {
        n--;
    }
    for (int i = 0; (marks = tnd_srv_reasoning_at(i)) != NULL; i++) {
        const size_t length = strlen(marks->begin);
        if (n >= length && memcmp(rendered->text + n - length, marks->begin, length) == 0) {
            return marks;
        }
    }
    return NULL;
}

static bool encode(const struct srv_server *server, struct srv_body *body,
                   const struct tandem_rendered *rendered, struct srv_ids *out)
{
    struct tandem_error error = {0};
    const struct tnd_encoded_text text = {.rendered = rendered};
    struct srv_ids ids = {.thinking = opened_reasoning(rendered)};
    if (tnd_encoded(server->tokenizer, &text, &ids.ids, &ids.n, NULL, &error) != TANDEM_OK) {
        return tnd_srv_body_fault(body, "%.180s", error.text);
    }
    *out = ids;
    return true;
}

bool tnd_srv_template_encode(const struct srv_server *server, struct srv_body *body,
                             const cJSON *messages, const cJSON *tools, const char *begun,
                             struct srv_ids *out)
{
    struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
    struct tandem_error error = {0};
    if (server->chat_template == NULL) {
        return tnd_srv_body_fault(body, "the model has no chat template: start the server with "
                                        "--chat-template FILE or a name, or use /completion");
    }
    char *variables = print_variables(body, messages, tools);
    if (variables == NULL) {
        return tnd_srv_body_fault(body, "no memory for the messages");
    }
    const enum tandem_status status =
        tandem_chat_template_render(server->chat_template, variables, strlen(variables),
                                    server->tokenizer, 0, &rendered, &error);
    cJSON_free(variables);
    if (status != TANDEM_OK) {
        return tnd_srv_body_fault(body, "%.190s", error.text);
    }
    struct tandem_rendered whole = rendered;
    const bool is_begun = begun != NULL && begun[0] != '\0';
    bool is_good = !is_begun || append(&whole, begun);
    is_good = is_good ? encode(server, body, &whole, out)
                      : tnd_srv_body_fault(body, "no memory for the messages");
    if (is_begun && whole.text != rendered.text) {
        free(whole.text);
        free(whole.from_variables);
    }
    tandem_rendered_free(&rendered);
    return is_good;
}
