/* SPDX-License-Identifier: MIT
 * Growing text, and scanning of text. All numbers are in the "C" locale, whatever the program has
 * set. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"
#include "base/tnd_assert.h"

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t get_c_locale(void)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale;
}

/* ---- building ---- */

void tnd_text_fini(struct tnd_text *text)
{
    tnd_free(text->bytes);
    memset(text, 0, sizeof(*text));
}

void tnd_text_clear(struct tnd_text *text)
{
    text->n = 0;
    text->failed = false;
    if (text->bytes != NULL) {
        text->bytes[0] = '\0';
    }
}

/* Makes room for `n` more bytes and the zero byte; false (and `failed` set) when out of memory. */
static bool reserve(struct tnd_text *text, size_t n)
{
    size_t need;
    if (text->failed) {
        return false;
    }
    if (!tnd_add_size(text->n, n, &need) || !tnd_add_size(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    TND_ASSERT(text->n < text->capacity || text->bytes == NULL);
    if (need <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity < SIZE_MAX / 2 ? 2 * text->capacity : need;
    capacity = capacity > need ? capacity : need;
    capacity = capacity > 256 ? capacity : 256;
    char *bytes = tnd_realloc(text->bytes, text->n, capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    bytes[text->n] = '\0';
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void tnd_text_add_bytes(struct tnd_text *text, const char *bytes, size_t n)
{
    if (reserve(text, n)) {
        if (n > 0) { /* (a pointer to no bytes may be NULL) */
            memcpy(text->bytes + text->n, bytes, n);
        }
        text->n += n;
        text->bytes[text->n] = '\0';
    }
}

void tnd_text_add(struct tnd_text *text, const char *string)
{
    tnd_text_add_bytes(text, string, strlen(string));
}

void tnd_text_add_char(struct tnd_text *text, char c)
{
    tnd_text_add_bytes(text, &c, 1);
}

void tnd_text_add_repeat(struct tnd_text *text, char c, size_t n)
{
    if (reserve(text, n)) {
        memset(text->bytes + text->n, c, n);
        text->n += n;
        text->bytes[text->n] = '\0';
    }
}

void tnd_text_printf(struct tnd_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    locale_t before = uselocale(get_c_locale());
    int n = vsnprintf(NULL, 0, format, arguments);
    if (n < 0) {
        text->failed = true;
    } else if (reserve(text, (size_t)n)) {
        vsnprintf(text->bytes + text->n, (size_t)n + 1, format, again);
        text->n += (size_t)n;
    }
    uselocale(before);
    va_end(again);
    va_end(arguments);
}

void tnd_text_add_double(struct tnd_text *text, double value)
{
    char digits[40];
    if (isnan(value)) {
        tnd_text_add(text, "nan");
        return;
    }
    if (isinf(value)) {
        tnd_text_add(text, value < 0 ? "-inf" : "inf");
        return;
    }
    locale_t before = uselocale(get_c_locale());
    /* Decimal -> double -> decimal is exact up to 15 digits, double -> decimal -> double from 17 on
     * (IEEE 754). */
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    uselocale(before);
    tnd_text_add(text, digits);
}

char *tnd_text_take(struct tnd_text *text)
{
    char *bytes = NULL;
    if (reserve(text, 0)) { /* an empty text becomes "" */
        bytes = text->bytes;
        text->bytes = NULL;
    }
    tnd_text_fini(text);
    return bytes;
}

const char *tnd_text_string(const struct tnd_text *text)
{
    return text->bytes != NULL ? text->bytes : "";
}

/* ---- numbers ---- */

bool tnd_text_to_i64(const char *bytes, size_t n, int64_t *out_value)
{
    size_t i = 0;
    bool negative = n > 0 && bytes[0] == '-';
    if (n > 0 && (bytes[0] == '-' || bytes[0] == '+')) {
        i++;
    }
    if (i == n) {
        return false;
    }
    int64_t value = 0;
    for (; i < n; i++) {
        int digit = bytes[i] - '0';
        if (digit < 0 || digit > 9 || !tnd_mul_i64(value, 10, &value) ||
            !tnd_add_i64(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *out_value = value;
    return true;
}

bool tnd_text_to_double(const char *bytes, size_t n, double *out_value)
{
    char digits[512]; /* more digits than any double needs */
    if (n == 0 || n >= sizeof(digits)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        /* strtod also accepts blanks, hexadecimal, "inf" and "nan"; this parser does not. */
        if (bytes[i] == '\0' || strchr("0123456789+-.eE", bytes[i]) == NULL) {
            return false;
        }
    }
    memcpy(digits, bytes, n);
    digits[n] = '\0';
    char *end;
    double value = strtod_l(digits, &end, get_c_locale());
    if (end != digits + n || !isfinite(value)) {
        return false;
    }
    *out_value = value;
    return true;
}

/* ---- scanning ---- */

void tnd_scan_init(struct tnd_scan *scan, const void *bytes, size_t n)
{
    scan->at = bytes;
    scan->end = scan->at + n;
    scan->line_begin = scan->at;
    scan->line = 1;
}

int64_t tnd_scan_column(const struct tnd_scan *scan)
{
    return scan->at - scan->line_begin + 1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void tnd_scan_skip_blanks(struct tnd_scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at)) {
        scan->at++;
    }
}

/* Consumes a newline, if there is one. */
static bool take_newline(struct tnd_scan *scan)
{
    if (scan->at == scan->end || *scan->at != '\n') {
        return false;
    }
    scan->at++;
    scan->line++;
    scan->line_begin = scan->at;
    return true;
}

void tnd_scan_skip_space(struct tnd_scan *scan)
{
    do {
        tnd_scan_skip_blanks(scan);
    } while (take_newline(scan));
}

bool tnd_scan_is_end(const struct tnd_scan *scan)
{
    return scan->at == scan->end;
}

bool tnd_scan_token(struct tnd_scan *scan, const char **out_token, size_t *out_n)
{
    tnd_scan_skip_blanks(scan);
    const char *begin = scan->at;
    while (scan->at < scan->end && !is_blank(*scan->at) && *scan->at != '\n' && *scan->at != '\0') {
        scan->at++;
    }
    if (scan->at == begin) {
        return false;
    }
    *out_token = begin;
    *out_n = (size_t)(scan->at - begin);
    return true;
}

bool tnd_scan_i64(struct tnd_scan *scan, int64_t *out_value)
{
    const char *token;
    size_t n;
    if (!tnd_scan_token(scan, &token, &n)) {
        return false;
    }
    if (!tnd_text_to_i64(token, n, out_value)) {
        scan->at = token; /* a token never spans lines */
        return false;
    }
    return true;
}

bool tnd_scan_double(struct tnd_scan *scan, double *out_value)
{
    const char *token;
    size_t n;
    if (!tnd_scan_token(scan, &token, &n)) {
        return false;
    }
    if (!tnd_text_to_double(token, n, out_value)) {
        scan->at = token;
        return false;
    }
    return true;
}

bool tnd_scan_end_of_line(struct tnd_scan *scan)
{
    tnd_scan_skip_blanks(scan);
    return tnd_scan_is_end(scan) || take_newline(scan);
}

const char *tnd_text_behind(const char *text, const char *beginning)
{
    const size_t n = strlen(beginning);
    return strncmp(text, beginning, n) == 0 ? text + n : text;
}
