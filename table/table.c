/* SPDX-License-Identifier: MIT
 * Cells of a timing table: sorted curves, the rule by which one sample replaces another, merging.
 * Knows nothing of files (table_file.c, table_text.c, table_json.c) nor of estimating (estimate.c).
 * */
#include "table/table_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"

/* Numbers first: they decide most steps of a search. */
int tnd_curve_key_compare_shape(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    if (a->k != b->k) {
        return a->k < b->k ? -1 : 1;
    }
    return strcmp(a->op, b->op);
}

/* Thread counts come last, so that all counts of one stage of one shape are neighbours. */
int tnd_curve_key_compare(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    int order = tnd_curve_key_compare_shape(a, b);
    if (order == 0) {
        order = (int)a->stage - b->stage;
    }
    if (order == 0) {
        order = (int)a->task - b->task;
    }
    if (order == 0) {
        order = strcmp(a->backend, b->backend);
    }
    if (order == 0) {
        order = (int)a->parallel - b->parallel;
    }
    if (order == 0) {
        order = (int)a->own_threads - b->own_threads;
    }
    if (order == 0) {
        order = (int)a->warm - b->warm;
    }
    if (order == 0) {
        order = a->threads < b->threads ? -1 : a->threads > b->threads;
    }
    return order;
}

