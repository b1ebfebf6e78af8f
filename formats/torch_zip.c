/* SPDX-License-Identifier: MIT
 * Checkpoints since PyTorch 1.6: a ZIP archive with NAME/data.pkl, NAME/byteorder and the storages
 * NAME/data/KEY, mostly stored as they are. ZIP: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7 (local
 * header), 4.3.12 (central directory), 4.3.14 to 4.3.16 (ends), 4.5.3 (ZIP64). */
#include <stdlib.h>
#include <string.h>

#ifdef TND_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/alloc.h"
#include "formats/torch_pickle.h"

#define END_BYTES     22
#define ENTRY_BYTES   46
#define LOCAL_BYTES   30
#define MAX_COMMENT   65535
#define ENCRYPTED     1u
#define STORED        0
#define DEFLATED      8
#define MAX_ENTRIES   1000000
#define LOCATOR_BYTES 20
#define END64_BYTES   56
#ifdef TND_HAVE_ZLIB
#define METHODS_READ "0 (stored) and 8 (deflated)"
#else
#define METHODS_READ "0 (stored); with zlib it would read 8 (deflated) too"
#endif

struct entry {
    const char *name; /* in the file, not terminated */
    size_t name_bytes;
    unsigned method;
    const uint8_t *data; /* as it is in the archive */
    size_t packed_bytes;
    size_t bytes;
};

struct archive {
    struct tnd_cursor cursor;
    struct entry *entries;
    size_t n;
    tandem_source *source; /* owns what is unpacked */
};

bool tnd_torch_zip_is(const uint8_t *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "PK\x03\x04", 4) == 0;
}

static enum tandem_status broken(const struct archive *archive, const char *what, uint64_t got,
                                 uint64_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, archive->cursor.name, (int64_t)got, (int64_t)limit,
                         "%s: ZIP archive: %s is %llu, expected at most %llu",
                         tnd_short_name(archive->cursor.name), what, (unsigned long long)got,
                         (unsigned long long)limit);
}

/* ---- the directory ---- */

/* Place and number of the directory's entries, from the end of the file. */
static enum tandem_status find_directory(const struct archive *archive, uint64_t *out_at,
                                         uint64_t *out_bytes, uint64_t *out_count,
                                         struct tandem_error *error)
{
    const uint8_t *bytes = archive->cursor.data;
    const size_t n = archive->cursor.n;
    for (size_t back = END_BYTES; back <= n && back <= END_BYTES + MAX_COMMENT; back++) {
        const uint8_t *end = bytes + n - back;
        if (memcmp(end, "PK\x05\x06", 4) != 0) {
            continue;
        }
        *out_count = tnd_le16(end + 10);
        *out_bytes = tnd_le32(end + 12);
        *out_at = tnd_le32(end + 16);
        const size_t place = n - back;
        const uint8_t *locator = end - LOCATOR_BYTES;
        if (place < LOCATOR_BYTES || memcmp(locator, "PK\x06\x07", 4) != 0) {
            return TANDEM_OK;
        }
        const uint64_t at64 = tnd_le64(locator + 8);
        if (n < END64_BYTES || at64 > n - END64_BYTES ||
            memcmp(bytes + at64, "PK\x06\x06", 4) != 0) {
            return broken(archive, "the place of the ZIP64 end", at64, n, error);
        }
        *out_count = tnd_le64(bytes + at64 + 32);
        *out_bytes = tnd_le64(bytes + at64 + 40);
        *out_at = tnd_le64(bytes + at64 + 48);
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_TRUNCATED, archive->cursor.name, (int64_t)n, 0,
                         "%s: ZIP archive without directory at its end: the file is cut",
                         tnd_short_name(archive->cursor.name));
}

