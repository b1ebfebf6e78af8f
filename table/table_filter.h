/* SPDX-License-Identifier: MIT
 * Taking things out of a table by a rule, and laying one table over another. */
#ifndef TND_TABLE_FILTER_H
#define TND_TABLE_FILTER_H

#include "table/tnd_table.h"

/** Says what stays. Members that are NULL keep everything of their kind. */
struct tnd_table_filter {
    bool (*keep_sample)(void *user, const struct tnd_curve_key *key,
                        const struct tnd_sample *sample);
    /* the samples of transfers: of this backend and direction */
    bool (*keep_transfer)(void *user, const struct tnd_transfer *transfer,
                          const struct tnd_sample *sample);
    bool (*keep_handoff)(void *user, const struct tnd_handoff *handoff);
    bool (*keep_check)(void *user, const struct tnd_check *check);
    bool (*keep_slowdown)(void *user, const struct tnd_slowdown *slowdown);
    bool (*keep_sweep)(void *user, const struct tnd_sweep_state *sweep); /* counted by nobody */
    void *user;
};

/** Removes what the filter does not keep, and curves and transfers that are empty then. Returns how
 *  many cells went. Keeps the order of everything. */
int64_t tnd_table_remove(struct tandem_table *table, const struct tnd_table_filter *filter);

/** Cells: samples of curves and transfers, hand-offs, checks and slow-downs. */
int64_t tnd_table_count_cells(const struct tandem_table *table);

/** Lays `upper` over `table`: what both know (a curve, a transfer, a crew's hand-off, a check, a
 *  slow-down, a profile by name) is as `upper` has it, whatever the counts; the rest of both stays.
 *  A curve goes as a whole, since times of two measurements do not make one curve. The fingerprint
 *  becomes that of `upper` where it has one. Errors: MEMORY, LIMIT; `table` is then as before or
 *  lacks what `upper` would have replaced. */
enum tandem_status tnd_table_overlay(struct tandem_table *table, const struct tandem_table *upper,
                                     struct tandem_error *error);

#endif
