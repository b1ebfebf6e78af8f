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

/** Checks size and depth, and parses `reader->n_bytes`. Errors: FORMAT, LIMIT. */
enum tandem_status tnd_hf_parse(const struct tnd_hf_reader *reader, const char *text,
                                cJSON **out_root, struct tandem_error *error);
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

/* ---- tokenizer_roles.c ---- */

/** Sets the beginning and the end token, and whether they are added, by the tree of a
 *  tokenizer.json. */
void tnd_hf_find_roles(const cJSON *root, tandem_tokenizer *tokenizer);
/** The same by a tokenizer_config.json, as far as it says. Errors: FORMAT, LIMIT, MEMORY. */
enum tandem_status tnd_hf_read_config(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer *tokenizer, struct tandem_error *error);
/** Text of a token by its role: "bos_token" is a text or {"content": text}; or NULL. */
const char *tnd_hf_role(const cJSON *config, const char *role);

/* ---- tokenizer_vocab.c ---- */

/** What belongs to a vocab.json: merges.txt, and tokenizer_config.json unless n_config is 0. */
struct tnd_hf_files {
    const char *merges;
    size_t n_merges;
    const char *config;
    size_t n_config;
};
/** Whether it is a vocab.json. */
bool tnd_hf_is_vocabulary(const cJSON *root);
/** Makes the tree of a tokenizer.json of that of a vocab.json, which it takes over. Errors: FORMAT,
 *  UNSUPPORTED_BUILD, LIMIT, MEMORY; then `io_root` stays the caller's. */
enum tandem_status tnd_hf_from_vocabulary(const struct tnd_hf_reader *reader,
                                          const struct tnd_hf_files *files, cJSON **io_root,
                                          struct tandem_error *error);
/** Reads a vocab.json from memory (tokenizer_json.c); nothing is borrowed. Errors: as there, and
 *  those of a tokenizer.json. */
enum tandem_status tnd_tokenizer_vocab_read(const void *bytes, size_t n,
                                            const struct tnd_hf_files *files, const char *name,
                                            tandem_tokenizer **out_tokenizer,
                                            struct tandem_error *error);
/** As tnd_tokenizer_vocab_read, with the files beside `name`. Errors: also NOT_FOUND (no
 *  merges.txt) and FILE. */
enum tandem_status tnd_hf_read_beside(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error);

enum tandem_status tnd_hf_unsupported(const struct tnd_hf_reader *reader, const char *part,
                                      const char *type, struct tandem_error *error);

#endif
#endif
