/* SPDX-License-Identifier: MIT
 * Public interface of a runtime: connects backends, pool, executor, table and planner. Each call is
 * passed to the room that implements it. */
#include "tandem/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/kinds.h"
#include "backends/registry.h"
#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/environment.h"
#include "base/fork.h"
#include "base/options.h"
#include "base/tnd_log.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/work.h"
#include "runtime/choose_convs.h"
#include "runtime/print_plan.h"
#include "runtime/runtime_internal.h"
#include "runtime/runtime_nodes.h"
#include "runtime/tune_graph.h"
#include "runtime/winners.h"
#include "sched/trace.h"
#include "tune/kernel_numbers.h"
#include "tune/objective.h"
#include "tune/profiles.h"
#include "tune/rule.h"
#include "table/table_layers.h"
#include "tune/policy.h"

enum { MAX_THREADS = 1024 };

/* ---- after a fork ---- */

/* Threads, locks and devices of an inherited runtime are the parent's. */
static bool is_inherited(const tandem_runtime *runtime)
{
    return runtime->fork_generation != tnd_fork_generation();
}

enum tandem_status tnd_runtime_check(const tandem_runtime *runtime, const char *call,
                                     struct tandem_error *error)
{
    TND_REQUIRE(runtime, call, error);
    if (is_inherited(runtime)) {
        return tnd_error_set(error, TANDEM_E_STATE, "runtime", 0, 0,
                             "%s: this runtime was opened before the process forked, its threads "
                             "are in the parent; close it and open a new one",
                             call);
    }
    return TANDEM_OK;
}

/* ---- opening ---- */

/* TANDEM_LOG has priority: it lets a user look into any program. */
static enum tandem_log_level level_from_environment(enum tandem_log_level asked)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug"};
    const char *text = tnd_environment(TND_ENVIRONMENT_LOG);
    for (int i = 0; text != NULL && i <= TANDEM_LOG_DEBUG; i++) {
        if (strcmp(text, names[i]) == 0 || (text[0] == '0' + i && text[1] == '\0')) {
            return (enum tandem_log_level)i;
        }
    }
    return asked != 0 ? asked : TANDEM_LOG_WARN;
}

static int threads_wanted(int asked, const struct tnd_topology *topology)
{
    if (asked > 0) {
        return asked;
    }
    const double number = tnd_environment_number(TND_ENVIRONMENT_THREADS);
    return number >= 1 && number <= MAX_THREADS ? (int)number : topology->recommended_threads;
}

enum tandem_status tnd_runtime_find_profile(const tandem_runtime *runtime, const char *name,
                                            int *out_profile, struct tandem_error *error)
{
    int profile = name != NULL ? tnd_profile_find(runtime->registry, name) : -1;
    if (name != NULL && profile < 0) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, name, 0, 0,
                             "profile '%s' does not exist; mulmat-tune profiles lists them", name);
    }
    *out_profile = profile;
    return TANDEM_OK;
}

/* Sets the objective for `table` (not NULL): the program's, or time if the table has no joules. */
static void aim(const tandem_runtime *runtime, tandem_table *table)
{
    struct tandem_error error;
    if (tnd_objective_set(table, runtime->objective, &error) != TANDEM_OK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime", "%s; plans aim at time",
                     error.text);
        (void)tnd_objective_set(table, TANDEM_OBJECTIVE_TIME, NULL);
    }
}

/* Loads the layers of tables, with the file named in the options on top. Problems are kept and
 * logged once. */
