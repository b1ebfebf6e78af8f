/* SPDX-License-Identifier: MIT
 * Text to token ids and back, for tokenizers in the manner of sentencepiece: characters that are
 * tokens, bytes for those that are not, then merging (tokenizer_merge.c). File formats are read
 * elsewhere. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define MAX_TEXT_BYTES (INT32_MAX / 2)

/* ---- opening and closing ---- */

enum tandem_status tandem_tokenizer_open(const char *path, int64_t vocabulary,
                                         tandem_tokenizer **out_tokenizer,
                                         struct tandem_error *error)
{
    if (path == NULL || out_tokenizer == NULL || vocabulary < 0) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "tokenizer", vocabulary, 0,
            "tandem_tokenizer_open: expected a path, a place for the tokenizer and "
            "a vocabulary of 0 or more, got %lld",
            (long long)vocabulary);
    }
    struct tnd_file file;
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_file_map(path, &file, error));
    const enum tandem_status status =
        tnd_tokenizer_llama2c_read(file.data, file.bytes, path, vocabulary, &tokenizer, error);
    if (status != TANDEM_OK) {
        tnd_file_close(&file);
        return status;
    }
    tokenizer->file = file;
    *out_tokenizer = tokenizer;
    return TANDEM_OK;
}

void tnd_tokenizer_free(tandem_tokenizer *tokenizer)
{
    if (tokenizer != NULL) {
        tnd_free(tokenizer->tokens);
        tnd_free(tokenizer->slots);
        tnd_free(tokenizer);
    }
}

void tandem_tokenizer_close(tandem_tokenizer *tokenizer)
{
    if (tokenizer != NULL) {
        tnd_file_close(&tokenizer->file);
        tnd_tokenizer_free(tokenizer);
    }
}

int64_t tandem_tokenizer_vocabulary(const tandem_tokenizer *tokenizer)
{
    return tokenizer == NULL ? 0 : tokenizer->n_tokens;
}

int32_t tandem_tokenizer_bos(const tandem_tokenizer *tokenizer)
{
    return tokenizer == NULL ? -1 : tokenizer->bos;
}

int32_t tandem_tokenizer_eos(const tandem_tokenizer *tokenizer)
{
    return tokenizer == NULL ? -1 : tokenizer->eos;
}

/* ---- tokens by their text ---- */

/* Slot of the token with this text, or the free slot where it would stand. */
static size_t find_slot(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    size_t at = (size_t)tnd_hash_bytes(text, n, 0) & (tokenizer->n_slots - 1);
    while (tokenizer->slots[at] != 0) {
        const struct tnd_token *token = &tokenizer->tokens[tokenizer->slots[at] - 1];
        if (token->length == n && memcmp(token->text, text, n) == 0) {
            break;
        }
        at = (at + 1) & (tokenizer->n_slots - 1);
    }
    return at;
}

enum tandem_status tnd_tokenizer_index(tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    size_t n_slots = 16;
    while (n_slots < (size_t)tokenizer->n_tokens * 2) {
        n_slots *= 2;
    }
    tokenizer->slots = tnd_calloc(n_slots, sizeof(tokenizer->slots[0]));
    if (tokenizer->slots == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "tokenizer", (int64_t)n_slots, 0,
                             "tokenizer: no memory for %lld tokens",
                             (long long)tokenizer->n_tokens);
    }
    tokenizer->n_slots = n_slots;
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        const size_t at = find_slot(tokenizer, token->text, token->length);
        if (tokenizer->slots[at] == 0) {
            tokenizer->slots[at] = (uint32_t)id + 1;
        }
    }
    return TANDEM_OK;
}

int32_t tnd_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text, size_t n)
{
    return (int32_t)tokenizer->slots[find_slot(tokenizer, text, n)] - 1;
}

/* ---- encoding ---- */

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 character at `text`: up to 4; stray bytes count as characters of their own
 * kind, so that any bytes can be encoded. */
