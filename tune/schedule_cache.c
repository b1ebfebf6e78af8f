/* SPDX-License-Identifier: MIT
 * Replaces the least recently used schedule. */
#include "tune/schedule_cache.h"

#include "base/tnd_status.h"

enum tandem_status tnd_schedule_cached(struct tnd_schedule_cache *cache, const uint64_t hash[2],
                                       const struct tnd_schedule_problem *problem,
                                       const struct tnd_schedule **out_schedule,
                                       struct tandem_error *error)
{
    int oldest = 0;
    cache->n_lookups++;
    for (int i = 0; i < TND_SCHEDULE_CACHED; i++) {
        bool is_it = cache->entries[i].used > 0 && cache->entries[i].hash[0] == hash[0] &&
                     cache->entries[i].hash[1] == hash[1] &&
                     cache->entries[i].schedule.n_nodes == problem->n_nodes;
        if (is_it) {
            cache->entries[i].used = cache->n_lookups;
            *out_schedule = &cache->entries[i].schedule;
            return TANDEM_OK;
        }
        oldest = cache->entries[i].used < cache->entries[oldest].used ? i : oldest;
    }
    struct tnd_schedule found;
    TND_TRY(tnd_schedule_find(problem, &found, error));
    tnd_schedule_fini(&cache->entries[oldest].schedule);
    cache->entries[oldest].schedule = found;
    cache->entries[oldest].hash[0] = hash[0];
    cache->entries[oldest].hash[1] = hash[1];
    cache->entries[oldest].used = cache->n_lookups;
    *out_schedule = &cache->entries[oldest].schedule;
    return TANDEM_OK;
}

void tnd_schedule_cache_clear(struct tnd_schedule_cache *cache)
{
    for (int i = 0; i < TND_SCHEDULE_CACHED; i++) {
        tnd_schedule_fini(&cache->entries[i].schedule);
        cache->entries[i].used = 0;
    }
}
