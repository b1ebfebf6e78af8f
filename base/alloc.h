/* SPDX-License-Identifier: MIT
 * All heap memory of the library goes through here, so that tests can count it and make it fail. */
#ifndef TND_ALLOC_H
#define TND_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** `bytes` bytes (0 counts as 1), 64-byte aligned, NOT zeroed. NULL when there is no memory. Any
 * thread. */
void *tnd_alloc(size_t bytes) __attribute__((warn_unused_result));

/** `bytes` zeroes, aligned as malloc does. The system gives much memory only once something is
 * written there. NULL when there is no memory. Any thread. */
void *tnd_alloc_zeroes(size_t bytes) __attribute__((warn_unused_result));

/** `n` times `bytes`, 64-byte aligned, zeroed. NULL on overflow or when there is no memory. */
void *tnd_calloc(size_t n, size_t bytes) __attribute__((warn_unused_result));

/** Makes memory of tnd_alloc larger or smaller, keeping the first min(old_bytes, new_bytes) bytes.
 * On failure returns NULL and leaves `memory` as it is. `memory` may be NULL (old_bytes 0). */
void *tnd_realloc(void *memory, size_t old_bytes, size_t new_bytes)
    __attribute__((warn_unused_result));

/** At least `bytes` bytes at *io_memory, which has *io_bytes: where these are too few, in new
 * memory with room to spare, without the contents. False without memory: then there is none. */
bool tnd_reserve(void **io_memory, size_t *io_bytes, size_t bytes);

/** A copy of a string; NULL when `text` is NULL or there is no memory. Freed with tnd_free. */
char *tnd_strdup(const char *text) __attribute__((warn_unused_result));

/** Gives memory back. NULL is allowed. */
void tnd_free(void *memory);

/** Gives what was freed back to the system, where the C library can: it keeps what lies below
 * anything that lives. Worth it after much was freed for good. */
void tnd_alloc_trim(void);

/* ---- for tests ---- */

/** Makes the n-th allocation from now fail (1: the next one), and it alone; -1: none. */
void tnd_alloc_fail_after(long n);

/** Allocations that were not freed yet. */
long tnd_alloc_live(void);

/** Allocations since the process began, failed ones included. */
long tnd_alloc_count(void);

/** Bytes that were not freed yet, as the C library rounds them; 0 under tandem_set_allocator. */
size_t tnd_alloc_live_bytes(void);
/** Begins to look for the peak anew: the next two count from here. */
void tnd_alloc_peak_begin(void);
/** The most that tnd_alloc_live_bytes was. */
size_t tnd_alloc_peak_bytes(void);
/** The most that was asked for at once, also in vain. */
size_t tnd_alloc_largest(void);

#endif
