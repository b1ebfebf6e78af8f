/* SPDX-License-Identifier: MIT
 * State of one run of the bench, shared by bench.c (the run), bench_groups.c (operands, costs),
 * bench_cells.c (results into the table) and bench_trust.c (checks that make times trustworthy).
 * Only for these files. */
#ifndef TND_BENCH_SWEEP_H
#define TND_BENCH_SWEEP_H

#include "measure/adapt.h"
#include "measure/bench.h"
#include "measure/measure_reference.h"

/* The weights of one (type, N, K), with operands while the group is open. */
struct tnd_bench_group {
    enum tandem_type type;
    struct tnd_shape shape;
    double calls;
    bool stays_in_cache;         /* one copy of the weights: warm times */
    struct tnd_measure *measure; /* NULL: not open */
    double bytes;                /* memory while it is open */
    double weight_bytes;         /* of all copies */
    uint64_t last_used;
    bool is_packed;
    uint64_t warm; /* bit i: line i of the group has run on these operands */
};

/* A profile on a thread count for one group; numbered as in tnd_adapt. */
struct tnd_bench_line {
    int group;
    int first; /* line of the group */
    int threads;
    bool uses_device;
    struct tandem_plan_node choice;
    struct tnd_table_profile described;
};

/* Where the search for stale cells in the known table continues. */
struct tnd_stale_position {
    int curve, sample;
};

struct tnd_sweep {
    const struct tnd_bench_options *options;
    struct tandem_table *table;
    struct tandem_error *error;
    struct tnd_adapt *adapt;
    int64_t when; /* seconds since 1970, the same for all cells of a sweep */
    uint64_t begin_ns;
    double budget_s;   /* INFINITY: none */
    double prepared_s; /* elapsed time when the first cell began */
    double trial_s;    /* duration of a trial of short products */
    int64_t most_m;
    int n_groups, n_lines;
    struct tnd_bench_group *groups;
    struct tnd_bench_line *lines;
    uint64_t n_trials;
    double open_bytes, limit_bytes;      /* of operands */
    double open_s_per_byte;              /* to make operands */
    double pack_s_per_byte;              /* to make copies of weights */
    double round_trip_us[TND_MAX_SLOTS]; /* for devices with memory of their own */
    struct tnd_stale_position stale_position;
    struct tnd_sweep_state state; /* of the machine */
    double reference_s;           /* when the reference kernel ran last */
};

double tnd_sweep_elapsed_s(const struct tnd_sweep *sweep);

/* ---- bench_groups.c ---- */

/** Predicted seconds of a trial; for tnd_adapt. */
double tnd_sweep_cost_s(void *user, int line, int64_t m, double expected_us);
/** Opens the operands of a line's group, closing others if memory is short, and makes the copies
 *  that its profile computes with. */
enum tandem_status tnd_sweep_open(struct tnd_sweep *sweep, int line, struct tandem_error *error);
void tnd_sweep_close_all(struct tnd_sweep *sweep);
/** Whether a trial of this cell needs no warm-up. */
bool tnd_sweep_is_warm(const struct tnd_sweep *sweep, int line, double expected_us);

/* ---- bench_cells.c ---- */

/** Adds the result of a trial to the table. Errors: MEMORY. */
enum tandem_status tnd_sweep_keep(struct tnd_sweep *sweep, int line, int64_t m,
                                  const struct tnd_measure_result *result);

/** Reuses cells of the sweep's lines in the known table that are not older than TND_BENCH_RESUME_S,
 *  so that an interrupted run continues. Errors: MEMORY. */
enum tandem_status tnd_sweep_take_up(struct tnd_sweep *sweep);

/* ---- bench_trust.c ---- */

/** False for budgets so small that the checks below would take too much of them: then they are
 *  skipped. */
bool tnd_sweep_has_time_to_check(const struct tnd_sweep *sweep);
/** Times the reference kernel: at the start, from time to time, and at the end, when the result
 *  goes into the table. */
void tnd_sweep_reference_before(struct tnd_sweep *sweep);
void tnd_sweep_reference_between(struct tnd_sweep *sweep);
void tnd_sweep_reference_after(struct tnd_sweep *sweep);
/** Checks the results of all profiles for the types of the groups, within a part of the budget.
 *  Errors: those of tnd_measure_checks. */
enum tandem_status tnd_sweep_check_results(struct tnd_sweep *sweep);
/** Measures slow-downs of backends beside each other; skipped if time is short. */
enum tandem_status tnd_sweep_measure_pairs(struct tnd_sweep *sweep);
/** The next stale cell of the known table that this sweep can measure within `left_s`; false when
 *  there are no more. */
bool tnd_sweep_next_stale(struct tnd_sweep *sweep, double left_s, struct tnd_adapt_cell *out);
/** Whether all weights of a type, as often as the graph uses them, fit into the last-level cache
 *  beside other data: then programs compute with warm weights. */
bool tnd_bench_fits_cache(const struct tnd_bench_options *options, enum tandem_type type);

#endif