static void load_table(tandem_runtime *runtime, const char *path)
{
    struct tandem_error *why = &runtime->table_error;
    if (path != NULL && path[0] == '\0') {
        tnd_error_set(why, TANDEM_E_NOT_FOUND, "", 0, 0, "no timing table: none is wanted");
        return;
    }
    struct tnd_layers *layers = NULL;
    tandem_table *table = NULL;
    enum tandem_status status = tnd_layers_find(path, &layers, why);
    if (status == TANDEM_OK) {
        status = tnd_winners_load_table(runtime->registry, layers, &table, why);
    }
    if (status != TANDEM_OK) {
        if (layers == NULL || layers->n > 0) { /* else none is wanted */
            const bool is_new_machine =
                path == NULL && status == TANDEM_E_FILE && why->got == ENOENT;
            tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime",
                         "no timing table, the rule serves%s%s%s", is_new_machine ? "" : ": ",
                         is_new_machine ? "" : why->text,
                         path == NULL ? " (mulmat-tune bench makes one)" : "");
        }
        tnd_free(layers);
        return;
    }
    tnd_layers_log(layers, &runtime->log, "runtime");
    for (int i = 0; i < layers->n; i++) {
        if (layers->layers[i].serves) { /* the highest stays */
            snprintf(runtime->table_path, sizeof(runtime->table_path), "%s",
                     layers->layers[i].path);
            runtime->is_from_file = true;
        }
    }
    tnd_free(layers);
    aim(runtime, table);
    tnd_kernel_numbers_use(table, runtime->registry, &runtime->log);
    runtime->table = table;
    tnd_planner_set_table(runtime->planner, table);
}

static enum tandem_status open_registry(tandem_runtime *runtime,
                                        const struct tandem_runtime_options *options,
                                        struct tandem_error *error)
{
    struct tnd_registry_options registry_options;
    memset(&registry_options, 0, sizeof(registry_options));
    registry_options.backends = options->backends;
    registry_options.settings = options->settings;
    registry_options.n_threads_max = MAX_THREADS;
    registry_options.log = runtime->log;
    TND_TRY(tnd_winners_open(&registry_options, options->table_path, runtime->n_threads,
                             &runtime->registry, error));
    return tnd_registry_add_plugins(runtime->registry, options->plugins, error);
}

static enum tandem_status open_pool(tandem_runtime *runtime,
                                    const struct tandem_runtime_options *options,
                                    struct tandem_error *error)
{
    struct tnd_pool_options pool_options;
    memset(&pool_options, 0, sizeof(pool_options));
    pool_options.n_threads = runtime->n_threads;
    double quota = runtime->topology.quota_cpus;
    pool_options.n_cpus = runtime->topology.n_cpus;
    if (quota > 0 && quota < pool_options.n_cpus) {
        pool_options.n_cpus = quota < 1 ? 1 : (int)quota;
    }
    /* 0 is the caller's way of saying default, -1 the pool's; a caller's negative number means
     *  0 polls. */
    pool_options.spin_limit = options->spin_limit == 0  ? -1
                              : options->spin_limit < 0 ? 0
                                                        : options->spin_limit;
    pool_options.cpu_ids = options->cpu_ids;
    pool_options.n_cpu_ids = options->n_cpu_ids;
    pool_options.nice = options->nice;
    pool_options.team = options->team;
    pool_options.team_user = options->team_user;
    /* The application decides where its own threads run. */
    pool_options.topology = options->team == NULL ? tnd_numa_topology(runtime) : NULL;
    return tnd_pool_new(&pool_options, &runtime->pool, error);
}

static uint32_t refused_by(void *exec, const tandem_tensor *weight)
{
    return tnd_exec_refused_by(exec, weight);
}

