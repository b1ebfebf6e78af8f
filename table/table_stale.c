/* SPDX-License-Identifier: MIT
 * Cells not to be trusted: noisy ones, and those that were found wrong while programs ran and will
 * be measured again by the next bench. */
#include "table/table_cells.h"

#include <string.h>

bool tnd_sample_is_noisy(const struct tnd_sample *sample)
{
    return sample->spread_us > TND_NOISY_FRAC * sample->median_us;
}

bool tnd_sample_is_stale(const struct tnd_sample *sample)
{
    return sample->generation % 2 != 0;
}

static int mark(struct tnd_sample *sample)
{
    if (tnd_sample_is_stale(sample) || sample->generation >= TND_TABLE_MAX_GENERATION) {
        return 0;
    }
    sample->generation++;
    return 1;
}

int tnd_table_mark_stale(struct tandem_table *table, const struct tnd_curve_key *key, int64_t m)
{
    int at = tnd_table_lower_bound(table, key);
    if (at == table->n_curves || tnd_curve_key_compare(&table->curves[at].key, key) != 0) {
        return 0;
    }
    struct tnd_curve *curve = &table->curves[at];
    int high = 0; /* index of the first sample that is not below m */
    while (high < curve->n_samples && curve->samples[high].m < m) {
        high++;
    }
    int n_marked = high < curve->n_samples ? mark(&curve->samples[high]) : 0;
    bool is_exact = high < curve->n_samples && curve->samples[high].m == m;
    return n_marked + (high > 0 && !is_exact ? mark(&curve->samples[high - 1]) : 0);
}

int tnd_table_mark_backend_stale(struct tandem_table *table, const char *backend)
{
    int n_marked = 0;
    for (int i = 0; i < table->n_curves; i++) {
        struct tnd_curve *curve = &table->curves[i];
        const bool is_its = strcmp(curve->key.backend, backend) == 0;
        for (int j = 0; is_its && j < curve->n_samples; j++) {
            n_marked += mark(&curve->samples[j]);
        }
    }
    return n_marked;
}

static void supersede_curve(struct tnd_curve *fresh, const struct tnd_curve *old)
{
    int at = 0;
    for (int i = 0; i < fresh->n_samples; i++) {
        struct tnd_sample *sample = &fresh->samples[i];
        while (at < old->n_samples && old->samples[at].m < sample->m) {
            at++;
        }
        const struct tnd_sample *before = &old->samples[at];
        if (at < old->n_samples && before->m == sample->m && tnd_sample_is_stale(before) &&
            sample->when > before->when && sample->generation < before->generation) {
            sample->generation = before->generation + 1;
        }
    }
}

void tnd_table_supersede(struct tandem_table *fresh, const struct tandem_table *old)
{
    for (int i = 0; i < fresh->n_curves; i++) {
        const struct tnd_curve *curve = tnd_table_find(old, &fresh->curves[i].key);
        if (curve != NULL) {
            supersede_curve(&fresh->curves[i], curve);
        }
    }
}
