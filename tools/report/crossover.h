/* SPDX-License-Identifier: MIT
 * Where one profile overtakes another by more than a reader should ignore, in times over M. */
#ifndef TND_CROSSOVER_H
#define TND_CROSSOVER_H

#include <stdint.h>

struct tnd_crossover {
    int from, to;    /* profiles, by index */
    double m;        /* where both cost the same */
    int64_t first_m; /* first whole M at which `to` wins */
};

/** Cheapest of the profiles at point i, the first of equals. `times` holds n_points of each profile
 *  in turn. */
int tnd_winner(const double *times, int n_profiles, int n_points, int i);

/** Crossovers between the first and the last point, ascending. `m` ascends; `us` and `errors` hold
 *  n_points of each profile in turn. The winner of the first point is kept until another profile is
 *  the fastest at a point, by more than TND_REPORT_ENOUGH (tune/policy.h) and than the errors of
 *  both; then that one is kept. errors NULL: any lead counts. Fills at most `capacity` entries and
 *  returns how many it filled; n_points are always enough. */
int tnd_crossovers(const int64_t *m, int n_points, const double *us, const double *errors,
                   int n_profiles, struct tnd_crossover *out, int capacity);

#endif
