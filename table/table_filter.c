/* SPDX-License-Identifier: MIT
 * Removing cells, and laying tables over each other. Knows nothing of why. */
#include "table/table_filter.h"

#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "table/table_cells.h"

/* Keeps what `keeps` says; returns how many samples went. */
static int filter_curve(struct tnd_curve *curve, const struct tnd_table_filter *filter,
                        const struct tnd_transfer *transfer)
{
    int kept = 0;
    for (int i = 0; i < curve->n_samples; i++) {
        const struct tnd_sample *sample = &curve->samples[i];
        bool stays = transfer != NULL ? filter->keep_transfer(filter->user, transfer, sample)
                                      : filter->keep_sample(filter->user, &curve->key, sample);
        if (stays) {
            curve->samples[kept++] = *sample;
        }
    }
    int gone = curve->n_samples - kept;
    curve->n_samples = kept;
    if (kept == 0) {
        tnd_free(curve->samples);
        curve->samples = NULL;
        curve->capacity = 0;
    }
    return gone;
}

static int64_t filter_curves(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int64_t gone = 0;
    int kept = 0;
    for (int i = 0; i < table->n_curves; i++) {
        gone += filter_curve(&table->curves[i], filter, NULL);
        if (table->curves[i].n_samples > 0) {
            table->curves[kept++] = table->curves[i];
        }
    }
    table->n_curves = kept;
    return gone;
}

static int64_t filter_transfers(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int64_t gone = 0;
    int kept = 0;
    for (int i = 0; i < table->n_transfers; i++) {
        struct tnd_transfer *transfer = &table->transfers[i];
        gone += filter_curve(&transfer->curve, filter, transfer);
        if (transfer->curve.n_samples > 0) {
            table->transfers[kept++] = *transfer;
        }
    }
    table->n_transfers = kept;
    return gone;
}

static int64_t filter_handoffs(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int kept = 0;
    for (int i = 0; i < table->n_handoffs; i++) {
        if (filter->keep_handoff(filter->user, &table->handoffs[i])) {
            table->handoffs[kept++] = table->handoffs[i];
        }
    }
    int64_t gone = table->n_handoffs - kept;
    table->n_handoffs = kept;
    return gone;
}

static int64_t filter_checks(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int kept = 0;
    for (int i = 0; i < table->n_checks; i++) {
        if (filter->keep_check(filter->user, &table->checks[i])) {
            table->checks[kept++] = table->checks[i];
        }
    }
    int64_t gone = table->n_checks - kept;
    table->n_checks = kept;
    return gone;
}

static int64_t filter_slowdowns(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int kept = 0;
    for (int i = 0; i < table->n_slowdowns; i++) {
        if (filter->keep_slowdown(filter->user, &table->slowdowns[i])) {
            table->slowdowns[kept++] = table->slowdowns[i];
        }
    }
    int64_t gone = table->n_slowdowns - kept;
    table->n_slowdowns = kept;
    return gone;
}

static void filter_sweeps(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int kept = 0;
    for (int i = 0; i < table->n_sweeps; i++) {
        if (filter->keep_sweep(filter->user, &table->sweeps[i])) {
            table->sweeps[kept++] = table->sweeps[i];
        }
    }
    table->n_sweeps = kept;
}

int64_t tnd_table_remove(struct tandem_table *table, const struct tnd_table_filter *filter)
{
    int64_t gone = 0;
    if (filter->keep_sample != NULL) {
        gone += filter_curves(table, filter);
    }
    if (filter->keep_transfer != NULL) {
        gone += filter_transfers(table, filter);
    }
    if (filter->keep_handoff != NULL) {
        gone += filter_handoffs(table, filter);
    }
    if (filter->keep_check != NULL) {
        gone += filter_checks(table, filter);
    }
    if (filter->keep_slowdown != NULL) {
        gone += filter_slowdowns(table, filter);
    }
    if (filter->keep_sweep != NULL) {
        filter_sweeps(table, filter);
    }
    return gone;
}

int64_t tnd_table_count_cells(const struct tandem_table *table)
{
    int64_t n = (int64_t)table->n_handoffs + table->n_checks + table->n_slowdowns;
    for (int i = 0; i < table->n_curves; i++) {
        n += table->curves[i].n_samples;
    }
    for (int i = 0; i < table->n_transfers; i++) {
        n += table->transfers[i].curve.n_samples;
    }
    return n;
}

/* ---- layers ---- */

static bool not_in_upper(void *user, const struct tnd_curve_key *key,
                         const struct tnd_sample *sample)
{
    (void)sample;
    return tnd_table_find(user, key) == NULL;
}

static bool transfer_not_in_upper(void *user, const struct tnd_transfer *transfer,
                                  const struct tnd_sample *sample)
{
    (void)sample;
    return tnd_table_transfer(user, transfer->backend, (enum tnd_direction)transfer->direction) ==
           NULL;
}

static bool handoff_not_in_upper(void *user, const struct tnd_handoff *handoff)
{
    const struct tandem_table *upper = user;
    for (int i = 0; i < upper->n_handoffs; i++) {
        if (upper->handoffs[i].threads == handoff->threads) {
            return false;
        }
    }
    return true;
}

static bool check_not_in_upper(void *user, const struct tnd_check *check)
{
    return tnd_table_check(user, check->profile, check->type, 0, NULL) == TND_VERDICT_UNKNOWN;
}

static bool slowdown_not_in_upper(void *user, const struct tnd_slowdown *slowdown)
{
    double factor;
    return !tnd_table_slowdown(user, slowdown->backend, slowdown->beside, &factor);
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
    tandem_table *copy = NULL; /* the filter's user is not const */
    TND_TRY(tandem_table_copy(upper, &copy, error));
    const struct tnd_table_filter filter = {not_in_upper,
                                            transfer_not_in_upper,
                                            handoff_not_in_upper,
                                            check_not_in_upper,
                                            slowdown_not_in_upper,
                                            NULL,
                                            copy};
    tnd_table_remove(table, &filter);
    drop_profiles_of(table, copy);
    if (copy->has_fingerprint) {
        table->fingerprint = copy->fingerprint;
        table->has_fingerprint = true;
    }
    enum tandem_status status = tandem_table_merge(table, copy, error);
    tandem_table_free(copy);
    return status;
}
