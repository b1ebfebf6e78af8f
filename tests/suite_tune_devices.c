/* SPDX-License-Identifier: MIT
 * Devices in tables and plans: profiles of OpenCL, transfers, placement. A made-up backend stands
 * under the name of the device; nothing is run on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/exec.h"
#include "tests/suite_tune.h"
#include "tune/candidates.h"
#include "tune/explain.h"
#include "tune/planner.h"
#include "tune/profiles.h"

/* ---- a device that accepts works and never does them ---- */

static const struct tandem_backend_api device_api;

static enum tandem_status device_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    *out_backend = calloc(1, sizeof(**out_backend));
    (*out_backend)->api = &device_api;
    return TANDEM_OK;
}

static void device_close(tandem_backend *backend)
{
    free(backend);
}

static enum tandem_op unsupported = TANDEM_OP_NONE;

static enum tandem_status device_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)task;
    (void)error;
    return node->op == unsupported ? TANDEM_E_UNSUPPORTED_BACKEND : TANDEM_OK;
}

static enum tandem_status device_submit(tandem_backend *backend, const struct tandem_work *work,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    (void)backend;
    (void)work;
    (void)out_ticket;
    (void)error;
    return TANDEM_E_DEVICE;
}

static enum tandem_status device_sync(tandem_backend *backend, uint64_t ticket,
                                      struct tandem_error *error)
{
    (void)backend;
    (void)ticket;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_map(tandem_backend *backend, void *begin, size_t bytes,
                                     struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static void device_unmap(tandem_backend *backend, void *begin)
{
    (void)backend;
    (void)begin;
}

static enum tandem_status device_upload(tandem_backend *backend, const void *begin, size_t bytes,
                                        struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_download(tandem_backend *backend, void *begin, size_t bytes,
                                          uint64_t *out_ticket, struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    *out_ticket = 1;
    return TANDEM_OK;
}

static const struct tandem_backend_api device_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "opencl",
    .kind = TANDEM_KIND_OPENCL,
    .open = device_open,
    .close = device_close,
    .supports = device_supports,
    .submit = device_submit,
    .sync = device_sync,
    .memory = TANDEM_MEMORY_OWN,
    .map = device_map,
    .unmap = device_unmap,
    .upload = device_upload,
    .download = device_download,
};

static struct tnd_registry *registry;

static void set_up(void)
{
    struct tnd_registry_options options;
    memset(&options, 0, sizeof(options));
    options.backends = "openblas";
    options.n_threads_max = 8;
    check_ok(tnd_registry_open(&options, &registry, NULL));
    check_ok(tnd_registry_add(registry, &device_api, NULL, NULL));
}

static void tear_down(void)
{
    tnd_registry_close(registry);
}

/* ---- profiles ---- */

static void the_profiles_of_a_device_name_its_stages(void)
{
    static const struct {
        const char *profile;
        const char *init, *compute;
        enum tandem_task compute_task;
        enum tandem_backend_kind compute_kind;
    } want[] = {
        {"opencl", "", "opencl", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast", "cpu", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+clblast", "opencl", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+openblas", "opencl", "openblas", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_OPENBLAS},
        {"opencl@opencl1", "", "opencl1", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast@opencl1", "cpu", "opencl1", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct tnd_table_profile found;
        memset(&found, 0, sizeof(found));
        CU_ASSERT_TRUE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_Q4_0, &found));
        const struct tnd_table_stage *init = &found.stage[TANDEM_STAGE_INIT];
        const struct tnd_table_stage *compute = &found.stage[TANDEM_STAGE_COMPUTE];
        check_string(init->backend, want[i].init);
        check_string(compute->backend, want[i].compute);
        check_int(init->task, want[i].init[0] != '\0' ? TANDEM_TASK_DEQUANTIZE_W : 0);
        check_int(compute->task, want[i].compute_task);
        check_int(compute->kind, want[i].compute_kind);
        CU_ASSERT_TRUE(compute->wait);
        CU_ASSERT_FALSE(compute->parallel);
        check_int(found.stage[TANDEM_STAGE_FINALIZE].kind, 0);
        /* F32 weights need no INIT, indices are no weights. */
        CU_ASSERT_TRUE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_F32, &found));
        check_string(found.stage[TANDEM_STAGE_INIT].backend, "");
        CU_ASSERT_FALSE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_I32, &found));
    }
}

