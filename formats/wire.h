/* SPDX-License-Identifier: MIT
 * Messages in the wire format of Protocol Buffers, field by field. Source:
 * https://protobuf.dev/programming-guides/encoding. The bytes are not trusted. */
#ifndef TND_WIRE_H
#define TND_WIRE_H

#include "formats/cursor.h"

enum { TND_WIRE_VARINT = 0, TND_WIRE_8_BYTES = 1, TND_WIRE_BYTES = 2, TND_WIRE_4_BYTES = 5 };

/** One field of a message. */
struct tnd_wire_field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;       /* for a varint or fixed number */
    const uint8_t *bytes; /* for TND_WIRE_BYTES: points into the cursor's data */
    size_t n;
};

/** Parses a varint. `what` names it in messages. Errors: TRUNCATED, FORMAT (too long). */
enum tandem_status tnd_wire_varint(struct tnd_cursor *cursor, const char *what, uint64_t *out,
                                   struct tandem_error *error);

/** Parses the next field of a message; bytes must be left. Errors: TRUNCATED, FORMAT. */
enum tandem_status tnd_wire_next(struct tnd_cursor *cursor, struct tnd_wire_field *out,
                                 struct tandem_error *error);

/** A cursor over the message inside a field of TND_WIRE_BYTES. It keeps positions in the file for
 * messages. Asserts that the field lies in `file`. */
struct tnd_cursor tnd_wire_inside(const struct tnd_cursor *file,
                                  const struct tnd_wire_field *field);

#endif
