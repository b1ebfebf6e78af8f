/* SPDX-License-Identifier: MIT
 * What the tune suites share. Every function makes its own checks. */
#ifndef TND_TESTS_SUITE_TUNE_H
#define TND_TESTS_SUITE_TUNE_H

#include "base/text.h"
#include "tests/support.h"
#include "tune/analyze.h"
#include "tune/tnd_table.h"

extern const char tune_example[];

tandem_table *tune_new(void);
tandem_table *tune_parse(const char *text);
struct tnd_text tune_print(const tandem_table *table, enum tandem_table_format format);
struct tnd_text tune_analyze(const tandem_table *table, const struct tnd_analyze_options *options);
/** Key of a q4_0 mul_mat curve on "cpu"; the stage follows from the task. */
struct tnd_curve_key tune_key(int64_t n, int64_t k, enum tandem_task task, bool parallel,
                              int threads);
void tune_add(tandem_table *table, const struct tnd_curve_key *key, int64_t m, double us);

#endif
