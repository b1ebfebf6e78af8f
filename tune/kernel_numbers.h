/* SPDX-License-Identifier: MIT
 * Which numbers of a backend's kernels serve (backends/tuner.h): by the times of a table, or those
 * of before. The only place that decides it, while candidates are measured and when a runtime is
 * opened. */
#ifndef TND_KERNEL_NUMBERS_H
#define TND_KERNEL_NUMBERS_H

#include "backends/registry.h"
#include "backends/tuner.h"
#include "table/tnd_table.h"

/** Copies `prior` or the numbers of a candidate of the family that is faster in the geometric mean
 *  over the products that both were measured with, by TND_RULE_LEAD and TND_CLEAR_SIGMAS standard
 *  errors, and clearly slower in none. Where `prior` was never measured, the candidate with the
 *  least times stands for it. Any thread. */
void tnd_kernel_numbers_choose(const struct tandem_table *table, const char *backend,
                               const char *family, const char *prior, char out[TND_NUMBERS_MAX]);

/** Makes all open backends use the numbers that a table (may be NULL) tells. No computation may be
 *  in progress. Numbers that a backend does not take are logged, and those of before serve. */
void tnd_kernel_numbers_use(const struct tandem_table *table, const struct tnd_registry *registry,
                            const struct tnd_log *log);

#endif
