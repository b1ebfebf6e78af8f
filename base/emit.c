/* SPDX-License-Identifier: MIT
 * JSON strings, fixed-point decimals, and output through a callback. */
#include "base/emit.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Length of the UTF-8 sequence at `text` (Unicode 15, table 3-7); 0 when it is invalid. A zero byte
 * ends the string and is no continuation byte, so nothing behind it is read. */
size_t tnd_emit_utf8_length(const char *string)
{
    const unsigned char *text = (const unsigned char *)string;
    size_t n = text[0] < 0x80   ? 1
               : text[0] < 0xC2 ? 0
               : text[0] < 0xE0 ? 2
               : text[0] < 0xF0 ? 3
               : text[0] < 0xF5 ? 4
                                : 0;
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool outside = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
                   (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F);
    return outside ? 0 : n;
}

void tnd_emit_json_string(struct tnd_text *text, const char *string)
{
    tnd_text_add_char(text, '"');
    const char *at = string;
    while (*at != '\0') {
        size_t n = tnd_emit_utf8_length(at);
        if (n == 0) {
            tnd_text_add_char(text, '?');
            n = 1;
        } else if (*at == '"' || *at == '\\') {
            tnd_text_printf(text, "\\%c", *at);
        } else if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            tnd_text_printf(text, "\\u%04x", (unsigned)*at);
        } else {
            tnd_text_add_bytes(text, at, n);
        }
        at += n;
    }
    tnd_text_add_char(text, '"');
}

void tnd_emit_number(struct tnd_text *text, int width, int decimals, double value)
{
    char number[400];
    snprintf(number, sizeof(number), "%.*f", decimals, value);
    /* printf follows the program's locale; files and reports must not depend on it. */
    const char *point = localeconv()->decimal_point;
    size_t length = strlen(point);
    char *found = length > 0 ? strstr(number, point) : NULL;
    if (found != NULL) {
        *found = '.';
        memmove(found + 1, found + length, strlen(found + length) + 1);
    }
    tnd_text_printf(text, "%*s", width, number);
}

void tnd_emit_error(struct tnd_text *text, int width, double error)
{
    int decimals = 1;
    for (double least = 0.05; decimals < 6 && error > 0 && error < least; least /= 10) {
        decimals++;
    }
    tnd_emit_number(text, width, decimals, error);
}

enum tandem_status tnd_emit_end(struct tnd_text *text, tandem_write_fn write, void *user,
                                const char *what, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    if (text->failed) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, what, 0, 0, "%s: out of memory", what);
    } else if (text->n > 0 && write(user, text->bytes, text->n) != 0) {
        status = tnd_error_set(error, TANDEM_E_FILE, what, (int64_t)text->n, 0,
                               "%s: writing was stopped by the receiver", what);
    }
    tnd_text_fini(text);
    return status;
}

void tnd_emit_date(struct tnd_text *out, int64_t when)
{
    char text[32] = "unknown";
    const time_t seconds = (time_t)when;
    struct tm date;
    if (when > 0 && gmtime_r(&seconds, &date) != NULL) {
        strftime(text, sizeof(text), "%Y-%m-%d", &date);
    }
    tnd_text_add(out, text);
}
