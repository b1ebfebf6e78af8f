/* SPDX-License-Identifier: MIT
 * The guard over plans in which devices and the CPU work at once: turns, verdicts, and a device
 * that is slower than its table says, in virtual time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/runtime_internal.h"
#include "sched/plan.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/planner_internal.h"
#include "tune/policy.h"
#include "tune/profiles.h"

/* ---- verdicts ---- */

static struct tnd_arms arms;

static void set_up(void)
{
    tnd_arms_init(&arms);
}

static void tear_down(void)
{
    tnd_arms_fini(&arms);
}

/* A made-up machine: what a graph takes by each kind of plan, and what is told of it. */
struct machine {
    double us[TND_PLAN_KINDS];   /* 0: no such plan */
    double told[TND_PLAN_KINDS]; /* predicted */
    double first_us, entry_us;   /* more, at a plan's first use; what is told of it */
    double noise, load;          /* shares; of uses that another program disturbs */
    int slow_from, slow_to;      /* uses */
    double slow;                 /* times as long on devices then */
    struct tnd_test_rng rng;
    bool was_used[2]; /* the host, the device: weights are there */
    uint64_t now_ns;
    int n_uses, n_changes;
    int host; /* the kind that uses no device */
    enum tnd_plan_kind last;
};

static double draw(struct tnd_test_rng *rng, double from, double to)
{
    return from + (to - from) * (double)tnd_test_rng_int(rng, 0, 1000000) / 1e6;
}

static double true_us(const struct machine *machine, int kind)
{
    bool is_slow = machine->n_uses >= machine->slow_from && machine->n_uses < machine->slow_to;
    return machine->us[kind] * (is_slow && kind != machine->host ? machine->slow : 1);
}

/* Plans and computes once; what the use took. */
static double use_machine(struct machine *machine, uint64_t key)
{
    struct tnd_arm_class news;
    enum tnd_plan_kind kind = TND_PLAN_BEST;
    if (!tnd_arms_choose(&arms, key, 1, machine->now_ns, &kind)) {
        struct tnd_arm_offer offers[TND_PLAN_KINDS];
        for (int i = 0; i < TND_PLAN_KINDS; i++) {
            offers[i] =
                (struct tnd_arm_offer){machine->us[i] > 0, i != machine->host, machine->told[i],
                                       i == machine->host ? machine->entry_us : 0};
        }
        check_ok(tnd_arms_offer(&arms, key, 1, offers));
        CU_ASSERT_TRUE(tnd_arms_choose(&arms, key, 1, machine->now_ns, &kind));
    }
    double us = true_us(machine, kind);
    bool is_device = kind != (enum tnd_plan_kind)machine->host;
    us += machine->was_used[is_device] ? 0 : machine->first_us;
    us *= 1 + draw(&machine->rng, 0, machine->noise);
    us *= draw(&machine->rng, 0, 1) < machine->load ? 2 : 1;
    machine->was_used[is_device] = true;
    machine->last = kind;
    uint64_t limit_ns = tnd_arms_limit(&arms, key, kind, 1);
    bool is_cut = limit_ns > 0 && us * 1e3 > (double)limit_ns;
    us = is_cut ? (double)limit_ns / 1e3 : us;
    machine->now_ns += (uint64_t)(us * 1e3);
    machine->n_uses++;
    machine->n_changes += tnd_arms_note(&arms, key, kind, 1, (uint64_t)(us * 1e3), is_cut,
                                        machine->now_ns, &news) == TND_ARM_CHANGES;
    return us + (is_cut ? machine->us[machine->host] : 0); /* done after all */
}

static struct machine two_plans(uint64_t seed, double both_us, double told_us, double single_us)
{
    struct machine machine = {.us = {both_us, single_us}, .told = {told_us, single_us}};
    machine.noise = 0.04;
    machine.load = 0.05;
    machine.first_us = 3000;
    machine.rng = tnd_test_rng_new(seed);
    machine.now_ns = 1;
    machine.host = TND_PLAN_SINGLE;
    return machine;
}

