/* SPDX-License-Identifier: MIT
 * What is measured beside times: whether results are right, what backends lose beside each other,
 * whether the machine was itself. With backends whose work moves a virtual clock, and pretended
 * devices that compute wrong values. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "sched/pool.h"
#include "tests/support_tune.h"
#include "measure/bench.h"
#include "measure/measure_checks.h"
#include "measure/measure_moves.h"
#include "measure/measure_numbers.h"
#include "measure/measure_pairs.h"
#include "tune/kernel_numbers.h"
#include "tune/policy.h"
#include "measure/measure_reference.h"

static struct tnd_clock_virtual virtual_clock;
static struct tnd_registry *registry;
static struct tnd_pool *pool;
static struct tnd_exec *exec;
static struct tnd_measure_options options;
static tandem_table *table;

static void begin(void)
{
    struct tnd_registry_options registry_options = {"cpu", NULL, 4, {0}};
    struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    tnd_clock_virtual_init(&virtual_clock, 5000);
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, &virtual_clock.clock, &exec, NULL));
    options = (struct tnd_measure_options){.registry = registry,
                                           .exec = exec,
                                           .clock = &virtual_clock.clock,
                                           .rotate_bytes = 1,
                                           .limit_bytes = (size_t)64 << 20,
                                           .seed = tnd_test_seed()};
    table = tune_new();
}

static void end(void)
{
    tandem_table_free(table);
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_registry_close(registry);
}

/* ---- the gate ---- */

/* The pretended device under the name of the real one, so that its profiles apply. */
static struct tandem_backend_api opencl_api;

static void add_device(const char *settings)
{
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_add(registry, &opencl_api, settings, NULL));
}

static enum tnd_verdict gate(enum tandem_type type, const char *profile, double *out_nmse)
{
    struct tnd_check_options gate_options = {.measure = options, .n_threads = 2, .when = 77};
    struct tandem_error error = {0};
    check_status(tnd_measure_checks(&gate_options, type, table, &error), TANDEM_OK, NULL, &error);
    return tnd_table_check(table, profile, type, 0, out_nmse);
}

static void right_profiles_pass_the_gate_with_their_errors(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q4_0,
                                             TANDEM_TYPE_Q6_K};
    add_device(NULL);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        double nmse = -1;
        CU_ASSERT_EQUAL(gate(types[i], "cpu", &nmse), TND_VERDICT_RIGHT);
        CU_ASSERT_TRUE(nmse >= 0 && nmse <= tnd_check_bound(types[i]));
        CU_ASSERT_EQUAL(gate(types[i], "opencl", NULL), TND_VERDICT_RIGHT);
    }
    CU_ASSERT_TRUE(tnd_table_profile(table, "opencl") != NULL);
    for (int i = 0; i < table->n_checks; i++) {
        check_int(table->checks[i].when, 77);
    }
}

static void a_backend_that_computes_wrong_numbers_is_known_as_wrong(void)
{
    double nmse = 0;
    add_device("wrong=1");
    CU_ASSERT_EQUAL(gate(TANDEM_TYPE_Q4_0, "opencl", &nmse), TND_VERDICT_WRONG);
    CU_ASSERT_TRUE(nmse > tnd_check_bound(TANDEM_TYPE_Q4_0));
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, NULL), TND_VERDICT_RIGHT);
}

static void a_backend_that_fails_is_neither_right_nor_wrong(void)
{
    add_device("fail=any,fail_at=1");
    CU_ASSERT_EQUAL(gate(TANDEM_TYPE_Q4_0, "cpu", NULL), TND_VERDICT_RIGHT);
    CU_ASSERT_NOT_EQUAL(tnd_table_check(table, "opencl", TANDEM_TYPE_Q4_0, 0, NULL),
                        TND_VERDICT_WRONG);
}

