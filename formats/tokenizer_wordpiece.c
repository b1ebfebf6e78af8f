/* SPDX-License-Identifier: MIT
 * WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018): a word becomes the longest tokens
 * from its left end, those that go on within a word with a prefix. BERT's way of preparing a text,
 * and vocab.txt, a token a line. Meaning: documentation of huggingface/tokenizers. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define MAX_WORD_CHARACTERS 100 /* longer ones are unknown */
#define MAX_PIECE_BYTES     512 /* of a word's rest with the prefix: 4 bytes a character */

static size_t count_characters(const char *text, size_t n)
{
    size_t count = 0;
    for (size_t at = 0; at < n; at += tnd_utf8_loose_length(text + at, n - at)) {
        count++;
    }
    return count;
}

/* The longest token at `at` of a word; sets `out_length` to its length in the word. */
static int32_t longest(const tandem_tokenizer *tokenizer, const char *word, size_t n, size_t at,
                       size_t *out_length)
{
    char piece[MAX_PIECE_BYTES];
    const size_t prefix = at == 0 ? 0 : tokenizer->n_continuation;
    size_t most = n - at;
    most = prefix + most > tokenizer->max_length
               ? tokenizer->max_length -
                     (prefix < tokenizer->max_length ? prefix : tokenizer->max_length)
               : most;
    most = prefix + most > sizeof(piece) ? sizeof(piece) - prefix : most;
    memcpy(piece, tokenizer->continuation, prefix);
    memcpy(piece + prefix, word + at, most);
    for (size_t length = most; length > 0; length--) {
        const bool is_whole = at + length == n || ((unsigned char)word[at + length] & 0xc0) != 0x80;
        const int32_t id = is_whole ? tnd_tokenizer_find(tokenizer, piece, prefix + length) : -1;
        if (id >= 0) {
            *out_length = length;
            return id;
        }
    }
    return -1;
}

void tnd_wordpiece_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                          struct tnd_ids *ids)
{
    const size_t begin = ids->n;
    bool is_known = n > 0 && count_characters(text, n) <= tokenizer->max_word;
    for (size_t at = 0, length = 0; is_known && at < n; at += length) {
        const int32_t id = longest(tokenizer, text, n, at, &length);
        is_known = id >= 0;
        if (is_known) {
            tnd_ids_add(ids, id);
        }
    }
    if (!is_known && n > 0 && !ids->failed) {
        ids->n = begin;
        if (tokenizer->unknown >= 0) {
            tnd_ids_add(ids, tokenizer->unknown);
        }
    }
}

enum tandem_status tnd_wordpiece_prepare(tandem_tokenizer *tokenizer, const char *continuation,
                                         size_t max_word, struct tandem_error *error)
{
    const size_t n = strlen(continuation);
    if (n >= MAX_PIECE_BYTES / 4) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "tokenizer", (int64_t)n, MAX_PIECE_BYTES / 4,
                             "tokenizer: tokens within a word begin with %zu bytes", n);
    }
    tokenizer->model = TND_MODEL_WORDPIECE;
    tokenizer->max_word = max_word;
    tokenizer->n_continuation = n;
    tokenizer->continuation = tnd_tokenizer_keep(tokenizer, continuation, n);
    return tokenizer->continuation == NULL ? tnd_tokenizer_no_memory("tokenizer", n, error)
                                           : TANDEM_OK;
}

/* ---- BERT's steps ---- */

enum tandem_status tnd_bert_add_normalizer(tandem_tokenizer *tokenizer, struct tnd_bert_text how,
                                           struct tandem_error *error)
{
    const struct {
        bool is_on;
        struct tnd_token_step step;
    } rows[] = {
        {how.cleans || how.isolates_chinese,
         {.kind = TND_TOKEN_STEP_CLEAN, .left = how.cleans, .right = how.isolates_chinese}},
        {how.strips_accents, {.kind = TND_TOKEN_STEP_FORM, .form = TND_FORM_NFD}},
        {how.strips_accents, {.kind = TND_TOKEN_STEP_MARKS}},
        {how.lowers, {.kind = TND_TOKEN_STEP_LOWER}},
    };
    TND_TRY(tnd_unicode_check(error));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_on) {
            TND_TRY(tnd_tokenizer_add_step(tokenizer, rows[i].step, error));
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_bert_add_pretokenizer(tandem_tokenizer *tokenizer,
                                             struct tandem_error *error)
{
    struct tnd_token_step blanks = {.kind = TND_TOKEN_STEP_SPLIT, .split = TND_SPLIT_REMOVED};
    TND_TRY(tnd_pattern_new("\\s", &blanks.pattern, error));
    TND_TRY(tnd_tokenizer_add_step(tokenizer, blanks, error));
    return tnd_tokenizer_add_split(tokenizer, TND_PUNCTUATION, error);
}

/* A token with a capital letter: the vocabulary tells words by their case. Names in brackets, such
 * as [CLS], do not count. */
static bool has_case(const tandem_tokenizer *tokenizer)
{
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        const bool is_name =
            token->type != TND_TOKEN_NORMAL ||
            (token->length > 1 && token->text[0] == '[' && token->text[token->length - 1] == ']');
        for (uint32_t i = 0; !is_name && i < token->length; i++) {
            if (token->text[i] >= 'A' && token->text[i] <= 'Z') {
                return true;
            }
        }
    }
    return false;
}

