/* SPDX-License-Identifier: MIT
 * What is to be distrusted in a table, in words, and what would help: for mulmat-tune table check.
 * Whether it fits the machine is another question (table/invalidate.h). */
#ifndef TND_TABLE_HEALTH_H
#define TND_TABLE_HEALTH_H

#include "base/text.h"
#include "table/tnd_table.h"

struct tnd_health {
    int64_t n_samples;      /* of curves and transfers */
    int64_t n_noisy;        /* of them; tnd_sample_is_noisy */
    int64_t n_stale;        /* of those of curves; tnd_sample_is_stale */
    int64_t n_contradicted; /* the same; tnd_sample_is_contradicted */
    int n_wrong;            /* profiles, each for one weight type, with wrong results */
    int n_unchecked;        /* profiles that have times for a weight type but no check */
    int n_missing_pairs;    /* ordered pairs of backends of the profiles without a slow-down */
    bool is_steady;         /* the machine was while the newest sweep measured, or nobody knows */
};

/** Looks a table over. `words` (may be NULL) gets a few lines for each kind of trouble, with the
 *  worst cells; nothing for a table in good health. */
void tnd_table_health(const struct tandem_table *table, struct tnd_health *out,
                      struct tnd_text *words);

#endif
