/* SPDX-License-Identifier: MIT
 * Where the data of each tensor of a file lies. Tensors that share bytes are refused: a small file
 * could otherwise ask for many times its size in memory and in converted files. */
#ifndef TND_PLACES_H
#define TND_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

struct tnd_place {
    int64_t begin; /* bytes from the start of the data */
    int64_t end;
    const char *name; /* borrowed; need not end in a zero byte */
    int name_bytes;
};

/** All zero: empty. */
struct tnd_places {
    struct tnd_place *items;
    size_t n;
    size_t capacity;
};

/** Adds a place with begin <= end. Errors: MEMORY. */
enum tandem_status tnd_places_add(struct tnd_places *places, struct tnd_place place,
                                  const char *path, struct tandem_error *error);
/** Sorts the places and refuses the first two that overlap, by name. `path` is for the message.
 *  Errors: FORMAT. */
enum tandem_status tnd_places_check(struct tnd_places *places, const char *path,
                                    struct tandem_error *error);
void tnd_places_fini(struct tnd_places *places);

#endif
