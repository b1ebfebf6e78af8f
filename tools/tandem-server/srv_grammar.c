/* SPDX-License-Identifier: MIT
 * Members of a request that restrict its output. */
#include "tools/tandem-server/srv_grammar.h"

#include <stdlib.h>
#include <string.h>

bool tnd_srv_grammar_set(struct srv_body *body, const char *member, enum tandem_grammar_kind kind,
                         const char *text, const char *before, const char *after,
                         struct srv_params *out)
{
    struct tandem_error error = {0};
    const struct tandem_grammar_options options = {.size = sizeof(options),
                                                   .kind = kind,
                                                   .text = text,
                                                   .n = strlen(text),
                                                   .before = before,
                                                   .after = after};
    if (out->grammar != NULL) {
        return tnd_srv_body_fault(body, "'%.40s' beside another grammar", member);
    }
    return tandem_grammar_new(&options, &out->grammar, &error) == TANDEM_OK ||
           tnd_srv_body_fault(body, "'%.40s': %.150s", member, error.text);
}

bool tnd_srv_grammar_set_json(struct srv_body *body, const char *member,
                              enum tandem_grammar_kind kind, const cJSON *value, const char *before,
                              const char *after, struct srv_params *out)
{
    /* some clients send the JSON as a string */
    char *text = cJSON_IsString(value) ? strdup(value->valuestring) : cJSON_PrintUnformatted(value);
    const bool is_good = text != NULL
                             ? tnd_srv_grammar_set(body, member, kind, text, before, after, out)
                             : tnd_srv_body_fault(body, "no memory");
    free(text);
    return is_good;
}

static bool set_string(struct srv_body *body, const char *member, enum tandem_grammar_kind kind,
                       const cJSON *value, struct srv_params *out)
{
    return cJSON_IsString(value)
               ? tnd_srv_grammar_set(body, member, kind, value->valuestring, NULL, NULL, out)
               : tnd_srv_body_fault(body, "'%.40s' must be a string", member);
}

static const struct {
    const char *member;   /* name in a request */
    const char *in_group; /* name within `structured_outputs` */
    enum tandem_grammar_kind kind;
    bool is_string;
} rows[] = {
    {"grammar", "grammar", TANDEM_GRAMMAR_GBNF, true},
    {"guided_grammar", NULL, TANDEM_GRAMMAR_GBNF, true},
    {"guided_regex", "regex", TANDEM_GRAMMAR_REGEX, true},
    {"json_schema", NULL, TANDEM_GRAMMAR_JSON_SCHEMA, false},
    {"guided_json", "json", TANDEM_GRAMMAR_JSON_SCHEMA, false},
    {"guided_choice", "choice", TANDEM_GRAMMAR_CHOICE, false},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool set_row(struct srv_body *body, int i, const char *member, const cJSON *value,
                    struct srv_params *out)
{
    const bool says_nothing =
        cJSON_IsNull(value) || (cJSON_IsString(value) && value->valuestring[0] == '\0');
    return says_nothing || (rows[i].is_string ? set_string(body, member, rows[i].kind, value, out)
                                              : tnd_srv_grammar_set_json(body, member, rows[i].kind,
                                                                         value, NULL, NULL, out));
}

static bool set_any_object(struct srv_body *body, const char *member, struct srv_params *out)
{
    return tnd_srv_grammar_set(body, member, TANDEM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}",
                               NULL, NULL, out);
}

static bool read_group(struct srv_body *body, struct srv_params *out)
{
    const cJSON *group = tnd_srv_body_member(body, "structured_outputs");
    if (group != NULL && !cJSON_IsObject(group)) {
        return tnd_srv_body_fault(body, "'structured_outputs' must be an object");
    }
    for (const cJSON *one = group != NULL ? group->child : NULL; one != NULL; one = one->next) {
        int i = 0;
        while (i < N_ROWS &&
               (rows[i].in_group == NULL || strcmp(rows[i].in_group, one->string) != 0)) {
            i++;
        }
        if (cJSON_IsTrue(one) && strcmp(one->string, "json_object") == 0) {
            if (!set_any_object(body, "structured_outputs", out)) {
                return false;
            }
        } else if (i == N_ROWS && !cJSON_IsNull(one) && !cJSON_IsFalse(one)) {
            return tnd_srv_body_fault(body, "'structured_outputs': '%.40s' is not supported",
                                      one->string);
        } else if (i < N_ROWS && !set_row(body, i, "structured_outputs", one, out)) {
            return false;
        }
    }
    return true;
}

/* OpenAI's json_schema has name, strict and schema; llama.cpp's json_object may have a schema. */
static bool read_format(struct srv_body *body, struct srv_params *out)
{
    const cJSON *format = tnd_srv_body_member(body, "response_format");
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(format, "type");
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(format, "json_schema");
    const cJSON *schema =
        cJSON_GetObjectItemCaseSensitive(inner != NULL ? inner : format, "schema");
    const char *name = cJSON_IsString(type) ? type->valuestring : "";
    const bool is_schema = strcmp(name, "json_schema") == 0;
    if (format == NULL || strcmp(name, "text") == 0) {
        return true;
    }
    if (schema != NULL && (is_schema || strcmp(name, "json_object") == 0)) {
        return tnd_srv_grammar_set_json(body, "response_format", TANDEM_GRAMMAR_JSON_SCHEMA, schema,
                                        NULL, NULL, out);
    }
    if (is_schema) {
        return tnd_srv_body_fault(body, "'response_format': 'json_schema' lacks its 'schema'");
    }
    return strcmp(name, "json_object") == 0
               ? set_any_object(body, "response_format", out)
               : tnd_srv_body_fault(
                     body, "'response_format': type text, json_object or json_schema, not '%.40s'",
                     name);
}

bool tnd_srv_grammar_read(struct srv_body *body, struct srv_params *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        const cJSON *value = tnd_srv_body_member(body, rows[i].member);
        if (value != NULL && !set_row(body, i, rows[i].member, value, out)) {
            return false;
        }
    }
    return read_group(body, out) && read_format(body, out);
}
