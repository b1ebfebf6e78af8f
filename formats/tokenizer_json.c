/* SPDX-License-Identifier: MIT
 * tokenizer.json of Hugging Face's tokenizers with a BPE or Unigram model: vocabulary, merges,
 * added tokens.
 * Layout: what huggingface/tokenizers writes; its steps are read in tokenizer_json_steps.c. */
#include "formats/tokenizer_json.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#ifdef TND_HAVE_CJSON

#define MAX_BYTES         ((size_t)256 << 20)
#define MAX_DEPTH         32
/* A parsed value takes 64 bytes of memory; real files have at least 6 bytes per value. */
#define MIN_BYTES_A_VALUE 3
#define SPARE_VALUES      65536

const char *tnd_hf_text(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

bool tnd_hf_flag(const cJSON *object, const char *key, bool otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : otherwise;
}

/* A whole number in [0, limit), else -1. */
static int64_t whole_number(const cJSON *item, int64_t limit)
{
    const double value = cJSON_IsNumber(item) ? cJSON_GetNumberValue(item) : -1;
    return value >= 0 && value < (double)limit && value == (double)(int64_t)value ? (int64_t)value
                                                                                  : -1;
}

static enum tandem_status wrong(const struct tnd_hf_reader *reader, const char *what,
                                struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, 0, 0, "%.90s: %s", reader->name,
                         what);
}

/* ---- parsing ---- */

/* Looks at size, depth and number of values before memory is spent on them. */
static enum tandem_status check_size(const struct tnd_hf_reader *reader, const char *text,
                                     struct tandem_error *error)
{
    size_t n_values = 1;
    size_t depth = 0;
    size_t deepest = 0;
    bool in_text = false;
    for (size_t i = 0; i < reader->n_bytes; i++) {
        const char c = text[i];
        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '{' || c == '[') {
            n_values++;
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        } else if (c == ',') {
            n_values++;
        }
    }
    const size_t most = reader->n_bytes / MIN_BYTES_A_VALUE + SPARE_VALUES;
    if (reader->n_bytes > MAX_BYTES || deepest > MAX_DEPTH || n_values > most) {
        return tnd_error_set(
            error, TANDEM_E_LIMIT, reader->name, (int64_t)reader->n_bytes, MAX_BYTES,
            "%.90s: %zu bytes, %zu levels and %zu values, expected at most %zu, "
            "%d and %zu",
            reader->name, reader->n_bytes, deepest, n_values, MAX_BYTES, MAX_DEPTH, most);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_hf_parse(const struct tnd_hf_reader *reader, const char *text,
                                cJSON **out_root, struct tandem_error *error)
{
    const char *end = NULL;
    TND_TRY(check_size(reader, text, error));
    errno = 0; /* ENOMEM afterwards: cJSON does not say why it fails */
    *out_root = cJSON_ParseWithLengthOpts(text, reader->n_bytes, &end, 0);
    if (*out_root == NULL && errno == ENOMEM) {
        return tnd_error_set(error, TANDEM_E_MEMORY, reader->name, (int64_t)reader->n_bytes, 0,
                             "%.90s: no memory for its values", reader->name);
    }
    if (*out_root == NULL) {
        const size_t at = end == NULL ? 0 : (size_t)(end - text);
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, (int64_t)at,
                             (int64_t)reader->n_bytes, "%.90s: no JSON from byte %zu on",
                             reader->name, at);
    }
    return TANDEM_OK;
}

/* ---- tokens ---- */

/* A token in a vocabulary: BPE {"text": id}, Unigram [["text", score], ...]. */
struct entry {
    const char *text; /* NULL: wrong */
    int64_t id;       /* -1: wrong */
    double score;
};

static struct entry entry_of(const cJSON *item, int64_t index, int64_t limit)
{
    if (item->string != NULL) {
        return (struct entry){item->string, whole_number(item, limit), 0.0};
    }
    const cJSON *score = item->child == NULL ? NULL : item->child->next;
    return (struct entry){cJSON_GetStringValue(item->child), cJSON_IsNumber(score) ? index : -1,
                          cJSON_GetNumberValue(score)};
}

