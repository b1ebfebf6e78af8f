/* SPDX-License-Identifier: MIT
 * The trained model writes the text that it should on an OpenCL device: every profile of devices
 * forced in turn, and plans that change the device from node to node. PoCL is a device too. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "sched/conflict.h"
#include "tandem/device.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_llama_naive.h"

static const char prompt[] = "Zoo";
static const char golden[] = "llama/golden-zoo-t0-n60.txt";
enum { STEPS = 60 };

static bool has_device(void)
{
    struct tandem_error error = {0};
    if (tandem_devices(NULL, 0, &error) > 0) {
        return true;
    }
    tnd_skip("opencl: no device: %s", error.text);
    return false;
}

/* Both devices of a runtime are the machine's first one: what lies on one is not on the other. */
static tandem_runtime *open_runtime(const char *profile, const char *budget)
{
    char settings[1200];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    snprintf(settings, sizeof(settings), "opencl:device=0,cache=%s%s;opencl1:device=0,cache=%s%s",
             tnd_test_temp("programs"), budget, tnd_test_temp("programs"), budget);
    options.n_threads = 2;
    options.table_path = "";
    options.profile = profile;
    options.backends = "cpu,openblas,opencl,opencl1";
    options.settings = settings;
    (void)check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

/* What is done to plans in which the device has all that it takes. */
enum adjustment {
    ADJUST_NOTHING,
    ADJUST_MIX,          /* nodes in turn on the CPU and both devices */
    ADJUST_SPLIT_3,      /* rows of products on the CPU and both devices */
    ADJUST_SPLIT_DEVICE, /* rows on the device, the others on the CPU */
    ADJUST_SPLIT_SUM,    /* columns on the CPU and both devices */
    ADJUST_ORDER,        /* mixed, and neighbours that may change places do */
    ADJUST_PRODUCTS      /* every other product on the second device */
};

/* What adjusting the plans has come to. */
struct mixture {
    tandem_runtime *runtime;
    int opencl1;      /* slot */
    int n[3];         /* nodes on the CPU, on the first device, on the second one; parts as well */
    int n_experts[3]; /* products of experts there, where they are counted */
    enum adjustment adjustment;
};

/* A part of a product, by the choice of a profile; on the second device when that is asked for. */
static void add_part(struct mixture *mixture, const tandem_graph *graph, tandem_plan *plan, int i,
                     const int64_t range[2], const char *profile, bool is_second)
{
    struct tandem_plan_part part;
    tandem_plan *forced = NULL;
    memset(&part, 0, sizeof(part));
    check_ok(tandem_plan_copy(plan, &forced, NULL));
    check_ok(tandem_runtime_force_node(mixture->runtime, graph, forced, i, profile, NULL));
    part.node = i;
    part.split = mixture->adjustment == ADJUST_SPLIT_SUM ? TANDEM_SPLIT_COLUMNS : TANDEM_SPLIT_ROWS;
    part.begin = range[0];
    part.end = range[1];
    part.choice = *tandem_plan_node(forced, i);
    for (int s = 0; s < TANDEM_STAGES && is_second; s++) {
        uint8_t *backend = &part.choice.stage[s].backend;
        *backend = *backend > TANDEM_BACKEND_CPU ? (uint8_t)mixture->opencl1 : *backend;
    }
    check_ok(tandem_plan_add_part(plan, &part, NULL));
    mixture->n[is_second ? 2 : strcmp(profile, "cpu") == 0 ? 0 : 1]++;
    tandem_plan_free(forced);
}

static void split(struct mixture *mixture, const tandem_graph *graph, tandem_plan *plan, int i)
{
    const tandem_tensor *product = tandem_graph_node(graph, i);
    const tandem_tensor *w = product->src[0];
    char device[sizeof(tandem_plan_node(plan, i)->profile)];
    int64_t all = mixture->adjustment == ADJUST_SPLIT_SUM ? w->ne[0] : w->ne[1];
    const int64_t low[] = {0, all / 4};
    const int64_t high[] = {all / 4 * 3, all};
    memcpy(device, tandem_plan_node(plan, i)->profile, sizeof(device));
    if (mixture->adjustment == ADJUST_SPLIT_DEVICE) {
        add_part(mixture, graph, plan, i, high, "cpu", false);
        return;
    }
    add_part(mixture, graph, plan, i, low, device, false);
    add_part(mixture, graph, plan, i, high, device, true);
    check_ok(tandem_runtime_force_node(mixture->runtime, graph, plan, i, "cpu", NULL));
    mixture->n[0]++;
}

/* Each node goes as far to the front as it may, past four others. */
static void reorder(const tandem_graph *graph, tandem_plan *plan)
{
    int n = tandem_graph_node_count(graph);
    int32_t *order = malloc((size_t)n * sizeof(*order));
    CU_ASSERT_PTR_NOT_NULL_FATAL(order);
    for (int i = 0; i < n; i++) {
        int at = i;
        while (at > 0 && at > i - 4 &&
               !tnd_nodes_conflict(graph->nodes[order[at - 1]], graph->nodes[i])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    check_ok(tandem_plan_set_order(plan, order, n, NULL));
    free(order);
}

/* Nodes in turn on the CPU, on the first device and on the second one, where these take them. */
static void adjust(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    struct mixture *mixture = user;
    bool is_mixed = mixture->adjustment == ADJUST_MIX || mixture->adjustment == ADJUST_ORDER;
    bool is_products = mixture->adjustment == ADJUST_PRODUCTS;
    bool is_split = !is_mixed && !is_products && mixture->adjustment != ADJUST_NOTHING;
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, i);
        struct tandem_task_config *compute = &node.stage[TANDEM_STAGE_COMPUTE];
        int where = compute->backend == TANDEM_BACKEND_CPU ? 0 : 1;
        if (is_mixed && where == 1 && i % 3 == 0) {
            const struct tandem_task_config on_cpu = {.backend = TANDEM_BACKEND_CPU,
                                                      .task = TANDEM_TASK_NODE};
            *compute = on_cpu;
            where = 0;
        } else if ((is_mixed && where == 1 && i % 3 == 1) ||
                   (is_products && where == 1 && mixture->n[1] % 2 == 1 &&
                    tnd_mul_mat_is_plain(tandem_graph_node(graph, i)))) {
            compute->backend = (uint8_t)mixture->opencl1;
            where = 2;
        }
        mixture->n[where]++;
        check_ok(tandem_plan_set_node(plan, i, &node));
        const tandem_tensor *tensor = tandem_graph_node(graph, i);
        if (is_split && where == 1 && tnd_mul_mat_is_plain(tensor) &&
            (tensor->src[0]->root->flags & TND_TENSOR_CONSTANT) != 0) {
            split(mixture, graph, plan, i);
        }
    }
    if (mixture->adjustment == ADJUST_ORDER) {
        reorder(graph, plan);
    }
}

static int slot_of(const tandem_runtime *runtime, const char *name)
{
    for (int i = 1; runtime != NULL && i < tandem_runtime_backend_count(runtime); i++) {
        if (strcmp(tandem_runtime_backend_name(runtime, i), name) == 0) {
            return i;
        }
    }
    return 0;
}

static void check_text(const struct tnd_trained *trained, const char *profile, const char *budget,
                       enum adjustment adjustment)
{
    tandem_runtime *runtime = open_runtime(profile, budget);
    struct mixture mixture = {.runtime = runtime, .adjustment = adjustment};
    bool is_on_all = adjustment != ADJUST_NOTHING && adjustment != ADJUST_SPLIT_DEVICE;
    const struct tandem_session_options options = {
        .size = sizeof(options), .adjust = adjust, .adjust_user = &mixture};
    const char *path = tnd_test_data(golden);
    char *want = path == NULL ? NULL : tnd_test_read_file(path, NULL);
    char got[TND_TEXT_BYTES] = "";
    struct tandem_error error = {0};
    mixture.opencl1 = slot_of(runtime, "opencl1");
    CU_ASSERT_TRUE(mixture.opencl1 > 0);
    if (runtime != NULL && want != NULL) {
        check_status(
            tnd_greedy_text_with(trained, runtime, &options, prompt, STEPS, 0, got, &error),
            TANDEM_OK, NULL, &error);
        if (!check_string(got, want)) {
            printf("  profile %s, adjustment %d\n", profile, (int)adjustment);
        }
        CU_ASSERT_TRUE(mixture.n[1] > 0);
        CU_ASSERT_TRUE(!is_on_all || (mixture.n[0] > 0 && mixture.n[2] > 0));
    }
    free(want);
    tandem_runtime_close(runtime);
}

static void every_profile_of_devices_gives_the_golden_text(void)
{
    struct tandem_profile_info profiles[32];
    struct tnd_trained trained;
    if (!has_device() || !tnd_trained_open(&trained, 0)) {
        return;
    }
    tandem_runtime *runtime = open_runtime(NULL, "");
    const int n = runtime == NULL ? 0 : tandem_runtime_profiles(runtime, profiles, 32);
    tandem_runtime_close(runtime);
    int n_checked = 0;
    for (int i = 0; i < n && i < 32; i++) {
        bool is_first = strchr(profiles[i].name, '@') == NULL;
        if (strstr(profiles[i].name, "cl") == NULL || !is_first) {
            continue;
        }
        if (profiles[i].available) {
            check_text(&trained, profiles[i].name, "", ADJUST_NOTHING);
            check_text(&trained, profiles[i].name, "", ADJUST_SPLIT_DEVICE);
            n_checked++;
        } else {
            tnd_skip("opencl profile %s: %s", profiles[i].name, profiles[i].reason);
        }
    }
    CU_ASSERT_TRUE(n_checked > 0);
    tnd_trained_close(&trained);
}

static void plans_that_mix_devices_give_the_golden_text(void)
{
    struct tnd_trained trained;
    if (!has_device() || !tnd_trained_open(&trained, 0)) {
        return;
    }
    check_text(&trained, "opencl", "", ADJUST_MIX);
    tnd_trained_close(&trained);
}

static void splits_and_orders_over_devices_give_the_golden_text(void)
{
    struct tnd_trained trained;
    if (!has_device() || !tnd_trained_open(&trained, 0)) {
        return;
    }
    check_text(&trained, "opencl", "", ADJUST_SPLIT_3);
    check_text(&trained, "opencl", "", ADJUST_SPLIT_DEVICE);
    check_text(&trained, "opencl", "", ADJUST_SPLIT_SUM);
    check_text(&trained, "opencl", "", ADJUST_ORDER);
    check_text(&trained, "opencl", ",budget=0", ADJUST_SPLIT_3); /* no part has room */
    check_text(&trained, "opencl+stream", ",budget=0", ADJUST_SPLIT_3);
    tnd_trained_close(&trained);
}

/* OpenCL and CUDA in one plan, where the stand-in for CUDA is built. `lost_at` > 0: this call of
 * CUDA's and all later ones say that the device is lost. Returns how many calls there were. */
static int64_t check_two_drivers(const struct tnd_trained *trained, const struct tnd_fake *fake,
                                 const char *library, int64_t lost_at)
{
    enum { FEW_STEPS = 10 };
    char settings[1200];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct mixture mixture = {.adjustment = ADJUST_PRODUCTS};
    struct tandem_error error = {0};
    const struct tandem_session_options session = {
        .size = sizeof(session), .adjust = adjust, .adjust_user = &mixture};
    const struct tnd_fake_plan plan = {.first = lost_at, .code = 719, .is_lost = true};
    struct tnd_fake_report report = {0};
    const char *path = tnd_test_data(golden);
    char *want = path == NULL ? NULL : tnd_test_read_file(path, NULL);
    char got[TND_TEXT_BYTES] = "";
    snprintf(settings, sizeof(settings), "opencl:device=0,cache=%s;cuda:device=0,library=%s",
             tnd_test_temp("programs"), library);
    options.n_threads = 2;
    options.table_path = "";
    options.profile = "opencl";
    options.backends = "cpu,opencl,cuda";
    options.settings = settings;
    check_status(tandem_runtime_open(&options, &mixture.runtime, &error), TANDEM_OK, NULL, &error);
    mixture.opencl1 = slot_of(mixture.runtime, "cuda");
    CU_ASSERT_TRUE(mixture.opencl1 > 0);
    fake->begin(&plan);
    if (mixture.opencl1 > 0 && want != NULL) {
        check_status(tnd_greedy_text_with(trained, mixture.runtime, &session, prompt, FEW_STEPS, 0,
                                          got, &error),
                     TANDEM_OK, NULL, &error);
        CU_ASSERT_TRUE(strlen(got) > 8);
        got[strcspn(got, "\n")] = '\0'; /* as it ends here */
        want[strlen(got) < strlen(want) ? strlen(got) : strlen(want)] = '\0';
        check_string(got, want);
        CU_ASSERT_TRUE(mixture.n[1] > 0 && mixture.n[2] > 0);
    }
    fake->report(&report);
    CU_ASSERT_EQUAL(report.n_failed > 0, lost_at > 0);
    check_int(report.n_wrong, 0);
    free(want);
    tandem_runtime_close(mixture.runtime);
    fake->begin(NULL);
    return report.n_calls;
}

/* False after a tnd_skip. `library`: the path, since the next question for one beside the suite
 * takes its memory. */
static bool find_fake(struct tnd_fake *fake, char *library, size_t bytes)
{
    snprintf(library, bytes, "%s", tnd_test_beside("fake_cuda/libcuda.so.1"));
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        tnd_skip("optional part not built: stand-ins for CUDA");
        return false;
    }
    void *found[] = {dlsym(opened, "tnd_fake_begin"), dlsym(opened, "tnd_fake_report")};
    CU_ASSERT_FATAL(found[0] != NULL && found[1] != NULL);
    memcpy(&fake->begin, &found[0], sizeof(found[0]));
    memcpy(&fake->report, &found[1], sizeof(found[1]));
    return true;
}

