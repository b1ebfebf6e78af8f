/* SPDX-License-Identifier: MIT
 * Micro-batches: layers lie on two or three devices, and a prompt or several texts go through them
 * in parts, one behind the other. Pretended devices sleep as long as their table says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/clock.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/tnd_runtime.h"
#include "tandem/device.h"
#include "tests/suite_llama.h"
#include "tests/support_tune.h"
#include "tune/placement.h"

enum { VOCABULARY = 64, LAYERS = 6, PROMPT = 16, TEXTS = 4, MOST_WEIGHTS = 256 };

static tandem_source *source;
static tandem_model *model;
static tandem_runtime *runtime;
static struct tandem_backend_api apis[TUNE_SIM_DEVICES];
static int n_lost; /* log lines that speak of it */

static void count_lines(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    n_lost += strstr(text, "lost") != NULL;
}

/* ---- devices that keep a share of the layers each ---- */

/* Products of the model's shapes take so many microseconds for each token and 1000 weights. */
static void add_times(tandem_table *table, const char *profile, const char *backend, double us)
{
    const enum tandem_task task = tune_add_profile(table, profile);
    struct tandem_source_tensor tensor;
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        CU_ASSERT_TRUE(tandem_source_tensor_at(source, i, &tensor));
        if (tensor.n_dims == 2) {
            const double one_us = us * (double)(tensor.ne[0] * tensor.ne[1]) / 1000;
            tune_add_rate(table, backend, task, tensor.ne[1], tensor.ne[0], 1e-3, one_us);
        }
    }
    if (strcmp(backend, "cpu") != 0) {
        tune_add_link(table, backend, 1, 10000);
    }
}

static int slot_of(const char *name)
{
    for (int i = 0; i < tandem_runtime_backend_count(runtime); i++) {
        if (strcmp(tandem_runtime_backend_name(runtime, i), name) == 0) {
            return i;
        }
    }
    CU_FAIL_FATAL("no such backend");
    return -1;
}

/* As many layers each, in this order; the last one has the classifier, the CPU the rest. */
static void place_layers(int n_layers, const char *const *names, int n_names)
{
    struct tnd_placed placed[MOST_WEIGHTS];
    struct tnd_placement *placement = NULL;
    struct tnd_runtime_parts parts;
    struct tandem_source_tensor tensor;
    const int n = tandem_source_tensor_count(source);
    CU_ASSERT_TRUE_FATAL(n <= MOST_WEIGHTS);
    for (int i = 0; i < n; i++) {
        int layer = 0;
        CU_ASSERT_TRUE(tandem_source_tensor_at(source, i, &tensor));
        int slot = TANDEM_BACKEND_CPU;
        if (sscanf(tensor.name, "blk.%d.", &layer) == 1) {
            slot = slot_of(names[layer * n_names / n_layers]);
        } else if (strcmp(tensor.name, "output.weight") == 0) {
            slot = slot_of(names[n_names - 1]);
        }
        placed[i] = (struct tnd_placed){tensor.data, slot, NULL, 0};
    }
    check_ok(tnd_placement_new(placed, n, &placement, NULL));
    tnd_runtime_parts(runtime, &parts);
    tnd_planner_set_placement(parts.planner, placement);
}

/* For each token and 1000 weights: long beside what the host does, so that a busy machine disturbs
 * little. */
enum { DEVICE_US = 200 };

/* `settings`: of the last device; the others sleep. */
static void open_devices(int n_devices, const char *settings)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 32,
                                             .hidden = 64,
                                             .layers = LAYERS,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .vocabulary = VOCABULARY,
                                             .context = 256};
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    char sleeping[64];
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu";
    options.log = count_lines;
    options.log_level = TANDEM_LOG_INFO;
    n_lost = 0;
    snprintf(sleeping, sizeof(sleeping), "gflops=%.9f", 2e3 / DEVICE_US / 1e3);
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    check_ok(tandem_model_new(source, &model, NULL));
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    tandem_table *table = tune_new();
    add_times(table, "cpu", "cpu", 20 * DEVICE_US);
    for (int i = 0; i < n_devices; i++) {
        const bool is_last = i == n_devices - 1 && settings != NULL;
        apis[i] = tune_sim_api(i);
        check_ok(
            tandem_runtime_add_backend(runtime, &apis[i], is_last ? settings : sleeping, NULL));
        add_times(table, tune_sim_names[i], tune_sim_names[i], DEVICE_US);
    }
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    place_layers(LAYERS, tune_sim_names, n_devices);
}

