/* SPDX-License-Identifier: MIT
 * Text: builder, scanner, numbers in both directions. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/suite_base.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"

static void built_text_is_the_sum_of_its_parts(void)
{
    struct tnd_text text = TND_TEXT_INIT;
    check_string(tnd_text_string(&text), "");
    tnd_text_add(&text, "one");
    tnd_text_add_char(&text, ' ');
    tnd_text_add_repeat(&text, '-', 3);
    tnd_text_printf(&text, " %d %s %.2f", 2, "three", 4.5);
    tnd_text_add_bytes(&text, "!?", 1);
    check_string(tnd_text_string(&text), "one --- 2 three 4.50!");
    tnd_text_clear(&text);
    for (int i = 0; i < 1000; i++) {
        tnd_text_printf(&text, "%03d ", i);
    }
    check_int(text.n, 4000);
    CU_ASSERT_FALSE(text.failed);
    CU_ASSERT_EQUAL(strncmp(text.bytes + 3996, "999 ", 5), 0);
    char *taken = tnd_text_take(&text);
    CU_ASSERT_TRUE(taken != NULL && strlen(taken) == 4000);
    tnd_free(taken);
    taken = tnd_text_take(&text);
    check_string(taken, "");
    tnd_free(taken);
    tnd_text_fini(&text);
}

static void text_without_memory_fails_once_and_stays_failed(void)
{
    long live = tnd_alloc_live();
    for (long n = 1; n <= 3; n++) {
        struct tnd_text text = TND_TEXT_INIT;
        tnd_alloc_fail_after(n);
        for (int i = 0; i < 200; i++) {
            tnd_text_printf(&text, "line %d\n", i);
            tnd_text_add(&text, "more");
        }
        CU_ASSERT_TRUE(text.failed);
        CU_ASSERT_PTR_NULL(tnd_text_take(&text));
        tnd_text_fini(&text);
    }
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
}

static void doubles_are_written_short_and_read_back_equal(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {1e30, "1e+30"},
        {-0.0, "-0"},
        {22.69, "22.69"},
        {1.0 / 3, NULL},
        {NAN, "nan"},
        {-INFINITY, "-inf"},
        {5e-324, "4.94065645841247e-324"},
        {123456789, "123456789"},
    };
    struct tnd_text text = TND_TEXT_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tnd_text_clear(&text);
        tnd_text_add_double(&text, cases[i].value);
        if (cases[i].text != NULL) {
            check_string(tnd_text_string(&text), cases[i].text);
        }
    }
    struct tnd_rng rng;
    int wrong = 0;
    tnd_rng_init(&rng, tnd_test_seed());
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = tnd_rng_u64(&rng);
        double value, back = 0;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value)) {
            continue;
        }
        tnd_text_clear(&text);
        tnd_text_add_double(&text, value);
        wrong += !tnd_text_to_double(text.bytes, text.n, &back) || back != value;
    }
    check_int(wrong, 0);
    tnd_text_fini(&text);
}

static void numbers_ignore_the_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", NULL};
    int i = 0;
    while (names[i] != NULL && setlocale(LC_ALL, names[i]) == NULL) {
        i++;
    }
    struct tnd_text text = TND_TEXT_INIT;
    double value = 0;
    tnd_text_printf(&text, "%.1f ", 0.5);
    tnd_text_add_double(&text, 2.5);
    check_string(tnd_text_string(&text), "0.5 2.5");
    CU_ASSERT_TRUE(tnd_text_to_double("2.5", 3, &value) && value == 2.5);
    CU_ASSERT_FALSE(tnd_text_to_double("2,5", 3, &value));
    tnd_text_fini(&text);
    setlocale(LC_ALL, "C");
}

static void only_whole_numbers_in_range_are_numbers(void)
{
    static const char *const bad_integers[] = {
        "",
        "-",
        "+",
        "1x",
        "0x10",
        " 1",
        "1 ",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "1.0",
        "--1",
    };
    static const char *const bad_doubles[] = {
        "",    ".",   "-",     "e5", "1e", "1e999", "-1e999",
        "inf", "nan", "0x1p3", " 1", "1 ", "1.2.3", "1,5",
    };
    int64_t whole = 7;
    double value = 7;
    for (size_t i = 0; i < sizeof(bad_integers) / sizeof(bad_integers[0]); i++) {
        CU_ASSERT_FALSE(tnd_text_to_i64(bad_integers[i], strlen(bad_integers[i]), &whole));
    }
    for (size_t i = 0; i < sizeof(bad_doubles) / sizeof(bad_doubles[0]); i++) {
        CU_ASSERT_FALSE(tnd_text_to_double(bad_doubles[i], strlen(bad_doubles[i]), &value));
    }
    CU_ASSERT_FALSE(tnd_text_to_double("1\0", 2, &value));
    CU_ASSERT_TRUE(whole == 7 && value == 7);
    CU_ASSERT_TRUE(tnd_text_to_i64("-9223372036854775808", 20, &whole) && whole == INT64_MIN);
    CU_ASSERT_TRUE(tnd_text_to_i64("+12abc", 3, &whole) && whole == 12);
    CU_ASSERT_TRUE(tnd_text_to_double("1e-400", 6, &value) && value == 0);
    CU_ASSERT_TRUE(tnd_text_to_double("-.5e+1", 6, &value) && value == -5);
    char many[600];
    memset(many, '1', sizeof(many));
    CU_ASSERT_FALSE(tnd_text_to_double(many, sizeof(many), &value));
}

static void scanning_knows_line_and_column(void)
{
    static const char table[] = "version 1\r\n\n  4096\t22.5 x\n";
    struct tnd_scan scan;
    const char *token = NULL;
    size_t n = 0;
    int64_t whole = 0;
    double value = 0;
    tnd_scan_init(&scan, table, sizeof(table) - 1);
    CU_ASSERT_TRUE(tnd_scan_token(&scan, &token, &n) && n == 7 && memcmp(token, "version", 7) == 0);
    CU_ASSERT_FALSE(tnd_scan_end_of_line(&scan));
    CU_ASSERT_TRUE(tnd_scan_i64(&scan, &whole) && whole == 1);
    CU_ASSERT_FALSE(tnd_scan_token(&scan, &token, &n));
    CU_ASSERT_TRUE(tnd_scan_end_of_line(&scan));
    check_int(scan.line, 2);
    tnd_scan_skip_space(&scan);
    check_int(scan.line, 3);
    check_int(tnd_scan_column(&scan), 3);
    CU_ASSERT_TRUE(tnd_scan_i64(&scan, &whole) && whole == 4096);
    CU_ASSERT_FALSE(tnd_scan_i64(&scan, &whole)); /* 22.5: nothing taken */
    CU_ASSERT_TRUE(tnd_scan_double(&scan, &value) && value == 22.5);
    CU_ASSERT_FALSE(tnd_scan_double(&scan, &value));
    check_int(tnd_scan_column(&scan), 13);
    CU_ASSERT_TRUE(tnd_scan_token(&scan, &token, &n) && n == 1);
    CU_ASSERT_TRUE(tnd_scan_end_of_line(&scan));
    CU_ASSERT_TRUE(tnd_scan_is_end(&scan));
    CU_ASSERT_TRUE(tnd_scan_end_of_line(&scan));
    check_int(scan.line, 4);
}

