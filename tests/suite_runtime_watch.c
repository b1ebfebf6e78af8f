/* SPDX-License-Identifier: MIT
 * What a runtime notices while it runs: times that the table has wrong, and a control group that
 * grants fewer CPUs. With made-up times, files and a clock that tests move. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cpu.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"
#include "tests/support_tune.h"
#include "tests/support.h"
#include "tune/policy.h"
#include "tune/profiles.h"

enum { N = 512, K = 256, M = 4, NODES = 6 };

static tandem_runtime *runtime;
static tandem_context *context;
static tandem_table *table;
static tandem_graph *graph;
static char log_text[1024];
static int log_lines;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    snprintf(log_text, sizeof(log_text), "%s", text);
    log_lines++;
}

static void say_quiet(double *out_caller, double *out_team)
{
    *out_caller = *out_team = 1.0;
}

static void open_with(int n_threads, bool ignore_drift)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = n_threads;
    options.table_path = "";
    options.backends = "cpu";
    options.log = remember_line;
    options.ignore_drift = ignore_drift;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tnd_runtime_set_probe(runtime, say_quiet);
    log_lines = 0;
}

static void set_up(void)
{
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tandem_table_new(&table, NULL));
    graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, M});
    for (int i = 0; i < NODES; i++) {
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    }
    check_ok(tandem_graph_finish(graph, NULL));
}

static void tear_down(void)
{
    tandem_runtime_close(runtime);
    runtime = NULL;
    tandem_table_free(table);
    tandem_context_free(context);
}

/* On one thread, at M. */
static void add_cell(const char *profile, double us)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        struct tnd_curve_key key = {.type = TANDEM_TYPE_Q4_0, .n = N, .k = K, .threads = 1};
        struct tnd_sample sample = {.m = M, .spread_us = 0.1, .count = 9, .when = 1};
        strcpy(key.op, "mul_mat");
        strcpy(key.backend, stage->backend);
        key.stage = (uint8_t)s;
        key.task = stage->task;
        key.parallel = stage->parallel;
        sample.median_us = s == TANDEM_STAGE_COMPUTE ? us : 5.0;
        if (stage->backend[0] != '\0') {
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

static uint64_t packed_us = 1000;

/* A run whose packed products take that long and others 500 us. */
static bool pretend_run(const tandem_plan *plan)
{
    int n = 0;
    int capacity = 0;
    bool sync_each;
    struct tnd_step_time *times = tnd_observer_begin(runtime, plan, &capacity, &sync_each);
    if (times == NULL) {
        return false;
    }
    for (int i = 0; i < plan->n_nodes; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const struct tandem_task_config *config = &plan->nodes[i].stage[s];
            if (config->backend == TANDEM_BACKEND_NONE || n == capacity) {
                continue;
            }
            uint64_t us = config->task == TANDEM_TASK_MUL_MAT_PACKED ? packed_us
                          : s == TANDEM_STAGE_COMPUTE                ? 500
                                                                     : 5;
            memset(&times[n], 0, sizeof(times[n]));
            times[n].node = i;
            times[n].stage = (uint8_t)s;
            times[n].backend = config->backend;
            times[n++].end_ns = us * 1000;
        }
    }
    tnd_observer_end(runtime, graph, plan, times, n, 0, false);
    tnd_observer_add_computed(runtime, 1000000000000); /* it pays for the next comparison */
    return true;
}

/* The number of runs of which the last one was planned otherwise; 0: none was, in so many. */
static int run_until_planned_anew(int most)
{
    char first[32] = "";
    for (int i = 1; i <= most; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        if (i == 1) {
            memcpy(first, plan->nodes[0].profile, sizeof(first));
        }
        bool is_other = strcmp(plan->nodes[0].profile, first) != 0;
        (void)pretend_run(plan);
        tandem_plan_free(plan);
        if (is_other) {
            return i;
        }
    }
    return 0;
}

