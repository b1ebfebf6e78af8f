/* SPDX-License-Identifier: MIT
 * Measuring candidates for tuned numbers of kernels. tune/kernel_numbers.h chooses among them. */
#include "measure/measure_numbers.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "table/judge.h"
#include "tune/kernel_numbers.h"
#include "tune/planner.h"
#include "tune/policy.h"
#include "tune/profiles.h"

enum { VALUES_MOST = 9, SIDE = 4096 /* of the square weights */ };

struct numbers {
    const struct tnd_measure_options *measure;
    const struct tnd_tuner *tuner;
    tandem_backend *backend;
    int n_threads;
    const struct tnd_tuner_options *options;
    const struct tnd_number_sweep *sweep;
    char prior[TND_NUMBERS_MAX];
    char candidates[VALUES_MOST][TND_NUMBERS_MAX]; /* `prior` first */
    int n_candidates;
    int index, count;
};

static bool is_wanted(const struct numbers *numbers, enum tandem_type type)
{
    return numbers->options->type == TANDEM_TYPE_F32 || numbers->options->type == type;
}

static int count_m(const struct tnd_number_sweep *sweep)
{
    int n = 0;
    while (n < (int)(sizeof(sweep->m) / sizeof(sweep->m[0])) && sweep->m[n] > 0) {
        n++;
    }
    return n;
}

static void list_candidates(struct numbers *numbers)
{
    const struct tnd_number_sweep *sweep = numbers->sweep;
    const int most = numbers->options->most_candidates;
    (void)snprintf(numbers->candidates[0], TND_NUMBERS_MAX, "%s", numbers->prior);
    numbers->n_candidates = 1;
    for (int i = 0; i < VALUES_MOST && sweep->values[i] >= 0; i++) {
        char *text = numbers->candidates[numbers->n_candidates];
        if (numbers->n_candidates == VALUES_MOST || (most > 0 && numbers->n_candidates > most)) {
            break;
        }
        (void)snprintf(text, TND_NUMBERS_MAX, "%s=%d", sweep->name, sweep->values[i]);
        numbers->n_candidates += strcmp(text, numbers->prior) != 0;
    }
}

