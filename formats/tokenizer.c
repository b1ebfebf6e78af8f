/* SPDX-License-Identifier: MIT
 * Text to token ids: the text is split at added tokens, the text between them is transformed by
 * steps, and each piece is encoded by the model. File formats are read elsewhere. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/tnd_tokenizer.h"

#define MAX_TEXT_BYTES (INT32_MAX / 2)

/* ---- opening and closing ---- */

static bool is_json(const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (at < n &&
           (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n')) {
        at++;
    }
    /* (a llama2.c file whose longest token has 123 bytes begins with '{' and zero bytes) */
    return at + 1 < n && bytes[at] == '{' && bytes[at + 1] != 0;
}

/* The first field of a sentencepiece model is a piece, whose first field is its text. */
static bool is_sentencepiece(const uint8_t *bytes, size_t n)
{
    return n > 2 && bytes[0] == 0x0a && bytes[1] != 0 && bytes[2] == 0x0a;
}

static enum tandem_status open_gguf(const char *path, tandem_tokenizer **out_tokenizer,
                                    struct tandem_error *error)
{
    tandem_source *source = NULL;
    TND_TRY(tandem_source_open(path, &source, error));
    const enum tandem_status status = tandem_tokenizer_from_source(source, out_tokenizer, error);
    tandem_source_close(source);
    return status;
}

/* A tokenizer may have fewer tokens than its model has rows, not more. */
static enum tandem_status check_vocabulary(const tandem_tokenizer *tokenizer, int64_t vocabulary,
                                           const char *path, struct tandem_error *error)
{
    if (vocabulary > 0 && tokenizer->n_tokens > vocabulary) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, tokenizer->n_tokens, vocabulary,
                             "%.90s: %lld tokens, the model has %lld: the tokenizer of another "
                             "model?",
                             path, (long long)tokenizer->n_tokens, (long long)vocabulary);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_tokenizer_read(const void *bytes, size_t n, const char *name,
                                      int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                      struct tandem_error *error)
{
    if (is_json(bytes, n) && tnd_tokenizer_tekken_is(bytes, n)) {
        return tnd_tokenizer_tekken_read(bytes, n, name, out_tokenizer, error);
    }
    if (is_json(bytes, n)) {
        return tnd_tokenizer_json_read(bytes, n, name, out_tokenizer, error);
    }
    if (tnd_tokenizer_wordpiece_is(name)) {
        return tnd_tokenizer_wordpiece_read(bytes, n, name, out_tokenizer, error);
    }
    if (is_sentencepiece(bytes, n)) {
        return tnd_tokenizer_sentencepiece_read(bytes, n, name, out_tokenizer, error);
    }
    if (tnd_tokenizer_tiktoken_is(bytes, n)) {
        return tnd_tokenizer_tiktoken_read(bytes, n, name, out_tokenizer, error);
    }
    return tnd_tokenizer_llama2c_read(bytes, n, name, vocabulary, out_tokenizer, error);
}

static enum tandem_status open_file(const char *path, int64_t vocabulary, struct tnd_file *file,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    TND_TRY(tnd_file_map(path, false, file, error));
    if (tnd_gguf_is(file->data, file->bytes)) {
        return open_gguf(path, out_tokenizer, error);
    }
    tnd_file_close(file); /* its texts are used as long as the tokenizer lives: a copy is safe */
    TND_TRY(tnd_file_map(path, true, file, error));
    return tnd_tokenizer_read(file->data, file->bytes, path, vocabulary, out_tokenizer, error);
}

static enum tandem_status open_path(const char *path, int64_t vocabulary,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    struct tnd_file file = {0};
    tandem_tokenizer *tokenizer = NULL;
    enum tandem_status status = open_file(path, vocabulary, &file, &tokenizer, error);
    if (status == TANDEM_OK) {
        status = check_vocabulary(tokenizer, vocabulary, path, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_tokenizer_read_config(path, tokenizer, error);
    }
    if (status != TANDEM_OK) {
        tnd_tokenizer_free(tokenizer);
        tnd_file_close(&file);
        return status;
    }
    tokenizer->file = file;
    *out_tokenizer = tokenizer;
    return TANDEM_OK;
}

/* Path of the i-th possible tokenizer file in a model's folder, the best first; empty: too long.
 * False after the last. `out_path` has PATH_MAX bytes. */
static bool path_in_folder(const char *folder, int i, char *out_path)
{
    static const char *const names[] = {"tokenizer.json", "tekken.json", "tokenizer.model",
                                        "vocab.json",     "vocab.txt",   "tokenizer.bin"};
    const int n = sizeof(names) / sizeof(names[0]);
    if (i < n && snprintf(out_path, PATH_MAX, "%s/%s", folder, names[i]) >= PATH_MAX) {
        out_path[0] = '\0';
    }
    return i < n;
}

/* Opens the first readable file of a folder; else returns the error of the first one that
 * exists. */
static enum tandem_status open_folder(const char *folder, int64_t vocabulary,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    char path[PATH_MAX];
    enum tandem_status first = TANDEM_OK;
    for (int i = 0; path_in_folder(folder, i, path); i++) {
        struct tandem_error other;
        if (!tnd_file_exists(path)) {
            continue;
        }
        const enum tandem_status status =
            open_path(path, vocabulary, out_tokenizer, first == TANDEM_OK ? error : &other);
        if (status == TANDEM_OK) {
            return status;
        }
        first = first == TANDEM_OK ? status : first;
    }
    return first != TANDEM_OK
               ? first
               : tnd_error_set(error, TANDEM_E_NOT_FOUND, folder, 0, 0,
                               "%.200s: a folder without tokenizer.json, tekken.json, "
                               "tokenizer.model, vocab.json, vocab.txt or tokenizer.bin",
                               folder);
}

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
    struct stat info;
    const bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return (is_folder ? open_folder : open_path)(path, vocabulary, out_tokenizer, error);
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

bool tandem_tokenizer_adds_bos(const tandem_tokenizer *tokenizer)
{
    return tokenizer != NULL && tokenizer->adds_bos;
}

bool tandem_tokenizer_adds_eos(const tandem_tokenizer *tokenizer)
{
    return tokenizer != NULL && tokenizer->adds_eos;
}

int32_t tandem_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text)
{
    if (tokenizer == NULL || text == NULL) {
        return -1;
    }
    const size_t n = strlen(text);
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        if (token->length == n && n > 0 && memcmp(token->text, text, n) == 0) {
            return (int32_t)id;
        }
    }
    return -1;
}

