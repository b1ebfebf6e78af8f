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

/* sentencepiece's rules, as base64. */
static enum tandem_status add_precompiled(const struct tnd_hf_reader *reader, const cJSON *object,
                                          struct tandem_error *error)
{
    const char *text = tnd_hf_text(object, "precompiled_charsmap");
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const size_t n = text == NULL ? 0 : strlen(text);
    struct tnd_charsmap *charsmap = tnd_arena_alloc(&tokenizer->memory, sizeof(*charsmap), 16);
    char *rules = tnd_arena_alloc(&tokenizer->memory, n + 3, 16);
    size_t n_rules = 0;
    TND_TRY(tnd_unicode_check(error));
    if (charsmap == NULL || rules == NULL) {
        return tnd_tokenizer_no_memory(reader->name, n, error);
    }
    if (n == 0 || tnd_take_base64((const uint8_t *)text, n, rules, n, &n_rules) != n) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->name, (int64_t)n, 0,
                             "%.90s: precompiled_charsmap is no base64", reader->name);
    }
    *charsmap = (struct tnd_charsmap){.by_grapheme = true};
    TND_TRY(tnd_charsmap_read((const uint8_t *)rules, n_rules, reader->name, charsmap, error));
    return add(reader,
               (struct tnd_token_step){.kind = TND_TOKEN_STEP_CHARSMAP, .charsmap = charsmap},
               error);
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
    if (type != NULL && strcmp(type, "Precompiled") == 0) {
        return add_precompiled(reader, object, error);
    }
    if (type != NULL && strcmp(type, "BertNormalizer") == 0) {
        const bool lowers = tnd_hf_flag(object, "lowercase", true);
        const struct tnd_bert_text how = {
            .cleans = tnd_hf_flag(object, "clean_text", true),
            .isolates_chinese = tnd_hf_flag(object, "handle_chinese_chars", true),
            .strips_accents = tnd_hf_flag(object, "strip_accents", lowers),
            .lowers = lowers};
        return tnd_bert_add_normalizer(reader->tokenizer, how, error);
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

/* \w of Rust's crate regex, by which Whitespace splits. */
#define RUST_WORD "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]"
static enum tandem_status split_at(const struct tnd_hf_reader *reader, const char *pattern,
                                   enum tnd_split split, bool inverts, struct tandem_error *error)
{
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_SPLIT, .split = split, .inverts = inverts};
    TND_TRY(tnd_pattern_new(pattern, &step.pattern, error));
    return add(reader, step, error);
}

static enum tandem_status read_behavior(const struct tnd_hf_reader *reader, const cJSON *object,
                                        const char *otherwise, enum tnd_split *out,
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
    const char *said = tnd_hf_text(object, "behavior");
    const char *name = said == NULL ? otherwise : said;
    for (size_t i = 0; i < sizeof(behaviors) / sizeof(behaviors[0]); i++) {
        if (strcmp(behaviors[i].name, name) == 0) {
            *out = behaviors[i].split;
            return TANDEM_OK;
        }
    }
    return tnd_hf_unsupported(reader, "behavior of a Split", name, error);
}

static enum tandem_status add_split(const struct tnd_hf_reader *reader, const cJSON *object,
                                    struct tandem_error *error)
{
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_SPLIT,
                                  .inverts = tnd_hf_flag(object, "invert", false)};
    TND_TRY(read_behavior(reader, object, "(none)", &step.split, error));
    TND_TRY(read_pattern(reader, object, &step, error));
    return add(reader, step, error);
}

static enum tandem_status add_byte_level(const struct tnd_hf_reader *reader, const cJSON *object,
                                         struct tandem_error *error)
{
    if (reader->tokenizer->is_byte_level) {
        return tnd_hf_unsupported(reader, "pre-tokenizer", "ByteLevel twice", error);
    }
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
    if (reader->tokenizer->is_byte_level) {
        return tnd_hf_unsupported(reader, "pre-tokenizer", "Metaspace behind ByteLevel", error);
    }
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
    return split_at(reader, RUST_WORD "+|[^" RUST_WORD "\\s]+", TND_SPLIT_REMOVED, true, error);
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
    enum tnd_split behavior = TND_SPLIT_ISOLATED;
    TND_TRY(read_behavior(reader, object, "Isolated", &behavior, error));
    return split_at(reader, TND_PUNCTUATION, behavior, false, error);
}

