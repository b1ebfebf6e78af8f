/* SPDX-License-Identifier: MIT
 * A growing array. TND_VECTOR_OF declares one with typed names (items, n_items) over a struct
 * tnd_vector, which the untyped functions below take. */
#ifndef TND_VECTOR_H
#define TND_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/status.h"

struct tnd_vector {
    void *items;
    int n;
    int capacity;
};

/* Members `type *name`, `int n_name`, and both together as `name_vector`. All zero: empty. */
#define TND_VECTOR_OF(type, name)                                                                  \
    union {                                                                                        \
        struct tnd_vector name##_vector;                                                           \
        struct {                                                                                   \
            type *name;                                                                            \
            int n_##name;                                                                          \
            int name##_capacity;                                                                   \
        };                                                                                         \
    }

/** Inserts a zeroed item at index `at`; the following ones move up. Errors: MEMORY, LIMIT (there
 * are `limit` items already). */
enum tandem_status tnd_vector_insert(struct tnd_vector *vector, size_t item_bytes, int limit,
                                     int at);
/** Makes room for `n` items. False when out of memory; nothing has changed then. */
bool tnd_vector_reserve(struct tnd_vector *vector, size_t item_bytes, int n);
/** Removes an item; the following ones move down. */
void tnd_vector_remove(struct tnd_vector *vector, size_t item_bytes, int at);
/** Item `at` of `item_bytes` bytes. */
void *tnd_vector_at(const struct tnd_vector *vector, size_t item_bytes, int at);
/** Frees the memory; the vector is empty then. */
void tnd_vector_fini(struct tnd_vector *vector);

/** For arrays that count in size_t: makes room for item `n`. `items` is the address of the array's
 * pointer, *capacity the number of items that it has room for. False when out of memory; nothing
 * has changed then. */
bool tnd_grow_more(void *items, size_t n, size_t *capacity, size_t item_bytes);
static inline bool tnd_grow(void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    return n < *capacity || tnd_grow_more(items, n, capacity, item_bytes);
}

#endif
