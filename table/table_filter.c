/* SPDX-License-Identifier: MIT
 * Removing records, and laying tables over each other. The callers decide what and why. */
#include "table/table_filter.h"

#include <string.h>

#include "base/tnd_status.h"
#include "table/judge.h"
#include "table/records.h"

struct filter {
    enum tnd_record kind;
    tnd_keep_fn keep;
    void *user;
};

/* Returns how many samples it removed. */
static int filter_samples(const struct filter *filter, const void *record,
                          struct tnd_vector *samples)
{
    struct tnd_sample *all = samples->items;
    int kept = 0;
    for (int i = 0; i < samples->n; i++) {
        if (filter->keep(filter->user, filter->kind, record, &all[i])) {
            all[kept++] = all[i];
        }
    }
    int gone = samples->n - kept;
    samples->n = kept;
    if (kept == 0) {
        tnd_vector_fini(samples);
    }
    return gone;
}

/* Returns how many cells it removed. */
static int64_t filter_list(const struct filter *filter, struct tnd_vector *list)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[filter->kind];
    int64_t gone = 0;
    int kept = 0;
    for (int i = 0; i < list->n; i++) {
        void *record = tnd_vector_at(list, kind->bytes, i);
        struct tnd_vector *samples = tnd_record_samples(filter->kind, record);
        bool stays;
        if (samples != NULL) {
            gone += filter_samples(filter, record, samples);
            stays = samples->n > 0;
        } else {
            stays = filter->keep(filter->user, filter->kind, record, NULL);
            gone += !stays && kind->kept == 0;
        }
        if (stays) {
            memmove(tnd_vector_at(list, kind->bytes, kept++), record, kind->bytes);
        }
    }
    list->n = kept;
    return gone;
}

int64_t tnd_table_remove(struct tandem_table *table, tnd_keep_fn keep, void *user)
{
    int64_t gone = 0;
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        const struct filter filter = {(enum tnd_record)kind, keep, user};
        gone += filter_list(&filter, tnd_record_list(table, (enum tnd_record)kind));
    }
    (void)tnd_table_judge(table); /* for what is left; when out of memory the old judgement stays */
    return gone;
}

int64_t tnd_table_count_cells(const struct tandem_table *table)
{
    int64_t n = 0;
    for (int k = 0; k < TND_RECORD_KINDS; k++) {
        const struct tnd_record_kind *kind = &tnd_record_kinds[k];
        const struct tnd_vector *list = tnd_record_list_const(table, (enum tnd_record)k);
        n += kind->samples == 0 && kind->kept == 0 ? list->n : 0;
        for (int i = 0; i < list->n && kind->samples != 0; i++) {
            const char *record = tnd_record_at(table, (enum tnd_record)k, i);
            n += ((const struct tnd_vector *)(record + kind->samples))->n;
        }
    }
    return n;
}

/* ---- layers ---- */

static bool not_in_upper(void *user, enum tnd_record which, const void *record,
                         const struct tnd_sample *sample)
{
    const struct tandem_table *upper = *(const struct tandem_table *const *)user;
    int layers = tnd_record_kinds[which].layers;
    int at = tnd_record_lower_bound(upper, which, record, layers);
    bool is_there = layers > 0 && at < tnd_record_list_const(upper, which)->n &&
                    tnd_record_compare_first(&tnd_record_kinds[which],
                                             tnd_record_at(upper, which, at), record, layers) == 0;
    (void)sample;
    return !is_there;
}

static void drop_profiles_of(struct tandem_table *table, const struct tandem_table *upper)
{
    int kept = 0;
    for (int i = 0; i < table->n_profiles; i++) {
        if (tnd_table_profile(upper, table->profiles[i].name) == NULL) {
            table->profiles[kept++] = table->profiles[i];
        }
    }
    table->n_profiles = kept;
}

enum tandem_status tnd_table_overlay(struct tandem_table *table, const struct tandem_table *upper,
                                     struct tandem_error *error)
{
    tnd_table_remove(table, not_in_upper, &upper);
    drop_profiles_of(table, upper);
    if (upper->has_fingerprint) {
        table->fingerprint = upper->fingerprint;
        table->has_fingerprint = true;
    }
    return tandem_table_merge(table, upper, error);
}
