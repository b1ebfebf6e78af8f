/* SPDX-License-Identifier: MIT
 * Makes visible what a terminal would act on, one character at a time; for whole texts see
 * tandem_text_visible (tandem/log.h). */
#ifndef TND_VISIBLE_H
#define TND_VISIBLE_H

#include <stddef.h>

enum { TND_VISIBLE_MAX = 8 };

/** Consumes the first character of the `n` > 0 bytes at `text` and writes its visible form to `out`
 * (`*out_n` bytes, no zero byte). Returns the length of the character; 0: the bytes are the
 * beginning of a UTF-8 character whose rest is missing. */
size_t tnd_visible_next(const char *text, size_t n, char out[TND_VISIBLE_MAX], size_t *out_n);

#endif
