/* SPDX-License-Identifier: MIT
 * Tables: cells and the merge rule, both file formats, fingerprints, where files go. */
#include "tests/support_tune.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

/* ---- text, version 1 ---- */

static void the_published_text_table_is_read_and_written_byte_for_byte(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), tune_example);
    check_int(table->version, 1);
    check_string(table->model, "7B");
    check_string(table->gpu_name, "ACCELERATE");
    check_int(table->n_profiles, 2);
    check_string(table->profiles[0].name, "cpu");
    check_string(table->profiles[1].name, "cpu+accelerate");
    check_ok(tandem_table_check(table, NULL));
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static void the_published_file_is_the_example_of_the_tests(void)
{
    const char *path = tnd_test_data("tables/macbook-pro-2018-7B-Q4_0.txt");
    if (path == NULL) {
        return;
    }
    tandem_table *table = NULL;
    check_ok(tandem_table_load(path, &table, NULL));
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), tune_example);
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static void text_may_be_laid_out_in_any_way(void)
{
    tandem_table *wide =
        tune_parse("  1 7B Q4_0 0 NONE 1 8 2 1\r\n1 0 0 1 1 0 0 0 0 64\t32\r\n8 1 2\n0 16 3 4 0");
    struct tnd_text text = tune_print(wide, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), "1 7B Q4_0 0 NONE 1 8 2 1\n1 0 0 1 1 0 0 0 0\n64 32\n"
                                         "  8        1        2 0\n 16        3        4 0\n");
    tnd_text_fini(&text);
    tandem_table_free(wide);
}

