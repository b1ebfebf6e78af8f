/* SPDX-License-Identifier: MIT
 * A hash table under a lock. */
#include "sched/refused.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

struct key {
    uint64_t serial; /* of the context */
    uint64_t data;
    uint64_t slot; /* 0: free */
};

struct tnd_refused {
    pthread_mutex_t lock; /* guards everything below */
    struct key *keys;     /* open addressing, power of two */
    size_t capacity;
    _Atomic size_t n; /* written under the lock */
};

struct tnd_refused *tnd_refused_new(void)
{
    struct tnd_refused *refused = tnd_calloc(1, sizeof(*refused));
    if (refused != NULL) {
        pthread_mutex_init(&refused->lock, NULL);
    }
    return refused;
}

void tnd_refused_free(struct tnd_refused *refused)
{
    if (refused != NULL) {
        pthread_mutex_destroy(&refused->lock);
        tnd_free(refused->keys);
        tnd_free(refused);
    }
}

static struct key key_of(int slot, const struct tandem_tensor *weight)
{
    struct key key = {tnd_context_serial(weight->context), (uint64_t)(uintptr_t)weight->data,
                      (uint64_t)slot};
    return key;
}

static struct key *find(struct key *keys, size_t capacity, const struct key *key)
{
    size_t i = (size_t)tnd_hash_bytes(key, sizeof(*key), 0) & (capacity - 1);
    while (keys[i].slot != 0 && memcmp(&keys[i], key, sizeof(*key)) != 0) {
        i = (i + 1) & (capacity - 1);
    }
    return &keys[i];
}

static bool grow(struct tnd_refused *refused)
{
    size_t capacity = refused->capacity == 0 ? 64 : 2 * refused->capacity;
    struct key *keys = tnd_calloc(capacity, sizeof(keys[0]));
    if (keys == NULL) {
        return false;
    }
    for (size_t i = 0; i < refused->capacity; i++) {
        if (refused->keys[i].slot != 0) {
            *find(keys, capacity, &refused->keys[i]) = refused->keys[i];
        }
    }
    tnd_free(refused->keys);
    refused->keys = keys;
    refused->capacity = capacity;
    return true;
}

bool tnd_refused_add(struct tnd_refused *refused, int slot, const struct tandem_tensor *weight)
{
    struct key key = key_of(slot, weight);
    bool is_new = false;
    pthread_mutex_lock(&refused->lock);
    if (2 * (refused->n + 1) <= refused->capacity || grow(refused)) {
        struct key *place = find(refused->keys, refused->capacity, &key);
        is_new = place->slot == 0;
        refused->n += is_new;
        *place = key;
    }
    pthread_mutex_unlock(&refused->lock);
    return is_new;
}

bool tnd_refused_has(struct tnd_refused *refused, int slot, const struct tandem_tensor *weight)
{
    struct key key = key_of(slot, weight);
    pthread_mutex_lock(&refused->lock);
    bool found = refused->n > 0 && find(refused->keys, refused->capacity, &key)->slot != 0;
    pthread_mutex_unlock(&refused->lock);
    return found;
}

bool tnd_refused_is_empty(const struct tnd_refused *refused)
{
    return atomic_load_explicit(&refused->n, memory_order_relaxed) == 0;
}

void tnd_refused_clear(struct tnd_refused *refused)
{
    pthread_mutex_lock(&refused->lock);
    if (refused->capacity > 0) {
        memset(refused->keys, 0, refused->capacity * sizeof(refused->keys[0]));
    }
    refused->n = 0;
    pthread_mutex_unlock(&refused->lock);
}
