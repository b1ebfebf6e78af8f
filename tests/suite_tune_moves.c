/* SPDX-License-Identifier: MIT
 * Transfers and hand-offs: what they add to predictions. */
#include <stdio.h>
#include <string.h>

#include "backends/registry.h"
#include "backends/sim/sim.h"
#include "backends/task.h"
#include "base/clock.h"
#include "table/table_text.h"
#include "tests/support_tune.h"
#include "tune/candidates.h"
#include "tune/explain.h"
#include "tune/planner.h"
#include "tune/profiles.h"

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K };

static struct tnd_moves moves_of(const tandem_table *table, const char *profile, int64_t m)
{
    struct tnd_table_profile described;
    struct tnd_moves moves;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    tnd_estimate_moves(table, &described, N, K, m, &moves);
    return moves;
}

static void a_profile_moves_what_its_stages_do_not_find_where_they_run(void)
{
    tandem_table *table = tune_new();
    tune_add_link(table, "opencl", 10, 1000);
    const double x = 10 + 4.0 * K * 64 / 1000;
    const double y = 10 + 4.0 * N * 64 / 1000;
    const double w = 10 + 4.0 * N * K / 1000;
    const struct {
        const char *profile;
        const char *device;
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
        check_string(moves.device, want[i].device);
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
    tune_add_handoff(table, 2, 1, 21);
    tune_add_handoff(table, 8, 2, 82);
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
    struct tnd_candidate candidate;
    struct tnd_prediction at_host, on_side;
    struct tnd_choice choice;
    memset(&candidate, 0, sizeof(candidate));
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_link(table, "opencl", 10, 1000);
    tune_add_handoff(table, 2, 1, 21);
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "opencl", TANDEM_TYPE_Q4_0, &candidate.profile));
    const struct tnd_neighbours on_device = {
        .is_on_side = true, .side = "opencl", .neighbour_threads = 2};
    const struct tnd_neighbours on_host = {.is_on_side = true, .side = "", .neighbour_threads = 2};
    CU_ASSERT_TRUE(tnd_predict(table, &candidate, 0, &problem, 1, NULL, &at_host));
    CU_ASSERT_TRUE(tnd_predict(table, &candidate, 0, &problem, 1, &on_device, &on_side));
    CU_ASSERT_FALSE(tnd_predict(table, &candidate, 0, &problem, 1, &on_host, &on_side));
    CU_ASSERT_DOUBLE_EQUAL(on_side.total.us, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(at_host.total.us, 100 + 10 + 4.0 * K * 4 / 1000 + 10 + 4096.0 / 1000,
                           1e-6);
    CU_ASSERT_DOUBLE_EQUAL(at_host.stage[TANDEM_STAGE_FINALIZE].us, 10 + 4096.0 / 1000, 1e-6);
    CU_ASSERT_EQUAL(on_side.stage[TANDEM_STAGE_FINALIZE].us, 0);
    CU_ASSERT_DOUBLE_EQUAL(at_host.moving.us + at_host.stage[TANDEM_STAGE_FINALIZE].us,
                           at_host.total.us - 100, 1e-9);
    /* Whoever runs next on two threads has one to wake. */
    tnd_choose(table, &candidate, 1, &problem, 2, NULL, NULL, NULL, &choice);
    CU_ASSERT_DOUBLE_EQUAL(choice.best.total.us, at_host.total.us + 20, 1e-6);
    tandem_table_free(table);
}

