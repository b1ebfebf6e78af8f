/* SPDX-License-Identifier: MIT
 * Damaged tables: every truncation and every flipped byte of both formats gives a clear error or a
 * table, never a crash or a leak (run under AddressSanitizer). JSON carries a checksum, so there it
 * is an error or the very same table; a text table with a flipped digit is another valid table, and
 * no reader can tell. */
#include "tests/support_tune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#ifdef TND_HAVE_CJSON
#include <cjson/cJSON.h>
#endif

static const char small_text[] = "1 7B Q4_0 3 ACCELERATE 2 8 2 2\n"
                                 "1 0 0 1 1 0 0 0 0\n"
                                 "1 1 0 3 0 1 4 0 0\n"
                                 "64 32\n"
                                 "  8        8     7477 0    12438     6448 10\n"
                                 " 16       22    14387 0    12468     7173 20\n"
                                 "4094 96\n"
                                 "  8       24    16279 0    29243     8578 30\n"
                                 " 16       48    32857 0    29370     9313 41\n";

/* Parses a copy that ends exactly at an unreadable page. NULL when it is refused; then there is a
 * message. */
static tandem_table *parse_guarded(const char *bytes, size_t n)
{
    char *copy = tnd_guarded_alloc(n, 1);
    memcpy(copy, bytes, n);
    tandem_table *table = NULL;
    struct tandem_error error = {0};
    enum tandem_status status = tandem_table_parse(copy, n, "damaged", &table, &error);
    if (status == TANDEM_OK) {
        CU_ASSERT_PTR_NOT_NULL(table);
    } else if (table != NULL || error.status != status || strstr(error.text, "damaged") == NULL) {
        CU_FAIL("refused without a message, or with a table");
    }
    tnd_guarded_free(copy);
    return table;
}

static void check_equal(const tandem_table *table, enum tandem_table_format format,
                        const char *expected, size_t at)
{
    struct tnd_text text = tune_print(table, format);
    if (strcmp(tnd_text_string(&text), expected) != 0) {
        printf("    byte %zu: the damage was not noticed\n", at);
        CU_FAIL("a damaged file gave another table");
    }
    tnd_text_fini(&text);
}

static void check_truncations(const char *bytes, enum tandem_table_format format)
{
    size_t n = strlen(bytes);
    int accepted = 0;
    for (size_t length = 0; length < n; length++) {
        tandem_table *table = parse_guarded(bytes, length);
        if (table != NULL) {
            accepted++;
            check_equal(table, format, bytes, length);
            tandem_table_free(table);
        }
    }
    CU_ASSERT_TRUE(accepted <= 1); /* without the last line end */
}

/* All 255 other values of a byte, or with little effort its eight flipped bits. */
static void check_flips(const char *bytes, enum tandem_table_format format, bool must_be_same)
{
    size_t n = strlen(bytes);
    char *copy = malloc(n + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, bytes, n + 1);
    int step = tnd_effort() > 2 || n < 600 ? 1 : 0;
    for (size_t at = 0; at < n; at++) {
        for (int flip = 1; flip < 256; flip = step == 1 ? flip + 1 : flip * 2) {
            copy[at] = (char)(bytes[at] ^ flip);
            tandem_table *table = parse_guarded(copy, n);
            if (table != NULL && must_be_same) {
                check_equal(table, format, bytes, at);
            }
            tandem_table_free(table);
        }
        copy[at] = bytes[at];
    }
    free(copy);
}

static void truncated_text_tables_are_refused(void)
{
    check_truncations(small_text, TANDEM_TABLE_TEXT);
    check_truncations(tune_example, TANDEM_TABLE_TEXT);
}

static void text_tables_with_a_flipped_byte_are_refused_or_read(void)
{
    check_flips(small_text, TANDEM_TABLE_TEXT, false);
}

#ifdef TND_HAVE_CJSON

static struct tnd_text small_json(void)
{
    tandem_table *table = tune_parse(small_text);
    table->has_fingerprint = true;
    tnd_fingerprint_read(&table->fingerprint);
    struct tnd_text json = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table_free(table);
    return json;
}

static void truncated_json_tables_are_refused(void)
{
    struct tnd_text json = small_json();
    check_truncations(tnd_text_string(&json), TANDEM_TABLE_JSON);
    tnd_text_fini(&json);
}

static void json_tables_with_a_flipped_byte_are_refused_or_the_same(void)
{
    struct tnd_text json = small_json();
    check_flips(tnd_text_string(&json), TANDEM_TABLE_JSON, true);
    tnd_text_fini(&json);
}

