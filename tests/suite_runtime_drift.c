/* SPDX-License-Identifier: MIT
 * Drift with made-up times: what a graph takes is computed from the true costs and noise, what is
 * planned from a table in which something is wrong. No clock, no threads. */
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "runtime/observer_drift.h"
#include "sched/plan.h"
#include "tests/support_tune.h"
#include "tune/estimate.h"
#include "tune/planner.h"
#include "tune/policy.h"
#include "tune/profiles.h"

enum { K = 256, SHAPES = 4, MOST_TIMES = 64 };

static const int64_t rows[SHAPES] = {256, 512, 1024, 2048};
static struct tnd_registry *registry;
static struct tnd_planner *planner;
static struct tnd_drift *drift;
static tandem_context *context;
static tandem_table *table;     /* what was measured */
static tandem_table *corrected; /* what is planned by after a case; NULL: `table` */
static tandem_table *truth;
static tandem_graph *graph;
static struct tnd_test_rng rng;
static double crew_factor, single_factor; /* how slow the machine is now */
static struct tnd_drift_moment moment;    /* what the probe says of it */
static int n_given_back;
static bool is_changed; /* the table to plan by, by the last graph */

/* Each stage of a way takes us_per_row * n / threads on one and two threads, at any M. */
static void add_candidate(tandem_table *to, const char *profile, int64_t n, double us_per_row)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(to, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        for (int threads = 1; threads <= 2 && stage->backend[0] != '\0'; threads++) {
            struct tnd_curve_key key =
                tune_key(n, K, (enum tandem_task)stage->task, stage->parallel, threads);
            key.stage = (uint8_t)s;
            double us = s == TANDEM_STAGE_COMPUTE ? us_per_row * (double)n / threads : 10.0;
            for (int64_t m = 1; m <= 64; m *= 4) {
                struct tnd_sample sample = {
                    .m = m, .median_us = us, .spread_us = 0.01 * us, .count = 9, .when = 1};
                check_ok(tnd_table_add(to, &key, &sample));
            }
        }
    }
}

static void make_tables(tandem_table *to)
{
    for (int i = 0; i < SHAPES; i++) {
        add_candidate(to, "cpu", rows[i], 0.4);
        add_candidate(to, "cpu-packed", rows[i], 0.6);
    }
}

static void set_up(void)
{
    struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 8};
    check_ok(tnd_registry_open(&options, &registry, NULL));
    struct tnd_planner_options planner_options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&planner_options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    drift = tnd_drift_new();
    table = tune_new();
    truth = tune_new();
    make_tables(table);
    make_tables(truth);
    rng = tnd_test_rng_new(tnd_test_seed());
    crew_factor = single_factor = 1.0;
    moment = (struct tnd_drift_moment){.caller = 1, .team = 1};
    n_given_back = 0;
    graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4});
    for (int i = 0; i < 3 * SHAPES; i++) {
        tandem_tensor *w =
            tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, rows[i % SHAPES]});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    }
    check_ok(tandem_graph_finish(graph, NULL));
    tnd_planner_set_table(planner, table);
}

static void tear_down(void)
{
    tnd_planner_free(planner);
    tnd_drift_free(drift);
    tandem_table_free(table);
    tandem_table_free(corrected);
    corrected = NULL;
    tandem_table_free(truth);
    tandem_context_free(context);
    tnd_registry_close(registry);
}

/* Makes one cell of what is planned by `factor` times as long. */
static void spoil(int64_t n, enum tandem_task task, int threads, double factor)
{
    struct tnd_curve_key key = tune_key(n, K, task, true, threads);
    key.stage = TANDEM_STAGE_COMPUTE;
    struct tnd_curve *curve = (struct tnd_curve *)tnd_table_find(table, &key);
    for (int i = 0; i < curve->n_samples; i++) {
        curve->samples[i].median_us *= curve->samples[i].m == 4 ? factor : 1.0;
    }
    tnd_planner_set_table(planner, table);
}

static double true_us(const tandem_tensor *node, const struct tandem_plan_node *choice, int stage)
{
    const struct tandem_task_config *config = &choice->stage[stage];
    int threads = config->parallel ? choice->n_threads : 1;
    struct tnd_curve_key key =
        tune_key(node->src[0]->ne[1], K, (enum tandem_task)config->task, config->parallel, threads);
    key.stage = (uint8_t)stage;
    const struct tnd_curve *curve = tnd_table_find(truth, &key);
    CU_ASSERT_TRUE_FATAL(curve != NULL);
    return curve->samples[0].median_us * (threads > 1 ? crew_factor : single_factor);
}

