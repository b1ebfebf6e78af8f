/* SPDX-License-Identifier: MIT
 * Filters of single values: text, numbers, JSON. template_filters_list.c has those of lists. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/template.h"
#include "formats/template_filters.h"
#include "formats/unicode.h"

TND_BUILTIN(f_trim)
{
    return tnd_strip(render, tnd_to_string(render, self),
                     tnd_argument_string(render, arguments, 0, "chars"), true, true);
}

TND_BUILTIN(f_case)
{
    return tnd_change_case(render, tnd_to_string(render, self), (enum tnd_case)kind);
}

TND_BUILTIN(f_string)
{
    const struct tnd_string *string = tnd_to_string(render, self);
    return (struct tnd_value){.kind = TND_KIND_STRING, .as.string = string};
}

/* Nothing is escaped automatically, except what `+` joins with a text that was marked as safe. */
TND_BUILTIN(f_safe)
{
    return tnd_markup(render, tnd_to_string(render, self));
}

struct tnd_value tnd_escape(struct tnd_render *render, const struct tnd_string *string)
{
    static const char *const by[][2] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&#34;"}, {"'", "&#39;"}};
    struct tnd_value text = {.kind = TND_KIND_STRING, .as.string = string};
    for (size_t i = 0;
         !string->is_markup && i < sizeof(by) / sizeof(by[0]) && render->status == TANDEM_OK; i++) {
        const struct tnd_string old = {by[i][0], NULL, 1, false, false};
        const struct tnd_string new = {by[i][1], NULL, strlen(by[i][1]), false, false};
        text = tnd_replace(render, text.as.string, &old, &new, -1);
    }
    return render->status == TANDEM_OK ? tnd_markup(render, text.as.string) : text;
}

TND_BUILTIN(f_escape)
{
    return tnd_escape(render, tnd_to_string(render, self));
}

TND_BUILTIN(f_length)
{
    size_t n;
    if (!tnd_length_of(self, &n)) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "a %s has no length",
                                 tnd_kind_name(self));
    }
    return tnd_int((int64_t)n);
}

TND_BUILTIN(f_default)
{
    const struct tnd_value *other = tnd_argument(render, arguments, 0, "default_value");
    const bool also_false = tnd_argument_true(render, arguments, 1, "boolean", false);
    const bool takes_other = self.kind == TND_KIND_UNDEFINED || (also_false && !tnd_is_true(self));
    return !takes_other ? self : other != NULL ? *other : tnd_text_value(render, "", 0, false);
}

TND_BUILTIN(f_replace)
{
    const struct tnd_string *old = tnd_argument_string(render, arguments, 0, "old");
    const struct tnd_string *new = tnd_argument_string(render, arguments, 1, "new");
    if (old == NULL || new == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "replace: two texts are expected");
    }
    return tnd_replace(render, tnd_to_string(render, self), old, new,
                       tnd_argument_int(render, arguments, 2, "count", -1));
}

/* Blanks in front of each line but the first, and unless asked for, of empty ones. */
TND_BUILTIN(f_indent)
{
    const struct tnd_value *width = tnd_argument(render, arguments, 0, "width");
    const bool first = tnd_argument_true(render, arguments, 1, "first", false);
    const bool blank = tnd_argument_true(render, arguments, 2, "blank", false);
    const struct tnd_string *string = tnd_to_string(render, self);
    struct tnd_builder text = {.render = render};
    struct tnd_builder by = {.render = render};
    if (width != NULL && width->kind == TND_KIND_STRING) {
        tnd_build_string(&by, width->as.string);
    } else {
        const int64_t n = tnd_argument_int(render, arguments, 0, "width", 4);
        for (int64_t i = 0; i < n && render->status == TANDEM_OK; i++) {
            tnd_build(&by, " ", 1, false);
        }
    }
    for (size_t at = 0; at <= string->n && render->status == TANDEM_OK;) {
        const char *end = memchr(string->bytes + at, '\n', string->n - at);
        const size_t n = (end != NULL ? (size_t)(end - string->bytes) : string->n) - at;
        if ((at > 0 || first) && (n > 0 || blank || at == 0)) {
            tnd_build(&text, by.bytes, by.n, false);
        }
        tnd_build_value(&text, tnd_substring(render, string, at, n + (end != NULL)));
        at += n + 1;
    }
    return tnd_built(&text);
}