static void a_profile_resolves_where_its_device_is_open_and_else_says_why(void)
{
    struct tandem_task_config stages[TANDEM_STAGES];
    struct tnd_table_profile profile;
    char reason[128] = "";
    int slot = tnd_registry_find(registry, "opencl", NULL);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("cpu+clblast"), TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_TRUE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_int(stages[TANDEM_STAGE_INIT].backend, TANDEM_BACKEND_CPU);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_INIT].parallel);
    check_int(stages[TANDEM_STAGE_COMPUTE].backend, slot);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_COMPUTE].wait);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("opencl@opencl1"), TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_FALSE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_contains(reason, "opencl1");
}

/* ---- transfers and hand-offs in tables ---- */

static void add_transfer(tandem_table *table, const char *backend, enum tnd_direction direction,
                         int64_t bytes, double us, uint32_t count)
{
    struct tnd_sample sample = {bytes, us, us / 100, count, 7};
    check_ok(tnd_table_add_transfer(table, backend, direction, &sample));
}

static void add_handoff(tandem_table *table, int threads, double spin_us, double wake_us)
{
    struct tnd_handoff handoff = {threads, spin_us, wake_us, 5, 7};
    check_ok(tnd_table_add_handoff(table, &handoff));
}

static void transfers_and_hand_offs_are_kept_in_json(void)
{
    tandem_table *table = tune_new();
    add_transfer(table, "opencl1", TND_UPLOAD, 4096, 5.5, 9);
    add_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20, 300, 9);
    add_transfer(table, "opencl", TND_DOWNLOAD, 4096, 20.25, 9);
    add_transfer(table, "opencl", TND_UPLOAD, 4096, 10.125, 9);
    add_handoff(table, 4, 0.75, 55);
    add_handoff(table, 2, 0.5, 50);
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    check_contains(text.bytes, "\"handoffs\": [\n    {\"threads\": 2, \"spin_us\": 0.5");
    tandem_table *again = tune_parse(text.bytes);
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_JSON);
    check_string(printed.bytes, text.bytes);
    check_int(again->n_transfers, 3);
    const struct tnd_curve *curve = tnd_table_transfer(again, "opencl", TND_DOWNLOAD);
    CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
    check_int(curve->n_samples, 2);
    check_int(curve->samples[0].m, 4096);
    CU_ASSERT_EQUAL(curve->samples[0].median_us, 20.25);
    CU_ASSERT_PTR_NULL(tnd_table_transfer(again, "cpu", TND_UPLOAD));
    /* A digit that flipped is noticed here too. */
    char *digit = strstr(text.bytes, "20.25");
    *digit = '3';
    tandem_table *none = NULL;
    struct tandem_error error;
    check_status(tandem_table_parse(text.bytes, text.n, "t", &none, &error), TANDEM_E_FORMAT,
                 "checksum", &error);
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static void what_is_no_transfer_is_refused_with_its_place(void)
{
    static const char *const bad[][2] = {
        {"\"transfers\": 3", "transfers"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"sideways\", \"samples\": []}]",
         "upload or download"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"upload\", \"samples\": "
         "[{\"m\": 1, \"median_us\": 1}]}]",
         "transfers[0].samples[0].bytes"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"upload\", \"samples\": "
         "[{\"bytes\": 1, \"median_us\": -1}]}]",
         "transfers[0].samples[0].median_us"},
        {"\"handoffs\": [{\"threads\": 1, \"spin_us\": 1, \"wake_us\": 1}]", "handoffs[0].threads"},
        {"\"handoffs\": [{\"threads\": 2, \"spin_us\": 1}]", "handoffs[0].wake_us"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[512];
        tandem_table *table = NULL;
        struct tandem_error error;
        snprintf(text, sizeof(text), "{\"version\": 2, \"profiles\": [], \"curves\": [], %s}",
                 bad[i][0]);
        check_status(tandem_table_parse(text, strlen(text), "t", &table, &error), TANDEM_E_FORMAT,
                     bad[i][1], &error);
    }
}

static void transfers_merge_by_count_and_age_in_any_order(void)
{
    tandem_table *a = tune_new();
    tandem_table *b = tune_new();
    tandem_table *other = NULL;
    add_transfer(a, "opencl", TND_UPLOAD, 4096, 10, 9);
    add_transfer(b, "opencl", TND_UPLOAD, 4096, 12, 20);
    add_transfer(b, "opencl", TND_UPLOAD, 8192, 15, 1);
    add_handoff(a, 2, 0.5, 50);
    add_handoff(b, 2, 0.25, 60);
    check_ok(tandem_table_copy(a, &other, NULL));
    check_ok(tandem_table_merge(a, b, NULL));
    check_ok(tandem_table_merge(b, other, NULL));
    check_ok(tandem_table_merge(b, a, NULL));
    struct tnd_text one = tune_print(a, TANDEM_TABLE_JSON);
    struct tnd_text two = tune_print(b, TANDEM_TABLE_JSON);
    check_string(one.bytes, two.bytes);
    CU_ASSERT_EQUAL(tnd_table_transfer(a, "opencl", TND_UPLOAD)->samples[0].median_us, 12);
    CU_ASSERT_EQUAL(a->handoffs[0].spin_us, 0.25);
    tnd_text_fini(&one);
    tnd_text_fini(&two);
    tandem_table_free(a);
    tandem_table_free(b);
    tandem_table_free(other);
}

/* ---- what moving costs ---- */

enum { N = 256, K = 512 };

/* Puts a made-up cost into all stages of a profile: each takes fixed + per_token * m
 * microseconds. */
static void add_cost(tandem_table *table, const char *profile, double fixed, double per_token)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe(tnd_profile_find(profile), TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        for (int threads = 1; threads <= 2 && stage->backend[0] != '\0'; threads++) {
            struct tnd_curve_key key = tune_key(N, K, (enum tandem_task)stage->task,
                                                stage->parallel, stage->parallel ? threads : 1);
            memcpy(key.backend, stage->backend, sizeof(key.backend));
            key.stage = (uint8_t)s;
            for (int64_t m = 1; m <= 64; m *= 4) {
                struct tnd_sample sample = {m, fixed + per_token * (double)m, 0, 10, 1};
                check_ok(tnd_table_add(table, &key, &sample));
            }
        }
    }
}

