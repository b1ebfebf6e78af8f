/* SPDX-License-Identifier: MIT
 * Sources: the list of tensors and values that every model format ends in, and the choice of the
 * loader by a file's first bytes. Formats themselves are read elsewhere (llama2c.c). */
#include "formats/source.h"

#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/llama2c.h"

/* ---- filling ---- */

static enum tandem_status no_memory(struct tandem_error *error, size_t bytes)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "source", (int64_t)bytes, 0,
                         "source: no memory for %zu bytes of names and values", bytes);
}

/* Makes room for one more item of `item_bytes`: the list doubles. False without memory. */
static bool grow(void **list, size_t n, size_t *capacity, size_t item_bytes)
{
    if (n < *capacity) {
        return true;
    }
    const size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *larger = tnd_realloc(*list, n * item_bytes, wanted * item_bytes);
    if (larger == NULL) {
        return false;
    }
    *list = larger;
    *capacity = wanted;
    return true;
}

enum tandem_status tnd_source_new(const char *format, tandem_source **out_source,
                                  struct tandem_error *error)
{
    tandem_source *source = tnd_calloc(1, sizeof(*source));
    if (source == NULL) {
        return no_memory(error, sizeof(*source));
    }
    source->format = format;
    *out_source = source;
    return TANDEM_OK;
}

enum tandem_status tnd_source_add(tandem_source *source, const char *name, enum tandem_type type,
                                  int n_dims, const int64_t *ne, const void *data, size_t bytes,
                                  struct tandem_error *error)
{
    void *list = source->tensors;
    if (!grow(&list, source->n_tensors, &source->tensor_capacity, sizeof(source->tensors[0]))) {
        return no_memory(error, source->n_tensors * 2 * sizeof(source->tensors[0]));
    }
    source->tensors = list;
    char *owned_name = tnd_strdup(name);
    if (owned_name == NULL) {
        return no_memory(error, strlen(name) + 1);
    }
    struct tandem_source_tensor *tensor = &source->tensors[source->n_tensors++];
    *tensor = (struct tandem_source_tensor){
        .name = owned_name, .type = type, .n_dims = n_dims, .data = data, .bytes = bytes};
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        tensor->ne[i] = i < n_dims ? ne[i] : 1;
    }
    return TANDEM_OK;
}

/* Adds a value with copies of its key and text. */
static enum tandem_status add_value(tandem_source *source, const char *key,
                                    struct tnd_source_value value, struct tandem_error *error)
{
    void *list = source->values;
    if (!grow(&list, source->n_values, &source->value_capacity, sizeof(source->values[0]))) {
        return no_memory(error, source->n_values * 2 * sizeof(source->values[0]));
    }
    source->values = list;
    char *owned_key = tnd_strdup(key);
    char *owned_text = value.kind == TND_VALUE_TEXT ? tnd_strdup(value.text) : NULL;
    if (owned_key == NULL || (value.kind == TND_VALUE_TEXT && owned_text == NULL)) {
        tnd_free(owned_key);
        tnd_free(owned_text);
        return no_memory(error, strlen(key) + 1);
    }
    value.key = owned_key;
    value.text = owned_text;
    source->values[source->n_values++] = value;
    return TANDEM_OK;
}

enum tandem_status tnd_source_set_integer(tandem_source *source, const char *key, int64_t value,
                                          struct tandem_error *error)
{
    struct tnd_source_value item = {.kind = TND_VALUE_INTEGER, .integer = value};
    return add_value(source, key, item, error);
}

enum tandem_status tnd_source_set_number(tandem_source *source, const char *key, double value,
                                         struct tandem_error *error)
{
    struct tnd_source_value item = {.kind = TND_VALUE_NUMBER, .number = value};
    return add_value(source, key, item, error);
}

enum tandem_status tnd_source_set_text(tandem_source *source, const char *key, const char *value,
                                       struct tandem_error *error)
{
    struct tnd_source_value item = {.kind = TND_VALUE_TEXT, .text = (char *)value};
    return add_value(source, key, item, error);
}

