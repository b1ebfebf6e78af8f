/* SPDX-License-Identifier: MIT
 * The only place where the library allocates heap memory, from the C library or from the program's
 * allocator. Counts allocations, and can make one fail for tests. */
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "tandem/allocator.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* Statistics: nothing is published through them, so relaxed order is enough. */
static atomic_long live;
static atomic_long count;
static atomic_long live_bytes;
static atomic_long peak_bytes;    /* maximum of live_bytes since tnd_alloc_peak_begin */
static atomic_long largest_bytes; /* largest single request since then */
static atomic_long failing = -1;  /* counts down to the allocation that fails; 0 or less: none */

/* Changes only while nothing is allocated and no other thread is in the library
 * (tandem_set_allocator). */
static struct tandem_allocator program; /* `allocate` is NULL: the C library's is used */

static void *take(size_t bytes)
{
    void *memory = NULL;
    if (program.allocate == NULL) {
        return posix_memalign(&memory, ALIGNMENT, bytes) == 0 ? memory : NULL;
    }
    memory = program.allocate(program.user, bytes, ALIGNMENT);
    if ((uintptr_t)memory % ALIGNMENT != 0) { /* aligned vector loads would crash */
        program.release(program.user, memory);
        return NULL;
    }
    return memory;
}

/* 0 with the program's allocator: only the C library can report the size of an allocation. */
static long bytes_of(void *memory)
{
    return program.allocate == NULL ? (long)malloc_usable_size(memory) : 0;
}

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
        /* another thread raised it: compare again */
    }
}

static void note_bytes(void *memory)
{
    const long bytes = bytes_of(memory);
    const long before = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
    raise_to(&peak_bytes, before + bytes);
}

/* Allocates and updates the counters. */
static void *take_counted(size_t bytes, bool is_zeroed)
{
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    raise_to(&largest_bytes, bytes < (size_t)LONG_MAX ? (long)bytes : LONG_MAX);
    const size_t all = bytes > 0 ? bytes : 1;
    const bool is_fresh = is_zeroed && program.allocate == NULL;
    void *memory = must_fail() ? NULL : is_fresh ? calloc(1, all) : take(all);
    if (memory == NULL) {
        return NULL;
    }
    if (is_zeroed && !is_fresh) {
        memset(memory, 0, all);
    }
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    note_bytes(memory);
    return memory;
}

void *tnd_alloc(size_t bytes)
{
    return take_counted(bytes, false);
}

void *tnd_alloc_zeroes(size_t bytes)
{
    return take_counted(bytes, true);
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

void tnd_alloc_trim(void)
{
#if defined(__GLIBC__)
    if (program.allocate == NULL) {
        (void)malloc_trim(0);
    }
#endif
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

bool tnd_reserve(void **io_memory, size_t *io_bytes, size_t bytes)
{
    if (bytes > *io_bytes) {
        tnd_free(*io_memory); /* before allocating, so that the two never coexist */
        size_t room = bytes + (bytes < PTRDIFF_MAX ? bytes / 2 : 0);
        *io_memory = tnd_alloc(room);
        *io_bytes = *io_memory != NULL ? room : 0;
    }
    return bytes <= *io_bytes;
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
        atomic_fetch_sub_explicit(&live_bytes, bytes_of(memory), memory_order_relaxed);
        if (program.allocate == NULL) {
            free(memory);
        } else {
            program.release(program.user, memory);
        }
    }
}

enum tandem_status tandem_set_allocator(const struct tandem_allocator *allocator,
                                        struct tandem_error *error)
{
    struct tandem_allocator given = TANDEM_ALLOCATOR_INIT;
    TND_TRY(tnd_options_read(allocator, "tandem_allocator", &given, sizeof(given), error));
    if (allocator != NULL && (given.allocate == NULL || given.release == NULL)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tandem_allocator", 0, 0,
                             "allocator: %s is NULL",
                             given.allocate == NULL ? "allocate" : "release");
    }
    if (tnd_alloc_live() != 0) {
        return tnd_error_set(error, TANDEM_E_STATE, "tandem_allocator", tnd_alloc_live(), 0,
                             "allocator: %ld pieces of the present one are in use; set it before "
                             "anything is made, or after everything was freed",
                             tnd_alloc_live());
    }
    program = given;
    return TANDEM_OK;
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
