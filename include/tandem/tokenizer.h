/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * Text to token ids and back. */
#ifndef TANDEM_TOKENIZER_H
#define TANDEM_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/formats.h"

TANDEM_BEGIN_C

/** Owned by its opener. Never changed, so that any number of threads may use it. */
typedef struct tandem_tokenizer tandem_tokenizer;

/** Opens a tokenizer file, whose format is detected from its contents: tokenizer.bin of llama2.c,
 * tokenizer.model of sentencepiece (BPE, unigram, characters) or of Llama 3 (tiktoken),
 * tokenizer.json of Hugging Face (BPE, Unigram, WordPiece), vocab.json with merges.txt beside it
 * (GPT-2), vocab.txt of that name (BERT), a GGUF file, or the folder of a model that has one of
 * them. `vocabulary`: number of tokens that the model has (missing in llama2.c files), or 0 if it
 * is in the file; a tokenizer may have fewer tokens than its model, not more. See
 * docs/tokenizers.md. Any thread. Errors: FILE, FORMAT, TRUNCATED, UNSUPPORTED_BUILD (a part that
 * this build or this library does not have), NOT_FOUND (a folder without a tokenizer), LIMIT,
 * MEMORY. */
TANDEM_API enum tandem_status tandem_tokenizer_open(const char *path, int64_t vocabulary,
                                                    tandem_tokenizer **out_tokenizer,
                                                    struct tandem_error *error);
/** The tokenizer in the values of a model file (GGUF). Nothing is borrowed from the source. The
 *  caller owns the tokenizer. Any thread. Errors: FORMAT (the source has none), UNSUPPORTED_BUILD,
 *  MEMORY. */
TANDEM_API enum tandem_status tandem_tokenizer_from_source(const tandem_source *source,
                                                           tandem_tokenizer **out_tokenizer,
                                                           struct tandem_error *error);
/** Adds the tokenizer at `path` (as tandem_tokenizer_open) to a source that has none, for
 * tandem_source_save_gguf. `out_is_common` (may be NULL): the values are those that other programs
 * read too; else only Tandem does. One thread at a time. Errors: as tandem_tokenizer_open, and
 * ARGUMENT, UNSUPPORTED_BUILD (a tokenizer of several files that the values cannot express). */
TANDEM_API enum tandem_status tandem_source_add_tokenizer(tandem_source *source, const char *path,
                                                          bool *out_is_common,
                                                          struct tandem_error *error);
/** Frees a tokenizer; no stream may use it any more. NULL is allowed. Never fails. One thread at a
 * time. */
TANDEM_API void tandem_tokenizer_close(tandem_tokenizer *tokenizer);

/** Number of tokens. Never fails. Any thread. */
TANDEM_API int64_t tandem_tokenizer_vocabulary(const tandem_tokenizer *tokenizer);
/** Ids that begin and end a text, or -1. Never fail. Any thread. */
TANDEM_API int32_t tandem_tokenizer_bos(const tandem_tokenizer *tokenizer);
TANDEM_API int32_t tandem_tokenizer_eos(const tandem_tokenizer *tokenizer);
/** Whether a text begins with the beginning token, and ends with the end token (programs that
 * continue a text leave the latter out): as in the file, or by its kind of tokenizer. Never fail.
 * Any thread. */
TANDEM_API bool tandem_tokenizer_adds_bos(const tandem_tokenizer *tokenizer);
TANDEM_API bool tandem_tokenizer_adds_eos(const tandem_tokenizer *tokenizer);
/** Id of the token with exactly this text ("<|im_end|>"). Never fails: -1 when there is none.
 *  O(vocabulary). Any thread. */
TANDEM_API int32_t tandem_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text);

/** Encodes `n` bytes, which may be any bytes. Special tokens are not recognised: "<s>" is text.
 * Writes at most `capacity` ids and stores the number of all ids in `out_n`; LIMIT when that is
 * more than `capacity`. `add_bos` prepends the beginning token. O(n log n). Errors: ARGUMENT, LIMIT
 * (also: a pattern of the tokenizer takes too long), MEMORY. Any thread. */
