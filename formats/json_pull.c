/* SPDX-License-Identifier: MIT
 * JSON from left to right. */
#include "formats/json_pull.h"

#include <string.h>

#include "base/text.h"
#include "base/tnd_assert.h"
#include "formats/cursor.h"

static enum tandem_status broken(const struct tnd_json *json, const char *expected,
                                 struct tandem_error *error)
{
    const unsigned char c = json->at < json->end ? (unsigned char)*json->at : 0;
    return tnd_error_set(error, TANDEM_E_FORMAT, json->name, json->at - json->begin, 0,
                         json->at < json->end
                             ? "%s: JSON, at byte %lld: expected %s, found '%c'"
                             : "%s: JSON, at byte %lld: expected %s, found its end",
                         tnd_short_name(json->name), (long long)(json->at - json->begin), expected,
                         c >= 0x20 && c < 0x7f ? c : '?');
}

char tnd_json_peek(struct tnd_json *json)
{
    TND_ASSERT(json->begin <= json->at && json->at <= json->end);
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r')) {
        json->at++;
    }
    return json->at < json->end ? *json->at : '\0';
}

/* Takes one byte that must stand there. */
static enum tandem_status take(struct tnd_json *json, char c, struct tandem_error *error)
{
    const char expected[] = {'\'', c, '\'', '\0'};
    if (tnd_json_peek(json) != c) {
        return broken(json, expected, error);
    }
    json->at++;
    return TANDEM_OK;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Takes four hexadecimal digits. */
static enum tandem_status take_unit(struct tnd_json *json, uint32_t *out,
                                    struct tandem_error *error)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = json->at < json->end ? hex_digit(*json->at) : -1;
        if (digit < 0) {
            return broken(json, "four hexadecimal digits", error);
        }
        unit = unit * 16 + (uint32_t)digit;
        json->at++;
    }
    *out = unit;
    return TANDEM_OK;
}

/* Takes what follows a backslash and u: one unit, or two that make one character. */
static enum tandem_status take_character(struct tnd_json *json, uint32_t *out,
                                         struct tandem_error *error)
{
    uint32_t low = 0;
    TND_TRY(take_unit(json, out, error));
    if (*out >= 0xd800 && *out < 0xdc00) {
        if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u') {
            return broken(json, "the second half of a character", error);
        }
        json->at += 2;
        TND_TRY(take_unit(json, &low, error));
        if (low < 0xdc00 || low > 0xdfff) {
            return broken(json, "the second half of a character", error);
        }
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    }
    return *out >= 0xdc00 && *out < 0xe000 ? broken(json, "a character", error) : TANDEM_OK;
}

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Takes one character of a string, perhaps escaped. */
static enum tandem_status take_part(struct tnd_json *json, char out[4], size_t *out_n,
                                    struct tandem_error *error)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    const char c = *json->at++;
    *out_n = 1;
    out[0] = c;
    if (c != '\\') {
        return (unsigned char)c < 0x20 ? broken(json, "no control character", error) : TANDEM_OK;
    }
    const char escape = json->at < json->end ? *json->at++ : '\0';
    if (escape == 'u') {
        uint32_t character = 0;
        TND_TRY(take_character(json, &character, error));
        *out_n = put_utf8(character, out);
        return TANDEM_OK;
    }
    for (size_t i = 0; escape != '\0' && i + 1 < sizeof(escapes); i += 2) {
        if (escapes[i] == escape) {
            out[0] = escapes[i + 1];
            return TANDEM_OK;
        }
    }
    return broken(json, "a known escape", error);
}

enum tandem_status tnd_json_pull_string(struct tnd_json *json, char *out, size_t capacity,
                                        struct tandem_error *error)
{
    size_t n = 0;
    TND_TRY(take(json, '"', error));
    while (json->at < json->end && *json->at != '"') {
        char part[4];
        size_t part_n = 0;
        TND_TRY(take_part(json, part, &part_n, error));
        if (out == NULL) {
            continue;
        }
        if (part_n == 1 && part[0] == '\0') { /* (which would end the text) */
            return broken(json, "a character", error);
        }
        if (n + part_n >= capacity) {
            return tnd_error_set(error, TANDEM_E_LIMIT, json->name, (int64_t)n, (int64_t)capacity,
                                 "%s: JSON, at byte %lld: a string of more than %zu bytes",
                                 tnd_short_name(json->name), (long long)(json->at - json->begin),
                                 capacity - 1);
        }
        memcpy(out + n, part, part_n);
        n += part_n;
    }
    if (out != NULL) {
        out[n] = '\0';
    }
    return take(json, '"', error);
}

