/* SPDX-License-Identifier: MIT
 * The run of mulmat-tune bench: measures one cell after another as tnd_adapt says, until all is
 * certain or the budget ends. Cells are measured again later, with others between, and the faster
 * median counts: what disturbs a machine (another program, the host of a virtual machine) lasts
 * for seconds, spoils neighbouring cells together, and only ever slows down. */
#include "measure/bench.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/tnd_status.h"
#include "measure/bench_sweep.h"
#include "tune/candidates.h"
#include "measure/measure_moves.h"
#include "measure/measure_numbers.h"
#include "measure/measure_ops.h"
#include "measure/measure_peaks.h"
#include "tune/planner.h"
#include "tune/profiles.h"
#include "tune/policy.h"
#include "tune/rule.h"

/* Parameters of an effort. */
struct thoroughness {
    int n_m;
    const int64_t *m;
    bool is_fixed;
    double tolerance;
    double trial_s;
};

/* Of one cell under a budget: guarantees an end even with a stopped clock. */
enum { MOST_TRIALS = 100 };

static const int64_t anchor_m[] = {1, 32, 128};
static const int64_t first_m[] = {1, 8, 32, 128, 512};
/* Dense where libraries change their kernels with M, then steps by half a power of two. */
static const int64_t all_m[] = {1,  2,  3,  4,  6,   8,   12,  16,  24,
                                32, 48, 64, 96, 128, 192, 256, 384, 512};

#define M_LIST(list) (int)(sizeof(list) / sizeof((list)[0])), list

static const struct thoroughness efforts[] = {
    [TND_EFFORT_MEASURE] = {M_LIST(first_m), false, TND_BENCH_MEASURE_TOLERANCE, TND_BENCH_TRIAL_S},
    [TND_EFFORT_ESTIMATE] = {M_LIST(anchor_m), false, TND_BENCH_ESTIMATE_TOLERANCE,
                             TND_BENCH_TRIAL_S},
    [TND_EFFORT_PATIENT] = {M_LIST(all_m), true, TND_MEASURE_SPREAD, TND_MEASURE_BUDGET_S},
};

static const char *const effort_names[] = {
    [TND_EFFORT_MEASURE] = "measure",
    [TND_EFFORT_ESTIMATE] = "estimate",
    [TND_EFFORT_PATIENT] = "patient",
};

bool tnd_effort_from_name(const char *name, enum tnd_effort *out)
{
    for (size_t i = 0; i < sizeof(effort_names) / sizeof(effort_names[0]); i++) {
        if (strcmp(name, effort_names[i]) == 0) {
            *out = (enum tnd_effort)i;
            return true;
        }
    }
    return false;
}

double tnd_sweep_elapsed_s(const struct tnd_sweep *sweep)
{
    const struct tnd_clock *clock = sweep->options->measure.clock;
    return (double)(clock->now_ns(clock) - sweep->begin_ns) / 1e9;
}

static double left_s(const struct tnd_sweep *sweep)
{
    double reference_s = TND_REFERENCE_RUNS * 1e-6 * sweep->state.before.mean_us;
    return sweep->budget_s - tnd_sweep_elapsed_s(sweep) - sweep->options->reserve_s - reference_s;
}

/* Whether measurements before the first cell leave enough time for cells. */
static bool has_time_to_prepare(const struct tnd_sweep *sweep)
{
    return tnd_sweep_elapsed_s(sweep) < TND_BENCH_PREPARE_SHARE * sweep->budget_s;
}

/* ---- groups and lines ---- */

static bool is_wanted(const struct tnd_bench_options *options, int profile, enum tandem_type type,
                      int threads, struct tandem_plan_node *out)
{
    const char *name = tnd_profile_at(options->measure.registry, profile)->name;
    if (options->profile != NULL ? strcmp(options->profile, name) != 0
                                 : tnd_profile_is_twin(options->measure.registry, profile, type)) {
        return false;
    }
    /* Times of weights in flight are derived from another profile, transfers, and the products in a
     * row that tnd_measure_pairs runs. */
    return tnd_plan_node_for_profile(options->measure.registry, profile, type, threads, out) &&
           !tnd_task_is(out->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W);
}

static bool has_type(const struct tnd_bench_options *options, int shape, enum tandem_type type)
{
    const struct tnd_shape_use *use = &options->shapes->use[shape];
    return (!use->is_typed || use->type == type) &&
           tandem_type_row_bytes(type, options->shapes->shape[shape].k) != 0;
}

