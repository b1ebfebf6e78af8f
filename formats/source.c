/* SPDX-License-Identifier: MIT
 * Sources: the tensors and values of a model file of any format, and the choice of the loader by a
 * file's first bytes. The loaders are in other files (llama2c.c, ...). */
#include "formats/source.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_mapped.h"
#include "base/options.h"
#include "base/tnd_assert.h"
#include "base/vector.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/llama2c.h"
#include "formats/partial.h"
#include "formats/safetensors.h"
#include "formats/torch_pickle.h"

/* ---- filling ---- */

static enum tandem_status no_memory(struct tandem_error *error, size_t bytes)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "source", (int64_t)bytes, 0,
                         "source: no memory for %zu bytes of names and values", bytes);
}

enum tandem_status tnd_source_end(enum tandem_status status, tandem_source *source,
                                  tandem_source **out_source)
{
    if (status == TANDEM_OK) {
        tnd_source_index(source);
        *out_source = source;
    } else {
        tandem_source_close(source);
    }
    return status;
}

enum tandem_status tnd_source_new(const char *format, tandem_source **out_source,
                                  struct tandem_error *error)
{
    tandem_source *source = tnd_calloc(1, sizeof(*source));
    if (source == NULL) {
        return no_memory(error, sizeof(*source));
    }
    TND_ASSERT(format != NULL);
    source->format = format;
    *out_source = source;
    return TANDEM_OK;
}

enum tandem_status tnd_source_add(tandem_source *source, const char *name, enum tandem_type type,
                                  int n_dims, const int64_t *ne, const void *data, size_t bytes,
                                  struct tandem_error *error)
{
    if (source->n_tensors == TND_SOURCE_MAX_TENSORS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, TND_SOURCE_MAX_TENSORS,
                             TND_SOURCE_MAX_TENSORS, "source: more than %d tensors",
                             TND_SOURCE_MAX_TENSORS);
    }
    if (!tnd_grow(&source->tensors, source->n_tensors, &source->tensor_capacity,
                  sizeof(source->tensors[0]))) {
        return no_memory(error, source->n_tensors * 2 * sizeof(source->tensors[0]));
    }
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

enum tandem_status tnd_source_add_value(tandem_source *source, const char *key,
                                        struct tnd_source_value value, struct tandem_error *error)
{
    if (source->n_values == TND_SOURCE_MAX_VALUES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, key, TND_SOURCE_MAX_VALUES,
                             TND_SOURCE_MAX_VALUES, "source: more than %d values",
                             TND_SOURCE_MAX_VALUES);
    }
    if (!tnd_grow(&source->values, source->n_values, &source->value_capacity,
                  sizeof(source->values[0]))) {
        return no_memory(error, source->n_values * 2 * sizeof(source->values[0]));
    }
    char *owned_key = tnd_strdup(key);
    char *owned_text = value.kind == TND_VALUE_TEXT ? tnd_alloc(value.text_bytes + 1) : NULL;
    if (owned_key == NULL || (value.kind == TND_VALUE_TEXT && owned_text == NULL)) {
        tnd_free(owned_key);
        tnd_free(owned_text);
        return no_memory(error, strlen(key) + 1 + value.text_bytes);
    }
    if (owned_text != NULL) {
        memcpy(owned_text, value.text, value.text_bytes);
        owned_text[value.text_bytes] = '\0';
    }
    value.key = owned_key;
    value.text = owned_text;
    source->values[source->n_values++] = value;
    return TANDEM_OK;
}

enum tandem_status tnd_source_set_integer(tandem_source *source, const char *key, int64_t value,
                                          struct tandem_error *error)
{
    struct tnd_source_value item = {.kind = TND_VALUE_INTEGER, .integer = value, .gguf_type = -1};
    return tnd_source_add_value(source, key, item, error);
}

enum tandem_status tnd_source_set_flag(tandem_source *source, const char *key, bool flag,
                                       struct tandem_error *error)
{
    const struct tnd_source_value item = {
        .kind = TND_VALUE_INTEGER, .integer = flag, .gguf_type = TND_GGUF_BOOL};
    return tnd_source_add_value(source, key, item, error);
}

enum tandem_status tnd_source_set_number(tandem_source *source, const char *key, double value,
                                         struct tandem_error *error)
{
    struct tnd_source_value item = {.kind = TND_VALUE_NUMBER, .number = value, .gguf_type = -1};
    return tnd_source_add_value(source, key, item, error);
}

