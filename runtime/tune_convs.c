/* SPDX-License-Identifier: MIT
 * Measures the methods of convolutions in turns. */
#include "runtime/tune_convs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "graph/lower.h"
#include "measure/measure_moves.h"
#include "runtime/runtime_internal.h"
#include "table/conv_problem.h"
#include "sched/exec.h"
#include "sched/plan.h"
#include "table/records.h"
#include "tune/place.h"
#include "tune/profiles.h"

/* Each convolution is measured twice, with the others in between, and the faster median counts:
 * disturbances last for seconds and only ever slow down. */
enum { MAX_TIMES = 200, MIN_TIMES = 3, ROUNDS = 2 };

struct tnd_conv_trial {
    tandem_runtime *runtime;
    int slot;
    double round_trip_us; /* to the device and back */
    struct tnd_net *net;
    struct tnd_lowered *lowered[TND_CONV_METHODS]; /* NULL: not available */
    tandem_plan *plans[TND_CONV_METHODS];
};

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory to measure a convolution");
}

/* ---- one convolution ---- */

static struct tnd_array *random_array(const struct tnd_dims *dims)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, dims);
    struct tnd_rng rng;
    tnd_rng_init(&rng, 1);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        ((float *)array->data)[i] = tnd_rng_float(&rng) * 2.0f - 1.0f;
    }
    return array;
}

/* Adds a bias per filter and a ReLU. */
static int follow(struct tnd_net *net, const struct tnd_conv_shape *shape, int y)
{
    struct tnd_dims bias = {.n = shape->n + 2, .dims = {1, shape->filters}};
    for (int i = 0; i < shape->n; i++) {
        bias.dims[2 + i] = 1;
    }
    const int sum =
        tnd_net_binary(net, TANDEM_BINARY_ADD, y, tnd_net_constant(net, random_array(&bias)));
    return tnd_net_binary(net, TANDEM_BINARY_MAX, sum, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0));
}

/* Makes a net of this convolution only, with as much padding after as before. */
static struct tnd_net *net_of(const struct tnd_conv_shape *shape)
{
    struct tnd_net *net = tnd_net_new();
    struct tnd_window window = {.n = shape->n, .groups = shape->groups};
    struct tnd_dims x = {.n = shape->n + 2, .dims = {shape->images, shape->channels}};
    struct tnd_dims w = {.n = shape->n + 2,
                         .dims = {shape->filters, shape->channels / shape->groups}};
    for (int i = 0; i < shape->n; i++) {
        const int64_t seen = (shape->result[i] - 1) * shape->stride[i] +
                             (shape->window[i] - 1) * shape->dilation[i] + 1;
        const int64_t begin = shape->padding[i];
        window.extent[i] = shape->window[i];
        window.stride[i] = shape->stride[i];
        window.dilation[i] = shape->dilation[i];
        window.begin[i] = begin;
        window.end[i] = begin > 0 && seen > 2 * begin ? begin : 0;
        x.dims[2 + i] = seen > begin + window.end[i] ? seen - begin - window.end[i] : 1;
        w.dims[2 + i] = shape->window[i];
    }
    if (net != NULL) {
        const int input = tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL);
        const int weights = tnd_net_constant(net, random_array(&w));
        const int y = tnd_net_conv(net, input, weights, &window);
        (void)tnd_net_output(net, shape->is_followed ? follow(net, shape, y) : y);
    }
    return net;
}

static bool begin_nothing(void *user, const struct tnd_conv_shape *shapes, int n)
{
    (void)user;
    (void)shapes;
    (void)n;
    return false;
}

/* Chooses the method that `user` points to, if available. */
static void prefer(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out)
{
    const enum tnd_conv_method method = *(const enum tnd_conv_method *)user;
    tnd_conv_choose_by_rule(question, out);
    out->method = question->may[method] ? method : TND_CONV_DIRECT;
}

static enum tandem_status lower(const struct tnd_net *net, const struct tandem_chooser *chooser,
                                bool for_device, struct tnd_lowered **out,
                                struct tandem_error *error)
{
    const struct tnd_lower_options options = {
        .chooser = chooser, .is_last = true, .for_device = for_device};
    return tnd_net_lower_with(net, &options, out, error);
}

/* ---- devices ---- */

/* Finds the profile for F32 products on a device; false: none. */
static bool profile_on(const struct tnd_registry *registry, int slot, struct tandem_plan_node *out)
{
    bool is_found = false;
    for (int i = 0; !is_found && i < tnd_profile_count(registry); i++) {
        struct tnd_table_profile described;
        memset(out, 0, sizeof(*out));
        is_found = tnd_profile_describe(registry, i, TANDEM_TYPE_F32, &described) &&
                   tnd_profile_resolve(&described, registry, out->stage, NULL, 0) &&
                   out->stage[TANDEM_STAGE_COMPUTE].backend == slot;
        memcpy(out->profile, described.name, sizeof(out->profile));
    }
    out->n_threads = 1;
    return is_found;
}

