/* SPDX-License-Identifier: MIT
 * What a change of the machine or of a backend invalidates, and what it leaves. */
#include <stdio.h>
#include <string.h>

#include "table/fingerprint_fields.h"
#include "table/invalidate.h"
#include "table/table_filter.h"
#include "tests/suite_table.h"
#include "tests/support_tune.h"

/* Another value, which no comparison takes for the same. */
static void change_field(struct tnd_fingerprint *fingerprint,
                         const struct tnd_fingerprint_field *field)
{
    char *at = (char *)fingerprint + field->offset;
    if (field->kind == TND_FIELD_TEXT) {
        CU_ASSERT_TRUE(tnd_fingerprint_set_string(fingerprint, field, "changed"));
    } else {
        at[field->kind == TND_FIELD_COUNT ? 0 : 3] ^= 0x55;
    }
}

/* One cell of each part: which parts and backends it depends on is written down here once more, by
 * hand. */
static const struct {
    const char *backend;
    int threads;
    uint32_t parts;
} kinds[] = {
    {"cpu", 1, TND_PART_CPU},
    {"cpu", 4, TND_PART_CPU | TND_PART_TEAMS},
    {"openblas", 1, TND_PART_LIBRARY},
    {"openblas", 4, TND_PART_LIBRARY | TND_PART_TEAMS},
    {"opencl", 1, 0},
    {"clever", 1, 0},           /* a device by its profile alone */
    {"foreign", 1, UINT32_MAX}, /* nobody knows what it depends on */
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Checks of profiles, slow-downs of pairs, and by hand the parts and backends they depend on. */
static const struct {
    const char *profile;
    uint32_t parts;
    const char *backends;
} checked[] = {
    {"cpu", TND_PART_CPU, "cpu"},
    {"openblas", TND_PART_LIBRARY, "openblas"},
    {"both", TND_PART_CPU | TND_PART_LIBRARY, "cpu openblas"},
    {"opencl", 0, "opencl"},
    {"unheard-of", UINT32_MAX, "cpu openblas opencl clever"},
};
static const struct {
    const char *backend;
    const char *beside;
    uint32_t parts;
} pairs[] = {
    {"cpu", "openblas", TND_PART_CPU | TND_PART_TEAMS | TND_PART_LIBRARY},
    {"cpu", "opencl", TND_PART_CPU | TND_PART_TEAMS},
    {"clever", "opencl", 0},
};
enum {
    N_CHECKED = sizeof(checked) / sizeof(checked[0]),
    N_PAIRS = sizeof(pairs) / sizeof(pairs[0])
};

static void add_evidence(tandem_table *table)
{
    for (int i = 0; i < N_CHECKED; i++) {
        struct tnd_check check = {"", TANDEM_TYPE_Q4_0, 3, 64, 32, 1e-6, 1e-3, 100};
        snprintf(check.profile, sizeof(check.profile), "%s", checked[i].profile);
        check_ok(tnd_table_add_check(table, &check));
    }
    for (int i = 0; i < N_PAIRS; i++) {
        struct tnd_slowdown slowdown = {"", "", 1.25, 5, 100};
        snprintf(slowdown.backend, sizeof(slowdown.backend), "%s", pairs[i].backend);
        snprintf(slowdown.beside, sizeof(slowdown.beside), "%s", pairs[i].beside);
        check_ok(tnd_table_add_slowdown(table, &slowdown));
    }
    const struct tnd_sweep_state sweep = {100, {1, 2}, {3, 4}, {5, 6}};
    check_ok(tnd_table_add_sweep(table, &sweep));
    for (int threads = 1; threads <= 2; threads++) {
        const struct tnd_peak peak = {"int8 VNNI", threads, 100.0 * threads, 5, 100};
        check_ok(tnd_table_add_peak(table, &peak));
    }
}

tandem_table *table_full(void)
{
    tandem_table *table = tune_new();
    table_fill_fingerprint(&table->fingerprint);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&table->fingerprint, "clever", "device", "A"));
    table_add_profile(table, "cpu", "cpu", TANDEM_KIND_CPU);
    table_add_profile(table, "openblas", "openblas", TANDEM_KIND_OPENBLAS);
    table_add_profile(table, "opencl", "opencl", TANDEM_KIND_OPENCL);
    table_add_profile(table, "clever", "clever", TANDEM_KIND_CUDA);
    table_add_profile(table, "both", "openblas", TANDEM_KIND_OPENBLAS);
    strcpy(table->profiles[4].stage[TANDEM_STAGE_INIT].backend, "cpu");
    table->profiles[4].stage[TANDEM_STAGE_INIT].kind = TANDEM_KIND_CPU;
    table->profiles[4].stage[TANDEM_STAGE_INIT].task = TANDEM_TASK_NODE;
    for (int i = 0; i < N_KINDS; i++) {
        struct tnd_curve_key key = table_key_of(kinds[i].backend, 64, kinds[i].threads);
        tune_add(table, &key, 1, 10.0);
        tune_add(table, &key, 8, 20.0);
    }
    const struct tnd_sample moved = {4096, 3.0, 0.1, 5, 100, 0, 0, 0, 0};
    const struct tnd_handoff handoff = {2, 0.5, 50.0, 5, 100};
    check_ok(tnd_table_add_transfer(table, "opencl", TND_UPLOAD, &moved));
    check_ok(tnd_table_add_transfer(table, "clever", TND_UPLOAD, &moved));
    check_ok(tnd_table_add_handoff(table, &handoff));
    add_evidence(table);
    return table;
}