/* Text tables have no column for transfers: fetching Y is FINALIZE, the others are in COMPUTE. */
static void a_text_table_holds_backend_5_and_the_transfers_in_its_stages(void)
{
    tandem_table *table = tune_new();
    tune_add_cost(table, "cpu", 5, 1);
    tune_add_cost(table, "opencl+clblast", 50, 0);
    tune_add_cost(table, "opencl", 40, 0);
    tune_add_link(table, "opencl", 10, 1000);
    table->gpu_kind = TANDEM_KIND_CLBLAST;
    snprintf(table->gpu_name, sizeof(table->gpu_name), "CLBLAST");
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_contains(tnd_text_string(&text), "1 custom Q4_0 5 CLBLAST 1 ");
    check_contains(tnd_text_string(&text), "\n1 1 0 1 1 0 0 0 0\n5 0 1 5 0 1 5 0 1\n256 512\n");
    /* 50 + 10 + 4 * 512 * 16 / 1000, and 10 + 4 * 256 * 16 / 1000 */
    check_contains(tnd_text_string(&text), " 16       21       21 0       50       93 26\n");
    tandem_table *again = tune_parse(text.bytes);
    check_string(again->profiles[1].name, "opencl+clblast");
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_TEXT);
    check_string(printed.bytes, text.bytes);
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static void what_if_transfers_were_slower(void)
{
    tandem_table *table = tune_new();
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_link(table, "opencl", 10, 1000);
    double before = tnd_estimate_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20).us;
    CU_ASSERT_TRUE(tnd_table_scale(table, "opencl.transfer", 2));
    CU_ASSERT_FALSE(tnd_table_scale(table, "opencl1.transfer", 2));
    CU_ASSERT_FALSE(tnd_table_scale(table, "opencl.other", 2));
    CU_ASSERT_DOUBLE_EQUAL(tnd_estimate_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20).us,
                           2 * before, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(table->curves[0].samples[0].median_us, 100, 1e-9);
    tandem_table_free(table);
}

/* Without tasks "cpu-packed" would come back as "cpu": alone it is not written, beside "cpu" the
 * faster of the two is, as a whole. */
static void packed_weights_share_the_row_of_cpu_in_text_tables(void)
{
    struct tandem_error error = {0};
    struct tnd_text names = TND_TEXT_INIT;
    tandem_table *table = tune_new();
    tune_add_cost(table, "cpu-packed", 20, 1);
    check_status(tandem_table_save(table, tnd_test_temp("packed.txt"), TANDEM_TABLE_TEXT, &error),
                 TANDEM_E_TABLE, "text format", &error);
    CU_ASSERT_FALSE(tnd_table_text_shares(table, &names));
    tandem_table_free(table);
    table = tune_new();
    /* Both share INIT's curve, so COMPUTE alone decides. */
    tune_add_cost(table, "cpu-packed", 40, 1);
    tune_add_cost(table, "cpu", 20, 3);
    CU_ASSERT_TRUE(tnd_table_text_shares(table, &names));
    check_string(tnd_text_string(&names), "cpu and cpu-packed");
    tnd_text_fini(&names);
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    const char *rows = strstr(tnd_text_string(&text), "256 512\n");
    check_contains(tnd_text_string(&text), " 1 4 1\n1 1 0 1 1 0 0 0 0\n256 512\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    const int64_t m_list[] = {1, 4, 16, 64};
    const int64_t compute_us[] = {41, 44, 56, 104}; /* 40 + M; 20 + 3 M is more in all */
    int at = 8;
    for (int i = 0; i < 4; i++) {
        long long m = 0, init = 0, compute = 0, finalize = 0;
        int n = 0;
        check_int(sscanf(rows + at, "%lld %lld %lld %lld%n", &m, &init, &compute, &finalize, &n),
                  4);
        check_int(m, m_list[i]);
        check_int(compute, compute_us[i]);
        at += n;
    }
    tnd_text_fini(&text);
    tandem_table_free(table);
}

/* A text table has no names: the numbers alone must lead back to the library's own. */
static void text_tables_give_the_profiles_of_the_library_their_names(void)
{
    int n_seen = 0;
    for (int i = 0; i < tnd_profile_count(NULL); i++) {
        struct tnd_table_profile profile;
        if (!tnd_profile_describe(NULL, i, TANDEM_TYPE_Q4_0, &profile)) {
            CU_ASSERT_TRUE(tnd_profile_describe(NULL, i, TANDEM_TYPE_BF16, &profile));
            continue;
        }
        const struct tnd_table_stage *compute = &profile.stage[TANDEM_STAGE_COMPUTE];
        bool is_second = strchr(profile.name, '@') != NULL;
        if (compute->kind >= TND_TEXT_KINDS || compute->own_threads || is_second ||
            tnd_task_is(compute->task, TND_TASK_USES_PACKED | TND_TASK_STREAMS_W)) {
            continue;
        }
        char name[sizeof(profile.name)];
        memcpy(name, profile.name, sizeof(name));
        memset(profile.name, 0, sizeof(profile.name));
        tnd_table_text_name(TANDEM_TYPE_Q4_0, &profile);
        check_string(profile.name, name);
        n_seen++;
    }
    CU_ASSERT_TRUE(n_seen >= 2);
}

/* A Q4_0 product of N x K with M tokens. */
static tandem_graph *one_product(tandem_context *context, int64_t m)
{
    tandem_graph *graph = tandem_graph_new(context);
    tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_Q4_0, 2, (const int64_t[]){K, N});
    tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_graph_add(graph, tandem_mul_mat(context, w, x));
    check_ok(tandem_graph_finish(graph, NULL));
    return graph;
}

