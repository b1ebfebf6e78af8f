/* SPDX-License-Identifier: MIT
 * Two products at once: one is measured on this thread, the other runs repeatedly on a thread of
 * its own. And products beside the transfers of the next ones' weights. */
#include "measure/measure_pairs.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/cpu.h"
#include "base/tnd_status.h"
#include "sched/park.h"
#include "tune/moves.h"
#include "tune/planner.h"
#include "tune/profiles.h"
#include "tune/policy.h"

/* One backend, and a product that it computes alone. */
struct contender {
    char name[16];
    int slot;
    enum tandem_type type;
    struct tandem_plan_node choice;
    struct tnd_measure *measure;
    bool failed;
    uint32_t count;
    double alone_us;                 /* 0: not yet */
    double beside_us[TND_MAX_SLOTS]; /* while backend i works */
};

struct pairs {
    const struct tnd_pairs_options *options;
    int64_t n, k, m;
    double time_s;
    int n_contenders;
    struct contender contenders[TND_MAX_SLOTS];
};

/* ---- the one in the background ---- */

struct load {
    struct contender *contender;
    int64_t m;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    bool is_running; /* its first product is done */
    bool stops;
    enum tandem_status status;
};

static bool load_goes_on(struct load *load, enum tandem_status status)
{
    pthread_mutex_lock(&load->mutex);
    load->is_running = true;
    load->status = status;
    bool goes_on = !load->stops && status == TANDEM_OK;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->mutex);
    return goes_on;
}

static void *run_load(void *user)
{
    static const struct tnd_measure_effort short_while = {
        .budget_s = 0.002, .min_repeats = 1, .max_repeats = 16, .spread_frac = 1e-9};
    struct load *load = user;
    struct contender *contender = load->contender;
    struct tnd_measure_result result;
    enum tandem_status status;
    do {
        status = tnd_measure_run(contender->measure, load->m, &contender->choice, &short_while,
                                 &result, NULL);
    } while (load_goes_on(load, status));
    return NULL;
}

/* Waits until the load computes: before that, a measurement would not be beside it. */
static enum tandem_status wait_for_load(struct load *load)
{
    pthread_mutex_lock(&load->mutex);
    while (!load->is_running) {
        tnd_condition_wait(&load->changed, &load->mutex);
    }
    enum tandem_status status = load->status;
    pthread_mutex_unlock(&load->mutex);
    return status;
}

/* ---- measuring ---- */

static void take_faster(double *us, const struct tnd_stage_time *time)
{
    *us = *us > 0 ? fmin(*us, time->median_us) : time->median_us;
}

static enum tandem_status measure_one(const struct pairs *pairs, struct contender *contender,
                                      double *us)
{
    const struct tnd_measure_effort effort = {.budget_s = pairs->time_s, .min_repeats = 3};
    struct tnd_measure_result result;
    TND_TRY(
        tnd_measure_run(contender->measure, pairs->m, &contender->choice, &effort, &result, NULL));
    contender->count = result.total.count;
    take_faster(us, &result.total);
    return TANDEM_OK;
}

static enum tandem_status measure_beside(const struct pairs *pairs, struct contender *contender,
                                         int beside, struct tandem_error *error)
{
    struct load load = {.contender = (struct contender *)&pairs->contenders[beside], .m = pairs->m};
    pthread_t thread;
    pthread_mutex_init(&load.mutex, NULL);
    if (!tnd_condition_init(&load.changed)) {
        pthread_mutex_destroy(&load.mutex);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pairs", 0, 0, "pairs: out of memory");
    }
    int started = pthread_create(&thread, NULL, run_load, &load);
    enum tandem_status status = TANDEM_OK;
    if (started == 0) {
        status = wait_for_load(&load);
        if (status == TANDEM_OK) {
            status = measure_one(pairs, contender, &contender->beside_us[beside]);
            contender->failed = status != TANDEM_OK;
        }
        pthread_mutex_lock(&load.mutex);
        load.stops = true;
        pthread_mutex_unlock(&load.mutex);
        pthread_join(thread, NULL);
        load.contender->failed = load.contender->failed || load.status != TANDEM_OK;
    }
    pthread_cond_destroy(&load.changed);
    pthread_mutex_destroy(&load.mutex);
    return started == 0 ? TANDEM_OK
                        : tnd_error_set(error, TANDEM_E_THREAD, "pairs", started, 0,
                                        "pairs: no thread for the backend in the background: %s",
                                        strerror(started));
}