static enum tandem_status open_rooms(tandem_runtime *runtime,
                                     const struct tandem_runtime_options *options,
                                     struct tandem_error *error)
{
    int forced = -1;
    TND_TRY(tnd_topology_read(&runtime->topology, error));
    tnd_numa_pretend(&runtime->topology);
    runtime->n_threads = threads_wanted(options->n_threads, &runtime->topology);
    TND_TRY(open_registry(runtime, options, error));
    TND_TRY(tnd_runtime_find_profile(runtime, options->profile, &forced, error));
    TND_TRY(open_pool(runtime, options, error));
    TND_TRY(tnd_exec_new(runtime->pool, runtime->registry, runtime->clock, &runtime->exec, error));
    struct tnd_planner_options planner_options = {runtime->registry,
                                                  runtime->clock,
                                                  runtime->log,
                                                  runtime->topology.n_cpus,
                                                  runtime->topology.n_cores,
                                                  runtime->topology.l3_bytes /
                                                      TND_WARM_CACHE_PARTS};
    TND_TRY(tnd_planner_new(&planner_options, &runtime->planner, error));
    tnd_planner_set_refused(runtime->planner, refused_by, runtime->exec);
    tnd_planner_force(runtime->planner, forced);
    tnd_planner_set_error_bound(runtime->planner, runtime->error_bound);
    /* A program that sets the number of threads, binds them or provides them decides itself. */
    const bool decides = options->n_threads > 0 || options->n_cpu_ids > 0 ||
                         options->team != NULL ||
                         tnd_environment_number(TND_ENVIRONMENT_THREADS) >= 1;
    tnd_quota_init(&runtime->quota, runtime->topology.quota_cpus,
                   decides ? NULL : &runtime->topology, runtime->clock);
    load_table(runtime, options->table_path);
    tnd_numa_place(runtime, runtime->table);
    bool wants_table = options->table_path == NULL || options->table_path[0] != '\0';
    const bool may_tune = wants_table && tnd_tune_is_wanted();
    atomic_init(&runtime->may_tune, may_tune);
    atomic_init(&runtime->may_tune_convs, may_tune);
    runtime->chooser = tnd_runtime_make_chooser(runtime);
    const char *trace_path = tnd_environment(TND_ENVIRONMENT_TRACE);
    return trace_path != NULL ? tnd_trace_new(trace_path, &runtime->trace, error) : TANDEM_OK;
}

enum tandem_status tandem_runtime_open(const struct tandem_runtime_options *options,
                                       tandem_runtime **out_runtime, struct tandem_error *error)
{
    TND_REQUIRE(out_runtime, "open", error);
    struct tandem_runtime_options merged = TANDEM_RUNTIME_OPTIONS_INIT;
    TND_TRY(tnd_options_read(options, "tandem_runtime_options", &merged, sizeof(merged), error));
    if (!(merged.error_bound >= 0)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "error_bound", 0, 0,
                             "runtime: an error bound of %g; 0 or more is possible",
                             merged.error_bound);
    }
    if ((unsigned)merged.objective > TANDEM_OBJECTIVE_EDP) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "objective", merged.objective, TANDEM_OBJECTIVE_EDP,
            "runtime: objective %d; 0 (time) to 2 (energy times time) are possible",
            (int)merged.objective);
    }
    if (merged.n_threads < 0 || merged.n_threads > MAX_THREADS) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "n_threads", merged.n_threads, MAX_THREADS,
                             "runtime: %d threads, expected 0 (one a core) to %d", merged.n_threads,
                             MAX_THREADS);
    }
    if (merged.n_cpu_ids < 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "n_cpu_ids", merged.n_cpu_ids, 0,
                             "runtime: %d named CPUs, expected 0 or more", merged.n_cpu_ids);
    }
    tandem_runtime *runtime = tnd_calloc(1, sizeof(*runtime));
    if (runtime == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "runtime", 0, 0, "runtime: out of memory");
    }
    runtime->log.fn = merged.log;
    runtime->log.user = merged.log_user;
    runtime->log.level = level_from_environment(merged.log_level);
    tnd_environment_check(&runtime->log);
    runtime->fork_generation = tnd_fork_generation();
    runtime->clock = tnd_clock_real();
    runtime->error_bound = merged.error_bound;
    runtime->objective = merged.objective;
    pthread_mutex_init(&runtime->lock, NULL);
    enum tandem_status status = tnd_observer_init(&runtime->observer, merged.ignore_drift, error);
    if (status == TANDEM_OK) {
        status = open_rooms(runtime, &merged, error);
    }
    if (status != TANDEM_OK) {
        tandem_runtime_close(runtime);
        return status;
    }
    *out_runtime = runtime;
    return TANDEM_OK;
}

