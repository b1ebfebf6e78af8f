/* SPDX-License-Identifier: MIT
 * A text that grows, and JSON written into it. Without memory it stays as it is and says so at the
 * end. */
#ifndef TANDEM_SERVER_SRV_TEXT_H
#define TANDEM_SERVER_SRV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** All zeros: empty. */
struct srv_text {
    char *bytes; /* terminated by a zero that is not counted; NULL while empty */
    size_t n, capacity;
    bool failed; /* there was no memory */
};

void tnd_srv_add(struct srv_text *text, const char *bytes, size_t n);
void tnd_srv_print(struct srv_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** The bytes as a JSON string with its quotes; what is no UTF-8 becomes U+FFFD.
 *  `bytes` may be NULL when n is 0. */
void tnd_srv_add_json(struct srv_text *text, const char *bytes, size_t n);
/** As tnd_srv_add_json, of a terminated text. */
void tnd_srv_add_json_text(struct srv_text *text, const char *word);
/** The bytes in base64 (RFC 4648) as a JSON string. */
void tnd_srv_add_base64(struct srv_text *text, const void *bytes, size_t n);
/** A number as JSON; what is none becomes null. */
void tnd_srv_add_number(struct srv_text *text, double value);
void tnd_srv_text_free(struct srv_text *text);

/** Bytes of the first character: 1 to 4, or 0 when there is no valid one (Unicode, table 3-7). */
size_t tnd_srv_utf8_length(const char *bytes, size_t n);

#endif
