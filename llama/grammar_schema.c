/* SPDX-License-Identifier: MIT
 * Schemas: keywords, references, choices between kinds of values. */
#include "llama/grammar_schema.h"

#include <stdio.h>
#include <string.h>

/* ---- keywords ---- */

/* Keywords that do not constrain values. */
static const char annotations[] = "|title|description|default|examples|example|$schema|$id|$anchor"
                                  "|$comment|deprecated|readOnly|writeOnly|$defs|definitions"
                                  "|discriminator|contentMediaType|contentEncoding|strict|";
static const char structure[] = "|$ref|allOf|type|enum|const|";
static const char constraints[] =
    "|anyOf|oneOf|properties|required|additionalProperties|minProperties|maxProperties"
    "|unevaluatedProperties|items|prefixItems|additionalItems|minItems|maxItems|uniqueItems"
    "|minLength|maxLength|pattern|format|minimum|maximum|exclusiveMinimum|exclusiveMaximum"
    "|multipleOf|";

static bool is_of(const char *words, const struct tnd_json_value *member)
{
    char word[40];
    if (member->name == NULL || member->name_n > sizeof(word) - 3 ||
        strchr(member->name, '|') != NULL) { /* (items of a list have no names) */
        return false;
    }
    snprintf(word, sizeof(word), "|%s|", member->name);
    return strstr(words, word) != NULL;
}

int32_t tnd_schema_refuse(struct tnd_schema *s, const char *keyword, const char *why)
{
    return tnd_tree_fail(s->tree, TANDEM_E_UNSUPPORTED_BUILD, "schema: '%.60s' %s", keyword, why);
}

static bool check_keywords(struct tnd_schema *s, const struct tnd_json_value *schema)
{
    for (const struct tnd_json_value *one = schema->first; one != NULL; one = one->next) {
        if (!is_of(annotations, one) && !is_of(structure, one) && !is_of(constraints, one)) {
            (void)tnd_schema_refuse(s, one->name, "is not supported");
            return false;
        }
    }
    return true;
}

const struct tnd_json_value *
tnd_schema_find(struct tnd_schema *s, const struct tnd_schema_view *view, const char *keyword)
{
    const struct tnd_json_value *found = NULL;
    for (int i = 0; i < view->n; i++) {
        const struct tnd_json_value *one = tnd_json_member(view->parts[i], keyword);
        if (one != NULL && found != NULL && !tnd_json_equal(one, found)) {
            (void)tnd_schema_refuse(s, keyword, "differs between schemas that hold together");
        }
        found = one != NULL ? one : found;
    }
    return found;
}

int64_t tnd_schema_count(struct tnd_schema *s, const struct tnd_schema_view *view,
                         const char *keyword, int64_t other)
{
    const struct tnd_json_value *value = tnd_schema_find(s, view, keyword);
    if (value == NULL) {
        return other;
    }
    if (value->kind != TND_JSON_NUMBER || !(value->number >= 0.0 && value->number <= 1e9) ||
        value->number != (double)(int64_t)value->number) {
        (void)tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: '%s' is no whole number from 0",
                            keyword);
        return other;
    }
    return (int64_t)value->number;
}

/* ---- values ---- */

/* RFC 8259, but bounded: a model must not write blanks or digits for ever. No lone surrogates. */
static const char json[] =
    "json-ws ::= [ \\t\\n\\r]{0,32}\n"
    "json-hex ::= [0-9a-fA-F]\n"
    "json-u ::= \"0\" (\"0\" (\"0\" [1-9a-fA-F] | [1-9a-fA-F] json-hex) | "
    "[1-9a-fA-F] json-hex json-hex) | [1-9a-cA-CeEfF] json-hex json-hex json-hex | "
    "[dD] [0-7] json-hex json-hex | "
    "[dD] [89abAB] json-hex json-hex \"\\\\u\" [dD] [c-fC-F] json-hex json-hex\n"
    "json-plain ::= [^\"\\\\\\x00-\\x1f]\n"
    "json-char ::= json-plain | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" json-u)\n"
    "json-string ::= \"\\\"\" json-char* \"\\\"\"\n"
    "json-integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "json-number ::= json-integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
    "json-pair ::= json-string json-ws \":\" json-ws json-value\n"
    "json-object ::= \"{\" json-ws (json-pair json-ws (\",\" json-ws json-pair json-ws)*)? \"}\"\n"
    "json-array ::= \"[\" json-ws (json-value json-ws (\",\" json-ws json-value json-ws)*)? \"]\"\n"
    "json-bool ::= \"true\" | \"false\"\n"
    "json-value ::= json-object | json-array | json-string | json-number | json-bool | \"null\"\n";

