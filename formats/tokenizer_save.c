/* SPDX-License-Identifier: MIT
 * A tokenizer as values of a source, so that a GGUF file has it inside: the keys tokenizer.ggml.*
 * that every program reads (docs/gguf.md of ggml-org/ggml), where they say all of it; else the
 * file itself, which is read again as it is. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/source.h"
#include "formats/tnd_tokenizer.h"

/* ---- lists in GGUF's encoding ---- */

static void add_u64(struct tnd_text *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        tnd_text_add_char(out, (char)(value >> (8 * i) & 0xff));
    }
}

/* A token as files write it. */
static void add_token(const tandem_tokenizer *tokenizer, int64_t id, struct tnd_text *out)
{
    const struct tnd_token *token = &tokenizer->tokens[id];
    if (tokenizer->is_byte_level && token->type == TND_TOKEN_NORMAL) {
        tnd_byte_level_encode(token->text, token->length, out);
    } else {
        tnd_text_add_bytes(out, token->text, token->length);
    }
}

static enum tandem_status set_list(tandem_source *source, const char *key, uint32_t type,
                                   int64_t count, struct tnd_text *bytes,
                                   struct tandem_error *error)
{
    enum tandem_status status =
        bytes->failed ? tnd_tokenizer_no_memory(key, bytes->n, error) : TANDEM_OK;
    if (status == TANDEM_OK) {
        status = tnd_source_set_array(source, key, type, count, (const uint8_t *)bytes->bytes,
                                      bytes->n, true, error);
    }
    tnd_text_fini(bytes);
    return status;
}

static enum tandem_status set_tokens(tandem_source *source, const tandem_tokenizer *tokenizer,
                                     struct tandem_error *error)
{
    struct tnd_text texts = TND_TEXT_INIT;
    struct tnd_text types = TND_TEXT_INIT;
    struct tnd_text one = TND_TEXT_INIT;
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const int32_t type = (int32_t)tokenizer->tokens[id].type;
        tnd_text_clear(&one);
        add_token(tokenizer, id, &one);
        texts.failed = texts.failed || one.failed;
        add_u64(&texts, one.n);
        tnd_text_add_bytes(&texts, one.bytes, one.n);
        tnd_text_add_bytes(&types, (const char *)&type, sizeof(type));
    }
    tnd_text_fini(&one);
    const enum tandem_status status = set_list(source, "tokenizer.ggml.tokens", TND_GGUF_TEXT,
                                               tokenizer->n_tokens, &texts, error);
    if (status != TANDEM_OK) {
        tnd_text_fini(&types);
        return status;
    }
    return set_list(source, "tokenizer.ggml.token_type", TND_GGUF_I32, tokenizer->n_tokens, &types,
                    error);
}

static enum tandem_status set_scores(tandem_source *source, const tandem_tokenizer *tokenizer,
                                     struct tandem_error *error)
{
    struct tnd_text scores = TND_TEXT_INIT;
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        const float score = (float)tokenizer->tokens[id].score;
        tnd_text_add_bytes(&scores, (const char *)&score, sizeof(score));
    }
    return set_list(source, "tokenizer.ggml.scores", TND_GGUF_F32, tokenizer->n_tokens, &scores,
                    error);
}

/* The left and the right token of each merge, by its rank. */
static const struct tnd_merge **merges_by_rank(const tandem_tokenizer *tokenizer, size_t *out_n)
{
    size_t n = 0;
    for (size_t i = 0; i < tokenizer->n_merge_slots; i++) {
        const struct tnd_merge *merge = &tokenizer->merges[i];
        n = merge->pair != UINT64_MAX && merge->rank >= n ? (size_t)merge->rank + 1 : n;
    }
    const struct tnd_merge **sorted = tnd_calloc(n + 1, sizeof(sorted[0]));
    for (size_t i = 0; sorted != NULL && i < tokenizer->n_merge_slots; i++) {
        if (tokenizer->merges[i].pair != UINT64_MAX) {
            sorted[tokenizer->merges[i].rank] = &tokenizer->merges[i];
        }
    }
    *out_n = n;
    return sorted;
}