TANDEM_API enum tandem_status tandem_tokenizer_encode(const tandem_tokenizer *tokenizer,
                                                      const char *text, size_t n, bool add_bos,
                                                      int32_t *out_ids, size_t capacity,
                                                      size_t *out_n, struct tandem_error *error);
/** Options of tandem_tokenizer_encode_with. */
struct tandem_encode_options {
    size_t size;  /**< sizeof(struct tandem_encode_options); 0 is an error */
    bool add_bos; /**< prepends the beginning token */
    bool add_eos; /**< appends the end token */
    /** Recognises special tokens such as "<|im_start|>" in the text. For templates; not for
     * untrusted text. */
    bool special_tokens;
};
#define TANDEM_ENCODE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct tandem_encode_options), false, false, false                                  \
    }
/** tandem_tokenizer_encode with options (NULL: none). Any thread. Errors: as there, and ABI. */
TANDEM_API enum tandem_status
tandem_tokenizer_encode_with(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                             const struct tandem_encode_options *options, int32_t *out_ids,
                             size_t capacity, size_t *out_n, struct tandem_error *error);

/** Encodes two texts as one, such as a question and a document for a reranker, with the tokens that
 * the file prescribes around and between them; special tokens are not recognised. `out_second`:
 * where the second one begins, if the model distinguishes them (tandem_session_set_second), else 0.
 * Any thread. Errors: as tandem_tokenizer_encode, and UNSUPPORTED_BUILD (the file does not support
 * pairs). */
TANDEM_API enum tandem_status
tandem_tokenizer_encode_pair(const tandem_tokenizer *tokenizer, const char *first, size_t n_first,
                             const char *second, size_t n_second, int32_t *out_ids, size_t capacity,
                             size_t *out_n, size_t *out_second, struct tandem_error *error);

/** Bytes of one token that follows `previous` (-1: none; after the beginning token one leading
 * blank is dropped). Writes at most `capacity` bytes, not terminated; returns how many there are.
 * Never fails: an invalid id has no bytes. Any thread. */
TANDEM_API size_t tandem_tokenizer_decode(const tandem_tokenizer *tokenizer, int32_t previous,
                                          int32_t id, char *out, size_t capacity);

/** Decodes token by token and returns only whole UTF-8 characters: the first bytes of one wait in
 * the stream for the rest. Invalid UTF-8 passes unchanged. Borrows the tokenizer. The layout is
 * fixed for good. One thread at a time. */
struct tandem_token_stream {
    const tandem_tokenizer *tokenizer; /**< borrowed */
    bool at_begin;      /**< at the beginning of a text; its first blank may be the tokenizer's */
    bool shows_special; /**< whether special tokens have text; may be changed */
    unsigned char n_pending; /**< waiting bytes; private, like the next member */
    char pending[3];         /**< beginning of a character */
};
/** A stream before its first token. Never fails. Any thread. */
TANDEM_API struct tandem_token_stream tandem_token_stream_begin(const tandem_tokenizer *tokenizer,
                                                                bool at_begin);
/** Decodes one token. Returns the number of bytes now complete, not terminated; they are in `out`
 * if that is at most `capacity`, else the token was not consumed. 256 bytes suffice for all tokens
 * of known models. Never fails. One thread at a time per stream. */
TANDEM_API size_t tandem_token_stream_next(struct tandem_token_stream *stream, int32_t id,
                                           char *out, size_t capacity);
/** Writes the waiting bytes (at most 3) at the end of the text, as tandem_token_stream_next does.
 * Never fails. One thread at a time per stream. */
TANDEM_API size_t tandem_token_stream_end(struct tandem_token_stream *stream, char *out,
                                          size_t capacity);

TANDEM_END_C
#endif
