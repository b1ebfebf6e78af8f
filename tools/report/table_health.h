/* SPDX-License-Identifier: MIT
 * Which cells of a table are unreliable, as text, with remedies: for mulmat-tune table check.
 * Whether the table fits the machine is checked by table/invalidate.h. */
#ifndef TND_TABLE_HEALTH_H
#define TND_TABLE_HEALTH_H

#include "base/text.h"
#include "table/tnd_table.h"

struct tnd_health {
    int64_t n_samples;      /* of curves and transfers */
    int64_t n_noisy;        /* noisy ones (tnd_sample_is_noisy) */
    int64_t n_stale;        /* stale ones, of curves only (tnd_sample_is_stale) */
    int64_t n_contradicted; /* contradicted ones, of curves only (tnd_sample_is_contradicted) */
    int n_wrong;            /* profiles with wrong results, counted per weight type */
    int n_unchecked;        /* profiles that have times for a weight type but no check */
    int n_missing_pairs;    /* ordered pairs of the profiles' backends without a slow-down */
    bool is_steady;         /* during the newest sweep; also true when unknown */
};

/** Examines a table. `words` (may be NULL) gets a few lines for each kind of problem, with the
 * worst cells; nothing without problems. */
void tnd_table_health(const struct tandem_table *table, struct tnd_health *out,
                      struct tnd_text *words);

#endif
