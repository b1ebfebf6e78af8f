/* SPDX-License-Identifier: MIT
 * The HTML report: one page, whole, without the network, whatever stands in the table. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tests/support_tune.h"
#include "tests/support.h"
#include "tools/report/report_html.h"

static int append(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static int refuse(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return 1;
}

static tandem_table *example(void)
{
    tandem_table *table = NULL;
    check_ok(tandem_table_parse(tune_example, strlen(tune_example), "example", &table, NULL));
    return table;
}

static enum tandem_status report(const tandem_table *table, const char *name, tandem_write_fn write,
                                 void *user)
{
    const struct tnd_report_source source = {table, name};
    const struct tnd_analyze_options options = {.type = TANDEM_TYPE_NUMBERS};
    return tnd_report_html(&source, 1, &options, NULL, write, user, NULL);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

static void the_page_is_whole_and_needs_no_network(void)
{
    static const char *const elements[] = {"svg", "table", "section", "figure", "ul", "style"};
    tandem_table *table = example();
    struct tnd_text page = TND_TEXT_INIT;
    check_ok(report(table, "example.txt", append, &page));
    const char *text = tnd_text_string(&page);
    check_contains(text, "<!DOCTYPE html>");
    check_contains(text, "</html>");
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        char open[16];
        char plain[16];
        char close[16];
        snprintf(open, sizeof(open), "<%s ", elements[i]);
        snprintf(plain, sizeof(plain), "<%s>", elements[i]);
        snprintf(close, sizeof(close), "</%s>", elements[i]);
        check_int(count(text, open) + count(text, plain), count(text, close));
    }
    CU_ASSERT_TRUE(count(text, "<svg") > 4);
    check_int(count(text, "https://"), 0);
    check_int(count(text, "src="), 0);
    check_int(count(text, "http://"), 0);
    check_int(count(text, "url("), count(text, "url(#")); /* patterns of the page itself */
    check_int(count(text, "@import"), 0);
    check_int(count(text, "href="), count(text, "href=\"#"));
    check_int(count(text, "<script"), 0);
    check_contains(text, "cpu+accelerate");
    check_contains(text, "23"); /* the first M at which the other way wins */
    tnd_text_fini(&page);
    tandem_table_free(table);
}

/* Who leads by a hair is not worth a change; who leads clearly is, from where both cost the same */
static void the_words_tell_of_clear_leads_alone(void)
{
    static const int64_t m[] = {1, 2, 4, 8, 16};
    static const double by_a_hair[] = {99, 102, 99, 102, 99};
    static const double clearly[] = {102, 99, 102, 60, 60};
    for (int is_clear = 0; is_clear < 2; is_clear++) {
        tandem_table *table = tune_new();
        struct tnd_text page = TND_TEXT_INIT;
        tune_add_cost(table, "cpu", 5, 1); /* names the profiles; another shape has the times */
        tune_add_cost(table, "cpu-packed", 5, 1);
        for (int i = 0; i < 10; i++) {
            const int threads = 1 + i / 5;
            struct tnd_curve_key init = tune_key(64, 64, TANDEM_TASK_QUANTIZE_X, true, threads);
            struct tnd_curve_key rows = tune_key(64, 64, TANDEM_TASK_MUL_MAT_Q, true, threads);
            struct tnd_curve_key packed =
                tune_key(64, 64, TANDEM_TASK_MUL_MAT_PACKED, true, threads);
            packed.stage = TANDEM_STAGE_COMPUTE;
            tune_add(table, &init, m[i % 5], 1);
            tune_add(table, &rows, m[i % 5], 100);
            tune_add(table, &packed, m[i % 5], is_clear ? clearly[i % 5] : by_a_hair[i % 5]);
        }
        check_ok(report(table, "t.json", append, &page));
        const char *text = tnd_text_string(&page);
        check_contains(text, is_clear ? "<li>64 \u00d7 64: <b>cpu</b> from M = 1 to"
                                      : "<li>64 \u00d7 64: <b>cpu-packed</b> at every M");
        check_contains(text, is_clear ? "on <b>cpu-packed</b>; now and then another profile leads "
                                      : "now and then another profile leads by too little");
        /* The other shape takes 42 us by both profiles: (101 + 42) / (61 + 42). */
        check_contains(text, is_clear ? "<li>M = 16: 103 \u00b5s. Gain over one profile for all: "
                                        "1.00 <b>cpu-packed</b>, 1.39 <b>cpu</b>.</li>"
                                      : "Gain over one profile for all: 1.00 <b>cpu");
        tnd_text_fini(&page);
        tandem_table_free(table);
    }
}

/* One cell is noisy, one stale, one profile wrong, a device has transfers. */
static void what_speaks_against_a_table_is_told(void)
{
    tandem_table *table = tune_new();
    struct tnd_text page = TND_TEXT_INIT;
    tune_add_cost(table, "cpu", 5, 1);
    tune_add_cost(table, "opencl", 9, 0);
    tune_add_cost(table, "cpu+openblas", 1, 0);
    tune_add_link(table, "opencl", 10, 1000);
    tune_add_handoff(table, 2, 1, 21);
    struct tnd_curve_key key =
        tune_key(TUNE_DEVICE_N, TUNE_DEVICE_K, TANDEM_TASK_MUL_MAT_Q, true, 2);
    const struct tnd_sample noisy = {4, 9, 3, 50, 2, 0, 0, 0, 0};
    check_ok(tnd_table_add(table, &key, &noisy));
    CU_ASSERT_TRUE(tnd_table_mark_stale(table, &key, 16) > 0);
    struct tnd_check wrong = {"cpu+openblas", TANDEM_TYPE_Q4_0, 4, 256, 512, 1, 1e-4, 1};
    check_ok(tnd_table_add_check(table, &wrong));
    check_ok(tnd_table_add_slowdown(table, &(struct tnd_slowdown){"cpu", "opencl", 1.5, 5, 1}));
    check_ok(report(table, "t.json", append, &page));
    const char *text = tnd_text_string(&page);
    check_contains(text, "1 of 16 times are noisy"); /* 4 M, 2 profiles; 1, 2 threads */
    check_contains(text, "1 of 16 times were found wrong");
    check_contains(text, "results were <b>wrong</b> on this machine: <b>cpu+openblas</b>");
    check_contains(text, "mark hollow");
    check_contains(text, "Transfers between host and devices");
    check_contains(text, "Transfer shares over M");
    check_contains(text, "While opencl works, cpu takes 1.5 times as long");
    tnd_text_fini(&page);
    tandem_table_free(table);
}