void tandem_runtime_close(tandem_runtime *runtime)
{
    if (runtime == NULL || is_inherited(runtime)) {
        return; /* its threads belong to the parent */
    }
    struct tandem_error error;
    if (tnd_trace_close(runtime->trace, &error) != TANDEM_OK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_ERROR, "runtime", "the trace is lost: %s",
                     error.text);
    }
    tnd_planner_free(runtime->planner);
    const uint32_t stalled = tnd_exec_free(runtime->exec);
    tnd_pool_free(runtime->pool);
    tnd_registry_leave_open(runtime->registry, stalled);
    tnd_registry_close(runtime->registry);
    tandem_table_free(runtime->table);
    tandem_table_free(runtime->corrected);
    tnd_observer_fini(&runtime->observer);
    pthread_mutex_destroy(&runtime->lock);
    tnd_free(runtime);
}

/* ---- backends ---- */

int tandem_runtime_backend_count(const tandem_runtime *runtime)
{
    return runtime != NULL ? tnd_registry_count(runtime->registry) : 0;
}

const char *tandem_runtime_backend_name(const tandem_runtime *runtime, int slot)
{
    return runtime != NULL ? tnd_registry_name(runtime->registry, slot) : NULL;
}

enum tandem_status tandem_runtime_add_backend(tandem_runtime *runtime,
                                              const struct tandem_backend_api *api,
                                              const char *settings, struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "add_backend", error));
    TND_REQUIRE(api, "add_backend", error);
    TND_TRY(tnd_registry_add(runtime->registry, api, settings, error));
    tnd_runtime_forget_choices(runtime); /* the new backend may be faster */
    return TANDEM_OK;
}

/* ---- table ---- */

enum tandem_status tandem_runtime_table_status(const tandem_runtime *runtime,
                                               struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "table_status", error));
    tandem_runtime *unlocked = (tandem_runtime *)runtime; /* the mutex is no part of the value */
    pthread_mutex_lock(&unlocked->lock);
    enum tandem_status status = runtime->table != NULL ? TANDEM_OK : runtime->table_error.status;
    if (status != TANDEM_OK && error != NULL) {
        *error = runtime->table_error;
    }
    pthread_mutex_unlock(&unlocked->lock);
    return status;
}

/* Replaces the table. The runtime is locked. */
static void take_table(tandem_runtime *runtime, tandem_table *table)
{
    if (table != NULL) {
        aim(runtime, table);
    }
    tnd_planner_set_table(runtime->planner, table);
    tnd_numa_place(runtime, table);
    tandem_table_free(runtime->table);
    tandem_table_free(runtime->corrected);
    runtime->table = table;
    runtime->corrected = NULL;
    runtime->table_round++;
    tnd_arms_begin_round(&runtime->observer.arms);
}

enum tandem_status tandem_runtime_set_table(tandem_runtime *runtime, const tandem_table *table,
                                            struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "set_table", error));
    tandem_table *copy = NULL;
    if (table != NULL) {
        TND_TRY(tandem_table_copy(table, &copy, error));
    }
    pthread_mutex_lock(&runtime->lock);
    take_table(runtime, copy);
    runtime->is_from_file = false;
    if (copy == NULL) {
        tnd_error_set(&runtime->table_error, TANDEM_E_NOT_FOUND, "", 0, 0,
                      "no timing table: the program took it away");
    }
    pthread_mutex_unlock(&runtime->lock);
    return TANDEM_OK;
}

void tnd_runtime_adopt_table(tandem_runtime *runtime, tandem_table *table)
{
    pthread_mutex_lock(&runtime->lock);
    take_table(runtime, table);
    pthread_mutex_unlock(&runtime->lock);
}

/* ---- threads ---- */

