/* SPDX-License-Identifier: MIT
 * NumPy's .npz, as numpy.savez and numpy.savez_compressed write it. */
#include "formats/npz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "formats/npy.h"
#include "formats/zip.h"

#define END           ".npy"
#define END_BYTES     (sizeof(END) - 1)
#define MAX_ARRAYS    4096
#define SPARE_BYTES   ((uint64_t)1 << 30)
#define MAX_WRITTEN   UINT32_MAX
#define LOCAL_BYTES   30
#define VERSION       20
#define EARLIEST_DATE 0x21 /* the first of January 1980 */

static enum tandem_status no_memory(const char *name, int n, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, name, n, 0, "%s: no memory for %d arrays",
                         tnd_short_name(name), n);
}

static enum tandem_status wrong(const char *name, const char *what, size_t i,
                                struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)i, 0, "%s: .npz entry %zu %s",
                         tnd_short_name(name), i, what);
}

/* ---- reading ---- */

/* What all entries take together, before anything is unpacked. Entries that share bytes would be
 * more than the file. */
static enum tandem_status check_sizes(const struct tnd_zip *zip, struct tandem_error *error)
{
    const char *name = zip->cursor.name;
    uint64_t packed = 0, unpacked = 0;
    if (zip->n > MAX_ARRAYS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)zip->n, MAX_ARRAYS,
                             "%s: %zu arrays, expected at most %d", tnd_short_name(name), zip->n,
                             MAX_ARRAYS);
    }
    for (size_t i = 0; i < zip->n; i++) {
        packed += zip->entries[i].packed_bytes; /* (each is inside of the file) */
        if (packed > zip->cursor.n) {
            return wrong(name, "shares its bytes with others, expected bytes of its own", i, error);
        }
        const uint64_t most = zip->cursor.n + SPARE_BYTES;
        unpacked += zip->entries[i].bytes > most ? most + 1 : zip->entries[i].bytes;
        if (unpacked > most) {
            return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)unpacked, (int64_t)most,
                                 "%s: the arrays are unpacked more than %llu bytes, expected at "
                                 "most that",
                                 tnd_short_name(name), (unsigned long long)most);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status take_name(const struct tnd_zip *zip, size_t i, struct tnd_npz *out,
                                    struct tandem_error *error)
{
    const struct tnd_zip_entry *entry = &zip->entries[i];
    const char *end = entry->name + entry->name_bytes;
    if (entry->name_bytes <= END_BYTES || memcmp(end - END_BYTES, END, END_BYTES) != 0 ||
        memchr(entry->name, '\0', entry->name_bytes) != NULL) {
        return wrong(zip->cursor.name, "is no NAME.npy", i, error);
    }
    const size_t n = entry->name_bytes - END_BYTES;
    char *copy = tnd_alloc(n + 1);
    if (copy == NULL) {
        return no_memory(zip->cursor.name, (int)zip->n, error);
    }
    memcpy(copy, entry->name, n);
    copy[n] = '\0';
    for (int k = 0; k < out->n; k++) {
        if (strcmp(out->names[k], copy) == 0) {
            tnd_free(copy);
            return wrong(zip->cursor.name, "has the name of another one", i, error);
        }
    }
    out->names[out->n++] = copy; /* (its array is still NULL) */
    return TANDEM_OK;
}

