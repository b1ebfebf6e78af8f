/* SPDX-License-Identifier: MIT
 * Tokenizers in a source's values: the keys tokenizer.ggml.* of GGUF (docs/gguf.md of
 * ggml-org/ggml). Everything is copied, so that the source may go. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/source.h"
#include "formats/tnd_tokenizer.h"

struct lists {
    struct tandem_array tokens;
    struct tandem_array scores;
    struct tandem_array types;
    struct tandem_array merges;
    bool has_scores;
    bool has_types;
    bool has_merges;
};

static bool boolean(const tandem_source *source, const char *key, bool otherwise)
{
    int64_t value = 0;
    return tandem_source_integer(source, key, &value) ? value != 0 : otherwise;
}

/* The id stored under a key; -1: none, or not a token. */
static int32_t id_of(const tandem_source *source, const char *key,
                     const tandem_tokenizer *tokenizer, int32_t otherwise)
{
    int64_t id = otherwise;
    (void)tandem_source_integer(source, key, &id);
    return id >= 0 && id < tokenizer->n_tokens ? (int32_t)id : -1;
}

static enum tandem_status find_lists(const tandem_source *source, struct lists *lists,
                                     struct tandem_error *error)
{
    const char *prefix = "tokenizer.ggml";
    if (!tandem_source_array(source, "tokenizer.ggml.tokens", &lists->tokens) ||
        lists->tokens.kind != TANDEM_VALUE_TEXT || lists->tokens.count < 1 ||
        lists->tokens.count > INT32_MAX / 4) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "tokenizer.ggml.tokens", 0, 1,
                             "%s.tokens: expected a list of texts, which is the vocabulary",
                             prefix);
    }
    lists->has_scores = tandem_source_array(source, "tokenizer.ggml.scores", &lists->scores);
    lists->has_types = tandem_source_array(source, "tokenizer.ggml.token_type", &lists->types);
    lists->has_merges = tandem_source_array(source, "tokenizer.ggml.merges", &lists->merges);
    const int64_t n = lists->tokens.count;
    if ((lists->has_scores && lists->scores.count != n) ||
        (lists->has_types && lists->types.count != n)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, prefix,
                             lists->has_scores ? lists->scores.count : lists->types.count, n,
                             "%s: %lld tokens, %lld scores and %lld types, expected as many of "
                             "each",
                             prefix, (long long)n,
                             lists->has_scores ? (long long)lists->scores.count : 0,
                             lists->has_types ? (long long)lists->types.count : 0);
    }
    return TANDEM_OK;
}

static enum tandem_status copy_token(tandem_tokenizer *tokenizer, const struct lists *lists,
                                     int64_t id, struct tandem_error *error)
{
    const char *text = NULL;
    size_t n = 0;
    int64_t type = TND_TOKEN_NORMAL;
    double score = 0;
    if (!tandem_array_text(&lists->tokens, id, &text, &n) || n > TND_MAX_TOKEN_BYTES) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "tokenizer.ggml.tokens", (int64_t)n,
                             TND_MAX_TOKEN_BYTES,
                             "tokenizer.ggml.tokens: token %lld is %zu bytes long, expected at "
                             "most %d",
                             (long long)id, n, TND_MAX_TOKEN_BYTES);
    }
    if (lists->has_types) {
        (void)tandem_array_integer(&lists->types, id, &type);
    }
    if (lists->has_scores) {
        (void)tandem_array_number(&lists->scores, id, &score);
    }
    if (type < TND_TOKEN_NORMAL || type > TND_TOKEN_BYTE) {
        type = TND_TOKEN_NORMAL; /* 0: none stated */
    }
    char *copy = tnd_tokenizer_keep(tokenizer, text, n);
    if (copy == NULL) {
        return tnd_tokenizer_no_memory("tokenizer.ggml.tokens", n, error);
    }
    if (tokenizer->is_byte_level && type == TND_TOKEN_NORMAL) {
        n = tnd_byte_level_decode(text, n, copy);
    }
    tokenizer->tokens[id] = (struct tnd_token){.text = copy,
                                               .length = (uint32_t)n,
                                               .type = (enum tnd_token_type)type,
                                               .score = (double)(float)score};
    return TANDEM_OK;
}

