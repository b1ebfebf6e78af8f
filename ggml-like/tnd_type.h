/* SPDX-License-Identifier: MIT
 * Traits of tensor types, one row a type, for the rooms that compute. The codecs are plain C and
 * are the truth that every SIMD version is compared with. */
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

/** Traits of a valid type; NULL otherwise. */
const struct tnd_type_traits *tnd_type_traits(enum tandem_type type);

/** How values are quantised that have an importance each (or NULL: all alike): `n` numbers, of
 * which what is not above 0 counts as 0. NULL: importance makes no other blocks of this type. */
typedef void tnd_quantize_weighted_fn(const float *src, const float *importance, void *dst,
                                      int64_t n);
tnd_quantize_weighted_fn *tnd_type_quantize_weighted(enum tandem_type type);

#endif
