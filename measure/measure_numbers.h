/* SPDX-License-Identifier: MIT
 * Measuring candidates for tuned numbers of kernels (backends/tuner.h) with ordinary products. */
#ifndef TND_MEASURE_NUMBERS_H
#define TND_MEASURE_NUMBERS_H

#include "backends/tuner.h"
#include "measure/measure.h"
#include "table/tnd_table.h"

/** Measures the sweeps of the backend's tuner, which has no `tune` of its own, on n_threads
 *  threads; for each product all candidates in turns, so that a disturbance affects them alike.
 *  `options->type` F32 (0): all types of a sweep; `timed` and `choose` are not NULL. Products that
 *  the profile cannot compute here are skipped. Errors: CANCELLED (by `timed`; the old numbers are
 *  restored), NOT_FOUND (nothing can be measured), MEMORY, those of measuring. */
enum tandem_status tnd_measure_numbers(const struct tnd_measure_options *measure,
                                       const struct tnd_tuner *tuner, tandem_backend *backend,
                                       int n_threads, const struct tnd_tuner_options *options,
                                       struct tandem_error *error);

/** The table record of a candidate's times, of which there is at least one. */
struct tnd_kernel_time tnd_numbers_record(const char *backend, const struct tnd_tuner_time *time,
                                          int64_t when);

/** Adds the launch costs of the backend in `slot`, if its tuner can measure them. The backend
 *  launches from then on by the table's times. Errors: MEMORY, those of the device. */
enum tandem_status tnd_measure_launches(const struct tnd_registry *registry, int slot, int64_t when,
                                        struct tandem_table *table, struct tandem_error *error);

#endif
