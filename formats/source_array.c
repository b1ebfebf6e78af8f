/* SPDX-License-Identifier: MIT
 * Lists of values in a source, kept in GGUF's encoding, and iteration over all values. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "formats/gguf.h"

/* ---- filling ---- */

static enum tandem_status no_memory(const char *key, size_t bytes, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, key, (int64_t)bytes, 0,
                         "source: no memory for the %zu bytes of the list %.60s", bytes, key);
}

void tnd_source_array_free(struct tnd_source_array *array)
{
    if (array != NULL) {
        tnd_free(array->offsets);
        tnd_free(array->owned);
        tnd_free(array);
    }
}

/* Stores the offset of each text of a list, whose lengths the loader has checked. */
static void note_texts(struct tnd_source_array *array)
{
    size_t at = 0;
    for (int64_t i = 0; i < array->count; i++) {
        array->offsets[i] = at;
        at += 8 + (size_t)tnd_le64(array->bytes + at);
    }
}

enum tandem_status tnd_source_set_array(tandem_source *source, const char *key, uint32_t item_type,
                                        int64_t count, const uint8_t *bytes, size_t n_bytes,
                                        bool copies, struct tandem_error *error)
{
    struct tnd_source_array *array = tnd_calloc(1, sizeof(*array));
    if (array == NULL) {
        return no_memory(key, sizeof(*array), error);
    }
    *array = (struct tnd_source_array){
        .item_type = item_type, .count = count, .bytes = bytes, .n_bytes = n_bytes};
    const bool has_texts = item_type == TND_GGUF_TEXT;
    array->owned = copies ? tnd_alloc(n_bytes) : NULL;
    array->offsets = has_texts ? tnd_calloc((size_t)count, sizeof(size_t)) : NULL;
    if ((copies && array->owned == NULL) || (has_texts && array->offsets == NULL)) {
        tnd_source_array_free(array);
        return no_memory(key, n_bytes, error);
    }
    if (copies) {
        if (n_bytes > 0) {
            memcpy(array->owned, bytes, n_bytes);
        }
        array->bytes = array->owned;
    }
    if (has_texts) {
        note_texts(array);
    }
    const struct tnd_source_value value = {
        .kind = TND_VALUE_ARRAY, .array = array, .gguf_type = TND_GGUF_ARRAY};
    const enum tandem_status status = tnd_source_add_value(source, key, value, error);
    if (status != TANDEM_OK) {
        tnd_source_array_free(array);
    }
    return status;
}

/* ---- reading ---- */

static struct tandem_array array_of(const struct tnd_source_array *array)
{
    struct tnd_source_value item = {.kind = TND_VALUE_TEXT};
    const uint8_t zeros[8] = {0};
    if (array->item_type == TND_GGUF_ARRAY) {
        item.kind = TND_VALUE_ARRAY;
    } else if (array->item_type != TND_GGUF_TEXT) {
        tnd_gguf_scalar(array->item_type, zeros, &item);
    }
    return (struct tandem_array){
        .kind = (enum tandem_value_kind)item.kind, .count = array->count, .items = array};
}

bool tandem_source_array(const tandem_source *source, const char *key, struct tandem_array *out)
{
    const struct tnd_source_value *value = tnd_source_value_of(source, key, TND_VALUE_ARRAY);
    if (value == NULL || out == NULL) {
        return false;
    }
    *out = array_of(value->array);
    return true;
}

/* Item `i` of a list of scalars. */
static bool scalar_at(const struct tandem_array *array, int64_t i, struct tnd_source_value *out)
{
    const struct tnd_source_array *items = array == NULL ? NULL : array->items;
    if (items == NULL || i < 0 || i >= items->count || items->item_type == TND_GGUF_TEXT ||
        items->item_type == TND_GGUF_ARRAY) {
        return false;
    }
    const size_t bytes = tnd_gguf_type_bytes(items->item_type);
    TND_ASSERT(bytes > 0);
    tnd_gguf_scalar(items->item_type, items->bytes + (size_t)i * bytes, out);
    return true;
}

bool tandem_array_integer(const struct tandem_array *array, int64_t i, int64_t *out)
{
    struct tnd_source_value item = {0};
    if (out == NULL || !scalar_at(array, i, &item) || item.kind != TND_VALUE_INTEGER) {
        return false;
    }
    *out = item.integer;
    return true;
}

bool tandem_array_number(const struct tandem_array *array, int64_t i, double *out)
{
    struct tnd_source_value item = {0};
    if (out == NULL || !scalar_at(array, i, &item)) {
        return false;
    }
    *out = item.kind == TND_VALUE_INTEGER ? (double)item.integer : item.number;
    return true;
}

bool tandem_array_text(const struct tandem_array *array, int64_t i, const char **out,
                       size_t *out_bytes)
{
    const struct tnd_source_array *items = array == NULL ? NULL : array->items;
    if (items == NULL || i < 0 || i >= items->count || items->offsets == NULL || out == NULL ||
        out_bytes == NULL) {
        return false;
    }
    const uint8_t *at = items->bytes + items->offsets[i];
    *out = (const char *)at + 8;
    *out_bytes = (size_t)tnd_le64(at);
    return true;
}

int tandem_source_value_count(const tandem_source *source)
{
    return source == NULL ? 0 : (int)source->n_values;
}

bool tandem_source_value_at(const tandem_source *source, int i, struct tandem_source_value *out)
{
    if (out == NULL || i < 0 || i >= tandem_source_value_count(source)) {
        return false;
    }
    const struct tnd_source_value *value = &source->values[i];
    *out = (struct tandem_source_value){.key = value->key,
                                        .kind = (enum tandem_value_kind)value->kind,
                                        .integer = value->integer,
                                        .number = value->number,
                                        .text = value->text};
    if (value->kind == TND_VALUE_ARRAY) {
        out->array = array_of(value->array);
    }
    return true;
}