/* ---- encoding ---- */

struct encoder {
    const tandem_tokenizer *tokenizer;
    struct tnd_pieces pieces;
    struct tnd_pieces inner; /* of the text between normalized tokens */
    struct tnd_merger merger;
    struct tnd_ids ids;
    bool is_first;              /* nothing has been encoded before */
    const unsigned char *marks; /* {bytes of the text}: 1 where special tokens are text; NULL */
};

/* Finds the next token of an index in text[at, n), and its length; -1: none. */
static int32_t next_added(const struct tnd_prefix_index *index, const char *text, size_t n,
                          size_t *at, size_t *length)
{
    for (size_t i = *at; index->n > 0 && i < n; i++) {
        const unsigned byte = (unsigned char)text[i];
        if (index->first[byte] < index->first[byte + 1]) {
            const int32_t id = tnd_prefix_longest(index, text + i, n - i, length);
            if (id >= 0) {
                *at = i;
                return id;
            }
        }
    }
    *at = n;
    return -1;
}

/* The BOS or EOS token whose text is here, for files that do not state which tokens are special.
 * -1: neither. */
static int32_t role_here(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                         size_t *length)
{
    const int32_t roles[] = {tokenizer->bos, tokenizer->eos};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        const struct tnd_token *token = roles[i] >= 0 ? &tokenizer->tokens[roles[i]] : NULL;
        if (token != NULL && token->length > 0 && token->length <= n &&
            memcmp(token->text, text, token->length) == 0) {
            *length = token->length;
            return roles[i];
        }
    }
    return -1;
}

/* The next special token all of whose bytes are unmarked, or the next one of those that count in
 * marked text, too. */
