/* SPDX-License-Identifier: MIT
 * Reader of importance matrices. The older form, after tools/imatrix/imatrix.cpp of
 * ggml-org/llama.cpp: {int32 entries; per entry int32 length, name, int32 calls, int32 n, n times
 * f32}; the number of chunks and the name of the text may follow. Every number of the file is
 * hostile until it is checked. */
#include "formats/importance.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "formats/cursor.h"

enum { NAME_MAX_BYTES = 100, MAGIC_BYTES = 4 };
#define SUMS   ".in_sum2"
#define COUNTS ".counts"

static enum tandem_status take_entry(struct tnd_cursor *cursor, tandem_source *source,
                                     struct tandem_error *error)
{
    uint32_t length;
    uint32_t calls;
    uint32_t n;
    const uint8_t *bytes;
    char name[NAME_MAX_BYTES + sizeof(SUMS)];
    TND_TRY(tnd_cursor_u32(cursor, "length of a name", &length, error));
    if (length == 0 || length > NAME_MAX_BYTES) {
        return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)length, NAME_MAX_BYTES,
                             "%s: a name of %lu bytes, expected 1 to %d: no importance matrix",
                             tnd_short_name(cursor->name), (unsigned long)length, NAME_MAX_BYTES);
    }
    TND_TRY(tnd_cursor_take(cursor, length, "a name", &bytes, error));
    snprintf(name, sizeof(name), "%.*s" SUMS, (int)length, (const char *)bytes);
    TND_TRY(tnd_cursor_u32(cursor, name, &calls, error));
    TND_TRY(tnd_cursor_u32(cursor, name, &n, error));
    TND_TRY(tnd_cursor_take(cursor, (uint64_t)n * sizeof(float), name, &bytes, error));
    if (n == 0 || tnd_source_find(source, name) >= 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)n, 0,
                             "%s: %s has %lu numbers or is there twice, expected some, once",
                             tnd_short_name(cursor->name), name, (unsigned long)n);
    }
    return tnd_source_add(source, name, TANDEM_TYPE_F32, 1, (const int64_t[]){(int64_t)n, 1, 1, 1},
                          bytes, (size_t)n * sizeof(float), error);
}

static enum tandem_status take_entries(struct tnd_cursor *cursor, tandem_source *source,
                                       struct tandem_error *error)
{
    uint32_t n;
    TND_TRY(tnd_cursor_u32(cursor, "number of entries", &n, error));
    if (n == 0 || n > TND_SOURCE_MAX_TENSORS) {
        return tnd_error_set(
            error, TANDEM_E_FORMAT, cursor->name, (int64_t)n, TND_SOURCE_MAX_TENSORS,
            "%s: %lu entries, expected 1 to %d: no importance matrix", tnd_short_name(cursor->name),
            (unsigned long)n, TND_SOURCE_MAX_TENSORS);
    }
    for (uint32_t i = 0; i < n; i++) {
        TND_TRY(take_entry(cursor, source, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_importance_read(const void *data, size_t n, const char *name,
                                       tandem_source **out_source, struct tandem_error *error)
{
    tandem_source *source;
    struct tnd_cursor cursor = {.name = name, .data = data, .n = n, .at = 0};
    TND_TRY(tnd_source_new("importance matrix", &source, error));
    return tnd_source_end(take_entries(&cursor, source, error), source, out_source);
}

enum tandem_status tnd_importance_open(const char *path, tandem_source **out_source,
                                       struct tandem_error *error)
{
    struct tnd_file file;
    TND_TRY(tnd_file_map(path, false, &file, error));
    if (file.bytes < MAGIC_BYTES || memcmp(file.data, "GGUF", MAGIC_BYTES) != 0) {
        const enum tandem_status status =
            tnd_importance_read(file.data, file.bytes, path, out_source, error);
        if (status == TANDEM_OK) {
            (*out_source)->file = file; /* closed with the source */
        } else {
            tnd_file_close(&file);
        }
        return status;
    }
    tnd_file_close(&file);
    tandem_source *source;
    const char *type = NULL;
    TND_TRY(tandem_source_open(path, &source, error));
    if (!tandem_source_text(source, "general.type", &type) || strcmp(type, "imatrix") != 0) {
        tnd_error_set(error, TANDEM_E_FORMAT, path, 0, 0,
                      "%s: general.type is '%.20s', expected imatrix", tnd_short_name(path),
                      type != NULL ? type : "");
        tandem_source_close(source);
        return TANDEM_E_FORMAT;
    }
    *out_source = source;
    return TANDEM_OK;
}

static bool find(const tandem_source *importance, const char *name, const char *suffix,
                 struct tandem_source_tensor *out)
{
    char full[512];
    const int n = snprintf(full, sizeof(full), "%s%s", name, suffix);
    return n > 0 && (size_t)n < sizeof(full) && tandem_source_find(importance, full, out) &&
           out->type == TANDEM_TYPE_F32;
}

/* An expert that no token chose has no importance: that of its columns is alike. */
static void forget_idle(const tandem_source *importance, const struct tandem_source_tensor *tensor,
                        int64_t matrices, float *values)
{
    struct tandem_source_tensor counts;
    if (!find(importance, tensor->name, COUNTS, &counts) ||
        counts.bytes != (size_t)matrices * sizeof(float)) {
        return;
    }
    for (int64_t m = 0; m < matrices; m++) {
        float count;
        memcpy(&count, (const char *)counts.data + (size_t)m * sizeof(float), sizeof(count));
        for (int64_t i = 0; !(count > 0) && i < tensor->ne[0]; i++) {
            values[m * tensor->ne[0] + i] = 1.0f;
        }
    }
}

enum tandem_status tnd_importance_of(const tandem_source *importance,
                                     const struct tandem_source_tensor *tensor, float **out,
                                     struct tandem_error *error)
{
    struct tandem_source_tensor sums;
    const int64_t matrices = tensor->ne[2] * tensor->ne[3];
    size_t bytes;
    *out = NULL;
    if (!find(importance, tensor->name, SUMS, &sums)) {
        return TANDEM_OK;
    }
    if (!tnd_mul_size((size_t)(tensor->ne[0] * matrices), sizeof(float), &bytes) ||
        (sums.bytes != bytes && sums.bytes != (size_t)tensor->ne[0] * sizeof(float))) {
        return tnd_error_set(error, TANDEM_E_FORMAT, tensor->name,
                             (int64_t)(sums.bytes / sizeof(float)), tensor->ne[0],
                             "%.80s: %zu numbers of importance, expected one for each of %lld "
                             "columns of %lld matrices",
                             tensor->name, sums.bytes / sizeof(float), (long long)tensor->ne[0],
                             (long long)matrices);
    }
    float *values = tnd_alloc(bytes);
    if (values == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, tensor->name, (int64_t)bytes, 0,
                             "%.80s: no memory for its importance", tensor->name);
    }
    for (size_t at = 0; at < bytes; at += sums.bytes) {
        memcpy((char *)values + at, sums.data, sums.bytes);
    }
    if (sums.bytes == bytes) {
        forget_idle(importance, tensor, matrices, values);
    }
    *out = values;
    return TANDEM_OK;
}