/* ---- other values ---- */

enum tandem_status tnd_json_number(struct tnd_json *json, double *out_number, int64_t *out_integer,
                                   bool *out_is_integer, struct tandem_error *error)
{
    (void)tnd_json_peek(json);
    const char *at = json->at;
    while (at < json->end && ((*at >= '0' && *at <= '9') || *at == '-' || *at == '+' ||
                              *at == '.' || *at == 'e' || *at == 'E')) {
        at++;
    }
    const size_t n = (size_t)(at - json->at);
    if (n == 0 || !tnd_text_to_double(json->at, n, out_number)) {
        return broken(json, "a number", error);
    }
    *out_integer = 0;
    *out_is_integer = tnd_text_to_i64(json->at, n, out_integer);
    json->at = at;
    return TANDEM_OK;
}

enum tandem_status tnd_json_count(struct tnd_json *json, int64_t *out, struct tandem_error *error)
{
    double number;
    bool is_integer = false;
    int64_t integer = 0;
    (void)tnd_json_peek(json);
    const char *at = json->at;
    TND_TRY(tnd_json_number(json, &number, &integer, &is_integer, error));
    if (!is_integer || integer < 0) {
        json->at = at;
        return broken(json, "a whole number from 0 to 2^63 - 1", error);
    }
    *out = integer;
    return TANDEM_OK;
}

static bool take_word(struct tnd_json *json, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(json->end - json->at) < n || memcmp(json->at, word, n) != 0) {
        return false;
    }
    json->at += n;
    return true;
}

enum tandem_status tnd_json_pull_bool(struct tnd_json *json, bool *out, struct tandem_error *error)
{
    (void)tnd_json_peek(json);
    const bool is_true = take_word(json, "true");
    if (!is_true && !take_word(json, "false")) {
        return broken(json, "true or false", error);
    }
    *out = is_true;
    return TANDEM_OK;
}

/* ---- objects and lists ---- */

/* Takes what stands in front of a value: the bracket that opens, or a comma. *out_more false: it
 * was the one that closes. */
static enum tandem_status step(struct tnd_json_walk *walk, const char *brackets, bool *out_more)
{
    struct tnd_json *json = walk->json;
    if (walk->n == 0) {
        TND_TRY(take(json, brackets[0], walk->error));
    }
    *out_more = tnd_json_peek(json) != brackets[1];
    if (!*out_more) {
        return take(json, brackets[1], walk->error);
    }
    if (walk->n > 0) {
        TND_TRY(take(json, ',', walk->error));
    }
    walk->i = walk->n++;
    return TANDEM_OK;
}

bool tnd_json_next_item(struct tnd_json_walk *walk)
{
    bool more = false;
    walk->status = step(walk, "[]", &more);
    return more && walk->status == TANDEM_OK;
}

bool tnd_json_next_member(struct tnd_json_walk *walk, char *key, size_t capacity)
{
    bool more = false;
    walk->status = step(walk, "{}", &more);
    if (!more || walk->status != TANDEM_OK) {
        return false;
    }
    (void)tnd_json_peek(walk->json); /* passes over blanks */
    walk->key = walk->json->at + 1;
    walk->status = tnd_json_pull_string(walk->json, key, capacity, walk->error);
    if (walk->status == TANDEM_OK) {
        walk->status = take(walk->json, ':', walk->error);
    }
    return walk->status == TANDEM_OK;
}

static enum tandem_status skip_deep(struct tnd_json *json, int depth, struct tandem_error *error)
{
    double number;
    int64_t integer;
    bool is_integer;
    const char c = tnd_json_peek(json);
    if (c == '"') {
        return tnd_json_pull_string(json, NULL, 0, error);
    }
    if (c != '{' && c != '[') {
        return take_word(json, "true") || take_word(json, "false") || take_word(json, "null")
                   ? TANDEM_OK
                   : tnd_json_number(json, &number, &integer, &is_integer, error);
    }
    if (depth == TND_JSON_MAX_DEPTH) {
        return broken(json, "at most 32 values in one another", error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (c == '{' ? tnd_json_next_member(&walk, NULL, 0) : tnd_json_next_item(&walk)) {
        TND_TRY(skip_deep(json, depth + 1, error));
    }
    return walk.status;
}

enum tandem_status tnd_json_skip(struct tnd_json *json, struct tandem_error *error)
{
    return skip_deep(json, 0, error);
}

enum tandem_status tnd_json_end(struct tnd_json *json, struct tandem_error *error)
{
    return tnd_json_peek(json) == '\0' && json->at == json->end
               ? TANDEM_OK
               : broken(json, "nothing behind the value", error);
}