/* Kind 2 of the text format, as the proposal's original had it: the names of its profiles are those
 * of the library, and the plan runs the faster one's stages. */
static void a_published_table_with_stages_of_cuda_is_planned_with(void)
{
    static struct tandem_backend_api cuda_api;
    struct tnd_registry_options registry_options = {.n_threads_max = 4};
    struct tnd_registry *registry = NULL;
    struct tnd_planner *planner = NULL;
    tandem_context *context = NULL;
    struct tnd_text text = TND_TEXT_INIT;
    cuda_api = tnd_sim_own_api;
    cuda_api.name = "cuda";
    cuda_api.kind = TANDEM_KIND_CUDA;
    check_ok(tandem_context_new(NULL, &context, NULL));
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    check_ok(tnd_registry_add(registry, &cuda_api, NULL, NULL));
    const int slot = tnd_registry_find(registry, "cuda", NULL);
    const struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    check_ok(tnd_planner_new(&options, &planner, NULL));
    tnd_text_printf(&text,
                    "1 7B Q4_0 2 CUDA 1 2 2 3\n1 1 0 1 1 0 0 0 0\n1 1 0 2 0 1 0 0 0\n"
                    "2 0 1 2 0 1 0 0 0\n%d %d\n"
                    "1 5 10 0 900 900 0 900 900 0\n512 5 99999 0 900 90 0 90 90 0\n",
                    N, K);
    tandem_table *table = tune_parse(tnd_text_string(&text));
    check_string(table->profiles[1].name, "cpu+cublas");
    check_string(table->profiles[2].name, "cuda+cublas");
    tnd_planner_set_table(planner, table);
    for (int64_t m = 1; m <= 512; m += 511) {
        tandem_plan *plan = NULL;
        check_ok(tnd_planner_plan(planner, one_product(context, m), 2, &plan, NULL));
        const struct tandem_plan_node *node = tandem_plan_node(plan, 0);
        const int home = m == 1 ? TANDEM_BACKEND_CPU : slot;
        check_int(node->reason, TANDEM_REASON_TABLE);
        check_string(node->profile, m == 1 ? "cpu" : "cuda+cublas");
        check_int(node->stage[TANDEM_STAGE_INIT].backend, home);
        check_int(node->stage[TANDEM_STAGE_COMPUTE].backend, home);
        check_int(node->stage[TANDEM_STAGE_COMPUTE].task,
                  m == 1 ? TANDEM_TASK_MUL_MAT_Q : TANDEM_TASK_MUL_MAT_F32);
        tandem_plan_free(plan);
    }
    tandem_table_free(table);
    tnd_text_fini(&text);
    tnd_planner_free(planner);
    tnd_registry_close(registry);
    tandem_context_free(context);
}

static CU_TestInfo moving_tests[] = {
    {"packed_weights_share_the_row_of_cpu_in_text_tables",
     packed_weights_share_the_row_of_cpu_in_text_tables},
    {"text_tables_give_the_profiles_of_the_library_their_names",
     text_tables_give_the_profiles_of_the_library_their_names},
    {"what if transfers were slower", what_if_transfers_were_slower},
    {"a profile moves what its stages do not find where they run",
     a_profile_moves_what_its_stages_do_not_find_where_they_run},
    {"waking is interpolated over threads", waking_is_interpolated_over_threads},
    {"a candidate counts the moves that its neighbours leave to it",
     a_candidate_counts_the_moves_that_its_neighbours_leave_to_it},
    {"a text table holds backend 5 and the transfers in its stages",
     a_text_table_holds_backend_5_and_the_transfers_in_its_stages},
    {"a published table with stages of CUDA is planned with",
     a_published_table_with_stages_of_cuda_is_planned_with},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_moves[];
CU_SuiteInfo suites_tune_moves[] = {
    {"what moving costs", NULL, NULL, NULL, NULL, moving_tests},
    CU_SUITE_INFO_NULL,
};