static enum tnd_plan_kind serving(uint64_t key)
{
    struct tnd_arm_class one;
    CU_ASSERT_TRUE_FATAL(tnd_arms_get(&arms, key, &one));
    return (enum tnd_plan_kind)one.serving;
}

/* Predicted: 600 us in place of 1000. True: twice that. */
static void a_device_that_lies_is_dropped_within_eight_uses(void)
{
    int n_late = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct machine machine = two_plans(seed, 1200, 600, 1000);
        int n_both = 0;
        for (int use = 0; use < 20; use++) {
            (void)use_machine(&machine, seed);
            n_both += machine.last == TND_PLAN_BEST;
        }
        n_late += serving(seed) != TND_PLAN_SINGLE || n_both > TND_OBSERVER_USES;
    }
    printf("\n    a fifth slower: %d of 200 later than 8 uses", n_late);
    CU_ASSERT_TRUE(n_late <= 10);
    for (uint64_t seed = 1; seed <= 200; seed++) { /* what the first use takes is no reason */
        struct machine machine = two_plans(seed, 30000, 600, 1000);
        int n_both = 0;
        for (int use = 0; use < 50; use++) {
            (void)use_machine(&machine, 1000 + seed);
            n_both += machine.last == TND_PLAN_BEST;
        }
        check_int(serving(1000 + seed), TND_PLAN_SINGLE);
        CU_ASSERT_TRUE(n_both <= 3);
    }
}

static void a_device_that_keeps_its_word_is_kept(void)
{
    int n_more = 0; /* other programs slow several uses in a row */
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct machine machine = two_plans(seed, 600, 600, 1000);
        int n_single = 0;
        for (int use = 0; use < 50; use++) {
            (void)use_machine(&machine, seed);
            n_single += machine.last == TND_PLAN_SINGLE;
        }
        check_int(serving(seed), TND_PLAN_BEST);
        n_more += n_single > TND_OBSERVER_USES;
    }
    CU_ASSERT_TRUE(n_more <= 4);
}

/* The case: a loser was kept because the trial of the other one paid for first uses. */
static void first_uses_do_not_count(void)
{
    struct machine machine = two_plans(1, 28000, 1000, 10000);
    machine.first_us = 100000;
    for (int use = 0; use < 12; use++) {
        (void)use_machine(&machine, 1);
    }
    check_int(serving(1), TND_PLAN_SINGLE);
}

static void the_class_unused_for_longest_makes_room(void)
{
    for (uint64_t key = 1; key <= 3 * TND_ARM_CLASSES; key++) {
        struct machine machine = two_plans(key, 1200, 600, 1000);
        struct machine first = two_plans(key, 1200, 600, 1000);
        for (int use = 0; use < 12; use++) {
            (void)use_machine(&machine, key);
        }
        (void)use_machine(&first, 1);
    }
    check_int(arms.n_classes, TND_ARM_CLASSES);
    check_int(serving(1), TND_PLAN_SINGLE);
    check_int(serving(3 * TND_ARM_CLASSES), TND_PLAN_SINGLE);
    struct tnd_arm_class one;
    CU_ASSERT_FALSE(tnd_arms_get(&arms, 2, &one));
}

static void verdicts_are_looked_at_again_after_a_day(void)
{
    struct machine machine = two_plans(1, 30000, 600, 1000);
    for (int use = 0; use < 20; use++) {
        (void)use_machine(&machine, 1);
    }
    check_int(serving(1), TND_PLAN_SINGLE);
    machine.us[TND_PLAN_BEST] = 600; /* another driver */
    for (int use = 0; use < 20; use++) {
        (void)use_machine(&machine, 1);
    }
    check_int(serving(1), TND_PLAN_SINGLE);
    machine.now_ns += TND_OBSERVER_OLD_NS + 1;
    for (int use = 0; use < 60; use++) {
        (void)use_machine(&machine, 1);
    }
    check_int(serving(1), TND_PLAN_BEST);
}

