/* SPDX-License-Identifier: MIT
 * Transfers and hand-offs: in tables and files, and what they add to predictions. */
#include <stdio.h>
#include <string.h>

#include "tests/suite_tune.h"
#include "tune/candidates.h"
#include "tune/explain.h"
#include "tune/profiles.h"

/* ---- transfers and hand-offs in tables ---- */

static void add_transfer(tandem_table *table, const char *backend, enum tnd_direction direction,
                         int64_t bytes, double us, uint32_t count)
{
    struct tnd_sample sample = {bytes, us, us / 100, count, 7, 0};
    check_ok(tnd_table_add_transfer(table, backend, direction, &sample));
}

void tune_add_handoff(tandem_table *table, int threads, double spin_us, double wake_us)
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
    tune_add_handoff(table, 4, 0.75, 55);
    tune_add_handoff(table, 2, 0.5, 50);
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
    tune_add_handoff(a, 2, 0.5, 50);
    tune_add_handoff(b, 2, 0.25, 60);
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

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K };

/* Puts a made-up cost into all stages of a profile: each takes fixed + per_token * m
 * microseconds. */
void tune_add_cost(tandem_table *table, const char *profile, double fixed, double per_token)
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
                struct tnd_sample sample = {m, fixed + per_token * (double)m, 0, 10, 1, 0};
                check_ok(tnd_table_add(table, &key, &sample));
            }
        }
    }
}

/* latency + bytes / rate, both ways, and no noise. */
void tune_add_link(tandem_table *table, const char *backend, double latency_us, double bytes_per_us)
{
    for (int64_t bytes = 4096; bytes <= (int64_t)64 << 20; bytes *= 4) {
        struct tnd_sample sample = {bytes, latency_us + (double)bytes / bytes_per_us, 0, 9, 7, 0};
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
    tune_add_link(table, "opencl", 10, 1000);
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
    struct tnd_way way;
    struct tnd_candidate at_host, at_home;
    struct tnd_choice choice;
    memset(&way, 0, sizeof(way));
    tune_add_cost(table, "opencl", 100, 0);
    tune_add_link(table, "opencl", 10, 1000);
    tune_add_handoff(table, 2, 1, 21);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("opencl"), TANDEM_TYPE_Q4_0, &way.profile));
    const struct tnd_neighbours on_device = {.at_home = true, .home = "opencl", .crew = 2};
    const struct tnd_neighbours on_host = {.at_home = true, .home = "", .crew = 2};
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
    tune_add_cost(table, "cpu", 5, 1);
    tune_add_cost(table, "opencl+clblast", 50, 0);
    tune_add_cost(table, "opencl", 40, 0);
    tune_add_link(table, "opencl", 10, 1000);
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
    tune_add_cost(table, "cpu", 5, 4);
    tune_add_cost(table, "opencl", 80, 0.5);
    tune_add_link(table, "opencl", 10, 1000);
    struct tnd_text text = tune_analyze(table, &json);
    check_contains(tnd_text_string(&text), "\"from\": \"cpu\", \"to\": \"opencl\"");
    check_contains(tnd_text_string(&text), "\"transfer_us\": 28.19");
    tnd_text_fini(&text);
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

extern CU_SuiteInfo suites_tune_moves[];
CU_SuiteInfo suites_tune_moves[] = {
    {"transfers in tables", NULL, NULL, NULL, NULL, table_tests},
    {"what moving costs", NULL, NULL, NULL, NULL, moving_tests},
    CU_SUITE_INFO_NULL,
};