static void close_devices(void)
{
    tandem_runtime_close(runtime);
    tandem_model_free(model);
    tandem_source_close(source);
}

static tandem_session *open_session(int micro_batches, int n_sequences)
{
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_session *session = NULL;
    options.micro_batches = micro_batches;
    options.n_sequences = n_sequences;
    check_ok(tandem_session_new(model, runtime, &options, &session, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    return session;
}

static int micro_batches_of(const tandem_session *session)
{
    struct tandem_micro_batches micro = {.n_last = 0};
    return tandem_session_micro_batches(session, &micro) ? micro.n_last : 0;
}

/* ---- texts ---- */

static void make_tokens(int32_t *tokens, int64_t n, int seed)
{
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)((i * 7 + i / 5 + seed * 11) % VOCABULARY);
    }
}

/* One prompt, or as many texts with a part of it each, from the beginning. */
static void decode(tandem_session *session, int n_texts)
{
    int32_t tokens[PROMPT];
    struct tandem_batch_entry entries[TEXTS];
    struct tandem_error error = {0};
    make_tokens(tokens, PROMPT, 0);
    for (int i = 0; i < n_texts; i++) {
        entries[i] = (struct tandem_batch_entry){.tokens = tokens + i * (PROMPT / n_texts),
                                                 .n = PROMPT / n_texts,
                                                 .sequence = i,
                                                 .wants_logits = true};
        check_int(tandem_session_rollback(session, i, 0), 0);
    }
    check_status(tandem_session_decode_batch(session, entries, n_texts, &error), TANDEM_OK, NULL,
                 &error);
}

/* By another session, whole and on the CPU alone. */
static void check_logits(const tandem_session *session, int n_texts, const char *what)
{
    tandem_runtime *cpu = tnd_test_runtime(2, NULL);
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_session *plain = NULL;
    options.n_sequences = n_texts;
    check_ok(tandem_session_new(model, cpu, &options, &plain, NULL));
    decode(plain, n_texts);
    CU_ASSERT_EQUAL(micro_batches_of(plain), 0);
    for (int i = 0; i < n_texts; i++) {
        const float *got = tandem_session_logits(session, i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        check_nmse(got, tandem_session_logits(plain, i), VOCABULARY, 1e-9, what);
    }
    tandem_session_free(plain);
    tandem_runtime_close(cpu);
}

/* ---- overlap ---- */

/* Devices that compute something. */
static int count_devices(const tandem_plan *plan)
{
    unsigned slots = 0;
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        slots |= span->lane == TANDEM_LANE_COMPUTE ? 1U << span->backend : 0;
    }
    return __builtin_popcount(slots >> (TANDEM_BACKEND_CPU + 1));
}

static double decode_ms(tandem_session *session, int n_texts)
{
    const struct tnd_clock *clock = tnd_clock_real();
    const uint64_t begin_ns = clock->now_ns(clock);
    decode(session, n_texts);
    return (double)(clock->now_ns(clock) - begin_ns) / 1e6;
}

/* Devices sleep in their products: some run of the cut session ends before the best one of the
 * whole one, however busy this machine is. */
static void check_gain(tandem_session *whole, tandem_session *cut, int n_texts, double gain_ms)
{
    double before = 1e9;
    double after = 1e9;
    for (int i = 0; i < 200 && !(after < before && i >= 2); i++) {
        const double whole_ms = decode_ms(whole, n_texts);
        const double cut_ms = decode_ms(cut, n_texts);
        before = whole_ms < before ? whole_ms : before;
        after = cut_ms < after ? cut_ms : after;
    }
    printf("  %.1f ms whole, %.1f ms cut, gain predicted %.1f ms\n", before, after, gain_ms);
    CU_ASSERT_TRUE(after < before);
}

/* What a prompt of a session would take; the plan is checked for how many devices it has. */
static double predicted_ms(tandem_session *session, int n_devices)
{
    struct tandem_prediction prediction = {.us = 0};
    tandem_graph *graph = NULL;
    tandem_plan *plan = NULL;
    check_ok(tandem_session_plan(session, PROMPT, &graph, &plan, NULL));
    check_int(count_devices(plan), n_devices);
    check_ok(tandem_runtime_predict(runtime, graph, &prediction, NULL));
    tandem_plan_free(plan);
    return prediction.us / 1e3;
}

