/* SPDX-License-Identifier: MIT
 * Times of products inside host programs, as records of the table: looks them up and merges new
 * ones. Knows nothing about these programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"
#include "runtime/tune_graph.h"
#include "table/judge.h"
#include "table/records.h"
#include "table/table_layers.h"

/* Weight of earlier measurements next to new ones, at most. Unit: times. Why: more add nothing to
 * the error of one moment (TND_MOMENT_ERROR), and a change of the machine should show within a few
 * measurements. Test: hosted_times_add_up. */
enum { MOST_KEPT = 64 };

/* Least standard error of times measured on a busy machine. Unit: share. Why: disturbances last for
 * many times in a row, so the spread does not show them: beside six busy programs 40 +- 1 and 56 +-
 * 1 ms were measured of two products that take 0.5 ms on a quiet machine. Test:
 * undisturbed_times_replace_disturbed_ones. */
static const double DISTURBED_ERROR = 0.15;

static const struct tandem_hosted_time initial = TANDEM_HOSTED_TIME_INIT;

static enum tandem_status read_time(const struct tandem_hosted_time *in,
                                    struct tandem_hosted_time *out, struct tnd_hosted_time *key,
                                    struct tandem_error *error)
{
    *out = initial;
    TND_TRY(tnd_options_read(in, "tandem_hosted_time", out, sizeof(*out), error));
    memset(key, 0, sizeof(*key));
    if (out->program == NULL || strlen(out->program) >= sizeof(key->program) ||
        out->kernels == NULL || strlen(out->kernels) >= sizeof(key->kernels) || out->experts < 0 ||
        out->experts > INT32_MAX || out->used < 1 || out->used > INT32_MAX) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tandem_hosted_time", 0, 0,
                             "hosted product: program, kernels, experts or used are none");
    }
    (void)snprintf(key->program, sizeof(key->program), "%s", out->program);
    (void)snprintf(key->kernels, sizeof(key->kernels), "%s", out->kernels);
    key->type = out->type;
    key->n = out->n;
    key->k = out->k;
    key->m = out->m;
    key->experts = (uint32_t)out->experts;
    key->used = (uint32_t)out->used;
    key->threads = out->threads;
    return TANDEM_OK;
}

static bool find(tandem_runtime *runtime, const struct tnd_hosted_time *key,
                 struct tnd_hosted_time *out)
{
    pthread_mutex_lock(&runtime->lock);
    const struct tnd_hosted_time *found =
        runtime->table != NULL ? tnd_record_find(runtime->table, TND_RECORD_HOSTED, key) : NULL;
    if (found != NULL) {
        *out = *found;
    }
    pthread_mutex_unlock(&runtime->lock);
    return found != NULL;
}

enum tandem_status tandem_runtime_find_hosted(tandem_runtime *runtime,
                                              struct tandem_hosted_time *io_time,
                                              struct tandem_error *error)
{
    struct tandem_hosted_time result;
    struct tnd_hosted_time key;
    struct tnd_hosted_time found;
    TND_TRY(tnd_runtime_check(runtime, "find_hosted", error));
    TND_REQUIRE(io_time, "find_hosted", error);
    TND_TRY(read_time(io_time, &result, &key, error));
    if (!find(runtime, &key, &found)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, "hosted", 0, 0,
                             "hosted product: nobody measured it in %.80s", key.program);
    }
    result.disturbed = found.disturbed != 0;
    result.time_us = found.median_us;
    result.error_us =
        tnd_time_error(found.median_us, found.spread_us, found.count, TND_SINGLE_SHOT_ERROR);
    if (result.disturbed) {
        result.error_us = hypot(result.error_us, DISTURBED_ERROR * found.median_us);
    }
    result.count = found.count < INT32_MAX ? (int)found.count : INT32_MAX;
    result.age_s = fmax((double)((int64_t)time(NULL) - found.when), 0);
    return tnd_results_write(&result, sizeof(result), "tandem_hosted_time", io_time, error);
}

/* Joins two summaries of measurements: the weighted mean, and the spread within and between both.
 */
static void join(struct tnd_hosted_time *io, const struct tnd_hosted_time *before)
{
    const double a = fmin(before->count, MOST_KEPT);
    const double b = io->count;
    const double us = (a * before->median_us + b * io->median_us) / (a + b);
    const double away_a = hypot(before->spread_us, (before->median_us - us) / TND_MAD_TO_SIGMA);
    const double away_b = hypot(io->spread_us, (io->median_us - us) / TND_MAD_TO_SIGMA);
    io->spread_us = sqrt((a * away_a * away_a + b * away_b * away_b) / (a + b));
    io->median_us = us;
    io->count = (uint32_t)(a + b);
}

static enum tandem_status add(tandem_runtime *runtime, const struct tandem_hosted_time *time_in,
                              bool fresh, tandem_table *table, struct tandem_error *error)
{
    struct tandem_hosted_time one;
    struct tnd_hosted_time record;
    struct tnd_hosted_time before;
    TND_TRY(read_time(time_in, &one, &record, error));
    if (one.us == NULL || one.n_us < 1) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "us", one.n_us, 1,
                             "hosted product: %d times, expected one or more", one.n_us);
    }
    record.median_us = tnd_judge_median(one.us, one.n_us, &record.spread_us, &record.count);
    record.disturbed = one.disturbed;
    record.when = (int64_t)time(NULL);
    bool is_known = find(runtime, &record, &before);
    if (is_known && record.when <= before.when && before.when < INT64_MAX) {
        record.when = before.when + 1; /* the newer one is kept */
    }
    is_known = is_known && !fresh;
    if (is_known && record.disturbed && !before.disturbed) {
        return TANDEM_OK;
    }
    if (is_known && !before.disturbed) {
        join(&record, &before);
    }
    if (tnd_record_add(table, TND_RECORD_HOSTED, &record) != TANDEM_OK) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "tandem_hosted_time", record.m, 0,
                             "hosted product: %s %lld x %lld, %lld tokens, %d threads cannot be "
                             "kept",
                             record.kernels, (long long)record.n, (long long)record.k,
                             (long long)record.m, record.threads);
    }
    return TANDEM_OK;
}

static bool is_kept(void)
{
    char path[TND_TABLE_PATH_MAX];
    return tandem_table_default_path(path, sizeof(path), NULL) == TANDEM_OK;
}

enum tandem_status tandem_runtime_add_hosted(tandem_runtime *runtime,
                                             const struct tandem_hosted_time *times, int n,
                                             bool fresh, struct tandem_error *error)
{
    tandem_table *table = NULL;
    TND_TRY(tnd_runtime_check(runtime, "add_hosted", error));
    TND_REQUIRE(times, "add_hosted", error);
    TND_TRY(tandem_table_new(&table, error));
    tnd_fingerprint_read_all(runtime->registry, &table->fingerprint);
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n && status == TANDEM_OK; i++) {
        status = add(runtime, &times[i], fresh, table, error);
    }
    if (status == TANDEM_OK && table->n_hosted > 0) {
        status = tnd_tune_adopt(runtime, table, is_kept(), error);
    }
    tandem_table_free(table);
    return status;
}