int32_t tnd_schema_json(struct tnd_schema *s, const char *name)
{
    return tnd_tree_call(s->tree, tnd_tree_rule(s->tree, name, strlen(name)));
}

static void add_string(struct tnd_schema *s, int32_t list, const char *text, size_t n)
{
    static const char raw[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    size_t begin = 0;
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
    for (size_t i = 0; i <= n; i++) {
        if (i < n && (unsigned char)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\') {
            continue;
        }
        if (i > begin) {
            tnd_tree_append(s->tree, list, tnd_tree_bytes(s->tree, text + begin, i - begin));
        }
        begin = i + 1;
        if (i < n) {
            char escape[8];
            const char *at = text[i] != '\0' ? strchr(raw, text[i]) : NULL;
            if (at != NULL) {
                snprintf(escape, sizeof(escape), "\\%c", names[at - raw]);
            } else {
                snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)(unsigned char)text[i]);
            }
            tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, escape));
        }
    }
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
}

static void add_literal(struct tnd_schema *s, int32_t list, const struct tnd_json_value *value)
{
    static const char *const words[] = {"null", "false", "true"};
    const bool is_object = value->kind == TND_JSON_OBJECT;
    if (value->kind <= TND_JSON_TRUE) {
        tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, words[value->kind]));
    } else if (value->kind == TND_JSON_NUMBER) {
        tnd_tree_append(s->tree, list, tnd_tree_bytes(s->tree, value->text, value->n));
    } else if (value->kind == TND_JSON_STRING) {
        add_string(s, list, value->text, value->n);
    } else {
        tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, is_object ? "{" : "["));
        for (const struct tnd_json_value *one = value->first; one != NULL; one = one->next) {
            if (is_object) {
                add_string(s, list, one->name, one->name_n);
                tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, ":"));
            }
            add_literal(s, list, one);
            if (one->next != NULL) {
                tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, ","));
            }
        }
        tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, is_object ? "}" : "]"));
    }
}

int32_t tnd_schema_literal(struct tnd_schema *s, const struct tnd_json_value *value)
{
    const int32_t list = tnd_tree_list(s->tree, TND_SEQUENCE);
    add_literal(s, list, value);
    return list;
}

/* ---- references ---- */

/* Decodes the part of a pointer (RFC 6901) up to the next '/'. */
static size_t pointer_token(const char **at, char *out, size_t capacity)
{
    size_t n = 0;
    for (; **at != '\0' && **at != '/' && n + 1 < capacity; (*at)++) {
        char c = **at;
        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1')) {
            (*at)++;
            c = **at == '0' ? '~' : '/';
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return n;
}

static const struct tnd_json_value *resolve(struct tnd_schema *s, const struct tnd_json_value *ref)
{
    const struct tnd_json_value *value = s->root;
    const char *at = ref->kind == TND_JSON_STRING ? ref->text : "";
    if (at[0] != '#' || (at[1] != '\0' && at[1] != '/') || strchr(at, '%') != NULL) {
        (void)tnd_schema_refuse(s, "$ref", "must be a pointer into the same schema: #/..");
        return NULL;
    }
    for (at++; value != NULL && *at == '/';) {
        char token[256];
        at++;
        (void)pointer_token(&at, token, sizeof(token));
        if (value->kind == TND_JSON_ARRAY) {
            const struct tnd_json_value *one = value->first;
            for (int i = 0; one != NULL; one = one->next, i++) {
                char number[16];
                snprintf(number, sizeof(number), "%d", i);
                if (strcmp(number, token) == 0) {
                    break;
                }
            }
            value = one;
        } else {
            value = tnd_json_member(value, token);
        }
    }
    if (value == NULL || *at != '\0') {
        (void)tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: '$ref' %.80s leads nowhere",
                            ref->text);
        return NULL;
    }
    return value;
}

