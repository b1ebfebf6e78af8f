/* SPDX-License-Identifier: MIT
 * Measures the operations other than matrix products: add, mul, silu, rms_norm, rope, soft_max,
 * attention, get_rows, cpy, on one thread and on several, alternately, so that disturbances hit all
 * thread counts alike; and on devices. */
#ifndef TND_MEASURE_OPS_H
#define TND_MEASURE_OPS_H

#include "measure/measure.h"
#include "table/tnd_table.h"

/** Adds curves of all operations for the thread counts (ascending) to `table` within `budget_s`;
 *  below 0.2 s it measures nothing; 0: a second for two thread counts. Errors: MEMORY, those of
 *  running. */
enum tandem_status tnd_measure_ops(const struct tnd_measure_options *options,
                                   const int *thread_counts, int n_thread_counts, double budget_s,
                                   int64_t when, struct tandem_table *table,
                                   struct tandem_error *error);

/** tnd_measure_ops for the device in `slot`, which has memory of its own, for the operations that
 *  it has kernels for; `round_trip_us`: of tnd_measure_round_trip. `budget_s` 0: a second. Errors:
 *  MEMORY, those of the device. */
enum tandem_status tnd_measure_device_ops(const struct tnd_measure_options *options, int slot,
                                          double round_trip_us, double budget_s, int64_t when,
                                          struct tandem_table *table, struct tandem_error *error);

#endif
