/* SPDX-License-Identifier: MIT
 * The list of records holds what it promises, for every kind and every fact: files, the checksum,
 * the laws of merging, the schema. Nothing here knows a kind by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/json_read.h"
#include "table/records.h"
#include "table/table_cells.h"
#include "table/table_filter.h"
#include "tests/suite_table.h"
#include "tests/support_tune.h"

/* ---- random records ---- */

/* Of any kind. */
union record {
#define MEMBER(kind, list, type, ...) struct type list;
    TND_RECORD_LIST(MEMBER)
#undef MEMBER
};

static int pick(struct tnd_test_rng *rng, int n)
{
    return (int)tnd_test_rng_int(rng, 0, n - 1);
}

/* Few values each, so that keys meet and values compete. */
static void set_fact(struct tnd_test_rng *rng, const struct tnd_fact *fact, void *record)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0};
    char *at = (char *)record + fact->offset;
    double low;
    double high;
    tnd_fact_range(fact->kind, &low, &high);
    double real = low + pick(rng, 3) * 0.3;
    const struct tnd_reference_time pair = {1 + pick(rng, 2), pick(rng, 3)};
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        memset(at, 0, fact->bytes);
        at[0] = (char)('a' + pick(rng, 3));
        break;
    case TND_FORM_TYPE:
        tnd_fact_set_whole(fact, record, (int64_t)types[pick(rng, 3)]);
        break;
    case TND_FORM_WHOLE:
        tnd_fact_set_whole(fact, record, (int64_t)low + pick(rng, high - low < 2 ? 2 : 3));
        break;
    case TND_FORM_REAL:
        memcpy(at, &real, sizeof(real));
        break;
    case TND_FORM_FLAG:
        tnd_fact_set_whole(fact, record, pick(rng, 2));
        break;
    case TND_FORM_CHOICE:
        tnd_fact_set_whole(fact, record, 1 + pick(rng, fact->kind == TND_FACT_DIRECTION ? 1 : 2));
        break;
    case TND_FORM_PAIR:
        memcpy(at, &pair, sizeof(pair));
        break;
    }
}

static void set_facts(struct tnd_test_rng *rng, const struct tnd_record_kind *kind, void *record)
{
    memset(record, 0, kind->bytes);
    for (int i = 0; i < kind->n_facts; i++) {
        set_fact(rng, &kind->facts[i], record);
    }
}

static void add(tandem_table *table, enum tnd_record kind, const union record *record,
                const struct tnd_sample *sample)
{
    check_ok(tnd_record_kinds[kind].samples != 0 ? tnd_cell_add(table, kind, record, sample)
                                                 : tnd_record_add(table, kind, record));
}

static tandem_table *random_table(struct tnd_test_rng *rng, int n)
{
    tandem_table *table = tune_new();
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        for (int i = 0; i < n; i++) {
            union record record;
            struct tnd_sample sample;
            set_facts(rng, &tnd_record_kinds[kind], &record);
            set_facts(rng, &tnd_sample_kind, &sample);
            add(table, (enum tnd_record)kind, &record, &sample);
        }
    }
    return table;
}

/* ---- files ---- */

static void every_kind_comes_back_from_a_file(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(1);
    tandem_table *table = random_table(&rng, 6);
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *again = tune_parse(text.bytes);
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_JSON);
    check_string(printed.bytes, text.bytes);
    check_int(tnd_table_count_cells(again), tnd_table_count_cells(table));
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        const struct tnd_vector *list = tnd_record_list_const(again, (enum tnd_record)kind);
        CU_ASSERT_TRUE(list->n > 0);
        for (int i = 1; i < list->n; i++) {
            CU_ASSERT_TRUE(
                tnd_record_kinds[kind].compare(tnd_record_at(again, (enum tnd_record)kind, i - 1),
                                               tnd_record_at(again, (enum tnd_record)kind, i)) < 0);
        }
    }
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static uint64_t checksum_of(enum tnd_record kind, const union record *record,
                            const struct tnd_sample *sample)
{
    tandem_table *table = tune_new();
    add(table, kind, record, sample);
    uint64_t checksum = tnd_table_checksum(table) ^ tnd_table_checksum_later(table);
    tandem_table_free(table);
    return checksum;
}

