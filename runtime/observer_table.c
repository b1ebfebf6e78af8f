/* SPDX-License-Identifier: MIT
 * Applies deviations: a table to plan by, and stale marks for the next bench. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "runtime/observer_drift.h"
#include "tune/estimate.h"
#include "table/problem.h"
#include "table/table_cells.h"
#include "tune/policy.h"

void tnd_drift_print(const struct tnd_drift_case *one, char *out, size_t n)
{
    const struct tnd_curve_key *key = &one->key;
    if (key->stage >= TANDEM_STAGES) {
        bool is_upload = key->stage == TANDEM_STAGES + TND_UPLOAD;
        snprintf(out, n, "%s of %" PRId64 " bytes %s %s", is_upload ? "upload" : "download", one->m,
                 is_upload ? "to" : "from", key->backend);
        return;
    }
    struct tnd_problem problem;
    char what[TND_PROBLEM_MAX];
    memset(&problem, 0, sizeof(problem));
    memcpy(problem.op, key->op,
           sizeof(problem.op) < sizeof(key->op) ? sizeof(problem.op) : sizeof(key->op));
    problem.type = key->type;
    problem.n = key->n;
    problem.k = key->k;
    problem.m = one->m;
    tnd_problem_print(&problem, what, sizeof(what));
    snprintf(out, n, "%s %s %s on %s, threads %d", what,
             tandem_stage_name((enum tandem_stage)key->stage),
             tandem_task_name((enum tandem_task)key->task), key->backend, (int)key->threads);
}

static const struct tnd_sample *sample_at(const struct tnd_curve *curve, int64_t m)
{
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        if (curve->samples[i].m == m) {
            return &curve->samples[i];
        }
    }
    return NULL;
}

/* Estimates the time of any shape, measured or not. */
static bool estimate(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                     struct tnd_estimate *out)
{
    struct tnd_table_stage stage;
    memset(&stage, 0, sizeof(stage));
    memcpy(stage.backend, key->backend, sizeof(stage.backend));
    stage.task = key->task;
    stage.parallel = key->parallel;
    stage.own_threads = key->own_threads;
    return tnd_estimate_stage(table, &stage, (enum tandem_stage)key->stage, key->type, key->n,
                              key->k, m, key->threads, out);
}

/* Adds a curve for a shape or thread count that was not measured: its predictions times the factor
 * found at one M. */
static enum tandem_status make_curve(const struct tnd_drift_case *one,
                                     const struct tandem_table *from, struct tandem_table *to)
{
    double factor = one->measured_us / one->predicted_us;
    struct tnd_estimate predicted;
    for (int64_t m = 1; m <= TND_DRIFT_M; m *= 2) {
        if (m != one->m && estimate(from, &one->key, m, &predicted)) {
            struct tnd_sample sample = {.m = m,
                                        .median_us = predicted.us * factor,
                                        .spread_us = predicted.error_us * factor,
                                        .count = 1,
                                        .generation = 1};
            TND_TRY(tnd_table_add(to, &one->key, &sample));
        }
    }
    return TANDEM_OK;
}

/* Scales a link's times at all lengths, by the case with the most bytes. */
static void correct_move(const struct tnd_drift_cases *cases, const struct tnd_drift_case *one,
                         struct tandem_table *table)
{
    const enum tnd_direction direction = (enum tnd_direction)(one->key.stage - TANDEM_STAGES);
    struct tnd_curve *curve =
        (struct tnd_curve *)tnd_table_transfer(table, one->key.backend, direction);
    for (int i = 0; i < cases->n; i++) {
        const struct tnd_drift_case *other = &cases->list[i];
        if (!other->is_on_trial && other->m > one->m &&
            tnd_curve_key_compare(&other->key, &one->key) == 0) {
            return;
        }
    }
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        curve->samples[i].median_us *= one->measured_us / one->predicted_us;
        curve->samples[i].generation |= 1; /* stale */
    }
}