static void two_drivers_share_a_plan_and_one_may_be_lost(void)
{
    struct tnd_trained trained;
    struct tnd_fake fake;
    char library[1024];
    if (!find_fake(&fake, library, sizeof(library)) || !has_device() ||
        !tnd_trained_open(&trained, 0)) {
        return;
    }
    const int64_t n = check_two_drivers(&trained, &fake, library, 0);
    CU_ASSERT_TRUE(n > 100);
    (void)check_two_drivers(&trained, &fake, library, n / 2);
    tnd_trained_close(&trained);
}

/* All on CUDA's stand-in, launches in graphs; the KV cache grows from token to token. */
static int64_t check_graphs(const struct tnd_trained *trained, const struct tnd_fake *fake,
                            const char *library, int64_t lost_at)
{
    enum { FEW_STEPS = 12 };
    char settings[1200];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    const struct tandem_session_options session = {.size = sizeof(session)};
    const struct tnd_fake_plan plan = {.first = lost_at, .code = 719, .is_lost = true};
    struct tnd_fake_report report = {0};
    tandem_runtime *runtime = NULL;
    const char *path = tnd_test_data(golden);
    char *want = path == NULL ? NULL : tnd_test_read_file(path, NULL);
    char got[TND_TEXT_BYTES] = "";
    snprintf(settings, sizeof(settings), "cuda:device=0,graphs=on,library=%s,cache=%s", library,
             tnd_test_temp("programs"));
    options.n_threads = 2;
    options.table_path = "";
    options.profile = "cuda";
    options.backends = "cpu,cuda";
    options.settings = settings;
    if (want != NULL &&
        check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error)) {
        fake->begin(&plan);
        check_status(
            tnd_greedy_text_with(trained, runtime, &session, prompt, FEW_STEPS, 0, got, &error),
            TANDEM_OK, NULL, &error);
        got[strcspn(got, "\n")] = '\0'; /* as it ends here */
        want[strlen(got) < strlen(want) ? strlen(got) : strlen(want)] = '\0';
        CU_ASSERT_TRUE(strlen(got) > 8);
        check_string(got, want);
        fake->report(&report);
        CU_ASSERT_EQUAL(report.n_failed > 0, lost_at > 0);
        check_int(report.n_wrong, 0);
        CU_ASSERT_TRUE(report.n_graphs > (lost_at > 0 ? 0 : FEW_STEPS));
    }
    free(want);
    tandem_runtime_close(runtime);
    fake->begin(NULL);
    return report.n_calls;
}

