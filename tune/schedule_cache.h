/* SPDX-License-Identifier: MIT
 * The latest schedules, by the hash of their problem: planning a graph like an earlier one costs
 * only a look-up. */
#ifndef TND_SCHEDULE_CACHE_H
#define TND_SCHEDULE_CACHE_H

#include "tune/schedule.h"

enum { TND_SCHEDULE_CACHED = 16 };

struct tnd_schedule_cache {
    struct {
        uint64_t hash[2];
        uint64_t used; /* n_lookups at its last use; 0: empty */
        struct tnd_schedule schedule;
    } entries[TND_SCHEDULE_CACHED];
    uint64_t n_lookups;
};

/** Returns the schedule of a problem with this hash, from the cache or found now. Valid until the
 * next call. Errors: those of tnd_schedule_find. */
enum tandem_status tnd_schedule_cached(struct tnd_schedule_cache *cache, const uint64_t hash[2],
                                       const struct tnd_schedule_problem *problem,
                                       const struct tnd_schedule **out_schedule,
                                       struct tandem_error *error);
/** Removes all schedules, for a table with other times. */
void tnd_schedule_cache_clear(struct tnd_schedule_cache *cache);

#endif
