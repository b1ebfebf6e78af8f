/* SPDX-License-Identifier: MIT
 * JSON within other text. */
#include "tools/tandem-server/srv_scan.h"

#include <stdint.h>
#include <string.h>

enum { DEPTH = 64 };

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

void tnd_srv_skip_blanks(struct srv_cursor *cursor)
{
    while (cursor->at < cursor->n && is_blank(cursor->text[cursor->at])) {
        cursor->at++;
    }
}

bool tnd_srv_skip(struct srv_cursor *cursor, const char *word)
{
    const size_t length = strlen(word);
    if (cursor->n - cursor->at < length || memcmp(cursor->text + cursor->at, word, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

bool tnd_srv_may_begin(const struct srv_cursor *cursor, const char *word)
{
    const size_t left = cursor->n - cursor->at;
    return left < strlen(word) && memcmp(cursor->text + cursor->at, word, left) == 0;
}

bool tnd_srv_seek(struct srv_cursor *cursor, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = cursor->at; i + length <= cursor->n; i++) {
        if (cursor->text[i] == word[0] && memcmp(cursor->text + i, word, length) == 0) {
            cursor->at = i;
            return true;
        }
    }
    return false;
}

static enum srv_scan scan_string(struct srv_cursor *cursor)
{
    for (size_t i = cursor->at + 1; i < cursor->n; i++) {
        if (cursor->text[i] == '\\') {
            i++;
        } else if (cursor->text[i] == '"') {
            cursor->at = i + 1;
            return SRV_SCAN_DONE;
        }
    }
    return SRV_SCAN_SHORT;
}

/* Numbers, true, false, null: complete once another character follows. */
static enum srv_scan scan_word(struct srv_cursor *cursor)
{
    const size_t begin = cursor->at;
    size_t i = begin;
    while (i < cursor->n && (memchr("+-.", cursor->text[i], 3) != NULL ||
                             (cursor->text[i] >= '0' && cursor->text[i] <= '9') ||
                             ((cursor->text[i] | 32) >= 'a' && (cursor->text[i] | 32) <= 'z'))) {
        i++;
    }
    cursor->at = i < cursor->n ? i : begin;
    return i == cursor->n ? SRV_SCAN_SHORT : i == begin ? SRV_SCAN_WRONG : SRV_SCAN_DONE;
}

static enum srv_scan scan_brackets(struct srv_cursor *cursor)
{
    struct srv_cursor c = *cursor;
    uint64_t arrays = 0; /* bit i: the container at depth i is an array */
    int depth = 0;
    while (c.at < c.n) {
        const char byte = c.text[c.at];
        if (byte == '"') {
            if (scan_string(&c) != SRV_SCAN_DONE) {
                return SRV_SCAN_SHORT;
            }
            continue;
        }
        c.at++;
        if (byte == '{' || byte == '[') {
            if (depth == DEPTH) {
                return SRV_SCAN_WRONG;
            }
            arrays = (arrays & ~(UINT64_C(1) << depth)) | (uint64_t)(byte == '[') << depth;
            depth++;
        } else if (byte == '}' || byte == ']') {
            depth--;
            if ((arrays >> depth & 1) != (byte == ']')) {
                return SRV_SCAN_WRONG;
            }
            if (depth == 0) {
                cursor->at = c.at;
                return SRV_SCAN_DONE;
            }
        }
    }
    return SRV_SCAN_SHORT;
}

enum srv_scan tnd_srv_scan_value(struct srv_cursor *cursor)
{
    const char byte = cursor->at < cursor->n ? cursor->text[cursor->at] : '\0';
    return cursor->at == cursor->n      ? SRV_SCAN_SHORT
           : byte == '"'                ? scan_string(cursor)
           : byte == '{' || byte == '[' ? scan_brackets(cursor)
                                        : scan_word(cursor);
}

bool tnd_srv_scan_member(const char *text, size_t begin, size_t end, const char *name,
                         struct srv_cursor *out_value)
{
    struct srv_cursor c = {text, end, begin};
    const size_t length = strlen(name);
    if (!tnd_srv_skip(&c, "{")) {
        return false;
    }
    for (;;) {
        tnd_srv_skip_blanks(&c);
        const size_t key = c.at;
        if (c.at == c.n || text[c.at] != '"' || scan_string(&c) != SRV_SCAN_DONE) {
            return false;
        }
        const bool is_it = c.at - key == length + 2 && memcmp(text + key + 1, name, length) == 0;
        tnd_srv_skip_blanks(&c);
        if (!tnd_srv_skip(&c, ":")) {
            return false;
        }
        tnd_srv_skip_blanks(&c);
        const size_t value = c.at;
        if (tnd_srv_scan_value(&c) != SRV_SCAN_DONE) {
            return false;
        }
        if (is_it) {
            *out_value = (struct srv_cursor){text, c.at, value};
            return true;
        }
        tnd_srv_skip_blanks(&c);
        if (!tnd_srv_skip(&c, ",")) {
            return false;
        }
    }
}