static void graphs_of_launches_give_the_golden_text(void)
{
    struct tnd_trained trained;
    struct tnd_fake fake;
    char library[1024];
    if (!find_fake(&fake, library, sizeof(library)) || !tnd_trained_open(&trained, 0)) {
        return;
    }
    const int64_t n = check_graphs(&trained, &fake, library, 0);
    (void)check_graphs(&trained, &fake, library, n / 4 * 3);
    tnd_trained_close(&trained);
}

/* No weight has room: those of products are in flight to one device, or to two. */
static void weights_in_flight_give_the_golden_text(void)
{
    struct tnd_trained trained;
    if (!has_device() || !tnd_trained_open(&trained, 0)) {
        return;
    }
    check_text(&trained, "opencl+stream", ",budget=0", ADJUST_NOTHING);
    check_text(&trained, "opencl+stream", ",budget=0", ADJUST_MIX);
    tnd_trained_close(&trained);
}

/* Mixtral, Qwen2-MoE, Qwen3-MoE. */
static const struct naive_spec mixtures[] = {{.experts = 8, .used = 2},
                                             {.architecture = "qwen2moe",
                                              .has_biases = true,
                                              .experts = 6,
                                              .used = 3,
                                              .expert_hidden = 40,
                                              .shared_hidden = 56},
                                             {.architecture = "qwen3moe",
                                              .has_head_norms = true,
                                              .experts = 16,
                                              .used = 8,
                                              .expert_hidden = 32}};
