/* SPDX-License-Identifier: MIT
 * Parses JSON into a tree. */
#include "llama/json_tree.h"

#include <stdlib.h>
#include <string.h>

#include "llama/utf8.h"

enum { MOST_DEPTH = 64 };

struct reader {
    struct tnd_json_tree *tree;
    const char *begin, *at, *end;
    size_t n_values;
    char *free; /* next free byte for strings */
};

static bool fail(struct reader *r, const char *why)
{
    if (r->tree->fault == NULL) {
        r->tree->fault = why;
        r->tree->fault_at = (size_t)(r->at - r->begin);
    }
    return false;
}

static void skip(struct reader *r)
{
    while (r->at < r->end && strchr(" \t\n\r", *r->at) != NULL && *r->at != '\0') {
        r->at++;
    }
}

static char peek(struct reader *r)
{
    skip(r);
    return r->at < r->end ? *r->at : '\0';
}

/* ---- strings ---- */

static bool take_hex(struct reader *r, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char c = r->at < r->end ? *r->at : '\0';
        const char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
        const char *digit = lower != '\0' ? strchr(digits, lower) : NULL;
        if (digit == NULL) {
            return fail(r, "four hexadecimal digits are expected");
        }
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

static void put_utf8(struct reader *r, uint32_t c)
{
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--) {
        r->free[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    r->free[0] = (char)(heads[n] | c);
    r->free += n;
}

/* Decodes an escape after a backslash. The result is never longer than the escape. */
static bool take_escape(struct reader *r)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    const char c = r->at < r->end ? *r->at++ : '\0';
    const char *at = c != '\0' ? strchr(names, c) : NULL;
    uint32_t code, low;
    if (at != NULL) {
        *r->free++ = values[at - names];
        return true;
    }
    if (c != 'u') {
        return fail(r, "an unknown escape");
    }
    if (!take_hex(r, &code)) {
        return false;
    }
    if (code >= 0xd800 && code <= 0xdbff) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u') {
            return fail(r, "half of a pair of surrogates");
        }
        r->at += 2;
        if (!take_hex(r, &low)) {
            return false;
        }
        code =
            low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0;
    }
    if (code == 0 || (code >= 0xd800 && code <= 0xdfff)) {
        return fail(r, "an escape of no character, or of zero");
    }
    put_utf8(r, code);
    return true;
}

static bool take_string(struct reader *r, const char **out, size_t *out_n)
{
    struct tnd_utf8 state = {0};
    char *begin = r->free;
    r->at++;
    while (r->at < r->end && (*r->at != '"' || state.left > 0)) {
        if ((unsigned char)*r->at < 0x20 || !tnd_utf8_accepts(&state, r->at, 1)) {
            return fail(r, "a control character, or no UTF-8, in a string");
        }
        if (*r->at == '\\') {
            r->at++;
            if (!take_escape(r)) {
                return false;
            }
        } else {
            *r->free++ = *r->at++;
        }
    }
    if (r->at >= r->end) {
        return fail(r, "a string has no end");
    }
    r->at++;
    *out = begin;
    *out_n = (size_t)(r->free - begin);
    *r->free++ = '\0';
    return true;
}

/* ---- values ---- */

static bool take_digits(struct reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        r->at++;
    }
    return r->at > begin || fail(r, "digits are expected");
}

static bool take_number(struct reader *r, struct tnd_json_value *value)
{
    const char *begin = r->at;
    r->at += *r->at == '-';
    if (r->at < r->end && *r->at == '0') {
        r->at++;
    } else if (!take_digits(r)) {
        return false;
    }
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!take_digits(r)) {
            return false;
        }
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        r->at += r->at < r->end && (*r->at == '+' || *r->at == '-');
        if (!take_digits(r)) {
            return false;
        }
    }
    value->kind = TND_JSON_NUMBER;
    value->n = (size_t)(r->at - begin);
    value->text = r->free;
    memcpy(r->free, begin, value->n);
    r->free[value->n] = '\0';
    value->number = strtod(r->free, NULL);
    r->free += value->n + 1;
    return true;
}

static bool take_word(struct reader *r, struct tnd_json_value *value)
{
    static const char *const words[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(r->end - r->at) >= n && memcmp(r->at, words[i], n) == 0) {
            r->at += n;
            value->kind = (enum tnd_json_kind)i;
            return true;
        }
    }
    return fail(r, "a value is expected");
}

