/* SPDX-License-Identifier: MIT
 * Inside of a tokenizer: what a loader fills and encoding and decoding read. Internal twin of
 * tandem/tokenizer.h. Read-only once it is open, so that any thread may use it. */
#ifndef TND_TOKENIZER_H
#define TND_TOKENIZER_H

#include "base/file.h"
#include "tandem/tokenizer.h"

struct tnd_token {
    const char *text; /* borrowed from `file`, not terminated */
    uint32_t length;
    float score; /* of merging two tokens into this one: higher goes first */
};

struct tandem_tokenizer {
    struct tnd_token *tokens;
    int64_t n_tokens;
    int32_t bos; /* -1: none */
    int32_t eos;
    int32_t first_byte;  /* id of <0x00>; -1 when unknown bytes cannot be written */
    int32_t prefix;      /* token put before a text that is not empty, or -1 */
    uint32_t max_length; /* bytes of the longest token */
    uint32_t *slots;     /* hash table of ids + 1, open addressing; 0: free */
    size_t n_slots;      /* a power of two, more than n_tokens */
    struct tnd_file file;
};

/** Builds the hash table over `tokens`; of equal texts the lowest id is found. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_index(tandem_tokenizer *tokenizer, struct tandem_error *error);

/** Id of a token by its text, or -1. Any thread. */
int32_t tnd_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text, size_t n);

/** Frees everything but `file`. */
void tnd_tokenizer_free(tandem_tokenizer *tokenizer);

/** Merges neighbours in `ids` (n of them, shorter afterwards): of all pairs whose concatenation is
 *  a token the one with the highest score, the leftmost among equals, again and again. O(n log n).
 *  Errors: MEMORY. */
enum tandem_status tnd_tokenizer_merge(const tandem_tokenizer *tokenizer, int32_t *ids, size_t *n,
                                       struct tandem_error *error);

/** Reads llama2.c's tokenizer.bin from memory, which the tokenizer borrows. `vocabulary`: tokens
 *  expected; 0: as many as there are. Errors: FORMAT, TRUNCATED, MEMORY. */
enum tandem_status tnd_tokenizer_llama2c_read(const void *bytes, size_t n, const char *name,
                                              int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                              struct tandem_error *error);

#endif
