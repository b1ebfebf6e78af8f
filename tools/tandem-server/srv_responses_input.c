/* SPDX-License-Identifier: MIT
 * /v1/responses: translates a request of OpenAI's newer API into one for a chat. */
#include <string.h>

#include "tools/tandem-server/srv_responses.h"

/* Members that keep or change their name, and those without effect on the text. */
static const struct {
    const char *name, *of_chat; /* NULL: dropped */
} members[] = {{"model", NULL},
               {"input", NULL}, /* read below, like the next five */
               {"instructions", NULL},
               {"tools", NULL},
               {"tool_choice", NULL},
               {"text", NULL},
               {"reasoning", NULL},
               {"max_output_tokens", "max_tokens"},
               {"temperature", "temperature"},
               {"top_p", "top_p"},
               {"top_k", "top_k"},
               {"min_p", "min_p"},
               {"seed", "seed"},
               {"stream", "stream"},
               {"parallel_tool_calls", "parallel_tool_calls"},
               {"metadata", NULL},
               {"store", NULL}, /* nothing is stored, so nothing can refer to it */
               {"user", NULL},
               {"service_tier", NULL},
               {"safety_identifier", NULL},
               {"prompt_cache_key", NULL},
               {"include", NULL}};

/* Adds `item`, or frees it. */
static bool add(struct srv_body *body, cJSON *object, const char *name, cJSON *item)
{
    const bool is_good = item != NULL && (name != NULL ? cJSON_AddItemToObject(object, name, item)
                                                       : cJSON_AddItemToArray(object, item));
    if (!is_good) {
        cJSON_Delete(item);
        return tnd_srv_body_fault(body, "no memory for the request");
    }
    return true;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Members that clients send with a value that has no effect. */
static bool is_default(const cJSON *one)
{
    return cJSON_IsNull(one) || (strcmp(one->string, "background") == 0 && cJSON_IsFalse(one)) ||
           (strcmp(one->string, "truncation") == 0 && cJSON_IsString(one) &&
            strcmp(one->valuestring, "disabled") == 0);
}

static bool take_members(struct srv_body *body, cJSON *chat)
{
    for (const cJSON *one = body->root->child; one != NULL; one = one->next) {
        size_t i = 0;
        const size_t n = sizeof(members) / sizeof(members[0]);
        while (i < n && strcmp(members[i].name, one->string) != 0) {
            i++;
        }
        if (i == n && !is_default(one)) {
            return tnd_srv_body_fault(body, "'%.60s' is not supported", one->string);
        }
        if (i < n && members[i].of_chat != NULL &&
            !add(body, chat, members[i].of_chat, cJSON_Duplicate(one, true))) {
            return false;
        }
    }
    return true;
}

static cJSON *add_message(struct srv_body *body, cJSON *messages, const char *role)
{
    cJSON *message = cJSON_CreateObject();
    return add(body, messages, NULL, message) &&
                   (cJSON_AddStringToObject(message, "role", role) != NULL ||
                    tnd_srv_body_fault(body, "no memory for the request"))
               ? message
               : NULL;
}

/* Adds a string, or parts of type input_text, output_text and text. */
static bool add_content(struct srv_body *body, const cJSON *content, cJSON *message)
{
    if (!cJSON_IsArray(content)) {
        return cJSON_IsString(content)
                   ? add(body, message, "content", cJSON_CreateString(content->valuestring))
                   : tnd_srv_body_fault(body, "'content' must be a string or parts");
    }
    cJSON *parts = cJSON_AddArrayToObject(message, "content");
    for (const cJSON *one = content->child; one != NULL; one = one->next) {
        const char *type = text_of(one, "type"), *text = text_of(one, "text");
        if (type == NULL || text == NULL ||
            (strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0 &&
             strcmp(type, "text") != 0)) {
            return tnd_srv_body_fault(body, "only parts of type input_text are supported");
        }
        cJSON *part = cJSON_CreateObject();
        if (!add(body, parts, NULL, part) || !add(body, part, "type", cJSON_CreateString("text")) ||
            !add(body, part, "text", cJSON_CreateString(text))) {
            return false;
        }
    }
    return true;
}

/* Consecutive calls belong to one message. */
static bool add_call(struct srv_body *body, const cJSON *item, cJSON *messages)
{
    const char *name = text_of(item, "name"), *arguments = text_of(item, "arguments");
    const int n = cJSON_GetArraySize(messages);
    cJSON *message = n > 0 ? cJSON_GetArrayItem(messages, n - 1) : NULL;
    cJSON *calls = cJSON_GetObjectItemCaseSensitive(message, "tool_calls");
    if (calls == NULL) {
        message = add_message(body, messages, "assistant");
        calls = message != NULL ? cJSON_AddArrayToObject(message, "tool_calls") : NULL;
    }
    cJSON *call = cJSON_CreateObject();
    if (!add(body, calls, NULL, call)) {
        return false;
    }
    cJSON *function = cJSON_CreateObject();
    return add(body, call, "function", function) &&
           add(body, function, "name", cJSON_CreateString(name != NULL ? name : "")) &&
           add(body, function, "arguments", cJSON_CreateString(arguments != NULL ? arguments : ""));
}

static bool add_item(struct srv_body *body, const cJSON *item, int i, cJSON *messages)
{
    const char *type = text_of(item, "type"), *role = text_of(item, "role");
    const cJSON *output = cJSON_GetObjectItemCaseSensitive(item, "output");
    if (role != NULL && (type == NULL || strcmp(type, "message") == 0)) {
        cJSON *message = add_message(body, messages, role);
        return message != NULL &&
               add_content(body, cJSON_GetObjectItemCaseSensitive(item, "content"), message);
    }
    if (type != NULL && strcmp(type, "function_call") == 0) {
        return add_call(body, item, messages);
    }
    if (type != NULL && strcmp(type, "function_call_output") == 0) {
        cJSON *message = add_message(body, messages, "tool");
        return message != NULL && add_content(body, output, message);
    }
    return (type != NULL && strcmp(type, "reasoning") == 0) || /* not sent to the model again */
           tnd_srv_body_fault(body, "'input' %d: type '%.40s' is not supported", i,
                              type != NULL ? type : "");
}

static bool read_input(struct srv_body *body, cJSON *chat)
{
    const cJSON *input = tnd_srv_body_member(body, "input");
    const char *instructions = NULL;
    cJSON *messages = cJSON_AddArrayToObject(chat, "messages");
    cJSON *message;
    int i = 0;
    if (!tnd_srv_body_string(body, "instructions", &instructions)) {
        return false;
    }
    if (instructions != NULL &&
        ((message = add_message(body, messages, "system")) == NULL ||
         !add(body, message, "content", cJSON_CreateString(instructions)))) {
        return false;
    }
    if (cJSON_IsString(input)) {
        message = add_message(body, messages, "user");
        return message != NULL && add_content(body, input, message);
    }
    if (!cJSON_IsArray(input)) {
        return tnd_srv_body_fault(body, "'input' must be a string or an array of items");
    }
    for (const cJSON *one = input->child; one != NULL; one = one->next) {
        if (!add_item(body, one, i++, messages)) {
            return false;
        }
    }
    return true;
}

/* Here functions are direct items of the list, not within "function". */
static bool read_tools(struct srv_body *body, cJSON *chat)
{
    const cJSON *tools = tnd_srv_body_member(body, "tools");
    const cJSON *choice = tnd_srv_body_member(body, "tool_choice");
    cJSON *list = cJSON_IsArray(tools) ? cJSON_AddArrayToObject(chat, "tools") : NULL;
    if (tools != NULL && list == NULL) {
        return tnd_srv_body_fault(body, "'tools' must be an array");
    }
    for (const cJSON *one = tools != NULL ? tools->child : NULL; one != NULL; one = one->next) {
        const char *type = text_of(one, "type");
        cJSON *tool = cJSON_CreateObject();
        if (!add(body, list, NULL, tool) ||
            !add(body, tool, "type", cJSON_CreateString(type != NULL ? type : "")) ||
            !add(body, tool, "function", cJSON_Duplicate(one, true))) {
            return false;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(tool, "function"),
                                                "type");
    }
    if (!cJSON_IsObject(choice)) {
        return choice == NULL || add(body, chat, "tool_choice", cJSON_Duplicate(choice, true));
    }
    cJSON *named = cJSON_CreateObject();
    return add(body, chat, "tool_choice", named) &&
           add(body, named, "function", cJSON_Duplicate(choice, true));
}

/* {"format":{"type":"json_schema","name":..,"schema":..}} */
static bool read_text(struct srv_body *body, cJSON *chat)
{
    const cJSON *format =
        cJSON_GetObjectItemCaseSensitive(tnd_srv_body_member(body, "text"), "format");
    const char *type = text_of(format, "type");
    cJSON *out = cJSON_CreateObject();
    if (format == NULL || cJSON_IsNull(format)) {
        cJSON_Delete(out);
        return true;
    }
    if (!add(body, chat, "response_format", out) ||
        !add(body, out, "type", cJSON_CreateString(type != NULL ? type : ""))) {
        return false;
    }
    return type == NULL || strcmp(type, "json_schema") != 0 ||
           add(body, out, "json_schema", cJSON_Duplicate(format, true));
}

/* {"effort":"low","summary":"auto"}: how long to think. Reasoning is never summarised. */
static bool read_reasoning(struct srv_body *body, cJSON *chat)
{
    const cJSON *reasoning = tnd_srv_body_member(body, "reasoning");
    const cJSON *effort = cJSON_GetObjectItemCaseSensitive(reasoning, "effort");
    if (reasoning != NULL && !cJSON_IsObject(reasoning)) {
        return tnd_srv_body_fault(body, "'reasoning' must be an object");
    }
    return effort == NULL || cJSON_IsNull(effort) ||
           add(body, chat, "reasoning_effort", cJSON_Duplicate(effort, true));
}

bool tnd_srv_responses_read(struct srv_body *body)
{
    cJSON *chat = cJSON_CreateObject();
    const bool is_good = take_members(body, chat) && read_input(body, chat) &&
                         read_tools(body, chat) && read_text(body, chat) &&
                         read_reasoning(body, chat);
    cJSON_Delete(body->root);
    body->root = chat;
    return is_good && (chat != NULL || tnd_srv_body_fault(body, "no memory for the request"));
}
