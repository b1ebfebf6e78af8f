/* SPDX-License-Identifier: MIT
 * Texts that grow, and JSON. */
#include "tools/tandem-server/srv_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n more bytes and the zero. */
static bool reserve(struct srv_text *text, size_t n)
{
    if (text->failed || n > SIZE_MAX / 4 - text->n) {
        text->failed = true;
        return false;
    }
    if (text->n + n + 1 > text->capacity) {
        const size_t capacity = 2 * (text->n + n) + 64;
        char *bytes = realloc(text->bytes, capacity);
        if (bytes == NULL) {
            text->failed = true;
            return false;
        }
        text->bytes = bytes;
        text->capacity = capacity;
    }
    return true;
}

void tnd_srv_add(struct srv_text *text, const char *bytes, size_t n)
{
    if (n > 0 && reserve(text, n)) {
        memcpy(text->bytes + text->n, bytes, n);
        text->n += n;
        text->bytes[text->n] = '\0';
    }
}

void tnd_srv_print(struct srv_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n >= 0 && reserve(text, (size_t)n)) {
        va_start(arguments, format);
        (void)vsnprintf(text->bytes + text->n, (size_t)n + 1, format, arguments);
        va_end(arguments);
        text->n += (size_t)n;
    }
}

size_t tnd_srv_utf8_length(const char *bytes, size_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (n == 0 || (b[0] >= 0x80 && b[0] < 0xc2) || b[0] > 0xf4) {
        return 0;
    }
    const size_t length = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    const unsigned char low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    if (length > n || (length > 1 && (b[1] < low || b[1] > high))) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (b[i] < 0x80 || b[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

static void add_escaped(struct srv_text *text, char byte)
{
    const char *names = "\b\t\n\f\r\"\\";
    const char *at = byte != '\0' ? strchr(names, byte) : NULL;
    if (at != NULL) {
        const char pair[] = {'\\', "btnfr\"\\"[at - names]};
        tnd_srv_add(text, pair, 2);
    } else {
        tnd_srv_print(text, "\\u%04x", (unsigned)(unsigned char)byte);
    }
}

void tnd_srv_add_json(struct srv_text *text, const char *bytes, size_t n)
{
    size_t plain = 0; /* start of the bytes that need no escape */
    if (n == 0) {     /* `bytes` may be NULL */
        tnd_srv_add(text, "\"\"", 2);
        return;
    }
    tnd_srv_add(text, "\"", 1);
    for (size_t i = 0; i < n;) {
        const size_t length = tnd_srv_utf8_length(bytes + i, n - i);
        const unsigned char byte = (unsigned char)bytes[i];
        const bool is_plain =
            length > 0 && byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f;
        if (!is_plain) {
            tnd_srv_add(text, bytes + plain, i - plain);
            if (length == 0) {
                tnd_srv_add(text, "\\ufffd", 6);
            } else {
                add_escaped(text, bytes[i]);
            }
            plain = i + 1;
        }
        i += is_plain ? length : 1;
    }
    tnd_srv_add(text, bytes + plain, n - plain);
    tnd_srv_add(text, "\"", 1);
}

void tnd_srv_add_json_text(struct srv_text *text, const char *word)
{
    tnd_srv_add_json(text, word, strlen(word));
}

void tnd_srv_add_base64(struct srv_text *text, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = bytes;
    tnd_srv_add(text, "\"", 1);
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const unsigned bits = (unsigned)b[i] << 16 | (left > 1 ? (unsigned)b[i + 1] << 8 : 0u) |
                              (left > 2 ? (unsigned)b[i + 2] : 0u);
        const char group[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                              left > 1 ? digits[bits >> 6 & 63] : '=',
                              left > 2 ? digits[bits & 63] : '='};
        tnd_srv_add(text, group, sizeof(group));
    }
    tnd_srv_add(text, "\"", 1);
}

void tnd_srv_add_number(struct srv_text *text, double value)
{
    if (isfinite(value)) {
        tnd_srv_print(text, "%.9g", value);
    } else {
        tnd_srv_add(text, "null", 4);
    }
}

void tnd_srv_text_free(struct srv_text *text)
{
    free(text->bytes);
    *text = (struct srv_text){0};
}
