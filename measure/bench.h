/* SPDX-License-Identifier: MIT
 * Measures the stages of all profiles over types, shapes, tokens and thread counts within a time
 * budget, most informative cells first, and adds them to a table. Prints nothing; reports progress
 * to a callback. */
#ifndef TND_BENCH_H
#define TND_BENCH_H

#include "measure/measure.h"
#include "measure/models.h"
#include "table/problem.h"
#include "table/tnd_table.h"

enum { TND_MAX_BENCH_M = 128, TND_MAX_BENCH_TYPES = 16, TND_MAX_BENCH_THREADS = 16 };

/* How much is measured. With a budget each of them ends early. */
enum tnd_effort {
    TND_EFFORT_MEASURE,  /* few M first, then where interpolation is wrong, until the error is
                          * small */
    TND_EFFORT_ESTIMATE, /* anchors only: a few M, within a few seconds */
    TND_EFFORT_PATIENT   /* a full sweep over M and thread counts, twice */
};

/** "measure", "estimate", "patient"; false for other words. */
bool tnd_effort_from_name(const char *name, enum tnd_effort *out);

struct tnd_bench_progress {
    struct tnd_problem problem; /* just measured */
    struct tnd_stage_time total;
    int trials;               /* of all cells, so far */
    double elapsed_s, left_s; /* left_s: of the budget, or an estimate without one */
};

/* Results of a run. */
struct tnd_bench_summary {
    int cells, trials;
    int unmeasured;            /* cells that should have been measured: the budget was too small */
    int lines, unknown;        /* profiles x thread counts x weights; those without any cell */
    double median_uncertainty; /* of the times, and of interpolation between them; a fraction */
    double elapsed_s;
    double prepared_s; /* of elapsed_s, before the first cell */
    bool is_certain;   /* nothing worth measuring was left */
};

struct tnd_bench_options {
    struct tnd_measure_options measure;
    const struct tnd_shapes *shapes;
    int n_types;
    enum tandem_type types[TND_MAX_BENCH_TYPES]; /* for shapes that have no type */
    int n_m;                                     /* 0: the effort's choice */
    int64_t m[TND_MAX_BENCH_M];                  /* ascending: measure only these, ... */
    bool is_adaptive;                            /* ... or start with these */
    int n_thread_counts;
    int thread_counts[TND_MAX_BENCH_THREADS]; /* ascending */
    const char *profile;                      /* only this one; NULL: all available ones */
    struct tnd_pool *pool;                    /* borrowed; NULL: hand-offs are not measured */
    /* Borrowed, of this machine: its stale cells are measured first, and cells younger than
     * TND_BENCH_RESUME_S are reused, unless M are fixed. NULL: none. */
    const struct tandem_table *known;
    enum tnd_effort effort;
    double budget_s;        /* wall-clock limit of the whole run; 0: none, except for ESTIMATE */
    bool ends_when_certain; /* stops when nothing is worth measuring; else all of the budget is
                             * used */
    double reserve_s;       /* part of the budget kept for the caller's work afterwards */
    uint64_t begin_ns;      /* when the budget began; 0: at the call */
    /** Called after each trial of a cell; true stops with CANCELLED (what was measured stays in the
     *  table). */
    bool (*progress)(void *user, const struct tnd_bench_progress *progress);
    /** Called between the steps before the first trial; true stops too. May be NULL. */
    bool (*is_stopped)(void *user);
    void *user;
};

/** Thread counts to measure: 1, 2, 4, .. n_threads, and `n_fast`, the number of cores of the
 *  fastest kind, which alone may beat all cores together (0: one kind). Returns how many. */
int tnd_bench_thread_counts(int n_threads, int n_fast, int out[TND_MAX_BENCH_THREADS]);

/** Adds profiles, cells and the transfers of the devices that take part to `table`. A type is
 *  skipped for shapes whose rows do not fit its blocks. `out_summary` may be NULL; it is filled
 *  after CANCELLED too. Errors: MEMORY, CANCELLED, those of measuring. */
enum tandem_status tnd_bench_run(const struct tnd_bench_options *options,
                                 struct tandem_table *table, struct tnd_bench_summary *out_summary,
                                 struct tandem_error *error);

#endif
