/* SPDX-License-Identifier: MIT
 * Leaving out cells of a table, and predicting them. */
#include "tools/report/left_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "table/table_filter.h"
#include "tune/estimate.h"
#include "tune/profiles.h"

enum { MOST_CELLS = 1 << 20 };

/* Which cells are left out, the same for all curves of a stage. */
struct cut {
    const struct tandem_table *full;
    enum tnd_left_out_side side;
    int factor; /* of M: 2 or 4 */
};

/* Range of the measured M and thread counts of one stage and shape. */
struct extent {
    int64_t first_m, last_m;
    int most_threads, next_threads; /* next: 0 when there is only one count */
};

/* ---- what was measured ---- */

static bool same_stage(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    struct tnd_curve_key x = *a;
    x.threads = b->threads;
    return tnd_curve_key_compare(&x, b) == 0;
}

static void widen(struct extent *extent, const struct tnd_curve *curve)
{
    int64_t first = curve->samples[0].m;
    int64_t last = curve->samples[curve->n_samples - 1].m;
    int threads = curve->key.threads;
    extent->first_m = extent->first_m == 0 || first < extent->first_m ? first : extent->first_m;
    extent->last_m = last > extent->last_m ? last : extent->last_m;
    if (threads > extent->most_threads) {
        extent->next_threads = extent->most_threads;
        extent->most_threads = threads;
    } else if (threads > extent->next_threads && threads < extent->most_threads) {
        extent->next_threads = threads;
    }
}

/* Curves of one stage are adjacent; `curve` points into the table. */
static struct extent extent_of(const struct tandem_table *table, const struct tnd_curve *curve)
{
    struct extent extent = {0, 0, 0, 0};
    int at = (int)(curve - table->curves);
    TND_ASSERT(at >= 0 && at < table->n_curves);
    while (at > 0 && same_stage(&table->curves[at - 1].key, &curve->key)) {
        at--;
    }
    for (; at < table->n_curves && same_stage(&table->curves[at].key, &curve->key); at++) {
        if (table->curves[at].n_samples > 0) {
            widen(&extent, &table->curves[at]);
        }
    }
    return extent;
}

static bool keeps(void *user, enum tnd_record kind, const void *record,
                  const struct tnd_sample *sample)
{
    const struct cut *cut = user;
    if (kind != TND_RECORD_CURVES || sample == NULL) {
        return true;
    }
    const struct tnd_curve_key *key = &((const struct tnd_curve *)record)->key;
    const struct tnd_curve *curve = tnd_table_find(cut->full, key);
    if (curve == NULL || strcmp(key->op, "mul_mat") != 0) {
        return true;
    }
    struct extent extent = extent_of(cut->full, curve);
    switch (cut->side) {
    case TND_LEFT_OUT_ABOVE:
        return sample->m <= extent.last_m / cut->factor;
    case TND_LEFT_OUT_BELOW:
        return sample->m >= extent.first_m * cut->factor;
    default:
        return extent.next_threads == 0 || key->threads < extent.most_threads;
    }
}

/* ---- one cell ---- */

/* Key of another stage of the profile whose COMPUTE has the key `compute`. */
static struct tnd_curve_key key_of_stage(const struct tnd_table_profile *profile, int stage,
                                         const struct tnd_curve_key *compute)
{
    struct tnd_curve_key key;
    tnd_stage_key(&profile->stage[stage], stage, compute->type, compute->n, compute->k,
                  compute->threads, &key);
    key.warm = compute->warm;
    return key;
}

/* The time of all stages at exactly this cell; false unless each was measured there. */
static bool measured_time(const struct tandem_table *table, const struct tnd_table_profile *profile,
                          const struct tnd_curve_key *compute, int64_t m, double *out_us)
{
    double us = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (profile->stage[s].backend[0] == '\0') {
            continue;
        }
        struct tnd_curve_key key = key_of_stage(profile, s, compute);
        const struct tnd_curve *curve = tnd_table_find(table, &key);
        int i = 0;
        while (curve != NULL && i < curve->n_samples && curve->samples[i].m != m) {
            i++;
        }
        if (curve == NULL || i == curve->n_samples || tnd_sample_is_stale(&curve->samples[i])) {
            return false;
        }
        us += curve->samples[i].median_us;
    }
    *out_us = us;
    return us > 0;
}

static enum tandem_status add_cell(const struct tandem_table *rest, const struct cut *cut,
                                   const struct tnd_table_profile *profile,
                                   const struct tnd_curve *curve, int64_t m, double distance,
                                   struct tnd_left_out *out)
{
    const struct tnd_curve_key *key = &curve->key;
    struct tnd_left_out_cell cell = {.warm = key->warm, .side = cut->side};
    struct tnd_estimate stages[TANDEM_STAGES];
    struct tnd_estimate sum;
    double doublings = fmin(fmax(round(log2(distance)), 1), TND_LEFT_OUT_DISTANCES);
    cell.distance = (int)doublings;
    if (!measured_time(cut->full, profile, key, m, &cell.measured_us) ||
        !tnd_estimate_stages(rest, profile, key->type, key->n, key->k, m, key->threads, key->warm,
                             stages, &sum) ||
        !sum.measured_shape) {
        return TANDEM_OK;
    }
    memcpy(cell.problem.op, key->op, sizeof(cell.problem.op));
    cell.problem.type = key->type;
    cell.problem.n = key->n;
    cell.problem.k = key->k;
    cell.problem.m = m;
    cell.problem.threads = key->threads;
    memcpy(cell.problem.profile, profile->name, sizeof(cell.problem.profile));
    cell.predicted_us = sum.us;
    cell.error_us = sum.error_us;
    int n = out->n_cells;
    TND_TRY(tnd_vector_insert(&out->cells_vector, sizeof(cell), MOST_CELLS, n));
    out->cells[n] = cell;
    return TANDEM_OK;
}

