/* SPDX-License-Identifier: MIT
 * vocab.json and merges.txt, as GPT-2 was published, become the tokenizer.json that they stand for:
 * byte-level BPE, with what tokenizer_config.json says. Layout: transformers' GPT2Tokenizer
 * (src/transformers/models/gpt2). */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tokenizer_json.h"

#ifdef TND_HAVE_CJSON

#define MAX_BYTES ((size_t)16 << 20) /* of merges.txt and of tokenizer_config.json */

/* Opens a file in the folder of `path`; NOT_FOUND: it does not exist. */
static enum tandem_status open_beside(const char *path, const char *name, struct tnd_file *out,
                                      struct tandem_error *error)
{
    char other[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    if (snprintf(other, sizeof(other), "%.*s%s", folder, path, name) >= PATH_MAX ||
        !tnd_file_exists(other)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, path, 0, 0,
                             "%.90s is a vocabulary; beside it there is no %s", path, name);
    }
    return tnd_file_read(other, MAX_BYTES, out, error);
}

/* Parses lines "left right", after a line that starts with "#version". */
static cJSON *parse_merges(const char *text, size_t n_bytes)
{
    cJSON *merges = cJSON_CreateArray();
    int64_t n_merges = 0;
    for (size_t at = 0; merges != NULL && at < n_bytes;) {
        char line[2 * TND_MAX_TOKEN_BYTES + 2];
        const char *end = memchr(text + at, '\n', n_bytes - at);
        const size_t n = end == NULL ? n_bytes - at : (size_t)(end - (text + at));
        const bool is_version = at == 0 && n >= 8 && memcmp(text, "#version", 8) == 0;
        const size_t length = n > 0 && text[at + n - 1] == '\r' ? n - 1 : n;
        if (length > 0 && !is_version) {
            const size_t kept = length < sizeof(line) ? length : sizeof(line) - 1;
            memcpy(line, text + at, kept); /* (a longer line holds no two tokens) */
            line[kept] = '\0';
            cJSON *item = n_merges++ < TND_MAX_TOKENS ? cJSON_CreateString(line) : NULL;
            if (item == NULL || !cJSON_AddItemToArray(merges, item)) {
                cJSON_Delete(item);
                cJSON_Delete(merges);
                return NULL;
            }
        }
        at += n + 1;
    }
    return merges;
}

static bool add_token(cJSON *list, const char *content, double id, const cJSON *flags,
                      bool is_special)
{
    cJSON *item = cJSON_CreateObject();
    const bool made =
        cJSON_AddNumberToObject(item, "id", id) != NULL &&
        cJSON_AddStringToObject(item, "content", content) != NULL &&
        cJSON_AddBoolToObject(item, "special", is_special) != NULL &&
        cJSON_AddBoolToObject(item, "normalized", false) != NULL &&
        cJSON_AddBoolToObject(item, "lstrip", tnd_hf_flag(flags, "lstrip", false)) &&
        cJSON_AddBoolToObject(item, "rstrip", tnd_hf_flag(flags, "rstrip", false)) &&
        cJSON_AddBoolToObject(item, "single_word", tnd_hf_flag(flags, "single_word", false));
    if (!made || !cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(item);
        return false;
    }
    return true;
}

/* Tokens with a role, and "added_tokens_decoder": {"id": {"content": ...}}. */
static bool add_tokens(cJSON *list, const cJSON *vocab, const cJSON *config)
{
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    const cJSON *known = cJSON_GetObjectItemCaseSensitive(config, "added_tokens_decoder");
    const cJSON *item = NULL;
    bool made = true;
    cJSON_ArrayForEach(item, known)
    {
        const char *content = tnd_hf_text(item, "content");
        int id = -1;
        made = made && content != NULL && item->string != NULL &&
               sscanf(item->string, "%9d", &id) == 1 &&
               add_token(list, content, id, item, tnd_hf_flag(item, "special", false));
    }
    for (size_t i = 0; known == NULL && i < sizeof(roles) / sizeof(roles[0]); i++) {
        const char *content = tnd_hf_role(config, roles[i]);
        const cJSON *id = content == NULL ? NULL : cJSON_GetObjectItemCaseSensitive(vocab, content);
        made =
            made && (id == NULL || add_token(list, content, cJSON_GetNumberValue(id), NULL, true));
    }
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(vocab, "<|endoftext|>");
    return made && (config != NULL || end == NULL ||
                    add_token(list, "<|endoftext|>", cJSON_GetNumberValue(end), NULL, true));
}

