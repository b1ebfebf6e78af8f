/* SPDX-License-Identifier: MIT
 * Bump arena: many small allocations that are freed together. One thread at a time per arena. */
#ifndef TND_ARENA_H
#define TND_ARENA_H

#include <stddef.h>

struct tnd_arena_chunk;

/** The members are private; the struct is declared here so that it can be embedded. */
struct tnd_arena {
    struct tnd_arena_chunk *first;
    struct tnd_arena_chunk *current;
    size_t chunk_bytes;
    size_t limit_bytes;
    size_t taken_bytes;
};

/** Initialises an empty arena. It grows by at least `chunk_bytes` at a time (0: 1 MiB) and never
 * allocates more than `limit_bytes` in all (0: no limit). Allocates nothing itself. */
void tnd_arena_init(struct tnd_arena *arena, size_t chunk_bytes, size_t limit_bytes);

/** Frees all memory; the arena is empty again, as after init. */
void tnd_arena_fini(struct tnd_arena *arena);

/** Like tnd_arena_init and tnd_arena_fini, for an arena that lives on the heap; new returns NULL
 * when out of memory, free accepts NULL. */
struct tnd_arena *tnd_arena_new(size_t chunk_bytes, size_t limit_bytes);
void tnd_arena_free(struct tnd_arena *arena);

/** Frees all allocations and keeps the memory for re-use. */
void tnd_arena_reset(struct tnd_arena *arena);

/** Zeroed memory. `alignment` is a power of two. NULL when memory or the limit is exhausted. Two
 * allocations of 0 bytes may be the same address. */
void *tnd_arena_alloc(struct tnd_arena *arena, size_t bytes, size_t alignment);

/** Bytes allocated for chunks. */
size_t tnd_arena_bytes(const struct tnd_arena *arena);

#endif
