/* SPDX-License-Identifier: MIT
 * Chooses the tuning numbers of a backend's kernels (backends/tuner.h) by the times of a table, or
 * keeps the previous ones. Nothing else chooses them, neither while candidates are measured nor
 * when a runtime is opened. */
#ifndef TND_KERNEL_NUMBERS_H
#define TND_KERNEL_NUMBERS_H

#include "backends/registry.h"
#include "backends/tuner.h"
#include "table/tnd_table.h"

/** Copies to `out` either `prior` or the numbers of a candidate of the family that is faster in the
 * geometric mean over the products that both were measured with, by TND_RULE_LEAD and
 * TND_CLEAR_SIGMAS standard errors, and clearly slower for none. If `prior` was never measured,
 * candidates are compared with the one that has the least times. Any thread. */
void tnd_kernel_numbers_choose(const struct tandem_table *table, const char *backend,
                               const char *family, const char *prior, char out[TND_NUMBERS_MAX]);

/** Sets the numbers of all open backends by a table (may be NULL). No computation may be in
 * progress. Logs numbers that a backend rejects, and keeps the previous ones. */
void tnd_kernel_numbers_use(const struct tandem_table *table, const struct tnd_registry *registry,
                            const struct tnd_log *log);

#endif