/* ---- what a change invalidates ---- */

/* What changes, and what goes with it: parts, or all that names a backend. */
struct change {
    const char *field;
    const char *parts; /* c cpu, l library, w teams, h hand-offs, t transfers */
    const char *backend;
};

/* By hand from docs/tuning.md; a field that is missing here makes the test fail. */
static struct change change_of(const char *field)
{
    static const struct change all[] = {
        {"cpu_model", "clht", ""},    {"isa", "c", ""},           {"n_cpus", "wh", ""},
        {"n_cores", "wh", ""},        {"n_core_kinds", "wh", ""}, {"l2_bytes", "cl", ""},
        {"l3_bytes", "cl", ""},       {"ram_bytes", "clt", ""},   {"topology_hash", "wh", ""},
        {"openblas", "", "openblas"}, {"gpu", "", "opencl"},      {"driver", "", "opencl"},
        {"build_id", "ch", ""},       {"library", "", ""},        {"cpu_id", "clht", ""},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].field, field) == 0) {
            return all[i];
        }
    }
    CU_FAIL("a field of the fingerprint has no row in this test");
    return all[0];
}

static uint32_t parts_of(const struct change *change)
{
    static const char letters[] = "clwht";
    uint32_t parts = 0;
    for (const char *at = change->parts; *at != '\0'; at++) {
        parts |= 1u << (strchr(letters, *at) - letters);
    }
    return parts;
}

static void check_survivors(const tandem_table *table, const struct change *change)
{
    uint32_t parts = parts_of(change);
    const char *backend = change->backend;
    for (int i = 0; i < N_KINDS; i++) {
        struct tnd_curve_key key = table_key_of(kinds[i].backend, 64, kinds[i].threads);
        bool stays = (kinds[i].parts & parts) == 0 && strcmp(kinds[i].backend, backend) != 0;
        const struct tnd_curve *curve = tnd_table_find(table, &key);
        if ((curve != NULL) != stays) {
            printf("\n    %s: %s with %d threads should have %s\n", change->field, kinds[i].backend,
                   kinds[i].threads, stays ? "stayed" : "gone");
        }
        CU_ASSERT_EQUAL(curve != NULL, stays);
        CU_ASSERT_TRUE(curve == NULL || curve->n_samples == 2);
    }
    bool moves = (parts & TND_PART_TRANSFERS) == 0;
    CU_ASSERT_EQUAL(tnd_table_transfer(table, "opencl", TND_UPLOAD) != NULL,
                    moves && strcmp(backend, "opencl") != 0);
    CU_ASSERT_EQUAL(tnd_table_transfer(table, "clever", TND_UPLOAD) != NULL,
                    moves && strcmp(backend, "clever") != 0);
    CU_ASSERT_EQUAL(table->n_handoffs == 1, (parts & TND_PART_HANDOFFS) == 0);
    CU_ASSERT_EQUAL(table->n_sweeps == 1, (parts & TND_PART_CPU) == 0);
    check_int(table->n_peaks, (parts & TND_PART_CPU) != 0 ? 0 : (parts & TND_PART_TEAMS) ? 1 : 2);
    for (int i = 0; i < N_CHECKED; i++) {
        bool is_known = tnd_table_check(table, checked[i].profile, TANDEM_TYPE_Q4_0, 0, NULL) !=
                        TND_VERDICT_UNKNOWN;
        bool is_named = backend[0] != '\0' && strstr(checked[i].backends, backend) != NULL;
        CU_ASSERT_EQUAL(is_known, (checked[i].parts & parts) == 0 && !is_named);
    }
    for (int i = 0; i < N_PAIRS; i++) {
        double factor = 0;
        bool is_named =
            strcmp(pairs[i].backend, backend) == 0 || strcmp(pairs[i].beside, backend) == 0;
        CU_ASSERT_EQUAL(tnd_table_slowdown(table, pairs[i].backend, pairs[i].beside, &factor),
                        (pairs[i].parts & parts) == 0 && !is_named);
    }
    check_int(table->n_profiles, 5);
}

