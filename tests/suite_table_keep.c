/* SPDX-License-Identifier: MIT
 * Keeping tables: layers, several writers of one file, and the laws of merging over tables with
 * everything in them. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/suite_table.h"
#include "tests/support_tune.h"
#include "table/fingerprint_fields.h"
#include "table/table_filter.h"
#include "table/table_layers.h"
#include "table/invalidate.h"

/* ---- tables with something of every kind ---- */

struct tnd_curve_key table_key_of(const char *backend, int64_t n, int threads)
{
    struct tnd_curve_key key = tune_key(n, 32, TANDEM_TASK_NODE, threads > 1, threads);
    memset(key.backend, 0, sizeof(key.backend));
    snprintf(key.backend, sizeof(key.backend), "%s", backend);
    return key;
}

void table_add_profile(tandem_table *table, const char *name, const char *backend, int kind)
{
    struct tnd_table_profile profile;
    memset(&profile, 0, sizeof(profile));
    snprintf(profile.name, sizeof(profile.name), "%s", name);
    struct tnd_table_stage *stage = &profile.stage[TANDEM_STAGE_COMPUTE];
    snprintf(stage->backend, sizeof(stage->backend), "%s", backend);
    stage->kind = (uint8_t)kind;
    stage->task = TANDEM_TASK_NODE;
    check_ok(tnd_table_add_profile(table, &profile));
}

void table_fill_fingerprint(struct tnd_fingerprint *fingerprint)
{
    memset(fingerprint, 0, sizeof(*fingerprint));
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        char *at = (char *)fingerprint + field->offset;
        int32_t count = 4 + i;
        uint64_t number = 1000000u * (unsigned)(i + 1);
        if (field->kind == TND_FIELD_TEXT) {
            char text[32];
            snprintf(text, sizeof(text), "%.8s of old", field->name);
            CU_ASSERT_TRUE(tnd_fingerprint_set_string(fingerprint, field, text));
        } else {
            memcpy(at, field->kind == TND_FIELD_COUNT ? (void *)&count : (void *)&number,
                   field->bytes);
        }
    }
}

/* ---- merging ---- */

static int pick(struct tnd_test_rng *rng, int n)
{
    return (int)tnd_test_rng_int(rng, 0, n - 1);
}

static void add_random_evidence(struct tnd_test_rng *rng, tandem_table *table)
{
    struct tnd_check check = {"x", TANDEM_TYPE_Q4_0,    1 + pick(rng, 2),    64,
                              32,  1e-6 * pick(rng, 3), 1e-3 * pick(rng, 2), pick(rng, 3)};
    check.profile[0] = (char)('x' + pick(rng, 3));
    check_ok(tnd_table_add_check(table, &check));
    struct tnd_slowdown slowdown = {"cpu", "a", 1.0 + pick(rng, 3), (uint32_t)pick(rng, 3),
                                    pick(rng, 3)};
    slowdown.beside[0] = (char)('a' + pick(rng, 3));
    check_ok(tnd_table_add_slowdown(table, &slowdown));
    const struct tnd_sweep_state sweep = {
        pick(rng, 8), {1.0 + pick(rng, 2), 2}, {1, 1.0 + pick(rng, 2)}, {1, 1}};
    check_ok(tnd_table_add_sweep(table, &sweep));
}

