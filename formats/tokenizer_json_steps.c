/* SPDX-License-Identifier: MIT
 * Normalizer, pre-tokenizer and decoder of a tokenizer.json, which become steps. Names and meaning:
 * documentation of huggingface/tokenizers (docs/source/components). */
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tokenizer_json.h"

#ifdef TND_HAVE_CJSON

#define MAX_DEPTH 8 /* of sequences in sequences */

/* GPT-2's pattern, which ByteLevel has built in. */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum tandem_status tnd_hf_unsupported(const struct tnd_hf_reader *reader, const char *part,
                                      const char *type, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, reader->name, 0, 0,
                         "%.90s: the %s \"%.60s\" is not supported", reader->name, part, type);
}

static enum tandem_status add(const struct tnd_hf_reader *reader, struct tnd_token_step step,
                              struct tandem_error *error)
{
    return tnd_tokenizer_add_step(reader->tokenizer, step, error);
}

/* Copies a text into the tokenizer. */
static enum tandem_status keep(const struct tnd_hf_reader *reader, const char *text,
                               const char **out, size_t *out_n, struct tandem_error *error)
{
    *out_n = strlen(text);
    *out = tnd_tokenizer_keep(reader->tokenizer, text, *out_n);
    return *out == NULL ? tnd_tokenizer_no_memory(reader->name, *out_n, error) : TANDEM_OK;
}

/* {"String": ...} or {"Regex": ...} */
static enum tandem_status read_pattern(const struct tnd_hf_reader *reader, const cJSON *object,
                                       struct tnd_token_step *step, struct tandem_error *error)
{
    const cJSON *pattern = cJSON_GetObjectItemCaseSensitive(object, "pattern");
    const char *literal = tnd_hf_text(pattern, "String");
    const char *regex = tnd_hf_text(pattern, "Regex");
    if (literal != NULL) {
        return keep(reader, literal, &step->from, &step->n_from, error);
    }
    if (regex != NULL) {
        return tnd_pattern_new(regex, &step->pattern, error);
    }
    return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, 0, 0,
                         "%.90s: a pattern is neither String nor Regex", reader->name);
}

/* ---- normalizer ---- */

static enum tandem_status add_form(const struct tnd_hf_reader *reader, struct tnd_token_step step,
                                   struct tandem_error *error)
{
    TND_TRY(tnd_unicode_check(error));
    return add(reader, step, error);
}

static enum tandem_status add_replace(const struct tnd_hf_reader *reader, const cJSON *object,
                                      struct tandem_error *error)
{
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_REPLACE};
    const char *content = tnd_hf_text(object, "content");
    if (content == NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, 0, 0,
                             "%.90s: a Replace has no content", reader->name);
    }
    TND_TRY(keep(reader, content, &step.to, &step.n_to, error));
    TND_TRY(read_pattern(reader, object, &step, error));
    return add(reader, step, error);
}

static enum tandem_status add_prepend(const struct tnd_hf_reader *reader, const char *text,
                                      struct tnd_token_step step, struct tandem_error *error)
{
    if (text == NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, 0, 0,
                             "%.90s: a Prepend has no text", reader->name);
    }
    step.kind = TND_TOKEN_STEP_PREPEND;
    TND_TRY(keep(reader, text, &step.to, &step.n_to, error));
    return add(reader, step, error);
}

static enum tandem_status read_normalizer(const struct tnd_hf_reader *reader, const cJSON *object,
                                          int depth, struct tandem_error *error)
{
    static const struct {
        const char *type;
        struct tnd_token_step step;
    } forms[] = {
        {"NFC", {.kind = TND_TOKEN_STEP_FORM, .form = TND_FORM_NFC}},
        {"NFD", {.kind = TND_TOKEN_STEP_FORM, .form = TND_FORM_NFD}},
        {"NFKC", {.kind = TND_TOKEN_STEP_FORM, .form = TND_FORM_NFKC}},
        {"NFKD", {.kind = TND_TOKEN_STEP_FORM, .form = TND_FORM_NFKD}},
        {"Lowercase", {.kind = TND_TOKEN_STEP_LOWER}},
    };
    const char *type = tnd_hf_text(object, "type");
    if (object == NULL || cJSON_IsNull(object)) {
        return TANDEM_OK;
    }
    for (size_t i = 0; type != NULL && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(type, forms[i].type) == 0) {
            return add_form(reader, forms[i].step, error);
        }
    }
    if (type != NULL && strcmp(type, "Sequence") == 0 && depth < MAX_DEPTH) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "normalizers"))
        {
            TND_TRY(read_normalizer(reader, item, depth + 1, error));
        }
        return TANDEM_OK;
    }
    if (type != NULL && strcmp(type, "Prepend") == 0) {
        return add_prepend(reader, tnd_hf_text(object, "prepend"), (struct tnd_token_step){0},
                           error);
    }
    if (type != NULL && strcmp(type, "Replace") == 0) {
        return add_replace(reader, object, error);
    }
    if (type != NULL && strcmp(type, "Strip") == 0) {
        return add(reader,
                   (struct tnd_token_step){.kind = TND_TOKEN_STEP_STRIP,
                                           .left = tnd_hf_flag(object, "strip_left", true),
                                           .right = tnd_hf_flag(object, "strip_right", true)},
                   error);
    }
    return tnd_hf_unsupported(reader, "normalizer", type == NULL ? "(no type)" : type, error);
}