int tnd_conv_devices(tandem_runtime *runtime, uint8_t out_slots[TND_MAX_SLOTS])
{
    const int forced = tnd_planner_forced(runtime->planner);
    const int n = tnd_place_devices(runtime->registry, out_slots);
    struct tnd_table_profile profile;
    struct tandem_task_config stages[TANDEM_STAGES];
    if (forced < 0) {
        return n;
    }
    const bool is_known =
        tnd_profile_describe(runtime->registry, forced, TANDEM_TYPE_F32, &profile) &&
        tnd_profile_resolve(&profile, runtime->registry, stages, NULL, 0);
    for (int i = 0; is_known && i < n; i++) {
        if (out_slots[i] == stages[TANDEM_STAGE_COMPUTE].backend) {
            out_slots[0] = out_slots[i];
            return 1;
        }
    }
    return 0;
}

/* Plans every node on the device; *out is NULL if it cannot compute them all. */
static enum tandem_status plan_on(const struct tnd_conv_trial *trial, const tandem_graph *graph,
                                  tandem_plan **out, struct tandem_error *error)
{
    const struct tnd_registry *registry = trial->runtime->registry;
    struct tandem_plan_node product;
    tandem_plan *plan;
    const bool has_products = profile_on(registry, trial->slot, &product);
    bool can = true;
    TND_TRY(tandem_plan_new(graph->n_nodes, &plan, error));
    for (int i = 0; can && i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        struct tandem_task_config *compute = &plan->nodes[i].stage[TANDEM_STAGE_COMPUTE];
        if (tnd_mul_mat_is_plain(node)) {
            plan->nodes[i] = product;
            can = has_products;
            continue;
        }
        compute->backend = (uint8_t)trial->slot;
        compute->wait = true;
        can =
            tnd_registry_supports(registry, trial->slot, node, TANDEM_TASK_NODE, NULL) == TANDEM_OK;
    }
    if (!can) {
        tandem_plan_free(plan);
        plan = NULL;
    }
    *out = plan;
    return TANDEM_OK;
}

/* Runs the nodes with operands and results on the device, and sums their times. */
static enum tandem_status run_on(struct tnd_conv_trial *trial, enum tnd_conv_method method,
                                 double *out_us, struct tandem_error *error)
{
    enum { MOST_STEPS = 64 };
    struct tnd_step_time times[MOST_STEPS];
    int n_times = 0;
    const struct tnd_exec_run_options options = {.times = times,
                                                 .n_times = MOST_STEPS,
                                                 .out_n_times = &n_times,
                                                 .sync_each = true,
                                                 .is_plain = true};
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(trial->runtime, &parts);
    TND_TRY(tnd_exec_run(parts.exec, tnd_lowered_graph(trial->lowered[method]),
                         trial->plans[method], &options, error));
    *out_us = 0;
    for (int i = 0; i < n_times; i++) {
        if (times[i].kind == TND_STEP_WORK && times[i].stage == TANDEM_STAGE_COMPUTE &&
            times[i].end_ns >= times[i].begin_ns) {
            *out_us += tnd_without_round_trip((double)(times[i].end_ns - times[i].begin_ns) / 1e3,
                                              trial->round_trip_us);
        }
    }
    return TANDEM_OK;
}

/* ---- one convolution, by each method ---- */

static enum tandem_status prepare(struct tnd_conv_trial *trial, enum tnd_conv_method method,
                                  struct tandem_error *error)
{
    const struct tandem_chooser chooser = {begin_nothing, prefer, &method};
    struct tnd_lowered *lowered;
    const bool on_device = trial->slot != TND_CONV_ON_CPU;
    TND_TRY(lower(trial->net, &chooser, on_device, &lowered, error));
    const struct tnd_conv_choice *choice = tnd_lowered_conv(lowered, 0);
    if (choice == NULL || choice->method != method) {
        tnd_lowered_free(lowered);
        return TANDEM_OK;
    }
    if (on_device) {
        const enum tandem_status status =
            plan_on(trial, tnd_lowered_graph(lowered), &trial->plans[method], error);
        if (trial->plans[method] == NULL) {
            tnd_lowered_free(lowered);
            return status;
        }
    }
    trial->lowered[method] = lowered;
    float *x = tnd_lowered_input(lowered, 0);
    const int64_t n = tnd_dims_values(&tnd_net_value(trial->net, trial->net->inputs[0])->shape);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 17) - 8;
    }
    return on_device ? TANDEM_OK
                     : tandem_runtime_plan(trial->runtime, tnd_lowered_graph(lowered),
                                           &trial->plans[method], error);
}