static void profiles_of_text_tables_get_names_from_their_backends(void)
{
    static const struct {
        const char *stages;
        const char *name;
        const char *times;
        uint8_t init_task, compute_task;
    } cases[] = {
        {"1 1 0 1 1 0 0 0 0", "cpu", "1 1 0", TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_Q},
        {"0 0 0 1 1 0 0 0 0", "cpu", "0 1 0", TANDEM_TASK_NONE, TANDEM_TASK_NODE},
        {"1 1 0 2 0 1 0 0 0", "cpu+cublas", "1 1 0", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
        {"2 0 1 2 0 1 2 0 1", "cuda+cublas", "1 1 1", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
        {"2 0 1 2 0 1 0 0 0", "cuda+cublas", "1 1 0", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
        {"0 0 0 2 0 1 0 0 0", "cuda", "0 1 0", TANDEM_TASK_NONE, TANDEM_TASK_NODE},
        {"5 0 1 5 0 1 0 0 0", "opencl+clblast", "1 1 0", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
        {"0 0 0 5 0 1 0 0 0", "clblast", "0 1 0", TANDEM_TASK_NONE, TANDEM_TASK_NODE},
        {"1 1 0 4 1 0 0 0 0", "cpu+openblas-panels", "1 1 0", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
        {"1 1 0 4 0 1 1 0 0", "cpu+openblas", "1 1 7", TANDEM_TASK_DEQUANTIZE_W,
         TANDEM_TASK_MUL_MAT_F32},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_text text = TND_TEXT_INIT;
        tnd_text_printf(&text, "1 7B Q4_0 0 NONE 1 8 1 1\n%s\n64 32\n8 %s\n", cases[i].stages,
                        cases[i].times);
        tandem_table *table = tune_parse(tnd_text_string(&text));
        tnd_text_fini(&text);
        if (table == NULL) {
            continue;
        }
        check_string(table->profiles[0].name, cases[i].name);
        check_int(table->profiles[0].stage[TANDEM_STAGE_INIT].task, cases[i].init_task);
        check_int(table->profiles[0].stage[TANDEM_STAGE_COMPUTE].task, cases[i].compute_task);
        tandem_table_free(table);
    }
}

static void profiles_of_one_kind_keep_their_own_numbers(void)
{
    const char *twins = "1 7B F16 0 NONE 1 8 1 3\n1 1 0 4 0 1 0 0 0\n1 1 0 4 0 1 0 0 0\n"
                        "1 1 0 4 0 1 0 0 0\n64 32\n"
                        "  8        1        2 0        3        4 0        1        5 0\n";
    tandem_table *table = tune_parse(twins);
    check_string(table->profiles[0].name, "cpu+openblas");
    check_string(table->profiles[1].name, "cpu+openblas#2");
    check_string(table->profiles[2].name, "cpu+openblas#3");
    struct tnd_text text = tune_print(table, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), twins);
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static void broken_text_tables_are_refused_with_a_place(void)
{
    static const struct {
        const char *text;
        enum tandem_status status;
        const char *part;
    } cases[] = {
        {"", TANDEM_E_TRUNCATED, "test:1:1: expected a table version, found the end of the file"},
        {"   \n ", TANDEM_E_TRUNCATED, "test:2:2"},
        {"2 7B", TANDEM_E_TABLE_VERSION, "version 1"},
        {"x", TANDEM_E_FORMAT, "test:1:1: expected a table version, found 'x'"},
        {"1 7B Q9_9 0 N 1 8 1 1\n", TANDEM_E_FORMAT, "test:1:6: expected a weight type"},
        {"1 7B Q4_0 6 OPENCL 1 8 1 1\n", TANDEM_E_FORMAT, "from 0 to 5, found '6'"},
        {"1 7B Q4_0 0 N 4000000000 8 1 1\n", TANDEM_E_FORMAT, "number of shapes"},
        {"1 7B Q4_0 0 N 4096 8 4096 32\n1 0 0\n", TANDEM_E_TRUNCATED, "the first line promises"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 2 1 1 0 0 0 0 64 32 8 1 1 0\n", TANDEM_E_FORMAT,
         "test:2:5: expected 0 or 1, found '2'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 0 0 0 0 0 0 64 32 8 1 1 0\n", TANDEM_E_FORMAT, "COMPUTE"},
        {"1 7B Q4_0 0 N 1 8 1 1\n0 0 1 1 1 0 0 0 0 64 32 8 1 1 0\n", TANDEM_E_FORMAT,
         "does not exist, found '1'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n0 0 0 1 1 0 0 0 0 64 32 8 1 1 0\n", TANDEM_E_FORMAT,
         "expected 0, since the stage does not exist, found '1'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 nan 0\n", TANDEM_E_FORMAT,
         "found 'nan'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 05 0\n", TANDEM_E_FORMAT,
         "found '05'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 -5 0\n", TANDEM_E_FORMAT,
         "found '-5'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 1e5 0\n", TANDEM_E_FORMAT, "whole"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 9999999999999 0\n", TANDEM_E_FORMAT,
         "whole"},
        {"1 7B Q4_0 0 N 1 8 2 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 1 0 8 1 1 0\n", TANDEM_E_FORMAT,
         "larger"},
        {"1 7B Q4_0 0 N 2 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 1 0 64 64 9 1 1 0\n", TANDEM_E_FORMAT,
         "same M"},
        {"1 7B Q4_0 0 N 2 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 1 0 64 32 8 1 1 0\n", TANDEM_E_FORMAT,
         "not listed before"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 0 0 0 64 32 8 1 1 0 7\n", TANDEM_E_FORMAT,
         "expected the end of the file, found '7'"},
        {"1 7B Q4_0 0 N 1 8 1 1\n1 0 0 1 1 0 1 0 0 64 32 8 1 1 12", TANDEM_E_TRUNCATED, "line end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_table *table = NULL;
        check_status(
            tandem_table_parse(cases[i].text, strlen(cases[i].text), "test", &table, &error),
            cases[i].status, cases[i].part, &error);
        CU_ASSERT_PTR_NULL(table);
        tandem_table_free(table);
    }
}

static void a_table_without_one_thread_times_is_no_text_table(void)
{
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, 4);
    tune_add(table, &key, 8, 5.0);
    struct tandem_error error = {0};
    check_status(tandem_table_save(table, tnd_test_temp("none.txt"), TANDEM_TABLE_TEXT, &error),
                 TANDEM_E_TABLE, "times on one thread", &error);
    CU_ASSERT_FALSE(tnd_file_exists(tnd_test_temp("none.txt")));
    tandem_table_free(table);
}

/* ---- JSON, version 2 ---- */

#ifdef TND_HAVE_CJSON

static tandem_table *rich_table(void)
{
    tandem_table *table = tune_new();
    strcpy(table->model, "7B \"\xc3\xa4\"");
    struct tnd_table_profile profile = {"cpu", {{"", 0, 0, false, false, false}}};
    struct tnd_table_stage compute = {"cpu", TANDEM_KIND_CPU, TANDEM_TASK_NODE, true, false, false};
    profile.stage[TANDEM_STAGE_COMPUTE] = compute;
    check_ok(tnd_table_add_profile(table, &profile));
    for (int threads = 1; threads <= 2; threads++) {
        struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, threads);
        struct tnd_sample samples[2] = {
            {1, 0.1 + 0.2, 1e-7, 12, 1700000000, 0, 0, 0, 0},
            {512, 123456.7890123, 3.25, 4294967295u, 1800000000, 0, 0, 0, 0}};
        check_ok(tnd_table_add(table, &key, &samples[0]));
        check_ok(tnd_table_add(table, &key, &samples[1]));
    }
    return table;
}

static void json_brings_back_every_number_exactly(void)
{
    tandem_table *table = rich_table();
    struct tnd_text first = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *again = tune_parse(tnd_text_string(&first));
    struct tnd_text second = tune_print(again, TANDEM_TABLE_JSON);
    check_string(tnd_text_string(&second), tnd_text_string(&first));
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, 2);
    const struct tnd_curve *curve = tnd_table_find(again, &key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
    CU_ASSERT_TRUE(curve->samples[0].median_us == 0.1 + 0.2);
    CU_ASSERT_TRUE(curve->samples[0].spread_us == 1e-7);
    CU_ASSERT_TRUE(curve->samples[1].median_us == 123456.7890123);
    check_int(curve->samples[1].count, 4294967295);
    check_int(curve->samples[1].when, 1800000000);
    check_string(again->model, table->model);
    check_string(again->fingerprint.cpu_model, table->fingerprint.cpu_model);
    CU_ASSERT_EQUAL(again->fingerprint.topology_hash, table->fingerprint.topology_hash);
    tnd_text_fini(&first);
    tnd_text_fini(&second);
    tandem_table_free(table);
    tandem_table_free(again);
}

static void a_text_table_survives_the_way_through_json(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_text json = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *again = tune_parse(tnd_text_string(&json));
    struct tnd_text text = tune_print(again, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), tune_example);
    check_int(again->version, 1);
    tnd_text_fini(&json);
    tnd_text_fini(&text);
    tandem_table_free(table);
    tandem_table_free(again);
}

static void files_do_not_follow_the_locale(void)
{
    const char *before = setlocale(LC_ALL, NULL);
    char *saved = before != NULL ? strdup(before) : NULL;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL) {
        free(saved);
        tnd_skip("no locale with a decimal comma is installed");
        return;
    }
    json_brings_back_every_number_exactly();
    tandem_table *table = rich_table();
    struct tnd_text json = tune_print(table, TANDEM_TABLE_JSON);
    check_contains(tnd_text_string(&json), "123456.7890123");
    tnd_text_fini(&json);
    tandem_table_free(table);
    setlocale(LC_ALL, saved);
    free(saved);
}

#define PROFILES "\"profiles\": []"
#define CURVE                                                                                      \
    "{\"op\":\"mul_mat\",\"type\":\"q4_0\",\"n\":64,\"k\":32,\"backend\":\"cpu\",\"stage\":"       \
    "\"compute\","                                                                                 \
    "\"task\":\"node\",\"threads\":1,\"samples\":[%s]}"

static void broken_json_tables_are_refused_with_a_path(void)
{
    static const struct {
        const char *text;
        enum tandem_status status;
        const char *part;
    } cases[] = {
        {"{", TANDEM_E_TRUNCATED, "test:1:2"},
        {"{\"version\": 2", TANDEM_E_TRUNCATED, "ends before"},
        {"{} x", TANDEM_E_FORMAT, "test:1:4: expected the end of the file"},
        {"{,}", TANDEM_E_FORMAT, "no valid JSON"},
        {"{\n\"a\": \"\x01\"}", TANDEM_E_FORMAT, "test:2:7: control character"},
        {"{\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}", TANDEM_E_LIMIT, "nested"},
        {"{}", TANDEM_E_FORMAT,
         "version: expected a whole number from 0 to 2147483647, found nothing"},
        {"{\"version\": 3}", TANDEM_E_TABLE_VERSION, "version 3"},
        {"{\"version\": 2}", TANDEM_E_FORMAT, "profiles: expected an array, found nothing"},
        {"{\"version\": 2, \"profiles\": [{\"name\": 5}]}", TANDEM_E_FORMAT, "profiles[0].name"},
        {"{\"version\": 2, \"profiles\": [{\"name\": \"cpu\", \"stages\": {\"init\": {\"backend\": "
         "\"cpu\","
         " \"task\": \"dance\"}}}]}",
         TANDEM_E_FORMAT,
         "profiles[0].stages.init.task: expected the name of a task, found 'dance'"},
        {"{\"version\": 2, " PROFILES ", \"curves\": [7]}", TANDEM_E_FORMAT, "curves[0].op"},
        {"{\"version\": 2, " PROFILES ", \"curves\": [], \"checksum\": \"0000000000000001\"}",
         TANDEM_E_FORMAT, "checksum"},
        {"{\"version\": 2, " PROFILES
         ", \"curves\": [], \"fingerprint\": {\"cpu_model\": \"\xff\"}}",
         TANDEM_E_FORMAT, "fingerprint.cpu_model: expected UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        tandem_table *table = NULL;
        check_status(
            tandem_table_parse(cases[i].text, strlen(cases[i].text), "test", &table, &error),
            cases[i].status, cases[i].part, &error);
        CU_ASSERT_PTR_NULL(table);
        tandem_table_free(table);
    }
}

static void json_samples_of_wrong_kind_or_range_are_refused(void)
{
    static const struct {
        const char *sample;
        const char *part; /* NULL: accepted */
    } cases[] = {
        {"{\"m\":1,\"median_us\":2}", NULL},
        {"{\"m\":1,\"median_us\":2,\"colour\":\"red\"}", NULL},
        {"{\"m\":1.5,\"median_us\":2}", "curves[0].samples[0].m: expected a whole number"},
        {"{\"m\":0,\"median_us\":2}", "curves[0].samples[0].m"},
        {"{\"m\":1,\"median_us\":-2}", "median_us: expected microseconds from 0 to 1e12, found -2"},
        {"{\"m\":1,\"median_us\":1e999}", "found inf"},
        {"{\"m\":1,\"median_us\":\"2\"}", "found '2'"},
        {"{\"m\":1,\"median_us\":2},{\"m\":2,\"median_us\":null}", "samples[1].median_us"},
        {"{\"m\":1,\"median_us\":2,\"count\":-1}", "count"},
        {"[1,2]", "samples[0].m: expected a whole number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_text text = TND_TEXT_INIT;
        tnd_text_add(&text, "{\"version\": 2, " PROFILES ", \"curves\": [");
        tnd_text_printf(&text, CURVE, cases[i].sample);
        tnd_text_add(&text, "]}");
        struct tandem_error error = {0};
        tandem_table *table = NULL;
        check_status(tandem_table_parse(text.bytes, text.n, "test", &table, &error),
                     cases[i].part == NULL ? TANDEM_OK : TANDEM_E_FORMAT, cases[i].part, &error);
        CU_ASSERT_EQUAL(table != NULL, cases[i].part == NULL);
        tandem_table_free(table);
        tnd_text_fini(&text);
    }
}

static void curves_that_stand_twice_are_joined_by_the_merge_rule(void)
{
    struct tnd_text text = TND_TEXT_INIT;
    tnd_text_add(&text, "{\"version\": 2, " PROFILES ", \"curves\": [");
    tnd_text_printf(&text, CURVE,
                    "{\"m\":4,\"median_us\":2,\"count\":3},{\"m\":2,\"median_us\":1}");
    tnd_text_add(&text, ",");
    tnd_text_printf(&text, CURVE,
                    "{\"m\":4,\"median_us\":9,\"count\":5},{\"m\":4,\"median_us\":1,\"count\":5}");
    tnd_text_add(&text, "]}");
    tandem_table *table = tune_parse(tnd_text_string(&text));
    check_int(table->n_curves, 1);
    check_int(table->curves[0].n_samples, 2);
    check_int(table->curves[0].samples[0].m, 2);
    CU_ASSERT_EQUAL(table->curves[0].samples[1].median_us, 1.0);
    tandem_table_free(table);
    tnd_text_fini(&text);
}

#endif

/* ---- merging ---- */

static tandem_table *random_table(struct tnd_test_rng *rng)
{
    tandem_table *table = tune_new();
    tnd_fingerprint_set_identity(&table->fingerprint, "openblas", "library", "");
    strcpy(table->model, tnd_test_rng_int(rng, 0, 1) ? "7B" : "");
    for (int i = 0; i < 12; i++) {
        struct tnd_curve_key key = tune_key(32 * tnd_test_rng_int(rng, 1, 2), 32, TANDEM_TASK_NODE,
                                            true, (int)tnd_test_rng_int(rng, 1, 2));
        struct tnd_sample sample = {tnd_test_rng_int(rng, 1, 4),
                                    (double)tnd_test_rng_int(rng, 1, 3),
                                    (double)tnd_test_rng_int(rng, 0, 2),
                                    (uint32_t)tnd_test_rng_int(rng, 0, 2),
                                    tnd_test_rng_int(rng, 0, 2),
                                    (uint32_t)tnd_test_rng_int(rng, 0, 2),
                                    (double)tnd_test_rng_int(rng, 0, 2),
                                    0,
                                    0};
        check_ok(tnd_table_add(table, &key, &sample));
    }
    for (int i = 0; i < 2; i++) {
        struct tnd_table_profile profile = {"", {{"", 0, 0, false, false, false}}};
        profile.name[0] = (char)('a' + tnd_test_rng_int(rng, 0, 3));
        struct tnd_table_stage compute = {
            "cpu", 1, TANDEM_TASK_NODE, tnd_test_rng_int(rng, 0, 1) != 0, false, false};
        profile.stage[TANDEM_STAGE_COMPUTE] = compute;
        check_ok(tnd_table_add_profile(table, &profile));
    }
    return table;
}

static tandem_table *merged(const tandem_table *a, const tandem_table *b)
{
    tandem_table *sum = tune_new();
    check_ok(tandem_table_merge(sum, a, NULL));
    check_ok(tandem_table_merge(sum, b, NULL));
    return sum;
}

/* JSON holds everything in a fixed order. */
static void check_same(const tandem_table *a, const tandem_table *b)
{
    struct tnd_text left = tune_print(a, TANDEM_TABLE_JSON);
    struct tnd_text right = tune_print(b, TANDEM_TABLE_JSON);
    check_string(tnd_text_string(&left), tnd_text_string(&right));
    tnd_text_fini(&left);
    tnd_text_fini(&right);
}

static void merging_is_associative_commutative_and_idempotent(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 60; round++) {
        tandem_table *a = random_table(&rng);
        tandem_table *b = random_table(&rng);
        tandem_table *c = random_table(&rng);
        tandem_table *ab = merged(a, b);
        tandem_table *ba = merged(b, a);
        tandem_table *bc = merged(b, c);
        tandem_table *ab_c = merged(ab, c);
        tandem_table *a_bc = merged(a, bc);
        tandem_table *ab_ab = merged(ab, ab);
        check_same(ab, ba);
        check_same(ab_c, a_bc);
        check_same(ab_ab, ab);
        check_ok(tandem_table_merge(ab, ab, NULL));
        check_same(ab_ab, ab);
        tandem_table *all[] = {a, b, c, ab, ba, bc, ab_c, a_bc, ab_ab};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            tandem_table_free(all[i]);
        }
    }
}

static void more_counts_win_then_the_newer_sample(void)
{
    tandem_table *table = tune_new();
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, true, 1);
    const struct tnd_sample samples[] = {{8, 10.0, 0.0, 5, 100, 0, 0, 0, 0},
                                         {8, 1.0, 0.0, 4, 200, 0, 0, 0, 0},
                                         {8, 20.0, 0.0, 5, 101, 0, 0, 0, 0},
                                         {8, 30.0, 0.0, 6, 1, 0, 0, 0, 0}};
    const double expected[] = {10.0, 10.0, 20.0, 30.0};
    for (int i = 0; i < 4; i++) {
        check_ok(tnd_table_add(table, &key, &samples[i]));
        CU_ASSERT_EQUAL(table->curves[0].samples[0].median_us, expected[i]);
        check_int(table->curves[0].n_samples, 1);
    }
    const struct tnd_sample wrong[] = {{0, 1.0, 0.0, 1, 1, 0, 0, 0, 0},
                                       {1, -1.0, 0.0, 1, 1, 0, 0, 0, 0},
                                       {1, 0.0 / 0.0, 0.0, 1, 1, 0, 0, 0, 0},
                                       {1, 1.0, 1.0 / 0.0, 1, 1, 0, 0, 0, 0}};
    for (int i = 0; i < 4; i++) {
        check_int(tnd_table_add(table, &key, &wrong[i]), TANDEM_E_ARGUMENT);
    }
    tandem_table_free(table);
}

static void merging_without_memory_leaves_the_table_as_it_is(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(7);
    tandem_table *a = random_table(&rng);
    tandem_table *b = random_table(&rng);
    struct tnd_text before = tune_print(a, TANDEM_TABLE_JSON);
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long n = 1; status == TANDEM_E_MEMORY && n < 1000; n++) {
        struct tnd_text now = tune_print(a, TANDEM_TABLE_JSON);
        check_string(tnd_text_string(&now), tnd_text_string(&before));
        tnd_text_fini(&now);
        tnd_alloc_fail_after(n);
        status = tandem_table_merge(a, b, NULL);
        tnd_alloc_fail_after(-1);
    }
    check_int(status, TANDEM_OK);
    tnd_text_fini(&before);
    tandem_table_free(a);
    tandem_table_free(b);
}

