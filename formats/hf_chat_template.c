/* SPDX-License-Identifier: MIT
 * Adds the chat templates of a Hugging Face folder to the values of the source, so that they are
 * found in one place and `convert` copies them. Sources: chat_template.jinja, chat_template.json,
 * or the member "chat_template" of tokenizer_config.json, a text or a list of {"name", "template"}
 * (transformers' documentation, "Chat templates"). A file that cannot be read adds no template:
 * callers that chat report that the model has none. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json_pull.h"
#include "formats/safetensors.h"
#include "formats/source.h"
#include "formats/template.h"

#define KEY "tokenizer.chat_template"

enum { MAX_FILE_BYTES = 64 << 20 }; /* tokenizer_config.json lists all added tokens */

static enum tandem_status set(tandem_source *source, const char *name, const char *text,
                              struct tandem_error *error)
{
    char key[96];
    const bool is_default = name[0] == '\0' || strcmp(name, "default") == 0;
    const char *present;
    const int n =
        snprintf(key, sizeof(key), KEY "%s%s", is_default ? "" : ".", is_default ? "" : name);
    if (n >= (int)sizeof(key) || tandem_source_text(source, key, &present)) {
        return TANDEM_OK;
    }
    return tnd_source_set_text(source, key, text, error);
}

/* {"name": .., "template": ..} */
static enum tandem_status take_named(struct tnd_json *json, tandem_source *source, char *text,
                                     struct tandem_error *error)
{
    char key[64];
    char name[64] = "";
    text[0] = '\0';
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "name") == 0) {
            TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
        } else if (strcmp(key, "template") == 0) {
            TND_TRY(tnd_json_pull_string(json, text, TND_TEMPLATE_MAX_BYTES, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    TND_TRY(walk.status);
    return text[0] != '\0' ? set(source, name, text, error) : TANDEM_OK;
}

static enum tandem_status take_templates(struct tnd_json *json, tandem_source *source, char *text,
                                         struct tandem_error *error)
{
    if (tnd_json_peek(json) == '"') {
        TND_TRY(tnd_json_pull_string(json, text, TND_TEMPLATE_MAX_BYTES, error));
        return set(source, "", text, error);
    }
    if (tnd_json_peek(json) != '[') {
        return tnd_json_skip(json, error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(take_named(json, source, text, error));
    }
    return walk.status;
}

static enum tandem_status read_json(const struct tnd_file *file, const char *path, char *text,
                                    tandem_source *source, struct tandem_error *error)
{
    const char *bytes = (const char *)file->data;
    struct tnd_json json = {bytes, bytes, bytes + file->bytes, path};
    char key[128];
    struct tnd_json_walk walk = {.json = &json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "chat_template") == 0) {
            TND_TRY(take_templates(&json, source, text, error));
        } else {
            TND_TRY(tnd_json_skip(&json, error));
        }
    }
    return walk.status;
}

static enum tandem_status read_file(const char *path, bool is_json, tandem_source *source)
{
    struct tnd_file file;
    char *text;
    enum tandem_status status = tnd_file_read(path, MAX_FILE_BYTES, &file, NULL);
    if (status != TANDEM_OK) {
        return status;
    }
    text = tnd_calloc(TND_TEMPLATE_MAX_BYTES + 1, 1);
    if (text == NULL) {
        status = TANDEM_E_MEMORY;
    } else if (is_json) {
        status = read_json(&file, path, text, source, NULL);
    } else if (file.bytes <= TND_TEMPLATE_MAX_BYTES && memchr(file.data, 0, file.bytes) == NULL) {
        memcpy(text, file.data, file.bytes);
        status = set(source, "", text, NULL);
    }
    tnd_free(text);
    tnd_file_close(&file);
    return status;
}

enum tandem_status tnd_hf_chat_templates(const char *folder, tandem_source *source,
                                         struct tandem_error *error)
{
    static const char *const names[] = {"chat_template.jinja", "chat_template.json",
                                        "tokenizer_config.json"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const int n = snprintf(path, sizeof(path), "%s%s", folder, names[i]);
        if (n < (int)sizeof(path) && tnd_file_exists(path) &&
            read_file(path, i > 0, source) == TANDEM_E_MEMORY) {
            return tnd_error_set(error, TANDEM_E_MEMORY, path, 0, 0, "%s: no memory", path);
        }
    }
    return TANDEM_OK;
}