enum tandem_status tnd_conv_trial_open(tandem_runtime *runtime, const struct tnd_conv_shape *shape,
                                       int slot, struct tnd_conv_trial **out,
                                       struct tandem_error *error)
{
    struct tnd_conv_trial *trial = tnd_calloc(1, sizeof(*trial));
    enum tandem_status status = TANDEM_OK;
    if (trial == NULL) {
        return no_memory(error);
    }
    trial->runtime = runtime;
    trial->slot = slot;
    trial->net = net_of(shape);
    status = trial->net == NULL ? no_memory(error) : TANDEM_OK;
    if (slot != TND_CONV_ON_CPU && status == TANDEM_OK) {
        status = tnd_measure_round_trip(runtime->registry, slot, runtime->clock,
                                        &trial->round_trip_us, error);
    }
    for (int method = 0; method < TND_CONV_METHODS && status == TANDEM_OK; method++) {
        status = prepare(trial, (enum tnd_conv_method)method, error);
    }
    if (status != TANDEM_OK) {
        tnd_conv_trial_close(trial);
        return status;
    }
    *out = trial;
    return TANDEM_OK;
}

void tnd_conv_trial_close(struct tnd_conv_trial *trial)
{
    if (trial == NULL) {
        return;
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        tandem_plan_free(trial->plans[method]);
        tnd_lowered_free(trial->lowered[method]);
    }
    tnd_net_free(trial->net);
    tnd_free(trial);
}

enum tandem_status tnd_conv_ask(const struct tandem_chooser *chooser,
                                const struct tnd_conv_shape *shape, struct tnd_conv_choice *out,
                                struct tandem_error *error)
{
    struct tnd_net *net = net_of(shape);
    struct tnd_lowered *lowered = NULL;
    enum tandem_status status =
        net == NULL ? no_memory(error) : lower(net, chooser, false, &lowered, error);
    const struct tnd_conv_choice *choice =
        status == TANDEM_OK ? tnd_lowered_conv(lowered, 0) : NULL;
    if (choice != NULL) {
        *out = *choice;
    } else if (status == TANDEM_OK) {
        status = tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "window", 0, 0,
                               "the convolution has one method alone: its window is too large");
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
    return status;
}

bool tnd_conv_trial_has(const struct tnd_conv_trial *trial, enum tnd_conv_method method)
{
    return trial->lowered[method] != NULL;
}

enum tandem_status tnd_conv_trial_run(struct tnd_conv_trial *trial, enum tnd_conv_method method,
                                      double *out_us, struct tandem_error *error)
{
    const struct tnd_clock *clock = trial->runtime->clock;
    TND_ASSERT(tnd_conv_trial_has(trial, method));
    if (trial->slot != TND_CONV_ON_CPU) {
        return run_on(trial, method, out_us, error);
    }
    const uint64_t begin = clock->now_ns(clock);
    TND_TRY(tandem_runtime_compute(trial->runtime, tnd_lowered_graph(trial->lowered[method]),
                                   trial->plans[method], NULL, error));
    *out_us = (double)(clock->now_ns(clock) - begin) / 1e3;
    return TANDEM_OK;
}

/* ---- all convolutions ---- */

/* Times of one convolution. */
struct times {
    int n; /* per available method */
    double us[TND_CONV_METHODS][MAX_TIMES];
};

static double now_s(const tandem_runtime *runtime)
{
    return (double)runtime->clock->now_ns(runtime->clock) / 1e9;
}

/* Runs the methods in turns, so that a disturbance affects all of them. The first computation is a
 * warm-up and does not count. */
static enum tandem_status measure_in_turns(struct tnd_conv_trial *trial, double end_s,
                                           struct times *times, struct tandem_error *error)
{
    times->n = 0;
    for (int i = -1; i < MAX_TIMES && (i < MIN_TIMES || now_s(trial->runtime) < end_s); i++) {
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            double us;
            if (trial->lowered[method] != NULL) {
                TND_TRY(tnd_conv_trial_run(trial, (enum tnd_conv_method)method, &us, error));
                times->us[method][i < 0 ? 0 : i] = us;
            }
        }
        times->n = i + 1;
    }
    return TANDEM_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), compare_numbers);
    return values[n / 2];
}