/* latency + bytes / rate, both ways, and no noise. */
static void add_link(tandem_table *table, const char *backend, double latency_us,
                     double bytes_per_us)
{
    for (int64_t bytes = 4096; bytes <= (int64_t)64 << 20; bytes *= 4) {
        struct tnd_sample sample = {bytes, latency_us + (double)bytes / bytes_per_us, 0, 9, 7};
        check_ok(tnd_table_add_transfer(table, backend, TND_UPLOAD, &sample));
        check_ok(tnd_table_add_transfer(table, backend, TND_DOWNLOAD, &sample));
    }
}

static struct tnd_moves moves_of(const tandem_table *table, const char *profile, int64_t m)
{
    struct tnd_table_profile described;
    struct tnd_moves moves;
    CU_ASSERT_TRUE(tnd_profile_describe(tnd_profile_find(profile), TANDEM_TYPE_Q4_0, &described));
    tnd_estimate_moves(table, &described, N, K, m, &moves);
    return moves;
}

static void a_profile_moves_what_its_stages_do_not_find_where_they_run(void)
{
    tandem_table *table = tune_new();
    add_link(table, "opencl", 10, 1000);
    const double x = 10 + 4.0 * K * 64 / 1000;
    const double y = 10 + 4.0 * N * 64 / 1000;
    const double w = 10 + 4.0 * N * K / 1000;
    const struct {
        const char *profile;
        const char *home;
        double inside, x, y;
    } want[] = {
        {"cpu", "", 0, 0, 0},
        {"cpu+openblas", "", 0, 0, 0},
        {"opencl", "opencl", 0, x, y},
        {"cpu+clblast", "opencl", w, x, y},
        {"opencl+clblast", "opencl", 0, x, y},
        {"opencl+openblas", "", w, 0, 0},

    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct tnd_moves moves = moves_of(table, want[i].profile, 64);
        check_string(moves.home, want[i].home);
        CU_ASSERT_DOUBLE_EQUAL(moves.inside.us, want[i].inside, 0.01);
        CU_ASSERT_DOUBLE_EQUAL(moves.x.us, want[i].x, 0.01);
        CU_ASSERT_DOUBLE_EQUAL(moves.y.us, want[i].y, 0.01);
    }
    /* Few bytes cost the latency. */
    CU_ASSERT_DOUBLE_EQUAL(tnd_estimate_transfer(table, "opencl", TND_UPLOAD, 4).us, 14.1, 0.01);
    CU_ASSERT_EQUAL(tnd_estimate_transfer(table, "cpu", TND_UPLOAD, 4).us, 0);
    CU_ASSERT_EQUAL(tnd_estimate_transfer(NULL, "opencl", TND_UPLOAD, 4).us, 0);
    tandem_table_free(table);
}

