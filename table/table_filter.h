/* SPDX-License-Identifier: MIT
 * Removing records from a table by a rule, and laying one table over another. */
#ifndef TND_TABLE_FILTER_H
#define TND_TABLE_FILTER_H

#include "table/tnd_table.h"

/** Whether a record stays; `sample` is the sample in question in a record that has samples, else
 * NULL. */
typedef bool (*tnd_keep_fn)(void *user, enum tnd_record kind, const void *record,
                            const struct tnd_sample *sample);

/** Removes what `keep` rejects, and records that have no samples left. Returns how many cells were
 * removed. Keeps the order of all lists. */
int64_t tnd_table_remove(struct tandem_table *table, tnd_keep_fn keep, void *user);

/** Cells: samples of curves and transfers, hand-offs, checks and slow-downs. */
int64_t tnd_table_count_cells(const struct tandem_table *table);

/** Lays `upper` over `table`: what both have (a curve, a transfer, a team's hand-off, a check, a
 * slow-down, a profile by name) is replaced by that of `upper`, whatever the counts; the rest of
 * both stays. A curve is replaced as a whole, since times of two measurements do not make one
 * curve. The fingerprint becomes that of `upper`, if it has one. Errors: MEMORY, LIMIT; `table` is
 * then unchanged or lacks what `upper` would have replaced. */
enum tandem_status tnd_table_overlay(struct tandem_table *table, const struct tandem_table *upper,
                                     struct tandem_error *error);

#endif
