/* SPDX-License-Identifier: MIT
 * Functions that a model may call. */
#include "tools/tandem-server/srv_tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static bool is_name(const cJSON *name)
{
    const char *text = cJSON_IsString(name) ? name->valuestring : "";
    for (const char *at = text; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("_-.", *at) == NULL) {
            return false;
        }
    }
    return text[0] != '\0' && strlen(text) <= 64;
}

static bool check_tool(struct srv_body *body, const cJSON *tool, int i)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(tool, "type");
    const cJSON *function = cJSON_GetObjectItemCaseSensitive(tool, "function");
    const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(function, "parameters");
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "function") != 0) {
        return tnd_srv_body_fault(body, "tool %d: only type function is supported", i);
    }
    if (!is_name(cJSON_GetObjectItemCaseSensitive(function, "name"))) {
        return tnd_srv_body_fault(body,
                                  "tool %d: 'function.name' must have 1 to 64 letters, digits, "
                                  "'_', '-' or '.'",
                                  i);
    }
    return parameters == NULL || cJSON_IsNull(parameters) || cJSON_IsObject(parameters) ||
           tnd_srv_body_fault(body, "tool %d: 'function.parameters' must be an object", i);
}

/* Reads a word, or {"type":"function","function":{"name":..}}. */
static bool read_choice(struct srv_body *body, struct srv_tools *out)
{
    const cJSON *choice = tnd_srv_body_member(body, "tool_choice");
    const cJSON *function = cJSON_GetObjectItemCaseSensitive(choice, "function");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(function, "name");
    const char *word = cJSON_IsString(choice) ? choice->valuestring : "";
    if (cJSON_IsString(name)) {
        if (tnd_srv_tool_find(out->list, name->valuestring) == NULL) {
            return tnd_srv_body_fault(body, "'tool_choice': there is no function '%.64s'",
                                      name->valuestring);
        }
        memcpy(out->name, name->valuestring, strlen(name->valuestring) + 1);
        out->must_call = true;
        return true;
    }
    out->must_call = strcmp(word, "required") == 0;
    if (strcmp(word, "none") == 0) {
        tnd_srv_tools_free(out);
        return true;
    }
    if (out->must_call && out->list == NULL) {
        return tnd_srv_body_fault(body, "'tool_choice' is required, but there are no 'tools'");
    }
    return choice == NULL || out->must_call || strcmp(word, "auto") == 0 ||
           tnd_srv_body_fault(body, "'tool_choice' must be none, auto, required or the name of a "
                                    "function");
}

bool tnd_srv_tools_read(struct srv_body *body, enum srv_call_format format, struct srv_tools *out)
{
    const cJSON *list = tnd_srv_body_member(body, "tools");
    const cJSON *tool = NULL;
    int i = 0;
    *out = (struct srv_tools){.format = format, .is_parallel = true};
    if (!tnd_srv_body_flag(body, "parallel_tool_calls", &out->is_parallel)) {
        return false;
    }
    if (list != NULL && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > SRV_MAX_TOOLS)) {
        return tnd_srv_body_fault(body, "'tools' must be an array of at most %d", SRV_MAX_TOOLS);
    }
    cJSON_ArrayForEach(tool, list)
    {
        if (!check_tool(body, tool, i++)) {
            return false;
        }
    }
    if (i > 0) {
        out->list = cJSON_Duplicate(list, true);
        if (out->list == NULL) {
            return tnd_srv_body_fault(body, "no memory for the tools");
        }
    }
    return read_choice(body, out);
}

void tnd_srv_tools_free(struct srv_tools *tools)
{
    cJSON_Delete(tools->list);
    tools->list = NULL;
}

/* ---- prompts ---- */

static void add_json(const cJSON *value, struct srv_text *out)
{
    char *text = cJSON_PrintUnformatted(value);
    if (text == NULL) {
        out->failed = true;
        return;
    }
    tnd_srv_add(out, text, strlen(text));
    cJSON_free(text);
}

static const char *arguments_name(enum srv_call_format format)
{
    return format == SRV_CALLS_LLAMA3 ? "parameters" : "arguments";
}

void tnd_srv_tools_describe(const struct srv_tools *tools, struct srv_text *out)
{
    const bool has_marks = tools->format == SRV_CALLS_HERMES;
    const cJSON *tool = NULL;
    tnd_srv_print(out,
                  "These functions may be called, each described by a JSON schema:\n<tools>\n");
    cJSON_ArrayForEach(tool, tools->list)
    {
        add_json(tool, out);
        tnd_srv_print(out, "\n");
    }
    tnd_srv_print(out,
                  "</tools>\nTo call a function, write only a JSON object with its name and its "
                  "arguments%s:\n%s{\"name\": \"NAME\", \"%s\": {}}%s\n",
                  has_marks ? ", within <tool_call> tags" : "", has_marks ? "<tool_call>\n" : "",
                  arguments_name(tools->format), has_marks ? "\n</tool_call>" : "");
    if (tools->must_call) {
        tnd_srv_print(out, "Call %s%s now.\n", tools->name[0] != '\0' ? "the function " : "one",
                      tools->name);
    }
}

/* Arguments are a JSON string; an object is accepted, too. */
static bool add_call(struct srv_body *body, enum srv_call_format format, const cJSON *call,
                     struct srv_text *out)
{
    const cJSON *function = cJSON_GetObjectItemCaseSensitive(call, "function");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(function, "name");
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(function, "arguments");
    const char *text = cJSON_IsString(arguments) && arguments->valuestring[0] != '\0'
                           ? arguments->valuestring
                           : "{}";
    if (!is_name(name)) {
        return tnd_srv_body_fault(body, "'tool_calls': 'function.name' is missing or wrong");
    }
    tnd_srv_print(out, "%s%s{\"name\": \"%s\", \"%s\": ", out->n > 0 ? "\n" : "",
                  format == SRV_CALLS_HERMES ? "<tool_call>\n" : "", name->valuestring,
                  arguments_name(format));
    if (cJSON_IsObject(arguments)) {
        add_json(arguments, out);
    } else {
        tnd_srv_add(out, text, strlen(text));
    }
    tnd_srv_print(out, "}%s", format == SRV_CALLS_HERMES ? "\n</tool_call>" : "");
    return true;
}

bool tnd_srv_tools_add_calls(struct srv_body *body, enum srv_call_format format,
                             const cJSON *message, struct srv_text *out)
{
    const cJSON *calls = cJSON_GetObjectItemCaseSensitive(message, "tool_calls");
    const cJSON *call = NULL;
    struct srv_text text = {0};
    bool is_good = calls == NULL || cJSON_IsNull(calls) || cJSON_IsArray(calls) ||
                   tnd_srv_body_fault(body, "'tool_calls' must be an array");
    cJSON_ArrayForEach(call, calls)
    {
        is_good = is_good && add_call(body, format, call, &text);
    }
    tnd_srv_add(out, text.bytes, text.n);
    out->failed = out->failed || text.failed;
    tnd_srv_text_free(&text);
    return is_good;
}

void tnd_srv_tools_add_result(enum srv_call_format format, bool is_end, struct srv_text *out)
{
    if (format == SRV_CALLS_HERMES) {
        tnd_srv_print(out, is_end ? "\n</tool_response>" : "<tool_response>\n");
    } else if (!is_end) {
        tnd_srv_print(out, "The function's result: ");
    }
}
