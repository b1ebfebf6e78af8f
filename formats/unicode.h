/* SPDX-License-Identifier: MIT
 * UTF-8 that is not trusted, and Unicode normalization (by utf8proc). */
#ifndef TND_UNICODE_H
#define TND_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"

enum tnd_unicode_form { TND_FORM_NFC, TND_FORM_NFD, TND_FORM_NFKC, TND_FORM_NFKD };

/** Bytes of the well-formed character at `text` (1 to 4), or 0 when there is none: surrogates,
 *  overlong forms and numbers above U+10FFFF are none. */
size_t tnd_utf8_length(const char *text, size_t n);
/** The same, and 1 for a byte that begins no character. */
size_t tnd_utf8_loose_length(const char *text, size_t n);
/** Bytes of well-formed characters from `text` on. */
size_t tnd_utf8_valid_run(const char *text, size_t n);
/** Bytes of white space at `text`: one character, or 0. */
size_t tnd_utf8_space(const char *text, size_t n);

/** Whether this build can normalize. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_unicode_check(struct tandem_error *error);
/** Adds the normalized text. Bytes that are no UTF-8 stay as they are. Errors: MEMORY,
 *  UNSUPPORTED_BUILD. */
enum tandem_status tnd_unicode_normalize(enum tnd_unicode_form form, const char *text, size_t n,
                                         struct tnd_text *out, struct tandem_error *error);
/** Adds the text in lower case, character by character; in upper case. Errors: as above. */
enum tandem_status tnd_unicode_lower(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error);
enum tandem_status tnd_unicode_upper(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error);

/** Bytes of the grapheme cluster at `text` (Unicode Standard Annex 29), 1 at least; without
 *  utf8proc of the character. */
size_t tnd_unicode_grapheme(const char *text, size_t n);
/** Adds the text as BERT takes it. `drops`: control characters and U+FFFD go, white space becomes a
 *  blank; `isolates`: blanks around Chinese characters. */
void tnd_unicode_clean(bool drops, bool isolates, const char *text, size_t n, struct tnd_text *out);
/** Adds the text without nonspacing marks. Errors: as above. */
enum tandem_status tnd_unicode_drop_marks(const char *text, size_t n, struct tnd_text *out,
                                          struct tandem_error *error);

#endif