/* ---- one curve ---- */

static enum tandem_status add_outermost(const struct tandem_table *rest, const struct cut *cut,
                                        const struct tnd_table_profile *profile,
                                        const struct tnd_curve *curve, struct tnd_left_out *out)
{
    const struct tnd_curve *kept = tnd_table_find(rest, &curve->key);
    if (kept == NULL || kept->n_samples < 2 || kept->n_samples == curve->n_samples) {
        return TANDEM_OK;
    }
    struct extent extent = extent_of(rest, kept); /* other thread counts may have more M */
    bool above = cut->side == TND_LEFT_OUT_ABOVE;
    int64_t m = curve->samples[above ? curve->n_samples - 1 : 0].m;
    double distance =
        above ? (double)m / (double)extent.last_m : (double)extent.first_m / (double)m;
    /* With a wide gap, leaving out a quarter may leave out no more than leaving out a half. */
    if (distance < M_SQRT1_2 * cut->factor || (cut->factor == 2 && distance >= 2 * M_SQRT2)) {
        return TANDEM_OK;
    }
    return add_cell(rest, cut, profile, curve, m, distance, out);
}

static enum tandem_status add_threads(const struct tandem_table *rest, const struct cut *cut,
                                      const struct tnd_table_profile *profile,
                                      const struct tnd_curve *curve, struct tnd_left_out *out)
{
    struct extent extent = extent_of(cut->full, curve);
    if (extent.next_threads == 0 || curve->key.threads != extent.most_threads) {
        return TANDEM_OK;
    }
    for (int i = 0; i < curve->n_samples; i++) {
        TND_TRY(add_cell(rest, cut, profile, curve, curve->samples[i].m,
                         (double)extent.most_threads / extent.next_threads, out));
    }
    return TANDEM_OK;
}

static enum tandem_status add_curves(const struct tandem_table *rest, const struct cut *cut,
                                     const struct tnd_table_profile *named,
                                     struct tnd_left_out *out)
{
    for (int i = 0; i < cut->full->n_curves; i++) {
        const struct tnd_curve *curve = &cut->full->curves[i];
        struct tnd_table_profile profile = *named;
        /* A table describes a profile by its stages for one type; those for others come from this
         * build. */
        (void)tnd_profile_describe_name(NULL, named->name, curve->key.type, &profile);
        if (curve->key.stage != TANDEM_STAGE_COMPUTE || strcmp(curve->key.op, "mul_mat") != 0 ||
            curve->n_samples == 0 || profile.stage[TANDEM_STAGE_COMPUTE].backend[0] == '\0') {
            continue;
        }
        struct tnd_curve_key own = key_of_stage(&profile, TANDEM_STAGE_COMPUTE, &curve->key);
        if (tnd_curve_key_compare(&own, &curve->key) == 0) {
            TND_TRY(cut->side == TND_LEFT_OUT_THREADS
                        ? add_threads(rest, cut, &profile, curve, out)
                        : add_outermost(rest, cut, &profile, curve, out));
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_left_out_add(const struct tandem_table *table, struct tnd_left_out *out)
{
    static const struct {
        enum tnd_left_out_side side;
        int factor;
    } cuts[] = {{TND_LEFT_OUT_ABOVE, 2},
                {TND_LEFT_OUT_ABOVE, 4},
                {TND_LEFT_OUT_BELOW, 2},
                {TND_LEFT_OUT_BELOW, 4},
                {TND_LEFT_OUT_THREADS, 2}};
    enum tandem_status status = TANDEM_OK;
    for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]) && status == TANDEM_OK; c++) {
        struct cut cut = {table, cuts[c].side, cuts[c].factor};
        tandem_table *rest = NULL;
        TND_TRY(tandem_table_copy(table, &rest, NULL));
        tnd_table_remove(rest, keeps, &cut);
        for (int p = 0; p < table->n_profiles && status == TANDEM_OK; p++) {
            status = add_curves(rest, &cut, &table->profiles[p], out);
        }
        tandem_table_free(rest);
    }
    return status;
}

void tnd_left_out_fini(struct tnd_left_out *list)
{
    tnd_vector_fini(&list->cells_vector);
}

/* ---- statistics of the cells ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

enum tandem_status tnd_left_out_calibration(const struct tnd_left_out *list, uint32_t sides,
                                            uint32_t distances, struct tnd_calibration *out)
{
    double *errors = tnd_calloc((size_t)list->n_cells + 1, sizeof(errors[0]));
    if (errors == NULL) {
        return TANDEM_E_MEMORY;
    }
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < list->n_cells; i++) {
        const struct tnd_left_out_cell *cell = &list->cells[i];
        if ((sides >> cell->side & 1) == 0 || (distances >> (cell->distance - 1) & 1) == 0) {
            continue;
        }
        double error = fabs(cell->predicted_us / cell->measured_us - 1);
        out->worst_at = out->n == 0 || error > out->worst ? i : out->worst_at;
        out->worst = fmax(out->worst, error);
        out->within += fabs(cell->predicted_us - cell->measured_us) <= cell->error_us;
        errors[out->n++] = error;
    }
    if (out->n > 0) {
        qsort(errors, (size_t)out->n, sizeof(errors[0]), compare_doubles);
        out->median = errors[out->n / 2];
        out->p95 = errors[(int)(0.95 * (out->n - 1))];
        out->within /= out->n;
    }
    tnd_free(errors);
    return TANDEM_OK;
}