TND_BUILTIN(f_wordcount)
{
    const struct tnd_string *string = tnd_to_string(render, self);
    int64_t n = 0;
    bool in_word = false;
    for (size_t at = 0, step; at < string->n; at += step) {
        const size_t space = tnd_utf8_space(string->bytes + at, string->n - at);
        step = space > 0 ? space : tnd_utf8_loose_length(string->bytes + at, string->n - at);
        n += space == 0 && !in_word;
        in_word = space == 0;
    }
    return tnd_int(n);
}

TND_BUILTIN(f_truncate)
{
    const int64_t most = tnd_argument_int(render, arguments, 0, "length", 255);
    const bool kills_words = tnd_argument_true(render, arguments, 1, "killwords", false);
    const struct tnd_string *end = tnd_argument_string(render, arguments, 2, "end");
    const int64_t leeway = tnd_argument_int(render, arguments, 3, "leeway", 5);
    static const struct tnd_string dots = {"...", NULL, 3, false, false};
    const struct tnd_string *string = tnd_to_string(render, self);
    end = end != NULL ? end : &dots;
    const int64_t left = most - (int64_t)tnd_characters(end);
    if ((int64_t)tnd_characters(string) <= most + leeway) {
        return f_string(render, self, arguments, 0);
    }
    if (left < 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "truncate: the end does not fit");
    }
    size_t n = tnd_character_offset(string, (size_t)left);
    if (!kills_words) {
        size_t word = n;
        while (word > 0 && string->bytes[word - 1] != ' ') {
            word--;
        }
        n = word > 0 ? word - 1 : n;
    }
    struct tnd_builder text = {.render = render};
    tnd_build_value(&text, tnd_substring(render, string, 0, n));
    tnd_build_string(&text, end);
    return tnd_built(&text);
}

TND_BUILTIN(f_center)
{
    const int64_t width = tnd_argument_int(render, arguments, 0, "width", 80);
    const struct tnd_string *string = tnd_to_string(render, self);
    const int64_t free = width - (int64_t)tnd_characters(string);
    struct tnd_builder text = {.render = render};
    const int64_t left = free / 2 + (free & width & 1); /* as Python's str.center */
    for (int64_t i = 0; i < left && render->status == TANDEM_OK; i++) {
        tnd_build(&text, " ", 1, false);
    }
    tnd_build_string(&text, string);
    for (int64_t i = left; i < free && render->status == TANDEM_OK; i++) {
        tnd_build(&text, " ", 1, false);
    }
    return tnd_built(&text);
}

TND_BUILTIN(f_format)
{
    struct tnd_value values = tnd_list_value(render, TND_KIND_TUPLE, 0);
    for (int i = 0; i < arguments->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, values.as.list, arguments->items[i]);
    }
    return render->status == TANDEM_OK
               ? tnd_percent_format(render, tnd_to_string(render, self), values)
               : values;
}

/* ---- numbers ---- */

