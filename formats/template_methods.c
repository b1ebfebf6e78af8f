/* SPDX-License-Identifier: MIT
 * Methods of texts, lists and dicts, as Python has them. Those that would change a list or a dict
 * are refused when they are called, as in the sandbox of transformers. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "formats/template.h"
#include "formats/unicode.h"

/* ---- pieces of text ---- */

static bool is_in_set(const struct tnd_string *set, const char *bytes, size_t n)
{
    if (set == NULL) {
        return tnd_utf8_space(bytes, n) == n ||
               (n == 1 && (unsigned char)bytes[0] >= 0x1c && (unsigned char)bytes[0] <= 0x1f);
    }
    for (size_t at = 0, step; at < set->n; at += step) {
        step = tnd_utf8_loose_length(set->bytes + at, set->n - at);
        if (step == n && memcmp(set->bytes + at, bytes, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Bytes of the last character of the first `n` bytes. */
static size_t last_length(const struct tnd_string *string, size_t n)
{
    size_t last = 1;
    while (last < 4 && last < n && ((unsigned char)string->bytes[n - last] & 0xc0) == 0x80) {
        last++;
    }
    return tnd_utf8_loose_length(string->bytes + n - last, last) == last ? last : 1;
}

struct tnd_value tnd_strip(struct tnd_render *render, const struct tnd_string *string,
                           const struct tnd_string *set, bool left, bool right)
{
    size_t begin = 0;
    size_t end = string->n;
    while (left && begin < end) {
        const size_t n = tnd_utf8_loose_length(string->bytes + begin, end - begin);
        if (!is_in_set(set, string->bytes + begin, n)) {
            break;
        }
        begin += n;
    }
    while (right && end > begin) {
        const size_t n = last_length(string, end);
        if (!is_in_set(set, string->bytes + end - n, n)) {
            break;
        }
        end -= n;
    }
    (void)tnd_template_step(render, (string->n - (end - begin)) / 64);
    return tnd_substring(render, string, begin, end - begin);
}

/* Byte offset of `part` from `from` on, or `string->n + 1`. */
static size_t find(const struct tnd_string *string, const struct tnd_string *part, size_t from)
{
    const char *at = part->n == 0
                         ? string->bytes + from
                         : memmem(string->bytes + from, string->n - from, part->bytes, part->n);
    return at != NULL ? (size_t)(at - string->bytes) : string->n + 1;
}

struct tnd_value tnd_replace(struct tnd_render *render, const struct tnd_string *string,
                             const struct tnd_string *old, const struct tnd_string *by,
                             int64_t count)
{
    struct tnd_builder text = {.render = render};
    size_t at = 0;
    for (size_t found;
         count != 0 && (found = find(string, old, at)) <= string->n && tnd_template_step(render, 1);
         count -= count > 0) {
        struct tnd_value before = tnd_substring(render, string, at, found - at);
        tnd_build_value(&text, before);
        tnd_build_string(&text, by);
        at = found + old->n;
        if (old->n == 0) { /* between all characters */
            if (at >= string->n) {
                return tnd_built(&text);
            }
            const size_t n = tnd_utf8_loose_length(string->bytes + at, string->n - at);
            tnd_build_value(&text, tnd_substring(render, string, at, n));
            at += n;
        }
    }
    tnd_build_value(&text, tnd_substring(render, string, at, string->n - at));
    return tnd_built(&text);
}

/* One character in lower or upper case; beyond ASCII by Unicode where the build has utf8proc. */
static void build_case(struct tnd_builder *text, const struct tnd_string *string, size_t at,
                       size_t n, bool upper)
{
    const bool is_user = string->origin != NULL ? string->origin[at] != 0 : string->is_user;
    char c = string->bytes[at];
    if (n == 1) {
        c = (char)(upper ? toupper((unsigned char)c) : tolower((unsigned char)c));
        tnd_build(text, &c, 1, is_user);
        return;
    }
    struct tnd_text changed = TND_TEXT_INIT;
    const enum tandem_status status =
        upper ? tnd_unicode_upper(string->bytes + at, n, &changed, NULL)
              : tnd_unicode_lower(string->bytes + at, n, &changed, NULL);
    if (status == TANDEM_OK && !changed.failed) {
        tnd_build(text, changed.bytes, changed.n, is_user);
    } else {
        tnd_build(text, string->bytes + at, n, is_user);
    }
    tnd_text_fini(&changed);
}

struct tnd_value tnd_change_case(struct tnd_render *render, const struct tnd_string *string,
                                 enum tnd_case to)
{
    struct tnd_builder text = {.render = render};
    bool in_word = false;
    for (size_t at = 0, n; at < string->n && render->status == TANDEM_OK; at += n) {
        n = tnd_utf8_loose_length(string->bytes + at, string->n - at);
        const bool is_letter = n > 1 || isalpha((unsigned char)string->bytes[at]);
        const bool upper = to == TND_CASE_UPPER || (to == TND_CASE_TITLE && !in_word) ||
                           (to == TND_CASE_CAPITALIZE && at == 0);
        build_case(&text, string, at, n, upper);
        in_word = is_letter;
    }
    return tnd_built(&text);
}

/* ---- methods of texts ---- */

enum { LEFT = 1, RIGHT = 2 };

TND_BUILTIN(str_strip)
{
    return tnd_strip(render, self.as.string, tnd_argument_string(render, arguments, 0, NULL),
                     (kind & LEFT) != 0, (kind & RIGHT) != 0);
}

TND_BUILTIN(str_case)
{
    return tnd_change_case(render, self.as.string, (enum tnd_case)kind);
}

static struct tnd_value split_at_space(struct tnd_render *render, const struct tnd_string *string,
                                       int64_t most)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    size_t at = 0;
    while (render->status == TANDEM_OK) {
        size_t n;
        while (at < string->n && (n = tnd_utf8_space(string->bytes + at, string->n - at)) > 0) {
            at += n;
        }
        if (at >= string->n) {
            break;
        }
        size_t end = at;
        while (end < string->n && tnd_utf8_space(string->bytes + end, string->n - end) == 0) {
            end += tnd_utf8_loose_length(string->bytes + end, string->n - end);
        }
        if (most == 0) { /* the rest, without white space at its end */
            const struct tnd_value rest = tnd_substring(render, string, at, string->n - at);
            tnd_list_add(render, list.as.list,
                         tnd_strip(render, rest.as.string, NULL, false, true));
            break;
        }
        most -= most > 0;
        tnd_list_add(render, list.as.list, tnd_substring(render, string, at, end - at));
        at = end;
    }
    return list;
}

static struct tnd_value split_at(struct tnd_render *render, const struct tnd_string *string,
                                 const struct tnd_string *separator, int64_t most)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    size_t at = 0;
    for (size_t found; most != 0 && (found = find(string, separator, at)) <= string->n &&
                       render->status == TANDEM_OK;
         most -= most > 0) {
        tnd_list_add(render, list.as.list, tnd_substring(render, string, at, found - at));
        at = found + separator->n;
    }
    if (render->status == TANDEM_OK) {
        tnd_list_add(render, list.as.list, tnd_substring(render, string, at, string->n - at));
    }
    return list;
}

/* The last place of `part` that ends at `end` or before; `string->n + 1`: none. */
static size_t find_last(const struct tnd_string *string, const struct tnd_string *part, size_t end)
{
    for (size_t at = end + 1; part->n <= end && at-- > 0;) {
        if (at + part->n <= end && memcmp(string->bytes + at, part->bytes, part->n) == 0) {
            return at;
        }
    }
    return string->n + 1;
}

static struct tnd_value split_from_right(struct tnd_render *render, const struct tnd_string *string,
                                         const struct tnd_string *separator, int64_t most)
{
    struct tnd_value reversed = tnd_list_value(render, TND_KIND_LIST, 0);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    size_t end = string->n;
    for (size_t found; most != 0 && (found = find_last(string, separator, end)) <= string->n &&
                       tnd_template_step(render, 1 + (end - found) / 64);
         most -= most > 0) {
        const size_t begin = found + separator->n;
        tnd_list_add(render, reversed.as.list, tnd_substring(render, string, begin, end - begin));
        end = found;
    }
    if (render->status == TANDEM_OK) {
        tnd_list_add(render, reversed.as.list, tnd_substring(render, string, 0, end));
    }
    for (size_t i = render->status == TANDEM_OK ? reversed.as.list->n : 0; i-- > 0;) {
        tnd_list_add(render, list.as.list, reversed.as.list->items[i]);
    }
    return list;
}

TND_BUILTIN(str_split)
{
    const bool from_right = kind == RIGHT;
    const struct tnd_string *separator = tnd_argument_string(render, arguments, 0, "sep");
    const int64_t most = tnd_argument_int(render, arguments, 1, "maxsplit", -1);
    if (separator != NULL && separator->n == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "split: the separator is empty");
    }
    if (separator == NULL && from_right && most >= 0) {
        return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                                 "rsplit needs a separator when it has a limit");
    }
    return separator == NULL ? split_at_space(render, self.as.string, most)
           : from_right      ? split_from_right(render, self.as.string, separator, most)
                             : split_at(render, self.as.string, separator, most);
}

