/* SPDX-License-Identifier: MIT
 * The front door: opening, planning, computing, from one thread and from many. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "tandem/tandem.h"
#include "tests/support.h"

static char log_text[4096];

static void collect_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof(log_text) - used, "%s: %s\n", room, text);
}

static tandem_runtime *open_plain(int n_threads)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = n_threads;
    options.table_path = "";
    tandem_runtime *runtime = NULL;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    return runtime;
}

/* A small network with products that several profiles can run: y = W2 silu(W1 x) + x. */
struct network {
    tandem_context *context;
    tandem_tensor *x, *y;
    tandem_graph *graph;
};

enum { WIDTH = 256, HIDDEN = 352 };

static void fill_weights(tandem_tensor *w, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    int64_t k = tandem_tensor_ne(w)[0];
    float row[HIDDEN];
    for (int64_t n = 0; n < tandem_tensor_ne(w)[1]; n++) {
        tnd_test_fill(&rng, row, k);
        char *data = tandem_tensor_data(w);
        check_ok(tandem_quantize(tandem_tensor_type(w), row,
                                 data + (size_t)n * tandem_tensor_nb(w)[1], k));
    }
}

static struct network network_new(enum tandem_type type, int64_t m)
{
    struct network net;
    check_ok(tandem_context_new(NULL, &net.context, NULL));
    tandem_tensor *w1 = tandem_tensor_new(net.context, type, 2, (const int64_t[]){WIDTH, HIDDEN});
    tandem_tensor *w2 = tandem_tensor_new(net.context, type, 2, (const int64_t[]){HIDDEN, WIDTH});
    net.x = tandem_tensor_new(net.context, TANDEM_TYPE_F32, 2, (const int64_t[]){WIDTH, m});
    fill_weights(w1, 1);
    fill_weights(w2, 2);
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    tnd_test_fill(&rng, tandem_tensor_data(net.x), WIDTH * m);
    tandem_tensor *h = tandem_silu(net.context, tandem_mul_mat(net.context, w1, net.x));
    net.y = tandem_add(net.context, tandem_mul_mat(net.context, w2, h), net.x);
    net.graph = tandem_graph_new(net.context);
    tandem_graph_add(net.graph, net.y);
    check_ok(tandem_graph_finish(net.graph, NULL));
    return net;
}

static size_t result_bytes(const struct network *net)
{
    return tandem_tensor_bytes(net->y);
}

static float *reference_of(const struct network *net)
{
    struct tandem_memory_report memory = TANDEM_MEMORY_REPORT_INIT;
    check_ok(tandem_graph_memory(net->graph, &memory));
    void *buffer = tnd_guarded_alloc(memory.planned_bytes + 1, 64);
    tnd_graph_bind(net->graph, buffer);
    check_ok(tnd_eval_ref_graph(net->graph, NULL));
    float *copy = malloc(result_bytes(net));
    memcpy(copy, tandem_tensor_data(net->y), result_bytes(net));
    tnd_guarded_free(buffer);
    memset(tandem_tensor_data(net->y), 0, result_bytes(net));
    return copy;
}

static void options_are_checked(void)
{
    struct tandem_error error;
    tandem_runtime *runtime = NULL;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = -1;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ARGUMENT, "-1 threads",
                 &error);
    options.n_threads = 1;
    options.profile = "cpu+abacus";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_NOT_FOUND, "cpu+abacus",
                 &error);
    options.profile = NULL;
    options.backends = "cpu,abacus";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_NOT_FOUND, "abacus",
                 &error);
    options.backends = NULL;
    options.size = 0;
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ABI, "_INIT", &error);
    CU_ASSERT_PTR_NULL(runtime);
    tandem_runtime_close(NULL);
}

static void an_older_and_a_newer_program_are_served(void)
{
    struct {
        struct tandem_runtime_options known;
        char unknown[16];
    } newer = {TANDEM_RUNTIME_OPTIONS_INIT, {0}};
    tandem_runtime *runtime = NULL;
    struct tandem_error error;
    newer.known.size = sizeof(newer);
    newer.known.table_path = "";
    check_ok(tandem_runtime_open(&newer.known, &runtime, NULL));
    tandem_runtime_close(runtime);
    newer.unknown[3] = 1;
    check_status(tandem_runtime_open(&newer.known, &runtime, &error), TANDEM_E_ABI, "does not know",
                 &error);
    newer.known.size = offsetof(struct tandem_runtime_options, profile);
    check_ok(tandem_runtime_open(&newer.known, &runtime, NULL));
    tandem_runtime_close(runtime);
}

