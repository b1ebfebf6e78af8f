/* SPDX-License-Identifier: MIT
 * The array that grows. TND_VECTOR_OF declares one with typed names (items, n_items) over a struct
 * tnd_vector, through which code that does not know the type handles it. */
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

/* Members `type *name`, `int n_name` and, the same seen as a whole, `name_vector`. All zero: empty.
 */
#define TND_VECTOR_OF(type, name)                                                                  \
    union {                                                                                        \
        struct tnd_vector name##_vector;                                                           \
        struct {                                                                                   \
            type *name;                                                                            \
            int n_##name;                                                                          \
            int name##_capacity;                                                                   \
        };                                                                                         \
    }

/** Makes place for an item, all zero, at index `at`; those behind it move up. Errors: MEMORY, LIMIT
 *  (there are `limit` items already). */
enum tandem_status tnd_vector_insert(struct tnd_vector *vector, size_t item_bytes, int limit,
                                     int at);
/** Memory for `n` items at once. False: there is none; nothing has changed then. */
bool tnd_vector_reserve(struct tnd_vector *vector, size_t item_bytes, int n);
/** Takes an item out; those behind it move down. */
void tnd_vector_remove(struct tnd_vector *vector, size_t item_bytes, int at);
/** Item `at` of `item_bytes` bytes. */
void *tnd_vector_at(const struct tnd_vector *vector, size_t item_bytes, int at);
/** Frees the memory; the vector is empty then. */
void tnd_vector_fini(struct tnd_vector *vector);

/** For arrays that count in size_t: makes place for item n. `items` is the address of the pointer
 *  to them, *capacity their number that has memory. False without memory; nothing has changed then.
 *  */
bool tnd_grow_more(void *items, size_t n, size_t *capacity, size_t item_bytes);
static inline bool tnd_grow(void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    return n < *capacity || tnd_grow_more(items, n, capacity, item_bytes);
}

#endif