TND_BUILTIN(str_splitlines)
{
    const struct tnd_string *string = self.as.string;
    const bool keeps_ends = tnd_argument_true(render, arguments, 0, "keepends", false);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    for (size_t at = 0; at < string->n && render->status == TANDEM_OK;) {
        size_t end = at;
        while (end < string->n && string->bytes[end] != '\n' && string->bytes[end] != '\r') {
            end++;
        }
        size_t next = end + (end < string->n);
        next += next < string->n && string->bytes[end] == '\r' && string->bytes[next] == '\n';
        tnd_list_add(render, list.as.list,
                     tnd_substring(render, string, at, (keeps_ends ? next : end) - at));
        at = next;
    }
    return list;
}

static bool begins_or_ends(const struct tnd_string *string, struct tnd_value part, bool at_end)
{
    if (part.kind == TND_KIND_TUPLE) {
        bool found = false;
        for (size_t i = 0; i < part.as.list->n && !found; i++) {
            found = part.as.list->items[i].kind == TND_KIND_STRING &&
                    begins_or_ends(string, part.as.list->items[i], at_end);
        }
        return found;
    }
    const struct tnd_string *other = part.as.string;
    return other->n <= string->n &&
           memcmp(string->bytes + (at_end ? string->n - other->n : 0), other->bytes, other->n) == 0;
}

