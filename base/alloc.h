/* SPDX-License-Identifier: MIT
 * All heap memory of the library goes through here, so that tests can count it and make it fail. */
#ifndef TND_ALLOC_H
#define TND_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** Allocates `bytes` bytes (0 counts as 1), 64-byte aligned, NOT zeroed. NULL when out of memory.
 * Any thread. */
void *tnd_alloc(size_t bytes) __attribute__((warn_unused_result));

/** Allocates `bytes` zeroed bytes, aligned as by malloc. For large sizes the system provides pages
 * only when they are first written. NULL when out of memory. Any thread. */
void *tnd_alloc_zeroes(size_t bytes) __attribute__((warn_unused_result));

/** Allocates `n` times `bytes` zeroed bytes, 64-byte aligned. NULL on overflow or when out of
 * memory. */
void *tnd_calloc(size_t n, size_t bytes) __attribute__((warn_unused_result));

/** Resizes memory from tnd_alloc, keeping the first min(old_bytes, new_bytes) bytes. On failure
 * returns NULL and leaves `memory` as it is. `memory` may be NULL (old_bytes 0). */
void *tnd_realloc(void *memory, size_t old_bytes, size_t new_bytes)
    __attribute__((warn_unused_result));

/** Makes sure that *io_memory has at least `bytes` bytes; *io_bytes is its capacity. If that is too
 * small, frees it and allocates a larger block with spare room; the contents are lost. False when
 * out of memory: then *io_memory is NULL and *io_bytes 0. */
bool tnd_reserve(void **io_memory, size_t *io_bytes, size_t bytes);

/** A copy of a string; NULL when `text` is NULL or there is no memory. Freed with tnd_free. */
char *tnd_strdup(const char *text) __attribute__((warn_unused_result));

/** Frees memory of the functions above. NULL is allowed. */
void tnd_free(void *memory);

/** Returns freed memory to the system, if the C library can (glibc keeps what lies below a live
 * allocation). Useful after a large amount was freed for good. */
void tnd_alloc_trim(void);

/* ---- for tests ---- */

/** Makes the n-th allocation from now fail (1: the next one), and only that one; -1: none. */
void tnd_alloc_fail_after(long n);

/** Number of live allocations. */
long tnd_alloc_live(void);

/** Number of allocations since the process began, failed ones included. */
long tnd_alloc_count(void);

/** Bytes of live allocations, as the C library rounds them; 0 under tandem_set_allocator. */
size_t tnd_alloc_live_bytes(void);
/** Resets the two maxima below. */
void tnd_alloc_peak_begin(void);
/** Maximum of tnd_alloc_live_bytes since tnd_alloc_peak_begin. */
size_t tnd_alloc_peak_bytes(void);
/** Largest single request in bytes since tnd_alloc_peak_begin, failed ones included. */
size_t tnd_alloc_largest(void);

#endif
