/* SPDX-License-Identifier: MIT
 * Text in memory: a builder that grows, and a scanner over untrusted bytes. Numbers have the same
 * form in every locale. */
#ifndef TND_TEXT_H
#define TND_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- building ---- */

/** Text that grows. Start with TND_TEXT_INIT, end with tnd_text_fini. The first failure (out of
 * memory) sticks: later additions do nothing, so only the end needs to check `failed`. */
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
/** Empties the text and clears `failed`; keeps the memory. */
void tnd_text_clear(struct tnd_text *text);
void tnd_text_add(struct tnd_text *text, const char *string);
void tnd_text_add_bytes(struct tnd_text *text, const char *bytes, size_t n);
void tnd_text_add_char(struct tnd_text *text, char c);
/** Appends the character `n` times. */
void tnd_text_add_repeat(struct tnd_text *text, char c, size_t n);
void tnd_text_printf(struct tnd_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Appends the shortest decimal form that reads back as the same double ("0.1", "1e+30", "nan",
 * "inf"). */
void tnd_text_add_double(struct tnd_text *text, double value);
/** Moves the text into a string that the caller frees with tnd_free; `text` is empty then. NULL
 * when the text had failed (or there is no memory). */
char *tnd_text_take(struct tnd_text *text);
/** The text as a string, "" when empty; valid until the next change. */
const char *tnd_text_string(const struct tnd_text *text);

/* ---- scanning ---- */

/** A position in a range of bytes (borrowed). */
struct tnd_scan {
    const char *at;
    const char *end;
    const char *line_begin;
    int64_t line; /* 1 for the first */
};

void tnd_scan_init(struct tnd_scan *scan, const void *bytes, size_t n);
/** Column of the position; 1 for the first byte of a line. */
int64_t tnd_scan_column(const struct tnd_scan *scan);
/** Skips spaces, tabs and carriage returns; stops at the end of a line. */
void tnd_scan_skip_blanks(struct tnd_scan *scan);
/** Skips blanks and line ends. */
void tnd_scan_skip_space(struct tnd_scan *scan);
/** Whether the position is at the end. */
bool tnd_scan_is_end(const struct tnd_scan *scan);
/** Skips blanks, then consumes the bytes up to the next blank, line end or zero byte. False when
 * there are none left in this line; then only blanks are consumed. */
bool tnd_scan_token(struct tnd_scan *scan, const char **out_token, size_t *out_n);
/** Consumes a token that is a decimal integer in range as a whole. Else consumes only blanks. */
bool tnd_scan_i64(struct tnd_scan *scan, int64_t *out_value);
/** Consumes a token that is a finite decimal number ("12", "1.5e-3") as a whole. */
bool tnd_scan_double(struct tnd_scan *scan, double *out_value);
/** Skips blanks and consumes a line end; true at the end of the text too. False when anything else
 * follows. */
bool tnd_scan_end_of_line(struct tnd_scan *scan);

/** The rest of `text` after `beginning`; `text` itself if it begins otherwise. */
const char *tnd_text_behind(const char *text, const char *beginning);

/** Parses bytes that are a decimal integer as a whole; false if they are not. */
bool tnd_text_to_i64(const char *bytes, size_t n, int64_t *out_value);
bool tnd_text_to_double(const char *bytes, size_t n, double *out_value);

#endif
