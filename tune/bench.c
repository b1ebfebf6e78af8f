/* SPDX-License-Identifier: MIT
 * The sweep of mulmat-tune bench. */
#include "tune/bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/tnd_status.h"
#include "tune/measure_moves.h"
#include "tune/measure_ops.h"
#include "tune/planner.h"
#include "tune/profiles.h"

/* Each cell is measured in two passes with the other cells between them, and the faster of its two
 * medians counts: what disturbs a machine (another program, the host of a virtual machine) lasts
 * for seconds, spoils neighbouring cells together, and only ever slows down. */
enum { PASSES = 2 };

#define OPS_SHARE 0.03 /* of a budget, for the operations beside products */

/* State of a sweep. Work is the predicted cost of a cell in multiply-adds: it shares out the
 * budget. Every cell costs some time however small it is (warm-up, the default budget of a cell),
 * so the estimate of the time left adds CELL_WORK to each. */
enum { CELL_WORK = 2000000000, MOST_TRANSFERRED = 64 << 20 };

struct sweep {
    const struct tnd_bench_options *options;
    struct tandem_table *table;
    struct tandem_error *error;
    int64_t when; /* seconds since 1970, the same for all cells of a sweep */
    uint64_t begin_ns;
    int done, count;
    double work_done, work_count;
    double round_trip_us[TND_MAX_SLOTS]; /* of devices with memory of their own */
};

static bool is_wanted(const struct tnd_bench_options *options, int profile, enum tandem_type type,
                      int threads, struct tandem_plan_node *out)
{
    const char *name = tnd_profile_at(profile)->name;
    if (options->profile != NULL && strcmp(options->profile, name) != 0) {
        return false;
    }
    return tnd_plan_node_for_profile(options->measure.registry, profile, type, threads, out);
}

/* Reading the weights costs about as much as ten tokens, dequantising them about thirty. */
static double cell_work(const struct tnd_shape *shape, int64_t m,
                        const struct tandem_plan_node *choice)
{
    double tokens = (double)m + 10;
    if (choice->stage[TANDEM_STAGE_INIT].task == TANDEM_TASK_DEQUANTIZE_W) {
        tokens += 30;
    }
    return tokens * (double)shape->n * (double)shape->k;
}

static const struct tnd_sample *find_sample(const struct tnd_curve *curve, int64_t m)
{
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        if (curve->samples[i].m == m) {
            return &curve->samples[i];
        }
    }
    return NULL;
}

/* A device is waited for after each stage that is measured; where it matters, in a graph, only
 * when something is fetched, and the time of the fetching holds it. */
static double without_waiting(const struct sweep *sweep, int slot, double us)
{
    double rest = us - sweep->round_trip_us[slot];
    return rest > us / 4 ? rest : us / 4;
}

static void add_stages(struct sweep *sweep, enum tandem_type type, const struct tnd_shape *shape,
                       int64_t m, int threads, const struct tnd_table_profile *profile,
                       const struct tandem_plan_node *choice,
                       const struct tnd_measure_result *result)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0' || result->stage[s].count == 0) {
            continue;
        }
        struct tnd_curve_key key;
        memset(&key, 0, sizeof(key));
        strcpy(key.op, "mul_mat");
        key.type = type;
        key.n = shape->n;
        key.k = shape->k;
        memcpy(key.backend, stage->backend, sizeof(key.backend));
        key.stage = (uint8_t)s;
        key.task = stage->task;
        key.parallel = stage->parallel;
        key.own_threads = stage->own_threads;
        key.threads = stage->parallel || stage->own_threads ? threads : 1;
        double us = without_waiting(sweep, choice->stage[s].backend, result->stage[s].median_us);
        struct tnd_sample sample = {m, us, result->stage[s].spread_us, result->stage[s].count,
                                    sweep->when, 0};
        /* A stage that several profiles share: the faster of its medians counts. */
        const struct tnd_sample *before = find_sample(tnd_table_find(sweep->table, &key), m);
        if (before != NULL) {
            uint32_t count = sample.count + before->count;
            sample = before->median_us < sample.median_us ? *before : sample;
            sample.count = count;
        }
        (void)tnd_table_add(sweep->table, &key,
                            &sample); /* refused: not finite; then it stays unknown */
    }
}