/* Adds a schema to a view, with all schemas that apply together with it. */
static void add_part(struct tnd_schema *s, struct tnd_schema_view *view,
                     const struct tnd_json_value *schema, int depth)
{
    if (schema == NULL || s->tree->status != TANDEM_OK || schema->kind == TND_JSON_TRUE) {
        return;
    }
    if (schema->kind != TND_JSON_OBJECT) {
        (void)tnd_tree_fail(s->tree, TANDEM_E_FORMAT,
                            schema->kind == TND_JSON_FALSE
                                ? "schema: false allows no value"
                                : "schema: a schema must be an object or true");
        return;
    }
    if (view->n == TND_SCHEMA_MOST_PARTS || depth > TND_SCHEMA_MOST_PARTS) {
        (void)tnd_tree_fail(s->tree, TANDEM_E_LIMIT,
                            "schema: more than %d schemas hold together, or refer to themselves",
                            (int)TND_SCHEMA_MOST_PARTS);
        return;
    }
    if (!check_keywords(s, schema)) {
        return;
    }
    view->parts[view->n++] = schema;
    const struct tnd_json_value *ref = tnd_json_member(schema, "$ref");
    const struct tnd_json_value *all = tnd_json_member(schema, "allOf");
    if (ref != NULL) {
        add_part(s, view, resolve(s, ref), depth + 1);
    }
    for (const struct tnd_json_value *one = all != NULL ? all->first : NULL; one != NULL;
         one = one->next) {
        add_part(s, view, one, depth + 1);
    }
}

/* ---- kinds of values ---- */

static unsigned kind_of_name(const struct tnd_json_value *name)
{
    static const struct {
        const char *name;
        unsigned kind;
    } kinds[] = {{"null", TND_IS_NULL},       {"boolean", TND_IS_BOOL},
                 {"integer", TND_IS_INTEGER}, {"number", TND_IS_INTEGER | TND_IS_FRACTION},
                 {"string", TND_IS_STRING},   {"array", TND_IS_ARRAY},
                 {"object", TND_IS_OBJECT}};
    for (size_t i = 0; name->kind == TND_JSON_STRING && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(name->text, kinds[i].name) == 0) {
            return kinds[i].kind;
        }
    }
    return 0;
}

/* Kinds that `type` of one schema allows. */
static unsigned kinds_of_type(struct tnd_schema *s, const struct tnd_json_value *type)
{
    unsigned kinds = 0;
    const struct tnd_json_value *one = type->kind == TND_JSON_ARRAY ? type->first : type;
    for (; one != NULL; one = type->kind == TND_JSON_ARRAY ? one->next : NULL) {
        const unsigned kind = kind_of_name(one);
        if (kind == 0) {
            (void)tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: unknown 'type' %.40s",
                                one->kind == TND_JSON_STRING ? one->text : "");
        }
        kinds |= kind;
    }
    return kinds;
}

/* Kinds without `type`: those that the keywords are about; all if they say nothing. */
static unsigned kinds_of_keywords(const struct tnd_schema_view *view)
{
    static const struct {
        const char *words;
        unsigned kinds;
    } rows[] = {{"|properties|required|additionalProperties|minProperties|maxProperties"
                 "|unevaluatedProperties|",
                 TND_IS_OBJECT},
                {"|items|prefixItems|additionalItems|minItems|maxItems|uniqueItems|", TND_IS_ARRAY},
                {"|minLength|maxLength|pattern|format|", TND_IS_STRING},
                {"|minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf|",
                 TND_IS_INTEGER | TND_IS_FRACTION}};
    unsigned kinds = 0;
    for (int i = 0; i < view->n; i++) {
        for (const struct tnd_json_value *m = view->parts[i]->first; m != NULL; m = m->next) {
            for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
                kinds |= is_of(rows[k].words, m) ? rows[k].kinds : 0;
            }
        }
    }
    return kinds != 0 ? kinds : TND_IS_ANY;
}

static unsigned kinds_of(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    unsigned kinds = TND_IS_ANY;
    bool has_type = false;
    for (int i = 0; i < view->n; i++) {
        const struct tnd_json_value *type = tnd_json_member(view->parts[i], "type");
        if (type != NULL) {
            kinds &= kinds_of_type(s, type);
            has_type = true;
        }
    }
    return has_type ? kinds : kinds_of_keywords(view);
}

static unsigned kind_of_value(const struct tnd_json_value *value)
{
    static const unsigned kinds[] = {TND_IS_NULL,   TND_IS_BOOL,  TND_IS_BOOL,  TND_IS_FRACTION,
                                     TND_IS_STRING, TND_IS_ARRAY, TND_IS_OBJECT};
    return value->kind == TND_JSON_NUMBER && strpbrk(value->text, ".eE") == NULL
               ? TND_IS_INTEGER
               : kinds[value->kind];
}

/* ---- expressions ---- */

