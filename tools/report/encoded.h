/* SPDX-License-Identifier: MIT
 * Tokens of a text in as much memory as they take. A text may have more of them than bytes: a blank
 * becomes three where a vocabulary lacks U+2581, and normalizers make texts longer. */
#ifndef TND_ENCODED_H
#define TND_ENCODED_H

#include "tandem/chat_template.h"
#include "tandem/tokenizer.h"

/** One text with options, two texts, or one that a template wrote. */
struct tnd_encoded_text {
    const char *text;
    size_t n;
    const struct tandem_encode_options *options; /* of one text */
    const char *second;                          /* behind `text`; NULL: there is one text */
    size_t n_second;
    const struct tandem_rendered *rendered; /* in place of all of these, or NULL */
};

/** `out_ids`: free() frees them; never NULL. `out_second`: where the second text begins, see
 *  tandem_tokenizer_encode_pair; may be NULL. Errors: those of the tokenizer without a LIMIT of
 *  room. */
enum tandem_status tnd_encoded(const tandem_tokenizer *tokenizer,
                               const struct tnd_encoded_text *text, int32_t **out_ids,
                               size_t *out_n, size_t *out_second, struct tandem_error *error);

#endif