static void one_wrong_value_and_none_at_all_are_errors(void)
{
    float want[200];
    float got[200];
    for (int i = 0; i < 200; i++) {
        want[i] = got[i] = 1.0f + (float)(i % 7);
    }
    CU_ASSERT_EQUAL(tnd_check_error(got, want, 2, 100), 0);
    got[150] += 3;
    CU_ASSERT_TRUE(tnd_check_error(got, want, 2, 100) > 10 * tnd_check_bound(TANDEM_TYPE_Q4_0) / 4);
    got[150] = NAN;
    CU_ASSERT_EQUAL(tnd_check_error(got, want, 2, 100), TND_CHECK_NOT_FINITE);
    got[150] = INFINITY;
    CU_ASSERT_EQUAL(tnd_check_error(got, want, 2, 100), TND_CHECK_NOT_FINITE);
}

static void nothing_is_checked_after_the_deadline(void)
{
    struct tnd_check_options gate_options = {.measure = options, .n_threads = 2, .deadline_ns = 1};
    check_ok(tnd_measure_checks(&gate_options, TANDEM_TYPE_Q4_0, table, NULL));
    check_int(table->n_checks, 0);
}

/* ---- the reference kernel ---- */

/* Every second question comes `us` later: one run of the kernel takes that long. */
struct scripted_clock {
    struct tnd_clock clock;
    const double *us;
    int n;
    uint64_t *now_ns;
    int *questions;
};

static uint64_t scripted_now_ns(const struct tnd_clock *clock)
{
    const struct scripted_clock *script = (const struct scripted_clock *)clock;
    int question = (*script->questions)++;
    if (question % 2 != 0) {
        *script->now_ns += (uint64_t)(1000 * script->us[question / 2 % script->n]);
    }
    return *script->now_ns;
}

