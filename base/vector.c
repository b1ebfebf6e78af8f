/* SPDX-License-Identifier: MIT
 * Growing by doubling, moving items as bytes. */
#include "base/vector.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"

enum { FIRST_CAPACITY = 8 };

void *tnd_vector_at(const struct tnd_vector *vector, size_t item_bytes, int at)
{
    TND_ASSERT(at >= 0 && at <= vector->n);
    return vector->items != NULL ? (char *)vector->items + (size_t)at * item_bytes : NULL;
}

bool tnd_vector_reserve(struct tnd_vector *vector, size_t item_bytes, int n)
{
    if (n > vector->capacity) {
        void *grown = tnd_realloc(vector->items, (size_t)vector->capacity * item_bytes,
                                  (size_t)n * item_bytes);
        if (grown == NULL) {
            return false;
        }
        vector->items = grown;
        vector->capacity = n;
    }
    return true;
}

enum tandem_status tnd_vector_insert(struct tnd_vector *vector, size_t item_bytes, int limit,
                                     int at)
{
    TND_ASSERT(at >= 0 && at <= vector->n && vector->n <= vector->capacity);
    if (vector->n >= limit) {
        return TANDEM_E_LIMIT;
    }
    if (vector->n == vector->capacity) {
        const int capacity = vector->capacity == 0 ? FIRST_CAPACITY : vector->capacity * 2;
        if (!tnd_vector_reserve(vector, item_bytes, capacity)) {
            return TANDEM_E_MEMORY;
        }
    }
    char *item = tnd_vector_at(vector, item_bytes, at);
    memmove(item + item_bytes, item, (size_t)(vector->n - at) * item_bytes);
    memset(item, 0, item_bytes);
    vector->n++;
    return TANDEM_OK;
}

void tnd_vector_remove(struct tnd_vector *vector, size_t item_bytes, int at)
{
    TND_ASSERT(at >= 0 && at < vector->n);
    char *item = tnd_vector_at(vector, item_bytes, at);
    vector->n--;
    memmove(item, item + item_bytes, (size_t)(vector->n - at) * item_bytes);
}

void tnd_vector_fini(struct tnd_vector *vector)
{
    tnd_free(vector->items);
    *vector = (struct tnd_vector){0};
}

bool tnd_grow_more(void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    TND_ASSERT(n == *capacity && item_bytes > 0);
    const size_t wanted = n < FIRST_CAPACITY ? FIRST_CAPACITY : 2 * n;
    void *list;
    memcpy(&list, items, sizeof(list));
    if (n > SIZE_MAX / 2 / item_bytes ||
        (list = tnd_realloc(list, n * item_bytes, wanted * item_bytes)) == NULL) {
        return false;
    }
    memcpy(items, &list, sizeof(list));
    *capacity = wanted;
    return true;
}
