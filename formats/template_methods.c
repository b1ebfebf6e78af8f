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

#define METHOD(name)                                                                               \
    static struct tnd_value name(struct tnd_render *render, struct tnd_value self,                 \
                                 const struct tnd_arguments *arguments)

METHOD(str_strip)
{
    return tnd_strip(render, self.as.string, tnd_argument_string(render, arguments, 0, NULL), true,
                     true);
}

METHOD(str_lstrip)
{
    return tnd_strip(render, self.as.string, tnd_argument_string(render, arguments, 0, NULL), true,
                     false);
}

METHOD(str_rstrip)
{
    return tnd_strip(render, self.as.string, tnd_argument_string(render, arguments, 0, NULL), false,
                     true);
}

METHOD(str_upper)
{
    (void)arguments;
    return tnd_change_case(render, self.as.string, TND_CASE_UPPER);
}

METHOD(str_lower)
{
    (void)arguments;
    return tnd_change_case(render, self.as.string, TND_CASE_LOWER);
}

METHOD(str_title)
{
    (void)arguments;
    return tnd_change_case(render, self.as.string, TND_CASE_TITLE);
}

METHOD(str_capitalize)
{
    (void)arguments;
    return tnd_change_case(render, self.as.string, TND_CASE_CAPITALIZE);
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

static struct tnd_value split(struct tnd_render *render, struct tnd_value self,
                              const struct tnd_arguments *arguments, bool from_right)
{
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

METHOD(str_split)
{
    return split(render, self, arguments, false);
}

METHOD(str_rsplit)
{
    return split(render, self, arguments, true);
}

METHOD(str_splitlines)
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

static struct tnd_value test_end(struct tnd_render *render, struct tnd_value self,
                                 const struct tnd_arguments *arguments, bool at_end)
{
    const struct tnd_value *part = tnd_argument(render, arguments, 0, NULL);
    if (part == NULL || (part->kind != TND_KIND_STRING && part->kind != TND_KIND_TUPLE)) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "%s: a text is expected, not %s",
                                 at_end ? "endswith" : "startswith",
                                 part != NULL ? tnd_kind_name(*part) : "nothing");
    }
    return tnd_bool(begins_or_ends(self.as.string, *part, at_end));
}

METHOD(str_startswith)
{
    return test_end(render, self, arguments, false);
}

METHOD(str_endswith)
{
    return test_end(render, self, arguments, true);
}

static struct tnd_value without_end(struct tnd_render *render, struct tnd_value self,
                                    const struct tnd_arguments *arguments, bool at_end)
{
    const struct tnd_string *part = tnd_argument_string(render, arguments, 0, NULL);
    struct tnd_value value = {.kind = TND_KIND_STRING, .as.string = part};
    if (part == NULL || part->n == 0 || !begins_or_ends(self.as.string, value, at_end)) {
        return self;
    }
    return tnd_substring(render, self.as.string, at_end ? 0 : part->n, self.as.string->n - part->n);
}

METHOD(str_removeprefix)
{
    return without_end(render, self, arguments, false);
}

METHOD(str_removesuffix)
{
    return without_end(render, self, arguments, true);
}

METHOD(str_replace)
{
    const struct tnd_string *old = tnd_argument_string(render, arguments, 0, NULL);
    const struct tnd_string *by = tnd_argument_string(render, arguments, 1, NULL);
    if (old == NULL || by == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "replace: two texts are expected");
    }
    return tnd_replace(render, self.as.string, old, by,
                       tnd_argument_int(render, arguments, 2, "count", -1));
}

static struct tnd_value position(struct tnd_render *render, struct tnd_value self,
                                 const struct tnd_arguments *arguments, bool from_right,
                                 bool must_be)
{
    const struct tnd_string *string = self.as.string;
    const struct tnd_string *part = tnd_argument_string(render, arguments, 0, NULL);
    if (part == NULL || arguments->n > 1) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "find: one text is expected");
    }
    const size_t found = from_right ? find_last(string, part, string->n) : find(string, part, 0);
    (void)tnd_template_step(render, string->n / 64);
    if (found > string->n) {
        return must_be ? tnd_template_fail(render, TANDEM_E_FORMAT, "index: the text is not found")
                       : tnd_int(-1);
    }
    const struct tnd_string before = {string->bytes, NULL, found, false, false};
    return tnd_int((int64_t)tnd_characters(&before));
}