static void a_plan_that_is_never_computed_does_not_stay(void)
{
    struct machine machine = two_plans(1, 600, 600, 1000);
    enum tnd_plan_kind kind = TND_PLAN_SINGLE;
    (void)use_machine(&machine, 1);
    (void)use_machine(&machine, 1);
    for (int i = 0; i < 300; i++) {
        CU_ASSERT_TRUE(tnd_arms_choose(&arms, 1, 1, machine.now_ns, &kind));
    }
    check_int(kind, TND_PLAN_BEST);
}

/* ---- a zoo of machines ---- */

struct life {
    double total_us, best_us; /* of all uses after the first fifty; of the best fixed plan */
};

/* Devices from 30 times slower than the CPU to 30 times faster, told 30 times too good to 30 times
 * too bad. */
static struct machine draw_machine(uint64_t seed)
{
    struct machine machine = {.now_ns = 1, .slow = 1};
    machine.rng = tnd_test_rng_new(seed);
    struct tnd_test_rng *rng = &machine.rng;
    double host = pow(10, draw(rng, 2, 5));
    double device = host * pow(30, draw(rng, -1, 1));
    double lie = pow(30, draw(rng, -1, 1));
    double both = draw(rng, 0.5, 1.0); /* of the better one, truly; half of them lose by it */
    both = draw(rng, 0, 1) < 0.5 ? both : 1 / both;
    double single = fmin(host, device);
    machine.us[TND_PLAN_DEVICE] = device;
    machine.us[TND_PLAN_BEST] = both * single;
    machine.us[TND_PLAN_SINGLE] = device * lie < host ? device : host;
    machine.host = device * lie < host ? TND_PLAN_HOST : TND_PLAN_SINGLE;
    machine.us[machine.host] = host;
    machine.told[TND_PLAN_HOST] = host * draw(rng, 0.9, 1.1);
    machine.told[TND_PLAN_DEVICE] = device * lie;
    machine.told[TND_PLAN_SINGLE] =
        fmin(machine.told[TND_PLAN_HOST], machine.told[TND_PLAN_DEVICE]);
    machine.told[TND_PLAN_BEST] = 0.9 * machine.told[TND_PLAN_SINGLE];
    machine.noise = draw(rng, 0, 0.1);
    machine.load = draw(rng, 0, 0.2);
    machine.first_us = host * draw(rng, 0, 20);
    machine.entry_us = machine.first_us * draw(rng, 0.5, 2);
    if (draw(rng, 0, 1) < 0.5) { /* slow for a minute, or for two thousand uses */
        machine.slow = draw(rng, 2, 30);
        machine.slow_from = (int)tnd_test_rng_int(rng, 100, 1000);
        machine.slow_to = machine.slow_from + (int)fmin(60e6 / single, 2000);
    }
    return machine;
}

static struct life live(uint64_t seed, int n_uses)
{
    struct machine machine = draw_machine(seed);
    struct machine alone = machine; /* the same disturbances */
    struct life life = {0, 0};
    double fixed_us[TND_PLAN_KINDS] = {0};
    for (int use = 0; use < n_uses; use++) {
        double us = use_machine(&machine, seed);
        life.total_us += use >= 50 ? us : 0;
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        machine = alone;
        for (int use = 0; use < n_uses && alone.us[kind] > 0; use++) {
            double us = true_us(&machine, kind) * (1 + machine.noise / 2) * (1 + machine.load);
            machine.n_uses++;
            fixed_us[kind] += use >= 50 ? us : 0;
        }
        bool is_better = kind == 0 || (alone.us[kind] > 0 && fixed_us[kind] < life.best_us);
        life.best_us = is_better ? fixed_us[kind] : life.best_us;
    }
    return life;
}

/* The best fixed plan is known to nobody in advance; where devices become slow for a while, a plan
 * that changes can be better. */