enum { N_MIXTURES = sizeof(mixtures) / sizeof(mixtures[0]) };

/* Counts the products of experts by where they run. */
static void adjust_experts(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    struct mixture *mixture = user;
    adjust(mixture, graph, plan);
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        int slot = tandem_plan_node(plan, i)->stage[TANDEM_STAGE_COMPUTE].backend;
        if (tandem_graph_node(graph, i)->op == TANDEM_OP_MUL_MAT_ID) {
            mixture->n_experts[slot == TANDEM_BACKEND_CPU ? 0 : slot == mixture->opencl1 ? 2 : 1]++;
        }
    }
}

/* A prompt in batches and a token; the use of experts is counted wherever they run. */
static void check_mixture(const struct naive_spec *spec, tandem_session *session,
                          const tandem_source *source)
{
    struct tandem_expert_use use = {.layers = 0};
    struct tandem_error error = {0};
    int32_t tokens[21];
    double want[NAIVE_VOCABULARY];
    naive_tokens(tokens, 21);
    check_status(tandem_session_decode(session, tokens, 20, 7, &error), TANDEM_OK, NULL, &error);
    check_status(tandem_session_decode(session, tokens + 20, 1, 1, &error), TANDEM_OK, NULL,
                 &error);
    naive_logits(source, spec, tokens, 21, want);
    check_nmse_double(tandem_session_logits(session, 0), want, NAIVE_VOCABULARY, 1e-9,
                      "experts on devices");
    CU_ASSERT_TRUE(tandem_session_expert_use(session, &use));
    for (int64_t e = 0; e < use.layers * use.experts; e++) {
        check_int(use.hits[e], naive_expert_hits((int)(e / use.experts), (int)(e % use.experts)));
    }
}