static void a_wrong_cell_is_told_once_and_planned_around_within_twenty_graphs(void)
{
    struct tandem_drift_info drift[4];
    open_with(1, false);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(tandem_runtime_drift(runtime, drift, 4), 0);
    int at = run_until_planned_anew(20);
    CU_ASSERT_TRUE(at > 3 && at <= 20);
    check_int(tandem_runtime_drift(runtime, drift, 4), 1);
    check_string(drift[0].what,
                 "mul_mat:q4_0:n512:k256:m4 compute mul_mat_packed on cpu, threads 1");
    CU_ASSERT_DOUBLE_EQUAL(drift[0].predicted_us, 100, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(drift[0].measured_us, 1000, 0.1);
    check_int(log_lines, 1);
    check_contains(log_text, "10.00 times as long");
    check_int(run_until_planned_anew(100), 0);
    check_int(log_lines, 1);
}

struct planner {
    pthread_t thread;
    atomic_bool is_over;
    int n_failed;
};

static void *plan_until_over(void *argument)
{
    struct planner *planner = argument;
    while (!atomic_load(&planner->is_over)) {
        tandem_plan *plan = NULL;
        planner->n_failed += tandem_runtime_plan(runtime, graph, &plan, NULL) != TANDEM_OK;
        tandem_plan_free(plan);
    }
    return NULL;
}

/* Every plan looks into the table whether there is something to measure (there is not), while runs
 * of another thread correct the table and the program replaces it. For the thread sanitizer. */
static void plans_of_a_first_use_may_be_made_while_drift_replaces_the_table(void)
{
    struct planner planner = {.n_failed = 0};
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.backends = "cpu";
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    setenv("TANDEM_TUNE", "on-first-use", 1);
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    unsetenv("TANDEM_TUNE");
    tnd_runtime_set_probe(runtime, say_quiet);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    atomic_init(&planner.is_over, false);
    CU_ASSERT_EQUAL(pthread_create(&planner.thread, NULL, plan_until_over, &planner), 0);
    int rounds = tnd_effort() > 2 ? 2000 : 100;
    int corrected = 0;
    for (int i = 0; i < rounds; i++) {
        corrected += run_until_planned_anew(20) > 0;
        check_ok(tandem_runtime_set_table(runtime, table, NULL));
    }
    atomic_store(&planner.is_over, true);
    pthread_join(planner.thread, NULL);
    check_int(corrected, rounds);
    check_int(planner.n_failed, 0);
}

static void what_was_found_is_marked_in_a_file_when_the_program_asks(void)
{
#ifdef TND_HAVE_CJSON
    const char *path = tnd_test_temp("drift.json");
    tandem_table *read = NULL;
    open_with(1, false);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_JSON, NULL));
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_ok(tandem_runtime_save_drift(runtime, path, NULL)); /* nothing yet */
    check_ok(tandem_table_load(path, &read, NULL));
    check_int(tune_count_stale(read), 0);
    tandem_table_free(read);
    CU_ASSERT_TRUE(run_until_planned_anew(20) > 0);
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_ok(tandem_table_load(path, &read, NULL));
    check_int(tune_count_stale(read), 1);
    tandem_table_free(read);
    /* another table begins anew */
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(tandem_runtime_drift(runtime, NULL, 0), 0);
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

/* The library writes without being watched: what it cannot read it must not replace. */
static void a_file_that_is_no_table_outlives_the_marks_of_drift(void)
{
#ifdef TND_HAVE_CJSON
    static const char newer[] = "{\"version\": 3, \"curves\": []}";
    char aside[600];
    tandem_table *read = NULL;
    open_with(1, false);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    CU_ASSERT_TRUE(run_until_planned_anew(20) > 0);
    const char *path = tnd_test_temp("newer.json");
    CU_ASSERT_TRUE(tnd_test_write_file(path, newer, strlen(newer)));
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_contains(log_text, "newer.json.bad-");
    const char *name = strstr(log_text, "newer.json.bad-");
    snprintf(aside, sizeof(aside), "%.*snewer.json.%.12s", (int)(strrchr(path, '/') - path + 1),
             path, name != NULL ? name + strlen("newer.json.") : "");
    size_t n = 0;
    char *kept = tnd_test_read_file(aside, &n);
    check_string(kept, newer);
    free(kept);
    check_ok(tandem_table_load(path, &read, NULL));
    check_int(tune_count_stale(read), 1);
    tandem_table_free(read);
    int lines = log_lines;
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_int(log_lines, lines); /* told once */
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static double pretended; /* what the probe says */

static void say_pretended(double *out_caller, double *out_team)
{
    *out_caller = *out_team = pretended;
}

static void nothing_is_blamed_while_the_probe_is_slowed_too(void)
{
    open_with(1, false);
    tnd_runtime_set_probe(runtime, say_pretended);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    pretended = 1.5;
    check_int(run_until_planned_anew(100), 0);
    check_int(tandem_runtime_drift(runtime, NULL, 0), 0);
    pretended = 1.0;
    CU_ASSERT_TRUE(run_until_planned_anew(22) > 0);
}

static void a_case_that_is_withdrawn_is_told_once(void)
{
    tandem_plan *plan = NULL;
    open_with(1, false);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    packed_us = 1000;
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL)); /* the program keeps it */
    for (int i = 0; i < 18; i++) {
        (void)pretend_run(plan);
    }
    check_int(tandem_runtime_drift(runtime, NULL, 0), 1);
    check_int(log_lines, 1);
    packed_us = 100;
    for (int i = 0; i < 60; i++) {
        (void)pretend_run(plan);
    }
    packed_us = 1000;
    check_int(tandem_runtime_drift(runtime, NULL, 0), 0);
    check_int(log_lines, 2);
    check_contains(log_text, "mul_mat_packed on cpu, threads 1: that it takes 1000.0 us, not "
                             "100.0 us, is withdrawn");
    tandem_plan_free(plan);
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_string(plan->nodes[0].profile, "cpu-packed");
    tandem_plan_free(plan);
}

