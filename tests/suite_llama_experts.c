/* SPDX-License-Identifier: MIT
 * Hot experts on a pretended device, cold ones on the CPU: which are hot follows from what tokens
 * use, logits are those of the plain loops, and the CPU touches what was predicted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/tnd_runtime.h"
#include "sched/plan.h"
#include "tandem/device.h"
#include "tests/suite_llama_naive.h"
#include "tests/support_tune.h"
#include "tune/policy.h"

enum { DIM = 128, EXPERTS = 16, USED = 2, LAYERS = 2, HALF = NAIVE_VOCABULARY / 2 };

static const struct naive_spec spec = {.experts = EXPERTS, .used = USED, .context = 256};

/* ---- a model of which few experts get most tokens ---- */

static float *weight(const tandem_source *source, const char *name)
{
    struct tandem_source_tensor found = {.data = NULL};
    CU_ASSERT_TRUE_FATAL(tandem_source_find(source, name, &found));
    return (float *)(uintptr_t)found.data; /* memory of the source */
}

/* Tokens below HALF go to experts 1 to 3, the others to experts 9 to 11: embeddings have a large
 * component of either sign, which routers look at. */
static tandem_source *skewed_source(void)
{
    tandem_source *source = naive_source(&spec);
    float *embedding = weight(source, "token_embd.weight");
    for (int64_t t = 0; t < NAIVE_VOCABULARY; t++) {
        embedding[t * DIM] = 20.0f;
        embedding[t * DIM + 1] = t < HALF ? 20.0f : -20.0f;
    }
    for (int l = 0; l < LAYERS; l++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%d.ffn_norm.weight", l);
        float *norm = weight(source, name);
        norm[0] = norm[1] = 1.0f;
        snprintf(name, sizeof(name), "blk.%d.ffn_gate_inp.weight", l);
        float *router = weight(source, name);
        for (int e = 0; e < EXPERTS; e++) {
            router[e * DIM] = (e >= 1 && e <= 3) || (e >= 9 && e <= 11) ? 0.3f : -0.3f;
            router[e * DIM + 1] = e < 8 ? 0.3f : -0.3f;
        }
    }
    return source;
}

static void make_tokens(int32_t *tokens, int64_t n, bool is_high)
{
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)((i * 7 + i / 5) % HALF + (is_high ? HALF : 0));
    }
}

/* ---- a device that is eight times as fast ---- */

static double device_rate; /* values that the device reads in the time of one of the CPU, */
static double cpu_rate;    /* which reads so many in a microsecond */

static void add_curves(tandem_table *table, const char *backend, double values_per_us)
{
    static const int64_t widths[] = {96, 128};
    static const int64_t rows[] = {8, 64, 512, 4096};
    const enum tandem_task task = tune_add_profile(table, backend);
    for (int i = 0; i < 8; i++) {
        const double read_us = (double)(rows[i % 4] * widths[i / 4]) / values_per_us;
        tune_add_rate(table, backend, task, rows[i % 4], widths[i / 4], read_us, 0.1 * read_us);
    }
}

static tandem_table *make_table(const char *name)
{
    tandem_table *table = tune_new();
    add_curves(table, "cpu", cpu_rate);
    add_curves(table, name, cpu_rate * device_rate);
    tune_add_link(table, name, 1, 10000);
    return table;
}

/* ---- everything together ---- */

static tandem_source *source;
static tandem_model *model;
static tandem_runtime *runtime;
static tandem_session *session;
static int n_log_lines;       /* that speak of experts that moved, */
static int n_lost;            /* or of a lost device */
static int n_at_once;         /* plans in which both sides have such products at once */
static int on_device, on_cpu; /* products of experts in the newest plan, */
static int most_on_device;    /* and in the plan with most of them */

static void count_lines(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    n_log_lines += strstr(text, "experts moved") != NULL;
    n_lost += strstr(text, "lost") != NULL;
}

/* Bytes for all that is no expert, and for `n` experts a layer. */
static int64_t memory_for(int64_t n)
{
    const int64_t expert = 3 * DIM * 96 * 4;
    int64_t bytes = TND_FIT_RESERVE_BYTES + 4 * (4 * DIM * 32 + DIM * DIM);
    struct tandem_source_tensor tensor;
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        CU_ASSERT_TRUE(tandem_source_tensor_at(source, i, &tensor));
        bytes += strstr(tensor.name, "_exps") == NULL ? (int64_t)tensor.bytes : 0;
    }
    return bytes + (int64_t)tandem_session_cache_bytes(session) + LAYERS * n * expert;
}