/* Lets the machine differ, and looks at what is left. */
static void check_change(const struct tnd_fingerprint *machine, const struct change *change)
{
    struct tnd_invalid_report report;
    struct tandem_error error = {0};
    tandem_table *table = table_full();
    int64_t n_cells = tnd_table_count_cells(table);
    bool is_reason = change->parts[0] != '\0' || change->backend[0] != '\0';
    tnd_table_invalidate(table, machine, &report);
    check_survivors(table, change);
    check_int(n_cells - report.n_cells, tnd_table_count_cells(table));
    check_int(report.n, is_reason);
    if (is_reason) {
        check_string(report.reasons[0].field, change->field);
        check_status(tnd_invalid_error(&report, &error), TANDEM_E_TABLE_FOREIGN, change->field,
                     &error);
    } else {
        check_ok(tnd_invalid_error(&report, &error));
    }
    /* What is left is this machine's. */
    check_ok(tnd_fingerprint_compare(&table->fingerprint, machine, NULL));
    tnd_table_invalidate(table, machine, &report);
    check_int(report.n_cells, 0);
    tandem_table_free(table);
}

static void a_changed_field_invalidates_the_cells_that_depend_on_it_and_no_others(void)
{
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        struct tnd_fingerprint machine;
        struct change change = change_of(field->name);
        table_fill_fingerprint(&machine);
        change_field(&machine, field);
        check_change(&machine, &change);
    }
}

/* "clever" stands for a second device: no field of the file is about it. */
static void exchanging_a_second_device_invalidates_its_cells_and_no_others(void)
{
    static const struct change first = {"gpu", "", "opencl"};
    static const struct change second = {"clever", "", "clever"};
    static const struct change none = {"", "", ""};
    struct tnd_fingerprint machine;
    table_fill_fingerprint(&machine);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "clever", "device", "B"));
    check_change(&machine, &second);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "clever", "device", "A"));
    check_change(&machine, &none);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "opencl", "device", "B"));
    check_change(&machine, &first);
    /* A device that is not there now is no change. */
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "clever", "device", ""));
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "opencl", "device", ""));
    check_change(&machine, &none);
}

