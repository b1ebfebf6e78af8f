/* SPDX-License-Identifier: MIT
 * What the report suites share. */
#ifndef TND_TESTS_SUITE_REPORT_H
#define TND_TESTS_SUITE_REPORT_H

#include "base/text.h"
#include "tools/report/analyze.h"

/** The report of a table; makes its own check. */
struct tnd_text tune_analyze(const tandem_table *table, const struct tnd_analyze_options *options);

#endif
