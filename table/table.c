/* SPDX-License-Identifier: MIT
 * A timing table as a whole: profiles, queries, merging. Its records are in records.c; files in
 * table_file.c, table_text.c, table_json.c; estimates in estimate.c. */
#include "table/judge.h"
#include "table/records.h"
#include "table/table_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

int tnd_curve_key_compare_shape(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    enum { TYPE_N_K_OP = 4 };
    return tnd_record_compare_first(&tnd_record_kinds[TND_RECORD_CURVES], a, b, TYPE_N_K_OP);
}

void tnd_stage_key(const struct tnd_table_stage *stage, int which, enum tandem_type type, int64_t n,
                   int64_t k, int threads, struct tnd_curve_key *out)
{
    TND_ASSERT(which >= 0 && which < TANDEM_STAGES);
    memset(out, 0, sizeof(*out));
    memcpy(out->op, "mul_mat", sizeof("mul_mat"));
    out->type = type;
    out->n = n;
    out->k = k;
    memcpy(out->backend, stage->backend, sizeof(out->backend));
    out->stage = (uint8_t)which;
    out->task = (uint8_t)tnd_task_told((enum tandem_task)stage->task);
    out->parallel = stage->parallel;
    out->own_threads = stage->own_threads;
    out->threads = stage->parallel || stage->own_threads ? threads : 1;
}

/* ---- queries ---- */

const char *tnd_direction_name(enum tnd_direction direction)
{
    return direction == TND_UPLOAD ? "upload" : "download";
}

/* False when the name is too long for a table. */
static bool set_name(char *to, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    if (length < bytes) {
        memcpy(to, name, length + 1);
    }
    return length < bytes;
}

enum tandem_status tnd_table_add_transfer(struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction,
                                          const struct tnd_sample *sample)
{
    struct tnd_transfer transfer = {.direction = (uint8_t)direction};
    return set_name(transfer.backend, sizeof(transfer.backend), backend)
               ? tnd_cell_add(table, TND_RECORD_TRANSFERS, &transfer, sample)
               : TANDEM_E_ARGUMENT;
}

const struct tnd_curve *tnd_table_transfer(const struct tandem_table *table, const char *backend,
                                           enum tnd_direction direction)
{
    struct tnd_transfer key = {.direction = (uint8_t)direction};
    const struct tnd_transfer *found = NULL;
    if (set_name(key.backend, sizeof(key.backend), backend)) {
        found = tnd_record_find(table, TND_RECORD_TRANSFERS, &key);
    }
    return found != NULL ? &found->curve : NULL;
}

/* "int8" also matches the unit "int8 VNNI". */
static bool is_unit(const struct tnd_peak *peak, const char *unit)
{
    size_t n = strlen(unit);
    return strncmp(peak->unit, unit, n) == 0 && (peak->unit[n] == '\0' || peak->unit[n] == ' ');
}

double tnd_table_peak(const struct tandem_table *table, const char *unit, int threads)
{
    double scaled = 0; /* largest rate of as many or fewer threads, scaled up */
    double above = 0;  /* smallest rate of more threads */
    double least = 0;  /* reached by fewer threads, or by the share of more */
    int below = 0;
    for (int i = 0; i < table->n_peaks; i++) {
        const struct tnd_peak *peak = &table->peaks[i];
        if (!is_unit(peak, unit)) {
            continue;
        }
        double rate = peak->rate * threads / peak->threads;
        double reached = peak->threads > threads ? rate : peak->rate;
        least = reached > least ? reached : least;
        if (peak->threads > threads) {
            above = above == 0 || peak->rate < above ? peak->rate : above;
        } else if (peak->threads > below || (peak->threads == below && rate > scaled)) {
            below = peak->threads;
            scaled = rate;
        }
    }
    bool is_above = below != threads && above > 0 && (below == 0 || above < scaled);
    double bound = is_above ? above : scaled;
    return bound > least ? bound : least;
}

bool tnd_table_slowdown(const struct tandem_table *table, const char *backend, const char *beside,
                        double *out_factor)
{
    struct tnd_slowdown key = {.factor = 1};
    const struct tnd_slowdown *found = NULL;
    if (set_name(key.backend, sizeof(key.backend), backend) &&
        set_name(key.beside, sizeof(key.beside), beside)) {
        found = tnd_record_find(table, TND_RECORD_SLOWDOWNS, &key);
    }
    if (found != NULL) {
        *out_factor = found->factor;
    }
    return found != NULL;
}

enum tnd_verdict tnd_table_check(const struct tandem_table *table, const char *profile,
                                 enum tandem_type type, double bound, double *out_nmse)
{
    enum tnd_verdict verdict = TND_VERDICT_UNKNOWN;
    double largest = 0;
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        if (check->type != type || strcmp(check->profile, profile) != 0) {
            continue;
        }
        bool is_wrong = check->nmse > (bound > 0 ? bound : check->bound);
        verdict = is_wrong || verdict == TND_VERDICT_WRONG ? TND_VERDICT_WRONG : TND_VERDICT_RIGHT;
        largest = fmax(largest, check->nmse);
    }
    if (verdict != TND_VERDICT_UNKNOWN && out_nmse != NULL) {
        *out_nmse = largest;
    }
    return verdict;
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

/* ---- merging: the larger value in a total order, so associative, commutative, idempotent ---- */

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

/* Frees the contents of the table, but not the struct. */
static void clear(struct tandem_table *table)
{
    tnd_record_clear(table);
    tnd_free(table->shapes);
    table->shapes = NULL;
    table->n_shapes = 0;
}

enum tandem_status tandem_table_merge(tandem_table *table, const tandem_table *other,
                                      struct tandem_error *error)
{
    TND_REQUIRE(table, "table", error);
    TND_REQUIRE(other, "table", error);
    struct tandem_table merged = *table;
    merged.n_shapes = 0; /* two tables have no common order of shapes: sorted */
    merged.shapes = NULL;
    tnd_record_forget(&merged);
    merge_header(&merged, other);
    enum tandem_status status = tnd_fingerprint_merge(&merged, other, error);
    if (status == TANDEM_OK) {
        status = merge_profiles(&merged, other, error);
    }
    if (status == TANDEM_OK) {
        for (int kind = 0; kind < TND_RECORD_KINDS && status == TANDEM_OK; kind++) {
            status = tnd_record_merge(&merged, table, other, (enum tnd_record)kind);
        }
        status = status == TANDEM_OK ? tnd_table_judge(&merged) : status;
        if (status != TANDEM_OK) {
            tnd_error_set(error, status, "table", merged.n_curves, TND_TABLE_MAX_CURVES,
                          "merging tables: %s after %d curves", tandem_status_text(status),
                          merged.n_curves);
        }
    }
    clear(status == TANDEM_OK ? table : &merged);
    if (status == TANDEM_OK) {
        *table = merged;
    }
    return status;
}

/* ---- creating and freeing ---- */

void tandem_table_free(tandem_table *table)
{
    if (table != NULL) {
        clear(table);
        tnd_free(table);
    }
}
