/* SPDX-License-Identifier: MIT
 * Measures the stages of all profiles over types, shapes, tokens and thread counts, and puts them
 * into a table: within a time that is kept, there where it tells most. Prints nothing; tells a
 * callback how far it is. */
#ifndef TND_BENCH_H
#define TND_BENCH_H

#include "measure/measure.h"
#include "measure/models.h"
#include "table/problem.h"
#include "table/tnd_table.h"

enum { TND_MAX_BENCH_M = 128, TND_MAX_BENCH_TYPES = 16, TND_MAX_BENCH_THREADS = 16 };

/* How much is measured. A budget ends each of them. */
enum tnd_effort {
    TND_EFFORT_MEASURE,  /* few M first, then where interpolation errs, until that is small */
    TND_EFFORT_ESTIMATE, /* anchors alone: a few M, within a few seconds */
    TND_EFFORT_PATIENT   /* a full sweep over M and thread counts, twice */
};

/** "measure", "estimate", "patient"; false for other words. */
bool tnd_effort_from_name(const char *name, enum tnd_effort *out);

struct tnd_bench_progress {
    struct tnd_problem problem; /* just measured */
    struct tnd_stage_time total;
    int trials;               /* to cells, so far */
    double elapsed_s, left_s; /* left: of the budget, else an estimate */
};

/* What a run came to. */
struct tnd_bench_summary {
    int cells, trials;
    int unmeasured;            /* cells that should have been measured: the budget was too small */
    int lines, unknown;        /* profiles x thread counts x weights; those without any cell */
    double median_uncertainty; /* of the times, and of what lies between them; a fraction */
    double elapsed_s;
    double prepared_s; /* of elapsed_s, before the first cell */
    bool is_certain;   /* nothing was left that is worth measuring */
};

struct tnd_bench_options {
    struct tnd_measure_options measure;
    const struct tnd_shapes *shapes;
    int n_types;
    enum tandem_type types[TND_MAX_BENCH_TYPES]; /* of shapes without a type of their own */
    int n_m;                                     /* 0: as the effort wants it */
    int64_t m[TND_MAX_BENCH_M];                  /* ascending: measure just these, */
    bool is_adaptive;                            /* or begin with these */
    int n_thread_counts;
    int thread_counts[TND_MAX_BENCH_THREADS]; /* ascending */
    const char *profile;                      /* only this one; NULL: all that are available */
    struct tnd_pool *pool;                    /* borrowed; NULL: hand-offs are not measured */
    /* Borrowed, of this machine: its stale cells come first, and what was measured within
     * TND_BENCH_RESUME_S is taken up, unless M are fixed. NULL: none. */
    const struct tandem_table *known;
    enum tnd_effort effort;
    double budget_s; /* the whole run ends within it, by the clock; 0: none, but for ESTIMATE */
    bool ends_when_certain; /* the budget is a limit; else all of it is used */
    double reserve_s;       /* of it, for what the caller does afterwards */
    uint64_t begin_ns;      /* when the budget began; 0: with the call */
    /** Told after each trial of a cell; true stops with CANCELLED (what was measured stays in the
     *  table). */
    bool (*progress)(void *user, const struct tnd_bench_progress *progress);
    /** Asked between the steps before the first trial; true stops likewise. May be NULL. */
    bool (*is_stopped)(void *user);
    void *user;
};

/** Thread counts to measure: 1, 2, 4, .. n_threads, and `n_fast`: where a machine has cores of two
 *  kinds, all of the faster one alone may beat all together (0: no such). Returns how many. */
int tnd_bench_thread_counts(int n_threads, int n_fast, int out[TND_MAX_BENCH_THREADS]);

/** Adds profiles and cells to `table`, and transfers of the devices that take part. Shapes whose
 *  rows do not fit a type's blocks are left out for that type. `out_summary` may be NULL; it is
 *  filled after CANCELLED too. Errors: MEMORY, CANCELLED, those of measuring. */
enum tandem_status tnd_bench_run(const struct tnd_bench_options *options,
                                 struct tandem_table *table, struct tnd_bench_summary *out_summary,
                                 struct tandem_error *error);

#endif