static enum tandem_status copy_tokens(tandem_tokenizer *tokenizer, const struct lists *lists,
                                      struct tandem_error *error)
{
    TND_TRY(tnd_tokenizer_reserve(tokenizer, lists->tokens.count, "tokenizer.ggml.tokens", error));
    for (int64_t id = 0; id < lists->tokens.count; id++) {
        TND_TRY(copy_token(tokenizer, lists, id, error));
    }
    return tnd_tokenizer_index(tokenizer, error);
}

/* "left right"; the blank that separates them is not the first byte. */
static enum tandem_status copy_merges(tandem_tokenizer *tokenizer, const struct lists *lists,
                                      struct tandem_error *error)
{
    const int64_t n = lists->has_merges ? lists->merges.count : 0;
    if (n > INT32_MAX) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "tokenizer.ggml.merges", n, INT32_MAX,
                             "tokenizer.ggml.merges: %lld merges are too many", (long long)n);
    }
    TND_TRY(tnd_merges_reserve(tokenizer, (size_t)n, "tokenizer.ggml.merges", error));
    for (int64_t i = 0; i < n; i++) {
        const char *text = NULL;
        size_t length = 0;
        const bool is_text = tandem_array_text(&lists->merges, i, &text, &length);
        const char *blank = is_text && length > 2 ? memchr(text + 1, ' ', length - 1) : NULL;
        if (blank == NULL) {
            return tnd_error_set(error, TANDEM_E_FORMAT, "tokenizer.ggml.merges", i, 0,
                                 "tokenizer.ggml.merges: merge %lld is not two tokens with a blank "
                                 "between them",
                                 (long long)i);
        }
        const size_t n_left = (size_t)(blank - text);
        /* Merges that make no token occur in published files; nothing can come of them. */
        (void)tnd_merges_add_texts(tokenizer, text, n_left, blank + 1, length - n_left - 1,
                                   (uint32_t)i);
    }
    return TANDEM_OK;
}

static enum tandem_status fill_sentencepiece(const tandem_source *source,
                                             tandem_tokenizer *tokenizer, const struct lists *lists,
                                             struct tandem_error *error)
{
    tokenizer->model = TND_MODEL_SCORES;
    tokenizer->escapes_blanks = true;
    tokenizer->has_byte_fallback = true;
    const bool adds_blank = boolean(source, "tokenizer.ggml.add_space_prefix", true);
    tokenizer->strip = adds_blank ? TND_STRIP_ONE : TND_STRIP_NONE;
    TND_TRY(copy_tokens(tokenizer, lists, error));
    tnd_tokenizer_find_byte_tokens(tokenizer, false);
    if (adds_blank) {
        TND_TRY(tnd_tokenizer_add_step(
            tokenizer,
            (struct tnd_token_step){.kind = TND_TOKEN_STEP_PREPEND, .to = " ", .n_to = 1}, error));
    }
    return tnd_tokenizer_add_step(tokenizer,
                                  (struct tnd_token_step){.kind = TND_TOKEN_STEP_REPLACE,
                                                          .from = " ",
                                                          .n_from = 1,
                                                          .to = TND_BLANK_MARK,
                                                          .n_to = TND_BLANK_MARK_N},
                                  error);
}

static enum tandem_status fill_byte_level(const tandem_source *source, tandem_tokenizer *tokenizer,
                                          const struct lists *lists, struct tandem_error *error)
{
    const char *pre = "default";
    tokenizer->model = TND_MODEL_RANKS;
    tokenizer->is_byte_level = true;
    (void)tandem_source_text(source, "tokenizer.ggml.pre", &pre);
    if (boolean(source, "tokenizer.ggml.add_space_prefix", false)) {
        TND_TRY(tnd_tokenizer_add_step(
            tokenizer,
            (struct tnd_token_step){.kind = TND_TOKEN_STEP_PREPEND, .to = " ", .n_to = 1}, error));
    }
    TND_TRY(tnd_tokenizer_add_pretokenizer(tokenizer, pre, error));
    TND_TRY(copy_tokens(tokenizer, lists, error));
    tnd_byte_level_find_bytes(tokenizer);
    return copy_merges(tokenizer, lists, error);
}

/* WordPiece: tokens that begin a word have U+2581 before them, those within one nothing; names in
 * brackets stand as they are (convert_hf_to_gguf.py of ggml-org/llama.cpp). */