/* ---- fingerprints and places ---- */

static void a_table_of_this_machine_is_accepted(void)
{
    tandem_table *table = tune_new();
    check_ok(tandem_table_check(table, NULL));
    strcpy(table->fingerprint.library, "0.0.1");
    table->fingerprint.l3_bytes = 0; /* unknown */
    check_ok(tandem_table_check(table, NULL));
    tandem_table_free(table);
}

static void a_table_of_another_machine_is_foreign_and_says_why(void)
{
    tandem_table *table = tune_new();
    tandem_table *own = tune_new();
    struct tandem_error error = {0};
    strcpy(table->fingerprint.isa, "abacus");
    check_status(tandem_table_check(table, &error), TANDEM_E_TABLE_FOREIGN, "isa 'abacus'", &error);
    check_status(tandem_table_merge(own, table, &error), TANDEM_E_TABLE_FOREIGN, "isa", &error);
    tandem_table_free(table);
    table = tune_new();
    table->fingerprint.n_cpus += 1;
    check_status(tandem_table_check(table, &error), TANDEM_E_TABLE_FOREIGN, "n_cpus", &error);
    tandem_table_free(table);
    table = tune_new();
    tnd_fingerprint_set_identity(&table->fingerprint, "openblas", "library", "OpenBLAS 0.1");
    check_ok(tandem_table_check(table, NULL)); /* the machine was not asked for its libraries */
    tnd_fingerprint_set_identity(&own->fingerprint, "openblas", "library", "OpenBLAS 0.2");
    check_int(tnd_fingerprint_compare(&table->fingerprint, &own->fingerprint, NULL),
              TANDEM_E_TABLE_FOREIGN);
    tandem_table_free(table);
    tandem_table_free(own);
}

