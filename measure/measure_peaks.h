/* SPDX-License-Identifier: MIT
 * Peak rates of this CPU: arithmetic of each kind, and reading memory. */
#ifndef TND_MEASURE_PEAKS_H
#define TND_MEASURE_PEAKS_H

#include "base/clock.h"
#include "sched/pool.h"
#include "table/tnd_table.h"

/** Adds the peaks of each thread count (struct tnd_peak; in addition "cache": reading 256 KiB a
 *  thread again and again): the best of as many runs as `budget_s` allows. Counts above the pool's
 *  size are skipped, and so is reading if memory for it cannot be allocated. With several NUMA
 *  nodes also TND_NUMA_UNIT_*, with all threads of the pool. Errors: MEMORY, LIMIT. */
enum tandem_status tnd_measure_peaks(struct tnd_pool *pool, const struct tnd_clock *clock,
                                     const int *thread_counts, int n_thread_counts, double budget_s,
                                     int64_t when, struct tandem_table *table,
                                     struct tandem_error *error);

#endif