static void the_page_shows_how_right_predictions_are(void)
{
    tandem_table *table = tune_new();
    struct tnd_text page = TND_TEXT_INIT;
    tune_add_cost(table, "cpu", 100, 1);
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve_key key = table->curves[i].key;
        for (int64_t m = 1; m <= 4096; m *= 2) {
            tune_add(table, &key, m, 100 + (double)m);
        }
    }
    check_ok(report(table, "t", append, &page));
    check_contains(tnd_text_string(&page), "aria-label=\"Predicted over measured, cells left out");
    check_contains(tnd_text_string(&page), "twice the range: ");
    check_contains(tnd_text_string(&page), "within their error bars");
    tnd_text_fini(&page);
    tandem_table_free(table);
}

/* Two shapes by one profile, 2 operations for 18 / 32 bytes of weights: the int8 peak is a roof. */
static void rooflines_show_what_was_measured(void)
{
    static const struct {
        bool computing, reading;
        const char *told;
    } cases[] = {
        {true, true, "Roofs: FMA 50 GOP/s, int8 200 GOP/s, reading 10 GB/s."},
        {true, false, "int8 200 GOP/s; the speed of reading was not measured."},
        {false, true, "Roofs: reading 10 GB/s; the peaks of computing were not measured."},
        {false, false, "No rooflines: this table has no peaks of its machine."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool any = cases[i].computing || cases[i].reading;
        tandem_table *table = tune_new();
        struct tnd_text page = TND_TEXT_INIT;
        tune_add_cost(table, "cpu", 5, 1);
        tune_add_cost(table, "opencl", 9, 0); /* a device: its roofs are others */
        if (cases[i].computing) {
            check_ok(tnd_table_add_peak(table, &(struct tnd_peak){"fma", 2, 50, 3, 1}));
            check_ok(tnd_table_add_peak(table, &(struct tnd_peak){"bf16", 2, 100, 3, 1}));
            check_ok(tnd_table_add_peak(table, &(struct tnd_peak){"int8 VNNI", 2, 200, 3, 1}));
        }
        if (cases[i].reading) {
            check_ok(tnd_table_add_peak(table, &(struct tnd_peak){"read", 2, 10, 3, 1}));
        }
        check_ok(report(table, "t", append, &page));
        const char *text = tnd_text_string(&page);
        check_contains(text, cases[i].told);
        check_int(count(text, "aria-label=\"Roofline, weights q4_0"), any ? 1 : 0);
        check_int(count(text, ">reading</text>"), cases[i].reading ? 1 : 0);
        check_int(count(text, ">int8</text>"), cases[i].computing ? 1 : 0);
        tnd_text_fini(&page);
        tandem_table_free(table);
    }
}

static void names_cannot_break_out_of_the_page(void)
{
    tandem_table *table = example();
    strcpy(table->model, "<script>a('\"&");
    struct tnd_text page = TND_TEXT_INIT;
    check_ok(report(table, "<script>\"'&\xff.txt", append, &page));
    check_int(count(tnd_text_string(&page), "<script"), 0);
    CU_ASSERT_TRUE(count(tnd_text_string(&page), "&#60;script") +
                       count(tnd_text_string(&page), "&lt;script") >=
                   2);
    tnd_text_fini(&page);
    tandem_table_free(table);
}

static void a_reader_that_stops_is_told(void)
{
    tandem_table *table = example();
    check_int(report(table, "example.txt", refuse, NULL), TANDEM_E_FILE);
    tandem_table_free(table);
}

static void running_out_of_memory_leaks_nothing(void)
{
    tandem_table *table = example();
    long live = tnd_alloc_live();
    for (long n = 1; n < 2000; n++) {
        int stopped = 0;
        tnd_alloc_fail_after(n);
        enum tandem_status status = report(table, "example.txt", refuse, &stopped);
        tnd_alloc_fail_after(-1);
        if (!check_int(tnd_alloc_live(), live) || status == TANDEM_E_FILE) {
            break; /* got as far as writing */
        }
        check_int(status, TANDEM_E_MEMORY);
    }
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"the_words_tell_of_clear_leads_alone", the_words_tell_of_clear_leads_alone},
    {"what_speaks_against_a_table_is_told", what_speaks_against_a_table_is_told},
    {"the_page_is_whole_and_needs_no_network", the_page_is_whole_and_needs_no_network},
    {"the_page_shows_how_right_predictions_are", the_page_shows_how_right_predictions_are},
    {"rooflines_show_what_was_measured", rooflines_show_what_was_measured},
    {"names_cannot_break_out_of_the_page", names_cannot_break_out_of_the_page},
    {"a_reader_that_stops_is_told", a_reader_that_stops_is_told},
    {"running_out_of_memory_leaks_nothing", running_out_of_memory_leaks_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_html[];
CU_SuiteInfo suites_report_html[] = {
    {"report", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
