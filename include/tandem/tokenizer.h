/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * Text to token ids and back. */
#ifndef TANDEM_TOKENIZER_H
#define TANDEM_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_tokenizer tandem_tokenizer;

/** Opens a tokenizer file, format told from its contents. `vocabulary`: number of tokens that the
 *  model has (llama2.c files do not say), or 0 when the file tells. Errors: FILE, FORMAT,
 *  TRUNCATED, MEMORY. */
TANDEM_API enum tandem_status tandem_tokenizer_open(const char *path, int64_t vocabulary,
                                                    tandem_tokenizer **out_tokenizer,
                                                    struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_tokenizer_close(tandem_tokenizer *tokenizer);

/** Number of tokens. Any thread. */
TANDEM_API int64_t tandem_tokenizer_vocabulary(const tandem_tokenizer *tokenizer);
/** Ids that begin and end a text, or -1. */
TANDEM_API int32_t tandem_tokenizer_bos(const tandem_tokenizer *tokenizer);
TANDEM_API int32_t tandem_tokenizer_eos(const tandem_tokenizer *tokenizer);

/** Encodes `n` bytes. Writes at most `capacity` ids and stores the number of all ids in `out_n`;
 *  LIMIT when that is more than `capacity`. `add_bos` puts the beginning token in front. Any
 *  thread. */
TANDEM_API enum tandem_status tandem_tokenizer_encode(const tandem_tokenizer *tokenizer,
                                                      const char *text, size_t n, bool add_bos,
                                                      int32_t *out_ids, size_t capacity,
                                                      size_t *out_n, struct tandem_error *error);
/** Bytes of one token that follows `previous` (-1: none; after the beginning token one leading
 *  blank is dropped). Writes at most `capacity` bytes, not terminated; returns how many there are.
 *  Any thread. */
TANDEM_API size_t tandem_tokenizer_decode(const tandem_tokenizer *tokenizer, int32_t previous,
                                          int32_t id, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
