/* SPDX-License-Identifier: MIT
 * JSON into values of the template language, and back as Python's json.dumps writes it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "formats/json_pull.h"
#include "formats/template.h"
#include "formats/unicode.h"

/* ---- reading ---- */

static struct tnd_value read_value(struct tnd_render *render, struct tnd_json *json, int depth);

static bool failed(struct tnd_render *render, enum tandem_status status)
{
    if (status != TANDEM_OK && render->status == TANDEM_OK) {
        render->status = status; /* the reader has filled the error */
    }
    return render->status != TANDEM_OK;
}

static struct tnd_value read_string(struct tnd_render *render, struct tnd_json *json)
{
    /* A text is never longer decoded than written. */
    (void)tnd_json_peek(json);
    const char *end = json->at + (json->at < json->end);
    while (end < json->end && *end != '"') {
        end += *end == '\\' && end + 1 < json->end ? 2 : 1;
    }
    const size_t capacity = (size_t)(end - json->at) + 2;
    char *bytes = tnd_template_alloc(render, capacity, 1);
    if (bytes == NULL ||
        failed(render, tnd_json_pull_string(json, bytes, capacity, render->error))) {
        return tnd_none();
    }
    struct tnd_string *string = tnd_template_alloc(render, 1, sizeof(*string));
    if (string == NULL) {
        return tnd_none();
    }
    *string = (struct tnd_string){bytes, NULL, strlen(bytes), true, false};
    return (struct tnd_value){.kind = TND_KIND_STRING, .as.string = string};
}

static struct tnd_value read_list(struct tnd_render *render, struct tnd_json *json, int depth)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    struct tnd_json_walk walk = {.json = json, .error = render->error};
    while (render->status == TANDEM_OK && tnd_json_next_item(&walk)) {
        tnd_list_add(render, list.as.list, read_value(render, json, depth + 1));
    }
    (void)failed(render, walk.status);
    return list;
}

static struct tnd_value read_dict(struct tnd_render *render, struct tnd_json *json, int depth)
{
    struct tnd_value dict = tnd_dict_value(render);
    struct tnd_json_walk walk = {.json = json, .error = render->error};
    while (render->status == TANDEM_OK && tnd_json_next_member(&walk, NULL, 0)) {
        struct tnd_json again = {json->begin, walk.key - 1, json->end, json->name};
        const struct tnd_value key = read_string(render, &again);
        const struct tnd_value value = read_value(render, json, depth + 1);
        if (render->status == TANDEM_OK) {
            tnd_dict_set(render, dict.as.dict, key, value);
        }
    }
    (void)failed(render, walk.status);
    return dict;
}

static struct tnd_value read_number(struct tnd_render *render, struct tnd_json *json)
{
    double number = 0;
    int64_t integer = 0;
    bool is_integer = false;
    const char *begin = json->at;
    if (failed(render, tnd_json_number(json, &number, &integer, &is_integer, render->error))) {
        return tnd_none();
    }
    const size_t n = (size_t)(json->at - begin);
    const bool is_written_whole = memchr(begin, '.', n) == NULL && memchr(begin, 'e', n) == NULL &&
                                  memchr(begin, 'E', n) == NULL;
    if (is_written_whole && !is_integer) {
        return tnd_template_fail(render, TANDEM_E_LIMIT,
                                 "a whole number of the variables is beyond 64 bits");
    }
    return is_written_whole ? tnd_int(integer) : tnd_number(number);
}

static struct tnd_value read_value(struct tnd_render *render, struct tnd_json *json, int depth)
{
    bool truth;
    if (!tnd_template_step(render, 1)) {
        return tnd_none();
    }
    if (depth > TND_JSON_MAX_DEPTH) {
        return tnd_template_fail(render, TANDEM_E_LIMIT,
                                 "the variables are nested more than %d deep", TND_JSON_MAX_DEPTH);
    }
    switch (tnd_json_peek(json)) {
    case '{':
        return read_dict(render, json, depth);
    case '[':
        return read_list(render, json, depth);
    case '"':
        return read_string(render, json);
    case 't':
    case 'f':
        return failed(render, tnd_json_pull_bool(json, &truth, render->error)) ? tnd_none()
                                                                               : tnd_bool(truth);
    case 'n':
        (void)failed(render, tnd_json_skip(json, render->error));
        return tnd_none();
    default:
        return read_number(render, json);
    }
}

struct tnd_value tnd_template_read_json(struct tnd_render *render, const char *text, size_t n)
{
    struct tnd_json json = {text, text, text + n, "variables of the template"};
    const struct tnd_value value = read_value(render, &json, 0);
    if (render->status == TANDEM_OK) {
        (void)failed(render, tnd_json_end(&json, render->error));
    }
    return value;
}

/* ---- writing ---- */

static void build_text(struct tnd_builder *builder, const char *text)
{
    tnd_build(builder, text, strlen(text), false);
}

static void build_escaped(struct tnd_builder *builder, uint32_t unit, bool is_user)
{
    char text[8];
    snprintf(text, sizeof(text), "\\u%04x", (unsigned)(unit & 0xffff));
    tnd_build(builder, text, 6, is_user);
}

static uint32_t code_of(const char *bytes, size_t n)
{
    const unsigned char *c = (const unsigned char *)bytes;
    return n == 2   ? (uint32_t)(c[0] & 0x1f) << 6 | (c[1] & 0x3f)
           : n == 3 ? (uint32_t)(c[0] & 0x0f) << 12 | (uint32_t)(c[1] & 0x3f) << 6 | (c[2] & 0x3f)
           : n == 4 ? (uint32_t)(c[0] & 0x07) << 18 | (uint32_t)(c[1] & 0x3f) << 12 |
                          (uint32_t)(c[2] & 0x3f) << 6 | (c[3] & 0x3f)
                    : c[0];
}