/* Steps after ByteLevel see the characters to which it maps bytes. */
static enum tandem_status add_to_bytes(const struct tnd_hf_reader *reader,
                                       struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = reader->tokenizer;
    bool is_there = !tokenizer->is_byte_level;
    for (size_t i = 0; i < tokenizer->n_steps; i++) {
        is_there = is_there || tokenizer->steps[i].kind == TND_TOKEN_STEP_TO_BYTES;
    }
    return is_there ? TANDEM_OK
                    : add(reader, (struct tnd_token_step){.kind = TND_TOKEN_STEP_TO_BYTES}, error);
}

static enum tandem_status add_bert(const struct tnd_hf_reader *reader, const cJSON *object,
                                   struct tandem_error *error)
{
    (void)object;
    return tnd_bert_add_pretokenizer(reader->tokenizer, error);
}

static enum tandem_status read_pretokenizer(const struct tnd_hf_reader *reader, const cJSON *object,
                                            int depth, struct tandem_error *error)
{
    static const struct {
        const char *type;
        enum tandem_status (*add)(const struct tnd_hf_reader *reader, const cJSON *object,
                                  struct tandem_error *error);
    } types[] = {{"ByteLevel", add_byte_level},    {"Split", add_split},
                 {"Metaspace", add_metaspace},     {"Digits", add_digits},
                 {"Whitespace", add_whitespace},   {"WhitespaceSplit", add_whitespace_split},
                 {"Punctuation", add_punctuation}, {"BertPreTokenizer", add_bert}};
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
            TND_TRY(add_to_bytes(reader, error));
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
    tandem_tokenizer *tokenizer = reader->tokenizer;
    tokenizer->n_normalizing = tokenizer->n_steps;
    TND_TRY(read_pretokenizer(reader, cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer"), 0,
                              error));
    for (size_t i = 0; i < tokenizer->n_steps; i++) {
        if (tokenizer->steps[i].kind == TND_TOKEN_STEP_TO_BYTES) {
            return add(reader, (struct tnd_token_step){.kind = TND_TOKEN_STEP_OF_BYTES}, error);
        }
    }
    return TANDEM_OK;
}

/* ---- decoder ---- */