static void a_prompt_flows_through_devices_in_micro_batches(void)
{
    for (int n_devices = 2; n_devices <= 3; n_devices++) {
        open_devices(n_devices, NULL);
        tandem_session *chosen = open_session(0, 1);
        tandem_session *whole = open_session(1, 1);
        decode(chosen, 1);
        const int n = micro_batches_of(chosen);
        CU_ASSERT_TRUE(n >= n_devices);
        check_logits(chosen, 1, "micro-batches of a prompt");
        decode(whole, 1);
        CU_ASSERT_EQUAL(micro_batches_of(whole), 0);
        tandem_session_rollback(chosen, 0, 0);
        tandem_session_rollback(whole, 0, 0);
        tandem_session *cut = open_session(n, 1);
        const double whole_ms = predicted_ms(whole, n_devices);
        const double cut_ms = predicted_ms(cut, n_devices);
        const double ideal_ms = whole_ms / n_devices / n * (n + n_devices - 1);
        printf("  %d devices, %d micro-batches: predicted %.1f ms, ideal %.1f, whole %.1f\n",
               n_devices, n, cut_ms, ideal_ms, whole_ms);
        CU_ASSERT_TRUE(cut_ms < 1.15 * ideal_ms);
        check_gain(whole, cut, 1, whole_ms - cut_ms);
        check_logits(cut, 1, "micro-batches, timed");
        tandem_session_free(cut);
        tandem_session_free(chosen);
        tandem_session_free(whole);
        close_devices();
    }
}

/* Whether a cut that was chosen for texts stays after the trials of session and runtime. */
static bool is_kept(void)
{
    tandem_session *chosen = open_session(0, TEXTS);
    decode(chosen, TEXTS);
    CU_ASSERT_EQUAL(micro_batches_of(chosen), TEXTS);
    check_logits(chosen, TEXTS, "micro-batches of texts");
    for (int i = 0; i < 16; i++) {
        decode(chosen, TEXTS);
    }
    const bool is_cut = micro_batches_of(chosen) == TEXTS;
    check_logits(chosen, TEXTS, "micro-batches of texts, after trials");
    tandem_session_free(chosen);
    return is_cut;
}

/* Texts of the same batch, each of which is a micro-batch. */
static void texts_flow_through_devices_one_behind_the_other(void)
{
    open_devices(2, NULL);
    CU_ASSERT_TRUE(is_kept() || is_kept() || is_kept()); /* others may be at work here */
    tandem_session *whole = open_session(1, TEXTS);
    tandem_session *cut = open_session(TEXTS, TEXTS);
    const double gain_ms = predicted_ms(whole, 2) - predicted_ms(cut, 2); /* of a like prompt */
    CU_ASSERT_TRUE(gain_ms > 0);
    check_gain(whole, cut, TEXTS, gain_ms);
    check_logits(cut, TEXTS, "micro-batches of texts, timed");
    tandem_session_free(cut);
    tandem_session_free(whole);
    close_devices();
}

static void a_device_lost_in_the_middle_leaves_the_right_result(void)
{
    struct tnd_runtime_parts parts;
    struct tnd_sim_statistics statistics;
    char settings[64];
    open_devices(2, "gflops=0"); /* how many calls there are */
    tandem_session *session = open_session(4, 1);
    decode(session, 1);
    tnd_runtime_parts(runtime, &parts);
    tnd_sim_statistics(tnd_registry_backend(parts.registry, slot_of(tune_sim_names[1])),
                       &statistics);
    tandem_session_free(session);
    close_devices();
    for (int i = 1; i <= 5; i++) {
        int32_t token = 7;
        snprintf(settings, sizeof(settings), "fail=lost,fail_at=%d", (int)statistics.calls * i / 6);
        open_devices(2, settings);
        session = open_session(4, 1);
        decode(session, 1);
        check_logits(session, 1, "a lost device");
        check_int(n_lost, 1);
        check_ok(tandem_session_decode(session, &token, 1, 1, NULL)); /* its cells are whole, too */
        CU_ASSERT_EQUAL(tandem_session_position(session, 0), PROMPT + 1);
        tandem_session_free(session);
        close_devices();
    }
}

