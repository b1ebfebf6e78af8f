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
#define TND_GGUF_MAX_DEPTH         4 /* of nested lists */

/* X(NAME, number, bytes of a value; for TEXT and ARRAY the minimum). */
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

/* The type number of BCML1 in older files, whose blocks have Q4_1's order. */
#define TND_GGUF_BCML1_BEFORE 240

enum tnd_gguf_type {
#define TND_GGUF_TYPE_ENUM(name, number, bytes) TND_GGUF_##name = number,
    TND_GGUF_TYPE_LIST(TND_GGUF_TYPE_ENUM)
#undef TND_GGUF_TYPE_ENUM
        TND_GGUF_TYPES
};

/** Minimum bytes of a value of a type; 0: no such type. */
size_t tnd_gguf_type_bytes(uint32_t type);

/** Reads a scalar at `bytes`; sets kind and integer or number of `out`. The type is neither text
 * nor list. */
void tnd_gguf_scalar(uint32_t type, const uint8_t *bytes, struct tnd_source_value *out);

/** Whether the bytes start like a GGUF file. */
bool tnd_gguf_is(const uint8_t *bytes, size_t n);

/** Reads a file in memory, which the source borrows; the other files of a split model are mapped
 * from the folder of `path`. Errors: FORMAT, TRUNCATED, UNSUPPORTED_BUILD, FILE, MEMORY, LIMIT. */
enum tandem_status tnd_gguf_read(const void *bytes, size_t n, const char *path,
                                 tandem_source **out_source, struct tandem_error *error);

/** gguf_metadata.c: reads `count` keys and values into `source` (NULL: only checks them). Errors:
 * those of tnd_gguf_read. */
enum tandem_status tnd_gguf_read_values(struct tnd_cursor *cursor, uint64_t count,
                                        tandem_source *source, struct tandem_error *error);

#endif
