/* SPDX-License-Identifier: MIT
 * Small additions to base/text.h for this room's files and reports: JSON strings, fixed decimals
 * whatever the locale says, and the way out through a tandem_write_fn. */
#ifndef TND_EMIT_H
#define TND_EMIT_H

#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"
#include "tandem/log.h"

/** A JSON string with its quotes; each byte that is not UTF-8 becomes '?'. */
void tnd_emit_json_string(struct tnd_text *text, const char *string);
/** Bytes of the UTF-8 character at `string`, which is not at its end; 0 when it is none. */
size_t tnd_emit_utf8_length(const char *string);
/** A finite number with `decimals` digits behind the point, right-aligned in `width` columns. */
void tnd_emit_number(struct tnd_text *text, int width, int decimals, double value);
/** An error bar of one decimal, or of as many as show a digit other than 0 (at most 6): no error
 *  above 0 looks like none. Right-aligned in `width` columns. */
void tnd_emit_error(struct tnd_text *text, int width, double error);
/** Hands the text to `write` and frees it. Errors: MEMORY (the text has failed), FILE (`write`
 *  stopped); `what` stands in the message. */
enum tandem_status tnd_emit_end(struct tnd_text *text, tandem_write_fn write, void *user,
                                const char *what, struct tandem_error *error);

/** "2026-11-23", in UTC, of seconds since 1970; "unknown" for 0 and less. */
void tnd_emit_date(struct tnd_text *out, int64_t when);

#endif
