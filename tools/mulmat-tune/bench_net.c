/* SPDX-License-Identifier: MIT
 * Measures what a net can choose from: first its products, which im2col uses too, then its
 * convolutions with each method. */
#include "tools/mulmat-tune/bench_net.h"

#include <stdio.h>

#include "base/tnd_status.h"
#include "measure/bench.h"
#include "runtime/tune_convs.h"
#include "runtime/tune_graph.h"
#include "tools/say.h"
#include "tune/conv_choice.h"

/* Share of the budget for products if there are convolutions too. */
#define PRODUCTS_SHARE 0.4

struct state {
    const struct bench_net_request *request;
    struct net_convs convs;
    tandem_runtime *runtime;
    tandem_table *table;
    int n_counts;
    int counts[TND_MAX_BENCH_THREADS]; /* thread counts */
    int n_devices;
    uint8_t devices[TND_MAX_SLOTS]; /* slots of devices with their own memory */
    double shown_s;
    bool is_shown;
};

static double elapsed_s(const struct state *state)
{
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(state->runtime, &parts);
    return (double)(parts.clock->now_ns(parts.clock) - state->request->begin_ns) / 1e9;
}

/* Shows the first line, then one every five seconds. */
static bool show(struct state *state, const char *what, int i, int n)
{
    const double now_s = elapsed_s(state);
    if (!state->is_shown || now_s - state->shown_s >= 5) {
        tnd_say("%s %d of %d, %.1f of %.0f s\n", what, i + 1, n, now_s, state->request->budget_s);
        state->shown_s = now_s;
        state->is_shown = true;
    }
    return *state->request->interrupted != 0;
}

static bool show_turn(void *user, int turn, int n_turns, double unused)
{
    (void)unused;
    return show(user, "convolution", turn, n_turns);
}

static bool show_products(void *user, double now_s, double budget_s)
{
    const struct state *state = user;
    (void)now_s;
    (void)budget_s;
    return *state->request->interrupted != 0;
}

struct products {
    struct state *state;
    double end_s; /* end of this share of the budget */
    int n_left;   /* parts left to measure */
};

static enum tandem_status measure_part(void *user, tandem_lowered *part, bool is_last,
                                       struct tandem_error *error)
{
    struct products *products = user;
    struct state *state = products->state;
    struct tandem_tune_options options = TANDEM_TUNE_OPTIONS_INIT;
    options.budget_s =
        (products->end_s - elapsed_s(state)) / (products->n_left > 1 ? products->n_left-- : 1);
    options.progress = show_products;
    options.user = state;
    if (options.budget_s > 0) {
        TND_TRY(tnd_tune_products(state->runtime, tandem_lowered_graph(part), &options,
                                  state->table, error));
    }
    return is_last ? TANDEM_OK
                   : tandem_runtime_compute(state->runtime, tandem_lowered_graph(part), NULL, NULL,
                                            error);
}

static enum tandem_status measure_products(struct state *state, struct tandem_error *error)
{
    const struct net_convs *convs = &state->convs;
    const double begin_s = elapsed_s(state);
    const double left_s = state->request->budget_s - begin_s;
    struct products products = {.state = state,
                                .end_s = begin_s + left_s * (convs->n > 0 ? PRODUCTS_SHARE : 1),
                                .n_left = convs->n_parts};
    if (left_s <= 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_model_parts(convs->model, convs->inputs.arrays, convs->inputs.n, NULL, measure_part,
                            &products, NULL, error));
    return state->table->n_curves > 0 ? tnd_tune_adopt(state->runtime, state->table, false, error)
                                      : TANDEM_OK;
}

/* Measures on the runtime's threads or on a device; n_left: number of such turns left, this one
 * included. */