/* Sizes and place that did not fit into 32 bits stand in an extra field. */
static enum tandem_status read_extra(const struct archive *archive, const uint8_t *extra,
                                     size_t extra_bytes, uint64_t *const fields[3],
                                     struct tandem_error *error)
{
    size_t at = 0;
    while (extra_bytes - at >= 4) {
        const unsigned id = tnd_le16(extra + at);
        const size_t n = tnd_le16(extra + at + 2);
        at += 4;
        if (n > extra_bytes - at) {
            return broken(archive, "the length of an extra field", n, extra_bytes - at, error);
        }
        size_t used = 0;
        for (int i = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != UINT32_MAX) {
                continue;
            }
            if (n - used < 8) {
                return broken(archive, "the length used of a ZIP64 field", used + 8, n, error);
            }
            *fields[i] = tnd_le64(extra + at + used);
            used += 8;
        }
        at += n;
    }
    return TANDEM_OK;
}

/* Finds the data behind the local header. */
static enum tandem_status find_data(const struct archive *archive, uint64_t local,
                                    struct entry *entry, uint64_t packed_bytes,
                                    struct tandem_error *error)
{
    struct tnd_cursor cursor = archive->cursor;
    const uint8_t *header = NULL;
    if (local > cursor.n) {
        return broken(archive, "the place of an entry", local, cursor.n, error);
    }
    cursor.at = (size_t)local;
    TND_TRY(tnd_cursor_take(&cursor, LOCAL_BYTES, "the header of an entry", &header, error));
    if (memcmp(header, "PK\x03\x04", 4) != 0) {
        return broken(archive, "the place of an entry without header", local, 0, error);
    }
    const uint64_t names = (uint64_t)tnd_le16(header + 26) + tnd_le16(header + 28);
    TND_TRY(tnd_cursor_take(&cursor, names, "the name of an entry", &header, error));
    TND_TRY(tnd_cursor_take(&cursor, packed_bytes, "the data of an entry", &entry->data, error));
    entry->packed_bytes = (size_t)packed_bytes;
    return TANDEM_OK;
}

static enum tandem_status read_entry(struct archive *archive, struct tnd_cursor *directory,
                                     struct tandem_error *error)
{
    struct entry entry = {.name = NULL};
    const uint8_t *header = NULL;
    const uint8_t *name = NULL;
    const uint8_t *rest = NULL;
    TND_TRY(tnd_cursor_take(directory, ENTRY_BYTES, "an entry of the directory", &header, error));
    if (memcmp(header, "PK\x01\x02", 4) != 0) {
        return broken(archive, "the place of a directory's entry without mark",
                      directory->at - ENTRY_BYTES, 0, error);
    }
    if ((tnd_le16(header + 8) & ENCRYPTED) != 0) {
        return broken(archive, "the number of encrypted entries", 1, 0, error);
    }
    entry.method = tnd_le16(header + 10);
    entry.name_bytes = tnd_le16(header + 28);
    uint64_t packed_bytes = tnd_le32(header + 20);
    uint64_t bytes = tnd_le32(header + 24);
    uint64_t local = tnd_le32(header + 42);
    uint64_t *const fields[3] = {&bytes, &packed_bytes, &local};
    const size_t extra_bytes = tnd_le16(header + 30);
    TND_TRY(tnd_cursor_take(directory, entry.name_bytes, "a name", &name, error));
    TND_TRY(tnd_cursor_take(directory, extra_bytes, "an extra field", &rest, error));
    TND_TRY(read_extra(archive, rest, extra_bytes, fields, error));
    TND_TRY(tnd_cursor_take(directory, tnd_le16(header + 32), "a comment", &rest, error));
    entry.name = (const char *)name;
    if (entry.method == STORED && bytes != packed_bytes) {
        return broken(archive, "the size of a stored entry", bytes, packed_bytes, error);
    }
    if (bytes > SIZE_MAX / 2) {
        return broken(archive, "the size of an entry", bytes, SIZE_MAX / 2, error);
    }
    entry.bytes = (size_t)bytes;
    TND_TRY(find_data(archive, local, &entry, packed_bytes, error));
    archive->entries[archive->n++] = entry;
    return TANDEM_OK;
}

