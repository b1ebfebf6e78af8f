/* SPDX-License-Identifier: MIT
 * Cursor in a grammar's text. */
#include "llama/grammar_text.h"

#include <stdio.h>
#include <string.h>

#include "llama/utf8.h"

int tnd_spot_line(const struct tnd_spot *t)
{
    int line = 1;
    for (const char *at = t->begin; at < t->at; at++) {
        line += *at == '\n';
    }
    return line;
}

int32_t tnd_spot_fail(struct tnd_spot *t, const char *what)
{
    char near[24];
    size_t n = 0;
    while (n + 1 < sizeof(near) && t->at + n < t->end && t->at[n] >= ' ' && t->at[n] <= '~') {
        near[n] = t->at[n];
        n++;
    }
    near[n] = '\0';
    return tnd_tree_fail(t->tree, TANDEM_E_FORMAT, "grammar: line %d, before '%s': %s",
                         tnd_spot_line(t), near, what);
}

char tnd_spot_peek(const struct tnd_spot *t)
{
    return t->at < t->end ? *t->at : '\0';
}

uint32_t tnd_spot_char(struct tnd_spot *t)
{
    struct tnd_utf8 state = {0};
    uint32_t c = 0;
    if (t->at >= t->end) {
        (void)tnd_spot_fail(t, "a character is expected");
        return 0;
    }
    for (int i = 0; i == 0 || state.left > 0; i++, t->at++) {
        if (t->at >= t->end || !tnd_utf8_accepts(&state, t->at, 1)) {
            (void)tnd_spot_fail(t, "the text is not UTF-8");
            return 0;
        }
        const uint32_t byte = (unsigned char)*t->at;
        c = i > 0 ? c << 6 | (byte & 0x3f) : (byte < 0x80 ? byte : byte & (0x3fu >> state.left));
    }
    return c;
}

uint32_t tnd_spot_hex(struct tnd_spot *t, int n)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t c = 0;
    for (int i = 0; i < n; i++, t->at++) {
        const char byte = tnd_spot_peek(t);
        const char lower = byte >= 'A' && byte <= 'F' ? (char)(byte - 'A' + 'a') : byte;
        const char *at = lower != '\0' ? strchr(digits, lower) : NULL;
        if (at == NULL) {
            (void)tnd_spot_fail(t, "hexadecimal digits are expected");
            return 0;
        }
        c = c << 4 | (uint32_t)(at - digits);
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        (void)tnd_spot_fail(t, "the digits before are no character's");
        return 0;
    }
    return c;
}

size_t tnd_spot_utf8(uint32_t c, char *out)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(heads[n] | c);
    return n;
}

/* Consumes a number of repetitions; -1: there are no digits. */
static int64_t take_count(struct tnd_spot *t)
{
    int64_t count = -1;
    while (tnd_spot_peek(t) >= '0' && tnd_spot_peek(t) <= '9') {
        count = (count < 0 ? 0 : count) * 10 + (*t->at - '0');
        count = count > 1 << 30 ? 1 << 30 : count;
        t->at++;
    }
    return count;
}

bool tnd_spot_repeat(struct tnd_spot *t, int64_t *out_min, int64_t *out_max)
{
    const char c = tnd_spot_peek(t);
    if (c == '*' || c == '+' || c == '?') {
        t->at++;
        *out_min = c == '+';
        *out_max = c == '?' ? 1 : -1;
        return true;
    }
    if (c != '{') {
        return false;
    }
    t->at++;
    const int64_t min = take_count(t);
    const bool is_range = tnd_spot_peek(t) == ',';
    t->at += is_range;
    const int64_t max = is_range ? take_count(t) : min;
    if (tnd_spot_peek(t) != '}' || (min < 0 && max < 0) || (max >= 0 && max < min)) {
        (void)tnd_spot_fail(t, "{m}, {m,}, {,n} or {m,n} is expected");
        return false;
    }
    t->at++;
    *out_min = min < 0 ? 0 : min;
    *out_max = max;
    return true;
}