TND_BUILTIN(str_test_end)
{
    const bool at_end = kind == RIGHT;
    const struct tnd_value *part = tnd_argument(render, arguments, 0, NULL);
    if (part == NULL || (part->kind != TND_KIND_STRING && part->kind != TND_KIND_TUPLE)) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "%s: a text is expected, not %s",
                                 at_end ? "endswith" : "startswith",
                                 part != NULL ? tnd_kind_name(*part) : "nothing");
    }
    return tnd_bool(begins_or_ends(self.as.string, *part, at_end));
}

TND_BUILTIN(str_remove_end)
{
    const bool at_end = kind == RIGHT;
    const struct tnd_string *part = tnd_argument_string(render, arguments, 0, NULL);
    struct tnd_value value = {.kind = TND_KIND_STRING, .as.string = part};
    if (part == NULL || part->n == 0 || !begins_or_ends(self.as.string, value, at_end)) {
        return self;
    }
    return tnd_substring(render, self.as.string, at_end ? 0 : part->n, self.as.string->n - part->n);
}

TND_BUILTIN(str_replace)
{
    const struct tnd_string *old = tnd_argument_string(render, arguments, 0, NULL);
    const struct tnd_string *by = tnd_argument_string(render, arguments, 1, NULL);
    if (old == NULL || by == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "replace: two texts are expected");
    }
    return tnd_replace(render, self.as.string, old, by,
                       tnd_argument_int(render, arguments, 2, "count", -1));
}

enum { MUST_BE = 4 };

TND_BUILTIN(str_find)
{
    const struct tnd_string *string = self.as.string;
    const struct tnd_string *part = tnd_argument_string(render, arguments, 0, NULL);
    if (part == NULL || arguments->n > 1) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "find: one text is expected");
    }
    const size_t found =
        (kind & RIGHT) != 0 ? find_last(string, part, string->n) : find(string, part, 0);
    (void)tnd_template_step(render, string->n / 64);
    if (found > string->n) {
        return (kind & MUST_BE) != 0
                   ? tnd_template_fail(render, TANDEM_E_FORMAT, "index: the text is not found")
                   : tnd_int(-1);
    }
    const struct tnd_string before = {string->bytes, NULL, found, false, false};
    return tnd_int((int64_t)tnd_characters(&before));
}

