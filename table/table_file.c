/* SPDX-License-Identifier: MIT
 * Tables as files: detects the format, finds the path, replaces files atomically. The formats are
 * in table_text.c and table_json.c. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "base/emit.h"
#include "table/judge.h"
#include "table/records.h"
#include "table/table_cells.h"

static tandem_table *new_table(void)
{
    tandem_table *table = tnd_calloc(1, sizeof(*table));
    if (table != NULL) {
        table->version = 2;
    }
    return table;
}

static enum tandem_status no_memory(const char *name, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, name, 0, 0, "%.120s: out of memory", name);
}

enum tandem_status tandem_table_new(tandem_table **out_table, struct tandem_error *error)
{
    TND_REQUIRE(out_table, "table", error);
    tandem_table *table = new_table();
    if (table == NULL) {
        return no_memory("table", error);
    }
    table->has_fingerprint = true;
    tnd_fingerprint_read(&table->fingerprint);
    *out_table = table;
    return TANDEM_OK;
}

enum tandem_status tandem_table_copy(const tandem_table *table, tandem_table **out_table,
                                     struct tandem_error *error)
{
    TND_REQUIRE(table, "table", error);
    TND_REQUIRE(out_table, "table", error);
    tandem_table *copy = new_table();
    if (copy == NULL) {
        return no_memory("table", error);
    }
    *copy = *table;
    copy->shapes = NULL;
    copy->n_shapes = 0;
    tnd_record_forget(copy);
    enum tandem_status status = tandem_table_merge(copy, table, error);
    if (status != TANDEM_OK) {
        tandem_table_free(copy);
        return status;
    }
    *out_table = copy;
    return TANDEM_OK;
}

static bool is_json(const char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n &&
           (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\n' || bytes[at] == '\r')) {
        at++;
    }
    return at < n && bytes[at] == '{';
}

enum tandem_status tandem_table_parse(const char *bytes, size_t n, const char *name,
                                      tandem_table **out_table, struct tandem_error *error)
{
    TND_REQUIRE(out_table, "table", error);
    if (bytes == NULL && n > 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "table", 0, 0, "table: no bytes");
    }
    name = name != NULL ? name : "table";
    if (n > TND_TABLE_MAX_BYTES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)n, TND_TABLE_MAX_BYTES,
                             "%.120s: %zu bytes are more than a timing table may have, %u", name, n,
                             TND_TABLE_MAX_BYTES);
    }
    tandem_table *table = new_table();
    if (table == NULL) {
        return no_memory(name, error);
    }
    enum tandem_status status = is_json(bytes, n)
                                    ? tnd_table_read_json(bytes, n, name, table, error)
                                    : tnd_table_read_text(bytes, n, name, table, error);
    if (status == TANDEM_OK && tnd_table_judge(table) != TANDEM_OK) {
        status = no_memory(name, error);
    }
    if (status != TANDEM_OK) {
        tandem_table_free(table);
        return status;
    }
    *out_table = table;
    return TANDEM_OK;
}

enum tandem_status tandem_table_load(const char *path, tandem_table **out_table,
                                     struct tandem_error *error)
{
    TND_REQUIRE(path, "table", error);
    TND_REQUIRE(out_table, "table", error);
    struct tnd_file file;
    TND_TRY(tnd_file_read(path, TND_TABLE_MAX_BYTES, &file, error));
    enum tandem_status status =
        tandem_table_parse((const char *)file.data, file.bytes, path, out_table, error);
    tnd_file_close(&file);
    return status;
}

enum tandem_status tandem_table_print(const tandem_table *table, enum tandem_table_format format,
                                      tandem_write_fn write, void *user, struct tandem_error *error)
{
    TND_REQUIRE(table, "table", error);
    TND_REQUIRE(write, "table", error);
    switch (format) {
    case TANDEM_TABLE_TEXT:
        return tnd_table_write_text(table, TANDEM_TYPE_NUMBERS, write, user, error);
    case TANDEM_TABLE_JSON:
        return tnd_table_write_json(table, write, user, error);
    default:
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "table", (int64_t)format, TANDEM_TABLE_JSON,
                             "table: %d is no table format, 1 is text and 2 JSON", (int)format);
    }
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    struct tnd_text *text = user;
    tnd_text_add_bytes(text, bytes, n);
    return text->failed ? 1 : 0;
}

enum tandem_status tandem_table_save(const tandem_table *table, const char *path,
                                     enum tandem_table_format format, struct tandem_error *error)
{
    TND_REQUIRE(path, "table", error);
    struct tnd_text text = TND_TEXT_INIT;
    enum tandem_status status = tandem_table_print(table, format, collect, &text, error);
    if (status == TANDEM_E_FILE) { /* our own callback stops only when out of memory */
        status = no_memory(path, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_file_make_folders(path, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_file_write_atomic(path, text.bytes, text.n, error);
    }
    tnd_text_fini(&text);
    return status;
}