static void every_fact_is_part_of_the_checksum(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(2);
    for (int k = 0; k < TND_RECORD_KINDS; k++) {
        const struct tnd_record_kind *kind = &tnd_record_kinds[k];
        int n = kind->n_facts + (kind->samples != 0 ? tnd_sample_kind.n_facts : 0);
        for (int i = 0; i < n; i++) {
            bool is_own = i < kind->n_facts;
            union record record;
            struct tnd_sample sample;
            set_facts(&rng, kind, &record);
            set_facts(&rng, &tnd_sample_kind, &sample);
            union record other = record;
            struct tnd_sample point = sample;
            const struct tnd_fact *fact =
                is_own ? &kind->facts[i] : &tnd_sample_kind.facts[i - kind->n_facts];
            if (fact->kind == TND_FACT_DIRECTION) {
                other.transfers.direction ^= 1; /* the random ones have one value */
            }
            for (int tries = 0; tries < 100 && memcmp(&other, &record, kind->bytes) == 0 &&
                                memcmp(&point, &sample, sizeof(point)) == 0;
                 tries++) {
                set_fact(&rng, fact, is_own ? (void *)&other : (void *)&point);
            }
            CU_ASSERT_NOT_EQUAL(checksum_of((enum tnd_record)k, &record, &sample),
                                checksum_of((enum tnd_record)k, &other, &point));
        }
    }
}

/* Versions that do not know a later kind or cpu_id skip it, and must still find their checksum. */
static void later_facts_leave_the_checksum_of_older_versions_alone(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(4);
    tandem_table *table = random_table(&rng, 3);
    const uint64_t before = tnd_table_checksum(table);
    const uint64_t before_later = tnd_table_checksum_later(table);
    strcpy(table->fingerprint.cpu_id, "abacus 1 2");
    table->has_fingerprint = true;
    const uint64_t with_id = tnd_table_checksum_later(table);
    CU_ASSERT_NOT_EQUAL(with_id, before_later);
    table->fingerprint.cpu_id[9] = '3';
    CU_ASSERT_NOT_EQUAL(tnd_table_checksum_later(table), with_id);
    for (int kind = TND_RECORD_LATER; kind < TND_RECORD_KINDS; kind++) {
        union record record;
        struct tnd_sample sample;
        set_facts(&rng, &tnd_record_kinds[kind], &record);
        set_facts(&rng, &tnd_sample_kind, &sample);
        const uint64_t later = tnd_table_checksum_later(table);
        if (tnd_record_kinds[kind].samples == 0) { /* (those own memory) */
            tnd_record_list(table, (enum tnd_record)kind)->n = 0;
        }
        add(table, (enum tnd_record)kind, &record, &sample);
        CU_ASSERT_EQUAL(tnd_table_checksum(table), before);
        CU_ASSERT_NOT_EQUAL(tnd_table_checksum_later(table), later);
    }
    tandem_table_free(table);
}

