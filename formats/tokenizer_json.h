/* SPDX-License-Identifier: MIT
 * What the parts of the tokenizer.json reader share. */
#ifndef TND_TOKENIZER_JSON_H
#define TND_TOKENIZER_JSON_H

#ifdef TND_HAVE_CJSON

#include <cjson/cJSON.h>

#include "formats/tnd_tokenizer.h"

/** A tokenizer.json that is being read. */
struct tnd_hf_reader {
    const char *name; /* of the file */
    size_t n_bytes;
    tandem_tokenizer *tokenizer;
};

/** Member texts and flags, or what stands in for them. */
const char *tnd_hf_text(const cJSON *object, const char *key);
bool tnd_hf_flag(const cJSON *object, const char *key, bool otherwise);
/** Appends the steps of the normalizer and the pre-tokenizer. Errors: FORMAT, UNSUPPORTED_BUILD,
 *  MEMORY. */
enum tandem_status tnd_hf_read_steps(const struct tnd_hf_reader *reader, const cJSON *root,
                                     struct tandem_error *error);
/** Sets how tokens are turned into text. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_hf_read_decoder(const struct tnd_hf_reader *reader, const cJSON *decoder,
                                       struct tandem_error *error);
enum tandem_status tnd_hf_unsupported(const struct tnd_hf_reader *reader, const char *part,
                                      const char *type, struct tandem_error *error);

#endif
#endif