/* The alternatives of `enum` or `const` that are of an allowed kind. */
static int32_t listed(struct tnd_schema *s, const struct tnd_schema_view *view,
                      const struct tnd_json_value *values, const struct tnd_json_value *constant)
{
    const unsigned kinds = kinds_of(s, view);
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    bool any = false;
    for (int i = 0; i < view->n; i++) {
        for (const struct tnd_json_value *m = view->parts[i]->first; m != NULL; m = m->next) {
            if (is_of(constraints, m)) {
                return tnd_schema_refuse(s, m->name, "beside enum or const is not supported");
            }
        }
    }
    if (values != NULL && values->kind != TND_JSON_ARRAY) {
        return tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: 'enum' must be an array");
    }
    const struct tnd_json_value *one = values != NULL ? values->first : constant;
    for (; one != NULL; one = values != NULL ? one->next : NULL) {
        if ((kind_of_value(one) & kinds) != 0 &&
            (constant == NULL || tnd_json_equal(one, constant))) {
            tnd_tree_append(s->tree, list, tnd_schema_literal(s, one));
            any = true;
        }
    }
    return any ? list : tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: 'enum' allows no value");
}

static int32_t of_kinds(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    const unsigned kinds = kinds_of(s, view);
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    if (kinds == 0) {
        return tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: 'type' allows no value");
    }
    if (kinds == TND_IS_ANY) {
        return tnd_schema_json(s, "json-value");
    }
    if ((kinds & TND_IS_OBJECT) != 0) {
        tnd_tree_append(s->tree, list, tnd_schema_object(s, view));
    }
    if ((kinds & TND_IS_ARRAY) != 0) {
        tnd_tree_append(s->tree, list, tnd_schema_array(s, view));
    }
    if ((kinds & TND_IS_STRING) != 0) {
        tnd_tree_append(s->tree, list, tnd_schema_string(s, view));
    }
    if ((kinds & (TND_IS_INTEGER | TND_IS_FRACTION)) != 0) {
        tnd_tree_append(s->tree, list, tnd_schema_number(s, view, (kinds & TND_IS_FRACTION) == 0));
    }
    if ((kinds & TND_IS_BOOL) != 0) {
        tnd_tree_append(s->tree, list, tnd_schema_json(s, "json-bool"));
    }
    if ((kinds & TND_IS_NULL) != 0) {
        tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "null"));
    }
    return list;
}

/* The first anyOf or oneOf of a view that was not taken yet. */
static const struct tnd_json_value *find_choice(const struct tnd_schema_view *view,
                                                const struct tnd_json_value **taken, int n_taken)
{
    static const char *const words[] = {"anyOf", "oneOf"};
    for (int i = 0; i < 2 * view->n; i++) {
        const struct tnd_json_value *one = tnd_json_member(view->parts[i / 2], words[i % 2]);
        for (int k = 0; one != NULL && k < n_taken; k++) {
            one = one == taken[k] ? NULL : one;
        }
        if (one != NULL) {
            return one;
        }
    }
    return NULL;
}

static bool is_alone(const struct tnd_schema_view *view, const struct tnd_json_value *choice)
{
    for (int i = 0; i < view->n; i++) {
        for (const struct tnd_json_value *m = view->parts[i]->first; m != NULL; m = m->next) {
            if (m != choice && !is_of(annotations, m) && strcmp(m->name, "allOf") != 0 &&
                strcmp(m->name, "$ref") != 0) {
                return false;
            }
        }
    }
    return true;
}

static int32_t of_view(struct tnd_schema *s, const struct tnd_schema_view *view,
                       const struct tnd_json_value **taken, int n_taken)
{
    const struct tnd_json_value *choice = find_choice(view, taken, n_taken);
    const struct tnd_json_value *values, *constant;
    if (s->tree->status != TANDEM_OK) {
        return 0;
    }
    if (choice != NULL) {
        const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
        if (choice->kind != TND_JSON_ARRAY || choice->first == NULL ||
            n_taken == TND_SCHEMA_MOST_PARTS) {
            return tnd_tree_fail(s->tree, TANDEM_E_FORMAT,
                                 "schema: 'anyOf' must be an array of schemas, and not too many");
        }
        taken[n_taken] = choice;
        for (const struct tnd_json_value *one = choice->first; one != NULL; one = one->next) {
            struct tnd_schema_view branch = *view;
            int32_t node;
            if (is_alone(view, choice)) {
                node = tnd_schema_value(s, one);
            } else {
                add_part(s, &branch, one, 0);
                node = of_view(s, &branch, taken, n_taken + 1);
            }
            tnd_tree_append(s->tree, list, node);
        }
        return list;
    }
    values = tnd_schema_find(s, view, "enum");
    constant = tnd_schema_find(s, view, "const");
    return values != NULL || constant != NULL ? listed(s, view, values, constant)
                                              : of_kinds(s, view);
}

