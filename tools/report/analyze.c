/* SPDX-License-Identifier: MIT
 * Analyses a table, shape by shape and thread count by thread count; analyze_print.c prints the
 * results. Only shapes and M that were measured: crossovers lie between measured M, and nothing is
 * claimed beyond them. */
#include "tools/report/links.h"
#include "tools/report/analyze.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/report/analyze_data.h"
#include "tools/report/analyze_energy.h"
#include "base/emit.h"
#include "table/judge.h"
#include "tune/estimate.h"
#include "tune/profiles.h"
#include "table/table_cells.h"

#define MAX_THREAD_COUNTS 64

/* ---- one shape, one thread count ---- */

static void free_analysis(struct tnd_analysis *a)
{
    tnd_free(a->described);
    tnd_free(a->m);
    tnd_free(a->times);
    tnd_free(a->errors);
    tnd_free(a->spreads);
    tnd_free(a->joules);
    tnd_free(a->marks);
    tnd_free(a->stages);
    tnd_free(a->crossovers);
    tnd_free(a->exact);
}

/* Whether the curve belongs to a stage of the profile. */
static bool belongs(const struct tnd_curve_key *key, const struct tnd_table_profile *profile)
{
    const struct tnd_table_stage *stage = &profile->stage[key->stage];
    return !key->warm && strcmp(stage->backend, key->backend) == 0 && stage->task == key->task;
}

static int compare_m(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Collects all M of the profiles' curves in [first, last), ascending without duplicates. */
static enum tandem_status collect_m(struct tnd_analysis *a, int first, int last)
{
    size_t total = 0;
    for (int i = first; i < last; i++) {
        total += (size_t)a->table->curves[i].n_samples;
    }
    a->m = tnd_alloc(total * sizeof(*a->m));
    if (a->m == NULL) {
        return TANDEM_E_MEMORY;
    }
    size_t n = 0;
    for (int i = first; i < last; i++) {
        const struct tnd_curve *curve = &a->table->curves[i];
        bool used = false;
        for (int p = 0; p < a->n_profiles && !used; p++) {
            used = belongs(&curve->key, a->profiles[p]);
        }
        for (int s = 0; s < curve->n_samples && used; s++) {
            a->m[n++] = curve->samples[s].m;
        }
    }
    qsort(a->m, n, sizeof(*a->m), compare_m);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || a->m[i] != a->m[a->n_points - 1]) {
            a->m[a->n_points++] = a->m[i];
        }
    }
    return TANDEM_OK;
}

static unsigned marks_of_sample(const struct tnd_curve *curve, int64_t m)
{
    for (int s = 0; curve != NULL && s < curve->n_samples; s++) {
        const struct tnd_sample *sample = &curve->samples[s];
        if (sample->m == m) {
            return (tnd_sample_is_stale(sample) ? TND_MARK_STALE : 0u) |
                   (tnd_sample_is_contradicted(sample) ? TND_MARK_CONTRADICTED : 0u);
        }
    }
    return 0;
}

static unsigned marks_of_samples(const struct tnd_analysis *a,
                                 const struct tnd_table_profile *profile, int64_t m)
{
    unsigned marks = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        struct tnd_curve_key key;
        tnd_stage_key(stage, s, a->type, a->n, a->k, a->threads, &key);
        marks |= stage->backend[0] != '\0' ? marks_of_sample(tnd_table_find(a->table, &key), m) : 0;
    }
    return marks;
}