/* Returns the number of cells found wrong. */
static int observe(const tandem_plan *plan, const struct tnd_step_time *times, int n)
{
    int found = 0;
    int n_events = tnd_drift_observe(drift, corrected != NULL ? corrected : table, registry, graph,
                                     plan, false, &moment, times, n);
    is_changed = n_events > 0;
    for (int i = 0; i < n_events; i++) {
        found += tnd_drift_event(drift, i)->news == TND_DRIFT_FOUND;
        n_given_back += tnd_drift_event(drift, i)->news == TND_DRIFT_GIVEN_BACK;
    }
    return found;
}

/* One graph by `plan` with `noise` (0.1: 10 %). */
static int run(const tandem_plan *plan, double noise)
{
    struct tnd_step_time times[MOST_TIMES];
    int n = 0;
    memset(times, 0, sizeof(times));
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int s = 0; s < TANDEM_STAGES && n < MOST_TIMES; s++) {
            const struct tandem_plan_node *choice = &plan->nodes[i];
            if (choice->stage[s].backend == TANDEM_BACKEND_NONE) {
                continue;
            }
            double us = true_us(graph->nodes[i], choice, s) *
                        (1.0 + noise * (double)tnd_test_rng_float(&rng));
            times[n] = (struct tnd_step_time){.node = i, .stage = (uint8_t)s, .backend = 1};
            times[n].begin_ns = 1000;
            times[n++].end_ns = 1000 + (uint64_t)(us * 1e3);
        }
    }
    return observe(plan, times, n);
}

static tandem_plan *plan_now(void)
{
    tandem_plan *plan = NULL;
    check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL));
    return plan;
}

/* Plans, runs and goes by what was found, as a runtime does. */
static int follow(int n_graphs, double noise)
{
    int found = 0;
    for (int i = 0; i < n_graphs; i++) {
        tandem_plan *plan = plan_now();
        found += run(plan, noise);
        if (is_changed) {
            tandem_table *now = NULL;
            check_ok(tnd_drift_correct(drift, table, &now, NULL));
            tnd_planner_set_table(planner, now);
            tandem_table_free(corrected);
            corrected = now;
        }
        tandem_plan_free(plan);
    }
    return found;
}

static void a_cell_ten_times_too_fast_is_found_and_given_up_for_good(void)
{
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    tandem_plan *plan = plan_now();
    check_string(plan->nodes[2].profile, "cpu-packed"); /* it fell for the cell */
    tandem_plan_free(plan);
    check_int(follow(6, 0.1), 1); /* every third graph is looked at: within 18 */
    const struct tnd_drift_case *one = tnd_drift_at(drift, 0);
    check_int(one->key.n, 1024);
    check_int(one->m, 4);
    check_int(one->key.threads, 2);
    CU_ASSERT_DOUBLE_EQUAL(one->measured_us, 0.6 * 1024 / 2, 40);
    CU_ASSERT_DOUBLE_EQUAL(one->predicted_us, 0.06 * 1024 / 2, 0.5);
    char what[160];
    tnd_drift_print(one, what, sizeof(what));
    check_string(what, "mul_mat:q4_0:n1024:k256:m4 compute mul_mat_packed on cpu, threads 2");
    for (int i = 0; i < 1000; i++) {
        check_int(follow(1, 0.1), 0);
        plan = plan_now();
        check_string(plan->nodes[2].profile, "cpu");
        tandem_plan_free(plan);
    }
}

static void an_old_plan_is_not_blamed_twice(void)
{
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    tandem_plan *plan = plan_now();
    int found = 0;
    for (int i = 0; i < 100; i++) {
        found += run(plan, 0.1);
    }
    check_int(found, 1);
    tandem_plan_free(plan);
}

static void noise_and_interruptions_are_no_drift(void)
{
    check_int(follow(1000, 0.1), 0);
    for (int i = 0; i < 200; i++) {
        single_factor = crew_factor = i % 4 == 0 ? 30.0 : 1.0;
        check_int(follow(1, 0.05), 0);
    }
}