/* ---- pre-tokenizer ---- */

static enum tandem_status split_at(const struct tnd_hf_reader *reader, const char *pattern,
                                   enum tnd_split split, bool inverts, struct tandem_error *error)
{
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_SPLIT, .split = split, .inverts = inverts};
    TND_TRY(tnd_pattern_new(pattern, &step.pattern, error));
    return add(reader, step, error);
}

static enum tandem_status add_split(const struct tnd_hf_reader *reader, const cJSON *object,
                                    struct tandem_error *error)
{
    static const struct {
        const char *name;
        enum tnd_split split;
    } behaviors[] = {{"Isolated", TND_SPLIT_ISOLATED},
                     {"Removed", TND_SPLIT_REMOVED},
                     {"MergedWithPrevious", TND_SPLIT_PREVIOUS},
                     {"MergedWithNext", TND_SPLIT_NEXT},
                     {"Contiguous", TND_SPLIT_CONTIGUOUS}};
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_SPLIT,
                                  .inverts = tnd_hf_flag(object, "invert", false)};
    const char *behavior = tnd_hf_text(object, "behavior");
    const size_t n = sizeof(behaviors) / sizeof(behaviors[0]);
    size_t i = 0;
    while (i < n && behavior != NULL && strcmp(behaviors[i].name, behavior) != 0) {
        i++;
    }
    if (behavior == NULL || i == n) {
        return tnd_hf_unsupported(reader, "behavior of a Split",
                                  behavior == NULL ? "(none)" : behavior, error);
    }
    step.split = behaviors[i].split;
    TND_TRY(read_pattern(reader, object, &step, error));
    return add(reader, step, error);
}

static enum tandem_status add_byte_level(const struct tnd_hf_reader *reader, const cJSON *object,
                                         struct tandem_error *error)
{
    reader->tokenizer->is_byte_level = true;
    if (tnd_hf_flag(object, "add_prefix_space", true)) {
        TND_TRY(add_prepend(reader, " ", (struct tnd_token_step){.unless_there = true}, error));
    }
    return tnd_hf_flag(object, "use_regex", true)
               ? tnd_tokenizer_add_split(reader->tokenizer, byte_level_pattern, error)
               : TANDEM_OK;
}

static enum tandem_status add_metaspace(const struct tnd_hf_reader *reader, const cJSON *object,
                                        struct tandem_error *error)
{
    const char *mark = tnd_hf_text(object, "replacement");
    const char *scheme = tnd_hf_text(object, "prepend_scheme");
    struct tnd_token_step replace = {.kind = TND_TOKEN_STEP_REPLACE, .from = " ", .n_from = 1};
    if (scheme == NULL) { /* files of older versions */
        scheme = tnd_hf_flag(object, "add_prefix_space", true) ? "always" : "never";
    }
    TND_TRY(keep(reader, mark == NULL ? TND_BLANK_MARK : mark, &replace.to, &replace.n_to, error));
    TND_TRY(add(reader, replace, error));
    if (strcmp(scheme, "never") != 0) {
        const struct tnd_token_step prepend = {.unless_there = true,
                                               .only_first = strcmp(scheme, "first") == 0};
        TND_TRY(add_prepend(reader, replace.to, prepend, error));
    }
    if (!tnd_hf_flag(object, "split", true)) {
        return TANDEM_OK;
    }
    return add(reader,
               (struct tnd_token_step){.kind = TND_TOKEN_STEP_SPLIT,
                                       .split = TND_SPLIT_NEXT,
                                       .from = replace.to,
                                       .n_from = replace.n_to},
               error);
}

static enum tandem_status add_digits(const struct tnd_hf_reader *reader, const cJSON *object,
                                     struct tandem_error *error)
{
    const bool alone = tnd_hf_flag(object, "individual_digits", false);
    return split_at(reader, alone ? "\\p{N}" : "\\p{N}+", TND_SPLIT_ISOLATED, false, error);
}