static void a_bad_table_is_no_error_but_is_told(void)
{
    static const char garbage[] = "{\"format\": 7}";
    const char *path = tnd_test_temp("table.json");
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error;
    tandem_runtime *runtime = NULL;
    tnd_test_write_file(path, garbage, sizeof(garbage) - 1);
    log_text[0] = '\0';
    options.table_path = path;
    options.log = collect_log;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_contains(log_text, "no timing table, the rule serves");
    CU_ASSERT_NOT_EQUAL(tandem_runtime_table_status(runtime, &error), TANDEM_OK);
    tandem_runtime_close(runtime);
}

/* The published table of another machine, with its one way and two shapes cut down. */
static const char foreign_text[] = "1 7B Q4_0 3 ACCELERATE 1 8 2 1\n"
                                   "1 0 0 1 1 0 0 0 0\n"
                                   "352 256\n"
                                   "8 8 7477 0\n"
                                   "16 22 14387 0\n";

static void a_table_can_be_exchanged_while_the_runtime_is_open(void)
{
    struct network net = network_new(TANDEM_TYPE_Q4_0, 8);
    tandem_runtime *runtime = open_plain(2);
    tandem_table *table = NULL;
    tandem_plan *plan = NULL;
    check_ok(tandem_table_parse(foreign_text, sizeof(foreign_text) - 1, "text", &table, NULL));
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    check_ok(tandem_runtime_table_status(runtime, NULL));
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    const struct tandem_plan_node *node = tandem_plan_node(plan, 0);
    check_int(node->reason, TANDEM_REASON_TABLE);
    check_int(node->n_threads, 2);
    /* version 1 knows one thread: stages that it marks parallel are divided */
    CU_ASSERT_DOUBLE_EQUAL(node->predicted_us[TANDEM_STAGE_COMPUTE], 7477.0 / 2, 0.01);
    tandem_plan_free(plan);
    check_ok(tandem_runtime_set_table(runtime, NULL, NULL));
    check_int(tandem_runtime_table_status(runtime, NULL), TANDEM_E_NOT_FOUND);
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_RULE);
    tandem_plan_free(plan);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static void the_path_of_the_table_stays_readable_when_another_table_is_set(void)
{
    const char *path = tnd_test_temp("described.txt");
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_runtime_info before = TANDEM_RUNTIME_INFO_INIT;
    struct tandem_runtime_info after = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime *runtime = NULL;
    tnd_test_write_file(path, foreign_text, sizeof(foreign_text) - 1);
    options.table_path = path;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tandem_runtime_describe(runtime, &before);
    check_string(before.table, path);
    check_ok(tandem_runtime_set_table(runtime, NULL, NULL));
    tandem_runtime_describe(runtime, &after);
    check_string(after.table, "");
    check_string(before.table, path);
    tandem_runtime_close(runtime);
}

static void every_profile_and_thread_count_gives_the_right_result(void)
{
    for (int64_t m = 1; m <= 33; m += 16) {
        struct network net = network_new(TANDEM_TYPE_Q8_0, m);
        float *reference = reference_of(&net);
        for (int threads = 1; threads <= 8; threads++) {
            tandem_runtime *runtime = open_plain(threads);
            struct tandem_profile_info profiles[16];
            int n = tandem_runtime_profiles(runtime, profiles, 16);
            for (int i = 0; i < n; i++) {
                if (!profiles[i].available) {
                    continue;
                }
                check_ok(tandem_runtime_force_profile(runtime, profiles[i].name, NULL));
                check_ok(tandem_runtime_compute(runtime, net.graph, NULL, NULL, NULL));
                check_nmse(tandem_tensor_data(net.y), reference, WIDTH * m, 5e-4, profiles[i].name);
            }
            tandem_runtime_close(runtime);
        }
        free(reference);
        tandem_context_free(net.context);
    }
}

