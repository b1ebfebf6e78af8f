/* SPDX-License-Identifier: MIT
 * Measures what lies between stages: transfers to and from a device with memory of its own, and
 * handing work to other threads. */
#ifndef TND_MEASURE_MOVES_H
#define TND_MEASURE_MOVES_H

#include "backends/registry.h"
#include "base/clock.h"
#include "sched/pool.h"
#include "table/tnd_table.h"

/** Adds the transfers of the device in `slot`, for sizes from 4 KiB to `most_bytes` in steps of 4;
 *  ends early, with what there is, when the device has no room for a size. Nothing for a backend
 *  that works in host memory. Errors: MEMORY, those of the device. */
enum tandem_status tnd_measure_transfers(const struct tnd_registry *registry, int slot,
                                         const struct tnd_clock *clock, int64_t most_bytes,
                                         int64_t when, struct tandem_table *table,
                                         struct tandem_error *error);

/** About how long that takes for one device. */
double tnd_measure_transfers_s(int64_t most_bytes);

/** What waiting for a device costs that has next to nothing to do; 0 for a backend that works in
 *  host memory. Errors as above. */
enum tandem_status tnd_measure_round_trip(const struct tnd_registry *registry, int slot,
                                          const struct tnd_clock *clock, double *out_us,
                                          struct tandem_error *error);

/** A device is waited for after each stage that is measured; where it matters, in a graph, only
 *  when something is fetched, and the time of the fetching holds it. So the wait is taken off, down
 *  to a quarter of the time. */
double tnd_without_round_trip(double us, double round_trip_us);

/** Adds what handing work to a team of `threads` costs; nothing for one thread. Errors: MEMORY,
 *  THREAD. */
enum tandem_status tnd_measure_handoff(struct tnd_pool *pool, const struct tnd_clock *clock,
                                       int threads, int64_t when, struct tandem_table *table,
                                       struct tandem_error *error);

#endif