static bool take_value(struct reader *r, struct tnd_json_value *value, int depth);

static bool take_member(struct reader *r, struct tnd_json_value *value)
{
    if (peek(r) != '"') {
        return fail(r, "the name of a member is expected");
    }
    if (!take_string(r, &value->name, &value->name_n)) {
        return false;
    }
    if (peek(r) != ':') {
        return fail(r, "':' is expected");
    }
    r->at++;
    return true;
}

/* Parses children up to the closing bracket. */
static bool take_children(struct reader *r, struct tnd_json_value *value, int depth)
{
    const char close = *r->at == '{' ? '}' : ']';
    struct tnd_json_value **link = &value->first;
    value->kind = close == '}' ? TND_JSON_OBJECT : TND_JSON_ARRAY;
    if (depth >= MOST_DEPTH) {
        return fail(r, "too many values within each other");
    }
    r->at++;
    while (peek(r) != close) {
        struct tnd_json_value *child = &r->tree->values[r->n_values++];
        if (value->n_children > 0) {
            if (*r->at != ',') {
                return fail(r, "',' or the end is expected");
            }
            r->at++;
        }
        if ((close == '}' && !take_member(r, child)) || !take_value(r, child, depth + 1)) {
            return false;
        }
        value->n_children++;
        *link = child;
        link = &child->next;
        if (peek(r) != close && peek(r) != ',') {
            return fail(r, "',' or the end is expected");
        }
    }
    r->at++;
    return true;
}

static bool take_value(struct reader *r, struct tnd_json_value *value, int depth)
{
    const char c = peek(r);
    if (c == '{' || c == '[') {
        return take_children(r, value, depth);
    }
    if (c == '"') {
        value->kind = TND_JSON_STRING;
        return take_string(r, &value->text, &value->n);
    }
    return c == '-' || (c >= '0' && c <= '9') ? take_number(r, value) : take_word(r, value);
}

/* Counts values: each one but the root follows a bracket or a comma. */
static size_t count_values(const char *text, size_t n)
{
    size_t count = 2;
    for (size_t i = 0; i < n; i++) {
        count += text[i] == '{' || text[i] == '[' || text[i] == ',';
    }
    return count;
}

bool tnd_json_tree_read(struct tnd_json_tree *tree, const char *text, size_t n)
{
    struct reader r = {.tree = tree, .begin = text, .at = text, .end = text + n, .n_values = 1};
    *tree = (struct tnd_json_tree){.values = calloc(count_values(text, n), sizeof(tree->values[0])),
                                   .strings = malloc(2 * n + 2)};
    r.free = tree->strings;
    if (tree->values == NULL || tree->strings == NULL) {
        return fail(&r, "no memory");
    }
    return take_value(&r, &tree->values[0], 0) &&
           (peek(&r) == '\0' && r.at == r.end ? true : fail(&r, "more text behind the JSON"));
}

void tnd_json_tree_free(struct tnd_json_tree *tree)
{
    free(tree->values);
    free(tree->strings);
}

struct tnd_json_value *tnd_json_member(const struct tnd_json_value *object, const char *name)
{
    const size_t n = strlen(name);
    if (object->kind != TND_JSON_OBJECT) {
        return NULL;
    }
    for (struct tnd_json_value *one = object->first; one != NULL; one = one->next) {
        if (one->name_n == n && memcmp(one->name, name, n) == 0) {
            return one;
        }
    }
    return NULL;
}

bool tnd_json_equal(const struct tnd_json_value *a, const struct tnd_json_value *b)
{
    if (a->kind != b->kind || a->n_children != b->n_children) {
        return false;
    }
    if (a->kind == TND_JSON_NUMBER) {
        return a->number == b->number;
    }
    if (a->kind == TND_JSON_STRING) {
        return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
    }
    const struct tnd_json_value *other = b->first;
    for (const struct tnd_json_value *one = a->first; one != NULL; one = one->next) {
        const struct tnd_json_value *twin =
            a->kind == TND_JSON_OBJECT ? tnd_json_member(b, one->name) : other;
        if (twin == NULL || !tnd_json_equal(one, twin)) {
            return false;
        }
        other = other != NULL ? other->next : NULL;
    }
    return true;
}
