/* SPDX-License-Identifier: MIT
 * ZIP archives: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.12 (central
 * directory), 4.3.14 to 4.3.16 (ends), 4.5.3 (ZIP64). */
#include "formats/zip.h"

#include <string.h>

#ifdef TND_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/alloc.h"

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

bool tnd_zip_is(const uint8_t *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "PK\x03\x04", 4) == 0;
}

static enum tandem_status broken(const struct tnd_zip *zip, const char *what, uint64_t got,
                                 uint64_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, zip->cursor.name, (int64_t)got, (int64_t)limit,
                         "%s: ZIP archive: %s is %llu, expected at most %llu",
                         tnd_short_name(zip->cursor.name), what, (unsigned long long)got,
                         (unsigned long long)limit);
}

/* ---- the directory ---- */

/* Place and number of the directory's entries, from the end of the file. */
static enum tandem_status find_directory(const struct tnd_zip *zip, uint64_t *out_at,
                                         uint64_t *out_bytes, uint64_t *out_count,
                                         struct tandem_error *error)
{
    const uint8_t *bytes = zip->cursor.data;
    const size_t n = zip->cursor.n;
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
            return broken(zip, "the place of the ZIP64 end", at64, n, error);
        }
        *out_count = tnd_le64(bytes + at64 + 32);
        *out_bytes = tnd_le64(bytes + at64 + 40);
        *out_at = tnd_le64(bytes + at64 + 48);
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_TRUNCATED, zip->cursor.name, (int64_t)n, 0,
                         "%s: ZIP archive without directory at its end: the file is cut",
                         tnd_short_name(zip->cursor.name));
}

/* Sizes and place that did not fit into 32 bits stand in an extra field. */
static enum tandem_status read_extra(const struct tnd_zip *zip, const uint8_t *extra,
                                     size_t extra_bytes, uint64_t *const fields[3],
                                     struct tandem_error *error)
{
    size_t at = 0;
    while (extra_bytes - at >= 4) {
        const unsigned id = tnd_le16(extra + at);
        const size_t n = tnd_le16(extra + at + 2);
        at += 4;
        if (n > extra_bytes - at) {
            return broken(zip, "the length of an extra field", n, extra_bytes - at, error);
        }
        size_t used = 0;
        for (int i = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != UINT32_MAX) {
                continue;
            }
            if (n - used < 8) {
                return broken(zip, "the length used of a ZIP64 field", used + 8, n, error);
            }
            *fields[i] = tnd_le64(extra + at + used);
            used += 8;
        }
        at += n;
    }
    return TANDEM_OK;
}

/* Finds the data behind the local header. */
static enum tandem_status find_data(const struct tnd_zip *zip, uint64_t local,
                                    struct tnd_zip_entry *entry, uint64_t packed_bytes,
                                    struct tandem_error *error)
{
    struct tnd_cursor cursor = zip->cursor;
    const uint8_t *header = NULL;
    if (local > cursor.n) {
        return broken(zip, "the place of an entry", local, cursor.n, error);
    }
    cursor.at = (size_t)local;
    TND_TRY(tnd_cursor_take(&cursor, LOCAL_BYTES, "the header of an entry", &header, error));
    if (memcmp(header, "PK\x03\x04", 4) != 0) {
        return broken(zip, "the place of an entry without header", local, 0, error);
    }
    const uint64_t names = (uint64_t)tnd_le16(header + 26) + tnd_le16(header + 28);
    TND_TRY(tnd_cursor_take(&cursor, names, "the name of an entry", &header, error));
    TND_TRY(tnd_cursor_take(&cursor, packed_bytes, "the data of an entry", &entry->data, error));
    entry->packed_bytes = (size_t)packed_bytes;
    return TANDEM_OK;
}

