/* SPDX-License-Identifier: MIT
 * Arithmetic that notices overflow. Each function returns false on overflow and leaves `out`
 * untouched. */
#ifndef TND_CHECKED_H
#define TND_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tnd_add_size(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *out = sum;
    return true;
}

static inline bool tnd_mul_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *out = product;
    return true;
}

static inline bool tnd_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *out = sum;
    return true;
}

static inline bool tnd_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *out = product;
    return true;
}

/** Rounds up to a multiple of `alignment`, a power of two. */
static inline bool tnd_align_up(size_t size, size_t alignment, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(size, alignment - 1, &sum)) {
        return false;
    }
    *out = sum & ~(alignment - 1);
    return true;
}

/** Lays out one of several arrays in a block: `n` items of `bytes` each at *out_at, the first
 * multiple of 64 from *io_bytes on; *io_bytes becomes the end of the array. */
static inline bool tnd_add_array(size_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, 64, out_at) && tnd_mul_size(n, bytes, &all) &&
           tnd_add_size(*out_at, all, io_bytes);
}

#endif