static tandem_table *random_full_table(struct tnd_test_rng *rng, bool with_conflicts)
{
    static const char *const backends[] = {"cpu", "openblas", "opencl"};
    tandem_table *table = tune_new();
    table_fill_fingerprint(&table->fingerprint);
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (pick(rng, 3) == 0) {
            const struct tnd_fingerprint unknown = {.n_cpus = 0};
            tnd_fingerprint_copy_field(&table->fingerprint, &unknown, field);
        }
    }
    table->fingerprint.ram_bytes += table->fingerprint.ram_bytes / 100 * (unsigned)pick(rng, 30);
    if (with_conflicts && pick(rng, 3) == 0) {
        CU_ASSERT_TRUE(
            tnd_fingerprint_set_identity(&table->fingerprint, "opencl", "driver", "another"));
    }
    table->has_fingerprint = pick(rng, 5) != 0;
    table->version = 1 + pick(rng, 2);
    table->m_step = 8 * pick(rng, 2);
    table->gpu_kind = (uint8_t)pick(rng, 3);
    strcpy(table->gpu_name, pick(rng, 2) != 0 ? "A" : "B");
    for (int i = 0; i < 10; i++) {
        const struct tnd_sample sample = {1 + pick(rng, 4),
                                          1.0 + pick(rng, 3),
                                          (double)pick(rng, 2),
                                          (uint32_t)pick(rng, 3),
                                          pick(rng, 3),
                                          (uint32_t)pick(rng, 3),
                                          (double)pick(rng, 2),
                                          0,
                                          0};
        struct tnd_curve_key key = table_key_of(backends[pick(rng, 3)], 64, 1 + pick(rng, 2));
        key.warm = pick(rng, 2) != 0;
        check_ok(tnd_table_add(table, &key, &sample));
        check_ok(tnd_table_add_transfer(table, backends[pick(rng, 3)],
                                        (enum tnd_direction)pick(rng, 2), &sample));
        const struct tnd_handoff handoff = {2 + pick(rng, 3), 1.0 + pick(rng, 2),
                                            1.0 + pick(rng, 2), sample.count, sample.when};
        check_ok(tnd_table_add_handoff(table, &handoff));
        add_random_evidence(rng, table);
    }
    table_add_profile(table, "x", backends[pick(rng, 3)], 1 + pick(rng, 3));
    table_add_profile(table, pick(rng, 2) != 0 ? "y" : "z", "cpu", TANDEM_KIND_CPU);
    return table;
}

/* The sum, or NULL when they do not go together. */
static tandem_table *sum_of(const tandem_table *a, const tandem_table *b)
{
    tandem_table *sum = NULL;
    if (a == NULL || b == NULL) {
        return NULL;
    }
    check_ok(tandem_table_copy(a, &sum, NULL));
    enum tandem_status status = tandem_table_merge(sum, b, NULL);
    if (status != TANDEM_OK) {
        check_int(status, TANDEM_E_TABLE_FOREIGN);
        tandem_table_free(sum);
        return NULL;
    }
    return sum;
}

static void check_same(const tandem_table *a, const tandem_table *b)
{
    CU_ASSERT_EQUAL(a == NULL, b == NULL);
    if (a == NULL || b == NULL) {
        return;
    }
    struct tnd_text left = tune_print(a, TANDEM_TABLE_JSON);
    struct tnd_text right = tune_print(b, TANDEM_TABLE_JSON);
    check_string(tnd_text_string(&left), tnd_text_string(&right));
    tnd_text_fini(&left);
    tnd_text_fini(&right);
}

static void merging_keeps_its_laws_with_everything_in_the_tables(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 5);
    int n_refused = 0;
    for (int round = 0; round < 100 * tnd_effort(); round++) {
        bool with_conflicts = round % 2 != 0;
        tandem_table *a = random_full_table(&rng, with_conflicts);
        tandem_table *b = random_full_table(&rng, with_conflicts);
        tandem_table *c = random_full_table(&rng, with_conflicts);
        tandem_table *ab = sum_of(a, b);
        tandem_table *ba = sum_of(b, a);
        tandem_table *bc = sum_of(b, c);
        tandem_table *ab_c = sum_of(ab, c);
        tandem_table *a_bc = sum_of(a, bc);
        tandem_table *aa = sum_of(a, a);
        tandem_table *ab_b = sum_of(ab, b);
        tandem_table *copy = NULL;
        check_ok(tandem_table_copy(a, &copy, NULL));
        check_same(ab, ba);
        check_same(ab_c, a_bc);
        check_same(aa, copy);
        check_same(ab_b, ab);
        n_refused += ab == NULL;
        tandem_table *all[] = {a, b, c, ab, ba, bc, ab_c, a_bc, aa, ab_b, copy};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            tandem_table_free(all[i]);
        }
    }
    CU_ASSERT_TRUE(n_refused > 0);
}

