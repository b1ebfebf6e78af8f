/* SPDX-License-Identifier: MIT
 * Transfers and hand-offs in tables and files. */
#include <stdio.h>
#include <string.h>

#include "tests/support_tune.h"

static void add_transfer(tandem_table *table, const char *backend, enum tnd_direction direction,
                         int64_t bytes, double us, uint32_t count)
{
    struct tnd_sample sample = {bytes, us, us / 100, count, 7, 0, 0, 0, 0};
    check_ok(tnd_table_add_transfer(table, backend, direction, &sample));
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

static CU_TestInfo tests[] = {
    {"transfers and hand-offs are kept in JSON", transfers_and_hand_offs_are_kept_in_json},
    {"what is no transfer is refused with its place",
     what_is_no_transfer_is_refused_with_its_place},
    {"transfers merge by count and age in any order",
     transfers_merge_by_count_and_age_in_any_order},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_moves[];
CU_SuiteInfo suites_table_moves[] = {
    {"transfers in tables", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
