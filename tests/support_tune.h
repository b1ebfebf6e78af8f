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
/** The same for weights of n rows of k. */
void tune_add_cost_of(tandem_table *table, const char *profile, int64_t n, int64_t k, double fixed,
                      double per_token);
/** latency + bytes / rate, both ways, and no noise. */
void tune_add_link(tandem_table *table, const char *backend, double latency_us,
                   double bytes_per_us);
void tune_add_handoff(tandem_table *table, int threads, double spin_us, double wake_us);

/* ---- pretended devices with memory of their own, for programs' own backends ---- */

enum { TUNE_SIM_DEVICES = 3 };
/** "simown", "simown2", "simown3": names of backends and of their only profiles. */
extern const char *const tune_sim_names[TUNE_SIM_DEVICES];
/** The i-th, with a profile for products of all types; for tandem_runtime_add_backend. */
struct tandem_backend_api tune_sim_api(int i);
/** Makes the profile known that computes F32 products on a device, or on the CPU ("cpu"): the task
 *  that has curves. "opencl" and its kind as well. */
enum tandem_task tune_add_profile(tandem_table *table, const char *name);
/** A curve of F32 products N x K on one thread, up to 1024 tokens: fixed + per_token * m us. */
void tune_add_rate(tandem_table *table, const char *backend, enum tandem_task task, int64_t n,
                   int64_t k, double fixed_us, double per_token_us);

#endif
