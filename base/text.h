/* SPDX-License-Identifier: MIT
 * Text in memory: a builder that grows, and a scanner over bytes that are not trusted. Numbers have
 * the same form under every locale. */
#ifndef TND_TEXT_H
#define TND_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- building ---- */

/** Text that grows. Start with TND_TEXT_INIT, end with tnd_text_fini. The first failure (no memory)
 * sticks: later adds do nothing, so only the end needs a check of `failed`. */
struct tnd_text {
    char *bytes; /* NULL while empty, else terminated by a zero byte */
    size_t n;    /* length without the zero byte */
    size_t capacity;
    bool failed;
};
#define TND_TEXT_INIT                                                                              \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

void tnd_text_fini(struct tnd_text *text);
/** Forgets the contents and the failure, keeps the memory. */
void tnd_text_clear(struct tnd_text *text);
void tnd_text_add(struct tnd_text *text, const char *string);
void tnd_text_add_bytes(struct tnd_text *text, const char *bytes, size_t n);
void tnd_text_add_char(struct tnd_text *text, char c);
/** `n` times the character. */
void tnd_text_add_repeat(struct tnd_text *text, char c, size_t n);
void tnd_text_printf(struct tnd_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Shortest decimal form that reads back as the same double ("0.1", "1e+30", "nan", "inf"). */
void tnd_text_add_double(struct tnd_text *text, double value);
/** The text as a string that the caller owns and frees with tnd_free; `text` is empty then. NULL
 * when the text has failed (or no memory). */
char *tnd_text_take(struct tnd_text *text);
/** The text as a string, "" when empty; valid until the next change. */
const char *tnd_text_string(const struct tnd_text *text);

/* ---- scanning ---- */

/** A place in a byte range (borrowed). */
struct tnd_scan {
    const char *at;
    const char *end;
    const char *line_begin;
    int64_t line; /* 1 for the first */
};

void tnd_scan_init(struct tnd_scan *scan, const void *bytes, size_t n);
/** 1 for the first byte of a line. */
int64_t tnd_scan_column(const struct tnd_scan *scan);
/** Spaces, tabs and carriage returns; stops at a line's end. */
void tnd_scan_skip_blanks(struct tnd_scan *scan);
/** The same and line ends too. */
void tnd_scan_skip_space(struct tnd_scan *scan);
/** Whether nothing is left. */
bool tnd_scan_is_end(const struct tnd_scan *scan);
/** Skips blanks, then takes the bytes up to the next blank, line end or zero byte. False, and
 * nothing but blanks taken, when there are none in this line. */
bool tnd_scan_token(struct tnd_scan *scan, const char **out_token, size_t *out_n);
/** Takes a token that is a decimal integer in range as a whole. Else takes nothing but blanks. */
bool tnd_scan_i64(struct tnd_scan *scan, int64_t *out_value);
/** Takes a token that is a finite decimal number ("12", "1.5e-3") as a whole. */
bool tnd_scan_double(struct tnd_scan *scan, double *out_value);
/** Skips blanks and takes a line end; true at the end of the text too. False when more stands
 * there. */
bool tnd_scan_end_of_line(struct tnd_scan *scan);

/** What stands behind `beginning`; the text itself when it begins otherwise. */
const char *tnd_text_behind(const char *text, const char *beginning);

/** The number that these bytes are as a whole; false else. */
bool tnd_text_to_i64(const char *bytes, size_t n, int64_t *out_value);
bool tnd_text_to_double(const char *bytes, size_t n, double *out_value);

#endif