/* ---- layers ---- */

static double time_at(const tandem_table *table, const char *backend, int64_t m)
{
    struct tnd_curve_key key = table_key_of(backend, 64, 1);
    const struct tnd_curve *curve = tnd_table_find(table, &key);
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        if (curve->samples[i].m == m) {
            return curve->samples[i].median_us;
        }
    }
    return -1;
}

static void add_time(tandem_table *table, const char *backend, int64_t m, double us, uint32_t count)
{
    struct tnd_curve_key key = table_key_of(backend, 64, 1);
    const struct tnd_sample sample = {m, us, 0.0, count, 100, 0, 0, 0, 0};
    check_ok(tnd_table_add(table, &key, &sample));
}

static void the_upper_layer_wins_whatever_the_counts(void)
{
    tandem_table *lower = tune_new();
    tandem_table *upper = tune_new();
    table_add_profile(lower, "p", "cpu", TANDEM_KIND_CPU);
    table_add_profile(lower, "q", "cpu", TANDEM_KIND_CPU);
    table_add_profile(upper, "p", "a", TANDEM_KIND_CUDA);
    add_time(lower, "cpu", 1, 10, 100);
    add_time(lower, "cpu", 2, 20, 100);
    add_time(lower, "openblas", 1, 30, 100);
    add_time(upper, "cpu", 1, 50, 1);
    const struct tnd_sample moved = {4096, 3.0, 0.1, 9, 100, 0, 0, 0, 0};
    const struct tnd_sample other = {4096, 4.0, 0.1, 1, 1, 0, 0, 0, 0};
    const struct tnd_handoff handoffs[] = {{2, 1, 1, 9, 9}, {3, 1, 1, 9, 9}, {2, 2, 2, 1, 1}};
    check_ok(tnd_table_add_transfer(lower, "opencl", TND_UPLOAD, &moved));
    check_ok(tnd_table_add_transfer(lower, "opencl", TND_DOWNLOAD, &moved));
    check_ok(tnd_table_add_transfer(upper, "opencl", TND_UPLOAD, &other));
    check_ok(tnd_table_add_handoff(lower, &handoffs[0]));
    check_ok(tnd_table_add_handoff(lower, &handoffs[1]));
    check_ok(tnd_table_add_handoff(upper, &handoffs[2]));
    check_ok(tnd_table_overlay(lower, upper, NULL));
    CU_ASSERT_EQUAL(time_at(lower, "cpu", 1), 50);
    CU_ASSERT_EQUAL(time_at(lower, "cpu", 2), -1); /* a curve goes as a whole */
    CU_ASSERT_EQUAL(time_at(lower, "openblas", 1), 30);
    check_string(tnd_table_profile(lower, "p")->stage[TANDEM_STAGE_COMPUTE].backend, "a");
    check_string(tnd_table_profile(lower, "q")->stage[TANDEM_STAGE_COMPUTE].backend, "cpu");
    CU_ASSERT_EQUAL(tnd_table_transfer(lower, "opencl", TND_UPLOAD)->samples[0].median_us, 4);
    CU_ASSERT_EQUAL(tnd_table_transfer(lower, "opencl", TND_DOWNLOAD)->samples[0].median_us, 3);
    check_int(lower->n_handoffs, 2);
    CU_ASSERT_EQUAL(lower->handoffs[0].spin_us, 2);
    CU_ASSERT_EQUAL(lower->handoffs[1].spin_us, 1);
    tandem_table_free(lower);
    tandem_table_free(upper);
}