enum tandem_status tnd_source_copy_values(tandem_source *source, const tandem_source *from,
                                          struct tandem_error *error)
{
    for (size_t i = 0; i < from->n_values; i++) {
        TND_TRY(add_value(source, from->values[i].key, from->values[i], error));
    }
    return TANDEM_OK;
}

/* ---- opening and closing ---- */

/* Formats that are known by their first bytes but not read yet, so that the message can name
 * them. */
static const struct {
    const char *magic;
    const char *name;
} formats_not_read[] = {
    {"GGUF", "a GGUF file"},
    {"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?)"},
    {"ggjt", "a GGJT file"},
};

static enum tandem_status refuse_known(const char *path, const void *bytes, size_t n,
                                       struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(formats_not_read) / sizeof(formats_not_read[0]); i++) {
        if (n >= 4 && memcmp(bytes, formats_not_read[i].magic, 4) == 0) {
            return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, path, 0, 0,
                                 "%s: this is %s, this version reads llama2.c checkpoints", path,
                                 formats_not_read[i].name);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_source_open(const char *path, tandem_source **out_source,
                                      struct tandem_error *error)
{
    if (path == NULL || out_source == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "source", 0, 0,
                             "tandem_source_open: path and out_source must not be NULL");
    }
    struct tnd_file file;
    TND_TRY(tnd_file_map(path, &file, error));
    tandem_source *source = NULL;
    enum tandem_status status = refuse_known(path, file.data, file.bytes, error);
    if (status == TANDEM_OK) {
        status = tnd_llama2c_read(file.data, file.bytes, path, &source, error);
    }
    if (status != TANDEM_OK) {
        tnd_file_close(&file);
        return status;
    }
    source->file = file;
    *out_source = source;
    return TANDEM_OK;
}

void tandem_source_close(tandem_source *source)
{
    if (source == NULL) {
        return;
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        tnd_free((char *)source->tensors[i].name);
    }
    for (size_t i = 0; i < source->n_values; i++) {
        tnd_free(source->values[i].key);
        tnd_free(source->values[i].text);
    }
    tnd_free(source->tensors);
    tnd_free(source->values);
    tnd_free(source->memory);
    tnd_file_close(&source->file);
    tnd_free(source);
}

/* ---- looking ---- */

const char *tandem_source_format(const tandem_source *source)
{
    return source == NULL ? "" : source->format;
}

int tandem_source_tensor_count(const tandem_source *source)
{
    return source == NULL ? 0 : (int)source->n_tensors;
}

bool tandem_source_tensor_at(const tandem_source *source, int i, struct tandem_source_tensor *out)
{
    if (source == NULL || i < 0 || (size_t)i >= source->n_tensors) {
        return false;
    }
    *out = source->tensors[i];
    return true;
}

bool tandem_source_find(const tandem_source *source, const char *name,
                        struct tandem_source_tensor *out)
{
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        if (strcmp(source->tensors[i].name, name) == 0) {
            *out = source->tensors[i];
            return true;
        }
    }
    return false;
}

static const struct tnd_source_value *find_value(const tandem_source *source, const char *key,
                                                 enum tnd_value_kind kind)
{
    for (size_t i = 0; source != NULL && i < source->n_values; i++) {
        if (source->values[i].kind == kind && strcmp(source->values[i].key, key) == 0) {
            return &source->values[i];
        }
    }
    return NULL;
}

bool tandem_source_integer(const tandem_source *source, const char *key, int64_t *out)
{
    const struct tnd_source_value *value = find_value(source, key, TND_VALUE_INTEGER);
    if (value == NULL) {
        return false;
    }
    *out = value->integer;
    return true;
}

bool tandem_source_number(const tandem_source *source, const char *key, double *out)
{
    const struct tnd_source_value *value = find_value(source, key, TND_VALUE_NUMBER);
    if (value == NULL) {
        return false;
    }
    *out = value->number;
    return true;
}

bool tandem_source_text(const tandem_source *source, const char *key, const char **out)
{
    const struct tnd_source_value *value = find_value(source, key, TND_VALUE_TEXT);
    if (value == NULL) {
        return false;
    }
    *out = value->text;
    return true;
}