/* The rest of a tokenizer.json around the vocabulary, by the tokenizer's class. */
static enum tandem_status frame_of(const struct tnd_hf_reader *reader, const cJSON *config,
                                   cJSON **out, struct tandem_error *error)
{
    static const struct {
        const char *names;
        const char *frame;
    } classes[] = {
        {"GPT2Tokenizer GPT2TokenizerFast RobertaTokenizer RobertaTokenizerFast "
         "CodeGenTokenizer CodeGenTokenizerFast BartTokenizer BartTokenizerFast",
         "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"}}"},
        {"Qwen2Tokenizer Qwen2TokenizerFast",
         "{\"normalizer\":{\"type\":\"NFC\"},\"decoder\":{\"type\":\"ByteLevel\"},"
         "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
         "\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
         "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "
         "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
         "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}},{\"type\":\"ByteLevel\","
         "\"add_prefix_space\":false,\"use_regex\":false}]}}"}};
    const char *said = tnd_hf_text(config, "tokenizer_class");
    const char *name = said == NULL ? "GPT2Tokenizer" : said;
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        const char *found = strstr(classes[i].names, name);
        if (found != NULL && n > 0 && (found == classes[i].names || found[-1] == ' ') &&
            (found[n] == ' ' || found[n] == '\0')) {
            *out = cJSON_Parse(classes[i].frame);
            return *out == NULL ? tnd_tokenizer_no_memory(reader->name, 0, error) : TANDEM_OK;
        }
    }
    return tnd_hf_unsupported(reader, "tokenizer_class", name, error);
}

/* Fills the frame, except the vocabulary. */
static bool fill_frame(cJSON *root, const cJSON *vocab, const struct tnd_hf_files *files,
                       const cJSON *config)
{
    cJSON *pre = cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer");
    cJSON *model = cJSON_AddObjectToObject(root, "model");
    cJSON *added = cJSON_AddArrayToObject(root, "added_tokens");
    cJSON *merges = parse_merges(files->merges, files->n_merges);
    const bool adds_blank = tnd_hf_flag(config, "add_prefix_space", false);
    const bool is_sequence = cJSON_GetObjectItemCaseSensitive(pre, "pretokenizers") != NULL;
    const char *unknown = tnd_hf_role(config, "unk_token");
    if (model == NULL || merges == NULL || !cJSON_AddItemToObject(model, "merges", merges)) {
        cJSON_Delete(merges);
        return false;
    }
    return added != NULL && add_tokens(added, vocab, config) &&
           (is_sequence || cJSON_AddBoolToObject(pre, "add_prefix_space", adds_blank) != NULL) &&
           (unknown == NULL || cJSON_AddStringToObject(model, "unk_token", unknown) != NULL);
}

bool tnd_hf_is_vocabulary(const cJSON *root)
{
    return cJSON_IsObject(root) && cJSON_IsNumber(root->child);
}

enum tandem_status tnd_hf_from_vocabulary(const struct tnd_hf_reader *reader,
                                          const struct tnd_hf_files *files, cJSON **io_root,
                                          struct tandem_error *error)
{
    cJSON *root = NULL;
    cJSON *config = NULL;
    enum tandem_status status = TANDEM_OK;
    if (files->n_config > 0) {
        const struct tnd_hf_reader other = {.name = "tokenizer_config.json",
                                            .n_bytes = files->n_config};
        status = tnd_hf_parse(&other, files->config, &config, error);
    }
    if (status == TANDEM_OK) {
        status = frame_of(reader, config, &root, error);
    }
    if (status == TANDEM_OK &&
        (!fill_frame(root, *io_root, files, config) ||
         !cJSON_AddItemToObject(cJSON_GetObjectItemCaseSensitive(root, "model"), "vocab",
                                *io_root))) {
        status = tnd_error_set(error, TANDEM_E_FORMAT, reader->name, 0, 0,
                               "%.90s: its merges.txt or tokenizer_config.json cannot be used: "
                               "too many merges, a token without content, or no memory",
                               reader->name);
    }
    cJSON_Delete(config);
    if (status == TANDEM_OK) {
        *io_root = root; /* which has the vocabulary now */
    } else {
        cJSON_Delete(root);
    }
    return status;
}

enum tandem_status tnd_hf_read_beside(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer **out_tokenizer, struct tandem_error *error)
{
    struct tnd_file merges = {0};
    struct tnd_file config = {0};
    struct tandem_error missing;
    TND_TRY(open_beside(name, "merges.txt", &merges, error));
    enum tandem_status status = open_beside(name, "tokenizer_config.json", &config, &missing);
    if (status == TANDEM_OK || status == TANDEM_E_NOT_FOUND) {
        const struct tnd_hf_files files = {(const char *)merges.data, merges.bytes,
                                           (const char *)config.data, config.bytes};
        status = tnd_tokenizer_vocab_read(bytes, n, &files, name, out_tokenizer, error);
        if (status == TANDEM_OK) {
            (*out_tokenizer)->is_from_files = true;
        }
    } else if (error != NULL) {
        *error = missing;
    }
    tnd_file_close(&merges);
    tnd_file_close(&config);
    return status;
}

#else
typedef int tnd_hf_vocabulary_is_empty; /* ISO C wants something here */
#endif