static void waking_is_interpolated_over_threads(void)
{
    tandem_table *table = tune_new();
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 4), 0);
    add_handoff(table, 2, 1, 21);
    add_handoff(table, 8, 2, 82);
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 1), 0);
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 2), 20);
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 5), 50);
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 8), 80);
    CU_ASSERT_EQUAL(tnd_estimate_wake(table, 64), 80);
    tandem_table_free(table);
}

/* One way among neighbours in host memory, and the same where its operands are already. */
static void a_candidate_counts_the_moves_that_its_neighbours_leave_to_it(void)
{
    tandem_table *table = tune_new();
    const struct tnd_problem problem = {"mul_mat", TANDEM_TYPE_Q4_0, N, K, 4, 0, ""};
    struct tnd_way way;
    struct tnd_candidate at_host, at_home;
    struct tnd_choice choice;
    memset(&way, 0, sizeof(way));
    add_cost(table, "opencl", 100, 0);
    add_link(table, "opencl", 10, 1000);
    add_handoff(table, 2, 1, 21);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("opencl"), TANDEM_TYPE_Q4_0, &way.profile));
    const struct tnd_neighbours on_device = {true, "opencl", 2};
    const struct tnd_neighbours on_host = {true, "", 2};
    CU_ASSERT_TRUE(tnd_predict(table, &way, 0, &problem, 1, NULL, &at_host));
    CU_ASSERT_TRUE(tnd_predict(table, &way, 0, &problem, 1, &on_device, &at_home));
    CU_ASSERT_FALSE(tnd_predict(table, &way, 0, &problem, 1, &on_host, &at_home));
    CU_ASSERT_DOUBLE_EQUAL(at_home.total.us, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(at_host.total.us, 100 + 10 + 4.0 * K * 4 / 1000 + 10 + 4096.0 / 1000,
                           1e-6);
    CU_ASSERT_DOUBLE_EQUAL(at_host.moving.us, at_host.total.us - 100, 1e-9);
    /* Whoever runs next on two threads has one to wake. */
    tnd_choose(table, &way, 1, &problem, 2, NULL, NULL, NULL, &choice);
    CU_ASSERT_DOUBLE_EQUAL(choice.best.total.us, at_host.total.us + 20, 1e-6);
    tandem_table_free(table);
}

