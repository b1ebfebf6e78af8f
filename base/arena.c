/* SPDX-License-Identifier: MIT
 * Bump arena over a list of chunks. Chunks before `current` are full, `current` is being filled,
 * those after it are empty (left over from before a reset). */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/tnd_assert.h"

/* With AddressSanitizer, memory that belongs to no allocation of the arena is poisoned. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define FORBID(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define PERMIT(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define FORBID(memory, bytes) ((void)(memory), (void)(bytes))
#define PERMIT(memory, bytes) ((void)(memory), (void)(bytes))
#endif

enum {
    DEFAULT_CHUNK_BYTES = 1 << 20,
    HEADER_BYTES = 64,
    /* Chunks of at least this size are allocated with tnd_alloc_zeroes, so that the system provides
     * pages when they are first written: a KV cache for 131,072 tokens uses memory only for the
     * tokens in it. */
    LARGE_CHUNK_BYTES = 4 << 20
};

struct tnd_arena_chunk {
    struct tnd_arena_chunk *next;
    size_t capacity; /* after the header */
    size_t used;
    size_t written; /* length of the prefix that may hold bytes other than 0 */
};
_Static_assert(sizeof(struct tnd_arena_chunk) <= HEADER_BYTES, "the header has its place");

static char *chunk_data(struct tnd_arena_chunk *chunk)
{
    return (char *)chunk + HEADER_BYTES;
}

void tnd_arena_init(struct tnd_arena *arena, size_t chunk_bytes, size_t limit_bytes)
{
    memset(arena, 0, sizeof(*arena));
    arena->chunk_bytes = chunk_bytes > 0 ? chunk_bytes : DEFAULT_CHUNK_BYTES;
    arena->limit_bytes = limit_bytes > 0 ? limit_bytes : SIZE_MAX;
}

void tnd_arena_fini(struct tnd_arena *arena)
{
    struct tnd_arena_chunk *chunk = arena->first;
    while (chunk != NULL) {
        struct tnd_arena_chunk *next = chunk->next;
        PERMIT(chunk_data(chunk), chunk->capacity);
        tnd_free(chunk);
        chunk = next;
    }
    arena->first = NULL;
    arena->current = NULL;
    arena->taken_bytes = 0;
}

struct tnd_arena *tnd_arena_new(size_t chunk_bytes, size_t limit_bytes)
{
    struct tnd_arena *arena = tnd_alloc(sizeof(*arena));
    if (arena != NULL) {
        tnd_arena_init(arena, chunk_bytes, limit_bytes);
    }
    return arena;
}

void tnd_arena_free(struct tnd_arena *arena)
{
    if (arena != NULL) {
        tnd_arena_fini(arena);
        tnd_free(arena);
    }
}

void tnd_arena_reset(struct tnd_arena *arena)
{
    for (struct tnd_arena_chunk *chunk = arena->first; chunk != NULL; chunk = chunk->next) {
        chunk->used = 0;
        FORBID(chunk_data(chunk), chunk->capacity);
    }
    arena->current = arena->first;
}

/* Allocates from a chunk; NULL when the chunk is too full. */
static void *chunk_take(struct tnd_arena_chunk *chunk, size_t bytes, size_t alignment)
{
    TND_ASSERT(chunk->used <= chunk->capacity);
    uintptr_t at = (uintptr_t)chunk_data(chunk) + chunk->used;
    size_t gap = (size_t)(-at & (alignment - 1));
    size_t left = chunk->capacity - chunk->used;
    if (gap > left || bytes > left - gap) {
        return NULL;
    }
    const size_t begin = chunk->used + gap;
    char *memory = chunk_data(chunk) + begin;
    chunk->used = begin + bytes;
    PERMIT(memory, bytes);
    if (begin < chunk->written) {
        const size_t old = chunk->written - begin;
        memset(memory, 0, bytes < old ? bytes : old);
    }
    chunk->written = chunk->used > chunk->written ? chunk->used : chunk->written;
    return memory;
}

/* Appends a chunk after the current one that can hold this allocation; NULL when out of memory. */
static struct tnd_arena_chunk *chunk_new(struct tnd_arena *arena, size_t bytes, size_t alignment)
{
    size_t allowed = arena->limit_bytes - arena->taken_bytes;
    size_t need;
    /* The data begin at a multiple of 64; a larger alignment may skip up to the difference. */
    if (!tnd_add_size(bytes, alignment > HEADER_BYTES ? alignment - HEADER_BYTES : 0, &need) ||
        !tnd_add_size(need, HEADER_BYTES, &need) || need > allowed) {
        return NULL;
    }
    size_t wanted = arena->chunk_bytes < allowed ? arena->chunk_bytes : allowed;
    size_t taken = wanted > need ? wanted : need;
    /* tnd_alloc_zeroes aligns to less than 64: room for up to HEADER_BYTES more. */
    const bool is_large = taken >= LARGE_CHUNK_BYTES && allowed - taken >= HEADER_BYTES;
    taken += is_large ? HEADER_BYTES : 0;
    struct tnd_arena_chunk *chunk = is_large ? tnd_alloc_zeroes(taken) : tnd_alloc(taken);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->capacity = taken - HEADER_BYTES;
    chunk->used = 0;
    chunk->written = is_large ? 0 : chunk->capacity;
    chunk->next = arena->current != NULL ? arena->current->next : NULL;
    if (arena->current != NULL) {
        arena->current->next = chunk;
    } else {
        arena->first = chunk;
    }
    arena->taken_bytes += taken;
    FORBID(chunk_data(chunk), chunk->capacity);
    return chunk;
}

void *tnd_arena_alloc(struct tnd_arena *arena, size_t bytes, size_t alignment)
{
    TND_ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
    for (struct tnd_arena_chunk *chunk = arena->current; chunk != NULL; chunk = chunk->next) {
        void *memory = chunk_take(chunk, bytes, alignment);
        if (memory != NULL) {
            /* Empty chunks that were too small stay after `chunk`, not before it. */
            if (chunk != arena->current && chunk != arena->current->next) {
                struct tnd_arena_chunk *before = arena->current;
                while (before->next != chunk) {
                    before = before->next;
                }
                before->next = chunk->next;
                chunk->next = arena->current->next;
                arena->current->next = chunk;
            }
            arena->current = chunk;
            return memory;
        }
    }
    struct tnd_arena_chunk *chunk = chunk_new(arena, bytes, alignment);
    if (chunk == NULL) {
        return NULL;
    }
    arena->current = chunk;
    return chunk_take(chunk, bytes, alignment);
}

size_t tnd_arena_bytes(const struct tnd_arena *arena)
{
    return arena->taken_bytes;
}