static void build_string(struct tnd_builder *builder, const struct tnd_string *string, bool ascii)
{
    static const char named[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    build_text(builder, "\"");
    for (size_t at = 0, n; at < string->n && builder->render->status == TANDEM_OK; at += n) {
        const bool is_user = string->origin != NULL ? string->origin[at] != 0 : string->is_user;
        const unsigned char c = (unsigned char)string->bytes[at];
        const char *name = c != 0 ? strchr(named, c) : NULL;
        n = tnd_utf8_loose_length(string->bytes + at, string->n - at);
        while (name != NULL && (name - named) % 2 != 0) {
            name = strchr(name + 1, c);
        }
        if (name != NULL) {
            const char escaped[2] = {'\\', name[1]};
            tnd_build(builder, escaped, 2, is_user);
        } else if (c < 0x20 || (ascii && (c >= 0x7f) && n == 1)) {
            build_escaped(builder, c, is_user);
        } else if (ascii && n > 1) {
            const uint32_t code = code_of(string->bytes + at, n);
            if (code >= 0x10000) {
                build_escaped(builder, 0xd800 + ((code - 0x10000) >> 10), is_user);
                build_escaped(builder, 0xdc00 + ((code - 0x10000) & 0x3ff), is_user);
            } else {
                build_escaped(builder, code, is_user);
            }
        } else {
            tnd_build(builder, string->bytes + at, n, is_user);
        }
    }
    build_text(builder, "\"");
}

static void build_line(struct tnd_builder *builder, const struct tnd_tojson *options, int depth)
{
    if (options->indent >= 0) {
        build_text(builder, "\n");
        for (int i = 0; i < depth * options->indent && builder->render->status == TANDEM_OK; i++) {
            build_text(builder, " ");
        }
    }
}

static void build_list(struct tnd_builder *builder, const struct tnd_list *list,
                       const struct tnd_tojson *options, int depth)
{
    build_text(builder, "[");
    for (size_t i = 0; i < list->n && builder->render->status == TANDEM_OK; i++) {
        build_text(builder, i > 0 ? options->between : "");
        build_line(builder, options, depth + 1);
        tnd_build_json(builder, list->items[i], options, depth + 1);
    }
    if (list->n > 0) {
        build_line(builder, options, depth);
    }
    build_text(builder, "]");
}

static void build_key(struct tnd_builder *builder, struct tnd_value key, bool ascii)
{
    if (key.kind == TND_KIND_STRING) {
        build_string(builder, key.as.string, ascii);
        return;
    }
    if (key.kind == TND_KIND_TUPLE) {
        tnd_template_fail(builder->render, TANDEM_E_FORMAT, "tojson: a tuple is no key");
        return;
    }
    const struct tnd_tojson plain = {.indent = -1};
    build_text(builder, "\"");
    tnd_build_json(builder, key, &plain, 0);
    build_text(builder, "\"");
}

static void build_dict(struct tnd_builder *builder, const struct tnd_dict *dict,
                       const struct tnd_tojson *options, int depth)
{
    struct tnd_render *render = builder->render;
    struct tnd_member *members = dict->members;
    if (options->sort_keys && dict->n > 1) {
        members = tnd_template_alloc(render, dict->n, sizeof(members[0]));
        for (size_t i = 0; members != NULL && i < dict->n;
             i++) { /* by insertion: dicts are small */
            size_t at = i;
            for (; at > 0 && tnd_order(render, members[at - 1].key, dict->members[i].key) > 0;
                 at--) {
                members[at] = members[at - 1];
            }
            members[at] = dict->members[i];
        }
    }
    build_text(builder, "{");
    for (size_t i = 0; members != NULL && i < dict->n && render->status == TANDEM_OK; i++) {
        build_text(builder, i > 0 ? options->between : "");
        build_line(builder, options, depth + 1);
        build_key(builder, members[i].key, options->ascii);
        build_text(builder, options->colon);
        tnd_build_json(builder, members[i].value, options, depth + 1);
    }
    if (dict->n > 0) {
        build_line(builder, options, depth);
    }
    build_text(builder, "}");
}

void tnd_build_json(struct tnd_builder *builder, struct tnd_value value,
                    const struct tnd_tojson *options, int depth)
{
    struct tnd_render *render = builder->render;
    if (!tnd_template_step(render, 1)) {
        return;
    }
    if (depth > TND_TEMPLATE_MAX_DEPTH) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "tojson: values are nested too deep");
        return;
    }
    switch (value.kind) {
    case TND_KIND_NONE:
        build_text(builder, "null");
        break;
    case TND_KIND_BOOL:
        build_text(builder, value.as.truth ? "true" : "false");
        break;
    case TND_KIND_INT:
        tnd_build_repr(builder, value);
        break;
    case TND_KIND_FLOAT:
        if (isfinite(value.as.number)) {
            tnd_build_number(builder, value.as.number);
        } else {
            build_text(builder, isnan(value.as.number) ? "NaN"
                                : value.as.number > 0  ? "Infinity"
                                                       : "-Infinity");
        }
        break;
    case TND_KIND_STRING:
        build_string(builder, value.as.string, options->ascii);
        break;
    case TND_KIND_LIST:
    case TND_KIND_TUPLE:
        build_list(builder, value.as.list, options, depth);
        break;
    case TND_KIND_DICT:
        build_dict(builder, value.as.dict, options, depth);
        break;
    default:
        tnd_template_fail(render, TANDEM_E_FORMAT, "tojson: a value that is %s has no JSON",
                          tnd_kind_name(value));
    }
}
