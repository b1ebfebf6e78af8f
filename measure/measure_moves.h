/* SPDX-License-Identifier: MIT
 * Measures the costs between stages: transfers to and from a device with memory of its own, and
 * handing work to other threads. */
#ifndef TND_MEASURE_MOVES_H
#define TND_MEASURE_MOVES_H

#include "backends/registry.h"
#include "base/clock.h"
#include "sched/pool.h"
#include "table/tnd_table.h"

/** Adds the transfers of the device in `slot`, for sizes from 4 KiB to `most_bytes` in steps of 4;
 *  ends early, with the sizes so far, when the device has no memory for a size. Nothing for a
 *  backend that works in host memory. Errors: MEMORY, those of the device. */
enum tandem_status tnd_measure_transfers(const struct tnd_registry *registry, int slot,
                                         const struct tnd_clock *clock, int64_t most_bytes,
                                         int64_t when, struct tandem_table *table,
                                         struct tandem_error *error);

/** Estimated duration of tnd_measure_transfers for one device. */
double tnd_measure_transfers_s(int64_t most_bytes);

/** Time to submit to a device that has next to nothing to do and wait for it; 0 for a backend that
 *  works in host memory. Errors: those of tnd_measure_transfers. */
enum tandem_status tnd_measure_round_trip(const struct tnd_registry *registry, int slot,
                                          const struct tnd_clock *clock, double *out_us,
                                          struct tandem_error *error);

/** Subtracts the round trip from a measured stage, down to a quarter of the time: measuring waits
 *  for a device after each stage; a graph waits only for downloads, whose measured times include
 *  the wait. */
double tnd_without_round_trip(double us, double round_trip_us);

/** Adds the cost of handing work to a team of `threads`; nothing for one thread. Errors: MEMORY,
 *  THREAD. */
enum tandem_status tnd_measure_handoff(struct tnd_pool *pool, const struct tnd_clock *clock,
                                       int threads, int64_t when, struct tandem_table *table,
                                       struct tandem_error *error);

#endif