/* Runs `check` with the three variables set (NULL: unset) and puts them back. */
static enum tandem_status path_with(const char *table, const char *cache, const char *home,
                                    char *out, size_t n)
{
    static const char *const names[3] = {"TANDEM_TABLE", "XDG_CACHE_HOME", "HOME"};
    const char *const values[3] = {table, cache, home};
    char *saved[3];
    for (int i = 0; i < 3; i++) {
        const char *old = getenv(names[i]);
        saved[i] = old != NULL ? strdup(old) : NULL;
        (void)(values[i] != NULL ? setenv(names[i], values[i], 1) : unsetenv(names[i]));
    }
    enum tandem_status status = tandem_table_default_path(out, n, NULL);
    for (int i = 0; i < 3; i++) {
        (void)(saved[i] != NULL ? setenv(names[i], saved[i], 1) : unsetenv(names[i]));
        free(saved[i]);
    }
    return status;
}

static void the_own_table_lies_in_the_cache_folder(void)
{
    char path[256] = "";
    check_ok(path_with(NULL, "/cache", "/home/me", path, sizeof(path)));
    check_contains(path, "/cache/tandem/");
    check_int(strlen(path), strlen("/cache/tandem/") + 16 + strlen(".json"));
    check_ok(path_with(NULL, "relative", "/home/me", path, sizeof(path)));
    check_contains(path, "/home/me/.cache/tandem/");
    check_ok(path_with("/else/t.txt", "/cache", "/home/me", path, sizeof(path)));
    check_string(path, "/else/t.txt");
    check_int(path_with(NULL, NULL, NULL, path, sizeof(path)), TANDEM_E_NOT_FOUND);
    check_int(path_with("none", "/cache", "/home/me", path, sizeof(path)), TANDEM_E_NOT_FOUND);
    check_int(path_with(NULL, "/cache", NULL, path, 20), TANDEM_E_LIMIT);
    check_string(path, "/else/t.txt");
}