/* Sorts the times and keeps the faster half: interruptions slow some computations down by far more
 * than methods differ, and none runs faster than possible. */
static int keep_calm(double *us, int n)
{
    qsort(us, (size_t)n, sizeof(us[0]), compare_numbers);
    return n / 2 > MIN_TIMES ? n / 2 : n;
}

static enum tandem_status keep(tandem_table *fresh, const struct tnd_conv_trial *trial,
                               const struct tnd_conv_shape *shape, enum tnd_conv_method method,
                               double *us, int n, struct tandem_error *error)
{
    struct tnd_conv_time record;
    const bool on_device = trial->slot != TND_CONV_ON_CPU;
    tnd_conv_key(shape, method, on_device ? 1 : tandem_runtime_threads(trial->runtime), &record);
    if (on_device) {
        (void)snprintf(record.device, sizeof(record.device), "%s",
                       tnd_registry_name(trial->runtime->registry, trial->slot));
    }
    n = keep_calm(us, n);
    record.median_us = us[n / 2];
    for (int i = 0; i < n; i++) {
        us[i] = fabs(us[i] - record.median_us);
    }
    record.spread_us = median_of(us, n);
    record.count = (uint32_t)n;
    record.when = (int64_t)time(NULL);
    const struct tnd_conv_time *before = tnd_record_find(fresh, TND_RECORD_CONVOLUTIONS, &record);
    if (before != NULL && before->median_us <= record.median_us) {
        return TANDEM_OK;
    }
    return tnd_record_add(fresh, TND_RECORD_CONVOLUTIONS, &record) == TANDEM_OK ? TANDEM_OK
                                                                                : no_memory(error);
}

static enum tandem_status turn(tandem_runtime *runtime, const struct tnd_conv_shape *shape,
                               int slot, double end_s, struct times *times, tandem_table *fresh,
                               struct tandem_error *error)
{
    struct tnd_conv_trial *trial;
    TND_TRY(tnd_conv_trial_open(runtime, shape, slot, &trial, error));
    enum tandem_status status = measure_in_turns(trial, end_s, times, error);
    for (int method = 0; method < TND_CONV_METHODS && status == TANDEM_OK; method++) {
        if (trial->lowered[method] != NULL) {
            status = keep(fresh, trial, shape, (enum tnd_conv_method)method, times->us[method],
                          times->n, error);
        }
    }
    tnd_conv_trial_close(trial);
    return status;
}

static enum tandem_status measure(tandem_runtime *runtime, const struct tnd_conv_tuning *tuning,
                                  struct times *times, tandem_table *fresh,
                                  struct tandem_error *error)
{
    const double begin_s = (double)tuning->begin_ns / 1e9;
    const double end_s = begin_s + tuning->budget_s;
    const int all = ROUNDS * tuning->n;
    for (int i = 0; i < all && (i == 0 || now_s(runtime) < end_s); i++) {
        const double now = now_s(runtime);
        if (tuning->progress != NULL && tuning->progress(tuning->user, i, all, now - begin_s)) {
            return tnd_error_set(error, TANDEM_E_CANCELLED, NULL, i, all,
                                 "measuring ended after %d of %d turns of convolutions", i, all);
        }
        TND_TRY(turn(runtime, &tuning->shapes[i % tuning->n], tuning->slot,
                     now + (end_s - now) / (all - i), times, fresh, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_tune_convs(tandem_runtime *runtime, const struct tnd_conv_tuning *tuning,
                                  tandem_table *fresh, struct tandem_error *error)
{
    struct times *times = tnd_calloc(1, sizeof(*times));
    if (times == NULL) {
        return no_memory(error);
    }
    /* (trials are not a program's first use of their products) */
    const bool may_tune = atomic_exchange(&runtime->may_tune, false);
    const enum tandem_status status = measure(runtime, tuning, times, fresh, error);
    atomic_store(&runtime->may_tune, may_tune);
    tnd_free(times);
    return status;
}

int tnd_conv_distinct(struct tnd_conv_shape *shapes, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        struct tnd_conv_time key;
        struct tnd_conv_time other;
        int k = 0;
        if (shapes[i].groups == shapes[i].channels && shapes[i].groups == shapes[i].filters) {
            continue;
        }
        tnd_conv_key(&shapes[i], TND_CONV_DIRECT, 1, &key);
        for (; k < left; k++) {
            tnd_conv_key(&shapes[k], TND_CONV_DIRECT, 1, &other);
            if (tnd_record_kinds[TND_RECORD_CONVOLUTIONS].compare(&key, &other) == 0) {
                break;
            }
        }
        if (k == left) {
            shapes[left++] = shapes[i];
        }
    }
    return left;
}
