/* SPDX-License-Identifier: MIT
 * Formats in which models call functions, as the templates of their tokenizer_config.json write
 * them. */
#include <string.h>

#include "tools/tandem-server/srv_calls_parts.h"

#define TOOL               "<\xef\xbd\x9ctool\xe2\x96\x81"
#define BLANK              "\xe2\x96\x81"
#define BAR                "\xef\xbd\x9c>"
#define DEEPSEEK_CALLS     TOOL "calls" BLANK "begin" BAR
#define DEEPSEEK_CALLS_END TOOL "calls" BLANK "end" BAR
#define DEEPSEEK_CALL      TOOL "call" BLANK "begin" BAR
#define DEEPSEEK_CALL_END  TOOL "call" BLANK "end" BAR
#define DEEPSEEK_SEP       TOOL "sep" BAR

/* ---- one call ---- */

/* Names that a request can give to functions. */
static bool is_name(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char byte = name[i];
        if (!(byte >= '0' && byte <= '9') && !((byte | 32) >= 'a' && (byte | 32) <= 'z') &&
            byte != '_' && byte != '-' && byte != '.') {
            return false;
        }
    }
    return n > 0 && n <= 64;
}

static struct srv_call *add_call(struct srv_call_reader *r, const char *name, size_t n)
{
    struct srv_call *call = &r->out->calls[r->out->n_calls];
    if (r->out->n_calls == SRV_MAX_CALLS || !is_name(name, n)) {
        return NULL;
    }
    *call = (struct srv_call){.id = ""};
    memcpy(call->name, name, n);
    r->out->n_calls++;
    return call;
}

void tnd_srv_calls_drop(struct srv_answer *answer, int n)
{
    while (answer->n_calls > n) {
        tnd_srv_text_free(&answer->calls[--answer->n_calls].arguments);
    }
}

/* The JSON text of a value, parsed; NULL: it is none. */
static cJSON *parse_value(const char *text, size_t n)
{
    const char *end = NULL;
    cJSON *value = n > 0 ? cJSON_ParseWithLengthOpts(text, n, &end, false) : NULL;
    if (value != NULL && end != text + n) {
        cJSON_Delete(value);
        value = NULL;
    }
    return value;
}

/* Takes over arguments as they were written: an object, or a text that holds one. */
static bool take_arguments(struct srv_call *call, const char *text, size_t n)
{
    cJSON *value = parse_value(text, n);
    cJSON *inner = NULL;
    if (cJSON_IsString(value)) {
        text = value->valuestring;
        n = strlen(text);
        inner = parse_value(text, n);
    }
    const bool is_good = cJSON_IsObject(value) || cJSON_IsObject(inner);
    if (is_good) {
        tnd_srv_add(&call->arguments, text, n);
    }
    cJSON_Delete(inner);
    cJSON_Delete(value);
    return is_good;
}

static bool find_text(const struct srv_cursor *object, const char *name, char *out, size_t capacity)
{
    struct srv_cursor at;
    if (!tnd_srv_scan_member(object->text, object->at, object->n, name, &at)) {
        return false;
    }
    cJSON *value = parse_value(at.text + at.at, at.n - at.at);
    const bool fits = cJSON_IsString(value) && strlen(value->valuestring) < capacity;
    if (fits) {
        memcpy(out, value->valuestring, strlen(value->valuestring) + 1);
    }
    cJSON_Delete(value);
    return fits;
}

/* {"name":..,"arguments" or "parameters":{..}}, also within {"function":..}; `object` ends with
 * it. */
static bool take_object(struct srv_call_reader *r, const struct srv_cursor *object)
{
    char name[sizeof(r->out->calls[0].name)];
    struct srv_cursor arguments, inner;
    if (!find_text(object, "name", name, sizeof(name))) {
        return tnd_srv_scan_member(object->text, object->at, object->n, "function", &inner) &&
               inner.text[inner.at] == '{' && inner.at > object->at && take_object(r, &inner);
    }
    const bool has_arguments =
        tnd_srv_scan_member(object->text, object->at, object->n, "arguments", &arguments) ||
        tnd_srv_scan_member(object->text, object->at, object->n, "parameters", &arguments);
    struct srv_call *call = add_call(r, name, strlen(name));
    if (call == NULL) {
        return false;
    }
    (void)find_text(object, "id", call->id, sizeof(call->id));
    return has_arguments
               ? take_arguments(call, arguments.text + arguments.at, arguments.n - arguments.at)
               : take_arguments(call, "{}", 2);
}