static void mixtures_of_experts_run_on_devices(void)
{
    static const enum adjustment adjustments[] = {ADJUST_NOTHING, ADJUST_MIX, ADJUST_ORDER};
    for (int i = 0; i < 3 * N_MIXTURES && has_device(); i++) {
        tandem_source *source = naive_source(&mixtures[i / 3]);
        struct mixture mixture = {.runtime = open_runtime("opencl", ""),
                                  .adjustment = adjustments[i % 3]};
        const struct tandem_session_options options = {
            .size = sizeof(options), .adjust = adjust_experts, .adjust_user = &mixture};
        tandem_model *model = NULL;
        tandem_session *session = NULL;
        mixture.opencl1 = slot_of(mixture.runtime, "opencl1");
        CU_ASSERT_EQUAL_FATAL(tandem_model_new(source, &model, NULL), TANDEM_OK);
        check_ok(tandem_session_new(model, mixture.runtime, &options, &session, NULL));
        check_mixture(&mixtures[i / 3], session, source);
        bool is_all = mixture.adjustment == ADJUST_NOTHING;
        CU_ASSERT_TRUE(mixture.n_experts[1] > 0);
        CU_ASSERT_TRUE(is_all ? mixture.n_experts[0] == 0 : mixture.n_experts[2] > 0);
        tandem_session_free(session);
        tandem_runtime_close(mixture.runtime);
        tandem_model_free(model);
        tandem_source_close(source);
    }
}

