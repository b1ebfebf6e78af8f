/* SPDX-License-Identifier: MIT
 * Taking things out of a table by a rule, and laying one table over another. */
#ifndef TND_TABLE_FILTER_H
#define TND_TABLE_FILTER_H

#include "table/tnd_table.h"

/** Says whether a record stays; `sample` is the one that is asked for in a record that has samples,
 *  else NULL. */
typedef bool (*tnd_keep_fn)(void *user, enum tnd_record kind, const void *record,
                            const struct tnd_sample *sample);

/** Removes what `keep` does not keep, and records that have no samples then. Returns how many cells
 *  went. Keeps the order of everything. */
int64_t tnd_table_remove(struct tandem_table *table, tnd_keep_fn keep, void *user);

/** Cells: samples of curves and transfers, hand-offs, checks and slow-downs. */
int64_t tnd_table_count_cells(const struct tandem_table *table);

/** Lays `upper` over `table`: what both know (a curve, a transfer, a team's hand-off, a check, a
 *  slow-down, a profile by name) is as `upper` has it, whatever the counts; the rest of both stays.
 *  A curve goes as a whole, since times of two measurements do not make one curve. The fingerprint
 *  becomes that of `upper` where it has one. Errors: MEMORY, LIMIT; `table` is then as before or
 *  lacks what `upper` would have replaced. */
enum tandem_status tnd_table_overlay(struct tandem_table *table, const struct tandem_table *upper,
                                     struct tandem_error *error);

#endif