/* The highest id, or -1 after an error. */
static enum tandem_status find_highest(const struct tnd_hf_reader *reader, const cJSON *vocab,
                                       const cJSON *added, int64_t *out, struct tandem_error *error)
{
    const cJSON *item = NULL;
    /* A file of n bytes has fewer than n tokens; gaps between ids are allowed for. */
    const int64_t limit = (int64_t)reader->n_bytes;
    int64_t index = 0;
    *out = -1;
    cJSON_ArrayForEach(item, vocab)
    {
        const struct entry entry = entry_of(item, index++, limit);
        if (entry.text == NULL || entry.id < 0) {
            return wrong(reader, "an id of the vocabulary is no number below the file's size",
                         error);
        }
        *out = entry.id > *out ? entry.id : *out;
    }
    cJSON_ArrayForEach(item, added)
    {
        const int64_t id = whole_number(cJSON_GetObjectItemCaseSensitive(item, "id"), limit);
        if (id < 0 || tnd_hf_text(item, "content") == NULL) {
            return wrong(reader, "an added token has no content, or no id below the file's size",
                         error);
        }
        *out = id > *out ? id : *out;
    }
    return *out < 0 ? wrong(reader, "the vocabulary is empty", error) : TANDEM_OK;
}

static enum tandem_status set_token(const struct tnd_hf_reader *reader, const char *text,
                                    int64_t id, double score, enum tnd_token_type type,
                                    struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    size_t n = strlen(text);
    if (n > TND_MAX_TOKEN_BYTES) {
        return wrong(reader, "a token is more than 4096 bytes long", error);
    }
    char *copy = tnd_tokenizer_keep(tokenizer, text, n);
    if (copy == NULL) {
        return tnd_tokenizer_no_memory(reader->name, n, error);
    }
    if (tokenizer->is_byte_level && type == TND_TOKEN_NORMAL) {
        n = tnd_byte_level_decode(text, n, copy);
    }
    tokenizer->tokens[id] =
        (struct tnd_token){.text = copy, .length = (uint32_t)n, .type = type, .score = score};
    return TANDEM_OK;
}

static enum tandem_status set_added(const struct tnd_hf_reader *reader, const cJSON *item,
                                    struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const int64_t id = whole_number(cJSON_GetObjectItemCaseSensitive(item, "id"), INT32_MAX);
    const bool is_special = tnd_hf_flag(item, "special", false);
    const bool is_known = tokenizer->tokens[id].type != TND_TOKEN_UNUSED;
    tokenizer->added[id] = (struct tnd_added){
        .is_outside_model = !is_known,
        .is_normalized = !is_special && tnd_hf_flag(item, "normalized", !is_special),
        .takes_left = tnd_hf_flag(item, "lstrip", false),
        .takes_right = tnd_hf_flag(item, "rstrip", false)};
    if (tnd_hf_flag(item, "single_word", false)) {
        return tnd_hf_unsupported(reader, "added token with single_word",
                                  tnd_hf_text(item, "content"), error);
    }
    return set_token(reader, tnd_hf_text(item, "content"), id, tokenizer->tokens[id].score,
                     is_special ? TND_TOKEN_CONTROL : TND_TOKEN_USER, error);
}

/* A normalized token is searched for in normalized text and decoded to it, so its text goes through
 * the same steps. */
static enum tandem_status normalize_added(const struct tnd_hf_reader *reader,
                                          struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    struct tnd_pieces pieces = {.is_first = true};
    enum tandem_status status = TANDEM_OK;
    for (int64_t id = 0; id < tokenizer->n_tokens && status == TANDEM_OK; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        struct tnd_added *added = &tokenizer->added[id];
        if (!added->is_normalized || tokenizer->n_normalizing == 0) {
            continue;
        }
        tnd_pieces_set(&pieces, token->text, token->length);
        status = tnd_steps_run(tokenizer->steps, tokenizer->n_normalizing, &pieces, error);
        if (status == TANDEM_OK && pieces.text.n > 0 && pieces.text.n <= TND_MAX_TOKEN_BYTES) {
            added->text = tnd_tokenizer_keep(tokenizer, pieces.text.bytes, pieces.text.n);
            added->length = (uint32_t)pieces.text.n;
        }
        if (pieces.failed || (added->length > 0 && added->text == NULL)) {
            status = tnd_tokenizer_no_memory(reader->name, pieces.text.n, error);
        }
    }
    tnd_pieces_fini(&pieces);
    return status;
}

static enum tandem_status read_tokens(const struct tnd_hf_reader *reader, const cJSON *vocab,
                                      const cJSON *added, struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const cJSON *item = NULL;
    int64_t highest = -1;
    TND_TRY(find_highest(reader, vocab, added, &highest, error));
    TND_TRY(tnd_tokenizer_reserve(tokenizer, highest + 1, reader->name, error));
    tokenizer->added = tnd_calloc((size_t)highest + 1, sizeof(tokenizer->added[0]));
    if (tokenizer->added == NULL) {
        return tnd_tokenizer_no_memory(reader->name, (size_t)highest + 1, error);
    }
    int64_t index = 0;
    cJSON_ArrayForEach(item, vocab)
    {
        const struct entry entry = entry_of(item, index++, INT32_MAX);
        TND_TRY(set_token(reader, entry.text, entry.id, entry.score, TND_TOKEN_NORMAL, error));
    }
    cJSON_ArrayForEach(item, added)
    {
        TND_TRY(set_added(reader, item, error));
    }
    TND_TRY(normalize_added(reader, error));
    TND_TRY(tnd_tokenizer_index(tokenizer, error));
    if (tokenizer->is_byte_level) {
        tnd_byte_level_find_bytes(tokenizer);
    } else {
        tnd_tokenizer_find_byte_tokens(tokenizer, tokenizer->has_byte_fallback);
    }
    return tnd_tokenizer_index_prefixes(tokenizer, reader->name, error);
}