TND_BUILTIN(f_int)
{
    const struct tnd_value *or_else = tnd_argument(render, arguments, 0, "default");
    const int64_t base = tnd_argument_int(render, arguments, 1, "base", 10);
    const struct tnd_value other = or_else != NULL ? *or_else : tnd_int(0);
    char text[72] = "";
    char *end;
    if (self.kind == TND_KIND_INT) {
        return self;
    }
    if (self.kind == TND_KIND_BOOL) {
        return tnd_int(self.as.truth);
    }
    if (self.kind == TND_KIND_FLOAT) {
        return fabs(self.as.number) < 9.2e18 ? tnd_int((int64_t)self.as.number) : other;
    }
    if (self.kind != TND_KIND_STRING) {
        return other;
    }
    const struct tnd_string *string = tnd_strip(render, self.as.string, NULL, true, true).as.string;
    if (string == NULL || string->n == 0 || string->n >= sizeof(text) || base < 2 || base > 36) {
        return other;
    }
    memcpy(text, string->bytes, string->n);
    int64_t integer;
    double number;
    if (base == 10) {
        const size_t skip = text[0] == '+';
        return tnd_text_to_i64(text + skip, string->n - skip, &integer) ? tnd_int(integer)
               : tnd_text_to_double(text + skip, string->n - skip, &number) && fabs(number) < 9.2e18
                   ? tnd_int((int64_t)number)
                   : other;
    }
    const long long parsed = strtoll(text, &end, (int)base);
    return *end == 0 ? tnd_int(parsed) : other;
}

TND_BUILTIN(f_float)
{
    const struct tnd_value *or_else = tnd_argument(render, arguments, 0, "default");
    double number;
    if (tnd_is_number(self)) {
        return tnd_number(tnd_as_number(self));
    }
    const struct tnd_string *string =
        self.kind == TND_KIND_STRING ? tnd_strip(render, self.as.string, NULL, true, true).as.string
                                     : NULL;
    if (string != NULL && tnd_text_to_double(string->bytes, string->n, &number)) {
        return tnd_number(number);
    }
    return or_else != NULL ? *or_else : tnd_number(0.0);
}

TND_BUILTIN(f_abs)
{
    if (self.kind == TND_KIND_FLOAT) {
        return tnd_number(fabs(self.as.number));
    }
    if (!tnd_is_number(self) || (self.kind == TND_KIND_INT && self.as.integer == INT64_MIN)) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "abs: a number is expected, not %s",
                                 tnd_kind_name(self));
    }
    const int64_t integer = self.kind == TND_KIND_INT ? self.as.integer : self.as.truth;
    return tnd_int(integer < 0 ? -integer : integer);
}

TND_BUILTIN(f_round)
{
    const int64_t digits = tnd_argument_int(render, arguments, 0, "precision", 0);
    const struct tnd_string *method = tnd_argument_string(render, arguments, 1, "method");
    if (!tnd_is_number(self) || digits < -300 || digits > 300) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "round: a number is expected, not %s",
                                 tnd_kind_name(self));
    }
    const double scale = pow(10.0, (double)digits);
    const double scaled = tnd_as_number(self) * scale;
    const bool is_ceil = method != NULL && method->n == 4 && memcmp(method->bytes, "ceil", 4) == 0;
    const bool is_floor =
        method != NULL && method->n == 5 && memcmp(method->bytes, "floor", 5) == 0;
    char text[512];
    if (is_ceil || is_floor) {
        return tnd_number((is_ceil ? ceil(scaled) : floor(scaled)) / scale);
    }
    if (digits < 0) {
        return tnd_number(nearbyint(scaled) / scale);
    }
    /* decimal digits of the exact value, ties to even: what printf does */
    snprintf(text, sizeof(text), "%.*f", (int)digits, tnd_as_number(self));
    return tnd_number(strtod(text, NULL));
}

/* ---- JSON and others ---- */