enum tandem_status tnd_source_set_text(tandem_source *source, const char *key, const char *value,
                                       struct tandem_error *error)
{
    return tnd_source_set_text_bytes(source, key, value, strlen(value), error);
}

enum tandem_status tnd_source_set_text_bytes(tandem_source *source, const char *key,
                                             const char *value, size_t n,
                                             struct tandem_error *error)
{
    struct tnd_source_value item = {
        .kind = TND_VALUE_TEXT, .text = (char *)value, .text_bytes = n, .gguf_type = -1};
    return tnd_source_add_value(source, key, item, error);
}

/* Whether a key is among the first n values. */
static bool has_key(const tandem_source *source, size_t n, const char *key)
{
    size_t i = 0;
    while (i < n && strcmp(source->values[i].key, key) != 0) {
        i++;
    }
    return i < n;
}

enum tandem_status tnd_source_copy_values(tandem_source *source, const tandem_source *from,
                                          const char *prefix, struct tandem_error *error)
{
    const size_t n_before = source->n_values;
    for (size_t i = 0; i < from->n_values; i++) {
        const struct tnd_source_value *value = &from->values[i];
        if (strncmp(value->key, prefix, strlen(prefix)) != 0 ||
            has_key(source, n_before, value->key)) {
            continue;
        }
        if (value->kind == TND_VALUE_ARRAY) {
            const struct tnd_source_array *array = value->array;
            TND_TRY(tnd_source_set_array(source, value->key, array->item_type, array->count,
                                         array->bytes, array->n_bytes, true, error));
        } else {
            TND_TRY(tnd_source_add_value(source, value->key, *value, error));
        }
    }
    return TANDEM_OK;
}

/* ---- opening and closing ---- */

/* Formats in the order in which they are tried; the last one has no unique mark. */
static const struct format {
    bool (*is_it)(const uint8_t *bytes, size_t n);
    enum tandem_status (*read)(const void *bytes, size_t n, const char *path,
                               tandem_source **out_source, struct tandem_error *error);
} formats[] = {
    {tnd_gguf_is, tnd_gguf_read},
    {tnd_torch_zip_is, tnd_torch_zip_read},
    {tnd_torch_legacy_is, tnd_torch_legacy_read},
    {tnd_safetensors_is, tnd_safetensors_read},
    {tnd_safetensors_is_index, tnd_safetensors_read_index},
    {NULL, tnd_llama2c_read},
};

/* Some formats let tensors share bytes (tied weights). A bound on the sum of their sizes bounds
 * what a file makes us allocate and write when it is converted. */
static enum tandem_status check_sum(const tandem_source *source, const char *path,
                                    struct tandem_error *error)
{
    double have = (double)source->file.bytes;
    double sum = 0.0;
    for (size_t i = 0; i < source->n_more_files; i++) {
        have += (double)source->more_files[i].bytes;
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        sum += (double)source->tensors[i].bytes;
    }
    const double most = TND_SOURCE_MAX_SHARING * have + (double)TND_SOURCE_SPARE_BYTES;
    if (sum <= most) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_LIMIT, path, (int64_t)(sum < 0x1p62 ? sum : 0x1p62),
                         (int64_t)most,
                         "%s: its tensors have %.0f bytes altogether, its files of %.0f bytes "
                         "allow %.0f",
                         tnd_short_name(path), sum, have, most);
}

_Thread_local bool tnd_source_copies;

/* Reads the record of an incomplete copy (formats/partial.h). */
static enum tandem_status begin_parts(tandem_source *source, const char *path,
                                      struct tandem_error *error)
{
    if (!tnd_partial_is_gguf(source->file.data, source->file.bytes)) {
        return TANDEM_OK;
    }
    source->partial = tnd_calloc(1, sizeof(*source->partial));
    return source->partial != NULL ? tnd_source_see_parts(source, path, error)
                                   : no_memory(error, sizeof(*source->partial));
}