enum tandem_status tandem_runtime_set_threads(tandem_runtime *runtime, int n_threads)
{
    TND_TRY(tnd_runtime_check(runtime, "set_threads", NULL));
    if (n_threads < 1 || n_threads > MAX_THREADS) {
        return TANDEM_E_ARGUMENT;
    }
    pthread_mutex_lock(&runtime->lock);
    enum tandem_status status = TANDEM_OK;
    if (n_threads > tnd_pool_size(runtime->pool)) {
        status = tnd_pool_resize(runtime->pool, n_threads);
    }
    if (status == TANDEM_OK) {
        runtime->n_threads = n_threads;
        tnd_quota_ignore_others(&runtime->quota);
    }
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

static int threads_now(const tandem_runtime *runtime, bool is_long)
{
    tandem_runtime *unlocked = (tandem_runtime *)runtime; /* the mutex is no part of the value */
    pthread_mutex_lock(&unlocked->lock);
    int n_threads = runtime->n_threads;
    pthread_mutex_unlock(&unlocked->lock);
    int limit = tnd_quota_limit(&runtime->quota, is_long);
    return limit > 0 && limit < n_threads ? limit : n_threads;
}

int tandem_runtime_threads(const tandem_runtime *runtime)
{
    return tnd_runtime_check(runtime, "threads", NULL) == TANDEM_OK ? threads_now(runtime, false)
                                                                    : 0;
}

int tnd_runtime_graph_threads(const tandem_runtime *runtime, const tandem_graph *graph)
{
    const int beside_others = threads_now(runtime, false), most = threads_now(runtime, true);
    return beside_others < most && tnd_rule_is_long(graph) ? most : beside_others;
}

void tnd_runtime_set_quota_files(tandem_runtime *runtime, const char *root, const char *self,
                                 const struct tnd_clock *clock)
{
    tnd_quota_init(&runtime->quota, tnd_cgroup_cpus(root, self), NULL, clock);
    runtime->quota.root = root;
    runtime->quota.self = self;
}

void tandem_runtime_set_execution(tandem_runtime *runtime, uint32_t execution)
{
    if (runtime != NULL) {
        tnd_exec_set_execution(runtime->exec, execution);
    }
}

void tandem_runtime_pause(tandem_runtime *runtime)
{
    if (runtime != NULL) {
        tnd_pool_pause(runtime->pool);
    }
}

void tandem_runtime_resume(tandem_runtime *runtime)
{
    if (runtime != NULL) {
        tnd_pool_resume(runtime->pool);
    }
}

enum tandem_status tandem_runtime_set_cpus(tandem_runtime *runtime, const int *cpu_ids,
                                           int n_cpu_ids)
{
    TND_TRY(tnd_runtime_check(runtime, "set_cpus", NULL));
    if (n_cpu_ids < 0 || (n_cpu_ids > 0 && cpu_ids == NULL)) {
        return TANDEM_E_ARGUMENT;
    }
    return tnd_pool_set_cpus(runtime->pool, cpu_ids, n_cpu_ids);
}

/* ---- planning and computing ---- */

enum tandem_status tandem_runtime_force_profile(tandem_runtime *runtime, const char *profile,
                                                struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "force_profile", error));
    int forced = -1;
    TND_TRY(tnd_runtime_find_profile(runtime, profile, &forced, error));
    tnd_planner_force(runtime->planner, forced);
    return TANDEM_OK;
}

enum tandem_status tandem_runtime_set_error_bound(tandem_runtime *runtime, double bound)
{
    TND_TRY(tnd_runtime_check(runtime, "set_error_bound", NULL));
    if (!(bound >= 0)) {
        return TANDEM_E_ARGUMENT;
    }
    pthread_mutex_lock(&runtime->lock);
    runtime->error_bound = bound;
    tnd_planner_set_error_bound(runtime->planner, bound);
    pthread_mutex_unlock(&runtime->lock);
    return TANDEM_OK;
}