/* Whether products of experts are predicted to run on the CPU and on the device at once. */
static bool is_at_once(const tandem_graph *graph, const tandem_plan *plan)
{
    const struct tandem_plan_span *spans = plan->schedule != NULL ? plan->schedule->spans : NULL;
    for (int i = 0; spans != NULL && i < plan->schedule->n_spans; i++) {
        for (int j = 0; j < plan->schedule->n_spans; j++) {
            if (spans[i].lane == TANDEM_LANE_COMPUTE && spans[j].lane == TANDEM_LANE_COMPUTE &&
                spans[i].backend == TANDEM_BACKEND_CPU && spans[j].backend > TANDEM_BACKEND_CPU &&
                tandem_graph_node(graph, spans[i].node)->op == TANDEM_OP_MUL_MAT_ID &&
                tandem_graph_node(graph, spans[j].node)->op == TANDEM_OP_MUL_MAT_ID &&
                spans[i].begin_us < spans[j].end_us && spans[j].begin_us < spans[i].end_us) {
                return true;
            }
        }
    }
    return false;
}

static void look_at_plan(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    (void)user;
    on_device = on_cpu = 0;
    n_at_once += is_at_once(graph, plan);
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        const bool is_product = tandem_graph_node(graph, i)->op == TANDEM_OP_MUL_MAT_ID;
        const int backend = tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE].backend;
        on_device += is_product && backend > TANDEM_BACKEND_CPU;
        on_cpu += is_product && backend == TANDEM_BACKEND_CPU;
    }
    most_on_device = on_device > most_on_device ? on_device : most_on_device;
}

static struct tandem_backend_api api;

static void open_model(const char *backends, const char *device, const char *settings)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    const struct tandem_session_options session_options = {.size = sizeof(session_options),
                                                           .adjust = look_at_plan};
    options.n_threads = 2;
    options.table_path = "";
    options.backends = backends;
    options.settings = settings;
    options.log = count_lines;
    options.log_level = TANDEM_LOG_INFO;
    n_log_lines = n_lost = n_at_once = most_on_device = 0;
    source = skewed_source();
    check_ok(tandem_model_new(source, &model, NULL));
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tandem_table *table = make_table(device);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    check_ok(tandem_session_new(model, runtime, &session_options, &session, NULL));
}

/* With the pretended device. */
static void open_all(const char *settings)
{
    cpu_rate = 10;
    device_rate = 8;
    open_model("cpu", "simown", NULL);
    api = tune_sim_api(0);
    check_ok(tandem_runtime_add_backend(runtime, &api, settings, NULL));
}

static void close_all(void)
{
    tandem_session_free(session);
    tandem_runtime_close(runtime);
    tandem_model_free(model);
    tandem_source_close(source);
}

static void place(int64_t memory)
{
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tandem_error error = {0};
    options.objective = TANDEM_PLACE_GENERATION;
    options.prompt_tokens = 32;
    options.device_memory = &memory;
    options.n_device_memory = 1;
    check_status(tandem_session_place(session, &options, &error), TANDEM_OK, NULL, &error);
}

/* One by one, as tokens are generated. */
static void decode(const int32_t *tokens, int64_t n)
{
    struct tandem_error error = {0};
    for (int64_t i = 0; i < n; i++) {
        check_status(tandem_session_decode(session, tokens + i, 1, 1, &error), TANDEM_OK, NULL,
                     &error);
    }
}

static struct tandem_hot_experts hot_now(void)
{
    struct tandem_hot_experts hot = {0};
    CU_ASSERT_TRUE(tandem_session_hot_experts(session, &hot));
    return hot;
}

static void check_hot(int first, int last)
{
    const struct tandem_hot_experts hot = hot_now();
    for (int l = 0; l < LAYERS; l++) {
        for (int e = first; e <= last; e++) {
            CU_ASSERT_TRUE(hot.is_hot[l * EXPERTS + e] != 0);
        }
    }
}

static void check_logits(const int32_t *tokens, int64_t n, const char *what)
{
    double want[NAIVE_VOCABULARY];
    naive_logits(source, &spec, tokens, n, want);
    check_nmse_double(tandem_session_logits(session, 0), want, NAIVE_VOCABULARY, 1e-9, what);
}

/* ---- tests ---- */