static bool fail_before_rename(enum tnd_file_step step)
{
    return step != TND_FILE_SYNCED;
}

static void a_failed_save_leaves_the_old_file(void)
{
    tandem_table *table = tune_parse(tune_example);
    const char *path = tnd_test_temp("folder/own.txt");
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_TEXT, NULL));
    table->curves[0].samples[0].median_us += 1;
    tnd_file_set_hook(fail_before_rename);
    check_int(tandem_table_save(table, path, TANDEM_TABLE_TEXT, NULL), TANDEM_E_FILE);
    tnd_file_set_hook(NULL);
    tandem_table *found = NULL;
    check_ok(tandem_table_load(path, &found, NULL));
    struct tnd_text text = tune_print(found, TANDEM_TABLE_TEXT);
    check_string(tnd_text_string(&text), tune_example);
    tnd_text_fini(&text);
    tandem_table_free(found);
    tandem_table_free(table);
    check_int(tandem_table_load("/no/such/file", &found, NULL), TANDEM_E_FILE);
}

static CU_TestInfo tests[] = {
    {"the_published_text_table_is_read_and_written_byte_for_byte",
     the_published_text_table_is_read_and_written_byte_for_byte},
    {"the_published_file_is_the_example_of_the_tests",
     the_published_file_is_the_example_of_the_tests},
    {"text_may_be_laid_out_in_any_way", text_may_be_laid_out_in_any_way},
    {"profiles_of_text_tables_get_names_from_their_backends",
     profiles_of_text_tables_get_names_from_their_backends},
    {"profiles_of_one_kind_keep_their_own_numbers", profiles_of_one_kind_keep_their_own_numbers},
    {"broken_text_tables_are_refused_with_a_place", broken_text_tables_are_refused_with_a_place},
    {"a_table_without_one_thread_times_is_no_text_table",
     a_table_without_one_thread_times_is_no_text_table},
#ifdef TND_HAVE_CJSON
    {"json_brings_back_every_number_exactly", json_brings_back_every_number_exactly},
    {"a_text_table_survives_the_way_through_json", a_text_table_survives_the_way_through_json},
    {"files_do_not_follow_the_locale", files_do_not_follow_the_locale},
    {"broken_json_tables_are_refused_with_a_path", broken_json_tables_are_refused_with_a_path},
    {"json_samples_of_wrong_kind_or_range_are_refused",
     json_samples_of_wrong_kind_or_range_are_refused},
    {"curves_that_stand_twice_are_joined_by_the_merge_rule",
     curves_that_stand_twice_are_joined_by_the_merge_rule},
#endif
    {"merging_is_associative_commutative_and_idempotent",
     merging_is_associative_commutative_and_idempotent},
    {"more_counts_win_then_the_newer_sample", more_counts_win_then_the_newer_sample},
    {"merging_without_memory_leaves_the_table_as_it_is",
     merging_without_memory_leaves_the_table_as_it_is},
    {"a_table_of_this_machine_is_accepted", a_table_of_this_machine_is_accepted},
    {"a_table_of_another_machine_is_foreign_and_says_why",
     a_table_of_another_machine_is_foreign_and_says_why},
    {"the_own_table_lies_in_the_cache_folder", the_own_table_lies_in_the_cache_folder},
    {"a_failed_save_leaves_the_old_file", a_failed_save_leaves_the_old_file},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_files[];
CU_SuiteInfo suites_table_files[] = {
    {"table", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