static enum tandem_status set_merges(tandem_source *source, const tandem_tokenizer *tokenizer,
                                     struct tandem_error *error)
{
    struct tnd_text texts = TND_TEXT_INIT;
    struct tnd_text one = TND_TEXT_INIT;
    size_t n = 0;
    int64_t count = 0;
    const struct tnd_merge **sorted = merges_by_rank(tokenizer, &n);
    if (sorted == NULL) {
        return tnd_tokenizer_no_memory("tokenizer.ggml.merges", n * sizeof(sorted[0]), error);
    }
    for (size_t i = 0; i < n; i++) {
        if (sorted[i] != NULL) {
            tnd_text_clear(&one);
            add_token(tokenizer, (int64_t)(sorted[i]->pair >> 32), &one);
            tnd_text_add_char(&one, ' ');
            add_token(tokenizer, (int64_t)(sorted[i]->pair & UINT32_MAX), &one);
            texts.failed = texts.failed || one.failed;
            add_u64(&texts, one.n);
            tnd_text_add_bytes(&texts, one.bytes, one.n);
            count++;
        }
    }
    tnd_text_fini(&one);
    tnd_free(sorted);
    return set_list(source, "tokenizer.ggml.merges", TND_GGUF_TEXT, count, &texts, error);
}

/* ---- what the keys can say ---- */

/* Whether GGUF's "llama" does all that a sentencepiece model does. */
static bool is_plain_sentencepiece(const tandem_tokenizer *tokenizer)
{
    const struct tnd_token_step *step = tokenizer->n_steps == 1 ? &tokenizer->steps[0] : NULL;
    const struct tnd_charsmap *charsmap =
        step != NULL && step->kind == TND_TOKEN_STEP_CHARSMAP ? step->charsmap : NULL;
    bool has_bytes = tokenizer->has_byte_fallback; /* so that nothing becomes <unk> */
    for (int i = 0; i < 256; i++) {
        has_bytes = has_bytes && tokenizer->byte_ids[i] >= 0;
    }
    return tokenizer->model == TND_MODEL_SCORES && charsmap != NULL && has_bytes &&
           charsmap->n_units == 0 && !charsmap->removes_blanks && charsmap->escapes_blanks &&
           !charsmap->is_suffix && (tokenizer->users.n == 0 || !charsmap->adds_prefix);
}

/* The name of a byte-level pre-tokenizer, or NULL; whether the keys say all of the tokenizer. */
static const char *pre_of(const tandem_tokenizer *tokenizer, bool *out_is_all)
{
    const char *patterns[TND_MAX_PRE_PATTERNS] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < tokenizer->n_normalizing; i++) { /* NFC is left out by all programs */
        const struct tnd_token_step *step = &tokenizer->steps[i];
        if (step->kind != TND_TOKEN_STEP_FORM || step->form != TND_FORM_NFC) {
            return NULL;
        }
    }
    for (size_t i = tokenizer->n_normalizing; i < tokenizer->n_steps; i++) {
        const struct tnd_token_step *step = &tokenizer->steps[i];
        if (step->kind != TND_TOKEN_STEP_SPLIT || step->pattern == NULL || step->inverts ||
            step->split != TND_SPLIT_ISOLATED || n == TND_MAX_PRE_PATTERNS) {
            return NULL;
        }
        patterns[n++] = tnd_pattern_text(step->pattern);
    }
    *out_is_all = tokenizer->n_normalizing == 0 && tokenizer->unknown < 0;
    for (int64_t id = 0; tokenizer->added != NULL && id < tokenizer->n_tokens; id++) {
        const struct tnd_added *added = &tokenizer->added[id];
        *out_is_all = *out_is_all && !added->takes_left && !added->takes_right;
    }
    return tnd_tokenizer_pre_name(patterns, n, tokenizer->whole_words, out_is_all);
}

/* config.json may have said which tokens begin and end. */
static enum tandem_status set_id(tandem_source *source, const char *key, int32_t id,
                                 struct tandem_error *error)
{
    int64_t there = 0;
    return id < 0 || tandem_source_integer(source, key, &there)
               ? TANDEM_OK
               : tnd_source_set_integer(source, key, id, error);
}

static enum tandem_status set_roles(tandem_source *source, const tandem_tokenizer *tokenizer,
                                    struct tandem_error *error)
{
    TND_TRY(set_id(source, "tokenizer.ggml.bos_token_id", tokenizer->bos, error));
    TND_TRY(set_id(source, "tokenizer.ggml.eos_token_id", tokenizer->eos, error));
    TND_TRY(set_id(source, "tokenizer.ggml.unknown_token_id", tokenizer->unknown, error));
    TND_TRY(
        tnd_source_set_flag(source, "tokenizer.ggml.add_eos_token", tokenizer->adds_eos, error));
    return tnd_source_set_flag(source, "tokenizer.ggml.add_bos_token", tokenizer->adds_bos, error);
}

