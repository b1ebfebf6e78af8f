/* SPDX-License-Identifier: MIT
 * Made-up tables, for the suites of table/ and of the rooms above. Every function makes its own
 * checks. */
#ifndef TND_TESTS_SUPPORT_TUNE_H
#define TND_TESTS_SUPPORT_TUNE_H

#include "base/text.h"
#include "tests/support.h"
#include "table/tnd_table.h"
#include "tune/planner.h"

extern const char tune_example[];

tandem_table *tune_new(void);
tandem_table *tune_parse(const char *text);
struct tnd_text tune_print(const tandem_table *table, enum tandem_table_format format);
/** Key of a q4_0 mul_mat curve on "cpu"; the stage follows from the task. */
struct tnd_curve_key tune_key(int64_t n, int64_t k, enum tandem_task task, bool parallel,
                              int threads);
void tune_add(tandem_table *table, const struct tnd_curve_key *key, int64_t m, double us);
/** Stale samples of curves. */
int64_t tune_count_stale(const struct tandem_table *table);

/** A graph of one product of constant weights N x K. */
tandem_graph *tune_product(tandem_context *context, enum tandem_type type, int64_t n, int64_t k,
                           int64_t m);
/** What the planner chooses for the first node; zeros after a failure. */
struct tandem_plan_node tune_plan_one(struct tnd_planner *planner, const tandem_graph *graph,
                                      int n_threads);

/* ---- made-up devices ---- */

enum { TUNE_DEVICE_N = 256, TUNE_DEVICE_K = 512 };

/** Puts a made-up cost into all stages of a profile of tune/ for q4_0 weights of this shape: each
 *  takes fixed + per_token * m microseconds. */
void tune_add_cost(tandem_table *table, const char *profile, double fixed, double per_token);
/** latency + bytes / rate, both ways, and no noise. */
void tune_add_link(tandem_table *table, const char *backend, double latency_us,
                   double bytes_per_us);
void tune_add_handoff(tandem_table *table, int threads, double spin_us, double wake_us);

#endif