static enum tandem_status read_directory(struct archive *archive, struct tandem_error *error)
{
    uint64_t at = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;
    TND_TRY(find_directory(archive, &at, &bytes, &count, error));
    if (at > archive->cursor.n || bytes > archive->cursor.n - at) {
        return broken(archive, "the end of the directory", at + bytes, archive->cursor.n, error);
    }
    const uint64_t most = bytes / ENTRY_BYTES < MAX_ENTRIES ? bytes / ENTRY_BYTES : MAX_ENTRIES;
    if (count > most) {
        return broken(archive, "the number of entries", count, most, error);
    }
    archive->entries = tnd_calloc((size_t)count, sizeof(archive->entries[0]));
    if (archive->entries == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, archive->cursor.name, (int64_t)count, 0,
                             "%s: no memory for its %llu entries",
                             tnd_short_name(archive->cursor.name), (unsigned long long)count);
    }
    struct tnd_cursor directory = {archive->cursor.data, (size_t)(at + bytes), (size_t)at,
                                   archive->cursor.name};
    for (uint64_t i = 0; i < count; i++) {
        TND_TRY(read_entry(archive, &directory, error));
    }
    return TANDEM_OK;
}

/* ---- contents ---- */

#ifdef TND_HAVE_ZLIB
static bool inflate_all(const struct entry *entry, uint8_t *to)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)entry->data, .next_out = to};
    size_t in_left = entry->packed_bytes;
    size_t out_left = entry->bytes;
    int result = inflateInit2(&stream, -MAX_WBITS); /* without zlib's own header */
    const bool is_begun = result == Z_OK;
    while (result == Z_OK) {
        if (stream.avail_in == 0) {
            stream.avail_in = in_left > UINT32_MAX ? UINT32_MAX : (uInt)in_left;
            in_left -= stream.avail_in;
        }
        if (stream.avail_out == 0) {
            stream.avail_out = out_left > UINT32_MAX ? UINT32_MAX : (uInt)out_left;
            out_left -= stream.avail_out;
        }
        result = inflate(&stream, Z_NO_FLUSH);
    }
    if (is_begun) {
        (void)inflateEnd(&stream);
    }
    return result == Z_STREAM_END && out_left == 0 && stream.avail_out == 0;
}
#endif

/* Bytes of an entry; unpacked ones belong to the source. */
static enum tandem_status open_entry(struct archive *archive, const struct entry *entry,
                                     const uint8_t **out, struct tandem_error *error)
{
    if (entry->method == STORED) {
        *out = entry->data;
        return TANDEM_OK;
    }
#ifdef TND_HAVE_ZLIB
    if (entry->method == DEFLATED) {
        void *memory = NULL;
        TND_TRY(tnd_source_alloc(archive->source, archive->cursor.name, entry->bytes,
                                 archive->cursor.n, &memory, error));
        if (!inflate_all(entry, memory)) {
            return broken(archive, "the number of damaged entries", 1, 0, error);
        }
        *out = memory;
        return TANDEM_OK;
    }
#endif
    return tnd_error_set(
        error, TANDEM_E_UNSUPPORTED_BUILD, archive->cursor.name, entry->method, 0,
        "%s: ZIP archive: an entry is compressed by method %u, this build reads " METHODS_READ,
        tnd_short_name(archive->cursor.name), entry->method);
}

static bool ends_with(const struct entry *entry, const char *end)
{
    const size_t n = strlen(end);
    return entry->name_bytes >= n && memcmp(entry->name + entry->name_bytes - n, end, n) == 0;
}

/* The part of an entry's name behind the folder `root` and `folder`; NULL for one elsewhere. */
static const char *name_below(const struct entry *entry, const struct entry *root, size_t root_n,
                              const char *folder, size_t *out_n)
{
    const size_t n = strlen(folder);
    if (entry->name_bytes < root_n + n || memcmp(entry->name, root->name, root_n) != 0 ||
        memcmp(entry->name + root_n, folder, n) != 0) {
        return NULL;
    }
    *out_n = entry->name_bytes - root_n - n;
    return entry->name + root_n + n;
}

