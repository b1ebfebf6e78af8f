/* SPDX-License-Identifier: MIT
 * The wire format of Protocol Buffers: numbers of variable length, keys, fields. */
#include "formats/wire.h"

#define MAX_VARINT_BYTES 10

enum tandem_status tnd_wire_varint(struct tnd_cursor *cursor, const char *what, uint64_t *out,
                                   struct tandem_error *error)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < MAX_VARINT_BYTES; i++) {
        const uint8_t *byte = NULL;
        TND_TRY(tnd_cursor_take(cursor, 1, what, &byte, error));
        value |= (uint64_t)(*byte & 0x7f) << (7 * i);
        if (*byte < 0x80) {
            *out = value;
            return TANDEM_OK;
        }
    }
    return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)cursor->at,
                         MAX_VARINT_BYTES,
                         "%s: the number before byte %zu takes more than %d bytes",
                         tnd_short_name(cursor->name), cursor->at, MAX_VARINT_BYTES);
}

enum tandem_status tnd_wire_next(struct tnd_cursor *cursor, struct tnd_wire_field *out,
                                 struct tandem_error *error)
{
    const size_t start = cursor->at;
    const uint8_t *bytes = NULL;
    uint64_t key = 0;
    TND_TRY(tnd_wire_varint(cursor, "a number", &key, error));
    *out = (struct tnd_wire_field){.number = (uint32_t)(key >> 3), .wire = (uint32_t)(key & 7)};
    switch (out->wire) {
    case TND_WIRE_VARINT:
        return tnd_wire_varint(cursor, "a number", &out->value, error);
    case TND_WIRE_4_BYTES:
        TND_TRY(tnd_cursor_take(cursor, 4, "a number of 4 bytes", &bytes, error));
        out->value = tnd_le32(bytes);
        return TANDEM_OK;
    case TND_WIRE_8_BYTES:
        TND_TRY(tnd_cursor_take(cursor, 8, "a number of 8 bytes", &bytes, error));
        out->value = tnd_le64(bytes);
        return TANDEM_OK;
    case TND_WIRE_BYTES: {
        uint64_t n = 0;
        TND_TRY(tnd_wire_varint(cursor, "a length", &n, error));
        TND_TRY(tnd_cursor_take(cursor, n, "a field", &out->bytes, error));
        out->n = (size_t)n;
        return TANDEM_OK;
    }
    default:
        return tnd_error_set(
            error, TANDEM_E_FORMAT, cursor->name, out->wire, TND_WIRE_4_BYTES,
            "%s: the field at byte %zu has the wire type %u, expected 0, 1, 2 or 5",
            tnd_short_name(cursor->name), start, out->wire);
    }
}

struct tnd_cursor tnd_wire_inside(const struct tnd_cursor *file, const struct tnd_wire_field *field)
{
    TND_ASSERT(field->wire == TND_WIRE_BYTES && field->bytes >= file->data);
    const size_t at = (size_t)(field->bytes - file->data);
    return (struct tnd_cursor){
        .data = file->data, .n = at + field->n, .at = at, .name = file->name};
}