/* Reads an object at the cursor as a call. */
static enum srv_scan read_object(struct srv_call_reader *r)
{
    struct srv_cursor object = r->c;
    tnd_srv_skip_blanks(&r->c);
    object.at = r->c.at;
    if (r->c.at < r->c.n && r->c.text[r->c.at] != '{') {
        return SRV_SCAN_WRONG;
    }
    const enum srv_scan scan = tnd_srv_scan_value(&r->c);
    object.n = r->c.at;
    return scan != SRV_SCAN_DONE ? scan : take_object(r, &object) ? scan : SRV_SCAN_WRONG;
}

/* Arguments at the cursor of a function that is known. */
static enum srv_scan read_arguments(struct srv_call_reader *r, const char *name, size_t n)
{
    tnd_srv_skip_blanks(&r->c);
    const size_t begin = r->c.at;
    const enum srv_scan scan = tnd_srv_scan_value(&r->c);
    if (scan != SRV_SCAN_DONE) {
        return scan;
    }
    struct srv_call *call = add_call(r, name, n);
    return call != NULL && take_arguments(call, r->c.text + begin, r->c.at - begin)
               ? SRV_SCAN_DONE
               : SRV_SCAN_WRONG;
}

/* Moves behind an end mark that models may leave out. */
static enum srv_scan read_end(struct srv_call_reader *r, const char *mark)
{
    tnd_srv_skip_blanks(&r->c);
    return !tnd_srv_skip(&r->c, mark) && !r->is_final && tnd_srv_may_begin(&r->c, mark)
               ? SRV_SCAN_SHORT
               : SRV_SCAN_DONE;
}

/* The text up to a mark, behind which the cursor moves. */
static bool read_until(struct srv_call_reader *r, const char *mark, struct srv_span *out)
{
    out->begin = r->c.at;
    if (!tnd_srv_seek(&r->c, mark)) {
        return false;
    }
    out->end = r->c.at;
    (void)tnd_srv_skip(&r->c, mark);
    return true;
}

/* ---- formats: the cursor is behind the mark that begins a call ---- */

static enum srv_scan read_hermes(struct srv_call_reader *r)
{
    const enum srv_scan scan = read_object(r);
    return scan != SRV_SCAN_DONE ? scan : read_end(r, "</tool_call>");
}

static bool is_text(const struct srv_call_reader *r, const char *name, const char *key)
{
    const cJSON *tool = tnd_srv_tool_find(r->options->tools, name);
    const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(tool, "parameters");
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(parameters, "properties");
    const cJSON *type =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(properties, key), "type");
    return cJSON_IsString(type) && strcmp(type->valuestring, "string") == 0;
}

/* "KEY>VALUE</parameter>" as a member of the arguments. Values are JSON where they read as such and
 * the function does not ask for a text. */
static bool take_tag(struct srv_call_reader *r, struct srv_call *call, struct srv_span key,
                     struct srv_span value)
{
    const char *text = r->c.text;
    char name[128];
    if (key.end - key.begin >= sizeof(name)) {
        return false;
    }
    memcpy(name, text + key.begin, key.end - key.begin);
    name[key.end - key.begin] = '\0';
    value.begin += value.begin < value.end && text[value.begin] == '\n';
    value.end -= value.end > value.begin && text[value.end - 1] == '\n';
    const size_t n = value.end - value.begin;
    cJSON *json = is_text(r, call->name, name) ? NULL : parse_value(text + value.begin, n);
    tnd_srv_add(&call->arguments, call->arguments.n > 1 ? "," : "", call->arguments.n > 1);
    tnd_srv_add_json_text(&call->arguments, name);
    tnd_srv_add(&call->arguments, ":", 1);
    if (json != NULL) {
        tnd_srv_add(&call->arguments, text + value.begin, n);
    } else {
        tnd_srv_add_json(&call->arguments, text + value.begin, n);
    }
    cJSON_Delete(json);
    return true;
}