static void a_plan_changed_by_hand_is_run_as_changed(void)
{
    struct network net = network_new(TANDEM_TYPE_Q4_0, 5);
    tandem_runtime *runtime = open_plain(2);
    tandem_plan *plan = NULL;
    float *reference = reference_of(&net);
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    struct tandem_task_config config = tandem_node_task_conf(plan, 0, TANDEM_STAGE_COMPUTE);
    check_int(config.task, TANDEM_TASK_MUL_MAT_Q);
    struct tandem_plan_node node = *tandem_plan_node(plan, 0);
    node.n_threads = 7; /* more than the pool has: cut */
    check_ok(tandem_plan_set_node(plan, 0, &node));
    check_ok(tandem_runtime_compute(runtime, net.graph, plan, NULL, NULL));
    check_nmse(tandem_tensor_data(net.y), reference, WIDTH * 5, 5e-3, "by hand");
    config.backend = 9;
    struct tandem_error error;
    check_ok(tandem_node_set_task_conf(plan, 0, TANDEM_STAGE_COMPUTE, config));
    CU_ASSERT_NOT_EQUAL(tandem_runtime_compute(runtime, net.graph, plan, NULL, &error), TANDEM_OK);
    tandem_plan_free(plan);
    free(reference);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static int append(void *user, const char *bytes, unsigned long n);

static void one_call_forces_a_profile_for_one_node(void)
{
    struct network net = network_new(TANDEM_TYPE_Q4_0, 5);
    struct tandem_error error;
    tandem_runtime *runtime = open_plain(2);
    tandem_plan *plan = NULL;
    float *reference = reference_of(&net);
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    struct tandem_plan_node other = *tandem_plan_node(plan, 2);
    int threads = tandem_plan_node(plan, 0)->n_threads;
    check_ok(tandem_runtime_force_node(runtime, net.graph, plan, 0, "cpu", &error));
    check_string(tandem_plan_node(plan, 0)->profile, "cpu");
    check_int(tandem_plan_node(plan, 0)->reason, TANDEM_REASON_FORCED);
    check_int(tandem_plan_node(plan, 0)->n_threads, threads);
    CU_ASSERT_EQUAL(memcmp(tandem_plan_node(plan, 2), &other, sizeof(other)), 0);
    check_ok(tandem_runtime_compute(runtime, net.graph, plan, NULL, NULL));
    check_nmse(tandem_tensor_data(net.y), reference, WIDTH * 5, 5e-3, "forced");
    /* what is refused leaves the plan as it is */
    check_status(tandem_runtime_force_node(runtime, net.graph, plan, 0, "cpu+abacus", &error),
                 TANDEM_E_NOT_FOUND, "cpu+abacus", &error);
    check_status(tandem_runtime_force_node(runtime, net.graph, plan, 1, "cpu", &error),
                 TANDEM_E_ARGUMENT, "node 1 is silu", &error);
    check_status(tandem_runtime_force_node(runtime, net.graph, plan, 4, "cpu", &error),
                 TANDEM_E_ARGUMENT, "node 4", &error);
    check_status(tandem_runtime_force_node(runtime, net.graph, NULL, 0, "cpu", &error),
                 TANDEM_E_ARGUMENT, "plan is NULL", &error);
    check_string(tandem_plan_node(plan, 0)->profile, "cpu");
    tandem_plan_free(plan);
    free(reference);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static void a_profile_that_cannot_run_a_node_is_refused_with_those_that_can(void)
{
    struct network net = network_new(TANDEM_TYPE_F32, 5);
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error;
    tandem_runtime *runtime = NULL;
    tandem_plan *plan = NULL;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    check_status(tandem_runtime_force_node(runtime, net.graph, plan, 0, "cpu+openblas", &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "these can: cpu", &error);
    tandem_plan_free(plan);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static atomic_long pieces;
static atomic_long pieces_ever;

static void *take_piece(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    atomic_fetch_add(&pieces, 1);
    atomic_fetch_add(&pieces_ever, 1);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void give_piece_back(void *user, void *memory)
{
    (void)user;
    atomic_fetch_sub(&pieces, 1);
    free(memory);
}

static void everything_is_allocated_where_the_program_says_and_given_back(void)
{
    struct tandem_allocator allocator = TANDEM_ALLOCATOR_INIT;
    struct tandem_error error;
    allocator.allocate = take_piece;
    allocator.release = give_piece_back;
    check_ok(tandem_set_allocator(&allocator, &error));
    struct network net = network_new(TANDEM_TYPE_Q4_0, 5);
    tandem_runtime *runtime = open_plain(2);
    check_ok(tandem_runtime_compute(runtime, net.graph, NULL, NULL, NULL));
    CU_ASSERT_TRUE(atomic_load(&pieces_ever) > 3);
    check_status(tandem_set_allocator(NULL, &error), TANDEM_E_STATE, "in use", &error);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
    check_int(atomic_load(&pieces), 0);
    check_ok(tandem_set_allocator(NULL, &error));
}

static void results_fit_into_older_and_newer_structs(void)
{
    tandem_runtime *runtime = open_plain(1);
    struct {
        struct tandem_runtime_info known;
        char unknown[16];
    } newer = {TANDEM_RUNTIME_INFO_INIT, {7}};
    struct tandem_runtime_info older = TANDEM_RUNTIME_INFO_INIT;
    newer.known.size = sizeof(newer);
    check_ok(tandem_runtime_describe(runtime, &newer.known));
    check_int(newer.known.n_threads, 1);
    check_int(newer.unknown[0], 0);
    check_int((int64_t)newer.known.size, sizeof(newer));
    older.size = offsetof(struct tandem_runtime_info, n_cores);
    older.n_cores = -7;
    check_ok(tandem_runtime_describe(runtime, &older));
    check_int(older.n_threads, 1);
    check_int(older.n_cores, -7);
    older.size = 0;
    check_int(tandem_runtime_describe(runtime, &older), TANDEM_E_ABI);
    tandem_runtime_close(runtime);
}

static void null_is_refused_wherever_a_pointer_is_needed(void)
{
    struct network net = network_new(TANDEM_TYPE_F32, 1);
    struct tandem_error error;
    tandem_runtime *runtime = open_plain(1);
    tandem_plan *plan = NULL;
    check_status(tandem_runtime_open(NULL, NULL, &error), TANDEM_E_ARGUMENT, "out_runtime is NULL",
                 &error);
    check_status(tandem_runtime_plan(NULL, net.graph, &plan, &error), TANDEM_E_ARGUMENT,
                 "runtime is NULL", &error);
    check_status(tandem_runtime_plan(runtime, net.graph, NULL, &error), TANDEM_E_ARGUMENT,
                 "out_plan is NULL", &error);
    check_int(tandem_runtime_plan(runtime, NULL, &plan, &error), TANDEM_E_STATE);
    check_int(tandem_runtime_compute(NULL, net.graph, NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_add_backend(runtime, NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_set_table(NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_table_status(NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_tune_graph(NULL, net.graph, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_set_threads(NULL, 1), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_set_cpus(NULL, NULL, 0), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_set_error_bound(NULL, 0), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_force_profile(NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_describe(runtime, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_print_plan(runtime, net.graph, NULL, append, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_explain(NULL, net.graph, NULL, append, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_save_plan(runtime, net.graph, NULL, "x", NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_load_plan(runtime, net.graph, "x", NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_count_steps(runtime, net.graph, NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_save_drift(NULL, NULL, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_fetch(runtime, NULL, false, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_runtime_threads(NULL), 0);
    check_int(tandem_runtime_backend_count(NULL), 0);
    CU_ASSERT_PTR_NULL(tandem_runtime_backend_name(NULL, 0));
    check_int(tandem_runtime_drift(NULL, NULL, 3), 0);
    tandem_runtime_set_execution(NULL, TANDEM_EXECUTE_DEFAULT);
    tandem_runtime_pause(NULL);
    tandem_runtime_resume(NULL);
    tandem_runtime_forget(runtime, NULL);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static int append(void *user, const char *bytes, unsigned long n)
{
    char *text = user;
    size_t used = strlen(text);
    snprintf(text + used, 8192 - used, "%.*s", (int)n, bytes);
    return 0;
}

static void a_plan_prints_what_it_does(void)
{
    struct network net = network_new(TANDEM_TYPE_Q4_0, 5);
    tandem_runtime *runtime = open_plain(2);
    tandem_plan *plan = NULL;
    static char text[8192];
    text[0] = '\0';
    check_ok(tandem_runtime_plan(runtime, net.graph, &plan, NULL));
    check_ok(tandem_runtime_print_plan(runtime, net.graph, plan, append, text));
    check_contains(text, "mul_mat:q4_0:n352:k256:m5");
    check_contains(text, "init cpu quantize_x");
    check_contains(text, "compute cpu mul_mat_q");
    check_contains(text, "4 nodes");
    tandem_plan_free(plan);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static bool always(void *user)
{
    (void)user;
    return true;
}

static void add_time(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    double *sums = user;
    sums[0] += us;
    sums[1] += strcmp(tandem_tensor_op_name(node), "mul_mat") == 0 && stage == TANDEM_STAGE_COMPUTE;
}

static void a_computation_tells_the_times_of_its_stages(void)
{
    struct network net = network_new(TANDEM_TYPE_Q4_0, 3);
    tandem_runtime *runtime = open_plain(2);
    double sums[2] = {0, 0};
    int products = 0;
    struct tandem_compute_options options = {
        .size = sizeof(options), .timed = add_time, .user = sums};
    for (int i = 0; i < tandem_graph_node_count(net.graph); i++) {
        const char *name = tandem_tensor_op_name(tandem_graph_node(net.graph, i));
        products += strcmp(name, "mul_mat") == 0;
    }
    check_ok(tandem_runtime_compute(runtime, net.graph, NULL, &options, NULL));
    CU_ASSERT_TRUE(sums[0] > 0);
    check_int((int64_t)sums[1], products);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static void a_computation_can_be_cancelled_and_repeated(void)
{
    struct network net = network_new(TANDEM_TYPE_F32, 3);
    tandem_runtime *runtime = open_plain(2);
    struct tandem_compute_options options = {.size = sizeof(options), .cancel = always};
    check_int(tandem_runtime_compute(runtime, net.graph, NULL, &options, NULL), TANDEM_E_CANCELLED);
    check_ok(tandem_runtime_compute(runtime, net.graph, NULL, NULL, NULL));
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
}

static void an_unfinished_graph_is_refused(void)
{
    tandem_runtime *runtime = open_plain(1);
    tandem_context *context;
    struct tandem_error error;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_graph *graph = tandem_graph_new(context);
    check_status(tandem_runtime_compute(runtime, graph, NULL, NULL, &error), TANDEM_E_STATE,
                 "tandem_graph_finish", &error);
    tandem_context_free(context);
    tandem_runtime_close(runtime);
}

struct caller {
    pthread_t thread;
    tandem_runtime *runtime;
    struct network net;
    const float *reference;
    int n_wrong;
    int n_rounds;
};

static void *compute_often(void *argument)
{
    struct caller *caller = argument;
    for (int i = 0; i < caller->n_rounds; i++) {
        if (tandem_runtime_compute(caller->runtime, caller->net.graph, NULL, NULL, NULL) !=
                TANDEM_OK ||
            memcmp(tandem_tensor_data(caller->net.y), caller->reference,
                   result_bytes(&caller->net)) != 0) {
            caller->n_wrong++;
        }
    }
    return NULL;
}

static void several_threads_compute_on_one_runtime(void)
{
    enum { CALLERS = 4 };
    struct caller callers[CALLERS];
    tandem_runtime *runtime = open_plain(3);
    float *reference = NULL;
    for (int i = 0; i < CALLERS; i++) {
        callers[i].runtime = runtime;
        callers[i].net = network_new(TANDEM_TYPE_Q5_0, 9);
        callers[i].n_wrong = 0;
        callers[i].n_rounds = tnd_effort() > 2 ? 5000 : 200;
        if (reference == NULL) {
            check_ok(tandem_runtime_compute(runtime, callers[i].net.graph, NULL, NULL, NULL));
            reference = malloc(result_bytes(&callers[i].net));
            memcpy(reference, tandem_tensor_data(callers[i].net.y), result_bytes(&callers[i].net));
        }
        callers[i].reference = reference;
    }
    for (int i = 0; i < CALLERS; i++) {
        CU_ASSERT_EQUAL(pthread_create(&callers[i].thread, NULL, compute_often, &callers[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        tandem_runtime_pause(runtime);
        check_ok(tandem_runtime_set_threads(runtime, 1 + i % 4));
        tandem_runtime_resume(runtime);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        check_int(callers[i].n_wrong, 0);
        tandem_context_free(callers[i].net.context);
    }
    free(reference);
    tandem_runtime_close(runtime);
}

static void profiles_are_listed_with_stages_or_reasons(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_profile_info profiles[16];
    tandem_runtime *runtime = NULL;
    int other = 0;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    int n = tandem_runtime_profiles(runtime, profiles, 16);
    CU_ASSERT_TRUE(n >= 4);
    check_string(profiles[0].name, "cpu");
    CU_ASSERT_TRUE(profiles[0].available);
    while (other < n && strcmp(profiles[other].name, "cpu+openblas") != 0) {
        other++; /* "cpu-packed" and, on a CPU with AMX, "cpu-amx" */
    }
    CU_ASSERT_TRUE_FATAL(other < n);
    CU_ASSERT_FALSE(profiles[other].available);
    check_contains(profiles[other].reason, "openblas");
    check_int(tandem_runtime_profiles(runtime, NULL, 0), n);
    tandem_runtime_close(runtime);
}

static void a_trace_is_written_when_the_environment_asks_for_it(void)
{
    const char *path = tnd_test_temp("trace.json");
    struct network net = network_new(TANDEM_TYPE_Q4_0, 5);
    setenv("TANDEM_TRACE", path, 1);
    tandem_runtime *runtime = open_plain(2);
    unsetenv("TANDEM_TRACE");
    tandem_tensor_set_name(tandem_graph_node(net.graph, 0), "up \"quoted\"");
    check_ok(tandem_runtime_compute(runtime, net.graph, NULL, NULL, NULL));
    tandem_runtime_close(runtime);
    char *text = tnd_test_read_file(path, NULL);
    CU_ASSERT_PTR_NOT_NULL(text);
    if (text != NULL) {
        check_contains(text, "{\"name\":\"mul_mat up _quoted_\",\"cat\":\"init\"");
        check_contains(text, "\"name\":\"silu");
    }
    free(text);
    tandem_context_free(net.context);
}

static size_t prepared_bytes(const tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime_describe(runtime, &info);
    return info.prepared_bytes;
}

static tandem_context *product_of_zeros(tandem_tensor **w, tandem_graph **graph)
{
    tandem_context *context = NULL;
    check_ok(tandem_context_new(NULL, &context, NULL));
    *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){256, 64});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){256, 2});
    *graph = tandem_graph_new(context);
    memset(tandem_tensor_data(*w), 0, tandem_tensor_bytes(*w));
    memset(tandem_tensor_data(x), 0, tandem_tensor_bytes(x));
    tandem_tensor_set_role(*w, TANDEM_ROLE_CONSTANT);
    tandem_graph_add(*graph, tandem_mul_mat(context, *w, x));
    check_ok(tandem_graph_finish(*graph, NULL));
    return context;
}

/* Q4_0, 64 x 256: 9216 bytes and what the strips add. */
static void copies_of_weights_are_counted_until_they_are_forgotten(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    tandem_context *context = NULL;
    options.table_path = "";
    options.profile = "cpu-packed";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tandem_tensor *w;
    tandem_graph *graph;
    context = product_of_zeros(&w, &graph);
    check_int((int64_t)prepared_bytes(runtime), 0);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    size_t once = prepared_bytes(runtime);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    check_int((int64_t)prepared_bytes(runtime), (int64_t)once);
    if (once == 0) {
        tnd_skip("no packed weights with this instruction set");
    } else {
        CU_ASSERT_TRUE(once >= 9216 && once < 2 * 9216);
    }
    tandem_runtime_forget(runtime, w);
    check_int((int64_t)prepared_bytes(runtime), 0);
    check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
    tandem_context_free(context);
    /* what was copied for a context that is gone goes with the next copy */
    for (int i = 0; i < 3; i++) {
        context = product_of_zeros(&w, &graph);
        check_ok(tandem_runtime_compute(runtime, graph, NULL, NULL, NULL));
        check_int((int64_t)prepared_bytes(runtime), (int64_t)once);
        tandem_context_free(context);
    }
    tandem_runtime_close(runtime);
}

static bool count_progress(void *user, uint64_t done_bytes, uint64_t all_bytes)
{
    int *n = user;
    CU_ASSERT_TRUE(0 < done_bytes && done_bytes <= all_bytes && all_bytes == 2 * 9216);
    return ++*n != 3; /* the third call of a test ends it */
}

/* Two weights of Q4_0, 64 x 256. The results have the bits of a runtime that prepared nothing. */
static void weights_are_prepared_before_they_are_needed(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_prepare_options prepare = TANDEM_PREPARE_OPTIONS_INIT;
    struct tandem_error error;
    tandem_runtime *runtime = NULL;
    tandem_context *context = NULL;
    tandem_plan *plan = NULL;
    tandem_tensor *y[2];
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    float want[2][128];
    int n_calls = 0;
    options.table_path = "";
    options.profile = "cpu-packed";
    options.n_threads = 3;
    check_ok(tandem_context_new(NULL, &context, NULL));
    tandem_graph *graph = tandem_graph_new(context);
    for (int i = 0; i < 2; i++) {
        tandem_tensor *w = tandem_tensor_new_2d(context, TANDEM_TYPE_Q4_0, 256, 64);
        tandem_tensor *x = tandem_tensor_new_2d(context, TANDEM_TYPE_F32, 256, 2);
        uint8_t *blocks = tandem_tensor_data(w);
        for (size_t b = 0; b < tandem_tensor_bytes(w); b++) {
            blocks[b] = b % 18 == 1 ? 0x2c : (uint8_t)(b * 2654435761u >> 9); /* usual scales */
        }
        tnd_test_fill(&rng, tandem_tensor_data(x), 512);
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        y[i] = tandem_mul_mat(context, w, x);
        tandem_graph_add(graph, y[i]);
    }
    check_ok(tandem_graph_finish(graph, NULL));
    enum { NOT, NOW, GRADUALLY, WAYS };
    size_t all_bytes = 0;
    for (int way = 0; way < WAYS; way++) {
        check_ok(tandem_runtime_open(&options, &runtime, NULL));
        check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
        prepare.gradually = way == GRADUALLY;
        prepare.progress = count_progress;
        prepare.user = &n_calls;
        if (way == GRADUALLY) {
            check_ok(tandem_runtime_prepare(runtime, graph, plan, &prepare, NULL));
            check_int((int64_t)prepared_bytes(runtime), 0);
        } else if (way == NOW) {
            check_ok(tandem_runtime_prepare(runtime, graph, plan, &prepare, NULL));
            const size_t bytes = prepared_bytes(runtime);
            check_int(n_calls, bytes > 0 ? 2 : 0); /* 0: no packed weights on this machine */
            check_status(tandem_runtime_prepare(runtime, graph, plan, &prepare, &error),
                         bytes > 0 ? TANDEM_E_CANCELLED : TANDEM_OK, NULL, &error);
            check_ok(tandem_runtime_prepare(runtime, graph, plan, NULL, NULL));
            check_int((int64_t)prepared_bytes(runtime), (int64_t)bytes);
        }
        /* the first run adds none, and one of two weights is more than the 32nd of later ones */
        for (int run = 0; run < (way == GRADUALLY ? 33 : 1); run++) {
            check_ok(tandem_runtime_compute(runtime, graph, plan, NULL, NULL));
            for (int i = 0; i < 2; i++) {
                if (way != NOT) {
                    check_bits(y[i]->data, want[i], sizeof(want[i]), "prepared");
                }
                memcpy(want[i], y[i]->data, sizeof(want[i]));
            }
            if (way == GRADUALLY && run < 3) {
                check_int((int64_t)prepared_bytes(runtime), run == 0 ? 0 : (int64_t)all_bytes / 2);
            }
        }
        all_bytes = way == NOT ? prepared_bytes(runtime) : all_bytes;
        check_int((int64_t)prepared_bytes(runtime), (int64_t)all_bytes);
        tandem_plan_free(plan);
        tandem_runtime_close(runtime);
    }
    tandem_context_free(context);
}

static CU_TestInfo tests[] = {
    {"weights_are_prepared_before_they_are_needed", weights_are_prepared_before_they_are_needed},
    {"a_trace_is_written_when_the_environment_asks_for_it",
     a_trace_is_written_when_the_environment_asks_for_it},
    {"options_are_checked", options_are_checked},
    {"an_older_and_a_newer_program_are_served", an_older_and_a_newer_program_are_served},
    {"a_bad_table_is_no_error_but_is_told", a_bad_table_is_no_error_but_is_told},
    {"a_table_can_be_exchanged_while_the_runtime_is_open",
     a_table_can_be_exchanged_while_the_runtime_is_open},
    {"the_path_of_the_table_stays_readable_when_another_table_is_set",
     the_path_of_the_table_stays_readable_when_another_table_is_set},
    {"every_profile_and_thread_count_gives_the_right_result",
     every_profile_and_thread_count_gives_the_right_result},
    {"a_plan_changed_by_hand_is_run_as_changed", a_plan_changed_by_hand_is_run_as_changed},
    {"one_call_forces_a_profile_for_one_node", one_call_forces_a_profile_for_one_node},
    {"a_profile_that_cannot_run_a_node_is_refused_with_those_that_can",
     a_profile_that_cannot_run_a_node_is_refused_with_those_that_can},
    {"everything_is_allocated_where_the_program_says_and_given_back",
     everything_is_allocated_where_the_program_says_and_given_back},
    {"results_fit_into_older_and_newer_structs", results_fit_into_older_and_newer_structs},
    {"null_is_refused_wherever_a_pointer_is_needed", null_is_refused_wherever_a_pointer_is_needed},
    {"a_plan_prints_what_it_does", a_plan_prints_what_it_does},
    {"a_computation_tells_the_times_of_its_stages", a_computation_tells_the_times_of_its_stages},
    {"a_computation_can_be_cancelled_and_repeated", a_computation_can_be_cancelled_and_repeated},
    {"an_unfinished_graph_is_refused", an_unfinished_graph_is_refused},
    {"several_threads_compute_on_one_runtime", several_threads_compute_on_one_runtime},
    {"copies_of_weights_are_counted_until_they_are_forgotten",
     copies_of_weights_are_counted_until_they_are_forgotten},
    {"profiles_are_listed_with_stages_or_reasons", profiles_are_listed_with_stages_or_reasons},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {"runtime", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_convs[];
extern CU_SuiteInfo suites_runtime_nets[];
extern CU_SuiteInfo suites_runtime_abi[];
extern CU_SuiteInfo suites_runtime_plans[];
extern CU_SuiteInfo suites_runtime_devices[];
extern CU_SuiteInfo suites_runtime_floats[];
extern CU_SuiteInfo suites_runtime_watch[];
extern CU_SuiteInfo suites_runtime_drift[];
extern CU_SuiteInfo suites_runtime_fork[];
extern CU_SuiteInfo suites_runtime_soak[];
extern CU_SuiteInfo suites_runtime_mapped[];
extern CU_SuiteInfo suites_runtime_place[];
extern CU_SuiteInfo suites_runtime_observer[];
extern CU_SuiteInfo suites_runtime_numa[];
extern CU_SuiteInfo suites_runtime_hosted[];
extern CU_SuiteInfo suites_runtime_arms[];

int main(int argc, char **argv)
{
    /* The tables of whoever runs the tests are no part of them. */
    setenv("TANDEM_TABLE", "/nowhere/table.json", 0);
    return tnd_suites_run(argc, argv, suites, suites_runtime_abi, suites_runtime_watch,
                          suites_runtime_plans, suites_runtime_devices, suites_runtime_fork,
                          suites_runtime_mapped, suites_runtime_observer, suites_runtime_floats,
                          suites_runtime_place, suites_runtime_numa, suites_runtime_drift,
                          suites_runtime_soak, suites_runtime_convs, suites_runtime_nets,
                          suites_runtime_hosted, suites_runtime_arms, NULL);
}