TND_BUILTIN(str_count)
{
    const struct tnd_string *part = tnd_argument_string(render, arguments, 0, NULL);
    int64_t n = 0;
    if (part == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "count: a text is expected");
    }
    if (part->n == 0) {
        return tnd_int((int64_t)tnd_characters(self.as.string) + 1);
    }
    for (size_t at = 0; (at = find(self.as.string, part, at)) <= self.as.string->n; n++) {
        at += part->n;
    }
    (void)tnd_template_step(render, self.as.string->n / 64);
    return tnd_int(n);
}

TND_BUILTIN(str_join)
{
    const struct tnd_value *items = tnd_argument(render, arguments, 0, NULL);
    struct tnd_builder text = {.render = render};
    const struct tnd_list *list = items != NULL ? tnd_items_of(render, *items) : NULL;
    for (size_t i = 0; list != NULL && i < list->n && render->status == TANDEM_OK; i++) {
        if (list->items[i].kind != TND_KIND_STRING) {
            return tnd_template_fail(render, TANDEM_E_FORMAT, "join: item %zu is a %s, not a text",
                                     i, tnd_kind_name(list->items[i]));
        }
        if (i > 0) {
            tnd_build_string(&text, self.as.string);
        }
        tnd_build_value(&text, list->items[i]);
    }
    return tnd_built(&text);
}

TND_BUILTIN(str_format)
{
    return tnd_brace_format(render, self.as.string, arguments);
}

/* Letters beyond ASCII count as letters. */
static const struct {
    int (*is)(int c);
    bool others;
} classes[] = {{isdigit, false}, {isalpha, true}, {isalnum, true}, {isspace, false}};
enum { DIGIT, ALPHA, ALNUM, SPACE };

TND_BUILTIN(str_all_are)
{
    bool all = self.as.string->n > 0;
    for (size_t i = 0; i < self.as.string->n && all; i++) {
        const unsigned char c = (unsigned char)self.as.string->bytes[i];
        all = c < 0x80 ? classes[kind].is(c) != 0 : classes[kind].others;
    }
    return tnd_bool(all);
}

TND_BUILTIN(str_has_case)
{
    return tnd_bool(tnd_has_only_case(self.as.string, kind == TND_CASE_UPPER));
}

/* ---- methods of lists and dicts ---- */

TND_BUILTIN(list_index)
{
    const struct tnd_value *item = tnd_argument(render, arguments, 0, NULL);
    for (size_t i = 0; item != NULL && i < self.as.list->n; i++) {
        if (tnd_equal(render, self.as.list->items[i], *item)) {
            return tnd_int((int64_t)i);
        }
    }
    return tnd_template_fail(render, TANDEM_E_FORMAT, "index: the value is not in the list");
}

TND_BUILTIN(list_count)
{
    const struct tnd_value *item = tnd_argument(render, arguments, 0, NULL);
    int64_t n = 0;
    for (size_t i = 0; item != NULL && i < self.as.list->n; i++) {
        n += tnd_equal(render, self.as.list->items[i], *item);
    }
    return tnd_int(n);
}

TND_BUILTIN(copy)
{
    return self; /* nothing changes it */
}

TND_BUILTIN(dict_get)
{
    const struct tnd_value *key = tnd_argument(render, arguments, 0, NULL);
    const struct tnd_value *or_else = tnd_argument(render, arguments, 1, NULL);
    const struct tnd_value *found = key != NULL ? tnd_dict_get(render, self.as.dict, *key) : NULL;
    if (key == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "get: a key is expected");
    }
    return found != NULL ? *found : or_else != NULL ? *or_else : tnd_none();
}

TND_BUILTIN(dict_keys)
{
    struct tnd_list *keys = tnd_items_of(render, self);
    return keys != NULL ? (struct tnd_value){.kind = TND_KIND_LIST, .as.list = keys} : tnd_none();
}

TND_BUILTIN(dict_values)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, self.as.dict->n);
    for (size_t i = 0; i < self.as.dict->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, list.as.list, self.as.dict->members[i].value);
    }
    return list;
}

TND_BUILTIN(dict_items)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, self.as.dict->n);
    for (size_t i = 0; i < self.as.dict->n && render->status == TANDEM_OK; i++) {
        struct tnd_value pair = tnd_list_value(render, TND_KIND_TUPLE, 2);
        if (pair.kind == TND_KIND_TUPLE) {
            tnd_list_add(render, pair.as.list, self.as.dict->members[i].key);
            tnd_list_add(render, pair.as.list, self.as.dict->members[i].value);
            tnd_list_add(render, list.as.list, pair);
        }
    }
    return list;
}