static enum tandem_status open_source(const char *path, tandem_source **out_source,
                                      struct tandem_error *error)
{
    struct tnd_file file;
    char in_folder[PATH_MAX];
    TND_TRY(tnd_safetensors_in_folder(path, in_folder, error));
    path = in_folder;
    TND_TRY(tnd_file_map(path, tnd_source_copies, &file, error));
    tandem_source *source = NULL;
    const struct format *format = formats;
    while (format->is_it != NULL && !format->is_it(file.data, file.bytes)) {
        format++;
    }
    enum tandem_status status = format->read(file.data, file.bytes, path, &source, error);
    if (status != TANDEM_OK) {
        /* missing bytes read as zeros are not a format error */
        const enum tandem_status whole = tandem_mapped_check(file.data, file.bytes, error);
        tnd_file_close(&file);
        return whole != TANDEM_OK ? whole : status;
    }
    source->file = file;
    status = begin_parts(source, path, error);
    if (status == TANDEM_OK) {
        status = source->partial != NULL ? tnd_file_check(&source->file, error)
                                         : tnd_source_check(source, error);
    }
    if (status == TANDEM_OK) {
        status = check_sum(source, path, error);
    }
    if (status != TANDEM_OK) {
        tandem_source_close(source);
        return status;
    }
    *out_source = source;
    return TANDEM_OK;
}

enum tandem_status tandem_source_open_with(const char *path,
                                           const struct tandem_source_options *options,
                                           tandem_source **out_source, struct tandem_error *error)
{
    struct tandem_source_options merged = TANDEM_SOURCE_OPTIONS_INIT;
    if (path == NULL || out_source == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "source", 0, 0,
                             "tandem_source_open: path and out_source must not be NULL");
    }
    TND_TRY(tnd_options_read(options, "tandem_source_options", &merged, sizeof(merged), error));
    tnd_source_copies = merged.copies;
    const enum tandem_status status = open_source(path, out_source, error);
    tnd_source_copies = false;
    return status;
}

enum tandem_status tandem_source_open(const char *path, tandem_source **out_source,
                                      struct tandem_error *error)
{
    return tandem_source_open_with(path, NULL, out_source, error);
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
        tnd_source_array_free(source->values[i].array);
    }
    tnd_source_memory_free(source);
    tnd_free(source->by_name);
    tnd_free(source->tensors);
    tnd_free(source->values);
    tnd_free(source->memory);
    tnd_file_close(&source->file);
    if (source->partial != NULL) {
        tnd_partial_fini(source->partial);
        tnd_free(source->partial);
    }
    tnd_free(source);
}

/* ---- reading ---- */

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
    if (source == NULL || out == NULL || i < 0 || (size_t)i >= source->n_tensors) {
        return false;
    }
    *out = source->tensors[i];
    return true;
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct tnd_source_name *)entry)->name);
}

int64_t tnd_source_find(const tandem_source *source, const char *name)
{
    if (source != NULL && source->by_name != NULL && source->n_by_name == source->n_tensors) {
        const struct tnd_source_name *entry =
            bsearch(name, source->by_name, source->n_by_name, sizeof(*entry), compare_name);
        return entry != NULL ? (int64_t)entry->index : -1;
    }
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        if (strcmp(source->tensors[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool tnd_source_converts(const struct tandem_source_tensor *tensor)
{
    return tensor->n_dims >= 2 && tensor->type != TANDEM_TYPE_I32 &&
           strstr(tensor->name, "ffn_gate_inp") == NULL;
}

bool tandem_source_find(const tandem_source *source, const char *name,
                        struct tandem_source_tensor *out)
{
    const int64_t i = name != NULL && out != NULL ? tnd_source_find(source, name) : -1;
    if (i >= 0) {
        *out = source->tensors[i];
    }
    return i >= 0;
}

const struct tnd_source_value *tnd_source_value_of(const tandem_source *source, const char *key,
                                                   enum tnd_value_kind kind)
{
    for (size_t i = 0; source != NULL && key != NULL && i < source->n_values; i++) {
        if (source->values[i].kind == kind && strcmp(source->values[i].key, key) == 0) {
            return &source->values[i];
        }
    }
    return NULL;
}

bool tandem_source_integer(const tandem_source *source, const char *key, int64_t *out)
{
    const struct tnd_source_value *value = tnd_source_value_of(source, key, TND_VALUE_INTEGER);
    if (value == NULL || out == NULL) {
        return false;
    }
    *out = value->integer;
    return true;
}

bool tandem_source_number(const tandem_source *source, const char *key, double *out)
{
    const struct tnd_source_value *value = tnd_source_value_of(source, key, TND_VALUE_NUMBER);
    if (value == NULL || out == NULL) {
        return false;
    }
    *out = value->number;
    return true;
}

bool tandem_source_text(const tandem_source *source, const char *key, const char **out)
{
    const struct tnd_source_value *value = tnd_source_value_of(source, key, TND_VALUE_TEXT);
    if (value == NULL || out == NULL) {
        return false;
    }
    *out = value->text;
    return true;
}
