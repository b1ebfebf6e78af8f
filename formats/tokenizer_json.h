/* SPDX-License-Identifier: MIT
 * Shared by the files of the tokenizer.json reader. */
#ifndef TND_TOKENIZER_JSON_H
#define TND_TOKENIZER_JSON_H

#ifdef TND_HAVE_CJSON

#include <cjson/cJSON.h>

#include "formats/tnd_tokenizer.h"

/** A tokenizer.json being read. */
struct tnd_hf_reader {
    const char *name; /* of the file */
    size_t n_bytes;
    tandem_tokenizer *tokenizer;
};

/** Checks size and depth, and parses `reader->n_bytes`. Errors: FORMAT, LIMIT. */
enum tandem_status tnd_hf_parse(const struct tnd_hf_reader *reader, const char *text,
                                cJSON **out_root, struct tandem_error *error);
/** The text or flag of a member, or its default. */
const char *tnd_hf_text(const cJSON *object, const char *key);
bool tnd_hf_flag(const cJSON *object, const char *key, bool otherwise);
/** Appends the steps of the normalizer and the pre-tokenizer. Errors: FORMAT, UNSUPPORTED_BUILD,
 *  MEMORY. */
enum tandem_status tnd_hf_read_steps(const struct tnd_hf_reader *reader, const cJSON *root,
                                     struct tandem_error *error);
/** Reads how tokens are decoded. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_hf_read_decoder(const struct tnd_hf_reader *reader, const cJSON *decoder,
                                       struct tandem_error *error);

/* ---- tokenizer_roles.c ---- */

/** Sets the BOS and EOS tokens, and whether they are added, from the tree of a tokenizer.json. */
void tnd_hf_find_roles(const cJSON *root, tandem_tokenizer *tokenizer);
/** Overrides them with the members of a tokenizer_config.json. Errors: FORMAT, LIMIT, MEMORY. */
enum tandem_status tnd_hf_read_config(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer *tokenizer, struct tandem_error *error);
/** The text of a token role: "bos_token" is a text or {"content": text}; NULL: none. */
const char *tnd_hf_role(const cJSON *config, const char *role);

/* ---- tokenizer_vocab.c ---- */

/** Files that belong to a vocab.json: merges.txt, and tokenizer_config.json unless n_config is
 * 0. */
struct tnd_hf_files {
    const char *merges;
    size_t n_merges;
    const char *config;
    size_t n_config;
};
/** Whether the tree is that of a vocab.json. */
bool tnd_hf_is_vocabulary(const cJSON *root);
/** Turns the tree of a vocab.json into that of a tokenizer.json. On errors the caller keeps
 * `io_root`: FORMAT, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_hf_from_vocabulary(const struct tnd_hf_reader *reader,
                                          const struct tnd_hf_files *files, cJSON **io_root,
                                          struct tandem_error *error);
/** Reads a vocab.json from memory (tokenizer_json.c); nothing is borrowed. Errors: those of
 * tnd_hf_from_vocabulary and tnd_tokenizer_json_read. */
enum tandem_status tnd_tokenizer_vocab_read(const void *bytes, size_t n,
                                            const struct tnd_hf_files *files, const char *name,
                                            tandem_tokenizer **out_tokenizer,
                                            struct tandem_error *error);
/** As tnd_tokenizer_vocab_read, with the files in the folder of `name`. Errors: also NOT_FOUND (no
 * merges.txt) and FILE. */
enum tandem_status tnd_hf_read_beside(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error);

enum tandem_status tnd_hf_unsupported(const struct tnd_hf_reader *reader, const char *part,
                                      const char *type, struct tandem_error *error);

#endif
#endif
