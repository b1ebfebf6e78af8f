/* SPDX-License-Identifier: MIT
 * Untrusted UTF-8, and Unicode normalization (by utf8proc). */
#ifndef TND_UNICODE_H
#define TND_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"

enum tnd_unicode_form { TND_FORM_NFC, TND_FORM_NFD, TND_FORM_NFKC, TND_FORM_NFKD };

/** Bytes of the well-formed character at `text` (1 to 4); 0: none. Surrogates, overlong forms and
 * numbers above U+10FFFF are ill-formed. */
size_t tnd_utf8_length(const char *text, size_t n);
/** The same, but 1 for an ill-formed byte. */
size_t tnd_utf8_loose_length(const char *text, size_t n);
/** Bytes of the well-formed characters at the start of `text`. */
size_t tnd_utf8_valid_run(const char *text, size_t n);
/** Bytes of the white space character at `text`; 0: none. */
size_t tnd_utf8_space(const char *text, size_t n);

/** Whether this build can normalize. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_unicode_check(struct tandem_error *error);
/** Appends the normalized text. Ill-formed bytes are kept. Errors: MEMORY, UNSUPPORTED_BUILD. */
enum tandem_status tnd_unicode_normalize(enum tnd_unicode_form form, const char *text, size_t n,
                                         struct tnd_text *out, struct tandem_error *error);
/** Append the text in lower and upper case, character by character. Errors: those of
 * tnd_unicode_normalize. */
enum tandem_status tnd_unicode_lower(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error);
enum tandem_status tnd_unicode_upper(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error);

/** Bytes of the grapheme cluster (Unicode Standard Annex 29) at `text`, at least 1; without
 * utf8proc, of the character. */
size_t tnd_unicode_grapheme(const char *text, size_t n);
/** Appends the text as BERT cleans it. `drops`: removes control characters and U+FFFD, replaces
 * white space by blanks; `isolates`: puts blanks around Chinese characters. */
void tnd_unicode_clean(bool drops, bool isolates, const char *text, size_t n, struct tnd_text *out);
/** Appends the text without nonspacing marks. Errors: those of tnd_unicode_normalize. */
enum tandem_status tnd_unicode_drop_marks(const char *text, size_t n, struct tnd_text *out,
                                          struct tandem_error *error);

#endif
