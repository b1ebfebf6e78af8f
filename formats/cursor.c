/* SPDX-License-Identifier: MIT
 * Bytes and numbers from a range, or a message with the place. */
#include "formats/cursor.h"

enum tandem_status tnd_cursor_take(struct tnd_cursor *cursor, uint64_t bytes, const char *what,
                                   const uint8_t **out_bytes, struct tandem_error *error)
{
    if (bytes > tnd_cursor_left(cursor)) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, cursor->name,
                             (int64_t)tnd_cursor_left(cursor), (int64_t)bytes,
                             "%s: at byte %zu: %.60s needs %llu bytes, %zu are left",
                             tnd_short_name(cursor->name), cursor->at, what,
                             (unsigned long long)bytes, tnd_cursor_left(cursor));
    }
    *out_bytes = cursor->data + cursor->at;
    cursor->at += (size_t)bytes;
    return TANDEM_OK;
}

enum tandem_status tnd_cursor_u32(struct tnd_cursor *cursor, const char *what, uint32_t *out,
                                  struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    TND_TRY(tnd_cursor_take(cursor, 4, what, &bytes, error));
    *out = tnd_le32(bytes);
    return TANDEM_OK;
}

enum tandem_status tnd_cursor_u64(struct tnd_cursor *cursor, const char *what, uint64_t *out,
                                  struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    TND_TRY(tnd_cursor_take(cursor, 8, what, &bytes, error));
    *out = tnd_le64(bytes);
    return TANDEM_OK;
}
