/* SPDX-License-Identifier: MIT
 * Regret: runs a problem with all candidates in alternating rounds, then the plan's choice against
 * the fastest candidate, again and alternately. Only the second comparison counts: the least of
 * many noisy times is too low by chance, and that would be counted as regret. */
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
    int limit_threads;          /* thread limit of the plan */
    double predicted_us;        /* 0: chosen by the rule */
    double chosen_us, best_us;  /* measured alternately */
    double regret;              /* median of chosen / best - 1 within a round; 0 when not slower */
    double noise;               /* the best candidate's difference from itself in the same rounds */
    char best_profile[32];
    int best_threads;
    struct tnd_estimate chosen_estimate, best_estimate; /* by the table; us is 0 without one */
    char why[320]; /* reason for a regret above TND_ORACLE_EXPLAIN; else "" */
    int n_candidates;
    struct tnd_oracle_candidate candidates[TND_ORACLE_MAX_CANDIDATES];
};

struct tnd_oracle_options {
    struct tnd_measure_options measure;
    struct tnd_planner *planner;
    const struct tandem_table *table; /* the planner's, borrowed; NULL: none */
    int rounds;                       /* of the second comparison; 0: 7 */
    double cell_s;                    /* target time for one cell; 0: 2 s */
    double end_s; /* deadline; a cell that might not end before is not begun; 0: none */
    /** Called after each cell; returning true stops with CANCELLED. */
    bool (*progress)(void *user, const struct tnd_oracle_cell *cell);
    void *user;
};

struct tnd_oracle_question {
    int64_t m;
    int threads; /* maximum */
};

/** Answers questions about one type and shape in order. `out_cells` has room for n; *out_n gets the
 * number answered before the deadline. Errors: MEMORY, CANCELLED, those of measuring. */
enum tandem_status tnd_oracle_run(const struct tnd_oracle_options *options, enum tandem_type type,
                                  const struct tnd_shape *shape,
                                  const struct tnd_oracle_question *questions, int n,
                                  struct tnd_oracle_cell *out_cells, int *out_n,
                                  struct tandem_error *error);

/** Explains from predictions and times why the choice was not the best: fills cell->why. */
void tnd_oracle_explain(struct tnd_oracle_cell *cell);

struct tnd_regret {
    double median, p95, worst; /* fractions */
    double noise;              /* median of the cells' */
};
/** Statistics over n >= 1 cells. Errors: MEMORY. */
enum tandem_status tnd_oracle_regret(const struct tnd_oracle_cell *cells, int n,
                                     struct tnd_regret *out);

#endif