static int32_t next_marked(const struct encoder *encoder, const char *text, size_t n, size_t *at,
                           size_t *length)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    for (size_t i = *at; i < n; i++) {
        int32_t id = tnd_prefix_longest(&tokenizer->specials, text + i, n - i, length);
        id = id >= 0 ? id : role_here(tokenizer, text + i, n - i, length);
        if (id >= 0 && memchr(encoder->marks + i, 1, *length) != NULL) {
            id = tokenizer->matches_inside
                     ? -1
                     : tnd_prefix_longest(&tokenizer->users, text + i, n - i, length);
        }
        if (id >= 0) {
            *at = i;
            return id;
        }
    }
    *at = n;
    return -1;
}

static void encode_pieces(struct encoder *encoder, const struct tnd_pieces *pieces)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    for (size_t i = 0; i < pieces->n; i++) {
        const char *text = pieces->text.bytes + pieces->items[i].start;
        const size_t n = pieces->items[i].end - pieces->items[i].start;
        encoder->ids.last_is_unknown = false; /* unknown characters of one piece become one token */
        switch (tokenizer->model) {
        case TND_MODEL_SCORES:
            tnd_scores_encode(tokenizer, text, n, &encoder->merger, &encoder->ids);
            break;
        case TND_MODEL_RANKS:
            tnd_ranks_encode(tokenizer, text, n, &encoder->merger, &encoder->ids);
            break;
        case TND_MODEL_UNIGRAM:
            tnd_unigram_encode(tokenizer, text, n, &encoder->ids);
            break;
        case TND_MODEL_WORDPIECE:
            tnd_wordpiece_encode(tokenizer, text, n, &encoder->ids);
            break;
        }
    }
    encoder->is_first = false;
}

/* Length without the white space that an added token includes. */
static size_t without_end(const char *text, size_t n)
{
    size_t kept = 0;
    for (size_t at = 0; at < n;) {
        const size_t space = tnd_utf8_space(text + at, n - at);
        at += space > 0 ? space : 1;
        kept = space > 0 ? kept : at;
    }
    return kept;
}

typedef enum tandem_status (*encode_fn)(struct encoder *encoder, const char *text, size_t n,
                                        struct tandem_error *error);

/* Calls `encode` with the text between tokens of `index`, and appends these tokens. */
static enum tandem_status encode_between(struct encoder *encoder,
                                         const struct tnd_prefix_index *index, const char *text,
                                         size_t n, encode_fn encode, struct tandem_error *error)
{
    const bool has_marks = encoder->marks != NULL && index == &encoder->tokenizer->specials;
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    for (size_t at = 0; at < n;) {
        size_t found = at;
        size_t length = 0;
        const int32_t id = has_marks ? next_marked(encoder, text, n, &found, &length)
                                     : next_added(index, text, n, &found, &length);
        const struct tnd_added *added =
            id >= 0 && tokenizer->added != NULL ? &tokenizer->added[id] : NULL;
        const size_t end =
            added != NULL && added->takes_left ? at + without_end(text + at, found - at) : found;
        if (end > at) {
            TND_TRY(encode(encoder, text + at, end - at, error));
        }
        at = found;
        if (id >= 0) {
            tnd_ids_add(&encoder->ids, id);
            encoder->is_first = false;
            at += length;
            for (size_t space = 1; added != NULL && added->takes_right && space > 0; at += space) {
                space = tnd_utf8_space(text + at, n - at);
            }
        }
    }
    return TANDEM_OK;
}

/* Encodes the text between normalized tokens. */
static enum tandem_status encode_inner(struct encoder *encoder, const char *text, size_t n,
                                       struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    encoder->inner.is_first = encoder->is_first;
    tnd_pieces_set(&encoder->inner, text, n);
    const size_t n_steps = tokenizer->n_steps - tokenizer->n_normalizing;
    if (n_steps > 0) {
        TND_TRY(tnd_steps_run(tokenizer->steps + tokenizer->n_normalizing, n_steps, &encoder->inner,
                              error));
    }
    encode_pieces(encoder, &encoder->inner);
    return TANDEM_OK;
}

