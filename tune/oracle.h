/* SPDX-License-Identifier: MIT
 * Regret: runs a problem in every way there is, in alternating rounds, and compares the plan's
 * choice with the fastest. */
#ifndef TND_ORACLE_H
#define TND_ORACLE_H

#include "tune/measure.h"
#include "tune/models.h"
#include "tune/planner.h"
#include "tune/problem.h"

enum { TND_ORACLE_MAX_WAYS = 64 };

/* One way of computing a problem: profile and thread count. */
struct tnd_oracle_way {
    char profile[32];
    int threads;
    double median_us; /* over the rounds */
    double spread_us;
};

struct tnd_oracle_cell {
    struct tnd_problem problem; /* threads and profile: the plan's choice */
    double predicted_us;        /* 0: by the fixed rule */
    double chosen_us, best_us;  /* measured */
    double regret;              /* chosen / best - 1 */
    char best_profile[32];
    int best_threads;
    int n_ways;
    struct tnd_oracle_way ways[TND_ORACLE_MAX_WAYS];
};

struct tnd_oracle_options {
    struct tnd_measure_options measure;
    struct tnd_planner *planner;
    int n_threads; /* the most */
    int rounds;    /* 0: 7 */
    double cell_s; /* time aimed at for one cell over all ways and rounds; 0: 2 s */
    /** Told after each cell; true stops with CANCELLED. */
    bool (*progress)(void *user, const struct tnd_oracle_cell *cell, int done, int count);
    void *user;
};

/** Fills n_m cells for one type and shape, ascending m. Errors: MEMORY, CANCELLED, those of
 *  measuring. */
enum tandem_status tnd_oracle_run(const struct tnd_oracle_options *options, enum tandem_type type,
                                  const struct tnd_shape *shape, const int64_t *m, int n_m,
                                  struct tnd_oracle_cell *out_cells, int done, int count,
                                  struct tandem_error *error);

struct tnd_regret {
    double median, p95, worst; /* fractions */
};
/** Over n >= 1 cells. Errors: MEMORY. */
enum tandem_status tnd_oracle_regret(const struct tnd_oracle_cell *cells, int n,
                                     struct tnd_regret *out);

#endif