enum tandem_status tnd_runtime_check_graph(const tandem_graph *graph, struct tandem_error *error)
{
    if (graph == NULL || !graph->finished) {
        return tnd_error_set(error, TANDEM_E_STATE, "graph", 0, 0,
                             "graph: not finished; call tandem_graph_finish first");
    }
    return TANDEM_OK;
}

/* Measures in one of several threads, once in the life of a runtime: never during a later request.
 */
static void tune_on_first_use(tandem_runtime *runtime, const tandem_graph *graph)
{
    /* The thread that gets the flag may measure; acquire and release pair between successive
     * owners. */
    if (atomic_load_explicit(&runtime->may_tune, memory_order_relaxed) &&
        atomic_exchange_explicit(&runtime->may_tune, false, memory_order_acquire) &&
        !tnd_tune_on_first_use(runtime, graph)) {
        atomic_store_explicit(&runtime->may_tune, true, memory_order_release);
    }
}

/* Logs slow nodes, once for a graph that is planned repeatedly. */
static void tell_slow_nodes(tandem_runtime *runtime, const tandem_graph *graph)
{
    const struct tnd_reference_work work = tnd_graph_reference_work(graph);
    if (work.n_hot > 0 && atomic_exchange_explicit(&runtime->told_slow, graph->serial,
                                                   memory_order_relaxed) != graph->serial) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime",
                     "%d nodes are computed by reference kernels, which are slow; the largest: %s",
                     work.n_hot, work.most->params.work->what);
    }
}

enum tandem_status tandem_runtime_plan(tandem_runtime *runtime, const tandem_graph *graph,
                                       tandem_plan **out_plan, struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "plan", error));
    TND_REQUIRE(out_plan, "plan", error);
    TND_TRY(tnd_runtime_check_graph(graph, error));
    struct tnd_runtime_parts parts;
    tell_slow_nodes(runtime, graph);
    tune_on_first_use(runtime, graph);
    tnd_runtime_parts(runtime, &parts);
    tnd_quota_look(&runtime->quota, &runtime->log);
    int n_threads = tnd_runtime_graph_threads(runtime, graph);
    return tnd_observer_plan(runtime, &parts, graph, n_threads, out_plan, error);
}

enum tandem_status tandem_runtime_predict(tandem_runtime *runtime, const tandem_graph *graph,
                                          struct tandem_prediction *out, struct tandem_error *error)
{
    TND_TRY(tnd_runtime_check(runtime, "predict", error));
    TND_REQUIRE(out, "predict", error);
    TND_TRY(tnd_runtime_check_graph(graph, error));
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    return tnd_observer_predict(runtime, &parts, graph, tnd_runtime_graph_threads(runtime, graph),
                                out, error);
}

enum tandem_status tandem_runtime_print_plan(const tandem_runtime *runtime,
                                             const tandem_graph *graph, const tandem_plan *plan,
                                             tandem_write_fn write, void *user)
{
    TND_TRY(tnd_runtime_check(runtime, "print_plan", NULL));
    TND_REQUIRE(graph, "print_plan", NULL);
    TND_REQUIRE(plan, "print_plan", NULL);
    TND_REQUIRE(write, "print_plan", NULL);
    return tnd_print_plan(runtime->registry, runtime->pool, graph, plan, write, user);
}

/* ---- facts ---- */

int tandem_runtime_profiles(const tandem_runtime *runtime, struct tandem_profile_info *out_profiles,
                            int n)
{
    if (runtime == NULL) {
        return 0;
    }
    const struct tnd_registry *registry = runtime->registry;
    int count = tnd_profile_count(registry);
    n = out_profiles != NULL ? n : 0;
    for (int i = 0; i < count && i < n; i++) {
        struct tandem_profile_info *info = &out_profiles[i];
        struct tnd_table_profile described;
        memset(info, 0, sizeof(*info));
        snprintf(info->name, sizeof(info->name), "%s", tnd_profile_at(registry, i)->name);
        snprintf(info->what, sizeof(info->what), "%s", tnd_profile_at(registry, i)->what);
        info->available = (tnd_profile_describe(registry, i, TANDEM_TYPE_Q4_0, &described) ||
                           tnd_profile_describe(registry, i, TANDEM_TYPE_BF16, &described)) &&
                          tnd_profile_resolve(&described, registry, info->stage, info->reason,
                                              sizeof(info->reason));
    }
    return count;
}