/* Runs with the variables of the layers set to folders of this test; puts them back. */
struct places {
    char data[512];
    char cache[512];
    char named[512];
    char *old[3];
};
static const char *const variables[3] = {"XDG_DATA_DIRS", "XDG_CACHE_HOME", "TANDEM_TABLE"};

static char *copied(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void places_begin(struct places *places)
{
    static int n_places; /* each test has folders of its own */
    char name[32];
    snprintf(name, sizeof(name), "share%d", ++n_places);
    snprintf(places->data, sizeof(places->data), "%s", tnd_test_temp(name));
    snprintf(name, sizeof(name), "cache%d", n_places);
    snprintf(places->cache, sizeof(places->cache), "%s", tnd_test_temp(name));
    snprintf(name, sizeof(name), "%d-named.json", n_places);
    snprintf(places->named, sizeof(places->named), "%s", tnd_test_temp(name));
    for (int i = 0; i < 3; i++) {
        places->old[i] = copied(getenv(variables[i]));
    }
    char dirs[1200];
    snprintf(dirs, sizeof(dirs), "%s/first/:relative:%s/second", places->data, places->data);
    setenv("XDG_DATA_DIRS", dirs, 1);
    setenv("XDG_CACHE_HOME", places->cache, 1);
    unsetenv("TANDEM_TABLE");
}

static void places_end(struct places *places)
{
    for (int i = 0; i < 3; i++) {
        if (places->old[i] != NULL) {
            setenv(variables[i], places->old[i], 1);
        } else {
            unsetenv(variables[i]);
        }
        free(places->old[i]);
    }
}

static void save_time(const char *path, const char *backend, double us)
{
    tandem_table *table = tune_new();
    add_time(table, backend, 1, us, 5);
    check_ok(tandem_table_save(table, path, TANDEM_TABLE_JSON, NULL));
    tandem_table_free(table);
}

static tandem_table *load_layers(const char *named, struct tnd_layers **out_layers,
                                 struct tandem_error *error)
{
    struct tnd_fingerprint machine;
    tandem_table *table = NULL;
    tnd_fingerprint_read(&machine);
    check_ok(tnd_layers_find(named, out_layers, NULL));
    enum tandem_status status = tnd_layers_load(*out_layers, &machine, &table, error);
    CU_ASSERT_EQUAL(status == TANDEM_OK, table != NULL);
    return table;
}

static void layers_lie_over_each_other_system_user_named(void)
{
    struct places places;
    struct tnd_layers *layers = NULL;
    places_begin(&places);
    struct tandem_error error = {0};
    CU_ASSERT_PTR_NULL(load_layers(NULL, &layers, &error));
    CU_ASSERT_EQUAL(error.status, TANDEM_E_FILE);
    check_int(layers->n, 3);
    check_contains(layers->layers[0].path, "/second/tandem/");
    check_contains(layers->layers[1].path, "/first/tandem/");
    check_contains(layers->layers[2].path, places.cache);
    static const char *const backends[] = {"cpu", "openblas", "opencl", "cuda"};
    /* Layer i knows backends i and up. */
    for (int i = 0; i < 4; i++) {
        const char *path = i < 3 ? layers->layers[i].path : places.named;
        for (int b = i; b < 4; b++) {
            tandem_table *one = tune_new();
            add_time(one, backends[b], 1, 10 * (i + 1), 5);
            check_ok(tnd_table_update_file(path, one, NULL, NULL));
            tandem_table_free(one);
        }
    }
    tnd_free(layers);
    tandem_table *table = load_layers(places.named, &layers, &error);
    check_int(layers->n, 4);
    for (int i = 0; i < 4 && table != NULL; i++) {
        CU_ASSERT_TRUE(layers->layers[i].serves);
        check_int(layers->layers[i].n_cells, 4 - i);
        CU_ASSERT_EQUAL(time_at(table, backends[i], 1), 10 * (i + 1));
    }
    tandem_table_free(table);
    tnd_free(layers);
    setenv("TANDEM_TABLE", places.named, 1); /* in place of the user's */
    table = load_layers(NULL, &layers, &error);
    check_int(layers->n, 3);
    check_string(layers->layers[2].path, places.named);
    CU_ASSERT_EQUAL(time_at(table, "opencl", 1), 20);
    tandem_table_free(table);
    tnd_free(layers);
    setenv("TANDEM_TABLE", "none", 1);
    CU_ASSERT_PTR_NULL(load_layers(NULL, &layers, &error));
    CU_ASSERT_EQUAL(error.status, TANDEM_E_NOT_FOUND);
    tnd_free(layers);
    places_end(&places);
}

static void the_working_directory_serves_when_nothing_else_does(void)
{
    static const char text[] = "1 7B Q4_0 0 NONE 1 8 1 1\n1 1 0 1 1 0 0 0 0\n64 32\n8 1 70 0\n";
    char home[500];
    struct places places;
    struct tnd_layers *layers = NULL;
    struct tandem_error error = {0};
    places_begin(&places);
    CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(home, sizeof(home)));
    const char *folder = tnd_test_temp("working");
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
    CU_ASSERT_EQUAL_FATAL(chdir(folder), 0);
    CU_ASSERT_TRUE(tnd_test_write_file("mulmat-tune.txt", text, sizeof(text) - 1));
    tandem_table *table = load_layers(NULL, &layers, &error);
    check_int(layers->layers[0].origin, TND_LAYER_WORKING);
    CU_ASSERT_TRUE(table != NULL && layers->layers[0].serves);
    check_int(table != NULL ? table->curves[0].key.n : 0, 64);
    tandem_table_free(table);
    tnd_free(layers);
    /* A place where every user may write is not trusted. */
    check_int(chmod(".", 0777), 0);
    CU_ASSERT_PTR_NULL(load_layers(NULL, &layers, &error));
    check_contains(layers->layers[0].error.text, "every user may write");
    tnd_free(layers);
    check_int(chmod(".", 0755), 0);
    /* Whatever else serves, it alone does. */
    check_ok(tnd_layers_find(NULL, &layers, NULL));
    save_time(layers->layers[1].path, "cpu", 10);
    tnd_free(layers);
    table = load_layers(NULL, &layers, &error);
    CU_ASSERT_FALSE(layers->layers[0].serves);
    check_int(table != NULL ? tnd_table_count_cells(table) : 0, 1);
    tandem_table_free(table);
    tnd_free(layers);
    setenv("TANDEM_TABLE", "none", 1);
    CU_ASSERT_PTR_NULL(load_layers(NULL, &layers, &error));
    check_int(layers->n, 0);
    tnd_free(layers);
    CU_ASSERT_EQUAL(chdir(home), 0);
    places_end(&places);
}

