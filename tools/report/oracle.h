/* SPDX-License-Identifier: MIT
 * Regret: runs a problem with every candidate there is, in alternating rounds, then the plan's
 * choice against the candidate that was fastest, anew and alternately. Only the second
 * comparison counts: the fastest of many noisy times is too fast by chance, and would be counted
 * as regret. */
#ifndef TND_ORACLE_H
#define TND_ORACLE_H

#include "measure/measure.h"
#include "measure/models.h"
#include "tune/estimate.h"
#include "tune/planner.h"
#include "table/problem.h"

enum { TND_ORACLE_MAX_CANDIDATES = 64 };

/* A candidate for a problem: profile and thread count. */
struct tnd_oracle_candidate {
    char profile[32];
    int threads;
    double median_us; /* over the rounds */
    double spread_us;
};

struct tnd_oracle_cell {
    struct tnd_problem problem; /* threads and profile: the plan's choice */
    int limit_threads;          /* that the plan might use */
    double predicted_us;        /* 0: by the rule */
    double chosen_us, best_us;  /* measured, alternately */
    double regret; /* chosen / best - 1 of the same round, the median; 0 when not slower */
    double noise;  /* difference of the best candidate from itself in the same rounds */
    char best_profile[32];
    int best_threads;
    struct tnd_estimate chosen_estimate, best_estimate; /* by the table; us 0: none */
    char why[320]; /* of a regret above TND_ORACLE_EXPLAIN; else "" */
    int n_candidates;
    struct tnd_oracle_candidate candidates[TND_ORACLE_MAX_CANDIDATES];
};

struct tnd_oracle_options {
    struct tnd_measure_options measure;
    struct tnd_planner *planner;
    const struct tandem_table *table; /* borrowed, the planner's; NULL: none */
    int rounds;                       /* of the second comparison; 0: 7 */
    double cell_s;                    /* time aimed at for one cell; 0: 2 s */
    double end_s; /* by the clock; a cell that would not end before is not begun; 0: none */
    /** Told after each cell; true stops with CANCELLED. */
    bool (*progress)(void *user, const struct tnd_oracle_cell *cell);
    void *user;
};

struct tnd_oracle_question {
    int64_t m;
    int threads; /* the most */
};

/** Answers questions about one type and shape in their order. `out_cells` has room for n;
 *  *out_n gets how many were answered before the time ended. Errors: MEMORY, CANCELLED, those of
 *  measuring. */
enum tandem_status tnd_oracle_run(const struct tnd_oracle_options *options, enum tandem_type type,
                                  const struct tnd_shape *shape,
                                  const struct tnd_oracle_question *questions, int n,
                                  struct tnd_oracle_cell *out_cells, int *out_n,
                                  struct tandem_error *error);

/** Why the choice was not the best, told from predictions and times: fills cell->why. */
void tnd_oracle_explain(struct tnd_oracle_cell *cell);

struct tnd_regret {
    double median, p95, worst; /* fractions */
    double noise;              /* median of the cells' */
};
/** Over n >= 1 cells. Errors: MEMORY. */
enum tandem_status tnd_oracle_regret(const struct tnd_oracle_cell *cells, int n,
                                     struct tnd_regret *out);

#endif
