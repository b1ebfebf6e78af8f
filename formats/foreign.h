/* SPDX-License-Identifier: MIT
 * Tensors in layouts of other libraries: types that we lack, strides, byte order. Data that we can
 * use is borrowed; other data is copied to memory of the source: 64-bit floats are rounded to F32,
 * other integers and bools become I32 (values out of its range are refused). */
#ifndef TND_FOREIGN_H
#define TND_FOREIGN_H

#include "formats/source.h"

/* X(NAME, safetensors' name, torch's storage class, bytes, our type) */
#define TND_FOREIGN_TYPE_LIST(X)                                                                   \
    X(F32, "F32", "FloatStorage", 4, F32)                                                          \
    X(F16, "F16", "HalfStorage", 2, F16)                                                           \
    X(BF16, "BF16", "BFloat16Storage", 2, BF16)                                                    \
    X(F64, "F64", "DoubleStorage", 8, F32)                                                         \
    X(I64, "I64", "LongStorage", 8, I32)                                                           \
    X(I32, "I32", "IntStorage", 4, I32)                                                            \
    X(I16, "I16", "ShortStorage", 2, I32)                                                          \
    X(I8, "I8", "CharStorage", 1, I32)                                                             \
    X(U8, "U8", "ByteStorage", 1, I32)                                                             \
    X(BOOL, "BOOL", "BoolStorage", 1, I32)

enum tnd_foreign_type {
#define TND_FOREIGN_ENUM(name, safetensors, storage, bytes, type) TND_FOREIGN_##name,
    TND_FOREIGN_TYPE_LIST(TND_FOREIGN_ENUM)
#undef TND_FOREIGN_ENUM
        TND_FOREIGN_TYPES
};

/** A view of a storage. */
struct tnd_foreign_tensor {
    const char *name;
    const char *path; /* of the file, for messages */
    enum tnd_foreign_type type;
    int n_dims;
    int64_t shape[TANDEM_MAX_DIMS];   /* slowest first, as these formats write it */
    int64_t strides[TANDEM_MAX_DIMS]; /* in values */
    int64_t offset;                   /* in values */
    const uint8_t *storage;
    size_t storage_bytes;
    bool is_big_endian;
    bool widens;       /* converts F16 and BF16 to F32 */
    size_t file_bytes; /* bounds the copied bytes */
};

/** Bytes of a value. */
size_t tnd_foreign_bytes(enum tnd_foreign_type type);
/** Type by safetensors' name, or by torch's storage class; false: unknown. */
bool tnd_foreign_from_name(const char *name, enum tnd_foreign_type *out);
bool tnd_foreign_from_storage(const char *name, enum tnd_foreign_type *out);

/** Sets the strides of a tensor without gaps; false: they do not fit in 63 bits. */
bool tnd_foreign_dense(struct tnd_foreign_tensor *tensor);

/** Adds the tensor to a source. Errors: FORMAT, LIMIT, MEMORY. */
enum tandem_status tnd_foreign_add(tandem_source *source, const struct tnd_foreign_tensor *tensor,
                                   struct tandem_error *error);

#endif
