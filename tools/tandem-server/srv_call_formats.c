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
#define KIMI_CALLS         "<|tool_calls_section_begin|>"
#define KIMI_CALLS_END     "<|tool_calls_section_end|>"
#define KIMI_CALL          "<|tool_call_begin|>"
#define KIMI_CALL_END      "<|tool_call_end|>"
#define KIMI_ARGUMENTS     "<|tool_call_argument_begin|>"

/* ---- one call ---- */

/* Whether a request could have a function of this name. */
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

/* Parses a JSON value; NULL: it is invalid. */
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

/* Takes arguments as they were written: an object, or a string that contains one. */
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

bool tnd_srv_call_take(struct srv_call_reader *r, struct srv_span name, struct srv_span arguments)
{
    const int before = r->out->n_calls;
    struct srv_call *call = add_call(r, r->c.text + name.begin, name.end - name.begin);
    if (call != NULL &&
        take_arguments(call, r->c.text + arguments.begin, arguments.end - arguments.begin)) {
        return true;
    }
    tnd_srv_calls_drop(r->out, before);
    return false;
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

/* Takes {"name" or "tool_name":..,"arguments" or "parameters":{..}}, also within {"function":..};
 * `object` ends with it. */
static bool take_object(struct srv_call_reader *r, const struct srv_cursor *object)
{
    char name[sizeof(r->out->calls[0].name)];
    struct srv_cursor arguments, inner;
    if (!find_text(object, "name", name, sizeof(name)) &&
        !find_text(object, "tool_name", name, sizeof(name))) {
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
    if (!find_text(object, "id", call->id, sizeof(call->id))) {
        (void)find_text(object, "tool_call_id", call->id, sizeof(call->id));
    }
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

/* Reads the arguments of a known function at the cursor. */
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

/* Moves past an end mark, which models may leave out. */
static enum srv_scan read_end(struct srv_call_reader *r, const char *mark)
{
    tnd_srv_skip_blanks(&r->c);
    return !tnd_srv_skip(&r->c, mark) && !r->is_final && tnd_srv_may_begin(&r->c, mark)
               ? SRV_SCAN_SHORT
               : SRV_SCAN_DONE;
}

/* The text up to a mark; moves past the mark. */
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

/* ---- formats: the cursor is past the mark that begins a call ---- */

static bool is_text(const struct srv_call_reader *r, const char *name, const char *key)
{
    const cJSON *tool = tnd_srv_tool_find(r->options->tools, name);
    const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(tool, "parameters");
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(parameters, "properties");
    const cJSON *type =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(properties, key), "type");
    return cJSON_IsString(type) && strcmp(type->valuestring, "string") == 0;
}

/* Adds a key and its value to the arguments. The value is JSON if it parses as such and the
 * function's schema does not ask for a string. */
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

/* [{..},{..}], the whole list */
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

/* A list of objects, or one object. */
static enum srv_scan read_objects(struct srv_call_reader *r)
{
    tnd_srv_skip_blanks(&r->c);
    return r->c.at < r->c.n && r->c.text[r->c.at] == '[' ? read_list(r) : read_object(r);
}

static enum srv_scan read_hermes(struct srv_call_reader *r)
{
    const enum srv_scan scan = read_objects(r);
    return scan != SRV_SCAN_DONE ? scan : read_end(r, "</tool_call>");
}

/* The mark of Phi-4-mini still has to be skipped. */
static enum srv_scan read_granite(struct srv_call_reader *r)
{
    if (!tnd_srv_skip(&r->c, "functools") && tnd_srv_may_begin(&r->c, "functools")) {
        return SRV_SCAN_SHORT;
    }
    const enum srv_scan scan = read_objects(r);
    return scan != SRV_SCAN_DONE ? scan : read_end(r, "<|/tool_call|>");
}

/* Command R writes Action: and a ```json block, which still have to be skipped. */
static enum srv_scan read_command(struct srv_call_reader *r)
{
    const bool is_action = tnd_srv_skip(&r->c, "Action:");
    if (!is_action && tnd_srv_may_begin(&r->c, "Action:")) {
        return SRV_SCAN_SHORT;
    }
    tnd_srv_skip_blanks(&r->c);
    if (is_action && !tnd_srv_skip(&r->c, "```json")) {
        return tnd_srv_may_begin(&r->c, "```json") ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    const enum srv_scan scan = read_objects(r);
    return scan != SRV_SCAN_DONE ? scan : read_end(r, is_action ? "```" : "<|END_ACTION|>");
}

/* NAME, a ```json block of arguments, </tool_call>; after <tool_call> */
static enum srv_scan read_block(struct srv_call_reader *r)
{
    struct srv_span name;
    if (!read_until(r, "\n", &name)) {
        return SRV_SCAN_SHORT;
    }
    if (!tnd_srv_skip(&r->c, "```json")) {
        return tnd_srv_may_begin(&r->c, "```json") ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    enum srv_scan scan = read_arguments(r, r->c.text + name.begin, name.end - name.begin);
    scan = scan == SRV_SCAN_DONE ? read_end(r, "```") : scan;
    return scan == SRV_SCAN_DONE ? read_end(r, "</tool_call>") : scan;
}

/* A list of objects, or such blocks. */
static enum srv_scan read_hunyuan(struct srv_call_reader *r)
{
    enum srv_scan scan;
    tnd_srv_skip_blanks(&r->c);
    if (r->c.at < r->c.n && r->c.text[r->c.at] != '<') {
        scan = read_objects(r);
        return scan != SRV_SCAN_DONE ? scan : read_end(r, "</tool_calls>");
    }
    for (;;) {
        tnd_srv_skip_blanks(&r->c);
        if (tnd_srv_skip(&r->c, "</tool_calls>")) {
            return SRV_SCAN_DONE;
        }
        if (!tnd_srv_skip(&r->c, "<tool_call>")) {
            return tnd_srv_may_begin(&r->c, "<tool_call>") ||
                           tnd_srv_may_begin(&r->c, "</tool_calls>")
                       ? SRV_SCAN_SHORT
                       : SRV_SCAN_WRONG;
        }
        scan = read_block(r);
        if (scan != SRV_SCAN_DONE) {
            return scan;
        }
    }
}

/* NAME, then <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>.., </tool_call> */
static enum srv_scan read_glm(struct srv_call_reader *r)
{
    struct srv_span key, value;
    tnd_srv_skip_blanks(&r->c);
    struct srv_span name = {r->c.at, r->c.at};
    while (name.end < r->c.n && strchr("<\n \t\r", r->c.text[name.end]) == NULL) {
        name.end++;
    }
    if (name.end == r->c.n) {
        return name.end - name.begin > 64 ? SRV_SCAN_WRONG : SRV_SCAN_SHORT;
    }
    struct srv_call *call = add_call(r, r->c.text + name.begin, name.end - name.begin);
    if (call == NULL) {
        return SRV_SCAN_WRONG;
    }
    r->c.at = name.end;
    tnd_srv_add(&call->arguments, "{", 1);
    for (;;) {
        tnd_srv_skip_blanks(&r->c);
        if (tnd_srv_skip(&r->c, "</tool_call>")) {
            tnd_srv_add(&call->arguments, "}", 1);
            return SRV_SCAN_DONE;
        }
        if (!tnd_srv_skip(&r->c, "<arg_key>")) {
            return tnd_srv_may_begin(&r->c, "<arg_key>") || tnd_srv_may_begin(&r->c, "</tool_call>")
                       ? SRV_SCAN_SHORT
                       : SRV_SCAN_WRONG;
        }
        if (!read_until(r, "</arg_key>", &key)) {
            return SRV_SCAN_SHORT;
        }
        tnd_srv_skip_blanks(&r->c);
        if (!tnd_srv_skip(&r->c, "<arg_value>")) {
            return tnd_srv_may_begin(&r->c, "<arg_value>") ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
        }
        if (!read_until(r, "</arg_value>", &value)) {
            return SRV_SCAN_SHORT;
        }
        if (!take_tag(r, call, key, value)) {
            return SRV_SCAN_WRONG;
        }
    }
}

/* The cursor is at the name, which is known to be one of the request's, followed by an object. */
static enum srv_scan read_glm4(struct srv_call_reader *r)
{
    struct srv_span name = {r->c.at, r->c.at};
    while (name.end < r->c.n && strchr("{ \n\t\r", r->c.text[name.end]) == NULL) {
        name.end++;
    }
    r->c.at = name.end;
    return read_arguments(r, r->c.text + name.begin, name.end - name.begin);
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

/* function<sep>NAME, a ```json block of arguments; or NAME<sep>{..} */
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

/* functions.NAME:NUMBER, which as a whole is the id, and arguments; in sections */
static enum srv_scan read_kimi(struct srv_call_reader *r)
{
    struct srv_span id;
    tnd_srv_skip_blanks(&r->c);
    if (!tnd_srv_skip(&r->c, KIMI_CALL)) {
        return tnd_srv_may_begin(&r->c, KIMI_CALL) ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    if (!read_until(r, KIMI_ARGUMENTS, &id)) {
        return SRV_SCAN_SHORT;
    }
    const char *text = r->c.text;
    id.end = tnd_srv_without_blanks(text, id.begin, id.end);
    struct srv_cursor name = {text, id.end, id.begin};
    (void)tnd_srv_skip(&name, "functions.");
    struct srv_cursor colon = name;
    const size_t end = tnd_srv_seek(&colon, ":") ? colon.at : id.end;
    const int at = r->out->n_calls;
    enum srv_scan scan = read_arguments(r, text + name.at, end - name.at);
    if (scan == SRV_SCAN_DONE && id.end - id.begin < sizeof(r->out->calls[at].id)) {
        memcpy(r->out->calls[at].id, text + id.begin, id.end - id.begin);
    }
    scan = scan == SRV_SCAN_DONE ? read_end(r, KIMI_CALL_END) : scan;
    return scan == SRV_SCAN_DONE ? read_end(r, KIMI_CALLS_END) : scan;
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

/* Only functions of the request count: an answer may be JSON. */
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
    (void)tnd_srv_skip(&r->c, ";"); /* (llama 3 puts it between calls) */
    return scan;
}

/* ---- all formats ---- */

static const struct srv_call_syntax formats[SRV_N_CALL_FORMATS] = {
    [SRV_CALLS_HERMES] = {"hermes", {"<tool_call>"}, SRV_BARE_NONE, {"<tool_call>"}, read_hermes},
    [SRV_CALLS_TAGS] =
        {"tags", {"<tool_call>", "<function="}, SRV_BARE_NONE, {"<parameter="}, read_tags},
    [SRV_CALLS_LLAMA3] =
        {"llama-3", {"<|python_tag|>"}, SRV_BARE_OBJECT, {"<|python_tag|>"}, read_bare},
    [SRV_CALLS_MISTRAL] =
        {"mistral", {"[TOOL_CALLS]"}, SRV_BARE_NONE, {"[TOOL_CALLS]"}, read_mistral},
    [SRV_CALLS_DEEPSEEK] = {"deepseek",
                            {DEEPSEEK_CALLS, DEEPSEEK_CALL},
                            SRV_BARE_NONE,
                            {DEEPSEEK_CALLS},
                            read_deepseek},
    [SRV_CALLS_KIMI] = {"kimi", {KIMI_CALLS, KIMI_CALL}, SRV_BARE_NONE, {KIMI_CALLS}, read_kimi},
    [SRV_CALLS_GLM] = {"glm", {"<tool_call>"}, SRV_BARE_NONE, {"<arg_key>"}, read_glm},
    [SRV_CALLS_GLM4] = {"glm-4", {NULL}, SRV_BARE_NAME, {"<|observation|>"}, read_glm4},
    [SRV_CALLS_GRANITE] = {"granite",
                           {"<|tool_call|>", "functools["},
                           SRV_BARE_NONE,
                           {"<|tool_call|>", "<|tool|>"},
                           read_granite},
    [SRV_CALLS_COMMAND] = {"command-r",
                           {"<|START_ACTION|>", "Action:"},
                           SRV_BARE_NONE,
                           {"<|START_ACTION|>", "followed by a json-formatted list of actions"},
                           read_command},
    [SRV_CALLS_HUNYUAN] =
        {"hunyuan", {"<tool_calls>"}, SRV_BARE_NONE, {"<tool_calls>"}, read_hunyuan},
    [SRV_CALLS_HARMONY] = {"harmony", {NULL}, SRV_BARE_NONE, {"<|channel|>"}, NULL},
    [SRV_CALLS_FUNCTIONARY] =
        {"functionary", {"<function="}, SRV_BARE_NONE, {"<function="}, read_functionary},
    [SRV_CALLS_GENERIC] = {"generic", {NULL}, SRV_BARE_OBJECT, {NULL}, read_bare},
};

const struct srv_call_syntax *tnd_srv_call_syntax(enum srv_call_format format)
{
    return &formats[format];
}

const char *const *tnd_srv_call_marks(void)
{
    static const char *const marks[] = {"<tool_call>",      "</tool_call>",
                                        "<|python_tag|>",   "[TOOL_CALLS]",
                                        "[ARGS]",           "[CALL_ID]",
                                        DEEPSEEK_CALLS,     DEEPSEEK_CALLS_END,
                                        DEEPSEEK_CALL,      DEEPSEEK_CALL_END,
                                        DEEPSEEK_SEP,       KIMI_CALLS,
                                        KIMI_CALLS_END,     KIMI_CALL,
                                        KIMI_CALL_END,      KIMI_ARGUMENTS,
                                        "<arg_key>",        "</arg_key>",
                                        "<arg_value>",      "</arg_value>",
                                        "<|tool_call|>",    "<|/tool_call|>",
                                        "<|START_ACTION|>", "<|END_ACTION|>",
                                        "<tool_calls>",     "</tool_calls>",
                                        "<|start|>",        "<|channel|>",
                                        "<|constrain|>",    "<|message|>",
                                        "<|end|>",          "<think>",
                                        "</think>",         "[THINK]",
                                        "[/THINK]",         "<|START_THINKING|>",
                                        "<|END_THINKING|>", "<|START_RESPONSE|>",
                                        "<|END_RESPONSE|>", "<answer>",
                                        "</answer>",        "<response>",
                                        "</response>",      NULL};
    return marks;
}