static enum srv_scan read_tags(struct srv_call_reader *r)
{
    struct srv_span name, key, value;
    tnd_srv_skip_blanks(&r->c);
    if (!tnd_srv_skip(&r->c, "<function=")) {
        return tnd_srv_may_begin(&r->c, "<function=") ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    if (!read_until(r, ">", &name)) {
        return SRV_SCAN_SHORT;
    }
    struct srv_call *call = add_call(r, r->c.text + name.begin, name.end - name.begin);
    if (call == NULL) {
        return SRV_SCAN_WRONG;
    }
    tnd_srv_add(&call->arguments, "{", 1);
    for (;;) {
        tnd_srv_skip_blanks(&r->c);
        if (tnd_srv_skip(&r->c, "</function>")) {
            tnd_srv_add(&call->arguments, "}", 1);
            return read_end(r, "</tool_call>");
        }
        if (!tnd_srv_skip(&r->c, "<parameter=")) {
            return tnd_srv_may_begin(&r->c, "<parameter=") ||
                           tnd_srv_may_begin(&r->c, "</function>")
                       ? SRV_SCAN_SHORT
                       : SRV_SCAN_WRONG;
        }
        if (!read_until(r, ">", &key) || !read_until(r, "</parameter>", &value)) {
            return SRV_SCAN_SHORT;
        }
        if (!take_tag(r, call, key, value)) {
            return SRV_SCAN_WRONG;
        }
    }
}

/* [{..},{..}], all of it */
static enum srv_scan read_list(struct srv_call_reader *r)
{
    struct srv_cursor list = r->c;
    const enum srv_scan scan = tnd_srv_scan_value(&r->c);
    list.n = r->c.at;
    list.at++;
    for (bool is_first = true; scan == SRV_SCAN_DONE; is_first = false) {
        struct srv_cursor object = list;
        tnd_srv_skip_blanks(&list);
        if (tnd_srv_skip(&list, "]")) {
            return is_first ? SRV_SCAN_WRONG : SRV_SCAN_DONE;
        }
        if (!is_first && !tnd_srv_skip(&list, ",")) {
            return SRV_SCAN_WRONG;
        }
        tnd_srv_skip_blanks(&list);
        object.at = list.at;
        if (list.at == list.n || list.text[list.at] != '{' ||
            tnd_srv_scan_value(&list) != SRV_SCAN_DONE) {
            return SRV_SCAN_WRONG;
        }
        object.n = list.at;
        if (!take_object(r, &object)) {
            return SRV_SCAN_WRONG;
        }
    }
    return scan;
}

static enum srv_scan read_mistral(struct srv_call_reader *r)
{
    struct srv_span name = {0, 0}, id = {0, 0};
    tnd_srv_skip_blanks(&r->c);
    if (r->c.at == r->c.n || r->c.text[r->c.at] == '[') {
        return r->c.at == r->c.n ? SRV_SCAN_SHORT : read_list(r);
    }
    struct srv_cursor rest = r->c;
    if (!tnd_srv_seek(&rest, "[ARGS]")) {
        return SRV_SCAN_SHORT;
    }
    (void)read_until(r, "[ARGS]", &name);
    struct srv_cursor in_name = {r->c.text, name.end, name.begin};
    if (tnd_srv_seek(&in_name, "[CALL_ID]")) {
        name.end = in_name.at;
        (void)tnd_srv_skip(&in_name, "[CALL_ID]");
        id = (struct srv_span){in_name.at, in_name.n};
    }
    const int at = r->out->n_calls;
    const enum srv_scan scan = read_arguments(r, r->c.text + name.begin, name.end - name.begin);
    struct srv_call *call = &r->out->calls[at];
    if (scan == SRV_SCAN_DONE && id.end - id.begin < sizeof(call->id)) {
        memcpy(call->id, r->c.text + id.begin, id.end - id.begin);
    }
    return scan;
}

/* function<sep>NAME, a block ```json of arguments; or NAME<sep>{..} */
static enum srv_scan read_deepseek(struct srv_call_reader *r)
{
    struct srv_span kind, name;
    tnd_srv_skip_blanks(&r->c);
    if (!tnd_srv_skip(&r->c, DEEPSEEK_CALL)) {
        return tnd_srv_may_begin(&r->c, DEEPSEEK_CALL) ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    if (!read_until(r, DEEPSEEK_SEP, &kind)) {
        return SRV_SCAN_SHORT;
    }
    if (r->c.at == r->c.n) {
        return SRV_SCAN_SHORT;
    }
    name = kind;
    if (r->c.text[r->c.at] != '{') {
        if (!read_until(r, "\n", &name)) {
            return SRV_SCAN_SHORT;
        }
        if (!tnd_srv_skip(&r->c, "```json")) {
            return tnd_srv_may_begin(&r->c, "```json") ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
        }
    }
    enum srv_scan scan = read_arguments(r, r->c.text + name.begin, name.end - name.begin);
    scan = scan == SRV_SCAN_DONE ? read_end(r, "```") : scan;
    scan = scan == SRV_SCAN_DONE ? read_end(r, DEEPSEEK_CALL_END) : scan;
    return scan == SRV_SCAN_DONE ? read_end(r, DEEPSEEK_CALLS_END) : scan;
}

static enum srv_scan read_functionary(struct srv_call_reader *r)
{
    struct srv_span name;
    if (!read_until(r, ">", &name)) {
        return SRV_SCAN_SHORT;
    }
    const enum srv_scan scan = read_arguments(r, r->c.text + name.begin, name.end - name.begin);
    return scan != SRV_SCAN_DONE ? scan : read_end(r, "</function>");
}

/* Only functions of the request: an answer may be JSON. */
static enum srv_scan read_bare(struct srv_call_reader *r)
{
    const int before = r->out->n_calls;
    struct srv_cursor list, object = r->c;
    if (r->c.at < r->c.n && r->c.text[r->c.at] == '[') {
        return SRV_SCAN_WRONG;
    }
    enum srv_scan scan = tnd_srv_scan_value(&object);
    const struct srv_cursor whole = {r->c.text, object.at, r->c.at};
    if (scan == SRV_SCAN_DONE &&
        tnd_srv_scan_member(whole.text, whole.at, whole.n, "tool_calls", &list)) {
        r->c = list;
        scan = list.text[list.at] == '[' ? read_list(r) : SRV_SCAN_WRONG;
    } else if (scan == SRV_SCAN_DONE) {
        scan = take_object(r, &whole) ? SRV_SCAN_DONE : SRV_SCAN_WRONG;
    }
    r->c = (struct srv_cursor){object.text, object.n, object.at};
    for (int i = before; scan == SRV_SCAN_DONE && i < r->out->n_calls; i++) {
        if (r->options->tools != NULL &&
            tnd_srv_tool_find(r->options->tools, r->out->calls[i].name) == NULL) {
            return SRV_SCAN_WRONG;
        }
    }
    (void)tnd_srv_skip(&r->c, ";"); /* (llama 3 writes it between calls) */
    return scan;
}

/* ---- all formats ---- */

static const struct srv_call_syntax formats[SRV_N_CALL_FORMATS] = {
    [SRV_CALLS_HERMES] = {"hermes", {"<tool_call>"}, false, "<tool_call>", read_hermes},
    [SRV_CALLS_TAGS] = {"tags", {"<tool_call>", "<function="}, false, "<parameter=", read_tags},
    [SRV_CALLS_LLAMA3] = {"llama-3", {"<|python_tag|>"}, true, "<|python_tag|>", read_bare},
    [SRV_CALLS_MISTRAL] = {"mistral", {"[TOOL_CALLS]"}, false, "[TOOL_CALLS]", read_mistral},
    [SRV_CALLS_DEEPSEEK] =
        {"deepseek", {DEEPSEEK_CALLS, DEEPSEEK_CALL}, false, DEEPSEEK_CALLS, read_deepseek},
    [SRV_CALLS_FUNCTIONARY] =
        {"functionary", {"<function="}, false, "<function=", read_functionary},
    [SRV_CALLS_GENERIC] = {"generic", {NULL}, true, NULL, read_bare},
};

const struct srv_call_syntax *tnd_srv_call_syntax(enum srv_call_format format)
{
    return &formats[format];
}

const char *const *tnd_srv_call_marks(void)
{
    static const char *const marks[] = {"<tool_call>",    "</tool_call>",
                                        "<|python_tag|>", "[TOOL_CALLS]",
                                        "[ARGS]",         "[CALL_ID]",
                                        DEEPSEEK_CALLS,   DEEPSEEK_CALLS_END,
                                        DEEPSEEK_CALL,    DEEPSEEK_CALL_END,
                                        DEEPSEEK_SEP,     "<think>",
                                        "</think>",       NULL};
    return marks;
}
