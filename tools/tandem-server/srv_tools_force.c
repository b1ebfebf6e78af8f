/* SPDX-License-Identifier: MIT
 * tool_choice: a grammar that allows only calls. */
#include <string.h>

#include "tools/tandem-server/srv_grammar.h"
#include "tools/tandem-server/srv_params.h"

/* Moves definitions that a function's schema refers to to the root of the common schema. */
static bool hoist(struct srv_body *body, cJSON *parameters, const char *name, cJSON *root)
{
    cJSON *own = cJSON_DetachItemFromObjectCaseSensitive(parameters, name);
    bool is_good = true;
    if (own != NULL && !cJSON_HasObjectItem(root, name)) {
        return cJSON_AddItemToObject(root, name, own);
    }
    cJSON *all = cJSON_GetObjectItemCaseSensitive(root, name);
    while (own != NULL && own->child != NULL && is_good) {
        cJSON *one = cJSON_DetachItemViaPointer(own, own->child);
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(all, one->string);
        if (other == NULL) {
            is_good = cJSON_AddItemToObject(all, one->string, one);
        } else {
            is_good = cJSON_Compare(one, other, true) ||
                      tnd_srv_body_fault(body, "'tools': functions differ in '%.20s/%.60s'", name,
                                         one->string);
            cJSON_Delete(one);
        }
    }
    cJSON_Delete(own);
    return is_good;
}

/* Adds {"name": this one, "arguments": by its schema}. */
static bool add_call(struct srv_body *body, const cJSON *function, const char *arguments,
                     cJSON *root, cJSON *calls)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(function, "name");
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(function, "parameters");
    cJSON *call = cJSON_CreateObject();
    cJSON *properties = cJSON_AddObjectToObject(call, "properties");
    cJSON *parameters =
        cJSON_IsObject(given) ? cJSON_Duplicate(given, true) : cJSON_Parse("{\"type\":\"object\"}");
    cJSON *constant = cJSON_AddObjectToObject(properties, "name");
    const char *const required[] = {"name", arguments};
    bool is_good = parameters != NULL &&
                   cJSON_AddStringToObject(constant, "const", name->valuestring) != NULL &&
                   hoist(body, parameters, "$defs", root) &&
                   hoist(body, parameters, "definitions", root);
    /* (without a type any value would match, but arguments must be an object) */
    is_good = is_good && (cJSON_HasObjectItem(parameters, "type") ||
                          cJSON_AddStringToObject(parameters, "type", "object") != NULL);
    if (!cJSON_AddItemToObject(properties, arguments, parameters)) {
        cJSON_Delete(parameters);
        is_good = false;
    }
    is_good = is_good && cJSON_AddStringToObject(call, "type", "object") != NULL &&
              cJSON_AddFalseToObject(call, "additionalProperties") != NULL;
    cJSON *names = cJSON_CreateStringArray(required, 2);
    if (!cJSON_AddItemToObject(call, "required", names)) {
        cJSON_Delete(names);
        is_good = false;
    }
    if (!cJSON_AddItemToArray(calls, call)) {
        cJSON_Delete(call);
        is_good = false;
    }
    return is_good || tnd_srv_body_fault(body, "no memory for the tools");
}

static const struct {
    enum srv_call_format format;
    const char *before, *after; /* texts around the object */
} frames[] = {{SRV_CALLS_HERMES, "<tool_call>\n", "\n</tool_call>"},
              {SRV_CALLS_MISTRAL, "[TOOL_CALLS][", "]"},
              {SRV_CALLS_LLAMA3, NULL, NULL}};

bool tnd_srv_tools_force(struct srv_body *body, struct srv_params *params)
{
    struct srv_tools *tools = &params->tools;
    const cJSON *tool = NULL;
    const char *before = NULL, *after = NULL;
    enum srv_call_format format = SRV_CALLS_GENERIC; /* has the name outside of the JSON */
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        if (frames[i].format == tools->format) {
            format = tools->format;
            before = frames[i].before;
            after = frames[i].after;
        }
    }
    tools->format = format;
    params->takes_reasoning = false; /* no reasoning precedes the call */
    params->frame = NULL;
    cJSON *root = cJSON_CreateObject();
    cJSON *calls = cJSON_AddArrayToObject(root, "anyOf");
    bool is_good = calls != NULL || tnd_srv_body_fault(body, "no memory for the tools");
    cJSON_ArrayForEach(tool, tools->list)
    {
        const cJSON *function = cJSON_GetObjectItemCaseSensitive(tool, "function");
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(function, "name");
        if (is_good && (tools->name[0] == '\0' || strcmp(tools->name, name->valuestring) == 0)) {
            is_good =
                add_call(body, function, format == SRV_CALLS_LLAMA3 ? "parameters" : "arguments",
                         root, calls);
        }
    }
    is_good = is_good && tnd_srv_grammar_set_json(body, "tool_choice", TANDEM_GRAMMAR_JSON_SCHEMA,
                                                  root, before, after, params);
    cJSON_Delete(root);
    return is_good;
}