static int32_t role(const tandem_tokenizer *tokenizer, const char *name, int32_t otherwise)
{
    return otherwise >= 0 ? otherwise : tandem_tokenizer_find(tokenizer, name);
}

enum tandem_status tnd_bert_finish(tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    const bool lowers = !has_case(tokenizer);
    const struct tnd_bert_text how = {
        .cleans = true, .isolates_chinese = true, .strips_accents = lowers, .lowers = lowers};
    TND_TRY(tnd_wordpiece_prepare(tokenizer, "##", MAX_WORD_CHARACTERS, error));
    TND_TRY(tnd_bert_add_normalizer(tokenizer, how, error));
    TND_TRY(tnd_bert_add_pretokenizer(tokenizer, error));
    tokenizer->unknown = role(tokenizer, "[UNK]", tokenizer->unknown);
    tokenizer->bos = role(tokenizer, "[CLS]", tokenizer->bos);
    tokenizer->eos = role(tokenizer, "[SEP]", tokenizer->eos);
    for (int i = 0; i < 2; i++) { /* files may leave types out */
        const int32_t id = i == 0 ? tokenizer->bos : tokenizer->eos;
        if (id >= 0) {
            tokenizer->tokens[id].type = TND_TOKEN_CONTROL;
        }
    }
    tokenizer->adds_bos = tokenizer->bos >= 0;
    tokenizer->adds_eos = tokenizer->eos >= 0;
    tokenizer->joins_with_blank = true;
    tokenizer->n_between = 1;
    tokenizer->tells_pairs = true;
    tnd_free(tokenizer->slots); /* of the texts as a GGUF file has them */
    tokenizer->slots = NULL;
    return tnd_tokenizer_index(tokenizer, error);
}

/* ---- vocab.txt ---- */

static int64_t count_lines(const char *text, size_t n)
{
    int64_t lines = n > 0 && text[n - 1] != '\n';
    for (size_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

static enum tandem_status add_lines(tandem_tokenizer *tokenizer, const char *text, size_t n,
                                    const char *name, struct tandem_error *error)
{
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    int64_t id = 0;
    for (size_t at = 0; at < n; id++) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t length = end == NULL ? n - at : (size_t)(end - (text + at));
        const size_t kept = length > 0 && text[at + length - 1] == '\r' ? length - 1 : length;
        if (kept > TND_MAX_TOKEN_BYTES) {
            return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)kept, TND_MAX_TOKEN_BYTES,
                                 "%s: token %lld is %zu bytes long, expected at most %d", name,
                                 (long long)id, kept, TND_MAX_TOKEN_BYTES);
        }
        char *copy = tnd_tokenizer_keep(tokenizer, text + at, kept);
        if (copy == NULL) {
            return tnd_tokenizer_no_memory(name, kept, error);
        }
        enum tnd_token_type type = kept > 0 ? TND_TOKEN_NORMAL : TND_TOKEN_UNUSED;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            type = strcmp(copy, names[i]) == 0 ? TND_TOKEN_CONTROL : type;
        }
        tokenizer->tokens[id] =
            (struct tnd_token){.text = copy, .length = (uint32_t)kept, .type = type};
        at += length + (end != NULL);
    }
    return TANDEM_OK;
}

static enum tandem_status fill(tandem_tokenizer *tokenizer, const char *text, size_t n,
                               const char *name, struct tandem_error *error)
{
    TND_TRY(tnd_tokenizer_reserve(tokenizer, count_lines(text, n), name, error));
    TND_TRY(add_lines(tokenizer, text, n, name, error));
    TND_TRY(tnd_bert_finish(tokenizer, error));
    if (tokenizer->unknown < 0 || tokenizer->bos < 0 || tokenizer->eos < 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, tokenizer->n_tokens, 0,
                             "%s: expected a token a line, among them [UNK], [CLS] and [SEP]",
                             name);
    }
    return tnd_tokenizer_index_prefixes(tokenizer, name, error);
}

enum tandem_status tnd_tokenizer_wordpiece_read(const void *bytes, size_t n, const char *name,
                                                tandem_tokenizer **out_tokenizer,
                                                struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_tokenizer_new(name, &tokenizer, error));
    return tnd_tokenizer_end(fill(tokenizer, bytes, n, name, error), tokenizer, out_tokenizer);
}

bool tnd_tokenizer_wordpiece_is(const char *name)
{
    const char *slash = strrchr(name, '/');
    return strcmp(slash == NULL ? name : slash + 1, "vocab.txt") == 0;
}