static enum tandem_status report(struct sweep *sweep, enum tandem_type type,
                                 const struct tnd_shape *shape, int64_t m, int threads,
                                 const char *profile, const struct tnd_measure_result *result)
{
    const struct tnd_clock *clock = sweep->options->measure.clock;
    if (sweep->options->progress == NULL) {
        return TANDEM_OK;
    }
    struct tnd_bench_progress progress;
    memset(&progress, 0, sizeof(progress));
    strcpy(progress.problem.op, "mul_mat");
    progress.problem.type = type;
    progress.problem.n = shape->n;
    progress.problem.k = shape->k;
    progress.problem.m = m;
    progress.problem.threads = threads;
    snprintf(progress.problem.profile, sizeof(progress.problem.profile), "%s", profile);
    progress.total = result->total;
    progress.done = sweep->done;
    progress.count = sweep->count;
    progress.elapsed_s = (double)(clock->now_ns(clock) - sweep->begin_ns) / 1e9;
    double cost_done = sweep->work_done + (double)sweep->done * CELL_WORK;
    double cost_all = sweep->work_count + (double)sweep->count * CELL_WORK;
    progress.left_s = progress.elapsed_s * (cost_all - cost_done) / cost_done;
    if (sweep->options->budget_s > progress.elapsed_s) {
        progress.left_s = sweep->options->budget_s - progress.elapsed_s;
    }
    if (sweep->done == sweep->count) {
        progress.left_s = 0;
    }
    if (sweep->options->progress(sweep->options->user, &progress)) {
        return tnd_error_set(sweep->error, TANDEM_E_CANCELLED, "bench", sweep->done, sweep->count,
                             "bench: stopped after %d of %d cells", sweep->done, sweep->count);
    }
    return TANDEM_OK;
}

/* A cell's share of what is left of the budget, by its share of the work left. */
static struct tnd_measure_effort effort_of(const struct sweep *sweep, double work)
{
    struct tnd_measure_effort effort;
    memset(&effort, 0, sizeof(effort));
    if (sweep->options->budget_s > 0) {
        const struct tnd_clock *clock = sweep->options->measure.clock;
        double elapsed_s = (double)(clock->now_ns(clock) - sweep->begin_ns) / 1e9;
        double left_s = sweep->options->budget_s - elapsed_s;
        double share = work / (sweep->work_count - sweep->work_done);
        effort.budget_s = left_s > 0 ? left_s * share : 1e-6;
        if (effort.budget_s < 0.01 && left_s > 0.01) {
            effort.budget_s = 0.01;
        }
    }
    return effort;
}

static enum tandem_status measure_cell(struct sweep *sweep, struct tnd_measure *measure,
                                       enum tandem_type type, const struct tnd_shape *shape,
                                       int64_t m, int threads, int profile)
{
    struct tandem_plan_node choice;
    struct tnd_table_profile described;
    if (!is_wanted(sweep->options, profile, type, threads, &choice) ||
        !tnd_profile_describe(profile, type, &described)) {
        return TANDEM_OK;
    }
    double work = cell_work(shape, m, &choice);
    struct tnd_measure_effort effort = effort_of(sweep, work);
    struct tnd_measure_result result;
    struct tandem_error why = {0};
    enum tandem_status status = tnd_measure_run(measure, m, &choice, &effort, &result, &why);
    sweep->done++;
    sweep->work_done += work;
    if (status == TANDEM_E_UNSUPPORTED_BACKEND || status == TANDEM_E_DEVICE_MEMORY) {
        return TANDEM_OK; /* not this type, or not this size: other cells are worth having */
    }
    if (status != TANDEM_OK) {
        if (sweep->error != NULL) {
            *sweep->error = why;
        }
        return status;
    }
    TND_TRY(tnd_table_add_profile(sweep->table, &described));
    add_stages(sweep, type, shape, m, threads, &described, &choice, &result);
    return report(sweep, type, shape, m, threads, described.name, &result);
}