METHOD(str_find)
{
    return position(render, self, arguments, false, false);
}

METHOD(str_rfind)
{
    return position(render, self, arguments, true, false);
}

METHOD(str_index)
{
    return position(render, self, arguments, false, true);
}

METHOD(str_count)
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

METHOD(str_join)
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

METHOD(str_format)
{
    return tnd_brace_format(render, self.as.string, arguments);
}

static struct tnd_value all_are(struct tnd_value self, int (*is)(int c), int (*but)(int c))
{
    bool all = self.as.string->n > 0;
    for (size_t i = 0; i < self.as.string->n && all; i++) {
        const unsigned char c = (unsigned char)self.as.string->bytes[i];
        all = c < 0x80 ? is(c) != 0 : but == NULL; /* other letters count as letters */
    }
    return tnd_bool(all);
}

METHOD(str_isdigit)
{
    (void)render, (void)arguments;
    return all_are(self, isdigit, isdigit);
}

METHOD(str_isalpha)
{
    (void)render, (void)arguments;
    return all_are(self, isalpha, NULL);
}

METHOD(str_isalnum)
{
    (void)render, (void)arguments;
    return all_are(self, isalnum, NULL);
}

METHOD(str_isspace)
{
    (void)render, (void)arguments;
    return all_are(self, isspace, isspace);
}

static struct tnd_value has_case(struct tnd_value self, int (*wanted)(int c), int (*other)(int c))
{
    bool some = false;
    bool all = true;
    for (size_t i = 0; i < self.as.string->n; i++) {
        const unsigned char c = (unsigned char)self.as.string->bytes[i];
        some = some || (c < 0x80 && wanted(c));
        all = all && !(c < 0x80 && other(c));
    }
    return tnd_bool(some && all);
}

METHOD(str_isupper)
{
    (void)render, (void)arguments;
    return has_case(self, isupper, islower);
}

METHOD(str_islower)
{
    (void)render, (void)arguments;
    return has_case(self, islower, isupper);
}

/* ---- methods of lists and dicts ---- */

METHOD(list_index)
{
    const struct tnd_value *item = tnd_argument(render, arguments, 0, NULL);
    for (size_t i = 0; item != NULL && i < self.as.list->n; i++) {
        if (tnd_equal(render, self.as.list->items[i], *item)) {
            return tnd_int((int64_t)i);
        }
    }
    return tnd_template_fail(render, TANDEM_E_FORMAT, "index: the value is not in the list");
}

METHOD(list_count)
{
    const struct tnd_value *item = tnd_argument(render, arguments, 0, NULL);
    int64_t n = 0;
    for (size_t i = 0; item != NULL && i < self.as.list->n; i++) {
        n += tnd_equal(render, self.as.list->items[i], *item);
    }
    return tnd_int(n);
}

METHOD(copy)
{
    (void)render, (void)arguments;
    return self; /* nothing changes it */
}

METHOD(dict_get)
{
    const struct tnd_value *key = tnd_argument(render, arguments, 0, NULL);
    const struct tnd_value *or_else = tnd_argument(render, arguments, 1, NULL);
    const struct tnd_value *found = key != NULL ? tnd_dict_get(render, self.as.dict, *key) : NULL;
    if (key == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "get: a key is expected");
    }
    return found != NULL ? *found : or_else != NULL ? *or_else : tnd_none();
}

METHOD(dict_keys)
{
    (void)arguments;
    struct tnd_list *keys = tnd_items_of(render, self);
    return keys != NULL ? (struct tnd_value){.kind = TND_KIND_LIST, .as.list = keys} : tnd_none();
}