/* With the real probe, on whatever machine. */
static void watching_costs_its_share_and_no_more(void)
{
    open_with(1, false);
    tnd_runtime_set_probe(runtime, NULL);
    add_cell("cpu", 500);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    const struct tnd_observer *watch = &runtime->observer;
    uint64_t most_ns = 0; /* of one comparison */
    for (int i = 0; i < 600; i++) {
        uint64_t before_ns = watch->spent_ns;
        check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
        most_ns = watch->spent_ns - before_ns > most_ns ? watch->spent_ns - before_ns : most_ns;
    }
    double share_ns = TND_DRIFT_COST * (double)atomic_load(&watch->computed_ns);
    CU_ASSERT_TRUE(watch->spent_ns > 0);
    CU_ASSERT_TRUE((double)watch->spent_ns <= share_ns + (double)most_ns);
}

static void who_ignores_drift_is_left_alone(void)
{
    open_with(1, true);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(run_until_planned_anew(100), 0);
    check_int(tandem_runtime_drift(runtime, NULL, 0), 0);
    CU_ASSERT_EQUAL(runtime->observer.spent_ns, 0); /* no probe either */
    check_ok(tandem_runtime_save_drift(runtime, tnd_test_temp("none.json"), NULL));
}

static void real_computations_are_watched_too(void)
{
    struct tandem_drift_info drift;
    open_with(1, false);
    add_cell("cpu", 1e7); /* ten seconds: no machine is that slow */
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    for (int i = 0; i < 100000 && tandem_runtime_drift(runtime, &drift, 1) == 0; i++) {
        check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    }
    CU_ASSERT_TRUE(tandem_runtime_drift(runtime, &drift, 1) >= 1);
    check_contains(drift.what, "mul_mat:q4_0:n512:k256:m4");
    CU_ASSERT_TRUE(drift.measured_us < drift.predicted_us);
}

static void a_runtime_aims_at_energy_where_its_table_has_joules(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error;
    tandem_plan *plan = NULL;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    options.log = remember_line;
    options.objective = (enum tandem_objective)3;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ARGUMENT, "objective",
                 &error);
    options.objective = TANDEM_OBJECTIVE_ENERGY;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    add_cell("cpu", 500);
    add_cell("cpu-packed", 300);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_contains(log_text, "objective energy: the table has no joules");
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_string(plan->nodes[0].profile, "cpu-packed");
    tandem_plan_free(plan);
    for (int i = 0; i < table->n_curves; i++) {
        struct tnd_curve *curve = &table->curves[i];
        bool is_packed = curve->key.task == TANDEM_TASK_MUL_MAT_PACKED;
        curve->samples[0].joules = curve->samples[0].median_us * (is_packed ? 90e-6 : 10e-6);
    }
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    check_string(plan->nodes[0].profile, "cpu");
    tandem_plan_free(plan);
}

static void an_error_bound_is_kept_by_the_runtime(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error;
    options.error_bound = -1;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ARGUMENT, "error bound",
                 &error);
    open_with(1, false);
    add_cell("cpu", 500);
    add_cell("cpu-packed", 100);
    struct tnd_check check = {.profile = "cpu",
                              .type = TANDEM_TYPE_Q4_0,
                              .m = 1,
                              .n = N,
                              .k = K,
                              .nmse = 1e-6,
                              .bound = 1e-3,
                              .when = 1};
    check_ok(tnd_table_add_check(table, &check));
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(tandem_runtime_set_error_bound(runtime, -1), TANDEM_E_ARGUMENT);
    for (int bound = 0; bound < 2; bound++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_set_error_bound(runtime, bound == 1 ? 1e-4 : 0));
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_string(plan->nodes[0].profile, bound == 1 ? "cpu" : "cpu-packed");
        tandem_plan_free(plan);
    }
}