/* The pickle of the object: the data.pkl nearest to the root. */
static const struct entry *find_pickle(const struct archive *archive)
{
    const struct entry *found = NULL;
    for (size_t i = 0; i < archive->n; i++) {
        const struct entry *entry = &archive->entries[i];
        const bool is_whole = entry->name_bytes == strlen("data.pkl");
        if (ends_with(entry, "data.pkl") && (is_whole || ends_with(entry, "/data.pkl")) &&
            (found == NULL || entry->name_bytes < found->name_bytes)) {
            found = entry;
        }
    }
    return found;
}

static enum tandem_status find_storages(struct archive *archive, const struct entry *pickle,
                                        struct tnd_torch_storages *out, struct tandem_error *error)
{
    const size_t root_n = pickle->name_bytes - strlen("data.pkl");
    for (size_t i = 0; i < archive->n; i++) {
        const struct entry *entry = &archive->entries[i];
        struct tnd_torch_storage row = {.bytes = entry->bytes};
        row.key = name_below(entry, pickle, root_n, "data/", &row.key_bytes);
        if (row.key != NULL) {
            TND_TRY(open_entry(archive, entry, &row.data, error));
            out->rows[out->n++] = row;
            continue;
        }
        if (name_below(entry, pickle, root_n, "byteorder", &row.key_bytes) != NULL &&
            row.key_bytes == 0) {
            TND_TRY(open_entry(archive, entry, &row.data, error));
            out->is_big_endian = row.bytes == 3 && memcmp(row.data, "big", 3) == 0;
        }
    }
    tnd_torch_sort(out);
    return tnd_torch_check_keys(out, archive->cursor.name, error);
}

static enum tandem_status read_object(struct archive *archive, struct tnd_torch_storages *storages,
                                      enum tnd_torch_role role, struct tandem_error *error)
{
    struct tnd_pickle machine;
    const struct tnd_pickle_value *root = NULL;
    const uint8_t *bytes = NULL;
    const struct entry *pickle = find_pickle(archive);
    if (pickle == NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, archive->cursor.name, 0, 1,
                             "%s: ZIP archive without data.pkl: no PyTorch checkpoint",
                             tnd_short_name(archive->cursor.name));
    }
    TND_TRY(find_storages(archive, pickle, storages, error));
    TND_TRY(open_entry(archive, pickle, &bytes, error));
    tnd_pickle_init(&machine, bytes, pickle->bytes, 0, archive->cursor.name);
    enum tandem_status status = tnd_pickle_run(&machine, &root, error);
    if (status == TANDEM_OK) {
        status = tnd_torch_add(archive->source, root, storages, archive->cursor.name, role, error);
    }
    tnd_pickle_fini(&machine);
    return status;
}

enum tandem_status tnd_torch_zip_add(const void *bytes, size_t n, const char *path,
                                     enum tnd_torch_role role, tandem_source *source,
                                     struct tandem_error *error)
{
    struct archive archive = {.cursor = {bytes, n, 0, path}, .source = source};
    struct tnd_torch_storages storages = {.file_bytes = n};
    enum tandem_status status = read_directory(&archive, error);
    if (status == TANDEM_OK) {
        storages.rows = tnd_calloc(archive.n, sizeof(storages.rows[0]));
        status = storages.rows == NULL
                     ? tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)archive.n, 0,
                                     "%s: no memory for its list of storages", tnd_short_name(path))
                     : read_object(&archive, &storages, role, error);
    }
    tnd_free(archive.entries);
    tnd_free(storages.rows);
    return status;
}

enum tandem_status tnd_torch_zip_read(const void *bytes, size_t n, const char *path,
                                      tandem_source **out_source, struct tandem_error *error)
{
    tandem_source *source;
    TND_TRY(tnd_source_new("PyTorch, ZIP archive", &source, error));
    const enum tandem_status status =
        tnd_torch_zip_add(bytes, n, path, TND_TORCH_WHOLE, source, error);
    return tnd_source_end(status, source, out_source);
}