static size_t character_length(const char *text, size_t n)
{
    size_t length = 1;
    while (length < n && length < 4 && is_continuation(text[length])) {
        length++;
    }
    return length;
}

/* Appends a character: its token, else its bytes, else <unk>. */
static size_t append_character(const tandem_tokenizer *tokenizer, const char *text, size_t length,
                               int32_t *ids, size_t n)
{
    const int32_t id = tnd_tokenizer_find(tokenizer, text, length);
    if (id >= 0) {
        ids[n++] = id;
    } else if (tokenizer->first_byte >= 0) {
        for (size_t i = 0; i < length; i++) {
            ids[n++] = tokenizer->first_byte + (unsigned char)text[i];
        }
    } else {
        ids[n++] = 0;
    }
    return n;
}

enum tandem_status tandem_tokenizer_encode(const tandem_tokenizer *tokenizer, const char *text,
                                           size_t n, bool add_bos, int32_t *out_ids,
                                           size_t capacity, size_t *out_n,
                                           struct tandem_error *error)
{
    if (tokenizer == NULL || (text == NULL && n > 0) || (out_ids == NULL && capacity > 0) ||
        out_n == NULL || n > MAX_TEXT_BYTES) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tokenizer", (int64_t)n, MAX_TEXT_BYTES,
                             "tandem_tokenizer_encode: expected a tokenizer, at most %d bytes of "
                             "text, got %zu, and a place for the ids",
                             MAX_TEXT_BYTES, n);
    }
    int32_t *ids = tnd_calloc(n + 2, sizeof(ids[0])); /* one a byte, the beginning and the prefix */
    if (ids == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "tokenizer", (int64_t)n, 0,
                             "tokenizer: no memory to encode %zu bytes", n);
    }
    size_t n_ids = 0;
    if (add_bos && tokenizer->bos >= 0) {
        ids[n_ids++] = tokenizer->bos;
    }
    if (n > 0 && tokenizer->prefix >= 0) {
        ids[n_ids++] = tokenizer->prefix;
    }
    for (size_t at = 0; at < n;) {
        const size_t length = character_length(text + at, n - at);
        n_ids = append_character(tokenizer, text + at, length, ids, n_ids);
        at += length;
    }
    enum tandem_status status = tnd_tokenizer_merge(tokenizer, ids, &n_ids, error);
    if (status == TANDEM_OK) {
        const size_t n_copied = n_ids < capacity ? n_ids : capacity;
        if (n_copied > 0) {
            memcpy(out_ids, ids, n_copied * sizeof(ids[0]));
        }
        *out_n = n_ids;
        if (n_ids > capacity) {
            status = tnd_error_set(
                error, TANDEM_E_LIMIT, "tokenizer", (int64_t)n_ids, (int64_t)capacity,
                "tokenizer: the text has %zu tokens, there is room for %zu", n_ids, capacity);
        }
    }
    tnd_free(ids);
    return status;
}

/* ---- decoding ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a token like <0x0A> stands for, or -1. */
static int byte_of(const struct tnd_token *token)
{
    if (token->length != 6 || memcmp(token->text, "<0x", 3) != 0 || token->text[5] != '>') {
        return -1;
    }
    const int high = hex_digit(token->text[3]);
    const int low = hex_digit(token->text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

size_t tandem_tokenizer_decode(const tandem_tokenizer *tokenizer, int32_t previous, int32_t id,
                               char *out, size_t capacity)
{
    if (tokenizer == NULL || id < 0 || id >= tokenizer->n_tokens) {
        return 0;
    }
    const struct tnd_token *token = &tokenizer->tokens[id];
    const char *text = token->text;
    size_t n = token->length;
    char byte;
    if (n > 0 && text[0] == ' ' && previous >= 0 && previous == tokenizer->bos) {
        text++;
        n--;
    }
    if (byte_of(token) >= 0) {
        byte = (char)byte_of(token);
        text = &byte;
        n = 1;
    }
    if (out != NULL && capacity > 0 && n > 0) {
        memcpy(out, text, n < capacity ? n : capacity);
    }
    return n;
}
