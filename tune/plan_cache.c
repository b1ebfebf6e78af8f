/* SPDX-License-Identifier: MIT
 * A hash table of choices. */
#include "tune/plan_cache.h"

#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_CAPACITY = 256, LAST_CAPACITY = 65536 };

enum tandem_status tnd_plan_cache_init(struct tnd_plan_cache *memory)
{
    struct tnd_plan_cache_entry *slots = tnd_calloc(FIRST_CAPACITY, sizeof(slots[0]));
    if (slots == NULL) {
        return TANDEM_E_MEMORY;
    }
    *memory = (struct tnd_plan_cache){.slots = slots, .capacity = FIRST_CAPACITY};
    return TANDEM_OK;
}

void tnd_plan_cache_fini(struct tnd_plan_cache *memory)
{
    tnd_free(memory->slots);
    memory->slots = NULL;
}

void tnd_plan_cache_clear(struct tnd_plan_cache *memory)
{
    memset(memory->slots, 0, memory->capacity * sizeof(memory->slots[0]));
    memory->used = 0;
}

void tnd_plan_cache_begin_round(struct tnd_plan_cache *memory)
{
    memory->round++;
}

/* The key's slot, or the empty slot for it. */
static struct tnd_plan_cache_entry *slot_of(struct tnd_plan_cache_entry *slots, size_t capacity,
                                            const struct tnd_plan_cache_key *key)
{
    TND_ASSERT(capacity > 0 && (capacity & (capacity - 1)) == 0);
    size_t i = (size_t)tnd_hash_words(key, sizeof(*key)) & (capacity - 1);
    while (slots[i].key.threads != 0 && memcmp(&slots[i].key, key, sizeof(*key)) != 0) {
        i = (i + 1) & (capacity - 1);
    }
    return &slots[i];
}

const struct tnd_plan_cache_entry *tnd_plan_cache_find(const struct tnd_plan_cache *memory,
                                                       const struct tnd_plan_cache_key *key)
{
    const struct tnd_plan_cache_entry *slot = slot_of(memory->slots, memory->capacity, key);
    return slot->key.threads != 0 ? slot : NULL;
}

static void make_room(struct tnd_plan_cache *memory)
{
    if (2 * (memory->used + 1) <= memory->capacity) {
        return;
    }
    size_t capacity = 2 * memory->capacity;
    struct tnd_plan_cache_entry *slots =
        capacity <= LAST_CAPACITY ? tnd_calloc(capacity, sizeof(slots[0])) : NULL;
    if (slots == NULL) {
        tnd_plan_cache_clear(memory);
        return;
    }
    for (size_t i = 0; i < memory->capacity; i++) {
        if (memory->slots[i].key.threads != 0) {
            *slot_of(slots, capacity, &memory->slots[i].key) = memory->slots[i];
        }
    }
    tnd_free(memory->slots);
    memory->slots = slots;
    memory->capacity = capacity;
}

const struct tnd_plan_cache_entry *tnd_plan_cache_put(struct tnd_plan_cache *memory,
                                                      const struct tnd_plan_cache_key *key,
                                                      const struct tnd_place_choice *chosen)
{
    TND_ASSERT(key->threads != 0); /* 0 marks an empty slot */
    struct tnd_plan_cache_entry *slot = slot_of(memory->slots, memory->capacity, key);
    if (slot->key.threads == 0) {
        make_room(memory);
        slot = slot_of(memory->slots, memory->capacity, key);
        memory->used++;
    }
    slot->key = *key;
    slot->round = memory->round;
    slot->chosen = *chosen;
    return slot;
}