/* Encodes the text between added tokens. */
static enum tandem_status encode_text(struct encoder *encoder, const char *text, size_t n,
                                      struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    struct tnd_pieces *pieces = &encoder->pieces;
    pieces->is_first = encoder->is_first;
    tnd_pieces_set(pieces, text, n);
    if (tokenizer->normalized.n == 0) {
        TND_TRY(tnd_steps_run(tokenizer->steps, tokenizer->n_steps, pieces, error));
        encode_pieces(encoder, pieces);
        return TANDEM_OK;
    }
    TND_TRY(tnd_steps_run(tokenizer->steps, tokenizer->n_normalizing, pieces, error));
    for (size_t i = 0; i < pieces->n; i++) {
        const struct tnd_piece piece = pieces->items[i];
        TND_TRY(encode_between(encoder, &tokenizer->normalized, pieces->text.bytes + piece.start,
                               piece.end - piece.start, encode_inner, error));
    }
    return TANDEM_OK;
}

static const struct tnd_prefix_index *index_of(const tandem_tokenizer *tokenizer,
                                               bool special_tokens)
{
    static const struct tnd_prefix_index none = {0};
    return special_tokens              ? &tokenizer->specials
           : tokenizer->matches_inside ? &none
                                       : &tokenizer->users;
}

static enum tandem_status check_memory(const struct encoder *encoder, size_t n,
                                       struct tandem_error *error)
{
    if (encoder->ids.failed || encoder->merger.failed || encoder->pieces.failed ||
        encoder->inner.failed) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "tokenizer", (int64_t)n, 0,
                             "tokenizer: no memory to encode %zu bytes", n);
    }
    return TANDEM_OK;
}

static enum tandem_status encode_all(struct encoder *encoder, const char *text, size_t n,
                                     const struct tandem_encode_options *options,
                                     struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    const struct tnd_prefix_index *index = index_of(tokenizer, options->special_tokens);
    encoder->is_first = true;
    if (options->add_bos && tokenizer->bos >= 0) {
        tnd_ids_add(&encoder->ids, tokenizer->bos);
    }
    TND_TRY(encode_between(encoder, index, text, n, encode_text, error));
    if (options->add_eos && tokenizer->eos >= 0) {
        tnd_ids_add(&encoder->ids, tokenizer->eos);
    }
    return check_memory(encoder, n, error);
}

static enum tandem_status hand_out(const struct tnd_ids *ids, int32_t *out_ids, size_t capacity,
                                   size_t *out_n, struct tandem_error *error)
{
    const size_t n_copied = ids->n < capacity ? ids->n : capacity;
    if (n_copied > 0) {
        memcpy(out_ids, ids->items, n_copied * sizeof(ids->items[0]));
    }
    *out_n = ids->n;
    if (ids->n > capacity) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "tokenizer", (int64_t)ids->n, (int64_t)capacity,
                             "tokenizer: the text has %zu tokens, there is room for %zu", ids->n,
                             capacity);
    }
    return TANDEM_OK;
}

static enum tandem_status check_arguments(const tandem_tokenizer *tokenizer, const char *text,
                                          size_t n, const struct tandem_encode_options *options,
                                          const int32_t *out_ids, size_t capacity,
                                          const size_t *out_n, struct tandem_error *error)
{
    if (tokenizer == NULL || (text == NULL && n > 0) || (out_ids == NULL && capacity > 0) ||
        out_n == NULL || n > MAX_TEXT_BYTES || options == NULL ||
        options->size != sizeof(*options)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tokenizer", (int64_t)n, MAX_TEXT_BYTES,
                             "tandem_tokenizer_encode: expected a tokenizer, at most %d bytes of "
                             "text, got %zu, options with their size and a place for the ids",
                             MAX_TEXT_BYTES, n);
    }
    return TANDEM_OK;
}

static void end(struct encoder *encoder)
{
    tnd_pieces_fini(&encoder->pieces);
    tnd_pieces_fini(&encoder->inner);
    tnd_merger_fini(&encoder->merger);
    tnd_free(encoder->ids.items);
}

static enum tandem_status encode_and_end(struct encoder *encoder, const char *text, size_t n,
                                         const struct tandem_encode_options *options,
                                         int32_t *out_ids, size_t capacity, size_t *out_n,
                                         struct tandem_error *error)
{
    enum tandem_status status = encode_all(encoder, text, n, options, error);
    if (status == TANDEM_OK) {
        status = hand_out(&encoder->ids, out_ids, capacity, out_n, error);
    }
    end(encoder);
    return status;
}