static enum tandem_status fill(struct tnd_analysis *a)
{
    size_t cells = (size_t)a->n_profiles * (size_t)a->n_points;
    a->times = tnd_calloc(cells, sizeof(*a->times));
    a->errors = tnd_calloc(cells, sizeof(*a->errors));
    a->spreads = tnd_calloc(cells, sizeof(*a->spreads));
    a->joules = tnd_calloc(cells, sizeof(*a->joules));
    a->marks = tnd_calloc(cells, sizeof(*a->marks));
    a->stages = tnd_calloc(cells, sizeof(*a->stages));
    a->crossovers = tnd_calloc((size_t)a->n_points, sizeof(*a->crossovers));
    a->exact = tnd_calloc((size_t)a->n_points, sizeof(*a->exact));
    if (a->times == NULL || a->errors == NULL || a->spreads == NULL || a->joules == NULL ||
        a->marks == NULL || a->stages == NULL || a->crossovers == NULL || a->exact == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int p = 0; p < a->n_profiles; p++) {
        for (int i = 0; i < a->n_points; i++) {
            int at = p * a->n_points + i;
            struct tnd_estimate estimate = {0};
            (void)tnd_estimate_profile(a->table, a->profiles[p], a->type, a->n, a->k, a->m[i],
                                       a->threads, &estimate, a->stages[at]);
            a->times[at] = estimate.us;
            a->errors[at] = estimate.error_us;
            a->spreads[at] = estimate.spread_us;
            a->marks[at] = (uint8_t)((estimate.noisy ? TND_MARK_NOISY : 0u) |
                                     marks_of_samples(a, a->profiles[p], a->m[i]));
        }
    }
    tnd_analysis_add_joules(a);
    a->n_crossovers = tnd_crossovers(a->m, a->n_points, a->times, a->errors, a->n_profiles, true,
                                     a->crossovers, a->n_points);
    a->n_exact = tnd_crossovers(a->m, a->n_points, a->times, a->errors, a->n_profiles, false,
                                a->exact, a->n_points);
    return TANDEM_OK;
}

static bool is_wrong(const struct tandem_table *table, const char *profile, enum tandem_type type)
{
    return tnd_table_check(table, profile, type, 0, NULL) == TND_VERDICT_WRONG;
}

bool tnd_analyses_add_wrong(const struct tandem_table *table, enum tandem_type type,
                            const char *between,
                            void (*add)(struct tnd_text *out, const char *name),
                            struct tnd_text *out)
{
    bool any = false;
    for (int p = 0; p < table->n_profiles; p++) {
        if (is_wrong(table, table->profiles[p].name, type)) {
            tnd_text_add(out, any ? between : "");
            add(out, table->profiles[p].name);
            any = true;
        }
    }
    return any;
}

static bool is_measured(const struct tnd_analysis *a, const struct tnd_table_profile *profile)
{
    struct tnd_estimate estimate;
    return tnd_estimate_profile(a->table, profile, a->type, a->n, a->k, 1, a->threads, &estimate,
                                NULL) &&
           estimate.measured_shape;
}

/* A table describes a profile by its stages for one weight type; for other types, such as f32,
 * which needs no INIT, the stages come from this build. */
static enum tandem_status choose_profiles(struct tnd_analysis *a)
{
    a->described = tnd_calloc((size_t)a->table->n_profiles, sizeof(*a->described));
    if (a->described == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int p = 0; p < a->table->n_profiles; p++) {
        const struct tnd_table_profile *profile = &a->table->profiles[p];
        if (is_wrong(a->table, profile->name, a->type)) {
            continue;
        }
        if (is_measured(a, profile)) {
            a->profiles[a->n_profiles++] = profile;
        } else if (tnd_profile_describe_name(NULL, profile->name, a->type, &a->described[p]) &&
                   is_measured(a, &a->described[p])) {
            a->profiles[a->n_profiles++] = &a->described[p];
        }
    }
    return TANDEM_OK;
}

/* `a` has table, type, n, k and threads set. */
static enum tandem_status analyze(struct tnd_analysis *a, int first, int last)
{
    TND_TRY(choose_profiles(a));
    for (int i = first; i < last; i++) {
        a->measured_threads = a->measured_threads || a->table->curves[i].key.threads == a->threads;
    }
    if (a->n_profiles == 0) {
        return TANDEM_OK;
    }
    TND_TRY(collect_m(a, first, last));
    return fill(a);
}

/* ---- the whole table ---- */