static void the_reference_kernel_has_a_fastest_and_a_mean_time(void)
{
    static const double us[] = {130, 100, 130, 140, 130};
    uint64_t now_ns = 1;
    int questions = 0;
    struct scripted_clock clock = {{scripted_now_ns, NULL, NULL}, us, 5, &now_ns, &questions};
    struct tnd_reference_time time;
    tnd_reference_time(&clock.clock, &time);
    CU_ASSERT_DOUBLE_EQUAL(time.fastest_us, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(time.mean_us, 126, 1);
    tnd_reference_time(tnd_clock_real(), &time);
    CU_ASSERT_TRUE(time.fastest_us > 0 && time.mean_us >= time.fastest_us);
}

static void the_machines_state_is_said_in_words(void)
{
    static const struct {
        struct tnd_sweep_state sweep;
        const char *part;
    } cases[] = {
        {{1, {100, 101}, {0, 0}, {103, 110}}, ""},
        {{1, {0, 0}, {0, 0}, {0, 0}}, ""}, /* a clock that stands still */
        {{1, {100, 101}, {120, 122}, {131, 135}},
         "reference kernel 100 -> 120 -> 131 us; measure again"},
        {{1, {131, 135}, {0, 0}, {100, 101}}, "reference kernel 131 -> 100 us"},
        {{1, {100, 101}, {100, 180}, {101, 102}}, "took 1.8 times as long as its fastest run"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[160] = "before";
        bool is_unsteady = tnd_sweep_state_text(&cases[i].sweep, text, sizeof(text));
        CU_ASSERT_EQUAL(is_unsteady, cases[i].part[0] != '\0');
        if (cases[i].part[0] == '\0') {
            check_string(text, "");
        }
        check_contains(text, cases[i].part);
    }
    struct tnd_sweep_state sweep = {1, {100, 100}, {0, 0}, {100, 100}};
    const struct tnd_reference_time first = {130, 131};
    const struct tnd_reference_time second = {110, 150};
    tnd_sweep_state_between(&sweep, &first);
    tnd_sweep_state_between(&sweep, &second);
    CU_ASSERT_EQUAL(sweep.between.fastest_us, 130);
    CU_ASSERT_EQUAL(sweep.between.mean_us, 150);
}

/* ---- pairs ---- */

/* Two backends that compute nothing. Time passes in the main thread alone; while another thread
 * keeps one of them busy, the other takes longer. */
struct fake {
    struct tandem_backend_api api;
    int index;
    _Atomic bool fails;
};
static struct fake fakes[2];
static pthread_t main_thread;
static pthread_key_t in_background; /* set in a thread that computes; its end clears `busy` */
static _Atomic int busy;            /* the fake that works in the background; -1: none */

static const double alone_us[2] = {100, 200};
static const double beside_us[2] = {150, 220};

static void leave_background(void *value)
{
    (void)value;
    atomic_store(&busy, -1);
}

static enum tandem_status fake_open(const struct tandem_backend_options *backend_options,
                                    tandem_backend **out_backend, struct tandem_error *error)
{
    (void)backend_options;
    (void)error;
    *out_backend = calloc(1, sizeof(**out_backend));
    return TANDEM_OK;
}

static enum tandem_status open_first(const struct tandem_backend_options *backend_options,
                                     tandem_backend **out_backend, struct tandem_error *error)
{
    enum tandem_status status = fake_open(backend_options, out_backend, error);
    (*out_backend)->api = &fakes[0].api;
    return status;
}

static enum tandem_status open_second(const struct tandem_backend_options *backend_options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    enum tandem_status status = fake_open(backend_options, out_backend, error);
    (*out_backend)->api = &fakes[1].api;
    return status;
}

static void fake_close(tandem_backend *backend)
{
    free(backend);
}

static enum tandem_status fake_supports(tandem_backend *backend, const tandem_tensor *node,
                                        uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)task;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status fake_run(tandem_backend *backend, const struct tandem_work *work,
                                   struct tandem_worker *worker)
{
    const struct fake *fake = &fakes[strcmp(backend->api->name, fakes[0].api.name) == 0 ? 0 : 1];
    (void)work;
    (void)worker;
    if (atomic_load(&fake->fails)) {
        return TANDEM_E_DEVICE_LOST;
    }
    if (!pthread_equal(pthread_self(), main_thread)) {
        atomic_store(&busy, fake->index);
        pthread_setspecific(in_background, fake);
        return TANDEM_OK;
    }
    int other = atomic_load(&busy);
    double us = other >= 0 && other != fake->index ? beside_us[fake->index] : alone_us[fake->index];
    tnd_clock_virtual_advance(&virtual_clock, (uint64_t)(1000 * us));
    return TANDEM_OK;
}

static void begin_with_fakes(void)
{
    static const char *const names[2] = {"openblas", "opencl"};
    begin();
    main_thread = pthread_self();
    atomic_store(&busy, -1);
    CU_ASSERT_EQUAL(pthread_key_create(&in_background, leave_background), 0);
    for (int i = 0; i < 2; i++) {
        fakes[i].index = i;
        atomic_store(&fakes[i].fails, false);
        fakes[i].api = (struct tandem_backend_api){
            .abi = TANDEM_ABI,
            .size = sizeof(struct tandem_backend_api),
            .name = names[i],
            .kind = i == 0 ? TANDEM_KIND_OPENBLAS : TANDEM_KIND_OPENCL,
            .open = i == 0 ? open_first : open_second,
            .close = fake_close,
            .supports = fake_supports,
            .run = fake_run,
        };
        check_ok(tnd_registry_add(registry, &fakes[i].api, NULL, NULL));
    }
}

static void end_with_fakes(void)
{
    pthread_key_delete(in_background);
    end();
}

static enum tandem_status measure_pairs(void)
{
    struct tnd_pairs_options pairs = {.measure = options,
                                      .type = TANDEM_TYPE_Q4_0,
                                      .n = 32,
                                      .k = 64,
                                      .m = 2,
                                      .budget_s = 0.01,
                                      .when = 77};
    return tnd_measure_pairs(&pairs, table, NULL);
}

static void backends_that_slow_each_other_down_are_told_with_their_factors(void)
{
    begin_with_fakes();
    double factor = 0;
    check_ok(measure_pairs());
    /* Of the CPU nothing is known: by this clock its work takes no time. */
    check_int(table->n_slowdowns, 4);
    CU_ASSERT_TRUE(tnd_table_slowdown(table, "openblas", "opencl", &factor));
    CU_ASSERT_DOUBLE_EQUAL(factor, 1.5, 1e-9);
    CU_ASSERT_TRUE(tnd_table_slowdown(table, "opencl", "openblas", &factor));
    CU_ASSERT_DOUBLE_EQUAL(factor, 1.1, 1e-9);
    for (int i = 0; i < table->n_slowdowns; i++) {
        CU_ASSERT_TRUE(table->slowdowns[i].factor >= 1 && table->slowdowns[i].count > 0);
        check_int(table->slowdowns[i].when, 77);
    }
    end_with_fakes();
}

static void a_backend_that_fails_leaves_its_pairs_unknown(void)
{
    begin_with_fakes();
    double factor = 0;
    atomic_store(&fakes[1].fails, true);
    check_ok(measure_pairs());
    CU_ASSERT_TRUE(tnd_table_slowdown(table, "openblas", "cpu", &factor));
    CU_ASSERT_FALSE(tnd_table_slowdown(table, "openblas", "opencl", &factor));
    CU_ASSERT_FALSE(tnd_table_slowdown(table, "opencl", "cpu", &factor));
    end_with_fakes();
}

static void pairs_end_with_their_deadline(void)
{
    begin_with_fakes();
    struct tnd_pairs_options pairs = {
        .measure = options, .type = TANDEM_TYPE_Q4_0, .n = 32, .k = 64, .m = 2, .budget_s = 0.01};
    pairs.deadline_ns = virtual_clock.now_ns; /* at once, and after the first round */
    check_ok(tnd_measure_pairs(&pairs, table, NULL));
    check_int(table->n_slowdowns, 0);
    pairs.deadline_ns = virtual_clock.now_ns + 1;
    check_ok(tnd_measure_pairs(&pairs, table, NULL));
    check_int(table->n_slowdowns, 0);
    end_with_fakes();
}

/* Weights of 72 KiB take 74 us by the pretended device's link, and their product takes 5. */
static void weights_in_flight_are_told_with_what_they_take_longer(void)
{
    static const struct {
        double bytes_per_us; /* of the link, as the table has it */
        double least, most;  /* factor */
    } cases[] = {{1000, 1.0, 1.1}, {4000, 3.2, 3.8}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        add_device("memory=own,upload_gbps=1,gflops=100");
        int slot = tnd_registry_find(registry, "opencl", NULL);
        tnd_sim_set_clock(tnd_registry_backend(registry, slot), &virtual_clock.clock);
        tune_add_link(table, "opencl", 0, cases[i].bytes_per_us);
        struct tnd_pairs_options pairs = {.measure = options,
                                          .type = TANDEM_TYPE_Q4_0,
                                          .n = 256,
                                          .k = 512,
                                          .m = 2,
                                          .budget_s = 0.01,
                                          .when = 77};
        pairs.measure.rotate_bytes = 1 << 20;
        check_ok(tnd_measure_pairs(&pairs, table, NULL));
        double factor = 0;
        CU_ASSERT_TRUE(tnd_table_slowdown(table, "opencl", "opencl", &factor));
        if (!(factor >= cases[i].least && factor <= cases[i].most)) {
            CU_FAIL("factor");
            printf("  factor %g, expected %g to %g\n", factor, cases[i].least, cases[i].most);
        }
        end();
    }
}

static void one_backend_has_no_pairs(void)
{
    begin();
    check_ok(measure_pairs());
    check_int(table->n_slowdowns, 0);
    end();
}

/* ---- all of it in a sweep ---- */

static int64_t first_m; /* of the first visit that a sweep tells of */

static struct tnd_problem first_problem;
static int stops_after;    /* visits; 0: never */
static bool begins_with_m; /* and measures others, too */

static bool note_first(void *user, const struct tnd_bench_progress *progress)
{
    (void)user;
    first_problem = first_m == 0 ? progress->problem : first_problem;
    first_m = first_m == 0 ? progress->problem.m : first_m;
    return stops_after > 0 && progress->trials >= stops_after;
}

static bool stop_at_once(void *user)
{
    (void)user;
    return stops_after < 0;
}

static void sweep(const struct tandem_table *known, double budget_s)
{
    static const struct tnd_shapes shapes = {
        .model = "custom", .count = 1, .shape = {{32, 64}}, .use = {{1, false, TANDEM_TYPE_F32}}};
    struct tnd_bench_options bench = {.measure = options,
                                      .shapes = &shapes,
                                      .n_types = 1,
                                      .types = {TANDEM_TYPE_Q4_0},
                                      .n_m = 3,
                                      .m = {1, 4, 8},
                                      .n_thread_counts = 1,
                                      .thread_counts = {1},
                                      .budget_s = budget_s,
                                      .known = known,
                                      .is_adaptive = begins_with_m,
                                      .progress = note_first,
                                      .is_stopped = stop_at_once};
    struct tandem_error error = {0};
    first_m = 0;
    check_status(tnd_bench_run(&bench, table, NULL, &error),
                 stops_after != 0 ? TANDEM_E_CANCELLED : TANDEM_OK, NULL, &error);
}

static int64_t count_products(const struct tandem_table *of)
{
    int64_t n = 0;
    for (int i = 0; i < of->n_curves; i++) {
        n += strcmp(of->curves[i].key.op, "mul_mat") == 0 ? of->curves[i].n_samples : 0;
    }
    return n;
}

static void a_run_that_was_ended_goes_on(void)
{
    begin_with_fakes();
    tandem_table *whole = table;
    begins_with_m = true;
    stops_after = 3;
    sweep(NULL, 0);
    tandem_table *known = table;
    const int64_t n_before = count_products(known);
    const struct tnd_problem before = first_problem;
    CU_ASSERT_TRUE(n_before > 0);
    table = tune_new();
    stops_after = 1;
    sweep(known, 0);
    CU_ASSERT_TRUE(count_products(table) > n_before);
    CU_ASSERT_TRUE(first_problem.m != before.m || first_problem.threads != before.threads ||
                   strcmp(first_problem.profile, before.profile) != 0);
    for (int i = 0; i < known->n_curves; i++) { /* of yesterday */
        for (int s = 0; s < known->curves[i].n_samples; s++) {
            known->curves[i].samples[s].when -= TND_BENCH_RESUME_S + 60;
        }
    }
    tandem_table_free(table);
    table = tune_new();
    sweep(known, 0);
    CU_ASSERT_TRUE(count_products(table) <= n_before);
    CU_ASSERT_EQUAL(first_problem.m, before.m);
    check_string(first_problem.profile, before.profile);
    tandem_table_free(table);
    table = known;
    stops_after = 0;
    begins_with_m = false;
    CU_ASSERT_PTR_EQUAL(whole, known);
    end_with_fakes();
}

static void a_run_ends_before_its_first_trial_when_it_is_told_to(void)
{
    begin_with_fakes();
    stops_after = -1;
    sweep(NULL, 0);
    stops_after = 0;
    check_int(count_products(table), 0);
    end_with_fakes();
}

static void a_sweep_checks_results_and_looks_at_the_machine(void)
{
    begin_with_fakes();
    sweep(NULL, 0);
    /* Fakes compute nothing: what they leave behind is wrong. */
    CU_ASSERT_EQUAL(tnd_table_check(table, "cpu", TANDEM_TYPE_Q4_0, 0, NULL), TND_VERDICT_RIGHT);
    CU_ASSERT_EQUAL(tnd_table_check(table, "opencl", TANDEM_TYPE_Q4_0, 0, NULL), TND_VERDICT_WRONG);
    check_int(table->n_sweeps, 1);
    check_int(table->sweeps[0].when, table->checks[0].when);
    end_with_fakes();
}

static void a_sweep_too_short_to_check_measures_times_alone(void)
{
    begin_with_fakes();
    sweep(NULL, 0.5);
    CU_ASSERT_TRUE(table->n_curves > 0);
    check_int(table->n_checks + table->n_sweeps + table->n_slowdowns, 0);
    end_with_fakes();
}

static void a_sweep_begins_with_stale_cells(void)
{
    begin_with_fakes();
    tandem_table *known = tune_new();
    struct tnd_curve_key key = tune_key(32, 64, TANDEM_TASK_NODE, false, 1);
    strcpy(key.backend, "opencl");
    for (int m = 1; m <= 8; m++) {
        tune_add(known, &key, m, 5);
    }
    tnd_table_mark_stale(known, &key, 7);
    sweep(known, 0);
    check_int(first_m, 7);
    const struct tnd_curve *curve = tnd_table_find(table, &key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
    tnd_table_supersede(table, known);
    check_ok(tandem_table_merge(known, table, NULL));
    check_int(tune_count_stale(known), 0);
    CU_ASSERT_EQUAL(tnd_table_find(known, &key)->samples[6].median_us, 200);
    tandem_table_free(known);
    end_with_fakes();
}

/* Rotating through memory is what the others do; here all weights fit into any cache. */
static void weights_that_stay_in_the_cache_are_measured_warm_too(void)
{
    begin_with_fakes();
    int n_warm = 0;
    options.rotate_bytes = 0;
    sweep(NULL, 0);
    for (int i = 0; i < table->n_curves; i++) {
        n_warm += table->curves[i].key.warm;
    }
    CU_ASSERT_TRUE(n_warm > 0 && n_warm < table->n_curves);
    end_with_fakes();
}

static CU_TestInfo gate_tests[] = {
    {"right_profiles_pass_the_gate_with_their_errors",
     right_profiles_pass_the_gate_with_their_errors},
    {"a_backend_that_computes_wrong_numbers_is_known_as_wrong",
     a_backend_that_computes_wrong_numbers_is_known_as_wrong},
    {"a_backend_that_fails_is_neither_right_nor_wrong",
     a_backend_that_fails_is_neither_right_nor_wrong},
    {"one_wrong_value_and_none_at_all_are_errors", one_wrong_value_and_none_at_all_are_errors},
    {"nothing_is_checked_after_the_deadline", nothing_is_checked_after_the_deadline},
    CU_TEST_INFO_NULL,
};

/* Whoever opens a device with such a table launches in graphs where they lead by more than 2 % and
 * by three standard errors. */
static void check_launches_serve(struct tnd_registry *opened, tandem_table *launches)
{
    static const struct {
        double us, spread_us;
        const char *numbers;
    } rows[] = {{2.99, 0, "graphs=0"}, {2.5, 2, "graphs=0"}, {2.5, 0.01, "graphs=1"}};
    tandem_backend *device = tnd_registry_backend(opened, tnd_registry_find(opened, "cuda", NULL));
    char numbers[TND_NUMBERS_MAX];
    check_ok(tnd_tuner_of(device)->use(device, "graphs=0", NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        launches->kernel_times[0].median_us = 3;
        launches->kernel_times[0].spread_us = 0.01;
        launches->kernel_times[1].median_us = rows[i].us;
        launches->kernel_times[1].spread_us = rows[i].spread_us;
        tnd_kernel_numbers_use(launches, opened, NULL);
        CU_ASSERT_TRUE(tnd_tuner_of(device)->present(device, "graphs", numbers));
        check_string(numbers, rows[i].numbers);
    }
}

/* By the stand-in for CUDA. */
static void the_cost_of_launches_is_kept_in_tables(void)
{
    char settings[1200];
    struct tnd_registry *opened = NULL;
    tandem_table *launches = NULL;
    struct tandem_error error = {0};
    snprintf(settings, sizeof(settings), "cuda:cache=off,device=0,library=%s",
             tnd_test_beside("fake_cuda/libcuda.so.1"));
    const struct tnd_registry_options wanted = {"cuda", settings, 1, {0}};
    if (tnd_registry_open(&wanted, &opened, NULL) != TANDEM_OK ||
        tnd_registry_find(opened, "cuda", NULL) < 1) {
        tnd_skip("optional part not built: stand-ins for CUDA, or no c++");
        tnd_registry_close(opened);
        return;
    }
    check_ok(tandem_table_new(&launches, NULL));
    check_status(tnd_measure_launches(opened, TANDEM_BACKEND_CPU, 7, launches, &error), TANDEM_OK,
                 NULL, &error);
    check_int(launches->n_kernel_times, 0); /* the CPU launches nothing */
    check_status(
        tnd_measure_launches(opened, tnd_registry_find(opened, "cuda", NULL), 7, launches, &error),
        TANDEM_OK, NULL, &error);
    if (check_int(launches->n_kernel_times, 2)) {
        for (int i = 0; i < 2; i++) {
            const struct tnd_kernel_time *one = &launches->kernel_times[i];
            check_string(one->backend, "cuda");
            CU_ASSERT_TRUE(tnd_is_launch_time(one));
            check_string(one->numbers, i == 0 ? "graphs=0" : "graphs=1");
            CU_ASSERT(one->median_us > 0 && one->count > 1 && one->when == 7);
        }
        check_launches_serve(opened, launches);
    }
    tandem_table_free(launches);
    tnd_registry_close(opened);
}

static CU_TestInfo other_tests[] = {
    {"the_reference_kernel_has_a_fastest_and_a_mean_time",
     the_reference_kernel_has_a_fastest_and_a_mean_time},
    {"the_machines_state_is_said_in_words", the_machines_state_is_said_in_words},
    {"backends_that_slow_each_other_down_are_told_with_their_factors",
     backends_that_slow_each_other_down_are_told_with_their_factors},
    {"a_backend_that_fails_leaves_its_pairs_unknown",
     a_backend_that_fails_leaves_its_pairs_unknown},
    {"pairs_end_with_their_deadline", pairs_end_with_their_deadline},
    {"weights_in_flight_are_told_with_what_they_take_longer",
     weights_in_flight_are_told_with_what_they_take_longer},
    {"one_backend_has_no_pairs", one_backend_has_no_pairs},
    {"the_cost_of_launches_is_kept_in_tables", the_cost_of_launches_is_kept_in_tables},
    {"a_sweep_checks_results_and_looks_at_the_machine",
     a_sweep_checks_results_and_looks_at_the_machine},
    {"a_sweep_too_short_to_check_measures_times_alone",
     a_sweep_too_short_to_check_measures_times_alone},
    {"a_run_that_was_ended_goes_on", a_run_that_was_ended_goes_on},
    {"a_run_ends_before_its_first_trial_when_it_is_told_to",
     a_run_ends_before_its_first_trial_when_it_is_told_to},
    {"a_sweep_begins_with_stale_cells", a_sweep_begins_with_stale_cells},
    {"weights_that_stay_in_the_cache_are_measured_warm_too",
     weights_that_stay_in_the_cache_are_measured_warm_too},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_measure_checks[] = {
    {"gate", NULL, NULL, begin, end, gate_tests},
    {"beside times", NULL, NULL, NULL, NULL, other_tests},
    CU_SUITE_INFO_NULL,
};