static enum tandem_status fill_wordpiece(const tandem_source *source, tandem_tokenizer *tokenizer,
                                         const struct lists *lists, struct tandem_error *error)
{
    TND_TRY(copy_tokens(tokenizer, lists, error));
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        struct tnd_token *token = &tokenizer->tokens[id];
        const uint32_t n = token->length;
        const bool begins =
            n > TND_BLANK_MARK_N && memcmp(token->text, TND_BLANK_MARK, TND_BLANK_MARK_N) == 0;
        const bool is_name = n > 1 && token->text[0] == '[' && token->text[n - 1] == ']';
        if (token->type != TND_TOKEN_NORMAL || n == 0 || (is_name && !begins)) {
            continue;
        }
        if (begins) {
            token->text += TND_BLANK_MARK_N;
            token->length -= TND_BLANK_MARK_N;
            continue;
        }
        char *text = tnd_arena_alloc(&tokenizer->memory, n + 3, 1);
        if (text == NULL) {
            return tnd_tokenizer_no_memory("tokenizer.ggml.tokens", n + 3, error);
        }
        memcpy(text, "##", 2);
        memcpy(text + 2, token->text, n);
        text[n + 2] = '\0';
        token->text = text;
        token->length = n + 2;
    }
    tokenizer->unknown = id_of(source, "tokenizer.ggml.unknown_token_id", tokenizer, -1);
    tokenizer->bos = id_of(source, "tokenizer.ggml.cls_token_id", tokenizer, -1);
    /* spelled so */
    tokenizer->eos = id_of(source, "tokenizer.ggml.seperator_token_id", tokenizer, -1);
    return tnd_bert_finish(tokenizer, error);
}

/* Unigram, with sentencepiece's normalizer. */
static enum tandem_status fill_unigram(const tandem_source *source, tandem_tokenizer *tokenizer,
                                       const struct lists *lists, struct tandem_error *error)
{
    const struct tnd_source_value *rules =
        tnd_source_value_of(source, "tokenizer.ggml.precompiled_charsmap", TND_VALUE_ARRAY);
    const size_t n = rules != NULL ? rules->array->n_bytes : 0;
    struct tnd_charsmap *charsmap = tnd_arena_alloc(&tokenizer->memory, sizeof(*charsmap), 16);
    char *copy =
        tnd_tokenizer_keep(tokenizer, rules != NULL ? (const char *)rules->array->bytes : "", n);
    if (charsmap == NULL || copy == NULL) {
        return tnd_tokenizer_no_memory("tokenizer.ggml.precompiled_charsmap", n, error);
    }
    *charsmap = (struct tnd_charsmap){
        .adds_prefix = boolean(source, "tokenizer.ggml.add_space_prefix", true),
        .removes_blanks = boolean(source, "tokenizer.ggml.remove_extra_whitespaces", true),
        .escapes_blanks = true,
        .users = &tokenizer->users};
    TND_TRY(tnd_charsmap_read((const uint8_t *)copy, n, "tokenizer.ggml.precompiled_charsmap",
                              charsmap, error));
    tokenizer->model = TND_MODEL_UNIGRAM;
    tokenizer->sums_in_float = true;
    tokenizer->fuses_unknown = true;
    tokenizer->matches_inside = true;
    tokenizer->escapes_blanks = true;
    tokenizer->strip = TND_STRIP_EACH;
    tokenizer->n_between = 2;
    TND_TRY(copy_tokens(tokenizer, lists, error));
    tnd_tokenizer_find_byte_tokens(tokenizer, false);
    tnd_unigram_prepare(tokenizer);
    tokenizer->unknown = id_of(source, "tokenizer.ggml.unknown_token_id", tokenizer, -1);
    return tnd_tokenizer_add_step(
        tokenizer, (struct tnd_token_step){.kind = TND_TOKEN_STEP_CHARSMAP, .charsmap = charsmap},
        error);
}

/* Sets the roles that keys state; others keep the default of the kind or file. */
static void set_roles(const tandem_source *source, tandem_tokenizer *tokenizer)
{
    tokenizer->bos = id_of(source, "tokenizer.ggml.bos_token_id", tokenizer, tokenizer->bos);
    tokenizer->eos = id_of(source, "tokenizer.ggml.eos_token_id", tokenizer, tokenizer->eos);
    tokenizer->adds_bos = boolean(source, "tokenizer.ggml.add_bos_token", tokenizer->adds_bos);
    tokenizer->adds_eos = boolean(source, "tokenizer.ggml.add_eos_token", tokenizer->adds_eos);
}