static void add_group(struct tnd_sweep *sweep, enum tandem_type type, int shape,
                      bool stays_in_cache)
{
    const struct tnd_bench_options *options = sweep->options;
    struct tnd_measure_options measure = options->measure;
    struct tnd_bench_group *group = &sweep->groups[sweep->n_groups++];
    double calls = options->shapes->use[shape].calls;
    group->type = type;
    group->shape = options->shapes->shape[shape];
    group->calls = calls > 0 ? calls : 1;
    group->stays_in_cache = stays_in_cache;
    measure.rotate_bytes = stays_in_cache ? 1 : measure.rotate_bytes;
    group->bytes = tnd_measure_bytes(&measure, type, group->shape.n, group->shape.k, sweep->most_m);
    double tokens = (double)sweep->most_m * (double)(group->shape.n + group->shape.k);
    group->weight_bytes = (group->bytes - tokens * sizeof(float)) / 2;
}

/* Adds cold weights, and warm ones if programs will find them in the cache. */
static void add_groups(struct tnd_sweep *sweep, enum tandem_type type, int shape)
{
    bool rotates = sweep->options->measure.rotate_bytes == 0;
    add_group(sweep, type, shape, false);
    if (rotates && sweep->options->effort != TND_EFFORT_ESTIMATE &&
        tnd_bench_fits_cache(sweep->options, type)) {
        add_group(sweep, type, shape, true);
    }
}

/* Shapes that have a type are measured with it, the others with each requested type. */
static enum tandem_status make_groups(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    size_t most = 2 * (size_t)options->shapes->count * (size_t)(options->n_types + 1);
    sweep->groups = tnd_calloc(most, sizeof(sweep->groups[0]));
    if (sweep->groups == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int s = 0; s < options->shapes->count; s++) {
        if (options->shapes->use[s].is_typed) {
            if (has_type(options, s, options->shapes->use[s].type)) {
                add_groups(sweep, options->shapes->use[s].type, s);
            }
            continue;
        }
        for (int y = 0; y < options->n_types; y++) {
            if (has_type(options, s, options->types[y])) {
                add_groups(sweep, options->types[y], s);
            }
        }
    }
    return TANDEM_OK;
}

/* Whether the time of any stage depends on the number of threads. */
static bool uses_threads(const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (profile->stage[s].parallel || profile->stage[s].own_threads) {
            return true;
        }
    }
    return false;
}

static bool uses_device_memory(const struct tnd_sweep *sweep, const struct tandem_plan_node *choice)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const tandem_backend *backend =
            tnd_registry_backend(sweep->options->measure.registry, choice->stage[s].backend);
        if (backend != NULL && tnd_backend_is_own(backend)) {
            return true;
        }
    }
    return false;
}

static enum tandem_status add_line(struct tnd_sweep *sweep, int group, int profile, int threads,
                                   const struct tandem_plan_node *choice)
{
    struct tnd_bench_line *line = &sweep->lines[sweep->n_lines];
    const struct tnd_bench_group *of = &sweep->groups[group];
    bool joins = sweep->n_lines > 0 && line[-1].group == group;
    bool dequantizes = tnd_task_is(choice->stage[TANDEM_STAGE_INIT].task, TND_TASK_LEAVES_W);
    (void)tnd_profile_describe(sweep->options->measure.registry, profile, of->type,
                               &line->described);
    struct tnd_adapt_line adaptive = {
        .group = group,
        .profile = profile,
        .threads = threads,
        .is_of_rule = tnd_rule_rank(tnd_cpu_id(), line->described.name) < INT_MAX,
        .type = of->type,
        .calls = of->calls,
        .work = (double)of->shape.n * (double)of->shape.k,
        .fixed_tokens = TND_WEIGHT_READ_TOKENS + (dequantizes ? TND_DEQUANTIZE_TOKENS : 0.0),
    };
    line->group = group;
    line->first = joins ? line[-1].first : sweep->n_lines;
    line->threads = threads;
    line->choice = *choice;
    line->uses_device = uses_device_memory(sweep, choice);
    sweep->n_lines++;
    return tnd_adapt_add_line(sweep->adapt, &adaptive);
}