/* Text tables have no column for transfers: they are in COMPUTE. */
static void a_text_table_holds_backend_5_and_the_transfers_in_compute(void)
{
    tandem_table *table = tune_new();
    add_cost(table, "cpu", 5, 1);
    add_cost(table, "opencl+clblast", 50, 0);
    add_cost(table, "opencl", 40, 0);
    add_link(table, "opencl", 10, 1000);
    table->gpu_kind = TANDEM_KIND_CLBLAST;
    snprintf(table->gpu_name, sizeof(table->gpu_name), "CLBLAST");
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_contains(tnd_text_string(&text), "1 custom Q4_0 5 CLBLAST 1 ");
    check_contains(tnd_text_string(&text), "\n1 1 0 1 1 0 0 0 0\n5 0 1 5 0 1 0 0 0\n256 512\n");
    /* 50 + 10 + 4 * 512 * 16 / 1000 + 10 + 4 * 256 * 16 / 1000 */
    check_contains(tnd_text_string(&text), " 16       21       21 0       50      119 0\n");
    tandem_table *again = tune_parse(text.bytes);
    check_string(again->profiles[1].name, "opencl+clblast");
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_TEXT);
    check_string(printed.bytes, text.bytes);
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static void analyze_shows_crossovers_between_cpu_and_device(void)
{
    tandem_table *table = tune_new();
    const struct tnd_analyze_options json = {TND_ANALYZE_JSON, "t", NULL, 0, TANDEM_TYPE_NUMBERS};
    add_cost(table, "cpu", 5, 4);
    add_cost(table, "opencl", 80, 0.5);
    add_link(table, "opencl", 10, 1000);
    struct tnd_text text = tune_analyze(table, &json);
    check_contains(tnd_text_string(&text), "\"from\": \"cpu\", \"to\": \"opencl\"");
    check_contains(tnd_text_string(&text), "\"transfer_us\": 28.19");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

/* ---- placement ---- */

static struct tnd_planner *planner;
static tandem_context *context;
static tandem_table *costs;

static char last_log[512];
static int log_lines;

static void remember_line(void *user, enum tandem_log_level level, const char *room,
                          const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    snprintf(last_log, sizeof(last_log), "%s", text);
    log_lines++;
}

static void set_up_planner(void)
{
    set_up();
    log_lines = 0;
    unsupported = TANDEM_OP_NONE;
    const struct tnd_planner_options options = {
        registry, tnd_clock_real(), {remember_line, NULL, TANDEM_LOG_INFO}};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    check_ok(tandem_context_new(NULL, &context, NULL));
    costs = tune_new();
}

static void tear_down_planner(void)
{
    tnd_planner_free(planner);
    tandem_context_free(context);
    tandem_table_free(costs);
    tear_down();
}

/* One layer of N x N products with an activation between, `n_layers` times over; M tokens. Every
 * third node is a product. */
static tandem_graph *chain(int n_layers, int64_t m)
{
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    for (int i = 0; i < n_layers; i++) {
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_tensor *y = tandem_silu(context, tandem_mul_mat(context, w, x)); /* N x M */
        x = tandem_concat(context, y, y, 0);                                    /* K x M */
    }
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

/* "dhh": backends of the nodes, device or host, in a static buffer. */
static const char *homes(const tandem_graph *graph)
{
    static char text[256];
    tandem_plan *plan = NULL;
    int slot = tnd_registry_find(registry, "opencl", NULL);
    memset(text, 0, sizeof(text));
    if (check_ok(tnd_planner_plan(planner, graph, 2, &plan, NULL))) {
        for (int i = 0; i < tandem_plan_node_count(plan) && i < 255; i++) {
            const struct tandem_plan_node *node = tandem_plan_node(plan, i);
            text[i] = node->stage[TANDEM_STAGE_COMPUTE].backend == slot ? 'd' : 'h';
        }
    }
    tandem_plan_free(plan);
    return text;
}

static void without_a_table_a_device_is_not_used(void)
{
    check_string(homes(chain(2, 64)), "hhhhhh");
    check_string(homes(chain(2, 64)), "hhhhhh");
    check_int(log_lines, 1); /* once */
    check_contains(last_log, "opencl is open but was never measured");
    add_cost(costs, "cpu", 50, 0);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 4)), "hhhhhh");
    check_int(log_lines, 2); /* the new table does not know it either */
}

static void a_chain_stays_on_a_device_that_pays_as_a_whole(void)
{
    add_cost(costs, "cpu", 50, 0); /* two stages: 100 us */
    add_cost(costs, "opencl", 80, 0);
    add_link(costs, "opencl", 60, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(1, 4)), "hhh"); /* 60 + 80 + 60 us */
    /* 100 us for each layer against 120 us once and 80 us for each: */
    check_string(homes(chain(5, 4)), "hhhhhhhhhhhhhhh");
    check_string(homes(chain(7, 4)), "ddddddddddddddddddddd");
}

