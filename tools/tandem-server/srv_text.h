/* SPDX-License-Identifier: MIT
 * Growing text, and writing JSON into it. When out of memory it stays as it is and sets
 * `failed`. */
#ifndef TANDEM_SERVER_SRV_TEXT_H
#define TANDEM_SERVER_SRV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** All zeros: empty. */
struct srv_text {
    char *bytes; /* terminated by a zero, which n does not count; NULL while empty */
    size_t n, capacity;
    bool failed; /* out of memory */
};

void tnd_srv_add(struct srv_text *text, const char *bytes, size_t n);
void tnd_srv_print(struct srv_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Appends the bytes as a quoted JSON string; invalid UTF-8 becomes U+FFFD. `bytes` may be NULL
 * when n is 0. */
void tnd_srv_add_json(struct srv_text *text, const char *bytes, size_t n);
/** Like tnd_srv_add_json, for a terminated string. */
void tnd_srv_add_json_text(struct srv_text *text, const char *word);
/** Appends the bytes in base64 (RFC 4648) as a JSON string. */
void tnd_srv_add_base64(struct srv_text *text, const void *bytes, size_t n);
/** Appends a JSON number; NaN and infinity become null. */
void tnd_srv_add_number(struct srv_text *text, double value);
void tnd_srv_text_free(struct srv_text *text);

/** Length of the first character in bytes: 1 to 4, or 0 when it is invalid (Unicode, table 3-7). */
size_t tnd_srv_utf8_length(const char *bytes, size_t n);

#endif