static enum tandem_status make_lines(struct tnd_sweep *sweep, bool with_devices)
{
    const struct tnd_bench_options *options = sweep->options;
    size_t most = (size_t)sweep->n_groups * (size_t)tnd_profile_count(options->measure.registry) *
                  (size_t)options->n_thread_counts;
    sweep->lines = tnd_calloc(most + 1, sizeof(sweep->lines[0]));
    if (sweep->lines == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int g = 0; g < sweep->n_groups; g++) {
        for (int p = 0; p < tnd_profile_count(options->measure.registry); p++) {
            for (int t = 0; t < options->n_thread_counts; t++) {
                struct tandem_plan_node choice;
                struct tnd_table_profile described;
                int threads = options->thread_counts[t];
                if (is_wanted(options, p, sweep->groups[g].type, threads, &choice) &&
                    tnd_profile_describe(options->measure.registry, p, sweep->groups[g].type,
                                         &described) &&
                    (t == 0 || uses_threads(&described)) &&
                    (with_devices || !uses_device_memory(sweep, &choice))) {
                    TND_TRY(add_line(sweep, g, p, threads, &choice));
                }
            }
        }
    }
    return TANDEM_OK;
}

/* ---- transfers, launches, hand-offs ---- */

static bool uses_slot(const struct tnd_bench_options *options, int slot)
{
    struct tandem_plan_node choice;
    for (int p = 0; p < tnd_profile_count(options->measure.registry); p++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            if (is_wanted(options, p, TANDEM_TYPE_Q4_0, 1, &choice) &&
                choice.stage[s].backend == slot) {
                return true;
            }
        }
    }
    return false;
}

/* Transfers of all devices, of smaller sizes when time is short. Without transfers nothing can be
 * predicted for a device, so *out_measured says whether there was time. */
static enum tandem_status measure_transfers(struct tnd_sweep *sweep, bool *out_measured)
{
    const struct tnd_measure_options *measure = &sweep->options->measure;
    int n_devices = 0;
    for (int slot = 1; slot < tnd_registry_count(measure->registry); slot++) {
        const tandem_backend *backend = tnd_registry_backend(measure->registry, slot);
        n_devices +=
            backend != NULL && tnd_backend_is_own(backend) && uses_slot(sweep->options, slot);
    }
    double room_s = 4 * TND_BENCH_FEW_SHARE * sweep->budget_s;
    bool is_quick = n_devices * tnd_measure_transfers_s(TND_LARGE_BYTES) > room_s;
    *out_measured =
        !is_quick || n_devices * tnd_measure_transfers_s(TND_QUICK_TRANSFER_BYTES) <= 2 * room_s;
    for (int slot = 1; slot < tnd_registry_count(measure->registry) && *out_measured; slot++) {
        if (uses_slot(sweep->options, slot)) {
            TND_TRY(tnd_measure_transfers(measure->registry, slot, measure->clock,
                                          is_quick ? TND_QUICK_TRANSFER_BYTES : TND_LARGE_BYTES,
                                          sweep->when, sweep->table, sweep->error));
            TND_TRY(tnd_measure_round_trip(measure->registry, slot, measure->clock,
                                           &sweep->round_trip_us[slot], sweep->error));
            if (!is_quick) { /* their kernels may have to be compiled first */
                TND_TRY(tnd_measure_launches(measure->registry, slot, sweep->when, sweep->table,
                                             sweep->error));
            }
        }
    }
    return TANDEM_OK;
}