static void a_machine_that_is_slow_as_a_whole_is_not_blamed_on_cells(void)
{
    check_int(follow(50, 0.1), 0);
    crew_factor = single_factor = 2.0;
    check_int(follow(200, 0.1), 0);
    single_factor = 1.0; /* another program slows crews alone */
    check_int(follow(200, 0.1), 0);
    crew_factor = 1.0;
    check_int(follow(200, 0.1), 0);
    /* a wrong cell is found meanwhile, too, at its own share */
    crew_factor = single_factor = 2.0;
    check_int(follow(50, 0.1), 0);
    spoil(512, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    check_int(follow(8, 0.1), 1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_drift_at(drift, 0)->measured_us, 0.6 * 512 / 2, 30);
}

static void a_cell_that_is_too_slow_is_found_when_it_runs(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        spoil(2048, TANDEM_TASK_MUL_MAT_PACKED, threads, 9);
        spoil(2048, TANDEM_TASK_MUL_MAT_Q, threads, 3);
    }
    check_int(follow(8, 0.1), 1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_drift_at(drift, 0)->measured_us, 0.4 * 2048 / 2, 60);
}

static void corrected_cells_are_marked_in_copies_alone(void)
{
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    tandem_table *original = NULL;
    tandem_table *stale = NULL;
    check_ok(tandem_table_copy(table, &original, NULL));
    check_int(follow(6, 0.1), 1);
    check_int(tune_count_stale(original), 0);
    check_int(tune_count_stale(corrected), 1);
    check_ok(tnd_drift_stale_cells(drift, original, &stale, NULL));
    check_int(tune_count_stale(stale), 1);
    check_ok(tandem_table_merge(original, stale, NULL));
    check_int(tune_count_stale(original), 1);
    /* the time in the file stays what was measured */
    const struct tnd_drift_case *one = tnd_drift_at(drift, 0);
    double us = 0;
    CU_ASSERT_TRUE(tnd_estimate_curve(tnd_table_find(original, &one->key), 4, &us));
    CU_ASSERT_DOUBLE_EQUAL(us, one->predicted_us, 1e-3);
    tandem_table_free(original);
    tandem_table_free(stale);
}

/* What they take depends on which experts the tokens choose, not on the machine alone. */
static void products_of_experts_are_compared_with_nothing(void)
{
    tandem_graph *before = graph;
    tandem_tensor *w =
        tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 3, (const int64_t[]){K, 256, 4});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (const int64_t[]){K, 1, 1});
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (const int64_t[]){2, 1});
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat_id(context, w, x, ids));
    check_ok(tandem_graph_finish(graph, NULL));
    for (int i = 0; i < 60; i++) {
        struct tnd_step_time times[TANDEM_STAGES];
        int n = 0;
        tandem_plan *plan = plan_now();
        check_int(plan->nodes[0].reason, TANDEM_REASON_TABLE);
        memset(times, 0, sizeof(times));
        for (int s = 0; s < TANDEM_STAGES; s++) {
            if (plan->nodes[0].stage[s].backend != TANDEM_BACKEND_NONE) {
                double us = 10 * (double)plan->nodes[0].predicted_us[s];
                times[n] = (struct tnd_step_time){.stage = (uint8_t)s, .backend = 1};
                times[n].begin_ns = 1000;
                times[n++].end_ns = 1000 + (uint64_t)(us * 1e3);
            }
        }
        CU_ASSERT_TRUE(n > 0);
        check_int(observe(plan, times, n), 0);
        tandem_plan_free(plan);
    }
    graph = before;
    check_int(follow(20, 0.05), 0);
}