static enum tandem_status read_array(const struct tnd_zip *zip, const struct tnd_zip_entry *entry,
                                     const char *name, struct tnd_array **out,
                                     struct tandem_error *error)
{
    const uint8_t *contents = entry->data;
    void *memory = NULL;
    enum tandem_status status = tnd_zip_check(zip, entry, error);
    if (status == TANDEM_OK && !tnd_zip_is_stored(entry)) {
        memory = tnd_alloc(entry->bytes + 1);
        status = memory == NULL ? no_memory(zip->cursor.name, 1, error)
                                : tnd_zip_inflate(zip, entry, memory, error);
        contents = memory;
    }
    if (status == TANDEM_OK && tnd_zip_crc(0, contents, entry->bytes) != entry->crc) {
        status = tnd_error_set(error, TANDEM_E_FORMAT, zip->cursor.name, 0, entry->crc,
                               "%s: array %.60s does not have the checksum that the archive says",
                               tnd_short_name(zip->cursor.name), name);
    }
    if (status == TANDEM_OK) {
        status = tnd_npy_read(contents, entry->bytes, name, out, error);
    }
    tnd_free(memory);
    return status;
}

static enum tandem_status read_all(const struct tnd_zip *zip, struct tnd_npz *out,
                                   struct tandem_error *error)
{
    TND_TRY(check_sizes(zip, error));
    out->names = tnd_calloc(zip->n + 1, sizeof(out->names[0]));
    out->arrays = tnd_calloc(zip->n + 1, sizeof(out->arrays[0]));
    if (out->names == NULL || out->arrays == NULL) {
        return no_memory(zip->cursor.name, (int)zip->n, error);
    }
    for (size_t i = 0; i < zip->n; i++) {
        TND_TRY(take_name(zip, i, out, error));
        TND_TRY(read_array(zip, &zip->entries[i], out->names[i], &out->arrays[i], error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_npz_read(const void *bytes, size_t n, const char *name, struct tnd_npz *out,
                                struct tandem_error *error)
{
    struct tnd_npz npz = {.n = 0};
    struct tnd_zip zip;
    TND_TRY(tnd_zip_open(bytes, n, name, &zip, error));
    const enum tandem_status status = read_all(&zip, &npz, error);
    tnd_zip_close(&zip);
    if (status != TANDEM_OK) {
        tnd_npz_free(&npz);
        return status;
    }
    *out = npz;
    return TANDEM_OK;
}

enum tandem_status tnd_npz_open(const char *path, struct tnd_npz *out, struct tandem_error *error)
{
    struct tnd_file file;
    struct tnd_npz npz = {.n = 0};
    TND_TRY(tnd_file_map(path, false, &file, error));
    enum tandem_status status = tnd_npz_read(file.data, file.bytes, path, &npz, error);
    if (status == TANDEM_OK) {
        status = tnd_file_check(&file, error);
    }
    tnd_file_close(&file);
    if (status != TANDEM_OK) {
        tnd_npz_free(&npz);
        return status;
    }
    *out = npz;
    return TANDEM_OK;
}

void tnd_npz_free(struct tnd_npz *npz)
{
    for (int i = 0; i < npz->n; i++) {
        tnd_free(npz->names[i]);
        tnd_array_free(npz->arrays[i]);
    }
    tnd_free(npz->names);
    tnd_free(npz->arrays);
    *npz = (struct tnd_npz){.n = 0};
}

/* ---- writing ---- */

static void put(struct tnd_text *out, uint32_t value, int n)
{
    for (int i = 0; i < n; i++) {
        tnd_text_add_char(out, (char)(value >> (8 * i) & 255));
    }
}

/* What both headers of an entry have; the names are UTF-8 (bit 11 of the flags). */
static void put_entry(struct tnd_text *out, const char *name, uint32_t crc, uint32_t bytes)
{
    put(out, VERSION, 2);
    put(out, 1 << 11, 2);
    put(out, 0, 2); /* stored */
    put(out, 0, 2); /* midnight */
    put(out, EARLIEST_DATE, 2);
    put(out, crc, 4);
    put(out, bytes, 4);
    put(out, bytes, 4);
    put(out, (uint32_t)(strlen(name) + END_BYTES), 2);
    put(out, 0, 2);
}

static void put_central(struct tnd_text *out, const char *name, uint32_t crc, uint32_t bytes,
                        uint32_t place)
{
    tnd_text_add_bytes(out, "PK\1\2", 4);
    put(out, VERSION, 2);
    put_entry(out, name, crc, bytes);
    put(out, 0, 2 + 2); /* no comment, the first disk */
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, place, 4);
    tnd_text_add(out, name);
    tnd_text_add(out, END);
}

/* One array: local header and name, .npy header, values. `at` is the place in the file. */
static enum tandem_status write_array(struct tnd_file_stream *stream, const char *path,
                                      const char *name, const struct tnd_array *array,
                                      struct tnd_text *central, uint64_t *at,
                                      struct tandem_error *error)
{
    struct tnd_text header = TND_TEXT_INIT, local = TND_TEXT_INIT;
    const size_t values = (size_t)array->n * tandem_dtype_bytes(array->type);
    enum tandem_status status = tnd_npy_header(path, array, &header, error);
    const uint64_t end = *at + LOCAL_BYTES + strlen(name) + END_BYTES + header.n + values;
    if (status == TANDEM_OK && end > MAX_WRITTEN) {
        status = tnd_error_set(error, TANDEM_E_LIMIT, path, (int64_t)end, MAX_WRITTEN,
                               "%s: the archive has 4 GiB and more, expected less: write .npy "
                               "files",
                               tnd_short_name(path));
    }
    if (status == TANDEM_OK) {
        const uint32_t crc =
            tnd_zip_crc(tnd_zip_crc(0, header.bytes, header.n), array->data, values);
        const uint32_t bytes = (uint32_t)(header.n + values);
        tnd_text_add_bytes(&local, "PK\3\4", 4);
        put_entry(&local, name, crc, bytes);
        tnd_text_add(&local, name);
        tnd_text_add(&local, END);
        tnd_text_add_bytes(&local, header.bytes, header.n);
        put_central(central, name, crc, bytes, (uint32_t)*at);
        status = local.failed || central->failed
                     ? no_memory(path, 1, error)
                     : tnd_file_stream_write(stream, local.bytes, local.n, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_file_stream_write(stream, array->data, values, error);
    }
    *at = end;
    tnd_text_fini(&header);
    tnd_text_fini(&local);
    return status;
}

static enum tandem_status write_all(struct tnd_file_stream *stream, const char *path,
                                    const struct tnd_npz *npz, struct tnd_text *central,
                                    struct tandem_error *error)
{
    uint64_t at = 0;
    if (npz->n > UINT16_MAX - 1) {
        return tnd_error_set(error, TANDEM_E_LIMIT, path, npz->n, UINT16_MAX - 1,
                             "%s: %d arrays, expected at most %d", tnd_short_name(path), npz->n,
                             UINT16_MAX - 1);
    }
    for (int i = 0; i < npz->n; i++) {
        TND_TRY(write_array(stream, path, npz->names[i], npz->arrays[i], central, &at, error));
    }
    const uint32_t bytes = (uint32_t)central->n;
    tnd_text_add_bytes(central, "PK\5\6", 4);
    put(central, 0, 4);
    put(central, (uint32_t)npz->n, 2);
    put(central, (uint32_t)npz->n, 2);
    put(central, bytes, 4);
    put(central, (uint32_t)at, 4);
    put(central, 0, 2);
    return central->failed ? no_memory(path, npz->n, error)
                           : tnd_file_stream_write(stream, central->bytes, central->n, error);
}

enum tandem_status tnd_npz_save(const char *path, const struct tnd_npz *npz,
                                struct tandem_error *error)
{
    struct tnd_text central = TND_TEXT_INIT;
    struct tnd_file_stream stream;
    TND_TRY(tnd_file_stream_open(path, false, &stream, error));
    enum tandem_status status = write_all(&stream, path, npz, &central, error);
    if (status == TANDEM_OK) {
        status = tnd_file_stream_commit(&stream, error);
    } else {
        tnd_file_stream_abandon(&stream);
    }
    tnd_text_fini(&central);
    return status;
}