TND_BUILTIN(f_tojson)
{
    struct tnd_builder text = {.render = render};
    const struct tnd_value *separators = tnd_argument(render, arguments, 2, "separators");
    const struct tnd_value *indent = tnd_argument(render, arguments, 1, "indent");
    const bool one_line = indent == NULL || indent->kind == TND_KIND_NONE;
    struct tnd_tojson options = {
        .indent = -1,
        .ascii = tnd_argument_true(render, arguments, 0, "ensure_ascii", false),
        .sort_keys = tnd_argument_true(render, arguments, 3, "sort_keys", false),
        .between = one_line ? ", " : ",",
        .colon = ": "};
    if (!one_line) {
        const int64_t n = tnd_argument_int(render, arguments, 1, "indent", 0);
        options.indent = n < 0 ? 0 : n > 100 ? 100 : (int)n;
    }
    char kept[2][32] = {"", ""};
    if (separators != NULL && separators->kind != TND_KIND_NONE) {
        const struct tnd_list *pair = tnd_items_of(render, *separators);
        for (size_t i = 0; i < 2 && pair != NULL && pair->n == 2; i++) {
            const struct tnd_string *part = tnd_to_string(render, pair->items[i]);
            memcpy(kept[i], part->bytes, part->n < 31 ? part->n : 31);
        }
        if (pair == NULL || pair->n != 2) {
            return tnd_template_fail(render, TANDEM_E_FORMAT,
                                     "tojson: two separators are expected");
        }
        options.between = kept[0];
        options.colon = kept[1];
    }
    tnd_build_json(&text, self, &options, 0);
    return tnd_built(&text);
}

TND_BUILTIN(f_attr)
{
    const struct tnd_string *name = tnd_argument_string(render, arguments, 0, "name");
    if (name == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "attr: a name is expected");
    }
    return tnd_item_of(render, self,
                       (struct tnd_value){.kind = TND_KIND_STRING, .as.string = name});
}

TND_BUILTIN(f_items)
{
    if (self.kind == TND_KIND_UNDEFINED) {
        return tnd_list_value(render, TND_KIND_GENERATOR, 0);
    }
    if (self.kind != TND_KIND_DICT) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "items: a dict is expected, not %s",
                                 tnd_kind_name(self));
    }
    struct tnd_value pairs =
        tnd_call_builtin(render, tnd_find_method(self, "items"), self, arguments);
    pairs.kind = pairs.kind == TND_KIND_LIST ? TND_KIND_GENERATOR : pairs.kind;
    return pairs;
}

TND_BUILTIN(f_urlencode)
{
    const struct tnd_string *string = tnd_to_string(render, self);
    struct tnd_builder text = {.render = render};
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/";
    for (size_t i = 0; i < string->n && render->status == TANDEM_OK; i++) {
        char escaped[4];
        const char c = string->bytes[i];
        const bool is_user = string->origin != NULL ? string->origin[i] != 0 : string->is_user;
        if (c != 0 && strchr(plain, c) != NULL) {
            tnd_build(&text, &c, 1, is_user);
        } else {
            snprintf(escaped, sizeof(escaped), "%%%02X", (unsigned char)c);
            tnd_build(&text, escaped, 3, is_user);
        }
    }
    return tnd_built(&text);
}

const struct tnd_builtin *tnd_find_filter(const char *name)
{
    static const struct tnd_builtin filters[] = {
        {"trim", f_trim, 0},
        {"upper", f_case, TND_CASE_UPPER},
        {"lower", f_case, TND_CASE_LOWER},
        {"title", f_case, TND_CASE_TITLE},
        {"capitalize", f_case, TND_CASE_CAPITALIZE},
        {"string", f_string, 0},
        {"safe", f_safe, 0},
        {"escape", f_escape, 0},
        {"e", f_escape, 0},
        {"forceescape", f_escape, 0},
        {"length", f_length, 0},
        {"count", f_length, 0},
        {"default", f_default, 0},
        {"d", f_default, 0},
        {"replace", f_replace, 0},
        {"indent", f_indent, 0},
        {"wordcount", f_wordcount, 0},
        {"truncate", f_truncate, 0},
        {"center", f_center, 0},
        {"format", f_format, 0},
        {"int", f_int, 0},
        {"float", f_float, 0},
        {"abs", f_abs, 0},
        {"round", f_round, 0},
        {"tojson", f_tojson, 0},
        {"attr", f_attr, 0},
        {"items", f_items, 0},
        {"urlencode", f_urlencode, 0},
        {NULL, NULL, 0},
    };
    const struct tnd_builtin *found = tnd_find_builtin(filters, name);
    return found != NULL ? found : tnd_find_list_filter(name);
}