static void a_slow_device_is_left_alone(void)
{
    add_cost(costs, "cpu", 50, 0);
    add_cost(costs, "opencl", 101, 0);
    add_link(costs, "opencl", 0.001, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(8, 4)), "hhhhhhhhhhhhhhhhhhhhhhhh");
}

static void what_a_device_cannot_do_comes_back_to_the_host(void)
{
    unsupported = TANDEM_OP_CONCAT;
    add_cost(costs, "cpu", 500, 0);
    add_cost(costs, "opencl", 10, 0);
    add_link(costs, "opencl", 10, 1e9);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(3, 4)), "ddhddhddh");
    unsupported = TANDEM_OP_SILU; /* concat's operands are not on the device then */
    check_string(homes(chain(2, 4)), "dhhdhh");
}

static void transfers_count_by_their_bytes(void)
{
    add_cost(costs, "cpu", 20, 0);
    add_cost(costs, "opencl", 20, 0);
    add_link(costs, "opencl", 0.1, 100); /* 4 * 512 * 64 bytes: 1311 us */
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(2, 64)), "hhhhhh");
}

/* Weights that anybody may change travel each time. */
static void weights_without_a_role_count_as_transfers(void)
{
    add_cost(costs, "cpu", 50, 0);
    add_cost(costs, "opencl", 20, 0);
    add_link(costs, "opencl", 1, 1000);
    tnd_planner_set_table(planner, costs);
    check_string(homes(chain(1, 4)), "ddd");
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, 4});
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x)); /* 73,728 bytes: 75 us */
    check_ok(tandem_graph_finish(graph, NULL));
    check_string(homes(graph), "h");
}

static void a_forced_device_takes_all_that_it_supports(void)
{
    tnd_planner_force(planner, tnd_profile_find("opencl"));
    check_string(homes(chain(2, 4)), "dddddd");
    unsupported = TANDEM_OP_SILU;
    tnd_planner_force(planner, tnd_profile_find("opencl+clblast"));
    check_string(homes(chain(2, 4)), "dhddhd");
    unsupported = TANDEM_OP_NONE;
    /* Operations follow the products of the other profiles. */
    tnd_planner_force(planner, tnd_profile_find("cpu+clblast"));
    check_string(homes(chain(2, 4)), "dddddd");
    tnd_planner_force(planner, tnd_profile_find("cpu"));
    check_string(homes(chain(2, 4)), "hhhhhh");
    if (tnd_registry_find(registry, "openblas", NULL) >= 0) {
        tnd_planner_force(planner, tnd_profile_find("opencl+openblas"));
        check_string(homes(chain(2, 4)), "hhhhhh");
    }
    /* The second device is not open: its profile applies nowhere. */
    tnd_planner_force(planner, tnd_profile_find("opencl@opencl1"));
    check_string(homes(chain(2, 4)), "hhhhhh");
}

static void workers_sleep_on_a_device_only_where_waking_is_cheaper(void)
{
    tandem_plan *plan = NULL;
    add_cost(costs, "cpu", 500, 0);
    add_cost(costs, "opencl", 40, 0);
    add_link(costs, "opencl", 1, 1e9);
    add_handoff(costs, 2, 1, 31);
    for (int i = 0; i < 2; i++) {
        tnd_planner_set_table(planner, costs);
        check_ok(tnd_planner_plan(planner, chain(1, 4), 2, &plan, NULL));
        const struct tandem_plan_node *node = tandem_plan_node(plan, 0);
        check_int(node->stage[TANDEM_STAGE_COMPUTE].wait, i == 0);
        check_int(node->reason, TANDEM_REASON_TABLE);
        CU_ASSERT_DOUBLE_EQUAL(node->predicted_us[TANDEM_STAGE_COMPUTE], 40, 0.01);
        tandem_plan_free(plan);
        costs->handoffs[0].wake_us = 51;
    }
}