/* Without a table nobody knows the error: then a bound keeps activations as they are. */
static void bf16_weights_meet_rounded_activations_unless_there_is_a_bound(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_context *own = NULL;
    options.table_path = "";
    options.n_threads = 1;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_ok(tandem_context_new(NULL, &own, NULL));
    tandem_tensor *w = tandem_tensor_new_2d(own, TANDEM_TYPE_BF16, 64, 32);
    tandem_tensor *x = tandem_tensor_new_2d(own, TANDEM_TYPE_F32, 64, 3);
    tandem_graph *g = tandem_graph_new(own);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph_add(g, tandem_mul_mat(own, w, x));
    check_ok(tandem_graph_finish(g, NULL));
    const bool has_pairs = strncmp(tnd_cpu_id(), "AuthenticAMD", 12) == 0 &&
                           tandem_runtime_force_profile(runtime, "cpu-bf16", NULL) == TANDEM_OK;
    check_ok(tandem_runtime_force_profile(runtime, NULL, NULL));
    for (int bound = 0; bound < 2; bound++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_set_error_bound(runtime, bound == 1 ? 1e-4 : 0));
        check_ok(tandem_runtime_plan(runtime, g, &plan, NULL));
        check_int(strcmp(plan->nodes[0].profile, "cpu-bf16") == 0, has_pairs && bound == 0);
        tandem_plan_free(plan);
    }
    tandem_runtime_close(runtime);
    runtime = NULL;
    tandem_context_free(own);
}

/* ---- control groups ---- */

static char group_root[512];
static char group_self[600];

static void grant(const char *text)
{
    char path[600];
    snprintf(path, sizeof(path), "%s.max", group_root);
    CU_ASSERT_TRUE(tnd_test_write_file(path, text, strlen(text)));
}

static int planned_threads(void)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    int threads = tandem_plan_threads(plan);
    tandem_plan_free(plan);
    return threads;
}

static void a_quota_that_is_halved_leads_to_plans_with_fewer_threads(void)
{
    struct tnd_clock_virtual clock;
    tnd_clock_virtual_init(&clock, 77);
    /* "<folder>/cpu" as the mount: its file is cpu.max */
    snprintf(group_root, sizeof(group_root), "%s", tnd_test_temp("cpu"));
    snprintf(group_self, sizeof(group_self), "%s", tnd_test_temp("self"));
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", group_root);
    *strrchr(folder, '/') = '\0';
    CU_ASSERT_TRUE(tnd_test_write_file(group_self, "0::/\n", 5));
    grant("400000 100000\n");
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4 * N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 8});
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x)); /* worth sharing by the rule */
    check_ok(tandem_graph_finish(graph, NULL));
    open_with(4, false);
    tnd_runtime_set_quota_files(runtime, folder, group_self, &clock.clock);
    check_int(planned_threads(), 4);
    grant("200000 100000\n");
    check_int(planned_threads(), 4); /* not looked at again yet */
    tnd_clock_virtual_advance(&clock, UINT64_C(1500000000));
    check_int(planned_threads(), 2);
    check_int(tandem_runtime_threads(runtime), 2);
    check_contains(log_text, "grants 2.00 CPUs now");
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    grant("50000 100000\n");
    tnd_clock_virtual_advance(&clock, UINT64_C(1500000000));
    check_int(planned_threads(), 1);
    grant("max 100000\n");
    tnd_clock_virtual_advance(&clock, UINT64_C(1500000000));
    check_int(planned_threads(), 4);
    check_int(log_lines, 3);
}

static void keep_busy(int ticks)
{
    char text[256];
    const int n = snprintf(text, sizeof(text),
                           "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 %d 7 0 5 0 0 0 0 0 0\n"
                           "cpu1 0 9999 0 5 0 0 0 %d 0 0\ncpu2 99999 0 0 0 0 0 0 0 0 0\n",
                           ticks, ticks);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("stat"), text, (size_t)n));
}

