/* SPDX-License-Identifier: MIT
 * tekken.json, the tokenizer of Mistral's newer models: a pattern that cuts words, tokens in base64
 * by rank, of which the first ones count, and special tokens in front of them. Neighbours merge as
 * tiktoken's do. Layout: mistral-common 1.13, tokens/tokenizers/tekken.py. */
#include <stdio.h>
#include <string.h>

#include "formats/json_pull.h"
#include "formats/tnd_tokenizer.h"

enum { MAX_PATTERN = 4096, MAX_KEY = 64, MAX_SPECIAL_TEXT = 256 };

/* Members of `config`. */
struct config {
    char pattern[MAX_PATTERN];
    int64_t n_tokens; /* with the special ones */
    int64_t n_special;
};

static struct tnd_json json_of(const void *bytes, size_t n, const char *name)
{
    return (struct tnd_json){
        .begin = bytes, .at = bytes, .end = (const char *)bytes + n, .name = name};
}

/* Takes the object up to the value of `wanted`; *out_found false: it has no such key, or `without`
 * (or NULL) stands in front. */
static enum tandem_status find_value(struct tnd_json *json, const char *wanted, const char *without,
                                     bool *out_found, struct tandem_error *error)
{
    char key[MAX_KEY];
    struct tnd_json_walk walk = {.json = json, .error = error};
    *out_found = false;
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        *out_found = strcmp(key, wanted) == 0;
        if (*out_found || (without != NULL && strcmp(key, without) == 0)) {
            return TANDEM_OK;
        }
        TND_TRY(tnd_json_skip(json, error));
    }
    return walk.status;
}

/* (A tokenizer of Hugging Face has `model` in front, which is megabytes long.) */
bool tnd_tokenizer_tekken_is(const void *bytes, size_t n)
{
    struct tnd_json json = json_of(bytes, n, "");
    struct tandem_error error = {0};
    bool found = false;
    return find_value(&json, "config", "model", &found, &error) == TANDEM_OK && found &&
           find_value(&json, "default_num_special_tokens", NULL, &found, &error) == TANDEM_OK &&
           found;
}