static void scanning_never_reads_behind_the_end(void)
{
    char *bytes = tnd_guarded_alloc(3, 1);
    memcpy(bytes, "1 2", 3);
    struct tnd_scan scan;
    int64_t value = 0;
    tnd_scan_init(&scan, bytes, 3);
    CU_ASSERT_TRUE(tnd_scan_i64(&scan, &value) && value == 1);
    CU_ASSERT_TRUE(tnd_scan_i64(&scan, &value) && value == 2);
    CU_ASSERT_FALSE(tnd_scan_i64(&scan, &value));
    tnd_guarded_free(bytes);
    tnd_scan_init(&scan, "a\0b", 3);
    const char *token;
    size_t n;
    CU_ASSERT_TRUE(tnd_scan_token(&scan, &token, &n) && n == 1);
    CU_ASSERT_FALSE(tnd_scan_token(&scan, &token, &n)); /* a zero byte is no text */
    CU_ASSERT_FALSE(tnd_scan_end_of_line(&scan));
}

static void what_a_terminal_would_follow_is_made_visible(void)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain (1.5 us)", "plain (1.5 us)"},
        {"\xc3\xa4 \xe6\xbc\xa2 \xf0\x9f\x99\x82", "\xc3\xa4 \xe6\xbc\xa2 \xf0\x9f\x99\x82"},
        {"\x1b[31mred\x1b]0;title\a", "\\x1b[31mred\\x1b]0;title\\x07"},
        {"a\nb\tc\rd\x7f", "a\\nb\\tc\\x0dd\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\u009b31m"}, /* CSI in one character */
        {"\x9b"
         "31m",
         "\\x9b31m"},                              /* and in one byte */
        {"\xe2\x80\xaegpj.exe", "\\u202egpj.exe"}, /* what follows runs backwards */
        {"\xc0\xaf \xed\xa0\x80 \xf5", "\\xc0\\xaf \\xed\\xa0\\x80 \\xf5"},
        {"cut \xe6\xbc", "cut "},
    };
    char out[64];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t n = strlen(cases[i].text);
        check_int(tandem_text_visible(cases[i].text, n, out, sizeof(out)), strlen(cases[i].shown));
        check_string(out, cases[i].shown);
        for (size_t room = 0; room < sizeof(out); room++) {
            char *small = tnd_guarded_alloc(room + 1, 1);
            char *text = tnd_guarded_alloc(n + 1, 1);
            memcpy(text, cases[i].text, n);
            size_t used = tandem_text_visible(text, n, small, room);
            CU_ASSERT_TRUE(used < room || room == 0);
            CU_ASSERT_TRUE(room == 0 || strlen(small) == used);
            tnd_guarded_free(text);
            tnd_guarded_free(small);
        }
    }
    check_int(tandem_text_visible("\0", 1, out, sizeof(out)), 4);
    check_string(out, "\\x00");
    check_int(tandem_text_visible(NULL, 0, out, sizeof(out)), 0);
}

