/* SPDX-License-Identifier: MIT
 * Shows control characters and invalid UTF-8 as text. Names in files, of devices and in tables are
 * untrusted; a terminal would execute their escape sequences. */
#include "base/visible.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"

/* Controls of ISO 6429, and those that change the direction of text (Unicode 15, Bidi_Control and
 * the line and paragraph separators). */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static uint32_t decode(const unsigned char *text, size_t n)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = text[0] & masks[n];
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | (text[i] & 0x3f);
    }
    return c;
}

/* Whether these bytes are the beginning of a UTF-8 character. */
static bool is_begun(const char *text, size_t n)
{
    static const unsigned char others[] = {0x80, 0xa0}; /* one of them may follow any first byte */
    for (size_t i = 0; i < sizeof(others) && n < 4; i++) {
        char whole[5] = {0};
        memset(whole, others[i], 4);
        memcpy(whole, text, n);
        if (tnd_emit_utf8_length(whole) > n) {
            return true;
        }
    }
    return false;
}

size_t tnd_visible_next(const char *text, size_t n, char out[TND_VISIBLE_MAX], size_t *out_n)
{
    char whole[5] = {0};
    char shown[16];
    memcpy(whole, text, n < 4 ? n : 4);
    const size_t length = whole[0] != '\0' ? tnd_emit_utf8_length(whole) : 1;
    const unsigned char first = (unsigned char)whole[0];
    if (length == 0 && is_begun(text, n < 4 ? n : 4)) {
        return 0;
    }
    const uint32_t c = length > 0 ? decode((const unsigned char *)whole, length) : 0;
    if (length > 0 && !is_control(c)) {
        memcpy(out, whole, length);
        *out_n = length;
        return length;
    }
    *out_n = (size_t)(c == '\n'    ? snprintf(shown, sizeof(shown), "\\n")
                      : c == '\t'  ? snprintf(shown, sizeof(shown), "\\t")
                      : length > 1 ? snprintf(shown, sizeof(shown), "\\u%04x", (unsigned)c)
                                   : snprintf(shown, sizeof(shown), "\\x%02x", first));
    memcpy(out, shown, *out_n);
    return length > 0 ? length : 1;
}

size_t tandem_text_visible(const char *text, size_t n, char *out, size_t out_bytes)
{
    size_t used = 0;
    if (out == NULL || out_bytes == 0) {
        return 0;
    }
    for (size_t at = 0; text != NULL && at < n;) {
        char shown[TND_VISIBLE_MAX];
        size_t n_shown = 0;
        size_t taken = tnd_visible_next(text + at, n - at, shown, &n_shown);
        if (taken == 0) { /* truncated: the rest of the character never comes */
            break;
        }
        if (used + n_shown >= out_bytes) {
            break;
        }
        memcpy(out + used, shown, n_shown);
        used += n_shown;
        at += taken;
    }
    out[used] = '\0';
    return used;
}