static enum tandem_status read_config(struct tnd_json *json, struct config *out,
                                      struct tandem_error *error)
{
    char key[MAX_KEY];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "pattern") == 0) {
            TND_TRY(tnd_json_pull_string(json, out->pattern, sizeof(out->pattern), error));
        } else if (strcmp(key, "default_vocab_size") == 0) {
            TND_TRY(tnd_json_count(json, &out->n_tokens, error));
        } else if (strcmp(key, "default_num_special_tokens") == 0) {
            TND_TRY(tnd_json_count(json, &out->n_special, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    return walk.status;
}

/* A token of the vocabulary or a special one: its rank, and its bytes or text. */
struct entry {
    int64_t rank; /* -1: none */
    char text[TND_MAX_TOKEN_BYTES / 3 * 4 + 8];
};

static enum tandem_status read_entry(struct tnd_json *json, const char *text_key, struct entry *out,
                                     struct tandem_error *error)
{
    char key[MAX_KEY];
    struct tnd_json_walk walk = {.json = json, .error = error};
    out->rank = -1;
    out->text[0] = '\0';
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "rank") == 0) {
            TND_TRY(tnd_json_count(json, &out->rank, error));
        } else if (strcmp(key, text_key) == 0) {
            TND_TRY(tnd_json_pull_string(json, out->text, sizeof(out->text), error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    return walk.status;
}

static enum tandem_status set_token(tandem_tokenizer *tokenizer, int64_t id, const char *text,
                                    size_t n, enum tnd_token_type type, double score,
                                    const char *name, struct tandem_error *error)
{
    const char *copy = tnd_tokenizer_keep(tokenizer, text, n);
    if (copy == NULL) {
        return tnd_tokenizer_no_memory(name, n, error);
    }
    tokenizer->tokens[id] =
        (struct tnd_token){.text = copy, .length = (uint32_t)n, .type = type, .score = score};
    return TANDEM_OK;
}

/* Tokens after the ones in use exist for larger vocabularies. */
static enum tandem_status read_vocab(tandem_tokenizer *tokenizer, struct tnd_json *json,
                                     const struct config *config, struct tandem_error *error)
{
    struct entry entry;
    char token[TND_MAX_TOKEN_BYTES + 3];
    const int64_t wanted = config->n_tokens - config->n_special;
    int64_t n_set = 0;
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(read_entry(json, "token_bytes", &entry, error));
        if (entry.rank >= wanted) {
            continue;
        }
        const size_t n_text = strlen(entry.text);
        const int64_t id = config->n_special + entry.rank;
        size_t n = 0;
        if (entry.rank < 0 || n_text == 0 ||
            tnd_take_base64((const uint8_t *)entry.text, n_text, token, TND_MAX_TOKEN_BYTES, &n) !=
                n_text ||
            tokenizer->tokens[id].type != TND_TOKEN_UNUSED) {
            return tnd_error_set(error, TANDEM_E_FORMAT, json->name, walk.i, entry.rank,
                                 "%.90s: entry %lld of vocab is not a token in base64 with a rank "
                                 "of its own",
                                 json->name, (long long)walk.i);
        }
        TND_TRY(set_token(tokenizer, id, token, n, TND_TOKEN_NORMAL, -(double)entry.rank,
                          json->name, error));
        n_set++;
    }
    TND_TRY(walk.status);
    return n_set == wanted
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_FORMAT, json->name, n_set, wanted,
                               "%.90s: %lld tokens of vocab have ranks below %lld, expected all",
                               json->name, (long long)n_set, (long long)wanted);
}

/* Special tokens that the file names, or, where it is of before they were named, the usual ones. */
static enum tandem_status read_specials(tandem_tokenizer *tokenizer, struct tnd_json *json,
                                        const struct config *config, struct tandem_error *error)
{
    static const char *const usual[] = {"<unk>",
                                        "<s>",
                                        "</s>",
                                        "[INST]",
                                        "[/INST]",
                                        "[AVAILABLE_TOOLS]",
                                        "[/AVAILABLE_TOOLS]",
                                        "[TOOL_RESULTS]",
                                        "[/TOOL_RESULTS]",
                                        "[TOOL_CALLS]",
                                        "[IMG]",
                                        "<pad>",
                                        "[IMG_BREAK]",
                                        "[IMG_END]",
                                        "[PREFIX]",
                                        "[MIDDLE]",
                                        "[SUFFIX]",
                                        "[SYSTEM_PROMPT]",
                                        "[/SYSTEM_PROMPT]",
                                        "[TOOL_CONTENT]"};
    struct entry entry;
    bool found = false;
    struct tnd_json_walk walk = {.json = json, .error = error};
    TND_TRY(find_value(json, "special_tokens", NULL, &found, error));
    const bool has_list = found && tnd_json_peek(json) == '[';
    while (has_list && tnd_json_next_item(&walk)) {
        TND_TRY(read_entry(json, "token_str", &entry, error));
        if (entry.rank < 0 || entry.rank >= config->n_special || entry.text[0] == '\0' ||
            strlen(entry.text) > TND_MAX_TOKEN_BYTES ||
            tokenizer->tokens[entry.rank].type != TND_TOKEN_UNUSED) {
            return tnd_error_set(error, TANDEM_E_FORMAT, json->name, entry.rank, config->n_special,
                                 "%.90s: entry %lld of special_tokens has no text, or no rank of "
                                 "its own below %lld",
                                 json->name, (long long)walk.i, (long long)config->n_special);
        }
        TND_TRY(set_token(tokenizer, entry.rank, entry.text, strlen(entry.text), TND_TOKEN_CONTROL,
                          0, json->name, error));
    }
    TND_TRY(walk.status);
    for (int64_t i = 0; i < config->n_special; i++) {
        char text[MAX_SPECIAL_TEXT];
        const bool is_usual = !has_list && i < (int64_t)(sizeof(usual) / sizeof(usual[0]));
        (void)snprintf(text, sizeof(text), "<SPECIAL_%lld>", (long long)i);
        const char *named = is_usual ? usual[i] : text;
        if (tokenizer->tokens[i].type == TND_TOKEN_UNUSED) {
            TND_TRY(set_token(tokenizer, i, named, strlen(named), TND_TOKEN_CONTROL, 0, json->name,
                              error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status fill(tandem_tokenizer *tokenizer, const void *bytes, size_t n,
                               const char *name, struct tandem_error *error)
{
    struct config config = {.n_tokens = -1, .n_special = -1};
    struct tnd_json json = json_of(bytes, n, name);
    bool found = false;
    tokenizer->model = TND_MODEL_RANKS;
    tokenizer->is_byte_level = true;
    tokenizer->joins_texts = true;
    tokenizer->whole_words = true;
    TND_TRY(find_value(&json, "config", NULL, &found, error));
    TND_TRY(read_config(&json, &config, error));
    /* a token takes more than eight bytes of the file */
    if (config.n_special < 0 || config.n_tokens <= config.n_special ||
        config.n_tokens - config.n_special > (int64_t)(n / 8) || config.n_special > 65536 ||
        config.pattern[0] == '\0') {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, config.n_tokens, config.n_special,
                             "%.90s: config has no pattern, or %lld tokens of which %lld are "
                             "special, in %zu bytes",
                             name, (long long)config.n_tokens, (long long)config.n_special, n);
    }
    TND_TRY(tnd_tokenizer_reserve(tokenizer, config.n_tokens, name, error));
    json = json_of(bytes, n, name);
    TND_TRY(find_value(&json, "vocab", NULL, &found, error));
    if (!found) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, 0, 0, "%.90s: there is no vocab", name);
    }
    TND_TRY(read_vocab(tokenizer, &json, &config, error));
    json = json_of(bytes, n, name);
    TND_TRY(read_specials(tokenizer, &json, &config, error));
    TND_TRY(tnd_tokenizer_add_split(tokenizer, config.pattern, error));
    TND_TRY(tnd_tokenizer_index(tokenizer, error));
    tnd_byte_level_find_bytes(tokenizer);
    tokenizer->unknown = tandem_tokenizer_find(tokenizer, "<unk>");
    tokenizer->bos = tandem_tokenizer_find(tokenizer, "<s>");
    tokenizer->eos = tandem_tokenizer_find(tokenizer, "</s>");
    tokenizer->adds_bos = tokenizer->bos >= 0;
    return tnd_tokenizer_index_prefixes(tokenizer, name, error);
}

enum tandem_status tnd_tokenizer_tekken_read(const void *bytes, size_t n, const char *name,
                                             tandem_tokenizer **out_tokenizer,
                                             struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_tokenizer_new(name, &tokenizer, error));
    return tnd_tokenizer_end(fill(tokenizer, bytes, n, name, error), tokenizer, out_tokenizer);
}