static void a_zoo_of_machines_is_served_well(void)
{
    const int n_machines = tnd_effort() > 2 ? 2000 : 200;
    double worst = 0;
    double sum = 0;
    int n_above = 0;
    for (int i = 1; i <= n_machines; i++) {
        tnd_arms_fini(&arms);
        tnd_arms_init(&arms); /* each machine has a runtime of its own */
        struct life life = live((uint64_t)i, 5000);
        double ratio = life.total_us / life.best_us;
        worst = fmax(worst, ratio);
        sum += log(ratio);
        n_above += ratio > 1.05;
    }
    printf("\n    %d machines: %.3f of the best fixed plan, worst %.3f, %d above 1.05", n_machines,
           exp(sum / n_machines), worst, n_above);
    CU_ASSERT_TRUE(exp(sum / n_machines) < 1);
    CU_ASSERT_TRUE(worst < 1.25);
    CU_ASSERT_TRUE(n_above <= n_machines / 25);
}

/* ---- found again ---- */

static void a_device_that_becomes_slow_is_left_and_found_again(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct machine machine = two_plans(seed, 1000, 1000, 3000);
        machine.slow = 20;
        machine.slow_from = 1000;
        machine.slow_to = machine.slow_from + 20000; /* a minute, by the CPU alone */
        while (machine.n_uses < machine.slow_from) {
            (void)use_machine(&machine, seed);
        }
        check_int(serving(seed), TND_PLAN_BEST);
        uint64_t begin_ns = machine.now_ns;
        while (serving(seed) == TND_PLAN_BEST) {
            (void)use_machine(&machine, seed);
        }
        CU_ASSERT_TRUE(machine.now_ns < begin_ns + UINT64_C(1000000000));
        while (machine.n_uses < machine.slow_to) {
            (void)use_machine(&machine, seed);
        }
        begin_ns = machine.now_ns;
        int n_uses = 0;
        for (; serving(seed) != TND_PLAN_BEST && n_uses < 5000; n_uses++) {
            (void)use_machine(&machine, seed);
        }
        CU_ASSERT_TRUE(n_uses < 5000);
    }
}

/* ---- a runtime with a device that lies ---- */

enum { N = 256, LAYERS = 3, M = 8, USES = 2000 };

static bool device_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    static const struct tandem_backend_profile profiles[] = {
        {.name = "simown",
         .what = "on the pretended device",
         .compute = {.task = TANDEM_TASK_NODE, .wait = true},
         .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
        {.name = "simown+stream",
         .what = "the same, with weights that travel",
         .compute = {.task = TANDEM_TASK_NODE_STREAMED, .wait = true},
         .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
    };
    (void)type;
    if (i < 0 || i >= 2) {
        return false;
    }
    *out = profiles[i];
    return true;
}

static tandem_context *context;
static tandem_runtime *runtime;
static struct tnd_clock_virtual clock_;
static tandem_tensor *y;
static tandem_graph *graph_of_layers;
static char log_text[1024];
static int n_dropped, n_late;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    n_late += strstr(text, "takes much longer than it did") != NULL;
    if (strstr(text, "serves from now on") != NULL) {
        snprintf(log_text, sizeof(log_text), "%s", text);
        n_dropped++;
    }
}

/* The rest of the model. */
static enum tandem_status take_a_millisecond(void *user, const tandem_tensor *node, int64_t begin,
                                             int64_t end)
{
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    tnd_clock_virtual_advance(user, 1000000);
    return TANDEM_OK;
}