/* A version between two releases had a list of what launches cost. */
static void json_tables_with_a_list_that_is_not_used_any_more_are_read(void)
{
    static const char list[] = "\"launches\": [\n    {\"backend\": \"cuda\", \"us\": 3, "
                               "\"graph_us\": 1.25, \"count\": 1536, "
                               "\"when\": 7}],\n  \"checksum_later\": \"0123456789abcdef\",\n  ";
    struct tnd_text json = small_json();
    const char *text = tnd_text_string(&json);
    const char *later = strstr(text, "\"checksum_later\"");
    const char *rest = strstr(text, "\"checksum\"");
    const int before = (int)((later != NULL ? later : rest) - text);
    struct tnd_text old = TND_TEXT_INIT;
    tnd_text_printf(&old, "%.*s%s%s", before, text, list, rest);
    tandem_table *table = tune_parse(tnd_text_string(&old));
    CU_ASSERT_TRUE(table->has_retired);
    check_equal(table, TANDEM_TABLE_JSON, text, 0);
    tandem_table_free(table);
    old.bytes[old.n - 6] ^= 1; /* the last digit of the other checksum */
    CU_ASSERT_PTR_NULL(parse_guarded(old.bytes, old.n));
    tnd_text_fini(&old);
    tnd_text_fini(&json);
}

/* As malloc does when memory has ended. */
static void *no_memory(size_t bytes)
{
    (void)bytes;
    errno = ENOMEM;
    return NULL;
}

/* A table that "is damaged" is set aside, and a new one begins. */
static void json_without_memory_for_its_values_is_not_called_damaged(void)
{
    struct tnd_text json = small_json();
    struct cJSON_Hooks hooks = {no_memory, free};
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    cJSON_InitHooks(&hooks);
    enum tandem_status status = tandem_table_parse(
        tnd_text_string(&json), strlen(tnd_text_string(&json)), "test", &table, &error);
    cJSON_InitHooks(NULL);
    check_status(status, TANDEM_E_MEMORY, "test", &error);
    CU_ASSERT_PTR_NULL(table);
    tnd_text_fini(&json);
}

#endif

static void random_bytes_are_refused(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        size_t n = (size_t)tnd_test_rng_int(&rng, 0, sizeof(bytes));
        for (size_t i = 0; i < n; i++) {
            bytes[i] = (char)tnd_test_rng_int(&rng, 0, 255);
        }
        if (n > 0 && round % 2 == 0) {
            bytes[0] = '{';
        }
        CU_ASSERT_PTR_NULL(parse_guarded(bytes, n));
    }
}

/* Each allocation in turn fails: reading says MEMORY and leaks nothing. */
static void check_memory(const char *bytes)
{
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long n = 1; status == TANDEM_E_MEMORY && n < 1000; n++) {
        long live = tnd_alloc_live();
        tandem_table *table = NULL;
        tnd_alloc_fail_after(n);
        status = tandem_table_parse(bytes, strlen(bytes), "test", &table, NULL);
        tnd_alloc_fail_after(-1);
        tandem_table_free(table);
        check_int(tnd_alloc_live(), live);
    }
    check_int(status, TANDEM_OK);
}

static void reading_without_memory_leaks_nothing(void)
{
    check_memory(small_text);
#ifdef TND_HAVE_CJSON
    struct tnd_text json = small_json();
    check_memory(tnd_text_string(&json));
    tnd_text_fini(&json);
#endif
}

static CU_TestInfo tests[] = {
    {"truncated_text_tables_are_refused", truncated_text_tables_are_refused},
    {"text_tables_with_a_flipped_byte_are_refused_or_read",
     text_tables_with_a_flipped_byte_are_refused_or_read},
#ifdef TND_HAVE_CJSON
    {"truncated_json_tables_are_refused", truncated_json_tables_are_refused},
    {"json_tables_with_a_flipped_byte_are_refused_or_the_same",
     json_tables_with_a_flipped_byte_are_refused_or_the_same},
    {"json_tables_with_a_list_that_is_not_used_any_more_are_read",
     json_tables_with_a_list_that_is_not_used_any_more_are_read},
    {"json_without_memory_for_its_values_is_not_called_damaged",
     json_without_memory_for_its_values_is_not_called_damaged},
#endif
    {"random_bytes_are_refused", random_bytes_are_refused},
    {"reading_without_memory_leaks_nothing", reading_without_memory_leaks_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_damage[];
CU_SuiteInfo suites_table_damage[] = {
    {"damage", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