static void a_device_out_of_service_is_not_planned_for(void)
{
    add_cost(costs, "cpu", 500, 0);
    add_cost(costs, "opencl", 10, 0);
    add_link(costs, "opencl", 1, 1e9);
    tnd_planner_set_table(planner, costs);
    tandem_graph *graph = chain(2, 4);
    check_string(homes(graph), "dddddd");
    CU_ASSERT_TRUE(tnd_registry_quarantine(registry, tnd_registry_find(registry, "opencl", NULL),
                                           "it failed"));
    check_string(homes(graph), "hhhhhh");
    tnd_planner_force(planner, tnd_profile_find("opencl"));
    check_string(homes(graph), "hhhhhh");
}

static void placing_without_memory_is_an_error_without_a_leak(void)
{
    tandem_graph *graph = chain(2, 4);
    long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    tnd_planner_force(planner, tnd_profile_find("opencl"));
    for (long nth = 1; nth < 50 && status != TANDEM_OK; nth++) {
        tandem_plan *plan = NULL;
        tnd_alloc_fail_after(nth);
        status = tnd_planner_plan(planner, graph, 2, &plan, NULL);
        tnd_alloc_fail_after(-1);
        CU_ASSERT_TRUE(status == TANDEM_OK || status == TANDEM_E_MEMORY);
        tandem_plan_free(plan);
        check_int(tnd_alloc_live(), live);
    }
    check_int(status, TANDEM_OK);
}

/* ---- what is placed is computed ---- */

/* As chain(), with values, and weights in Q8_0. */
static tandem_graph *real_chain(int n_layers, int64_t m, tandem_tensor **out_result)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    tnd_test_fill(&rng, tandem_tensor_data(x), K * m);
    for (int i = 0; i < n_layers; i++) {
        float row[K];
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q8_0, 2, (const int64_t[]){K, N});
        for (int64_t n = 0; n < N; n++) {
            tnd_test_fill(&rng, row, K);
            check_ok(tandem_quantize(TANDEM_TYPE_Q8_0, row,
                                     (char *)tandem_tensor_data(w) + (size_t)n * w->nb[1], K));
        }
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        tandem_tensor *y = tandem_silu(context, tandem_mul_mat(context, w, x));
        x = tandem_rms_norm(context, tandem_concat(context, y, y, 0), 1e-5F);
    }
    tandem_graph_add(graph, x);
    check_ok(tandem_graph_finish(graph, NULL));
    *out_result = x;
    return graph;
}

static void graphs_give_the_right_result_wherever_they_are_placed(void)
{
    static struct tandem_backend_api opencl_api;
    static const char *const profiles[] = {"cpu", "opencl", "cpu+clblast", "opencl+clblast",
                                           "opencl+openblas"};
    enum { M = 5, LAYERS = 3 };
    struct tnd_registry_options registry_options = {.backends = "openblas", .n_threads_max = 4};
    const struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    struct tnd_registry *mine = NULL;
    struct tnd_planner *my_planner = NULL;
    struct tnd_pool *pool = NULL;
    struct tnd_exec *exec = NULL;
    tandem_tensor *y = NULL;
    opencl_api = tnd_sim_own_api;
    opencl_api.name = "opencl";
    opencl_api.kind = TANDEM_KIND_OPENCL;
    check_ok(tnd_registry_open(&registry_options, &mine, NULL));
    check_ok(tnd_registry_add(mine, &opencl_api, NULL, NULL));
    const struct tnd_planner_options options = {mine, tnd_clock_real(), {NULL, NULL, 0}};
    check_ok(tnd_planner_new(&options, &my_planner, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, mine, tnd_clock_real(), &exec, NULL));
    tandem_graph *graph = real_chain(LAYERS, M, &y);
    float *want = malloc(K * M * sizeof(float));
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        tandem_plan *plan = NULL;
        tnd_planner_force(my_planner, tnd_profile_find(profiles[i]));
        check_ok(tnd_planner_plan(my_planner, graph, 2, &plan, NULL));
        memset(tandem_tensor_data(y), 0, K * M * sizeof(float));
        check_ok(tnd_exec_run(exec, graph, plan, NULL, NULL));
        if (i == 0) {
            memcpy(want, tandem_tensor_data(y), K * M * sizeof(float));
        }
        check_nmse(tandem_tensor_data(y), want, K * M, 5e-4, profiles[i]);
        tandem_plan_free(plan);
    }
    free(want);
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_planner_free(my_planner);
    tnd_registry_close(mine);
}

