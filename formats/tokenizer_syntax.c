/* SPDX-License-Identifier: MIT
 * Patterns of tokenizers, which their authors write for Oniguruma in Ruby's syntax (doc/RE of
 * kkos/oniguruma), in PCRE2's: classes of characters that the two understand differently are
 * written out, and what PCRE2 would read in another sense is refused by name. */
#include <string.h>

#include "formats/tokenizer_steps.h"

/* Property White_Space; PCRE2's \s has U+180E too. Classes begin and end with a property, so that a
 * hyphen beside them makes no range. */
#define SPACE "\\p{Z}\\t-\\r\\x{85}\\p{Z}"
#define NOT_SPACE                                                                                  \
    "\\p{L}\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                 \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}\\p{L}"
/* Oniguruma's \w: alphabetic, marks, decimal digits, connectors, and six numbers of Latin-1. */
#define WORD "\\p{Alphabetic}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\p{M}\\p{Nd}\\p{Pc}"

struct translation {
    const char *pattern;
    const char *at;
    int depth; /* of classes in classes */
    struct tnd_text *out;
    struct tandem_error *error;
};

static enum tandem_status refuse(const struct translation *t, const char *what)
{
    return tnd_error_set(t->error, TANDEM_E_UNSUPPORTED_BUILD, "pattern", t->at - t->pattern, 0,
                         "tokenizer: the pattern \"%.80s\": %s at byte %lld is not supported",
                         t->pattern, what, (long long)(t->at - t->pattern));
}

static enum tandem_status give(struct translation *t, const char *text, size_t n_read)
{
    tnd_text_add(t->out, text);
    t->at += n_read;
    return TANDEM_OK;
}

static enum tandem_status copy(struct translation *t, size_t n)
{
    tnd_text_add_bytes(t->out, t->at, n);
    t->at += n;
    return TANDEM_OK;
}

/* \p{Han}: means the property Script; PCRE2 would use Script_Extensions. */
static enum tandem_status property(struct translation *t)
{
    const char *name = t->at + 3;
    const size_t n = t->at[2] == '{' ? strcspn(name, "}") : 0;
    const size_t from = n > 0 && name[0] == '^' ? 1 : 0;
    if (n == 0 || name[n] == '\0') {
        return refuse(t, "a property without name");
    }
    if (n - from <= 2 || (n - from == 10 && memcmp(name + from, "Alphabetic", 10) == 0)) {
        return copy(t, n + 4);
    }
    tnd_text_add_bytes(t->out, t->at, 3 + from);
    tnd_text_add(t->out, "sc:");
    t->at += 3 + from;
    return copy(t, n - from + 1);
}

/* \u1234 */
static enum tandem_status code_point(struct translation *t)
{
    char digits[5] = "";
    strncpy(digits, t->at + 2, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) {
        return refuse(t, "\\u without four digits");
    }
    tnd_text_add(t->out, "\\x{");
    tnd_text_add(t->out, digits);
    return give(t, "}", 6);
}

static enum tandem_status escape(struct translation *t)
{
    static const char same[] = "dDrntfaeAzZ";
    const bool is_inside = t->depth > 0;
    const char c = t->at[1];
    switch (c) {
    case 's':
        return give(t, is_inside ? SPACE : "[" SPACE "]", 2);
    case 'S':
        return give(t, is_inside ? NOT_SPACE : "[^" SPACE "]", 2);
    case 'w':
        return give(t, is_inside ? WORD : "[" WORD "]", 2);
    case 'W':
        return is_inside ? refuse(t, "\\W in a class") : give(t, "[^" WORD "]", 2);
    case 'b':
        return give(t,
                    is_inside ? "\\x{8}"
                              : "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))",
                    2);
    case 'B':
        return give(t, "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", 2);
    case 'v':
        return give(t, "\\x{b}", 2);
    case 'p':
    case 'P':
        return property(t);
    case 'u':
        return code_point(t);
    case 'x': {
        const size_t n = t->at[2] == '{' ? strcspn(t->at, "}") : 1;
        return copy(t, t->at[n] == '\0' ? 2 : n + 1);
    }
    default: {
        const bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c == '\0' || (is_name && strchr(same, c) == NULL)) {
            return refuse(t, "an escape");
        }
        return copy(t, 1 + tnd_utf8_loose_length(t->at + 1, strlen(t->at + 1)));
    }
    }
}

/* A class, and classes in it, whose members it has as well. */
static enum tandem_status class_char(struct translation *t)
{
    const char c = *t->at;
    if (c == '[' && t->at[1] == ':') {
        return refuse(t, "a class by name");
    }
    if (c == '[' && t->at[1] == '^') {
        return refuse(t, "a negated class in a class");
    }
    if (c == '&' && t->at[1] == '&') {
        return refuse(t, "an intersection of classes");
    }
    if (c == '[') {
        t->depth++;
        t->at++;
        return TANDEM_OK;
    }
    if (c == ']') {
        return --t->depth == 0 ? copy(t, 1) : give(t, "", 1);
    }
    return c == '\\' ? escape(t) : copy(t, 1);
}

static enum tandem_status begin_class(struct translation *t)
{
    size_t n = t->at[1] == '^' ? 2 : 1;
    t->depth = 1;
    if (t->at[n] == ']') { /* the first one is a member */
        tnd_text_add_bytes(t->out, t->at, n);
        return give(t, "\\]", n + 1);
    }
    return copy(t, n);
}

/* "(?": groups and assertions that both have, and the option i. */
static enum tandem_status group(struct translation *t)
{
    static const char *const known[] = {"(?:",  "(?=",  "(?!",  "(?>",
                                        "(?<=", "(?<!", "(?i:", "(?-i:"};
    if (t->at[1] == '*') {
        return refuse(t, "a verb");
    }
    if (t->at[1] != '?') {
        return copy(t, 1);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(t->at, known[i], strlen(known[i])) == 0) {
            return copy(t, strlen(known[i]));
        }
    }
    if (t->at == t->pattern && strncmp(t->at, "(?i)", 4) == 0) {
        return copy(t, 4);
    }
    return refuse(t, "a group of this kind");
}

/* Intervals: {,3} and suffixes of intervals have another meaning in PCRE2. */
static enum tandem_status interval(struct translation *t)
{
    const size_t digits = strspn(t->at + 1, "0123456789");
    const size_t n = strspn(t->at + 1, "0123456789,");
    if (n == 0 || t->at[1 + n] != '}') {
        return give(t, "\\{", 1);
    }
    const char after = t->at[n + 2];
    if (digits == 0 || after == '+' || (after == '?' && digits == n)) {
        return refuse(t, "an interval of this kind");
    }
    return copy(t, n + 2);
}

enum tandem_status tnd_pattern_translate(const char *pattern, struct tnd_text *out,
                                         struct tandem_error *error)
{
    struct translation t = {.pattern = pattern, .at = pattern, .out = out, .error = error};
    while (*t.at != '\0') {
        if (t.depth > 0) {
            TND_TRY(class_char(&t));
            continue;
        }
        switch (*t.at) {
        case '\\':
            TND_TRY(escape(&t));
            break;
        case '[':
            TND_TRY(begin_class(&t));
            break;
        case '(':
            TND_TRY(group(&t));
            break;
        case '{':
            TND_TRY(interval(&t));
            break;
        default:
            TND_TRY(copy(&t, 1));
        }
    }
    return TANDEM_OK;
}