/* Largest team first: it is used most. */
static enum tandem_status measure_handoffs(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    const double asleep_and_awake_s = 2 * TND_BENCH_TRIAL_S;
    double room_s = 2 * TND_BENCH_FEW_SHARE * sweep->budget_s;
    for (int t = options->n_thread_counts - 1; t >= 0 && options->pool != NULL; t--) {
        if (room_s >= asleep_and_awake_s) {
            room_s -= asleep_and_awake_s;
            TND_TRY(tnd_measure_handoff(options->pool, options->measure.clock,
                                        options->thread_counts[t], sweep->when, sweep->table,
                                        sweep->error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status measure_peaks(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    if (options->pool == NULL || !tnd_sweep_has_time_to_check(sweep)) {
        return TANDEM_OK;
    }
    return tnd_measure_peaks(options->pool, options->measure.clock, options->thread_counts,
                             options->n_thread_counts,
                             fmin(TND_BENCH_PEAKS_S, TND_BENCH_FEW_SHARE * sweep->budget_s),
                             sweep->when, sweep->table, sweep->error);
}

static enum tandem_status measure_ops(struct tnd_sweep *sweep, bool with_devices)
{
    const struct tnd_bench_options *options = sweep->options;
    if (options->pool == NULL || options->profile != NULL) {
        return TANDEM_OK;
    }
    double room_s = isinf(sweep->budget_s) ? 0 : TND_BENCH_FEW_SHARE * sweep->budget_s / 2;
    TND_TRY(tnd_measure_ops(&options->measure, options->thread_counts, options->n_thread_counts,
                            room_s, sweep->when, sweep->table, sweep->error));
    for (int slot = 1; slot < tnd_registry_count(options->measure.registry); slot++) {
        const tandem_backend *backend = tnd_registry_backend(options->measure.registry, slot);
        if (with_devices && backend != NULL && tnd_backend_is_own(backend) &&
            uses_slot(options, slot)) {
            TND_TRY(tnd_measure_device_ops(&options->measure, slot, sweep->round_trip_us[slot],
                                           fmin(room_s, 2 * TND_OPS_S), sweep->when, sweep->table,
                                           sweep->error));
        }
    }
    return TANDEM_OK;
}

/* ---- measuring ---- */

static enum tandem_status stopped(const struct tnd_sweep *sweep)
{
    return tnd_error_set(sweep->error, TANDEM_E_CANCELLED, "bench", (int64_t)sweep->n_trials, 0,
                         "bench: stopped after %d measurements", (int)sweep->n_trials);
}

static enum tandem_status go_on(const struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    return options->is_stopped != NULL && options->is_stopped(options->user) ? stopped(sweep)
                                                                             : TANDEM_OK;
}

static enum tandem_status report(struct tnd_sweep *sweep, const struct tnd_adapt_cell *cell,
                                 const struct tnd_measure_result *result)
{
    const struct tnd_bench_line *line = &sweep->lines[cell->line];
    const struct tnd_bench_group *group = &sweep->groups[line->group];
    if (sweep->options->progress == NULL) {
        return TANDEM_OK;
    }
    struct tnd_bench_progress progress;
    memset(&progress, 0, sizeof(progress));
    strcpy(progress.problem.op, "mul_mat");
    progress.problem.type = group->type;
    progress.problem.n = group->shape.n;
    progress.problem.k = group->shape.k;
    progress.problem.m = cell->m;
    progress.problem.threads = line->threads;
    snprintf(progress.problem.profile, sizeof(progress.problem.profile), "%s",
             line->described.name);
    progress.total = result->total;
    progress.trials = (int)sweep->n_trials;
    progress.elapsed_s = tnd_sweep_elapsed_s(sweep);
    progress.left_s = left_s(sweep);
    if (isinf(sweep->budget_s)) {
        struct tnd_adapt_state state;
        TND_TRY(tnd_adapt_state(sweep->adapt, &state));
        progress.left_s = state.pending_s;
    }
    if (sweep->options->progress(sweep->options->user, &progress)) {
        return stopped(sweep);
    }
    return TANDEM_OK;
}

/* One trial. A cell that this machine cannot compute (the type, or the size) is skipped together
 * with the larger ones of its line, and the run goes on. */
static enum tandem_status run_trial(struct tnd_sweep *sweep, const struct tnd_adapt_cell *cell)
{
    TND_ASSERT(cell->line >= 0 && cell->line < sweep->n_lines);
    const struct tnd_bench_line *line = &sweep->lines[cell->line];
    struct tnd_bench_group *group = &sweep->groups[line->group];
    struct tnd_measure_effort effort = {.budget_s = sweep->trial_s, .min_repeats = 1};
    struct tnd_measure_result result;
    struct tandem_error why = {0};
    effort.expected_us = tnd_adapt_expect_us(sweep->adapt, cell->line, cell->m, false);
    enum tandem_status status = tnd_sweep_open(sweep, cell->line, &why);
    if (status == TANDEM_OK) {
        effort.is_warm = tnd_sweep_is_warm(sweep, cell->line, effort.expected_us);
        status = tnd_measure_run(group->measure, cell->m, &line->choice, &effort, &result, &why);
    }
    if (status == TANDEM_E_UNSUPPORTED_BACKEND || status == TANDEM_E_DEVICE_MEMORY) {
        tnd_adapt_stop_at(sweep->adapt, cell->line, cell->m);
        return TANDEM_OK;
    }
    if (status != TANDEM_OK) {
        if (sweep->error != NULL) {
            *sweep->error = why;
        }
        return status;
    }
    int bit = cell->line - line->first;
    group->warm |= bit < 64 ? UINT64_C(1) << bit : 0;
    TND_TRY(tnd_sweep_keep(sweep, cell->line, cell->m, &result));
    TND_TRY(tnd_adapt_done(sweep->adapt, cell, &result.total));
    return report(sweep, cell, &result);
}

static enum tandem_status run_trials(struct tnd_sweep *sweep, bool *out_certain)
{
    struct tnd_adapt_cell cell;
    double longest_s;
    double overrun = 1; /* actual over predicted time of trials, because other programs use the
                         * machine too */
    for (;;) {
        double left = left_s(sweep) / overrun;
        longest_s = sweep->n_trials > 0 ? TND_BENCH_LONGEST_TRIAL * sweep->budget_s : INFINITY;
        if (left <= 0 || (!tnd_sweep_next_stale(sweep, left, &cell) &&
                          !tnd_adapt_next(sweep->adapt, left, longest_s, &cell))) {
            /* Nothing fits the time left: check whether anything is left at all. */
            for (int i = 0; i < sweep->n_lines; i++) {
                if (sweep->lines[i].first == i) {
                    tnd_adapt_touch(sweep->adapt, i);
                }
            }
            *out_certain = !tnd_adapt_next(sweep->adapt, INFINITY, INFINITY, &cell);
            return TANDEM_OK;
        }
        double begin_s = tnd_sweep_elapsed_s(sweep);
        TND_TRY(run_trial(sweep, &cell));
        double took = (tnd_sweep_elapsed_s(sweep) - begin_s) / cell.cost_s;
        tnd_sweep_reference_between(sweep);
        overrun = fmax(
            overrun + TND_BENCH_OVERRUN_SHARE * (fmin(took, TND_BENCH_OVERRUN) - overrun), 1.0);
    }
}

/* ---- the run ---- */

/* Whether all of the budget is used, as long as anything is uncertain. */
static bool uses_it_up(const struct tnd_bench_options *options)
{
    return options->budget_s > 0 && !options->ends_when_certain;
}

static void choose_thoroughness(struct tnd_sweep *sweep, struct thoroughness *out)
{
    const struct tnd_bench_options *options = sweep->options;
    *out = efforts[options->effort];
    sweep->budget_s = options->budget_s;
    if (sweep->budget_s <= 0) {
        sweep->budget_s = options->effort == TND_EFFORT_ESTIMATE ? TND_BENCH_ESTIMATE_S : INFINITY;
    } else if (uses_it_up(options)) {
        out->tolerance = TND_BENCH_BUDGET_TOLERANCE;
    }
    if (options->n_m > 0) {
        out->n_m = options->n_m;
        out->m = options->m;
        out->is_fixed = !options->is_adaptive;
    }
    sweep->most_m = out->m[out->n_m - 1];
}

/* Chosen so that the first grid takes about a third of a budget; between 2 ms and the effort's own
 * time. */
static void choose_trial_s(struct tnd_sweep *sweep, const struct thoroughness *how)
{
    double cells = (double)sweep->n_groups * tnd_profile_count(sweep->options->measure.registry) *
                   sweep->options->n_thread_counts * how->n_m;
    sweep->trial_s = fmin(
        fmax(sweep->budget_s * TND_BENCH_GRID_SHARE / fmax(cells, 1), TND_BENCH_SHORTEST_TRIAL_S),
        how->trial_s);
    if (sweep->options->measure.energy != NULL) {
        sweep->trial_s = fmax(sweep->trial_s, tnd_energy_least_s(sweep->options->measure.energy));
    }
}

static enum tandem_status prepare(struct tnd_sweep *sweep)
{
    const struct tnd_bench_options *options = sweep->options;
    struct thoroughness how;
    bool with_devices = false;
    choose_thoroughness(sweep, &how);
    tnd_sweep_reference_before(sweep);
    TND_TRY(make_groups(sweep));
    choose_trial_s(sweep, &how);
    struct tnd_adapt_options adaptive = {
        .m = how.m,
        .n_m = how.n_m,
        .is_fixed = how.is_fixed,
        .most_threads = options->thread_counts[options->n_thread_counts - 1],
        .tolerance = how.tolerance,
        .max_trials = uses_it_up(options) ? MOST_TRIALS : TND_BENCH_TRIALS,
        .cost_s = tnd_sweep_cost_s,
        .user = sweep,
    };
    TND_TRY(tnd_adapt_new(&adaptive, &sweep->adapt, sweep->error));
    TND_TRY(measure_peaks(sweep));
    TND_TRY(go_on(sweep));
    TND_TRY(measure_transfers(sweep, &with_devices));
    TND_TRY(go_on(sweep));
    TND_TRY(has_time_to_prepare(sweep) ? measure_handoffs(sweep) : TANDEM_OK);
    TND_TRY(go_on(sweep));
    TND_TRY(has_time_to_prepare(sweep) ? measure_ops(sweep, with_devices) : TANDEM_OK);
    TND_TRY(go_on(sweep));
    TND_TRY(has_time_to_prepare(sweep) ? tnd_sweep_check_results(sweep) : TANDEM_OK);
    TND_TRY(go_on(sweep));
    TND_TRY(has_time_to_prepare(sweep) ? tnd_sweep_measure_pairs(sweep) : TANDEM_OK);
    TND_TRY(go_on(sweep));
    TND_TRY(make_lines(sweep, with_devices));
    return how.is_fixed ? TANDEM_OK : tnd_sweep_take_up(sweep);
}

/* A driver that compiles its kernels for the first time cannot be interrupted and may have used up
 * the whole budget: reserves time for the first grid nevertheless. */
static void leave_time_for_cells(struct tnd_sweep *sweep)
{
    sweep->prepared_s = tnd_sweep_elapsed_s(sweep);
    sweep->budget_s =
        fmax(sweep->budget_s, sweep->prepared_s + TND_BENCH_GRID_SHARE * sweep->budget_s);
}

static void sum_up(const struct tnd_sweep *sweep, bool is_certain, struct tnd_bench_summary *out)
{
    struct tnd_adapt_state state = {0};
    if (sweep->adapt != NULL) {
        (void)tnd_adapt_state(sweep->adapt, &state);
    }
    *out = (struct tnd_bench_summary){
        .cells = state.cells,
        .trials = state.trials,
        .unmeasured = state.unmeasured,
        .lines = sweep->n_lines,
        .unknown = state.unknown_lines,
        .median_uncertainty = state.median_uncertainty,
        .elapsed_s = tnd_sweep_elapsed_s(sweep),
        .prepared_s = sweep->prepared_s,
        .is_certain = is_certain,
    };
}

int tnd_bench_thread_counts(int n_threads, int n_fast, int out[TND_MAX_BENCH_THREADS])
{
    int n = 0;
    for (int threads = 1; n < TND_MAX_BENCH_THREADS;) {
        out[n++] = threads;
        if (threads >= n_threads) {
            break;
        }
        int next = tnd_next_thread_count(NULL, threads, n_threads);
        threads = n_fast > threads && n_fast < next ? n_fast : next;
    }
    return n;
}

enum tandem_status tnd_bench_run(const struct tnd_bench_options *options,
                                 struct tandem_table *table, struct tnd_bench_summary *out_summary,
                                 struct tandem_error *error)
{
    struct tnd_sweep sweep;
    const struct tnd_clock *clock = options->measure.clock;
    uint64_t ram_bytes = tnd_cpu_ram_bytes();
    bool is_certain = false;
    memset(&sweep, 0, sizeof(sweep));
    sweep.options = options;
    sweep.table = table;
    sweep.error = error;
    sweep.when = (int64_t)time(NULL);
    sweep.begin_ns = options->begin_ns > 0 ? options->begin_ns : clock->now_ns(clock);
    sweep.limit_bytes = options->measure.limit_bytes > 0 ? (double)options->measure.limit_bytes
                        : ram_bytes > 0                  ? (double)ram_bytes / 4
                                                         : (double)(1u << 30);
    sweep.open_s_per_byte = TND_BENCH_OPENING;
    sweep.pack_s_per_byte = TND_BENCH_OPENING;
    enum tandem_status status = prepare(&sweep);
    if (status == TANDEM_OK) {
        leave_time_for_cells(&sweep);
        status = run_trials(&sweep, &is_certain);
    }
    tnd_sweep_reference_after(&sweep);
    if (status == TANDEM_E_MEMORY && error != NULL && error->status != TANDEM_E_MEMORY) {
        (void)tnd_error_set(error, TANDEM_E_MEMORY, "bench", 0, 0, "bench: out of memory");
    }
    if (out_summary != NULL) {
        sum_up(&sweep, is_certain, out_summary);
    }
    tnd_sweep_close_all(&sweep);
    tnd_adapt_free(sweep.adapt);
    tnd_free(sweep.lines);
    tnd_free(sweep.groups);
    return status;
}