METHOD(dict_values)
{
    (void)arguments;
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, self.as.dict->n);
    for (size_t i = 0; i < self.as.dict->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, list.as.list, self.as.dict->members[i].value);
    }
    return list;
}

METHOD(dict_items)
{
    (void)arguments;
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

METHOD(refuse_change)
{
    (void)arguments;
    return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                             "a method that would change a %s is unsafe and refused",
                             tnd_kind_name(self));
}

/* ---- methods of loops ---- */

METHOD(loop_cycle)
{
    if (arguments->n == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "cycle: values are expected");
    }
    return arguments->items[self.as.loop->i % (size_t)arguments->n];
}

METHOD(loop_changed)
{
    struct tnd_value now = tnd_list_value(render, TND_KIND_TUPLE, (size_t)arguments->n);
    for (int i = 0; i < arguments->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, now.as.list, arguments->items[i]);
    }
    const bool is_equal = tnd_equal(render, now, self.as.loop->changed);
    self.as.loop->changed = now;
    return tnd_bool(!is_equal);
}

struct named_method {
    const char *name;
    tnd_template_call call;
};

static const struct named_method str_methods[] = {{"strip", str_strip},
                                                  {"lstrip", str_lstrip},
                                                  {"rstrip", str_rstrip},
                                                  {"split", str_split},
                                                  {"rsplit", str_rsplit},
                                                  {"splitlines", str_splitlines},
                                                  {"startswith", str_startswith},
                                                  {"endswith", str_endswith},
                                                  {"replace", str_replace},
                                                  {"upper", str_upper},
                                                  {"lower", str_lower},
                                                  {"casefold", str_lower},
                                                  {"title", str_title},
                                                  {"capitalize", str_capitalize},
                                                  {"find", str_find},
                                                  {"rfind", str_rfind},
                                                  {"index", str_index},
                                                  {"count", str_count},
                                                  {"join", str_join},
                                                  {"format", str_format},
                                                  {"removeprefix", str_removeprefix},
                                                  {"removesuffix", str_removesuffix},
                                                  {"isdigit", str_isdigit},
                                                  {"isnumeric", str_isdigit},
                                                  {"isdecimal", str_isdigit},
                                                  {"isalpha", str_isalpha},
                                                  {"isalnum", str_isalnum},
                                                  {"isspace", str_isspace},
                                                  {"isupper", str_isupper},
                                                  {"islower", str_islower},
                                                  {NULL, NULL}};
static const struct named_method list_methods[] = {
    {"index", list_index},     {"count", list_count},     {"copy", copy},
    {"append", refuse_change}, {"extend", refuse_change}, {"insert", refuse_change},
    {"pop", refuse_change},    {"remove", refuse_change}, {"reverse", refuse_change},
    {"sort", refuse_change},   {"clear", refuse_change},  {NULL, NULL}};
static const struct named_method dict_methods[] = {{"get", dict_get},
                                                   {"keys", dict_keys},
                                                   {"values", dict_values},
                                                   {"items", dict_items},
                                                   {"copy", copy},
                                                   {"pop", refuse_change},
                                                   {"popitem", refuse_change},
                                                   {"update", refuse_change},
                                                   {"setdefault", refuse_change},
                                                   {"clear", refuse_change},
                                                   {NULL, NULL}};
static const struct named_method loop_methods[] = {
    {"cycle", loop_cycle}, {"changed", loop_changed}, {NULL, NULL}};

tnd_template_call tnd_find_method(struct tnd_value value, const char *name)
{
    const struct named_method *row = value.kind == TND_KIND_STRING  ? str_methods
                                     : value.kind == TND_KIND_LIST  ? list_methods
                                     : value.kind == TND_KIND_TUPLE ? list_methods
                                     : value.kind == TND_KIND_DICT  ? dict_methods
                                     : value.kind == TND_KIND_LOOP  ? loop_methods
                                                                    : NULL;
    while (row != NULL && row->name != NULL && strcmp(row->name, name) != 0) {
        row++;
    }
    return row != NULL && row->name != NULL ? row->call : NULL;
}
