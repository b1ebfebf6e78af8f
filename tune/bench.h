/* SPDX-License-Identifier: MIT
 * Measures the stages of all profiles over types, shapes, tokens and thread counts, and puts them
 * into a table. Prints nothing; tells a callback how far it is. */
#ifndef TND_BENCH_H
#define TND_BENCH_H

#include "tune/measure.h"
#include "tune/models.h"
#include "tune/problem.h"
#include "tune/tnd_table.h"

enum { TND_MAX_BENCH_M = 128, TND_MAX_BENCH_TYPES = 16, TND_MAX_BENCH_THREADS = 16 };

struct tnd_bench_progress {
    struct tnd_problem problem; /* just measured */
    struct tnd_stage_time total;
    int done, count;          /* cells */
    double elapsed_s, left_s; /* left: estimate */
};

struct tnd_bench_options {
    struct tnd_measure_options measure;
    const struct tnd_shapes *shapes;
    int n_types;
    enum tandem_type types[TND_MAX_BENCH_TYPES];
    int n_m;
    int64_t m[TND_MAX_BENCH_M]; /* ascending */
    int n_thread_counts;
    int thread_counts[TND_MAX_BENCH_THREADS]; /* ascending */
    const char *profile;                      /* only this one; NULL: all that are available */
    struct tnd_pool *pool; /* borrowed; NULL: hand-offs are not measured */
    double budget_s; /* aim for the whole run; 0: no aim, full effort a cell */
    /** Told after each cell; true stops with CANCELLED (what was measured stays in the table). */
    bool (*progress)(void *user, const struct tnd_bench_progress *progress);
    void *user;
};

/** Adds profiles and cells to `table`, and transfers of the devices that take part. Shapes whose
 *  rows do not fit a type's blocks are left out for that type. Errors: MEMORY, CANCELLED, those of
 *  measuring. */
enum tandem_status tnd_bench_run(const struct tnd_bench_options *options,
                                 struct tandem_table *table, struct tandem_error *error);

#endif