static bool is_late(const struct tnd_pairs_options *options)
{
    const struct tnd_clock *clock = options->measure.clock;
    return options->deadline_ns != 0 && clock->now_ns(clock) >= options->deadline_ns;
}

static enum tandem_status run_round(struct pairs *pairs, struct tandem_error *error)
{
    for (int i = 0; i < pairs->n_contenders && !is_late(pairs->options); i++) {
        struct contender *one = &pairs->contenders[i];
        one->failed = one->failed || measure_one(pairs, one, &one->alone_us) != TANDEM_OK;
    }
    for (int i = 0; i < pairs->n_contenders; i++) {
        for (int j = 0; j < pairs->n_contenders; j++) {
            struct contender *one = &pairs->contenders[i];
            if (i != j && !one->failed && !pairs->contenders[j].failed &&
                !is_late(pairs->options)) {
                TND_TRY(measure_beside(pairs, one, j, error));
            }
        }
    }
    return TANDEM_OK;
}

/* ---- who takes part ---- */

/* Whether all stages of a profile are on `slot`. */
static bool is_alone(const struct tandem_plan_node *choice, int slot)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (choice->stage[s].task != TANDEM_TASK_NONE && choice->stage[s].backend != slot) {
            return false;
        }
    }
    return choice->stage[TANDEM_STAGE_COMPUTE].backend == slot;
}

static bool find_choice(const struct tnd_registry *registry, int slot, enum tandem_type type,
                        struct tandem_plan_node *out)
{
    for (int p = 0; p < tnd_profile_count(registry); p++) {
        if (tnd_plan_node_for_profile(registry, p, type, 1, out) && is_alone(out, slot)) {
            return true;
        }
    }
    return false;
}

static size_t rotated_bytes(const struct tnd_measure_options *options)
{
    if (options->rotate_bytes > 0) {
        return options->rotate_bytes;
    }
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    size_t twice = 2 * (caches.l3_bytes > caches.l2_bytes ? caches.l3_bytes : caches.l2_bytes);
    return twice > 0 && twice < TND_LARGE_BYTES ? twice : TND_LARGE_BYTES;
}

static enum tandem_status add_contender(struct pairs *pairs, int slot, struct tandem_error *error)
{
    const struct tnd_pairs_options *options = pairs->options;
    struct contender *contender = &pairs->contenders[pairs->n_contenders];
    struct tnd_measure_options measure = options->measure;
    enum tandem_type type = options->type;
    bool found = find_choice(measure.registry, slot, type, &contender->choice);
    if (!found) {
        type = TANDEM_TYPE_F32;
        found = find_choice(measure.registry, slot, type, &contender->choice);
    }
    if (!found) {
        return TANDEM_OK;
    }
    measure.rotate_bytes = rotated_bytes(&measure);
    TND_TRY(
        tnd_measure_open(&measure, type, pairs->n, pairs->k, pairs->m, &contender->measure, error));
    contender->type = type;
    contender->slot = slot;
    snprintf(contender->name, sizeof(contender->name), "%s",
             tnd_registry_name(measure.registry, slot));
    pairs->n_contenders++;
    return TANDEM_OK;
}

static enum tandem_status keep(const struct pairs *pairs, struct tandem_table *table)
{
    for (int i = 0; i < pairs->n_contenders; i++) {
        const struct contender *one = &pairs->contenders[i];
        for (int j = 0; j < pairs->n_contenders && one->alone_us > 0; j++) {
            struct tnd_slowdown slowdown = {.count = one->count, .when = pairs->options->when};
            slowdown.factor = fmax(1.0, one->beside_us[j] / one->alone_us);
            if (one->beside_us[j] > 0 && slowdown.factor <= 1000.0) {
                memcpy(slowdown.backend, one->name, sizeof(slowdown.backend));
                memcpy(slowdown.beside, pairs->contenders[j].name, sizeof(slowdown.beside));
                TND_TRY(tnd_table_add_slowdown(table, &slowdown));
            }
        }
    }
    return TANDEM_OK;
}

/* ---- beside transfers ---- */

static bool find_stream(const struct tnd_registry *registry, int slot, enum tandem_type type,
                        struct tandem_plan_node *out)
{
    for (int p = 0; p < tnd_profile_count(registry); p++) {
        if (tnd_plan_node_for_profile(registry, p, type, 1, out) &&
            out->stage[TANDEM_STAGE_COMPUTE].backend == slot &&
            tnd_task_is(out->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W)) {
            return true;
        }
    }
    return false;
}