/* CPU 2 is not ours, and who is niced gives way. */
static void other_programs_leave_room_for_fewer_threads(void)
{
    struct tnd_topology topology = {.n_cpus = 2, .cpu_ids = {0, 1}};
    struct tnd_clock_virtual clock;
    struct tnd_quota quota;
    const int ticks = (int)sysconf(_SC_CLK_TCK); /* in a second */
    tnd_clock_virtual_init(&clock, 77);
    keep_busy(0);
    tnd_quota_init(&quota, 0, &topology, &clock.clock);
    quota.stat = tnd_test_temp("stat");
    quota.busy_ticks = tnd_quota_busy(quota.stat, &topology, &quota.busy_cpus);
    check_int(quota.busy_ticks, 0);
    check_int(quota.busy_cpus, 2);
    if (sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 0) {
        static const struct {
            int more, left; /* ticks for each 100 of both CPUs; threads */
        } seconds[] = {{0, 0},
                       {90, 1},
                       {100, 1},
                       {10, 0},
                       {50, 1},
                       {0, 0},
                       /* half a CPU, a little more, a little less: nothing changes */
                       {28, 0},
                       {22, 0},
                       {28, 0},
                       {40, 1},
                       {28, 1},
                       {22, 1},
                       {10, 0}};
        int busy = 0;
        for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
            keep_busy(busy += seconds[i].more * ticks / 100 * 10);
            tnd_clock_virtual_advance(&clock, UINT64_C(10000000000)); /* our own time is nothing */
            tnd_quota_look(&quota, NULL);
            check_int(tnd_quota_limit(&quota, false), seconds[i].left);
        }
        keep_busy(busy += 100 * ticks);
        tnd_clock_virtual_advance(&clock, UINT64_C(10000000000));
        tnd_quota_look(&quota, NULL);
        check_int(tnd_quota_limit(&quota, false), 1);
        check_int(tnd_quota_limit(&quota, true), 0);
        tnd_clock_virtual_advance(&clock, UINT64_C(300000000)); /* sooner: that was 10 s ago */
        tnd_quota_look(&quota, NULL);
        check_int(tnd_quota_limit(&quota, false), 0);
        keep_busy(busy += ticks);
        tnd_clock_virtual_advance(&clock, UINT64_C(900000000)); /* too early */
        tnd_quota_look(&quota, NULL);
        check_int(tnd_quota_limit(&quota, false), 0);
        tnd_clock_virtual_advance(&clock, UINT64_C(200000000));
        tnd_quota_look(&quota, NULL);
        check_int(tnd_quota_limit(&quota, false), 1);
    }
    quota.busy_cpus = 1; /* the other one has just come online: what it did before is not new */
    tnd_clock_virtual_advance(&clock, UINT64_C(10000000000));
    keep_busy(1000000);
    tnd_quota_look(&quota, NULL);
    check_int(tnd_quota_limit(&quota, false), 0);
    tnd_quota_ignore_others(&quota); /* the program names its threads */
    check_int(tnd_quota_limit(&quota, false), 0);
    quota.stat = tnd_test_temp("no-stat");
    check_int(tnd_quota_busy(quota.stat, &topology, &quota.busy_cpus), 0);
    check_int(quota.busy_cpus, 0);
}

static CU_TestInfo tests[] = {
    {"a_wrong_cell_is_told_once_and_planned_around_within_twenty_graphs",
     a_wrong_cell_is_told_once_and_planned_around_within_twenty_graphs},
    {"plans_of_a_first_use_may_be_made_while_drift_replaces_the_table",
     plans_of_a_first_use_may_be_made_while_drift_replaces_the_table},
    {"what_was_found_is_marked_in_a_file_when_the_program_asks",
     what_was_found_is_marked_in_a_file_when_the_program_asks},
    {"a_file_that_is_no_table_outlives_the_marks_of_drift",
     a_file_that_is_no_table_outlives_the_marks_of_drift},
    {"nothing_is_blamed_while_the_probe_is_slowed_too",
     nothing_is_blamed_while_the_probe_is_slowed_too},
    {"a_case_that_is_withdrawn_is_told_once", a_case_that_is_withdrawn_is_told_once},
    {"watching_costs_its_share_and_no_more", watching_costs_its_share_and_no_more},
    {"who_ignores_drift_is_left_alone", who_ignores_drift_is_left_alone},
    {"real_computations_are_watched_too", real_computations_are_watched_too},
    {"a_runtime_aims_at_energy_where_its_table_has_joules",
     a_runtime_aims_at_energy_where_its_table_has_joules},
    {"an_error_bound_is_kept_by_the_runtime", an_error_bound_is_kept_by_the_runtime},
    {"bf16_weights_meet_rounded_activations_unless_there_is_a_bound",
     bf16_weights_meet_rounded_activations_unless_there_is_a_bound},
    {"a_quota_that_is_halved_leads_to_plans_with_fewer_threads",
     a_quota_that_is_halved_leads_to_plans_with_fewer_threads},
    {"other_programs_leave_room_for_fewer_threads", other_programs_leave_room_for_fewer_threads},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_watch[];
CU_SuiteInfo suites_runtime_watch[] = {
    {"watch", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