int tnd_table_lower_bound(const struct tandem_table *table, const struct tnd_curve_key *key)
{
    int low = 0;
    int high = table->n_curves;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (tnd_curve_key_compare(&table->curves[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct tnd_curve *tnd_table_find(const struct tandem_table *table,
                                       const struct tnd_curve_key *key)
{
    int i = tnd_table_lower_bound(table, key);
    bool found = i < table->n_curves && tnd_curve_key_compare(&table->curves[i].key, key) == 0;
    return found ? &table->curves[i] : NULL;
}

/* ---- samples ---- */

/* Whether `a` replaces `b`. The rule is generation, count, then age; the rest only makes the order
 * total, without which merging would not be commutative. */
bool tnd_sample_wins(const struct tnd_sample *a, const struct tnd_sample *b)
{
    if (a->generation != b->generation) {
        return a->generation > b->generation;
    }
    if (a->count != b->count) {
        return a->count > b->count;
    }
    if (a->when != b->when) {
        return a->when > b->when;
    }
    if (a->median_us != b->median_us) {
        return a->median_us < b->median_us;
    }
    return a->spread_us < b->spread_us;
}

bool tnd_table_is_time(double us)
{
    return isfinite(us) && us >= 0.0 && us <= TND_TABLE_MAX_US;
}

static enum tandem_status check_cell(const struct tnd_curve_key *key,
                                     const struct tnd_sample *sample)
{
    bool valid = key->n >= 1 && key->k >= 1 && key->threads >= 1 && key->stage < TANDEM_STAGES &&
                 key->task < TANDEM_TASK_COUNT && sample->m >= 1 &&
                 tnd_table_is_time(sample->median_us) && tnd_table_is_time(sample->spread_us);
    return valid ? TANDEM_OK : TANDEM_E_ARGUMENT;
}

enum tandem_status tnd_curve_put(struct tnd_curve *curve, const struct tnd_sample *sample)
{
    int at = curve->n_samples;
    while (at > 0 && curve->samples[at - 1].m >= sample->m) {
        at--;
    }
    if (at < curve->n_samples && curve->samples[at].m == sample->m) {
        if (tnd_sample_wins(sample, &curve->samples[at])) {
            curve->samples[at] = *sample;
        }
        return TANDEM_OK;
    }
    if (curve->n_samples >= TND_TABLE_MAX_SAMPLES) {
        return TANDEM_E_LIMIT;
    }
    if (curve->n_samples == curve->capacity) {
        int capacity = curve->capacity == 0 ? 8 : curve->capacity * 2;
        struct tnd_sample *grown =
            tnd_realloc(curve->samples, (size_t)curve->capacity * sizeof(*grown),
                        (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return TANDEM_E_MEMORY;
        }
        curve->samples = grown;
        curve->capacity = capacity;
    }
    memmove(&curve->samples[at + 1], &curve->samples[at],
            (size_t)(curve->n_samples - at) * sizeof(*sample));
    curve->samples[at] = *sample;
    curve->n_samples++;
    return TANDEM_OK;
}

/* ---- curves ---- */

enum tandem_status tnd_table_insert_curve(struct tandem_table *table, int at,
                                          const struct tnd_curve_key *key)
{
    if (table->n_curves >= TND_TABLE_MAX_CURVES) {
        return TANDEM_E_LIMIT;
    }
    if (table->n_curves == table->curve_capacity) {
        int capacity = table->curve_capacity == 0 ? 32 : table->curve_capacity * 2;
        struct tnd_curve *grown =
            tnd_realloc(table->curves, (size_t)table->curve_capacity * sizeof(*grown),
                        (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return TANDEM_E_MEMORY;
        }
        table->curves = grown;
        table->curve_capacity = capacity;
    }
    memmove(&table->curves[at + 1], &table->curves[at],
            (size_t)(table->n_curves - at) * sizeof(*table->curves));
    memset(&table->curves[at], 0, sizeof(table->curves[at]));
    table->curves[at].key = *key;
    table->n_curves++;
    return TANDEM_OK;
}

enum tandem_status tnd_table_add(struct tandem_table *table, const struct tnd_curve_key *key,
                                 const struct tnd_sample *sample)
{
    TND_TRY(check_cell(key, sample));
    int at = tnd_table_lower_bound(table, key);
    if (at == table->n_curves || tnd_curve_key_compare(&table->curves[at].key, key) != 0) {
        TND_TRY(tnd_table_insert_curve(table, at, key));
    }
    enum tandem_status status = tnd_curve_put(&table->curves[at], sample);
    if (table->curves[at].n_samples == 0) { /* a curve is never empty, not even after a failure */
        memmove(&table->curves[at], &table->curves[at + 1],
                (size_t)(table->n_curves - at - 1) * sizeof(*table->curves));
        table->n_curves--;
    }
    return status;
}

enum tandem_status tnd_table_append(struct tandem_table *table, const struct tnd_curve_key *key,
                                    const struct tnd_sample *sample)
{
    TND_TRY(check_cell(key, sample));
    int last = table->n_curves - 1;
    if (last < 0 || tnd_curve_key_compare(&table->curves[last].key, key) != 0) {
        TND_TRY(tnd_table_insert_curve(table, table->n_curves, key));
        last++;
    }
    return tnd_curve_put(&table->curves[last], sample);
}

static int compare_curves(const void *a, const void *b)
{
    return tnd_curve_key_compare(&((const struct tnd_curve *)a)->key,
                                 &((const struct tnd_curve *)b)->key);
}

enum tandem_status tnd_table_sort(struct tandem_table *table)
{
    if (table->n_curves == 0) {
        return TANDEM_OK;
    }
    qsort(table->curves, (size_t)table->n_curves, sizeof(*table->curves), compare_curves);
    enum tandem_status status = TANDEM_OK;
    int kept = 0;
    for (int i = 1; i < table->n_curves; i++) {
        struct tnd_curve *curve = &table->curves[i];
        struct tnd_curve *before = &table->curves[kept];
        if (tnd_curve_key_compare(&before->key, &curve->key) != 0) {
            table->curves[++kept] = *curve;
            continue;
        }
        for (int s = 0; s < curve->n_samples && status == TANDEM_OK; s++) {
            status = tnd_curve_put(before, &curve->samples[s]);
        }
        tnd_free(curve->samples);
    }
    table->n_curves = kept + 1;
    return status;
}

/* ---- profiles ---- */

const struct tnd_table_profile *tnd_table_profile(const struct tandem_table *table,
                                                  const char *name)
{
    for (int i = 0; i < table->n_profiles; i++) {
        if (strcmp(table->profiles[i].name, name) == 0) {
            return &table->profiles[i];
        }
    }
    return NULL;
}

enum tandem_status tnd_table_add_profile(struct tandem_table *table,
                                         const struct tnd_table_profile *profile)
{
    if (tnd_table_profile(table, profile->name) != NULL) {
        return TANDEM_OK;
    }
    if (table->n_profiles >= TND_TABLE_MAX_PROFILES) {
        return TANDEM_E_LIMIT;
    }
    table->profiles[table->n_profiles++] = *profile;
    return TANDEM_OK;
}

static int compare_stages(const struct tnd_table_stage *a, const struct tnd_table_stage *b)
{
    int order = strcmp(a->backend, b->backend);
    const int values[5][2] = {{a->kind, b->kind},
                              {a->task, b->task},
                              {a->parallel, b->parallel},
                              {a->wait, b->wait},
                              {a->own_threads, b->own_threads}};
    for (int i = 0; i < 5 && order == 0; i++) {
        order = values[i][0] - values[i][1];
    }
    return order;
}

int tnd_table_profile_compare(const struct tnd_table_profile *a, const struct tnd_table_profile *b)
{
    int order = strcmp(a->name, b->name);
    for (int s = 0; s < TANDEM_STAGES && order == 0; s++) {
        order = compare_stages(&a->stage[s], &b->stage[s]);
    }
    return order;
}

static int compare_profiles(const void *a, const void *b)
{
    return tnd_table_profile_compare(a, b);
}

/* ---- merging: every part is the larger of two values of a total order, hence the three laws ----
 * */

static enum tandem_status merge_profiles(struct tandem_table *table,
                                         const struct tandem_table *other,
                                         struct tandem_error *error)
{
    for (int i = 0; i < other->n_profiles; i++) {
        const struct tnd_table_profile *profile = &other->profiles[i];
        for (int j = 0; j < table->n_profiles; j++) {
            bool same_name = strcmp(table->profiles[j].name, profile->name) == 0;
            if (same_name && tnd_table_profile_compare(&table->profiles[j], profile) < 0) {
                table->profiles[j] = *profile;
            }
        }
        if (tnd_table_add_profile(table, profile) != TANDEM_OK) {
            return tnd_error_set(error, TANDEM_E_LIMIT, profile->name, table->n_profiles + 1,
                                 TND_TABLE_MAX_PROFILES,
                                 "merging tables: more than %d profiles with '%s'",
                                 TND_TABLE_MAX_PROFILES, profile->name);
        }
    }
    qsort(table->profiles, (size_t)table->n_profiles, sizeof(table->profiles[0]), compare_profiles);
    return TANDEM_OK;
}

static void take_larger_text(char *text, const char *other, size_t n)
{
    if (strcmp(text, other) < 0) {
        memcpy(text, other, n);
    }
}

static void merge_header(struct tandem_table *table, const struct tandem_table *other)
{
    take_larger_text(table->model, other->model, sizeof(table->model));
    take_larger_text(table->type_text, other->type_text, sizeof(table->type_text));
    table->version = table->version > other->version ? table->version : other->version;
    table->m_step = table->m_step > other->m_step ? table->m_step : other->m_step;
    if (table->gpu_kind < other->gpu_kind) {
        table->gpu_kind = other->gpu_kind;
        memcpy(table->gpu_name, other->gpu_name, sizeof(table->gpu_name));
    } else if (table->gpu_kind == other->gpu_kind) {
        take_larger_text(table->gpu_name, other->gpu_name, sizeof(table->gpu_name));
    }
}

/* Both lists are sorted: the union is built beside them in one pass, with samples of its own. */
static enum tandem_status merge_curves(struct tandem_table *result, const struct tandem_table *a,
                                       const struct tandem_table *b)
{
    int i = 0;
    int j = 0;
    while (i < a->n_curves || j < b->n_curves) {
        int order = i == a->n_curves ? 1
                    : j == b->n_curves
                        ? -1
                        : tnd_curve_key_compare(&a->curves[i].key, &b->curves[j].key);
        const struct tnd_curve *from[2] = {order <= 0 ? &a->curves[i++] : NULL,
                                           order >= 0 ? &b->curves[j++] : NULL};
        for (int side = 0; side < 2; side++) {
            for (int s = 0; from[side] != NULL && s < from[side]->n_samples; s++) {
                TND_TRY(tnd_table_append(result, &from[side]->key, &from[side]->samples[s]));
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_table_merge(tandem_table *table, const tandem_table *other,
                                      struct tandem_error *error)
{
    struct tandem_table merged = *table;
    merged.n_curves = 0;
    merged.curve_capacity = 0;
    merged.curves = NULL;
    merged.n_shapes = 0; /* an order of shapes that both share does not exist: sorted */
    merged.shapes = NULL;
    tnd_table_drop_moves(&merged);
    tnd_table_drop_evidence(&merged);
    merge_header(&merged, other);
    enum tandem_status status = tnd_fingerprint_merge(&merged, other, error);
    if (status == TANDEM_OK) {
        status = merge_profiles(&merged, other, error);
    }
    if (status == TANDEM_OK) {
        status = merge_curves(&merged, table, other);
        status = status == TANDEM_OK ? tnd_table_merge_moves(&merged, table) : status;
        status = status == TANDEM_OK ? tnd_table_merge_moves(&merged, other) : status;
        status = status == TANDEM_OK ? tnd_table_merge_evidence(&merged, table) : status;
        status = status == TANDEM_OK ? tnd_table_merge_evidence(&merged, other) : status;
        if (status != TANDEM_OK) {
            tnd_error_set(error, status, "table", merged.n_curves, TND_TABLE_MAX_CURVES,
                          "merging tables: %s after %d curves", tandem_status_text(status),
                          merged.n_curves);
        }
    }
    struct tandem_table old = *table;
    if (status == TANDEM_OK) {
        *table = merged;
        merged = old;
    }
    tnd_table_clear(&merged);
    return status;
}

/* ---- life ---- */

void tnd_table_clear(struct tandem_table *table)
{
    for (int i = 0; i < table->n_curves; i++) {
        tnd_free(table->curves[i].samples);
    }
    tnd_free(table->curves);
    tnd_free(table->shapes);
    table->shapes = NULL;
    table->n_shapes = 0;
    table->curves = NULL;
    table->n_curves = 0;
    table->curve_capacity = 0;
    tnd_table_clear_moves(table);
    tnd_table_clear_evidence(table);
}

void tandem_table_free(tandem_table *table)
{
    if (table != NULL) {
        tnd_table_clear(table);
        tnd_free(table);
    }
}