/* Expected time of a product of the row if computing and transfers do not slow each other down: the
 * longer of the two, plus its share of the first upload, which nothing overlaps. */
static double undisturbed_us(const struct pairs *pairs, const struct contender *one,
                             const struct tandem_table *table)
{
    const int64_t weight_bytes = (int64_t)tandem_type_row_bytes(one->type, pairs->k) * pairs->n;
    const int64_t y_bytes = pairs->m * pairs->n * (int64_t)sizeof(float);
    double up_us = tnd_estimate_transfer(table, one->name, TND_UPLOAD, weight_bytes).us;
    double down_us = tnd_estimate_transfer(table, one->name, TND_DOWNLOAD, y_bytes).us;
    return fmax(one->alone_us, up_us + down_us) + up_us / TND_MEASURE_NODES;
}

/* Weights in flight to a device: stored as its slow-down beside itself. If the device fails, it
 * stays unknown. */
static enum tandem_status measure_stream(const struct pairs *pairs, const struct contender *one,
                                         struct tandem_table *table, struct tandem_error *error)
{
    const struct tnd_pairs_options *options = pairs->options;
    const struct tnd_measure_effort effort = {.budget_s = pairs->time_s, .min_repeats = 3};
    struct tnd_measure_options measure_options = options->measure;
    struct tandem_plan_node choice;
    struct tnd_measure *measure;
    struct tnd_measure_result result;
    if (one->alone_us <= 0 || is_late(options) ||
        tnd_table_transfer(table, one->name, TND_UPLOAD) == NULL ||
        !find_stream(measure_options.registry, one->slot, one->type, &choice)) {
        return TANDEM_OK;
    }
    measure_options.is_whole = true;
    measure_options.rotate_bytes = rotated_bytes(&options->measure);
    TND_TRY(tnd_measure_open(&measure_options, one->type, pairs->n, pairs->k, pairs->m, &measure,
                             error));
    enum tandem_status status = tnd_measure_run(measure, pairs->m, &choice, &effort, &result, NULL);
    tnd_measure_close(measure);
    struct tnd_slowdown slowdown = {.count = result.total.count, .when = options->when};
    slowdown.factor = fmax(1.0, result.total.median_us / undisturbed_us(pairs, one, table));
    if (status != TANDEM_OK || slowdown.factor > 1000.0) {
        return TANDEM_OK;
    }
    memcpy(slowdown.backend, one->name, sizeof(slowdown.backend));
    memcpy(slowdown.beside, one->name, sizeof(slowdown.beside));
    return tnd_table_add_slowdown(table, &slowdown);
}

enum tandem_status tnd_measure_pairs(const struct tnd_pairs_options *options,
                                     struct tandem_table *table, struct tandem_error *error)
{
    struct pairs pairs = {.options = options,
                          .n = options->n > 0 ? options->n : 2048,
                          .k = options->k > 0 ? options->k : 2048,
                          .m = options->m > 0 ? options->m : 32};
    enum tandem_status status = TANDEM_OK;
    for (int slot = 1; slot < tnd_registry_count(options->measure.registry) && status == TANDEM_OK;
         slot++) {
        status = add_contender(&pairs, slot, error);
    }
    double times = TND_PAIR_ROUNDS * pairs.n_contenders * pairs.n_contenders;
    pairs.time_s =
        options->budget_s > 0 ? options->budget_s / fmax(times, 1) : TND_MEASURE_BUDGET_S;
    pairs.time_s = fmax(fmin(pairs.time_s, TND_MEASURE_BUDGET_S), TND_BENCH_SHORTEST_TRIAL_S);
    for (int i = 0; i < TND_PAIR_ROUNDS && status == TANDEM_OK && pairs.n_contenders > 1; i++) {
        status = run_round(&pairs, error);
    }
    if (status == TANDEM_OK) {
        status = keep(&pairs, table);
    }
    for (int i = 0; i < pairs.n_contenders && status == TANDEM_OK; i++) {
        status = measure_stream(&pairs, &pairs.contenders[i], table, error);
    }
    for (int i = 0; i < pairs.n_contenders; i++) {
        tnd_measure_close(pairs.contenders[i].measure);
    }
    return status;
}