enum tandem_status tandem_runtime_describe(const tandem_runtime *runtime,
                                           struct tandem_runtime_info *out_info)
{
    tandem_runtime *unlocked = (tandem_runtime *)runtime; /* the mutex is no part of the value */
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    TND_TRY(tnd_runtime_check(runtime, "describe", NULL));
    info.cpu = tnd_cpu_model();
    info.isa = tnd_cpu_isa_name(tnd_cpu_used(tnd_cpu_features()));
    info.topology = runtime->topology.text;
    pthread_mutex_lock(&unlocked->lock);
    info.table = runtime->is_from_file ? runtime->table_path : "";
    pthread_mutex_unlock(&unlocked->lock);
    info.n_threads = tandem_runtime_threads(runtime);
    info.n_cores = runtime->topology.n_cores;
    tnd_exec_drop_orphans(unlocked->exec);
    for (int slot = TANDEM_BACKEND_CPU; slot < tnd_registry_count(runtime->registry); slot++) {
        tandem_backend *backend = tnd_registry_backend(runtime->registry, slot);
        info.prepared_bytes += tnd_backend_prepared_bytes(backend);
        info.n_devices += tnd_kind_is_device(tnd_backend_kind(backend));
    }
    return tnd_results_write(&info, sizeof(info), "tandem_runtime_info", out_info, NULL);
}

bool tandem_runtime_report(const tandem_runtime *runtime, int i, char *out, size_t capacity)
{
    if (runtime == NULL || out == NULL || capacity == 0) {
        return false;
    }
    for (int slot = TANDEM_BACKEND_CPU; slot < tnd_registry_count(runtime->registry); slot++) {
        tandem_backend *backend = tnd_registry_backend(runtime->registry, slot);
        if (tnd_backend_report(backend, out, capacity) > 0 && i-- == 0) {
            return true;
        }
    }
    return false;
}

const struct tandem_table *tnd_runtime_locked_table(const tandem_runtime *runtime)
{
    return runtime->corrected != NULL ? runtime->corrected : runtime->table;
}

enum tandem_status tnd_runtime_copy_table(tandem_runtime *runtime, tandem_table **out_table,
                                          struct tandem_error *error)
{
    tandem_table *copy = NULL;
    pthread_mutex_lock(&runtime->lock);
    const struct tandem_table *table = tnd_runtime_locked_table(runtime);
    enum tandem_status status = table != NULL ? tandem_table_copy(table, &copy, error) : TANDEM_OK;
    pthread_mutex_unlock(&runtime->lock);
    *out_table = copy;
    return status;
}

void tnd_runtime_parts(tandem_runtime *runtime, struct tnd_runtime_parts *out)
{
    TND_ASSERT(runtime->exec != NULL && runtime->planner != NULL); /* it is open */
    out->registry = runtime->registry;
    out->pool = runtime->pool;
    out->exec = runtime->exec;
    out->planner = runtime->planner;
    out->clock = runtime->clock;
    out->topology = &runtime->topology;
    pthread_mutex_lock(&runtime->lock);
    out->error_bound = runtime->error_bound;
    pthread_mutex_unlock(&runtime->lock);
    out->trace = runtime->trace;
    out->log = &runtime->log;
}

void tnd_runtime_forget_choices(tandem_runtime *runtime)
{
    pthread_mutex_lock(&runtime->lock);
    /* clears the planner's choices, with the same table */
    tnd_planner_set_table(runtime->planner, tnd_runtime_locked_table(runtime));
    pthread_mutex_unlock(&runtime->lock);
    tnd_arms_begin_round(&runtime->observer.arms);
}