static enum tandem_status read_entry(struct tnd_zip *zip, struct tnd_cursor *directory,
                                     struct tandem_error *error)
{
    struct tnd_zip_entry entry = {.name = NULL};
    const uint8_t *header = NULL;
    const uint8_t *name = NULL;
    const uint8_t *rest = NULL;
    TND_TRY(tnd_cursor_take(directory, ENTRY_BYTES, "an entry of the directory", &header, error));
    if (memcmp(header, "PK\x01\x02", 4) != 0) {
        return broken(zip, "the place of a directory's entry without mark",
                      directory->at - ENTRY_BYTES, 0, error);
    }
    if ((tnd_le16(header + 8) & ENCRYPTED) != 0) {
        return broken(zip, "the number of encrypted entries", 1, 0, error);
    }
    entry.method = tnd_le16(header + 10);
    entry.crc = tnd_le32(header + 16);
    entry.name_bytes = tnd_le16(header + 28);
    uint64_t packed_bytes = tnd_le32(header + 20);
    uint64_t bytes = tnd_le32(header + 24);
    uint64_t local = tnd_le32(header + 42);
    uint64_t *const fields[3] = {&bytes, &packed_bytes, &local};
    const size_t extra_bytes = tnd_le16(header + 30);
    TND_TRY(tnd_cursor_take(directory, entry.name_bytes, "a name", &name, error));
    TND_TRY(tnd_cursor_take(directory, extra_bytes, "an extra field", &rest, error));
    TND_TRY(read_extra(zip, rest, extra_bytes, fields, error));
    TND_TRY(tnd_cursor_take(directory, tnd_le16(header + 32), "a comment", &rest, error));
    entry.name = (const char *)name;
    if (entry.method == STORED && bytes != packed_bytes) {
        return broken(zip, "the size of a stored entry", bytes, packed_bytes, error);
    }
    if (bytes > SIZE_MAX / 2) {
        return broken(zip, "the size of an entry", bytes, SIZE_MAX / 2, error);
    }
    entry.bytes = (size_t)bytes;
    TND_TRY(find_data(zip, local, &entry, packed_bytes, error));
    zip->entries[zip->n++] = entry;
    return TANDEM_OK;
}

static enum tandem_status read_directory(struct tnd_zip *zip, struct tandem_error *error)
{
    uint64_t at = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;
    TND_TRY(find_directory(zip, &at, &bytes, &count, error));
    if (at > zip->cursor.n || bytes > zip->cursor.n - at) {
        return broken(zip, "the end of the directory", at + bytes, zip->cursor.n, error);
    }
    const uint64_t most = bytes / ENTRY_BYTES < MAX_ENTRIES ? bytes / ENTRY_BYTES : MAX_ENTRIES;
    if (count > most) {
        return broken(zip, "the number of entries", count, most, error);
    }
    zip->entries = tnd_calloc((size_t)count, sizeof(zip->entries[0]));
    if (zip->entries == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, zip->cursor.name, (int64_t)count, 0,
                             "%s: no memory for its %llu entries", tnd_short_name(zip->cursor.name),
                             (unsigned long long)count);
    }
    struct tnd_cursor directory = {zip->cursor.data, (size_t)(at + bytes), (size_t)at,
                                   zip->cursor.name};
    for (uint64_t i = 0; i < count; i++) {
        TND_TRY(read_entry(zip, &directory, error));
    }
    return TANDEM_OK;
}

/* ---- contents ---- */

#ifdef TND_HAVE_ZLIB
static bool inflate_all(const struct tnd_zip_entry *entry, uint8_t *to)
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

enum tandem_status tnd_zip_open(const void *bytes, size_t n, const char *name, struct tnd_zip *out,
                                struct tandem_error *error)
{
    *out = (struct tnd_zip){.cursor = {bytes, n, 0, name}};
    const enum tandem_status status = read_directory(out, error);
    if (status != TANDEM_OK) {
        tnd_zip_close(out);
    }
    return status;
}

void tnd_zip_close(struct tnd_zip *zip)
{
    tnd_free(zip->entries);
    zip->entries = NULL;
    zip->n = 0;
}

enum tandem_status tnd_zip_check(const struct tnd_zip *zip, const struct tnd_zip_entry *entry,
                                 struct tandem_error *error)
{
    bool is_known = tnd_zip_is_stored(entry);
#ifdef TND_HAVE_ZLIB
    is_known = is_known || entry->method == DEFLATED;
#endif
    return is_known ? TANDEM_OK
                    : tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, zip->cursor.name,
                                    entry->method, 0,
                                    "%s: ZIP archive: an entry is compressed by method %u, this "
                                    "build reads " METHODS_READ,
                                    tnd_short_name(zip->cursor.name), entry->method);
}

enum tandem_status tnd_zip_inflate(const struct tnd_zip *zip, const struct tnd_zip_entry *entry,
                                   void *to, struct tandem_error *error)
{
    TND_TRY(tnd_zip_check(zip, entry, error));
#ifdef TND_HAVE_ZLIB
    if (inflate_all(entry, to)) {
        return TANDEM_OK;
    }
#else
    (void)to;
#endif
    return broken(zip, "the number of damaged entries", 1, 0, error);
}

/* ---- checksums: polynomial 0xedb88320, section 4.4.7 ---- */

uint32_t tnd_zip_crc(uint32_t before, const void *bytes, size_t n)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) {
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
        }
    }
    uint32_t crc = ~before;
    for (size_t i = 0; i < n; i++) {
        crc = crc >> 8 ^ table[(crc ^ ((const uint8_t *)bytes)[i]) & 255];
    }
    return ~crc;
}
