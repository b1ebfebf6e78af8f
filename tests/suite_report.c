/* SPDX-License-Identifier: MIT
 * Main of the report suites; each tests/suite_report_*.c brings one CU_SuiteInfo array. */
#include "tests/suite_report.h"
#include "tests/support.h"

extern CU_SuiteInfo suites_report_advise[];
extern CU_SuiteInfo suites_report_analyze[];
extern CU_SuiteInfo suites_report_args[];
extern CU_SuiteInfo suites_report_copies[];
extern CU_SuiteInfo suites_report_html[];
extern CU_SuiteInfo suites_report_replay[];
extern CU_SuiteInfo suites_report_health[];
extern CU_SuiteInfo suites_report_lanes[];
extern CU_SuiteInfo suites_report_left_out[];
extern CU_SuiteInfo suites_report_links[];
extern CU_SuiteInfo suites_report_machines[];
extern CU_SuiteInfo suites_report_oracle[];
extern CU_SuiteInfo suites_report_picture[];

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

struct tnd_text tune_analyze(const tandem_table *table, const struct tnd_analyze_options *options)
{
    struct tnd_text text = TND_TEXT_INIT;
    check_ok(tnd_analyze(table, options, collect, &text, NULL));
    return text;
}

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_report_advise, suites_report_analyze,
                          suites_report_args, suites_report_copies, suites_report_html,
                          suites_report_replay, suites_report_health, suites_report_lanes,
                          suites_report_left_out, suites_report_links, suites_report_machines,
                          suites_report_oracle, suites_report_picture, NULL);
}
