/* SPDX-License-Identifier: MIT
 * What a sweep measures besides times, so that they can be trusted: whether results are right,
 * slow-downs of backends beside each other, whether the machine stayed the same; and which stale
 * times to measure first. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/tnd_status.h"
#include "measure/bench_sweep.h"
#include "measure/measure_checks.h"
#include "measure/measure_pairs.h"
#include "tune/policy.h"

static uint64_t deadline_ns(const struct tnd_sweep *sweep, double part)
{
    const struct tnd_clock *clock = sweep->options->measure.clock;
    if (isinf(sweep->budget_s)) {
        return 0;
    }
    return clock->now_ns(clock) + (uint64_t)(1e9 * part * sweep->budget_s) + 1;
}

bool tnd_sweep_has_time_to_check(const struct tnd_sweep *sweep)
{
    return sweep->budget_s >= TND_BENCH_CHECKS_S;
}

/* ---- the machine ---- */

void tnd_sweep_reference_before(struct tnd_sweep *sweep)
{
    if (!tnd_sweep_has_time_to_check(sweep)) {
        return;
    }
    sweep->state.when = sweep->when;
    tnd_reference_time(sweep->options->measure.clock, &sweep->state.before);
    sweep->reference_s = tnd_sweep_elapsed_s(sweep);
}

void tnd_sweep_reference_between(struct tnd_sweep *sweep)
{
    double since_s = tnd_sweep_elapsed_s(sweep) - sweep->reference_s;
    if (tnd_sweep_has_time_to_check(sweep) && since_s >= TND_BENCH_SAVE_S) {
        struct tnd_reference_time time;
        tnd_reference_time(sweep->options->measure.clock, &time);
        tnd_sweep_state_between(&sweep->state, &time);
        sweep->reference_s = tnd_sweep_elapsed_s(sweep);
    }
}

void tnd_sweep_reference_after(struct tnd_sweep *sweep)
{
    if (tnd_sweep_has_time_to_check(sweep)) {
        tnd_reference_time(sweep->options->measure.clock, &sweep->state.after);
        (void)tnd_table_add_sweep(sweep->table, &sweep->state);
    }
}

/* ---- the correctness check, pairs ---- */

static bool has_group(const struct tnd_sweep *sweep, enum tandem_type type)
{
    for (int i = 0; i < sweep->n_groups; i++) {
        if (sweep->groups[i].type == type) {
            return true;
        }
    }
    return false;
}

enum tandem_status tnd_sweep_check_results(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    struct tnd_check_options checks = {
        .measure = options->measure,
        .profile = options->profile,
        .n_threads = options->thread_counts[options->n_thread_counts - 1],
        .when = sweep->when,
        .deadline_ns = deadline_ns(sweep, 2 * TND_BENCH_FEW_SHARE),
    };
    for (int t = 0; t < TANDEM_TYPE_NUMBERS && tnd_sweep_has_time_to_check(sweep); t++) {
        if (has_group(sweep, (enum tandem_type)t)) {
            TND_TRY(tnd_measure_checks(&checks, (enum tandem_type)t, sweep->table, sweep->error));
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_sweep_measure_pairs(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    bool has_time = sweep->budget_s * TND_BENCH_FEW_SHARE >= 4 * TND_MEASURE_BUDGET_S;
    if (options->profile != NULL || options->pool == NULL || sweep->n_groups == 0 || !has_time) {
        return TANDEM_OK;
    }
    struct tnd_pairs_options pairs = {
        .measure = options->measure,
        .type = sweep->groups[0].type,
        .budget_s = isinf(sweep->budget_s) ? 0 : TND_BENCH_FEW_SHARE * sweep->budget_s / 2,
        .deadline_ns = deadline_ns(sweep, TND_BENCH_FEW_SHARE),
        .when = sweep->when,
    };
    return tnd_measure_pairs(&pairs, sweep->table, sweep->error);
}

/* ---- stale cells ---- */

/* Whether the line measures the curve. */
static bool measures(const struct tnd_sweep *sweep, const struct tnd_bench_line *line,
                     const struct tnd_curve_key *key)
{
    const struct tnd_bench_group *group = &sweep->groups[line->group];
    const struct tnd_table_stage *stage = &line->described.stage[key->stage];
    bool has_threads = stage->parallel || stage->own_threads;
    return strcmp(key->op, "mul_mat") == 0 && group->type == key->type &&
           group->shape.n == key->n && group->shape.k == key->k &&
           group->stays_in_cache == key->warm && stage->task == key->task &&
           stage->parallel == key->parallel && stage->own_threads == key->own_threads &&
           (!has_threads || line->threads == key->threads) &&
           strcmp(stage->backend, key->backend) == 0;
}

static bool is_measured(const struct tandem_table *table, const struct tnd_curve_key *key,
                        int64_t m)
{
    const struct tnd_curve *curve = tnd_table_find(table, key);
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        if (curve->samples[i].m == m) {
            return true;
        }
    }
    return false;
}

/* The next stale cell that this sweep can measure and has not measured yet; *at is where the search
 * continues. */
static bool next_stale(const struct tnd_sweep *sweep, struct tnd_stale_position *at, int *out_line,
                       int64_t *out_m)
{
    const struct tandem_table *known = sweep->options->known;
    for (; known != NULL && at->curve < known->n_curves; at->curve++, at->sample = 0) {
        const struct tnd_curve *curve = &known->curves[at->curve];
        for (; at->sample < curve->n_samples; at->sample++) {
            const struct tnd_sample *sample = &curve->samples[at->sample];
            if (!tnd_sample_is_stale(sample) || sample->m > sweep->most_m ||
                is_measured(sweep->table, &curve->key, sample->m)) {
                continue;
            }
            for (int i = 0; i < sweep->n_lines; i++) {
                if (measures(sweep, &sweep->lines[i], &curve->key)) {
                    *out_line = i;
                    *out_m = sample->m;
                    at->sample++;
                    return true;
                }
            }
        }
    }
    return false;
}

bool tnd_sweep_next_stale(struct tnd_sweep *sweep, double left_s, struct tnd_adapt_cell *out)
{
    int line;
    int64_t m;
    while (next_stale(sweep, &sweep->stale_position, &line, &m)) {
        struct tnd_adapt_cell cell = {.line = line, .m = m, .is_new = true, .uncertainty = 1};
        cell.expected_us = tnd_adapt_expect_us(sweep->adapt, line, m, true);
        cell.cost_s = tnd_sweep_cost_s(sweep, line, m, cell.expected_us);
        if (cell.cost_s <= left_s) {
            *out = cell;
            return true;
        }
    }
    return false;
}

/* ---- warm groups ---- */

bool tnd_bench_fits_cache(const struct tnd_bench_options *options, enum tandem_type type)
{
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    size_t largest = caches.l3_bytes > caches.l2_bytes ? caches.l3_bytes : caches.l2_bytes;
    double bytes = 0;
    for (int s = 0; s < options->shapes->count; s++) {
        const struct tnd_shape *shape = &options->shapes->shape[s];
        const struct tnd_shape_use *use = &options->shapes->use[s];
        if (!use->is_typed || use->type == type) {
            bytes += fmax(use->calls, 1) * (double)tandem_type_row_bytes(type, shape->k) *
                     (double)shape->n;
        }
    }
    return bytes <= (double)largest / 2;
}