/* Follows references that only annotations accompany. */
static const struct tnd_json_value *follow(struct tnd_schema *s,
                                           const struct tnd_json_value *schema)
{
    for (int i = 0; i < TND_SCHEMA_MOST_PARTS && schema != NULL; i++) {
        const struct tnd_json_value *ref = tnd_json_member(schema, "$ref");
        const struct tnd_json_value *all = tnd_json_member(schema, "allOf");
        const struct tnd_json_value *only = ref != NULL ? ref : all;
        for (const struct tnd_json_value *m = schema->first; m != NULL; m = m->next) {
            only = m == only || is_of(annotations, m) ? only : NULL;
        }
        if (only == NULL || (ref == NULL && all->n_children != 1)) {
            return schema;
        }
        schema = ref != NULL ? resolve(s, ref) : all->first;
    }
    return schema;
}

int32_t tnd_schema_value(struct tnd_schema *s, const struct tnd_json_value *given)
{
    struct tnd_schema_view view = {.n = 0};
    const struct tnd_json_value *taken[TND_SCHEMA_MOST_PARTS + 1];
    const struct tnd_json_value *schema = follow(s, given);
    if (schema == NULL || s->tree->status != TANDEM_OK) {
        return 0;
    }
    struct tnd_json_value *own = &s->values[schema - s->values]; /* not const */
    if (own->mark != 0) {
        return tnd_tree_call(s->tree, own->mark - 1);
    }
    if (s->depth >= TND_SCHEMA_DEPTH) {
        return tnd_tree_fail(s->tree, TANDEM_E_LIMIT, "schema: more than %d schemas deep",
                             (int)TND_SCHEMA_DEPTH);
    }
    const int32_t rule = tnd_tree_rule(s->tree, "", 0);
    own->mark = rule + 1;
    s->depth++;
    add_part(s, &view, schema, 0);
    const int32_t node = of_view(s, &view, taken, 0);
    s->depth--;
    if (s->tree->status == TANDEM_OK) {
        s->tree->rules[rule].node = node;
    }
    return tnd_tree_call(s->tree, rule);
}

static bool read_json(struct tnd_tree *tree, struct tnd_json_tree *out, const char *text, size_t n)
{
    if (!tnd_json_tree_read(out, text, n)) {
        (void)tnd_tree_fail(tree, TANDEM_E_FORMAT, "schema: no JSON: byte %zu: %s", out->fault_at,
                            out->fault);
        return false;
    }
    return true;
}

int32_t tnd_schema_parse(struct tnd_tree *tree, const char *text, size_t n)
{
    struct tnd_json_tree document;
    int32_t node = 0;
    if (read_json(tree, &document, text, n)) {
        struct tnd_schema s = {.tree = tree, .root = document.values, .values = document.values};
        (void)tnd_gbnf_parse(tree, json, sizeof(json) - 1, "json-value");
        node = tnd_tree_pair(tree, tnd_schema_json(&s, "json-ws"), tnd_schema_value(&s, s.root));
    }
    tnd_json_tree_free(&document);
    return node;
}

int32_t tnd_choice_parse(struct tnd_tree *tree, const char *text, size_t n)
{
    struct tnd_json_tree document;
    int32_t list = 0;
    if (read_json(tree, &document, text, n)) {
        const struct tnd_json_value *one = document.values[0].first;
        list = tnd_tree_list(tree, TND_CHOICE);
        if (document.values[0].kind != TND_JSON_ARRAY || one == NULL) {
            (void)tnd_tree_fail(tree, TANDEM_E_FORMAT, "choice: an array of strings is expected");
        }
        for (; one != NULL && tree->status == TANDEM_OK; one = one->next) {
            if (one->kind != TND_JSON_STRING || one->n == 0) {
                (void)tnd_tree_fail(tree, TANDEM_E_FORMAT, "choice: an empty string, or none");
            } else {
                tnd_tree_append(tree, list, tnd_tree_bytes(tree, one->text, one->n));
            }
        }
    }
    tnd_json_tree_free(&document);
    return list;
}
