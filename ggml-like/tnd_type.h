/* SPDX-License-Identifier: MIT
 * Traits of tensor types, one row per type, for the rooms that compute. The codecs are plain C and
 * the reference for every SIMD version. */
#ifndef TND_TYPE_H
#define TND_TYPE_H

#include "tandem/tensor.h"

struct tnd_type_traits {
    const char *name;
    int64_t block_values;
    size_t block_bytes;
    /** `n` values, a multiple of block_values. NULL for I32. */
    void (*dequantize)(const void *src, float *dst, int64_t n);
    void (*quantize)(const float *src, void *dst, int64_t n);
};

/** Traits of a type; NULL if the type is not valid. */
const struct tnd_type_traits *tnd_type_traits(enum tandem_type type);

/** Quantises values with an importance each (NULL: all equal): `n` numbers, where anything not
 * above 0 counts as 0. NULL: this type's blocks do not depend on importance. */
typedef void tnd_quantize_weighted_fn(const float *src, const float *importance, void *dst,
                                      int64_t n);
tnd_quantize_weighted_fn *tnd_type_quantize_weighted(enum tandem_type type);

#endif
