/* SPDX-License-Identifier: MIT
 * Additions to base/text.h for files and reports: JSON strings, fixed-point decimals in every
 * locale, and output through a tandem_write_fn. */
#ifndef TND_EMIT_H
#define TND_EMIT_H

#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"
#include "tandem/log.h"

/** Appends a quoted JSON string; each byte that is not part of valid UTF-8 becomes '?'. */
void tnd_emit_json_string(struct tnd_text *text, const char *string);
/** Length in bytes of the UTF-8 character at `string`, which is not empty; 0 when it is invalid. */
size_t tnd_emit_utf8_length(const char *string);
/** Appends a finite number with `decimals` digits after the point, right-aligned in `width`
 * columns. */
void tnd_emit_number(struct tnd_text *text, int width, int decimals, double value);
/** Appends an error bar with one decimal, or with as many as it takes to show a digit other than 0
 * (at most 6), so that a small error never reads as 0. Right-aligned in `width` columns. */
void tnd_emit_error(struct tnd_text *text, int width, double error);
/** Passes the text to `write` and frees it. Errors: MEMORY (the text had failed), FILE (`write`
 * stopped); `what` names the text in the message. */
enum tandem_status tnd_emit_end(struct tnd_text *text, tandem_write_fn write, void *user,
                                const char *what, struct tandem_error *error);

/** Appends a date, "2026-11-23", in UTC; `when` is in seconds since 1970; "unknown" for 0 and
 * less. */
void tnd_emit_date(struct tnd_text *out, int64_t when);

#endif