enum tandem_status tandem_tokenizer_encode_with(const tandem_tokenizer *tokenizer, const char *text,
                                                size_t n,
                                                const struct tandem_encode_options *options,
                                                int32_t *out_ids, size_t capacity, size_t *out_n,
                                                struct tandem_error *error)
{
    TND_TRY(check_arguments(tokenizer, text, n, options, out_ids, capacity, out_n, error));
    struct encoder encoder = {.tokenizer = tokenizer};
    return encode_and_end(&encoder, text, n, options, out_ids, capacity, out_n, error);
}

enum tandem_status tnd_tokenizer_encode_marked(const tandem_tokenizer *tokenizer, const char *text,
                                               size_t n, const unsigned char *marks,
                                               int32_t *out_ids, size_t capacity, size_t *out_n,
                                               struct tandem_error *error)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    options.special_tokens = true;
    TND_TRY(check_arguments(tokenizer, text, n, &options, out_ids, capacity, out_n, error));
    size_t length = 0;
    const int32_t first = n > 0 ? role_here(tokenizer, text, n, &length) : -1;
    const bool has_bos = first >= 0 && first == tokenizer->bos && memchr(marks, 1, length) == NULL;
    options.add_bos = tokenizer->adds_bos && !has_bos;
    struct encoder encoder = {.tokenizer = tokenizer, .marks = marks};
    return encode_and_end(&encoder, text, n, &options, out_ids, capacity, out_n, error);
}

enum tandem_status tandem_tokenizer_encode(const tandem_tokenizer *tokenizer, const char *text,
                                           size_t n, bool add_bos, int32_t *out_ids,
                                           size_t capacity, size_t *out_n,
                                           struct tandem_error *error)
{
    struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    options.add_bos = add_bos;
    return tandem_tokenizer_encode_with(tokenizer, text, n, &options, out_ids, capacity, out_n,
                                        error);
}

/* Each text begins as one of its own. */
static enum tandem_status encode_both(struct encoder *encoder, const char *first, size_t n_first,
                                      const char *second, size_t n_second, size_t *out_second,
                                      struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = encoder->tokenizer;
    const struct tnd_prefix_index *index = index_of(tokenizer, false);
    tnd_ids_add(&encoder->ids, tokenizer->bos);
    encoder->is_first = true;
    TND_TRY(encode_between(encoder, index, first, n_first, encode_text, error));
    for (int i = 0; i < tokenizer->n_between; i++) {
        tnd_ids_add(&encoder->ids, tokenizer->eos);
    }
    *out_second = tokenizer->tells_pairs ? encoder->ids.n : 0;
    encoder->is_first = true;
    TND_TRY(encode_between(encoder, index, second, n_second, encode_text, error));
    tnd_ids_add(&encoder->ids, tokenizer->eos);
    return check_memory(encoder, n_first + n_second, error);
}

enum tandem_status tandem_tokenizer_encode_pair(const tandem_tokenizer *tokenizer,
                                                const char *first, size_t n_first,
                                                const char *second, size_t n_second,
                                                int32_t *out_ids, size_t capacity, size_t *out_n,
                                                size_t *out_second, struct tandem_error *error)
{
    const struct tandem_encode_options options = TANDEM_ENCODE_OPTIONS_INIT;
    size_t begin = 0;
    TND_TRY(check_arguments(tokenizer, first, n_first, &options, out_ids, capacity, out_n, error));
    TND_TRY(check_arguments(tokenizer, second, n_second, &options, out_ids, capacity, out_second,
                            error));
    if (tokenizer->n_between == 0 || tokenizer->bos < 0 || tokenizer->eos < 0) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "tokenizer", 0, 0,
                             "tokenizer: its file does not say how two texts become one");
    }
    struct encoder encoder = {.tokenizer = tokenizer};
    enum tandem_status status =
        encode_both(&encoder, first, n_first, second, n_second, &begin, error);
    if (status == TANDEM_OK) {
        *out_second = begin;
        status = hand_out(&encoder.ids, out_ids, capacity, out_n, error);
    }
    end(&encoder);
    return status;
}
