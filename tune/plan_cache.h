/* SPDX-License-Identifier: MIT
 * What the planner has chosen before, by problem. A choice that was made by a table which serves no
 * more is kept as the incumbent: it is looked at again, and stays unless it is clearly beaten. */
#ifndef TND_PLAN_CACHE_H
#define TND_PLAN_CACHE_H

#include "tune/place.h"

struct tnd_plan_cache_key {
    int64_t n, k, m;
    int32_t type; /* of the weights; other operations: TND_PLAN_CACHE_OPS + op */
    int32_t threads;
    int32_t side;   /* slot of the device, 0: host memory, or TND_PLACE_ANY */
    int32_t weight; /* enum tnd_weight_kind: some candidates take constant weights only */
};

enum { TND_PLACE_ANY = -1, TND_PLAN_CACHE_OPS = 1024 };
enum tnd_weight_kind {
    TND_WEIGHT_CHANGES,
    TND_WEIGHT_CONSTANT,
    TND_WEIGHT_PART_OF_CONSTANT,
    TND_WEIGHT_WARM = 4,    /* added to the others: all weights of the graph fit into the cache */
    TND_WEIGHT_EXPERTS = 8, /* added to the others: of experts; n and m are those expected */
    TND_WEIGHT_SINGLE = 16, /* added where it has no room: it may not travel */
    TND_WEIGHT_REFUSED = 32 /* times the bits of slots without room for it, added to them */
};

struct tnd_plan_cache_entry {
    struct tnd_plan_cache_key key; /* threads == 0: empty slot */
    uint32_t round;                /* of the memory when it was chosen */
    struct tnd_place_choice chosen;
};

struct tnd_plan_cache {
    uint32_t round;
    struct tnd_plan_cache_entry *slots; /* open addressing, power of two */
    size_t capacity;
    size_t used;
};

/** Errors: MEMORY. */
enum tandem_status tnd_plan_cache_init(struct tnd_plan_cache *memory);
void tnd_plan_cache_fini(struct tnd_plan_cache *memory);
/** Forgets everything. */
void tnd_plan_cache_clear(struct tnd_plan_cache *memory);
/** From now on everything that is cached is an incumbent. */
void tnd_plan_cache_begin_round(struct tnd_plan_cache *memory);

/** What is cached of a problem, of this round or an incumbent; NULL: nothing. Lives until
 *  something is kept. */
const struct tnd_plan_cache_entry *tnd_plan_cache_find(const struct tnd_plan_cache *memory,
                                                       const struct tnd_plan_cache_key *key);
/** Remembers a choice of this round. Without room everything else is forgotten first: choices are
 *  cheap to find again. */
const struct tnd_plan_cache_entry *tnd_plan_cache_put(struct tnd_plan_cache *memory,
                                                      const struct tnd_plan_cache_key *key,
                                                      const struct tnd_place_choice *chosen);

#endif