static enum tandem_status measure_shape(struct sweep *sweep, enum tandem_type type,
                                        const struct tnd_shape *shape)
{
    const struct tnd_bench_options *options = sweep->options;
    struct tnd_measure *measure;
    TND_TRY(tnd_measure_open(&options->measure, type, shape->n, shape->k,
                             options->m[options->n_m - 1], &measure, sweep->error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < options->n_m && status == TANDEM_OK; i++) {
        for (int t = 0; t < options->n_thread_counts && status == TANDEM_OK; t++) {
            for (int p = 0; p < tnd_profile_count() && status == TANDEM_OK; p++) {
                status = measure_cell(sweep, measure, type, shape, options->m[i],
                                      options->thread_counts[t], p);
            }
        }
    }
    tnd_measure_close(measure);
    return status;
}

static bool fits(enum tandem_type type, const struct tnd_shape *shape)
{
    return tandem_type_row_bytes(type, shape->k) != 0;
}

static void count_work(struct sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    for (int y = 0; y < options->n_types; y++) {
        for (int s = 0; s < options->shapes->count; s++) {
            const struct tnd_shape *shape = &options->shapes->shape[s];
            struct tandem_plan_node choice;
            for (int p = 0; fits(options->types[y], shape) && p < tnd_profile_count(); p++) {
                if (!is_wanted(options, p, options->types[y], 1, &choice)) {
                    continue;
                }
                for (int i = 0; i < options->n_m; i++) {
                    sweep->count += PASSES * options->n_thread_counts;
                    sweep->work_count += PASSES * options->n_thread_counts *
                                         cell_work(shape, options->m[i], &choice);
                }
            }
        }
    }
}

static enum tandem_status run_pass(struct sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    for (int y = 0; y < options->n_types; y++) {
        for (int s = 0; s < options->shapes->count; s++) {
            if (fits(options->types[y], &options->shapes->shape[s])) {
                TND_TRY(measure_shape(sweep, options->types[y], &options->shapes->shape[s]));
            }
        }
    }
    return TANDEM_OK;
}

/* Adds the faster of two samples of each cell to `table`, with the measurements of both behind it.
 * */
static enum tandem_status add_faster(struct tandem_table *table, const struct tandem_table *pass,
                                     const struct tandem_table *other)
{
    for (int c = 0; c < pass->n_curves; c++) {
        const struct tnd_curve *curve = &pass->curves[c];
        const struct tnd_curve *twin = tnd_table_find(other, &curve->key);
        for (int i = 0; i < curve->n_samples; i++) {
            struct tnd_sample sample = curve->samples[i];
            const struct tnd_sample *second = find_sample(twin, sample.m);
            if (second != NULL) {
                uint32_t count = sample.count + second->count;
                sample = second->median_us < sample.median_us ? *second : sample;
                sample.count = count;
            }
            TND_TRY(tnd_table_add(table, &curve->key, &sample));
        }
    }
    return TANDEM_OK;
}

/* What was measured before a pass ended early is kept too. */
static enum tandem_status run_passes(struct sweep *sweep, struct tandem_table *table,
                                     struct tandem_table *const passes[PASSES])
{
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < PASSES && status == TANDEM_OK; i++) {
        sweep->table = passes[i];
        status = run_pass(sweep);
    }
    for (int i = 0; i < passes[0]->n_profiles; i++) {
        TND_TRY(tnd_table_add_profile(table, &passes[0]->profiles[i]));
    }
    TND_TRY(add_faster(table, passes[0], passes[1]));
    TND_TRY(add_faster(table, passes[1], passes[0]));
    return status;
}

static bool uses_slot(const struct tnd_bench_options *options, int slot)
{
    struct tandem_plan_node choice;
    for (int p = 0; p < tnd_profile_count(); p++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            if (is_wanted(options, p, TANDEM_TYPE_Q4_0, 1, &choice) &&
                choice.stage[s].backend == slot) {
                return true;
            }
        }
    }
    return false;
}

/* What lies between stages. */
static enum tandem_status measure_moves(struct sweep *sweep, struct tandem_table *table)
{
    const struct tnd_bench_options *options = sweep->options;
    const struct tnd_measure_options *measure = &options->measure;
    for (int slot = 1; slot < tnd_registry_count(measure->registry); slot++) {
        if (uses_slot(options, slot)) {
            TND_TRY(tnd_measure_transfers(measure->registry, slot, measure->clock, MOST_TRANSFERRED,
                                          sweep->when, table, sweep->error));
            TND_TRY(tnd_measure_round_trip(measure->registry, slot, measure->clock,
                                           &sweep->round_trip_us[slot], sweep->error));
        }
    }
    for (int t = 0; t < options->n_thread_counts && options->pool != NULL; t++) {
        TND_TRY(tnd_measure_handoff(options->pool, measure->clock, options->thread_counts[t],
                                    sweep->when, table, sweep->error));
    }
    if (options->pool == NULL || options->profile != NULL) {
        return TANDEM_OK;
    }
    return tnd_measure_ops(measure, options->thread_counts, options->n_thread_counts,
                           options->budget_s * OPS_SHARE, sweep->when, table, sweep->error);
}

enum tandem_status tnd_bench_run(const struct tnd_bench_options *options,
                                 struct tandem_table *table, struct tandem_error *error)
{
    struct tandem_table *passes[PASSES] = {NULL, NULL};
    struct sweep sweep;
    memset(&sweep, 0, sizeof(sweep));
    sweep.options = options;
    sweep.error = error;
    sweep.when = (int64_t)time(NULL);
    sweep.begin_ns = options->measure.clock->now_ns(options->measure.clock);
    count_work(&sweep);
    enum tandem_status status = tandem_table_new(&passes[0], error);
    if (status == TANDEM_OK) {
        status = tandem_table_new(&passes[1], error);
    }
    if (status == TANDEM_OK) {
        status = measure_moves(&sweep, table);
    }
    if (status == TANDEM_OK) {
        status = run_passes(&sweep, table, passes);
    }
    tandem_table_free(passes[0]);
    tandem_table_free(passes[1]);
    return status;
}