/* Tables of this machine with other numbers of CPUs lie beside its own: times with one thread
 * hold. */
static void tables_from_before_a_change_serve_as_far_as_they_hold(void)
{
    struct places places;
    struct tnd_layers *layers = NULL;
    struct tandem_error error = {0};
    places_begin(&places);
    for (int i = 0; i < 6; i++) { /* more than are looked at; the newest count */
        char path[700];
        tandem_table *old = tune_new();
        struct tnd_curve_key team = table_key_of("cpu", 64, 4);
        old->fingerprint.n_cpus += 1 + i;
        add_time(old, "cpu", 1, 100 + i, 5);
        tune_add(old, &team, 1, 50);
        snprintf(path, sizeof(path), "%s/tandem/%016x.json", places.cache, 6 - i);
        check_ok(tandem_table_save(old, path, TANDEM_TABLE_JSON, NULL));
        const struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
        check_int(utimensat(AT_FDCWD, path, times, 0), 0);
        tandem_table_free(old);
    }
    tandem_table *table = load_layers(NULL, &layers, &error);
    check_int(layers->n, 2 + 4 + 1);
    check_int(layers->layers[5].origin, TND_LAYER_FORMER);
    check_contains(layers->layers[5].path, "0001.json");
    check_contains(layers->layers[2].path, "0004.json");
    check_contains(layers->layers[5].error.text, "n_cpus");
    check_int(layers->layers[5].n_invalid, 1);
    CU_ASSERT_EQUAL(time_at(table, "cpu", 1), 105);
    check_int(tnd_table_count_cells(table), 1);
    tandem_table_free(table);
    save_time(layers->layers[6].path, "cpu", 7);
    tnd_free(layers);
    table = load_layers(NULL, &layers, &error);
    CU_ASSERT_EQUAL(time_at(table, "cpu", 1), 7); /* the machine's own is above them */
    tandem_table_free(table);
    tnd_free(layers);
    places_end(&places);
}