static int measured_threads(const struct tandem_table *table, int out[MAX_THREAD_COUNTS])
{
    int n = 0;
    for (int i = 0; i < table->n_curves; i++) {
        int threads = table->curves[i].key.threads;
        int at = 0;
        while (at < n && out[at] < threads) {
            at++;
        }
        if (n < MAX_THREAD_COUNTS && (at == n || out[at] != threads)) {
            memmove(&out[at + 1], &out[at], (size_t)(n - at) * sizeof(out[0]));
            out[at] = threads;
            n++;
        }
    }
    return n;
}

struct report {
    const struct tandem_table *table;
    const struct tnd_analyze_options *options;
    const struct tnd_analyze_printer *printer;
    struct tnd_analyses *keep; /* keeps the analyses instead of printing them; may be NULL */
    const int *threads;
    int n_threads;
    int n_types;
    int n_printed;
    struct tnd_text text;
    struct tnd_text crossovers;
};

static enum tandem_status keep(struct tnd_analyses *analyses, struct tnd_analysis *a)
{
    if (analyses->n == analyses->capacity) {
        int capacity = analyses->capacity > 0 ? 2 * analyses->capacity : 16;
        struct tnd_analysis *list = tnd_realloc(analyses->list, (size_t)analyses->n * sizeof(*list),
                                                (size_t)capacity * sizeof(*list));
        if (list == NULL) {
            return TANDEM_E_MEMORY;
        }
        analyses->list = list;
        analyses->capacity = capacity;
    }
    analyses->list[analyses->n++] = *a;
    *a = (struct tnd_analysis){0};
    return TANDEM_OK;
}

/* Curves [first, last) have one shape. */
static enum tandem_status report_shape(struct report *report, int first, int last)
{
    const struct tnd_curve_key *key = &report->table->curves[first].key;
    for (int t = 0; t < report->n_threads; t++) {
        struct tnd_analysis a = {.table = report->table,
                                 .type = key->type,
                                 .n = key->n,
                                 .k = key->k,
                                 .threads = report->threads[t]};
        enum tandem_status status = analyze(&a, first, last);
        if (status == TANDEM_OK && a.n_profiles > 0 && report->keep != NULL) {
            report->n_printed++;
            status = keep(report->keep, &a);
        } else if (status == TANDEM_OK && a.n_profiles > 0) {
            report->printer->add(&report->text, &a, report->n_printed++, report->n_types);
            if (report->printer->crossovers != NULL) {
                report->printer->crossovers(&report->crossovers, &a, report->n_types);
            }
            if (report->printer->shape != NULL && t + 1 == report->n_threads) {
                report->printer->shape(&report->text, &a);
            }
        }
        free_analysis(&a);
        TND_TRY(status);
    }
    return TANDEM_OK;
}

static int shape_end(const struct tandem_table *table, int first)
{
    int last = first + 1;
    while (last < table->n_curves &&
           tnd_curve_key_compare_shape(&table->curves[first].key, &table->curves[last].key) == 0) {
        last++;
    }
    return last;
}

static bool is_wanted(const struct report *report, const struct tnd_curve_key *key)
{
    enum tandem_type type = report->options->type;
    return strcmp(key->op, "mul_mat") == 0 && (type == TANDEM_TYPE_NUMBERS || key->type == type);
}

/* Whether the order of shapes from the text file contains this shape. */
static bool in_file_order(const struct tandem_table *table, const struct tnd_curve_key *key)
{
    for (int i = 0; i < table->n_shapes; i++) {
        if (table->shapes[i][0] == key->n && table->shapes[i][1] == key->k) {
            return true;
        }
    }
    return false;
}

/* Shapes in the order of the text file, then the others in the table's order. */
static enum tandem_status report_shapes(struct report *report)
{
    const struct tandem_table *table = report->table;
    for (int turn = 0; turn <= table->n_shapes; turn++) {
        for (int first = 0; first < table->n_curves; first = shape_end(table, first)) {
            const struct tnd_curve_key *key = &table->curves[first].key;
            bool its_turn = turn < table->n_shapes ? table->shapes[turn][0] == key->n &&
                                                         table->shapes[turn][1] == key->k
                                                   : !in_file_order(table, key);
            if (its_turn && is_wanted(report, key)) {
                TND_TRY(report_shape(report, first, shape_end(table, first)));
            }
        }
    }
    return TANDEM_OK;
}