static void shapes_that_were_not_measured_get_a_curve_of_their_own(void)
{
    struct tnd_drift_case one;
    struct tnd_estimate before, after;
    struct tnd_table_profile cpu;
    /* 768 rows lie between 512 and 1024: 0.4 us each on one thread, told wrong by two cells */
    spoil(512, TANDEM_TASK_MUL_MAT_Q, 2, 0.1);
    spoil(1024, TANDEM_TASK_MUL_MAT_Q, 2, 0.1);
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_Q4_0, &cpu));
    CU_ASSERT_TRUE(tnd_estimate_stage(table, &cpu.stage[1], TANDEM_STAGE_COMPUTE, TANDEM_TYPE_Q4_0,
                                      768, K, 4, 2, &before));
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4});
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, 768});
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    check_ok(tandem_graph_finish(graph, NULL));
    add_candidate(truth, "cpu", 768, 0.4);
    add_candidate(truth, "cpu-packed", 768, 0.6);
    tandem_plan *plan = plan_now();
    int found = 0;
    for (int i = 0; i < 8; i++) {
        found += run(plan, 0.05);
    }
    check_int(found, 1);
    one = *tnd_drift_at(drift, 0);
    check_ok(tnd_drift_correct(drift, table, &corrected, NULL));
    CU_ASSERT_TRUE(tnd_estimate_stage(corrected, &cpu.stage[1], TANDEM_STAGE_COMPUTE,
                                      TANDEM_TYPE_Q4_0, 768, K, 4, one.key.threads, &after));
    CU_ASSERT_DOUBLE_EQUAL(after.us, one.measured_us, 1e-6);
    CU_ASSERT_TRUE(after.stale);
    /* elsewhere on the curve the same factor */
    CU_ASSERT_TRUE(tnd_estimate_stage(corrected, &cpu.stage[1], TANDEM_STAGE_COMPUTE,
                                      TANDEM_TYPE_Q4_0, 768, K, 16, one.key.threads, &after));
    CU_ASSERT_TRUE(after.us > 2 * before.us);
    tandem_plan_free(plan);
}

/* ---- a machine that others use ---- */

enum trouble {
    RANDOM_TEAMS,  /* each stage of a team by a factor of its own: its workers wait for a CPU */
    RANDOM_ALL,    /* the same for all stages */
    BURSTS,        /* some graphs in a row are slow as a whole; the probe sees it */
    ONE_CORE_LESS, /* teams take twice as long, for good: one of their workers comes late */
    SAME_CORE,     /* another program computes on the other half of the core: the probe sees it */
    STOLEN,        /* the hypervisor takes time from stages of teams, now and then */
    TROUBLES
};

static double uniform(double from, double to)
{
    return from + (to - from) * ((double)tnd_test_rng_float(&rng) + 1) / 2;
}

/* What the machine does to a stage: how many times as long it takes, and which share of its time a
 * worker of it waits for a CPU. */
static double disturb(enum trouble trouble, int graph_number, bool is_team, double *out_lost)
{
    double factor = 1;
    bool is_waiting = true;
    switch (trouble) {
    case RANDOM_TEAMS:
        factor = is_team ? uniform(1, 4) : 1;
        break;
    case RANDOM_ALL:
        factor = uniform(1, 4);
        break;
    case BURSTS:
        factor = graph_number % 40 < 15 ? uniform(1.5, 4) : 1;
        is_waiting = false;
        break;
    case ONE_CORE_LESS:
        factor = is_team ? 2 : 1;
        break;
    case SAME_CORE:
        factor = is_team ? uniform(1.4, 1.9) : uniform(1, 1.2);
        is_waiting = false;
        break;
    default:
        factor = is_team && uniform(0, 1) < 0.7 ? uniform(1.5, 6) : 1;
    }
    *out_lost = is_waiting ? 1 - 1 / factor : 0;
    moment = (struct tnd_drift_moment){.caller = 1, .team = 1};
    if (trouble == BURSTS) {
        moment.caller = moment.team = factor > 1 ? 2 : uniform(1, 1.05);
    } else if (trouble == SAME_CORE) {
        moment.caller = uniform(1, 1.2);
        moment.team = uniform(1.3, 1.8);
    }
    return factor;
}

static int run_disturbed(enum trouble trouble, int number)
{
    struct tnd_step_time times[MOST_TIMES];
    int n = 0;
    tandem_plan *plan = plan_now();
    memset(times, 0, sizeof(times));
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int s = 0; s < TANDEM_STAGES && n < MOST_TIMES; s++) {
            const struct tandem_plan_node *choice = &plan->nodes[i];
            if (choice->stage[s].backend == TANDEM_BACKEND_NONE) {
                continue;
            }
            bool is_team = choice->stage[s].parallel && choice->n_threads > 1;
            double lost = 0;
            double us = true_us(graph->nodes[i], choice, s) * uniform(0.97, 1.03) *
                        disturb(trouble, number, is_team, &lost);
            times[n] = (struct tnd_step_time){.node = i, .stage = (uint8_t)s, .backend = 1};
            times[n].lost_ns = (uint64_t)(lost * us * 1e3);
            times[n++].end_ns = (uint64_t)(us * 1e3);
        }
    }
    int found = observe(plan, times, n);
    tandem_plan_free(plan);
    return found;
}

