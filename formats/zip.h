/* SPDX-License-Identifier: MIT
 * Untrusted ZIP archives: entries stored or deflated, also ZIP64. */
#ifndef TND_ZIP_H
#define TND_ZIP_H

#include "formats/cursor.h"

struct tnd_zip_entry {
    const char *name; /* in the archive, not terminated */
    size_t name_bytes;
    unsigned method;
    uint32_t crc;        /* of the contents, as stated in the archive */
    const uint8_t *data; /* the stored or compressed bytes in the archive */
    size_t packed_bytes;
    size_t bytes; /* uncompressed size as stated in the archive, not checked */
};

struct tnd_zip {
    struct tnd_cursor cursor;
    struct tnd_zip_entry *entries;
    size_t n;
};

bool tnd_zip_is(const uint8_t *bytes, size_t n);
/** Reads the directory of an archive, whose bytes are borrowed. `name` is used in messages. End
 * with tnd_zip_close. Errors: FORMAT, TRUNCATED, MEMORY. */
enum tandem_status tnd_zip_open(const void *bytes, size_t n, const char *name, struct tnd_zip *out,
                                struct tandem_error *error);
void tnd_zip_close(struct tnd_zip *zip);

/** Whether `data` are the contents; else use tnd_zip_inflate. */
static inline bool tnd_zip_is_stored(const struct tnd_zip_entry *entry)
{
    return entry->method == 0;
}
/** Whether this build can read an entry. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_zip_check(const struct tnd_zip *zip, const struct tnd_zip_entry *entry,
                                 struct tandem_error *error);
/** Decompresses a deflated entry to `to`, of its `bytes` bytes. Errors: UNSUPPORTED_BUILD, FORMAT
 * (damaged, or another length). */
enum tandem_status tnd_zip_inflate(const struct tnd_zip *zip, const struct tnd_zip_entry *entry,
                                   void *to, struct tandem_error *error);
/** The checksum of bytes that follow others with checksum `before` (0: none). */
uint32_t tnd_zip_crc(uint32_t before, const void *bytes, size_t n);

#endif