static void the_hot_set_is_what_tokens_use_and_follows_them(void)
{
    int32_t tokens[160];
    open_all(NULL);
    make_tokens(tokens, 70, false);
    make_tokens(tokens + 70, 90, true);
    tandem_session_replan_experts(session, 16);
    place(memory_for(4));
    decode(tokens, 16);
    check_int(hot_now().n_looks, 0);
    check_int(hot_now().n_hot, 0); /* nothing was counted when the weights were placed */
    const int64_t before = hot_now().cold_bytes_last;
    decode(tokens + 16, 54);
    check_hot(1, 3);
    CU_ASSERT_TRUE(hot_now().n_hot >= 4 * LAYERS && hot_now().n_hot <= 7 * LAYERS);
    CU_ASSERT_TRUE(hot_now().n_moves >= 1);
    CU_ASSERT_TRUE(n_log_lines >= 1);
    CU_ASSERT_TRUE(before > 0);
    check_logits(tokens, 70, "hot and cold experts");
    check_int(hot_now().cold_bytes_last, 0); /* all that the token uses is on the device */
    check_int(most_on_device, 3 * LAYERS);
    check_int(on_device + on_cpu, 6 * LAYERS); /* hot and cold; the observer may try without */
    decode(tokens + 70, 1);
    CU_ASSERT_TRUE(hot_now().cold_bytes_last > 0); /* other experts, not yet on the device */
    check_logits(tokens, 71, "cold experts alone");
    decode(tokens + 71, 89);
    check_hot(9, 11);
    CU_ASSERT_TRUE(hot_now().n_moves >= 2);
    check_int(hot_now().cold_bytes_last, 0);
    check_logits(tokens, 160, "other hot experts");
    close_all();
}

static void nothing_moves_while_use_stays_as_it_is_or_nobody_looks(void)
{
    int32_t tokens[200];
    open_all(NULL);
    make_tokens(tokens, 200, false);
    tandem_session_replan_experts(session, 16);
    place(memory_for(4));
    decode(tokens, 60);
    check_hot(1, 3);
    const struct tandem_hot_experts before = hot_now();
    decode(tokens + 60, 140);
    CU_ASSERT_TRUE(hot_now().n_looks > before.n_looks);
    CU_ASSERT_TRUE(hot_now().n_looks <= before.n_looks + 4); /* more and more seldom */
    check_int(hot_now().n_moves, before.n_moves);
    close_all();

    open_all(NULL);
    tandem_session_replan_experts(session, 0);
    place(memory_for(4));
    decode(tokens, 60);
    check_int(hot_now().n_looks, 0);
    check_int(hot_now().n_hot, 0);
    close_all();
}

