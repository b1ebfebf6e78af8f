/* SPDX-License-Identifier: MIT
 * Tokens of a text in a buffer of the right size. A text may have more tokens than bytes: a blank
 * becomes three if a vocabulary lacks U+2581, and normalizers make texts longer. */
#ifndef TND_ENCODED_H
#define TND_ENCODED_H

#include "tandem/chat_template.h"
#include "tandem/tokenizer.h"

/** One text with options, two texts, or the output of a template. */
struct tnd_encoded_text {
    const char *text;
    size_t n;
    const struct tandem_encode_options *options; /* for a single text */
    const char *second;                          /* the second text; NULL: there is one text */
    size_t n_second;
    const struct tandem_rendered *rendered; /* replaces all members above, or NULL */
};

/** Free `out_ids` with free(); never NULL. `out_second`: where the second text begins, see
 * tandem_tokenizer_encode_pair; may be NULL. Errors: those of the tokenizer, but never LIMIT for
 * lack of room. */
enum tandem_status tnd_encoded(const tandem_tokenizer *tokenizer,
                               const struct tnd_encoded_text *text, int32_t **out_ids,
                               size_t *out_n, size_t *out_second, struct tandem_error *error);

#endif
