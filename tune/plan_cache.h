/* SPDX-License-Identifier: MIT
 * Choices of the planner, by problem. A choice made with an earlier table is kept as the incumbent:
 * it is compared again, and stays unless another one is clearly better. */
#ifndef TND_PLAN_CACHE_H
#define TND_PLAN_CACHE_H

#include "tune/place.h"

struct tnd_plan_cache_key {
    int64_t n, k, m;
    int32_t type; /* type of the weights; for other operations TND_PLAN_CACHE_OPS + op */
    int32_t threads;
    int32_t side;   /* slot of the device, 0: host memory, or TND_PLACE_ANY */
    int32_t weight; /* enum tnd_weight_kind: some candidates only take constant weights */
};

enum { TND_PLACE_ANY = -1, TND_PLAN_CACHE_OPS = 1024 };
enum tnd_weight_kind {
    TND_WEIGHT_CHANGES,
    TND_WEIGHT_CONSTANT,
    TND_WEIGHT_PART_OF_CONSTANT,
    TND_WEIGHT_WARM = 4, /* added to the others: all weights of the graph fit into the cache */
    TND_WEIGHT_EXPERTS =
        8, /* added to the others: product of experts; n and m are the expected ones */
    TND_WEIGHT_SINGLE = 16, /* added if a device has no room: weights in flight are not allowed */
    TND_WEIGHT_REFUSED =
        32 /* times the bits of slots without room for the weight; added to the others */
};

struct tnd_plan_cache_entry {
    struct tnd_plan_cache_key key; /* threads == 0: empty slot */
    uint32_t round;                /* round of the cache in which it was chosen */
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
/** Removes all entries. */
void tnd_plan_cache_clear(struct tnd_plan_cache *memory);
/** Starts a round: all cached choices become incumbents. */
void tnd_plan_cache_begin_round(struct tnd_plan_cache *memory);

/** The cached choice of a problem, of this round or an incumbent; NULL: none. Valid until the next
 * tnd_plan_cache_put. */
const struct tnd_plan_cache_entry *tnd_plan_cache_find(const struct tnd_plan_cache *memory,
                                                       const struct tnd_plan_cache_key *key);
/** Stores a choice of this round. If the cache cannot grow, removes all other entries first:
 * choices are cheap to find again. */
const struct tnd_plan_cache_entry *tnd_plan_cache_put(struct tnd_plan_cache *memory,
                                                      const struct tnd_plan_cache_key *key,
                                                      const struct tnd_place_choice *chosen);

#endif
