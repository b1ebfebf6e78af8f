/* SPDX-License-Identifier: MIT
 * Making visible what a terminal would act on, one character at a time; whole texts with
 * tandem_text_visible (tandem/log.h). */
#ifndef TND_VISIBLE_H
#define TND_VISIBLE_H

#include <stddef.h>

enum { TND_VISIBLE_MAX = 8 };

/** Takes the first character of the `n` > 0 bytes at `text` and writes what may be shown of it to
 *  `out`, without a zero byte behind, `*out_n` bytes. Returns how many bytes the character has; 0:
 *  they are the beginning of a UTF-8 character whose end is missing. */
size_t tnd_visible_next(const char *text, size_t n, char out[TND_VISIBLE_MAX], size_t *out_n);

#endif