/* ---- merges ---- */

/* "left right" or ["left", "right"] */
static bool add_merge(tandem_tokenizer *tokenizer, const cJSON *item, uint32_t rank)
{
    const char *left = cJSON_GetStringValue(item);
    const char *right = NULL;
    size_t n_left = 0;
    if (left != NULL) {
        const char *blank = left[0] == '\0' ? NULL : strchr(left + 1, ' ');
        n_left = blank == NULL ? 0 : (size_t)(blank - left);
        right = blank == NULL ? NULL : blank + 1;
    } else if (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 2) {
        left = cJSON_GetStringValue(item->child);
        right = cJSON_GetStringValue(item->child->next);
        n_left = left == NULL ? 0 : strlen(left);
    }
    return right != NULL && n_left > 0 &&
           tnd_merges_add_texts(tokenizer, left, n_left, right, strlen(right), rank);
}

static enum tandem_status read_merges(const struct tnd_hf_reader *reader, const cJSON *merges,
                                      struct tandem_error *error)
{
    const int n = cJSON_GetArraySize(merges);
    const cJSON *item = NULL;
    uint32_t rank = 0;
    TND_TRY(tnd_merges_reserve(reader->tokenizer, (size_t)n, reader->name, error));
    cJSON_ArrayForEach(item, merges)
    {
        if (!add_merge(reader->tokenizer, item, rank)) {
            return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, rank, n,
                                 "%.90s: merge %u of %d is not two tokens that make a token",
                                 reader->name, rank, n);
        }
        rank++;
    }
    return TANDEM_OK;
}

static bool is_absent(const cJSON *model, const char *key)
{
    const char *text = tnd_hf_text(model, key);
    return text == NULL || text[0] == '\0';
}

/* Refuses unsupported options of BPE. */
static enum tandem_status check_bpe(const struct tnd_hf_reader *reader, const cJSON *model,
                                    struct tandem_error *error)
{
    const cJSON *dropout = cJSON_GetObjectItemCaseSensitive(model, "dropout");
    if (!is_absent(model, "continuing_subword_prefix") || !is_absent(model, "end_of_word_suffix")) {
        return tnd_hf_unsupported(reader, "model with", "continuing_subword_prefix or suffix",
                                  error);
    }
    if (cJSON_IsNumber(dropout) && cJSON_GetNumberValue(dropout) != 0.0) {
        return tnd_hf_unsupported(reader, "model with", "dropout", error);
    }
    return TANDEM_OK;
}