static enum tandem_type count_types(struct report *report)
{
    enum tandem_type first = TANDEM_TYPE_NUMBERS;
    enum tandem_type before = TANDEM_TYPE_NUMBERS;
    for (int i = 0; i < report->table->n_curves; i++) {
        const struct tnd_curve_key *key = &report->table->curves[i].key;
        if (is_wanted(report, key) && key->type != before) {
            first = report->n_types == 0 ? key->type : first;
            before = key->type;
            report->n_types++;
        }
    }
    return first;
}

static void choose_threads(struct report *report, int measured[MAX_THREAD_COUNTS])
{
    report->threads = report->options->threads;
    report->n_threads = report->options->n_threads;
    if (report->threads == NULL) {
        report->threads = measured;
        report->n_threads = measured_threads(report->table, measured);
    }
}

/* `status` with its message; an error too when the report is empty. */
static enum tandem_status outcome(const struct report *report, enum tandem_status status,
                                  struct tandem_error *error)
{
    const char *name = report->options->name != NULL ? report->options->name : "table";
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, name, 0, 0, "%.120s: out of memory", name);
    }
    if (report->n_printed == 0) {
        return tnd_error_set(error, TANDEM_E_TABLE, name, report->table->n_curves, 1,
                             "%.120s: no profile has times for all its stages%s", name,
                             report->table->n_curves == 0 ? "; the table is empty" : "");
    }
    return TANDEM_OK;
}

enum tandem_status tnd_analyze(const struct tandem_table *table,
                               const struct tnd_analyze_options *options, tandem_write_fn write,
                               void *user, struct tandem_error *error)
{
    int measured[MAX_THREAD_COUNTS];
    struct report report = {.table = table, .options = options};
    report.printer = options->format == TND_ANALYZE_JSON  ? &tnd_analyze_json
                     : options->format == TND_ANALYZE_CSV ? &tnd_analyze_csv
                                                          : &tnd_analyze_text;
    choose_threads(&report, measured);
    enum tandem_type first = count_types(&report);
    report.printer->begin(&report.text, table, options, report.n_types, first);
    enum tandem_status status = report_shapes(&report);
    report.printer->end(&report.text, &report.crossovers);
    if (options->format == TND_ANALYZE_TEXT) {
        tnd_links_print(&report.text, table);
        for (int i = 0; i < table->n_kernel_times; i++) {
            const struct tnd_kernel_time *one = &table->kernel_times[i];
            if (tnd_is_launch_time(one)) {
                tnd_text_printf(&report.text, "a launch on %s, %s: %.3g us\n", one->backend,
                                one->numbers, one->median_us);
            }
        }
        report.n_printed += table->n_links;
    }
    status = status == TANDEM_OK && report.crossovers.failed ? TANDEM_E_MEMORY : status;
    status = outcome(&report, status, error);
    if (status == TANDEM_OK) {
        const char *name = options->name != NULL ? options->name : "table";
        status = tnd_emit_end(&report.text, write, user, name, error);
    }
    tnd_text_fini(&report.text);
    tnd_text_fini(&report.crossovers);
    return status;
}

enum tandem_status tnd_analyses_make(const struct tandem_table *table,
                                     const struct tnd_analyze_options *options,
                                     struct tnd_analyses *out, struct tandem_error *error)
{
    int measured[MAX_THREAD_COUNTS];
    struct tnd_analyses analyses = {0};
    struct report report = {.table = table, .options = options, .keep = &analyses};
    choose_threads(&report, measured);
    enum tandem_status status = outcome(&report, report_shapes(&report), error);
    if (status != TANDEM_OK) {
        tnd_analyses_free(&analyses);
        return status;
    }
    *out = analyses;
    return TANDEM_OK;
}

void tnd_analyses_free(struct tnd_analyses *analyses)
{
    for (int i = 0; i < analyses->n; i++) {
        free_analysis(&analyses->list[i]);
    }
    tnd_free(analyses->list);
    *analyses = (struct tnd_analyses){0};
}