static void one_place_or_an_option_leaves_batches_whole(void)
{
    struct tandem_micro_batches micro = {.n_last = 7};
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_session *session = NULL;
    open_devices(2, NULL);
    for (options.micro_batches = -1; options.micro_batches <= 9; options.micro_batches += 10) {
        CU_ASSERT_EQUAL(tandem_session_new(model, runtime, &options, &session, NULL),
                        TANDEM_E_ARGUMENT);
    }
    session = open_session(1, 1);
    decode(session, 1);
    CU_ASSERT_FALSE(tandem_session_micro_batches(session, &micro));
    tandem_session_free(session);
    place_layers(LAYERS, tune_sim_names, 1);
    session = open_session(8, 1);
    decode(session, 1);
    CU_ASSERT_FALSE(tandem_session_micro_batches(session, &micro));
    check_int(micro.n_last, 7); /* untouched */
    check_logits(session, 1, "one place");
    tandem_session_free(session);
    close_devices();
}

/* ---- OpenCL ---- */

enum { STEPS = 60 };

/* Both devices are the machine's first one: what lies on one is not on the other. */
static bool open_opencl(struct tnd_trained *trained)
{
    static const char *const profiles[] = {"opencl", "opencl@opencl1"};
    static const char *const names[] = {"opencl", "opencl1"};
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    char settings[1200];
    if (tandem_devices(NULL, 0, &error) == 0) {
        tnd_skip("opencl: no device: %s", error.text);
        return false;
    }
    if (!tnd_trained_open(trained, 0)) {
        return false;
    }
    snprintf(settings, sizeof(settings), "opencl:device=0,cache=%s;opencl1:device=0,cache=%s",
             tnd_test_temp("programs"), tnd_test_temp("programs"));
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu,opencl,opencl1";
    options.settings = settings;
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    source = trained->source;
    model = trained->model;
    tandem_table *table = tune_new();
    add_times(table, "cpu", "cpu", 20);
    for (int i = 0; i < 2; i++) {
        add_times(table, profiles[i], names[i], 1);
    }
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    tandem_table_free(table);
    place_layers((int)tandem_model_hparams(model)->layers, names, 2);
    return true;
}

/* Nodes on the CPU and on both devices, of graphs with several chains. */
static void count_sides(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    int *n = user;
    for (int i = 0; i < tandem_graph_node_count(graph) && graph->n_chains > 1; i++) {
        const int slot = tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE].backend;
        n[slot == slot_of("opencl1") ? 2 : slot > TANDEM_BACKEND_CPU]++;
    }
}

static void micro_batches_on_opencl_devices_give_the_golden_text(void)
{
    struct tnd_trained trained;
    char *want = tnd_test_read_file(tnd_test_data("llama/golden-zoo-t0-n60.txt"), NULL);
    for (int n_micro = 2; n_micro <= 3 && want != NULL && open_opencl(&trained); n_micro++) {
        int n[3] = {0, 0, 0};
        char got[TND_TEXT_BYTES] = "";
        struct tandem_error error = {0};
        const struct tandem_session_options options = {.size = sizeof(options),
                                                       .micro_batches = n_micro,
                                                       .adjust = count_sides,
                                                       .adjust_user = n};
        /* other plans have their turns, by which weights stay where they are */
        for (int i = 0; i < 10; i++) {
            const int batch = i == 0 ? 0 : 4;
            check_status(
                tnd_greedy_text_with(&trained, runtime, &options, "Zoo", STEPS, batch, got, &error),
                TANDEM_OK, NULL, &error);
            check_string(got, want);
        }
        CU_ASSERT_TRUE(n[1] > 0 && n[2] > 0);
        tandem_runtime_close(runtime);
        tnd_trained_close(&trained);
    }
    free(want);
}

static CU_TestInfo tests[] = {
    {"micro-batches on OpenCL devices give the golden text",
     micro_batches_on_opencl_devices_give_the_golden_text},
    {"a prompt flows through devices in micro-batches",
     a_prompt_flows_through_devices_in_micro_batches},
    {"texts flow through devices one behind the other",
     texts_flow_through_devices_one_behind_the_other},
    {"a device lost in the middle leaves the right result",
     a_device_lost_in_the_middle_leaves_the_right_result},
    {"one place or an option leaves batches whole", one_place_or_an_option_leaves_batches_whole},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_micro[];
CU_SuiteInfo suites_llama_micro[] = {{"micro-batches", NULL, NULL, NULL, NULL, tests},
                                     CU_SUITE_INFO_NULL};