TND_BUILTIN(refuse_change)
{
    return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                             "a method that would change a %s is unsafe and refused",
                             tnd_kind_name(self));
}

/* ---- methods of loops ---- */

TND_BUILTIN(loop_cycle)
{
    if (arguments->n == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "cycle: values are expected");
    }
    return arguments->items[self.as.loop->i % (size_t)arguments->n];
}

TND_BUILTIN(loop_changed)
{
    struct tnd_value now = tnd_list_value(render, TND_KIND_TUPLE, (size_t)arguments->n);
    for (int i = 0; i < arguments->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, now.as.list, arguments->items[i]);
    }
    const bool is_equal = tnd_equal(render, now, self.as.loop->changed);
    self.as.loop->changed = now;
    return tnd_bool(!is_equal);
}

static const struct tnd_builtin str_methods[] = {{"strip", str_strip, LEFT | RIGHT},
                                                 {"lstrip", str_strip, LEFT},
                                                 {"rstrip", str_strip, RIGHT},
                                                 {"split", str_split, LEFT},
                                                 {"rsplit", str_split, RIGHT},
                                                 {"splitlines", str_splitlines, 0},
                                                 {"startswith", str_test_end, LEFT},
                                                 {"endswith", str_test_end, RIGHT},
                                                 {"replace", str_replace, 0},
                                                 {"upper", str_case, TND_CASE_UPPER},
                                                 {"lower", str_case, TND_CASE_LOWER},
                                                 {"casefold", str_case, TND_CASE_LOWER},
                                                 {"title", str_case, TND_CASE_TITLE},
                                                 {"capitalize", str_case, TND_CASE_CAPITALIZE},
                                                 {"find", str_find, LEFT},
                                                 {"rfind", str_find, RIGHT},
                                                 {"index", str_find, LEFT | MUST_BE},
                                                 {"count", str_count, 0},
                                                 {"join", str_join, 0},
                                                 {"format", str_format, 0},
                                                 {"removeprefix", str_remove_end, LEFT},
                                                 {"removesuffix", str_remove_end, RIGHT},
                                                 {"isdigit", str_all_are, DIGIT},
                                                 {"isnumeric", str_all_are, DIGIT},
                                                 {"isdecimal", str_all_are, DIGIT},
                                                 {"isalpha", str_all_are, ALPHA},
                                                 {"isalnum", str_all_are, ALNUM},
                                                 {"isspace", str_all_are, SPACE},
                                                 {"isupper", str_has_case, TND_CASE_UPPER},
                                                 {"islower", str_has_case, TND_CASE_LOWER},
                                                 {NULL, NULL, 0}};
static const struct tnd_builtin list_methods[] = {
    {"index", list_index, 0},     {"count", list_count, 0},     {"copy", copy, 0},
    {"append", refuse_change, 0}, {"extend", refuse_change, 0}, {"insert", refuse_change, 0},
    {"pop", refuse_change, 0},    {"remove", refuse_change, 0}, {"reverse", refuse_change, 0},
    {"sort", refuse_change, 0},   {"clear", refuse_change, 0},  {NULL, NULL, 0}};
static const struct tnd_builtin dict_methods[] = {{"get", dict_get, 0},
                                                  {"keys", dict_keys, 0},
                                                  {"values", dict_values, 0},
                                                  {"items", dict_items, 0},
                                                  {"copy", copy, 0},
                                                  {"pop", refuse_change, 0},
                                                  {"popitem", refuse_change, 0},
                                                  {"update", refuse_change, 0},
                                                  {"setdefault", refuse_change, 0},
                                                  {"clear", refuse_change, 0},
                                                  {NULL, NULL, 0}};
static const struct tnd_builtin loop_methods[] = {
    {"cycle", loop_cycle, 0}, {"changed", loop_changed, 0}, {NULL, NULL, 0}};

const struct tnd_builtin *tnd_find_method(struct tnd_value value, const char *name)
{
    const struct tnd_builtin *rows = value.kind == TND_KIND_STRING  ? str_methods
                                     : value.kind == TND_KIND_LIST  ? list_methods
                                     : value.kind == TND_KIND_TUPLE ? list_methods
                                     : value.kind == TND_KIND_DICT  ? dict_methods
                                     : value.kind == TND_KIND_LOOP  ? loop_methods
                                                                    : NULL;
    return rows != NULL ? tnd_find_builtin(rows, name) : NULL;
}
