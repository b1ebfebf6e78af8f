/* SPDX-License-Identifier: MIT
 * room: base
 *
 * The source of the library's heap memory. Default: the C library. Memory that a call returns to
 * the program is freed with a call of this library, never with free(). */
#ifndef TANDEM_ALLOCATOR_H
#define TANDEM_ALLOCATOR_H

#include <stddef.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** A source of heap memory. Both functions are called from any thread, several at once, and must
 *  not call the library. */
struct tandem_allocator {
    size_t size; /**< sizeof(struct tandem_allocator) */
    /** `bytes` (at least 1) at a multiple of `alignment` (a power of two, 64 at most), not zeroed;
     *  NULL when there is none: the call that needed it then returns MEMORY. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    /** Frees memory of `allocate`; never called with NULL. */
    void (*release)(void *user, void *memory);
    void *user; /**< passed to both; borrowed as long as the allocator is in use */
};
#define TANDEM_ALLOCATOR_INIT                                                                      \
    {                                                                                              \
        sizeof(struct tandem_allocator), NULL, NULL, NULL                                          \
    }

/** Makes the library allocate all heap memory from this allocator; NULL: from the C library again.
 * The structure is copied. One allocator serves the whole process. Libraries that Tandem uses
 * (hwloc, cJSON, OpenBLAS, drivers of devices) keep their own, and so do thread stacks. Call it
 * while no object of the library exists and no other thread uses the library: first thing in a
 * program. Errors: STATE (memory of the library is in use), ARGUMENT (a function is NULL), ABI. */
TANDEM_API enum tandem_status tandem_set_allocator(const struct tandem_allocator *allocator,
                                                   struct tandem_error *error);

TANDEM_END_C
#endif
