/* SPDX-License-Identifier: MIT
 * Where one profile overtakes another: breaks of the lower envelope of piecewise linear times over
 * M. */
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

/** Crossovers between the first and the last point, ascending. `m` ascends. Fills at most
 *  `capacity` entries and returns how many it filled; (n_points - 1) * n_profiles are always
 *  enough. */
int tnd_crossovers(const int64_t *m, int n_points, const double *times, int n_profiles,
                   struct tnd_crossover *out, int capacity);

#endif