/* A prompt, several tokens an expert, and the state of a session: as without a device. */
static void prompts_and_states_are_the_same_with_hot_experts(void)
{
    int32_t tokens[120];
    struct tandem_error error = {0};
    open_all(NULL);
    make_tokens(tokens, 60, false);
    make_tokens(tokens + 60, 60, true);
    tandem_session_replan_experts(session, 16);
    place(memory_for(5));
    decode(tokens, 40);
    CU_ASSERT_TRUE(hot_now().n_hot > 0);
    check_status(tandem_session_decode(session, tokens + 40, 80, 40, &error), TANDEM_OK, NULL,
                 &error);
    check_logits(tokens, 120, "a prompt with hot experts");
    const size_t bytes = tandem_session_state_bytes(session);
    void *state = malloc(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(state);
    check_ok(tandem_session_state_write(session, state, &error));
    CU_ASSERT_EQUAL(tandem_session_rollback(session, 0, 0), 0);
    check_ok(tandem_session_state_read(session, state, bytes, "state", &error));
    CU_ASSERT_TRUE(hot_now().n_hot > 0);
    check_logits(tokens, 120, "a state read back");
    free(state);
    tandem_runtime *other = tnd_test_runtime(2, NULL); /* without a device */
    tandem_session_set_runtime(session, other);
    check_int(hot_now().n_hot, 0);
    CU_ASSERT_EQUAL(tandem_session_rollback(session, 0, 100), 100);
    decode(tokens + 100, 20);
    check_logits(tokens, 120, "another runtime");
    tandem_runtime_close(runtime);
    runtime = other;
    tandem_session_free(session);
    session = NULL;
    close_all();
}

static void a_lost_device_leaves_everything_to_the_cpu(void)
{
    int32_t tokens[120];
    char settings[64];
    struct tnd_runtime_parts parts;
    struct tnd_sim_statistics statistics;
    make_tokens(tokens, 120, false);
    open_all(NULL); /* how many calls there are until experts are hot */
    tandem_session_replan_experts(session, 16);
    place(memory_for(4));
    decode(tokens, 60);
    CU_ASSERT_TRUE(hot_now().n_hot > 0);
    tnd_runtime_parts(runtime, &parts);
    tnd_sim_statistics(
        tnd_registry_backend(parts.registry, tandem_runtime_backend_count(runtime) - 1),
        &statistics);
    close_all();
    snprintf(settings, sizeof(settings), "fail=lost,fail_at=%d", (int)statistics.calls + 20);
    open_all(settings);
    tandem_session_replan_experts(session, 16);
    place(memory_for(4));
    decode(tokens, 60);
    CU_ASSERT_TRUE(hot_now().n_hot > 0 || n_lost > 0);
    decode(tokens + 60, 30);
    /* How often the device is called depends on how busy this machine is: the observer may leave it
     * alone for a while. */
    for (int i = 0; i < 40 && n_lost == 0; i++) {
        CU_ASSERT_EQUAL(tandem_session_rollback(session, 0, 60), 60);
        decode(tokens + 60, 30);
    }
    check_logits(tokens, 90, "a lost device");
    check_int(n_lost, 1);
    /* (the graph in which it was lost had begun there) */
    CU_ASSERT_EQUAL(tandem_session_rollback(session, 0, 60), 60);
    decode(tokens + 60, 30);
    check_int(on_device, 0);
    tandem_session_replan_experts(session, 8); /* the next look finds no device */
    decode(tokens + 90, 30);
    check_int(hot_now().n_hot, 0);
    check_logits(tokens, 120, "long after");
    close_all();
}

/* Products take long, beside which the rest counts for nothing, and both sides have one of a
 * token's two experts: chains that run at once take less time than one behind the other. */
static void hot_and_cold_experts_run_at_once(void)
{
    int32_t tokens[60];
    cpu_rate = 1;
    device_rate = 2.4; /* of one thread; two are told to be 1.8 times as fast */
    open_model("cpu", "simown", NULL);
    api = tune_sim_api(0);
    check_ok(tandem_runtime_add_backend(runtime, &api, NULL, NULL));
    make_tokens(tokens, 60, false);
    tandem_session_replan_experts(session, 16);
    place(memory_for(2));
    decode(tokens, 60);
    /* Some plan did. Whether the last one still does, and whether experts are still hot then,
     * follows from real times: a busy machine makes the guard or a later look drop them. */
    CU_ASSERT_TRUE(n_at_once > 0);
    check_logits(tokens, 60, "both sides at once");
    close_all();
}

static void hot_experts_run_on_an_opencl_device(void)
{
    int32_t tokens[100];
    char settings[1200];
    struct tandem_error error = {0};
    if (tandem_devices(NULL, 0, &error) == 0) {
        tnd_skip("opencl: no device: %s", error.text);
        return;
    }
    snprintf(settings, sizeof(settings), "opencl:device=0,cache=%s", tnd_test_temp("programs"));
    cpu_rate = 10;
    device_rate = 8;
    open_model("cpu,opencl", "opencl", settings);
    make_tokens(tokens, 100, false);
    tandem_session_replan_experts(session, 16);
    place(memory_for(4));
    decode(tokens, 50);
    check_int(hot_now().cold_bytes_last, 0); /* hot, or in a layer that is there as a whole */
    CU_ASSERT_TRUE(hot_now().n_hot > 0);
    check_int(most_on_device, 3 * LAYERS); /* on a busy machine the observer may try without */
    CU_ASSERT_TRUE(on_cpu >= 3);
    check_logits(tokens, 50, "hot experts by OpenCL");
    check_status(tandem_session_decode(session, tokens + 50, 50, 25, &error), TANDEM_OK, NULL,
                 &error);
    check_logits(tokens, 100, "a prompt with hot experts by OpenCL");
    close_all();
}

static void without_experts_or_a_device_nothing_is_hot(void)
{
    static const struct naive_spec plain = {.context = 64};
    struct tandem_hot_experts hot = {.n_hot = 7};
    tandem_source *dense = naive_source(&plain);
    tandem_model *dense_model = NULL;
    tandem_runtime *cpu = tnd_test_runtime(1, NULL);
    check_ok(tandem_model_new(dense, &dense_model, NULL));
    tandem_session *one = tnd_test_session(dense_model, cpu, 64);
    CU_ASSERT_FALSE(tandem_session_hot_experts(one, &hot));
    check_int(hot.n_hot, 7); /* untouched */
    tandem_session_replan_experts(one, 1);
    tandem_session_free(one);
    tandem_model_free(dense_model);
    tandem_source_close(dense);
    tandem_runtime_close(cpu);
}

static CU_TestInfo tests[] = {
    {"the hot set is what tokens use and follows them",
     the_hot_set_is_what_tokens_use_and_follows_them},
    {"nothing moves while use stays as it is or nobody looks",
     nothing_moves_while_use_stays_as_it_is_or_nobody_looks},
    {"prompts and states are the same with hot experts",
     prompts_and_states_are_the_same_with_hot_experts},
    {"a lost device leaves everything to the cpu", a_lost_device_leaves_everything_to_the_cpu},
    {"hot and cold experts run at once", hot_and_cold_experts_run_at_once},
    {"hot experts run on an opencl device", hot_experts_run_on_an_opencl_device},
    {"without experts or a device nothing is hot", without_experts_or_a_device_nothing_is_hot},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_experts[];
CU_SuiteInfo suites_llama_experts[] = {{"hot experts", NULL, NULL, NULL, NULL, tests},
                                       CU_SUITE_INFO_NULL};