static void a_damaged_or_foreign_layer_does_not_keep_the_others_from_serving(void)
{
    struct places places;
    struct tnd_layers *layers = NULL;
    struct tandem_error error = {0};
    places_begin(&places);
    check_ok(tnd_layers_find(places.named, &layers, NULL));
    save_time(layers->layers[0].path, "cpu", 10);
    tandem_table *foreign = tune_new();
    strcpy(foreign->fingerprint.cpu_model, "abacus");
    add_time(foreign, "cpu", 1, 1, 5);
    check_ok(tandem_table_save(foreign, layers->layers[1].path, TANDEM_TABLE_JSON, NULL));
    tandem_table_free(foreign);
    CU_ASSERT_TRUE(tnd_test_write_file(places.named, "{\"version\": 2,", 14));
    tnd_free(layers);
    tandem_table *table = load_layers(places.named, &layers, &error);
    CU_ASSERT_TRUE(layers->layers[0].serves);
    CU_ASSERT_FALSE(layers->layers[1].serves);
    check_int(layers->layers[1].n_invalid, layers->layers[1].n_cells);
    CU_ASSERT_FALSE(layers->layers[3].serves);
    CU_ASSERT_TRUE(layers->layers[3].is_there);
    check_contains(layers->layers[3].error.text, "named.json");
    CU_ASSERT_EQUAL(time_at(table, "cpu", 1), 10);
    tandem_table_free(table);
    tnd_free(layers);
    places_end(&places);
}

/* ---- several writers ---- */

enum { N_WRITERS = 4, N_CELLS = 12 };

/* A process of its own: adds its cells one by one. Must not use CUnit. */
static int write_cells(const char *path, int writer)
{
    for (int i = 0; i < N_CELLS; i++) {
        tandem_table *one = NULL;
        struct tnd_curve_key key = table_key_of("cpu", 64 + 32 * writer, 1);
        const struct tnd_sample sample = {1 + i, 1.0 + writer, 0.0, 5, 100, 0, 0, 0, 0};
        if (tandem_table_new(&one, NULL) != TANDEM_OK ||
            tnd_table_add(one, &key, &sample) != TANDEM_OK ||
            tnd_table_update_file(path, one, NULL, NULL) != TANDEM_OK) {
            return 1;
        }
        tandem_table_free(one);
    }
    return 0;
}