/* Joins tokens to one text for the following decoders. */
static enum tandem_status add_fuse(const struct tnd_hf_reader *reader, const cJSON *object,
                                   struct tandem_error *error)
{
    (void)reader;
    (void)object;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status decode_byte_level(const struct tnd_hf_reader *reader, const cJSON *object,
                                            struct tandem_error *error)
{
    (void)object; /* tokens have their bytes already */
    return reader->tokenizer->is_byte_level
               ? TANDEM_OK
               : tnd_hf_unsupported(reader, "decoder", "ByteLevel without its pre-tokenizer",
                                    error);
}

static enum tandem_status decode_bytes(const struct tnd_hf_reader *reader, const cJSON *object,
                                       struct tandem_error *error)
{
    (void)object;
    (void)error;
    reader->tokenizer->names_bytes = true;
    return TANDEM_OK;
}

/* One blank less at the start of the text. */
static enum tandem_status decode_strip(const struct tnd_hf_reader *reader, const cJSON *object,
                                       struct tandem_error *error)
{
    const char *content = tnd_hf_text(object, "content");
    const cJSON *start = cJSON_GetObjectItemCaseSensitive(object, "start");
    const cJSON *stop = cJSON_GetObjectItemCaseSensitive(object, "stop");
    if (content == NULL || strcmp(content, " ") != 0 || cJSON_GetNumberValue(start) != 1 ||
        cJSON_GetNumberValue(stop) != 0) {
        return tnd_hf_unsupported(reader, "decoder", "Strip of more than one blank", error);
    }
    reader->tokenizer->strip = TND_STRIP_ONE;
    return TANDEM_OK;
}

static enum tandem_status decode_replace(const struct tnd_hf_reader *reader, const cJSON *object,
                                         struct tandem_error *error)
{
    const char *from = tnd_hf_text(cJSON_GetObjectItemCaseSensitive(object, "pattern"), "String");
    const char *to = tnd_hf_text(object, "content");
    if (from == NULL || strcmp(from, TND_BLANK_MARK) != 0 || to == NULL || strcmp(to, " ") != 0) {
        return tnd_hf_unsupported(reader, "decoder", "Replace of other than U+2581", error);
    }
    reader->tokenizer->escapes_blanks = true;
    return TANDEM_OK;
}

static enum tandem_status decode_metaspace(const struct tnd_hf_reader *reader, const cJSON *object,
                                           struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = reader->tokenizer;
    const char *scheme = tnd_hf_text(object, "prepend_scheme");
    const char *mark = tnd_hf_text(object, "replacement");
    const bool strips = scheme != NULL ? strcmp(scheme, "never") != 0
                                       : tnd_hf_flag(object, "add_prefix_space", true);
    if (mark != NULL && strcmp(mark, TND_BLANK_MARK) != 0) {
        return tnd_hf_unsupported(reader, "decoder", "Metaspace of other than U+2581", error);
    }
    tokenizer->escapes_blanks = true;
    tokenizer->strip = strips ? TND_STRIP_FIRST_TOKEN : TND_STRIP_NONE;
    return TANDEM_OK;
}

/* Whether blanks before punctuation are dropped ("cleanup") is for people to read. */
static enum tandem_status decode_wordpiece(const struct tnd_hf_reader *reader, const cJSON *object,
                                           struct tandem_error *error)
{
    (void)object;
    reader->tokenizer->joins_with_blank = true;
    return reader->tokenizer->model == TND_MODEL_WORDPIECE
               ? TANDEM_OK
               : tnd_hf_unsupported(reader, "decoder", "WordPiece of another model", error);
}

static enum tandem_status read_decoder(const struct tnd_hf_reader *reader, const cJSON *object,
                                       int depth, bool *io_is_fused, struct tandem_error *error)
{
    static const struct {
        const char *type;
        bool is_fused; /* of one text; else token by token */
        enum tandem_status (*add)(const struct tnd_hf_reader *reader, const cJSON *object,
                                  struct tandem_error *error);
    } types[] = {{"ByteLevel", false, decode_byte_level},
                 {"ByteFallback", false, decode_bytes},
                 {"Replace", false, decode_replace},
                 {"Metaspace", false, decode_metaspace},
                 {"Fuse", false, add_fuse},
                 {"WordPiece", false, decode_wordpiece},
                 {"Strip", true, decode_strip}};
    const char *type = tnd_hf_text(object, "type");
    if (type != NULL && strcmp(type, "Sequence") == 0 && depth < MAX_DEPTH) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "decoders"))
        {
            TND_TRY(read_decoder(reader, item, depth + 1, io_is_fused, error));
        }
        return TANDEM_OK;
    }
    for (size_t i = 0; type != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].type) == 0 && types[i].is_fused == *io_is_fused) {
            *io_is_fused = types[i].add == add_fuse;
            return types[i].add(reader, object, error);
        }
    }
    return tnd_hf_unsupported(reader, *io_is_fused ? "decoder behind Fuse" : "decoder",
                              type == NULL ? "(no type)" : type, error);
}

enum tandem_status tnd_hf_read_decoder(const struct tnd_hf_reader *reader, const cJSON *decoder,
                                       struct tandem_error *error)
{
    bool is_fused = false;
    if (decoder == NULL || cJSON_IsNull(decoder)) {
        reader->tokenizer->joins_with_blank = !reader->tokenizer->is_byte_level;
        return TANDEM_OK;
    }
    return read_decoder(reader, decoder, 0, &is_fused, error);
}

#else
typedef int tnd_hf_steps_are_empty; /* ISO C wants something here */
#endif
