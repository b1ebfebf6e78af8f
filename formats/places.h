/* SPDX-License-Identifier: MIT
 * Byte ranges of a file's tensors. Overlapping ones are refused: a small file could otherwise make
 * us use many times its size in memory and in converted files. */
#ifndef TND_PLACES_H
#define TND_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

struct tnd_place {
    int64_t begin; /* bytes from the start of the data */
    int64_t end;
    const char *name; /* borrowed; not terminated */
    int name_bytes;
};

/** All zero: empty. */
struct tnd_places {
    struct tnd_place *items;
    size_t n;
    size_t capacity;
};

/** Adds a range with begin <= end. Errors: MEMORY. */
enum tandem_status tnd_places_add(struct tnd_places *places, struct tnd_place place,
                                  const char *path, struct tandem_error *error);
/** Sorts the ranges and refuses the first overlap, naming both tensors. `path` is used in the
 * message. Errors: FORMAT. */
enum tandem_status tnd_places_check(struct tnd_places *places, const char *path,
                                    struct tandem_error *error);
void tnd_places_fini(struct tnd_places *places);

#endif