static void tables_of_before_are_written_as_they_were_read(void)
{
    enum { WRITTEN_BY_US = 2 }; /* the others were laid out by hand: they are read */
    static const char *const paths[] = {
        "bench-data/epyc-zen5-2-cores/table.json", "bench-data/pocl-epyc-zen5/table.json",
        "bench-data/server-a100-computed/table.json", "tests/fuzz/corpus/table_json/devices.json"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        size_t n = 0;
        char *bytes = tnd_test_read_file(paths[i], &n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
        tandem_table *table = tune_parse(bytes);
        struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
        if (i < WRITTEN_BY_US) {
            check_string(text.bytes, bytes);
        }
        tnd_text_fini(&text);
        tandem_table_free(table);
        free(bytes);
    }
}

/* ---- merging ---- */

static tandem_table *sum(const tandem_table *a, const tandem_table *b)
{
    tandem_table *table = NULL;
    check_ok(tandem_table_copy(a, &table, NULL));
    check_ok(tandem_table_merge(table, b, NULL));
    return table;
}

static void check_same(tandem_table *a, tandem_table *b)
{
    struct tnd_text one = tune_print(a, TANDEM_TABLE_JSON);
    struct tnd_text two = tune_print(b, TANDEM_TABLE_JSON);
    check_string(one.bytes, two.bytes);
    tnd_text_fini(&one);
    tnd_text_fini(&two);
    tandem_table_free(a);
    tandem_table_free(b);
}

static void every_kind_merges_by_the_three_laws(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    for (int round = 0; round < 20 * tnd_effort(); round++) {
        tandem_table *a = random_table(&rng, 8);
        tandem_table *b = random_table(&rng, 8);
        tandem_table *c = random_table(&rng, 8);
        tandem_table *ab = sum(a, b);
        tandem_table *bc = sum(b, c);
        check_same(sum(ab, c), sum(a, bc));
        check_same(sum(a, b), sum(b, a));
        check_same(sum(ab, a), sum(ab, ab));
        tandem_table_free(a);
        tandem_table_free(b);
        tandem_table_free(c);
        tandem_table_free(ab);
        tandem_table_free(bc);
    }
}

/* ---- the schema ---- */

#ifdef TND_HAVE_CJSON

static const cJSON *at(const cJSON *object, const char *name)
{
    const cJSON *item = tnd_json_get(object, name);
    if (item == NULL) {
        printf("\n    the schema has no %s here", name);
        CU_FAIL("the schema lacks a member");
    }
    return item;
}

/* What "$ref" names, or the object itself. */
static const cJSON *resolve(const cJSON *root, const cJSON *object)
{
    const cJSON *reference = tnd_json_get(object, "$ref");
    const char *name = cJSON_IsString(reference) ? strrchr(reference->valuestring, '/') : NULL;
    return name != NULL ? at(at(root, "definitions"), name + 1) : object;
}

static void check_fact(const cJSON *root, const cJSON *properties, const struct tnd_fact *fact,
                       const char *over)
{
    const cJSON *says = resolve(root, at(properties, tnd_fact_name(fact, over)));
    double low;
    double high;
    tnd_fact_range(fact->kind, &low, &high);
    enum tnd_fact_form form = tnd_fact_form(fact->kind);
    if (form == TND_FORM_TEXT) {
        CU_ASSERT_EQUAL(at(says, "minLength")->valuedouble, 1);
        CU_ASSERT_EQUAL(at(says, "maxLength")->valuedouble, (double)fact->bytes - 1);
    } else if (form == TND_FORM_WHOLE || form == TND_FORM_REAL) {
        check_string(at(says, "type")->valuestring, form == TND_FORM_REAL ? "number" : "integer");
        CU_ASSERT_EQUAL(at(says, "minimum")->valuedouble, low);
        CU_ASSERT_EQUAL(at(says, "maximum")->valuedouble, high);
    } else if (form == TND_FORM_FLAG) {
        check_string(at(says, "type")->valuestring, "boolean");
    } else if (form == TND_FORM_CHOICE) {
        CU_ASSERT_TRUE(cJSON_GetArraySize(at(says, "enum")) > 1);
    }
}

static bool is_required(const cJSON *items, const char *name)
{
    const cJSON *one;
    bool found = false;
    cJSON_ArrayForEach(one, at(items, "required"))
    {
        found = found || strcmp(one->valuestring, name) == 0;
    }
    return found;
}

static void check_list(const cJSON *root, const cJSON *list, const struct tnd_record_kind *kind,
                       const char *over)
{
    const cJSON *items = at(list, "items");
    const cJSON *properties = at(items, "properties");
    for (int i = 0; i < kind->n_facts; i++) {
        check_fact(root, properties, &kind->facts[i], over);
        CU_ASSERT_EQUAL(is_required(items, tnd_fact_name(&kind->facts[i], over)),
                        !tnd_fact_is_optional(&kind->facts[i]));
    }
    check_int(cJSON_GetArraySize(properties), kind->n_facts + (kind->samples != 0));
    if (kind->kept == 0) {
        CU_ASSERT_EQUAL(at(list, "maxItems")->valuedouble, kind->limit);
    }
    if (kind->samples != 0) {
        check_list(root, at(properties, "samples"), &tnd_sample_kind, kind->over);
    }
}

static void the_schema_says_what_the_list_says(void)
{
    size_t n = 0;
    char *bytes = tnd_test_read_file("docs/table.schema.json", &n);
    cJSON *root = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_TRUE_FATAL(tnd_json_parse(bytes, n, "schema", &root, NULL) == TANDEM_OK);
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        const cJSON *list = at(at(root, "properties"), tnd_record_kinds[kind].name);
        check_list(root, list, &tnd_record_kinds[kind], NULL);
    }
    cJSON_Delete(root);
    free(bytes);
}

#endif

static CU_TestInfo tests[] = {
    {"every_fact_is_part_of_the_checksum", every_fact_is_part_of_the_checksum},
    {"later_facts_leave_the_checksum_of_older_versions_alone",
     later_facts_leave_the_checksum_of_older_versions_alone},
    {"every_kind_merges_by_the_three_laws", every_kind_merges_by_the_three_laws},
#ifdef TND_HAVE_CJSON
    {"every_kind_comes_back_from_a_file", every_kind_comes_back_from_a_file},
    {"tables_of_before_are_written_as_they_were_read",
     tables_of_before_are_written_as_they_were_read},
    {"the_schema_says_what_the_list_says", the_schema_says_what_the_list_says},
#endif
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_records[];
CU_SuiteInfo suites_table_records[] = {
    {"records", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