static void add_cost(tandem_table *table, const char *profile, double us)
{
    struct tnd_table_profile described;
    int i = tnd_profile_find(runtime->registry, profile);
    CU_ASSERT_TRUE_FATAL(i >= 0);
    CU_ASSERT_TRUE_FATAL(tnd_profile_describe(runtime->registry, i, TANDEM_TYPE_Q4_0, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        for (int64_t m = 1; m <= 64 && stage->backend[0] != '\0'; m *= 2) {
            struct tnd_curve_key key;
            struct tnd_sample sample = {.m = m, .median_us = us, .count = 9, .when = 1};
            tnd_stage_key(stage, s, TANDEM_TYPE_Q4_0, N, N, 1, &key);
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

/* Products in a row, and what takes a millisecond; beside them one of `experts`. */
static tandem_graph *build_graph_of(int64_t experts)
{
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){N, M});
    float *row = malloc(N * sizeof(float));
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    tnd_test_fill(&rng, tandem_tensor_data(x), (int64_t)N * M);
    for (int i = 0; i < LAYERS; i++) {
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){N, N});
        for (int r = 0; r < N; r++) {
            tnd_test_fill(&rng, row, N);
            check_ok(tandem_quantize(TANDEM_TYPE_Q4_0, row,
                                     (char *)tandem_tensor_data(w) + (size_t)r * w->nb[1], N));
        }
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        x = tandem_mul_mat(context, w, x);
    }
    free(row);
    tandem_graph *graph = tandem_graph_new(context);
    if (experts > 0) {
        tandem_tensor *w =
            tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 3, (const int64_t[]){N, N / 2, experts});
        tandem_tensor *rows =
            tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (const int64_t[]){N, 1, M});
        tandem_tensor *ids =
            tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (const int64_t[]){1, M});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_graph_add(graph, tandem_mul_mat_id(context, w, rows, ids));
    }
    y = tandem_custom(context, 2, (const int64_t[]){N, M}, &x, 1, 1, take_a_millisecond, &clock_);
    tandem_graph_add(graph, y);
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

static struct tandem_backend_api api;

/* What the table says of each product. */
static void open_with(const char *device, double cpu_us, double device_us)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_table *table = tune_new();
    n_dropped = 0;
    check_ok(tandem_context_new(NULL, &context, NULL));
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    options.log = remember_line;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    api = tnd_sim_own_api;
    api.profile = device_profile;
    check_ok(tandem_runtime_add_backend(runtime, &api, device, NULL));
    int slot = tnd_registry_find(runtime->registry, "simown", NULL);
    CU_ASSERT_TRUE_FATAL(slot > 0);
    tnd_clock_virtual_init(&clock_, 0);
    tnd_sim_set_clock(tnd_registry_backend(runtime->registry, slot), &clock_.clock);
    runtime->clock = &clock_.clock;
    add_cost(table, "cpu", cpu_us);
    add_cost(table, "simown", device_us);
    tune_add_link(table, "simown", 1, 1e6);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    graph_of_layers = build_graph_of(0);
}

/* The device has no room, and its weights take 400 us in place of 1 us. */
static void set_up_runtime(void)
{
    open_with("budget=1,upload_gbps=0.0922,gflops=1000", 100, 2);
}

/* Both are told to be equally fast; the device is not. */
static void set_up_splits(void)
{
    open_with("gflops=0.02", 2000, 2000);
}

/* 52 ms a product in place of 20 us. */
static void set_up_liar(void)
{
    open_with("gflops=0.02", 2000, 20);
}

static void tear_down_runtime(void)
{
    tandem_runtime_close(runtime);
    tandem_context_free(context);
}

static bool streams(const tandem_plan *plan)
{
    return strcmp(tandem_plan_node(plan, 0)->profile, "simown+stream") == 0;
}

/* One use; whether it streamed. Turns go by what was computed: planning alone changes none. */
static bool use(float *expected)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    tandem_plan_free(plan);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    bool is_streamed = streams(plan);
    check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
    if (expected[0] == 0) { /* the first one, on the CPU: nothing was refused yet */
        memcpy(expected, tandem_tensor_data(y), (size_t)N * M * sizeof(float));
    }
    check_nmse(tandem_tensor_data(y), expected, (int64_t)N * M, 1e-3, "by either plan");
    tandem_plan_free(plan);
    return is_streamed;
}