static enum tandem_status measure_on(struct state *state, int slot, int n_left,
                                     struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(state->runtime, &parts);
    const double left_s = state->request->budget_s - elapsed_s(state);
    const struct tnd_conv_tuning tuning = {.shapes = state->convs.shapes,
                                           .n = state->convs.n,
                                           .slot = slot,
                                           .budget_s = left_s / n_left,
                                           .begin_ns = parts.clock->now_ns(parts.clock),
                                           .progress = show_turn,
                                           .user = state};
    return tnd_tune_convs(state->runtime, &tuning, state->table, error);
}

/* Measures with each thread count in turn, then on devices. */
static enum tandem_status measure_convs(struct state *state, struct tandem_error *error)
{
    const int n_turns = state->n_counts + state->n_devices;
    for (int i = 0; i < n_turns && state->convs.n > 0; i++) {
        const int device = i - state->n_counts;
        if (device < 0 &&
            tandem_runtime_set_threads(state->runtime, state->counts[i]) != TANDEM_OK) {
            return tnd_error_set(error, TANDEM_E_THREAD, "threads", state->counts[i], 0,
                                 "%d threads cannot be started", state->counts[i]);
        }
        TND_TRY(measure_on(state, device < 0 ? TND_CONV_ON_CPU : state->devices[device],
                           n_turns - i, error));
    }
    return TANDEM_OK;
}

/* Prints the times that programs with this table can expect. */
static void print_times(const struct state *state)
{
    struct tnd_text text = TND_TEXT_INIT;
    for (int i = 0; i < state->convs.n; i++) {
        for (int t = 0; t < state->n_counts; t++) {
            struct tnd_conv_choice choice;
            tnd_conv_choose(state->table, state->counts[t], &state->convs.questions[i], &choice);
            tnd_conv_explain(&choice, state->counts[t], &text);
        }
        for (int d = 0; d < state->n_devices; d++) {
            struct tnd_runtime_parts parts;
            tnd_runtime_parts(state->runtime, &parts);
            tnd_conv_explain_on(state->table, tnd_registry_name(parts.registry, state->devices[d]),
                                &state->convs.questions[i], &text);
        }
    }
    fputs(tnd_text_string(&text), stdout);
    tnd_text_fini(&text);
}

static enum tandem_status open_all(struct state *state, struct tandem_error *error)
{
    const struct bench_net_request *request = state->request;
    struct tnd_runtime_parts parts;
    int most = 0;
    TND_TRY(net_convs_read(request->net, &state->convs, error));
    for (int i = 0; i < request->threads.n && i < TND_MAX_BENCH_THREADS; i++) {
        state->counts[state->n_counts] = (int)request->threads.values[i];
        most = state->counts[state->n_counts] > most ? state->counts[state->n_counts] : most;
        state->n_counts++;
    }
    TND_TRY(tnd_cmd_open_runtime(NULL, most, request->profile, request->device, &state->runtime,
                                 error));
    tnd_runtime_parts(state->runtime, &parts);
    if (state->n_counts == 0) {
        state->n_counts =
            tnd_bench_thread_counts(tandem_runtime_threads(state->runtime),
                                    tnd_topology_fast_cores(parts.topology), state->counts);
    }
    state->n_devices = tnd_conv_devices(state->runtime, state->devices);
    TND_TRY(tandem_table_new(&state->table, error));
    tnd_fingerprint_read_all(parts.registry, &state->table->fingerprint);
    return TANDEM_OK;
}

enum tandem_status bench_net(const struct bench_net_request *request, tandem_table **out_table,
                             struct tandem_error *error)
{
    struct state state = {.request = request};
    enum tandem_status status = open_all(&state, error);
    *out_table = NULL;
    if (status == TANDEM_OK) {
        status = measure_products(&state, error);
        status = status == TANDEM_OK ? measure_convs(&state, error) : status;
        print_times(&state);
        if (state.table->n_curves > 0 || state.table->n_convolutions > 0) {
            *out_table = state.table;
            state.table = NULL;
        }
    }
    tandem_table_free(state.table);
    net_convs_fini(&state.convs);
    tandem_runtime_close(state.runtime);
    return status;
}