static CU_TestInfo placement_tests[] = {
    {"graphs give the right result wherever they are placed",
     graphs_give_the_right_result_wherever_they_are_placed},
    {"without a table a device is not used", without_a_table_a_device_is_not_used},
    {"a chain stays on a device that pays as a whole",
     a_chain_stays_on_a_device_that_pays_as_a_whole},
    {"a slow device is left alone", a_slow_device_is_left_alone},
    {"what a device cannot do comes back to the host",
     what_a_device_cannot_do_comes_back_to_the_host},
    {"transfers count by their bytes", transfers_count_by_their_bytes},
    {"weights without a role count as transfers", weights_without_a_role_count_as_transfers},
    {"a forced device takes all that it supports", a_forced_device_takes_all_that_it_supports},
    {"workers sleep on a device only where waking is cheaper",
     workers_sleep_on_a_device_only_where_waking_is_cheaper},
    {"a device out of service is not planned for", a_device_out_of_service_is_not_planned_for},
    {"placing without memory is an error without a leak",
     placing_without_memory_is_an_error_without_a_leak},
    CU_TEST_INFO_NULL,
};

static void what_if_transfers_were_slower(void)
{
    tandem_table *table = tune_new();
    add_cost(table, "opencl", 100, 0);
    add_link(table, "opencl", 10, 1000);
    double before = tnd_estimate_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20).us;
    CU_ASSERT_TRUE(tnd_table_scale(table, "opencl.transfer", 2));
    CU_ASSERT_FALSE(tnd_table_scale(table, "opencl1.transfer", 2));
    CU_ASSERT_FALSE(tnd_table_scale(table, "opencl.other", 2));
    CU_ASSERT_DOUBLE_EQUAL(tnd_estimate_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20).us,
                           2 * before, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(table->curves[0].samples[0].median_us, 100, 1e-9);
    tandem_table_free(table);
}

static CU_TestInfo moving_tests[] = {
    {"what if transfers were slower", what_if_transfers_were_slower},
    {"a profile moves what its stages do not find where they run",
     a_profile_moves_what_its_stages_do_not_find_where_they_run},
    {"waking is interpolated over threads", waking_is_interpolated_over_threads},
    {"a candidate counts the moves that its neighbours leave to it",
     a_candidate_counts_the_moves_that_its_neighbours_leave_to_it},
    {"a text table holds backend 5 and the transfers in COMPUTE",
     a_text_table_holds_backend_5_and_the_transfers_in_compute},
    {"analyze shows crossovers between CPU and device",
     analyze_shows_crossovers_between_cpu_and_device},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo table_tests[] = {
    {"transfers and hand-offs are kept in JSON", transfers_and_hand_offs_are_kept_in_json},
    {"what is no transfer is refused with its place",
     what_is_no_transfer_is_refused_with_its_place},
    {"transfers merge by count and age in any order",
     transfers_merge_by_count_and_age_in_any_order},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo profile_tests[] = {
    {"the profiles of a device name its stages", the_profiles_of_a_device_name_its_stages},
    {"a profile resolves where its device is open and else says why",
     a_profile_resolves_where_its_device_is_open_and_else_says_why},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_devices[];
CU_SuiteInfo suites_tune_devices[] = {
    {"device profiles", NULL, NULL, set_up, tear_down, profile_tests},
    {"transfers in tables", NULL, NULL, NULL, NULL, table_tests},
    {"what moving costs", NULL, NULL, NULL, NULL, moving_tests},
    {"placement", NULL, NULL, set_up_planner, tear_down_planner, placement_tests},
    CU_SUITE_INFO_NULL,
};