static int collect(void *user, const char *bytes, size_t n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void a_runtime_drops_weights_in_flight_that_are_slower_than_predicted(void)
{
    static float expected[N * M];
    struct tnd_text text = TND_TEXT_INIT;
    int n_streamed = 0;
    int last = 0;
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    uint64_t begin_ns = clock_.clock.now_ns(&clock_.clock);
    for (int i = 1; i <= USES; i++) {
        bool is_streamed = use(expected);
        n_streamed += is_streamed;
        last = is_streamed && i <= TND_OBSERVER_REST ? i : last;
    }
    uint64_t took_ns = clock_.clock.now_ns(&clock_.clock) - begin_ns;
    check_int(n_dropped, 1);
    check_contains(log_text, "the first serves from now on");
    CU_ASSERT_TRUE(n_streamed >= 2 && last <= TND_OBSERVER_USES);
    printf("\n    %d of %d uses streamed, %.3f of the CPU alone", n_streamed, USES,
           (double)took_ns / (1e6 * USES));
    CU_ASSERT_TRUE((double)took_ns < 1.05 * 1e6 * USES);

    check_ok(tandem_runtime_explain(runtime, graph_of_layers, NULL, collect, &text));
    check_contains(tnd_text_string(&text), " measured, serves\n");
    tnd_text_fini(&text);
}

/* Devices are observed, too: their steps one by one, in few of many runs. */
static void the_table_is_told_of_a_device_that_lies(void)
{
#ifdef TND_HAVE_CJSON
    static float expected[N * M];
    struct tandem_drift_info drift[4];
    tandem_table *saved = NULL;
    tandem_plan *plan = NULL;
    const char *path = tnd_test_temp("observer.json");
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    CU_ASSERT_TRUE(streams(plan));
    bool is_told = false;
    for (int i = 0; i < 5000 && !is_told; i++) { /* transfers may be told of first */
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        const int n = (int)tandem_runtime_drift(runtime, drift, 4);
        for (int k = 0; k < n && k < 4; k++) {
            is_told = is_told || (strstr(drift[k].what, "simown") != NULL &&
                                  drift[k].measured_us > 100 * drift[k].predicted_us);
        }
    }
    CU_ASSERT_TRUE(is_told);
    const struct tnd_observer *observer = &runtime->observer;
    CU_ASSERT_TRUE((double)observer->spent_ns <= 2e6 + TND_DRIFT_COST * (double)clock_.now_ns);
    check_ok(tandem_runtime_save_drift(runtime, path, NULL));
    check_ok(tandem_table_load(path, &saved, NULL));
    int64_t n_stale = tune_count_stale(saved);
    for (int i = 0; i < saved->n_transfers; i++) {
        n_stale += tnd_sample_is_stale(&saved->transfers[i].curve.samples[0]);
    }
    CU_ASSERT_TRUE(n_stale >= 1);
    tandem_table_free(saved);
    tandem_plan_free(plan);
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static void a_plan_that_a_program_keeps_or_changes_is_run_as_it_is(void)
{
    static float expected[N * M];
    tandem_plan *plan = NULL;
    tandem_plan *copy = NULL;
    memset(expected, 0, sizeof(expected));
    (void)use(expected);
    check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
    CU_ASSERT_TRUE(streams(plan) && plan->observed_key != 0);
    check_ok(tandem_plan_copy(plan, &copy, NULL));
    CU_ASSERT_TRUE(copy->observed_key == 0);
    for (int i = 0; i < 20; i++) {
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        CU_ASSERT_TRUE(streams(plan));
    }
    check_int(n_dropped, 0); /* nothing to compare with */
    check_ok(tandem_plan_set_node(plan, 0, tandem_plan_node(plan, 0)));
    CU_ASSERT_TRUE(plan->observed_key == 0);
    tandem_plan_free(copy);
    tandem_plan_free(plan);
}

static void a_runtime_drops_split_products_that_are_slower_than_predicted(void)
{
    static float expected[N * M];
    bool is_split = false;
    int last = 0;
    memset(expected, 0, sizeof(expected));
    for (int i = 1; i <= 2 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
        last = tandem_plan_part_count(plan) > 0 ? i : last;
        is_split = is_split || last == i;
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        memcpy(expected, tandem_tensor_data(y), i == 1 ? sizeof(expected) : 0);
        check_nmse(tandem_tensor_data(y), expected, (int64_t)N * M, 1e-3, "split or not");
        tandem_plan_free(plan);
    }
    CU_ASSERT_TRUE(is_split && last <= TND_OBSERVER_USES);
    check_int(n_dropped, 1);
}

/* A table that sends all to a device: the CPU alone is a candidate though it is predicted to be a
 * hundred times slower. */
static void a_device_that_the_table_makes_too_fast_is_left_for_the_cpu(void)
{
    int n_device = 0;
    int last = 0;
    for (int i = 1; i <= 4 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph_of_layers, &plan, NULL));
        bool is_device = plan->nodes[0].stage[TANDEM_STAGE_COMPUTE].backend > TANDEM_BACKEND_CPU;
        n_device += is_device;
        last = is_device ? i : last;
        check_ok(tandem_runtime_compute(runtime, graph_of_layers, plan, NULL, NULL));
        tandem_plan_free(plan);
    }
    CU_ASSERT_TRUE(n_device >= 2 && n_device <= TND_OBSERVER_USES);
    CU_ASSERT_TRUE(last <= TND_OBSERVER_USES);
    check_int(n_dropped, 1);
}

