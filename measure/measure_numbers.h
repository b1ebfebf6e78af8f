/* SPDX-License-Identifier: MIT
 * Measuring candidates for numbers of kernels (backends/tuner.h) by ordinary products. */
#ifndef TND_MEASURE_NUMBERS_H
#define TND_MEASURE_NUMBERS_H

#include "backends/tuner.h"
#include "measure/measure.h"

/** Measures the sweeps of the backend's tuner, which has no `tune` of its own, on n_threads
 *  threads; of each product all candidates in turns, so that a disturbance meets them alike.
 *  `options->type` F32 (0): all types of a sweep; `timed` and `choose` are not NULL. Products that
 *  the profile cannot compute here are left out. Errors: CANCELLED (by `timed`; the numbers are
 *  those of before), NOT_FOUND (nothing can be measured), MEMORY, those of measuring. */
enum tandem_status tnd_measure_numbers(const struct tnd_measure_options *measure,
                                       const struct tnd_tuner *tuner, tandem_backend *backend,
                                       int n_threads, const struct tnd_tuner_options *options,
                                       struct tandem_error *error);

#endif
