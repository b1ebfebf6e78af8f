/* SPDX-License-Identifier: MIT
 * GGUF, the container of the ggml project: facts of the format and its reader. Source: docs/gguf.md
 * of ggml-org/ggml (commit 01f0d4da). */
#ifndef TND_GGUF_H
#define TND_GGUF_H

#include "formats/cursor.h"
#include "formats/source.h"

#define TND_GGUF_VERSION           3
#define TND_GGUF_DEFAULT_ALIGNMENT 32
#define TND_GGUF_MAX_ALIGNMENT     65536
#define TND_GGUF_MAX_NAME          64
#define TND_GGUF_MAX_KEY           65535
#define TND_GGUF_MAX_DEPTH         4 /* of lists in lists */

/* X(NAME, number, bytes of one; of TEXT and ARRAY the least). */
#define TND_GGUF_TYPE_LIST(X)                                                                      \
    X(U8, 0, 1)                                                                                    \
    X(I8, 1, 1)                                                                                    \
    X(U16, 2, 2)                                                                                   \
    X(I16, 3, 2)                                                                                   \
    X(U32, 4, 4)                                                                                   \
    X(I32, 5, 4)                                                                                   \
    X(F32, 6, 4)                                                                                   \
    X(BOOL, 7, 1)                                                                                  \
    X(TEXT, 8, 8)                                                                                  \
    X(ARRAY, 9, 12)                                                                                \
    X(U64, 10, 8)                                                                                  \
    X(I64, 11, 8)                                                                                  \
    X(F64, 12, 8)

/* Number of BCML1 in files that have the order of Q4_1. */
#define TND_GGUF_BCML1_BEFORE 240

enum tnd_gguf_type {
#define TND_GGUF_TYPE_ENUM(name, number, bytes) TND_GGUF_##name = number,
    TND_GGUF_TYPE_LIST(TND_GGUF_TYPE_ENUM)
#undef TND_GGUF_TYPE_ENUM
        TND_GGUF_TYPES
};

/** Bytes of one value of a type, at least; 0 for a number that is no type. */
size_t tnd_gguf_type_bytes(uint32_t type);

/** A scalar that stands at `bytes`; `out` gets kind, integer or number. The type is no text and no
 *  list. */
void tnd_gguf_scalar(uint32_t type, const uint8_t *bytes, struct tnd_source_value *out);

/** Whether the bytes begin like a GGUF file. */
bool tnd_gguf_is(const uint8_t *bytes, size_t n);

/** Reads a file in memory, which the source borrows; the other files of a split model are found
 *  beside `path` and mapped. Errors: FORMAT, TRUNCATED, UNSUPPORTED_BUILD, FILE, MEMORY, LIMIT. */
enum tandem_status tnd_gguf_read(const void *bytes, size_t n, const char *path,
                                 tandem_source **out_source, struct tandem_error *error);

/** gguf_metadata.c: reads `count` keys with their values into `source` (NULL: checks them only).
 *  Errors: as above. */
enum tandem_status tnd_gguf_read_values(struct tnd_cursor *cursor, uint64_t count,
                                        tandem_source *source, struct tandem_error *error);

#endif