static uint64_t stall_ns;

static enum tandem_status stall(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    memcpy(node->data, node->src[0]->data, tandem_tensor_bytes(node));
    tnd_clock_virtual_advance(user, 1000000 + stall_ns);
    return TANDEM_OK;
}

/* A computation by a plan on the device that takes two seconds in place of a millisecond. */
static void a_computation_that_stalls_is_given_up_and_done_by_the_cpu(void)
{
    static float expected[N * M];
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){N, M});
    tnd_test_fill(&rng, tandem_tensor_data(x), (int64_t)N * M);
    for (int i = 0; i < 2; i++) {
        tandem_tensor *w = graph_of_layers->nodes[i]->src[0];
        x = tandem_mul_mat(context, w, x);
        if (i == 0) {
            x = tandem_custom(context, 2, (const int64_t[]){N, M}, &x, 1, 1, stall, &clock_);
        }
    }
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    tnd_exec_set_clock(runtime->exec, &clock_.clock);
    tandem_plan *plan = NULL;
    for (int i = 0; i < 3; i++) { /* times that count */
        tandem_plan_free(plan);
        plan = NULL;
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    }
    memcpy(expected, tandem_tensor_data(x), sizeof(expected));
    uint64_t limit_ns = tnd_observer_limit(runtime, graph, plan);
    CU_ASSERT_TRUE(limit_ns > 0 && limit_ns < UINT64_C(1000000000));
    stall_ns = UINT64_C(2000000000);
    log_text[0] = '\0';
    n_late = 0;
    check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
    stall_ns = 0;
    check_int(n_late, 1);
    check_nmse(tandem_tensor_data(x), expected, (int64_t)N * M, 1e-3, "by the CPU alone");
    tandem_plan_free(plan);
}

/* Planning again is a look at each node and a copy. */
static void a_graph_that_was_placed_before_is_known(void)
{
    struct tnd_plan_known *known = &runtime->planner->known;
    uint64_t key = tnd_plan_known_key(graph_of_layers, 1);
    CU_ASSERT_EQUAL(tnd_plan_known_key(graph_of_layers, 1), key);
    CU_ASSERT_NOT_EQUAL(tnd_plan_known_key(graph_of_layers, 2), key);
    CU_ASSERT_NOT_EQUAL(tnd_plan_known_key(build_graph_of(0), 1), key); /* of other weights */
    CU_ASSERT_EQUAL(tnd_plan_known_key(build_graph_of(2), 1), 0);
    tandem_plan *plans[2] = {NULL, NULL};
    uint64_t used[2];
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_planner_plan(runtime->planner, graph_of_layers, 1, &plans[i], NULL));
        used[i] = known->n_lookups;
    }
    check_int((int64_t)(used[1] - used[0]), 1); /* nothing was kept the second time */
    check_int(tandem_plan_part_count(plans[1]), tandem_plan_part_count(plans[0]));
    CU_ASSERT_TRUE(memcmp(plans[0]->nodes, plans[1]->nodes,
                          (size_t)plans[0]->n_nodes * sizeof(plans[0]->nodes[0])) == 0);
    for (int i = 0; i < tandem_plan_part_count(plans[0]); i++) {
        CU_ASSERT_TRUE(memcmp(tandem_plan_part(plans[0], i), tandem_plan_part(plans[1], i),
                              sizeof(struct tandem_plan_part)) == 0);
    }
    tandem_plan_free(plans[0]);
    tandem_plan_free(plans[1]);
    tnd_runtime_forget_choices(runtime);
    CU_ASSERT_PTR_NULL(tnd_plan_known_copy(known, key, graph_of_layers->n_nodes));
}