static enum tandem_status read_bpe(const struct tnd_hf_reader *reader, const cJSON *root,
                                   const cJSON *model, struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    const cJSON *merges = cJSON_GetObjectItemCaseSensitive(model, "merges");
    TND_TRY(check_bpe(reader, model, error));
    if (!cJSON_IsObject(vocab) || !cJSON_IsArray(merges)) {
        return wrong(reader, "expected a model with a vocab and merges", error);
    }
    tokenizer->model = TND_MODEL_RANKS;
    tokenizer->fuses_unknown = tnd_hf_flag(model, "fuse_unk", false);
    tokenizer->whole_words = tnd_hf_flag(model, "ignore_merges", false);
    TND_TRY(
        read_tokens(reader, vocab, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"), error));
    TND_TRY(read_merges(reader, merges, error));
    tokenizer->unknown = tandem_tokenizer_find(tokenizer, tnd_hf_text(model, "unk_token"));
    return TANDEM_OK;
}

static enum tandem_status read_unigram(const struct tnd_hf_reader *reader, const cJSON *root,
                                       const cJSON *model, struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    if (!cJSON_IsArray(vocab) || tokenizer->is_byte_level) {
        return wrong(reader, "expected Unigram with a list of tokens and without ByteLevel", error);
    }
    tokenizer->model = TND_MODEL_UNIGRAM;
    tokenizer->fuses_unknown = true;
    TND_TRY(
        read_tokens(reader, vocab, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"), error));
    tokenizer->unknown = (int32_t)whole_number(cJSON_GetObjectItemCaseSensitive(model, "unk_id"),
                                               tokenizer->n_tokens);
    tnd_unigram_prepare(tokenizer);
    return TANDEM_OK;
}

static enum tandem_status read_wordpiece(const struct tnd_hf_reader *reader, const cJSON *root,
                                         const cJSON *model, struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    const cJSON *most = cJSON_GetObjectItemCaseSensitive(model, "max_input_chars_per_word");
    const char *prefix = tnd_hf_text(model, "continuing_subword_prefix");
    const char *unknown = tnd_hf_text(model, "unk_token");
    const int64_t max_word = most == NULL ? 100 : whole_number(most, 101);
    if (!cJSON_IsObject(vocab) || tokenizer->is_byte_level || max_word < 1) {
        return wrong(reader,
                     "expected WordPiece with a vocab, words of at most 100 characters and without "
                     "ByteLevel",
                     error);
    }
    TND_TRY(
        tnd_wordpiece_prepare(tokenizer, prefix == NULL ? "##" : prefix, (size_t)max_word, error));
    TND_TRY(
        read_tokens(reader, vocab, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"), error));
    tokenizer->unknown = tandem_tokenizer_find(tokenizer, unknown == NULL ? "[UNK]" : unknown);
    return tokenizer->unknown >= 0 ? TANDEM_OK
                                   : wrong(reader, "the unk_token of WordPiece is no token", error);
}

static enum tandem_status read_model(const struct tnd_hf_reader *reader, const cJSON *root,
                                     struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
    const char *type = tnd_hf_text(model, "type"); /* old files have none */
    const bool is_unigram = type != NULL && strcmp(type, "Unigram") == 0;
    const bool is_wordpiece = type != NULL && strcmp(type, "WordPiece") == 0;
    if (type != NULL && !is_unigram && !is_wordpiece && strcmp(type, "BPE") != 0) {
        return tnd_hf_unsupported(reader, "model", type, error);
    }
    tokenizer->has_byte_fallback = tnd_hf_flag(model, "byte_fallback", false);
    tokenizer->model = is_wordpiece ? TND_MODEL_WORDPIECE : tokenizer->model; /* decoders ask */
    TND_TRY(tnd_hf_read_steps(reader, root, error));
    TND_TRY(tnd_hf_read_decoder(reader, cJSON_GetObjectItemCaseSensitive(root, "decoder"), error));
    TND_TRY((is_unigram     ? read_unigram
             : is_wordpiece ? read_wordpiece
                            : read_bpe)(reader, root, model, error));
    tnd_hf_find_roles(root, tokenizer);
    return TANDEM_OK;
}

/* Makes a tokenizer of a tree, which is freed. */
static enum tandem_status read_root(struct tnd_hf_reader *reader, cJSON *root,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    enum tandem_status status = tnd_tokenizer_new(reader->name, &reader->tokenizer, error);
    if (status == TANDEM_OK) {
        status = read_model(reader, root, error);
    }
    cJSON_Delete(root);
    return tnd_tokenizer_end(status, reader->tokenizer, out_tokenizer);
}

enum tandem_status tnd_tokenizer_vocab_read(const void *bytes, size_t n,
                                            const struct tnd_hf_files *files, const char *name,
                                            tandem_tokenizer **out_tokenizer,
                                            struct tandem_error *error)
{
    struct tnd_hf_reader reader = {.name = name, .n_bytes = n};
    cJSON *root = NULL;
    TND_TRY(tnd_hf_parse(&reader, bytes, &root, error));
    const enum tandem_status status = tnd_hf_from_vocabulary(&reader, files, &root, error);
    if (status != TANDEM_OK) {
        cJSON_Delete(root);
        return status;
    }
    reader.n_bytes += files->n_config; /* (which may name tokens with higher ids) */
    return read_root(&reader, root, out_tokenizer, error);
}

enum tandem_status tnd_tokenizer_json_read(const void *bytes, size_t n, const char *name,
                                           tandem_tokenizer **out_tokenizer,
                                           struct tandem_error *error)
{
    struct tnd_hf_reader reader = {.name = name, .n_bytes = n};
    cJSON *root = NULL;
    TND_TRY(tnd_hf_parse(&reader, bytes, &root, error));
    if (tnd_hf_is_vocabulary(root)) {
        cJSON_Delete(root);
        return tnd_hf_read_beside(bytes, n, name, out_tokenizer, error);
    }
    return read_root(&reader, root, out_tokenizer, error);
}

#else

enum tandem_status tnd_tokenizer_json_read(const void *bytes, size_t n, const char *name,
                                           tandem_tokenizer **out_tokenizer,
                                           struct tandem_error *error)
{
    (void)bytes;
    (void)out_tokenizer;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, name, (int64_t)n, 0,
                         "%.90s: this build has no cJSON (libcjson-dev), so it cannot read "
                         "tokenizer.json",
                         name);
}

#endif