static char shown_line[512];

static void keep_line(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    (void)room;
    snprintf(shown_line, sizeof(shown_line), "%s", text);
}

static void messages_and_log_lines_hold_nothing_that_a_terminal_would_follow(void)
{
    static const char name[] = "blk.0\x1b[2J\xff\n";
    struct tandem_error error = {0};
    const struct tnd_log log = {keep_line, NULL, TANDEM_LOG_INFO};
    (void)tnd_error_set(&error, TANDEM_E_FORMAT, name, 0, 0, "%s: is no tensor", name);
    check_string(error.text, "blk.0\\x1b[2J\\xff\\n: is no tensor");
    check_string(error.where, "blk.0\\x1b[2J\\xff\\n");
    tnd_log_line(&log, TANDEM_LOG_INFO, "base", "device %s", name);
    check_string(shown_line, "device blk.0\\x1b[2J\\xff\\n");
}

CU_TestInfo tnd_tests_base_text[] = {
    {"what_a_terminal_would_follow_is_made_visible", what_a_terminal_would_follow_is_made_visible},
    {"messages_and_log_lines_hold_nothing_that_a_terminal_would_follow",
     messages_and_log_lines_hold_nothing_that_a_terminal_would_follow},
    {"built_text_is_the_sum_of_its_parts", built_text_is_the_sum_of_its_parts},
    {"text_without_memory_fails_once_and_stays_failed",
     text_without_memory_fails_once_and_stays_failed},
    {"doubles_are_written_short_and_read_back_equal",
     doubles_are_written_short_and_read_back_equal},
    {"numbers_ignore_the_locale", numbers_ignore_the_locale},
    {"only_whole_numbers_in_range_are_numbers", only_whole_numbers_in_range_are_numbers},
    {"scanning_knows_line_and_column", scanning_knows_line_and_column},
    {"scanning_never_reads_behind_the_end", scanning_never_reads_behind_the_end},
    CU_TEST_INFO_NULL,
};
