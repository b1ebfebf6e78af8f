/* SPDX-License-Identifier: MIT
 * Reading untrusted bytes: a position in a range, and little-endian numbers. Never reads beyond the
 * end. */
#ifndef TND_CURSOR_H
#define TND_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"

struct tnd_cursor {
    const uint8_t *data;
    size_t n;
    size_t at;
    const char *name; /* of the file, for messages */
};

/** The path for messages: only its end if it is long. */
static inline const char *tnd_short_name(const char *path)
{
    const size_t most = 90;
    const size_t n = strlen(path);
    return n > most ? path + (n - most) : path;
}

static inline uint16_t tnd_le16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t tnd_le32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static inline uint64_t tnd_le64(const uint8_t *bytes)
{
    return (uint64_t)tnd_le32(bytes) | (uint64_t)tnd_le32(bytes + 4) << 32;
}

static inline size_t tnd_cursor_left(const struct tnd_cursor *cursor)
{
    TND_ASSERT(cursor->at <= cursor->n);
    return cursor->n - cursor->at;
}

/** Consumes `bytes` bytes. `what` names them in messages. Errors: TRUNCATED. */
enum tandem_status tnd_cursor_take(struct tnd_cursor *cursor, uint64_t bytes, const char *what,
                                   const uint8_t **out_bytes, struct tandem_error *error);
enum tandem_status tnd_cursor_u32(struct tnd_cursor *cursor, const char *what, uint32_t *out,
                                  struct tandem_error *error);
enum tandem_status tnd_cursor_u64(struct tnd_cursor *cursor, const char *what, uint64_t *out,
                                  struct tandem_error *error);

#endif