static void no_cell_is_blamed_on_a_machine_that_others_use(void)
{
    for (int trouble = 0; trouble < TROUBLES; trouble++) {
        int found = 0;
        tnd_drift_clear(drift);
        for (int i = 0; i < 600; i++) {
            found += run_disturbed((enum trouble)trouble, i);
        }
        check_int(100 * found + trouble, trouble);
    }
    /* and a wrong one is found when it is quiet again */
    moment = (struct tnd_drift_moment){.caller = 1, .team = 1};
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    check_int(follow(6, 0.1), 1);
}

static void a_probe_that_is_slowed_too_clears_the_cells(void)
{
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    moment.team = 1.3;
    check_int(follow(100, 0.1), 0);
    moment.team = 0; /* nobody asked */
    check_int(follow(100, 0.1), 0);
    moment.team = 1.05;
    check_int(follow(6, 0.1), 1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_drift_at(drift, 0)->measured_us, 0.6 * 1024 / 2 / 1.05, 40);
}

/* The CPU's clock rate is lower than it was for the table; one shape has nothing to be compared
 * with. */
static void a_clock_rate_that_fell_for_good_blames_no_cell(void)
{
    crew_factor = single_factor = 2.6;
    moment.clock = 2.6;
    check_int(follow(100, 0.1), 0);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4});
    tandem_tensor *w =
        tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, rows[3]});
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    check_ok(tandem_graph_finish(graph, NULL));
    tnd_drift_clear(drift);
    check_int(follow(100, 0.1), 0);
    moment.clock = 0; /* a table that does not tell */
    CU_ASSERT_TRUE(follow(100, 0.1) > 0);
}

/* Found while something that no sign told of slowed this one shape; it is over. */
static void a_cell_that_was_blamed_wrongly_is_given_back_after_a_trial(void)
{
    static const char *const profiles[] = {"cpu", "cpu-packed"};
    struct tnd_curve_key key = tune_key(1024, K, TANDEM_TASK_MUL_MAT_Q, true, 2);
    key.stage = TANDEM_STAGE_COMPUTE;
    struct tnd_curve *real = (struct tnd_curve *)tnd_table_find(truth, &key);
    int served[2] = {0, 0};
    double us = real->samples[0].median_us;
    real->samples[0].median_us = 3 * us;
    check_int(follow(8, 0.05), 1);
    real->samples[0].median_us = us;
    for (int i = 0; i < TND_DRIFT_TRIAL_RUNS + TND_DRIFT_TRIAL_GRAPHS; i++) {
        tandem_plan *plan = plan_now();
        served[strcmp(plan->nodes[2].profile, profiles[1]) == 0]++;
        tandem_plan_free(plan);
        check_int(follow(1, 0.05), 0);
    }
    CU_ASSERT_TRUE(served[1] >= TND_DRIFT_TRIAL_RUNS - 20);
    check_int(n_given_back, 1);
    check_int(tnd_drift_count(drift), 0);
    tandem_plan *plan = plan_now();
    check_string(plan->nodes[2].profile, "cpu");
    check_int(plan->nodes[2].n_threads, 2);
    tandem_plan_free(plan);
}

static void a_cell_that_is_wrong_stays_so_through_its_trials(void)
{
    int wrong = 0;
    int n = 5 * TND_DRIFT_TRIAL_RUNS + 3 * TND_DRIFT_TRIAL_GRAPHS; /* two trials */
    spoil(1024, TANDEM_TASK_MUL_MAT_PACKED, 2, 0.1);
    check_int(follow(6, 0.1), 1);
    for (int i = 0; i < n; i++) {
        tandem_plan *plan = plan_now();
        wrong += strcmp(plan->nodes[2].profile, "cpu-packed") == 0;
        tandem_plan_free(plan);
        check_int(follow(1, 0.1), 0);
    }
    CU_ASSERT_TRUE(wrong > 0 && wrong <= 2 * 8);
    check_int(n_given_back, 0);
    check_int(tnd_drift_count(drift), 1);
}