/* The file that tandem_source_add_tokenizer has put there. */
static enum tandem_status read_file(const struct tnd_source_array *array,
                                    const tandem_source *source, tandem_tokenizer **out_tokenizer,
                                    struct tandem_error *error)
{
    struct tandem_source_tensor embedding = {.ne = {0}};
    tandem_tokenizer *tokenizer = NULL;
    uint8_t *bytes = tnd_alloc(array->n_bytes + 1); /* which the tokenizer may borrow */
    if (bytes == NULL) {
        return tnd_tokenizer_no_memory(TND_TOKENIZER_FILE_KEY, array->n_bytes, error);
    }
    memcpy(bytes, array->bytes, array->n_bytes);
    bytes[array->n_bytes] = 0;
    struct tnd_file copy = {.data = bytes, .bytes = array->n_bytes};
    (void)tandem_source_find(source, "token_embd.weight", &embedding);
    const enum tandem_status status = tnd_tokenizer_read(
        copy.data, copy.bytes, TND_TOKENIZER_FILE_KEY, embedding.ne[1], &tokenizer, error);
    if (status != TANDEM_OK) {
        tnd_file_close(&copy);
        return status;
    }
    tokenizer->file = copy;
    set_roles(source, tokenizer);
    *out_tokenizer = tokenizer;
    return TANDEM_OK;
}

static enum tandem_status fill(const tandem_source *source, tandem_tokenizer *tokenizer,
                               struct tandem_error *error)
{
    struct lists lists = {0};
    const char *model = "";
    (void)tandem_source_text(source, "tokenizer.ggml.model", &model);
    TND_TRY(find_lists(source, &lists, error));
    if (strcmp(model, "llama") == 0) {
        TND_TRY(fill_sentencepiece(source, tokenizer, &lists, error));
    } else if (strcmp(model, "gpt2") == 0) {
        TND_TRY(fill_byte_level(source, tokenizer, &lists, error));
    } else if (strcmp(model, "bert") == 0 || strcmp(model, "t5") == 0) {
        TND_TRY(
            (model[0] == 'b' ? fill_wordpiece : fill_unigram)(source, tokenizer, &lists, error));
        set_roles(source, tokenizer);
        return tnd_tokenizer_index_prefixes(tokenizer, "tokenizer.ggml.tokens", error);
    } else {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "tokenizer.ggml.model", 0, 0,
                             "tokenizer.ggml.model: \"%.40s\" is not supported, expected "
                             "\"llama\", \"gpt2\", \"bert\" or \"t5\"",
                             model);
    }
    const bool is_llama = tokenizer->model == TND_MODEL_SCORES;
    tokenizer->bos = is_llama ? 1 : -1;
    tokenizer->eos = is_llama ? 2 : -1;
    tokenizer->unknown =
        is_llama ? id_of(source, "tokenizer.ggml.unknown_token_id", tokenizer, 0) : -1;
    tokenizer->adds_bos = is_llama || tokenizer->adds_bos; /* (byte-level: by its name in "pre") */
    set_roles(source, tokenizer);
    return tnd_tokenizer_index_prefixes(tokenizer, "tokenizer.ggml.tokens", error);
}

enum tandem_status tandem_tokenizer_from_source(const tandem_source *source,
                                                tandem_tokenizer **out_tokenizer,
                                                struct tandem_error *error)
{
    if (source == NULL || out_tokenizer == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tokenizer", 0, 0,
                             "tandem_tokenizer_from_source: expected a source and a place for the "
                             "tokenizer");
    }
    tandem_tokenizer *tokenizer = NULL;
    const struct tnd_source_value *file =
        tnd_source_value_of(source, TND_TOKENIZER_FILE_KEY, TND_VALUE_ARRAY);
    if (file != NULL && file->array->item_type == TND_GGUF_U8) {
        const enum tandem_status status = read_file(file->array, source, out_tokenizer, error);
        const char *model = NULL;
        if (status != TANDEM_E_UNSUPPORTED_BUILD ||
            !tandem_source_text(source, "tokenizer.ggml.model", &model)) {
            return status;
        }
    }
    TND_TRY(tnd_tokenizer_new("tokenizer.ggml", &tokenizer, error));
    return tnd_tokenizer_end(fill(source, tokenizer, error), tokenizer, out_tokenizer);
}
