/* SPDX-License-Identifier: MIT
 * Memory plan: assigns offsets in one shared buffer to usage records. Knows no tensors, only
 * numbers. */
#ifndef TND_MEMPLAN_H
#define TND_MEMPLAN_H

#include <stddef.h>

#include "tandem/status.h"

/** Bytes that are needed from step `first` to step `last`, both inclusive. */
struct tnd_usage {
    size_t bytes; /* multiple of TND_ALIGNMENT, at least that */
    int first;
    int last;      /* >= first, < n_steps */
    size_t offset; /* result */
};

/** Assigns an offset to every record; records that are alive at the same step never share a byte.
 * `usages` is sorted by `first`. About O(n log n). Deterministic. The sum of all bytes is below
 * PTRDIFF_MAX. Errors: MEMORY. */
enum tandem_status tnd_memplan(struct tnd_usage *usages, int n_usages, int n_steps,
                               size_t *out_total);

#endif