/* A program that keeps its plan runs the cell all the time. */
static void a_cell_that_runs_as_predicted_again_is_given_back_at_once(void)
{
    tandem_plan *plan = plan_now();
    struct tnd_curve_key key = tune_key(1024, K, TANDEM_TASK_MUL_MAT_Q, true, 2);
    key.stage = TANDEM_STAGE_COMPUTE;
    struct tnd_curve *real = (struct tnd_curve *)tnd_table_find(truth, &key);
    double us = real->samples[0].median_us;
    int found = 0;
    real->samples[0].median_us = 3 * us;
    for (int i = 0; i < 8; i++) {
        found += run(plan, 0.05);
    }
    check_int(found, 1);
    check_int(n_given_back, 0);
    real->samples[0].median_us = us;
    for (int i = 0; i < 12; i++) {
        found += run(plan, 0.05);
    }
    check_int(found, 1);
    check_int(n_given_back, 1);
    check_int(tnd_drift_count(drift), 0);
    tandem_plan_free(plan);
}

/* What is taken instead is slower than what was given up. */
static void a_successor_that_is_slower_is_found_itself(void)
{
    struct tnd_curve_key key = tune_key(1024, K, TANDEM_TASK_MUL_MAT_Q, true, 2);
    key.stage = TANDEM_STAGE_COMPUTE;
    struct tnd_curve *real = (struct tnd_curve *)tnd_table_find(truth, &key);
    struct tnd_curve_key packed = tune_key(1024, K, TANDEM_TASK_MUL_MAT_PACKED, true, 2);
    packed.stage = TANDEM_STAGE_COMPUTE;
    struct tnd_curve *other = (struct tnd_curve *)tnd_table_find(truth, &packed);
    real->samples[0].median_us *= 1.9; /* 389, the other one promises 307 */
    check_int(follow(8, 0.02), 1);
    tandem_plan *plan = plan_now();
    check_string(plan->nodes[2].profile, "cpu-packed");
    tandem_plan_free(plan);
    other->samples[0].median_us *= 2; /* 614 */
    check_int(follow(8, 0.02), 1);
    plan = plan_now();
    check_string(plan->nodes[2].profile, "cpu");
    tandem_plan_free(plan);
}

static CU_TestInfo tests[] = {
    {"a_cell_ten_times_too_fast_is_found_and_given_up_for_good",
     a_cell_ten_times_too_fast_is_found_and_given_up_for_good},
    {"an_old_plan_is_not_blamed_twice", an_old_plan_is_not_blamed_twice},
    {"noise_and_interruptions_are_no_drift", noise_and_interruptions_are_no_drift},
    {"a_machine_that_is_slow_as_a_whole_is_not_blamed_on_cells",
     a_machine_that_is_slow_as_a_whole_is_not_blamed_on_cells},
    {"a_cell_that_is_too_slow_is_found_when_it_runs",
     a_cell_that_is_too_slow_is_found_when_it_runs},
    {"corrected_cells_are_marked_in_copies_alone", corrected_cells_are_marked_in_copies_alone},
    {"products_of_experts_are_compared_with_nothing",
     products_of_experts_are_compared_with_nothing},
    {"shapes_that_were_not_measured_get_a_curve_of_their_own",
     shapes_that_were_not_measured_get_a_curve_of_their_own},
    {"no_cell_is_blamed_on_a_machine_that_others_use",
     no_cell_is_blamed_on_a_machine_that_others_use},
    {"a_probe_that_is_slowed_too_clears_the_cells", a_probe_that_is_slowed_too_clears_the_cells},
    {"a_clock_rate_that_fell_for_good_blames_no_cell",
     a_clock_rate_that_fell_for_good_blames_no_cell},
    {"a_cell_that_was_blamed_wrongly_is_given_back_after_a_trial",
     a_cell_that_was_blamed_wrongly_is_given_back_after_a_trial},
    {"a_cell_that_is_wrong_stays_so_through_its_trials",
     a_cell_that_is_wrong_stays_so_through_its_trials},
    {"a_cell_that_runs_as_predicted_again_is_given_back_at_once",
     a_cell_that_runs_as_predicted_again_is_given_back_at_once},
    {"a_successor_that_is_slower_is_found_itself", a_successor_that_is_slower_is_found_itself},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_drift[];
CU_SuiteInfo suites_runtime_drift[] = {
    {"drift", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
