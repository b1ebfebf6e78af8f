/* SPDX-License-Identifier: MIT
 * Reads the members of config.json and generation_config.json that a Whisper model's text needs. */
#include "formats/speech_config.h"

#include <string.h>

#include "base/file.h"
#include "formats/json_pull.h"

#define MAX_BYTES ((size_t)4 << 20)

void tnd_speech_config_init(struct tnd_speech_config *config)
{
    *config = (struct tnd_speech_config){.start = -1, .no_timestamps = -1};
}

/* A token id, or another number from 0 to 2^31 - 1; null leaves `out` as it is. */
static enum tandem_status read_id(struct tnd_json *json, int32_t *out, struct tandem_error *error)
{
    int64_t value = 0;
    if (tnd_json_peek(json) == 'n') {
        return tnd_json_skip(json, error);
    }
    TND_TRY(tnd_json_count(json, &value, error));
    if (value > INT32_MAX) {
        return tnd_error_set(error, TANDEM_E_FORMAT, json->name, value, INT32_MAX,
                             "%.150s: number %lld, expected at most 2147483647", json->name,
                             (long long)value);
    }
    *out = (int32_t)value;
    return TANDEM_OK;
}

/* One id, or a list of them. */
static enum tandem_status read_ids(struct tnd_json *json, struct tnd_speech_tokens *out,
                                   struct tandem_error *error)
{
    out->n = 0;
    if (tnd_json_peek(json) != '[') {
        out->ids[0] = -1;
        TND_TRY(read_id(json, &out->ids[0], error));
        out->n = out->ids[0] >= 0;
        return TANDEM_OK;
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        if (out->n == TND_SPEECH_MAX_TOKENS) {
            return tnd_error_set(error, TANDEM_E_LIMIT, json->name, walk.i, TND_SPEECH_MAX_TOKENS,
                                 "%.150s: more than %d ids in a list", json->name,
                                 TND_SPEECH_MAX_TOKENS);
        }
        out->ids[out->n] = -1;
        TND_TRY(read_id(json, &out->ids[out->n], error));
        out->n += out->ids[out->n] >= 0;
    }
    return walk.status;
}

/* {"<|en|>": 50259, ...} */
static enum tandem_status read_languages(struct tnd_json *json, struct tnd_speech_config *config,
                                         struct tandem_error *error)
{
    config->n_languages = 0;
    if (tnd_json_peek(json) != '{') {
        return tnd_json_skip(json, error);
    }
    struct tnd_speech_language language = {.id = -1};
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, language.name, sizeof(language.name))) {
        if (config->n_languages == TND_SPEECH_MAX_LANGUAGES) {
            return tnd_error_set(error, TANDEM_E_LIMIT, json->name, walk.i,
                                 TND_SPEECH_MAX_LANGUAGES, "%.150s: more than %d languages",
                                 json->name, TND_SPEECH_MAX_LANGUAGES);
        }
        language.id = -1;
        TND_TRY(read_id(json, &language.id, error));
        config->languages[config->n_languages] = language;
        config->n_languages += language.id >= 0;
    }
    return walk.status;
}

static enum tandem_status read_member(struct tnd_json *json, const char *key,
                                      struct tnd_speech_config *config, struct tandem_error *error)
{
    const struct {
        const char *key;
        int32_t *number;
        struct tnd_speech_tokens *list;
    } members[] = {{"decoder_start_token_id", &config->start, NULL},
                   {"no_timestamps_token_id", &config->no_timestamps, NULL},
                   {"max_target_positions", &config->max_tokens, NULL},
                   {"num_mel_bins", &config->bins, NULL},
                   {"eos_token_id", NULL, &config->ends},
                   {"suppress_tokens", NULL, &config->never},
                   {"begin_suppress_tokens", NULL, &config->never_first}};
    if (strcmp(key, "lang_to_id") == 0) {
        return read_languages(json, config, error);
    }
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (strcmp(key, members[i].key) == 0) {
            return members[i].list != NULL ? read_ids(json, members[i].list, error)
                                           : read_id(json, members[i].number, error);
        }
    }
    return tnd_json_skip(json, error);
}

enum tandem_status tnd_speech_config_read(struct tnd_speech_config *config, const char *bytes,
                                          size_t n, const char *name, struct tandem_error *error)
{
    struct tnd_json json = {bytes, bytes, bytes + n, name};
    char key[256];
    struct tnd_json_walk walk = {.json = &json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(read_member(&json, key, config, error));
    }
    TND_TRY(walk.status);
    return tnd_json_end(&json, error);
}

enum tandem_status tnd_speech_config_open(struct tnd_speech_config *config, const char *path,
                                          struct tandem_error *error)
{
    struct tnd_file file = {0};
    if (!tnd_file_exists(path)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_file_read(path, MAX_BYTES, &file, error));
    const enum tandem_status status =
        tnd_speech_config_read(config, (const char *)file.data, file.bytes, path, error);
    tnd_file_close(&file);
    return status;
}