static void identities_are_kept_in_files_and_an_old_file_has_those_of_its_fields(void)
{
    tandem_table *table = table_full();
    CU_ASSERT_TRUE(
        tnd_fingerprint_set_identity(&table->fingerprint, "opencl1", "driver", "\"3\" \xc3\xa9"));
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    check_contains(text.bytes, "\"gpu\": \"gpu of old\"");
    check_contains(text.bytes, "{\"backend\": \"opencl1\", \"key\": \"driver\", ");
    tandem_table *again = tune_parse(text.bytes);
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_JSON);
    check_string(printed.bytes, text.bytes);
    check_string(tnd_fingerprint_identity(&again->fingerprint, "opencl", "device"), "gpu of old");
    check_string(tnd_fingerprint_identity(&again->fingerprint, "opencl1", "driver"),
                 "\"3\" \xc3\xa9");
    char *value = strstr(text.bytes, "\\\"3\\\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    value[2] = '4';
    tandem_table *none = NULL;
    struct tandem_error error;
    check_status(tandem_table_parse(text.bytes, text.n, "t", &none, &error), TANDEM_E_FORMAT,
                 "checksum", &error);
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static void more_identities_than_fit_are_refused(void)
{
    struct tnd_fingerprint print = {.n_identities = 0};
    char key[32];
    for (int i = 0; i <= TND_MAX_IDENTITIES; i++) {
        snprintf(key, sizeof(key), "key%d", i * 37 % (TND_MAX_IDENTITIES + 1));
        CU_ASSERT_EQUAL(tnd_fingerprint_set_identity(&print, "b", key, key),
                        i < TND_MAX_IDENTITIES);
    }
    for (int i = 1; i < print.n_identities; i++) {
        CU_ASSERT_TRUE(strcmp(print.identities[i - 1].key, print.identities[i].key) < 0);
    }
    CU_ASSERT_FALSE(tnd_fingerprint_set_identity(&print, "a backend of 16+", "k", "v"));
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&print, "b", "key0", ""));
    check_int(print.n_identities, TND_MAX_IDENTITIES - 1);
    char longer[200];
    memset(longer, 'x', sizeof(longer));
    longer[94] = '\xc3'; /* a character that would be cut in two */
    longer[95] = '\xa9';
    longer[199] = '\0';
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&print, "b", "key0", longer));
    check_int((int)strlen(tnd_fingerprint_identity(&print, "b", "key0")), 94);
}

static void several_changes_are_told_one_by_one_and_cells_count_once(void)
{
    struct tnd_fingerprint machine;
    struct tnd_invalid_report report;
    tandem_table *table = table_full();
    int64_t n_cells = tnd_table_count_cells(table);
    table_fill_fingerprint(&machine);
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        change_field(&machine, &tnd_fingerprint_fields[i]);
    }
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "clever", "device", "B"));
    tnd_table_invalidate(table, &machine, &report);
    check_int(report.n,
              tnd_fingerprint_field_count()); /* not the library's version; but "clever" */
    check_int(report.n_cells, n_cells);
    check_int(tnd_table_count_cells(table), 0);
    int64_t sum = 0;
    for (int i = 0; i < report.n; i++) {
        sum += report.reasons[i].n_cells;
    }
    check_int(sum, n_cells);
    tandem_table_free(table);
}

static void what_is_unknown_invalidates_nothing(void)
{
    struct tnd_fingerprint machine;
    struct tnd_invalid_report report;
    memset(&machine, 0, sizeof(machine));
    tandem_table *table = table_full();
    tnd_table_invalidate(table, &machine, &report);
    check_int(report.n, 0);
    check_survivors(table, &(struct change){"", "", ""});
    check_string(tnd_fingerprint_identity(&table->fingerprint, "opencl", "device"),
                 "gpu of old"); /* not forgotten either */
    table->has_fingerprint = false;
    table_fill_fingerprint(&machine);
    CU_ASSERT_TRUE(tnd_fingerprint_set_identity(&machine, "opencl", "device", "another"));
    tnd_table_invalidate(table, &machine, &report);
    check_int(report.n, 0);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"exchanging a second device invalidates its cells and no others",
     exchanging_a_second_device_invalidates_its_cells_and_no_others},
    {"identities are kept in files and an old file has those of its fields",
     identities_are_kept_in_files_and_an_old_file_has_those_of_its_fields},
    {"more identities than fit are refused", more_identities_than_fit_are_refused},
    {"a changed field invalidates the cells that depend on it and no others",
     a_changed_field_invalidates_the_cells_that_depend_on_it_and_no_others},
    {"several changes are told one by one and cells count once",
     several_changes_are_told_one_by_one_and_cells_count_once},
    {"what is unknown invalidates nothing", what_is_unknown_invalidates_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_invalidate[];
CU_SuiteInfo suites_table_invalidate[] = {
    {"invalidation", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