/* The CPU rounds activations to 8 bits where weights have blocks, a device does not. */
static void quantised_experts_are_as_near_to_the_reference_as_on_the_cpu(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_0};
    for (int i = 0; i < 2 * N_MIXTURES && has_device(); i++) {
        const struct naive_spec *spec = &mixtures[i / 2];
        tandem_source *floats = naive_source(spec);
        tandem_source *source = NULL;
        tandem_source *of_blocks = NULL; /* the floats that the blocks say */
        int32_t tokens[9];
        double want[NAIVE_VOCABULARY];
        float of_cpu[NAIVE_VOCABULARY];
        naive_tokens(tokens, 9);
        check_ok(tandem_source_convert(floats, types[i % 2], &source, NULL));
        check_ok(tandem_source_convert(source, TANDEM_TYPE_F32, &of_blocks, NULL));
        naive_logits(of_blocks, spec, tokens, 9, want);
        for (int on_device = 0; on_device < 2; on_device++) {
            const struct tandem_session_options options = {.size = sizeof(options)};
            tandem_runtime *runtime = open_runtime(on_device ? "opencl" : "cpu", "");
            tandem_model *model = NULL;
            tandem_session *session = NULL;
            CU_ASSERT_EQUAL_FATAL(tandem_model_new(source, &model, NULL), TANDEM_OK);
            check_ok(tandem_session_new(model, runtime, &options, &session, NULL));
            check_ok(tandem_session_decode(session, tokens, 9, 4, NULL));
            const float *logits = tandem_session_logits(session, 0);
            check_nmse_double(logits, want, NAIVE_VOCABULARY, on_device ? 1e-9 : 5e-3,
                              on_device ? "quantised experts on a device" : "on the CPU");
            if (on_device) {
                check_nmse(logits, of_cpu, NAIVE_VOCABULARY, 5e-3, "device and CPU");
            }
            memcpy(of_cpu, logits, sizeof(of_cpu));
            tandem_session_free(session);
            tandem_model_free(model);
            tandem_runtime_close(runtime);
        }
        tandem_source_close(of_blocks);
        tandem_source_close(source);
        tandem_source_close(floats);
    }
}

/* Every node on a device that computes by the reference, in memory of its own or in the host's. */
static void put_on_pretended_device(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    struct mixture *mixture = user;
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, i);
        memset(node.stage, 0, sizeof(node.stage));
        node.stage[TANDEM_STAGE_COMPUTE].backend = (uint8_t)mixture->opencl1;
        node.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
        check_ok(tandem_plan_set_node(plan, i, &node));
    }
}

static void mixtures_of_experts_run_on_a_pretended_device(void)
{
    static const char *const settings[] = {"sim:memory=own", ""};
    for (int i = 0; i < 2 * N_MIXTURES; i++) {
        struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
        struct mixture mixture = {.runtime = NULL};
        tandem_source *source = naive_source(&mixtures[i / 2]);
        tandem_model *model = NULL;
        tandem_session *session = NULL;
        options.n_threads = 2;
        options.table_path = "";
        options.backends = "cpu,sim";
        options.settings = settings[i % 2];
        check_ok(tandem_runtime_open(&options, &mixture.runtime, NULL));
        mixture.opencl1 = slot_of(mixture.runtime, "sim");
        const struct tandem_session_options of_session = {
            .size = sizeof(of_session), .adjust = put_on_pretended_device, .adjust_user = &mixture};
        CU_ASSERT_EQUAL_FATAL(tandem_model_new(source, &model, NULL), TANDEM_OK);
        check_ok(tandem_session_new(model, mixture.runtime, &of_session, &session, NULL));
        check_mixture(&mixtures[i / 2], session, source);
        tandem_session_free(session);
        tandem_model_free(model);
        tandem_runtime_close(mixture.runtime);
        tandem_source_close(source);
    }
}

static CU_TestInfo tests[] = {
    {"every_profile_of_devices_gives_the_golden_text",
     every_profile_of_devices_gives_the_golden_text},
    {"plans_that_mix_devices_give_the_golden_text", plans_that_mix_devices_give_the_golden_text},
    {"splits_and_orders_over_devices_give_the_golden_text",
     splits_and_orders_over_devices_give_the_golden_text},
    {"two_drivers_share_a_plan_and_one_may_be_lost", two_drivers_share_a_plan_and_one_may_be_lost},
    {"graphs_of_launches_give_the_golden_text", graphs_of_launches_give_the_golden_text},
    {"weights_in_flight_give_the_golden_text", weights_in_flight_give_the_golden_text},
    {"mixtures_of_experts_run_on_devices", mixtures_of_experts_run_on_devices},
    {"quantised_experts_are_as_near_to_the_reference_as_on_the_cpu",
     quantised_experts_are_as_near_to_the_reference_as_on_the_cpu},
    {"mixtures_of_experts_run_on_a_pretended_device",
     mixtures_of_experts_run_on_a_pretended_device},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_devices[];
CU_SuiteInfo suites_llama_devices[] = {{"devices", NULL, NULL, NULL, NULL, tests},
                                       CU_SUITE_INFO_NULL};