/* Sets the keys, as far as they go. */
static enum tandem_status set_keys(tandem_source *source, const tandem_tokenizer *tokenizer,
                                   bool *out_is_all, bool *out_is_any, struct tandem_error *error)
{
    const bool is_ranks =
        tokenizer->model == TND_MODEL_RANKS && tokenizer->is_byte_level && !tokenizer->joins_texts;
    const char *pre = is_ranks ? pre_of(tokenizer, out_is_all) : NULL;
    *out_is_any = pre != NULL || is_plain_sentencepiece(tokenizer);
    *out_is_all = *out_is_any && (pre == NULL || *out_is_all);
    TND_TRY(set_roles(source, tokenizer, error));
    if (pre != NULL) {
        TND_TRY(tnd_source_set_text(source, "tokenizer.ggml.model", "gpt2", error));
        TND_TRY(tnd_source_set_text(source, "tokenizer.ggml.pre", pre, error));
        TND_TRY(set_tokens(source, tokenizer, error));
        return set_merges(source, tokenizer, error);
    }
    if (*out_is_any) {
        TND_TRY(tnd_source_set_text(source, "tokenizer.ggml.model", "llama", error));
        TND_TRY(tnd_source_set_flag(source, "tokenizer.ggml.add_space_prefix",
                                    tokenizer->steps[0].charsmap->adds_prefix, error));
        TND_TRY(set_tokens(source, tokenizer, error));
        return set_scores(source, tokenizer, error);
    }
    return TANDEM_OK;
}

/* ---- the file itself ---- */

static enum tandem_status set_file(tandem_source *source, const tandem_tokenizer *tokenizer,
                                   const char *path, struct tandem_error *error)
{
    const struct tnd_file *file = &tokenizer->file;
    if (tokenizer->is_from_files) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, path, 0, 0,
                             "%.200s: its tokenizer cannot be taken along: it stands in several "
                             "files, and the keys of GGUF do not say all of it",
                             path);
    }
    return tnd_source_set_array(source, TND_TOKENIZER_FILE_KEY, TND_GGUF_U8, (int64_t)file->bytes,
                                file->data, file->bytes, true, error);
}

/* sentencepiece's own file first: GGUF has keys for it. */
static enum tandem_status open_best(const char *path, int64_t vocabulary,
                                    tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    char model[PATH_MAX];
    struct tandem_error ignored;
    if (snprintf(model, sizeof(model), "%s/tokenizer.model", path) < PATH_MAX &&
        tnd_file_exists(model) &&
        tandem_tokenizer_open(model, vocabulary, out_tokenizer, &ignored) == TANDEM_OK) {
        if (is_plain_sentencepiece(*out_tokenizer)) {
            return TANDEM_OK;
        }
        tandem_tokenizer_close(*out_tokenizer);
    }
    return tandem_tokenizer_open(path, vocabulary, out_tokenizer, error);
}

/* The keys of a GGUF file, as they stand there; config.json may have said some of them. */
static enum tandem_status copy_keys(tandem_source *source, const char *path, bool *out_is_any,
                                    struct tandem_error *error)
{
    tandem_source *from = NULL;
    struct tandem_array tokens;
    TND_TRY(tandem_source_open(path, &from, error));
    const enum tandem_status status = tnd_source_copy_values(source, from, "tokenizer.", error);
    *out_is_any = tandem_source_array(from, "tokenizer.ggml.tokens", &tokens);
    tandem_source_close(from);
    return status;
}

enum tandem_status tandem_source_add_tokenizer(tandem_source *source, const char *path,
                                               bool *out_is_common, struct tandem_error *error)
{
    struct tandem_source_tensor embedding = {.ne = {0}};
    struct tandem_array tokens;
    tandem_tokenizer *tokenizer = NULL;
    bool is_all = false;
    bool is_any = false;
    if (source == NULL || path == NULL ||
        tandem_source_array(source, "tokenizer.ggml.tokens", &tokens)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "source", 0, 0,
                             "tandem_source_add_tokenizer: expected a source without tokenizer, "
                             "and a path");
    }
    (void)tandem_source_find(source, "token_embd.weight", &embedding);
    TND_TRY(open_best(path, embedding.ne[1], &tokenizer, error));
    const bool is_gguf = tnd_gguf_is(tokenizer->file.data, tokenizer->file.bytes);
    enum tandem_status status = is_gguf ? copy_keys(source, path, &is_any, error)
                                        : set_keys(source, tokenizer, &is_all, &is_any, error);
    if (status == TANDEM_OK && !is_gguf && !is_all) {
        status = set_file(source, tokenizer, path, error);
    }
    tandem_tokenizer_close(tokenizer);
    if (status == TANDEM_OK && out_is_common != NULL) {
        *out_is_common = is_any;
    }
    return status;
}