static void processes_that_write_one_file_lose_nothing(void)
{
    const char *path = tnd_test_temp("shared.json");
    pid_t writers[N_WRITERS];
    tandem_table *empty = tune_new();
    check_ok(tnd_table_update_file(path, empty, NULL, NULL));
    tandem_table_free(empty);
    for (int w = 0; w < N_WRITERS; w++) {
        writers[w] = fork();
        if (writers[w] == 0) {
            _exit(write_cells(path, w));
        }
        CU_ASSERT_TRUE(writers[w] > 0);
    }
    /* A reader without a lock sees a whole table at any time, and never fewer cells. */
    int64_t before = 0;
    for (int i = 0; i < 200; i++) {
        tandem_table *seen = NULL;
        check_ok(tandem_table_load(path, &seen, NULL));
        int64_t n = seen != NULL ? tnd_table_count_cells(seen) : -1;
        CU_ASSERT_TRUE(n >= before);
        before = n;
        tandem_table_free(seen);
    }
    for (int w = 0; w < N_WRITERS; w++) {
        int result = -1;
        waitpid(writers[w], &result, 0);
        check_int(result, 0);
    }
    tandem_table *table = NULL;
    check_ok(tandem_table_load(path, &table, NULL));
    check_int(table != NULL ? tnd_table_count_cells(table) : -1, N_WRITERS * N_CELLS);
    tandem_table_free(table);
}

static void adding_to_a_file_invalidates_what_the_machine_no_longer_has(void)
{
    const char *path = tnd_test_temp("changed.json");
    struct tandem_error note = {0};
    tandem_table *old = table_full();
    tandem_table *fresh = tune_new();
    table_fill_fingerprint(&fresh->fingerprint);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&fresh->fingerprint, "opencl", "driver", "newer"));
    add_time(fresh, "cpu", 1, 99, 50);
    check_ok(tnd_table_update_file(path, old, &note, NULL));
    CU_ASSERT_EQUAL(note.status, TANDEM_OK);
    check_ok(tnd_table_update_file(path, fresh, &note, NULL));
    CU_ASSERT_EQUAL(note.status, TANDEM_E_TABLE_FOREIGN);
    check_contains(note.text, "driver");
    tandem_table *sum = NULL;
    check_ok(tandem_table_load(path, &sum, NULL));
    CU_ASSERT_EQUAL(time_at(sum, "cpu", 1), 99);
    CU_ASSERT_EQUAL(time_at(sum, "openblas", 1), 10);
    CU_ASSERT_EQUAL(time_at(sum, "opencl", 1), -1);
    CU_ASSERT_PTR_NULL(tnd_table_transfer(sum, "opencl", TND_UPLOAD));
    /* What is not understood makes room (suite_table_backup.c has what becomes of it). */
    CU_ASSERT_TRUE(tnd_test_write_file(path, "{\"version\": 7}", 14));
    check_ok(tnd_table_update_file(path, fresh, &note, NULL));
    CU_ASSERT_EQUAL(note.status, TANDEM_E_TABLE_VERSION);
    tandem_table_free(sum);
    check_ok(tandem_table_load(path, &sum, NULL));
    check_int(tnd_table_count_cells(sum), 1);
    tandem_table_free(sum);
    tandem_table_free(old);
    tandem_table_free(fresh);
}

static CU_TestInfo void_tests[] = {
    {"adding to a file invalidates what the machine no longer has",
     adding_to_a_file_invalidates_what_the_machine_no_longer_has},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo keep_tests[] = {
    {"merging keeps its laws with everything in the tables",
     merging_keeps_its_laws_with_everything_in_the_tables},
    {"the upper layer wins whatever the counts", the_upper_layer_wins_whatever_the_counts},
    {"layers lie over each other: system, user, named",
     layers_lie_over_each_other_system_user_named},
    {"the working directory serves when nothing else does",
     the_working_directory_serves_when_nothing_else_does},
    {"tables from before a change serve as far as they hold",
     tables_from_before_a_change_serve_as_far_as_they_hold},
    {"a damaged or foreign layer does not keep the others from serving",
     a_damaged_or_foreign_layer_does_not_keep_the_others_from_serving},
    {"processes that write one file lose nothing", processes_that_write_one_file_lose_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_keep[];
CU_SuiteInfo suites_table_keep[] = {
    {"what changes void", NULL, NULL, NULL, NULL, void_tests},
    {"keeping tables", NULL, NULL, NULL, NULL, keep_tests},
    CU_SUITE_INFO_NULL,
};