/* The same products with other experts behind them are another graph. */
static void a_verdict_is_for_graphs_with_the_same_experts(void)
{
    tandem_graph *of_two = build_graph_of(2);
    tandem_graph *of_three = build_graph_of(3);
    char text[256];
    for (int i = 1; i <= 2 * TND_OBSERVER_USES; i++) {
        tandem_plan *plan = NULL;
        check_ok(tandem_runtime_plan(runtime, of_two, &plan, NULL));
        check_ok(tandem_runtime_compute(runtime, of_two, plan, NULL, NULL));
        tandem_plan_free(plan);
    }
    check_int(n_dropped, 1);
    tnd_observer_explain(runtime, of_two, text, sizeof(text));
    check_contains(text, "nothing at once");
    tnd_observer_explain(runtime, of_three, text, sizeof(text));
    check_string(text, "");
    tnd_observer_explain(runtime, graph_of_layers, text, sizeof(text));
    check_string(text, "");
}

static CU_TestInfo verdict_tests[] = {
    {"a_device_that_lies_is_dropped_within_eight_uses",
     a_device_that_lies_is_dropped_within_eight_uses},
    {"a_device_that_keeps_its_word_is_kept", a_device_that_keeps_its_word_is_kept},
    {"first_uses_do_not_count", first_uses_do_not_count},
    {"the_class_unused_for_longest_makes_room", the_class_unused_for_longest_makes_room},
    {"verdicts_are_looked_at_again_after_a_day", verdicts_are_looked_at_again_after_a_day},
    {"a_plan_that_is_never_computed_does_not_stay", a_plan_that_is_never_computed_does_not_stay},
    {"a_device_that_becomes_slow_is_left_and_found_again",
     a_device_that_becomes_slow_is_left_and_found_again},
    {"a_zoo_of_machines_is_served_well", a_zoo_of_machines_is_served_well},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo split_tests[] = {
    {"a_runtime_drops_split_products_that_are_slower_than_predicted",
     a_runtime_drops_split_products_that_are_slower_than_predicted},
    {"a_computation_that_stalls_is_given_up_and_done_by_the_cpu",
     a_computation_that_stalls_is_given_up_and_done_by_the_cpu},
    {"a_graph_that_was_placed_before_is_known", a_graph_that_was_placed_before_is_known},
    {"a_verdict_is_for_graphs_with_the_same_experts",
     a_verdict_is_for_graphs_with_the_same_experts},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo liar_tests[] = {
    {"a_device_that_the_table_makes_too_fast_is_left_for_the_cpu",
     a_device_that_the_table_makes_too_fast_is_left_for_the_cpu},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo runtime_tests[] = {
    {"a_runtime_drops_weights_in_flight_that_are_slower_than_predicted",
     a_runtime_drops_weights_in_flight_that_are_slower_than_predicted},
    {"the_table_is_told_of_a_device_that_lies", the_table_is_told_of_a_device_that_lies},
    {"a_plan_that_a_program_keeps_or_changes_is_run_as_it_is",
     a_plan_that_a_program_keeps_or_changes_is_run_as_it_is},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_observer[];
CU_SuiteInfo suites_runtime_observer[] = {
    {"observer", NULL, NULL, set_up, tear_down, verdict_tests},
    {"observed runtime", NULL, NULL, set_up_runtime, tear_down_runtime, runtime_tests},
    {"observed liar", NULL, NULL, set_up_liar, tear_down_runtime, liar_tests},
    {"observed splits", NULL, NULL, set_up_splits, tear_down_runtime, split_tests},
    CU_SUITE_INFO_NULL,
};
