/* SPDX-License-Identifier: MIT
 * Where one profile overtakes another by more than a reader should ignore, in times over M. */
#ifndef TND_CROSSOVER_H
#define TND_CROSSOVER_H

#include <stdbool.h>
#include <stdint.h>

struct tnd_crossover {
    int from, to;    /* profiles, by index */
    double m;        /* where both cost the same */
    int64_t first_m; /* first whole M at which `to` wins */
    /* The clearest lead of `to` over `from` before the next crossover, and what a lead must exceed
     * there to be none of chance; as shares of the time of `to`. */
    double lead, least_lead;
};

/** Whether the lead behind a crossover is more than chance. */
bool tnd_crossover_is_clear(const struct tnd_crossover *crossover);

/** Cheapest of the profiles at point i, the first of equals. `times` holds n_points of each profile
 *  in turn. */
int tnd_winner(const double *times, int n_profiles, int n_points, int i);

/** Crossovers between the first and the last point, ascending. `m` ascends; `us` and `errors` hold
 *  n_points of each profile in turn. The winner of the first point is kept until another profile is
 *  the fastest at a point; then that one is kept. `only_clear`: by a lead that a table may change
 *  the rule for, three standard errors of the difference and TND_RULE_LEAD (tune/policy.h); else
 *  any lead counts, and the curves' crossings are exact. errors NULL: all times are exact. Fills at
 *  most `capacity` entries and returns how many it filled; n_points are always enough. */
int tnd_crossovers(const int64_t *m, int n_points, const double *us, const double *errors,
                   int n_profiles, bool only_clear, struct tnd_crossover *out, int capacity);

#endif