/* Times all candidates on one product, in turns. */
static enum tandem_status measure_product(struct numbers *numbers, struct tnd_measure *measure,
                                          const struct tandem_plan_node *choice,
                                          enum tandem_type type, int m, struct tandem_error *error)
{
    static const struct tnd_measure_effort effort = {
        .budget_s = TND_MEASURE_BUDGET_S / TND_MEASURE_REPEATS, .min_repeats = 1};
    const struct tnd_tuner_options *options = numbers->options;
    float us[VALUES_MOST][TND_MEASURE_REPEATS];
    for (int turn = 0; turn < TND_MEASURE_REPEATS; turn++) {
        for (int j = 0; j < numbers->n_candidates; j++) {
            const int i = (j + turn) % numbers->n_candidates; /* rotates, so that each candidate
                                                               * follows a different one each
                                                               * time */
            struct tnd_measure_result result;
            TND_TRY(numbers->tuner->use(numbers->backend, numbers->candidates[i], error));
            TND_TRY(tnd_measure_run(measure, m, choice, &effort, &result, error));
            us[i][turn] = (float)result.total.median_us;
        }
    }
    for (int i = 0; i < numbers->n_candidates; i++) {
        const struct tnd_tuner_time time = {.family = numbers->sweep->name,
                                            .numbers = numbers->candidates[i],
                                            .type = type,
                                            .n = SIDE,
                                            .k = SIDE,
                                            .m = m,
                                            .threads = numbers->n_threads,
                                            .us = us[i],
                                            .n_us = TND_MEASURE_REPEATS,
                                            .error = -1,
                                            .index = ++numbers->index,
                                            .count = numbers->count};
        if (!options->timed(options->user, &time)) {
            return tnd_error_set(error, TANDEM_E_CANCELLED, time.family, numbers->index,
                                 numbers->count, "measuring %s was stopped", time.family);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status measure_type(struct numbers *numbers, enum tandem_type type,
                                       struct tandem_error *error)
{
    const struct tnd_registry *registry = numbers->measure->registry;
    const int profile = tnd_profile_find(registry, numbers->sweep->profile);
    const int n_m = count_m(numbers->sweep);
    struct tnd_measure *measure = NULL;
    struct tandem_plan_node choice;
    if (profile < 0 ||
        !tnd_plan_node_for_profile(registry, profile, type, numbers->n_threads, &choice)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_measure_open(numbers->measure, type, SIDE, SIDE, numbers->sweep->m[n_m - 1],
                             &measure, error));
    enum tandem_status status = tnd_measure_prepare(measure, &choice, error);
    for (int i = 0; i < n_m && status == TANDEM_OK; i++) {
        status = measure_product(numbers, measure, &choice, type, numbers->sweep->m[i], error);
    }
    tnd_measure_close(measure);
    return status;
}

static enum tandem_status measure_sweep(struct numbers *numbers, struct tandem_error *error)
{
    const struct tnd_tuner_options *options = numbers->options;
    const struct tnd_number_sweep *sweep = numbers->sweep;
    char chosen[TND_NUMBERS_MAX];
    const int before = numbers->index;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < sweep->n_types && status == TANDEM_OK; i++) {
        if (is_wanted(numbers, sweep->types[i])) {
            status = measure_type(numbers, sweep->types[i], error);
        }
    }
    if (numbers->index == before && status == TANDEM_OK) {
        return TANDEM_OK; /* the product is not wanted, or cannot be computed */
    }
    if (status == TANDEM_OK) {
        options->choose(options->user, sweep->name, numbers->prior, chosen);
    }
    const char *serves = status == TANDEM_OK ? chosen : numbers->prior;
    enum tandem_status used = numbers->tuner->use(numbers->backend, serves, NULL);
    return status != TANDEM_OK ? status : used;
}

/* Whether the number of a sweep exists; reads its present value and its candidates. */
static bool begin(struct numbers *numbers, const struct tnd_number_sweep *sweep)
{
    numbers->sweep = sweep;
    if (!numbers->tuner->present(numbers->backend, sweep->name, numbers->prior)) {
        return false;
    }
    list_candidates(numbers);
    return true;
}

enum tandem_status tnd_measure_numbers(const struct tnd_measure_options *measure,
                                       const struct tnd_tuner *tuner, tandem_backend *backend,
                                       int n_threads, const struct tnd_tuner_options *options,
                                       struct tandem_error *error)
{
    struct numbers numbers = {.measure = measure,
                              .tuner = tuner,
                              .backend = backend,
                              .n_threads = n_threads,
                              .options = options};
    for (int s = 0; s < tuner->n_sweeps && begin(&numbers, &tuner->sweeps[s]); s++) {
        for (int i = 0; i < numbers.sweep->n_types; i++) {
            numbers.count += is_wanted(&numbers, numbers.sweep->types[i])
                                 ? numbers.n_candidates * count_m(numbers.sweep)
                                 : 0;
        }
    }
    for (int s = 0; s < tuner->n_sweeps && begin(&numbers, &tuner->sweeps[s]); s++) {
        TND_TRY(measure_sweep(&numbers, error));
    }
    return numbers.index > 0 ? TANDEM_OK
                             : tnd_error_set(error, TANDEM_E_NOT_FOUND, "numbers", 0, 0,
                                             "%s: no candidate can be measured on this machine",
                                             tuner->api->name);
}

struct tnd_kernel_time tnd_numbers_record(const char *backend, const struct tnd_tuner_time *time,
                                          int64_t when)
{
    struct tnd_kernel_time record = {.type = time->type,
                                     .n = time->n,
                                     .k = time->k,
                                     .m = time->m,
                                     .threads = time->threads,
                                     .when = when};
    (void)snprintf(record.backend, sizeof(record.backend), "%s", backend);
    (void)snprintf(record.family, sizeof(record.family), "%s", time->family);
    (void)snprintf(record.numbers, sizeof(record.numbers), "%s", time->numbers);
    record.median_us = tnd_judge_median(time->us, time->n_us, &record.spread_us, &record.count);
    return record;
}

/* ---- launches ---- */

struct launches {
    const char *backend;
    int64_t when;
    struct tandem_table *table;
    enum tandem_status status;
};

static bool keep_launches(void *user, const struct tnd_tuner_time *time)
{
    struct launches *launches = user;
    if (time->n_us > 0) {
        const struct tnd_kernel_time one =
            tnd_numbers_record(launches->backend, time, launches->when);
        launches->status = tnd_record_add(launches->table, TND_RECORD_KERNEL_TIMES, &one);
    }
    return launches->status == TANDEM_OK;
}

static void choose_launches(void *user, const char *family, const char *prior,
                            char out[TND_NUMBERS_MAX])
{
    const struct launches *launches = user;
    tnd_kernel_numbers_choose(launches->table, launches->backend, family, prior, out);
}

enum tandem_status tnd_measure_launches(const struct tnd_registry *registry, int slot, int64_t when,
                                        struct tandem_table *table, struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(registry, slot);
    const struct tnd_tuner *tuner = tnd_tuner_of(backend);
    struct launches launches = {
        .backend = tnd_registry_name(registry, slot), .when = when, .table = table};
    const struct tnd_tuner_options options = {
        .timed = keep_launches, .choose = choose_launches, .user = &launches};
    if (tuner == NULL || tuner->launches == NULL) {
        return TANDEM_OK;
    }
    const enum tandem_status status = tuner->launches(backend, &options, error);
    return launches.status != TANDEM_OK ? launches.status : status;
}