static enum tandem_status correct(const struct tnd_drift_case *one,
                                  const struct tandem_table *original, struct tandem_table *table)
{
    struct tnd_sample sample = {.m = one->m,
                                .median_us = one->measured_us,
                                .spread_us = one->measured_us * one->noise,
                                .count = 1};
    if (tnd_table_find(table, &one->key) == NULL) {
        TND_TRY(make_curve(one, original, table));
    }
    (void)tnd_table_mark_stale(table, &one->key, one->m);
    const struct tnd_sample *before = sample_at(tnd_table_find(table, &one->key), one->m);
    sample.generation = before != NULL ? before->generation + 2 : 1; /* wins, and is stale */
    return tnd_table_add(table, &one->key, &sample);
}

enum tandem_status tnd_drift_correct(const struct tnd_drift *drift,
                                     const struct tandem_table *table, tandem_table **out_table,
                                     struct tandem_error *error)
{
    const struct tnd_drift_cases *cases = tnd_drift_cases(drift);
    tandem_table *copy = NULL;
    enum tandem_status status = TANDEM_OK;
    TND_TRY(tandem_table_copy(table, &copy, error));
    for (int i = 0; i < cases->n && status == TANDEM_OK && table->version != 1; i++) {
        const struct tnd_drift_case *one = &cases->list[i];
        if (!one->is_on_trial && one->key.stage >= TANDEM_STAGES) {
            correct_move(cases, one, copy);
        } else if (!one->is_on_trial) {
            status = correct(one, table, copy);
        }
    }
    if (status != TANDEM_OK) {
        tandem_table_free(copy);
        return tnd_error_set(error, status, "drift", cases->n, 0, "drift: %s",
                             tandem_status_text(status));
    }
    *out_table = copy;
    return TANDEM_OK;
}

/* Adds a cell's curve with the samples stale on which its estimate rests. */
static enum tandem_status add_stale(tandem_table *stale, const struct tandem_table *table,
                                    const struct tnd_drift_case *one)
{
    const struct tnd_curve *curve = tnd_table_find(table, &one->key);
    bool is_there = tnd_table_find(stale, &one->key) != NULL;
    for (int s = 0; curve != NULL && !is_there && s < curve->n_samples; s++) {
        TND_TRY(tnd_table_add(stale, &curve->key, &curve->samples[s]));
    }
    if (one->key.stage < TANDEM_STAGES) {
        (void)tnd_table_mark_stale(stale, &one->key, one->m);
        return TANDEM_OK;
    }
    const enum tnd_direction direction = (enum tnd_direction)(one->key.stage - TANDEM_STAGES);
    curve = tnd_table_transfer(table, one->key.backend, direction);
    for (int s = 0; curve != NULL && s < curve->n_samples; s++) {
        struct tnd_sample sample = curve->samples[s];
        sample.generation |= 1;
        TND_TRY(tnd_table_add_transfer(stale, one->key.backend, direction, &sample));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_drift_stale_cells(const struct tnd_drift *drift,
                                         const struct tandem_table *table, tandem_table **out_table,
                                         struct tandem_error *error)
{
    const struct tnd_drift_cases *cases = tnd_drift_cases(drift);
    tandem_table *stale = NULL;
    enum tandem_status status = TANDEM_OK;
    TND_TRY(tandem_table_new(&stale, error));
    stale->has_fingerprint = table->has_fingerprint;
    stale->fingerprint = table->fingerprint;
    for (int i = 0; i < cases->n && status == TANDEM_OK; i++) {
        status = add_stale(stale, table, &cases->list[i]);
    }
    if (status != TANDEM_OK) {
        tandem_table_free(stale);
        return tnd_error_set(error, status, "drift", cases->n, 0, "drift: %s",
                             tandem_status_text(status));
    }
    *out_table = stale;
    return TANDEM_OK;
}
