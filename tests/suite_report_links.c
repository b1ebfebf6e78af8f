/* SPDX-License-Identifier: MIT
 * What is printed of made-up links. */
#include <string.h>

#include "tests/support_tune.h"
#include "tools/report/links.h"

/* 100 us, and 1 us for each 1,000 bytes. */
static void add_link(tandem_table *table, const char *kind, const char *to, double slower)
{
    struct tnd_link link = {.ranks = 2, .transport = "strings"};
    strcpy(link.kind, kind);
    strcpy(link.from, "one");
    strcpy(link.to, to);
    for (int64_t bytes = 1000; bytes <= 1000000; bytes *= 10) {
        const struct tnd_sample sample = {
            .m = bytes, .median_us = slower * (100 + (double)bytes / 1000), .count = 5};
        check_ok(tnd_cell_add(table, TND_RECORD_LINKS, &link, &sample));
    }
}

static void links_are_printed_with_latency_and_bandwidth(void)
{
    tandem_table *table = tune_new();
    struct tnd_text text = TND_TEXT_INIT;
    tnd_links_print(&text, table);
    check_int(text.n, 0);
    add_link(table, "message", "two", 1);
    add_link(table, "both directions", "two", 2);
    add_link(table, "all-reduce", "all", 9);
    const struct tnd_slowdown beside = {.backend = "cpu", .beside = "links", .factor = 1.25};
    check_ok(tnd_table_add_slowdown(table, &beside));
    tnd_links_print(&text, table);
    check_contains(text.bytes, "links by strings");
    check_contains(text.bytes,
                   "one to two: latency 101.0 us, 0.909 GB/s, 0.455 in both directions at once at "
                   "1000000 bytes");
    check_contains(text.bytes, "products take 1.25 times as long while messages come and go");
    check_contains(text.bytes, "all-reduce of 2 ranks");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"links are printed with latency and bandwidth", links_are_printed_with_latency_and_bandwidth},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_report_links[] = {
    {"links", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
