/* SPDX-License-Identifier: MIT
 * The only place where the library takes heap memory, with counters and planned failures for
 * tests. */
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* Statistics: nothing is published through them, so relaxed order is enough. */
static atomic_long live;
static atomic_long count;
static atomic_long live_bytes;
static atomic_long peak_bytes;    /* the most that live_bytes was since tnd_alloc_peak_begin */
static atomic_long largest_bytes; /* the most that was asked for at once since then */
static atomic_long failing = -1;  /* allocations until the one that fails; not positive: none */

static bool must_fail(void)
{
    if (atomic_load_explicit(&failing, memory_order_relaxed) <= 0) {
        return false;
    }
    return atomic_fetch_sub_explicit(&failing, 1, memory_order_relaxed) == 1;
}

static void raise_to(atomic_long *most, long value)
{
    long seen = atomic_load_explicit(most, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               most, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
        /* somebody else raised it: look again */
    }
}

static void note_bytes(const void *memory)
{
    const long bytes = (long)malloc_usable_size((void *)memory);
    const long before = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
    raise_to(&peak_bytes, before + bytes);
}

void *tnd_alloc(size_t bytes)
{
    void *memory = NULL;
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    raise_to(&largest_bytes, bytes < (size_t)LONG_MAX ? (long)bytes : LONG_MAX);
    if (must_fail() || posix_memalign(&memory, ALIGNMENT, bytes > 0 ? bytes : 1) != 0) {
        return NULL;
    }
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    note_bytes(memory);
    return memory;
}

void *tnd_calloc(size_t n, size_t bytes)
{
    size_t all;
    if (!tnd_mul_size(n, bytes, &all)) {
        return NULL;
    }
    void *memory = tnd_alloc(all);
    if (memory != NULL) {
        memset(memory, 0, all);
    }
    return memory;
}

void *tnd_realloc(void *memory, size_t old_bytes, size_t new_bytes)
{
    void *moved = tnd_alloc(new_bytes);
    if (moved == NULL) {
        return NULL;
    }
    if (memory != NULL) {
        memcpy(moved, memory, old_bytes < new_bytes ? old_bytes : new_bytes);
        tnd_free(memory);
    }
    return moved;
}

char *tnd_strdup(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    size_t bytes = strlen(text) + 1;
    char *copy = tnd_alloc(bytes);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void tnd_free(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&live_bytes, (long)malloc_usable_size(memory),
                                  memory_order_relaxed);
        free(memory);
    }
}

void tnd_alloc_fail_after(long n)
{
    atomic_store_explicit(&failing, n, memory_order_relaxed);
}

long tnd_alloc_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

long tnd_alloc_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

void tnd_alloc_peak_begin(void)
{
    atomic_store_explicit(&peak_bytes, atomic_load_explicit(&live_bytes, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&largest_bytes, 0, memory_order_relaxed);
}

size_t tnd_alloc_live_bytes(void)
{
    return (size_t)atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

size_t tnd_alloc_peak_bytes(void)
{
    return (size_t)atomic_load_explicit(&peak_bytes, memory_order_relaxed);
}

size_t tnd_alloc_largest(void)
{
    return (size_t)atomic_load_explicit(&largest_bytes, memory_order_relaxed);
}
