/* SPDX-License-Identifier: MIT
 * tokenizer.bin of llama2.c: the length of the longest token, then for each token its score, its
 * length and its bytes. Layout after tokenizer.py and run.c of karpathy/llama2.c; docs/formats.md
 * describes it. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

/* Ids that every such file has: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes (sentencepiece of
 * Llama). */
#define BOS_ID        1
#define EOS_ID        2
#define FIRST_BYTE_ID 3
#define BYTE_TOKENS   256
#define ENTRY_BYTES   8 /* score and length */
#define HEADER_BYTES  4

struct reader {
    const unsigned char *bytes;
    size_t n;
    size_t at;
    const char *name;
};

static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static enum tandem_status read_token(struct reader *reader, int64_t id, struct tnd_token *out,
                                     struct tandem_error *error)
{
    const size_t left = reader->n - reader->at;
    if (left < ENTRY_BYTES) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, reader->name, (int64_t)left, ENTRY_BYTES,
                             "%s: token %lld at byte %zu needs 8 bytes, the file has %zu left",
                             reader->name, (long long)id, reader->at, left);
    }
    const uint32_t score_bits = read_u32(reader->bytes + reader->at);
    const int64_t length = (int32_t)read_u32(reader->bytes + reader->at + 4);
    if (length < 0 || (uint64_t)length > left - ENTRY_BYTES) {
        return tnd_error_set(error, length < 0 ? TANDEM_E_FORMAT : TANDEM_E_TRUNCATED, reader->name,
                             length, (int64_t)(left - ENTRY_BYTES),
                             "%s: token %lld at byte %zu is %lld bytes long, the file has %zu left",
                             reader->name, (long long)id, reader->at, (long long)length,
                             left - ENTRY_BYTES);
    }
    out->text = (const char *)reader->bytes + reader->at + ENTRY_BYTES;
    out->length = (uint32_t)length;
    float score;
    memcpy(&score, &score_bits, sizeof(score));
    out->score = (double)score;
    out->type = tnd_token_byte(out) >= 0 ? TND_TOKEN_BYTE : TND_TOKEN_NORMAL;
    reader->at += ENTRY_BYTES + (size_t)length;
    return TANDEM_OK;
}

/* Reads all tokens into a list of at most `capacity`. */
static enum tandem_status read_tokens(struct reader *reader, int64_t vocabulary, int64_t capacity,
                                      tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    while (vocabulary > 0 ? tokenizer->n_tokens < vocabulary : reader->at < reader->n) {
        struct tnd_token token;
        if (tokenizer->n_tokens >= capacity) { /* more expected than the file can hold */
            if (capacity == TND_MAX_TOKENS) {
                return tnd_error_set(error, TANDEM_E_LIMIT, reader->name, vocabulary, capacity,
                                     "%s: more than %lld tokens", reader->name,
                                     (long long)capacity);
            }
            return tnd_error_set(error, TANDEM_E_TRUNCATED, reader->name, capacity, vocabulary,
                                 "%s: the file has room for at most %lld tokens, expected %lld",
                                 reader->name, (long long)capacity, (long long)vocabulary);
        }
        TND_TRY(read_token(reader, tokenizer->n_tokens, &token, error));
        tokenizer->tokens[tokenizer->n_tokens++] = token;
    }
    if (reader->at < reader->n) {
        return tnd_error_set(
            error, TANDEM_E_FORMAT, reader->name, (int64_t)reader->n, (int64_t)reader->at,
            "%s: %zu bytes follow the last of %lld tokens: the tokenizer of another "
            "model?",
            reader->name, reader->n - reader->at, (long long)vocabulary);
    }
    return TANDEM_OK;
}

static enum tandem_status fill(struct reader *reader, int64_t vocabulary,
                               tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    const size_t fit = (reader->n - HEADER_BYTES) / ENTRY_BYTES;
    const size_t capacity = fit < (size_t)TND_MAX_TOKENS ? fit : (size_t)TND_MAX_TOKENS;
    reader->at = HEADER_BYTES; /* the length of the longest token is counted again while reading */
    tokenizer->tokens = tnd_calloc(capacity, sizeof(tokenizer->tokens[0]));
    if (tokenizer->tokens == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, reader->name, (int64_t)capacity, 0,
                             "%s: no memory for %zu tokens", reader->name, capacity);
    }
    TND_TRY(read_tokens(reader, vocabulary, (int64_t)capacity, tokenizer, error));
    if (tokenizer->n_tokens <= EOS_ID) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, tokenizer->n_tokens, EOS_ID + 1,
                             "%s: %lld tokens, expected at least <unk>, <s> and </s>", reader->name,
                             (long long)tokenizer->n_tokens);
    }
    tokenizer->model = TND_MODEL_SCORES;
    tokenizer->bos = BOS_ID;
    tokenizer->eos = EOS_ID;
    tokenizer->adds_bos = true;
    tokenizer->unknown = 0;
    tokenizer->strip = TND_STRIP_ONE;
    tokenizer->restarts_at_bos = true;
    if (tokenizer->n_tokens >= FIRST_BYTE_ID + BYTE_TOKENS) {
        tokenizer->has_byte_fallback = true;
        for (int byte = 0; byte < BYTE_TOKENS; byte++) {
            tokenizer->byte_ids[byte] = FIRST_BYTE_ID + byte;
        }
    }
    TND_TRY(tnd_tokenizer_index(tokenizer, error));
    if (tnd_tokenizer_find(tokenizer, " ", 1) >= 0) {
        TND_TRY(tnd_tokenizer_add_step(
            tokenizer,
            (struct tnd_token_step){.kind = TND_TOKEN_STEP_PREPEND, .to = " ", .n_to = 1}, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_tokenizer_llama2c_read(const void *bytes, size_t n, const char *name,
                                              int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                              struct tandem_error *error)
{
    struct reader reader = {.bytes = bytes, .n = n, .at = 0, .name = name};
    if (n < HEADER_BYTES + ENTRY_BYTES) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, name, (int64_t)n,
                             HEADER_BYTES + ENTRY_BYTES,
                             "%s: %zu bytes are no llama2.c tokenizer, expected at least %d", name,
                             n, HEADER_BYTES + ENTRY_BYTES);
    }
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_tokenizer_new(name, &tokenizer, error));
    return tnd_tokenizer_end(fill(&reader, vocabulary, tokenizer, error), tokenizer, out_tokenizer);
}
