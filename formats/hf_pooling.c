/* SPDX-License-Identifier: MIT
 * How the vectors of a text's tokens are pooled into one: modules.json and the config.json of its
 * Pooling module, as sentence-transformers writes them (its documentation, "Creating Custom
 * Models") next to a model's config.json. Modules that would change the vector are refused by name.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "formats/cursor.h"
#include "formats/hf_config.h"
#include "formats/json_pull.h"

enum { MAX_FILE_BYTES = 1 << 20 };

struct modules {
    const char *folder; /* with a trailing slash, or empty */
    tandem_source *source;
    char pooling[256]; /* folder of the Pooling module; "": none */
};

static const struct {
    const char *member; /* a flag of the Pooling's config.json */
    const char *mode;   /* "pooling_mode" of newer versions; NULL: they have none */
    enum tandem_pooling pooling;
} modes[] = {
    {"pooling_mode_cls_token", "cls", TANDEM_POOLING_CLS},
    {"pooling_mode_mean_tokens", "mean", TANDEM_POOLING_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", TANDEM_POOLING_LAST},
};
enum { N_MODES = sizeof(modes) / sizeof(modes[0]) };

static enum tandem_status set_pooling(const struct modules *modules, const struct tnd_json *json,
                                      const char *said, enum tandem_pooling pooling,
                                      struct tandem_error *error)
{
    const struct tnd_hf_family *family = modules->source->hf;
    char key[96];
    int64_t present;
    snprintf(key, sizeof(key), "%.60s.pooling_type", family->architecture);
    if (tandem_source_integer(modules->source, key, &present)) {
        return tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, said,
                             "is on beside another way of pooling", error);
    }
    return tnd_source_set_integer(modules->source, key, pooling, error);
}

/* A mode by its name, or NULL. */
static enum tandem_status take_mode(const struct modules *modules, struct tnd_json *json,
                                    struct tandem_error *error)
{
    char mode[64];
    TND_TRY(tnd_json_pull_string(json, mode, sizeof(mode), error));
    for (int i = 0; i < N_MODES; i++) {
        if (strcmp(mode, modes[i].mode) == 0) {
            return set_pooling(modules, json, "pooling_mode", modes[i].pooling, error);
        }
    }
    return tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "pooling_mode",
                         "is none of cls, mean and lasttoken", error);
}

static enum tandem_status take_flag(const struct modules *modules, struct tnd_json *json,
                                    const char *key, struct tandem_error *error)
{
    bool is_on = false;
    TND_TRY(tnd_json_pull_bool(json, &is_on, error));
    for (int i = 0; is_on && i < N_MODES; i++) {
        if (strcmp(key, modes[i].member) == 0) {
            return set_pooling(modules, json, key, modes[i].pooling, error);
        }
    }
    return !is_on ? TANDEM_OK
                  : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                                  "asks for what this version does not compute", error);
}

static enum tandem_status read_pooling(const struct modules *modules, struct tnd_json *json,
                                       struct tandem_error *error)
{
    char key[128];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "pooling_mode") == 0 && tnd_json_peek(json) == '"') {
            TND_TRY(take_mode(modules, json, error));
        } else if (strncmp(key, "pooling_mode_", 13) == 0) {
            TND_TRY(take_flag(modules, json, key, error));
        } else { /* the dimension, and whether prompts are pooled; we have none */
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    TND_TRY(walk.status);
    return tnd_json_end(json, error);
}

/* {"idx": .., "name": .., "path": .., "type": "sentence_transformers.models.NAME"} */
static enum tandem_status take_module(struct modules *modules, struct tnd_json *json,
                                      struct tandem_error *error)
{
    char key[64], path[256] = "", type[160] = "";
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "path") == 0) {
            TND_TRY(tnd_json_pull_string(json, path, sizeof(path), error));
        } else if (strcmp(key, "type") == 0) {
            TND_TRY(tnd_json_pull_string(json, type, sizeof(type), error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    TND_TRY(walk.status);
    const char *last = strrchr(type, '.');
    const char *name = last == NULL ? type : last + 1;
    if (strcmp(name, "Pooling") == 0) {
        if (path[0] == '\0' || strstr(path, "..") != NULL || path[0] == '/') {
            return tnd_hf_refuse(json, TANDEM_E_FORMAT, "path", "of the Pooling is no folder here",
                                 error);
        }
        snprintf(modules->pooling, sizeof(modules->pooling), "%s", path);
    }
    /* callers normalise vectors themselves */
    return strcmp(name, "Pooling") == 0 || strcmp(name, "Transformer") == 0 ||
                   strcmp(name, "Normalize") == 0
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, json->name, 0, 0,
                               "%s: a module %.60s, which this version does not compute",
                               tnd_short_name(json->name), name);
}

static enum tandem_status read_modules(struct modules *modules, struct tnd_json *json,
                                       struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(take_module(modules, json, error));
    }
    TND_TRY(walk.status);
    return tnd_json_end(json, error);
}

/* Opens a file of the folder; `out` stays empty if it does not exist. */
static enum tandem_status open_file(const char *folder, const char *within, const char *name,
                                    char out_path[PATH_MAX], struct tnd_file *out,
                                    struct tandem_error *error)
{
    *out = (struct tnd_file){.bytes = 0};
    return snprintf(out_path, PATH_MAX, "%s%s%s%s", folder, within, within[0] != '\0' ? "/" : "",
                    name) >= PATH_MAX ||
                   !tnd_file_exists(out_path)
               ? TANDEM_OK
               : tnd_file_read(out_path, MAX_FILE_BYTES, out, error);
}

enum tandem_status tnd_hf_read_pooling(const char *folder, tandem_source *source,
                                       struct tandem_error *error)
{
    struct modules modules = {.folder = folder, .source = source};
    char path[PATH_MAX];
    struct tnd_file file;
    enum tandem_status status = TANDEM_OK;
    TND_TRY(open_file(folder, "", "modules.json", path, &file, error));
    if (file.data == NULL) {
        return TANDEM_OK;
    }
    struct tnd_json json = {(const char *)file.data, (const char *)file.data,
                            (const char *)file.data + file.bytes, path};
    status = read_modules(&modules, &json, error);
    tnd_file_close(&file);
    if (status != TANDEM_OK || modules.pooling[0] == '\0') {
        return status;
    }
    TND_TRY(open_file(folder, modules.pooling, "config.json", path, &file, error));
    if (file.data == NULL) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, path, 0, 0,
                             "%s: modules.json names it, and it is not there",
                             tnd_short_name(path));
    }
    json = (struct tnd_json){(const char *)file.data, (const char *)file.data,
                             (const char *)file.data + file.bytes, path};
    status = read_pooling(&modules, &json, error);
    tnd_file_close(&file);
    return status;
}