static enum tandem_status add_whitespace(const struct tnd_hf_reader *reader, const cJSON *object,
                                         struct tandem_error *error)
{
    (void)object;
    return split_at(reader, "\\w+|[^\\w\\s]+", TND_SPLIT_REMOVED, true, error);
}

static enum tandem_status add_whitespace_split(const struct tnd_hf_reader *reader,
                                               const cJSON *object, struct tandem_error *error)
{
    (void)object;
    return split_at(reader, "\\s", TND_SPLIT_REMOVED, false, error);
}

static enum tandem_status add_punctuation(const struct tnd_hf_reader *reader, const cJSON *object,
                                          struct tandem_error *error)
{
    (void)object;
    return split_at(reader, "[\\p{P}!-/:-@\\[-`{-~]", TND_SPLIT_ISOLATED, false, error);
}

static enum tandem_status read_pretokenizer(const struct tnd_hf_reader *reader, const cJSON *object,
                                            int depth, struct tandem_error *error)
{
    static const struct {
        const char *type;
        enum tandem_status (*add)(const struct tnd_hf_reader *reader, const cJSON *object,
                                  struct tandem_error *error);
    } types[] = {{"ByteLevel", add_byte_level},   {"Split", add_split},
                 {"Metaspace", add_metaspace},    {"Digits", add_digits},
                 {"Whitespace", add_whitespace},  {"WhitespaceSplit", add_whitespace_split},
                 {"Punctuation", add_punctuation}};
    const char *type = tnd_hf_text(object, "type");
    if (object == NULL || cJSON_IsNull(object)) {
        return TANDEM_OK;
    }
    if (type != NULL && strcmp(type, "Sequence") == 0 && depth < MAX_DEPTH) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "pretokenizers"))
        {
            TND_TRY(read_pretokenizer(reader, item, depth + 1, error));
        }
        return TANDEM_OK;
    }
    for (size_t i = 0; type != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].type) == 0) {
            return types[i].add(reader, object, error);
        }
    }
    return tnd_hf_unsupported(reader, "pre-tokenizer", type == NULL ? "(no type)" : type, error);
}

enum tandem_status tnd_hf_read_steps(const struct tnd_hf_reader *reader, const cJSON *root,
                                     struct tandem_error *error)
{
    TND_TRY(
        read_normalizer(reader, cJSON_GetObjectItemCaseSensitive(root, "normalizer"), 0, error));
    reader->tokenizer->n_normalizing = reader->tokenizer->n_steps;
    return read_pretokenizer(reader, cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer"), 0,
                             error);
}

/* ---- decoder ---- */

static enum tandem_status read_decoder(const struct tnd_hf_reader *reader, const cJSON *object,
                                       int depth, struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const char *type = tnd_hf_text(object, "type");
    if (object == NULL || cJSON_IsNull(object)) {
        return TANDEM_OK;
    }
    if (type == NULL) {
        return tnd_hf_unsupported(reader, "decoder", "(no type)", error);
    }
    if (strcmp(type, "Sequence") == 0 && depth < MAX_DEPTH) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "decoders"))
        {
            TND_TRY(read_decoder(reader, item, depth + 1, error));
        }
        return TANDEM_OK;
    }
    if (strcmp(type, "ByteLevel") == 0 || strcmp(type, "Fuse") == 0 ||
        strcmp(type, "ByteFallback") == 0) {
        return TANDEM_OK; /* tokens have their bytes already */
    }
    if (strcmp(type, "Strip") == 0) {
        tokenizer->strips_blank = true;
        return TANDEM_OK;
    }
    const char *from = tnd_hf_text(cJSON_GetObjectItemCaseSensitive(object, "pattern"), "String");
    if (strcmp(type, "Replace") == 0 && from != NULL && strcmp(from, TND_BLANK_MARK) == 0) {
        tokenizer->escapes_blanks = true;
        return TANDEM_OK;
    }
    if (strcmp(type, "Metaspace") == 0) {
        const char *scheme = tnd_hf_text(object, "prepend_scheme");
        tokenizer->escapes_blanks = true;
        tokenizer->strips_blank = scheme != NULL ? strcmp(scheme, "never") != 0
                                                 : tnd_hf_flag(object, "add_prefix_space", true);
        return TANDEM_OK;
    }
    return tnd_hf_unsupported(reader, "decoder", type, error);
}

enum tandem_status tnd_hf_read_decoder(const struct tnd_hf_reader *reader, const cJSON *decoder,
                                       struct tandem_error *error)
{
    return read_decoder(reader, decoder, 0, error);
}

#else
typedef int tnd_hf_steps_are_empty; /* ISO C wants something here */
#endif
